"""Output files and folders: checked before the work, and visible only when complete.

An output is written under a hidden name beside its own, which no other writer has, and renamed at
the end. While a process writes it, it holds a lock (``runtime.locks``); what a killed one has left
is removed when the same output is written again.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import re
import shutil
import stat
import sys
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, Any, BinaryIO, cast
from uuid import uuid4

from polysift.runtime.failures import naming
from polysift.runtime.locks import (
    HAS_LOCKS,
    LOCK_NAME,
    FolderLock,
    claimed,
    lock_new,
    machine_mark,
)

CHUNK_BYTES = 2**22
"""How much is read, written or digested at once."""

PART_NAME = re.compile(r"part-\d{5,}\.parquet")
"""The names of the files in an output folder, as ``part_name`` makes them."""

MAX_NAME_BYTES = 200
"""A longer name is hidden under its digest: file systems take 255 bytes."""

SWAP_ATTEMPTS = 100
"""How often a folder is put in place while other processes do the same."""

TAKEN = (errno.ENOTEMPTY, errno.EEXIST)
"""The errors of renaming a folder where there is another one."""


class TemporaryFolder:
    """A temporary folder that is removed with this object, or at the interpreter's end.

    Those of killed processes are removed when the next one is made.

    Parameters
    ----------
    parent : Path, optional
        Where it is made; by default in the system's folder for temporary files.
    prefix : str, default="polysift-"
        How its name begins.
    """

    def __init__(self, parent: Path | None = None, prefix: str = "polysift-") -> None:
        marked, parent = f"{prefix}{machine_mark()}-", parent or Path(tempfile.gettempdir())
        _clear_temporary(parent, marked)
        self.path = Path(tempfile.mkdtemp(prefix=marked, dir=parent))
        # The lock is no attribute: sources that hold this object are pickled.
        self._finalizer = weakref.finalize(self, _discard, self.path, FolderLock(self.path))

    def remove(self) -> None:
        """Remove the folder now."""
        self._finalizer()


def _discard(folder: Path, lock: FolderLock) -> None:
    lock.release()
    shutil.rmtree(folder, ignore_errors=True)


def _clear_temporary(parent: Path, marked: str) -> None:
    """Remove the temporary folders of this user whose processes are dead."""
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(marked):
                _remove_abandoned(Path(entry.path))


def _remove_abandoned(folder: Path) -> None:
    """Remove a folder that a dead process of this user has left; a link is left alone."""
    with suppress(OSError):
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != getattr(os, "getuid", int)():
            return
        with claimed(folder / LOCK_NAME) as free:
            pass  # network file systems remove no folder with an open file
        if free:
            shutil.rmtree(folder, ignore_errors=True)


def check_output(path: Any, *, overwrite: bool, endings: Sequence[str] = ()) -> Path:
    """Return the path of a file that can be written, or raise.

    Where ``endings`` are given, such as ".html", the name must have one of them.
    """
    output = Path(path)
    if endings and output.suffix.lower() not in endings:
        raise ValueError(f"path must end in {' or '.join(endings)}; got {str(path)!r}.")
    if not output.parent.is_dir():
        raise FileNotFoundError(f"The folder {output.parent} does not exist; create it first.")
    if output.is_dir():
        raise IsADirectoryError(f"{output} is a folder; name a file.")
    if output.exists() and not output.is_file():  # replacing it would remove it
        raise ValueError(f"{output} is a device or a pipe; name a file.")
    if output.exists() and not overwrite:
        raise FileExistsError(f"{output} exists already; pass overwrite=True to replace it.")
    return output


@contextmanager
def replacing(path: Path, *, part: bool = False) -> Iterator[BinaryIO]:
    """Yield a hidden file beside ``path``, open for writing and reading; it is renamed at the end.

    On failure it is removed. Its name is unique and it is created exclusively, so any number of
    processes may write the same output, whose name always leads to the whole file of one of them.
    File and folder are synchronised to disk, so a crash leaves the old file or the new one.

    A ``part`` belongs to an output folder, which is cleared and synchronised as a whole.
    """
    if not part:
        clear_abandoned(path)
    partial, owner = _create(path)
    with (
        naming(path),
        owner,
    ):  # which keeps the lock, though a library may close the file that it is given
        try:
            with _closing(os.dup(owner.fileno())) as file:
                yield file
            os.fsync(owner.fileno())
            if not HAS_LOCKS:  # Windows renames no open file
                owner.close()
            os.replace(partial, path)
        finally:
            with suppress(OSError):  # the whole folder may have been removed
                partial.unlink(missing_ok=True)
    if not part:
        _sync_folder(path.parent)


def _create(path: Path) -> tuple[Path, IO[bytes]]:
    """Create a hidden file beside a path, and lock it."""
    while True:
        partial = _hidden(path, "partial")
        owner = open(partial, "x+b", buffering=0)  # noqa: SIM115 - the caller closes it
        if lock_new(partial, owner):
            return partial, owner
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        owner.close()


@contextmanager
def _closing(descriptor: int) -> Iterator[BinaryIO]:
    """Yield a file; if the body fails, an error of closing it does not hide that."""
    file = cast(BinaryIO, os.fdopen(descriptor, "w+b"))
    try:
        yield file
        file.close()
    finally:
        with suppress(OSError):
            file.close()


def _sync_folder(folder: Path) -> None:
    """Write the names in a folder to disk, where the system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _hidden(path: Path, what: str) -> Path:
    """Return a unique hidden path beside a path."""
    return path.with_name(f".{_stem(path)}.{machine_mark()}.{uuid4().hex[:12]}.{what}")


