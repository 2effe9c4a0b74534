"""What displays share: matplotlib, imported late, and one look.

Colours are those of Okabe and Ito, which all eyes can tell apart; for print each line has a marker
and a dash of its own. matplotlib's settings stay as they are.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Okabe and Ito's, but for the yellow, which is too light for a line on white."""

MARKERS = ("o", "s", "^", "D", "v", "P")

DASHES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)), (0, (8, 2)))

STYLES = tuple(zip(COLOURS, MARKERS, DASHES, strict=True))

INK, GREY = "#333333", "#777777"

DECADE = 10.0

FEW_POINTS = 30
"""Up to so many points of a line get markers; beyond they would hide it."""

WHOLE_NUMBERS = {"integer": True, "steps": [1, 2, 5, 10], "min_n_ticks": 1}
"""Ticks at whole numbers; where only one is in sight, there alone."""

LEAST_GAP = 0.05
"""The least distance of two ticks, as a share of the axis, at which their labels stay apart."""


def load_matplotlib(module: str) -> Any:
    """Return a module of matplotlib, or say how to install it."""
    try:
        return import_module(f"matplotlib.{module}")
    except ImportError as error:
        raise ImportError(
            "Displays need matplotlib. Install it with: pip install 'polysift[plots]'"
        ) from error


def axes_for(ax: Any, figsize: tuple[float, float] | None = None) -> Any:
    """Return the given axes, or those of a new figure."""
    if ax is not None:
        return ax
    return load_matplotlib("pyplot").subplots(layout="constrained", figsize=figsize)[1]


def dress(ax: Any) -> None:
    """Give axes the look that all displays share."""
    ax.grid(True, color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def number_text(value: float) -> str:
    """Return a number as short as people write it: 1e-6, not 1e-06."""
    return f"{value:g}".replace("e-0", "e-")


def ticks_at(ax: Any, values: list[float], *, may_be_log: bool) -> None:
    """Put the ticks of x at ascending values; where labels would meet, at round numbers."""
    ticker, axis = load_matplotlib("ticker"), ax.xaxis
    logarithmic = may_be_log and max(values) > DECADE * min(values)
    if logarithmic:
        ax.set_xscale("log")
    places = np.log(values) if logarithmic else np.array(values, dtype=float)
    if len(values) == 1 or np.diff(places).min() >= LEAST_GAP * np.ptp(places):
        axis.set_major_locator(ticker.FixedLocator(values))
    elif logarithmic:
        axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    else:
        axis.set_major_locator(ticker.MaxNLocator(**WHOLE_NUMBERS))
    axis.set_major_formatter(ticker.StrMethodFormatter("{x:g}"))
    axis.set_minor_locator(ticker.NullLocator())
