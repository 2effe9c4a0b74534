"""What the rivals share: labels as signs, sums over rows inside the margin, a kernel's width."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from polysift.runtime.types import FloatArray, IntArray

BLOCK_ROWS = 4096
"""Rows are gathered this many at a time."""


SAMPLE_ROWS = 1000
"""How many rows the median distance is taken from."""


class BinaryClassifier(ClassifierMixin, BaseEstimator):
    """A classifier of two classes that learns from labels -1 and +1 and predicts by a sign."""

    def _rows_and_signs(self, X: Any, y: Any) -> tuple[FloatArray, FloatArray]:
        """Check rows and labels, keep the classes, and return the rows and their signs."""
        X, y = validate_data(self, X, y, dtype=np.float64, order="C")
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        if len(self.classes_) > 2:
            raise ValueError(
                f"Only binary classification is supported. The type of the target is "
                f"{type_of_target(y)}: y must hold two classes; got {len(self.classes_)}. "
                "Wrap the estimator in sklearn.multiclass.OneVsRestClassifier."
            )
        if len(self.classes_) < 2:
            raise ValueError(
                "y must hold two classes, the classifier has nothing to tell apart; got one class, "
                f"{self.classes_.tolist()[0]!r}."
            )
        return X, np.where(y == self.classes_[1], 1.0, -1.0)

    def decision_function(self, X: Any) -> FloatArray:
        """Return the scores of rows: positive for the second class of ``classes_``.

        Parameters
        ----------
        X : array-like of shape (m, d)
            The rows.

        Returns
        -------
        ndarray of shape (m,)
            The scores.
        """
        check_is_fitted(self)
        return self._scores(validate_data(self, X, dtype=np.float64, order="C", reset=False))

    def predict(self, X: Any) -> Any:
        """Return the class of each row.

        Parameters
        ----------
        X : array-like of shape (m, d)
            The rows.

        Returns
        -------
        ndarray of shape (m,)
            Members of ``classes_``.
        """
        positive = self.decision_function(X) > 0
        return self.classes_[positive.astype(int)]

    def _scores(self, X: FloatArray) -> FloatArray:
        """Return the scores of checked rows."""
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


class MarginGram:
    """The sums ``H = sum x x'`` and ``c = sum y x`` over some rows, each with a one at its end.

    With the squared hinge loss these are all that a Newton step asks of the rows, and from step to
    step they change only by the rows that cross their margin.

    Parameters
    ----------
    X : ndarray of shape (m, d)
        The rows.
    y : ndarray of shape (m,)
        Labels -1 and +1.
    """

    def __init__(self, X: FloatArray, y: FloatArray) -> None:
        self.X, self.y = X, y
        self.rows = np.zeros(len(y), dtype=bool)
        n = X.shape[1] + 1
        self.H, self.c = np.zeros((n, n)), np.zeros(n)

    def update(self, rows: FloatArray) -> None:
        """Let the sums be over these rows."""
        self._add(np.flatnonzero(rows & ~self.rows), 1.0)
        self._add(np.flatnonzero(self.rows & ~rows), -1.0)
        self.rows = rows

    def _add(self, rows: IntArray, sign: float) -> None:
        for lo in range(0, len(rows), BLOCK_ROWS):
            some = rows[lo : lo + BLOCK_ROWS]
            Z, y = self.X[some], self.y[some]
            total = sign * Z.sum(axis=0)
            self.H[:-1, :-1] += sign * (Z.T @ Z)
            self.H[:-1, -1] += total
            self.H[-1, :-1] += total
            self.H[-1, -1] += sign * len(some)
            self.c[:-1] += sign * (y @ Z)
            self.c[-1] += sign * y.sum()


def median_distance(X: FloatArray, random_state: Any) -> float:
    """Return the median distance between two of a sample of rows; 1 if that is zero.

    Parameters
    ----------
    X : ndarray of shape (m, d)
        The rows.
    random_state : int, RandomState or None
        The seed of the sample.
    """
    rows = np.arange(len(X))
    if len(X) > SAMPLE_ROWS:
        rows = check_random_state(random_state).choice(len(X), SAMPLE_ROWS, replace=False)
    distances = pdist(X[rows])
    median = float(np.median(distances)) if len(distances) else 0.0
    return median if median > 0 else 1.0
