"""Random features: Fourier features whose width follows the rows, and a faster tensor sketch."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.fft import irfft, rfft
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.kernel_approximation import PolynomialCountSketch, RBFSampler
from sklearn.utils.validation import check_is_fitted, validate_data

from polysift.runtime.parameters import check_integer, check_real, check_seed
from polysift.runtime.types import FloatArray
from polysift_paper.rivals.base import median_distance

BLOCK_BYTES = 2**21
"""Sketches are formed this many bytes at a time: what fits a core's cache."""


class MedianFourierFeatures(TransformerMixin, BaseEstimator):
    """RBFSampler of ``gamma = 1 / (2 sigma^2)``, where sigma is a multiple of the median distance.

    Parameters
    ----------
    n_components : int, default=1000
        The number of features.
    sigma_scale : float, default=1.0
        The multiple of the median distance of a sample of 1000 rows.
    random_state : int, RandomState, Generator or None, default=None
        The seed of the features and of the sample.

    Attributes
    ----------
    sigma_ : float
        The width of the Gaussian kernel.
    sampler_ : RBFSampler
        The fitted features.
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where X had any.

    Examples
    --------
    >>> import numpy as np
    >>> from polysift_paper.rivals.random_features import MedianFourierFeatures
    >>> X = np.random.default_rng(0).random((50, 2))
    >>> MedianFourierFeatures(n_components=10, random_state=0).fit_transform(X).shape
    (50, 10)
    """

    def __init__(
        self, n_components: int = 1000, sigma_scale: float = 1.0, random_state: Any = None
    ) -> None:
        self.n_components = n_components
        self.sigma_scale = sigma_scale
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> MedianFourierFeatures:
        """Measure the rows and draw the features.

        Parameters
        ----------
        X : array-like of shape (m, d)
            The rows.
        y : None
            Ignored.

        Returns
        -------
        MedianFourierFeatures
            The fitted transformer.
        """
        n_components = check_integer("n_components", self.n_components)
        scale = check_real("sigma_scale", self.sigma_scale, positive=True)
        seed = check_seed(self.random_state) % 2**32
        X = validate_data(self, X, dtype=np.float64)
        self.sigma_ = scale * median_distance(X, seed)
        gamma = 0.5 / self.sigma_**2
        self.sampler_ = RBFSampler(gamma=gamma, n_components=n_components, random_state=seed).fit(X)
        return self

    def transform(self, X: Any) -> FloatArray:
        """Return the features of rows.

        Parameters
        ----------
        X : array-like of shape (m, d)
            The rows.

        Returns
        -------
        ndarray of shape (m, n_components)
            The features.
        """
        check_is_fitted(self)
        return self.sampler_.transform(validate_data(self, X, dtype=np.float64, reset=False))


class QuickCountSketch(PolynomialCountSketch):
    """PolynomialCountSketch, the same to rounding, in less time and memory.

    scikit-learn takes complex Fourier transforms of all rows at once, which need some ten times
    the memory of the sketch itself.

    Examples
    --------
    >>> import numpy as np
    >>> from polysift_paper.rivals.random_features import QuickCountSketch
    >>> X = np.random.default_rng(0).random((50, 2))
    >>> QuickCountSketch(n_components=10, random_state=0).fit_transform(X).shape
    (50, 10)
    """

    def transform(self, X: Any) -> FloatArray:
        """Return the sketches of rows.

        Parameters
        ----------
        X : array-like of shape (m, d)
            The rows.

        Returns
        -------
        ndarray of shape (m, n_components)
            The sketches.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        sketches = np.empty((len(X), self.n_components))
        rows = max(1, BLOCK_BYTES // (8 * int(self.n_components)))
        for lo in range(0, len(X), rows):
            sketches[lo : lo + rows] = self._block(X[lo : lo + rows])
        return sketches

    def _block(self, X: FloatArray) -> FloatArray:
        """Return the sketches of a few rows: the convolution of one count sketch per degree."""
        columns = np.sqrt(self.gamma) * X.T
        if self.coef0 != 0:
            columns = np.vstack([columns, np.full(len(X), np.sqrt(self.coef0))])
        product: Any = 1.0
        for hashes, signs in zip(self.indexHash_, self.bitHash_, strict=True):
            counts = np.zeros((self.n_components, len(X)))
            for column, position, sign in zip(columns, hashes, signs, strict=True):
                counts[position] += sign * column
            product = product * rfft(counts, axis=0)
        return irfft(product, n=self.n_components, axis=0).T
