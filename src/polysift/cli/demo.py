"""``polysift demo``: a fit of a million rows of the paper's synthetic problem, timed and drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from polysift.datasets import bayes_curve, make_bayes_curve
from polysift.estimators.classifier import PAPER, FPCClassifier
from polysift.plots.base import load_matplotlib
from polysift.runtime import clock
from polysift.runtime.memory import peak_memory
from polysift.runtime.outputs import replacing

TEST_ROWS = 100_000
SHOWN_ROWS = 3_000


def run(rows: int, noise: float, degree: int, solver: str, seed: int, output: Path) -> None:
    """Fit, print time, memory and errors, and draw the boundary."""
    X, y = make_bayes_curve(rows, noise=noise, random_state=seed)
    X_test, y_test = make_bayes_curve(TEST_ROWS, noise=0.0, random_state=seed + 1)
    # The paper's problem by the paper's kernel; other solvers have their own loss, alpha and beta.
    own = {"degree": degree, "solver": solver, "loss": "auto", "alpha": None, "beta": None}
    model = FPCClassifier(**PAPER | own, random_state=seed)
    began = clock.now()
    model.fit(X, y)
    seconds = clock.now() - began
    peak = peak_memory()  # before the errors below are computed: it is the training's
    train_error, test_error = 1 - model.score(X, y), 1 - model.score(X_test, y_test)
    for name, value in (
        ("problem", f"unit square, {noise:.0%} of the training labels reversed"),
        ("rows", f"{rows:,}"),
        ("degree", f"{model.degree_}"),
        ("centers", f"{model.n_centers_}"),
        ("iterations", f"{model.n_iter_} ({model.status_message_})"),
        ("training time", f"{seconds:.2f} s"),
        ("rows per second", f"{rows / seconds:,.0f}"),
        ("peak memory", "not measured here" if peak is None else f"{peak / 2**20:,.0f} MiB"),
        ("train error", f"{train_error:.2%} (Bayes {noise:.2%})"),
        ("test error", f"{test_error:.2%} (Bayes 0.00%: test labels carry no noise)"),
    ):
        print(f"{name:<16}{value}")
    draw_boundary(model, X[:SHOWN_ROWS], y[:SHOWN_ROWS], output)
    print(f"{'picture':<16}{output}")


def draw_boundary(model: Any, X: Any, y: Any, path: Path) -> None:
    """Draw the learned and the true boundary, with some rows."""
    figure = load_matplotlib("figure").Figure(figsize=(6.4, 6.0), layout="constrained")
    axes = figure.add_subplot()
    for label, colour, name in ((1, "#c44e52", "+1"), (-1, "#4c72b0", "-1")):
        chosen = X[y == label]
        axes.scatter(
            chosen[:, 0],
            chosen[:, 1],
            s=5,
            c=colour,
            alpha=0.45,
            linewidths=0,
            label=f"label {name}",
        )
    t = np.linspace(0.0, 1.0, 401)
    grid = np.stack(np.meshgrid(t, t), axis=-1)
    score = model.decision_function(grid.reshape(-1, 2)).reshape(grid.shape[:2])
    axes.plot(t, bayes_curve(t), color="black", lw=3.0, alpha=0.45, label="true boundary")
    axes.contour(t, t, score, levels=[0.0], colors="#dd8500", linewidths=2.0)
    axes.plot([], [], color="#dd8500", lw=2.0, label="learned boundary")
    axes.set(
        xlim=(0, 1),
        ylim=(0, 1),
        aspect="equal",
        xlabel="x(1)",
        ylabel="x(2)",
        title=f"FPC, degree {model.degree_}, {model.n_centers_} centers",
    )
    axes.legend(loc="upper right", framealpha=0.9, markerscale=4)
    with replacing(path) as file:
        figure.savefig(file, format=path.suffix.lstrip(".") or "png", dpi=150)
