"""Newton's method for the minimum of the hinge loss, through rounded losses that sharpen.

For each label column it minimises the mean of the hinge loss with its kink rounded (``_smooth``),
and lets the rounding delta go to zero. Rows keep multipliers, and the Hessian is a Gram matrix of
rows weighted by how curved their ways are by these: a primal-dual method. It is made of some rows,
drawn by these weights. All is done in coordinates z in which the features are nearly orthonormal:
u = T z with T'(G + rho I) T = m I, where the factor of the ADMM gives T.

A pass goes to a point and returns the loss and its gradient there, for the delta that comes next,
and the slopes along the way from the last point. If they say that the step was too long or too
short, the next pass goes to where it should have ended. The state of a row is its margin, and its
multiplier in the last bits of it.

One label column of Newton's method: where it is, what it knows of the curvature, its next step.

A step is minus the gradient times the inverse of a Hessian that is made now and then and that BFGS
updates follow between. Where a step turns out far too long, the next Hessian is damped (Levenberg
and Marquardt).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import scipy.linalg

from polysift.engine.local import Engine
from polysift.engine.problems import Problem
from polysift.engine.sums import SmoothSums
from polysift.losses import FULL, STEPS
from polysift.runtime.types import FloatArray
from polysift.solvers.admm import Factor, Settings
from polysift.solvers.result import HISTORY_COLUMNS, Result, Status, as_history

START, SHRINK = 0.5, 0.5
"""The first delta, and the factor by which it shrinks."""

CENTRED = 0.25
"""Delta shrinks when a step can gain less than this share of what the rounding hides."""

MEMORY = 0.1
"""The weight of the former Hessian in the new: each is made of a few rows, and noisy."""

CURVED = 0.5
"""A full step is good if the slope at its end is at most this share of that at its start."""

SHORT, LONG = 0.25, 0.9
"""Steps of which less than this share is taken call for more damping, of which more, for less."""

DAMPING = 1e-6
"""The least damping that such a step leads to, relative to the mean eigenvalue of the Hessian."""

RAISED, LOWERED = 64.0, 4.0
"""By how much damping is raised at most, and lowered."""

MOSTLY = 0.99
"""The share of a step's curvature that may be damping, where a distance is judged by it."""

ROUNDING = 1e-12
"""A distance to the minimum, relative to the loss, below which slopes are noise."""

LOOK_BACK = 3
"""Steps over which the loss must have settled."""


@dataclass
class Column:
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
    losses : ndarray of shape (LOOK_BACK + 1,)
        The losses at the last points, the newest first.
    since : int
        Passes since the last Hessian.
    curved : float
        How curved all rows are at u: about the number of those near the margin.
    damping : float
        What is added to the Hessian's diagonal, so that steps are not longer than it is good for.
    warm : bool
        Whether delta may be too small for where it is.
    enough : float
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
    delta: float = START
    next_delta: float = START
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
    enough: float = 0.0
    claimed: float | None = None
    done: bool = False

    @classmethod
    def at(cls, u: FloatArray, dz: FloatArray) -> Column:
        """Return a column that is at u and goes along dz."""
        n, none = len(u), np.zeros_like(u)
        W, M = 4 * START * np.eye(n), np.eye(n) / (4 * START)
        return cls(u, dz, W, M, none, u, np.full(LOOK_BACK + 1, np.inf))

    def refresh(self, H: FloatArray, m: float) -> None:
        """Take a new Hessian, which is 4 delta m times that of the mean loss."""
        n = len(H)
        self.M = H / (4.0 * self.delta * m) + MEMORY * self.M
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
        if self.taken < SHORT:
            least = DAMPING * float(np.trace(self.M)) / len(self.M)
            self.damping = max(self.damping, least) / max(self.taken, 1.0 / RAISED)
        elif self.taken > LONG:
            self.damping /= LOWERED

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
        self.next_delta = self.delta * (SHRINK if self._within() < CENTRED * self.gap else 1.0)
        if self.warm and self.decrement > self.gap:  # far from a minimum after all
            self.next_delta = START
        self.warm = False
        loss, former = self.losses[[0, -1]]
        if self.claimed is not None:  # other rows have settled it; do these agree?
            former, self.claimed = self.claimed, None
        settled = self.left() < tol and abs(former - loss) < tol * loss
        self.done = bool(settled or loss < self.enough or self.left() < ROUNDING)

    def _within(self) -> float:
        """Return about how far the rounded loss is above its minimum, as if nothing were damped."""
        if self.decrement <= 0.0:
            return 0.0
        share = min(self.damping * float(self.dz @ self.dz) / self.decrement, MOSTLY)
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
        end = slopes[FULL]
        if abs(end) <= CURVED * self.decrement and not (higher and end > 0.0):
            return 1.0
        up = np.flatnonzero(slopes >= 0.0)
        if len(up) == 0:
            return float(STEPS[-1])
        j = int(up[0])
        t0, s0 = (STEPS[j - 1], slopes[j - 1]) if j else (0.0, -self.decrement)
        return float(t0 + (STEPS[j] - t0) * s0 / (s0 - slopes[j]))


