"""The proximal ADMM of the paper, over an engine.

It minimises, for each label column, ``(1/m) [sum_i omega_i loss(y_i (A u)_i) + (p/2) u'u]`` over u.

======== ====================================================== =========
symbol   meaning                                                shape
======== ====================================================== =========
A        features, A[i, j] = (1 + x_i.c_j)^s                    (m, n)
u        coefficients                                           (n, K)
v        copy of A u that the loss acts on                      (m, K)
w        multiplier of A u = v                                  (m, K)
q        w / beta                                               (m, K)
r        A'(v - q - A u), the residual of the u-step            (n, K)
g        A'q                                                    (n, K)
G        A'A                                                    (n, n)
gamma    m beta                                                 scalar
p        the penalty, 0 for the paper's problem                 scalar
kappa    p / gamma                                              scalar
rho      alpha / beta + kappa                                   scalar
======== ====================================================== =========

All sums over the m rows are weighted by omega, and m is the sum of the weights. v, w and q live in
the engine (``engine/row_updates.py``). The u-step is taken in its residual form,
``u + (G + rho I)^-1 r``, which equals line 3 of Algorithm 1 but in which rounding errors of G act
only as those of a preconditioner; the direct form diverges where G is nearly singular.

A penalty enters the residual as ``r - kappa u``, and the proximal term has what it leaves of rho.
That must not be negative, so gamma is at least p / rho.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from polysift.engine.engine import Engine
from polysift.engine.initial_updates import FirstUpdate, GivenUpdate
from polysift.engine.problems import Problem
from polysift.engine.row_updates import AdmmUpdate
from polysift.engine.sums import AdmmSums
from polysift.losses import HINGE, Loss
from polysift.runtime.arrays import required_array
from polysift.runtime.types import FloatArray
from polysift.solvers.factor import Factor, Ridge
from polysift.solvers.initial_point import InitialPoint
from polysift.solvers.leave_one_out import LeaveOneOut
from polysift.solvers.result import Status
from polysift.solvers.solver import Solver, penalty_of, penalty_terms

LOOK_BACK_ITERATIONS = 10
"""Iterations over which the objective must have changed little, in the converged mode."""

EARLY_STOP_ROWS = 2000
"""With more rows the paper's stopping rule with its defaults ends after two iterations."""

MIN_RIDGE_STIFFNESS = 100.0
"""The m beta from which a few iterations stay close to the first: each moves a row by its inverse
at most."""

NOISY_FLOAT32_ROWS = 1_000_000
"""With more float32 rows their rounding alone keeps the sum of the paper's rule above tol."""


@dataclass(frozen=True)
class AdmmSettings:
    """The settings of the paper's ADMM, which stops at a small H-norm difference.

    Attributes
    ----------
    beta : float or None
        The parameter of the augmented Lagrangian; None means ``gamma / m``.
    gamma : float
        m beta, used if ``beta`` is None.
    ridge : Ridge
        How rho = alpha / beta is chosen.
    relax : float
        Over-relaxation, 1 for the paper's algorithm.
    max_iter : int
        The maximal number of iterations.
    tol : float
        The tolerance of the stopping rule; 0 never stops early.
    loss : Loss
        The loss that is minimised.
    penalised : bool
        Whether a penalty of the size of rho is added to the loss.
    """

    beta: float | None = 1.0
    gamma: float = 0.1
    ridge: Ridge = Ridge()  # noqa: RUF009 - a frozen value
    relax: float = 1.0
    max_iter: int = 5
    tol: float = 5e-4
    loss: Loss = HINGE
    penalised: bool = False

    name: ClassVar[str] = "paper"
    many_sweeps: ClassVar[bool] = False
    float64_features: ClassVar[bool] = False
    hessians: ClassVar[bool] = False
    samples: ClassVar[bool] = True
    update_cost: ClassVar[int] = 0
    first_products: ClassVar[int] = 3
    """The minimal number of products of the first step, with a sampled Gram matrix."""

    def beta_for(self, m: float) -> float:
        """Return beta for rows of total weight m."""
        return self.gamma / m if self.beta is None else self.beta

    def solver(
        self, factor: Factor, Aty: FloatArray, m: float, without: int | None = None
    ) -> Solver:
        """Return a solver over all rows but those of one fold part, of total weight m."""
        return Admm(factor, Aty, self, m, without)

    def is_final(self, iterates: int) -> bool:
        """Return whether the sweep of the last iterate can be skipped: its results are unused."""
        return self.tol == 0.0 and iterates == self.max_iter

    def stopping_status(self, rows: list[dict[str, float]]) -> Status | None:
        """Return the status to stop with after the last iteration, or None to continue."""
        if rows[-1]["h_norm_difference"] < self.tol:
            return Status.TOLERANCE
        return Status.MAX_ITER if len(rows) >= self.max_iter else None

    def shortfall(self, rows: list[dict[str, float]]) -> str:
        """Return an empty text: a few iterations are not expected to converge."""
        return ""

    def expected_sweeps(self, rows: int, centers: int, dtype: Any) -> int:
        """Return the expected number of sweeps of a fit, or an upper bound."""
        if self.tol == 0:
            return self.max_iter - 1
        early = rows > EARLY_STOP_ROWS and self.beta_for(rows) >= 1 and self.tol >= 5e-4
        noisy = dtype == np.float32 and rows > NOISY_FLOAT32_ROWS
        return min(self.max_iter, 2) if early and not noisy else self.max_iter

    def subsample_rows(self, rows: int, centers: int) -> int:
        """Return 0: it begins on all rows."""
        return 0


