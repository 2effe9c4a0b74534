"""A whole training run: survey, budget, feature map, engine, solver.

What the first pass over the data brings: labels, weights, and all a feature map needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polysift.data.labels import find_encoding
from polysift.data.source import DataSource, TrainingSet
from polysift.engine.backend import LOCAL, Backend
from polysift.engine.budget import Execution, Shape
from polysift.engine.local import Engine
from polysift.engine.sampling import Draw
from polysift.features.feature_map import FeatureMap, build_feature_map, refuse_overflow
from polysift.features.survey import Questions, Survey
from polysift.runtime.checkpoints import Checkpoint, digest
from polysift.runtime.parallel import Pool, single_threaded_blas
from polysift.runtime.progress import Monitor, OutOfTime, WorkersLostError
from polysift.runtime.types import FloatArray
from polysift.solvers.loop import (
    CALIBRATION_FOLDS,
    IterationHook,
    gram_sums,
    solve,
    solve_with_folds,
)
from polysift.solvers.newton import NewtonRun
from polysift.solvers.result import Result
from polysift.solvers.warm_start import fit_subsample
from polysift.training.calibration import Calibration, calibrate
from polysift.training.folds import stratified_folds
from polysift.training.plan import Job, execution_for, plan, shape_of


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
    backend: Backend,
    pool: Pool,
    monitor: Monitor,
) -> Prepared:
    """Survey the rows and encode their labels."""
    found = backend.survey(source, questions, pool, monitor)
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
    backend = job.backend
    execution = backend.fit_in(
        job.memory_limit, shape_of(source, job, 2, source.has_weights), job.threads
    )
    checkpoint = None
    with Monitor(job.time_limit, show=job.show) as monitor, single_threaded_blas():
        try:
            with Pool(execution.threads, execution.in_flight) as pool:
                questions = job.spec.questions(
                    source.n_features, labels=True, digest=job.checkpoint is not None
                )
                gather = backend.gathers or job.calibration is not None
                questions = replace(questions, gather=gather)
                prepared = prepare(source, questions, job.class_weight, backend, pool, monitor)
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
            shape = shape_of(source, job, len(classes), data.weighted)
            execution = execution_for(job, shape, source)
            with Pool(execution.threads, execution.in_flight) as pool:
                means = _Means(backend, pool, execution, monitor, checkpoint, shape)
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
    summary = summarise(prepared, execution, job.memory_limit, monitor, backend.workers)
    summary["expected_memory"] = backend.peak_bytes(shape, execution)
    return Trained(feature_map, classes, result, monitor.timings(), summary, calibration)


def summarise(
    prepared: Prepared, execution: Execution, memory_limit: int, monitor: Monitor, workers: int
) -> dict[str, Any]:
    """Return what a model was trained on and with, as plain values."""
    source = prepared.data.source
    return {
        "rows": source.n_rows,
        "class_counts": prepared.counts,
        "dtype": str(source.dtype),
        "origin": source.origin,
        "threads": execution.threads,
        "workers": workers,
        "memory_limit": memory_limit,
        "expected_memory": None,
        "measured_memory": monitor.memory(),
    }


@dataclass(frozen=True)
class _Means:
    """What a solver works with."""

    backend: Backend
    pool: Pool
    execution: Execution
    monitor: Monitor
    checkpoint: Checkpoint | None
    shape: Shape

    def engine(self, data: TrainingSet, feature_map: FeatureMap) -> Engine:
        return self.backend.engine(
            data,
            feature_map,
            self.pool,
            self.execution,
            monitor=self.monitor,
            checkpoint=self.checkpoint,
        )

    def subsampled(
        self,
        engine: Engine,
        data: TrainingSet,
        feature_map: FeatureMap,
        job: Job,
        folds: Sequence[int | None],
    ) -> list[NewtonRun] | None:
        """Return runs of Newton's method over some of the rows, where that pays."""
        rows, dtype = self.shape.subsample, data.source.dtype
        if not rows:
            return None
        few = replace(self.shape, rows=rows, unit_bytes=0, subsample=0)
        execution = execution_for(replace(job, backend=LOCAL), few, data.source)

        def engine_for(some: TrainingSet) -> Engine:
            return LOCAL.engine(some, feature_map, self.pool, execution, monitor=self.monitor)

        return fit_subsample(
            engine,
            data,
            Draw(job.spec.seed, rows / self.shape.rows),
            engine_for,
            lambda m: job.settings(m, dtype),
            folds,
            pool=self.pool,
            monitor=self.monitor,
        )


def _solve(
    data: TrainingSet,
    feature_map: FeatureMap,
    job: Job,
    begin: Start | None,
    means: _Means,
    hook: IterationHook | None,
) -> Result:
    engine = means.engine(data, feature_map)
    former = means.subsampled(engine, data, feature_map, job, [None]) if begin is None else None
    return solve(
        engine,
        job.settings(data.total_weight(), data.source.dtype),
        u0=None if begin is None else begin.u,
        monitor=means.monitor,
        checkpoint=means.checkpoint,
        hook=hook,
        sample=means.shape.sample,
        pool=means.pool,
        former=None if former is None else former[0],
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
    data = replace(data, fold_parts=folds.fold_parts, n_fold_parts=folds.n_fold_parts)
    engine = means.engine(data, feature_map)
    fold_parts = [None, *range(folds.n_splits)]
    sums = means.subsampled(engine, data, feature_map, job, fold_parts) or gram_sums(
        engine,
        job.settings(data.total_weight(), data.source.dtype),
        means.shape.sample,
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
        job.calibration, scores, data.codes, data.n_classes, weights, folds.fold_parts
    )


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
