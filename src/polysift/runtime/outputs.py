"""Output files: checked before the work, and there only when complete.

Output folders: checked before the work, and there only when all their files are.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

CHUNK = 2**22
"""Bytes that are read, written or digested at once."""


class TemporaryFolder:
    """A temporary folder that is removed with this object, or at the interpreter's end."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="polysift-")) if path is None else path
        self._finalizer = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def check_output(path: Any, *, overwrite: bool, endings: Sequence[str] = ()) -> Path:
    """Return the path of a file that can be written, or raise; it may be asked to end in so."""
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
def replacing(path: Path) -> Iterator[Path]:
    """Give a path beside ``path`` to write to; it takes that name at the end, or goes on failure.

    What was written is on disk before it takes the name, so that a crash leaves the old file or the
    new one.
    """
    partial = path.with_name(f".{path.name}.partial")  # after a kill, the next attempt reuses it
    try:
        yield partial
        with open(partial, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


OWN = re.compile(r"part-\d{5,}\.parquet")


def part_name(number: int, count: int) -> str:
    """Return the name of one of ``count`` files; names sort as their numbers do."""
    return f"part-{number:0{max(5, len(str(count - 1)))}}.parquet"


def check_output_folder(path: Path, *, overwrite: bool) -> Path:
    """Return the path of a folder that can be written, or raise.

    What is replaced is gone, so a folder with anything but numbered parts in it is never replaced.
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
    others = sorted(name for name in os.listdir(folder) if not OWN.fullmatch(name))
    if others:
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        raise FileExistsError(
            f"{folder} holds more than numbered parts: {others[0]}{more}. It is not replaced; name "
            "another folder, or remove it yourself."
        )


@contextmanager
def replacing_folder(path: Path, *, overwrite: bool) -> Iterator[Path]:
    """Give a hidden folder beside ``path``, which takes that name at the end, or goes on failure.

    A folder that is there already survives until then. The hidden name is new each time: a worker
    that an earlier attempt has left behind finds its folder gone, and spoils nothing.
    """
    if path.is_symlink():
        path = Path(os.path.realpath(path))
    partial = _hidden(path, "partial")
    partial.mkdir()
    try:
        yield partial
        if overwrite and path.exists():
            _swap(partial, path)
        else:
            os.rename(partial, path)
    finally:
        _remove(partial)


@contextmanager
def placing(path: Path) -> Iterator[Path]:
    """Give a hidden path beside ``path`` to write to, which takes that name at the end.

    Unlike ``replacing``, two may do the same at once: one of them whose loss was a mistake, and
    who took its place.
    """
    partial = _hidden(path, "partial")
    try:
        yield partial
        with open(partial, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        with suppress(OSError):  # the whole folder may be gone
            partial.unlink(missing_ok=True)


def _hidden(path: Path, what: str) -> Path:
    return path.with_name(f".{path.name}.{uuid4().hex[:12]}.{what}")


def _swap(new: Path, path: Path) -> None:
    """Let a folder take the name of another, which goes."""
    _refuse_others(path)  # which may have come meanwhile
    old = _hidden(path, "old")
    os.rename(path, old)
    try:
        os.rename(new, path)
    except BaseException:
        os.rename(old, path)
        raise
    _remove(old)


def _remove(folder: Path) -> None:
    """Remove a folder, if it is there, though somebody may still be writing to it."""
    gone = _hidden(folder, "gone")
    with suppress(OSError):  # by this name, nobody makes a file there any more
        os.rename(folder, gone)
        folder = gone
    shutil.rmtree(folder, ignore_errors=True)
