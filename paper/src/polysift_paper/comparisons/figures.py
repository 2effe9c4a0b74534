"""The figures of a comparison: against each rival, against time, and against the paper's.

Colours can be distinguished by all readers; where they mean data sets, markers mean methods.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polysift.plots.base import GREY, INK, load_matplotlib
from polysift_paper.comparisons.comparison import FPC_ROWS, Picture, data_title, method_title
from polysift_paper.comparisons.printed import SYSTEMS, printed
from polysift_paper.comparisons.share_scale import set_share_scale
from polysift_paper.comparisons.summary import Lines, by_pair, figure, methods_of, sets_of
from polysift_paper.comparisons.tables import signed
from polysift_paper.studies.pictures import HEIGHT, TEXT_SIZE, WIDTH, name_axes, new_figure
from polysift_paper.studies.results import LOOK, drawn
from polysift_paper.studies.study import Row

BLUE, RED, SKY, GREEN, ORANGE, PURPLE = (
    "#0072B2",
    "#D55E00",
    "#56B4E9",
    "#009E73",
    "#E69F00",
    "#CC79A7",
)

SET_COLOURS = ("#332288", ORANGE, "#44AA99", RED, "#88CCEE", "#117733", PURPLE, "#882255", GREY)

METHOD_LOOKS = {
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
    "fpc_demo": ("*", GREEN),
    "fpc_print": ("*", PURPLE),
    "polysift": ("*", RED),
    "polysift_auc": ("p", RED),
    "polysift_plain": ("H", RED),
    "lightgbm": ("h", ORANGE),
}
"""The marker of each method, and its colour where colours tell methods apart."""

DEFAULT_LOOK = ("d", INK)

EDGE = {"edgecolor": "white", "linewidth": 0.5}

NAMES = {"accuracy": "accuracy (%)", "auc": "AUC"}

OUR_PAIRS = (("fpc", "fpc"), ("polysift", "polysift_auc"))
"""Whose accuracy, and whose AUC, is set against those of the rivals."""

TICKS = (0, 2, 4, 10, 100, 1000)

LINEAR_DEVIATIONS = 4.0
"""Up to so many standard deviations the scale is linear, beyond them logarithmic."""


PANEL_COLUMNS = 3

EMPHASISED = ("fpc", "polysift")

OUTLIER_FACTOR = 4.0
"""A method so many times as far below the best as the median is left out."""

MIN_SPAN_POINTS = 0.4
"""The least span of a panel, in points of accuracy, before anything is left out."""


def look(method: str) -> tuple[str, str]:
    """Return the marker and the colour of a method."""
    return METHOD_LOOKS.get(method, DEFAULT_LOOK)


def set_colours(sets: Sequence[str]) -> dict[str, str]:
    """Return a colour for each data set."""
    return {data: SET_COLOURS[i % len(SET_COLOURS)] for i, data in enumerate(sets)}


def legend_entry(marker: str, colour: str, label: str, face: str | None = None) -> Any:
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


def legend_below(drawing: Any, entries: Sequence[Any], columns: int) -> None:
    """Draw a legend below all panels."""
    if entries:
        drawing.legend(
            handles=entries,
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
    entries = [legend_entry("o", colours[data], data_title(data)) for data in sets]
    entries += [legend_entry(look(method)[0], INK, method_title(method)) for method in methods]
    legend_below(drawing, entries, 7)


def empty(ax: Any) -> None:
    """Write that there is nothing to show."""
    ax.text(0.5, 0.5, "no figures", transform=ax.transAxes, ha="center", color=GREY)
    ax.set_xticks([])
    ax.set_yticks([])


def draw_scatter(lines: Lines) -> Any:
    """Draw the paper's Fig. 13, for FPC and for polysift, as far as they were run."""
    methods = methods_of(lines)
    rivals = [one for one in methods if one in SYSTEMS and one != "fpc"]
    pairs = [
        pair
        for pair in OUR_PAIRS
        if any(one in methods for one in pair)
        and (rivals or ("fpc" in methods and "fpc" not in pair))
    ]
    if not pairs or not sets_of(lines, "accuracy"):
        return None
    side = 1.3 * WIDTH
    drawing, panels = new_figure(len(pairs), 2, width=2 * side, height=len(pairs) * side + 0.4)
    for row, ours in zip(np.reshape(panels, (-1, 2)), pairs, strict=True):
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
        set_share_scale(ax, shown, percent=kind == "accuracy")
    else:
        empty(ax)


