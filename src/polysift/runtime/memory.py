"""How much memory this process holds."""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from pathlib import Path

STATUS = "/proc/self/status"


def peak_memory() -> int | None:
    """Return the largest resident size of this process so far, in bytes, where the system tells."""
    return _peak(_status())


def _peak(status: bytes) -> int | None:
    peak = _field("VmHWM", status)  # getrusage counts a parent's from before this program started
    if peak is not None:
        return peak
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _status() -> bytes:
    """Return what the system (Linux) tells of this process, or nothing."""
    try:
        with open(STATUS, "rb", buffering=0) as file:
            return file.read()
    except OSError:
        return b""


def _field(name: str, status: bytes) -> int | None:
    found = re.search(rf"{name}:\s+(\d+) kB".encode(), status)
    return None if found is None else int(found[1]) * 1024


def forget_peak() -> None:
    """Let the peak count from now, where the system can (Linux)."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


class MemoryMeter:
    """Measures by how much the process has grown at most, from when the meter was made."""

    def __init__(self) -> None:
        status = _status()
        self._resident, self._peak = _field("VmRSS", status), _peak(status)

    def growth(self) -> int | None:
        """Return bytes, or None where they cannot be told: the process was larger before."""
        peak = peak_memory()
        if self._resident is None or self._peak is None or peak is None or peak <= self._peak:
            return None
        return peak - self._resident
