"""Piecewise linear functions of columns: their knots, and the slopes between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from polysift.runtime.arrays import require, required_array
from polysift.runtime.types import FloatArray, IntArray

Knots: TypeAlias = tuple[FloatArray, FloatArray]
"""The ascending arguments of a piecewise linear function, and its values there."""

FEW_ROWS = 4
"""Rows up to which ``ColumnPieces`` is faster than an interpolation of each column."""


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


@dataclass(frozen=True)
class ColumnPieces:
    """Functions of N columns, piecewise linear between the same knots, laid out for few rows.

    All columns are interpolated at once, to the bits of ``np.interp``. Piece p of a column lies
    after p of its knots; the first and the last piece are constant.

    Attributes
    ----------
    knots : ndarray of shape (N, k)
        The knots of each column, infinity beyond those that it has.
    starts : ndarray of shape (N, k + 1)
        Where each piece begins.
    slopes, values : ndarray of shape (F, N, k + 1)
        The slope of each of F functions in each piece, and its value where that begins.
    """

    knots: FloatArray
    starts: FloatArray
    slopes: FloatArray
    values: FloatArray

    @classmethod
    def of(cls, knots: FloatArray, counts: IntArray, *tables: FloatArray) -> ColumnPieces:
        """Return the functions whose values at the first ``counts`` knots are in the tables."""
        N, k = knots.shape
        used = np.arange(k) < counts[:, np.newaxis]
        starts, values = np.zeros((N, k + 1)), np.zeros((len(tables), N, k + 1))
        slopes = np.zeros_like(values)
        starts[:, 1:], starts[:, 0] = np.where(used, knots, 0.0), knots[:, 0]
        values[:, :, 1:], values[:, :, 0] = tables, np.stack(tables)[:, :, 0]
        inner = used[:, 1:]
        widths = np.where(inner, np.diff(knots), 1.0)
        slopes[:, :, 1:-1] = np.where(inner, np.diff(np.stack(tables)), 0.0) / widths
        return cls(np.where(used, knots, np.inf), starts, slopes, values)

    def __call__(self, block: FloatArray) -> FloatArray:
        """Return the functions of finite rows, (F, rows, N)."""
        piece = (self.knots <= block[:, :, np.newaxis]).sum(axis=2)
        piece += np.arange(0, self.starts.size, self.starts.shape[1])
        F = len(self.values)
        out = self.slopes.reshape(F, -1).take(piece, axis=1)
        out *= block - self.starts.take(piece)
        out += self.values.reshape(F, -1).take(piece, axis=1)
        return out
