"""The plan of a fit: its sizes, its execution within the memory limit, and its expected cost.

``shape_of`` and ``execution_for`` decide how a ``Job`` is run. ``plan`` returns a ``Forecast`` of
its memory and time, without running it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polysift.data.source import ArraySource, DataSource
from polysift.data.training_set import TrainingSet
from polysift.engine.budget import Execution, Shape, megabytes, state_bytes
from polysift.engine.compiled import with_loops
from polysift.engine.local import LocalEngine
from polysift.engine.problems import Problem
from polysift.engine.sampling import FIRST_ROWS_PER_CENTER, Sample, sample_of, sampling_pays
from polysift.features.feature_map import MapSpec, build_feature_map
from polysift.features.scalers import needs_sketch
from polysift.features.survey import checked_labels, survey
from polysift.runtime import clock
from polysift.runtime.parallel import Pool, Span, block_spans, shard_spans, single_threaded_blas
from polysift.runtime.types import FloatArray
from polysift.solvers.newton import ROUGH_TOLERANCE
from polysift.solvers.starts import CALIBRATION_FOLDS
from polysift.training.job import Job
from polysift.training.preparation import as_table, row_level_bytes
from polysift.training.stored_rows import is_stored, stored_bytes

FEW_FEATURES = 2**20
"""Features of all rows that are kept, where memory allows it, whatever the solver: 8 MiB."""

EXPECTED_PRODUCTS = 6
"""Products with the Gram matrix that a fit with a sampled one takes, approximately."""

TIMED_SHARD_ROWS, TIMED_GRAM_FLOPS, TIMED_ENTRIES = 2048, 2e9, 2**22
"""The rows of a shard that is timed: at least the first, more where they cost less than the second
number of multiply-adds, and no more than have the third number of entries."""


def shape_of(source: DataSource, job: Job, classes: int, weighted: bool) -> Shape:
    """Return the sizes on which the memory and the time of a job depend.

    Parameters
    ----------
    source : DataSource
        The rows.
    job : Job
        The fit.
    classes : int
        The number of classes.
    weighted : bool
        Whether rows or classes have weights.
    """
    settings = job.settings
    scheme, n = job.spec.resolve(source.n_features)
    shape = Shape.of(
        source,
        min(n, source.n_rows) if scheme in ("first", "random") else n,
        1 if classes == 2 else classes,
        weighted=weighted,
        quantiles=needs_sketch(job.spec.scaler) or as_table(source, job.spec),
    )
    subsample = settings.subsample_rows(shape.rows, shape.centers)
    stored = is_stored(source, job.backend)
    shape = replace(shape, hessians=settings.hessians, subsample=subsample, decoded_once=stored)
    if settings.float64_features:
        shape = replace(shape, itemsize=8)
    if job.held_out:
        folds = CALIBRATION_FOLDS
        shape = replace(shape, fold_parts=folds, problems=1 + folds, calibrated=True)
        shape = replace(shape, level_bytes=row_level_bytes(source))
    return replace(shape, sample=_sample_for(job, shape))


def _sample_for(job: Job, shape: Shape) -> Sample | None:
    """Return the sample from which the Gram matrix is estimated; None for that of all rows."""
    sample = sample_of(shape.rows, shape.centers, job.spec.seed)
    if job.gram == "exact" or sample is None or not job.settings.samples:
        return None
    columns, many = shape.columns * shape.problems, job.settings.many_sweeps
    pays = sampling_pays(sample, shape.centers, shape.features, columns, converged=many)
    return sample if pays or job.gram == "sampled" else None


def execution_for(job: Job, shape: Shape) -> Execution:
    """Return the fastest execution of a job of this shape within its memory limit."""
    settings = job.settings
    # After a subsample with a rough tolerance only a few sweeps over all rows remain.
    rough = shape.subsample > 0 and settings.tol >= ROUGH_TOLERANCE
    few = shape.rows * shape.centers <= FEW_FEATURES
    keep = (settings.many_sweeps or few) and not rough
    execution = job.backend.fit_in(job.memory_limit, shape, job.threads, keep_features=keep)
    execution = replace(execution, float64=settings.float64_features)
    features = shape.centers + settings.update_cost
    return with_loops(execution, shape.rows, features, settings.max_iter, shape.features)


def plan(source: DataSource, job: Job) -> Forecast:
    """Return the forecast of a job; the number of classes is that of the first two shards."""
    spans = source.shards()[:2]
    parts = zip(spans, source.stream(spans), strict=True)
    labels = [np.unique(checked_labels(source, span[0], part)) for span, part in parts]
    classes = max(len(np.unique(np.concatenate(labels))), 2)
    weighted = source.has_weights or job.class_weight is not None
    shape = shape_of(source, job, classes, weighted)
    return forecast(source, job, shape, execution_for(job, shape), classes)


@dataclass(frozen=True)
class Forecast:
    """What ``plan`` expects of a fit; ``print`` shows it as a table.

    Attributes
    ----------
    rows, features, centers, classes : int
        The size of the problem.
    threads, shards_in_flight : int
        The threads, and the shards that are read or computed at once.
    spilled : bool
        Whether the per-row state is in a temporary file.
    peak_memory : int
        The most that the fit allocates at once, in bytes, beside its input.
    memory_limit : int
        The limit on it, in bytes.
    disk : int
        Temporary files, in bytes.
    passes : int
        Passes over the data, at most.
    feature_evaluations : int
        Kernel features to compute in all these passes.
    seconds : float
        The expected time, from a short measurement on this machine; an upper bound if a stopping
        rule may end the fit earlier.
    seconds_by_phase : dict of str to float
        The same by phase, under the names of ``FPCClassifier.timings_``.
    workers : int
        The number of workers of a cluster; 0 means the threads of this process.
    worker_memory : int
        The most that each worker holds at once, in bytes.
    future_workers : bool
        Whether no cluster runs yet, so that the workers are those that a new one would have.
    sample : int
        The approximate number of rows from which the Gram matrix is estimated; 0 if it is that of
        all rows.

    Examples
    --------
    >>> from polysift import PAPER, FPCClassifier
    >>> from polysift.datasets import make_bayes_curve
    >>> X, y = make_bayes_curve(10_000, random_state=0)
    >>> forecast = FPCClassifier(**PAPER | {"degree": 9}, n_jobs=1).plan(X, y, show=False)
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
    future_workers: bool = False

    def __str__(self) -> str:
        spilled = " (per-row state in a temporary file)" if self.spilled else ""
        processors = ("threads", f"{self.threads}, {self.shards_in_flight} shards in flight")
        if self.workers:
            future = " (of a new cluster: none runs yet)" if self.future_workers else ""
            each = f"{megabytes(self.worker_memory)} each at most{future}"
            processors = ("workers", f"{self.workers}, {each}")
        return "\n".join(
            f"{name:<21}{value}"
            for name, value in (
                ("rows x features", f"{self.rows:,} x {self.features}"),
                ("centers, classes", f"{self.centers:,}, {self.classes}"),
                ("Gram matrix", f"of some {self.sample:,} rows" if self.sample else "of all rows"),
                processors,
                (
                    "peak memory",
                    f"{megabytes(self.peak_memory)} beside the input{spilled}; "
                    f"the limit is {megabytes(self.memory_limit)}",
                ),
                ("temporary files", megabytes(self.disk)),
                ("passes over the data", f"{self.passes}"),
                ("feature evaluations", f"{self.feature_evaluations:.3g}"),
                ("time", f"about {duration(self.seconds)}"),
            )
        )


