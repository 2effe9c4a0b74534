"""One cell of a comparison: a system on a data set, selected, fitted and judged.

Every system has the same rows: it is fitted to the training rows, chosen by the validation rows,
and judged on the test rows, in a process of its own, on one thread.
"""

from __future__ import annotations

import warnings
from collections import Counter
from contextlib import suppress
from typing import Any

import numpy as np

from polysift.runtime.memory import MemoryMeter, forget_peak
from polysift.runtime.types import FloatArray
from polysift_paper.comparisons.case import Case, open_case
from polysift_paper.comparisons.comparison import CLOCKS, MEASURED
from polysift_paper.comparisons.contenders import Contender, Effort, Params, SearchResult, contender
from polysift_paper.studies.study import Row
from polysift_paper.studies.worker import OverLimitError, Worker, WorkerError, timer

MAX_STOPPED_CANDIDATES = 2
"""Candidates over the time limit after which a selection ends with what it has."""

PILOT_FROM_ROWS = 1000
PILOT_ROWS = 2000
PILOT_LIMIT_DIVISOR = 10
FINALISTS = 8
"""Where a pilot sorts the candidates: from how many training rows on, how many of them it takes at
most, by how much its limit is lower, and how many of the candidates go on, except with the paper's
grids."""

WARM_UP_ROWS = 200

FINAL_FIT_LIMIT_FACTOR = 3.0
"""How much longer than a candidate the final fit and its judgement may take: both were within the
limit before, on a machine that may be busier now."""


def measure(cell: Row) -> list[Row]:
    """Run a cell.

    Parameters
    ----------
    cell : dict
        "data", "method" and "seed"; "grid", "limit" and "threads" as in ``Effort``; "sizes", the
        numbers of centers of FPC, and "rows", the training rows at most, or None.

    Returns
    -------
    list of dict
        One, with all ``MEASURED``; what there is not is None.
    """
    row: Row = dict.fromkeys(MEASURED)
    row["clock"] = CLOCKS[0] if cell["threads"] == 1 else CLOCKS[1]
    try:
        with _worker(cell) as worker:
            size = worker.call(shape)  # loading is no part of the selection
            before = worker.seconds
            params, status = _select(worker, cell, *size)
            row |= {"search_seconds": worker.seconds - before, "params": params, "status": status}
        if params is not None:
            limit = None if cell["limit"] is None else FINAL_FIT_LIMIT_FACTOR * cell["limit"]
            with _worker(cell) as worker:  # with a clean memory
                row |= worker.call(finish, cell, params, limit=limit)
    except OverLimitError as error:
        row["status"] = f"over limit: the final fit took {error}"
    except WorkerError as error:
        kind, _, text = str(error).partition(": ")  # a search of ours ends by itself
        row["status"] = f"over limit: {text}" if kind == "TimeoutError" else f"failed: {error}"
    return [row]


def _worker(cell: Row) -> Worker:
    data = cell["data"], cell["seed"], cell["rows"], _contender(cell).whole
    return Worker(open_case, *data, preload=[__name__], threads=cell["threads"])


def _contender(cell: Row) -> Contender:
    return contender(cell["method"], cell["sizes"])


def _select(worker: Worker, cell: Row, rows: int, features: int) -> tuple[Params | None, str]:
    """Return the best parameters, if any candidate was finished, and how it went."""
    system = _contender(cell)
    if system.candidates is None:
        found = worker.call(search, cell)
        return found.params, "ok" if found.finished else "limited: the search was out of time"
    candidates = system.candidates(rows, features, cell["grid"])
    if not system.costs and len(candidates) > 1 and rows > PILOT_FROM_ROWS:
        candidates = _piloted(worker, cell, candidates)
    best: tuple[float, Params | None] = (-1.0, None)
    stopped: list[tuple[Params, str]] = []
    skipped = 0
    for params in candidates:
        costly = any(_costs_more(params, one, system.costs) for one, _ in stopped)
        if len(stopped) >= MAX_STOPPED_CANDIDATES or costly:
            skipped += 1
            continue
        try:
            score = worker.call(attempt, cell, params, limit=cell["limit"])
        except (OverLimitError, WorkerError) as error:  # the latter may be for want of memory
            stopped.append((params, str(error)))
            continue
        if score > best[0]:  # of equals, the one that was tried first
            best = score, params
    reasons = [reason for _, reason in stopped]
    return best[1], _status(best[1], len(candidates), reasons, skipped)


