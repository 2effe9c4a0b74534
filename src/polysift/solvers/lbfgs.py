"""A few quasi-Newton steps on a smooth loss, from a calibrated ridge regression.

The first iterate of the ADMM, u = (G + rho I)^-1 A'y, fits the labels by least squares. For the
logistic loss it is a good point to start from, but for its scale: scores of +1 and -1 are no
log-odds. One pass over the rows finds the factor a with the least loss, from margins that are
corrected for a row's own influence (leave-one-out, with the mean leverage h = df / m):

    t_i <- (t_i - h) / (1 - h)

At the scaled scores the mean curvature c of the loss is known, and c (G + rho I) is close to the
Hessian of the loss with the penalty (c rho / 2) |u|^2. So it is the metric in which a few steps of
L-BFGS go a long way, each of them a pass over the rows. They stop early: more of them fit the
training rows better, but on 26 tables not the others.

All label columns are problems of their own, which share the passes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from polysift.engine.engine import Engine
from polysift.engine.problems import Problem
from polysift.engine.row_updates import NewtonUpdate, ScaleUpdate
from polysift.engine.sums import SCALES, NewtonSums, ScaleSums
from polysift.losses import LOGISTIC, Loss
from polysift.runtime.arrays import require, required_array
from polysift.runtime.types import FloatArray
from polysift.solvers.factor import Factor, Ridge
from polysift.solvers.leave_one_out import LeaveOneOut
from polysift.solvers.result import HISTORY_COLUMNS, Status
from polysift.solvers.solver import Solver

SUFFICIENT_DECREASE = 1e-4
"""The share of the decrease that the slope promises, which a step must achieve (Armijo)."""

SHORTER_STEP = 0.3
"""The factor by which a step that fails is shortened."""

MIN_CURVATURE = 1e-4
"""The least mean curvature of the loss that is counted with."""

MAX_STEPS_NEAR_START = 20
"""The most passes after which the model is still judged by its start."""

UNROUNDED = 0.25
"""A rounding by which four times it times a curvature is the curvature itself."""


@dataclass(frozen=True)
class LbfgsSettings:
    """The settings of the quasi-Newton steps.

    Attributes
    ----------
    ridge : Ridge
        How rho is chosen.
    max_iter : int
        The maximal number of passes over the rows: one for the scale, one for the first gradient,
        and one for each step.
    tol : float
        The expected decrease of the loss in the next step, relative to the loss, at which it stops;
        0 never stops early.
    loss : Loss
        The loss that is minimised, which must be smooth.
    """

    ridge: Ridge = Ridge()  # noqa: RUF009 - a frozen value
    max_iter: int = 7
    tol: float = 1e-4
    loss: Loss = LOGISTIC

    name: ClassVar[str] = "lbfgs"
    penalised: ClassVar[bool] = True
    many_sweeps: ClassVar[bool] = True
    float64_features: ClassVar[bool] = False
    hessians: ClassVar[bool] = False
    samples: ClassVar[bool] = False
    update_cost: ClassVar[int] = 50

    def solver(
        self, factor: Factor, Aty: FloatArray, m: float, without: int | None = None
    ) -> Lbfgs:
        """Return a solver over all rows but those of one fold part, of total weight m."""
        return Lbfgs(factor, Aty, self, m, without)

    def expected_sweeps(self, rows: int, centers: int, dtype: Any) -> int:
        """Return the maximal number of sweeps."""
        return self.max_iter

    def subsample_rows(self, rows: int, centers: int) -> int:
        """Return 0: it begins on all rows."""
        return 0


class Lbfgs(Solver):
    """One run of the quasi-Newton steps, for all label columns of one problem.

    Parameters
    ----------
    factor : Factor
        The factor of G + rho I.
    Aty : ndarray of shape (n, K)
        A'y over the training rows.
    settings : LbfgsSettings
        The parameters.
    m : float
        The total weight of the training rows.
    without : int, optional
        The fold part that is held out.
    """

    def __init__(
        self,
        factor: Factor,
        Aty: FloatArray,
        settings: LbfgsSettings,
        m: float,
        without: int | None = None,
    ) -> None:
        self.settings, self.m = settings, m
        n, K = Aty.shape
        leverage = 0.0 if factor.choice is None else min(factor.choice.freedom / m, 0.9)
        update = ScaleUpdate(leverage, settings.loss)
        super().__init__(factor, Problem(n, update, without), factor.solve(Aty))
        self._start = self.u
        self._curvature = np.full(K, 0.25)  # c of each column
        self._scaled = False
        self._at = self.u  # the point of the last accepted step
        self._loss = np.full(K, np.inf)
        self._gradient, self._direction = np.zeros((2, n, K))
        self._length = np.ones(K)
        self._pairs: list[tuple[FloatArray, FloatArray]] = []

    def start_from(self, engine: Engine, u0: FloatArray) -> None:
        """Start from other coefficients, which have their scale."""
        self.u = self._at = np.array(u0, dtype=float)
        self._scaled = True

    def step(self) -> None:
        """Set u to the next point, and the update of the sweep there."""
        if self._scaled:
            self.u = self._at + self._length * self._direction
            roundings = ((UNROUNDED, 0.0),) * self.u.shape[1]
            update = NewtonUpdate(roundings, self.settings.loss)
            self.problem = replace(self.problem, update=update)
        self.iterates += 1

    def update(self, swept: Any, seconds: float) -> None:
        """Update the point and the direction by the sums of the sweep at the new u."""
        expected = np.inf
        if self._scaled:
            expected = self._arrive(swept)
        else:
            self._scale(swept)
        row = dict.fromkeys(HISTORY_COLUMNS, np.nan) | {"seconds": seconds}
        row |= {
            "objective": float(swept.loss.mean() / self.m),
            "training_error": float(swept.wrong[0] / self.m),
            "dual_residual": expected if np.isfinite(expected) else np.nan,
        }
        self.rows.append(row)
        if expected < self.settings.tol:
            self.status = Status.MINIMUM
        elif len(self.rows) >= self.settings.max_iter:
            self.status = Status.MAX_ITER

    def _scale(self, swept: ScaleSums) -> None:
        """Scale the ridge regression to the least loss of each column."""
        factors, places = zip(*map(least_scale, swept.slopes.T), strict=True)
        self._scaled, self._at = True, self.u * np.array(factors)
        curved = [column[at] for column, at in zip(swept.curved.T, places, strict=True)]
        self._curvature = np.maximum(np.array(curved) / self.m, MIN_CURVATURE)

    def _arrive(self, swept: NewtonSums) -> float:
        """Accept the new point where the loss is low enough; return the expected decrease."""
        penalty = self._curvature * self.factor.rho
        loss = swept.loss + 0.5 * penalty * _dot(self.u, self.u)
        gradient = penalty * self.u - swept.r
        slope = _dot(self._gradient, self._direction)
        allowed = self._loss + SUFFICIENT_DECREASE * self._length * slope
        better = np.isfinite(loss) & ((loss <= allowed) | np.isinf(self._loss))
        self._length = np.where(better, 1.0, SHORTER_STEP * self._length)
        if np.isfinite(self._loss).all():
            moved, bent = self.u - self._at, gradient - self._gradient
            self._pairs.append((np.where(better, moved, 0.0), np.where(better, bent, 0.0)))
        self._at = np.where(better, self.u, self._at)
        self._loss = np.where(better, loss, self._loss)
        self._gradient = np.where(better, gradient, self._gradient)
        self._direction = np.where(better, self._towards(), self._direction)
        decrease = -0.5 * _dot(self._gradient, self._direction)
        return float(np.max(decrease / np.maximum(self._loss, np.finfo(float).tiny)))

    def _towards(self) -> FloatArray:
        """Return the direction of L-BFGS, by its two loops; the metric is c (G + rho I)."""
        q, scales = self._gradient.copy(), []
        known = [(s, y, _dot(s, y)) for s, y in self._pairs]
        for s, y, sy in reversed(known):
            a = np.divide(_dot(s, q), sy, out=np.zeros_like(sy), where=sy > 0.0)
            q -= a * y
            scales.append(a)
        q = self.factor.solve(q) / self._curvature
        for (s, y, sy), a in zip(known, reversed(scales), strict=True):
            b = np.divide(_dot(y, q), sy, out=np.zeros_like(sy), where=sy > 0.0)
            q += (a - b) * s
        return -q

    def coefficients(self) -> FloatArray:
        """Return the best coefficients so far."""
        return self._at

    def leave_one_out(self) -> LeaveOneOut | None:
        """Return how the margin of a row would be without it: by the ridge regression."""
        few = self.settings.max_iter <= MAX_STEPS_NEAR_START
        return LeaveOneOut(self.factor, self._start, self.settings.loss) if few else None

    def saved(self) -> tuple[dict[str, FloatArray], dict[str, Any]]:
        """Return the state to resume from, as arrays and plain values."""
        arrays = {name: getattr(self, f"_{name}") for name in STATE} | {"u": self.u}
        for i, pair in enumerate(self._pairs):
            arrays |= {f"moved{i}": pair[0], f"bent{i}": pair[1]}
        return arrays, {"scaled": self._scaled, "pairs": len(self._pairs)}

    def restore(self, arrays: dict[str, FloatArray], values: dict[str, Any]) -> None:
        """Resume from what ``saved`` returned."""
        shape, count = self.u.shape, values["pairs"]
        require(type(count) is int and count >= 0, "pairs must be a number of steps")
        require(type(values["scaled"]) is bool, "scaled must be true or false")
        for name in STATE:
            own = getattr(self, f"_{name}").shape
            found = required_array(arrays, name, "f", own, finite=name != "loss", of_a_fit=True)
            setattr(self, f"_{name}", found)
        self.u = required_array(arrays, "u", "f", shape, of_a_fit=True)
        self._pairs = [
            (
                required_array(arrays, f"moved{i}", "f", shape, of_a_fit=True),
                required_array(arrays, f"bent{i}", "f", shape, of_a_fit=True),
            )
            for i in range(count)
        ]
        self._scaled = values["scaled"]


STATE = ("curvature", "at", "loss", "gradient", "direction", "length")
"""The arrays of a run's state, besides u and the steps so far."""


def least_scale(slopes: FloatArray) -> tuple[float, int]:
    """Return the factor at which the loss is least, by its slopes at ``SCALES``, and the nearest.

    The loss is convex, so that its slope rises.
    """
    above = np.flatnonzero(slopes > 0.0)
    if not len(above):
        return float(SCALES[-1]), len(SCALES) - 1
    at = int(above[0])
    if at == 0:
        return float(SCALES[0]), 0
    share = -slopes[at - 1] / (slopes[at] - slopes[at - 1])
    factor = np.exp(np.interp(share, [0.0, 1.0], np.log(SCALES[at - 1 : at + 1])))
    return float(factor), at if share > 0.5 else at - 1


def _dot(X: FloatArray, Y: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("nk,nk->k", X, Y))
