"""The hinge loss and its proximal operator, in terms of margins.

The margin of a score b with label y, +1 or -1, is t = y b. Everything the solver does to a row
depends on its label only through the margin, so labels enter and leave at the ends.

The hinge loss with its kink rounded, in terms of margins, and the multipliers of rows.

With x = 1 - f and r = sqrt(x^2 + 4 delta^2) it is ``h(f) = (x + r) / 2``: convex, smooth, and the
hinge loss as delta goes to zero. Minus its slope, c = (1 + x / r) / 2, tends to the multiplier of a
row in the linear program, which is 0 beyond the margin and 1 below it.

Newton's method does better if rows keep multipliers of their own, which follow c on straight lines
(``predicted``). Where a row has just come near the margin, or has just left it, c and the
multiplier differ, and the curvature (``curvedness``) is that of the way, not of the point alone.

A multiplier takes the last 16 bits of a margin's 64, of which it leaves more than ten digits.
"""

from __future__ import annotations

import numpy as np

from polysift.runtime.types import FloatArray, IntArray


def hinge_loss(t: FloatArray) -> FloatArray:
    """Return ``max(0, 1 - t)``, elementwise."""
    return np.maximum(0.0, 1.0 - t)


def prox_step(t: FloatArray, gamma: float | FloatArray) -> FloatArray:
    """Return ``argmin_s [max(0, 1 - s) + (gamma / 2) (s - t)^2] - t``, elementwise.

    With t = y b, ``b + y * prox_step(t, gamma)`` is ``hinge_gamma(y, b)`` of the paper's Lemma 1,
    where ``gamma = m beta``. Its branches are one clamp: a margin of 1 or more stays, a smaller one
    moves up by 1 / gamma, and none moves past the kink at 1.

    The step is the multiplier, too: it equals ``-y w / beta``, so that ``-m y w``, which is gamma
    times the step, lies in [0, 1] as the dual (Proposition 2) demands.
    """
    step = 1.0 - t
    np.maximum(step, 0.0, out=step)
    return np.minimum(step, 1.0 / gamma, out=step)


STEPS = 2.0 ** np.arange(-9, 3)
"""Lengths of a step at which a sweep takes the slope of the loss along it."""

FULL = int(np.flatnonzero(STEPS == 1.0)[0])
"""Where the full step is."""

GOLDEN = 0.6180339887498949
"""Its multiples, without their whole parts, lie evenly between 0 and 1."""

LEVELS = 2**16 - 1
"""Multipliers are kept as multiples of 1 / LEVELS, in so many of a margin's last bits."""


def steepness(f: FloatArray, delta: float | FloatArray) -> FloatArray:
    """Return minus the slope of the rounded loss, from 0 to 1, elementwise."""
    x = 1.0 - f
    return np.asarray(0.5 + 0.5 * x / np.sqrt(x * x + 4.0 * delta * delta))


def curvedness(f: FloatArray, delta: float | FloatArray, c: FloatArray) -> FloatArray:
    """Return 4 delta times the curvature at f of a row with multiplier c: from 0 to 2.

    It is that of the rounded loss, and 1 at the margin, where c is the steepness.
    """
    x = 1.0 - f
    r = np.sqrt(x * x + 4.0 * delta * delta)
    return np.asarray(2.0 * delta * (1.0 - (2.0 * c - 1.0) * x / r) / r)


def predicted(
    f: FloatArray, way: FloatArray, delta: float | FloatArray, c: FloatArray
) -> FloatArray:
    """Return the multiplier at f + way by the slope and the curvature at f."""
    ahead = steepness(f, delta) - curvedness(f, delta, c) / (4.0 * delta) * way
    return np.minimum(np.maximum(ahead, 0.0), 1.0)


def duality_gap(f: FloatArray, c: FloatArray) -> FloatArray:
    """Return ``max(0, 1 - f) - c (1 - f)``: what a multiplier c, 0 to 1, leaves of the loss."""
    return np.asarray(hinge_loss(f) - c * (1.0 - f))


def drawn(curved: FloatArray, least: float, first: int) -> tuple[IntArray, FloatArray]:
    """Return which rows, numbered from ``first`` on, stand for all in a Hessian, and how curved.

    The chance of a row is its curvedness over ``least``, which it then has. The multiples of the
    golden ratio are spread evenly over rows, whatever shard these are in.
    """
    spread = (first + 0.5 + np.arange(len(curved))) * GOLDEN  # row 0 is not for certain
    spread -= np.floor(spread)
    rows = np.flatnonzero(spread * least < curved)
    return rows, np.maximum(curved[rows], least)


def multipliers(t: FloatArray) -> FloatArray:
    """Return the multipliers that are kept in margins."""
    return np.asarray((t.view(np.int64) & LEVELS) / LEVELS)


def keep_multipliers(t: FloatArray, c: FloatArray) -> None:
    """Keep multipliers in margins."""
    bits = t.view(np.int64)
    bits &= ~LEVELS
    bits |= np.rint(c * LEVELS).astype(np.int64)
