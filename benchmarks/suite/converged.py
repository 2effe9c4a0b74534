"""Fits to the minimum of the hinge loss, by both solvers, against LightGBM's default fit.

Rows are drawn: 22 features, uniform in [0, 1]; the label says whether (x0 - 1/2)^2 + x1 x2 is above
its median, and 2 % of the labels are reversed: no model can be right more often than 98 %.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from harness.kernels import warm_up
from harness.problems import quadratic
from harness.report import Column, Report, Row, Table, Target
from harness.run import Run
from harness.systems import SYSTEMS
from harness.timing import say, seconds_of

FEATURES, DEGREE = 22, 2

COLUMNS = (
    Column("system", "system"),
    Column("seconds", "seconds", ".2f"),
    Column("median", "median", ".2f"),
    Column("iterations", "iterations"),
    Column("objective", "objective", ".4f"),
    Column("status", "ended by"),
    Column("training_accuracy", "training accuracy", ".2%"),
    Column("accuracy", "test accuracy", ".2%"),
)


def measure(run: Run) -> Report:
    """Fit them in turns."""
    m = run.pick(2_000, 20_000, 50_000)
    problem = quadratic(m, FEATURES, test=run.pick(1_000, 20_000, 50_000))
    systems = {
        SYSTEMS[name].title: partial(SYSTEMS[name].build, run.threads, degree=DEGREE)
        for name in ("newton", "converged")
    }
    if "lightgbm" in SYSTEMS:
        systems["LightGBM, default"] = lambda: SYSTEMS["lightgbm"].build(run.threads)
    for make in systems.values():
        warm_up(make(), problem.X, problem.y)
    taken: dict[str, list[float]] = {name: [] for name in systems}
    models: dict[str, Any] = {}
    for _ in range(run.pick(1, 3, 5)):
        for name, make in systems.items():
            model = models[name] = make()
            taken[name].append(seconds_of(lambda model=model: model.fit(problem.X, problem.y)))
            say(f"{name}: {taken[name][-1]:.2f} s")
    rows = [_row(name, models[name], taken[name], problem) for name in systems]
    ratio = min(taken[rows[0]["system"]]) / min(taken.get("LightGBM, default", [np.nan]))
    target = Target("fit to the minimum (newton) / LightGBM's default fit", ratio, 1.0, False)
    n = models[rows[0]["system"]].n_centers_
    title = f"{m:,} x {FEATURES}, degree {DEGREE}, n = {n}, best of {len(taken[rows[0]['system']])}"
    return Report([Table("", title, rows, COLUMNS)], [target])


def _row(name: str, model: Any, taken: list[float], problem: Any) -> Row:
    row: Row = {
        "system": name,
        "seconds": min(taken),
        "median": float(np.median(taken)),
        "training_accuracy": model.score(problem.X, problem.y),
        "accuracy": model.score(problem.X_test, problem.y_test),
    }
    if hasattr(model, "history_"):
        row |= {
            "iterations": model.n_iter_,
            "objective": float(np.nanmin(model.history_["objective"])),
            "status": model.status_,
        }
    return row