@dataclass(frozen=True)
class ConvergedSettings(AdmmSettings):
    """The settings of the ADMM that runs until residuals and objective have converged."""

    beta: float | None = None
    relax: float = 1.7
    max_iter: int = 300
    tol: float = 1e-3

    name: ClassVar[str] = "converged"
    many_sweeps: ClassVar[bool] = True
    first_products: ClassVar[int] = 5  # all other steps depend on its lambda

    def is_final(self, iterates: int) -> bool:
        """Return False: the residuals of the last iteration are needed."""
        return False

    def stopping_status(self, rows: list[dict[str, float]]) -> Status | None:
        """Return the status to stop with after the last iteration, or None to continue."""
        tol, last = self.tol, rows[-1]
        if last["objective"] == self.loss.minimum:
            return Status.ZERO_LOSS
        if len(rows) > LOOK_BACK_ITERATIONS:
            change = abs(last["objective"] - rows[-1 - LOOK_BACK_ITERATIONS]["objective"])
            residual = max(last["primal_residual"], last["dual_residual"])
            if residual < tol and change < tol * last["objective"]:
                return Status.CONVERGED
        return Status.MAX_ITER if len(rows) >= self.max_iter else None

    def shortfall(self, rows: list[dict[str, float]]) -> str:
        """Return the residuals of the last iteration."""
        primal, dual = (rows[-1][f"{name}_residual"] for name in ("primal", "dual"))
        return (
            f"with a primal residual of {primal:.2g} and a dual one of {dual:.2g}; both should "
            "fall below tol"
        )

    def expected_sweeps(self, rows: int, centers: int, dtype: Any) -> int:
        """Return the maximal number of sweeps."""
        return self.max_iter