def forecast(
    source: DataSource, job: Job, shape: Shape, execution: Execution, classes: int
) -> Forecast:
    """Return the forecast of a job; the measurements take a fraction of a second.

    Parameters
    ----------
    source : DataSource
        The rows.
    job : Job
        The fit.
    shape : Shape
        Its sizes.
    execution : Execution
        How it would be executed.
    classes : int
        The number of classes.
    """
    backend, sample = job.backend, shape.sample
    sweeps = job.settings.expected_sweeps(shape.rows, shape.centers, source.dtype)
    sampled = 0 if sample is None else sample.first + sample.second
    products = 0 if sample is None else EXPECTED_PRODUCTS
    scoring = 1 if shape.problems > 1 else 0  # the pass of out-of-fold scores
    seconds, phases = _expected_seconds(source, job, shape, execution, scoring)
    return Forecast(
        rows=shape.rows,
        features=shape.features,
        centers=shape.centers,
        classes=classes,
        threads=execution.threads,
        shards_in_flight=execution.in_flight,
        spilled=execution.spill,
        peak_memory=backend.peak_bytes(shape, execution),
        memory_limit=job.memory_limit,
        disk=source.disk
        + (state_bytes(shape) if execution.spill else 0)
        + (stored_bytes(source) if is_stored(source, job.backend) else 0),
        passes=2 + sweeps + scoring + (products + 1 if sampled else 0),
        feature_evaluations=shape.rows * shape.centers * (1 + sweeps + products),
        seconds=seconds,
        seconds_by_phase=phases,
        workers=backend.workers,
        worker_memory=backend.worker_bytes(shape, execution),
        sample=sampled,
        future_workers=getattr(backend, "future", False),
    )


