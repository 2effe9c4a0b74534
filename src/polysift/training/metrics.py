"""Figures of scored rows, such as the accuracy, each with its interval of confidence.

Every figure is a function of the rows' weights. Its derivative by the weight of a row is the
*influence* of the row, and the sum of their squares is the variance of the figure over samples of
rows: what the bootstrap over rows gives with infinitely many repetitions, without drawing one (of
the AUC it is DeLong's formula). All influences take O(m log m) time.

The interval of a share p with variance v is Wilson's, for n = p (1 - p) / v rows; where no row is
wrong, v is zero, and n is the number of rows, or that of the rarest class. That of a mean, as the
log loss is one, is p +- 1.96 sqrt(v).

Two models that score the same rows have influences row by row, and their difference has the
interval of the difference of the influences.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polysift.runtime.types import FloatArray, IntArray

LEVEL = 0.95
"""The confidence of intervals."""

QUANTILE = 1.959963984540054
"""The quantile of the normal distribution that belongs to it."""

SHARES = ("accuracy", "balanced_accuracy", "roc_auc", "average_precision")
"""Figures between 0 and 1 of which more is better."""

MEANS = ("log_loss", "brier_score")
"""Figures of probabilities, of which less is better."""

METRICS = (*SHARES, *MEANS)

TITLES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "roc_auc": "area under ROC",
    "average_precision": "average precision",
    "log_loss": "log loss",
    "brier_score": "Brier score",
}
"""The names of figures in words."""

UNBALANCED_SHARE = 0.3
"""Two classes are unbalanced where the rarer one has a smaller share than this; more classes, where
the rarest has a smaller share than this times that of equal ones."""


@dataclass(frozen=True)
class Estimate:
    """A figure with its interval.

    Attributes
    ----------
    value, low, high : float
        The figure, and the ends of its interval of confidence (95 %).
    """

    value: float
    low: float
    high: float

    def to_list(self) -> list[float]:
        """Return the three numbers."""
        return [self.value, self.low, self.high]


@dataclass(frozen=True)
class Influence:
    """A figure, and how much each row moves it.

    Attributes
    ----------
    value : float
        The figure.
    rows : ndarray of shape (m,)
        Its derivatives by the weights of the rows.
    count : float
        How many rows it rests on, if none of them is wrong: all, or those of the rarest class.
    """

    value: float
    rows: FloatArray
    count: float


@dataclass(frozen=True)
class RowScores:
    """Rows with their classes and what a model says of them.

    Attributes
    ----------
    codes : ndarray of int of shape (m,)
        The class of each row; -1 where it is none of the model's. Such rows count nowhere.
    predicted : ndarray of int of shape (m,)
        The class that is predicted.
    scores : ndarray of shape (m, K)
        The score of class 1 of two, else one score for each class.
    probabilities : ndarray of shape (m, classes) or None
        Probabilities, if there are any.
    weights : ndarray of shape (m,) or None
        The weights of the rows: multiplicities where all are whole numbers.
    n_classes : int
        The number of classes.
    """

    codes: IntArray
    predicted: IntArray
    scores: FloatArray
    probabilities: FloatArray | None
    weights: FloatArray | None
    n_classes: int

    def counts(self) -> FloatArray:
        """Return the weights with which rows count: zero where the class is not known."""
        known = self.codes >= 0
        return known.astype(float) if self.weights is None else np.where(known, self.weights, 0.0)


def rarest_class(totals: FloatArray) -> int:
    """Return the class with the smallest positive weight; the last one of several."""
    sizes = np.where(np.asarray(totals) > 0, totals, np.inf)
    return int(len(sizes) - 1 - np.argmin(sizes[::-1]))


def is_unbalanced(totals: FloatArray) -> bool:
    """Return whether the rarest class is so rare that the accuracy says little of it."""
    sizes = np.asarray(totals, dtype=float)
    sizes = sizes[sizes > 0]
    if len(sizes) < 2:
        return False
    fair = 1.0 if len(sizes) == 2 else 2.0 / len(sizes)
    return bool(sizes.min() / sizes.sum() < UNBALANCED_SHARE * fair)


def influences(rows: RowScores, rare: int | None = None) -> dict[str, Influence]:
    """Return all figures that are defined, with the influences of the rows.

    ``rare`` is the class of two whose average precision is computed; by default the rarer one.
    """
    w, codes = rows.counts(), np.maximum(rows.codes, 0)
    total = float(w.sum())
    if total == 0:
        return {}
    sizes = np.bincount(codes, w, rows.n_classes)
    right = (rows.predicted == rows.codes).astype(float)
    found = {"accuracy": _mean(right, w)}
    recalls = np.bincount(codes, w * right, rows.n_classes) / np.where(sizes > 0, sizes, 1.0)
    present = np.flatnonzero(sizes > 0)
    fewest = float(sizes[present].min())
    moves = (right - recalls[codes]) / (np.where(sizes > 0, sizes, 1.0)[codes] * len(present))
    balanced = float(recalls[present].mean())
    found["balanced_accuracy"] = Influence(balanced, np.where(w > 0, moves, 0.0), fewest)
    two = rows.n_classes == 2
    contested = [k for k in range(rows.n_classes) if 0 < sizes[k] < total]
    if contested:
        ranked = [1] if two else contested
        found["roc_auc"] = _averaged(
            [_roc_auc(_column(rows, k), codes == k, w) for k in ranked], fewest
        )
        precise = [rarest_class(sizes) if rare is None else rare] if two else contested
        found["average_precision"] = _averaged(
            [_average_precision(_column(rows, k), codes == k, w) for k in precise], fewest
        )
    if rows.probabilities is not None:
        found |= _of_probabilities(rows.probabilities, codes, w)
    return found


def estimates(rows: RowScores, rare: int | None = None) -> dict[str, Estimate]:
    """Return all figures that are defined, with their intervals."""
    return {
        name: interval(name, found, rows.weights) for name, found in influences(rows, rare).items()
    }


def interval(name: str, found: Influence, weights: FloatArray | None) -> Estimate:
    """Return a figure with its interval, from the influences of its rows."""
    p, v = found.value, variance(found.rows, weights)
    if name in MEANS:
        reach = QUANTILE * float(np.sqrt(v))
        return Estimate(p, max(p - reach, 0.0), p + reach)
    spread = p * (1.0 - p)
    n = spread / v if v > 0 and spread > 0 else found.count
    square = QUANTILE**2 / n
    middle = (p + square / 2) / (1 + square)
    reach = QUANTILE * float(np.sqrt(spread / n + square / (4 * n))) / (1 + square)
    return Estimate(p, max(min(middle - reach, p), 0.0), min(max(middle + reach, p), 1.0))


def variance(moves: FloatArray, weights: FloatArray | None) -> float:
    """Return the variance of a figure over samples of rows.

    A row whose weight is a multiplicity is so many rows; any other weight belongs to one row.
    """
    if weights is None:
        return float(np.sum(moves**2))
    weighted = weights * moves  # first, since tiny weights make moves whose squares overflow
    whole = bool(np.equal(weights, np.round(weights)).all())
    return float(np.sum(weighted * (moves if whole else weighted)))


def _column(rows: RowScores, k: int) -> FloatArray:
    """Return the scores of a class."""
    if rows.scores.shape[1] > 1:
        return rows.scores[:, k]
    return rows.scores[:, 0] if k == 1 else -rows.scores[:, 0]


def _mean(values: FloatArray, w: FloatArray) -> Influence:
    total = float(w.sum())
    mean = float(np.sum(w * values) / total)
    return Influence(mean, np.where(w > 0, (values - mean) / total, 0.0), total)


def _averaged(parts: list[Influence], count: float) -> Influence:
    """Return the mean of figures of classes."""
    value = float(np.mean([part.value for part in parts]))
    rows = np.sum([part.rows for part in parts], axis=0) / len(parts)
    return Influence(value, rows, count)


def _of_probabilities(p: FloatArray, codes: IntArray, w: FloatArray) -> dict[str, Influence]:
    """Return the log loss and the Brier score, as ``training.calibration.assess`` has them."""
    truth = codes[:, None] == np.arange(p.shape[1])
    eps = np.finfo(float).eps
    own = np.clip(np.take_along_axis(p, codes[:, None], axis=1)[:, 0], eps, 1 - eps)
    return {
        "log_loss": _mean(-np.log(own), w),
        "brier_score": _mean(np.sum((p - truth) ** 2, axis=1) / 2, w),
    }


def _roc_auc(scores: FloatArray, positive: Any, w: FloatArray) -> Influence:
    """Return the area under the ROC curve of one class against the rest."""
    group, up, down = _groups(scores, positive, w)
    P, N = float(up.sum()), float(down.sum())
    below = np.cumsum(down) - down / 2  # of the negatives, each tie by half
    above = P - np.cumsum(up) + up / 2
    area = float(np.sum(up / P * (below / N)))
    of_positive, of_negative = (below / N - area) / P, (above / P - area) / N
    moves = np.where(positive, of_positive[group], of_negative[group])
    return Influence(area, np.where(w > 0, moves, 0.0), min(P, N))


def _average_precision(scores: FloatArray, positive: Any, w: FloatArray) -> Influence:
    """Return the mean precision over the thresholds at which rows of the class are found."""
    group, up, down = _groups(-scores, positive, w)  # the largest score comes first
    P = float(up.sum())
    found, taken = np.cumsum(up), np.cumsum(up + down)
    taken = np.where(taken > 0, taken, 1.0)
    precision = found / taken
    value = float(np.sum(up * precision) / P)
    # A row counts in the precision at its own threshold and at all lower ones.
    hit = np.cumsum((up * (1.0 - precision) / taken)[::-1])[::-1] / P
    miss = np.cumsum((up * -precision / taken)[::-1])[::-1] / P
    of_positive = (precision - value) / P + hit
    moves = np.where(positive, of_positive[group], miss[group])
    return Influence(value, np.where(w > 0, moves, 0.0), P)


def _groups(
    scores: FloatArray, positive: Any, w: FloatArray
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return the number of each row's score among distinct ones, and their weights by class."""
    distinct, group = np.unique(scores, return_inverse=True)
    up = np.bincount(group, w * positive, len(distinct))
    return group, up, np.bincount(group, w, len(distinct)) - up
