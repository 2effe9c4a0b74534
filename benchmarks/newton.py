"""The three solvers on the same rows: passes, objective, time, and what they are worth on others.

Half of the rows are for training, chosen at random. The time is the best of a few fits in turns,
relative to that of solver="converged". The table is in docs/numerics.md.

With --closer it prints what solver="newton" reaches with tol=1e-6 instead, in up to 1500 passes:
how far the others are from the minimum.

The files are read from the folder that POLYSIFT_DATA names; problems whose file is not there are
left out. Usage: python benchmarks/newton.py [--quick] [--closer]
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from time import perf_counter

import numpy as np
from sklearn.metrics import roc_auc_score

from common import load
from harness.classifiers import paper_classifier
from polysift.datasets import make_bayes_curve

Rows = tuple[np.ndarray, np.ndarray]

SOLVERS: dict[str, dict[str, object]] = {name: {} for name in ("paper", "converged", "newton")}
CLOSER: dict[str, dict[str, object]] = {"newton": {"tol": 1e-6, "max_iter": 1500}}
QUICK_ROWS = 3000
HEADS = ("data", "solver", "passes", "ended by", "objective", "time", "test accuracy", "test AUC")


def drawn(rows: int = 100_000, features: int = 22) -> Rows:
    """Return rows with labels of a random quadric, 2 % of them reversed."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, features))
    Q, w = rng.normal(size=(features, features)) / features, rng.normal(size=features)
    score = np.einsum("ij,jk,ik->i", X, Q, X) + X @ w / np.sqrt(features)
    noisy = score - np.median(score) + 0.05 * rng.normal(size=rows)
    return X, (noisy > 0) ^ (rng.random(rows) < 0.02)


PROBLEMS: dict[str, tuple[Callable[[], Rows], dict[str, object]]] = {
    "occupancy": (lambda: load("occupancy"), {"degree": 2}),
    "magic": (lambda: load("magic"), {"degree": 3, "scaler": "quantile"}),
    "htru2": (lambda: load("htru2"), {"degree": 3}),
    "credit_default": (lambda: load("credit_default"), {"degree": 2}),
    "the toy problem": (
        lambda: make_bayes_curve(40_000, noise=0.1, random_state=0),
        {"degree": 9},
    ),
    "drawn": (drawn, {"degree": 2}),
}


def compare(
    X: np.ndarray, y: np.ndarray, params: dict, solvers: dict, times: int
) -> Iterator[tuple[str, ...]]:
    """Fit solvers to half of the rows, in turns; yield a row of the table for each."""
    order = np.random.default_rng(0).permutation(len(y))
    train, test = np.array_split(order, 2)
    seconds: dict[str, list[float]] = {solver: [] for solver in solvers}
    models = {}
    for _ in range(times):
        for solver, more in solvers.items():
            model = paper_classifier(solver=solver, random_state=0, **params, **more)
            began = perf_counter()
            models[solver] = model.fit(X[train], y[train])
            seconds[solver].append(perf_counter() - began)
    for solver, model in models.items():
        scores = model.decision_function(X[test])
        yield (
            solver,
            f"{model.n_iter_}",
            model.status_,
            f"{np.nanmin(model.history_['objective']):.5f}",
            f"{min(seconds[solver]) / min(seconds.get('converged', [np.nan])):.2f}",
            f"{model.score(X[test], y[test]):.2%}".replace("%", " %"),
            f"{roc_auc_score(y[test], scores):.4f}",
        )


def main() -> None:
    quick, closer = (option in sys.argv[1:] for option in ("--quick", "--closer"))
    solvers, times = (CLOSER, 1) if closer else (SOLVERS, 1 if quick else 3)
    warnings.simplefilter("ignore")  # "converged" does not always get there: the table says so
    print(f"| {' | '.join(HEADS)} |\n|{'---|' * len(HEADS)}", flush=True)
    for name, (make, params) in PROBLEMS.items():
        try:
            X, y = make()
        except (KeyError, FileNotFoundError):
            continue
        if quick:
            chosen = np.random.default_rng(1).permutation(len(y))[:QUICK_ROWS]
            X, y = X[chosen], y[chosen]
        shape = f"{name}, {(len(y) + 1) // 2:,} x {X.shape[1]}, degree {params['degree']}"
        for row in compare(X, y, params, solvers, times):
            print(f"| {' | '.join((shape, *row))} |", flush=True)


if __name__ == "__main__":
    main()
