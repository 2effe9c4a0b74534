"""A scale of accuracies and areas that spreads what is close to a perfect classifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polysift.plots.base import GREY, load_matplotlib

SCALE_OFFSET = 0.02
"""Keeps a share of 1 in the picture, where the scale is logarithmic in what is missing to 1."""

SHARES = (1.0, 0.99, 0.98, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.5)

TICK_GAP = 0.09
"""The least distance of two ticks, as a share of the axis."""

MIN_TICKS = 3
"""With fewer ticks the scale could not be read; then others are chosen."""


def _forward(share: Any) -> Any:
    return -np.log(
        np.maximum(1 + SCALE_OFFSET - np.asarray(share, dtype=float), SCALE_OFFSET / 100)
    )


def _backward(position: Any) -> Any:
    return 1 + SCALE_OFFSET - np.exp(-np.asarray(position, dtype=float))


def _ticks(ends: tuple[float, float], shares: Sequence[float], apart: float) -> list[float]:
    """Return the shares in sight that leave room for one another."""
    least = apart * (_forward(ends[1]) - _forward(ends[0]))
    found: list[float] = []
    for share in shares:
        inside = ends[0] <= share <= ends[1]
        if inside and (not found or _forward(found[-1]) - _forward(share) >= least):
            found.append(round(share, 3))
    return found


def set_share_scale(ax: Any, shares: Sequence[float], *, percent: bool) -> None:
    """Give both axes one scale that spreads what is close to 1, and draw y = x."""
    first, last = _forward(min(shares)), _forward(max(shares))
    edge = 0.05 * (last - first) + 0.03
    ends = _backward(first - edge), _backward(last + edge)
    ticks = _ticks(ends, SHARES, TICK_GAP)
    if len(ticks) < MIN_TICKS:
        ticks = _ticks(ends, [1 - step / 200 for step in range(101)], 2 * TICK_GAP)
    labels = [f"{100 * share:g}" if percent else f"{share:g}" for share in ticks]
    kinds = load_matplotlib("ticker")
    ax.set_xscale("function", functions=(_forward, _backward))
    ax.set_yscale("function", functions=(_forward, _backward))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(kinds.FixedLocator(ticks))
        axis.set_major_formatter(kinds.FixedFormatter(labels))
        axis.set_minor_locator(kinds.NullLocator())
    ax.plot(ends, ends, color=GREY, linestyle="--", linewidth=1.0, zorder=1)
    ax.set_xlim(*ends)
    ax.set_ylim(*ends)
    ax.set_aspect("equal")
