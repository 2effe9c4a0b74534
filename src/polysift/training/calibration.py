"""Calibration: a calibrator learned from out-of-fold scores, and how good its like is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polysift.runtime.types import FloatArray, IntArray
from polysift.training.calibrators import Calibrator, learn_calibrator, without_absent

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
    distinct, place = np.unique(p, return_inverse=True)
    weight = np.bincount(place, weights, len(distinct))
    # Equal probabilities share a bin, that of their middle rank: the order of rows must not matter.
    middle = (np.cumsum(weight) - weight / 2) / weight.sum()
    group = np.minimum((middle * n_bins).astype(int), n_bins - 1)
    place = np.unique(group, return_inverse=True)[1][place]
    weight = np.bincount(place, weights)
    return {
        "predicted": np.bincount(place, weights * p) / weight,
        "observed": np.bincount(place, weights * hit) / weight,
        "weight": weight,
    }
