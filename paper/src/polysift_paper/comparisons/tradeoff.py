"""A picture of accuracy against time, one panel for each data set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polysift.plots.base import GREY, load_matplotlib
from polysift_paper.comparisons.comparison import data_title, method_title
from polysift_paper.comparisons.marks import empty, legend_below, look, mark
from polysift_paper.comparisons.summary import Lines, methods_of, sets_of
from polysift_paper.studies.pictures import HEIGHT, WIDTH, name_axes, new_figure
from polysift_paper.studies.study import Row

COLUMNS = 3

EMPHASISED = ("fpc", "polysift")

FAR = 4.0
"""What is so many times as far below the best as the median is, is left out."""

LEAST = 0.4
"""Points of accuracy that a panel spans at least before anything is left out."""


def draw_tradeoff(lines: Lines) -> Any:
    """Draw the accuracy of each method against its time, of the final fit and of all training."""
    sets, methods = sets_of(lines, "accuracy"), methods_of(lines)
    columns = min(COLUMNS, max(1, len(sets)))
    count = max(1, -(-len(sets) // columns))
    width = columns * WIDTH if columns > 1 else 1.8 * WIDTH
    drawing, panels = new_figure(count, columns, width=width, height=count * HEIGHT + 0.8)
    axes = list(np.atleast_1d(panels).flat)
    for ax in axes[len(sets) :]:
        ax.set_axis_off()
    for ax, data in zip(axes, sets, strict=False):
        _panel(ax, lines, data, methods)
    marks = [mark(*look(method), method_title(method)) for method in methods]
    if marks:
        marks.append(mark("o", GREY, "final fit alone", face="white"))
        marks.append(mark("o", GREY, "with selection"))
    legend_below(drawing, marks, {1: 4, 2: 4, 3: 6}[columns])
    return drawing


def _panel(ax: Any, lines: Lines, data: str, methods: Sequence[str]) -> None:
    there: list[tuple[str, Row]] = [
        (one, line)
        for one in methods
        if (line := lines.get((data, one))) is not None
        and line["accuracy"] is not None
        and line["fit_seconds"] is not None
    ]
    name_axes(ax, "time (s)", "accuracy (%)", data_title(data))
    if not there:
        empty(ax)
        return
    for method, line in there:
        marker, colour = look(method)
        size, order = (130, 5) if method in EMPHASISED else (42, 3)
        x, y = [line["training_seconds"], line["fit_seconds"]], 2 * [100 * line["accuracy"]]
        ax.plot(x, y, color=colour, linewidth=0.8, alpha=0.6, zorder=order - 1)
        faces = [colour, "white"]
        ax.scatter(
            x, y, s=size, marker=marker, c=faces, edgecolor=colour, linewidth=1.0, zorder=order
        )
    ax.set_xscale("log")
    ax.xaxis.set_minor_locator(load_matplotlib("ticker").NullLocator())
    ax.ticklabel_format(axis="y", useOffset=False)  # else all at 100 % would be 0, "+1e2"
    _leave_out(ax, {method: 100 * line["accuracy"] for method, line in there})


def _leave_out(ax: Any, values: dict[str, float]) -> None:
    """Keep a poor rival from pressing all others together, and say so."""
    top = max(values.values())
    low = top - max(FAR * (top - float(np.median(list(values.values())))), LEAST)
    # What the picture is about is in it, however far below it is.
    low = min([low, *(value for method, value in values.items() if method in EMPHASISED)])
    bottom = min(value for value in values.values() if value >= low)
    edge = 0.08 * (top - bottom) + 0.02 if top > bottom else LEAST
    far = sum(value < low for value in values.values())
    ax.set_ylim(bottom - (2 if far else 1) * edge, top + edge)  # the text is below all marks
    if far:
        text = f"{far} further below"
        ax.text(0.98, 0.03, text, transform=ax.transAxes, ha="right", fontsize=9, color=GREY)