def _expected_seconds(
    source: DataSource, job: Job, shape: Shape, execution: Execution, scoring: int
) -> tuple[float, dict[str, float]]:
    """Return the expected seconds of a fit, in all and by phase.

    Workers of a cluster are assumed to be as fast as a thread of this process, and to read in
    parallel. ``scoring`` is the number of passes that only compute scores.
    """
    settings, backend, sample = job.settings, job.backend, shape.sample
    parallel = max(backend.workers * backend.threads, 1)
    timed = Execution(1, 1) if backend.workers > 0 else execution
    survey_row, gram_row, sweep_row = _seconds_per_row(shape, timed, job.spec, source.dtype)
    reading = _reading_seconds(source) / parallel
    rows = shape.rows / parallel
    sweeps = settings.expected_sweeps(shape.rows, shape.centers, source.dtype)
    # Kept features need no rows; without folds they are kept from the Gram matrix on.
    reads = min(shape.fold_parts - 1, 1) if execution.keep_features else sweeps
    phases = {
        "survey": rows * survey_row + reading,
        "Gram matrix": rows * gram_row + reading,
        "sweep": sweeps * rows * sweep_row + reading * reads,
    }
    if settings.hessians:  # they cost about as much as the sweeps
        phases["curvature"] = phases["sweep"]
    if shape.subsample:
        phases["sample"] = reading
        phases["Gram matrix"] = shape.subsample * gram_row
        sweeps_there = settings.expected_sweeps(shape.subsample, shape.centers, source.dtype)
        phases["sweep"] += sweeps_there * shape.subsample * sweep_row
    if sample is not None:
        sampled = sample.first + sample.second + shape.centers * FIRST_ROWS_PER_CENTER
        phases["sample"] = rows * sweep_row + 2 * reading
        phases["Gram matrix"] = sampled * gram_row
        phases["product"] = EXPECTED_PRODUCTS * (rows * sweep_row + reading)
    cholesky = shape.centers**3 / 3 * gram_row / max(shape.centers, 1) ** 2
    factors = cholesky * (1 if sample is None else 2)
    return sum(phases.values()) + factors + scoring * reading, phases


class _RandomRows(ArraySource):
    """Random rows in a given number of shards: as large as those of the fit, but fewer."""

    def __init__(self, X: FloatArray, n_shards: int) -> None:
        super().__init__(X)
        self._n_shards = n_shards

    def shards(self) -> list[Span]:
        """Return shards of equal size."""
        return list(block_spans((0, self.n_rows), -(-self.n_rows // self._n_shards)))


def _random_data(shape: Shape, n_shards: int, dtype: np.dtype[Any]) -> TrainingSet:
    """Return random rows, classes and fold parts to measure the time of passes."""
    d, K = shape.features, shape.columns
    shard_rows = min(
        max(TIMED_SHARD_ROWS, int(TIMED_GRAM_FLOPS / shape.centers**2)),
        shape.rows // len(shard_spans(shape.rows)),
    )
    shard_rows = max(1, min(shard_rows, TIMED_ENTRIES // d))
    rows = shard_rows * n_shards
    rng = np.random.default_rng(0)
    source = _RandomRows(rng.random((rows, d), dtype=dtype.type), n_shards)
    data = TrainingSet(source, rng.integers(0, max(K, 2), rows), max(K, 2))
    if shape.fold_parts == 1:
        return data
    fold_parts = rng.integers(0, shape.fold_parts, rows)
    return replace(data, fold_parts=fold_parts, n_fold_parts=shape.fold_parts)


def _seconds_per_row(
    shape: Shape, execution: Execution, spec: MapSpec, dtype: np.dtype[Any]
) -> tuple[float, float, float]:
    """Return seconds per row of the survey, the Gram matrix and a sweep, on random rows."""
    n_shards = execution.threads * (2 if shape.centers < 1000 else 1)
    data = _random_data(shape, n_shards, dtype)
    rows = data.source.n_rows
    with single_threaded_blas(), Pool(execution.threads, execution.in_flight) as pool:
        began = clock.now()
        asked = spec.questions(shape.features, labels=False)
        found = survey(data.source, replace(asked, quantiles=shape.quantiles), pool)
        surveyed = clock.now()
        feature_map = build_feature_map(spec, found, dtype)
        engine = LocalEngine(data, feature_map, pool, execution)
        engine.begin(shape.problems)
        u = np.tile(engine.gram().Aty[0] * 0.0, shape.problems)
        problems = [
            Problem(len(u), without=problem - 1 if problem else None)
            for problem in range(shape.problems)
        ]
        # Untimed: the first sweep allocates buffers and compiles a loop. There is another loop
        # over kept features.
        for _ in range(2 if execution.keep_features else 1):
            engine.sweep(problems, u)
        warm = clock.now()
        engine.sweep(problems, u)
        swept = clock.now()
        engine.gram()
        done = clock.now()
    return (surveyed - began) / rows, (done - swept) / rows, (swept - warm) / rows


def _reading_seconds(source: DataSource) -> float:
    """Return the seconds of reading all rows once, estimated from the first two shards."""
    spans = source.shards()[:2]
    began = clock.now()
    rows = sum(source.rows(part).shape[0] for part in source.stream(spans))
    seconds = clock.now() - began
    # A unit larger than the shards was decoded whole, with rows of other shards.
    decoded = min(max(rows, source.first_unit), source.n_rows)
    return seconds * source.n_rows / max(decoded, 1)


def duration(seconds: float) -> str:
    """Return a time in seconds as text, in ms, s, min or h."""
    if seconds < 0.01:
        return f"{1000 * seconds:.1f} ms"
    if seconds < 120:
        return f"{seconds:.{2 if seconds < 10 else 1}f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
