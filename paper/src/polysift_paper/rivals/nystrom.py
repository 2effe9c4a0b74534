"""Nystrom kernel ridge: the Gaussian kernel in blocks, and FALKON's conjugate gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from polysift.runtime.types import FloatArray

BLOCK_BYTES = 2**21
"""Kernel values are formed this many bytes at a time: what fits a core's cache."""

RESIDUAL = 1e-14
"""Conjugate gradients end at a residual this small, relatively: the rest is rounding."""


def gaussian_kernel(X: FloatArray, centers: FloatArray, sigma: float) -> FloatArray:
    """Return ``exp(-|x - c|^2 / (2 sigma^2))`` for all rows and centers."""
    K = X @ centers.T
    K *= -2.0
    K += np.einsum("ij,ij->i", X, X)[:, None]
    K += np.einsum("ij,ij->i", centers, centers)
    np.maximum(K, 0.0, out=K)  # rounding may leave a distance of zero below zero
    K *= -0.5 / sigma**2
    return np.exp(K, out=K)


def row_blocks(n_rows: int, n_centers: int) -> list[slice]:
    """Cut rows into blocks whose kernel with the centers takes ``BLOCK_BYTES``."""
    rows = max(1, BLOCK_BYTES // (8 * n_centers))
    return [slice(lo, min(lo + rows, n_rows)) for lo in range(0, n_rows, rows)]


class KernelRows:
    """The kernel of rows and centers in blocks of rows, the first of which are kept.

    Forming a kernel value costs some twenty times as much as using it: what fits the cache is
    formed once, and the rest in each pass anew.
    """

    def __init__(
        self, X: FloatArray, centers: FloatArray, sigma: float, cache_bytes: float
    ) -> None:
        self.X, self.centers, self.sigma = X, centers, sigma
        self.blocks = row_blocks(len(X), len(centers))
        self.cache: list[FloatArray] = []
        self.n_kept = int(cache_bytes // BLOCK_BYTES)

    def __iter__(self) -> Iterator[tuple[slice, FloatArray]]:
        for i, block in enumerate(self.blocks):
            if i < len(self.cache):
                yield block, self.cache[i]
                continue
            K = gaussian_kernel(self.X[block], self.centers, self.sigma)
            if i < self.n_kept:
                self.cache.append(K)
            yield block, K


def solve(kernel: KernelRows, y: FloatArray, penalty: float, n_iter: int) -> tuple[FloatArray, int]:
    """Return the weights of the centers and the number of iterations.

    The weights are ``a = T^-1 A^-1 beta``, where ``T' T = K_MM`` and ``A' A = T T' / M + penalty``,
    both upper triangular, and beta solves a system whose condition number is small.
    """
    m, M = len(y), len(kernel.centers)
    T = robust_cholesky(gaussian_kernel(kernel.centers, kernel.centers, kernel.sigma))
    A = T @ T.T / M
    A[np.diag_indices(M)] += penalty
    A = robust_cholesky(A)

    def apply(beta: FloatArray) -> FloatArray:
        u = _triangular(A, beta)
        a = _triangular(T, u)
        total = np.zeros(M)
        for _, K in kernel:
            total += (K @ a) @ K
        # T'^-1 K_MM T^-1 is the identity: the penalty needs no kernel.
        return _triangular(A, _triangular(T, total / m, trans=1) + penalty * u, trans=1)

    right = np.zeros(M)
    for rows, K in kernel:
        right += y[rows] @ K
    right = _triangular(A, _triangular(T, right / m, trans=1), trans=1)
    beta, steps = conjugate_gradients(apply, right, n_iter)
    return _triangular(T, _triangular(A, beta)), steps


def robust_cholesky(K: FloatArray) -> FloatArray:
    """Return the upper triangular factor of a matrix that is definite save for rounding.

    The diagonal grows by the literature's jitter, ``eps M``, and by ten times more as long as
    rounding leaves the matrix indefinite, which happens for wide kernels and close centers.
    """
    if not np.isfinite(K).all():  # no jitter would ever do
        raise ValueError(
            "Squares of distances between rows are beyond the range of floating point numbers; "
            "scale the columns of X first, for example with sklearn's MinMaxScaler."
        )
    M = len(K)
    jitter = np.finfo(float).eps * M
    while True:
        try:
            return cholesky(K + jitter * np.eye(M), overwrite_a=True, check_finite=False)
        except LinAlgError:
            jitter *= 10.0


def _triangular(factor: FloatArray, v: FloatArray, trans: int = 0) -> FloatArray:
    """Solve with an upper triangular factor, or with its transpose."""
    return solve_triangular(factor, v, trans=trans, check_finite=False)


def conjugate_gradients(
    apply: Callable[[FloatArray], FloatArray], right: FloatArray, n_iter: int
) -> tuple[FloatArray, int]:
    """Solve ``apply(beta) = right`` from zero; return beta and the number of iterations."""
    beta, r = np.zeros_like(right), right.copy()
    p, square = r.copy(), float(r @ r)
    done = RESIDUAL**2 * square
    for step in range(n_iter):
        if square <= done:
            return beta, step
        q = apply(p)
        size = square / float(p @ q)
        beta += size * p
        r -= size * q
        before, square = square, float(r @ r)
        p = r + (square / before) * p
    return beta, n_iter
