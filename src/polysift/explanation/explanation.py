"""``Explanation``: what a model has learned, as exact answers about its polynomial.

What an explanation tells of rows, block by block: scaled, attributed, differentiated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from polysift.data.inputs import rows_source
from polysift.data.source import check_finite
from polysift.estimators.classifier import FPCClassifier
from polysift.explanation.attributions import Attributor, score_gradients
from polysift.explanation.reference import Reference, dense
from polysift.explanation.tables import (
    Table,
    as_text,
    dependence_notes,
    feature_entries,
    feature_table,
    higher_note,
    pair_entries,
    pair_table,
    term_entries,
    term_table,
)
from polysift.explanation.variances import Importance, term_spreads
from polysift.features.monomials import Polynomial
from polysift.features.scalers import scaler_from_dict
from polysift.runtime.parallel import block_spans, single_threaded_blas
from polysift.runtime.types import FloatArray

BLOCK_ROWS = 4096


@dataclass(frozen=True, eq=False, repr=False)
class RowAnswers:
    """What an ``Explanation`` can tell of rows; it says more of the attributes."""

    model: FPCClassifier
    classes: tuple[Any, ...]
    baseline: FloatArray

    def scaled(self, X: Any) -> FloatArray:
        """Return rows in the scaled features that the polynomial is about.

        Parameters
        ----------
        X : array-like, sparse matrix or DataSource of shape (m, d)
            The rows.

        Returns
        -------
        ndarray of shape (m, d)
            The scaled rows, float64.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from polysift import FPCClassifier, explain
        >>> X, y = load_iris(return_X_y=True)
        >>> found = explain(FPCClassifier(2, random_state=0).fit(X, y), X)
        >>> bool(found.scaled(X).min() == 0), bool(found.scaled(X).max() == 1)
        (True, True)
        """
        return scaled_rows(self.model, X)

    def attributions(self, X: Any, baseline: Any = None) -> FloatArray:
        """Return how much each feature adds to the score of each row: exact Shapley values.

        Features go from the baseline to the row one after the other; a feature's value is the
        change of the score when its turn comes, averaged over all orders. The values of a row add
        up to its score less the baseline's.

        Parameters
        ----------
        X : array-like, sparse matrix or DataSource of shape (m, d)
            The rows.
        baseline : array-like of shape (d,) or (n_rows, d), default=None
            A row to compare with, in the units of X, or several, whose values are averaged (the
            time is proportional to their number). None is ``baseline``, the mean of the reference.

        Returns
        -------
        ndarray of shape (m, d), or (m, d, n_classes) for more than two classes
            The attributions.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from polysift import FPCClassifier, explain
        >>> X, y = load_iris(return_X_y=True)
        >>> found = explain(FPCClassifier(2, random_state=0).fit(X, y), X)
        >>> found.attributions(X[:5]).shape
        (5, 4, 3)
        >>> found.attributions(X[:5], baseline=X[0])[0].tolist() == [[0.0] * 3] * 4
        True
        """
        return self._like_scores(row_attributions(self.model, X, self._baselines(baseline)))

    def base_score(self, baseline: Any = None) -> Any:
        """Return the score of the baseline, what attributions start from.

        Parameters
        ----------
        baseline : array-like of shape (d,) or (n_rows, d), default=None
            As in ``attributions``; of several rows the mean score.

        Returns
        -------
        float, or ndarray of shape (n_classes,) for more than two classes
            The score.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from polysift import FPCClassifier, explain
        >>> X, y = load_iris(return_X_y=True)
        >>> found = explain(FPCClassifier(2, random_state=0).fit(X, y), X)
        >>> found.base_score().shape
        (3,)
        """
        model = self.model
        features = (1.0 + self._baselines(baseline) @ model.centers_.T) ** model.degree_
        scores = (features @ model.coef_.T).mean(axis=0)
        return float(scores[0]) if len(self.classes) == 1 else scores

    def gradients(self, X: Any) -> FloatArray:
        """Return the gradients of the score by the features, in the units of X.

        A scaler that clips, or that has knots, makes kinks. There the gradient is the mean of the
        derivatives from both sides, and beyond the clipping it is zero: so it is what central
        differences tend to, everywhere.

        Parameters
        ----------
        X : array-like, sparse matrix or DataSource of shape (m, d)
            The rows.

        Returns
        -------
        ndarray of shape (m, d), or (m, d, n_classes) for more than two classes
            The gradients.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from polysift import FPCClassifier, explain
        >>> X, y = load_iris(return_X_y=True)
        >>> found = explain(FPCClassifier(2, random_state=0).fit(X, y), X)
        >>> found.gradients(X[:5]).shape
        (5, 4, 3)
        """
        return self._like_scores(row_gradients(self.model, X))

    def _baselines(self, given: Any) -> FloatArray:
        """Return baselines, scaled, as rows."""
        if given is None:
            return self.baseline[None]
        if np.ndim(given) == 1:  # a row of a frame keeps its names
            given = given.to_frame().T if hasattr(given, "to_frame") else np.asarray(given)[None]
        return self.scaled(given)

    def _like_scores(self, values: FloatArray) -> FloatArray:
        """Return values without the axis of scores where there is but one."""
        return values[..., 0] if len(self.classes) == 1 else values


def scaled_rows(model: FPCClassifier, X: Any) -> FloatArray:
    """Return rows scaled, of shape (m, d)."""
    scaler = scaler_from_dict(model.scaler_)
    return _by_blocks(model, X, scaler.transform)


def row_attributions(model: FPCClassifier, X: Any, baselines: FloatArray) -> FloatArray:
    """Return Shapley values against scaled baselines, on average, of shape (m, d, K)."""
    scaler = scaler_from_dict(model.scaler_)
    attribute = Attributor(model.centers_, model.coef_, model.degree_)

    def values(block: FloatArray) -> FloatArray:
        Z = scaler.transform(block)
        total = attribute(Z, baselines[0])
        for baseline in baselines[1:]:
            total += attribute(Z, baseline)
        return total / len(baselines)

    return _by_blocks(model, X, values)


def row_gradients(model: FPCClassifier, X: Any) -> FloatArray:
    """Return gradients by the features, in the units of X, of shape (m, d, K)."""
    scaler = scaler_from_dict(model.scaler_)
    kernel = model.centers_, model.coef_, model.degree_

    def values(block: FloatArray) -> FloatArray:
        slopes = scaler.slope(block)[:, :, None]
        return score_gradients(scaler.transform(block), *kernel) * slopes

    return _by_blocks(model, X, values)


def _by_blocks(
    model: FPCClassifier, X: Any, values: Callable[[FloatArray], FloatArray]
) -> FloatArray:
    """Return ``values`` of dense blocks of rows, in one array."""
    source = rows_source(model, X, reset=False)
    parts = []
    with single_threaded_blas(), np.errstate(over="ignore", invalid="ignore"):
        for span, part in source.parts():
            rows = source.rows(part)
            check_finite(source, span[0], rows)
            for lo, hi in block_spans((0, rows.shape[0]), BLOCK_ROWS):
                found = values(dense(rows[lo:hi]))
                wrong = ~np.isfinite(found).reshape(len(found), -1).all(axis=1)
                if wrong.any():
                    where = source.place(span[0] + lo + int(wrong.argmax()))
                    raise ValueError(
                        f"The kernel overflows float64 in {where}: that row lies too far from the "
                        "training data. Use a scaler, which clips, or a lower degree."
                    )
                parts.append(found)
    return np.concatenate(parts)


SHOWN = 10


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(RowAnswers):
    """What ``polysift.explain`` found out about a model; ``print`` shows it as tables.

    The score is a polynomial of the scaled features, and all answers are about that polynomial,
    exact up to rounding. Arrays about the model have a first axis for its K scores, as ``coef_``:
    1 for two classes, else one per class. Arrays about rows are like ``decision_function``: without
    an axis of scores for two classes, else with a last one.

    Attributes
    ----------
    model : FPCClassifier
        The classifier, as it was then.
    feature_names : tuple of str
        The names of the features; "x0", "x1", ... where the training data had none.
    classes : tuple
        The class of each score: where it is large, that class is predicted.
    reference : Reference
        The rows that importances and the baseline refer to: ``name``, ``rows`` (a sample of them,
        scaled, with ``weights``), ``factors`` (all that the polynomial sees of their columns).
    baseline : ndarray of shape (d,)
        Their mean, scaled: what attributions compare with by default.
    attribution : ndarray of shape (K, d)
        The mean absolute attribution of each feature over the sample of the reference rows.
    score_variance : ndarray of shape (K,)
        The variance of each score over that sample. Where ``importance.variance``, which is over
        independent features, is far from it, the features depend on each other, and shares of that
        variance count places where there are no rows.
    n_monomials : int
        How many monomials there are, C(s + d, s).
    reason : str or None
        Why there is neither a polynomial nor importances, or None where they are there.

    Examples
    --------
    >>> import numpy as np
    >>> from polysift import FPCClassifier, explain
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2_000, 3))
    >>> clf = FPCClassifier(2, scaler=None, random_state=0).fit(X, X[:, 0] * X[:, 1] > 0)
    >>> found = explain(clf, X)
    >>> gained = clf.decision_function(X[:5]) - found.base_score()
    >>> bool(np.allclose(found.attributions(X[:5]).sum(axis=1), gained))
    True
    """

    feature_names: tuple[str, ...]
    reference: Reference
    attribution: FloatArray
    score_variance: FloatArray
    n_monomials: int
    reason: str | None
    _polynomial: Polynomial | None
    _importance: Importance | None

    @property
    def polynomial(self) -> Polynomial:
        """The scores as a function of what ``scaled`` returns.

        Its ``exponents`` have the shape (M, d), its ``coefficients`` (K, M).

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from polysift import FPCClassifier, explain
        >>> X, y = load_iris(return_X_y=True)
        >>> found = explain(FPCClassifier(2, random_state=0).fit(X, y), X)
        >>> found.polynomial.exponents.shape, found.polynomial.coefficients.shape
        ((15, 4), (3, 15))
        >>> found.polynomial(found.scaled(X)).shape
        (150, 3)
        """
        if self._polynomial is None:
            raise ValueError(self.reason)
        return self._polynomial

    @property
    def importance(self) -> Importance:
        """How the variance of each score is shared out: ``alone``, ``total``, ``pairs``.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from polysift import FPCClassifier, explain
        >>> X, y = load_iris(return_X_y=True)
        >>> found = explain(FPCClassifier(2, random_state=0).fit(X, y), X)
        >>> found.importance.alone.shape, found.importance.pairs.shape
        ((3, 4), (3, 4, 4))
        """
        if self._importance is None:
            raise ValueError(self.reason)
        return self._importance

    def features(self, top: int | None = None) -> list[dict[str, Any]]:
        """Return the features, the most important first, for all scores together.

        Parameters
        ----------
        top : int, default=None
            How many; None is all.

        Returns
        -------
        list of dict
            Each with "feature" and "attribution", the mean size of its attributions. Where there
            is a polynomial, also its shares of the variance over independent features: "alone", and
            "total" with all the interactions that it takes part in.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from polysift import FPCClassifier, explain
        >>> X, y = load_iris(return_X_y=True)
        >>> found = explain(FPCClassifier(2, random_state=0).fit(X, y), X)
        >>> [entry["feature"] for entry in found.features(2)]
        ['x2', 'x3']
        """
        return feature_entries(self._importance, self.attribution, self.feature_names, top)

    def pairs(self, top: int | None = None) -> list[dict[str, Any]]:
        """Return the pairs of features by the share of their interaction, largest first.

        Parameters
        ----------
        top : int, default=None
            How many; None is all.

        Returns
        -------
        list of dict
            Each with "pair", two names, and "share".

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from polysift import FPCClassifier, explain
        >>> X, y = load_iris(return_X_y=True)
        >>> found = explain(FPCClassifier(2, random_state=0).fit(X, y), X)
        >>> found.pairs(1)[0]["pair"]
        ('x2', 'x3')
        """
        return pair_entries(self.importance, self.feature_names, top)

    def terms(self, top: int | None = None) -> list[dict[str, Any]]:
        """Return the terms of the polynomial, those first that vary most over the reference rows.

        Terms of one feature rise and fall together, so each may vary more than their sum.

        Parameters
        ----------
        top : int, default=None
            How many; None is all.

        Returns
        -------
        list of dict
            Each with "term", such as ``a^2 * b`` in scaled features; "class", whose score it is a
            term of; "coefficient"; "spread", the standard deviation of the term by itself.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from polysift import FPCClassifier, explain
        >>> X, y = load_iris(return_X_y=True)
        >>> found = explain(FPCClassifier(2, random_state=0).fit(X, y), X)
        >>> sorted(found.terms(1)[0])
        ['class', 'coefficient', 'spread', 'term']
        """
        spreads = term_spreads(self.polynomial, self.reference)
        return term_entries(self.polynomial, spreads, self.feature_names, self.classes, top)

    def to_dict(self, top: int | None = None) -> dict[str, Any]:
        """Return all of it as plain values, ready for JSON where the classes are.

        Parameters
        ----------
        top : int, default=None
            How many pairs and terms; None is all.

        Returns
        -------
        dict
            "reference", "classes", "n_monomials", "baseline", "score_variance" and "features"; and
            where there is a polynomial "variance" over independent features, "pairs", "higher" (the
            share of interactions of three features or more) and "terms", else "reason".

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from polysift import FPCClassifier, explain
        >>> X, y = load_iris(return_X_y=True)
        >>> found = explain(FPCClassifier(2, random_state=0).fit(X, y), X)
        >>> found.to_dict(top=5)["reference"]
        '150 rows'
        """
        found: dict[str, Any] = {
            "reference": self.reference.name,
            "classes": list(self.classes),
            "n_monomials": self.n_monomials,
            "baseline": dict(zip(self.feature_names, self.baseline.tolist(), strict=True)),
            "score_variance": self.score_variance.tolist(),
            "features": self.features(),
        }
        if self.reason is not None:
            return found | {"reason": self.reason}
        return found | {
            "variance": self.importance.variance.tolist(),
            "pairs": self.pairs(top),
            "higher": float(self.importance.overall("higher")),
            "terms": self.terms(top),
        }

    def notes(self) -> list[str]:
        """Return what to know before reading the tables; for polysift's own use."""
        over = f"Over {self.reference.name}."
        if self.reason is not None:
            return [over, self.reason]
        variances = float(self.importance.variance.sum()), float(self.score_variance.sum())
        higher = float(self.importance.overall("higher"))
        return [over, higher_note(higher), *dependence_notes(*variances)]

    def __repr__(self) -> str:
        size = f"{self.n_monomials:,} monomials of {len(self.feature_names)} features"
        return f"<Explanation: degree {self.model.degree_}, {size}, over {self.reference.name}>"

    def __str__(self) -> str:
        return "\n\n".join([*map(as_text, self.tables()), "\n".join(self.notes())])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def tables(self, top: int = SHOWN) -> list[Table]:
        """Return what ``print`` shows, features, pairs and terms; for polysift's own use."""
        shown = [feature_table(self.features(top))]
        if self.reason is not None:
            return shown
        if len(self.feature_names) > 1 and self.model.degree_ > 1:
            shown.append(pair_table(self.pairs(top)))
        return [*shown, term_table(self.terms(top), classes=len(self.classes) > 1)]
