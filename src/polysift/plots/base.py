"""The base class of the displays, and their common style.

The colours are those of Okabe and Ito, which colour-blind readers can tell apart; for print every
line also has its own marker and dash. matplotlib is imported when a display is drawn, and its
settings are left as they are.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Self

import numpy as np

from polysift.estimators.classifier import FPCClassifier
from polysift.estimators.search import classifier_of

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Okabe and Ito's, but for the yellow, which is too light for a line on white."""

MARKERS = ("o", "s", "^", "D", "v", "P")

DASHES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)), (0, (8, 2)))

STYLES = tuple(zip(COLOURS, MARKERS, DASHES, strict=True))

INK, GREY = "#333333", "#777777"

LOG_SCALE_RATIO = 10.0
"""Values whose largest is more than this many times their smallest get a log scale."""

MAX_MARKED_POINTS = 30
"""Lines of more points have no markers, which would hide the line."""

WHOLE_NUMBERS = {"integer": True, "steps": [1, 2, 5, 10], "min_n_ticks": 1}
"""Arguments of ``MaxNLocator`` for ticks at whole numbers, also where only one is in view."""

MIN_TICK_DISTANCE_SHARE = 0.05
"""The least distance of two ticks whose labels do not overlap, as a share of the axis."""


class Display:
    """Base class of the displays, in the manner of scikit-learn's.

    A subclass stores in ``__init__`` what it shows, computes that in ``from_estimator``, and draws
    it in ``_draw``.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes that were drawn on.
    figure_ : matplotlib Figure
        The figure of these axes.
    """

    ax_: Any
    figure_: Any
    _own_figure: bool

    def plot(self, ax: Any = None) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            The axes to draw on; None makes a new figure.

        Returns
        -------
        Self
            The display.
        """
        self._check()
        self._own_figure = ax is None
        if ax is None:
            pyplot = load_matplotlib("pyplot")
            ax = pyplot.subplots(layout="constrained", figsize=self._figsize())[1]
        self.ax_, self.figure_ = ax, ax.figure
        dress(ax)
        self._draw(ax)
        return self

    def _draw(self, ax: Any) -> None:
        """Draw on axes that have the common style."""
        raise NotImplementedError

    def _check(self) -> None:
        """Raise an error if there is nothing to draw, before a figure is made."""

    def _figsize(self) -> tuple[float, float] | None:
        """Return the size of a new figure in inches; None is matplotlib's default."""
        return None

    @classmethod
    def _classifier(cls, estimator: Any) -> FPCClassifier:
        """Return the fitted classifier to draw: the given one, or the best one of a search."""
        return classifier_of(f"{cls.__name__} draws", estimator)


def load_matplotlib(module: str) -> Any:
    """Return a module of matplotlib, or raise an error that says how to install it."""
    try:
        return import_module(f"matplotlib.{module}")
    except ImportError as error:
        raise ImportError(
            "Displays need matplotlib. Install it with: pip install 'polysift[plots]'"
        ) from error


def dress(ax: Any) -> None:
    """Give axes the common style of the displays: a light grid, no spines at top and right."""
    ax.grid(True, color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def number_text(value: float) -> str:
    """Return a number in its shortest usual form: 1e-6, not 1e-06."""
    return f"{value:g}".replace("e-0", "e-")


def ticks_at(ax: Any, values: list[float], *, may_be_log: bool) -> None:
    """Put the ticks of x at ascending values, or at round numbers where labels would overlap."""
    ticker, axis = load_matplotlib("ticker"), ax.xaxis
    logarithmic = may_be_log and max(values) > LOG_SCALE_RATIO * min(values)
    if logarithmic:
        ax.set_xscale("log")
    positions = np.log(values) if logarithmic else np.array(values, dtype=float)
    if len(values) == 1 or np.diff(positions).min() >= MIN_TICK_DISTANCE_SHARE * np.ptp(positions):
        axis.set_major_locator(ticker.FixedLocator(values))
    elif logarithmic:
        axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    else:
        axis.set_major_locator(ticker.MaxNLocator(**WHOLE_NUMBERS))
    axis.set_major_formatter(ticker.StrMethodFormatter("{x:g}"))
    axis.set_minor_locator(ticker.NullLocator())
