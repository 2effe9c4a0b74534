"""The picture of the comparison on tables: by how much polysift is ahead of LightGBM on each."""

from __future__ import annotations

from typing import Any

import numpy as np

import needs_paper  # noqa: F401 - before imports from polysift_paper
from harness.table_methods import METHODS, OURS, REFERENCE
from harness.table_summary import ACCURACY, Cells, verdict
from polysift.plots.base import COLOURS, GREY, INK
from polysift_paper.studies.pictures import TEXT_SIZE, legend, name_axes, new_figure

WIDTH, LINE, EDGES = 7.0, 0.24, 1.1
"""Inches: the width, the height of a table's line, and that of all else."""

LOOKS = {"win": (COLOURS[0], "o"), "tie": (GREY, "D"), "loss": (COLOURS[1], "s")}
PLURALS = {"win": "wins", "tie": "ties", "loss": "losses"}


def gaps(cells: Cells) -> Any:
    """Draw the differences of accuracy in points, table by table, the largest on top."""
    found = _differences(cells)
    order = list(reversed(found))
    figure, ax = new_figure(width=WIDTH, height=LINE * len(order) + EDGES)
    ax.axvline(0.0, color=INK, linewidth=1.0)
    for place, table in enumerate(order):
        _dots(ax, place, found[table])
    ax.set_yticks(range(len(order)), order, fontsize=TEXT_SIZE)
    ax.set_ylim(-0.7, len(order) - 0.3)
    ax.grid(visible=False, axis="y")
    name_axes(ax, f"accuracy minus that of {METHODS[REFERENCE].title} (points)", "")
    handles, labels = ax.get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    legend(ax, handles=[once[word] for word in LOOKS if word in once], loc="lower right")
    return figure


def overview(cells: Cells) -> Any:
    """Draw the same as bars side by side, without the names of the tables: for a landing page."""
    means = [(float(np.mean(v)), verdict(v)) for v in _differences(cells).values()]
    figure, ax = new_figure(width=5.2, height=4.0)
    for word, (colour, _) in LOOKS.items():
        places = [k for k, (_, found) in enumerate(means) if found == word]
        heights = [means[k][0] for k in places]
        label = f"{len(places)} {PLURALS[word]}"
        ax.bar(places, heights, width=0.8, color=colour, label=label)
        ax.plot(places, heights, ".", color=colour, markersize=4)  # a bar of no height shows
    ax.axhline(0.0, color=INK, linewidth=1.0)
    ax.set_xticks([])
    ax.grid(visible=False, axis="x")
    title = METHODS[REFERENCE].title
    name_axes(ax, f"{len(means)} tables", f"accuracy minus that of {title} (points)")
    legend(ax, loc="upper right")
    return figure


def _differences(cells: Cells) -> dict[str, np.ndarray]:
    """Return the differences of accuracy in points by table, the largest mean first."""
    found = {
        table: values
        for table in cells.tables
        if len(values := 100 * cells.differences(table, OURS, REFERENCE, ACCURACY))
    }
    return dict(sorted(found.items(), key=lambda entry: -float(np.mean(entry[1]))))


def _dots(ax: Any, place: int, values: np.ndarray) -> None:
    """Draw the splits of a table as small dots on a line, and their mean as a large one."""
    word = verdict(values)
    colour, marker = LOOKS[word]
    ax.plot([values.min(), values.max()], [place, place], color=colour, linewidth=1.5, alpha=0.5)
    ax.plot(values, np.full(len(values), place), "|", color=colour, markersize=6, alpha=0.8)
    ax.plot(values.mean(), place, marker, color=colour, markersize=6, linestyle="", label=word)
