"""What is minimised: a loss of the margin, with all that solvers, loops and displays ask of it.

The margin of a score b with label y, +1 or -1, is t = y b. Everything that a solver does to a row
depends on its label only through the margin, so labels enter and leave at the ends.

The ADMM needs a loss's value and its proximal step. Newton's method needs the loss with its kinks
rounded, by a width delta that goes to zero: the slope and the curvature of that. A row's multiplier
c, between 0 and 1, is minus a slope; rows keep multipliers of their own, which follow the slope on
straight lines (``next_multiplier``), and where a row has just come near a kink, or has just left
it, the curvature is that of the step, not of the point alone.

======================= ==================== ================== =====================
loss                    value                minus the slope    curvature
======================= ==================== ================== =====================
``Hinge``               max(0, 1 - t)        1 where t < 1      0, and a kink at 1
``Logistic``            log(1 + exp(-t))     p = 1/(1 + exp t)  p (1 - p)
``SquaredHinge``        max(0, 1 - t)^2 / 2  max(0, 1 - t)      1 where t < 1
======================= ==================== ================== =====================

The last two have no kinks: nothing is rounded, delta has no effect, and rows need no multipliers.
Where the slope of the squared hinge has a kink, at t = 1, any curvature from 0 to 1 will do: with
one of them Newton's method is a semismooth one.

A ridge regression minimises sum_i (1 - t_i)^2 / 2 + (rho / 2) u'u, since (y - f)^2 = (1 - t)^2. The
squared hinge has the same curvature, so that rho is a penalty for it, too. About t = 0 the logistic
loss is that of a ridge regression, with twice the scores and a quarter of the curvature:
log(1 + exp(-t)) = (t - 2)^2 / 8 + constant + O(t^4). So rho / 4 is its penalty (``ridge_share``).

To add a loss: a class as ``Hinge``, its name in ``LOSSES`` and, for speed, its twin in
``engine/compiled_loops.py``. Rows begin with margin t = 1, which is (v, w) = (y, 0) as in the paper
where the proximal step from 1 is zero; multipliers lie in [0, 1].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import expit

from polysift.runtime.types import FloatArray

MAX_PROX_STEPS, PROX_TOLERANCE = 60, 1e-14
"""The maximal number of Newton steps of a proximal step, and the size of the last one, relative to
the margin or to 1; some five are usual."""


class Loss(Protocol):
    """A convex loss of the margin; all functions work elementwise.

    Attributes
    ----------
    name : str
        Its name, as in "hinge loss"; that of its twin in the compiled loops, too.
    minimum : float
        The least value: with a mean loss of that there is nothing left to gain.
    ridge_share : float
        The penalty that goes with it where rho is right for the squared loss, in units of rho.
    smooth : bool
        Whether it has no kinks.
    negligible : float
        A mean loss below which an infimum that is never reached is near enough.
    """

    @property
    def name(self) -> str: ...  # noqa: D102

    @property
    def minimum(self) -> float: ...  # noqa: D102

    @property
    def ridge_share(self) -> float: ...  # noqa: D102

    @property
    def smooth(self) -> bool: ...  # noqa: D102

    @property
    def negligible(self) -> float: ...  # noqa: D102

    def value(self, t: FloatArray) -> FloatArray:
        """Return the loss at margins t."""

    def prox_step(self, t: FloatArray, gamma: float | FloatArray) -> FloatArray:
        """Return ``argmin_s [loss(s) + (gamma / 2) (s - t)^2] - t``."""

    def slope(self, t: FloatArray, delta: float | FloatArray) -> FloatArray:
        """Return minus the slope of the loss whose kinks are rounded by delta.

        It lies between 0 and 1 where the loss has kinks.
        """

    def curvature(self, t: FloatArray, delta: float | FloatArray, c: FloatArray) -> FloatArray:
        """Return 4 delta times the curvature at t of a row with multiplier c."""

    def duality_gap(self, t: FloatArray, c: FloatArray) -> FloatArray:
        """Return the loss less what a multiplier c accounts for: zero at the optimum.

        It is what the rounding of kinks hides, so it is zero where there are none.
        """


@dataclass(frozen=True)
class Hinge:
    """The hinge loss ``max(0, 1 - t)``; the multiplier c of a row is a dual variable of it.

    With x = 1 - t and r = sqrt(x^2 + 4 delta^2) the rounded loss is ``(x + r) / 2``: convex,
    smooth, and the hinge loss as delta goes to zero. Minus its slope, ``(1 + x / r) / 2``, tends to
    the multiplier of a row in the linear programme (Proposition 2): 0 beyond the margin, 1 below.
    """

    name: str = "hinge"
    minimum: float = 0.0
    ridge_share: float = 1.0
    smooth: bool = False
    negligible: float = 0.0

    def value(self, t: FloatArray) -> FloatArray:
        """Return ``max(0, 1 - t)``."""
        return np.maximum(0.0, 1.0 - t)

    def prox_step(self, t: FloatArray, gamma: float | FloatArray) -> FloatArray:
        """Return ``argmin_s [max(0, 1 - s) + (gamma / 2) (s - t)^2] - t``.

        With t = y b, ``b + y * prox_step(t, gamma)`` is ``hinge_gamma(y, b)`` of the paper's Lemma
        1, where ``gamma = m beta``. Its branches are one clamp: a margin of 1 or more stays, a
        smaller one moves up by 1 / gamma, and none moves past the kink at 1.

        The step is the multiplier, too: it equals ``-y w / beta``, so that ``-m y w``, which is
        gamma times the step, lies in [0, 1] as the dual (Proposition 2) demands.
        """
        step = 1.0 - t
        np.maximum(step, 0.0, out=step)
        return np.minimum(step, 1.0 / gamma, out=step)

    def slope(self, t: FloatArray, delta: float | FloatArray) -> FloatArray:
        """Return minus the slope of the rounded loss, from 0 to 1."""
        x = 1.0 - t
        return np.asarray(0.5 + 0.5 * x / np.sqrt(x * x + 4.0 * delta * delta))

    def curvature(self, t: FloatArray, delta: float | FloatArray, c: FloatArray) -> FloatArray:
        """Return 4 delta times the curvature at t of a row with multiplier c: from 0 to 2.

        Where c is minus the slope, it is that of the rounded loss, and 1 at the kink.
        """
        x = 1.0 - t
        r = np.sqrt(x * x + 4.0 * delta * delta)
        return np.asarray(2.0 * delta * (1.0 - (2.0 * c - 1.0) * x / r) / r)

    def duality_gap(self, t: FloatArray, c: FloatArray) -> FloatArray:
        """Return ``max(0, 1 - t) - c (1 - t)``: what a multiplier c leaves of the loss."""
        return np.asarray(self.value(t) - c * (1.0 - t))


@dataclass(frozen=True)
class Logistic:
    """The logistic loss ``log(1 + exp(-t))``: minus the logarithm of the label's probability.

    The probability of y = 1 is 1 / (1 + exp(-f)) for a score f.
    """

    name: str = "logistic"
    minimum: float = 0.0
    ridge_share: float = 0.25
    smooth: bool = True
    negligible: float = 1e-6

    def value(self, t: FloatArray) -> FloatArray:
        """Return ``log(1 + exp(-t))``."""
        return np.asarray(np.logaddexp(0.0, -t))

    def prox_step(self, t: FloatArray, gamma: float | FloatArray) -> FloatArray:
        """Return ``argmin_s [log(1 + exp(-s)) + (gamma / 2) (s - t)^2] - t``.

        At the minimum h(s) = gamma (s - t) - 1/(1 + exp s) is zero. h increases, and is convex
        for s < 0 and concave for s > 0. So Newton's method converges, and without a step back, if
        it begins between 0 and the solution: at 0, or at a bound t or t + 1 / gamma that is nearer.
        Every margin takes its own number of steps, so that it does not matter which are beside it.
        """
        gamma = np.broadcast_to(gamma, t.shape)
        right = gamma * t > -0.5  # h(0) < 0: the solution is positive
        s = np.where(right, np.maximum(t, 0.0), np.minimum(t + 1.0 / gamma, 0.0))
        going = np.ones(t.shape, bool)
        for _ in range(MAX_PROX_STEPS):
            at, own = s[going], gamma[going]
            p = expit(-at)
            move = (p - own * (at - t[going])) / (own + p * (1.0 - p))
            s[going] = at + move
            going[going] = np.abs(move) > PROX_TOLERANCE * np.maximum(np.abs(at), 1.0)
            if not going.any():
                break
        return np.asarray(expit(-s) / gamma)  # more precise than s - t

    def slope(self, t: FloatArray, delta: float | FloatArray) -> FloatArray:
        """Return ``1 / (1 + exp(t))``."""
        return np.asarray(expit(-t))

    def curvature(self, t: FloatArray, delta: float | FloatArray, c: FloatArray) -> FloatArray:
        """Return 4 delta times the curvature at t."""
        p = expit(-t)
        return np.asarray(4.0 * delta * p * (1.0 - p))

    def duality_gap(self, t: FloatArray, c: FloatArray) -> FloatArray:
        """Return zero."""
        return np.zeros_like(t)


@dataclass(frozen=True)
class SquaredHinge:
    """The squared hinge loss ``max(0, 1 - t)^2 / 2``: least squares on the wrong side of 1."""

    name: str = "squared_hinge"
    minimum: float = 0.0
    ridge_share: float = 1.0
    smooth: bool = True
    negligible: float = 0.0

    def value(self, t: FloatArray) -> FloatArray:
        """Return ``max(0, 1 - t)^2 / 2``."""
        return np.asarray(0.5 * np.maximum(0.0, 1.0 - t) ** 2)

    def prox_step(self, t: FloatArray, gamma: float | FloatArray) -> FloatArray:
        """Return ``argmin_s [max(0, 1 - s)^2 / 2 + (gamma / 2) (s - t)^2] - t``."""
        return np.asarray(np.maximum(0.0, 1.0 - t) / (1.0 + gamma))

    def slope(self, t: FloatArray, delta: float | FloatArray) -> FloatArray:
        """Return ``max(0, 1 - t)``."""
        return np.maximum(0.0, 1.0 - t)

    def curvature(self, t: FloatArray, delta: float | FloatArray, c: FloatArray) -> FloatArray:
        """Return 4 delta times the curvature at t."""
        return np.asarray(4.0 * delta * (t < 1.0))

    def duality_gap(self, t: FloatArray, c: FloatArray) -> FloatArray:
        """Return zero."""
        return np.zeros_like(t)


HINGE, LOGISTIC, SQUARED_HINGE = Hinge(), Logistic(), SquaredHinge()

LOSSES: dict[str, Loss] = {loss.name: loss for loss in (HINGE, LOGISTIC, SQUARED_HINGE)}
"""The losses by name."""


def solver_and_loss(model: object) -> tuple[str, str]:
    """Return the solver and the loss of a model, whose parameters may leave them open.

    By default these are a few steps on the logistic loss. The solvers of the paper have its loss,
    and the hinge loss its solver; a sampled Gram matrix needs one of them. Which solver goes to the
    "minimum" depends on the rows, so only a fitted model tells.
    """
    solver, loss = getattr(model, "solver", "paper"), getattr(model, "loss", HINGE.name)
    if solver == "minimum":
        solver = getattr(model, "solver_", solver)
    if solver == "auto" and getattr(model, "gram", "exact") == "sampled":
        solver = "paper"
    if loss == "auto":
        loss = (LOGISTIC if solver in ("auto", "lbfgs") else HINGE).name
    if solver == "auto":
        solver = "paper" if loss == HINGE.name else "lbfgs"
    return solver, loss


def loss_of(model: object) -> Loss:
    """Return the loss that a model minimises."""
    return LOSSES[solver_and_loss(model)[1]]


def gives_probabilities(model: object) -> bool:
    """Return whether the sigmoid of a model's scores is a probability.

    That is so near the minimum of the logistic loss, where the few iterations of the paper's solver
    do not come.
    """
    solver, loss = solver_and_loss(model)
    return loss == LOGISTIC.name and solver != "paper"


def next_multiplier(
    loss: Loss, t: FloatArray, step: FloatArray, delta: float | FloatArray, c: FloatArray
) -> FloatArray:
    """Return the multiplier at t + step, by the slope and the curvature at t."""
    ahead = loss.slope(t, delta) - loss.curvature(t, delta, c) / (4.0 * delta) * step
    return np.minimum(np.maximum(ahead, 0.0), 1.0)
