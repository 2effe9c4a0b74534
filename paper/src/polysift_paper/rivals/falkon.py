"""``FalkonClassifier``: Nystrom kernel ridge regression by preconditioned conjugate gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from sklearn.utils import check_random_state

from polysift.runtime.parameters import check_choice, check_integer, check_real, check_seed
from polysift.runtime.types import FloatArray
from polysift_paper.rivals.base import BinaryClassifier, median_distance

IMPLEMENTATIONS = ("auto", "falkon", "own")


BLOCK_BYTES = 2**21
"""Kernel values are formed this many bytes at a time: what fits a core's cache."""

RELATIVE_RESIDUAL = 1e-14
"""Conjugate gradients end at a residual this small, relatively: the rest is rounding."""


class FalkonClassifier(BinaryClassifier):
    """Nystrom kernel ridge regression on labels -1 and +1 (FALKON).

    With the Gaussian kernel ``exp(-|x - c|^2 / (2 sigma^2))`` at M centers, which are rows drawn
    uniformly without replacement, the weights a solve

    ``(K_nM' K_nM + penalty m K_MM) a = K_nM' y``

    by conjugate gradients with the preconditioner of the literature, built from ``K_MM`` alone.
    The kernel is formed some rows at a time, and anew in each iteration beyond what the cache
    holds, so that memory grows with ``M^2`` and not with ``m M``.

    Parameters
    ----------
    n_centers : int, default=1000
        The number of centers M; at most the number of distinct rows is used.
    sigma : float or "median", default="median"
        The width of the kernel; "median" is the median distance of a sample of 1000 rows.
    sigma_scale : float, default=1.0
        A factor for sigma, so that a search can vary it about the median.
    penalty : float, default=1e-6
        The penalty of the ridge regression, lambda in the literature.
    n_iter : int, default=20
        The most iterations of conjugate gradients; they end early where nothing is left to gain.
    cache_size : float, default=2000
        Megabytes of kernel values kept from one iteration to the next; the result is the same.
    implementation : {"auto", "falkon", "own"}, default="auto"
        "falkon" solves by the package of that name, "own" by the code here, and "auto" takes the
        package where it is installed. Centers and sigma are the same.
    random_state : int, RandomState, Generator or None, default=None
        The seed of the centers and of the sample.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The classes.
    centers_ : ndarray of shape (n_centers_, n_features_in_)
        The centers.
    n_centers_ : int
        Their number.
    coef_ : ndarray of shape (n_centers_,)
        Their weights.
    sigma_ : float
        The width used.
    n_iter_ : int
        The number of iterations.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where X had any.

    References
    ----------
    Rudi, Carratino and Rosasco, "FALKON: an optimal large scale kernel method", NeurIPS 2017.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from polysift_paper.rivals import FalkonClassifier
    >>> X, y = make_moons(500, noise=0.1, random_state=0)
    >>> model = FalkonClassifier(n_centers=100, sigma_scale=0.5, random_state=0).fit(X, y)
    >>> model.score(X, y)
    1.0
    """

    def __init__(
        self,
        n_centers: int = 1000,
        sigma: Any = "median",
        sigma_scale: float = 1.0,
        penalty: float = 1e-6,
        n_iter: int = 20,
        cache_size: float = 2000.0,
        implementation: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.n_centers = n_centers
        self.sigma = sigma
        self.sigma_scale = sigma_scale
        self.penalty = penalty
        self.n_iter = n_iter
        self.cache_size = cache_size
        self.implementation = implementation
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> FalkonClassifier:
        """Draw the centers and solve for their weights.

        Parameters
        ----------
        X : array-like of shape (m, d)
            The rows.
        y : array-like of shape (m,)
            Labels of two classes.

        Returns
        -------
        FalkonClassifier
            The fitted classifier.

        Examples
        --------
        >>> from sklearn.datasets import make_moons
        >>> from polysift_paper.rivals import FalkonClassifier
        >>> X, y = make_moons(500, noise=0.1, random_state=0)
        >>> FalkonClassifier(n_centers=50, random_state=0).fit(X, y).coef_.shape
        (50,)
        """
        n_centers = check_integer("n_centers", self.n_centers)
        scale = check_real("sigma_scale", self.sigma_scale, positive=True)
        penalty = check_real("penalty", self.penalty, positive=True)
        n_iter = check_integer("n_iter", self.n_iter)
        cache_size = check_real("cache_size", self.cache_size, positive=False)
        implementation = _check_implementation(self.implementation)
        seed = check_seed(self.random_state)
        X, signs = self._rows_and_signs(X, y)
        self.sigma_ = scale * _check_sigma(self.sigma, X, seed)
        self.centers_ = draw_centers(X, n_centers, seed)
        self.n_centers_ = len(self.centers_)
        kernel = KernelRows(X, self.centers_, self.sigma_, 1e6 * cache_size)
        solver = solve_by_package if implementation == "falkon" else solve
        self.coef_, self.n_iter_ = solver(kernel, signs, penalty, n_iter)
        return self

    def _scores(self, X: FloatArray) -> FloatArray:
        kernel = KernelRows(X, self.centers_, self.sigma_, cache_bytes=0)
        return np.concatenate([K @ self.coef_ for _, K in kernel])


def _check_implementation(value: Any) -> str:
    """Return "falkon" or "own"."""
    check_choice("implementation", value, IMPLEMENTATIONS)
    installed = find_spec("falkon") is not None
    if value == "falkon" and not installed:
        raise ImportError(
            'implementation="falkon" needs the package falkon, which is not installed. Install it '
            'from its authors, or use implementation="own".'
        )
    return "falkon" if installed and value != "own" else "own"


def _check_sigma(value: Any, X: FloatArray, seed: int) -> float:
    """Return the width of the kernel before scaling."""
    if isinstance(value, str):
        if value != "median":
            raise ValueError(f'sigma must be a positive number or "median"; got {value!r}.')
        return median_distance(X, seed % 2**32)
    return check_real("sigma", value, positive=True)


def draw_centers(X: FloatArray, n_centers: int, seed: int) -> FloatArray:
    """Return rows drawn uniformly without replacement, each value once.

    Equal centers would make ``K_MM`` singular, so a row that equals an earlier one is passed over.
    """
    seen: dict[bytes, int] = {}
    for row in check_random_state(seed % 2**32).permutation(len(X)):
        seen.setdefault((X[row] + 0.0).tobytes(), row)  # 0.0 and -0.0 are one value
        if len(seen) == n_centers:
            break
    return X[list(seen.values())]


def solve_by_package(
    kernel: KernelRows, y: FloatArray, penalty: float, n_iter: int
) -> tuple[FloatArray, int]:
    """Return what ``solve`` returns, from the package falkon."""
    falkon, torch = import_module("falkon"), import_module("torch")
    centers = torch.from_numpy(kernel.centers)
    model = falkon.Falkon(
        kernel=falkon.kernels.GaussianKernel(sigma=kernel.sigma),
        penalty=penalty,
        M=len(centers),
        center_selection=falkon.center_selection.FixedSelector(centers),
        maxiter=n_iter,
        options=falkon.FalkonOptions(use_cpu=True),
    )
    model.fit(torch.from_numpy(kernel.X), torch.from_numpy(y[:, None]))
    return model.alpha_.numpy()[:, 0], n_iter


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
    done = RELATIVE_RESIDUAL**2 * square
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
