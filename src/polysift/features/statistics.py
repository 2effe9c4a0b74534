"""Exact column statistics and a quantile sketch, computed by block and merged.

Weights are multiplicities: a row of weight 2 counts as that row given twice; rows of weight zero
must have been removed. A constant factor changes the total weight alone, since all else is relative
to it; weights of any size are summed in units of a power of two, which costs no bits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from polysift.runtime.types import Block, FloatArray

MIN_SKETCH_SIZE, MAX_SKETCH_SIZE, SKETCHED_VALUES = 512, 4096, 2**20
"""Distinct values that a column's sketch keeps: the most, where a table has 256 columns or fewer;
those of more columns share the last number, but for the least.

Up to this many the quantiles are exact. Beyond, each merge moves a rank by at most half of a group,
1/8192 of the rows with the most values and 1/1024 with the least, and the tree of merges has few
levels: up to a billion rows of 256 columns, ranks move by less than 0.3 % of the rows in all.
"""

MAX_PLAIN_EXPONENT = 64
"""Weights up to two to this power, or its inverse, are summed as they are."""


@dataclass
class ColumnStatistics:
    """Count, range, mean and sum of squared deviations of each column.

    Attributes
    ----------
    weight : float
        The sum of the weights of all rows, in units of ``2**exponent``.
    present, missing : ndarray of shape (d,)
        The weight of the rows that have a value, and of those that have none, in the same units.
    low, high, mean, squares : ndarray of shape (d,)
        Minimum, maximum, mean, and the weighted sum of squared deviations from the mean, in the
        same units, of the rows that have a value; of a column without any, infinity, minus
        infinity, zero and zero.
    exponent : int
        The binary exponent of the unit.
    """

    weight: float
    present: FloatArray
    missing: FloatArray
    low: FloatArray
    high: FloatArray
    mean: FloatArray
    squares: FloatArray
    exponent: int = 0

    @property
    def deviation(self) -> FloatArray:
        """The (population) standard deviation of each column."""
        return np.sqrt(self.squares / np.where(self.present > 0, self.present, 1.0))

    @property
    def missing_share(self) -> FloatArray:
        """The share of rows without a value, by weight."""
        return self.missing / (self.weight or 1.0)

    def columns(self, which: Any) -> ColumnStatistics:
        """Return the statistics of some columns."""
        names = ("present", "missing", "low", "high", "mean", "squares")
        return replace(self, **{name: getattr(self, name)[which] for name in names})

    def merge(self, other: ColumnStatistics) -> ColumnStatistics:
        """Return the statistics of both parts together (Chan, Golub and LeVeque 1979)."""
        if other.weight == 0 or self.weight == 0:
            return other if self.weight == 0 else self
        if self.exponent != other.exponent:
            unit = max(self.exponent, other.exponent)
            return self._in_units_of(unit).merge(other._in_units_of(unit))
        present = self.present + other.present
        weight = np.where(present > 0, present, 1.0)
        step = other.mean - self.mean
        with np.errstate(over="ignore", invalid="ignore"):  # refuse_huge_values names the column
            shift = step**2 * (self.present * other.present / weight)
        return ColumnStatistics(
            self.weight + other.weight,
            present,
            self.missing + other.missing,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            # Without a value in one part the mean is that of the other, to the last bit.
            np.where(self.present > 0, self.mean + step * (other.present / weight), other.mean),
            self.squares + other.squares + shift,
            self.exponent,
        )

    def _in_units_of(self, exponent: int) -> ColumnStatistics:
        shift = self.exponent - exponent
        sums = ("present", "missing", "squares")
        scaled = {name: np.ldexp(getattr(self, name), shift) for name in sums}
        weight = float(np.ldexp(self.weight, shift))
        return replace(self, weight=weight, exponent=exponent, **scaled)


def column_statistics(block: Block, weights: FloatArray) -> ColumnStatistics:
    """Return the statistics of one block, whose weights must be positive."""
    d = block.shape[1]
    none = np.zeros(d)
    if len(weights) == 0:
        return ColumnStatistics(0.0, none, none, none, none, none, none)
    exponent = int(np.frexp(weights.max())[1])
    exponent = exponent if abs(exponent) > MAX_PLAIN_EXPONENT else 0
    weights = np.ldexp(weights, -exponent) if exponent else weights
    total = float(np.sum(weights))
    if not sp.issparse(block):
        X = np.ascontiguousarray(block, dtype=float)  # memory order must not reach the last bit
        if np.isnan(X).any():
            return _with_missing(X, weights, total, exponent)
        mean = weights @ X / total
        squares = weights @ (X - mean) ** 2
        present = np.full(d, total)
        return ColumnStatistics(total, present, none, X.min(0), X.max(0), mean, squares, exponent)
    # The zeros that are not stored count like any other value.
    columns, x = block.indices, block.data.astype(float)
    w = np.repeat(weights, np.diff(block.indptr))
    mean = np.bincount(columns, w * x, d) / total
    full = np.bincount(columns, minlength=d) == block.shape[0]
    # Rounding must not leave a full column with a bit of zeros, far away from its mean.
    unstored = np.where(full, 0.0, np.maximum(total - np.bincount(columns, w, d), 0.0))
    squares = np.bincount(columns, w * (x - mean[columns]) ** 2, d) + unstored * mean**2
    low, high = np.where(full, np.inf, 0.0), np.where(full, -np.inf, 0.0)
    np.minimum.at(low, columns, x)
    np.maximum.at(high, columns, x)
    squares, present = np.maximum(squares, 0.0), np.full(d, total)
    return ColumnStatistics(total, present, none, low, high, mean, squares, exponent)


def _with_missing(
    X: FloatArray, weights: FloatArray, total: float, exponent: int
) -> ColumnStatistics:
    """Return the statistics of dense rows with missing values."""
    missing = np.isnan(X)
    lacking = weights @ missing
    W = np.where(missing, 0.0, weights[:, np.newaxis])
    present = W.sum(axis=0)
    divisor = np.where(present > 0, present, 1.0)
    filled = np.where(missing, 0.0, X)
    mean = np.einsum("ij,ij->j", W, filled) / divisor
    squares = np.einsum("ij,ij->j", W, (filled - mean) ** 2)
    low = np.where(missing, np.inf, X).min(0)
    high = np.where(missing, -np.inf, X).max(0)
    return ColumnStatistics(total, present, lacking, low, high, mean, squares, exponent)


@dataclass
class QuantileSketch:
    """The distribution of each column: distinct values, ascending, with the weight of each."""

    values: list[FloatArray]
    weights: list[FloatArray]

    def merge(self, other: QuantileSketch) -> QuantileSketch:
        """Return the sketch of both parts together."""
        columns = zip(self.values, other.values, self.weights, other.weights, strict=True)
        size = sketch_size(len(self.values))
        merged = [_summary(np.append(a, b), np.append(v, w), size) for a, b, v, w in columns]
        return QuantileSketch([v for v, _ in merged], [w for _, w in merged])


def sketch_size(columns: int) -> int:
    """Return how many values the sketch of each column keeps."""
    return int(np.clip(SKETCHED_VALUES // max(columns, 1), MIN_SKETCH_SIZE, MAX_SKETCH_SIZE))


def quantile_sketch(block: FloatArray, weights: FloatArray) -> QuantileSketch:
    """Return the sketch of one dense block."""
    size = sketch_size(block.shape[1])
    columns = [_summary(column, weights, size) for column in np.asarray(block, dtype=float).T]
    return QuantileSketch([v for v, _ in columns], [w for _, w in columns])


def _summary(values: FloatArray, weights: FloatArray, size: int) -> tuple[FloatArray, FloatArray]:
    missing = np.isnan(values)
    if missing.any():
        values, weights = values[~missing], weights[~missing]
    if (weights == 1.0).all():  # sorting alone is several times faster
        distinct, counts = np.unique(values, return_counts=True)
        return thin(distinct, counts.astype(float), size)
    distinct, index = np.unique(values, return_inverse=True)
    return thin(distinct, np.bincount(index, weights, len(distinct)), size)


def thin(values: FloatArray, weights: FloatArray, size: int) -> tuple[FloatArray, FloatArray]:
    """Reduce a distribution to at most ``size`` values; the smallest and the largest stay.

    Values fall into ``size - 2`` groups of equal weight, and each group is carried by the value in
    its middle, so that no rank moves by more than half a group. A value heavier than that is a
    group of its own, or the middle of one.
    """
    if len(values) <= size:
        return values, weights
    inner = weights[1:-1]
    middle = np.cumsum(inner) - inner / 2
    group = np.minimum((middle / inner.sum() * (size - 2)).astype(int), size - 3)
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    total = np.add.reduceat(inner, starts)
    below = np.cumsum(total) - total
    center = np.searchsorted(np.cumsum(inner), below + total / 2, side="left")
    center = np.clip(center, starts, np.append(starts[1:], len(inner)) - 1)
    return (
        np.concatenate([values[:1], values[1:-1][center], values[-1:]]),
        np.concatenate([weights[:1], total, weights[-1:]]),
    )
