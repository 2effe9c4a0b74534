"""A source of row blocks, and the errors that bad rows raise."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import scipy.sparse as sp

from polysift._parallel import Span, shard_spans
from polysift._types import Block, FloatArray, IntArray


class Source(Protocol):
    """Rows that can be read again and again, a span at a time, by several threads at once."""

    @property
    def n_rows(self) -> int:
        """The number of rows."""

    @property
    def n_features(self) -> int:
        """The number of columns."""

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """float32 or float64."""

    def read(self, span: Span) -> Block:
        """Return the rows of a span; the caller must not write to them."""

    def column(self, index: int) -> str:
        """Return how an error message calls a column."""


@dataclass(frozen=True)
class ArraySource:
    """Rows of a dense array, a memory map or a CSR matrix.

    Attributes
    ----------
    X : ndarray or CSR array of shape (m, d)
        float32 or float64, in any memory order.
    names : ndarray of shape (d,) or None
        The names of the columns.
    """

    X: Block
    names: FloatArray | None = None

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """The number of columns."""
        return int(self.X.shape[1])

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """float32 or float64."""
        return np.dtype(self.X.dtype)

    def read(self, span: Span) -> Block:
        """Return a view of the rows of a span (a copy, where they are sparse)."""
        return self.X[span[0] : span[1]]

    def column(self, index: int) -> str:
        """Return the column's name, or its number where it has none."""
        return f"column {index}" if self.names is None else f"column {str(self.names[index])!r}"


@dataclass(frozen=True)
class TrainingSet:
    """A source with its labels and weights, cut into shards.

    Attributes
    ----------
    source : Source
        The rows, m x d.
    codes : ndarray of shape (m,)
        The class of each row, 0 to n_classes - 1. Rows of weight zero may hold anything.
    n_classes : int
        The number of classes.
    weights : ndarray of shape (m,) or None
        How often each row counts; None means once.
    """

    source: Source
    codes: IntArray
    n_classes: int
    weights: FloatArray | None = None
    shards: list[Span] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "shards", shard_spans(self.source.n_rows))

    @property
    def n_columns(self) -> int:
        """The number of label columns, K: one for two classes, else one per class."""
        return 1 if self.n_classes == 2 else self.n_classes

    @property
    def total_weight(self) -> float:
        """The number of rows, each counted as often as its weight says."""
        return float(self.source.n_rows if self.weights is None else np.sum(self.weights))

    def weights_of(self, span: Span) -> FloatArray | None:
        """Return the weights of a span, or None where all are one."""
        return None if self.weights is None else self.weights[span[0] : span[1]]

    def labels_of(self, span: Span) -> FloatArray:
        """Return the labels of a span as +1 and -1, one-vs-rest, of shape (rows, K)."""
        codes = self.codes[span[0] : span[1], np.newaxis]
        positive = codes == (1 if self.n_classes == 2 else np.arange(self.n_classes))
        return np.where(positive, 1.0, -1.0)


def check_finite(source: Source, span: Span, block: Block) -> None:
    """Raise a ValueError that names row and column if ``block`` holds a NaN or an infinity."""
    values = block.data if sp.issparse(block) else block
    if np.isfinite(values).all():
        return
    if sp.issparse(block):
        entries = block.tocoo()
        bad = np.flatnonzero(~np.isfinite(entries.data))
        where, found = (entries.row[bad[0]], entries.col[bad[0]]), entries.data[bad[0]]
    else:
        where = tuple(np.argwhere(~np.isfinite(block))[0])
        found = block[where]
    what = "NaN" if np.isnan(found) else "infinity"
    raise ValueError(
        f"Input X contains {what} in {source.column(int(where[1]))}, first in row "
        f"{span[0] + int(where[0])} (counted from 0). Impute or drop such values first, for "
        "example with sklearn.impute.SimpleImputer."
    )
