"""A whole training run: survey, budget, feature map, engine, solver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polysift._admm import Settings
from polysift._batch import IterationHook, gram_sums, solve
from polysift._calibration import Calibration, calibrate
from polysift._checkpoint import Checkpoint, digest
from polysift._crossfit import CALIBRATION_FOLDS, solve_with_folds
from polysift._data import DataSource, TrainingSet
from polysift._engine import Engine
from polysift._feature_map import FeatureMap, MapSpec, build_feature_map, refuse_overflow
from polysift._folds import stratified_folds
from polysift._forecast import Forecast, forecast
from polysift._fused import worthwhile
from polysift._labels import find_encoding
from polysift._memory import Resources, Shape
from polysift._monitor import Monitor, OutOfTime, WorkersLostError
from polysift._parallel import Pool, single_threaded_blas
from polysift._places import HERE, Place
from polysift._result import Result
from polysift._sampling import Sample, sample_of, sampling_pays
from polysift._survey import Questions, Survey, checked_labels
from polysift._types import FloatArray

SLOPES = 200
"""What the slopes along a step of Newton's method cost NumPy per row, in features."""


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
    place : Place
        Where the work is done.
    gram : str
        Whether the Gram matrix is "exact", "sampled", or "auto".
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
    place: Place = HERE
    gram: str = "exact"


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
    counts : ndarray of shape (classes,)
        The weight of each class, by the rows' own weights.
    weights : ndarray of shape (m,) or None
        The rows' own weights, if they have any and were gathered.
    found : Survey
        What the survey found, but for the labels.
    marks : tuple of str
        Digests of the labels and of the weights, if there are any, where they were asked for.
    """

    data: TrainingSet
    classes: Any
    counts: FloatArray
    weights: FloatArray | None
    found: Survey
    marks: tuple[str, ...]

    def fingerprint(self) -> dict[str, Any]:
        """Return what tells these data from others; they enter by digests."""
        source = self.data.source
        return {
            "rows": source.n_rows,
            "features": source.n_features,
            "dtype": str(source.dtype),
            "data": digest(*self.found.digests),
            "labels": self.marks[0],
            "weights": self.marks[1] if len(self.marks) > 1 else None,
        }


def prepare(
    source: DataSource,
    questions: Questions,
    class_weight: Any,
    place: Place,
    pool: Pool,
    monitor: Monitor,
) -> Prepared:
    """Survey the rows and encode their labels."""
    found = place.survey(source, questions, pool, monitor)
    parts, found.labels = found.labels, []
    encoding = find_encoding(parts, class_weight, source.target)
    marks = tuple(_mark(words) for words in zip(*(part.digests for part in parts), strict=True))
    codes, own, weights = np.empty(0, np.int8), None, None
    if questions.gather:
        codes = np.concatenate([encoding.codes(part) for part in parts])
        if parts[0].weights is not None:
            own = np.concatenate([part.weights for part in parts if part.weights is not None])
        weights = encoding.weights(own, codes)
    n_classes = len(encoding.classes)
    data = TrainingSet(source, codes, n_classes, weights, encoding=encoding)
    return Prepared(data, encoding.classes, encoding.counts, own, found, marks)


def _mark(words: Sequence[str]) -> str:
    return digest(np.frombuffer("".join(words).encode(), np.uint8))


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
    place = job.place
    resources = place.fit_in(
        job.memory_limit, _shape(source, job, 2, source.has_weights), job.threads
    )
    checkpoint = None
    with Monitor(job.time_limit, show=job.show) as monitor, single_threaded_blas():
        try:
            with Pool(resources.threads, resources.in_flight) as pool:
                questions = job.spec.questions(
                    source.n_features, labels=True, digest=job.checkpoint is not None
                )
                gather = place.gathers or job.calibration is not None
                questions = replace(questions, gather=gather)
                prepared = prepare(source, questions, job.class_weight, place, pool, monitor)
            data, classes, found = prepared.data, prepared.classes, prepared.found
            begin = None if start is None else start(classes)
            if begin is None:
                feature_map = build_feature_map(job.spec, found, source.dtype)
            else:
                feature_map = begin.feature_map
                refuse_overflow(feature_map, found.statistics, source.dtype)
            if job.checkpoint is not None:
                mark = _fingerprint(job, prepared, begin)
                checkpoint = Checkpoint(job.checkpoint, mark)
            del found
            told = None if hook is None else hook(feature_map, classes)
            shape = _shape(source, job, len(classes), data.weighted)
            resources = _resources(job, shape, source)
            with Pool(resources.threads, resources.in_flight) as pool:
                means = _Means(place, pool, resources, monitor, checkpoint, shape.sample)
                if job.calibration is None:
                    result = _solve(data, feature_map, job, begin, means, told)
                    calibration = None
                else:
                    result, calibration = _solve_calibrated(prepared, feature_map, job, means, told)
        except OutOfTime as late:
            raise TimeoutError(_too_late(source, job, late)) from None
        except WorkersLostError as lost:
            raise WorkersLostError(f"{lost} {how_to_go_on(job.checkpoint)}") from lost
        finally:
            if checkpoint is not None:
                checkpoint.close()
    summary = summarise(prepared, resources, job.memory_limit, monitor, place.workers)
    summary["expected_memory"] = place.peak_bytes(shape, resources)
    return Trained(feature_map, classes, result, monitor.timings(), summary, calibration)


def summarise(
    prepared: Prepared, resources: Resources, memory_limit: int, monitor: Monitor, workers: int
) -> dict[str, Any]:
    """Return what a model was trained on and with, as plain values."""
    source = prepared.data.source
    return {
        "rows": source.n_rows,
        "class_counts": prepared.counts,
        "dtype": str(source.dtype),
        "origin": source.origin,
        "threads": resources.threads,
        "workers": workers,
        "memory_limit": memory_limit,
        "expected_memory": None,
        "measured_memory": monitor.memory(),
    }


@dataclass(frozen=True)
class _Means:
    """What a solver works with."""

    place: Place
    pool: Pool
    resources: Resources
    monitor: Monitor
    checkpoint: Checkpoint | None
    sample: Sample | None

    def engine(self, data: TrainingSet, feature_map: FeatureMap) -> Engine:
        return self.place.engine(
            data,
            feature_map,
            self.pool,
            self.resources,
            monitor=self.monitor,
            checkpoint=self.checkpoint,
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
        sample=means.sample,
        pool=means.pool,
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
    sums = gram_sums(
        engine,
        job.settings(data.total_weight(), data.source.dtype),
        means.sample,
        means.pool,
        means.monitor,
        means.checkpoint,
    )
    result, scores = solve_with_folds(
        engine,
        sums,
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
        place=job.place,
        spec=job.spec,
        classes=classes,
        memory_limit=job.memory_limit,
        disk=source.disk,
    )


def _resources(job: Job, shape: Shape, source: DataSource) -> Resources:
    """Return how to work; keeping the features pays over the many sweeps of the converged mode."""
    settings = job.settings(1.0, source.dtype)
    many = settings.until_converged
    resources = job.place.fit_in(job.memory_limit, shape, job.threads, store=many)
    per_row = shape.centers + (SLOPES if settings.newton else 0)
    fused = worthwhile(shape.rows, per_row, settings.max_iter)
    return replace(resources, fused=fused, precise=settings.newton)


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
    if job.settings(1.0, source.dtype).newton:
        shape = replace(shape, itemsize=8, curved=True)
    if job.calibration is not None:
        shape = replace(shape, cells=CALIBRATION_FOLDS, lanes=1 + CALIBRATION_FOLDS)
    return replace(shape, sample=_sample(job, shape, source))


def _sample(job: Job, shape: Shape, source: DataSource) -> Sample | None:
    """Return the rows that stand for all in the Gram matrix; None where all rows are better."""
    sample = sample_of(shape.rows, shape.centers, job.spec.seed)
    if job.gram == "exact" or sample is None or shape.curved:
        return None
    many = job.settings(1.0, source.dtype).until_converged
    columns = shape.columns * shape.lanes
    pays = sampling_pays(sample, shape.centers, shape.features, columns, converged=many)
    return sample if pays or job.gram == "sampled" else None


def _fingerprint(job: Job, prepared: Prepared, begin: Start | None) -> dict[str, Any]:
    """Return what tells this fit from any other."""
    return {
        **job.parameters,
        **prepared.fingerprint(),
        "seed": job.spec.seed,
        "start": None if begin is None else digest(begin.u, begin.feature_map.centers),
    }


def how_to_go_on(checkpoint: Any) -> str:
    """Return what to do after workers were lost."""
    if checkpoint is None:
        return "Nothing is kept; set checkpoint to be able to go on after such a loss."
    return f"The checkpoint {checkpoint} keeps what is done: fit again with it to go on."


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
