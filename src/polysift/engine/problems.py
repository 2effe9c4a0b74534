"""Problems that one sweep over the rows advances together.

A problem is what the engine knows of a solver: how many of the centers it uses, the fold part that
it leaves out, and how it updates the state of rows. Each problem has the K label columns of the
data, so a sweep works on matrices with K columns per problem, side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from polysift.engine.row_updates import SCORES_ONLY, ColumnUpdates, Update
from polysift.runtime.types import FloatArray, IntArray


@dataclass(frozen=True)
class Problem:
    """One problem of a sweep.

    Attributes
    ----------
    n : int
        The number of centers: it uses the first n.
    update : Update
        How a sweep updates the state of its rows; of the same class for all problems of a sweep.
    without : int or None
        The fold part that it does not learn from.
    """

    n: int
    update: Update = SCORES_ONLY
    without: int | None = None


class Problems:
    """The columns of the problems of a sweep.

    Parameters
    ----------
    problems : sequence of Problem
        The problems; consecutive ones with the same n share a matrix product.
    K : int
        Label columns of each problem.

    Attributes
    ----------
    n_problems, K, n_columns : int
        The number of problems, of label columns, and of columns in all.
    groups : list of (int, slice)
        Runs of columns with the same n, each as n and its columns.
    update : ColumnUpdates
        The updates of all columns.
    """

    def __init__(self, problems: Sequence[Problem], K: int) -> None:
        self.n_problems, self.K, self.n_columns = len(problems), K, len(problems) * K
        self.groups: list[tuple[int, slice]] = []
        first = 0
        for n, run in groupby(problem.n for problem in problems):
            stop = first + K * len(list(run))
            self.groups.append((n, slice(first, stop)))
            first = stop
        updates: list[Any] = [problem.update for problem in problems]
        self.update: ColumnUpdates = updates[0].columns(updates, K)
        self._without: IntArray | None = None
        if any(problem.without is not None for problem in problems):
            without = [-2 if problem.without is None else problem.without for problem in problems]
            self._without = np.repeat(without, K)

    def multiplicities(
        self, weights: FloatArray | None, fold_parts: IntArray | None
    ) -> FloatArray | None:
        """Return the multiplicities of rows, (rows,) or (rows, n_columns); None means 1."""
        if self._without is None or fold_parts is None:
            return weights
        parts = fold_parts[:, np.newaxis]
        counts = (parts != self._without) & (parts >= 0)
        return counts.astype(float) if weights is None else counts * weights[:, np.newaxis]
