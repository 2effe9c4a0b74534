"""Newton's method for the minimum of the loss, by smoothed losses that approach it.

For each label column it minimises the mean of the loss with its kinks rounded (``losses``), plus
the penalty if there is one, while the rounding delta decreases to zero. It is a primal-dual method:
rows have multipliers, and the Hessian is a Gram matrix of rows weighted by a curvature that depends
on these. It is estimated from a sample of rows, drawn by these weights. Steps are computed in
coordinates z in which the features are nearly orthonormal: u = T z with T'(G + rho I) T = m I,
where T follows from the factor of the ADMM. A loss without kinks is not rounded: delta stays as it
is, and the Hessian depends on the margins alone.

A pass at a point returns the loss, its gradient for the next delta, and the slopes along the step
from the last point. If these show that the step was too long or too short, the next pass is at a
corrected point of the same step.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np
import scipy.linalg

from polysift.engine.engine import CurvatureEngine, Engine
from polysift.engine.problems import Problem
from polysift.engine.row_updates import NewtonUpdate
from polysift.engine.sums import STEP_LENGTHS, NewtonSums
from polysift.losses import HINGE, Loss
from polysift.runtime.arrays import LARGEST, require, required_array
from polysift.runtime.types import FloatArray
from polysift.solvers.factor import Factor, Ridge
from polysift.solvers.newton_column import NewtonColumn
from polysift.solvers.result import HISTORY_COLUMNS, Status
from polysift.solvers.solver import Solver, penalty_of, penalty_terms

WARM_DELTA = 2.0**-5
"""The first delta of a warm start; with a larger one it would leave a minimum and return."""

RISING_STEP_FACTOR = 0.1
"""The factor by which a step is shortened if the loss at its end is higher than at its start."""

HESSIAN_PASS_RATIO = 16.0
"""Rows of a Hessian times n, relative to all rows, at which it costs as much as a pass."""

PASSES_PER_HESSIAN_COST = 2.0
"""A Hessian is due when it costs at most so many times the passes since the last one."""

HESSIAN_ROWS_PER_CENTER = 25.0, 1000.0
"""Bounds of the rows per center of a Hessian; between them it costs as much as a pass."""

MAX_RISE = 1e-12
"""How far a loss without kinks may rise in a step by rounding, relative to the loss."""

MIN_STEP_SHARE = 0.5
"""After less than this share of a step the Hessian is damped or renewed: BFGS learns little."""

SUBSAMPLE_ROWS_PER_CENTER, MIN_SUBSAMPLE_ROWS = 50, 10_000
"""Rows per center of the subsample on which it begins, and the minimum of its rows."""

MIN_ROWS_PER_SUBSAMPLE_ROW = 4
"""A subsample needs at least so many rows per row of its own."""

ROUGH_TOLERANCE = 0.1
"""The tolerance on a subsample: nearer to its own minimum is not nearer to that of all rows."""

EXPECTED_PASSES, EXPECTED_PASSES_LATE, EXPECTED_PASSES_ROUGH = 30, 12, 5
"""The expected passes over all rows: without a subsample, after one, and after one that meets the
tolerance."""


@dataclass(frozen=True)
class NewtonSettings:
    """The settings of Newton's method.

    Attributes
    ----------
    ridge : Ridge
        How rho is chosen.
    max_iter : int
        The maximal number of passes over the rows.
    tol : float
        The estimated distance to the minimum at which it stops, relative to the loss; 0 never stops
        early.
    loss : Loss
        The loss that is minimised.
    penalised : bool
        Whether a penalty of the size of rho is added to the loss.
    """

    ridge: Ridge = Ridge()  # noqa: RUF009 - a frozen value
    max_iter: int = 300
    tol: float = 1e-3
    loss: Loss = HINGE
    penalised: bool = False

    name: ClassVar[str] = "newton"
    many_sweeps: ClassVar[bool] = True
    float64_features: ClassVar[bool] = True
    hessians: ClassVar[bool] = True
    samples: ClassVar[bool] = False
    update_cost: ClassVar[int] = 200  # for the slopes along a step

    def solver(
        self, factor: Factor, Aty: FloatArray, m: float, without: int | None = None
    ) -> Newton:
        """Return a solver over all rows but those of one fold part, of total weight m."""
        return Newton(factor, Aty, self, m, without)

    def expected_sweeps(self, rows: int, centers: int, dtype: Any) -> int:
        """Return the expected number of passes of a fit.

        If the classes are nearly separable, it may take ten times as many.
        """
        passes = EXPECTED_PASSES
        if self.subsample_rows(rows, centers):
            rough = self.tol >= ROUGH_TOLERANCE
            passes = EXPECTED_PASSES_ROUGH if rough else EXPECTED_PASSES_LATE
        return min(self.max_iter, passes)

    def subsample_rows(self, rows: int, centers: int) -> int:
        """Return the rows of the subsample on which to begin; 0 to begin on all rows."""
        subsample = max(SUBSAMPLE_ROWS_PER_CENTER * centers, MIN_SUBSAMPLE_ROWS)
        return subsample if rows >= MIN_ROWS_PER_SUBSAMPLE_ROW * subsample else 0


class Newton(Solver):
    """One run of Newton's method, between the sweeps of an engine.

    Parameters
    ----------
    factor : Factor
        The factor of G + rho I over its training rows.
    Aty : ndarray of shape (n, K)
        A'y over these rows, which gives the first step: least squares on the labels.
    settings : NewtonSettings
        The settings.
    m : float
        The total weight of its training rows.
    without : int or None
        The fold part that is not in its training rows.
    """

    def __init__(
        self,
        factor: Factor,
        Aty: FloatArray,
        settings: NewtonSettings,
        m: float,
        without: int | None = None,
    ) -> None:
        self.Aty, self.settings, self.m = Aty, settings, m
        self.penalty = penalty_of(settings, factor)
        self._zero_loss = float(settings.loss.value(np.zeros(1))[0])  # of coefficients of zero
        n, K = Aty.shape
        none = NewtonUpdate(((0.0, 0.0),) * K, settings.loss)  # replaced by each step
        super().__init__(factor, Problem(n, none, without), np.zeros_like(Aty))
        R = np.triu(factor.cholesky[0])
        self._T = scipy.linalg.solve_triangular(R, np.eye(n), check_finite=False) * np.sqrt(m)
        self._first = self._T.T @ Aty / m
        self.columns = [self._fresh(k) for k in range(K)]

    def _fresh(self, k: int) -> NewtonColumn:
        return self._column(np.zeros(self._first.shape[0]), self._first[:, k])

    def _column(self, u: FloatArray, dz: FloatArray) -> NewtonColumn:
        column = NewtonColumn.at(u, dz)
        column.small_loss = self.settings.loss.negligible
        return column

    def start_from(self, engine: Engine, u0: FloatArray) -> None:
        """Start from other coefficients."""
        self.columns = [self._column(np.array(u, float), np.zeros(len(u))) for u in u0.T]
        for column in self.columns:
            column.delta = column.next_delta = WARM_DELTA
            column.warm = True

    @classmethod
    def after(cls, former: Newton, settings: NewtonSettings, m: float) -> Newton:
        """Return a run over all rows, of total weight m, that continues one over a subsample.

        It uses the coordinates of the former run, whose rows are weighted to represent all rows.
        """
        run = cls(former.factor, former.Aty, settings, m, former.problem.without)
        for own, column in zip(run.columns, former.columns, strict=True):
            own.u, own.dz = column.u, np.zeros_like(column.dz)
            own.W, own.M, own.damping = column.W, column.M, column.damping
            own.delta = own.next_delta = column.delta
            own.claimed = float(column.losses[0])
            own.since = -1  # as if the last Hessian were of this point
            if settings.tol < former.settings.tol:
                own.since = len(column.u)  # so that a Hessian of all rows is due
        return run

    def step(self) -> None:
        """Set u to the next point of each column, and the update of the sweep there."""
        roundings, u = [], np.empty_like(self.u)  # a new array: columns have views of the old one
        for k, column in enumerate(self.columns):
            along = 0.0 if column.done else column.length
            u[:, k] = column.u + along * (self._T @ column.dz)
            line = column.delta if column.trial and not column.done else 0.0
            line = line if column.begun or column.done else -1.0  # -1 sets the first multipliers
            roundings.append((column.delta if column.done else column.next_delta, line))
        update = NewtonUpdate(tuple(roundings), self.settings.loss)
        self.problem = replace(self.problem, update=update)
        self.u = u
        self.iterates += 1

    def update(self, swept: NewtonSums, seconds: float) -> None:
        """Update the columns and the history by the sums of the sweep at the new point."""
        if self.penalty:
            self._add_penalty(swept)
        for k, column in enumerate(self.columns):
            if not column.done:
                self._update_column(column, k, swept)
        loss = swept.loss / self.m
        row = dict.fromkeys(HISTORY_COLUMNS, np.nan) | {"seconds": seconds}
        row |= {"objective": float(loss.mean()), "training_error": float(swept.wrong[0] / self.m)}
        self.rows.append(row)

    def _add_penalty(self, swept: NewtonSums) -> None:
        """Add the penalty to the loss, to minus its gradient, and to the slopes along the step."""
        swept.loss = swept.loss + penalty_terms(self.penalty, self.u)
        swept.r -= self.penalty * self.u
        start = np.column_stack([column.u for column in self.columns])
        step = self.u - start
        along, across = (np.einsum("nk,nk->k", x, step) for x in (start, step))
        slopes = along + STEP_LENGTHS[:, np.newaxis] * across
        swept.slopes = swept.slopes + self.penalty * slopes

    def _update_column(self, column: NewtonColumn, k: int, swept: NewtonSums) -> None:
        """Accept the new point of a column, or correct the length of its step."""
        column.since += 1
        loss = float(swept.loss[k]) / self.m
        if not np.isfinite(swept.r[:, k]).all():  # overflow: try a far shorter step
            column.length, column.trial = column.length * STEP_LENGTHS[0], False
            return
        if column.warm and loss >= self._zero_loss:  # worse than zero coefficients: start afresh
            self.columns[k] = self._fresh(k)
            return
        if loss < column.best:
            column.best, column.best_u = loss, self.u[:, k]
        smooth = self.settings.loss.smooth
        higher = loss > (column.losses[0] * (1 + MAX_RISE) if smooth else column.ceiling(self.m))
        if column.begun and column.trial:
            length = column.right_length(swept.slopes[:, k] / self.m, higher)
            if length != 1.0:
                column.length, column.trial = length, False
                return
        elif column.begun and higher:  # the slope was interpolated, and jumps
            column.length *= RISING_STEP_FACTOR
            return
        self._arrive(column, k, swept, loss)

    def _arrive(self, column: NewtonColumn, k: int, swept: NewtonSums, loss: float) -> None:
        """Accept the new point of a column."""
        g = -(self._T.T @ swept.r[:, k]) / self.m
        if column.begun and column.next_delta == column.delta:
            column.follow(column.length * column.dz, g - column.g)
        if column.next_delta != column.delta:
            column.redampings = 0
        column.u, column.delta, column.g = self.u[:, k], column.next_delta, g
        column.taken = column.length if column.begun else 1.0
        column.damp()
        column.curved, column.gap = float(swept.curved[k]), float(swept.gap[k]) / self.m
        column.losses = np.append(loss, column.losses[:-1])
        column.arrived, column.done = True, loss == self.settings.loss.minimum

    def finish(self, engine: CurvatureEngine, number: int) -> None:
        """Compute the Hessians that are due, choose the next steps, and decide whether to stop."""
        for k, column in enumerate(self.columns):
            if column.done or not column.arrived:
                continue
            if self._keeps_hessian(column, engine.n_rows):
                near = column.aim(self.settings.tol)
                if not near or column.since == 0:
                    continue  # before it stops, a new Hessian must confirm it
            least = column.curved / self._drawn(engine.n_rows)
            H = engine.curvature(self.problem, number, k, least, self._T)
            column.refresh(H, self.m, self._penalty_hessian())
            column.aim(self.settings.tol)
        self.rows[-1]["dual_residual"] = float(np.max([c.left() for c in self.columns]))
        if all(column.done for column in self.columns):
            least = self.settings.loss.minimum
            zero = all(column.losses[0] == least for column in self.columns)
            self.status = Status.ZERO_LOSS if zero else Status.MINIMUM
        elif len(self.rows) >= self.settings.max_iter:
            self.status = Status.MAX_ITER

    def _penalty_hessian(self) -> FloatArray | None:
        """Return the Hessian of the penalty in the coordinates z, if there is one."""
        return self.penalty / self.m * (self._T.T @ self._T) if self.penalty else None

    def _keeps_hessian(self, column: NewtonColumn, rows: int) -> bool:
        """Return whether the last Hessian will do; after a bad step it is damped anew.

        A new one is due when it is worth its cost, or when damping has not helped.
        """
        cost = min(self._drawn(rows), rows) * self.problem.n / (HESSIAN_PASS_RATIO * rows)
        if column.since * PASSES_PER_HESSIAN_COST >= cost:
            return False
        if column.taken < MIN_STEP_SHARE:
            if column.redampings == 0:
                return False
            column.redamp(self._penalty_hessian())
        return True

    def _drawn(self, rows: int) -> float:
        """Return the expected number of rows from which a Hessian is estimated."""
        n, (least, most) = self.problem.n, HESSIAN_ROWS_PER_CENTER
        return n * min(max(HESSIAN_PASS_RATIO * rows / n**2, least), most)

    def shortfall(self) -> str:
        """Return the estimated distance to the minimum."""
        left = self.rows[-1]["dual_residual"]
        return f"about {left:.2g} of the loss above its minimum; that should fall below tol"

    def saved(self) -> tuple[dict[str, FloatArray], dict[str, Any]]:
        """Return the state to resume from, as arrays and plain values."""
        arrays: dict[str, FloatArray] = {"u": self.u}
        values: dict[str, Any] = {}
        for k, column in enumerate(self.columns):
            for f in fields(column):
                value = getattr(column, f.name)
                (arrays if isinstance(value, np.ndarray) else values)[f"{f.name}{k}"] = value
        return arrays, values

    def restore(self, arrays: dict[str, FloatArray], values: dict[str, Any]) -> None:
        """Resume from what ``saved`` returned."""
        self.u = required_array(arrays, "u", "f", self.u.shape, of_a_fit=True)
        for k, column in enumerate(self.columns):
            for f in fields(column):
                key, now = f"{f.name}{k}", getattr(column, f.name)
                if isinstance(now, np.ndarray):
                    value: Any = required_array(
                        arrays, key, "f", now.shape, finite=False, of_a_fit=True
                    )
                else:
                    value = values[key]
                    flags = isinstance(value, bool) == isinstance(now, bool)
                    number = isinstance(value, int | float) and flags
                    require(number or (value is None and f.name == "claimed"), f"{key} is {value}")
                setattr(column, f.name, value)
            deltas = (column.delta, column.next_delta)
            require(0.0 < min(deltas) <= max(deltas) < LARGEST, "a delta must be positive")

    def coefficients(self) -> FloatArray:
        """Return the best point of each column so far; the next one, if none was visited."""
        u = self.u.copy()
        for k, column in enumerate(self.columns):
            if column.best < np.inf:
                u[:, k] = column.best_u
        return u
