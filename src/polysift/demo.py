"""The demo: a million rows of the paper's synthetic problem, learned, measured and drawn.

Run it with ``make demo`` or ``python -m polysift.demo``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from polysift._files import replacing
from polysift._meter import peak_memory
from polysift.classifier import FPCClassifier
from polysift.datasets import bayes_curve, make_bayes_curve

TEST_ROWS = 100_000
SHOWN_ROWS = 3_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; returns the exit code."""
    options = _parse(arguments)
    if not options.output.parent.is_dir():
        print(f"The folder {options.output.parent} does not exist; create it.", file=sys.stderr)
        return 2
    X, y = make_bayes_curve(options.rows, noise=options.noise, random_state=options.seed)
    X_test, y_test = make_bayes_curve(TEST_ROWS, noise=0.0, random_state=options.seed + 1)
    model = FPCClassifier(degree=options.degree, solver=options.solver, random_state=options.seed)
    began = perf_counter()
    model.fit(X, y)
    seconds = perf_counter() - began
    peak = peak_memory()  # before the errors below are computed: it is the training's
    train_error, test_error = 1 - model.score(X, y), 1 - model.score(X_test, y_test)
    for name, value in (
        ("problem", f"unit square, {options.noise:.0%} of the training labels reversed"),
        ("rows", f"{options.rows:,}"),
        ("degree", f"{model.degree_}"),
        ("centers", f"{model.n_centers_}"),
        ("iterations", f"{model.n_iter_} ({model.status_message_})"),
        ("training time", f"{seconds:.2f} s"),
        ("rows per second", f"{options.rows / seconds:,.0f}"),
        ("peak memory", "not measured here" if peak is None else f"{peak / 2**20:,.0f} MiB"),
        ("train error", f"{train_error:.2%} (Bayes {options.noise:.2%})"),
        ("test error", f"{test_error:.2%} (Bayes 0.00%: test labels carry no noise)"),
    ):
        print(f"{name:<16}{value}")
    try:
        draw_boundary(model, X[:SHOWN_ROWS], y[:SHOWN_ROWS], options.output)
    except ImportError:
        print("No picture: matplotlib is missing. Install polysift[plots].", file=sys.stderr)
        return 1
    print(f"{'picture':<16}{options.output}")
    return 0


def draw_boundary(model: Any, X: Any, y: Any, path: Path) -> None:
    """Draw the learned boundary over the true one, with some rows; the file appears whole."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 6.0), layout="constrained")
    FigureCanvasAgg(figure)
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
    with replacing(path) as partial:
        figure.savefig(partial, format=path.suffix.lstrip(".") or "png", dpi=150)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m polysift.demo", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="training rows")
    parser.add_argument("--noise", type=float, default=0.1, help="share of reversed labels")
    parser.add_argument("--degree", type=int, default=9, help="degree of the kernel")
    parser.add_argument("--solver", choices=("paper", "converged"), default="paper")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path("polysift-demo.png"), help="picture")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
