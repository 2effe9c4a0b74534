"""Independent implementations that the package is compared with."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog, minimize


def algorithm_1(A, y, alpha, beta, n_iter, start=None):
    """Run Algorithm 1 of the paper as printed; return all iterates (u, v, w)."""
    m, n = A.shape
    u, v, w = (np.zeros(n), y.astype(float), np.zeros(m)) if start is None else start
    inverse = np.linalg.inv(beta * A.T @ A + alpha * np.eye(n))
    iterates = [(u, v, w)]
    for _ in range(n_iter):
        u = inverse @ (alpha * u + beta * A.T @ v - A.T @ w)
        v = lemma_1(y, A @ u + w / beta, m * beta)
        w = w + beta * (A @ u - v)
        iterates.append((u, v, w))
    return iterates


def lemma_1(a, b, gamma):
    """Return hinge_gamma(a, b) of Lemma 1, branch by branch."""
    out = np.empty(len(b))
    for i, (ai, bi) in enumerate(zip(a, b, strict=True)):
        if ai == 0 or ai * bi >= 1:
            out[i] = bi
        elif ai * bi <= 1 - ai**2 / gamma:
            out[i] = bi + ai / gamma
        else:
            out[i] = 1 / ai
    return out


def h_norm(p, q, alpha, beta):
    """Return the squared H-norm of the difference of two iterates."""
    du, dv, dw = (a - b for a, b in zip(p, q, strict=True))
    return alpha * du @ du + beta * dv @ dv + dw @ dw / beta


def lp_solution(A, y):
    """Return a solution (u, v, w) of the problem and of its dual, a linear programme."""
    m, n = A.shape
    solution = linprog(
        np.r_[np.zeros(n), np.ones(m) / m],
        A_ub=np.hstack([-y[:, None] * A, -np.eye(m)]),
        b_ub=-np.ones(m),
        bounds=[(None, None)] * n + [(0, None)] * m,
        method="highs",
    )
    assert solution.status == 0, solution.message
    u = solution.x[:n]
    return u, A @ u, y * solution.ineqlin.marginals


MAX_RESTARTS = 50


def lp_optimum(A, y):
    """Return the minimum of the mean hinge loss over the range of A, and A's condition."""
    U, sigma, _ = np.linalg.svd(A, full_matrices=False)
    Q = U[:, sigma > 1e-12 * sigma[0]] * np.sqrt(len(y))  # the LP wants a good basis
    _, v, _ = lp_solution(Q, y)
    return np.maximum(0, 1 - y * v).mean(), sigma[-1] / sigma[0]


def kernel(X, C, degree):
    """Return the features (1 + x.c)^s."""
    return (1 + X @ C.T) ** degree


def penalised_hinge_optimum(A, y, rho, weights=None):
    """Return the minimum over u of ``sum_i omega_i max(0, 1 - y_i (A u)_i) + (rho / 2) u'u``.

    It is that of the dual with its sign changed: a quadratic function of multipliers from 0 to
    omega, of which u is ``A'(y c) / rho``.
    """
    B = A * y[:, None]
    most = np.ones(len(y)) if weights is None else weights

    def dual(c):
        u = B.T @ c / rho
        return 0.5 * rho * u @ u - c.sum(), B @ u - 1.0

    options = {"maxiter": 50_000, "maxfun": 100_000, "ftol": 1e-15, "gtol": 1e-10}
    bounds = [(0.0, w) for w in most]
    c, value = most / 2, np.inf
    for _ in range(MAX_RESTARTS):  # it may stop before the optimum, where its memory misleads it
        found = minimize(dual, c, jac=True, bounds=bounds, method="L-BFGS-B", options=options)
        c, before, value = found.x, value, found.fun
        if before - value <= 1e-9 * abs(value):
            break
    return -value
