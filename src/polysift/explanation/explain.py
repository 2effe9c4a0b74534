"""``explain``: from a fitted model to an ``Explanation``."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np

from polysift.data.inputs import rows_source
from polysift.data.source import ArraySource
from polysift.estimators.classifier import FPCClassifier
from polysift.estimators.prediction import MissingWatch
from polysift.estimators.search import FPCClassifierCV, classifier_of
from polysift.explanation.dependence import Group, dependent_groups, shuffled_changes
from polysift.explanation.explanation import Explanation
from polysift.explanation.levels import level_effects, levels_of_coordinates, levels_of_rows
from polysift.explanation.reference import Reference, reference_of
from polysift.explanation.score import Score, score_of
from polysift.explanation.variances import importance_of
from polysift.features.kernels import full_dimension
from polysift.features.monomials import Polynomial, expand
from polysift.features.scalers import AffineScaler
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

    Of a table, a column is one feature, whatever it holds. Where a column has several coordinates,
    as categories, dates and columns with missing values have, there are the last two alone; so it
    is with the spline kernel, which is no polynomial but a sum over columns all the same.

    Parameters
    ----------
    model : FPCClassifier or FPCClassifierCV
        The fitted model; of a search, its best one.
    X : array-like, sparse matrix or DataSource of shape (m, d), default=None
        The reference rows, from the distribution that the model is used on. Attributions compare
        with their mean (with the spline kernel, the mean of what each column of them adds to the
        kernel), and features are ranked by their attributions over about 1000 of them;
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
    >>> given = {"kernel": "polynomial", "degree": 2, "scaler": None}
    >>> clf = FPCClassifier(**given, random_state=0).fit(X, X[:, 0] * X[:, 1] > 0)
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
    if isinstance(limit, bool) or not isinstance(limit, Integral) or limit < 1:
        raise ValueError(f"max_monomials must be an integer of at least 1; got {max_monomials!r}.")
    if X is None and sample_weight is not None:
        raise ValueError("sample_weight counts the rows of X; got no X.")
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


def _check_size(score: Score) -> None:
    """Raise for a degree whose tables of moments would take gigabytes."""
    needed = 8 * score.n_columns * (score.degree + 1) ** 2
    if score.expandable and needed > MAX_TABLE_BYTES:
        raise ValueError(
            f"The model cannot be explained: for degree {score.degree} and {score.n_columns} "
            f"features, tables of moments take {needed / 2**30:,.0f} GiB. Fit a lower degree."
        )


def _explained(clf: FPCClassifier, X: Any, sample_weight: Any, max_monomials: int) -> Explanation:
    score = score_of(clf)
    _check_size(score)
    reference = _reference(clf, score, X, sample_weight)
    with single_threaded_blas():
        baseline = score.baseline(reference)
        values = score.attributor()(reference.rows, baseline)
        attribution = np.tensordot(reference.weights, np.abs(values), axes=1).T
        shuffled, groups = _dependence(score, reference, attribution)
    reason = _reason(score, max_monomials)
    polynomial = None if reason else _expanded(score)
    return Explanation(
        model=clf,
        feature_names=_feature_names(clf),
        classes=tuple((clf.classes_[1:] if len(clf.coef_) == 1 else clf.classes_).tolist()),
        reference=reference,
        baseline=score.by_column(reference.means[:, 1][None])[0],
        attribution=attribution,
        shuffled=shuffled,
        groups=groups,
        score_variance=_score_variance(score, reference),
        n_monomials=0 if score.is_spline else full_dimension(score.degree, score.n_used),
        reason=reason,
        _score=score,
        _baseline=baseline,
        _levels=level_effects(score, reference, values),
        _polynomial=polynomial,
        _importance=None if polynomial is None else importance_of(polynomial, reference),
    )


def _dependence(
    score: Score, reference: Reference, attribution: FloatArray
) -> tuple[FloatArray, tuple[Group, ...]]:
    """Return what the scores lose with each column, and columns that depend on each other."""
    found = dependent_groups(score, reference, attribution)
    used = np.unique(score.parts.owners if score.parts.used is None else score.parts.used).tolist()
    sets = [*([column] for column in used), *(columns for columns, _ in found)]
    changes = shuffled_changes(score, reference, sets)
    shuffled = np.zeros(score.n_columns)
    shuffled[used] = changes[: len(used)]
    together = changes[len(used) :].tolist()
    groups = [Group(columns, r, x) for (columns, r), x in zip(found, together, strict=True)]
    return shuffled, tuple(groups)


def _reason(score: Score, max_monomials: int) -> str | None:
    """Return why there is no polynomial, if there is none."""
    if score.is_spline:
        return (
            "The spline kernel is no polynomial of the features, so there are no terms and no "
            "shares of the variance; attributions and gradients are exact all the same."
        )
    if score.parts.has_several:
        return (
            "The table has columns of several coordinates: categories, dates, or columns with "
            "missing values. Those of one column depend on each other, so there are no "
            "polynomial and no shares of the variance, which are over independent features; "
            "attributions and gradients are by column."
        )
    count = full_dimension(score.degree, score.n_used)
    if count <= max_monomials:
        return None
    return (
        f"A polynomial of degree {score.degree} in {score.n_used} features has {count:,} "
        f"monomials, and max_monomials={max_monomials}. Pass max_monomials={count} to have "
        "them, and shares of the variance, all the same; attributions and gradients need none."
    )


def _expanded(score: Score) -> Polynomial:
    """Return the polynomial of the columns; no monomial has a column that is left out."""
    centers, used = score.parts.centers, score.parts.used
    if used is None:
        return expand(centers, score.coef, score.degree)
    order = np.sort(used)
    found = expand(centers[:, order], score.coef, score.degree)
    exponents = np.zeros((len(found.exponents), score.n_columns), found.exponents.dtype)
    exponents[:, order] = found.exponents
    return replace(found, exponents=exponents)


def _reference(clf: FPCClassifier, score: Score, X: Any, sample_weight: Any) -> Reference:
    degree, centers = score.degree if score.expandable else 1, score.parts.centers
    if X is None:
        n, unscaled = clf.n_centers_, AffineScaler.identity(centers.shape[1])
        name = "the model's center" if n == 1 else f"the model's {n:,} centers"
        codes_of = partial(levels_of_coordinates, score)
        return reference_of(ArraySource(centers), unscaled, degree, name, codes_of)
    source = rows_source(clf, X, sample_weight, reset=False)
    name, codes_of = f"{source.n_rows:,} rows", partial(levels_of_rows, score)
    watch = MissingWatch(source, score.scaler)
    found = reference_of(source, score, degree, name, codes_of, watch.look_at)
    watch.warn(4)
    return found


def _score_variance(score: Score, reference: Reference) -> FloatArray:
    """Return the variance of each score over the sample, of shape (K,)."""
    with single_threaded_blas():
        scores = score.scores(reference.rows)
        mean = reference.weights @ scores
        return np.asarray(reference.weights @ (scores - mean) ** 2)


def _feature_names(clf: FPCClassifier) -> tuple[str, ...]:
    found = getattr(clf, "feature_names_in_", None)
    return tuple(f"x{i}" for i in range(clf.n_features_in_)) if found is None else tuple(found)