class Admm(Solver):
    """One run of the ADMM, between the sweeps of an engine.

    Parameters
    ----------
    factor : Factor
        The factor of G + rho I over its training rows.
    Aty : ndarray of shape (n, K)
        A'y over these rows: the residual of the paper's start, (u, v, w) = (0, y, 0).
    settings : AdmmSettings
        The settings.
    m : float
        The total weight of its training rows.
    without : int or None
        The fold part that is not in its training rows.

    Attributes
    ----------
    r, g : ndarray of shape (n, K)
        The residual of the next u-step, and A'q.
    penalty, kappa : float
        The penalty, and its weight in the u-step.
    """

    def __init__(
        self,
        factor: Factor,
        Aty: FloatArray,
        settings: AdmmSettings,
        m: float,
        without: int | None = None,
    ) -> None:
        self.settings, self.m, self.beta = settings, m, settings.beta_for(m)
        self.penalty = penalty_of(settings, factor)
        self.beta = max(self.beta, self.penalty / factor.rho / m)
        self.kappa = self.penalty / (m * self.beta)
        update = AdmmUpdate(m * self.beta, settings.relax, settings.loss)
        super().__init__(factor, Problem(len(Aty), update, without), np.zeros_like(Aty))
        self.r, self.g = Aty, np.zeros_like(Aty)
        first = float(settings.loss.prox_step(np.ones(1), m * self.beta)[0])
        if first:  # rows begin with t = 1, so that v = y (1 + first) and q = -y first
            self.r, self.g = (1.0 + 2.0 * first) * Aty, -first * Aty
        self._du = self.u
        self._given: tuple[InitialPoint, AdmmSums | None] | None = None

    def start_at(self, engine: Engine, point: InitialPoint) -> None:
        """Start from a point that is given; takes two passes over the rows."""
        given = replace(self.problem, update=GivenUpdate(loss=self.settings.loss))
        q, state = point.w / self.beta, engine.state
        assert isinstance(state, np.ndarray)  # checked before: the engine is of this machine
        state[:] = q
        self.g = engine.sweep([given], np.zeros_like(point.u)).r
        self.u = point.u
        state[:] = point.v
        self.r = self._with_penalty(engine.sweep([given], self.u).r - self.g)
        state[:] = q
        first = FirstUpdate(self.m * self.beta, 1.0, self.settings.loss)
        self.problem, self._given = replace(self.problem, update=first), (point, None)

    def finish(self, engine: Any, number: int) -> None:
        """After the first sweep from a given point, add what v has moved to its sums."""
        if self._given is None:
            return
        (point, swept), self._given = self._given, None
        assert swept is not None
        update = AdmmUpdate(self.m * self.beta, self.settings.relax, self.settings.loss)
        self.problem = replace(self.problem, update=update)
        t = np.asarray(engine.state[:, number * self.u.shape[1] :][:, : self.u.shape[1]])
        v = t + self.settings.loss.prox_step(t, self.m * self.beta)
        self.update(replace(swept, dv2=point.moved(v)), self._seconds)

    def start_from(self, engine: Engine, u0: FloatArray) -> None:
        """Start from other coefficients, with v = prox(A u0) and w the matching multiplier."""
        self.u = np.array(u0, dtype=float)
        exact = AdmmUpdate(self.m * self.beta, 1.0, self.settings.loss)
        r = engine.sweep([replace(self.problem, update=exact)], self.u).r
        self.r, self.g = self._with_penalty(r), -r / 2

    def step(self) -> None:
        """Take the u-step: line 3 of Algorithm 1, in residual form."""
        self._du = self._solved()
        self.u = self.u + self._du
        self.iterates += 1
        if self.settings.is_final(self.iterates):
            self.status = Status.MAX_ITER

    def _solved(self) -> FloatArray:
        """Return the step (G + rho I)^-1 r."""
        return self.factor.solve(self.r)

    def _with_penalty(self, r: FloatArray) -> FloatArray:
        """Return the residual of the u-step from A'(v - q - A u)."""
        return r - self.kappa * self.u if self.kappa else r

    def update(self, swept: AdmmSums, seconds: float) -> None:
        """Update r, the history and the status by the sums of a sweep: line 6 of Algorithm 1."""
        if self._given is not None:  # to be completed first
            self._given, self._seconds = (self._given[0], swept), seconds
            return
        self.r, self.g = self._with_penalty(swept.r), self._next_g(swept.r)
        self.rows.append(self._measured(swept) | {"seconds": seconds})
        self.status = self.settings.stopping_status(self.rows)

    def _next_g(self, r: FloatArray) -> FloatArray:
        """Return A'q of the new q, from n-vectors alone.

        The w-update gives q = relax (f - v_old) + v_old + q_old - v. Multiply by A', insert
        A'(f - v_old) = -rho du - kappa u_old - A'q_old (the optimality of the u-step) and
        r = A'(v - q - f), and solve for A'q. Rounding errors shrink by (2 - relax) / 2 in each
        step. Without over-relaxation the step cancels, and may be inexact.
        """
        relax, rho = self.settings.relax, self.factor.rho
        g = 0.5 * ((2.0 - relax) * self.g - (relax - 1.0) * rho * self._du - r)
        return g - 0.5 * (relax - 1.0) * self.kappa * (self.u - self._du) if self.kappa else g

    def _measured(self, swept: AdmmSums) -> dict[str, float]:
        """Return the iteration's row of the history: over label columns the mean, or the maximum.

        The primal residual is ``|A u - v| / max(|A u|, |v|)``. The dual one is the part of q that
        lies in the range of A, ``sqrt(g'(G + rho I)^-1 g) / |q|``: zero at the optimum, at most 1,
        and independent of the basis of the features. With a sample, M replaces G + rho I; with a
        penalty, g + kappa u replaces g.
        """
        tiny, du = np.finfo(float).tiny, self._du
        size = np.maximum(np.maximum(swept.f2, swept.v2), tiny)
        primal = np.sqrt(np.minimum(swept.primal, 4.0 * size) / size)  # rounding apart: 4 at most
        g = self.g + self.kappa * self.u if self.kappa else self.g
        dual = np.sqrt(self.factor.square(g) / np.maximum(swept.q2, tiny))
        proximal = self.factor.rho - self.kappa
        moved = proximal * np.einsum("nk,nk->k", du, du) + swept.dv2 + swept.dq2
        objective = swept.loss + penalty_terms(self.penalty, self.u)
        return {
            "objective": float(objective.mean() / self.m),
            "training_error": float(swept.wrong[0] / self.m),
            "primal_residual": float(primal.max()),
            "dual_residual": float(dual.max()),
            "h_norm_difference": float((self.beta * moved).max()),
        }

    def leave_one_out(self) -> LeaveOneOut | None:
        """Return how the margin of a row would be without it: as that of its first iterate.

        Where m beta is large, a few iterations stay close to it; on the way to the minimum of the
        hinge loss nothing is known, nor with a sampled Gram matrix.
        """
        near = self.m * self.beta >= MIN_RIDGE_STIFFNESS and self.products is None
        if not near or type(self.settings) is not AdmmSettings:
            return None
        return LeaveOneOut(self.factor, self.u)

    def shortfall(self) -> str:
        """Return how far from convergence the last iteration was, for a warning."""
        return self.settings.shortfall(self.rows)

    def saved(self) -> tuple[dict[str, FloatArray], dict[str, Any]]:
        """Return the state to resume from, as arrays and plain values."""
        return {"u": self.u, "r": self.r, "g": self.g}, {}

    def restore(self, arrays: dict[str, FloatArray], values: dict[str, Any]) -> None:
        """Resume from what ``saved`` returned."""
        shape = self.u.shape
        self.u, self.r, self.g = (
            required_array(arrays, name, "f", shape, of_a_fit=True) for name in ("u", "r", "g")
        )
