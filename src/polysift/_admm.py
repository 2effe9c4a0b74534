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

from dataclasses import dataclass
from time import perf_counter
from typing import Any, Protocol

import numpy as np
import scipy.linalg

from polysift._checkpoint import Checkpoint
from polysift._engine import Engine
from polysift._monitor import Monitor, OutOfTime
from polysift._result import HISTORY_COLUMNS, Result, Status, as_history
from polysift._sums import SweepSums
from polysift._types import FloatArray

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
    """

    beta: float
    rho: float | None = None
    relative_rho: float | None = None
    floor_multiple: float = 1.0
    relax: float = 1.0
    max_iter: int = 5
    tol: float = 5e-4
    until_converged: bool = False


@dataclass(frozen=True)
class Factor:
    """The Cholesky factor of G + rho I; it serves all label columns, and any beta."""

    cholesky: Any
    rho: float
    rho_floor: float
    rho_raised: bool

    def solve(self, r: FloatArray) -> FloatArray:
        """Return (G + rho I)^-1 r."""
        return np.asarray(scipy.linalg.cho_solve(self.cholesky, r, check_finite=False))


def factorise(G: FloatArray, settings: Settings) -> Factor:
    """Choose rho, at least its floor, and factor G + rho I; G's diagonal is overwritten."""
    n = len(G)
    diagonal = G.diagonal().copy()
    trace = float(diagonal.sum())
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
            return Factor(cholesky, rho, floor, rho > asked)
    raise FloatingPointError(
        "G + rho I has no Cholesky factor for any rho. Lower the degree, or set rho larger."
    )


@dataclass
class State:
    """Where the iterations stand; v, w and q are in the engine's state.

    Attributes
    ----------
    u, r, g : ndarray of shape (n, K)
        Coefficients, residual of the next u-step, A'q.
    rows : list of dict
        The history so far, a row per iteration.
    status : Status or None
        Why the iterations ended, if they have.
    """

    u: FloatArray
    r: FloatArray
    g: FloatArray
    rows: list[dict[str, float]]
    status: Status | None = None


class IterationHook(Protocol):
    """Whoever wants to know of iterations."""

    def begin(self) -> None:
        """Learn that an iteration begins."""

    def end(self, u: FloatArray) -> bool:
        """Learn that it has ended, with these coefficients; true asks to stop."""


def solve(
    engine: Engine,
    settings: Settings,
    *,
    u0: FloatArray | None = None,
    monitor: Monitor | None = None,
    checkpoint: Checkpoint | None = None,
    hook: IterationHook | None = None,
) -> Result:
    """Run the ADMM.

    Parameters
    ----------
    engine : Engine
        The data, in its starting state.
    settings : Settings
        How to run.
    u0 : ndarray of shape (n, K), optional
        Coefficients to start from, with v = prox(A u0) and w the matching multiplier. By default
        the paper's start, (u, v, w) = (0, y, 0).
    monitor : Monitor, optional
        Told of each iteration; may raise ``OutOfTime``, which ends the run with the latest u.
    checkpoint : Checkpoint, optional
        Where to save the state, and to go on from.
    hook : IterationHook, optional
        Told when each iteration begins, and given its u; it may end the run.
    """
    began = perf_counter()
    monitor = monitor or Monitor()
    sums = engine.gram()
    factor = factorise(sums.G, settings)
    state = _restored(engine, checkpoint)
    if state is None:
        state = _started(engine, settings, sums.Aty, u0)
    del sums  # n x n numbers that nobody needs any more
    before = state.rows[-1]["seconds"] if state.rows else 0.0
    iterates = len(state.rows)  # how many u exist; one more than rows while a sweep runs
    try:
        while state.status is None:
            if hook is not None:
                hook.begin()
            du = factor.solve(state.r)  # paper, Algorithm 1: the u-update, in residual form
            state.u = state.u + du
            iterates += 1
            skip = settings.tol == 0.0 and not settings.until_converged
            if skip and iterates == settings.max_iter:
                # Nobody asks for this sweep's v, w and stopping rule: the coefficients are final.
                state.status = Status.MAX_ITER
                if hook is not None:
                    hook.end(state.u)
                break
            swept = engine.sweep(state.u, engine.total_weight * settings.beta, settings.relax)
            state.r = swept.r
            state.g = _next_g(state.g, swept.r, du, factor.rho, settings.relax)
            row = _measure(swept, du, state.g, factor, settings.beta, engine.total_weight)
            state.rows.append(row | {"seconds": before + perf_counter() - began})
            monitor.iteration(iterates, state.rows[-1])
            state.status = _stopping_status(state.rows, settings)
            if hook is not None and hook.end(state.u) and state.status is None:
                state.status = Status.CALLBACK
            if checkpoint is not None and (state.status or checkpoint.due()):
                _save(engine, state, checkpoint)
            if state.status is None:
                monitor.check()
    except (OutOfTime, KeyboardInterrupt) as stop:
        if iterates == 0:
            raise
        state.status = Status.TIME_LIMIT if isinstance(stop, OutOfTime) else Status.INTERRUPTED
    if len(state.rows) < iterates:  # the last sweep was skipped, or cut short
        seconds = {"seconds": before + perf_counter() - began}
        state.rows.append(dict.fromkeys(HISTORY_COLUMNS, np.nan) | seconds)
    if not np.isfinite(state.u).all():
        raise FloatingPointError(
            "The iterations left the finite numbers. Lower the degree, or raise rho."
        )
    history = as_history(state.rows)
    return Result(state.u, factor.rho, factor.rho_floor, factor.rho_raised, state.status, history)


