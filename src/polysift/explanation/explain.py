"""``explain``: from a fitted model to an ``Explanation``."""

from __future__ import annotations

from copy import copy
from numbers import Integral
from typing import Any

import numpy as np

from polysift.data.inputs import rows_source
from polysift.data.source import ArraySource
from polysift.estimators.classifier import FPCClassifier
from polysift.estimators.search import FPCClassifierCV, classifier_of
from polysift.explanation.attributions import Attributor
from polysift.explanation.explanation import Explanation
from polysift.explanation.reference import Reference, reference_of
from polysift.explanation.variances import importance_of
from polysift.features.kernels import full_dimension
from polysift.features.monomials import expand
from polysift.features.scalers import AffineScaler, scaler_from_dict
from polysift.runtime.errors import FeatureOverflowError
from polysift.runtime.parallel import single_threaded_blas
from polysift.runtime.types import FloatArray

MAX_TABLE_BYTES = 2**32
"""The most that the moments of the features may take: d (s + 1)^2 numbers."""

MAX_MONOMIALS = 100_000


def explain(
    model: FPCClassifier | FPCClassifierCV,
    X: Any = None,
    *,
    sample_weight: Any = None,
    max_monomials: int = MAX_MONOMIALS,
) -> Explanation:
    """Explain a fitted model: its polynomial, the importance of features, attributions of rows.

    The score of a model is a polynomial of the scaled features, so the answers are exact up to
    rounding: its coefficients; the importance of features and of pairs, as shares of its variance
    over reference rows; the Shapley values of rows; its gradients. The first two need all
    C(s + d, s) monomials, the others work for any number of features and any degree.

    Parameters
    ----------
    model : FPCClassifier or FPCClassifierCV
        The fitted model; of a search, its best one.
    X : array-like, sparse matrix or DataSource of shape (m, d), default=None
        The reference rows, from the distribution that the model is used on. Attributions compare
        with their mean, and features are ranked by their attributions over about 1000 of them;
        shares of the variance are over the distribution of each column, the columns taken as
        independent. Of more than 100,000 rows about as many are used, spread over all. None is the
        model's centers, which are rows of the training data or uniform points of their box; if
        uniform, better pass rows.
    sample_weight : array-like of shape (m,), default=None
        The weights of the rows, of which only ratios matter; a source has its own weights.
    max_monomials : int, default=100_000
        With more monomials the explanation has no polynomial and no shares of the variance. Each
        takes about 3 d bytes, and as many multiplications as there are centers.

    Returns
    -------
    Explanation
        The explanation; ``print`` shows it as tables.

    Examples
    --------
    >>> import numpy as np
    >>> from polysift import FPCClassifier, explain
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2_000, 3))
    >>> clf = FPCClassifier(2, scaler=None, random_state=0).fit(X, X[:, 0] * X[:, 1] > 0)
    >>> found = explain(clf, X)
    >>> [(entry["pair"], round(entry["share"], 1)) for entry in found.pairs(1)]
    [(('x0', 'x1'), 1.0)]
    >>> found.polynomial.coefficients.shape
    (1, 10)
    >>> found.gradients(X[:4]).shape
    (4, 3)
    """
    clf = copy(classifier_of("explain describes", model))
    limit: Any = max_monomials
    if not isinstance(limit, Integral) or isinstance(limit, bool) or limit < 1:
        raise ValueError(f"max_monomials must be an integer of at least 1; got {max_monomials!r}.")
    if X is None and sample_weight is not None:
        raise ValueError("sample_weight counts the rows of X; got no X.")
    _check_size(clf)
    try:
        with np.errstate(over="raise", invalid="raise"):
            return _explained(clf, X, sample_weight, max_monomials)
    except FloatingPointError as error:
        if isinstance(error, FeatureOverflowError):
            raise
        raise FeatureOverflowError(
            "The model cannot be explained: its scores, or their squares, overflow float64. Its "
            "coefficients are too large, or the rows lie too far from the training data."
        ) from error


def _check_size(clf: FPCClassifier) -> None:
    """Raise for a degree whose tables of moments would take gigabytes."""
    needed = 8 * clf.n_features_in_ * (clf.degree_ + 1) ** 2
    if needed > MAX_TABLE_BYTES:
        raise ValueError(
            f"The model cannot be explained: for degree {clf.degree_} and {clf.n_features_in_} "
            f"features, tables of moments take {needed / 2**30:,.0f} GiB. Fit a lower degree."
        )


def _explained(clf: FPCClassifier, X: Any, sample_weight: Any, max_monomials: int) -> Explanation:
    reference = _reference(clf, X, sample_weight)
    baseline = reference.means[:, 1]
    count = full_dimension(clf.degree_, clf.n_features_in_)
    reason = None
    if count > max_monomials:
        reason = (
            f"A polynomial of degree {clf.degree_} in {clf.n_features_in_} features has {count:,} "
            f"monomials, and max_monomials={max_monomials}. Pass max_monomials={count} to have "
            "them, and shares of the variance, all the same; attributions and gradients need none."
        )
    polynomial = None if reason else expand(clf.centers_, clf.coef_, clf.degree_)
    return Explanation(
        model=clf,
        feature_names=_feature_names(clf),
        classes=tuple((clf.classes_[1:] if len(clf.coef_) == 1 else clf.classes_).tolist()),
        reference=reference,
        baseline=baseline,
        attribution=_mean_attribution(clf, reference, baseline),
        score_variance=_score_variance(clf, reference),
        n_monomials=count,
        reason=reason,
        _polynomial=polynomial,
        _importance=None if polynomial is None else importance_of(polynomial, reference),
    )


def _reference(clf: FPCClassifier, X: Any, sample_weight: Any) -> Reference:
    if X is None:
        n, unscaled = clf.n_centers_, AffineScaler.identity(clf.n_features_in_)
        name = "the model's center" if n == 1 else f"the model's {n:,} centers"
        return reference_of(ArraySource(clf.centers_), unscaled, clf.degree_, name)
    source = rows_source(clf, X, sample_weight, reset=False)
    scaler = scaler_from_dict(clf.scaler_)
    return reference_of(source, scaler, clf.degree_, f"{source.n_rows:,} rows")


def _mean_attribution(clf: FPCClassifier, reference: Reference, baseline: FloatArray) -> FloatArray:
    """Return the mean absolute attribution of each feature over the sample, of shape (K, d)."""
    with single_threaded_blas():
        values = Attributor(clf.centers_, clf.coef_, clf.degree_)(reference.rows, baseline)
        return np.tensordot(reference.weights, np.abs(values), axes=1).T


def _score_variance(clf: FPCClassifier, reference: Reference) -> FloatArray:
    """Return the variance of each score over the sample, of shape (K,)."""
    with single_threaded_blas():
        scores = (1.0 + reference.rows @ clf.centers_.T) ** clf.degree_ @ clf.coef_.T
        mean = reference.weights @ scores
        return np.asarray(reference.weights @ (scores - mean) ** 2)


def _feature_names(clf: FPCClassifier) -> tuple[str, ...]:
    found = getattr(clf, "feature_names_in_", None)
    return tuple(f"x{i}" for i in range(clf.n_features_in_)) if found is None else tuple(found)
