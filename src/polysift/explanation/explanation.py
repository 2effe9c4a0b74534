"""``Explanation``: what a model has learned, as exact answers about its polynomial."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from polysift.data.checks import check_finite, find_name
from polysift.data.inputs import rows_source
from polysift.data.kinds import CATEGORY, NUMBER
from polysift.estimators.classifier import FPCClassifier
from polysift.estimators.prediction import MissingWatch
from polysift.explanation.dependence import Group
from polysift.explanation.levels import LevelEffects
from polysift.explanation.parts import Baseline
from polysift.explanation.reference import Reference, dense
from polysift.explanation.score import Score
from polysift.explanation.tables import (
    as_text,
    feature_entries,
    notes_of,
    pair_entries,
    tables_of,
    term_entries,
)
from polysift.explanation.variances import Importance, term_spreads
from polysift.features.monomials import Polynomial
from polysift.runtime.parallel import block_spans, single_threaded_blas
from polysift.runtime.terminal import escaped
from polysift.runtime.types import FloatArray

BLOCK_ROWS = 4096


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """The result of ``polysift.explain``: what a model has learned; ``print`` shows it as tables.

    The score is a polynomial of the scaled features, and all answers are about that polynomial,
    exact up to rounding. With the spline kernel it is none, but as exact are the answers that need
    no polynomial. A column of a table is one feature, whatever it holds. Arrays about the
    model have a first axis for its K scores, as ``coef_``: 1 for two classes, else one per class.
    Arrays about rows are like ``decision_function``: without an axis of scores for two classes,
    else with a last one.

    Attributes
    ----------
    model : FPCClassifier
        The classifier, as it was when it was explained.
    feature_names : tuple of str
        The names of the features; "x0", "x1", ... where the training data had none.
    classes : tuple
        The class of each score: where the score is large, that class is predicted.
    reference : Reference
        The rows that importances and the baseline refer to: ``name``, ``rows`` (a sample of them,
        scaled, with ``weights``), ``factors`` (all that a polynomial depends on of their columns).
    baseline : ndarray of shape (d,)
        The mean of the reference rows, scaled: what attributions compare with by default. NaN for a
        column of several coordinates, as numbers are with the spline kernel, where attributions
        compare with the mean over the sample of what a column adds to the kernel; 0 for a column
        that is left out.
    attribution : ndarray of shape (K, d)
        The mean absolute attribution of each feature over the sample of the reference rows.
    shuffled : ndarray of shape (d,)
        The mean absolute change of the scores over the sample where the column is shuffled: each
        row has the value of another one.
    groups : tuple of Group
        Columns that depend on each other: their positions ("columns"), the largest absolute
        correlation of two of them ("correlation"), and the change of the scores where they are
        shuffled together ("shuffled").
    score_variance : ndarray of shape (K,)
        The variance of each score over that sample. Where it is far from ``importance.variance``,
        which is over independent features, the features depend on each other, and the shares of
        that variance count regions without rows.
    n_monomials : int
        The number of monomials, C(s + d, s); 0 with the spline kernel, which is no polynomial.
    reason : str or None
        Why there are no ``polynomial`` and no ``importance``; None where there are.

    See Also
    --------
    explain : Explains a fitted model.

    Examples
    --------
    >>> import numpy as np
    >>> from polysift import FPCClassifier, explain
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2_000, 3))
    >>> given = {"kernel": "polynomial", "degree": 2, "scaler": None}
    >>> clf = FPCClassifier(**given, random_state=0).fit(X, X[:, 0] * X[:, 1] > 0)
    >>> found = explain(clf, X)
    >>> [entry["pair"] for entry in found.pairs(top=1)]
    [('x0', 'x1')]
    >>> gained = clf.decision_function(X[:5]) - found.base_score()
    >>> bool(np.allclose(found.attributions(X[:5]).sum(axis=1), gained))
    True
    """

    model: FPCClassifier
    classes: tuple[Any, ...]
    baseline: FloatArray
    feature_names: tuple[str, ...]
    reference: Reference
    attribution: FloatArray
    shuffled: FloatArray
    groups: tuple[Group, ...]
    score_variance: FloatArray
    n_monomials: int
    reason: str | None
    _score: Score
    _baseline: Baseline
    _levels: dict[int, LevelEffects]
    _polynomial: Polynomial | None
    _importance: Importance | None

    @property
    def polynomial(self) -> Polynomial:
        """The scores as a function of scaled rows, as ``scaled`` returns them.

        Its ``exponents`` have the shape (M, d), its ``coefficients`` the shape (K, M).
        """
        if self._polynomial is None:
            raise ValueError(self.reason)
        return self._polynomial

    @property
    def importance(self) -> Importance:
        """The shares of the variance of each score: ``alone``, ``total`` and ``pairs``."""
        if self._importance is None:
            raise ValueError(self.reason)
        return self._importance

    def features(self, top: int | None = None) -> list[dict[str, Any]]:
        """Return the features, the most important first, for all scores together.

        Parameters
        ----------
        top : int, default=None
            The number of features; None is all.

        Returns
        -------
        list of dict
            Each with "feature", "attribution", its mean absolute attribution, and "shuffled", the
            mean absolute change of the scores where it is shuffled. Where there is a polynomial,
            also its shares of the variance over independent features: "alone", and "total" with all
            interactions that it takes part in.
        """
        return feature_entries(
            self._importance, self.attribution, self.shuffled, self.feature_names, top
        )

    def pairs(self, top: int | None = None) -> list[dict[str, Any]]:
        """Return the pairs of features by the share of their interaction, the largest first.

        Parameters
        ----------
        top : int, default=None
            The number of pairs; None is all.

        Returns
        -------
        list of dict
            Each with "pair", two names, and "share".
        """
        return pair_entries(self.importance, self.feature_names, top)

    def categories(self) -> list[str]:
        """Return the names of the categories that have ``levels``, the most important first."""
        names = {self.feature_names[column] for column in self._levels}
        return [entry["feature"] for entry in self.features() if entry["feature"] in names]

    def levels(self, column: str | int, top: int | None = None) -> list[dict[str, Any]]:
        """Return the levels of a category, the most influential first.

        Parameters
        ----------
        column : str or int
            The name of the column, or its position.
        top : int, default=None
            The number of levels; None is all that occur in the sample of the reference rows.

        Returns
        -------
        list of dict
            Each with "level", its word, or "(rare)" for the rare levels together, "(unknown)" for
            those that were not in the training rows, "(missing)" for no value; "share", that of
            the rows that have it; "attribution", the mean attribution of the column over these
            rows: a number for two classes, else a list in the order of ``classes``.
        """
        position = (
            find_name(column, self.feature_names, "the model")
            if isinstance(column, str)
            else range(len(self.feature_names))[column]
        )
        if position in self._levels:
            return self._levels[position].entries(top)
        kinds = getattr(self.model, "column_kinds_", None)
        kind = NUMBER if kinds is None else kinds[position]
        if CATEGORY not in kind:
            raise ValueError(
                f"column {self.feature_names[position]!r} has no levels: it is of the kind {kind!r}"
            )
        raise ValueError(
            f"The centers do not tell the levels of column {self.feature_names[position]!r}. Pass "
            "rows: explain(model, X)."
        )

    def terms(self, top: int | None = None) -> list[dict[str, Any]]:
        """Return the terms of the polynomial, those first that vary most over the reference rows.

        Terms of one feature are correlated, so each may vary more than their sum.

        Parameters
        ----------
        top : int, default=None
            The number of terms; None is all.

        Returns
        -------
        list of dict
            Each with "term", such as ``a^2 * b`` in scaled features; "class", whose score it is a
            term of; "coefficient"; "spread", the standard deviation of the term by itself.
        """
        spreads = term_spreads(self.polynomial, self.reference)
        return term_entries(self.polynomial, spreads, self.feature_names, self.classes, top)

    def scaled(self, X: Any) -> FloatArray:
        """Return rows in the scaled features, which are the variables of the polynomial.

        Parameters
        ----------
        X : array-like, sparse matrix or DataSource of shape (m, d)
            The rows.

        Returns
        -------
        ndarray of shape (m, d)
            The scaled rows, float64. NaN for a column of several coordinates, as numbers are with
            the spline kernel; 0 for one that is left out.
        """
        return self._score.by_column(self._of_blocks(X, self._score.transform))

    def attributions(self, X: Any, baseline: Any = None) -> FloatArray:
        """Return the contribution of each feature to the score of each row: exact Shapley values.

        Features change from the baseline to the row one after the other; the value of a feature is
        the change of the score in its turn, averaged over all orders. The values of a row add up
        to its score minus the baseline's.

        Parameters
        ----------
        X : array-like, sparse matrix or DataSource of shape (m, d)
            The rows.
        baseline : array-like of shape (d,) or (n_rows, d), default=None
            A row to compare with, in the units of X, or several, over which the values are averaged
            (the time is proportional to their number). None is ``baseline``, the mean of the
            reference.

        Returns
        -------
        ndarray of shape (m, d), or (m, d, n_classes) for more than two classes
            The attributions.
        """
        baselines, attribute = self._baselines(baseline), self._score.attributor()

        def values(block: FloatArray) -> FloatArray:
            Z = self._score.transform(block)
            total = attribute(Z, baselines[0])
            for row in baselines[1:]:
                total += attribute(Z, row)
            return total / len(baselines)

        return self._like_scores(self._of_blocks(X, values))

    def base_score(self, baseline: Any = None) -> Any:
        """Return the score of the baseline, to which attributions add up the scores of rows.

        Parameters
        ----------
        baseline : array-like of shape (d,) or (n_rows, d), default=None
            As in ``attributions``; for several rows, the mean score.

        Returns
        -------
        float, or ndarray of shape (n_classes,) for more than two classes
            The score.
        """
        bases = np.stack([row.base for row in self._baselines(baseline)])
        scores = self._score.of_base(bases).mean(axis=0)
        return float(scores[0]) if len(self.classes) == 1 else scores

    def gradients(self, X: Any) -> FloatArray:
        """Return the gradients of the score by the features, in the units of X.

        Those of a date are per second; those by a category, and where a value is missing, are zero.
        A scaler that clips or has knots makes kinks, as do the centers of the spline kernel. There
        the gradient is the mean of the derivatives from both sides, and beyond the clipping it is
        zero: everywhere it is the limit of central differences.

        Parameters
        ----------
        X : array-like, sparse matrix or DataSource of shape (m, d)
            The rows.

        Returns
        -------
        ndarray of shape (m, d), or (m, d, n_classes) for more than two classes
            The gradients.
        """
        return self._like_scores(self._of_blocks(X, self._score.gradients))

    def to_dict(self, top: int | None = None) -> dict[str, Any]:
        """Return the explanation as plain values, ready for JSON if the classes are.

        Parameters
        ----------
        top : int, default=None
            The number of pairs, terms and levels of a category; None is all.

        Returns
        -------
        dict
            "reference", "classes", "n_monomials", "baseline" (None for a column of several
            coordinates), "score_variance", "features" and "groups"; where there are categories
            "levels"; and where there is a polynomial "variance" over independent features, "pairs",
            "higher" (the share of interactions of three features or more) and "terms", else
            "reason".
        """
        found: dict[str, Any] = {
            "reference": self.reference.name,
            "classes": list(self.classes),
            "n_monomials": self.n_monomials,
            "baseline": {
                name: None if np.isnan(value) else float(value)
                for name, value in zip(self.feature_names, self.baseline, strict=True)
            },
            "score_variance": self.score_variance.tolist(),
            "features": self.features(),
            "groups": [
                {
                    "features": [self.feature_names[j] for j in group.columns],
                    "correlation": group.correlation,
                    "shuffled": group.shuffled,
                }
                for group in self.groups
            ],
        }
        if self._levels:
            found["levels"] = {name: self.levels(name, top) for name in self.categories()}
        if self.reason is not None:
            return found | {"reason": self.reason}
        return found | {
            "variance": self.importance.variance.tolist(),
            "pairs": self.pairs(top),
            "higher": float(self.importance.overall("higher")),
            "terms": self.terms(top),
        }

    def __repr__(self) -> str:
        size = f"{self.n_monomials:,} monomials" if self.n_monomials else "spline kernel"
        size = f"{size} of {len(self.feature_names)} features"
        return f"<Explanation: degree {self.model.degree_}, {size}, over {self.reference.name}>"

    def __str__(self) -> str:
        return "\n\n".join([*map(as_text, tables_of(self)), escaped("\n".join(notes_of(self)))])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def _baselines(self, given: Any) -> list[Baseline]:
        """Return the given baselines; for None, the mean of the reference."""
        if given is None:
            return [self._baseline]
        if np.ndim(given) == 1:  # a row of a frame keeps its names
            given = given.to_frame().T if hasattr(given, "to_frame") else np.asarray(given)[None]
        rows = self._of_blocks(given, self._score.transform)
        return [self._score.parts.baseline(row[None], np.ones(1)) for row in rows]

    def _like_scores(self, values: FloatArray) -> FloatArray:
        """Return values without their last axis, that of the scores, where there is one score."""
        return values[..., 0] if len(self.classes) == 1 else values

    def _of_blocks(self, X: Any, values: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Return ``values`` of dense blocks of rows, concatenated."""
        source = rows_source(self.model, X, reset=False)
        watch, parts = MissingWatch(source, self._score.scaler), []
        with single_threaded_blas(), np.errstate(over="ignore", invalid="ignore"):
            for span, part in source.parts():
                rows = source.rows(part)
                check_finite(source, span[0], rows)
                watch.look_at(rows)
                for lo, hi in block_spans((0, rows.shape[0]), BLOCK_ROWS):
                    found = values(dense(rows[lo:hi]))
                    wrong = ~np.isfinite(found).reshape(len(found), -1).all(axis=1)
                    if wrong.any():
                        where = source.place(span[0] + lo + int(wrong.argmax()))
                        raise ValueError(
                            f"The kernel overflows float64 in {where}: that row lies too far from "
                            "the training data. Use a scaler, which clips, or a lower degree."
                        )
                    parts.append(found)
        watch.warn(3)
        return np.concatenate(parts)