def _started(engine: Engine, settings: Settings, Aty: FloatArray, u0: FloatArray | None) -> State:
    if u0 is None:
        return State(np.zeros_like(Aty), Aty, np.zeros_like(Aty), [])
    u = np.array(u0, dtype=float)
    r = engine.sweep(u, engine.total_weight * settings.beta, 1.0).r
    return State(u, r, -r / 2, [])


def _save(engine: Engine, state: State, checkpoint: Checkpoint) -> None:
    arrays = {"u": state.u, "r": state.r, "g": state.g, "state": engine.state}
    word = None if state.status is None else state.status.name
    checkpoint.save("solver", arrays, {"rows": state.rows, "status": word})


def _restored(engine: Engine, checkpoint: Checkpoint | None) -> State | None:
    saved = None if checkpoint is None else checkpoint.load("solver", {"state": engine.state})
    if saved is None:
        return None
    arrays, values = saved
    status = None if values["status"] is None else Status[values["status"]]
    return State(arrays["u"], arrays["r"], arrays["g"], values["rows"], status)


def _next_g(g: FloatArray, r: FloatArray, du: FloatArray, rho: float, relax: float) -> FloatArray:
    """Return A'q of the new q, from n-vectors alone.

    The w-update gives q = relax (f - v_old) + v_old + q_old - v. Multiply by A', insert
    A'(f - v_old) = -rho du - A'q_old (the optimality of the u-step) and r = A'(v - q - f), and
    solve for A'q. Rounding errors shrink by (2 - relax) / 2 in each step.
    """
    return 0.5 * ((2.0 - relax) * g - (relax - 1.0) * rho * du - r)


def _measure(
    swept: SweepSums, du: FloatArray, g: FloatArray, factor: Factor, beta: float, m: float
) -> dict[str, float]:
    """Return the iteration's row of the history; over label columns the mean, or the worst.

    The primal residual is ``|A u - v| / max(|A u|, |v|)``. The dual one is the part of q that lies
    in the range of A, ``sqrt(g'(G + rho I)^-1 g) / |q|``: zero at the optimum, at most 1, and the
    same for any basis of the features.
    """
    tiny = np.finfo(float).tiny
    primal = np.sqrt(swept.primal / np.maximum(np.maximum(swept.f2, swept.v2), tiny))
    in_range = np.einsum("nk,nk->k", g, factor.solve(g))
    dual = np.sqrt(np.maximum(in_range, 0.0) / np.maximum(swept.q2, tiny))
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
