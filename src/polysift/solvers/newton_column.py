"""One label column of Newton's method: where it is, what it knows of the curvature, its next step.

A step is minus the gradient times the inverse of a Hessian that is made now and then and that BFGS
updates follow between. Where a step turns out far too long, the next Hessian is damped (Levenberg
and Marquardt).
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
"""The first rounding, and the factor by which it shrinks."""

CENTRED_SHARE = 0.25
"""Delta shrinks when a step can gain less than this share of what the rounding hides."""

HESSIAN_MEMORY = 0.1
"""The weight of the former Hessian in the new: each is made of a few rows, and noisy."""

GOOD_SLOPE_SHARE = 0.5
"""A full step is good if the slope at its end is at most this share of that at its start."""

SHORT_STEP_SHARE, LONG_STEP_SHARE = 0.25, 0.9
"""Steps of which less than this share is taken call for more damping, of which more, for less."""

MIN_DAMPING = 1e-6
"""The least damping that such a step leads to, relative to the mean eigenvalue of the Hessian."""

MAX_DAMPING_FACTOR, DAMPING_DIVISOR = 64.0, 4.0
"""By how much damping is raised at most, and lowered."""

MAX_DAMPED_SHARE = 0.99
"""The share of a step's curvature that may be damping, where a distance is judged by it."""

ROUNDING_DISTANCE = 1e-12
"""A distance to the minimum, relative to the loss, below which slopes are noise."""

LOOK_BACK_STEPS = 3
"""Steps over which the loss must have settled."""


@dataclass
class NewtonColumn:
    """One label column on its way.

    Attributes
    ----------
    u, dz : ndarray of shape (n,)
        Where it is, and the step from there, in coordinates z.
    W, M : ndarray of shape (n, n)
        The inverse of the damped Hessian, and the last Hessian with what it remembers of former
        ones.
    g : ndarray of shape (n,)
        The gradient at u.
    best_u : ndarray of shape (n,)
        The point with the smallest loss so far.
    best : float
        That loss.
    delta, next_delta : float
        The rounding, and that of the next point.
    length, taken : float
        How much of the step to take, and how much of the last one was taken.
    arrived : bool
        Whether it stands at u, and the next step is not chosen yet.
    decrement : float
        The slope along the step, with its sign changed.
    gap : float
        What the rounding hides of the loss, at u.
    begun, trial : bool
        Whether a gradient is known, and whether the step may turn out to be of the wrong length.
    losses : ndarray of shape (LOOK_BACK_STEPS + 1,)
        The losses at the last points, the newest first.
    since : int
        Passes since the last Hessian.
    curved : float
        How curved all rows are at u: about the number of those near the margin.
    damping : float
        What is added to the Hessian's diagonal, so that steps are not longer than it is good for.
    warm : bool
        Whether delta may be too small for where it is.
    small_loss : float
        A loss that is small enough, whatever could still be gained.
    claimed : float or None
        The loss at the first point by the rows of a former run, until these rows have judged it.
    done : bool
        Whether it is at its end.
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
    arrived: bool = False
    warm: bool = False
    small_loss: float = 0.0
    claimed: float | None = None
    done: bool = False

    @classmethod
    def at(cls, u: FloatArray, dz: FloatArray) -> NewtonColumn:
        """Return a column that is at u and goes along dz."""
        n, none = len(u), np.zeros_like(u)
        W, M = 4 * FIRST_DELTA * np.eye(n), np.eye(n) / (4 * FIRST_DELTA)
        return cls(u, dz, W, M, none, u, np.full(LOOK_BACK_STEPS + 1, np.inf))

    def refresh(self, H: FloatArray, m: float) -> None:
        """Take a new Hessian, which is 4 delta m times that of the mean loss."""
        n = len(H)
        self.M = H / (4.0 * self.delta * m) + HESSIAN_MEMORY * self.M
        ridge = max(self.damping, 1e-14 * float(np.trace(self.M)))
        self.since = 0
        while np.isfinite(ridge):  # else what is known stays
            try:
                factor = scipy.linalg.cho_factor(self.M + ridge * np.eye(n), check_finite=False)
            except scipy.linalg.LinAlgError:
                ridge *= 10.0
            else:
                self.W = scipy.linalg.cho_solve(factor, np.eye(n), check_finite=False)
                return

    def damp(self) -> None:
        """Raise or lower the damping, by how much of the step was taken.

        If it was little, directions with hardly a row near the margin were to blame: there the
        Hessian knows nothing of the rows that a long step meets.
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

    def aim(self, tol: float) -> None:
        """Choose the next step from here, and whether delta shrinks on it."""
        self.dz = -self.W @ self.g
        self.decrement = -float(self.g @ self.dz)
        self.length, self.trial, self.begun, self.arrived = 1.0, True, True, False
        self.next_delta = self.delta * (
            DELTA_FACTOR if self._within() < CENTRED_SHARE * self.gap else 1.0
        )
        if self.warm and self.decrement > self.gap:  # far from a minimum after all
            self.next_delta = FIRST_DELTA
        self.warm = False
        loss, former = self.losses[[0, -1]]
        if self.claimed is not None:  # other rows have settled it; do these agree?
            former, self.claimed = self.claimed, None
        settled = self.left() < tol and abs(former - loss) < tol * loss
        self.done = bool(settled or loss < self.small_loss or self.left() < ROUNDING_DISTANCE)

    def _within(self) -> float:
        """Return about how far the rounded loss is above its minimum, as if nothing were damped."""
        if self.decrement <= 0.0:
            return 0.0
        share = min(self.damping * float(self.dz @ self.dz) / self.decrement, MAX_DAMPED_SHARE)
        return self.decrement / (1.0 - share)

    def ceiling(self, m: float) -> float:
        """Return what the rounded loss at u is at most: by what its rows hide and curve."""
        return float(self.losses[0]) + self.gap + self.delta * self.curved / m

    def left(self) -> float:
        """Return about how far the loss is above its minimum, relatively."""
        loss = float(self.losses[0])
        if loss == np.inf:  # nobody knows yet
            return np.nan
        return (self._within() + self.gap) / loss if loss > 0.0 else 0.0

    def right_length(self, slopes: FloatArray, higher: bool = False) -> float:
        """Return 1 if the full step was good, else where the slope along it is zero.

        It was not good if the loss at its end is higher than at its start.
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
