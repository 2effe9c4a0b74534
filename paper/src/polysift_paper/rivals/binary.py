"""What the classifiers written here share: two classes, coded as signs."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from polysift.runtime.types import FloatArray


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
