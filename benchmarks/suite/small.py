"""Small data: what a fit costs beyond its arithmetic, and how long one row takes to predict.

The arithmetic is that of the same fit in a few lines of NumPy: the features once, the Gram matrix,
its factor, and the products of each iteration; one thread, as polysift itself takes for so few.
That is compared with the paper's parameters; a plain fit, which chooses its own, stands beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.linear_model import LogisticRegression

from harness.classifiers import paper_classifier
from harness.problems import quadratic
from harness.report import Column, Report, Row, Table, Target
from harness.run import Run
from harness.sweeps import power
from harness.systems import SYSTEMS
from harness.timing import Work, all_times, blas_threads, say
from polysift import FPCClassifier

ROWS, FEATURES = 1_000, 10
PAPER, PLAIN = "polysift, paper", "polysift, plain"
OVERHEAD, WHOLE, ONE_ROW = 5.0, 100.0, 50.0
"""Milliseconds of the overhead and of a plain fit, and microseconds of a row, at most."""

PATIENCE = 5.0
"""Seconds for all fits, or all predictions, of one system."""

COLUMNS = (
    Column("system", "system"),
    Column("fit", "fit, ms", ".2f"),
    Column("fit_median", "median", ".2f"),
    Column("row", "one row, microseconds", ".0f"),
    Column("row_median", "median", ".0f"),
)


def measure(run: Run) -> Report:
    """Time fits in turns, and one-row predictions."""
    problem = quadratic(ROWS, FEATURES, test=10)
    X, y = problem.X, problem.y
    models = _models(run)
    clf = models[PAPER]().fit(X, y)
    fits: dict[str, Work] = {
        name: lambda make=make: make().fit(X, y) for name, make in models.items()
    }
    say(f"fits of {ROWS} x {FEATURES}")
    fits["arithmetic"] = _arithmetic(clf, X, y)
    fit_times = all_times(fits, run.pick(2, 15, 50), PATIENCE)
    trained = {name: make().fit(X, y) for name, make in models.items()}
    say("predictions of one row")
    one: dict[str, Work] = {
        name: lambda model=model: model.predict(X[:1]) for name, model in trained.items()
    }
    # One system after the other: LightGBM's threads wait in a busy loop for a while after a call,
    # and what comes next would wait for them.
    row_times = {
        name: all_times({name: work}, run.pick(5, 200, 1000), PATIENCE)[name]
        for name, work in one.items()
    }
    rows: list[Row] = [
        {"system": name}
        | _figures("fit", 1e3 * fit_times[name])
        | _figures("row", 1e6 * row_times.get(name, np.array([np.nan])))
        for name in fit_times
    ]
    overhead = 1e3 * float(fit_times[PAPER].min() - fit_times["arithmetic"].min())
    targets = [
        Target("overhead of a fit of 1,000 x 10, ms", overhead, OVERHEAD, False, ".1f"),
        Target("a plain fit of 1,000 x 10, ms", rows[1]["fit"], WHOLE, False, ".0f"),
        Target("one row predicted, microseconds", rows[0]["row"], ONE_ROW, False, ".0f"),
        Target("the same by a plain model, microseconds", rows[1]["row"], ONE_ROW, False, ".0f"),
    ]
    title = f"{ROWS:,} x {FEATURES}, degree {clf.degree_}, n = {clf.n_centers_}, {clf.n_iter_} "
    table = Table("", f"{title}iterations; the best of many, and the median", rows, COLUMNS)
    return Report([table], targets)


def _models(run: Run) -> dict[str, Callable[[], Any]]:
    """Return what makes each model, ours first."""
    trees = {
        SYSTEMS[name].title: lambda name=name: SYSTEMS[name].build(run.threads)
        for name in ("lightgbm", "hist_gb")
        if name in SYSTEMS
    }
    ours = {
        PAPER: lambda: paper_classifier(random_state=0, n_jobs=run.threads),
        PLAIN: lambda: FPCClassifier(random_state=0, n_jobs=run.threads),
    }
    return ours | {"LogisticRegression": LogisticRegression} | trees


def _figures(name: str, times: np.ndarray) -> Row:
    return {name: float(times.min()), f"{name}_median": float(np.median(times))}


def _arithmetic(clf: FPCClassifier, X: np.ndarray, y: np.ndarray) -> Work:
    """Return the bare arithmetic of a fit: same features, same number of iterations."""
    X1 = np.column_stack([np.clip((X - X.min(0)) / np.ptp(X, axis=0), 0, 1), np.ones(len(X))])
    C1 = np.column_stack([clf.centers_, np.ones(clf.n_centers_)]).T
    signs = y.astype(float)

    def work() -> None:
        with blas_threads(1):
            A = X1 @ C1
            power(A, clf.degree_, np.empty_like(A))
            G = A.T @ A
            G.flat[:: len(G) + 1] += clf.rho_
            factor = cho_factor(G, overwrite_a=True, check_finite=False)
            u, r = np.zeros(len(G)), A.T @ signs
            for _ in range(clf.n_iter_):
                u += cho_solve(factor, r, check_finite=False)
                f = (A @ u) * signs
                r = A.T @ (np.clip(1.0 - f, 0.0, 1.0 / len(X)) * signs)

    return work
