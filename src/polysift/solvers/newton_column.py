"""One label column of Newton's method: its point, its inverse Hessian, and its next step.

A step is minus the inverse Hessian times the gradient. A Hessian is computed from time to time, and
BFGS updates its inverse in between. After a step that was far too long, the next Hessian is damped
(Levenberg and Marquardt).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from polysift.engine.sums import STEP_LENGTHS
from polysift.runtime.types import FloatArray

FULL_STEP = int(np.flatnonzero(STEP_LENGTHS == 1.0)[0])
"""The index of the full step among ``STEP_LENGTHS``."""

FIRST_DELTA, DELTA_FACTOR = 0.5, 0.5
"""The first rounding, and the factor by which it decreases."""

CENTRED_SHARE = 0.25
"""Delta decreases when the distance to the rounded minimum is below this share of the gap."""

HESSIAN_MEMORY = 0.1
"""The weight of the former Hessian in the new one: a sampled Hessian is noisy."""

GOOD_SLOPE_SHARE = 0.5
"""A full step is accepted if the slope at its end is at most this share of that at its start."""

SHORT_STEP_SHARE, LONG_STEP_SHARE = 0.25, 0.9
"""Damping is raised if less than the first share of a step is taken, and lowered if more than
the second."""

MIN_DAMPING = 1e-6
"""The minimal damping after it is raised, relative to the mean eigenvalue of the Hessian."""

MAX_DAMPING_FACTOR, DAMPING_DIVISOR = 64.0, 4.0
"""The maximal factor by which damping is raised, and the divisor by which it is lowered."""

MAX_DAMPED_SHARE = 0.99
"""The largest share of damping in a step's curvature that an estimated distance assumes."""

ROUNDING_DISTANCE = 1e-12
"""A distance to the minimum, relative to the loss, below which slopes are noise."""

MAX_REDAMPINGS = 2
"""How often a Hessian is damped anew, at the same delta, before another one is computed."""

LOOK_BACK_STEPS = 3
"""Steps over which the loss must have changed little."""


