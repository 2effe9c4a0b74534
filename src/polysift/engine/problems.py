"""Lanes: problems that one sweep over the rows advances together.

A lane is one ADMM run as the engine sees it: the leading centers it uses, the cell of rows it
leaves out (a fold), and how it steps. Each lane has the K label columns of the data, side by side,
so a sweep works on matrices with K columns per lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from polysift.runtime.types import FloatArray, IntArray


@dataclass(frozen=True)
class Lane:
    """One problem of a sweep.

    Attributes
    ----------
    n : int
        It uses the first n centers.
    gamma : float
        m beta, the parameter of the prox.
    relax : float
        Over-relaxation: A u counts as ``relax A u + (1 - relax) v`` in the new state.
    without : int or None
        The cell of rows that it does not learn from.
    smooth : tuple of (float, float) or None
        If a lane does not step like the ADMM, but minimises a rounded loss: for each of its columns
        the rounding at the new point, and that for the slopes along the way there, or 0 if nobody
        asks for them; -1 if rows have no multipliers yet.
    """

    n: int
    gamma: float
    relax: float
    without: int | None = None
    smooth: tuple[tuple[float, float], ...] | None = None


class LaneTable:
    """Lanes as columns.

    Parameters
    ----------
    lanes : sequence of Lane
        The lanes; neighbours with the same n share a matrix product.
    K : int
        The label columns of each.

    Attributes
    ----------
    n_lanes, K, n_columns : int
        How many there are.
    groups : list of (int, slice)
        Runs of columns with the same n.
    gamma, relax : float or ndarray of shape (n_columns,)
        One number where all lanes share it.
    smooth : bool
        Whether the lanes minimise rounded losses; all of them do, or none.
    delta, line : ndarray of shape (n_columns,)
        The roundings then.
    """

    def __init__(self, lanes: Sequence[Lane], K: int) -> None:
        self.n_lanes, self.K, self.n_columns = len(lanes), K, len(lanes) * K
        self.groups: list[tuple[int, slice]] = []
        first = 0
        for n, run in groupby(lane.n for lane in lanes):
            stop = first + K * len(list(run))
            self.groups.append((n, slice(first, stop)))
            first = stop
        self.gamma = self._shared([lane.gamma for lane in lanes])
        self.relax = self._shared([lane.relax for lane in lanes])
        self.smooth = lanes[0].smooth is not None
        rounding = np.array([pair for lane in lanes for pair in lane.smooth or ()]).reshape(-1, 2)
        self.delta, self.line = rounding.T.copy()
        self._without: IntArray | None = None
        if any(lane.without is not None for lane in lanes):
            without = [-2 if lane.without is None else lane.without for lane in lanes]
            self._without = np.repeat(without, K)

    def _shared(self, values: list[float]) -> float | FloatArray:
        return values[0] if len(set(values)) == 1 else np.repeat(values, self.K)

    def multiplicities(
        self, weights: FloatArray | None, cells: IntArray | None
    ) -> FloatArray | None:
        """Return how often each row counts, (rows,) or (rows, n_columns); None means once."""
        if self._without is None or cells is None:
            return weights
        counts = (cells[:, np.newaxis] != self._without) & (cells[:, np.newaxis] >= 0)
        return counts.astype(float) if weights is None else counts * weights[:, np.newaxis]
