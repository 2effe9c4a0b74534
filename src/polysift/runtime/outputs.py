"""Output files: checked before the work, and there only when complete."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

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


def array_chunks(array: np.ndarray[Any, Any]) -> Iterator[memoryview]:
    """Yield the bytes of a C-ordered array, some megabytes at a time."""
    flat: Any = memoryview(array.reshape(-1).view(np.uint8))  # type: ignore[arg-type]
    for start in range(0, len(flat), CHUNK):
        yield flat[start : start + CHUNK]
