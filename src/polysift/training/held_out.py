"""How well a fit does on rows that it has not seen, found without fitting or reading once more.

With a calibration, and after a search, the score of each row is known by a model without its fold.
Else some training rows that the survey keeps in memory (``features.sampled_rows``) are scored as if
each had been left out (``solvers.leave_one_out``). The feature map is that of all rows, as in the
choice of rho.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polysift.engine.backend import LOCAL, FitContext
from polysift.engine.sums import SCALES, predicted_codes
from polysift.features.feature_map import BlockFeatures, FeatureMap
from polysift.features.sampled_rows import LabelledSample
from polysift.losses import LOGISTIC, Loss
from polysift.runtime.parallel import Span, block_spans, single_threaded_blas
from polysift.runtime.progress import Monitor
from polysift.runtime.types import FloatArray, IntArray
from polysift.solvers.lbfgs import least_scale
from polysift.solvers.leave_one_out import LeaveOneOut
from polysift.solvers.result import Result
from polysift.training.calibration import Calibration, SigmoidCalibrator
from polysift.training.evaluation import evaluation_of
from polysift.training.folds import ScoredRows
from polysift.training.metrics import (
    QUANTILE,
    SHARES,
    Estimate,
    RowScores,
    estimates,
    rarest_class,
)
from polysift.training.preparation import Prepared
from polysift.training.thresholds import Thresholds

LEAVE_ONE_OUT, OUT_OF_FOLD = "leave-one-out", "out of fold"
"""Where the scores come from."""

MIN_ROWS, SHARE_OF_ROWS = 4000, 0.1
"""The rows that are scored without themselves: this share of all, but at least the first number, as
far as there are any. Their leverages cost as much as that part of a Gram matrix."""

MAX_OUT_OF_FOLD_ROWS = 20_000
"""The most rows scored without their fold that figures are of: they must not need memory that the
plan of the fit does not have."""

CORRECTION_ERROR = 0.5
"""The standard deviation of the error of leave-one-out figures, in units of what leaving out the
rows changes: see ``benchmarks/held_out.py``."""

BLOCK_ROWS = 256
"""Rows that are scored at a time."""

MAX_KEPT_NUMBERS = 2**20
"""The most numbers that a model keeps so that its leave-one-out figures can wait. They take as long
as half of a small fit, and of most models that are made in a loop nobody asks for them."""


def held_out_rows(total: float) -> float:
    """Return how many of rows of so much weight are scored without themselves, by their weight."""
    return min(total, max(MIN_ROWS, SHARE_OF_ROWS * total))


@dataclass(frozen=True)
class LeaveOneOutRows:
    """Sampled rows that are scored as if each had been left out, and all that this takes.

    Attributes
    ----------
    sample : LabelledSample
        The rows.
    feature_map : FeatureMap
        The feature map as rows of the training see it.
    u : ndarray of shape (n, K)
        The coefficients.
    without : LeaveOneOut
        How a row's own influence is taken out.
    unit : float
        The unit of the weights, as ``Encoding`` has it.
    classes : ndarray
        The classes.
    rare : int
        The rarest class.
    calibration : Calibration or None
        Whose calibrator makes probabilities of scores; else the loss may.
    thresholds : Thresholds or None
        The decision thresholds.
    """

    sample: LabelledSample
    feature_map: FeatureMap
    u: FloatArray
    without: LeaveOneOut
    unit: float
    classes: Any
    rare: int
    calibration: Calibration | None = None
    thresholds: Thresholds | None = None

    @property
    def can_wait(self) -> bool:
        """Whether so little is kept that the figures may wait until they are asked for."""
        kept = self.sample.rows.size + self.u.shape[0] * (self.u.shape[0] + self.u.shape[1])
        return bool(kept <= MAX_KEPT_NUMBERS)

    def facts(self, context: FitContext) -> dict[str, Any]:
        """Return the figures, by the context's threads."""
        seen, alone = _scores(self, context)
        training = estimates(self._scored(seen), self.rare)
        seen_values = {name: found.value for name, found in training.items()}
        facts = _facts(LEAVE_ONE_OUT, self._scored(alone), self.classes, self.rare, seen_values)
        for name, stored in facts["figures"].items():
            correction = seen_values[name] - stored[0]
            facts["figures"][name] = widened(name, Estimate(*stored), correction).to_list()
        return facts

    def later_facts(self) -> dict[str, Any]:
        """Return the figures after the fit; they are the same."""
        with single_threaded_blas():
            return self.facts(FitContext(Monitor(), LOCAL))

    def _scored(self, scores: FloatArray) -> RowScores:
        """Return the rows with their scores, and probabilities where the model has them."""
        p = _sigmoid(scores) if self.without.loss is LOGISTIC else None
        if self.calibration is not None:
            p = self.calibration.calibrator.probabilities(scores)
        less = 0.0 if self.thresholds is None else self.thresholds.values
        sample, n_classes = self.sample, len(self.classes)
        predicted, own = predicted_codes(scores - less), sample.own_weights
        return RowScores(sample.codes, predicted, scores, p, own, n_classes)


def leave_one_out_rows(
    prepared: Prepared,
    feature_map: FeatureMap,
    result: Result,
    calibration: Calibration | None = None,
    thresholds: Thresholds | None = None,
) -> LeaveOneOutRows | None:
    """Return the rows that are scored without themselves; None if nothing is known of them.

    Parameters
    ----------
    prepared : Prepared
        The sample and the classes.
    feature_map : FeatureMap
        The feature map as rows of the training see it.
    result : Result
        The coefficients, and how a row's own influence is taken out.
    calibration : Calibration, optional
        Whose calibrator makes probabilities of scores; else the loss may.
    thresholds : Thresholds, optional
        The decision thresholds.
    """
    sample, encoding, without = prepared.sample, prepared.data.encoding, result.leave_one_out
    if sample is None or without is None or encoding is None:
        return None
    sample = sample.first(held_out_rows(float(prepared.counts.sum())))
    if not sample.total:
        return None
    classes, rare = prepared.classes, rarest_class(prepared.counts)
    known = sample, feature_map, result.u, without, encoding.unit, classes, rare
    return LeaveOneOutRows(*known, calibration, thresholds)


