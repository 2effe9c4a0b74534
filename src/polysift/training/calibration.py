"""Calibration: a calibrator learned from out-of-fold scores, and how good its like is.

Calibrators: maps from scores to probabilities, sigmoids or step-like ones, kept as plain arrays.

Scores have one column for two classes, the score of class 1, and else one column per class, that
class against the rest. Each column gets a map of its own from the score to a probability.

Weights are multiplicities, and a row of weight zero or without a class (code -1) is not there.
Sums are ``np.sum``, never ``@``: BLAS cuts a long dot product by the number of its threads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, log_expit
from sklearn.isotonic import IsotonicRegression

from polysift.runtime.types import FloatArray, IntArray

CALIBRATIONS = ("sigmoid", "isotonic")

MAX_NEWTON_STEPS = 100
"""Newton steps of a sigmoid; a dozen are usual."""

NEWTON_STEP_TOLERANCE = 1e-7
"""A Newton step this small, relative to the parameters, is the last: the next is its square."""


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
        # Memory order must not reach the last bit of a row's sum.
        return expit(np.ascontiguousarray(scores, dtype=float) * self.slope + self.intercept)


@dataclass(frozen=True)
class IsotonicCalibrator(Calibrator):
    """Piecewise linear between the knots of each column, constant beyond the first and the last.

    Attributes
    ----------
    thresholds, values : ndarray of shape (sum of counts,)
        The knots, column after column: scores, ascending in each column, and probabilities there.
    counts : ndarray of shape (K,)
        How many knots each column has.
    """

    kind: ClassVar[str] = "isotonic"

    thresholds: FloatArray
    values: FloatArray
    counts: IntArray

    def positive(self, scores: FloatArray) -> FloatArray:
        """Return the probability of each column's class against the rest."""
        p = np.empty(scores.shape)
        ends = np.cumsum(self.counts)
        for k, (start, end) in enumerate(zip(ends - self.counts, ends, strict=True)):
            knots = self.thresholds[start:end], self.values[start:end]
            p[:, k] = np.interp(scores[:, k], *knots)
        return np.minimum(p, 1.0, out=p)  # rounding may lift p past its knots, and 1 - p below 0


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
    """Learn a calibrator of the given kind from scores (m, K), class numbers and row weights."""
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
    """Return codes with -1 also for rows of weight zero, and weights also where there are none."""
    codes = np.asarray(codes)
    weights = np.ones(len(codes)) if weights is None else np.asarray(weights, dtype=float)
    return np.where(weights > 0, codes, -1), weights


