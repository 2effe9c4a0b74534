"""A job, and its plan: how large it is, how to work, what it will cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polysift.data.source import DataSource
from polysift.engine.backend import HERE, Place
from polysift.engine.budget import Resources, Shape
from polysift.engine.compiled import worthwhile
from polysift.engine.sampling import ROUGH, Sample, rehearsal_rows, sample_of, sampling_pays
from polysift.features.feature_map import MapSpec
from polysift.features.scalers import needs_sketch
from polysift.features.survey import checked_labels
from polysift.solvers.admm import Settings
from polysift.solvers.crossfit import CALIBRATION_FOLDS
from polysift.training.forecast import Forecast, forecast

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


def plan(source: DataSource, job: Job) -> Forecast:
    """Return the forecast of a job; the number of classes is that of the first shards."""
    spans = source.shards()[:2]
    parts = zip(spans, source.stream(spans), strict=True)
    labels = [np.unique(checked_labels(source, span[0], part)) for span, part in parts]
    classes = max(len(np.unique(np.concatenate(labels))), 2)
    weighted = source.has_weights or job.class_weight is not None
    shape = shape_of(source, job, classes, weighted)
    resources = resources_for(job, shape, source)
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


def resources_for(job: Job, shape: Shape, source: DataSource) -> Resources:
    """Return how to work; keeping the features pays over the many sweeps of the converged mode."""
    settings = job.settings(1.0, source.dtype)
    many = settings.until_converged
    if shape.rehearsal and settings.tol >= ROUGH:  # some of the rows do nearly all
        many = False
    resources = job.place.fit_in(job.memory_limit, shape, job.threads, store=many)
    per_row = shape.centers + (SLOPES if settings.newton else 0)
    fused = worthwhile(shape.rows, per_row, settings.max_iter)
    return replace(resources, fused=fused, precise=settings.newton)


def shape_of(source: DataSource, job: Job, classes: int, weighted: bool) -> Shape:
    """Return what the memory and the time of a job depend on."""
    scheme, n = job.spec.resolve(source.n_features)
    columns = 1 if classes == 2 else classes
    shape = Shape.of(
        source,
        min(n, source.n_rows) if scheme in ("first", "random") else n,
        columns,
        weighted=weighted,
        quantiles=needs_sketch(job.spec.scaler),
    )
    if job.settings(1.0, source.dtype).newton:
        few = rehearsal_rows(shape.rows, shape.centers)
        shape = replace(shape, itemsize=8, curved=True, rehearsal=few)
    if job.calibration is not None:
        shape = replace(shape, cells=CALIBRATION_FOLDS, lanes=1 + CALIBRATION_FOLDS)
    return replace(shape, sample=sample_for(job, shape, source))


def sample_for(job: Job, shape: Shape, source: DataSource) -> Sample | None:
    """Return the rows that stand for all in the Gram matrix; None where all rows are better."""
    sample = sample_of(shape.rows, shape.centers, job.spec.seed)
    if job.gram == "exact" or sample is None or shape.curved:
        return None
    many = job.settings(1.0, source.dtype).until_converged
    columns = shape.columns * shape.lanes
    pays = sampling_pays(sample, shape.centers, shape.features, columns, converged=many)
    return sample if pays or job.gram == "sampled" else None
