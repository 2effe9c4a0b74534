"""Scalers: monotone maps of each column, learned from statistics, kept as plain arrays.

All arithmetic is in float64, also for float32 rows: a block of scaled rows is small beside its
features, and ``x - offset`` cancels.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np

from polysift.features.statistics import NEEDS_DENSE, ColumnStatistics, QuantileSketch, thin
from polysift.runtime.types import Block, FloatArray, IntArray

SCALERS = ("minmax", "standard", "quantile", None)

SKETCHED = ("quantile",)
"""Those that ask a survey for the quantile sketch, and so for memory and for dense rows."""

MARGIN = 0.1
"""How far a min-max scaled value may lie outside [0, 1]: a polynomial explodes outside its box."""

MAX_DEVIATIONS = 4.0
"""Where standard scaling clips."""

KNOTS = 1024
"""Knots of a quantile scaler's piecewise linear map, per column."""


class Scaler(Protocol):
    """A map from raw to scaled rows."""

    def transform(self, block: FloatArray) -> FloatArray:
        """Scale dense rows; returns a new float64 array."""

    def transform_sparse(self, block: Block) -> tuple[FloatArray, Block]:
        """Scale CSR rows into ``origin`` (d,) and a CSR block whose sum is the scaled block."""

    def slope(self, block: FloatArray) -> FloatArray:
        """Return the derivative at each entry of dense rows; at a kink the mean of both sides."""

    def to_dict(self) -> dict[str, Any]:
        """Return the scaler as plain arrays; ``scaler_from_dict`` is the inverse."""


@dataclass(frozen=True)
class AffineScaler:
    """``(clip(x, low, high) - offset) * scale``, column by column; all arrays have shape (d,)."""

    offset: FloatArray
    scale: FloatArray
    low: FloatArray
    high: FloatArray

    def transform(self, block: FloatArray) -> FloatArray:
        """Scale dense rows; returns a new float64 array."""
        scaled = np.maximum(block, self.low, dtype=float)
        np.minimum(scaled, self.high, out=scaled)
        scaled -= self.offset
        scaled *= self.scale
        return scaled

    def transform_sparse(self, block: Block) -> tuple[FloatArray, Block]:
        """Scale the stored entries of CSR rows; what a zero becomes is the origin."""
        zero = np.clip(0.0, self.low, self.high)
        columns = block.indices
        scaled = np.clip(block.data, self.low[columns], self.high[columns], dtype=float)
        scaled -= zero[columns]
        scaled *= self.scale[columns]
        shifted = type(block)((scaled, columns, block.indptr), shape=block.shape)
        return (zero - self.offset) * self.scale, shifted

    def slope(self, block: FloatArray) -> FloatArray:
        """Return the derivative: the scale between the bounds, none beyond, half of it on them."""
        to_the_right = (block >= self.low) & (block < self.high)
        to_the_left = (block > self.low) & (block <= self.high)
        return self.scale * (0.5 * to_the_left + 0.5 * to_the_right)

    def to_dict(self) -> dict[str, Any]:
        """Return the scaler as plain arrays."""
        return {"kind": "affine", **asdict(self)}


