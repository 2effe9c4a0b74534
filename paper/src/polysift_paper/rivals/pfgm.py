"""``ProxPFGMClassifier``: groups of polynomial features, found by their scores, one at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from polysift.runtime.parameters import check_integer, check_real
from polysift.runtime.types import FloatArray, IntArray
from polysift_paper.rivals.apg import Solution, slack, solve
from polysift_paper.rivals.binary import BinaryClassifier

BLOCK_BYTES = 2**23
"""Features of new rows are formed this many bytes at a time."""


class ProxPFGMClassifier(BinaryClassifier):
    """Feature generating machine over the polynomial features of degree 2 (PROX-PFGM).

    The features are those of the kernel ``(1 + x.x')^2``: ``sqrt(2) x_a``, ``x_a^2`` and
    ``sqrt(2) x_a x_b``; the constant is an intercept. Each round adds the features that the rows
    of the wrong margin ask for most, as a group of weights ``w_t``, and then minimises

    ``1/2 (sum_t |w_t|)^2 + C/2 sum_i max(0, 1 - y_i f(x_i))^2``

    over the weights of all groups and the intercept, which is not penalised, by accelerated
    proximal gradient. The features of all pairs of columns are scored by one product of matrices
    and never formed; only chosen ones are.

    Parameters
    ----------
    C : float, default=10
        The weight of the loss.
    n_features_per_round : int, default=50
        The size of a group, B in the literature.
    max_rounds : int, default=20
        The most groups.
    tol : float, default=1e-3
        Rounds end when one lowers the objective by less than this, relatively.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The classes.
    groups_ : list of ndarray of shape (B, 2)
        The features of each group: pairs of columns ``a <= b``, and ``(-1, b)`` for ``x_b`` alone.
    selected_ : ndarray of shape (n_selected, 2)
        The features of all groups in turn.
    coef_ : ndarray of shape (n_selected,)
        Their weights.
    intercept_ : float
        The intercept.
    objective_history_ : ndarray of shape (n_iter_,)
        The objective after each round.
    n_iter_ : int
        The number of rounds.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where X had any.

    References
    ----------
    Tan, Tsang and Wang, "Towards ultrahigh dimensional feature selection for big data", JMLR 15,
    2014.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from polysift_paper.rivals import ProxPFGMClassifier
    >>> X, y = make_circles(500, noise=0.05, factor=0.5, random_state=0)
    >>> model = ProxPFGMClassifier(n_features_per_round=2).fit(X, y)
    >>> model.score(X, y)
    1.0
    >>> model.groups_[0].tolist()
    [[0, 0], [1, 1]]
    """

    def __init__(
        self,
        C: float = 10.0,
        n_features_per_round: int = 50,
        max_rounds: int = 20,
        tol: float = 1e-3,
    ) -> None:
        self.C = C
        self.n_features_per_round = n_features_per_round
        self.max_rounds = max_rounds
        self.tol = tol

    def fit(self, X: Any, y: Any) -> ProxPFGMClassifier:
        """Add groups of features until the objective hardly falls.

        Parameters
        ----------
        X : array-like of shape (m, d)
            The rows, scaled to about the unit interval.
        y : array-like of shape (m,)
            Labels of two classes.

        Returns
        -------
        ProxPFGMClassifier
            The fitted classifier.

        Examples
        --------
        >>> from sklearn.datasets import make_circles
        >>> from polysift_paper.rivals import ProxPFGMClassifier
        >>> X, y = make_circles(500, noise=0.05, factor=0.5, random_state=0)
        >>> len(ProxPFGMClassifier(n_features_per_round=2).fit(X, y).groups_)
        3
        """
        C = check_real("C", self.C, positive=True)
        B = check_integer("n_features_per_round", self.n_features_per_round)
        max_rounds = check_integer("max_rounds", self.max_rounds)
        tol = check_real("tol", self.tol, positive=False)
        X, signs = self._rows_and_signs(X, y)
        rounds = _Rounds(X, signs, C)
        history: list[float] = []
        while len(history) < max_rounds and rounds.n_left and rounds.objective > 0:
            before = rounds.objective
            history.append(rounds.add(B))
            if before - history[-1] <= tol * before:
                break
        self.groups_ = rounds.groups
        self.selected_ = np.concatenate(rounds.groups)
        self.coef_ = rounds.solution.w
        self.intercept_ = rounds.solution.b - float(rounds.means @ self.coef_)
        self.objective_history_ = np.array(history)
        self.n_iter_ = len(history)
        return self

    def _scores(self, X: FloatArray) -> FloatArray:
        scores = np.empty(len(X))
        rows = max(1, BLOCK_BYTES // (8 * len(self.coef_)))
        for lo in range(0, len(X), rows):
            scores[lo : lo + rows] = features(X[lo : lo + rows], self.selected_) @ self.coef_
        return scores + self.intercept_


class _Rounds:
    """The state from round to round: groups so far, their centred features, and the solution."""

    def __init__(self, X: FloatArray, y: FloatArray, C: float) -> None:
        self.X, self.y, self.C = X, y, C
        self.groups: list[IntArray] = []
        self.free = np.ones(n_candidates(X.shape[1]), dtype=bool)
        self.Z = np.empty((len(y), 0))
        self.means = np.empty(0)
        # Without features the best intercept is the mean label, and it balances the classes.
        b = float(y.mean())
        f = np.full(len(y), b)
        objective = 0.5 * C * float(np.sum(slack(f, y) ** 2))
        self.solution = Solution(np.empty(0), b, f, objective)

    @property
    def objective(self) -> float:
        return self.solution.objective

    @property
    def n_left(self) -> int:
        return int(self.free.sum())

    def add(self, B: int) -> float:
        """Add a group of B features, solve, and return the objective."""
        alpha = self.C * slack(self.solution.f, self.y)
        found = np.where(self.free, feature_scores(self.X, alpha * self.y), -1.0)
        B = min(B, self.n_left)
        # Ties go to the earlier feature, so that the choice does not hang on the sort.
        best = np.sort(np.argsort(-found, kind="stable")[:B])
        self.free[best] = False
        self.groups.append(candidate_pairs(self.X.shape[1])[best])
        Z = features(self.X, self.groups[-1])
        means = Z.mean(axis=0)
        # The intercept takes up the means, and columns of mean zero let the solver be quick.
        self.Z = np.hstack([self.Z, Z - means])
        self.means = np.concatenate([self.means, means])
        sizes = [len(group) for group in self.groups]
        start = np.concatenate([self.solution.w, np.zeros(B)]), self.solution.b
        self.solution = solve(
            self.Z,
            self.y,
            np.repeat(np.arange(len(sizes)), sizes),
            self.C,
            start=start,
        )
        return self.objective


def n_candidates(d: int) -> int:
    """Return the number of polynomial features of degree 1 and 2 of d columns."""
    return d + d * (d + 1) // 2


def candidate_pairs(d: int) -> IntArray:
    """Return all features as pairs of columns: ``(-1, b)`` for ``x_b``, then ``a <= b``."""
    single = np.column_stack([np.full(d, -1), np.arange(d)])
    return np.vstack([single, np.column_stack(np.triu_indices(d))])


def features(X: FloatArray, pairs: IntArray) -> FloatArray:
    """Return the features of rows, of shape (m, n), for given pairs."""
    a, b = pairs.T
    Z = X[:, b] * np.where(a == b, 1.0, np.sqrt(2.0))
    for column in np.flatnonzero(a >= 0):
        Z[:, column] *= X[:, a[column]]
    return Z


def feature_scores(X: FloatArray, g: FloatArray) -> FloatArray:
    """Return ``|sum_i g_i phi_j(x_i)|`` for all features, in the order of ``candidate_pairs``.

    The sums over pairs of columns are the upper triangle of ``X' diag(g) X``; rows of ``g = 0``,
    beyond their margin, take no part.
    """
    rows = np.flatnonzero(g)
    X, g = X[rows], g[rows]
    products = X.T @ (g[:, None] * X)
    d = X.shape[1]
    scale = np.where(np.eye(d, dtype=bool), 1.0, np.sqrt(2.0))
    return np.abs(np.concatenate([np.sqrt(2.0) * (g @ X), (scale * products)[np.triu_indices(d)]]))
