"""Pictures of the suite: panels of lines over a logarithmic scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import needs_paper  # noqa: F401 - before imports from polysift_paper
from harness.report import Row
from polysift.plots.base import GREY, INK, STYLES, load_matplotlib, number_text
from polysift_paper.studies.pictures import TEXT_SIZE, name_axes, new_figure

Lines = dict[str, tuple[list[float], list[float]]]
"""The points of each line, by its name."""

LOOKS = (*STYLES, (INK, "X", "--"), (GREY, "h", "-."), (GREY, "*", ":"))

WIDTH, HEIGHT, LINE, LETTER = 4.2, 3.2, 0.2, 0.085
"""Inches of a panel, and of a line and a letter of the legend below all."""

DETAILED_TICKS_RATIO = 100.0
"""Up to this ratio of its ends an axis has ticks at 1, 2 and 5, else at powers of ten."""

OUTLIER_FACTOR = 3.0
"""Cut off is what is so many times as far below the best as the median is."""


def lines_of(rows: Sequence[Row], x: str, names: Mapping[str, str]) -> Lines:
    """Return entries of rows as lines over another entry."""
    return {
        label: ([row[x] for row in rows], [row[name] for row in rows])
        for name, label in names.items()
    }


def curves(rows: Sequence[Row]) -> Lines:
    """Return a line for each system: the test accuracy of its models over their seconds."""
    lines: Lines = {}
    for row in rows:
        if "seconds" in row:
            x, y = lines.setdefault(row["title"], ([], []))
            x.append(row["seconds"])
            y.append(100 * row["accuracy"])
    return lines


def panels(
    content: Mapping[str, Lines], across: Sequence[str], up: str, *, log: bool = True
) -> Any:
    """Draw a panel for each title, two side by side, with one legend; a name has one look in all.

    Parameters
    ----------
    content : mapping
        The lines of each panel by its title.
    across : sequence of str
        The name of each panel's axis across.
    up : str
        The name of the axis upwards.
    log : bool, default=True
        Whether that is logarithmic too; if not, what is far below the rest is cut off.
    """
    names = list(dict.fromkeys(name for lines in content.values() for name in lines))
    columns = min(2, len(content))
    rows = -(-len(content) // columns)
    across_legend = max(1, int(WIDTH * columns / (0.6 + LETTER * max(map(len, names)))))
    height = HEIGHT * rows + LINE * (1 - (-len(names) // across_legend))
    figure, axes = new_figure(rows, columns, width=WIDTH * columns, height=height)
    flat = list(axes.flat) if rows * columns > 1 else [axes]
    for ax in flat[len(content) :]:
        ax.set_axis_off()
    handles: dict[str, Any] = {}
    for ax, title, label in zip(flat, content, across, strict=False):
        for name, (x, y) in content[title].items():
            colour, marker, dash = LOOKS[names.index(name) % len(LOOKS)]
            handles[name] = ax.plot(
                x, y, color=colour, marker=marker, linestyle=dash, markersize=4.5, label=name
            )[0]
        _scale(ax.xaxis)
        if log:
            _scale(ax.yaxis)
        else:
            _cut(ax, [value for _, y in content[title].values() for value in y])
        name_axes(ax, label, up, title)
    figure.legend(
        handles=[handles[name] for name in names],
        loc="outside lower center",
        ncols=min(len(names), across_legend),
        fontsize=TEXT_SIZE,
        frameon=False,
    )
    return figure


def _scale(axis: Any) -> None:
    """Make an axis logarithmic, with ticks that leave room for one another."""
    ticker = load_matplotlib("ticker")
    (axis.axes.set_xscale if axis.axis_name == "x" else axis.axes.set_yscale)("log")
    low, high = sorted(axis.get_view_interval())
    few = high < DETAILED_TICKS_RATIO * low
    axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5) if few else (1,), numticks=12))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: number_text(value)))
    axis.set_minor_formatter(ticker.NullFormatter())


def _cut(ax: Any, values: Sequence[float]) -> None:
    """Keep the worst from pressing all others together."""
    top, middle = float(np.max(values)), float(np.median(values))
    low = max(float(np.min(values)), top - OUTLIER_FACTOR * (top - middle))
    edge = 0.06 * (top - low) or 0.5
    ax.set_ylim(low - edge, top + edge)
