"""Output files and folders: checked before the work, and visible only when complete.

An output is written under a hidden name beside its own, and renamed at the end.
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

CHUNK_BYTES = 2**22
"""How much is read, written or digested at once."""

PART_NAME = re.compile(r"part-\d{5,}\.parquet")
"""The names of the files in an output folder, as ``part_name`` makes them."""


class TemporaryFolder:
    """A temporary folder that is removed with this object, or at the interpreter's end."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="polysift-")) if path is None else path
        self._finalizer = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


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
def replacing(path: Path) -> Iterator[Path]:
    """Yield a path beside ``path`` to write to; it is renamed at the end, or removed on failure.

    What was written is synchronised to disk before that, so a crash leaves the old file or the new
    one.
    """
    partial = path.with_name(f".{path.name}.partial")  # after a kill, the next attempt reuses it
    try:
        yield partial
        with open(partial, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


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
    """Yield a hidden path beside ``path`` to write to, which is renamed at the end.

    Unlike ``replacing``, two writers may write the same file at once, since the hidden name is
    unique: a worker that was taken for lost, and the one that repeats its task.
    """
    partial = _hidden(path, "partial")
    try:
        yield partial
        with open(partial, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        with suppress(OSError):  # the whole folder may have been removed
            partial.unlink(missing_ok=True)


def _hidden(path: Path, what: str) -> Path:
    """Return a unique hidden path beside a path."""
    return path.with_name(f".{path.name}.{uuid4().hex[:12]}.{what}")


def _swap(new: Path, path: Path) -> None:
    """Rename a folder to the name of another one, and remove that."""
    _refuse_others(path)  # files may have been added meanwhile
    old = _hidden(path, "old")
    os.rename(path, old)
    try:
        os.rename(new, path)
    except BaseException:
        os.rename(old, path)
        raise
    _remove(old)


def _remove(folder: Path) -> None:
    """Remove a folder, if it exists, though a worker may still be writing to it."""
    gone = _hidden(folder, "gone")
    with suppress(OSError):  # under this name, no worker adds a file any more
        os.rename(folder, gone)
        folder = gone
    shutil.rmtree(folder, ignore_errors=True)