def _points(
    ax: Any, points: Sequence[tuple[float, float, str]], method: str, size: float, **style: Any
) -> list[float]:
    """Draw points with the marker of a method, and return their coordinates on both axes."""
    if not points:
        return []
    x, y, colours = zip(*points, strict=True)
    ax.scatter(x, y, s=size, c=list(colours), marker=look(method)[0], zorder=3, **style)
    return [*x, *y]


def draw_against_paper(lines: Lines) -> Any:
    """Draw our accuracy against the paper's, and how our FPC differs from the paper's."""
    sets = [
        data
        for data in sets_of(lines, "accuracy")
        if any(printed("accuracy", data, system) for system in SYSTEMS)
    ]
    if not sets:
        return None
    drawing, (left, right) = new_figure(1, 2, width=3 * WIDTH, height=1.75 * HEIGHT + 0.5)
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
        set_share_scale(left, shown, percent=True)
    else:
        empty(left)
    _differences_panel(right, lines, sets)
    legend_of_sets(drawing, sets, systems)
    return drawing


def _differences_panel(ax: Any, lines: Lines, sets: Sequence[str]) -> None:
    """Draw how our FPC differs from the paper's, set by set and in each of its settings."""
    scaled = any((one := printed("accuracy", data, "fpc")) and one.std for data in sets)
    rows = [row for row in FPC_ROWS if any((data, row) in lines for data in sets)]
    most = 0.0
    for at, row in enumerate(rows):
        label, colour = method_title(row), look(row)[1]
        for line, data in enumerate(sets):
            paper, mine = printed("accuracy", data, row), figure(lines, data, row, "accuracy")
            if paper is None or mine is None:
                continue
            change = mine - paper.mean
            # Two of these are two standard deviations and half of the last printed digit.
            x = change / ((paper.std or 0.0) + paper.unit / 4) if scaled else 100 * change
            most = max(most, abs(x))
            spot = x, line + 0.26 * (at - (len(rows) - 1) / 2)
            ax.scatter(*spot, s=40, facecolor=colour, edgecolor="white", zorder=3, label=label)
            _beside(ax, spot, signed("accuracy", change))
            label = ""  # one entry of the legend is enough
    what = "the paper's standard deviations" if scaled else "points of accuracy"
    name_axes(ax, f"ours minus the paper's ({what})", "", "Accuracy of FPC")
    if not ax.collections:
        empty(ax)
        return
    ax.set_yticks(range(len(sets)), [data_title(data) for data in sets])
    ax.set_ylim(len(sets) - 0.4, -0.6)
    ax.axvline(0.0, color=GREY, linestyle="--", linewidth=1.0)
    ax.legend(fontsize=TEXT_SIZE, loc="best", framealpha=1.0)
    if scaled:
        ax.axvspan(-2, 2, color=BLUE, alpha=0.1, linewidth=0)
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
    share = most / LINEAR_DEVIATIONS
    position = decades * share if share <= 1 else decades + np.log10(share)
    position *= 1.45
    end = LINEAR_DEVIATIONS * (
        position / decades if position <= decades else 10 ** (position - decades)
    )
    ax.set_xscale("symlog", linthresh=LINEAR_DEVIATIONS, linscale=decades)
    ax.set_xlim(-end, end)
    kept = [tick for tick in TICKS if tick <= end]
    ticks = [*(-tick for tick in reversed(kept[1:])), *kept]
    ax.set_xticks(ticks, [str(tick).replace("-", "\u2212") for tick in ticks])
    ax.xaxis.set_minor_locator(load_matplotlib("ticker").NullLocator())


