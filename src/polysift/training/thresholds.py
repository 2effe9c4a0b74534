"""Decision thresholds: what is subtracted from scores before a class is chosen.

``predict`` takes the class of the highest score or, of two classes, the second if its score is not
negative. That suits the accuracy where scores are log-odds; another measure, or costs, are served
better by thresholds, one per label column. They are learned from out-of-fold scores, column by
column, from the confusion matrices at many cuts; and they are kept only if thresholds of the other
folds are better, on rows of each fold, than none.

Weights are multiplicities; rows of weight zero, without a class or out of all folds are ignored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polysift.data.labels import shown
from polysift.engine.sums import predicted_codes
from polysift.runtime.types import BoolArray, FloatArray, IntArray

MEASURES = ("accuracy", "f1", "balanced")
"""The measures that thresholds can be chosen for, besides costs."""

MAX_CUTS, MIN_CUTS, MAX_CONFUSED = 512, 16, 2**22
"""The cuts that are tried in a column: at most the first number, less where the confusion matrices
of all cuts would have more entries than the third, but no less than the second."""

MAX_SWEEPS = 5
"""How often the columns of several classes are gone through."""


@dataclass(frozen=True)
class Threshold:
    """What thresholds are chosen for.

    Attributes
    ----------
    measure : str
        One of ``MEASURES``, or "cost".
    costs : ndarray of shape (n_classes, n_classes) or None
        The cost of a row of each class (rows of the matrix) that is taken for another (columns).
    """

    measure: str
    costs: FloatArray | None = None

    def value(self, confused: FloatArray) -> FloatArray:
        """Return the measure of confusion matrices (..., true, predicted); more is better."""
        right = np.diagonal(confused, axis1=-2, axis2=-1)
        true, predicted = confused.sum(axis=-1), confused.sum(axis=-2)
        if self.costs is not None:
            return -(confused * self.costs).sum(axis=(-2, -1)) / true.sum(axis=-1)
        if self.measure == "accuracy":
            return np.asarray(right.sum(axis=-1) / true.sum(axis=-1))
        if self.measure == "balanced":
            return _mean_over(right, true)
        harmonic = true + predicted
        if confused.shape[-1] == 2:
            right, harmonic = right[..., 1:], harmonic[..., 1:]
        return _mean_over(2.0 * right, harmonic)

    def check_classes(self, classes: Any) -> None:
        """Raise ValueError unless the costs are those of so many classes."""
        if self.costs is not None and len(self.costs) != len(classes):
            raise ValueError(
                f"threshold must be a matrix of costs with a row and a column for each class, in "
                f"the order {shown(classes)}; got shape {self.costs.shape}."
            )


def _mean_over(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return the mean of x / y over the last axis, where y is not zero."""
    shares = np.divide(x, y, out=np.zeros(np.shape(x)), where=y > 0)
    return np.asarray(shares.sum(axis=-1) / np.maximum((y > 0).sum(axis=-1), 1))


def check_threshold(value: Any) -> Threshold | None:
    """Return what the parameter ``threshold`` asks for; None for no thresholds."""
    if value is None:
        return None
    if isinstance(value, str):
        if value in MEASURES:
            return Threshold(value)
    else:
        try:
            costs = np.array(value, dtype=float)
        except (TypeError, ValueError):
            costs = np.empty(0)
        square = costs.ndim == 2 and costs.shape[0] == costs.shape[1] > 1
        if square and np.isfinite(costs).all():
            return Threshold("cost", costs)
    raise ValueError(
        f"threshold must be {', '.join(map(repr, MEASURES))}, None, or a matrix of costs, a row "
        f"for each class and a column for each class it may be taken for; got {value!r}."
    )


@dataclass(frozen=True)
class Thresholds:
    """Thresholds that were learned.

    Attributes
    ----------
    values : ndarray of shape (K,)
        What is subtracted from each column of the scores.
    report : dict
        The measure, and its value on rows held out without thresholds ("before") and with them
        ("after"), each by thresholds of the other folds.
    """

    values: FloatArray
    report: dict[str, Any]


def learn_thresholds(
    threshold: Threshold,
    scores: FloatArray,
    codes: IntArray,
    classes: Any,
    weights: FloatArray | None,
    folds: IntArray,
) -> Thresholds:
    """Learn thresholds from out-of-fold scores.

    Parameters
    ----------
    threshold : Threshold
        What they are chosen for.
    scores : ndarray of shape (m, K)
        The score of each row by a model that has not seen it.
    codes : ndarray of shape (m,)
        The class of each row.
    classes : ndarray
        The classes.
    weights : ndarray of shape (m,) or None
        The weights of the rows.
    folds : ndarray of shape (m,)
        The fold of each row; -1 for a row that is in none.
    """
    threshold.check_classes(classes)
    counted = _counted(codes, weights, folds)
    w = np.ones(counted.sum()) if weights is None else weights[counted]
    shifts = held_out_thresholds(threshold, scores, codes, classes, weights, folds)[counted]
    scores, codes, n = scores[counted], codes[counted].astype(int), len(classes)
    values = _best_thresholds(threshold, scores, codes, w, n)
    before = float(threshold.value(_confused(scores, codes, w, n)))
    after = float(threshold.value(_confused(scores - shifts, codes, w, n)))
    if after <= before:
        values, after = np.zeros_like(values), before
    return Thresholds(values, {"measure": threshold.measure, "before": before, "after": after})


