"""``Evaluation``: the figures, the confusion matrix and the curves of rows that were scored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from polysift.runtime.types import BoolArray, FloatArray, IntArray
from polysift.training.calibration import assess
from polysift.training.metrics import (
    METRICS,
    Estimate,
    RowScores,
    estimates,
    is_unbalanced,
    rarest_class,
)

MAX_CURVE_POINTS = 400
"""The maximum number of points of a ROC curve: a picture shows no more."""

MAX_POINTS = 20_000
"""The maximum number of points of all ROC curves together, but for 20 of each."""


@dataclass(frozen=True)
class Evaluation:
    """The metrics of a model on labelled rows, which count by their weights.

    Rows whose label is not a class of the model count in no figure.

    Attributes
    ----------
    rows : int
        The number of rows.
    classes : ndarray
        The model's classes.
    confusion : ndarray of shape (n_classes, n_classes)
        The number of rows of each class (down) by their predicted class (across).
    unknown : int
        The number of rows whose label is not a class of the model.
    figures : dict of str to Estimate
        The figures that are defined, by the names in ``METRICS``, each with its interval of
        confidence: "accuracy", the share of correct rows; "balanced_accuracy", its mean over the
        classes that occur; "roc_auc", the area under the ROC curve, and "average_precision", that
        under the curve of precision and recall of the rarer class; with more than two classes,
        both are the mean over one-vs-rest; "log_loss" and "brier_score" of the probabilities,
        where the model has them.
    rare_class : int
        The class of two whose average precision it is.
    roc : list of (str, ndarray, ndarray)
        For each class that has a curve: its name, the false and the true positive rates.
    reliability : dict or None
        As in ``FPCClassifier.calibration_report_``.
    """

    rows: int
    classes: np.ndarray[Any, Any]
    confusion: FloatArray
    unknown: int
    figures: Mapping[str, Estimate]
    rare_class: int = 1
    roc: list[tuple[str, FloatArray, FloatArray]] = field(default_factory=list)
    reliability: dict[str, FloatArray] | None = None

    def value(self, name: str) -> float | None:
        """Return a figure; None where it is not defined."""
        return self.figures[name].value if name in self.figures else None

    @property
    def accuracy(self) -> float | None:
        """The share of correct rows."""
        return self.value("accuracy")

    @property
    def balanced_accuracy(self) -> float | None:
        """The mean over the classes of the share of their rows that are correct."""
        return self.value("balanced_accuracy")

    @property
    def roc_auc(self) -> float | None:
        """The area under the ROC curve."""
        return self.value("roc_auc")

    @property
    def log_loss(self) -> float | None:
        """The log loss of the probabilities."""
        return self.value("log_loss")

    @property
    def brier_score(self) -> float | None:
        """The Brier score of the probabilities."""
        return self.value("brier_score")

    @property
    def unbalanced(self) -> bool:
        """Whether the rarest class is so rare that the accuracy says little of it."""
        return is_unbalanced(self.confusion.sum(axis=1))

    def to_dict(self) -> dict[str, Any]:
        """Return the metrics and the confusion matrix as values for JSON."""
        whole = np.array_equal(self.confusion, np.round(self.confusion))
        return {
            **{name: self.value(name) for name in METRICS},
            "intervals": {name: [e.low, e.high] for name, e in self.figures.items()},
            "average_precision_of": self.classes.tolist()[self.rare_class] if self._two else None,
            "rows": self.rows,
            "unknown_labels": self.unknown,
            "classes": self.classes.tolist(),
            "confusion_matrix": self.confusion.astype(int if whole else float).tolist(),
        }

    @property
    def _two(self) -> bool:
        return len(self.classes) == 2

    def stored(self) -> dict[str, Any]:
        """Return plain values and arrays, without the classes; ``from_stored`` is the inverse."""
        names = [str(label) for label in self.classes]
        return {
            "rows": self.rows,
            "figures": {name: found.to_list() for name, found in self.figures.items()},
            "confusion": self.confusion,
            "rare_class": self.rare_class,
            "roc": {str(names.index(name)): np.stack(curve) for name, *curve in self.roc},
            "reliability": self.reliability,
        }

    @classmethod
    def from_stored(cls, stored: Mapping[str, Any], classes: Any) -> Evaluation:
        """Return the evaluation that was stored."""
        return cls(
            rows=stored["rows"],
            classes=classes,
            confusion=stored["confusion"],
            unknown=0,
            figures={name: Estimate(*found) for name, found in stored["figures"].items()},
            rare_class=stored["rare_class"],
            roc=[(str(classes[int(k)]), *curve) for k, curve in stored["roc"].items()],
            reliability=stored["reliability"],
        )


def evaluation_of(
    rows: RowScores, classes: Any, n_rows: int, rare: int | None = None
) -> Evaluation:
    """Return the evaluation of scored rows.

    Parameters
    ----------
    rows : RowScores
        The rows.
    classes : ndarray
        The model's classes.
    n_rows : int
        The number of rows to report.
    rare : int, optional
        The class of two whose average precision is computed; by default the rarer one.
    """
    n_classes, known = rows.n_classes, rows.codes >= 0
    counts, codes = rows.counts()[known], rows.codes[known]
    cells = codes.astype(np.int64) * n_classes + rows.predicted[known]
    confusion = np.bincount(cells, counts, n_classes**2).reshape(n_classes, n_classes)
    rare = rarest_class(confusion.sum(axis=1)) if rare is None else rare
    report = None
    if rows.probabilities is not None and counts.any():
        report = assess(rows.probabilities, rows.codes, rows.weights)
    points = int(np.clip(MAX_POINTS / n_classes, 20, MAX_CURVE_POINTS))
    return Evaluation(
        rows=n_rows,
        classes=classes,
        confusion=confusion,
        unknown=int(np.sum(~known)),
        figures=estimates(rows, rare),
        rare_class=rare,
        roc=[
            (str(classes[code]), *_thinned(fpr, tpr, points))
            for code, fpr, tpr in _curves(rows.scores[known], codes, counts, n_classes)
        ],
        reliability=None if report is None else report["reliability"],
    )


def _curves(
    scores: FloatArray, codes: IntArray, weights: FloatArray, n_classes: int
) -> list[tuple[int, FloatArray, FloatArray]]:
    """Return the ROC curve of each score's class, where both it and other classes occur."""
    curves = []
    present = weights > 0
    classes = [1] if n_classes == 2 else range(n_classes)
    for column, code in zip(scores.T, classes, strict=True):
        positive = codes == code
        if positive[present].any() and not positive[present].all():
            curves.append((code, *roc_points(positive, column, weights)))
    return curves


