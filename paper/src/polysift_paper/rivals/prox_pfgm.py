"""``ProxPFGMClassifier``: groups of polynomial features, selected by their scores, one at a time.

For given groups the problem is that of Tan, Tsang and Wang (2014), here with an intercept b that is
not penalised::

    minimise over w, b   1/2 (sum_t |w_t|)^2 + C/2 sum_i max(0, 1 - y_i (z_i.w + b))^2

It is solved by accelerated proximal gradient.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polysift.runtime.parameters import check_integer, check_real
from polysift.runtime.types import FloatArray, IntArray
from polysift_paper.rivals.base import BinaryClassifier, MarginGram

BLOCK_BYTES = 2**23
"""Features of new rows are formed this many bytes at a time."""


IDLE_STEPS = 5
"""The solver ends after so many steps in a row that gain hardly anything."""

GROWTH, DECAY = 2.0, 0.95
"""The curvature estimate grows by the one when a step fails its test, and else decays slowly."""


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


@dataclass(frozen=True)
class Solution:
    """Weights, intercept, scores of the rows, and objective."""

    w: FloatArray
    b: float
    f: FloatArray
    objective: float


def prox(v: FloatArray, groups: IntArray, tau: float) -> FloatArray:
    """Return the w that minimises ``1/2 |w - v|^2 + tau/2 (sum_t |w_t|)^2``.

    Group t shrinks by ``tau S``, S the sum of the norms that remain: the norms are sorted, and the
    largest number of groups is kept for which the least of them outlives the shrinking.

    Parameters
    ----------
    v : ndarray of shape (n,)
        The point.
    groups : ndarray of shape (n,)
        The group of each coordinate, counted from 0.
    tau : float
        The step size.
    """
    norms = np.sqrt(np.bincount(groups, v * v))
    ordered = np.sort(norms)[::-1]
    sums = np.cumsum(ordered) / (1.0 + tau * np.arange(1, len(ordered) + 1))
    kept = np.flatnonzero(ordered > tau * sums)
    if not len(kept):
        return np.zeros_like(v)
    shrink = tau * sums[kept[-1]]
    factors = np.divide(
        np.maximum(norms - shrink, 0.0), norms, out=np.zeros_like(norms), where=norms > 0
    )
    return v * factors[groups]


def penalty(w: FloatArray, groups: IntArray) -> float:
    """Return half the squared sum of the group norms."""
    return 0.5 * float(np.sqrt(np.bincount(groups, w * w)).sum()) ** 2 if len(w) else 0.0


def slack(f: FloatArray, y: FloatArray) -> FloatArray:
    """Return by how much each row misses its margin, ``max(0, 1 - y f)``."""
    return np.maximum(1.0 - y * f, 0.0)


def solve(
    Z: FloatArray,
    y: FloatArray,
    groups: IntArray,
    C: float,
    *,
    start: tuple[FloatArray, float] | None = None,
    tol: float = 1e-6,
    max_iter: int = 30,
) -> Solution:
    """Minimise by accelerated proximal gradient on the square that the loss is near a point.

    The loss of the rows short of their margin is a square, and a step of the gradient then needs
    no rows but only their Gram matrix. Where rows cross their margin the square is set up anew.

    Parameters
    ----------
    Z : ndarray of shape (m, n)
        The features; columns of mean zero make intercept and weights nearly independent.
    y : ndarray of shape (m,)
        Labels -1 and +1.
    groups : ndarray of shape (n,)
        The group of each column.
    C : float
        The weight of the loss.
    start : tuple, optional
        Weights and intercept to start from; zeros where there are none.
    tol : float
        The solver stops when a square lowers the objective by less than this, relatively.
    max_iter : int
        The most squares.
    """
    w, b = (np.zeros(Z.shape[1]), 0.0) if start is None else start
    v, f = np.append(w, b), Z @ w + b
    gram = MarginGram(Z, y)
    L = 0.0

    def objective_at(v: FloatArray, f: FloatArray) -> float:
        return penalty(v[:-1], groups) + 0.5 * C * float(np.sum(slack(f, y) ** 2))

    objective = objective_at(v, f)
    for _ in range(max_iter):
        gram.update(y * f < 1)
        L = L or C * float(gram.H.diagonal().max()) or 1.0
        target, L = minimise_square(gram.H, gram.c, C, v, groups, L, 0.1 * tol * objective)
        move = target - v
        df = Z @ move[:-1] + move[-1]
        size, best = 1.0, objective_at(v + move, f + df)
        # Convex along the move: halve as long as that pays, or until the objective falls.
        while size > 1e-9:
            half = objective_at(v + 0.5 * size * move, f + 0.5 * size * df)
            if half >= best and best <= objective:
                break
            size, best = 0.5 * size, half
        if not best < objective:
            break
        fall, objective = objective - best, best
        v, f = v + size * move, f + size * df
        if fall <= tol * objective:
            break
    return Solution(v[:-1], float(v[-1]), f, objective)


def minimise_square(
    H: FloatArray,
    c: FloatArray,
    C: float,
    v: FloatArray,
    groups: IntArray,
    L: float,
    floor: float,
    max_iter: int = 3000,
) -> tuple[FloatArray, float]:
    """Minimise ``C/2 (v'Hv - 2c'v)`` plus the penalty of all but the last of v, the intercept.

    Steps with momentum, backtracking, and a restart where a step turns back on the last one. The
    curvature estimate L goes in and comes out; steps that gain less than ``floor`` are the last.
    """
    Hv, dv, dHv, theta, idle = H @ v, 0.0 * v, 0.0 * v, 1.0, 0
    for _ in range(max_iter):
        theta, momentum = _next_momentum(theta)
        u, Hu = v + momentum * dv, Hv + momentum * dHv
        g = C * (Hu - c)
        while True:
            new = u - g / L
            new[:-1] = prox(new[:-1], groups, 1.0 / L)
            move, Hnew = new - u, H @ new
            bend = C * float(move @ (Hnew - Hu))
            if not bend > L * float(move @ move) * (1 + 1e-9):  # true also of NaN: no endless loop
                break
            L *= GROWTH
        dv, dHv = new - v, Hnew - Hv
        if float(move @ dv) < 0:
            theta, dv, dHv = 1.0, 0.0 * v, 0.0 * v
        v, Hv = new, Hnew
        idle = idle + 1 if L * float(move @ move) <= floor else 0
        if idle >= IDLE_STEPS:
            break
        L *= DECAY
    return v, L


def _next_momentum(theta: float) -> tuple[float, float]:
    """Return Nesterov's next theta and the share of the last move to repeat."""
    following = 0.5 * (1.0 + float(np.sqrt(1.0 + 4.0 * theta * theta)))
    return following, (theta - 1.0) / following