def held_out_thresholds(
    threshold: Threshold,
    scores: FloatArray,
    codes: IntArray,
    classes: Any,
    weights: FloatArray | None,
    folds: IntArray,
) -> FloatArray:
    """Return the thresholds (m, K) of each row, learned from the rows of other folds.

    Of a single fold they are learned from its own rows: nothing else is held out. See
    ``learn_thresholds`` for the parameters.
    """
    counted, shifts = _counted(codes, weights, folds), np.zeros(scores.shape)
    present = np.unique(folds[counted])
    for fold in present:
        rest = counted & ((folds != fold) | (len(present) == 1))
        w = np.ones(rest.sum()) if weights is None else weights[rest]
        known = codes[rest].astype(int)
        shifts[folds == fold] = _best_thresholds(threshold, scores[rest], known, w, len(classes))
    return shifts


def _counted(codes: IntArray, weights: FloatArray | None, folds: IntArray) -> BoolArray:
    counted = (folds >= 0) & (codes >= 0)
    return counted if weights is None else counted & (weights > 0)


def _confused(scores: FloatArray, codes: IntArray, w: FloatArray, n: int) -> FloatArray:
    """Return the confusion matrix of the classes of scores."""
    cells = codes * n + predicted_codes(scores).astype(int)
    return np.bincount(cells, w, n * n).reshape(n, n)


def _best_thresholds(
    threshold: Threshold, scores: FloatArray, codes: IntArray, w: FloatArray, n: int
) -> FloatArray:
    """Return the thresholds with the best measure on these rows, column by column."""
    K = scores.shape[1]
    values, best = np.zeros(K), float(threshold.value(_confused(scores, codes, w, n)))
    for _ in range(MAX_SWEEPS if K > 1 else 1):
        began = best
        for k in range(K):
            margins, others = _margins(scores, values, k)
            cuts = _cuts(margins, codes == (1 if K == 1 else k), n)
            found = threshold.value(_confused_at(cuts, margins, others, codes, w, n, k))
            at = int(np.lexsort((np.abs(cuts - values[k]), -found))[0])
            if found[at] > best:
                trial = np.where(np.arange(K) == k, cuts[at], values)
                reached = float(threshold.value(_confused(scores - trial, codes, w, n)))
                if reached > best:
                    values, best = trial, reached
        if best <= began:
            break
    return values


def _margins(scores: FloatArray, values: FloatArray, k: int) -> tuple[FloatArray, IntArray]:
    """Return by how much column k is ahead, without its threshold, and the class it is ahead of."""
    if scores.shape[1] == 1:
        return scores[:, 0], np.zeros(len(scores), dtype=int)
    rest = scores - values
    rest[:, k] = -np.inf
    others = rest.argmax(axis=1)
    return scores[:, k] - rest[np.arange(len(rest)), others], others


def _cuts(margins: FloatArray, own: Any, n: int) -> FloatArray:
    """Return the cuts to try: between quantiles of the margins, of the class and of the others.

    Equal margins count once, so that weights and repeated rows have the same cuts.
    """
    count = max(min(MAX_CUTS, MAX_CONFUSED // (n * n)), MIN_CUTS) // 2
    shares = np.linspace(0.0, 1.0, count)
    parts = [np.unique(part) for part in (margins[own], margins[~own]) if len(part)]
    parts = [np.quantile(part, shares) for part in parts]
    found = np.unique(np.concatenate(parts))
    return (found[1:] + found[:-1]) / 2.0 if len(found) > 1 else found


def _confused_at(
    cuts: FloatArray,
    margins: FloatArray,
    others: IntArray,
    codes: IntArray,
    w: FloatArray,
    n: int,
    k: int,
) -> FloatArray:
    """Return the confusion matrices (cuts, true, predicted) if column k needs a margin of a cut."""
    column = 1 if n == 2 else k
    bins = np.searchsorted(cuts, margins, side="right")  # the cuts that the margin reaches
    size = len(cuts) + 1
    cells = (codes * n + others) * size + bins
    counts = np.bincount(cells, w, n * n * size).reshape(n, n, size)
    below = np.cumsum(counts, axis=2)[:, :, :-1]  # rows that do not reach a cut
    confused = np.moveaxis(below, 2, 0).copy()
    reached = counts.sum(axis=(1, 2))[np.newaxis] - below.sum(axis=1).T
    confused[:, :, column] += reached
    return confused