def roc_points(
    positive: BoolArray, scores: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the corners of a ROC curve, false and true positive rates, both from 0 to 1.

    They are those of scikit-learn's ``roc_curve``, whose checks take longer than the curve of a
    thousand rows.
    """
    order = np.argsort(scores, kind="stable")[::-1]
    order = order[weights[order] > 0]
    ends = np.flatnonzero(np.append(np.diff(scores[order]) != 0, True))  # of rows of equal scores
    own = weights[order]
    hits = np.where(positive[order], own, 0.0)
    tps, fps = (np.cumsum(part)[ends] for part in (hits, own - hits))
    bends = (np.diff(tps, 2) != 0) | (np.diff(fps, 2) != 0)
    corners = np.append(True, bends) if len(bends) else np.ones(len(tps) - 1, dtype=bool)
    corners = np.flatnonzero(np.append(corners, True))
    fpr, tpr = (np.append(0.0, part[corners]) / part[-1] for part in (fps, tps))
    return fpr, tpr


def _thinned(fpr: FloatArray, tpr: FloatArray, most: int) -> tuple[FloatArray, FloatArray]:
    """Return at most so many points, evenly spaced along the curve."""
    if len(fpr) <= most:
        return fpr, tpr
    length = fpr + tpr  # it never falls, from 0 to 2
    at = np.searchsorted(length, np.linspace(0.0, 2.0, most))
    at = np.unique(np.clip(at, 0, len(fpr) - 1))
    return fpr[at], tpr[at]
