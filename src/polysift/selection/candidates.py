"""The candidates of a search, their results, and the choice among them.

A ``Candidate`` is a number of centers, a ratio rho and a solver. It is scored at the iterations
``reads``: a run with more iterations passes those of a run with fewer. Each of these readings is a
``Row`` of ``cv_results_``, and its result on the splits of one round is a ``CandidateResult``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from polysift.runtime.arrays import require
from polysift.runtime.types import FloatArray
from polysift.solvers.result import Status
from polysift.training.fit import Trained


@dataclass(frozen=True)
class Candidate:
    """A number of centers, a ratio rho and a solver.

    Attributes
    ----------
    n : int
        The number of centers.
    rho : float or None
        alpha / beta relative to trace(G) / n; None means the solver's default.
    solver : str
        The name of the solver.
    reads : tuple of int
        The iterations at which it is scored, ascending; each is a row of ``cv_results_``.
    """

    n: int
    rho: float | None
    solver: str
    reads: tuple[int, ...]


@dataclass
class CandidateResult:
    """The result of a candidate at one of its ``reads``, on the splits of one round.

    Attributes
    ----------
    scores : ndarray of shape (n_splits,)
        The score on each split: at this iteration, or at the last one that was scored.
    iterations : float
        The iterations done, the mean over the splits.
    finished : bool
        Whether the iteration was reached, or the solver stopped before it.
    """

    scores: FloatArray
    iterations: float
    finished: bool


Reading = tuple[Candidate, int]
"""A candidate, and the iteration at which it is scored."""


@dataclass
class Outcome:
    """The results of one round so far.

    Attributes
    ----------
    results : dict of (Candidate, int) to CandidateResult
        The result of each candidate at each of its ``reads``.
    last : dict of Candidate to int
        The last iteration at which each candidate was scored; its last read, if it has ended.
    """

    results: dict[Reading, CandidateResult] = field(default_factory=dict)
    last: dict[Candidate, int] = field(default_factory=dict)


class Stopped(Exception):
    """Raised when the time limit or the user ends the search; ``status`` says which."""

    def __init__(self, status: Status) -> None:
        super().__init__(status)
        self.status = status


def rungs_of(candidates: list[Candidate]) -> list[int]:
    """Return the iterations at which candidates are scored together, and compared.

    A candidate whose solver stops between two rungs is scored at the next one, to share its pass.
    """
    between = {read for candidate in candidates for read in candidate.reads[:-1]}
    return sorted(between | {max(candidate.reads[-1] for candidate in candidates)})


@dataclass
class Row:
    """A row of ``cv_results_``: a candidate at one of its ``reads``, over all splits.

    Attributes
    ----------
    params : dict
        The parameters of ``FPCClassifier``.
    scores : ndarray of shape (n_splits,)
        The score on each split, NaN where it was not run.
    iterations : float
        The iterations done, the mean over the splits.
    finished, screened : bool
        Whether it was run to its end on every split, or was eliminated early.
    overflow : bool
        Whether its features, or sums over them, are too large for their type.
    fixed_seconds, iteration_seconds : float
        The estimated seconds of fitting it alone on one split: before the iterations, and for each.
    """

    params: dict[str, Any]
    scores: FloatArray
    iterations: float = 0.0
    finished: bool = False
    screened: bool = False
    overflow: bool = False
    fixed_seconds: float = 0.0
    iteration_seconds: float = 0.0

    @property
    def mean(self) -> float:
        """The mean score over the splits on which it was run; NaN if there are none."""
        seen = self.scores[~np.isnan(self.scores)]
        return float(seen.mean()) if len(seen) else float("nan")

    @property
    def size(self) -> tuple[int, int, int]:
        """The size of the model, to prefer the smallest: centers, degree, iterations."""
        return self.params["n_centers"], self.params["degree"], self.params["max_iter"]

    @property
    def status(self) -> str:
        """Its status: "finished", "screened", "stopped", "overflow" or "not run"."""
        if self.overflow:
            return "overflow"
        if self.finished or self.screened:
            return "finished" if self.finished else "screened"
        return "stopped" if self.iterations else "not run"

    @property
    def kind(self) -> tuple[str, int]:
        """Solver and iterations; rows of one kind need about the same number of iterations."""
        return self.params["solver"], self.params["max_iter"]


PARAMETER_KINDS: dict[str, Any] = {
    "kernel": str,
    "degree": int,
    "scaler": str | None,
    "centers": str,
    "n_centers": int,
    "solver": str,
    "rho": int | float | None,
    "max_iter": int,
}
"""What the parameters of a row are."""


def row_from(values: dict[str, Any], n_splits: int) -> Row:
    """Return a row from plain values of a checkpoint, which must be those of a row."""
    row = Row(**values | {"scores": np.array(values["scores"], dtype=float)})
    require(row.scores.shape == (n_splits,), "scores must be of each split")
    known = set(row.params) | {"centers"} == set(PARAMETER_KINDS)
    require(known, "a candidate has other parameters")
    for name, value in row.params.items():
        require(isinstance(value, PARAMETER_KINDS[name]), f"{name} of a candidate is {value!r}")
    flags = (row.finished, row.screened, row.overflow)
    require(all(isinstance(flag, bool) for flag in flags), "finished must be true or false")
    numbers = (row.iterations, row.fixed_seconds, row.iteration_seconds)
    require(all(isinstance(x, int | float) for x in numbers), "iterations must be numbers")
    return row


def choose(
    rows: list[Row], one_standard_error: bool = False, validation_rows: float | None = None
) -> int | None:
    """Return the index of the best finished row, or None.

    Parameters
    ----------
    rows : list of Row
        The rows.
    one_standard_error : bool
        Whether the best is the smallest model whose mean score is within one standard error of the
        highest. By default it has the highest mean score; of equals, it is the smallest model.
    validation_rows : float, optional
        See ``standard_error``.
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
    """Return the standard error of a row's mean score; infinite if it cannot be estimated.

    It is estimated from the spread over the splits or, with ``validation_rows``, as that of the
    accuracy on a single validation part of so many rows.
    """
    if validation_rows is not None:
        return float(np.sqrt(row.mean * (1.0 - row.mean) / validation_rows))
    if len(row.scores) < 2:
        return np.inf
    return float(np.std(row.scores, ddof=1) / np.sqrt(len(row.scores)))


def ranks(rows: list[Row]) -> np.ndarray[Any, Any]:
    """Return the rank of each row, 1 for the best; unfinished rows come last."""
    keys = [(not row.finished, np.inf if np.isnan(row.mean) else -row.mean) for row in rows]
    by_key = {key: rank for rank, key in reversed(list(enumerate(sorted(keys), start=1)))}
    return np.array([by_key[key] for key in keys], dtype=np.int32)


def seconds_alone(rows: list[Row]) -> float:
    """Return the estimated seconds of fitting the model of each row alone on each split.

    An unfinished row counts with the fewest iterations of a finished one of its kind, or with its
    own if there is none.
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
        The rows of ``cv_results_``.
    best : int
        The index of the chosen row.
    classes : ndarray
        The classes.
    status : Status or None
        Why the search was ended early; None if it was not.
    model : Trained or None
        The chosen model, refitted to all rows.
    timings : dict of str to float
        Seconds by phase.
    seconds_alone : float
        The estimated seconds of fitting every model alone on every split.
    """

    rows: list[Row]
    best: int
    classes: Any
    status: Status | None
    model: Trained | None
    timings: dict[str, float]
    seconds_alone: float


def cv_results(rows: list[Row]) -> dict[str, Any]:
    """Return ``cv_results_``: the rows as columns, under scikit-learn's names."""
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
