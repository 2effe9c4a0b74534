"""Calibration: maps from scores to probabilities, learned from out-of-fold scores.

Scores have a single column for two classes, the score of class 1, and else one column per class,
that class against the rest. A ``Calibrator`` maps each column by a function of its own, a sigmoid
or an isotonic one, kept as plain arrays. ``calibrate`` learns one, and assesses the method by
cross-fitting: the probabilities of each fold come from a calibrator of the other folds.

Weights are multiplicities; rows of weight zero or without a class (code -1) are ignored. Sums are
``np.sum``, never ``@``: how BLAS splits a long dot product depends on the number of its threads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, log_expit
from sklearn.isotonic import IsotonicRegression

from polysift.runtime.types import FloatArray, IntArray

CALIBRATIONS = ("sigmoid", "isotonic")

MAX_NEWTON_STEPS = 100
"""The maximal number of Newton steps of a sigmoid; a dozen are usual."""

NEWTON_STEP_TOLERANCE = 1e-7
"""A Newton step this small, relative to the parameters, is the last: the next is its square."""

ROUNDING = 1e-10
"""What rounding may change of scores, relative to the largest."""

INTERNAL_FOLDS = 5
"""The number of folds for cross-fitting, if all rows are in one fold."""


@dataclass(frozen=True)
class Calibrator(ABC):
    """A map from scores to probabilities."""

    kind: ClassVar[str]

    @abstractmethod
    def positive(self, scores: FloatArray) -> FloatArray:
        """Return the probability of each column's class against the rest, in C order."""

    def probabilities(self, scores: FloatArray) -> FloatArray:
        """Turn scores (m, K) into probabilities (m, n_classes) whose rows sum to one."""
        p = self.positive(scores)
        if p.shape[1] == 1:
            return np.hstack([1.0 - p, p])
        total = p.sum(axis=1, keepdims=True)
        uniform = np.full(p.shape, 1.0 / p.shape[1])
        return np.divide(p, total, out=uniform, where=total != 0)

    def to_dict(self) -> dict[str, Any]:
        """Return the calibrator as plain arrays; ``calibrator_from_dict`` is the inverse."""
        return {"kind": self.kind, **asdict(self)}


@dataclass(frozen=True)
class SigmoidCalibrator(Calibrator):
    """``1 / (1 + exp(-(slope * score + intercept)))``, column by column; arrays of shape (K,)."""

    kind: ClassVar[str] = "sigmoid"

    slope: FloatArray
    intercept: FloatArray

    def positive(self, scores: FloatArray) -> FloatArray:
        """Return the probability of each column's class against the rest."""
        # In C order, so that the rounding of a row's sum does not depend on the memory layout.
        return expit(np.ascontiguousarray(scores, dtype=float) * self.slope + self.intercept)


@dataclass(frozen=True)
class IsotonicCalibrator(Calibrator):
    """Piecewise linear between the knots of each column, constant beyond the first and the last.

    Attributes
    ----------
    thresholds, values : ndarray of shape (sum of counts,)
        The knots of all columns: scores, ascending in each column, and their probabilities.
    counts : ndarray of shape (K,)
        The number of knots of each column.
    """

    kind: ClassVar[str] = "isotonic"

    thresholds: FloatArray
    values: FloatArray
    counts: IntArray

    def positive(self, scores: FloatArray) -> FloatArray:
        """Return the probability of each column's class against the rest."""
        p = np.empty(scores.shape)
        for k, knots in enumerate(self.knots()):
            p[:, k] = np.interp(scores[:, k], *knots)
        return np.minimum(p, 1.0, out=p)  # rounding may lift p past its knots, and 1 - p below 0

    def knots(self) -> list[tuple[FloatArray, FloatArray]]:
        """Return the knots of each column."""
        ends = np.cumsum(self.counts)[:-1]
        parts = (np.split(side, ends) for side in (self.thresholds, self.values))
        return list(zip(*parts, strict=True))


def calibrator_from_dict(fields: dict[str, Any]) -> Calibrator:
    """Rebuild a calibrator from ``to_dict``."""
    kinds = {"sigmoid": SigmoidCalibrator, "isotonic": IsotonicCalibrator}
    arguments = {name: value for name, value in fields.items() if name != "kind"}
    return kinds[fields["kind"]](**arguments)


def learn_calibrator(
    kind: str,
    scores: FloatArray,
    codes: IntArray,
    n_classes: int,
    weights: FloatArray | None = None,
) -> Calibrator:
    """Learn a calibrator of a kind in ``CALIBRATIONS`` from scores (m, K), classes and weights."""
    codes, weights = without_absent(codes, weights)
    rows = codes >= 0
    codes, weights = codes[rows], weights[rows]
    classes = [1] if n_classes == 2 else range(n_classes)
    columns = zip(np.asarray(scores, dtype=float)[rows].T, classes, strict=True)
    problems = [(column, codes == code, weights) for column, code in columns]
    if kind == "sigmoid":
        lines = np.array([_sigmoid(*problem) for problem in problems])
        return SigmoidCalibrator(slope=lines[:, 0].copy(), intercept=lines[:, 1].copy())
    knots = [_isotonic(*problem) for problem in problems]
    thresholds, values = (np.concatenate(parts) for parts in zip(*knots, strict=True))
    return IsotonicCalibrator(thresholds, values, np.array([len(x) for x, _ in knots]))


