"""The candidates of a search, their results, and the choice among them.

A ``Variant`` is a feature map with the weights of the classes. A ``Candidate`` of it is a number of
centers, a ratio rho, a solver and a loss. It is scored at the iterations ``reads``: a run with more
iterations passes those of a run with fewer. Each of these readings is a ``Row`` of ``cv_results_``,
and its result on the splits of one round is a ``CandidateResult``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from polysift.features.feature_map import MapSpec
from polysift.losses import HINGE
from polysift.runtime.arrays import require
from polysift.runtime.types import FloatArray
from polysift.solvers.result import Status
from polysift.training.fit import Trained


@dataclass(frozen=True)
class Variant:
    """A feature map with the weights of the classes; its candidates share their Gram matrices.

    Attributes
    ----------
    name : str
        Its name in messages and checkpoints.
    spec : MapSpec
        The feature map, with the most centers of its candidates.
    class_weight : dict, "balanced" or None
        The weights of the classes.
    automatic : bool
        Whether it is the choice of a plain fit.
    """

    name: str
    spec: MapSpec
    class_weight: Any = None
    automatic: bool = False


@dataclass(frozen=True)
class Candidate:
    """A number of centers, a ratio rho, a solver and a loss.

    Attributes
    ----------
    n : int
        The number of centers.
    rho : float or None
        alpha / beta relative to trace(G) / n; None means the solver's default.
    solver, loss : str
        The names of the solver and the loss.
    reads : tuple of int
        The iterations at which it is scored, ascending; each is a row of ``cv_results_``.
    multiple : float or None
        rho in units of the one that generalised cross-validation chooses; None means that of
        ``rho``.
    """

    n: int
    rho: float | None
    solver: str
    reads: tuple[int, ...]
    loss: str = HINGE.name
    multiple: float | None = None

    @property
    def family(self) -> tuple[str, str]:
        """What candidates must share to advance in the same sweeps: the update of rows."""
        return "admm" if self.solver in ("paper", "converged") else self.solver, self.loss


@dataclass
class CandidateResult:
    """The result of a candidate at one of its ``reads``, on the splits of one round.

    Attributes
    ----------
    scores : ndarray of shape (n_splits, n_metrics)
        The scores on each split: at this iteration, or at the last one that was scored. The first
        metric is the one that counts.
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


class NoModel(Exception):
    """Raised when a search is ended before there is a model.

    ``status`` says why, and ``message`` is for the user if there will be none.
    """

    def __init__(self, status: Status, message: str = "") -> None:
        super().__init__(status, message)
        self.status, self.message = status, message


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
    used : dict
        The values of parameters that ``params`` leaves to the data.
    others : list of ndarray of shape (n_splits,)
        The scores by the other metrics, if there are any.
    iterations : float
        The iterations done, the mean over the splits.
    n_rows : int
        The rows on which it was compared: all, or a sample; 0 if it was not run.
    complete : bool
        Whether it was run to its end on every split of these rows.
    finished, screened : bool
        Whether it was run to its end on every split of all rows, or was eliminated early.
    overflow : bool
        Whether its features, or sums over them, are too large for their type.
    fixed_seconds, iteration_seconds : float
        The estimated seconds of fitting it alone on one split: before the iterations, and for each.
    """

    params: dict[str, Any]
    scores: FloatArray
    used: dict[str, Any] = field(default_factory=dict)
    others: list[FloatArray] = field(default_factory=list)
    iterations: float = 0.0
    n_rows: int = 0
    complete: bool = False
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
    def values(self) -> dict[str, Any]:
        """The parameters, with the values that were used where they are left to the data."""
        return self.params | self.used

    @property
    def size(self) -> tuple[int, int, int]:
        """The size of the model, to prefer the smallest: centers, degree, iterations."""
        values = self.values
        return values["n_centers"], values["degree"], values["max_iter"]

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

    def plain(self) -> dict[str, Any]:
        """Return plain values, for a checkpoint."""
        others = [list(scores) for scores in self.others]
        return vars(self) | {"scores": list(self.scores), "others": others}


PARAMETER_KINDS: dict[str, Any] = {
    "kernel": str,
    "degree": int | str,
    "scaler": str | None,
    "centers": str,
    "n_centers": int | str,
    "solver": str,
    "loss": str,
    "rho": int | float | str | None,
    "max_iter": int,
    "class_weight": dict | str | None,
}
"""What the parameters of a row are."""

OPTIONAL_PARAMETERS = {"centers", "class_weight"}
"""Those that not every search has."""


def row_from(values: dict[str, Any], n_splits: int) -> Row:
    """Return a row from plain values of a checkpoint, which must be those of a row."""
    scores, *others = (
        np.array(found, dtype=float) for found in (values["scores"], *values["others"])
    )
    row = Row(**values | {"scores": scores, "others": others})
    require(
        all(found.shape == (n_splits,) for found in (scores, *others)),
        "scores must be of each split",
    )
    known = set(row.params) | OPTIONAL_PARAMETERS == set(PARAMETER_KINDS)
    require(known and set(row.used) <= set(row.params), "a candidate has other parameters")
    for name, value in (*row.params.items(), *row.used.items()):
        require(isinstance(value, PARAMETER_KINDS[name]), f"{name} of a candidate is {value!r}")
    require(all(type(x) is int for x in row.size), "the size of a candidate must be numbers")
    flags = (row.complete, row.finished, row.screened, row.overflow)
    require(all(isinstance(flag, bool) for flag in flags), "finished must be true or false")
    numbers = (row.iterations, row.n_rows, row.fixed_seconds, row.iteration_seconds)
    require(all(isinstance(x, int | float) for x in numbers), "iterations must be numbers")
    return row


def choose(
    rows: list[Row], one_standard_error: bool = False, validation_rows: float | None = None
) -> int | None:
    """Return the index of the best finished row, or None if there is none.

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


