"""``TrainingSet``: a source with class numbers and weights, cut into shards."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from polysift.data.labels import Encoding
from polysift.data.source import DataSource
from polysift.runtime.parallel import Span
from polysift.runtime.types import FloatArray, IntArray

Rows = slice | IntArray
"""Some rows of the data, by a slice or by their numbers."""


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
    fold_parts : ndarray of shape (m,) or None
        The fold part of each row, 0 to n_fold_parts - 1, or -1 for a row in none. None means one
        fold part for all rows.
    n_fold_parts : int
        The number of fold parts.
    encoding : Encoding or None
        How the labels are encoded; where ``codes`` is empty, workers that hold the labels use it.
    """

    source: DataSource
    codes: IntArray
    n_classes: int
    weights: FloatArray | None = None
    fold_parts: IntArray | None = None
    n_fold_parts: int = 1
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
        """Whether rows have different weights."""
        classes_differ = self.encoding is not None and self.encoding.factors is not None
        return self.weights is not None or self.source.has_weights or classes_differ

    def total_weight(self, without: int | None = None) -> float:
        """Return the sum of the rows' weights.

        Rows of the fold part ``without`` do not count, nor rows in no fold part.
        """
        if self.fold_parts is None and self.encoding is not None:
            return self.encoding.total
        if self.fold_parts is None:
            return float(self.source.n_rows if self.weights is None else np.sum(self.weights))
        counts = self.fold_parts >= 0
        if without is not None:
            counts &= self.fold_parts != without
        return float(np.sum(counts) if self.weights is None else self.weights @ counts)

    def weights_of(self, rows: Rows) -> FloatArray | None:
        """Return the weights of rows, or None where all are one."""
        return None if self.weights is None else self.weights[rows]

    def labels_of(self, rows: Rows) -> FloatArray:
        """Return the labels of rows as +1 and -1, one-vs-rest, of shape (rows, K)."""
        codes = self.codes[rows, np.newaxis]
        positive = codes == (1 if self.n_classes == 2 else np.arange(self.n_classes))
        return np.where(positive, 1.0, -1.0)
