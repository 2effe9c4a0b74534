"""Scorers of scikit-learn, applied to decision scores that are already computed."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import get_scorer, get_scorer_names

from polysift.engine.sums import predicted_codes
from polysift.runtime.parameters import check_flag
from polysift.runtime.types import FloatArray, IntArray
from polysift.training.calibration import best_calibration, cross_fitted
from polysift.training.thresholds import Threshold, held_out_thresholds

Scorer = Callable[..., float]


class ScoredRows(ClassifierMixin, BaseEstimator):
    """A classifier with precomputed decision scores, to pass to a scorer.

    Its "X" are row numbers. Probabilities are computed on first use. ``decided`` are the scores
    less the decision thresholds, if there are any.
    """

    def __init__(
        self,
        classes: Any,
        scores: FloatArray,
        probabilities: Callable[[], FloatArray],
        decided: FloatArray | None = None,
    ) -> None:
        self.classes, self.scores, self.probabilities = classes, scores, probabilities
        self.decided = scores if decided is None else decided
        self.classes_ = classes

    def decision_function(self, X: IntArray) -> FloatArray:
        """Return the scores of rows."""
        scores = self.scores[X[:, 0]]
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: IntArray) -> Any:
        """Return the classes of rows."""
        return self.classes_[predicted_codes(self.decided[X[:, 0]])]

    def predict_proba(self, X: IntArray) -> FloatArray:
        """Return cross-fitted probabilities of rows."""
        return self.probabilities()[X[:, 0]]


def check_scorer(scoring: Any) -> Scorer | None:
    """Return the scorer of the parameter ``scoring``; None for accuracy."""
    if scoring is None or (isinstance(scoring, str) and scoring == "accuracy"):
        return None
    if isinstance(scoring, str) and scoring not in get_scorer_names():
        raise ValueError(
            f"scoring={scoring!r} is not a scorer of scikit-learn. Use one of "
            f"{', '.join(map(repr, ('accuracy', 'balanced_accuracy', 'roc_auc', 'f1')))} or of "
            "sklearn.metrics.get_scorer_names(), or a callable scorer(estimator, X, y)."
        )
    if not (isinstance(scoring, str) or callable(scoring)):
        raise ValueError(
            "scoring must be None, a scorer's name or a callable scorer(estimator, X, y); got "
            f"{scoring!r}."
        )
    module = str(getattr(scoring, "__module__", ""))
    if module.startswith("sklearn.metrics.") and not module.endswith("_scorer"):
        raise ValueError(
            f"scoring={scoring.__name__} is a metric, not a scorer: wrap it with "
            "sklearn.metrics.make_scorer."
        )
    return get_scorer(scoring)


def check_scorers(scoring: Any, refit: Any) -> dict[str, Scorer | None]:
    """Return the scorers by name, the one that counts first.

    Several are given as in scikit-learn: a list of names, or a dict of names and scorers; then
    ``refit`` names the one that counts, and else is True or False.
    """
    if not isinstance(scoring, list | tuple | set | dict):
        check_flag("refit", refit)
        return {score_name(scoring): check_scorer(scoring)}
    names = list(scoring)
    if not names or not all(isinstance(name, str) for name in names):
        raise ValueError(
            "scoring must be a scorer, or a list of scorers' names, or a dict of names and "
            f"scorers; got {scoring!r}."
        )
    given = scoring if isinstance(scoring, dict) else {name: name for name in names}
    if refit is not False and (not isinstance(refit, str) or refit not in names):
        raise ValueError(
            "refit must name the one of several scorers by which the best candidate is chosen, "
            f"one of {', '.join(map(repr, names))}, or be False; got {refit!r}."
        )
    main = names[0] if refit is False else refit
    return {name: check_scorer(given[name]) for name in (main, *names)}


class HeldOutScorer:
    """Scores the held-out rows of each split.

    Parameters
    ----------
    scorer : callable or None
        A scikit-learn scorer; None means accuracy.
    codes : ndarray of shape (m,)
        The class of each row.
    classes : ndarray
        The classes.
    weights : ndarray of shape (m,) or None
        The weights of the rows.
    calibrations : sequence of str
        The calibration of probabilities, for scorers that need them; of several the best.
    threshold : Threshold or None
        What decision thresholds are chosen for, if any, for scorers that need classes.
    """

    def __init__(
        self,
        scorer: Scorer | None,
        codes: IntArray,
        classes: Any,
        weights: FloatArray | None,
        calibrations: Sequence[str],
        threshold: Threshold | None = None,
    ) -> None:
        self._scorer, self._codes, self._classes = scorer, codes, classes
        self._weights, self._calibrations, self._threshold = weights, calibrations, threshold
        self._takes_weights = weights is not None and _takes_weights(scorer)

    def __call__(self, scores: FloatArray, fold_parts: IntArray, n_splits: int) -> FloatArray:
        """Return the score of each split, by the decision scores (m, K) of held-out rows."""
        present = (
            fold_parts if self._weights is None else np.where(self._weights > 0, fold_parts, -1)
        )
        folds = np.where(present < n_splits, present, -1)
        decided = scores
        if self._threshold is not None:
            decided = scores - held_out_thresholds(
                self._threshold, scores, self._codes, self._classes, self._weights, folds
            )
        if self._scorer is None:
            return self._accuracy(decided, present, n_splits)
        made: list[FloatArray] = []

        def probabilities() -> FloatArray:
            if not made:
                rows = scores, self._codes, len(self._classes), self._weights, folds
                if len(self._calibrations) == 1:
                    made.append(cross_fitted(self._calibrations[0], *rows))
                else:
                    made.append(best_calibration(self._calibrations, *rows).probabilities)
            return made[0]

        model = ScoredRows(self._classes, scores, probabilities, decided)
        return np.array(
            [self._score(model, np.flatnonzero(present == s), s) for s in range(n_splits)]
        )

    def _accuracy(self, scores: FloatArray, fold_parts: IntArray, n_splits: int) -> FloatArray:
        right = predicted_codes(scores) == self._codes
        counted = (fold_parts >= 0) & (fold_parts < n_splits)
        splits, right = fold_parts[counted], right[counted]
        if self._weights is None:
            return np.bincount(splits, right, n_splits) / np.bincount(splits, minlength=n_splits)
        weights = self._weights[counted]
        total = np.bincount(splits, weights, n_splits)
        return np.bincount(splits, weights * right, n_splits) / total

    def _score(self, model: ScoredRows, rows: IntArray, split: int) -> float:
        assert self._scorer is not None
        y = self._classes[self._codes[rows]]
        weights: dict[str, Any] = {}
        if self._takes_weights and self._weights is not None:
            weights = {"sample_weight": self._weights[rows]}
        value = self._scorer(model, rows[:, np.newaxis], y, **weights)
        try:
            value = float(value)
        except (TypeError, ValueError):
            raise ValueError(
                f"scoring must return a number; it returned {type(value).__name__}."
            ) from None
        if not np.isfinite(value):
            found = len(np.unique(y))
            why = " It has one class only: use stratified folds, or fewer." if found == 1 else ""
            raise ValueError(f"scoring gives {value} on the test part of split {split} of cv.{why}")
        return value


def _takes_weights(scorer: Scorer | None) -> bool:
    if scorer is None:
        return True
    function = getattr(scorer, "_score_func", scorer)
    try:
        return "sample_weight" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # a built-in without a signature
        return False


def score_name(scoring: Any) -> str:
    """Return the name of a scorer's scores, for displays."""
    if scoring is None or isinstance(scoring, str):
        return scoring or "accuracy"
    metric = getattr(scoring, "_score_func", scoring)  # of what make_scorer returns
    name = getattr(metric, "__name__", "score")
    return f"negative {name}" if getattr(scoring, "_sign", 1) < 0 else name
