"""How much memory this process holds."""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from pathlib import Path


def peak_memory() -> int | None:
    """Return the largest resident size of this process so far, in bytes, where the system tells."""
    peak = _status("VmHWM")  # getrusage would count a parent's from before this program was started
    if peak is not None:
        return peak
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _status(field: str) -> int | None:
    try:
        text = Path("/proc/self/status").read_text()
    except OSError:
        return None
    found = re.search(rf"{field}:\s+(\d+) kB", text)
    return None if found is None else int(found[1]) * 1024


def forget_peak() -> None:
    """Let the peak count from now, where the system can (Linux)."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


class MemoryMeter:
    """Measures by how much the process has grown at most, from when the meter was made."""

    def __init__(self) -> None:
        self._resident, self._peak = _status("VmRSS"), peak_memory()

    def growth(self) -> int | None:
        """Return bytes, or None where they cannot be told: the process was larger before."""
        peak = peak_memory()
        if self._resident is None or self._peak is None or peak is None or peak <= self._peak:
            return None
        return peak - self._resident
