"""What the pictures of the studies share: one size of text, one style per line, bands for spread.

All text is of 10 points at the size at which the page shows the picture. Each line has its own
colour, marker and dash, so that it differs from the others in print too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polysift.plots.base import MAX_MARKED_POINTS, STYLES, dress, load_matplotlib

TEXT_SIZE = 10.0

WIDTH, HEIGHT = 3.6, 2.9
"""The size of one panel in inches; two of them fill a page of print."""

BAND = 0.15
"""How opaque the band about a line is."""


def new_figure(
    rows: int = 1, columns: int = 1, *, width: float | None = None, height: float | None = None
) -> tuple[Any, Any]:
    """Make a figure with a grid of dressed axes, without touching pyplot's state.

    Parameters
    ----------
    rows, columns : int, default=1
        The grid.
    width, height : float, optional
        The size of the whole figure in inches; by default that of the panels.

    Returns
    -------
    figure : matplotlib.figure.Figure
    axes : matplotlib.axes.Axes or ndarray of them
        One, or an array of shape (columns,), (rows,) or (rows, columns), as of ``subplots``.
    """
    wide = 1.4 * WIDTH if columns == 1 else columns * WIDTH
    size = (width or wide, height or rows * HEIGHT)
    figure = load_matplotlib("figure").Figure(figsize=size, layout="constrained")
    axes = figure.subplots(rows, columns)
    for ax in np.atleast_1d(axes).flat:
        dress(ax)
        ax.tick_params(labelsize=TEXT_SIZE)
    return figure, axes


def line(
    ax: Any,
    x: Sequence[float],
    mean: Sequence[float],
    spread: Sequence[float] | None = None,
    *,
    number: int,
    label: str | None = None,
) -> None:
    """Draw a line, and a light band of one spread on either side.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Where to.
    x, mean : sequences of float
        The points.
    spread : sequence of float, optional
        Half the height of the band, such as the standard deviation over the runs.
    number : int
        Which of the fixed styles (colour, marker and dash); the same thing has the same number in
        all panels of a picture.
    label : str, optional
        For the legend.
    """
    colour, marker, dash = STYLES[number % len(STYLES)]
    at, middle = np.asarray(x, dtype=float), np.asarray(mean, dtype=float)
    ax.plot(
        at,
        middle,
        color=colour,
        linestyle=dash,
        linewidth=1.5,
        marker=marker if len(at) <= MAX_MARKED_POINTS else None,
        markersize=4.5,
        label=label,
    )
    if spread is not None:
        half = np.asarray(spread, dtype=float)
        ax.fill_between(at, middle - half, middle + half, color=colour, alpha=BAND, linewidth=0)


def name_axes(ax: Any, x: str, y: str, title: str | None = None) -> None:
    """Name both axes, and the panel, in the common size of text."""
    ax.set_xlabel(x, fontsize=TEXT_SIZE)
    ax.set_ylabel(y, fontsize=TEXT_SIZE)
    if title is not None:
        ax.set_title(title, fontsize=TEXT_SIZE, loc="left")


def legend(ax: Any, **settings: Any) -> None:
    """Add a legend in the common style."""
    ax.legend(**{"fontsize": TEXT_SIZE, "frameon": True, "framealpha": 1.0, **settings})
