"""Problems that one sweep over the rows advances together.

A problem is one solver as the engine sees it: the leading centers it uses, the fold part that it
leaves out, and how it steps. Each problem has the K label columns of the data, side by side, so a
sweep works on matrices with K columns per problem.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from polysift.runtime.types import FloatArray, IntArray


@dataclass(frozen=True)
class Problem:
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
        The fold part of rows that it does not learn from.
    smooth : tuple of (float, float) or None
        If a problem does not step like the ADMM, but minimises a rounded loss: for each of its
        columns the rounding at the new point, and that for the slopes along the way there, or 0 if
        nobody asks for them; -1 if rows have no multipliers yet.
    """

    n: int
    gamma: float
    relax: float
    without: int | None = None
    smooth: tuple[tuple[float, float], ...] | None = None


class Problems:
    """Problems as columns.

    Parameters
    ----------
    problems : sequence of Problem
        The problems; neighbours with the same n share a matrix product.
    K : int
        The label columns of each.

    Attributes
    ----------
    n_problems, K, n_columns : int
        How many there are.
    groups : list of (int, slice)
        Runs of columns with the same n.
    gamma, relax : float or ndarray of shape (n_columns,)
        One number where all problems share it.
    smooth : bool
        Whether the problems minimise rounded losses; all of them do, or none.
    delta, line : ndarray of shape (n_columns,)
        The roundings then.
    """

    def __init__(self, problems: Sequence[Problem], K: int) -> None:
        self.n_problems, self.K, self.n_columns = len(problems), K, len(problems) * K
        self.groups: list[tuple[int, slice]] = []
        first = 0
        for n, run in groupby(problem.n for problem in problems):
            stop = first + K * len(list(run))
            self.groups.append((n, slice(first, stop)))
            first = stop
        self.gamma = self._shared([problem.gamma for problem in problems])
        self.relax = self._shared([problem.relax for problem in problems])
        self.smooth = problems[0].smooth is not None
        rounding = np.array(
            [pair for problem in problems for pair in problem.smooth or ()]
        ).reshape(-1, 2)
        self.delta, self.line = rounding.T.copy()
        self._without: IntArray | None = None
        if any(problem.without is not None for problem in problems):
            without = [-2 if problem.without is None else problem.without for problem in problems]
            self._without = np.repeat(without, K)

    def _shared(self, values: list[float]) -> float | FloatArray:
        return values[0] if len(set(values)) == 1 else np.repeat(values, self.K)

    def multiplicities(
        self, weights: FloatArray | None, fold_parts: IntArray | None
    ) -> FloatArray | None:
        """Return how often each row counts, (rows,) or (rows, n_columns); None means once."""
        if self._without is None or fold_parts is None:
            return weights
        counts = (fold_parts[:, np.newaxis] != self._without) & (fold_parts[:, np.newaxis] >= 0)
        return counts.astype(float) if weights is None else counts * weights[:, np.newaxis]
