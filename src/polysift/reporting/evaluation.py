"""The evaluation of a model on labelled rows, which are read once and need not fit in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import auc, roc_curve

from polysift.data.inputs import training_source
from polysift.data.labels import codes_among
from polysift.data.source import DataSource
from polysift.estimators.classifier import FPCClassifier
from polysift.estimators.fitted import decided_codes, scores_by_shard, stored_calibrator
from polysift.features.survey import checked_labels, checked_weights
from polysift.runtime.parallel import Span
from polysift.runtime.types import FloatArray, IntArray
from polysift.training.calibration import assess

MAX_CURVE_POINTS = 400
"""The maximum number of points of a ROC curve: a picture shows no more."""


@dataclass(frozen=True)
class Evaluation:
    """The metrics of a model on labelled rows, which count by their weights.

    Attributes
    ----------
    rows : int
        The number of rows.
    classes : ndarray
        The model's classes.
    confusion : ndarray of shape (n_classes, n_classes)
        The number of rows of each class (down) by their predicted class (across).
    unknown : int
        The number of rows whose label is not a class of the model. They count as errors in the
        accuracy, and nowhere else.
    accuracy, balanced_accuracy : float
        The share of correct rows, and its mean over the classes that occur.
    roc_auc : float or None
        The area under the ROC curve; with more than two classes, the mean over one-vs-rest.
    log_loss, brier_score : float or None
        Of the probabilities, where the model has them.
    roc : list of (str, ndarray, ndarray)
        For each class that has a curve: its name, the false and the true positive rates.
    reliability : dict or None
        As in ``FPCClassifier.calibration_report_``.
    """

    rows: int
    classes: np.ndarray[Any, Any]
    confusion: FloatArray
    unknown: int
    accuracy: float
    balanced_accuracy: float | None
    roc_auc: float | None
    log_loss: float | None
    brier_score: float | None
    roc: list[tuple[str, FloatArray, FloatArray]]
    reliability: dict[str, FloatArray] | None

    def to_dict(self) -> dict[str, Any]:
        """Return the metrics and the confusion matrix as values for JSON."""
        names = ("accuracy", "balanced_accuracy", "roc_auc", "log_loss", "brier_score")
        whole = np.array_equal(self.confusion, np.round(self.confusion))
        return {
            **{name: getattr(self, name) for name in names},
            "rows": self.rows,
            "unknown_labels": self.unknown,
            "classes": self.classes.tolist(),
            "confusion_matrix": self.confusion.astype(int if whole else float).tolist(),
        }


def evaluate(model: FPCClassifier, X: Any, y: Any = None, sample_weight: Any = None) -> Evaluation:
    """Evaluate a fitted classifier on rows and labels, or on a source that has both."""
    source = training_source(model, X, y, sample_weight, reset=False)
    codes, scores, weights = _scored(model, source)
    counts = np.ones(len(codes)) if weights is None else weights
    if not counts.any():
        raise ValueError("All weights are zero: there are no rows to evaluate on.")
    predicted = decided_codes(model, scores)
    n_classes, known = len(model.classes_), codes >= 0
    cells = codes[known] * n_classes + predicted[known]
    confusion = np.bincount(cells, counts[known], n_classes**2).reshape(n_classes, n_classes)
    totals = confusion.sum(axis=1)
    recalls = np.diagonal(confusion)[totals > 0] / totals[totals > 0]
    curves = _curves(scores[known], codes[known], counts[known], n_classes)
    report = None
    calibrator = stored_calibrator(model)
    if calibrator is not None and recalls.size:
        report = assess(calibrator.probabilities(scores), codes, weights)
    return Evaluation(
        rows=source.n_rows,
        classes=model.classes_,
        confusion=confusion,
        unknown=int(np.sum(~known)),
        accuracy=float(np.diagonal(confusion).sum() / counts.sum()),
        balanced_accuracy=float(recalls.mean()) if recalls.size else None,
        roc_auc=float(np.mean([auc(fpr, tpr) for _, fpr, tpr in curves])) if curves else None,
        log_loss=None if report is None else report["log_loss"],
        brier_score=None if report is None else report["brier_score"],
        roc=[(str(model.classes_[code]), *_thinned(fpr, tpr)) for code, fpr, tpr in curves],
        reliability=None if report is None else report["reliability"],
    )


def _scored(
    model: FPCClassifier, source: DataSource
) -> tuple[IntArray, FloatArray, FloatArray | None]:
    """Return the class codes (-1 where unknown), scores (m, K) and weights of all rows."""
    codes = np.empty(source.n_rows, dtype=np.int64)
    scores = np.empty((source.n_rows, len(model.coef_)))
    weights = np.empty(source.n_rows) if source.has_weights else None

    def keep(span: Span, part: Any, values: FloatArray) -> None:
        rows = slice(*span)
        scores[rows] = values
        labels = checked_labels(source, span[0], part)
        codes[rows] = codes_among(labels, model.classes_, source.target)
        if weights is not None:
            weights[rows] = checked_weights(source, span[0], source.weights(part))

    for _ in scores_by_shard(model, source, keep, show=bool(model.verbose)):
        pass
    return codes, scores, weights


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
            fpr, tpr, _ = roc_curve(positive, column, sample_weight=weights)
            curves.append((code, fpr, tpr))
    return curves


def _thinned(fpr: FloatArray, tpr: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return at most ``MAX_CURVE_POINTS`` points, evenly spaced along the curve."""
    if len(fpr) <= MAX_CURVE_POINTS:
        return fpr, tpr
    length = fpr + tpr  # it never falls, from 0 to 2
    at = np.searchsorted(length, np.linspace(0.0, 2.0, MAX_CURVE_POINTS))
    at = np.unique(np.clip(at, 0, len(fpr) - 1))
    return fpr[at], tpr[at]
