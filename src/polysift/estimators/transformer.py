"""``PolynomialKernelMap``: the kernel features as a transformer, for any linear model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from polysift.data.inputs import rows_source
from polysift.estimators.conventions import PolysiftEstimator
from polysift.estimators.devices import device_of
from polysift.estimators.fitted import feature_map_of
from polysift.estimators.prediction import feature_matrix
from polysift.features.feature_map import (
    DEFAULT_MAX_LEVELS,
    build_feature_map,
    check_map_spec,
)
from polysift.features.survey import survey
from polysift.runtime.parallel import Pool, single_threaded_blas, usable_jobs
from polysift.runtime.parameters import check_n_jobs, check_seed
from polysift.training.preparation import as_table, columns_of


class PolynomialKernelMap(
    PolysiftEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Map rows x to the polynomial kernel features ``(1 + x.c_j)^s`` of n centers ``c_j``.

    Parameters
    ----------
    degree : int, default=3
        The degree s of the kernel.
    n_centers : int or "auto", default="auto"
        The number of centers n; "auto" is min(C(s+d, s), 1000), or all rows of given centers.
    centers : {"auto", "uniform", "first", "random"} or array of shape (n, d), default="auto"
        How the centers are chosen; see :class:`FPCClassifier`.
    scaler : {"minmax", "symmetric", "standard", "quantile", None}, default="minmax"
        How the columns are scaled first; see :class:`FPCClassifier`.
    n_jobs : int, default=None
        The number of threads; None is all cores that this process may use.
    random_state : int, RandomState, Generator or None, default=None
        The seed of the centers.
    columns : mapping of column to {"number", "category", "date", "drop"}, default=None
        The kinds of columns that are not found as wished; see :class:`FPCClassifier`.
    max_levels : int, default=100
        The most levels of a category that have a coordinate each; more are hashed to so many.
    kernel : {"polynomial", "spline"}, default="polynomial"
        "polynomial" is the paper's kernel, ``(1 + x.c)^s``. In "spline" each number has, beside
        its line, a spline of its rank among the rows: outliers matter little, functions need not
        be smooth, and there is no limit of C(s+d, s) to n. ``scaler`` has no part in it, and the
        centers are rows.

    Attributes
    ----------
    centers_ : ndarray of shape (n_centers_, n_features_in_)
        The centers, in scaled coordinates.
    n_centers_ : int
        The number of centers used: at most C(s+d, s) and the number of distinct rows.
    scaler_ : dict
        The learned scaler, as plain arrays.
    degree_ : int
        The degree.
    random_state_ : int
        The seed used.
    column_kinds_ : ndarray of shape (n_features_in_,)
        What each column was found to be; see :class:`FPCClassifier`.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        The names of the features, where X had any.

    See Also
    --------
    FPCClassifier : The classifier on these features.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.linear_model import RidgeClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from polysift import PolynomialKernelMap
    >>> X, y = make_moons(500, noise=0.1, random_state=0)
    >>> model = make_pipeline(PolynomialKernelMap(degree=5, random_state=0), RidgeClassifier(1e-3))
    >>> round(model.fit(X, y).score(X, y), 2)
    0.98
    """

    def __init__(
        self,
        degree: int = 3,
        n_centers: Any = "auto",
        centers: Any = "auto",
        scaler: str | None = "minmax",
        n_jobs: int | None = None,
        random_state: Any = None,
        columns: Any = None,
        max_levels: int = DEFAULT_MAX_LEVELS,
        kernel: str = "polynomial",
    ) -> None:
        self.degree = degree
        self.n_centers = n_centers
        self.centers = centers
        self.scaler = scaler
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.columns = columns
        self.max_levels = max_levels
        self.kernel = kernel

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> PolynomialKernelMap:
        """Learn the scaler and the centers in one pass over the rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            The rows.
        y : None
            Ignored.
        sample_weight : array-like of shape (m,), default=None
            The weights of the rows, of which only ratios matter.

        Returns
        -------
        PolynomialKernelMap
            The fitted transformer.
        """
        source = rows_source(self, X, sample_weight, reset=True)
        seed = check_seed(self.random_state)
        spec = check_map_spec(self, source, seed)
        with single_threaded_blas(), Pool(usable_jobs(check_n_jobs(self.n_jobs))) as pool:
            surveyed = replace(spec, table=as_table(source, spec))
            found = survey(source, surveyed.questions(source.n_features, labels=False), pool)
        known = columns_of(source, spec, found)
        spec = replace(spec, table=known.table)
        learned = build_feature_map(spec, known.found, source.dtype).fitted()
        self.centers_ = learned.centers
        self.n_centers_ = learned.n_centers
        self.scaler_ = learned.scaler.to_dict()
        self.degree_ = learned.degree
        self.random_state_ = seed
        self.column_kinds_ = np.array(known.columns.kinds, dtype=object)
        return self

    def transform(self, X: Any) -> Any:
        """Return the kernel features of rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            The rows.

        Returns
        -------
        array of shape (m, n_centers_)
            The features, float32 for float32 rows, else float64. With scikit-learn's
            ``array_api_dispatch`` they are of the library and on the device of X.
        """
        check_is_fitted(self)
        device = device_of(self, X)
        if device is not None and device.usable:
            return device.features()
        source = rows_source(self, X, reset=False)
        learned = feature_map_of(self)
        found = feature_matrix(source, learned, usable_jobs(check_n_jobs(self.n_jobs)))
        return found if device is None else device.moved(found)

    @property
    def _n_features_out(self) -> int:
        return int(self.n_centers_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
