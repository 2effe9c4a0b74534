"""Locks that tell whether the process that makes a file or a folder is still alive.

A lock (``flock``) ends with its process, however that ends. Locks of another machine may not be
seen on a network file system, so names of what is locked carry a mark of the machine, and each
machine judges its own alone. Where the system or the file system has no such locks, nothing counts
as abandoned.
"""

from __future__ import annotations

import hashlib
import os
import platform
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, Any

try:
    import fcntl
except ImportError:  # Windows
    HAS_LOCKS = False
else:
    HAS_LOCKS = True

LOCK_NAME = ".lock"
"""The file in a folder that the process which makes the folder holds locked."""


@cache
def machine_mark() -> str:
    """Return eight characters that stand for this machine."""
    return hashlib.blake2b(platform.node().encode(), digest_size=4).hexdigest()


def try_lock(file: IO[Any]) -> bool | None:
    """Lock an open file; returns False if another holds it, None where there are no locks."""
    if not HAS_LOCKS:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:  # such as a network file system without them
        return None
    return True


def open_unlinked(path: str, flags: int) -> int:
    """Open a file as ``open(..., opener=open_unlinked)`` does, but follow no link."""
    return os.open(path, flags & ~os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0), 0o666)


@contextmanager
def claimed(path: Path) -> Iterator[bool]:
    """Tell the body whether a file exists and no living process holds it locked."""
    try:
        if not HAS_LOCKS or not stat.S_ISREG(path.lstat().st_mode):
            yield False
            return
        file = open(path, "rb+", buffering=0, opener=open_unlinked)  # noqa: SIM115 - closed below
    except OSError:
        yield False
        return
    with file:
        # Its owner, alive, may have removed it after it was opened here, and let go of the lock.
        yield try_lock(file) is True and _is_at(path, file)


def lock_new(path: Path, file: IO[Any]) -> bool:
    """Lock a file that was just made; returns False if somebody took it for abandoned before."""
    return try_lock(file) is not False and _is_at(path, file)


def _is_at(path: Path, file: IO[Any]) -> bool:
    """Return whether an open file has this path still."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


class FolderLock:
    """A lock on a folder that this process has made: a locked file in it."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOCK_NAME
        self._file: IO[Any] | None = None
        if not HAS_LOCKS:
            return
        new = folder / f"{LOCK_NAME}.new"  # the file takes its name once it is locked
        with suppress(OSError):  # a folder without a lock is never taken for abandoned
            self._file = open(new, "xb", buffering=0)  # noqa: SIM115 - held until release()
            try_lock(self._file)
            os.rename(new, self._path)

    def release(self) -> None:
        """Remove the lock; the folder counts as finished, and is not judged any more."""
        if self._file is not None:
            with suppress(OSError):  # the folder may be gone
                self._path.unlink(missing_ok=True)
            self._file.close()