WARM = 2.0**-5
"""The first delta of a warm start: with a large one it would leave a minimum and come back."""

LESS = 0.1
"""The share of a step that is tried next where its end lies above its start."""

RATIO = 16.0
"""Rows of a Hessian times n, relative to all rows, at which it costs as much as a pass."""

DEAR = 2.0
"""A Hessian is due when so many times the passes since the last one would cost as much."""

DRAWN = 25.0, 1000.0
"""Rows per center of which a Hessian is made: so many as cost a pass, within these bounds."""

CUT = 0.5
"""A step of which less is taken asks for a Hessian at once: BFGS learns little from it."""


class NewtonRun:
    """One run, between the sweeps that an engine does for it; see ``_admm.Run``.

    Parameters
    ----------
    factor : Factor
        The factor of G + rho I over the rows it learns from.
    Aty : ndarray of shape (n, K)
        A'y over these rows, which gives the first step: least squares on the labels.
    settings : Settings
        ``max_iter`` passes at most, and the tolerance.
    m : float
        The total weight of these rows.
    without : int or None
        The fold part of rows that it does not learn from.
    """

    def __init__(
        self,
        factor: Factor,
        Aty: FloatArray,
        settings: Settings,
        m: float,
        without: int | None = None,
    ) -> None:
        self.factor, self.Aty, self.settings, self.m = factor, Aty, settings, m
        n, K = Aty.shape
        R = np.triu(factor.cholesky[0])
        self._T = scipy.linalg.solve_triangular(R, np.eye(n), check_finite=False) * np.sqrt(m)
        self._first = self._T.T @ Aty / m
        self.columns = [self._fresh(k) for k in range(K)]
        self.u = np.zeros_like(Aty)
        self.without = without
        self.problem = Problem(n, 1.0, 1.0, without)
        self.rows: list[dict[str, float]] = []
        self.iterates, self.products = 0, 0
        self.status: Status | None = None

    def _fresh(self, k: int) -> Column:
        return Column.at(np.zeros(self._first.shape[0]), self._first[:, k])

    def start_from(self, engine: Engine, u0: FloatArray) -> None:
        """Start from other coefficients."""
        self.columns = [Column.at(np.array(u, float), np.zeros(len(u))) for u in u0.T]
        for column in self.columns:
            column.delta = column.next_delta = WARM
            column.warm = True

    @classmethod
    def after(cls, former: NewtonRun, settings: Settings, m: float) -> NewtonRun:
        """Return a run over all rows, of weight m, that begins where one over some of them ended.

        Its coordinates are those of the former run, whose weights make its rows stand for all.
        """
        run = cls(former.factor, former.Aty, settings, m, former.without)
        for own, column in zip(run.columns, former.columns, strict=True):
            own.u, own.dz = column.u, np.zeros_like(column.dz)
            own.W, own.M, own.damping = column.W, column.M, column.damping
            own.delta = own.next_delta = column.delta
            own.claimed = float(column.losses[0])
            own.since = -1  # as if the last Hessian had been made here
            if settings.tol < former.settings.tol:
                own.since = len(column.u)  # so that one is due: these rows have their own
        return run

    def step(self, du: FloatArray | None = None) -> None:
        """Go to the next point."""
        smoothing, u = [], np.empty_like(self.u)  # a new one: columns hold parts of the old
        for k, column in enumerate(self.columns):
            along = 0.0 if column.done else column.length
            u[:, k] = column.u + along * (self._T @ column.dz)
            line = column.delta if column.trial and not column.done else 0.0
            line = line if column.begun or column.done else -1.0  # a multiplier to begin with
            smoothing.append((column.delta if column.done else column.next_delta, line))
        self.problem = Problem(self.problem.n, 1.0, 1.0, self.without, tuple(smoothing))
        self.u = u
        self.iterates += 1

    def absorb(self, swept: SmoothSums, seconds: float) -> None:
        """Take in what the sweep at the new point added up."""
        for k, column in enumerate(self.columns):
            if not column.done:
                self._tell(column, k, swept)
        loss = swept.loss / self.m
        row = dict.fromkeys(HISTORY_COLUMNS, np.nan) | {"seconds": seconds}
        row |= {"objective": float(loss.mean()), "training_error": float(swept.wrong[0] / self.m)}
        self.rows.append(row)

    def _tell(self, column: Column, k: int, swept: SmoothSums) -> None:
        """Tell a column what was found: it arrives, or sees that its step had another length."""
        column.since += 1
        loss = float(swept.loss[k]) / self.m
        if not np.isfinite(swept.r[:, k]).all():  # beyond the range of numbers: a far shorter step
            column.length, column.trial = column.length * STEPS[0], False
            return
        if column.warm and loss >= 1.0:  # even zeros are better
            self.columns[k] = self._fresh(k)
            return
        if loss < column.best:
            column.best, column.best_u = loss, self.u[:, k]
        higher = loss > column.ceiling(self.m)
        if column.begun and column.trial:
            length = column.right_length(swept.slopes[:, k] / self.m, higher)
            if length != 1.0:
                column.length, column.trial = length, False
                return
        elif column.begun and higher:  # slopes between two known ones jump
            column.length *= LESS
            return
        self._arrive(column, k, swept, loss)

    def _arrive(self, column: Column, k: int, swept: SmoothSums, loss: float) -> None:
        g = -(self._T.T @ swept.r[:, k]) / self.m
        if column.begun and column.next_delta == column.delta:
            column.follow(column.length * column.dz, g - column.g)
        column.u, column.delta, column.g = self.u[:, k], column.next_delta, g
        column.taken = column.length if column.begun else 1.0
        column.damp()
        column.curved, column.gap = float(swept.curved[k]), float(swept.gap[k]) / self.m
        column.losses = np.append(loss, column.losses[:-1])
        column.arrived, column.done = True, loss == 0.0

    def finish(self, engine: Engine, number: int) -> None:
        """Fetch the Hessians that are due, choose the next steps, and judge whether to go on."""
        for k, column in enumerate(self.columns):
            if column.done or not column.arrived:
                continue
            if not self._due(column, engine.n_rows):
                column.aim(self.settings.tol)
                if not column.done or column.since == 0:
                    continue  # else a Hessian has the last word
            least = column.curved / self._drawn(engine.n_rows)
            column.refresh(engine.curvature(self.problem, number, k, least, self._T), self.m)
            column.aim(self.settings.tol)
        self.rows[-1]["dual_residual"] = float(np.max([c.left() for c in self.columns]))
        if all(column.done for column in self.columns):
            zero = all(column.losses[0] == 0.0 for column in self.columns)
            self.status = Status.ZERO_LOSS if zero else Status.MINIMUM
        elif len(self.rows) >= self.settings.max_iter:
            self.status = Status.MAX_ITER

    def _due(self, column: Column, rows: int) -> bool:
        """Return whether a Hessian is worth its price, or the steps are bad without one."""
        price = min(self._drawn(rows), rows) * self.problem.n / (RATIO * rows)
        return column.since * DEAR >= price or column.taken < CUT

    def _drawn(self, rows: int) -> float:
        """Return of how many rows, of those that a pass visits, a Hessian is made."""
        n, (least, most) = self.problem.n, DRAWN
        return n * min(max(RATIO * rows / n**2, least), most)

    def saved(self) -> tuple[dict[str, FloatArray], dict[str, Any]]:
        """Return all that is needed to go on, as arrays and plain values."""
        arrays: dict[str, FloatArray] = {"u": self.u}
        values: dict[str, Any] = {}
        for k, column in enumerate(self.columns):
            for f in fields(column):
                value = getattr(column, f.name)
                (arrays if isinstance(value, np.ndarray) else values)[f"{f.name}{k}"] = value
        return arrays, values

    def restore(self, arrays: dict[str, FloatArray], values: dict[str, Any]) -> None:
        """Go on from what ``saved`` returned."""
        self.u = arrays["u"]
        for k, column in enumerate(self.columns):
            for f in fields(column):
                key = f"{f.name}{k}"
                setattr(column, f.name, arrays[key] if key in arrays else values[key])

    def coefficients(self) -> FloatArray:
        """Return for each column the best point visited; where none was, that on the way to."""
        u = self.u.copy()
        for k, column in enumerate(self.columns):
            if column.best < np.inf:
                u[:, k] = column.best_u
        return u

    def result(self) -> Result:
        """Return the outcome."""
        u = self.coefficients()
        if not np.isfinite(u).all():
            raise FloatingPointError(
                "The iterations left the finite numbers. Lower the degree, or raise rho."
            )
        assert self.status is not None
        history, factor = as_history(self.rows), self.factor
        return Result(u, factor.rho, factor.rho_floor, factor.rho_raised, self.status, history)
