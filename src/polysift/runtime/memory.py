"""The resident memory of this process: its peak, and its growth during a piece of work."""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from pathlib import Path

STATUS_FILE = "/proc/self/status"
"""Where Linux reports the memory of a process."""


def peak_memory() -> int | None:
    """Return the peak resident size of this process in bytes, or None where it is not known."""
    return _peak(_status())


def _peak(status: bytes) -> int | None:
    peak = _field("VmHWM", status)  # getrusage includes the parent's peak before the exec
    if peak is not None:
        return peak
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _status() -> bytes:
    """Return the status of this process as Linux reports it, or nothing."""
    try:
        with open(STATUS_FILE, "rb", buffering=0) as file:
            return file.read()
    except OSError:
        return b""


def _field(name: str, status: bytes) -> int | None:
    """Return a size in bytes."""
    found = re.search(rf"{name}:\s+(\d+) kB".encode(), status)
    return None if found is None else int(found[1]) * 1024


def forget_peak() -> None:
    """Reset the peak to the present size, where the system can (Linux)."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


class MemoryMeter:
    """Measures the peak growth of the process since the meter was made."""

    def __init__(self) -> None:
        status = _status()
        self._resident, self._peak = _field("VmRSS", status), _peak(status)

    def growth(self) -> int | None:
        """Return bytes, or None where they are not known: the process was larger before."""
        peak = peak_memory()
        if self._resident is None or self._peak is None or peak is None or peak <= self._peak:
            return None
        return peak - self._resident