def _stem(path: Path) -> str:
    name = os.fsencode(path.name)
    if len(name) <= MAX_NAME_BYTES:
        return path.name
    return hashlib.blake2b(name, digest_size=16).hexdigest()


def clear_abandoned(path: Path) -> None:
    """Remove what killed processes of this machine have left of an output."""
    name = re.compile(
        rf"\.{re.escape(_stem(path))}\.{machine_mark()}\.[0-9a-f]{{12}}\.(partial|old|gone)"
    )
    with suppress(OSError), os.scandir(path.parent) as entries:
        for entry in entries:
            if found := name.fullmatch(entry.name):
                with suppress(OSError):
                    _clear(path, Path(entry.path), found[1])


def _clear(path: Path, left: Path, what: str) -> None:
    """Remove a hidden file or folder, if no living process needs it; a link is left alone."""
    if what == "partial":
        with claimed(left) as free:
            if free:
                left.unlink(missing_ok=True)
        _remove_abandoned(left)
    elif what == "gone" or path.exists():  # else "old" is the only one there is
        shutil.rmtree(left, ignore_errors=True)  # which follows no link


def part_name(number: int, count: int) -> str:
    """Return the name of one of ``count`` files; names sort as their numbers do."""
    return f"part-{number:0{max(5, len(str(count - 1)))}}.parquet"


def check_output_folder(path: Path, *, overwrite: bool) -> Path:
    """Return the path of a folder that can be written, or raise.

    A folder with anything but numbered parts in it is never replaced: its files would be lost.
    """
    if path.name in ("", ".."):
        raise ValueError(f"{path} names no folder of its own; name one that can be made.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"The folder {path.parent} does not exist; create it first.")
    if not path.exists():
        return path
    if not path.is_dir():
        raise FileExistsError(f"{path} is a file; name a folder, or one that does not exist yet.")
    if not overwrite:
        raise FileExistsError(f"{path} exists already; pass overwrite=True to replace it.")
    _refuse_others(path)
    return path


def _refuse_others(folder: Path) -> None:
    """Raise if a folder holds anything but numbered parts."""
    others = sorted(name for name in os.listdir(folder) if not PART_NAME.fullmatch(name))
    if others:
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        raise FileExistsError(
            f"{folder} holds more than numbered parts: {others[0]}{more}. It is not replaced; name "
            "another folder, or remove it yourself."
        )


@contextmanager
def replacing_folder(path: Path, *, overwrite: bool) -> Iterator[Path]:
    """Yield a hidden folder beside ``path``; it is renamed at the end, or removed on failure.

    A folder that exists already stays until then. The hidden name is unique: a worker that an
    earlier attempt left behind does not find its folder, and cannot write into this one.
    """
    if path.is_symlink():
        path = Path(os.path.realpath(path))
    clear_abandoned(path)
    partial = _hidden(path, "partial")
    partial.mkdir()
    lock = FolderLock(partial)
    try:
        yield partial
        lock.release()
        _sync_folder(partial)
        if overwrite:
            with suppress(FileNotFoundError):
                _refuse_others(path)  # files may have been added meanwhile
            _swap(partial, path)
        else:
            os.rename(partial, path)
    finally:
        lock.release()
        _remove(partial)
    _sync_folder(path.parent)


def _swap(new: Path, path: Path) -> None:
    """Put a folder in the place of another one, which is removed; others may do so, too."""
    for _ in range(SWAP_ATTEMPTS):
        if _exchanged(new, path):
            return  # the caller removes what has the hidden name now
        old = _hidden(path, "old")
        with suppress(FileNotFoundError):
            os.rename(path, old)
        try:
            os.rename(new, path)
        except BaseException as error:
            if not isinstance(error, OSError) or error.errno not in TAKEN:
                with suppress(FileNotFoundError):
                    os.rename(old, path)
                raise
            _remove(old)  # another process has put its own folder there
        else:
            _remove(old)
            return
    raise OSError(f"{path} is replaced by other processes all the time; try again later.")


@cache
def _exchange_function() -> Any:
    """Return the C function that exchanges two names at once and how to call it, or None."""
    name, here, exchange = ("renameat2", -100, 2) if sys.platform == "linux" else ("", 0, 0)
    if sys.platform == "darwin":
        name, here, exchange = "renameatx_np", -2, 2
    try:
        function = getattr(ctypes.CDLL(None, use_errno=True), name)
    except (OSError, AttributeError, TypeError):
        return None
    function.argtypes = [
        ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint
    ]  # fmt: skip
    return lambda a, b: function(here, a, here, b, exchange)


def _exchanged(one: Path, other: Path) -> bool:
    """Exchange two folders, so that a reader finds one of them at any time, where that can be."""
    exchange = _exchange_function()
    return exchange is not None and exchange(os.fsencode(one), os.fsencode(other)) == 0


def _remove(folder: Path) -> None:
    """Remove a folder, if it exists, though a worker may still be writing to it."""
    gone = folder.with_suffix(".gone")  # its other names are hidden ones, too
    with suppress(OSError):  # under this name, no worker adds a file any more
        os.rename(folder, gone)
        folder = gone
    shutil.rmtree(folder, ignore_errors=True)
