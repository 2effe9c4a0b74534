"""Simulations 2 and 3: the proximal parameter alpha, and the Lagrangian parameter beta."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import LinAlgWarning

from polysift.plots.base import INK
from polysift_paper.studies.averages import average, column, seeds, where
from polysift_paper.studies.pictures import legend, line, name_axes, new_figure
from polysift_paper.studies.study import ONE_RUN, Row, Study, Verdict
from polysift_paper.studies.toy import toy_classifier, toy_data

ALPHAS = tuple(10.0 ** (i / 2) for i in range(-10, 3))
BETAS = tuple(10.0 ** (i / 5) for i in range(-10, 11))

AROUND = 10**0.5
"""A factor up to which a parameter counts as around 1: a decade, with 1 in its middle."""


def measure(name: str, values: Sequence[float], cell: Row) -> list[Row]:
    """Fit with each value of a parameter, to the same rows with the same centers."""
    X, y, X_test, y_test = toy_data(cell["seed"], cell.get("range"))
    rows = []
    for value in values:
        classifier = toy_classifier(cell["seed"], **{name: value})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LinAlgWarning)  # counted instead
            classifier.fit(X, y)
        asked = (classifier.alpha or 1.0) / (classifier.beta or 1.0)
        rows.append(
            {
                name: value,
                "iterations": classifier.n_iter_,
                "test_error": float(np.mean(classifier.predict(X_test) != y_test)),
                "training_error": float(np.mean(classifier.predict(X) != y)),
                "rho": classifier.rho_,
                "rho_raised": bool(classifier.rho_ > asked * (1 + 1e-9)),
            }
        )
    return rows


def summarise(name: str, rows: list[Row]) -> list[Row]:
    """Return averages for each value of the parameter."""
    lines = average(rows, [name], ("test_error", "training_error", "iterations"))
    for entry in lines:
        these = where(rows, **{name: entry[name]})
        entry["rho_raised"] = sum(column(these, "rho_raised")) / len(these)
    return lines


def draw(name: str, summary: list[Row], _rows: list[Row]) -> Any:
    """Draw the paper's two panels."""
    figure, axes = new_figure(1, 2)
    for ax, which, title in (
        (axes[0], "test_error", "(a) Test error"),
        (axes[1], "training_error", "(b) Training error"),
    ):
        spread = column(summary, f"{which}_spread")
        x, mean = column(summary, name), column(summary, which)
        line(ax, x, mean, spread, number=0, label="mean, standard deviation")
        ax.axvline(1.0, color=INK, linewidth=1.0, linestyle=":", label="the paper's choice")
        ax.set_xscale("log")
        ax.minorticks_off()
        ax.set_ylim(0, 1.12 * ax.get_ylim()[1])
        name_axes(ax, rf"$\{name}$", "error", title)
    legend(axes[1], loc="lower left")  # there is room
    return figure


def steady_range(name: str, summary: list[Row]) -> tuple[Row, Row]:
    """Return the ends of the range around 1 in which the test error stays within one deviation.

    The yardstick is the standard deviation over the runs at 1, the paper's choice.
    """
    middle = int(np.argmin(np.abs(np.log(column(summary, name)))))
    base = summary[middle]
    near = [
        abs(entry["test_error"] - base["test_error"]) <= base["test_error_spread"]
        for entry in summary
    ]
    low = high = middle
    while low > 0 and near[low - 1]:
        low -= 1
    while high < len(near) - 1 and near[high + 1]:
        high += 1
    return summary[low], summary[high]


def judge(name: str, whole: bool, summary: list[Row], _rows: list[Row]) -> Verdict:
    """Compare the effect of a parameter with that of chance, over the whole range or around 1."""
    base = min(summary, key=lambda entry: abs(np.log(entry[name])))
    if base["runs"] < 2:
        return ONE_RUN
    low, high = steady_range(name, summary)
    first, last = summary[0], summary[-1]
    wanted = (first[name], last[name]) if whole else (1 / AROUND, AROUND)
    agrees = all(
        low[name] <= entry[name] <= high[name]
        for entry in summary
        if wanted[0] <= entry[name] <= wanted[1]
    )
    where = "over the whole range" if whole else "within a factor of 3 of 1"
    text = (
        f"At {name} = 1 the mean test error is {base['test_error']:.4f}. It is stable where it "
        f"stays within one standard deviation over the runs ({base['test_error_spread']:.4f}) of "
        f"that: from {name} = {low[name]:.3g} to {high[name]:.3g}. Stable {where}, as claimed: "
        f"{'yes' if agrees else 'no'}. At the ends, {first[name]:.3g} and {last[name]:.3g}, it is "
        f"{first['test_error']:.4f} and {last['test_error']:.4f}; iterations there are "
        f"{first['iterations']:.0f} and {last['iterations']:.0f} on average, and "
        f"{base['iterations']:.0f} at 1."
    )
    raised = [entry for entry in summary if entry["rho_raised"]]
    if raised:
        shares = " and ".join(f"{e['rho_raised']:.0%} at {e[name]:.3g}" for e in raised)
        text += (
            " The smallest alpha vanish against rounding and were raised to where they do not: of "
            f"the fits, {shares}."
        )
    else:
        text += " Rounding never raised the paper's alpha."
    return Verdict(agrees, text)


def _study(parameter: str, values: Sequence[float], *, whole: bool, **words: Any) -> Study:
    return Study(
        runs=50,
        cells=seeds,
        measure=partial(measure, parameter, values),
        summarise=partial(summarise, parameter),
        draw=partial(draw, parameter),
        judge=partial(judge, parameter, whole),
        **words,
    )


STUDIES: tuple[Study, ...] = (
    _study(
        "alpha",
        ALPHAS,
        whole=True,
        name="2",
        title="The proximal parameter alpha",
        figure="Fig. 7",
        claim=(
            "With the tolerance 5e-4, the errors are stable for alpha from 1e-5 to 10; so "
            "alpha = 1 will do."
        ),
    ),
    _study(
        "beta",
        BETAS,
        whole=False,
        name="3",
        title="The Lagrangian parameter beta",
        figure="Fig. 8",
        claim=(
            "For beta from 0.01 to 100, with alpha = 1, beta has a little effect on the test "
            "error, which is usually stable around 1; so beta = 1 will do."
        ),
    ),
)
