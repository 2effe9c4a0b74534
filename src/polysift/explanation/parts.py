"""The base of the kernel as a sum over columns: ``base(z, c_j) = 1 + sum_i part_i(z, c_j)``.

All that an explanation asks of a kernel is the part of a column, and its derivative. ``Products``
are the parts of the polynomial kernel, ``z.c_j`` over the coordinates of a column; ``Splines`` are
those of the spline kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from polysift.features.parts import spline_part
from polysift.features.scalers import Scaler
from polysift.features.tables import TableScaler
from polysift.runtime.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Baseline:
    """What rows are compared with: a row, or the mean of the parts of several rows.

    Attributes
    ----------
    alone : ndarray of shape (A,)
        The coordinates ``Products.alone``.
    parts : dict of int to ndarray of shape (n,)
        The parts of the other columns.
    base : ndarray of shape (n,)
        The base.
    """

    alone: FloatArray
    parts: dict[int, FloatArray]
    base: FloatArray


@dataclass(frozen=True, eq=False)
class Products:
    """The parts of the polynomial kernel.

    Attributes
    ----------
    scaler : Scaler
        The map from rows to coordinates.
    centers : ndarray of shape (n, D)
        The centers c.
    owners : ndarray of int of shape (D,)
        The column of each coordinate.
    n_columns : int
        The number of columns of the rows, d.
    used : ndarray of int or None
        Where no column has several coordinates, but some have none: the columns of the scaler's
        coordinates. Then D is d, and the coordinates of the other columns are zero.
    """

    scaler: Scaler
    centers: FloatArray
    owners: IntArray
    n_columns: int
    used: IntArray | None = None

    @property
    def has_several(self) -> bool:
        """Whether a column has several coordinates."""
        return len(np.unique(self.owners)) < len(self.owners)

    @cached_property
    def alone(self) -> IntArray:
        """The coordinates that are all of their column: its part is a product of two numbers."""
        counts = np.bincount(self.owners, minlength=self.n_columns)
        return np.flatnonzero(counts[self.owners] == 1)

    @cached_property
    def others(self) -> list[int]:
        """The columns that have other parts."""
        found = np.setdiff1d(self.owners, self.owners[self.alone])
        return [int(column) for column in found]

    def part(self, column: int, Z: FloatArray) -> FloatArray:
        """Return a column's part of coordinates (rows, D) and each center, (rows, n)."""
        own = np.flatnonzero(self.owners == column)
        return np.asarray(Z[:, own] @ self.centers[:, own].T)

    def base(self, Z: FloatArray) -> FloatArray:
        """Return the base of coordinates (rows, D) and each center, (rows, n)."""
        kernel, n = self.scaler.kernel, len(self.centers)
        out, scratch = np.empty((2, len(Z), n))
        rows = np.concatenate([Z, np.ones((len(Z), 1))], axis=1)
        kernel.base(rows, kernel.parted(kernel.facing(self.centers)), out, scratch)
        return out

    def baseline(self, Z: FloatArray, weights: FloatArray) -> Baseline:
        """Return the mean of the parts of rows, whose weights sum to 1."""
        parts = {column: weights @ self.part(column, Z) for column in self.others}
        return Baseline(weights @ Z[:, self.alone], parts, weights @ self.base(Z))

    def gradients(self, block: FloatArray, Z: FloatArray, W: FloatArray) -> FloatArray:
        """Return the gradients of ``sum_j W_ij base(z_i, c_j)`` by the columns, (rows, d).

        ``block`` are dense rows, ``Z`` their coordinates, ``W`` is (rows, n).
        """
        values = (W @ self.centers) * self.spread(self.scaler.slope(block))
        if not self.has_several:
            return np.asarray(values)
        out = np.zeros((len(block), self.n_columns))
        for coordinate, column in enumerate(self.owners):
            out[:, column] += values[:, coordinate]
        return out

    def spread(self, Z: FloatArray) -> FloatArray:
        """Return coordinates of the scaler at the places of their columns, where some have none."""
        return Z if self.used is None else placed(Z, self.used, self.n_columns)


class Splines(Products):
    """The parts of the spline kernel: products, and splines of the ranks of numbers.

    ``owners`` are those of ``TableScaler.owners``, whose first coordinates are ranks. What follows
    in a row belongs to several columns, and is computed from the ranks instead.
    """

    scaler: TableScaler

    @cached_property
    def alone(self) -> IntArray:
        """The coordinates that are all of their column, ranks excepted."""
        found = super().alone
        return found[found >= len(self.scaler.numbers)]

    def part(self, column: int, Z: FloatArray) -> FloatArray:
        """Return a column's part of coordinates (rows, D) and each center, (rows, n)."""
        own = np.flatnonzero(self.owners == column)
        products = own[own >= len(self.scaler.numbers)]
        out = np.asarray(Z[:, products] @ self.centers[:, products].T)
        for k in own[: len(own) - len(products)].tolist():
            out += spline_part(self.scaler, Z, self.centers, k)
        return out

    def _present(self, k: int, Z: FloatArray) -> FloatArray:
        """Return 1 where a number of coordinates (rows, D) is there, and 0 where it is missing."""
        at = np.flatnonzero(self.scaler.absent == k)
        return 1.0 - Z[:, len(self.owners) + at[0]] if len(at) else np.ones(len(Z))

    def gradients(self, block: FloatArray, Z: FloatArray, W: FloatArray) -> FloatArray:
        """Return the gradients of ``sum_j W_ij base(z_i, c_j)`` by the columns, (rows, d).

        The larger of two ranks has the slope of the row's where that is larger, and where both are
        equal from above alone.
        """
        (below, above), heights = self.scaler.spline_slopes(block)
        out = super().gradients(block, Z, W)
        for k, column in enumerate(self.scaler.numbers):
            q, own, present = Z[:, k, None], self.centers[:, k], self._present(k, self.centers)
            larger = below[:, k] * ((W * (q > own)) @ present)
            larger += above[:, k] * ((W * (q >= own)) @ present)
            out[:, column] += heights[:, k] * (W @ present) - larger / 2.0
        return out


def placed(Z: FloatArray, columns: IntArray, d: int) -> FloatArray:
    """Return coordinates at the places of their columns, zero elsewhere, (rows, d)."""
    out = np.zeros((len(Z), d))
    out[:, columns] = Z
    return out
