"""Cells: one model each, fitted and judged in a process of its own, within a time limit."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import needs_paper  # noqa: F401 - before imports from polysift_paper
from harness.kernels import warm_up
from harness.problems import Problem
from harness.report import Row
from harness.systems import SYSTEMS, Params
from harness.timing import say, seconds_of
from polysift.runtime.memory import MemoryMeter, forget_peak
from polysift_paper.studies.worker import OverLimitError, Worker, WorkerError

PRELOAD = ("polysift_paper.rivals", "sklearn.ensemble", "sklearn.kernel_approximation", "lightgbm")

MAX_FITS, MAX_SECONDS = 3, 3.0
"""Fits at most, while they take fewer seconds in all."""

NAMES = ("X", "y", "X_test", "y_test")


def store(folder: Path, problem: Problem) -> Path:
    """Write a problem where other processes find it."""
    folder.mkdir()
    for name in NAMES:
        np.save(folder / f"{name}.npy", getattr(problem, name))
    return folder


def recall(folder: Path) -> Problem:
    """Read it again."""
    return Problem(*(np.load(folder / f"{name}.npy") for name in NAMES))


def fitted(
    problem: Problem, system: str, params: Params, threads: int, rows: int | None = None
) -> Row:
    """Fit to the first so many rows, and judge; return seconds, memory and accuracy.

    A few rows are fitted before the clock starts, so that nothing is compiled while it runs. A
    short fit is done a few times, and the best counts.
    """
    warnings.simplefilter("ignore")
    build, size = SYSTEMS[system].build, SYSTEMS[system].size
    warm_up(build(threads, **params | {size: 20}), problem.X, problem.y)
    X, y = problem.X[:rows], problem.y[:rows]
    model = build(threads, **params)
    forget_peak()
    meter, taken = MemoryMeter(), [seconds_of(lambda: model.fit(X, y))]
    grown = megabytes(meter)
    while len(taken) < MAX_FITS and sum(taken) < MAX_SECONDS:
        taken.append(seconds_of(lambda: model.fit(X, y)))
    began = perf_counter()
    right = float(np.mean(model.predict(problem.X_test) == problem.y_test))
    return {
        "trained_rows": len(y),
        "seconds": min(taken),
        "megabytes": grown,
        "accuracy": right,
        "predict_seconds": perf_counter() - began,
    } | _details(model)


def megabytes(meter: MemoryMeter) -> float:
    """Return by how much the process has grown since its peak was forgotten."""
    grown = meter.growth()
    if grown is None:  # where the peak can be forgotten (Linux), not at all
        return 0.0 if sys.platform == "linux" else np.nan
    return grown / 1e6


def _details(model: Any) -> Row:
    """Return what a polysift model tells of its fit."""
    history = getattr(model, "history_", None)
    if history is None:
        return {}
    seen = np.flatnonzero(np.isfinite(history["objective"]))
    last = seen[-1] if len(seen) else -1
    return {
        "objective": float(history["objective"][last]),
        "training_error": float(history["training_error"][last]),
        "iterations": int(model.n_iter_),
        "status": model.status_,
        "n": int(model.n_centers_),
        "gram_used": model.gram_,
        "products": int(model.n_products_),
    } | {f"{phase} seconds": value for phase, value in model.timings_.items()}


def in_own_process(
    folder: Path,
    system: str,
    params: Params,
    threads: int,
    limit: float,
    rows: int | None = None,
) -> Row:
    """Return a cell's figures, or only its "status" where it failed or took too long."""
    with Worker(recall, folder, preload=PRELOAD, threads=threads) as worker:
        try:
            return worker.call(fitted, system, params, threads, rows, limit=limit)
        except (OverLimitError, WorkerError) as error:
            return {"status": str(error)}


def climb(
    folder: Path,
    system: str,
    ladder: list[Params],
    threads: int,
    limit: float,
    growth: float | None = None,
) -> list[Row]:
    """Return the cells of a ladder; what would take too long, or follows a failure, is left out."""
    of = SYSTEMS[system]
    rows: list[Row] = []
    for params in ladder:
        expected = _expected(rows, params[of.size], growth or of.growth)
        if expected > limit:
            found: Row = {"status": f"left out: {expected:.0f} s or more expected"}
        else:
            found = in_own_process(folder, system, params, threads, limit)
        say(f"{of.title}, {in_words(params)}: {_shown(found)}")
        rows.append({"system": system, "size": params[of.size], "params": in_words(params)} | found)
        if "seconds" not in found:
            break
    return rows


def in_words(params: Params) -> str:
    """Return parameters as one writes them."""
    return ", ".join(f"{key}={value}" for key, value in params.items())


def _expected(rows: list[Row], size: int, growth: float) -> float:
    """Return the seconds that the next rung takes, judged by the one before it."""
    return rows[-1]["seconds"] * (size / rows[-1]["size"]) ** growth if rows else 0.0


def _shown(found: Row) -> str:
    if "seconds" not in found:
        return str(found["status"])
    return f"{found['seconds']:.2f} s, {found['accuracy']:.2%}, {found['megabytes']:.0f} MB"
