"""Arrays as a source, and a training set: a source with its labels and weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from polysift.data.labels import Encoding
from polysift.data.source import DataSource, find_name
from polysift.runtime.parallel import Span
from polysift.runtime.types import Block, FloatArray, IntArray

Rows = slice | IntArray
"""Some rows of the data, by a slice or by their numbers."""


class ArraySource(DataSource):
    """Rows of a dense array, a memory map or a CSR matrix.

    Parameters
    ----------
    X : ndarray or CSR array of shape (m, d)
        Numbers, in any memory order; what is not float32 becomes float64, a block at a time.
    names : sequence of str, optional
        The names of the columns.
    y : ndarray of shape (m,), optional
        The labels.
    sample_weight : ndarray of shape (m,), optional
        The weights.
    take : ndarray of int, optional
        The columns that are the features; all by default.
    owner : object, optional
        Kept alive as long as this source, such as a temporary folder.
    disk : int, default=0
        Bytes in that folder.
    file : str, optional
        Where the rows come from, for messages.
    """

    def __init__(
        self,
        X: Block,
        names: Sequence[str] | None = None,
        y: Any = None,
        sample_weight: FloatArray | None = None,
        *,
        take: IntArray | None = None,
        owner: object = None,
        disk: int = 0,
        file: str | None = None,
    ) -> None:
        self.n_rows = int(X.shape[0])
        self.n_features = int(X.shape[1]) if take is None else len(take)
        self.dtype = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
        self.names = None if names is None else tuple(map(str, names))
        self.has_labels, self.has_weights = y is not None, sample_weight is not None
        self.disk, self.origin, self.sparse = disk, file, bool(sp.issparse(X))
        self.target = "y" if file is None else f"the target of {file}"
        self._X, self._y, self._weights, self._take, self._owner = X, y, sample_weight, take, owner

    def stream(self, spans: Iterable[Span]) -> Iterator[Span]:
        """Yield the spans themselves: an array needs no reading."""
        yield from spans

    def rows(self, part: Span) -> Block:
        """Return a view of the rows of a span, or a copy where they must be converted."""
        block = self._X[part[0] : part[1]]
        if self._take is not None:
            block = block[:, self._take]
        return block if block.dtype == self.dtype else block.astype(self.dtype)

    def labels(self, part: Span) -> np.ndarray[Any, Any]:
        """Return the labels of a span."""
        return np.asarray(self._y[part[0] : part[1]])

    def weights(self, part: Span) -> FloatArray | None:
        """Return the weights of a span."""
        return None if self._weights is None else self._weights[part[0] : part[1]]

    def cut(self, spans: list[Span]) -> DataSource:
        """Return the rows of neighbouring shards as a source of its own."""
        rows = slice(spans[0][0], spans[-1][1])
        piece = ArraySource(
            self._X[rows] if sp.issparse(self._X) else np.asarray(self._X[rows]),
            self.names,
            None if self._y is None else np.asarray(self._y[rows]),
            None if self._weights is None else np.asarray(self._weights[rows]),
            take=self._take,
            file=self.origin,
        )
        piece._take_place(spans, self)
        return piece

    def widen(self, n_features: int) -> DataSource:
        """Return sparse rows with more columns, all zero: a file may lack its last features."""
        if not sp.issparse(self._X) or self.names is not None or n_features <= self.n_features:
            return self
        wide = type(self._X)((self.n_rows, n_features), dtype=self._X.dtype)
        wide.data, wide.indices, wide.indptr = self._X.data, self._X.indices, self._X.indptr
        return ArraySource(
            wide,
            None,
            self._y,
            self._weights,
            owner=self._owner,
            disk=self.disk,
            file=self.origin,
        )

    def select(self, names: Sequence[str]) -> DataSource:
        """Return this source with the given features, in that order."""
        if self.names is None or tuple(names) == self.names:
            return self
        places = [find_name(name, self.names, "the data") for name in names]
        take = np.array(places) if self._take is None else self._take[places]
        return ArraySource(
            self._X,
            names,
            self._y,
            self._weights,
            take=take,
            owner=self._owner,
            disk=self.disk,
            file=self.origin,
        )

    def place(self, row: int) -> str:
        """Return how a message calls a row."""
        return super().place(row) + (f" of {self.origin}" if self.origin else "")


@dataclass(frozen=True)
class TrainingSet:
    """A source with its labels and weights, cut into shards.

    Attributes
    ----------
    source : DataSource
        The rows, m x d.
    codes : ndarray of shape (m,)
        The class of each row, 0 to n_classes - 1. Rows of weight zero may hold anything.
    n_classes : int
        The number of classes.
    weights : ndarray of shape (m,) or None
        How often each row counts; None means once.
    cells : ndarray of shape (m,) or None
        A partition of the rows, such as folds: the cell of each, 0 to n_cells - 1, or -1 for a row
        that takes no part. None means one cell for all.
    n_cells : int
        The number of cells.
    encoding : Encoding or None
        How its labels were encoded; where ``codes`` is empty, how they shall be where they are.
    """

    source: DataSource
    codes: IntArray
    n_classes: int
    weights: FloatArray | None = None
    cells: IntArray | None = None
    n_cells: int = 1
    encoding: Encoding | None = None
    shards: list[Span] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "shards", self.source.shards())

    @property
    def n_columns(self) -> int:
        """The number of label columns, K: one for two classes, else one per class."""
        return 1 if self.n_classes == 2 else self.n_classes

    @property
    def weighted(self) -> bool:
        """Whether rows count differently."""
        classes_differ = self.encoding is not None and self.encoding.factors is not None
        return self.weights is not None or self.source.has_weights or classes_differ

    def total_weight(self, without: int | None = None) -> float:
        """Return the number of rows, each counted as often as its weight says.

        Those of the cell ``without`` do not count, nor those in no cell.
        """
        if self.cells is None and self.encoding is not None:
            return self.encoding.total
        if self.cells is None:
            return float(self.source.n_rows if self.weights is None else np.sum(self.weights))
        counts = self.cells >= 0
        if without is not None:
            counts &= self.cells != without
        return float(np.sum(counts) if self.weights is None else self.weights @ counts)

    def weights_of(self, rows: Rows) -> FloatArray | None:
        """Return the weights of rows, or None where all are one."""
        return None if self.weights is None else self.weights[rows]

    def labels_of(self, rows: Rows) -> FloatArray:
        """Return the labels of rows as +1 and -1, one-vs-rest, of shape (rows, K)."""
        codes = self.codes[rows, np.newaxis]
        positive = codes == (1 if self.n_classes == 2 else np.arange(self.n_classes))
        return np.where(positive, 1.0, -1.0)
