"""Squared hinge loss under the squared sum of group norms, by accelerated proximal gradient.

The problem is that of Tan, Tsang and Wang (2014) for given groups of features, here with an
intercept b that is not penalised::

    minimise over w, b   1/2 (sum_t |w_t|)^2 + C/2 sum_i max(0, 1 - y_i (z_i.w + b))^2
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polysift.runtime.types import FloatArray, IntArray
from polysift_paper.rivals.gram import MarginGram

PATIENCE = 5
"""How many steps in a row must gain hardly anything before the steps end."""

GROWTH, DECAY = 2.0, 0.95
"""The curvature estimate grows by the one when a step fails its test, and else decays slowly."""


@dataclass(frozen=True)
class Solution:
    """Weights, intercept, scores of the rows, and objective."""

    w: FloatArray
    b: float
    f: FloatArray
    objective: float


def prox(v: FloatArray, groups: IntArray, tau: float) -> FloatArray:
    """Return the w that minimises ``1/2 |w - v|^2 + tau/2 (sum_t |w_t|)^2``.

    Group t shrinks by ``tau S``, S the sum of the norms that remain: the norms are sorted, and the
    largest number of groups is kept for which the least of them outlives the shrinking.

    Parameters
    ----------
    v : ndarray of shape (n,)
        The point.
    groups : ndarray of shape (n,)
        The group of each coordinate, counted from 0.
    tau : float
        The step size.
    """
    norms = np.sqrt(np.bincount(groups, v * v))
    ordered = np.sort(norms)[::-1]
    sums = np.cumsum(ordered) / (1.0 + tau * np.arange(1, len(ordered) + 1))
    kept = np.flatnonzero(ordered > tau * sums)
    if not len(kept):
        return np.zeros_like(v)
    shrink = tau * sums[kept[-1]]
    factors = np.divide(
        np.maximum(norms - shrink, 0.0), norms, out=np.zeros_like(norms), where=norms > 0
    )
    return v * factors[groups]


def penalty(w: FloatArray, groups: IntArray) -> float:
    """Return half the squared sum of the group norms."""
    return 0.5 * float(np.sqrt(np.bincount(groups, w * w)).sum()) ** 2 if len(w) else 0.0


def slack(f: FloatArray, y: FloatArray) -> FloatArray:
    """Return by how much each row misses its margin, ``max(0, 1 - y f)``."""
    return np.maximum(1.0 - y * f, 0.0)


def solve(
    Z: FloatArray,
    y: FloatArray,
    groups: IntArray,
    C: float,
    *,
    start: tuple[FloatArray, float] | None = None,
    tol: float = 1e-6,
    max_iter: int = 30,
) -> Solution:
    """Minimise by accelerated proximal gradient on the square that the loss is near a point.

    The loss of the rows short of their margin is a square, and a step of the gradient then needs
    no rows but only their Gram matrix. Where rows cross their margin the square is set up anew.

    Parameters
    ----------
    Z : ndarray of shape (m, n)
        The features; columns of mean zero make intercept and weights nearly independent.
    y : ndarray of shape (m,)
        Labels -1 and +1.
    groups : ndarray of shape (n,)
        The group of each column.
    C : float
        The weight of the loss.
    start : tuple, optional
        Weights and intercept to start from; zeros where there are none.
    tol : float
        The solver stops when a square lowers the objective by less than this, relatively.
    max_iter : int
        The most squares.
    """
    w, b = (np.zeros(Z.shape[1]), 0.0) if start is None else start
    v, f = np.append(w, b), Z @ w + b
    gram = MarginGram(Z, y)
    L = 0.0

    def objective_at(v: FloatArray, f: FloatArray) -> float:
        return penalty(v[:-1], groups) + 0.5 * C * float(np.sum(slack(f, y) ** 2))

    objective = objective_at(v, f)
    for _ in range(max_iter):
        gram.update(y * f < 1)
        L = L or C * float(gram.H.diagonal().max()) or 1.0
        target, L = minimise_square(gram.H, gram.c, C, v, groups, L, 0.1 * tol * objective)
        move = target - v
        df = Z @ move[:-1] + move[-1]
        size, best = 1.0, objective_at(v + move, f + df)
        # Convex along the move: halve as long as that pays, or until the objective falls.
        while size > 1e-9:
            half = objective_at(v + 0.5 * size * move, f + 0.5 * size * df)
            if half >= best and best <= objective:
                break
            size, best = 0.5 * size, half
        if not best < objective:
            break
        fall, objective = objective - best, best
        v, f = v + size * move, f + size * df
        if fall <= tol * objective:
            break
    return Solution(v[:-1], float(v[-1]), f, objective)


def minimise_square(
    H: FloatArray,
    c: FloatArray,
    C: float,
    v: FloatArray,
    groups: IntArray,
    L: float,
    floor: float,
    max_iter: int = 3000,
) -> tuple[FloatArray, float]:
    """Minimise ``C/2 (v'Hv - 2c'v)`` plus the penalty of all but the last of v, the intercept.

    Steps with momentum, backtracking, and a restart where a step turns back on the last one. The
    curvature estimate L goes in and comes out; steps that gain less than ``floor`` are the last.
    """
    Hv, dv, dHv, theta, idle = H @ v, 0.0 * v, 0.0 * v, 1.0, 0
    for _ in range(max_iter):
        theta, momentum = _next_momentum(theta)
        u, Hu = v + momentum * dv, Hv + momentum * dHv
        g = C * (Hu - c)
        while True:
            new = u - g / L
            new[:-1] = prox(new[:-1], groups, 1.0 / L)
            move, Hnew = new - u, H @ new
            bend = C * float(move @ (Hnew - Hu))
            if not bend > L * float(move @ move) * (1 + 1e-9):  # true also of NaN: no endless loop
                break
            L *= GROWTH
        dv, dHv = new - v, Hnew - Hv
        if float(move @ dv) < 0:
            theta, dv, dHv = 1.0, 0.0 * v, 0.0 * v
        v, Hv = new, Hnew
        idle = idle + 1 if L * float(move @ move) <= floor else 0
        if idle >= PATIENCE:
            break
        L *= DECAY
    return v, L


def _next_momentum(theta: float) -> tuple[float, float]:
    """Return Nesterov's next theta and the share of the last move to repeat."""
    following = 0.5 * (1.0 + float(np.sqrt(1.0 + 4.0 * theta * theta)))
    return following, (theta - 1.0) / following
