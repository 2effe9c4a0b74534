"""``FalkonClassifier``: kernel ridge on a few centers, by preconditioned conjugate gradients."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from polysift.runtime.parameters import check_choice, check_integer, check_real, check_seed
from polysift.runtime.types import FloatArray
from polysift_paper.rivals.bandwidth import median_distance
from polysift_paper.rivals.binary import BinaryClassifier
from polysift_paper.rivals.nystrom import KernelRows, solve

IMPLEMENTATIONS = ("auto", "falkon", "own")


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
