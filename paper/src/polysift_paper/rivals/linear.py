"""``QuietLinearSVC``: LIBLINEAR within its iterations, without a warning at their end."""

from __future__ import annotations

import warnings
from typing import Any

from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC


class QuietLinearSVC(LinearSVC):
    """LinearSVC that does not warn when it stops at ``max_iter``.

    The paper runs LIBLINEAR with its default settings, so that to stop at its limit of 1000
    iterations is part of the method. ``n_iter_`` tells of it.

    Examples
    --------
    >>> from polysift_paper.rivals import make
    >>> make("linear_svm")[-1]
    QuietLinearSVC(random_state=0)
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> QuietLinearSVC:
        """Fit as LinearSVC does.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            The rows.
        y : array-like of shape (m,)
            The labels.
        sample_weight : array-like of shape (m,), default=None
            The weights of the rows.

        Returns
        -------
        QuietLinearSVC
            The fitted classifier.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            super().fit(X, y, sample_weight)
        return self
