"""The proximal ADMM of the paper, over an engine.

It minimises, for each label column, ``(1/m) sum_i omega_i max(0, 1 - y_i (A u)_i)`` over u.

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
rho      alpha / beta                                           scalar
gamma    m beta                                                 scalar
======== ====================================================== =========

All sums over the m rows are weighted by omega, and m is the sum of the weights. v, w and q live in
the engine. The u-step is taken in its residual form, ``u + (G + rho I)^-1 r``, which equals line 3
of Algorithm 1 but in which rounding errors of G act only as those of a preconditioner; the direct
form diverges where G is nearly singular.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg

from polysift.engine.local import Engine
from polysift.engine.problems import Problem
from polysift.engine.sums import SweepSums
from polysift.runtime.types import FloatArray
from polysift.solvers.result import Result, Status, as_history

RHO_FLOOR = 10.0
"""The floor on rho in units of eps trace(G), the order of the rounding errors in G."""

LOOK_BACK = 10
"""Iterations over which the converged mode wants the objective to have settled."""


@dataclass(frozen=True)
class Settings:
    """How to run the ADMM.

    Attributes
    ----------
    beta : float
        The augmented Lagrangian parameter.
    rho : float or None
        alpha / beta, as an absolute number.
    relative_rho : float or None
        The same relative to trace(G) / n; used if ``rho`` is None. With neither, rho is
        ``floor_multiple`` times its floor.
    floor_multiple : float
        See ``relative_rho``.
    relax : float
        Over-relaxation, 1 for the paper's algorithm.
    max_iter : int
        Iterations at most.
    tol : float
        The tolerance of the stopping rule; 0 never stops early.
    until_converged : bool
        The rule: residuals and objective if true, else the paper's squared H-norm difference.
    newton : bool
        Whether to go to the minimum by Newton's method instead (``_newton``).
    """

    beta: float
    rho: float | None = None
    relative_rho: float | None = None
    floor_multiple: float = 1.0
    relax: float = 1.0
    max_iter: int = 5
    tol: float = 5e-4
    until_converged: bool = False
    newton: bool = False


@dataclass(frozen=True)
class Factor:
    """The Cholesky factor of G + rho I; it serves all label columns, and any beta.

    If ``sampled``, it is that of M = H + rho I, where H estimates G, and ``largest`` is the largest
    eigenvalue of M^-1 (G + rho I), as far as it is known.
    """

    cholesky: Any
    rho: float
    rho_floor: float
    rho_raised: bool
    sampled: bool = False
    largest: float = 1.0

    def solve(self, r: FloatArray) -> FloatArray:
        """Return (G + rho I)^-1 r; if sampled, (largest M)^-1 r."""
        return self.precondition(r) / self.largest

    def precondition(self, r: FloatArray) -> FloatArray:
        """Return (G + rho I)^-1 r; if sampled, M^-1 r."""
        return np.asarray(scipy.linalg.cho_solve(self.cholesky, r, check_finite=False))

    def square(self, r: FloatArray) -> FloatArray:
        """Return r'(G + rho I)^-1 r for each column; if sampled, r'M^-1 r."""
        return np.maximum(np.einsum("nk,nk->k", r, self.precondition(r)), 0.0)


def factorise(G: FloatArray, settings: Settings, trace: float | None = None) -> Factor:
    """Choose rho, at least its floor, and factor G + rho I; G's diagonal is overwritten.

    Where ``trace`` is given, it is that of the Gram matrix which ``G`` estimates from a sample.
    """
    n = len(G)
    diagonal = G.diagonal().copy()
    sampled = trace is not None
    trace = float(diagonal.sum()) if trace is None else trace
    if not np.isfinite(trace):
        raise FloatingPointError(
            "The Gram matrix overflows. Lower the degree, or scale the sample weights down."
        )
    floor = max(RHO_FLOOR * np.finfo(float).eps * trace, np.finfo(float).tiny)
    asked = settings.rho
    if asked is None and settings.relative_rho is not None:
        asked = settings.relative_rho * trace / n
    if asked is None:
        asked = settings.floor_multiple * floor
    rho = max(asked, floor)
    while np.isfinite(rho):
        np.fill_diagonal(G, diagonal + rho)
        try:
            # The upper triangle is read and a new array written, so that G survives a failure.
            cholesky = scipy.linalg.cho_factor(G, check_finite=False)
        except scipy.linalg.LinAlgError:  # rounding beyond the floor: rare, and cured by more
            rho *= 10.0
        else:
            return Factor(cholesky, rho, floor, rho > asked, sampled)
    raise FloatingPointError(
        "G + rho I has no Cholesky factor for any rho. Lower the degree, or set rho larger."
    )


class Run:
    """One run of the ADMM, between the sweeps that an engine does for it.

    Parameters
    ----------
    factor : Factor
        The factor of G + rho I over the rows it learns from.
    Aty : ndarray of shape (n, K)
        A'y over these rows: the residual of the paper's start, (u, v, w) = (0, y, 0).
    settings : Settings
        How to run.
    m : float
        The total weight of these rows.
    without : int or None
        The fold part of rows that it does not learn from.

    Attributes
    ----------
    u, r, g : ndarray of shape (n, K)
        Coefficients, residual of the next u-step, A'q (or what stands for it; see ``absorb``).
    products : int
        Products with G that its steps took, where the factor is of a sample.
    start_square : ndarray of shape (K,)
        The squared norm of A'y in M^-1 there: the scale of residuals.
    rows : list of dict
        The history so far, a row per iteration.
    iterates : int
        How many u there have been; one more than rows while a sweep runs, or if none is needed.
    status : Status or None
        Why the iterations ended, if they have.
    """

    def __init__(
        self,
        factor: Factor,
        Aty: FloatArray,
        settings: Settings,
        m: float,
        without: int | None = None,
    ) -> None:
        self.factor, self.settings, self.m = factor, settings, m
        self.problem = Problem(len(Aty), m * settings.beta, settings.relax, without)
        self.u, self.r, self.g = np.zeros_like(Aty), Aty, np.zeros_like(Aty)
        self.rows: list[dict[str, float]] = []
        self.iterates = 0
        self.status: Status | None = None
        self.products = 0
        self.start_square = factor.square(Aty) if factor.sampled else np.zeros(Aty.shape[1])
        self._du = self.u

    def start_from(self, engine: Engine, u0: FloatArray) -> None:
        """Start from other coefficients, with v = prox(A u0) and w the matching multiplier."""
        self.u = np.array(u0, dtype=float)
        self.r = engine.sweep([replace(self.problem, relax=1.0)], self.u).r
        self.g = -self.r / 2

    def step(self, du: FloatArray | None = None) -> None:
        """Take the u-step: the first line of the paper's Algorithm 1, in residual form.

        ``du`` is the step, where somebody else has solved for it.
        """
        self._du = self.factor.solve(self.r) if du is None else du
        self.u = self.u + self._du
        self.iterates += 1
        settings = self.settings
        final = settings.tol == 0.0 and not settings.until_converged
        if final and self.iterates == settings.max_iter:
            # Nobody asks for the last sweep's v, w and stopping rule: the coefficients are final.
            self.status = Status.MAX_ITER

    def absorb(self, swept: SweepSums, seconds: float) -> None:
        """Take in what the sweep with the new u added up.

        With over-relaxation and a step that is not exact there is no recursion for A'q; what stands
        for it then is -r = A'(q + f - v), the same where the primal residual is zero.
        """
        self.r = swept.r
        if self.factor.sampled and self.settings.relax != 1.0:
            self.g = -swept.r
        else:
            self.g = _next_g(self.g, swept.r, self._du, self.factor.rho, self.settings.relax)
        row = _measure(swept, self._du, self.g, self.factor, self.settings.beta, self.m)
        self.rows.append(row | {"seconds": seconds})
        self.status = _stopping_status(self.rows, self.settings)

    def finish(self, engine: Engine, number: int) -> None:
        """Do what needs the engine after a sweep: nothing."""

    def saved(self) -> tuple[dict[str, FloatArray], dict[str, Any]]:
        """Return all that is needed to go on, as arrays and plain values."""
        values = {"products": self.products, "largest": self.factor.largest}
        return {"u": self.u, "r": self.r, "g": self.g}, values

    def restore(self, arrays: dict[str, FloatArray], values: dict[str, Any]) -> None:
        """Go on from what ``saved`` returned."""
        self.u, self.r, self.g = arrays["u"], arrays["r"], arrays["g"]
        self.products = values["products"]
        self.factor = replace(self.factor, largest=values["largest"])

    def coefficients(self) -> FloatArray:
        """Return the coefficients to use."""
        return self.u

    def result(self) -> Result:
        """Return the outcome; sweeps that were skipped or cut short have NaN in the history."""
        if not np.isfinite(self.u).all():
            raise FloatingPointError(
                "The iterations left the finite numbers. Lower the degree, or raise rho."
            )
        assert self.status is not None
        history, factor = as_history(self.rows), self.factor
        products = self.products if factor.sampled else None
        return Result(
            self.u,
            factor.rho,
            factor.rho_floor,
            factor.rho_raised,
            self.status,
            history,
            products,
        )


def _next_g(g: FloatArray, r: FloatArray, du: FloatArray, rho: float, relax: float) -> FloatArray:
    """Return A'q of the new q, from n-vectors alone.

    The w-update gives q = relax (f - v_old) + v_old + q_old - v. Multiply by A', insert
    A'(f - v_old) = -rho du - A'q_old (the optimality of the u-step) and r = A'(v - q - f), and
    solve for A'q. Rounding errors shrink by (2 - relax) / 2 in each step. Without over-relaxation
    the step cancels, and need not be exact.
    """
    return 0.5 * ((2.0 - relax) * g - (relax - 1.0) * rho * du - r)


def _measure(
    swept: SweepSums, du: FloatArray, g: FloatArray, factor: Factor, beta: float, m: float
) -> dict[str, float]:
    """Return the iteration's row of the history; over label columns the mean, or the worst.

    The primal residual is ``|A u - v| / max(|A u|, |v|)``. The dual one is the part of q that lies
    in the range of A, ``sqrt(g'(G + rho I)^-1 g) / |q|``: zero at the optimum, at most 1, and the
    same for any basis of the features. With a sample, its M stands for G + rho I.
    """
    tiny = np.finfo(float).tiny
    primal = np.sqrt(swept.primal / np.maximum(np.maximum(swept.f2, swept.v2), tiny))
    dual = np.sqrt(factor.square(g) / np.maximum(swept.q2, tiny))
    h_norm = beta * (factor.rho * np.einsum("nk,nk->k", du, du) + swept.dv2 + swept.dq2)
    return {
        "objective": float(swept.loss.mean() / m),
        "training_error": float(swept.wrong[0] / m),
        "primal_residual": float(primal.max()),
        "dual_residual": float(dual.max()),
        "h_norm_difference": float(h_norm.max()),
    }


def _stopping_status(rows: list[dict[str, float]], settings: Settings) -> Status | None:
    """Return why to stop after the last iteration, or None to go on."""
    tol, last = settings.tol, rows[-1]
    if settings.until_converged:
        if last["objective"] == 0.0:
            return Status.ZERO_LOSS
        if len(rows) > LOOK_BACK:
            change = abs(last["objective"] - rows[-1 - LOOK_BACK]["objective"])
            residual = max(last["primal_residual"], last["dual_residual"])
            if residual < tol and change < tol * last["objective"]:
                return Status.CONVERGED
    elif last["h_norm_difference"] < tol:
        return Status.TOLERANCE
    return Status.MAX_ITER if len(rows) >= settings.max_iter else None
