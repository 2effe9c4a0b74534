"""The evaluation of a model on labelled rows, which are read once and need not fit in memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from polysift.data.inputs import training_source
from polysift.data.labels import codes_among
from polysift.data.source import DataSource
from polysift.estimators.classifier import FPCClassifier
from polysift.estimators.fitted import decided_codes, scores_by_shard, stored_calibrator
from polysift.features.survey import checked_labels, checked_weights
from polysift.runtime.parallel import Span
from polysift.runtime.types import FloatArray, IntArray
from polysift.training.evaluation import Evaluation, evaluation_of
from polysift.training.metrics import RowScores, rarest_class


def evaluate(model: FPCClassifier, X: Any, y: Any = None, sample_weight: Any = None) -> Evaluation:
    """Evaluate a fitted classifier on rows and labels, or on a source that has both."""
    source = training_source(model, X, y, sample_weight, reset=False)
    codes, scores, weights = _scored(model, source)
    if weights is not None and not weights.any():
        raise ValueError("All weights are zero: there are no rows to evaluate on.")
    calibrator = stored_calibrator(model)
    p = None if calibrator is None else calibrator.probabilities(scores)
    n_classes = len(model.classes_)
    rows = RowScores(codes, decided_codes(model, scores), scores, p, weights, n_classes)
    summary = getattr(model, "training_summary_", None)  # not in an old file
    rare = None if summary is None else rarest_class(summary["class_counts"])
    return evaluation_of(rows, model.classes_, source.n_rows, rare)


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
