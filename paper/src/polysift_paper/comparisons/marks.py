"""What the pictures of a comparison share: colours, markers, their legend, and a scale for shares.

Colours can be told apart by all eyes; where they mean data sets, markers mean methods.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polysift.plots.base import GREY, INK, load_matplotlib
from polysift_paper.comparisons.comparison import data_title, method_title
from polysift_paper.studies.pictures import TEXT_SIZE

BLUE, RED, SKY, GREEN, ORANGE, PURPLE = (
    "#0072B2",
    "#D55E00",
    "#56B4E9",
    "#009E73",
    "#E69F00",
    "#CC79A7",
)

SET_COLOURS = ("#332288", ORANGE, "#44AA99", RED, "#88CCEE", "#117733", PURPLE, "#882255", GREY)

LOOKS = {
    "svm_rbf": ("o", SKY),
    "svm_poly": ("s", SKY),
    "linear_svm": ("<", GREEN),
    "l1_svm": (">", GREEN),
    "random_forest": ("^", ORANGE),
    "prox_pfgm": ("X", PURPLE),
    "falkon": ("D", GREY),
    "rr_fourier": ("v", GREY),
    "tensor_sketch": ("P", GREY),
    "fpc": ("*", BLUE),
    "polysift": ("*", RED),
    "polysift_auc": ("p", RED),
    "lightgbm": ("h", ORANGE),
}
"""The marker of each method, and its colour where colours tell methods apart."""

OTHER = ("d", INK)

EDGE = {"edgecolor": "white", "linewidth": 0.5}

STRETCH = 0.02
"""Keeps a share of 1 in the picture, where the scale is logarithmic in what is missing to 1."""

SHARES = (1.0, 0.99, 0.98, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.5)

APART = 0.09
"""Ticks are so far from one another, as a share of the axis."""

FEW = 3
"""With fewer ticks one could not read the scale; then there are some at other places."""


def look(method: str) -> tuple[str, str]:
    """Return the marker and the colour of a method."""
    return LOOKS.get(method, OTHER)


def set_colours(sets: Sequence[str]) -> dict[str, str]:
    """Return a colour for each data set."""
    return {data: SET_COLOURS[i % len(SET_COLOURS)] for i, data in enumerate(sets)}


def mark(marker: str, colour: str, label: str, face: str | None = None) -> Any:
    """Return an entry of a legend."""
    return load_matplotlib("lines").Line2D(
        [],
        [],
        color=colour,
        marker=marker,
        markerfacecolor=face or colour,
        markersize=11 if marker == "*" else 7,
        linestyle="",
        label=label,
    )


def legend_below(drawing: Any, marks: Sequence[Any], columns: int) -> None:
    """Name what is drawn, below all panels."""
    if marks:
        drawing.legend(
            handles=marks,
            loc="outside lower center",
            ncols=columns,
            fontsize=TEXT_SIZE,
            frameon=False,
            columnspacing=1.5,
            handletextpad=0.3,
        )


def legend_of_sets(drawing: Any, sets: Sequence[str], methods: Sequence[str]) -> None:
    """Name the colours of data sets and the markers of methods, below all panels."""
    colours = set_colours(sets)
    marks = [mark("o", colours[data], data_title(data)) for data in sets]
    marks += [mark(look(method)[0], INK, method_title(method)) for method in methods]
    legend_below(drawing, marks, 7)


def empty(ax: Any) -> None:
    """Say that there is nothing to be seen."""
    ax.text(0.5, 0.5, "no figures", transform=ax.transAxes, ha="center", color=GREY)
    ax.set_xticks([])
    ax.set_yticks([])


def _forward(share: Any) -> Any:
    return -np.log(np.maximum(1 + STRETCH - np.asarray(share, dtype=float), STRETCH / 100))


def _inverse(place: Any) -> Any:
    return 1 + STRETCH - np.exp(-np.asarray(place, dtype=float))


def _ticks(ends: tuple[float, float], shares: Sequence[float], apart: float) -> list[float]:
    """Return the shares in sight that leave room for one another."""
    least = apart * (_forward(ends[1]) - _forward(ends[0]))
    found: list[float] = []
    for share in shares:
        inside = ends[0] <= share <= ends[1]
        if inside and (not found or _forward(found[-1]) - _forward(share) >= least):
            found.append(round(share, 3))
    return found


def partition(ax: Any, shares: Sequence[float], *, percent: bool) -> None:
    """Give both axes one scale that spreads what is close to 1, and draw y = x."""
    first, last = _forward(min(shares)), _forward(max(shares))
    edge = 0.05 * (last - first) + 0.03
    ends = _inverse(first - edge), _inverse(last + edge)
    ticks = _ticks(ends, SHARES, APART)
    if len(ticks) < FEW:
        ticks = _ticks(ends, [1 - step / 200 for step in range(101)], 2 * APART)
    labels = [f"{100 * share:g}" if percent else f"{share:g}" for share in ticks]
    kinds = load_matplotlib("ticker")
    ax.set_xscale("function", functions=(_forward, _inverse))
    ax.set_yscale("function", functions=(_forward, _inverse))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(kinds.FixedLocator(ticks))
        axis.set_major_formatter(kinds.FixedFormatter(labels))
        axis.set_minor_locator(kinds.NullLocator())
    ax.plot(ends, ends, color=GREY, linestyle="--", linewidth=1.0, zorder=1)
    ax.set_xlim(*ends)
    ax.set_ylim(*ends)
    ax.set_aspect("equal")
