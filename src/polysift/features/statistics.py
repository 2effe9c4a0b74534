"""Exact column statistics and a quantile sketch, computed by block and merged.

Weights are multiplicities: a row of weight 2 counts as that row given twice; rows of weight zero
must have been removed. A constant factor changes the total weight alone, since all else is relative
to it; weights of any size are summed in units of a power of two, which costs no bits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from polysift.runtime.types import Block, FloatArray

SKETCH_SIZE = 4096
"""Distinct values that a column's sketch keeps.

Up to this many the quantiles are exact. Beyond, each merge moves a rank by at most 1/8192 of the
rows, and the tree of merges has few levels: up to a billion rows, ranks move by less than 0.3 % of
the rows in all.
"""

MAX_PLAIN_EXPONENT = 64
"""Weights up to two to this power, or its inverse, are summed as they are."""


@dataclass
class ColumnStatistics:
    """Count, range, mean and sum of squared deviations of each column.

    Attributes
    ----------
    weight : float
        The sum of the weights, in units of ``2**exponent``.
    low, high, mean, squares : ndarray of shape (d,)
        Minimum, maximum, mean, and the weighted sum of squared deviations from the mean, in the
        same units.
    exponent : int
        The binary exponent of the unit.
    """

    weight: float
    low: FloatArray
    high: FloatArray
    mean: FloatArray
    squares: FloatArray
    exponent: int = 0

    @property
    def deviation(self) -> FloatArray:
        """The (population) standard deviation of each column."""
        return np.sqrt(self.squares / self.weight)

    def merge(self, other: ColumnStatistics) -> ColumnStatistics:
        """Return the statistics of both parts together (Chan, Golub and LeVeque 1979)."""
        if other.weight == 0 or self.weight == 0:
            return other if self.weight == 0 else self
        if self.exponent != other.exponent:
            unit = max(self.exponent, other.exponent)
            return self._in_units_of(unit).merge(other._in_units_of(unit))
        weight = self.weight + other.weight
        step = other.mean - self.mean
        return ColumnStatistics(
            weight,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            self.mean + step * (other.weight / weight),
            self.squares + other.squares + step**2 * (self.weight * other.weight / weight),
            self.exponent,
        )

    def _in_units_of(self, exponent: int) -> ColumnStatistics:
        shift = self.exponent - exponent
        weight, squares = float(np.ldexp(self.weight, shift)), np.ldexp(self.squares, shift)
        return replace(self, weight=weight, squares=squares, exponent=exponent)


def column_statistics(block: Block, weights: FloatArray) -> ColumnStatistics:
    """Return the statistics of one block, whose weights must be positive."""
    d = block.shape[1]
    if len(weights) == 0:
        low, high, mean, squares = np.zeros((4, d))
        return ColumnStatistics(0.0, low, high, mean, squares)
    exponent = int(np.frexp(weights.max())[1])
    exponent = exponent if abs(exponent) > MAX_PLAIN_EXPONENT else 0
    weights = np.ldexp(weights, -exponent) if exponent else weights
    total = float(np.sum(weights))
    if not sp.issparse(block):
        X = np.ascontiguousarray(block, dtype=float)  # memory order must not reach the last bit
        mean = weights @ X / total
        squares = weights @ (X - mean) ** 2
        return ColumnStatistics(total, X.min(0), X.max(0), mean, squares, exponent)
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
    return ColumnStatistics(total, low, high, mean, np.maximum(squares, 0.0), exponent)


@dataclass
class QuantileSketch:
    """The distribution of each column: distinct values, ascending, with the weight of each."""

    values: list[FloatArray]
    weights: list[FloatArray]

    def merge(self, other: QuantileSketch) -> QuantileSketch:
        """Return the sketch of both parts together."""
        columns = zip(self.values, other.values, self.weights, other.weights, strict=True)
        merged = [_summary(np.append(a, b), np.append(v, w)) for a, b, v, w in columns]
        return QuantileSketch([v for v, _ in merged], [w for _, w in merged])


def quantile_sketch(block: FloatArray, weights: FloatArray) -> QuantileSketch:
    """Return the sketch of one dense block."""
    columns = [_summary(column, weights) for column in np.asarray(block, dtype=float).T]
    return QuantileSketch([v for v, _ in columns], [w for _, w in columns])


def _summary(values: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    distinct, index = np.unique(values, return_inverse=True)
    return thin(distinct, np.bincount(index, weights, len(distinct)), SKETCH_SIZE)


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