@dataclass(frozen=True)
class QuantileScaler:
    """``(2 q(x) - 1) / sqrt(d)``, with q piecewise linear between the knots of each column.

    Attributes
    ----------
    values, levels : ndarray of shape (d, KNOTS)
        The knots of each column, ascending, and q there; only the first ``counts`` are used.
    counts : ndarray of shape (d,)
        How many knots each column has.
    """

    values: FloatArray
    levels: FloatArray
    counts: IntArray

    def transform(self, block: FloatArray) -> FloatArray:
        """Scale dense rows; returns a new float64 array."""
        scaled = np.empty(block.shape)
        for j, count in enumerate(self.counts):
            scaled[:, j] = np.interp(block[:, j], self.values[j, :count], self.levels[j, :count])
        scaled *= 2.0
        scaled -= 1.0
        scaled /= np.sqrt(block.shape[1])
        return scaled

    def transform_sparse(self, block: Block) -> tuple[FloatArray, Block]:
        """Refuse."""
        raise ValueError(NEEDS_DENSE)

    def slope(self, block: FloatArray) -> FloatArray:
        """Return the derivative: that of the piece, none beyond the knots, at a knot the mean."""
        out = np.empty(block.shape)
        for j, count in enumerate(self.counts):
            knots = self.values[j, :count]
            pieces = np.diff(self.levels[j, :count]) / np.diff(knots)
            pieces = np.concatenate([[0.0], pieces, [0.0]])
            sides = (np.searchsorted(knots, block[:, j], side) for side in ("left", "right"))
            out[:, j] = sum(pieces[at] for at in sides)
        return out / np.sqrt(block.shape[1])  # 2 q, and the mean of two

    def to_dict(self) -> dict[str, Any]:
        """Return the scaler as plain arrays."""
        return {"kind": "quantile", **asdict(self)}


def identity_scaler(d: int) -> AffineScaler:
    """Return the scaler that leaves rows as they are."""
    everywhere = np.full(d, np.inf)
    return AffineScaler(np.zeros(d), np.ones(d), -everywhere, everywhere)


def scaler_from_dict(fields: dict[str, Any]) -> Scaler:
    """Rebuild a scaler from ``to_dict``."""
    kinds = {"affine": AffineScaler, "quantile": QuantileScaler}
    arguments = {name: value for name, value in fields.items() if name != "kind"}
    scaler: Scaler = kinds[fields["kind"]](**arguments)
    return scaler


def needs_sketch(*kinds: str | None) -> bool:
    """Return whether a scaler of one of these kinds needs the quantile sketch."""
    return any(kind in SKETCHED for kind in kinds)


def learn_scaler(
    kind: str | None, statistics: ColumnStatistics, sketch: QuantileSketch | None
) -> Scaler:
    """Learn a scaler of the given kind; "quantile" needs the sketch."""
    d = len(statistics.low)
    low, high = statistics.low, statistics.high
    if kind is None:
        return identity_scaler(d)
    if kind == "minmax":
        width = high - low
        return AffineScaler(low, _inverse(width), low - MARGIN * width, high + MARGIN * width)
    if kind == "standard":
        mean = statistics.mean
        # Rounding leaves a constant column with a tiny deviation: its range tells it apart.
        deviation = np.where(high > low, statistics.deviation, 0.0)
        reach = MAX_DEVIATIONS * deviation
        return AffineScaler(mean, _inverse(deviation) / np.sqrt(d), mean - reach, mean + reach)
    assert sketch is not None
    return _quantile_scaler(sketch)


def _inverse(width: FloatArray) -> FloatArray:
    """Return 1 / width, and 0 where a column is constant (or its inverse overflows)."""
    usable = width > np.finfo(float).tiny
    return np.where(usable, 1.0 / np.where(usable, width, 1.0), 0.0)


def _quantile_scaler(sketch: QuantileSketch) -> QuantileScaler:
    d = len(sketch.values)
    values, levels = np.zeros((d, KNOTS)), np.full((d, KNOTS), 0.5)
    counts = np.empty(d, dtype=int)
    for j, column in enumerate(zip(sketch.values, sketch.weights, strict=True)):
        knots, weights = thin(*column, KNOTS)
        counts[j] = len(knots)
        values[j, : counts[j]] = knots
        if counts[j] > 1:
            # The middle rank of each value, so that ties are treated alike from both sides,
            # stretched so that the smallest value has q = 0 and the largest q = 1.
            rank = np.cumsum(weights) - weights / 2
            levels[j, : counts[j]] = (rank - rank[0]) / (rank[-1] - rank[0])
    return QuantileScaler(values, levels, counts)
