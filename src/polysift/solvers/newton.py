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
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import scipy.linalg

from polysift.engine.local import Engine
from polysift.engine.problems import Lane
from polysift.engine.sums import SmoothSums
from polysift.runtime.types import FloatArray
from polysift.smooth import STEPS
from polysift.solvers.admm import Factor, Settings
from polysift.solvers.newton_column import Column
from polysift.solvers.result import HISTORY_COLUMNS, Result, Status, as_history

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
        The cell of rows that it does not learn from.
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
        self.lane = Lane(n, 1.0, 1.0, without)
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
        self.lane = Lane(self.lane.n, 1.0, 1.0, self.without, tuple(smoothing))
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
            column.refresh(engine.curvature(self.lane, number, k, least, self._T), self.m)
            column.aim(self.settings.tol)
        self.rows[-1]["dual_residual"] = float(np.max([c.left() for c in self.columns]))
        if all(column.done for column in self.columns):
            zero = all(column.losses[0] == 0.0 for column in self.columns)
            self.status = Status.ZERO_LOSS if zero else Status.MINIMUM
        elif len(self.rows) >= self.settings.max_iter:
            self.status = Status.MAX_ITER

    def _due(self, column: Column, rows: int) -> bool:
        """Return whether a Hessian is worth its price, or the steps are bad without one."""
        price = min(self._drawn(rows), rows) * self.lane.n / (RATIO * rows)
        return column.since * DEAR >= price or column.taken < CUT

    def _drawn(self, rows: int) -> float:
        """Return of how many rows, of those that a pass visits, a Hessian is made."""
        n, (least, most) = self.lane.n, DRAWN
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
