"""Simulation 1: when to stop."""

from __future__ import annotations

from typing import Any

import numpy as np

from polysift.data.inputs import training_source
from polysift.estimators.fitted import set_fitted_attributes
from polysift.plots.base import INK
from polysift.runtime.types import FloatArray
from polysift.training.fit import train
from polysift.training.job import job_of
from polysift_paper.studies.averages import average, column, seeds, where
from polysift_paper.studies.pictures import legend, line, name_axes, new_figure
from polysift_paper.studies.study import ONE_RUN, Row, Study, Verdict
from polysift_paper.studies.toy import MAX_ITER, toy_classifier, toy_data

TOLERANCES = tuple(10.0 ** (-i / 5) for i in range(26))
"""From 1 to 1e-5, five per decade; the paper counts 25 of them."""

TURN_INDEX = 16
"""The index of 10^-3.2, from which on the paper sees iterations grow."""

MAX_EARLY_ITERATIONS, MIN_GROWTH = 5, 100
"""At most so many iterations count as few, and from this factor on their growth as dramatic."""


PRINTED_ERRORS, PRINTED_ITERATIONS = (0.01235, 0.01153), (3, 1734)
"""The paper's values at the turn and at the smallest tolerance."""


class _Iterates:
    """Keeps the coefficients of all iterations."""

    def __init__(self) -> None:
        self.kept: list[FloatArray] = []

    def begin(self) -> None:
        pass

    def end(self, u: FloatArray) -> bool:
        self.kept.append(u.T.copy())
        return False


def measure(cell: Row) -> list[Row]:
    """Fit once, to the smallest tolerance: a larger one ends the same iterations earlier."""
    X, y, X_test, y_test = toy_data(cell["seed"], cell.get("range"))
    classifier = toy_classifier(cell["seed"], tol=TOLERANCES[-1])
    source = training_source(classifier, X, y, None, reset=True)
    iterates = _Iterates()
    trained = train(source, job_of(classifier, source, cell["seed"]), callback=lambda *_: iterates)
    set_fitted_attributes(classifier, trained, cell["seed"])
    differences = classifier.history_["h_norm_difference"]
    test_errors: dict[int, float] = {}
    rows = []
    for tolerance in TOLERANCES:
        below = differences < tolerance
        iterations = int(np.argmax(below)) + 1 if below.any() else len(differences)
        if iterations not in test_errors:
            classifier.coef_ = iterates.kept[iterations - 1]
            test_errors[iterations] = float(np.mean(classifier.predict(X_test) != y_test))
        rows.append(
            {
                "tolerance": tolerance,
                "iterations": iterations,
                "reached": bool(below.any()),
                "test_error": test_errors[iterations],
                "training_error": float(classifier.history_["training_error"][iterations - 1]),
                "rho_raised": bool(trained.result.rho_raised),
            }
        )
    return rows


def summarise(rows: list[Row]) -> list[Row]:
    """Return averages for each tolerance, and the most iterations of any run."""
    lines = average(rows, ["tolerance"], ("test_error", "training_error", "iterations"))
    for entry in lines:
        these = where(rows, tolerance=entry["tolerance"])
        entry["iterations_max"] = max(column(these, "iterations"))
    return lines


