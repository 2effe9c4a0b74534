"""A job, and its plan: how large it is, how to work, what it will cost.

What a fit will cost, told before it runs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from polysift.data.source import ArraySource, DataSource, TrainingSet
from polysift.engine.backend import LOCAL, Backend
from polysift.engine.budget import Execution, Shape, megabytes, state_bytes
from polysift.engine.compiled import worthwhile
from polysift.engine.local import LocalEngine
from polysift.engine.problems import Problem
from polysift.engine.sampling import FIRST_ROWS_PER_CENTER, Sample, sample_of, sampling_pays
from polysift.features.feature_map import MapSpec, build_feature_map
from polysift.features.scalers import needs_sketch
from polysift.features.survey import checked_labels, survey
from polysift.runtime.parallel import Pool, Span, block_spans, shard_spans, single_threaded_blas
from polysift.runtime.types import FloatArray
from polysift.solvers.newton import ROUGH_TOLERANCE
from polysift.solvers.solver import SolverSettings
from polysift.solvers.starts import CALIBRATION_FOLDS

EXPECTED_PRODUCTS = 6
"""About so many products with a sampled Gram matrix a fit takes."""


@dataclass(frozen=True)
class Forecast:
    """What ``plan`` expects of a fit; ``print`` shows it as a table.

    Attributes
    ----------
    rows, features, centers, classes : int
        The size of the problem.
    threads, shards_in_flight : int
        How it would be worked on.
    spilled : bool
        Whether the per-row state goes to a file.
    peak_memory : int
        The most that the fit allocates at once, in bytes, beside its input.
    memory_limit : int
        What it may allocate, in bytes.
    disk : int
        Temporary files, in bytes.
    passes : int
        Passes over the data, at most.
    feature_evaluations : int
        Kernel features to compute in all these passes.
    seconds : float
        The time, from a short calibration on this machine; at most, where a stopping rule may
        strike earlier.
    seconds_by_phase : dict of str to float
        The same by phase, under the names of ``FPCClassifier.timings_``.
    workers : int
        The workers of a cluster that would share the work; 0 means the threads of this process.
    worker_memory : int
        The most that each of them holds at once, in bytes.
    sample : int
        About how many rows stand for all in the Gram matrix; 0 where it is that of all rows.

    Examples
    --------
    >>> from polysift import FPCClassifier
    >>> from polysift.datasets import make_bayes_curve
    >>> X, y = make_bayes_curve(10_000, random_state=0)
    >>> forecast = FPCClassifier(degree=9, n_jobs=1).plan(X, y, show=False)
    >>> forecast.rows, forecast.features, forecast.centers, forecast.passes
    (10000, 2, 55, 4)
    >>> forecast.peak_memory < forecast.memory_limit
    True
    """

    rows: int
    features: int
    centers: int
    classes: int
    threads: int
    shards_in_flight: int
    spilled: bool
    peak_memory: int
    memory_limit: int
    disk: int
    passes: int
    feature_evaluations: int
    seconds: float
    seconds_by_phase: dict[str, float]
    workers: int = 0
    worker_memory: int = 0
    sample: int = 0

    def __str__(self) -> str:
        state = " (per-row state in a temporary file)" if self.spilled else ""
        who = ("threads", f"{self.threads}, {self.shards_in_flight} shards in flight")
        if self.workers:
            who = ("workers", f"{self.workers}, {megabytes(self.worker_memory)} each at most")
        return "\n".join(
            f"{name:<21}{value}"
            for name, value in (
                ("rows x features", f"{self.rows:,} x {self.features}"),
                ("centers, classes", f"{self.centers:,}, {self.classes}"),
                ("Gram matrix", f"of some {self.sample:,} rows" if self.sample else "of all rows"),
                who,
                (
                    "peak memory",
                    f"{megabytes(self.peak_memory)} beside the input{state}; "
                    f"the limit is {megabytes(self.memory_limit)}",
                ),
                ("temporary files", megabytes(self.disk)),
                ("passes over the data", f"{self.passes}"),
                ("feature evaluations", f"{self.feature_evaluations:.3g}"),
                ("time", f"about {duration(self.seconds)}"),
            )
        )


def forecast(
    source: DataSource,
    shape: Shape,
    execution: Execution,
    settings: SolverSettings,
    *,
    backend: Backend,
    spec: MapSpec,
    classes: int,
    memory_limit: int,
    disk: int,
) -> Forecast:
    """Return the forecast of a fit; takes a fraction of a second to calibrate.

    Workers of a cluster are taken to be as fast as a thread here, and to read by themselves.
    """
    sweeps = settings.expected_sweeps(shape.rows, shape.centers, source.dtype)
    sample = shape.sample
    taken = 0 if sample is None else sample.first + sample.second
    products = 0 if sample is None else EXPECTED_PRODUCTS
    by_workers, share = backend.workers > 0, max(backend.workers * backend.threads, 1)
    calibrated = Execution(1, 1) if by_workers else execution
    look, gram, sweep = _calibrate(shape, calibrated, spec, source.dtype)
    reading = _reading_seconds(source) / share
    scoring = 1 if shape.problems > 1 else 0  # scores out of fold
    passes = 2 + sweeps + scoring + (products + 1 if taken else 0)
    factor = shape.centers**3 / 3 * gram / max(shape.centers, 1) ** 2  # the Cholesky factor
    rows = shape.rows / share
    again = reading * (
        1 if execution.keep_features else sweeps
    )  # features that are kept need no rows
    phases = {
        "survey": rows * look + reading,
        "Gram matrix": rows * gram + reading,
        "sweep": sweeps * rows * sweep + again,
    }
    if settings.hessians:  # they cost about as much as passes
        phases["curvature"] = phases["sweep"]
    if shape.subsample:
        phases["sample"] = reading
        phases["Gram matrix"] = shape.subsample * gram
        passes_there = settings.expected_sweeps(shape.subsample, shape.centers, source.dtype)
        phases["sweep"] += passes_there * shape.subsample * sweep
    if taken:
        phases["sample"] = rows * sweep + 2 * reading
        phases["Gram matrix"] = (taken + shape.centers * FIRST_ROWS_PER_CENTER) * gram
        phases["product"] = products * (rows * sweep + reading)
    seconds = sum(phases.values()) + factor * (2 if taken else 1) + scoring * reading
    return Forecast(
        rows=shape.rows,
        features=shape.features,
        centers=shape.centers,
        classes=classes,
        threads=execution.threads,
        shards_in_flight=execution.in_flight,
        spilled=execution.spill,
        peak_memory=backend.peak_bytes(shape, execution),
        memory_limit=memory_limit,
        disk=disk + (state_bytes(shape) if execution.spill else 0),
        passes=passes,
        feature_evaluations=shape.rows * shape.centers * (1 + sweeps + products),
        seconds=seconds,
        seconds_by_phase=phases,
        workers=backend.workers,
        worker_memory=backend.worker_bytes(shape, execution),
        sample=taken,
    )


class _Sample(ArraySource):
    """Random rows cut into a given number of shards: as large as the real ones, but fewer."""

    def __init__(self, X: FloatArray, count: int) -> None:
        super().__init__(X)
        self._count = count

    def shards(self) -> list[Span]:
        """Return shards of equal size."""
        return list(block_spans((0, self.n_rows), -(-self.n_rows // self._count)))


def _calibrate(
    shape: Shape, execution: Execution, spec: MapSpec, dtype: np.dtype[Any]
) -> tuple[float, float, float]:
    """Return seconds per row of the survey, the Gram matrix and a sweep, on random rows."""
    d, K = shape.features, shape.columns
    shard_rows = min(
        max(2048, int(2e9 / shape.centers**2)), shape.rows // len(shard_spans(shape.rows))
    )
    shard_rows = max(1, min(shard_rows, 2**22 // d))  # wide rows are not made dense by the million
    count = execution.threads * (2 if shape.centers < 1000 else 1)
    rows = shard_rows * count
    rng = np.random.default_rng(0)
    sample = _Sample(rng.random((rows, d), dtype=dtype.type), count)
    data = TrainingSet(sample, rng.integers(0, max(K, 2), rows), max(K, 2))
    if shape.fold_parts > 1:
        fold_parts = rng.integers(0, shape.fold_parts, rows)
        data = replace(data, fold_parts=fold_parts, n_fold_parts=shape.fold_parts)
    with single_threaded_blas(), Pool(execution.threads, execution.in_flight) as pool:
        began = perf_counter()
        found = survey(sample, spec.questions(d, labels=False), pool)
        surveyed = perf_counter()
        made = build_feature_map(spec, found, dtype)
        engine = LocalEngine(data, made, pool, execution)
        engine.begin(shape.problems)
        u = np.tile(engine.gram().Aty[0] * 0.0, shape.problems)
        problems = [
            Problem(len(u), without=problem - 1 if problem else None)
            for problem in range(shape.problems)
        ]
        # The first touch of the buffers is not the rule, nor is what compiles a loop, of which
        # there is another one over features that are kept.
        for _ in range(2 if execution.keep_features else 1):
            engine.sweep(problems, u)
        touched = perf_counter()
        engine.sweep(problems, u)
        swept = perf_counter()
        engine.gram()
        done = perf_counter()
    return (surveyed - began) / rows, (done - swept) / rows, (swept - touched) / rows


def _reading_seconds(source: DataSource) -> float:
    """Return the time of reading all rows once, judged by the first two shards."""
    spans = source.shards()[:2]
    began = perf_counter()
    rows = sum(source.rows(part).shape[0] for part in source.stream(spans))
    seconds = perf_counter() - began
    # A unit that is larger than the shards was decoded whole, and serves its other rows too.
    served = min(max(rows, source.first_unit), source.n_rows)
    return seconds * source.n_rows / max(served, 1)


def duration(seconds: float) -> str:
    """Return seconds as people say them."""
    if seconds < 0.01:
        return f"{1000 * seconds:.1f} ms"
    if seconds < 120:
        return f"{seconds:.{2 if seconds < 10 else 1}f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


@dataclass(frozen=True)
class Job:
    """What to train and within which limits: the checked parameters of a classifier.

    Attributes
    ----------
    spec : MapSpec
        The feature map.
    settings : SolverSettings
        The method.
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
    backend : Backend
        Where the work is done.
    gram : str
        Whether the Gram matrix is "exact", "sampled", or "auto".
    """

    spec: MapSpec
    settings: SolverSettings
    class_weight: Any
    threads: int
    memory_limit: int
    time_limit: float | None
    checkpoint: Any
    parameters: dict[str, Any]
    show: bool
    calibration: str | None = None
    backend: Backend = LOCAL
    gram: str = "exact"


def plan(source: DataSource, job: Job) -> Forecast:
    """Return the forecast of a job; the number of classes is that of the first shards."""
    spans = source.shards()[:2]
    parts = zip(spans, source.stream(spans), strict=True)
    labels = [np.unique(checked_labels(source, span[0], part)) for span, part in parts]
    classes = max(len(np.unique(np.concatenate(labels))), 2)
    weighted = source.has_weights or job.class_weight is not None
    shape = shape_of(source, job, classes, weighted)
    execution = execution_for(job, shape)
    return forecast(
        source,
        shape,
        execution,
        job.settings,
        backend=job.backend,
        spec=job.spec,
        classes=classes,
        memory_limit=job.memory_limit,
        disk=source.disk,
    )


def execution_for(job: Job, shape: Shape) -> Execution:
    """Return the execution plan of a job."""
    settings = job.settings
    # Where a rough subsample does nearly all of the work, few sweeps over all rows are left.
    rough = shape.subsample > 0 and settings.tol >= ROUGH_TOLERANCE
    keep = settings.many_sweeps and not rough
    execution = job.backend.fit_in(job.memory_limit, shape, job.threads, keep_features=keep)
    compiled = worthwhile(shape.rows, shape.centers + settings.update_cost, settings.max_iter)
    return replace(execution, compiled=compiled, float64=settings.float64_features)


def shape_of(source: DataSource, job: Job, classes: int, weighted: bool) -> Shape:
    """Return what the memory and the time of a job depend on."""
    settings = job.settings
    scheme, n = job.spec.resolve(source.n_features)
    columns = 1 if classes == 2 else classes
    shape = Shape.of(
        source,
        min(n, source.n_rows) if scheme in ("first", "random") else n,
        columns,
        weighted=weighted,
        quantiles=needs_sketch(job.spec.scaler),
    )
    subsample = settings.subsample_rows(shape.rows, shape.centers)
    shape = replace(shape, hessians=settings.hessians, subsample=subsample)
    if settings.float64_features:
        shape = replace(shape, itemsize=8)
    if job.calibration is not None:
        shape = replace(shape, fold_parts=CALIBRATION_FOLDS, problems=1 + CALIBRATION_FOLDS)
    return replace(shape, sample=_sample_for(job, shape))


def _sample_for(job: Job, shape: Shape) -> Sample | None:
    """Return the rows that stand for all in the Gram matrix; None where all rows are better."""
    sample = sample_of(shape.rows, shape.centers, job.spec.seed)
    if job.gram == "exact" or sample is None or shape.hessians:
        return None
    columns, many = shape.columns * shape.problems, job.settings.many_sweeps
    pays = sampling_pays(sample, shape.centers, shape.features, columns, converged=many)
    return sample if pays or job.gram == "sampled" else None
