"""A whole training run: survey, budget, feature map, engine, solver."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polysift._admm import Settings
from polysift._batch import IterationHook, solve
from polysift._calibration import Calibration, calibrate
from polysift._checkpoint import Checkpoint, digest
from polysift._crossfit import CALIBRATION_FOLDS, solve_with_folds
from polysift._data import DataSource, TrainingSet
from polysift._engine import LocalEngine
from polysift._feature_map import FeatureMap, MapSpec, build_feature_map, refuse_overflow
from polysift._folds import stratified_folds
from polysift._forecast import Forecast, forecast
from polysift._labels import apply_class_weight, encode_labels
from polysift._memory import Resources, Shape, fit_in, peak_bytes
from polysift._monitor import Monitor, OutOfTime
from polysift._parallel import Pool, single_threaded_blas
from polysift._result import Result
from polysift._survey import Questions, Survey, checked_labels, survey
from polysift._types import FloatArray


@dataclass(frozen=True)
class Job:
    """What to train and within which limits: the checked parameters of a classifier.

    Attributes
    ----------
    spec : MapSpec
        The feature map.
    settings : callable
        Takes the total weight of the rows and their dtype, returns the solver's settings.
    class_weight : dict, "balanced" or None
        Weights of the classes.
    threads : int
        Threads at most.
    memory_limit : int
        Bytes that may be allocated.
    time_limit : float or None
        Seconds.
    checkpoint : str or None
        A folder.
    parameters : dict
        Plain values that tell this job from others, for the checkpoint.
    show : bool
        Whether to show progress.
    calibration : str or None
        How to make probabilities of out-of-fold scores, if at all.
    """

    spec: MapSpec
    settings: Callable[[float, Any], Settings]
    class_weight: Any
    threads: int
    memory_limit: int
    time_limit: float | None
    checkpoint: Any
    parameters: dict[str, Any]
    show: bool
    calibration: str | None = None


@dataclass(frozen=True)
class Start:
    """Where a warm start goes on from: a feature map and coefficients (n, K)."""

    feature_map: FeatureMap
    u: FloatArray


@dataclass(frozen=True)
class Trained:
    """The outcome of a training run."""

    feature_map: FeatureMap
    classes: Any
    result: Result
    timings: dict[str, float]
    summary: dict[str, Any]
    calibration: Calibration | None = None


@dataclass(frozen=True)
class Prepared:
    """What the first pass over the data brings: labels, weights, and all a feature map needs.

    Attributes
    ----------
    data : TrainingSet
        The rows, with the weights of their classes.
    classes : ndarray
        The classes.
    weights : ndarray of shape (m,) or None
        The rows' own weights.
    found : Survey
        What the survey found, but for the labels.
    """

    data: TrainingSet
    classes: Any
    weights: FloatArray | None
    found: Survey


def prepare(
    source: DataSource, questions: Questions, class_weight: Any, pool: Pool, monitor: Monitor
) -> Prepared:
    """Survey the rows and encode their labels."""
    found = survey(source, questions, pool, monitor)
    classes, codes, weights = encode_labels(found.labels, source.target)
    found.labels = []
    total = apply_class_weight(class_weight, weights, codes, classes)
    return Prepared(TrainingSet(source, codes, len(classes), total), classes, weights, found)


def train(
    source: DataSource,
    job: Job,
    *,
    start: Callable[[Any], Start] | None = None,
    hook: Callable[[FeatureMap, Any], IterationHook] | None = None,
) -> Trained:
    """Run a job.

    ``start`` takes the classes found and returns what to go on from; ``hook`` takes the feature map
    and the classes and returns who is told of iterations.
    """
    weighted = source.has_weights
    resources = fit_in(job.memory_limit, _shape(source, job, 2, weighted), job.threads)
    checkpoint = None
    with Monitor(job.time_limit, show=job.show) as monitor, single_threaded_blas():
        try:
            with Pool(resources.threads, resources.in_flight) as pool:
                questions = job.spec.questions(
                    source.n_features, labels=True, digest=job.checkpoint is not None
                )
                prepared = prepare(source, questions, job.class_weight, pool, monitor)
            data, classes, found = prepared.data, prepared.classes, prepared.found
            begin = None if start is None else start(classes)
            if begin is None:
                feature_map = build_feature_map(job.spec, found, source.dtype)
            else:
                feature_map = begin.feature_map
                refuse_overflow(feature_map, found.statistics, source.dtype)
            if job.checkpoint is not None:
                mark = _fingerprint(job, source, found, data, begin)
                checkpoint = Checkpoint(job.checkpoint, mark)
            del found
            told = None if hook is None else hook(feature_map, classes)
            shape = _shape(source, job, len(classes), data.weights is not None)
            resources = _resources(job, shape, source)
            with Pool(resources.threads, resources.in_flight) as pool:
                means = _Means(pool, resources, monitor, checkpoint)
                if job.calibration is None:
                    result = _solve(data, feature_map, job, begin, means, told)
                    calibration = None
                else:
                    result, calibration = _solve_calibrated(prepared, feature_map, job, means, told)
        except OutOfTime as late:
            raise TimeoutError(_too_late(source, job, late)) from None
        finally:
            if checkpoint is not None:
                checkpoint.close()
    summary = summarise(prepared, resources, job.memory_limit, monitor)
    summary["expected_memory"] = peak_bytes(shape, resources)
    return Trained(feature_map, classes, result, monitor.timings(), summary, calibration)


def summarise(
    prepared: Prepared, resources: Resources, memory_limit: int, monitor: Monitor
) -> dict[str, Any]:
    """Return what a model was trained on and with, as plain values."""
    data = prepared.data
    present = data.codes >= 0
    weights = None if prepared.weights is None else prepared.weights[present]
    return {
        "rows": data.source.n_rows,
        "class_counts": np.bincount(data.codes[present], weights, data.n_classes).astype(float),
        "dtype": str(data.source.dtype),
        "origin": data.source.origin,
        "threads": resources.threads,
        "memory_limit": memory_limit,
        "expected_memory": None,
        "measured_memory": monitor.memory(),
    }


@dataclass(frozen=True)
class _Means:
    """What a solver works with."""

    pool: Pool
    resources: Resources
    monitor: Monitor
    checkpoint: Checkpoint | None

    def engine(self, data: TrainingSet, feature_map: FeatureMap) -> LocalEngine:
        return LocalEngine(
            data,
            feature_map,
            self.pool,
            monitor=self.monitor,
            checkpoint=self.checkpoint,
            spill=self.resources.spill,
            store=self.resources.store,
        )


def _solve(
    data: TrainingSet,
    feature_map: FeatureMap,
    job: Job,
    begin: Start | None,
    means: _Means,
    hook: IterationHook | None,
) -> Result:
    return solve(
        means.engine(data, feature_map),
        job.settings(data.total_weight(), data.source.dtype),
        u0=None if begin is None else begin.u,
        monitor=means.monitor,
        checkpoint=means.checkpoint,
        hook=hook,
    )


def _solve_calibrated(
    prepared: Prepared,
    feature_map: FeatureMap,
    job: Job,
    means: _Means,
    hook: IterationHook | None,
) -> tuple[Result, Calibration]:
    data, weights = prepared.data, prepared.weights
    folds = stratified_folds(data.codes, weights, CALIBRATION_FOLDS)
    data = replace(data, cells=folds.cells, n_cells=folds.n_cells)
    engine = means.engine(data, feature_map)
    result, scores = solve_with_folds(
        engine,
        engine.gram(),
        lambda m: job.settings(m, data.source.dtype),
        folds.n_splits,
        means.pool,
        monitor=means.monitor,
        checkpoint=means.checkpoint,
        hook=hook,
    )
    assert job.calibration is not None
    return result, calibrate(
        job.calibration, scores, data.codes, data.n_classes, weights, folds.cells
    )


def plan(source: DataSource, job: Job) -> Forecast:
    """Return the forecast of a job; the number of classes is that of the first shards."""
    spans = source.shards()[:2]
    parts = zip(spans, source.stream(spans), strict=True)
    labels = [np.unique(checked_labels(source, span[0], part)) for span, part in parts]
    classes = max(len(np.unique(np.concatenate(labels))), 2)
    weighted = source.has_weights or job.class_weight is not None
    shape = _shape(source, job, classes, weighted)
    resources = _resources(job, shape, source)
    return forecast(
        source,
        shape,
        resources,
        job.settings(float(source.n_rows), source.dtype),
        spec=job.spec,
        classes=classes,
        memory_limit=job.memory_limit,
        disk=source.disk,
    )


def _resources(job: Job, shape: Shape, source: DataSource) -> Resources:
    """Return how to work; keeping the features pays over the many sweeps of the converged mode."""
    many = job.settings(1.0, source.dtype).until_converged
    return fit_in(job.memory_limit, shape, job.threads, store=many)


def _shape(source: DataSource, job: Job, classes: int, weighted: bool) -> Shape:
    scheme, n = job.spec.resolve(source.n_features)
    columns = 1 if classes == 2 else classes
    shape = Shape.of(
        source,
        min(n, source.n_rows) if scheme in ("first", "random") else n,
        columns,
        weighted=weighted,
        quantiles=job.spec.scaler == "quantile",
    )
    if job.calibration is None:
        return shape
    return replace(shape, cells=CALIBRATION_FOLDS, lanes=1 + CALIBRATION_FOLDS)


def _fingerprint(
    job: Job, source: DataSource, found: Survey, data: TrainingSet, begin: Start | None
) -> dict[str, Any]:
    """Return what tells this fit from any other; the data enter by digests of what was surveyed."""
    return {
        **job.parameters,
        "rows": source.n_rows,
        "features": source.n_features,
        "dtype": str(source.dtype),
        "seed": job.spec.seed,
        "data": digest(*found.digests),
        "labels": digest(data.codes),
        "weights": None if data.weights is None else digest(data.weights),
        "start": None if begin is None else digest(begin.u, begin.feature_map.centers),
    }


def _too_late(source: DataSource, job: Job, late: OutOfTime) -> str:
    expected = plan(source, job)
    kept = ""
    if job.checkpoint is not None and late.phase != "survey":  # nothing of a survey is saved
        kept = f" The checkpoint {job.checkpoint} keeps what is done."
    return (
        f"time_limit={job.time_limit:g} s struck in the phase '{late.phase}' ({late.share:.0%} of "
        f"it was done), before there was a first model; the forecast for the whole fit is about "
        f"{expected.seconds:.3g} s.{kept} Raise time_limit, lower n_centers, or set checkpoint to "
        "go on later."
    )
