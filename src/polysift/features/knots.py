"""Piecewise linear functions of columns: their knots, and the slopes between them."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from polysift.runtime.arrays import require, required_array
from polysift.runtime.types import FloatArray

Knots: TypeAlias = tuple[FloatArray, FloatArray]
"""The ascending arguments of a piecewise linear function, and its values there."""


def apart(values: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return a distribution whose values are so far apart that slopes between them are finite."""
    gaps = np.diff(values) > np.finfo(float).tiny
    if gaps.all():
        return values, weights
    starts = np.flatnonzero(np.append(True, gaps))
    return values[starts], np.add.reduceat(weights, starts)


def knot_slopes(block: FloatArray, columns: list[Knots]) -> FloatArray:
    """Return the slopes of piecewise linear functions of columns, zero beyond their knots.

    At a knot it is the mean of both sides.
    """
    left, right = knot_sides(block, columns)
    return np.asarray((left + right) / 2.0)


def knot_sides(block: FloatArray, columns: list[Knots]) -> FloatArray:
    """Return the slopes to the left and to the right of each entry, (2, rows, columns)."""
    out = np.empty((2, *block.shape))
    for j, (knots, values) in enumerate(columns):
        pieces = np.concatenate([[0.0], np.diff(values) / np.diff(knots), [0.0]])
        out[0, :, j] = pieces[np.searchsorted(knots, block[:, j], "left")]
        out[1, :, j] = pieces[np.searchsorted(knots, block[:, j], "right")]
    return out


def validate_knots(values: Any, levels: Any, counts: Any, d: int) -> FloatArray:
    """Return the knots of d columns; raise an ``InvalidFieldError`` unless they ascend."""
    fields = {"values": values, "levels": levels, "counts": counts}
    values = required_array(fields, "values", "f", (d, None))
    levels = required_array(fields, "levels", "f", values.shape)
    counts = required_array(fields, "counts", "i", (d,))
    width = values.shape[1]
    within = (counts >= 1) & (counts <= width)
    require(within.all(), "the counts of scaler_ must be within bounds")
    used = np.arange(1, width) < counts[:, np.newaxis]
    ascending = (values[:, 1:] > values[:, :-1]) & (levels[:, 1:] >= levels[:, :-1])
    require((ascending | ~used).all(), "the knots of scaler_ must ascend")
    return values