@dataclass
class NewtonColumn:
    """The state of one label column.

    Attributes
    ----------
    u, dz : ndarray of shape (n,)
        The point, and the step from it, in coordinates z.
    W, M : ndarray of shape (n, n)
        The inverse of the damped Hessian, and the last Hessian plus a decaying share of the
        former ones.
    g : ndarray of shape (n,)
        The gradient at u.
    best_u : ndarray of shape (n,)
        The point with the smallest loss so far.
    best : float
        That loss.
    delta, next_delta : float
        The rounding at this point, and at the next.
    length, taken : float
        The length of the step, and of the last one, relative to the full steps.
    arrived : bool
        Whether u was just accepted, and the next step is not chosen yet.
    decrement : float
        The slope along the step, with its sign changed.
    gap : float
        The duality gap of the rounded loss at u.
    begun, trial : bool
        Whether a gradient is known, and whether the length of the step may still be corrected.
    losses : ndarray of shape (LOOK_BACK_STEPS + 1,)
        The losses at the last points, the newest first.
    since : int
        Passes since the last Hessian.
    curved : float
        The sum of the scaled curvature at u: about the number of rows near the margin.
    damping : float
        What is added to the Hessian's diagonal, to limit the length of steps.
    redampings : int
        How often the last Hessian may still be damped anew.
    warm : bool
        Whether delta may be too small for a warm start at this point.
    small_loss : float
        A loss at which it stops, even if it is not the minimum.
    claimed : float or None
        The loss at the first point over the rows of a former run, until that over these is known.
    done : bool
        Whether it has converged.
    """

    u: FloatArray
    dz: FloatArray
    W: FloatArray
    M: FloatArray
    g: FloatArray
    best_u: FloatArray
    losses: FloatArray
    best: float = np.inf
    delta: float = FIRST_DELTA
    next_delta: float = FIRST_DELTA
    length: float = 1.0
    taken: float = 1.0
    decrement: float = 0.0
    gap: float = 0.0
    begun: bool = False
    trial: bool = True
    since: int = 0
    curved: float = 0.0
    damping: float = 0.0
    redampings: int = 0
    arrived: bool = False
    warm: bool = False
    small_loss: float = 0.0
    claimed: float | None = None
    done: bool = False

    @classmethod
    def at(cls, u: FloatArray, dz: FloatArray) -> NewtonColumn:
        """Return a column at the point u, with the step dz."""
        n, none = len(u), np.zeros_like(u)
        W, M = 4 * FIRST_DELTA * np.eye(n), np.eye(n) / (4 * FIRST_DELTA)
        return cls(u, dz, W, M, none, u, np.full(LOOK_BACK_STEPS + 1, np.inf))

    def refresh(self, H: FloatArray, m: float, constant: FloatArray | None = None) -> None:
        """Update M and W by a new Hessian H, which is 4 delta m times that of the mean loss.

        ``constant`` is a part of the Hessian that is the same at every point, that of a penalty; it
        is overwritten.
        """
        self.M = H / (4.0 * self.delta * m) + HESSIAN_MEMORY * self.M
        self.since, self.redampings = 0, MAX_REDAMPINGS
        self._invert(constant)

    def redamp(self, constant: FloatArray | None = None) -> None:
        """Update W by the present damping of the last Hessian."""
        self.redampings -= 1
        self._invert(constant)

    def _invert(self, constant: FloatArray | None) -> None:
        """Set W to the inverse of M plus the damping and ``constant``, which is overwritten."""
        n = len(self.M)
        fixed = self.M if constant is None else np.add(constant, self.M, out=constant)
        ridge = max(self.damping, 1e-14 * float(np.trace(fixed)))
        while np.isfinite(ridge):  # else W is unchanged
            try:
                R, _ = scipy.linalg.cho_factor(fixed + ridge * np.eye(n), check_finite=False)
            except scipy.linalg.LinAlgError:
                ridge *= 10.0
            else:
                upper, _ = scipy.linalg.lapack.dpotri(R)  # a third of solving for each column
                self.W = np.triu(upper) + np.triu(upper, 1).T
                return

    def damp(self) -> None:
        """Raise or lower the damping, depending on how much of the step was taken.

        Steps are too long in directions with hardly a row near the margin: the Hessian does not
        include the rows that a long step brings there.
        """
        if self.taken < SHORT_STEP_SHARE:
            least = MIN_DAMPING * float(np.trace(self.M)) / len(self.M)
            self.damping = max(self.damping, least) / max(self.taken, 1.0 / MAX_DAMPING_FACTOR)
        elif self.taken > LONG_STEP_SHARE:
            self.damping /= DAMPING_DIVISOR

    def follow(self, s: FloatArray, y: FloatArray) -> None:
        """Make W map the change y of the gradient to the step s: the BFGS update."""
        sy = float(s @ y)
        if sy > 1e-10 * np.sqrt(float(s @ s) * float(y @ y)):
            Wy = self.W @ y
            cross = np.outer(Wy, s)
            self.W += (1.0 + y @ Wy / sy) / sy * np.outer(s, s) - (cross + cross.T) / sy

    def aim(self, tol: float) -> bool:
        """Choose the next step, and whether delta decreases with it; set and return ``done``."""
        self.dz = -self.W @ self.g
        self.decrement = -float(self.g @ self.dz)
        self.length, self.trial, self.begun, self.arrived = 1.0, True, True, False
        self.next_delta = self.delta * (
            DELTA_FACTOR if self._within() < CENTRED_SHARE * self.gap else 1.0
        )
        if self.warm and self.decrement > self.gap:  # far from the minimum
            self.next_delta = FIRST_DELTA
        self.warm = False
        loss, former = self.losses[[0, -1]]
        if self.claimed is not None:  # the former run has converged; compare with its loss
            former, self.claimed = self.claimed, None
        settled = self.left() < tol and abs(former - loss) < tol * loss
        self.done = bool(settled or loss < self.small_loss or self.left() < ROUNDING_DISTANCE)
        return self.done

    def _within(self) -> float:
        """Return the estimated distance of the rounded loss to its minimum, without damping."""
        if self.decrement <= 0.0:
            return 0.0
        share = min(self.damping * float(self.dz @ self.dz) / self.decrement, MAX_DAMPED_SHARE)
        return self.decrement / (1.0 - share)

    def ceiling(self, m: float) -> float:
        """Return an upper bound of the rounded loss at u."""
        return float(self.losses[0]) + self.gap + self.delta * self.curved / m

    def left(self) -> float:
        """Return the estimated distance of the loss to its minimum, relative to the loss."""
        loss = float(self.losses[0])
        if loss == np.inf:  # not known yet
            return np.nan
        return (self._within() + self.gap) / loss if loss > 0.0 else 0.0

    def right_length(self, slopes: FloatArray, higher: bool = False) -> float:
        """Return 1 to accept the full step, else the length at which the slope along it is zero.

        The slopes are those at ``STEP_LENGTHS``; ``higher`` says that the loss at the end of the
        step is higher than at its start.
        """
        end = slopes[FULL_STEP]
        if abs(end) <= GOOD_SLOPE_SHARE * self.decrement and not (higher and end > 0.0):
            return 1.0
        up = np.flatnonzero(slopes >= 0.0)
        if len(up) == 0:
            return float(STEP_LENGTHS[-1])
        j = int(up[0])
        t0, s0 = (STEP_LENGTHS[j - 1], slopes[j - 1]) if j else (0.0, -self.decrement)
        return float(t0 + (STEP_LENGTHS[j] - t0) * s0 / (s0 - slopes[j]))