def best_so_far(
    rows: list[Row], one_standard_error: bool = False, validation_rows: float | None = None
) -> int | None:
    """Return the index of the best row: of the finished ones, else on the largest sample."""
    most = max((row.n_rows for row in rows if row.complete), default=0)
    known = [i for i, row in enumerate(rows) if row.complete and row.n_rows == most]
    best = choose(rows, one_standard_error, validation_rows)
    if best is not None or not known:
        return best
    return min(known, key=lambda i: (-rows[i].mean, rows[i].size))


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
        The chosen model, fitted to all rows, or to a sample if there was no time for more.
    timings : dict of str to float
        Seconds by phase.
    seconds_alone : float
        The estimated seconds of fitting every model alone on every split.
    n_rows : int
        The number of rows.
    scores_over_time : list of (float, float)
        The seconds at which the best score became known, or better, and that score.
    """

    rows: list[Row]
    best: int
    classes: Any
    status: Status | None
    model: Trained | None
    timings: dict[str, float]
    seconds_alone: float
    n_rows: int
    scores_over_time: list[tuple[float, float]]


def cv_results(rows: list[Row], metrics: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return ``cv_results_``: the rows as columns, under scikit-learn's names.

    ``metrics`` are the names of several metrics, if there are, the one that counts first.
    """
    results: dict[str, Any] = {"params": [row.values for row in rows]}
    for name in rows[0].params:
        values = np.empty(len(rows), dtype=object)
        values[:] = [params[name] for params in results["params"]]
        results[f"param_{name}"] = np.ma.MaskedArray(values, False)
    results |= _score_columns("score", np.array([row.scores for row in rows]))
    results["mean_test_score"] = np.array([row.mean for row in rows])
    results["rank_test_score"] = ranks(rows)
    for number, name in enumerate(metrics):
        missing = np.full(len(rows[0].scores), np.nan)
        scores = [[row.scores, *row.others, *[missing] * len(metrics)][number] for row in rows]
        results |= _score_columns(name, np.array(scores))
    results["automatic"] = np.array([bool(row.used) for row in rows])
    results["n_iter"] = np.array([row.iterations for row in rows])
    results["n_rows"] = np.array([row.n_rows for row in rows])
    results["status"] = np.array([row.status for row in rows])
    return results


def _score_columns(name: str, scores: FloatArray) -> dict[str, FloatArray]:
    """Return the columns of one metric: its score on each split, mean and standard deviation."""
    columns = {f"split{split}_test_{name}": column for split, column in enumerate(scores.T)}
    counted = (~np.isnan(scores)).sum(axis=1)
    total = np.nansum(scores, axis=1)
    means = np.where(counted, total / np.maximum(counted, 1), np.nan)
    spread = np.nansum((scores - means[:, np.newaxis]) ** 2, axis=1) / np.maximum(counted, 1)
    columns[f"mean_test_{name}"] = means
    columns[f"std_test_{name}"] = np.where(counted, np.sqrt(spread), np.nan)
    return columns
