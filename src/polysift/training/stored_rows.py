"""Rows of files that take long to read, kept as floats in a temporary file.

Words and dates are read once, in the survey; every later pass of a fit takes the floats that they
became. The file takes eight bytes per row and column, and no memory. Where it cannot be written,
the rows are read again in every pass.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

import numpy as np

from polysift.data.source import COPIED_ATTRIBUTES, DataSource
from polysift.engine.backend import Backend
from polysift.runtime.parallel import Span
from polysift.runtime.types import FloatArray


@contextmanager
def storing(source: DataSource, backend: Backend) -> Iterator[DataSource]:
    """Give a source whose rows are stored if they are those of a table in files, read here."""
    if not is_stored(source, backend):
        yield source
        return
    with tempfile.TemporaryFile(prefix="polysift-") as file:
        yield StoredRows(source, file)


def is_stored(source: DataSource, backend: Backend) -> bool:
    """Return whether a fit stores the rows of a source."""
    if isinstance(source, StoredRows) and not source.writable:
        return False
    read_here = backend.gathers and hasattr(os, "pwrite")  # which Windows lacks
    return read_here and source.unit_bytes > 0 and source.types is not None


def stored_bytes(source: DataSource) -> int:
    """Return the size of the file that holds the rows of a source."""
    return 8 * source.n_rows * source.n_features


class StoredRows(DataSource):
    """A source whose rows are read once, and then come from a temporary file.

    Parameters
    ----------
    source : DataSource
        The rows, float64.
    file : file
        Where they are stored, until it is closed.

    Attributes
    ----------
    writable : bool
        Whether the file took all that was written.
    """

    def __init__(self, source: DataSource, file: IO[bytes]) -> None:
        self._source, self._file = source, file
        self._stored: set[Span] = set()
        self.writable = True
        for name in COPIED_ATTRIBUTES:
            setattr(self, name, getattr(source, name))

    @property
    def complete(self) -> bool:
        """Whether all rows are stored."""
        return sum(stop - start for start, stop in self._stored) == self.n_rows

    def stream(self, spans: Iterable[Span]) -> Iterator[Any]:
        """Yield each span with its part, or with None if its rows are stored."""
        spans = list(spans)
        if self.complete:
            yield from ((span, None) for span in spans)
        else:
            yield from zip(spans, self._source.stream(spans), strict=True)

    def rows(self, part: Any) -> FloatArray:
        """Return the rows of a part, which are stored if they are not yet."""
        span, inner = part
        if inner is None:
            return self._load(span)
        block = np.ascontiguousarray(self._source.rows(inner), dtype=float)
        if self.writable:
            self._store(span, block)
        return block

    def replace(self, span: Span, block: FloatArray) -> bool:
        """Store other rows in the place of those of a span; returns whether they are there."""
        if self.complete and self.writable:
            self._store(span, np.ascontiguousarray(block, dtype=float))
        return self.complete and self.writable

    def _store(self, span: Span, block: FloatArray) -> None:
        try:
            at, data = self._offset(span[0]), block.data.cast("B")
            while data:
                written = os.pwrite(self._file.fileno(), data, at)
                at, data = at + written, data[written:]
        except OSError:  # such as a full disk: then rows are read again in every pass
            self.writable = False
            self._stored.clear()
            self.unit_bytes = self._source.unit_bytes
            return
        self._stored.add(span)
        if self.complete:
            self.unit_bytes = 0  # nothing is decoded any more

    def _load(self, span: Span) -> FloatArray:
        out = np.empty((span[1] - span[0], self.n_features))
        at, data = self._offset(span[0]), out.data.cast("B")
        while data:
            read = os.preadv(self._file.fileno(), [data], at)
            if not read:
                raise OSError(
                    f"The temporary file of rows in {tempfile.gettempdir()} is truncated."
                )
            at, data = at + read, data[read:]
        return out

    def _offset(self, row: int) -> int:
        return 8 * row * self.n_features

    def labels(self, part: Any) -> np.ndarray[Any, Any]:
        """Return the labels of a part."""
        return self._source.labels(self._inner(part))

    def weights(self, part: Any) -> FloatArray | None:
        """Return the weights of a part."""
        return self._source.weights(self._inner(part)) if self.has_weights else None

    def _inner(self, part: Any) -> Any:
        span, inner = part
        return next(iter(self._source.stream([span]))) if inner is None else inner

    def words(self, part: Any) -> Any:
        """Return the words of levels."""
        return self._source.words(part[1])

    def select(self, names: Sequence[str]) -> DataSource:
        """Return the source itself with the given features."""
        return self._source.select(names)

    def cut(self, spans: list[Span]) -> DataSource:
        """Return the rows of adjacent shards, not stored."""
        return self._source.cut(spans)

    def shards(self) -> list[Span]:
        """Return the shards of the rows."""
        return self._source.shards()

    def place(self, row: int) -> str:
        """Return the label of a row in messages."""
        return self._source.place(row)
