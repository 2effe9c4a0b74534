"""Sums over the rows short of their margin, kept up to date as rows cross it."""

from __future__ import annotations

import numpy as np

from polysift.runtime.types import FloatArray, IntArray

BLOCK_ROWS = 4096
"""Rows are gathered this many at a time."""


class MarginGram:
    """The sums ``H = sum x x'`` and ``c = sum y x`` over some rows, each with a one at its end.

    With the squared hinge loss these are all that a Newton step asks of the rows, and from step to
    step they change only by the rows that cross their margin.

    Parameters
    ----------
    X : ndarray of shape (m, d)
        The rows.
    y : ndarray of shape (m,)
        Labels -1 and +1.
    """

    def __init__(self, X: FloatArray, y: FloatArray) -> None:
        self.X, self.y = X, y
        self.rows = np.zeros(len(y), dtype=bool)
        n = X.shape[1] + 1
        self.H, self.c = np.zeros((n, n)), np.zeros(n)

    def update(self, rows: FloatArray) -> None:
        """Let the sums be over these rows."""
        self._add(np.flatnonzero(rows & ~self.rows), 1.0)
        self._add(np.flatnonzero(self.rows & ~rows), -1.0)
        self.rows = rows

    def _add(self, rows: IntArray, sign: float) -> None:
        for lo in range(0, len(rows), BLOCK_ROWS):
            some = rows[lo : lo + BLOCK_ROWS]
            Z, y = self.X[some], self.y[some]
            total = sign * Z.sum(axis=0)
            self.H[:-1, :-1] += sign * (Z.T @ Z)
            self.H[:-1, -1] += total
            self.H[-1, :-1] += total
            self.H[-1, -1] += sign * len(some)
            self.c[:-1] += sign * (y @ Z)
            self.c[-1] += sign * y.sum()