def draw_tradeoff(lines: Lines) -> Any:
    """Draw the accuracy of each method against its time, of the final fit and of all training."""
    sets, methods = sets_of(lines, "accuracy"), methods_of(lines)
    columns = min(PANEL_COLUMNS, max(1, len(sets)))
    count = max(1, -(-len(sets) // columns))
    width = columns * WIDTH if columns > 1 else 1.8 * WIDTH
    drawing, panels = new_figure(count, columns, width=width, height=count * HEIGHT + 0.8)
    axes = list(np.atleast_1d(panels).flat)
    for ax in axes[len(sets) :]:
        ax.set_axis_off()
    for ax, data in zip(axes, sets, strict=False):
        _tradeoff_panel(ax, lines, data, methods)
    entries = [legend_entry(*look(method), method_title(method)) for method in methods]
    if entries:
        entries.append(legend_entry("o", GREY, "final fit alone", face="white"))
        entries.append(legend_entry("o", GREY, "with selection"))
    legend_below(drawing, entries, {1: 4, 2: 4, 3: 6}[columns])
    return drawing


def _tradeoff_panel(ax: Any, lines: Lines, data: str, methods: Sequence[str]) -> None:
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
    _leave_out_outliers(ax, {method: 100 * line["accuracy"] for method, line in there})


def _leave_out_outliers(ax: Any, values: dict[str, float]) -> None:
    """Limit the axis, so that a poor rival does not squeeze the others, and count the outliers."""
    top = max(values.values())
    low = top - max(
        OUTLIER_FACTOR * (top - float(np.median(list(values.values())))), MIN_SPAN_POINTS
    )
    # What the picture is about is in it, however far below it is.
    low = min([low, *(value for method, value in values.items() if method in EMPHASISED)])
    bottom = min(value for value in values.values() if value >= low)
    edge = 0.08 * (top - bottom) + 0.02 if top > bottom else MIN_SPAN_POINTS
    far = sum(value < low for value in values.values())
    ax.set_ylim(bottom - (2 if far else 1) * edge, top + edge)  # the text is below all marks
    if far:
        text = f"{far} further below"
        ax.text(0.98, 0.03, text, transform=ax.transAxes, ha="right", fontsize=9, color=GREY)


PICTURES: dict[str, tuple[Callable[[Lines], Any], str, str, str]] = {
    "scatter": (
        draw_scatter,
        "Against each rival",
        "Accuracy and AUC of FPC and of polysift against those of each rival",
        "Fig. 13 of the paper with the figures of these runs: FPC, and below it polysift where it "
        "was run (tuned for accuracy on the left, for AUC on the right). Colours are data sets, "
        "markers are rivals; above the dashed line y = x the rival is beaten. Scales are stretched "
        "toward a perfect classifier.",
    ),
    "tradeoff": (
        draw_tradeoff,
        "Accuracy against time",
        "Accuracy against training time of all methods, one panel for each data set",
        "Mean accuracy against mean time. Filled: selection and final fit together; hollow: the "
        "final fit alone. The best place is at the top left. A note in a corner counts methods "
        "that are too far below to be shown. Times by the wall clock, which the tables mark, are "
        "long beside the others.",
    ),
    "paper": (
        draw_against_paper,
        "Our figures against the paper's",
        "Our accuracy against the accuracy that the paper prints, and our FPC against the paper's",
        "Left: all systems of the paper, with y = x dashed; stars are FPC as the text has it. "
        "Right: our FPC in each of its settings minus the paper's, in the paper's standard "
        "deviations where it prints them (the last printed digit is allowed for); in the band we "
        "count it as the same. Beside each mark stands the difference in points of accuracy.",
    ),
}
"""By the name of the file: the painter, a heading, the words for those who cannot see it, and how
to read it."""


def draw_pictures(summary: Sequence[Row]) -> dict[str, Picture]:
    """Draw all pictures of a comparison.

    Parameters
    ----------
    summary : sequence of dict
        The lines; where a set has no figures its panel is empty.

    Returns
    -------
    dict of Picture
        By the names of their files: "scatter", "tradeoff" and "paper", as far as there is something
        to show.
    """
    lines, found = by_pair(summary), {}
    for name, (paint, title, words, caption) in PICTURES.items():
        with load_matplotlib("style").context(["default", LOOK]):
            drawing = paint(lines)
            if drawing is None:
                continue
            svg = drawn(drawing, "svg")
            drawing.set_layout_engine("none")  # all has its place now; to find it takes seconds
            png = drawn(drawing, "png")
        size = tuple(drawing.get_size_inches())
        found[name] = Picture(svg, png, size, title, words, caption)
    return found
