"""The forecast of a search: that of the fit with which it ends, and the stages before."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any

from polysift.data.source import DataSource
from polysift.selection.candidates import Variant
from polysift.selection.costs import (
    MAX_EXTRA_OPERATIONS,
    MAX_FINALISTS_HIGH,
    final_variants,
    stage_operations,
)
from polysift.selection.job import SearchJob
from polysift.selection.levels import level_centers, sample_sizes
from polysift.selection.results import SURVIVING_SHARE
from polysift.training.job import Job
from polysift.training.plan import Forecast, plan

RIVALS = 6
"""The rivals of an automatic choice, of which the forecast does not know the degree."""


def plan_search(source: DataSource, job: SearchJob) -> Forecast:
    """Return the forecast of a search; the number of classes is that of the first two shards."""
    variants = job.grid() if job.openings is None else job.weighed([(job.spec, True)])
    widest = max(variants, key=lambda variant: _centers(source, variant))
    n = _centers(source, widest)
    candidates = job.candidates(widest, n)
    fit = Job(
        spec=replace(widest.spec, n_centers=n),
        settings=job.settings(candidates[-1]),
        class_weight=job.class_weights[0],
        threads=job.threads,
        memory_limit=job.memory_limit,
        time_limit=job.time_limit,
        checkpoint=job.checkpoint,
        parameters=job.parameters,
        show=False,
        calibration=next(iter(job.calibrations), None),
        backend=job.backend,
        threshold=job.threshold,
    )
    forecast = plan(source, fit)
    columns = 1 if forecast.classes == 2 else forecast.classes
    splits, reads = _splits(job.cv), [candidate.reads[-1] for candidate in candidates]
    racing = len(variants) if job.openings is None else 1 + RIVALS * len(job.class_weights)
    total = 0.0
    for size in sample_sizes(source, job):
        own = level_centers(size, n)
        total += racing * stage_operations(size, own, columns, splits, reads)
        racing = -(-racing // SURVIVING_SHARE)
    if sample_sizes(source, job):
        most = MAX_FINALISTS_HIGH if job.effort == "high" else final_variants(source.n_rows, n)
        racing, reads = min(racing, most), reads[:2]
    one = stage_operations(source.n_rows, n, columns, splits, reads)
    free = float(source.n_rows) * n**2  # the Gram matrix of the last fit
    if job.openings is not None and job.effort != "high" and job.screen:
        least = 0 if sample_sizes(source, job) else 1
        racing = min(racing, max(int((MAX_EXTRA_OPERATIONS + free) / one), least))
    total += racing * one
    gram = forecast.seconds_by_phase["Gram matrix"]
    seconds = max(total / free - 1.0, 0.0) * gram
    phases = forecast.seconds_by_phase | {"search": seconds}
    return replace(forecast, seconds=forecast.seconds + seconds, seconds_by_phase=phases)


def _centers(source: DataSource, variant: Variant) -> int:
    """Return the most centers of a variant."""
    scheme, n = variant.spec.resolve(source.n_features)
    return min(n, source.n_rows) if scheme in ("first", "random") else n


def _splits(cv: Any) -> int:
    """Return the number of splits, as far as it is known without the rows."""
    if cv is None or isinstance(cv, Real):
        return 5 if cv is None else max(int(float(cv)), 1)
    try:
        return int(cv.get_n_splits())
    except (AttributeError, TypeError, ValueError):
        return 5
