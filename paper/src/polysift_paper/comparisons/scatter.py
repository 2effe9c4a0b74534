"""Pictures with y = x: FPC and polysift against each rival, our figures against the paper's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polysift.plots.base import GREY, INK, load_matplotlib
from polysift_paper.comparisons.comparison import data_title, method_title
from polysift_paper.comparisons.marks import (
    BLUE,
    EDGE,
    empty,
    legend_of_sets,
    look,
    partition,
    set_colours,
)
from polysift_paper.comparisons.printed import SYSTEMS, printed
from polysift_paper.comparisons.summary import Lines, figure, methods_of, sets_of
from polysift_paper.comparisons.tables import signed
from polysift_paper.studies.pictures import HEIGHT, TEXT_SIZE, WIDTH, name_axes, new_figure

NAMES = {"accuracy": "accuracy (%)", "auc": "AUC"}

TICKS = (0, 2, 4, 10, 30, 100, 300, 1000)

LINEAR = 4.0
"""Up to so many standard deviations the scale is linear, beyond it is logarithmic."""


def draw_scatter(lines: Lines) -> Any:
    """Draw the paper's Fig. 13, for FPC and for polysift."""
    side = 1.3 * WIDTH
    drawing, panels = new_figure(2, 2, width=2 * side, height=2 * side + 0.4)
    rivals = [one for one in methods_of(lines) if one in SYSTEMS and one != "fpc"]
    for row, ours in zip(panels, (("fpc", "fpc"), ("polysift", "polysift_auc")), strict=True):
        for ax, kind, mine in zip(row, NAMES, ours, strict=True):
            _rivals_panel(ax, lines, kind, mine, [*rivals, *(["fpc"] if mine != "fpc" else [])])
    legend_of_sets(drawing, sets_of(lines, "accuracy"), [*rivals, "fpc"])
    return drawing


def _rivals_panel(ax: Any, lines: Lines, kind: str, mine: str, rivals: Sequence[str]) -> None:
    sets, shown = sets_of(lines, kind), []
    colours = set_colours(sets)
    for rival in rivals:
        points = [
            (x, y, colours[data])
            for data in sets
            if (x := figure(lines, data, rival, kind)) is not None
            and (y := figure(lines, data, mine, kind)) is not None
        ]
        shown += _points(ax, points, rival, size=80 if rival == "fpc" else 42, **EDGE)
    name = NAMES[kind]
    name_axes(ax, f"{name} of the rival", f"{name} of {method_title(mine)}")
    if shown:
        partition(ax, shown, percent=kind == "accuracy")
    else:
        empty(ax)


def _points(
    ax: Any, points: Sequence[tuple[float, float, str]], method: str, size: float, **style: Any
) -> list[float]:
    """Draw points with the marker of a method, and return their places on both axes."""
    if not points:
        return []
    x, y, colours = zip(*points, strict=True)
    ax.scatter(x, y, s=size, c=list(colours), marker=look(method)[0], zorder=3, **style)
    return [*x, *y]


def draw_against_paper(lines: Lines) -> Any:
    """Draw our accuracy against the paper's, and how our FPC differs from the paper's."""
    drawing, (left, right) = new_figure(1, 2, width=3 * WIDTH, height=1.75 * HEIGHT + 0.5)
    sets = [
        data
        for data in sets_of(lines, "accuracy")
        if any(printed("accuracy", data, system) for system in SYSTEMS)
    ]
    systems = [one for one in methods_of(lines) if one in SYSTEMS]
    colours, shown = set_colours(sets), []
    for system in systems:
        points = [
            (paper.mean, mine, colours[data])
            for data in sets
            if (paper := printed("accuracy", data, system)) is not None
            and (mine := figure(lines, data, system, "accuracy")) is not None
        ]
        style = {"edgecolor": INK, "linewidth": 0.6} if system == "fpc" else EDGE
        shown += _points(left, points, system, size=150 if system == "fpc" else 42, **style)
    name_axes(left, "accuracy in the paper (%)", "our accuracy (%)", "All systems")
    if shown:
        partition(left, shown, percent=True)
    else:
        empty(left)
    _differences_panel(right, lines, sets)
    legend_of_sets(drawing, sets, systems)
    return drawing


def _differences_panel(ax: Any, lines: Lines, sets: Sequence[str]) -> None:
    """Draw how our FPC differs from the paper's, set by set."""
    scaled = any((one := printed("accuracy", data, "fpc")) and one.std for data in sets)
    kinds = (
        {"accuracy": (-0.16, BLUE), "auc": (0.16, "white")} if scaled else {"accuracy": (0, BLUE)}
    )
    most = 0.0
    for kind, (shift, face) in kinds.items():
        label = NAMES[kind].removesuffix(" (%)")
        for place, data in enumerate(sets):
            paper, mine = printed(kind, data, "fpc"), figure(lines, data, "fpc", kind)
            if paper is None or mine is None:
                continue
            change = mine - paper.mean
            # Two of these are two standard deviations and half of the last printed digit.
            x = change / ((paper.std or 0.0) + paper.unit / 4) if scaled else 100 * change
            most = max(most, abs(x))
            spot = x, place + shift
            ax.scatter(*spot, s=45, facecolor=face, edgecolor=BLUE, zorder=3, label=label)
            _beside(ax, spot, signed(kind, change))
            label = ""  # one entry of the legend is enough
    what = "the paper's standard deviations" if scaled else "points of accuracy"
    name_axes(ax, f"our FPC minus the paper's ({what})", "", "FPC")
    if not ax.collections:
        empty(ax)
        return
    ax.set_yticks(range(len(sets)), [data_title(data) for data in sets])
    ax.set_ylim(len(sets) - 0.4, -0.6)
    ax.axvline(0.0, color=GREY, linestyle="--", linewidth=1.0)
    if scaled:
        ax.axvspan(-2, 2, color=BLUE, alpha=0.1, linewidth=0)
        ax.legend(fontsize=TEXT_SIZE, loc="best", framealpha=1.0)
        _widen(ax, max(most, 2.5))
    else:
        ax.set_xlim(-1.4 * (most or 1.0), 1.4 * (most or 1.0))


def _beside(ax: Any, spot: tuple[float, float], text: str) -> None:
    """Write a text on the outer side of a mark."""
    right = spot[0] >= 0
    ax.annotate(
        text,
        spot,
        (7 if right else -7, 0),
        textcoords="offset points",
        ha="left" if right else "right",
        va="center",
        fontsize=8,
    )


def _widen(ax: Any, most: float) -> None:
    """Make room for the texts beside the marks; large differences are drawn closer together."""
    decades = 2.0  # of the logarithmic part are as wide as the linear part on one side
    place = decades * most / LINEAR if most <= LINEAR else decades + np.log10(most / LINEAR)
    place *= 1.45
    end = LINEAR * (place / decades if place <= decades else 10 ** (place - decades))
    ax.set_xscale("symlog", linthresh=LINEAR, linscale=decades)
    ax.set_xlim(-end, end)
    kept = [tick for tick in TICKS if tick <= end]
    places = [*(-tick for tick in reversed(kept[1:])), *kept]
    ax.set_xticks(places, [str(tick).replace("-", "\u2212") for tick in places])
    ax.xaxis.set_minor_locator(load_matplotlib("ticker").NullLocator())
