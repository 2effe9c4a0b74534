"""The pictures of Appendix F: accuracy beside AUC, for all data sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polysift.plots.base import GREY, INK, STYLES
from polysift.runtime.types import FloatArray
from polysift_paper.comparisons.comparison import data_title
from polysift_paper.studies.averages import column, where
from polysift_paper.studies.centers import SCHEMES
from polysift_paper.studies.pictures import TEXT_SIZE, name_axes, new_figure
from polysift_paper.studies.study import Row

NINE_STYLES = (*STYLES, (INK, "X", "-"), ("#882255", "*", "--"), (GREY, "<", "-."))
"""One for each of the UCI data sets; the last three are as far from the others as they can be."""

PANELS = (
    ("accuracy_percent", "test accuracy (%)", "(a) Test accuracy", 100.0, 0.1),
    ("auc", "AUC", "(b) AUC", 1.0, 0.001),
)
"""Entry, axis, title, the best that can be, and what the scale adds to the distance from it."""

MISSING = (0.0, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7)
"""Where ticks are: so much below the best, as a share of it."""

TICKS_APART = {"x": 0.16, "y": 0.06}
"""The least distance of two ticks, as a share of the axis, at which their labels have room."""

PADDING = 0.05
"""The share of an axis that is free at either end."""

WIDTH_INCHES = 7.4

SCHEME_GAP = 0.24
"""How far from one another the schemes are drawn, where data sets are 1 apart."""


class NearBest:
    """A scale for figures that crowd below the best that can be.

    It is the logarithm of the distance from the best plus ``slack``, so that 98% and
    99% can be distinguished as well as 80% and 90%, and the best itself is in sight.
    """

    def __init__(self, best: float, slack: float) -> None:
        self.best, self.slack = best, slack

    def forward(self, values: Any) -> FloatArray:
        """Return where values are on the axis."""
        distance = self.best + self.slack - np.asarray(values, dtype=float)
        # matplotlib asks for values beyond the best too, and draws none of them.
        return -np.log(np.maximum(distance, 1e-3 * self.slack))

    def backward(self, positions: Any) -> FloatArray:
        """Return the values at positions of the axis."""
        return self.best + self.slack - np.exp(-np.asarray(positions, dtype=float))

    def apply(self, ax: Any, which: str, values: Sequence[float]) -> None:
        """Give the axis "x" or "y" this scale, limits about some values, and ticks in between."""
        positions = self.forward(values)
        room = max(PADDING * float(np.ptp(positions)), 0.02)
        start, end = float(positions.min()) - room, float(positions.max()) + room
        ticks: list[float] = []
        last = np.inf
        for share in MISSING:
            tick = self.best * (1 - share)
            position = float(self.forward(tick))
            if start <= position <= end and last - position >= TICKS_APART[which] * (end - start):
                ticks.append(tick)
                last = position
        functions = self.forward, self.backward
        set_scale, set_ticks, set_limits = (
            getattr(ax, f"set_{which}{part}") for part in ("scale", "ticks", "lim")
        )
        set_scale("function", functions=functions)
        if len(ticks) > 1:  # else the values are close, and matplotlib's own ticks will do
            set_ticks(ticks, [f"{tick:.4g}" for tick in ticks])
        set_limits(*self.backward([start, end]))


def draw_values(name: str, summary: list[Row], _rows: list[Row]) -> Any:
    """Draw a line over a parameter for each data set, without bands: nine would hide all.

    Parameters
    ----------
    name : str
        The parameter, "alpha" or "beta".
    summary : list of dict
        Lines of the study.
    _rows : list of dict
        Not needed.

    Returns
    -------
    matplotlib.figure.Figure
        Of two panels.
    """
    figure, axes = new_figure(1, 2, width=WIDTH_INCHES, height=4.6)
    data = list(dict.fromkeys(column(summary, "data")))
    for ax, (kind, label, title, best, slack) in zip(axes, PANELS, strict=True):
        for number, one in enumerate(data):
            lines = where(summary, data=one)
            colour, marker, dash = NINE_STYLES[number % len(NINE_STYLES)]
            ax.plot(
                column(lines, name),
                column(lines, kind),
                color=colour,
                linestyle=dash,
                linewidth=1.4,
                marker=marker,
                markersize=5.5,
                label=data_title(one),
            )
        ax.axvline(
            1.0, color=INK, linewidth=1.0, linestyle=":", zorder=1, label="the paper's choice"
        )
        ax.set_xscale("log")
        ax.set_xticks(sorted(set(column(summary, name))))
        ax.minorticks_off()
        NearBest(best, slack).apply(ax, "y", column(summary, kind))
        name_axes(ax, rf"$\{name}$", label, title)
    _legend_below(figure, axes[0], ncols=5, handlelength=2.6)
    return figure


def draw_points(summary: list[Row], _rows: list[Row]) -> Any:
    """Draw a point with its deviation for each data set and scheme of centers.

    Parameters
    ----------
    summary : list of dict
        Lines of the study.
    _rows : list of dict
        Not needed.

    Returns
    -------
    matplotlib.figure.Figure
        Of two panels.
    """
    data = list(dict.fromkeys(column(summary, "data")))
    figure, axes = new_figure(1, 2, width=WIDTH_INCHES, height=1.5 + 0.34 * len(data))
    positions = np.arange(len(data))
    for ax, (kind, label, title, best, slack) in zip(axes, PANELS, strict=True):
        reached: list[float] = []
        for number, (scheme, words) in enumerate(SCHEMES.items()):
            lines = where(summary, centers=scheme)
            mean = np.array(column(lines, kind))
            half = np.array(column(lines, f"{kind}_spread"))
            above = np.clip(best - mean, 0.0, half)  # a deviation does not pass what is possible
            colour, marker, _ = STYLES[number]
            ax.errorbar(
                mean,
                positions + SCHEME_GAP * (number - 1),
                xerr=(half, above),
                color=colour,
                marker=marker,
                markersize=5,
                linestyle="none",
                elinewidth=1.2,
                label=words,
            )
            reached += [*(mean - half), *(mean + above)]
        NearBest(best, slack).apply(ax, "x", reached)
        first = ax is axes[0]
        ax.set_yticks(positions, [data_title(one) if first else "" for one in data])
        ax.set_ylim(len(data) - 0.5, -0.5)  # the first on top
        ax.tick_params(axis="y", length=0)
        name_axes(ax, label, "", title)
    _legend_below(figure, axes[0], ncols=3, handlelength=1.2)
    return figure


def _legend_below(figure: Any, ax: Any, **settings: Any) -> None:
    """Put the legend of one panel, which is that of both, below them."""
    figure.legend(
        *ax.get_legend_handles_labels(),
        loc="outside lower center",
        fontsize=TEXT_SIZE,
        frameon=False,
        columnspacing=1.2,
        **settings,
    )