def without_absent(codes: IntArray, weights: FloatArray | None) -> tuple[IntArray, FloatArray]:
    """Return codes, with -1 for rows of weight zero too, and weights, 1 if none are given."""
    codes = np.asarray(codes)
    weights = np.ones(len(codes)) if weights is None else np.asarray(weights, dtype=float)
    return np.where(weights > 0, codes, -1), weights


def _isotonic(
    scores: FloatArray, positive: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the knots of the isotonic regression of one column."""
    if not len(scores):
        return np.zeros(1), np.full(1, 0.5)  # no rows: a probability of 1/2, as for a sigmoid
    regression = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
    regression.fit(_tied(scores), positive.astype(float), weights)
    return regression.X_thresholds_, regression.y_thresholds_


def _tied(scores: FloatArray) -> FloatArray:
    """Return scores with those equal that rounding alone can tell apart, as those of equal rows."""
    order = np.argsort(scores, kind="stable")
    ascending = scores[order]
    near = np.diff(ascending) <= ROUNDING * np.abs(scores).max()
    first = np.maximum.accumulate(np.where(np.append(False, near), 0, np.arange(len(scores))))
    tied = np.empty(len(scores))
    tied[order] = ascending[first]
    return tied


def _sigmoid(scores: FloatArray, positive: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """Return slope and intercept of Platt's sigmoid of one column.

    They minimise the log loss against targets a little inside (0, 1), as if each class had one row
    more, on the other side: this keeps the slope finite where a threshold separates the classes.
    """
    n_positive, n_negative = weights[positive].sum(), weights[~positive].sum()
    targets = np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
    start = float(np.log((n_positive + 1) / (n_negative + 1)))
    if n_positive == 0 or n_negative == 0:
        return 0.0, start  # all targets are equal to the sigmoid of this
    # Newton's method is invariant to location and scale of the scores, but rounding is not. About
    # the median most scores keep their digits, even if there are outliers.
    center = float(np.median(scores))
    reach = float(np.abs(scores - center).max())
    if reach <= max(1e-12 * abs(center), 1e-15):
        reach = np.inf  # practically constant: slope and intercept would cancel
    a, b = _newton((scores - center) / reach, targets, weights, start)
    return a / reach, b - a / reach * center


def _newton(
    z: FloatArray, targets: FloatArray, weights: FloatArray, start: float
) -> tuple[float, float]:
    """Return the a and b that minimise the log loss of ``expit(a z + b)``, from 0 and ``start``.

    Newton's method with step halving (Lin, Lin and Weng 2007). The step is computed as a weighted
    linear regression about its mean, which is accurate even if the Hessian is nearly singular, as
    with outliers.
    """
    tiny = np.finfo(float).tiny  # for constant scores a step in a is 0 / tiny

    def loss_at(a: float, b: float) -> float:
        f = a * z + b
        return -float(np.sum(weights * (targets * log_expit(f) + (1 - targets) * log_expit(-f))))

    a, b = 0.0, start
    loss = loss_at(a, b)
    for _ in range(MAX_NEWTON_STEPS):
        f = a * z + b
        gradient = weights * (expit(f) - targets)
        curvature = weights * expit(f) * expit(-f) + tiny
        mean = float(np.sum(curvature * z) / np.sum(curvature))
        tilt, lift = float(np.sum(gradient * (z - mean))), float(np.sum(gradient))
        da = -tilt / float(np.sum(curvature * (z - mean) ** 2) + tiny)
        rise = -lift / float(np.sum(curvature))
        db = rise - mean * da
        if abs(da) <= NEWTON_STEP_TOLERANCE * (1 + abs(a)) and abs(db) <= NEWTON_STEP_TOLERANCE * (
            1 + abs(b)
        ):
            return a + da, b + db  # the losses of both points are equal up to rounding
        descent = da * tilt + rise * lift
        size = 1.0
        while (new := loss_at(a + size * da, b + size * db)) > loss + 1e-4 * size * descent:
            size /= 2
            if size < 1e-10:
                return a, b  # the accuracy that rounding allows
        a, b, loss = a + size * da, b + size * db, new
    return a, b


def cross_fitted(
    kind: str,
    scores: FloatArray,
    codes: IntArray,
    n_classes: int,
    weights: FloatArray | None,
    folds: IntArray,
) -> FloatArray:
    """Return probabilities (m, n_classes), those of each fold learned from the other folds.

    Rows of a negative fold are ignored, and get NaN. If all others are in one fold, it is divided
    into ``INTERNAL_FOLDS`` folds, stratified by class. A class that is missing in the other folds
    gets the probability of a class without rows: small, or zero if isotonic.
    """
    codes, weights = without_absent(codes, weights)
    folds = np.array(folds)
    inside = folds >= 0
    if len(np.unique(folds[inside & (codes >= 0)])) < 2:
        folds[inside] = _stratified(codes[inside])
    probabilities = np.full((len(codes), n_classes), np.nan)
    for fold in np.unique(folds[inside]):
        others, own = inside & (folds != fold), folds == fold
        rows = scores[others], codes[others], n_classes, weights[others]
        probabilities[own] = learn_calibrator(kind, *rows).probabilities(scores[own])
    return probabilities


def _stratified(codes: IntArray) -> IntArray:
    """Return internal folds; the rows of each class are assigned to them in turn."""
    folds = np.empty(len(codes), dtype=int)
    # Absent rows come first: they shift the folds of all others by the same number.
    folds[np.argsort(codes, kind="stable")] = np.arange(len(codes)) % INTERNAL_FOLDS
    return folds


@dataclass(frozen=True)
class Calibration:
    """A calibrator, and the cross-fitted probabilities of its kind with their quality.

    Attributes
    ----------
    calibrator : Calibrator
        The calibrator of all rows.
    report : dict
        The quality of the probabilities (see ``assess``).
    probabilities : ndarray of shape (m, n_classes)
        The probabilities of each fold by a calibrator of the other folds.
    """

    calibrator: Calibrator
    report: dict[str, Any]
    probabilities: FloatArray


def calibrate(
    kind: str,
    scores: FloatArray,
    codes: IntArray,
    n_classes: int,
    weights: FloatArray | None,
    folds: IntArray,
) -> Calibration:
    """Learn a calibrator from out-of-fold scores, and assess it by cross-fitting over the folds."""
    codes = np.where(folds >= 0, codes, -1)
    crossed = cross_fitted(kind, scores, codes, n_classes, weights, folds)
    calibrator = learn_calibrator(kind, scores, codes, n_classes, weights)
    return Calibration(calibrator, assess(crossed, codes, weights), crossed)


def best_calibration(
    kinds: Sequence[str],
    scores: FloatArray,
    codes: IntArray,
    n_classes: int,
    weights: FloatArray | None,
    folds: IntArray,
) -> Calibration:
    """Return the calibration of one of several kinds with the least log loss by cross-fitting."""
    made = (calibrate(kind, scores, codes, n_classes, weights, folds) for kind in kinds)
    return min(made, key=lambda found: found.report["log_loss"])


def assess(
    probabilities: FloatArray, codes: IntArray, weights: FloatArray | None = None, n_bins: int = 10
) -> dict[str, Any]:
    """Return quality measures of probabilities (m, n_classes); rows with NaN are ignored.

    Returns
    -------
    dict
        ``"brier_score"``: the mean over the rows of half the sum over the classes of
        ``(p - y)^2``. For two classes that is ``(p - y)^2`` of class 1; for more it is half of
        what scikit-learn reports by default. ``"log_loss"``: the mean of ``-log(p)`` of the true
        class, p clipped as in scikit-learn. ``"reliability"``: for at most ``n_bins`` bins of about
        equal weight, ``"predicted"`` (mean probability), ``"observed"`` (share of rows of the
        class) and ``"weight"``; of class 1 for two classes, and else of the most likely class.
    """
    codes, weights = without_absent(codes, weights)
    rows = (codes >= 0) & ~np.isnan(probabilities).any(axis=1)
    if not rows.any():
        raise ValueError(
            "probabilities cannot be assessed: no row has a probability, a class and a positive "
            "weight. Pass rows with known classes."
        )
    p, codes, weights = np.asarray(probabilities, dtype=float)[rows], codes[rows], weights[rows]
    truth = codes[:, None] == np.arange(p.shape[1])
    eps = np.finfo(float).eps
    shown = np.ones(len(p), dtype=int) if p.shape[1] == 2 else p.argmax(axis=1)
    shown_p = np.take_along_axis(p, shown[:, None], axis=1)[:, 0]
    return {
        "brier_score": float(np.average(np.sum((p - truth) ** 2, axis=1) / 2, weights=weights)),
        "log_loss": float(np.average(-np.log(np.clip(p[truth], eps, 1 - eps)), weights=weights)),
        "reliability": _reliability(shown_p, shown == codes, weights, n_bins),
    }


def _reliability(
    p: FloatArray, hit: FloatArray, weights: FloatArray, n_bins: int
) -> dict[str, FloatArray]:
    """Return mean probability, share of hits and weight of each non-empty bin."""
    distinct, position = np.unique(p, return_inverse=True)
    weight = np.bincount(position, weights, len(distinct))
    # Equal probabilities share the bin of their middle rank, so the order of rows has no effect.
    middle = (np.cumsum(weight) - weight / 2) / weight.sum()
    group = np.minimum((middle * n_bins).astype(int), n_bins - 1)
    position = np.unique(group, return_inverse=True)[1][position]
    weight = np.bincount(position, weights)
    return {
        "predicted": np.bincount(position, weights * p) / weight,
        "observed": np.bincount(position, weights * hit) / weight,
        "weight": weight,
    }