def _piloted(worker: Worker, cell: Row, candidates: list[Params]) -> list[Params]:
    """Return the candidates that are best on few rows, the best first.

    How long LIBSVM takes cannot be predicted from its parameters: on clean data, large ones are
    fast and small ones slow, on noisy data it is the other way round. The promising come first, so
    that the limit costs little.
    """
    limit = None if cell["limit"] is None else cell["limit"] / PILOT_LIMIT_DIVISOR
    scores = []
    for params in candidates:
        try:
            scores.append(worker.call(attempt, cell, params, PILOT_ROWS, limit=limit))
        except (OverLimitError, WorkerError):
            scores.append(-1.0)
    order = sorted(range(len(candidates)), key=lambda at: -scores[at])  # stable: cheap ones first
    most = len(order) if cell["grid"] == "full" else FINALISTS
    return [candidates[at] for at in order[:most]]


def _costs_more(params: Params, other: Params, costs: tuple[str, ...]) -> bool:
    return bool(costs) and all(params[name] >= other[name] for name in costs)


def _status(best: Params | None, total: int, reasons: list[str], skipped: int) -> str:
    if not reasons:
        return "ok"
    slow = all(reason.startswith("over ") for reason in reasons)
    word = "limited" if best is not None else "over limit" if slow else "failed"
    counts = ", ".join(
        f"{times} of {total} candidates {'' if reason.startswith('over ') else 'failed, '}{reason}"
        for reason, times in Counter(reasons).items()
    )
    return f"{word}: {counts}" + (f", {skipped} not tried after that" if skipped else "")


def shape(case: Case) -> tuple[int, int]:
    """Return the numbers of training rows and features."""
    return len(case.train), case.X.shape[1]


def attempt(case: Case, cell: Row, params: Params, most: int | None = None) -> float:
    """Return the accuracy of a candidate on the validation rows, of each kind ``most`` at most."""
    model = _fitted(case, cell, params, most)
    X, y = case.of(case.validation[:most])
    return float(np.mean(model.predict(X) == y))


def search(case: Case, cell: Row) -> SearchResult:
    """Return the choice of a system that searches by itself."""
    run = _contender(cell).search
    assert run is not None
    effort = Effort(cell["grid"], cell["limit"], cell["threads"], cell["seed"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run(case, effort)


def finish(case: Case, cell: Row, params: Params) -> Row:
    """Fit the choice, and judge it on the test rows."""
    from sklearn.metrics import roc_auc_score

    _warm_up(case, cell, params)
    forget_peak()
    meter = MemoryMeter()
    now = timer(cell["threads"])
    began = now()
    model = _fitted(case, cell, params)
    fitted = now()
    growth = meter.growth()
    X, y = case.of(case.test)
    ready = now()
    labels = model.predict(X)
    predicted = now()
    return {
        "accuracy": float(np.mean(labels == y)),
        "auc": float(roc_auc_score(y, _scores(model, X))),
        "fit_seconds": fitted - began,
        "predict_seconds": predicted - ready,
        "peak_mb": None if growth is None else growth / 1e6,
    }


def _warm_up(case: Case, cell: Row, params: Params) -> None:
    """Fit to a few rows, so that what a library does at its first call is not measured."""
    with suppress(ValueError):  # all of one class
        _fitted(case, cell, params, WARM_UP_ROWS)


def _fitted(case: Case, cell: Row, params: Params, most: int | None = None) -> Any:
    X, y = case.of(case.train[:most])
    system = _contender(cell)
    model = system.build(random_state=cell["seed"], **{**params, **system.centers(X, params)})
    if "n_jobs" in model.get_params():
        model.set_params(n_jobs=cell["threads"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a solver that did not converge is judged all the same
        return model.fit(X, y)


def _scores(model: Any, X: FloatArray) -> FloatArray:
    """Return what orders the rows from -1 to +1."""
    if hasattr(model, "decision_function"):
        return model.decision_function(X)
    return model.predict_proba(X)[:, 1]
