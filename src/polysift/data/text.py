"""What parsers of text share: opening files, gathering labels, and what they return.

Text is parsed once, in one streaming pass, into memory maps in a temporary folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from polysift.data.formats import packing_of
from polysift.data.kinds import PLAIN_NUMBER, ColumnType, Words
from polysift.data.packing import DAMAGE
from polysift.data.source import ArraySource, DataSource
from polysift.runtime.failures import naming
from polysift.runtime.outputs import TemporaryFolder
from polysift.runtime.types import Block, FloatArray

MAX_PADDED_CHARACTERS = 16
"""Labels of up to so many characters become an array of text, which pads each to the longest one:
it sorts fast, but long labels would fill the memory."""


@dataclass(frozen=True)
class ParsedText:
    """The content of a text file.

    Attributes
    ----------
    X : memmap or csr_array of shape (m, d)
        The features, float64 and read-only, on files in ``owner``.
    names : tuple of str, or None
        The names of the features, where the file has them.
    labels : ndarray of shape (m,), or None
        The labels: bool, int, float or text.
    weights : ndarray of shape (m,), or None
        The weights, float64.
    owner : TemporaryFolder
        The temporary folder, which is removed when this and ``source`` are no longer used.
    types : tuple of ColumnType, or None
        What the features hold; None for numbers.
    words : mapping of int to words
        The words of the levels of categories.
    notes : tuple of str
        Sentences on how columns were read.
    files : tuple of (str, int)
        The names of the files, and the numbers of their rows.
    n_bytes : int
        Bytes on disk in that folder.
    """

    X: Block
    names: tuple[str, ...] | None
    labels: np.ndarray[Any, Any] | None
    weights: FloatArray | None
    owner: TemporaryFolder
    types: tuple[ColumnType, ...] | None = None
    words: Mapping[int, Words] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    files: tuple[tuple[str, int], ...] = ()
    n_bytes: int = field(init=False)

    def __post_init__(self) -> None:
        size = sum(file.stat().st_size for file in self.folder.iterdir())
        object.__setattr__(self, "n_bytes", size)

    @property
    def folder(self) -> Path:
        """The path of the temporary folder."""
        return self.owner.path

    def source(self, origin: str) -> DataSource:
        """Return the content of a file, ``origin``, as a source; the folder is removed with it."""
        plain = all(column == PLAIN_NUMBER for column in self.types or ())
        return ArraySource(
            self.X,
            self.names,
            self.labels,
            self.weights,
            owner=self.owner,
            disk=self.n_bytes,
            file=origin,
            types=None if plain else self.types,
            words=self.words,
            notes=self.notes,
            files=self.files,
        )


@contextmanager
def temporary_folder() -> Iterator[TemporaryFolder]:
    """Make a temporary folder; it is removed if the body of the ``with`` statement fails."""
    folder = TemporaryFolder()
    try:
        yield folder
    except BaseException as error:
        folder.remove()
        if type(error) is OSError and error.filename is None:  # not of the file that is read
            raise OSError(
                error.errno,
                f"Temporary files could not be written to {folder.path.parent}: {error}. Free "
                "space there, or set TMPDIR to another folder.",
            ) from error
        raise


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Raise errors that name the file, where it is missing, not text, or truncated."""
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {str(path)!r}. Check the path.")
    try:
        with naming(path):
            yield
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text ({error}). Save it as UTF-8 first.") from error
    except DAMAGE as error:
        # An error of the operating system, such as a full disk, has a number.
        if packing_of(path.name) is None or getattr(error, "errno", None) is not None:
            raise
        message = f"{path} is corrupt or truncated: {error}. Fetch it or compress it again."
        raise ValueError(message) from error


@dataclass
class TextLabels:
    """Labels gathered batch by batch; of text, each distinct label is stored once."""

    parts: list[np.ndarray[Any, Any]] = field(default_factory=list)
    codes: dict[str, int] = field(default_factory=dict)

    def add(self, values: np.ndarray[Any, Any], words: Sequence[str] | None = None) -> None:
        """Append labels; where ``words`` are given, ``values`` are positions among them."""
        if words is not None:
            known = [self.codes.setdefault(word, len(self.codes)) for word in words]
            values = np.array(known, dtype=np.int32)[values]
        self.parts.append(values)

    def finish(self) -> np.ndarray[Any, Any]:
        """Return all labels."""
        whole = np.concatenate(self.parts)
        if not self.codes:
            return whole
        kind = str if max(map(len, self.codes)) <= MAX_PADDED_CHARACTERS else object
        return np.array(list(self.codes), dtype=kind)[whole]
