"""Linear support vector machines: LIBLINEAR without its warning, and Newton's method.

``QuietLinearSVC`` is LIBLINEAR as the paper runs it. ``NewtonLinearSVC`` solves LIBLINEAR's default
problem exactly, in seconds for many rows and some thousand columns.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from polysift.runtime.parameters import check_integer, check_real
from polysift.runtime.types import FloatArray
from polysift_paper.rivals.base import BinaryClassifier, MarginGram

SUBSAMPLE_FROM_ROWS, SUBSAMPLE_STRIDE = 20_000, 8
"""Beyond so many rows, Newton's method starts from the solution for every eighth of them."""


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


class NewtonLinearSVC(BinaryClassifier):
    """Linear support vector machine with the squared hinge loss, by Newton's method.

    The problem is the default one of LIBLINEAR, ``1/2 (|w|^2 + b^2) + C sum_i max(0, 1 - y_i
    (x_i.w + b))^2``. Its loss is a square for the rows short of their margin, so that Newton's
    method solves a linear system in each step and ends, after a few, at the exact minimum. The
    matrix changes from step to step only by the rows that cross their margin.

    Parameters
    ----------
    C : float, default=1.0
        The weight of the loss.
    max_iter : int, default=100
        The most Newton steps; a dozen are usual.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The classes.
    coef_ : ndarray of shape (n_features_in_,)
        The weights w.
    intercept_ : float
        The intercept b.
    n_iter_ : int
        The number of steps.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where X had any.

    References
    ----------
    Keerthi and DeCoste, "A modified finite Newton method for fast solution of large scale linear
    SVMs", JMLR 6, 2005.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from polysift_paper.rivals.linear_svm import NewtonLinearSVC
    >>> X, y = make_blobs(200, centers=2, random_state=0)
    >>> NewtonLinearSVC().fit(X, y).score(X, y)
    0.975
    """

    def __init__(self, C: float = 1.0, max_iter: int = 100) -> None:
        self.C = C
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any) -> NewtonLinearSVC:
        """Solve the problem.

        Parameters
        ----------
        X : array-like of shape (m, d)
            The rows.
        y : array-like of shape (m,)
            Labels of two classes.

        Returns
        -------
        NewtonLinearSVC
            The fitted classifier.
        """
        C = check_real("C", self.C, positive=True)
        max_iter = check_integer("max_iter", self.max_iter)
        X, signs = self._rows_and_signs(X, y)
        v, self.n_iter_ = newton(X, signs, C, max_iter)
        self.coef_, self.intercept_ = v[:-1], float(v[-1])
        return self

    def _scores(self, X: FloatArray) -> FloatArray:
        return X @ self.coef_ + self.intercept_


def newton(X: FloatArray, y: FloatArray, C: float, max_iter: int) -> tuple[FloatArray, int]:
    """Return weights and intercept in one vector, and the number of steps."""
    v, f = np.zeros(X.shape[1] + 1), np.zeros(len(y))
    if len(y) > SUBSAMPLE_FROM_ROWS:
        # From near the solution, only rows near the margin ever enter the matrix.
        v, _ = newton(X[::SUBSAMPLE_STRIDE], y[::SUBSAMPLE_STRIDE], SUBSAMPLE_STRIDE * C, max_iter)
        f = X @ v[:-1] + v[-1]
    gram = MarginGram(X, y)
    for step in range(max_iter):
        short = y * f < 1
        if step and np.array_equal(short, gram.rows):
            return v, step  # the step was exact for these rows: this is the minimum
        gram.update(short)
        system = 2.0 * C * gram.H
        system[np.diag_indices(len(v))] += 1.0
        factor = cho_factor(system, overwrite_a=True, check_finite=False)
        target = cho_solve(factor, 2.0 * C * gram.c, check_finite=False)
        move = target - v
        df = X @ move[:-1] + move[-1]
        size = line_search(v, move, f, df, y, C)
        v, f = v + size * move, f + size * df
        if size == 0.0:
            return v, step + 1  # all that rounding allows
    return v, max_iter


def line_search(
    v: FloatArray, move: FloatArray, f: FloatArray, df: FloatArray, y: FloatArray, C: float
) -> float:
    """Return the exact step size along a move, at most one where that is nearly exact.

    Along the move the objective is convex, and its slope is linear between the points where a row
    reaches its margin: bisection of the slope brackets the zero, and ends when no such point is
    left inside.
    """
    square, cross = float(move @ move), float(v @ move)

    def slope(size: float) -> float:
        s = np.maximum(1.0 - y * (f + size * df), 0.0)
        return cross + size * square - 2.0 * C * float(np.sum(s * y * df))

    if slope(0.0) >= 0:
        return 0.0
    if abs(slope(1.0)) <= 1e-10 * abs(slope(0.0)):
        return 1.0  # no row crosses its margin on the way, or as good as none
    low, high = 0.0, 1.0
    while slope(high) < 0:
        low, high = high, 2.0 * high
    for _ in range(60):
        middle = 0.5 * (low + high)
        if high - low <= 1e-12 * high:
            break
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return 0.5 * (low + high)
