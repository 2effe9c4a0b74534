"""The hinge loss with its kink rounded, in terms of margins.

``h(f) = 0`` from 1 + delta on, ``1 - f`` up to 1 - delta, and ``(1 + delta - f)^2 / (4 delta)`` in
the band between: convex, with a continuous slope, and the hinge loss as delta goes to zero.
"""

from __future__ import annotations

import numpy as np

from polysift._hinge import hinge_loss
from polysift._types import BoolArray, FloatArray

STEPS = 2.0 ** np.arange(-9, 3)
"""Lengths of a step at which a sweep takes the slope of the loss along it."""

FULL = int(np.flatnonzero(STEPS == 1.0)[0])
"""Where the full step is."""


def steepness(f: FloatArray, delta: float | FloatArray) -> FloatArray:
    """Return minus the slope of the rounded loss, from 0 to 1, elementwise."""
    c = (1.0 + delta - f) / (2.0 * delta)
    np.maximum(c, 0.0, out=c)
    return np.minimum(c, 1.0, out=c)


def duality_gap(f: FloatArray, c: FloatArray) -> FloatArray:
    """Return ``max(0, 1 - f) - c (1 - f)``: what a multiplier c, 0 to 1, leaves of the loss."""
    return np.asarray(hinge_loss(f) - c * (1.0 - f))


def in_band(f: FloatArray, delta: float | FloatArray) -> BoolArray:
    """Return where the rounded loss is curved."""
    return np.asarray(np.abs(f - 1.0) < delta)
