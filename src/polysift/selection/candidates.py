"""The candidates of a search, and the choice among them.

Candidates: ways to solve that a search compares, and how they stand.

A candidate is the first n centers, a ratio rho and a solver. Its candidates differ only in the
iteration at which they are read off.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from polysift.runtime.types import FloatArray
from polysift.solvers.result import Status
from polysift.training.fit import Trained


@dataclass(frozen=True)
class Candidate:
    """One way to solve.

    Attributes
    ----------
    n : int
        The number of centers.
    rho : float or None
        Relative to trace(G) / n; None is the solver's own.
    solver : str
        Its name.
    reads : tuple of int
        The iterations at which its candidates are read off, ascending.
    """

    n: int
    rho: float | None
    solver: str
    reads: tuple[int, ...]


@dataclass
class CandidateResult:
    """What is known of one candidate: (candidate, iteration).

    Attributes
    ----------
    scores : ndarray of shape (n_splits,)
        Its score on each split, NaN where it was not run; if it was not finished, those of the
        last iterate that was scored.
    iterations : float
        The iterations done, the mean over the splits.
    finished : bool
        Whether it was run to its end.
    """

    scores: FloatArray
    iterations: float
    finished: bool


Key = tuple[Candidate, int]


@dataclass
class Outcome:
    """What is known so far; ``last`` says at which iteration each candidate was left, or done."""

    results: dict[Key, CandidateResult] = field(default_factory=dict)
    last: dict[Candidate, int] = field(default_factory=dict)


class Stopped(Exception):
    """The time limit or the user has ended the search; ``status`` says which."""

    def __init__(self, status: Status) -> None:
        super().__init__(status)
        self.status = status


def rungs_of(candidates: list[Candidate]) -> list[int]:
    """Return where to read off. A run that ends by itself waits for the next rung, to share it."""
    between = {read for candidate in candidates for read in candidate.reads[:-1]}
    return sorted(between | {max(candidate.reads[-1] for candidate in candidates)})


@dataclass
class Row:
    """One candidate and what is known of it.

    Attributes
    ----------
    params : dict
        Parameters of ``FPCClassifier``.
    scores : ndarray of shape (n_splits,)
        Its score on each split, NaN where it was not run.
    iterations : float
        The iterations done, the mean over the splits.
    finished, screened : bool
        Whether it was run to its end on every split, or was left behind by others.
    fixed_seconds, iteration_seconds : float
        What fitting it alone on one split would take, without iterations and for each.
    """

    params: dict[str, Any]
    scores: FloatArray
    iterations: float = 0.0
    finished: bool = False
    screened: bool = False
    fixed_seconds: float = 0.0
    iteration_seconds: float = 0.0

    @property
    def mean(self) -> float:
        """The mean over the splits it was run on; NaN where it was run on none."""
        seen = self.scores[~np.isnan(self.scores)]
        return float(seen.mean()) if len(seen) else float("nan")

    @property
    def size(self) -> tuple[int, int, int]:
        """What makes a model small: few centers, a low degree, few iterations."""
        return self.params["n_centers"], self.params["degree"], self.params["max_iter"]

    @property
    def status(self) -> str:
        """What became of it, in a word."""
        if self.finished or self.screened:
            return "finished" if self.finished else "screened"
        return "stopped" if self.iterations else "not run"

    @property
    def kind(self) -> tuple[str, int]:
        """Candidates of one kind take about as many iterations."""
        return self.params["solver"], self.params["max_iter"]


def choose(
    rows: list[Row], one_standard_error: bool = False, validation_rows: float | None = None
) -> int | None:
    """Return the finished candidate with the highest mean score; of equals, the smallest.

    With ``one_standard_error``, the smallest whose mean is within one standard error of the
    highest: see ``standard_error``.
    """
    finished = [i for i, row in enumerate(rows) if row.finished]
    if not finished:
        return None
    best = min(finished, key=lambda i: (-rows[i].mean, rows[i].size))
    if not one_standard_error:
        return best
    least = rows[best].mean - standard_error(rows[best], validation_rows)
    within = [i for i in finished if rows[i].mean >= least]
    return min(within, key=lambda i: (rows[i].size, -rows[i].mean))


def standard_error(row: Row, validation_rows: float | None) -> float:
    """Return the standard error of a candidate's mean; infinite where it cannot be told.

    By the spread over the splits or, for the accuracy on a single validation part, by its rows.
    """
    if validation_rows is not None:
        return float(np.sqrt(row.mean * (1.0 - row.mean) / validation_rows))
    if len(row.scores) < 2:
        return np.inf
    return float(np.std(row.scores, ddof=1) / np.sqrt(len(row.scores)))


def ranks(rows: list[Row]) -> np.ndarray[Any, Any]:
    """Return each candidate's rank, 1 for the best; those that were not finished come last."""
    keys = [(not row.finished, np.inf if np.isnan(row.mean) else -row.mean) for row in rows]
    by_key = {key: rank for rank, key in reversed(list(enumerate(sorted(keys), start=1)))}
    return np.array([by_key[key] for key in keys], dtype=np.int32)


def seconds_alone(rows: list[Row]) -> float:
    """Return what fitting each candidate alone on each split would take.

    A candidate that was not run to its end counts with the fewest iterations of any of its kind
    that was, or with those it had.
    """
    fewest: dict[tuple[str, int], float] = {}
    for row in rows:
        if row.finished:
            fewest[row.kind] = min(row.iterations, fewest.get(row.kind, np.inf))
    total = 0.0
    for row in rows:
        iterations = row.iterations if row.finished else fewest.get(row.kind, row.iterations)
        total += len(row.scores) * (row.fixed_seconds + iterations * row.iteration_seconds)
    return total


@dataclass(frozen=True)
class SearchResult:
    """The outcome of a search.

    Attributes
    ----------
    rows : list of Row
        The candidates.
    best : int
        Which of them was chosen.
    classes : ndarray
        The classes.
    status : Status or None
        Why the search stopped early, if it did.
    model : Trained or None
        The choice, fitted to all rows.
    timings : dict of str to float
        Seconds by phase.
    seconds_alone : float
        What fitting every candidate alone on every split would have taken, by estimate.
    """

    rows: list[Row]
    best: int
    classes: Any
    status: Status | None
    model: Trained | None
    timings: dict[str, float]
    seconds_alone: float


def cv_results(rows: list[Row]) -> dict[str, Any]:
    """Return the candidates as columns, under scikit-learn's names."""
    results: dict[str, Any] = {"params": [dict(row.params) for row in rows]}
    for name in rows[0].params:
        values = np.empty(len(rows), dtype=object)
        values[:] = [row.params[name] for row in rows]
        results[f"param_{name}"] = np.ma.MaskedArray(values, False)
    scores = np.array([row.scores for row in rows])
    for split, column in enumerate(scores.T):
        results[f"split{split}_test_score"] = column
    means = np.array([row.mean for row in rows])
    results["mean_test_score"] = means
    spread = (scores - means[:, np.newaxis]) ** 2
    counted = (~np.isnan(scores)).sum(axis=1)
    spread = np.nansum(spread, axis=1) / np.maximum(counted, 1)
    results["std_test_score"] = np.where(counted, np.sqrt(spread), np.nan)
    results["rank_test_score"] = ranks(rows)
    results["n_iter"] = np.array([row.iterations for row in rows])
    results["status"] = np.array([row.status for row in rows])
    return results
