"""Calibrators: maps from scores to probabilities, sigmoids or step-like ones, kept as plain arrays.

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

MAX_STEPS = 100
"""Newton steps of a sigmoid; a dozen are usual."""

TOLERANCE = 1e-7
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
    for _ in range(MAX_STEPS):
        f = a * z + b
        gradient = weights * (expit(f) - targets)
        curvature = weights * expit(f) * expit(-f) + tiny
        mean = float(np.sum(curvature * z) / np.sum(curvature))
        tilt, lift = float(np.sum(gradient * (z - mean))), float(np.sum(gradient))
        da = -tilt / float(np.sum(curvature * (z - mean) ** 2) + tiny)
        rise = -lift / float(np.sum(curvature))
        db = rise - mean * da
        if abs(da) <= TOLERANCE * (1 + abs(a)) and abs(db) <= TOLERANCE * (1 + abs(b)):
            return a + da, b + db  # the loss could not tell the two apart
        descent = da * tilt + rise * lift
        size = 1.0
        while (new := loss_at(a + size * da, b + size * db)) > loss + 1e-4 * size * descent:
            size /= 2
            if size < 1e-10:
                return a, b  # all that rounding allows
        a, b, loss = a + size * da, b + size * db, new
    return a, b
