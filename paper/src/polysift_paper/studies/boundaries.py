"""The pictures of simulation 6: learned boundaries over noisy rows, and errors by noise ratio."""

from __future__ import annotations

from typing import Any

import numpy as np

from polysift.datasets import bayes_curve, make_noisy_curve
from polysift.plots.base import COLOURS, GREY, INK
from polysift.runtime.types import FloatArray
from polysift_paper.studies.averages import column, where
from polysift_paper.studies.pictures import TEXT_SIZE, legend, line, name_axes, new_figure
from polysift_paper.studies.study import Row
from polysift_paper.studies.toy import ROWS, toy_classifier

SEED = 0
"""Of the data and centers behind the boundaries."""

BLUE, ORANGE, GREEN = COLOURS[:3]

CASES = (
    ("(a) Type 1: width 0.2, ratio 0.3", "inside", 0.2, 0.3),
    ("(b) Type 3: ratio 0.2", "everywhere", 0.0, 0.2),
    ("(c) Type 2: width 0.3, ratio 0.5", "outside", 0.3, 0.5),
    ("(d) Detail of (c)", "outside", 0.3, 0.5),
)

ERRORS = (
    ("inside", "type 1", ("(e)", "(f)")),
    ("outside", "type 2", ("(g)", "(h)")),
    ("everywhere", "type 3", ("(i)", "(j)")),
)


def draw_noise(summary: list[Row]) -> Any:
    """Draw four boundaries, and below them training and test errors of the three types."""
    figure, axes = new_figure(5, 2, height=15.5)
    for ax, (title, kind, width, ratio) in zip(axes[:2].flat, CASES, strict=True):
        _draw_boundary(ax, kind, width, ratio)
        name_axes(ax, "$x(1)$", "$x(2)$", title)
    axes[1, 1].set_ylim(0, 0.3)
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(),
        loc="outside upper center",
        ncols=2,
        markerscale=2.0,
        fontsize=TEXT_SIZE,
        frameon=False,
    )
    for (kind, name, letters), pair in zip(ERRORS, axes[2:], strict=True):
        _draw_errors(pair, where(summary, kind=kind), name, letters)
    return figure


def _draw_boundary(ax: Any, kind: str, width: float, ratio: float) -> None:
    """Draw rows, the Bayes curve, the borders of the noise, and what FPC learns from the rows."""
    X, y = make_noisy_curve(ROWS, kind=kind, width=width, ratio=ratio, random_state=SEED)
    wrong = (X[:, 1] >= bayes_curve(X[:, 0])) != (y > 0)
    for sign, colour, marker, label in ((1, ORANGE, "o", "$+1$"), (-1, BLUE, "s", "$-1$")):
        for rows, alpha, what in ((~wrong, 0.25, "true label"), (wrong, 0.9, "label reversed to")):
            points = X[rows & (y == sign)]
            settings = {"s": 7, "linewidths": 0, "alpha": alpha, "label": f"{what} {label}"}
            ax.scatter(*points.T, color=colour, marker=marker, **settings)
    t = np.linspace(0, 1, 400)
    if width:
        dashed = {"color": GREY, "linestyle": "--", "linewidth": 1.2}
        ax.plot(t, bayes_curve(t) - width, label="border of the noise", **dashed)
        ax.plot(t, bayes_curve(t) + width, **dashed)
    ax.plot(t, bayes_curve(t), color=INK, linewidth=1.6, label="Bayes curve")
    points = np.stack(np.meshgrid(t, t), axis=-1).reshape(-1, 2)
    scores: FloatArray = toy_classifier(SEED).fit(X, y).decision_function(points)
    ax.contour(t, t, scores.reshape(len(t), -1), levels=[0.0], colors=GREEN, linewidths=2.2)
    ax.plot([], [], color=GREEN, linewidth=2.2, label="learned boundary")  # for the legend
    ax.set(xlim=(0, 1), ylim=(0, 1))


def _draw_errors(pair: Any, lines: list[Row], name: str, letters: tuple[str, str]) -> None:
    """Draw the training errors of one type of noise beside its test errors."""
    widths = list(dict.fromkeys(column(lines, "width")))
    names = (("training_error", "Training"), ("test_error", "Test"))
    for ax, (key, what), letter in zip(pair, names, letters, strict=True):
        for number, width in enumerate(widths):
            these = where(lines, width=width)
            x, label = column(these, "ratio"), f"width {width:g}" if width else "FPC"
            values = column(these, key), column(these, f"{key}_spread")
            line(ax, x, *values, number=number, label=label)
            if what == "Training":
                level = "noise level" if width == widths[-1] else None
                ax.plot(x, column(these, "level"), color=GREY, lw=1.0, zorder=1, label=level)
        ax.set_ylim(bottom=0)
        x_name = "noise ratio in the region" if widths[0] else "noise ratio"
        name_axes(ax, x_name, "error", f"{letter} {what} error, {name}")
        legend(ax, loc="upper left")