def widened(name: str, found: Estimate, correction: float) -> Estimate:
    """Return an interval that allows for the error of a figure's correction, too.

    Taking out a row's own influence is an approximation, whose error is taken to have a standard
    deviation of ``CORRECTION_ERROR`` times what it changes of the figure.
    """
    error = QUANTILE * CORRECTION_ERROR * abs(correction)
    low = found.value - float(np.hypot(found.value - found.low, error))
    high = found.value + float(np.hypot(found.high - found.value, error))
    return Estimate(found.value, max(low, 0.0), min(high, 1.0) if name in SHARES else high)


@dataclass(frozen=True)
class UnseenRows:
    """Some rows with their scores by models without their folds.

    Attributes
    ----------
    codes : ndarray of int of shape (k,)
        The class of each.
    scores : ndarray of shape (k, K)
        The scores.
    weights : ndarray of shape (k,) or None
        Their own weights, if they have any.
    numbers : ndarray of int of shape (k,)
        Their positions among the rows that were scored.
    """

    codes: IntArray
    scores: FloatArray
    weights: FloatArray | None
    numbers: IntArray


def unseen_rows(known: ScoredRows) -> UnseenRows:
    """Return the rows that are in a fold, or some of them at equal distances if they are many."""
    scores, codes, weights, folds = known
    some = np.flatnonzero(folds >= 0)
    some = some[:: -(-len(some) // MAX_OUT_OF_FOLD_ROWS) or 1]
    return UnseenRows(codes[some], scores[some], None if weights is None else weights[some], some)


def out_of_fold_facts(
    prepared: Prepared,
    unseen: UnseenRows,
    result: Result,
    calibration: Calibration | None = None,
    thresholds: Thresholds | None = None,
    *,
    log_odds: bool = False,
) -> dict[str, Any]:
    """Return the figures of rows, each scored by the model without its fold.

    ``log_odds`` is whether the scores are log-odds, so that they give probabilities where there is
    no calibration.
    """
    scores, p = unseen.scores, None
    if calibration is not None:
        p = calibration.probabilities[unseen.numbers]
    elif log_odds:
        p = _sigmoid(scores)
    rows = RowScores(
        unseen.codes,
        predicted_codes(scores - (0.0 if thresholds is None else thresholds.values)),
        scores,
        p,
        unseen.weights,
        len(prepared.classes),
    )
    errors = result.history["training_error"]
    known = len(errors) > 0 and np.isfinite(errors[-1])
    training = {"accuracy": float(1.0 - errors[-1])} if known else {}
    return _facts(OUT_OF_FOLD, rows, prepared.classes, rarest_class(prepared.counts), training)


def _facts(
    method: str, rows: RowScores, classes: Any, rare: int, training: dict[str, float]
) -> dict[str, Any]:
    """Return figures as plain values and arrays."""
    count = int(np.count_nonzero(rows.counts()))
    found = evaluation_of(rows, classes, count, rare)
    return {"method": method, "training": training, **found.stored()}


def _sigmoid(scores: FloatArray) -> FloatArray:
    """Return the probabilities of log-odds."""
    K = scores.shape[1]
    return SigmoidCalibrator(np.ones(K), np.zeros(K)).probabilities(scores)


def _scores(asked: LeaveOneOutRows, context: FitContext) -> tuple[FloatArray, FloatArray]:
    """Return the scores of sampled rows by the model, and those without themselves."""
    sample, without, u = asked.sample, asked.without, asked.u
    features, units = BlockFeatures(asked.feature_map, float), _units(sample, asked.unit)
    classes = np.array([1]) if u.shape[1] == 1 else np.arange(u.shape[1])
    y = np.where(sample.codes[:, None] == classes, 1.0, -1.0)

    def score(span: Span) -> tuple[FloatArray, FloatArray]:
        rows = slice(*span)
        A = features(sample.rows[rows])
        return A @ u, without.margins(A, y[rows], units[rows])

    spans = list(block_spans((0, len(y)), BLOCK_ROWS))
    scored = context.pool.map(score, spans, work=len(y) * len(u))
    parts = zip((hi - lo for lo, hi in spans), scored, strict=True)
    blocks = list(context.monitor.watch(LEAVE_ONE_OUT, len(y), parts))
    seen, margins = (np.concatenate(part) for part in zip(*blocks, strict=True))
    if without.loss is not None:
        margins = margins * _scales(margins, sample.weights, without.loss)
    return seen, y * margins


def _scales(margins: FloatArray, weights: FloatArray | None, loss: Loss) -> FloatArray:
    """Return the factor of the margins of each column with the least loss, as in the solver."""
    w = np.ones(len(margins)) if weights is None else weights
    slopes = [
        np.sum(w[:, None] * -loss.slope(scale * margins, 1.0) * margins, axis=0) for scale in SCALES
    ]
    return np.array([least_scale(column)[0] for column in np.array(slopes).T])


def _units(sample: LabelledSample, unit: float) -> FloatArray:
    """Return the weight in the fit that is left out of each row.

    A multiplicity is so many equal rows, of which one is left out.
    """
    if sample.weights is None:
        return np.ones(len(sample.codes))
    if unit != 1.0 or sample.own_weights is None:
        return sample.weights
    return sample.weights / np.where(sample.own_weights > 0, sample.own_weights, 1.0)
