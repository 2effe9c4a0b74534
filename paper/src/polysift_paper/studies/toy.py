"""The synthetic problem of the simulations: data, the paper's settings, and a check of the data."""

from __future__ import annotations

from typing import Any

import numpy as np

from polysift import FPCClassifier
from polysift.datasets import bayes_curve, make_bayes_curve
from polysift.plots.base import COLOURS, INK
from polysift.runtime.types import FloatArray, IntArray
from polysift_paper.algorithm import paper_classifier
from polysift_paper.studies.averages import average, column, seeds
from polysift_paper.studies.pictures import legend, name_axes, new_figure
from polysift_paper.studies.study import Row, Study, Verdict

ROWS = 1000
NOISE = 0.1
TOLERANCE = 5e-4
MAX_ITER = 5000
"""No run of the paper's settings needs more."""

SETTINGS: Row = {"degree": 9, "n_centers": 55, "centers": "uniform", "scaler": None}
"""The paper's, with alpha = beta = 1 by default; the data lie in the unit square as they are."""


SYMMETRIC = "symmetric"
"""The range [-1, 1]; the paper's text has [0, 1]."""

FIGURE_SEED = 0
"""Of the rows in the picture."""

CHANCE_STANDARD_ERRORS = 4.0
"""Standard errors by which the share of a class may miss the area above the curve."""


def toy_data(
    seed: int, range_: str | None = None
) -> tuple[FloatArray, IntArray, FloatArray, IntArray]:
    """Draw training rows with noise and test rows without, from different streams.

    They are in the unit square, or with ``SYMMETRIC`` moved to [-1, 1] x [-1, 1].
    """
    first, second = map(int, np.random.SeedSequence(seed).generate_state(2))
    X, y = make_bayes_curve(ROWS, noise=NOISE, random_state=first)
    X_test, y_test = make_bayes_curve(ROWS, noise=0.0, random_state=second)
    if range_ == SYMMETRIC:
        X, X_test = 2.0 * X - 1.0, 2.0 * X_test - 1.0
    return X, y, X_test, y_test


def toy_classifier(seed: int, **settings: Any) -> FPCClassifier:
    """Return a classifier with the paper's settings, on one thread."""
    fixed = {"tol": TOLERANCE, "max_iter": MAX_ITER, "n_jobs": 1, "random_state": seed}
    return paper_classifier(**{**SETTINGS, **fixed, **settings})


def area_above() -> float:
    """Return the share of the unit square that lies on or above the Bayes curve."""
    t = (np.arange(100_000) + 0.5) / 100_000  # midpoints: the curve is smooth
    return float(1.0 - bayes_curve(t).mean())


def cells(runs: int) -> list[Row]:
    """Return a cell for each run."""
    return seeds(runs)


def measure(cell: Row) -> list[Row]:
    """Count the labels that are reversed, and those of the positive class."""
    X, y, X_test, y_test = toy_data(cell["seed"])
    truth, truth_test = (np.where(Z[:, 1] >= bayes_curve(Z[:, 0]), 1, -1) for Z in (X, X_test))
    return [
        {
            "reversed": int(np.sum(truth != y)),
            "reversed_in_test": int(np.sum(truth_test != y_test)),
            "positive": float(np.mean(truth_test > 0)),
        }
    ]


def summarise(rows: list[Row]) -> list[Row]:
    """Return averages over the runs."""
    return average(rows, (), ("reversed", "reversed_in_test", "positive"))


def draw(summary: list[Row], rows: list[Row]) -> Any:
    """Draw the training rows of one run, as Fig. 5 does, with the Bayes curve."""
    X, y, _, _ = toy_data(FIGURE_SEED)
    figure, ax = new_figure(width=5.0, height=4.6)
    for sign, colour, marker in ((1, COLOURS[1], "o"), (-1, COLOURS[0], "s")):
        mine = X[y == sign]
        ax.scatter(*mine.T, s=9, color=colour, marker=marker, linewidths=0, label=f"label {sign:+}")
    t = np.linspace(0, 1, 401)
    ax.plot(t, bayes_curve(t), color=INK, linewidth=1.5, label="Bayes curve")
    ax.set(xlim=(0, 1), ylim=(0, 1))
    name_axes(ax, "$x(1)$", "$x(2)$")
    legend(ax, loc="upper right", markerscale=2.0)
    return figure


def judge(summary: list[Row], rows: list[Row]) -> Verdict:
    """Compare counts with those that the paper's procedure fixes."""
    expected = round(ROWS * NOISE)
    exact = set(column(rows, "reversed")) == {expected}
    clean = set(column(rows, "reversed_in_test")) == {0}
    area, share = area_above(), summary[0]["positive"]
    error = np.sqrt(area * (1 - area) / (ROWS * len(rows)))
    fair = abs(share - area) <= CHANCE_STANDARD_ERRORS * error
    text = (
        f"Of {ROWS} training labels exactly {expected} are reversed in every run: "
        f"{'yes' if exact else 'no'}; of the test labels none: {'yes' if clean else 'no'}. The "
        f"positive class has {share:.4f} of the test rows on average; the area above the curve is "
        f"{area:.4f}, and by chance the two may differ by {CHANCE_STANDARD_ERRORS * error:.4f}: "
        f"{'yes' if fair else 'no'}."
    )
    return Verdict(exact and clean and fair, text)


STUDIES: tuple[Study, ...] = (
    Study(
        name="data",
        title="The data of the simulations",
        figure="Fig. 5",
        claim=(
            "Points are uniform in the unit square, +1 on and above the curve h and -1 below it; "
            "of the training labels 10 % are reversed, of the test labels none."
        ),
        runs=50,
        cells=cells,
        measure=measure,
        summarise=summarise,
        draw=draw,
        judge=judge,
    ),
)
