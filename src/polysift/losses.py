"""The hinge loss and its proximal operator, in terms of margins.

The margin of a score b with label y, +1 or -1, is t = y b. Everything the solver does to a row
depends on its label only through the margin, so labels enter and leave at the ends.
"""

from __future__ import annotations

import numpy as np

from polysift.runtime.types import FloatArray


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