def _isotonic(
    scores: FloatArray, positive: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the knots of the isotonic regression of one column."""
    if not len(scores):
        return np.zeros(1), np.full(1, 0.5)  # no rows: even odds, as a sigmoid gives
    regression = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
    regression.fit(scores, positive.astype(float), weights)
    return regression.X_thresholds_, regression.y_thresholds_


def _sigmoid(scores: FloatArray, positive: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """Return slope and intercept of Platt's sigmoid of one column.

    They minimise the log loss against targets a little inside (0, 1), as if each class had one row
    more, on the other side: this keeps the slope finite where a threshold separates the classes.
    """
    n_positive, n_negative = weights[positive].sum(), weights[~positive].sum()
    targets = np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
    start = float(np.log((n_positive + 1) / (n_negative + 1)))
    if n_positive == 0 or n_negative == 0:
        return 0.0, start  # all targets are alike, and this meets them
    # Newton's steps do not depend on where scores lie and how wide, but rounding does. About the
    # median the bulk keeps its digits, however far away a few scores are.
    center = float(np.median(scores))
    reach = float(np.abs(scores - center).max())
    if reach <= max(1e-12 * abs(center), 1e-15):
        reach = np.inf  # as good as constant: slope and intercept would cancel each other
    a, b = _newton((scores - center) / reach, targets, weights, start)
    return a / reach, b - a / reach * center


def _newton(
    z: FloatArray, targets: FloatArray, weights: FloatArray, start: float
) -> tuple[float, float]:
    """Return the a and b that minimise the log loss of ``expit(a z + b)``, from 0 and ``start``.

    Newton's method with halved steps (Lin, Lin and Weng 2007). The step is that of a weighted
    straight line about its mean, which stays exact where the Hessian is nearly singular: with a few
    scores far away from the rest.
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
            return a + da, b + db  # the loss could not tell the two apart
        descent = da * tilt + rise * lift
        size = 1.0
        while (new := loss_at(a + size * da, b + size * db)) > loss + 1e-4 * size * descent:
            size /= 2
            if size < 1e-10:
                return a, b  # all that rounding allows
        a, b, loss = a + size * da, b + size * db, new
    return a, b


INTERNAL_FOLDS = 5
"""Into how many parts cross-fitting cuts rows that come in one fold."""


def cross_fitted(
    kind: str,
    scores: FloatArray,
    codes: IntArray,
    n_classes: int,
    weights: FloatArray | None,
    folds: IntArray,
) -> FloatArray:
    """Return probabilities (m, n_classes), those of each fold learned from the other folds.

    Rows of a negative fold take no part, and get NaN. If the rest lies in one fold it is cut into
    ``INTERNAL_FOLDS``, by turns within each class. A class that is missing where a fold's
    calibrator learns gets the probability of a class without rows: small, or zero if isotonic.
    """
    codes, weights = without_absent(codes, weights)
    folds = np.array(folds)
    inside = folds >= 0
    if len(np.unique(folds[inside & (codes >= 0)])) < 2:
        folds[inside] = _by_turns(codes[inside])
    probabilities = np.full((len(codes), n_classes), np.nan)
    for fold in np.unique(folds[inside]):
        others, own = inside & (folds != fold), folds == fold
        rows = scores[others], codes[others], n_classes, weights[others]
        probabilities[own] = learn_calibrator(kind, *rows).probabilities(scores[own])
    return probabilities


def _by_turns(codes: IntArray) -> IntArray:
    """Deal the rows of each class to the internal folds in turn."""
    folds = np.empty(len(codes), dtype=int)
    # One round over all classes: absent rows, which come first, turn the folds of all others alike.
    folds[np.argsort(codes, kind="stable")] = np.arange(len(codes)) % INTERNAL_FOLDS
    return folds


@dataclass(frozen=True)
class Calibration:
    """A calibrator, and how good its like is on rows that it did not see (see ``assess``)."""

    calibrator: Calibrator
    report: dict[str, Any]


def calibrate(
    kind: str,
    scores: FloatArray,
    codes: IntArray,
    n_classes: int,
    weights: FloatArray | None,
    folds: IntArray,
) -> Calibration:
    """Learn from out-of-fold scores of all folds; judge by cross-fitting over the folds."""
    codes = np.where(folds >= 0, codes, -1)
    crossed = cross_fitted(kind, scores, codes, n_classes, weights, folds)
    calibrator = learn_calibrator(kind, scores, codes, n_classes, weights)
    return Calibration(calibrator, assess(crossed, codes, weights))


def assess(
    probabilities: FloatArray, codes: IntArray, weights: FloatArray | None = None, n_bins: int = 10
) -> dict[str, Any]:
    """Return how good probabilities (m, n_classes) are; rows with NaN do not count.

    Returns
    -------
    dict
        ``"brier_score"``: the mean over the rows of half the sum over the classes of
        ``(p - y)^2``. For two classes that is ``(p - y)^2`` of class 1; for more it is half of
        what scikit-learn reports by default. ``"log_loss"``: the mean of ``-log(p)`` of the true
        class, p clipped as in scikit-learn. ``"reliability"``: of each of at most ``n_bins`` bins
        of about equal weight, ``"predicted"`` (mean probability), ``"observed"`` (share of hits)
        and ``"weight"``; of class 1 for two classes, and else of the likeliest class.
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
    """Return mean probability, share of hits and weight of each bin that is not empty."""
    distinct, position = np.unique(p, return_inverse=True)
    weight = np.bincount(position, weights, len(distinct))
    # Equal probabilities share a bin, that of their middle rank: the order of rows must not matter.
    middle = (np.cumsum(weight) - weight / 2) / weight.sum()
    group = np.minimum((middle * n_bins).astype(int), n_bins - 1)
    position = np.unique(group, return_inverse=True)[1][position]
    weight = np.bincount(position, weights)
    return {
        "predicted": np.bincount(position, weights * p) / weight,
        "observed": np.bincount(position, weights * hit) / weight,
        "weight": weight,
    }
