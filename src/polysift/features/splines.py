"""The coordinates of the spline kernel: the scaled rank of each number, and its height.

With Q the ranks of a column's values over the rows, q_a the rank of a and h(a) the mean of
``max(q_a, Q)``, a column's part of the kernel is

    kappa(a, b) = scale (h(a) + h(b) - max(q_a, q_b) - mean h(Q))

the reproducing kernel of functions of the rank with a square-integrable slope that have mean zero
over the rows (for a continuous column, ``h(a) = (q_a^2 + 1) / 2``). So its mean over the rows is
zero in each argument, ties or not, and ``scale`` makes that of ``kappa(a, a)`` one. The height is
what depends on one of the values alone, ``scale (h(a) - mean h(Q) / 2)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from polysift.features.knots import (
    FEW_ROWS,
    ColumnPieces,
    Knots,
    apart,
    knot_sides,
    knot_slopes,
    validate_knots,
)
from polysift.features.level_columns import MAX_SELF_KERNEL
from polysift.features.scalers import OnnxGraph, Scaler
from polysift.features.scaling_loops import ScalingLoops
from polysift.features.statistics import ColumnStatistics, QuantileSketch, thin
from polysift.runtime.arrays import require, required_array
from polysift.runtime.types import FloatArray, IntArray

SPLINE_KNOTS = 256
"""Knots of a column: more than a thousand centers can tell apart."""


@dataclass(frozen=True)
class SplineScaler(Scaler):
    """Ranks and heights, piecewise linear between the knots of each of N columns of numbers.

    Attributes
    ----------
    values, ranks, heights : ndarray of shape (N, k)
        The knots of each column, ascending, and its scaled rank and its height there; only the
        first ``counts`` are used.
    counts : ndarray of shape (N,)
        The number of knots of each column.
    middle : ndarray of shape (N,)
        The median of each column, which stands for missing values of columns that lacked none.
    """

    kind = "spline"
    needs_sketch = True

    values: FloatArray
    ranks: FloatArray
    heights: FloatArray
    counts: IntArray
    middle: FloatArray

    @classmethod
    def learn(cls, statistics: ColumnStatistics, sketch: QuantileSketch | None) -> Self:
        """Learn from the columns, each of which has the same weight."""
        assert sketch is not None
        d = len(sketch.values)
        return cls.weighted(sketch, np.full(d, 1.0 / d))

    @classmethod
    def weighted(cls, sketch: QuantileSketch, weights: FloatArray) -> Self:
        """Learn from the distributions of the columns, whose parts have these weights."""
        columns = [
            thin(*apart(*column), SPLINE_KNOTS)
            for column in zip(sketch.values, sketch.weights, strict=True)
        ]
        counts = np.array([len(knots) for knots, _ in columns], dtype=int)
        shape = len(columns), int(counts.max(initial=1))
        values, ranks, heights = np.zeros((3, *shape))
        made = cls(values, ranks, heights, np.maximum(counts, 1), np.zeros(len(columns)))
        for j, (knots, shares) in enumerate(columns):
            if len(knots):
                made.values[j, : len(knots)] = knots
                made.middle[j] = knots[np.searchsorted(np.cumsum(shares), shares.sum() / 2)]
            if len(knots) > 1:
                own = slice(len(knots))
                made.ranks[j, own], made.heights[j, own] = _curves(shares / shares.sum())
                made.ranks[j] *= weights[j]
                made.heights[j] *= weights[j]
        return made

    def transform(self, block: FloatArray) -> FloatArray:
        """Return the scaled ranks of dense rows, (rows, N)."""
        return self._interpolated(block, self.ranks)

    def ranks_and_heights(
        self, block: FloatArray, loops: ScalingLoops | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return the scaled ranks and the heights of dense rows without NaN, (rows, N) each."""
        if loops is None and len(block) <= FEW_ROWS:
            ranks, heights = self._pieces(block)
            return ranks, heights
        if loops is None:
            return self.transform(block), self._interpolated(block, self.heights)
        ranks, heights = np.empty((2, *block.shape))
        loops.interpolate_pairs(
            block, self.values, self.ranks, self.heights, self.counts, ranks, heights
        )
        return ranks, heights

    @cached_property
    def _pieces(self) -> ColumnPieces:
        return ColumnPieces.of(self.values, self.counts, self.ranks, self.heights)

    def heights_at(self, ranks: FloatArray, k: int) -> FloatArray:
        """Return the heights of points of the k-th column that are given by their scaled ranks."""
        own = slice(self.counts[k])
        return np.interp(ranks, self.ranks[k, own], self.heights[k, own])

    def filled(self, block: FloatArray) -> FloatArray:
        """Return dense rows with the median in the place of missing values."""
        return np.where(np.isnan(block), self.middle, block)

    def _interpolated(self, block: FloatArray, table: FloatArray) -> FloatArray:
        out = np.empty(block.shape)
        for j, (knots, values) in enumerate(self._knots(table)):
            out[:, j] = np.interp(block[:, j], knots, values)
        return out

    def slope(self, block: FloatArray) -> FloatArray:
        """Return the derivatives of the scaled ranks; at a knot the mean of both sides."""
        return knot_slopes(block, self._knots(self.ranks))

    def side_slopes(self, block: FloatArray) -> FloatArray:
        """Return the derivatives of the scaled ranks from the left and the right, (2, rows, N)."""
        return knot_sides(block, self._knots(self.ranks))

    def height_slope(self, block: FloatArray) -> FloatArray:
        """Return the derivatives of the heights; at a knot the mean of both sides."""
        return knot_slopes(block, self._knots(self.heights))

    def to_onnx(self, graph: OnnxGraph, x: str) -> str:
        """Add the scaled ranks."""
        return graph.interpolate(x, self._knots(self.ranks))

    def heights_to_onnx(self, graph: OnnxGraph, x: str) -> str:
        """Add the heights."""
        return graph.interpolate(x, self._knots(self.heights))

    def validate(self, d: int) -> None:
        """Raise unless each column has knots, which ascend, and finite heights."""
        values = validate_knots(self.values, self.ranks, self.counts, d)
        required_array(vars(self), "heights", "f", values.shape)
        required_array(vars(self), "middle", "f", (d,))
        require((self.ranks >= 0.0).all(), "the ranks of scaler_ must not be negative")

    def curves(self) -> tuple[list[Knots], list[Knots]]:
        """Return the knots of each column with the scaled ranks there, and with the heights."""
        return self._knots(self.ranks), self._knots(self.heights)

    def _knots(self, table: FloatArray) -> list[Knots]:
        columns = zip(self.values, table, self.counts, strict=True)
        return [(values[:count], entries[:count]) for values, entries, count in columns]


def _curves(shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return scaled ranks and heights of a column whose distinct values have these shares."""
    q = np.cumsum(shares) - shares / 2
    q = (q - q[0]) / (q[-1] - q[0])
    above = np.cumsum((shares * q)[::-1])[::-1] - shares * q
    h = q * np.cumsum(shares) + above
    mean = shares @ h
    size = mean - shares @ q  # the mean of kappa(a, a), unscaled
    scale = min(1.0 / size, MAX_SELF_KERNEL / float(np.max(2.0 * h - q - mean)))
    return scale * q, scale * (h - mean / 2)