def draw(summary: list[Row], _rows: list[Row]) -> Any:
    """Draw the paper's four panels."""
    figure, axes = new_figure(2, 2)
    x = column(summary, "tolerance")
    for ax, name, title in (
        (axes[0, 0], "test_error", "(a) Test error"),
        (axes[0, 1], "training_error", "(b) Training error"),
    ):
        spread = column(summary, f"{name}_spread")
        line(ax, x, column(summary, name), spread, number=0, label="mean, standard deviation")
        name_axes(ax, "tolerance", "error", title)
    for ax, title in ((axes[1, 0], "(c) Iterations"), (axes[1, 1], "(d) Detail of (c)")):
        line(ax, x, column(summary, "iterations_max"), number=1, label="most of any run")
        line(ax, x, column(summary, "iterations"), number=0, label="mean over the runs")
        name_axes(ax, "tolerance", "iterations", title)
    for ax, values in ((axes[0, 0], PRINTED_ERRORS), (axes[1, 0], PRINTED_ITERATIONS)):
        style = {"marker": "*", "markersize": 11, "linestyle": "none", "color": INK}
        ax.plot([x[TURN_INDEX], x[-1]], values, **style, zorder=4, label="printed in the paper")
    for ax in axes.flat:
        ax.set_xscale("log")
        ax.minorticks_off()
        ax.invert_xaxis()
        ax.set_ylim(0, 1.12 * ax.get_ylim()[1])
    axes[1, 1].set_xlim(1.5, x[TURN_INDEX + 1] / 1.2)
    axes[1, 1].set_ylim(0, 1.15 * summary[TURN_INDEX + 1]["iterations_max"])
    legend(axes[0, 0], loc="lower left")
    legend(axes[1, 0], loc="upper left")
    return figure


def judge(summary: list[Row], rows: list[Row]) -> Verdict:
    """Compare the effect of the tolerance with that of chance, and count iterations."""
    errors = column(summary, "test_error")
    turn, last = summary[TURN_INDEX], summary[-1]
    spread = turn["test_error_spread"]
    if turn["runs"] < 2:
        return ONE_RUN
    flat = max(errors) - min(errors) < spread
    few = turn["iterations"] <= MAX_EARLY_ITERATIONS
    steep = last["iterations"] > MIN_GROWTH * turn["iterations"]
    ends = where(rows, tolerance=last["tolerance"])
    raised = sum(column(ends, "rho_raised"))
    unreached = len(ends) - sum(column(ends, "reached"))
    text = (
        f"Over all tolerances the mean test error lies between {min(errors):.4f} and "
        f"{max(errors):.4f}. It is stable if that range is smaller than the standard deviation "
        f"over the runs, {spread:.4f}: it is{'' if flat else ' not'}. Iterations: "
        f"{turn['iterations']:.1f} on average (at most {turn['iterations_max']}) at 10^-3.2 and "
        f"{last['iterations']:.0f} (at most {last['iterations_max']}) at 10^-5; the paper has 3 "
        f"and 1734. They are {MAX_EARLY_ITERATIONS} or fewer down to 10^-3.2 and grow more than "
        f"{MIN_GROWTH}-fold from there: {'yes' if few and steep else 'no'}. Of the printed test "
        f"errors, {_compared(turn, PRINTED_ERRORS[0])} at 10^-3.2, and "
        f"{_compared(last, PRINTED_ERRORS[1])} at 10^-5. Rounding raised the paper's alpha in "
        f"{raised} of {len(ends)} runs; {MAX_ITER} iterations were too few in {unreached}."
    )
    return Verdict(flat and few and steep, text)


def _compared(entry: Row, printed: float) -> str:
    """Say whether a printed test error is that of our runs, as far as these can tell."""
    ours, error = entry["test_error"], entry["test_error_spread"] / np.sqrt(entry["runs"])
    far = abs(ours - printed) > 3 * error
    verdict = "is not reproduced" if far else "lies within three standard errors of ours"
    return f"{printed} {verdict} ({ours:.4f}, standard error {error:.4f})"


STUDIES: tuple[Study, ...] = (
    Study(
        name="1",
        title="When to stop",
        figure="Fig. 6",
        claim=(
            "The test error hardly depends on the tolerance of the stopping rule, but below "
            "10^-3.2 the iterations grow from 3 to 1734 (at 10^-5), while the test error only "
            "moves from 0.01235 to 0.01153. So 5e-4 is a good default."
        ),
        runs=50,
        cells=seeds,
        measure=measure,
        summarise=summarise,
        draw=draw,
        judge=judge,
    ),
)
