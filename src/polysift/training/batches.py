"""One batch of ``partial_fit``: its sums are added, and the model is that of all rows so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from polysift.data.source import DataSource
from polysift.engine.backend import FitContext
from polysift.runtime.parallel import single_threaded_blas
from polysift.runtime.progress import Monitor, OutOfTime
from polysift.solvers.running import RunningSums, first_iterate
from polysift.training.fit import Trained, WarmStart, map_rows, summarise
from polysift.training.job import Job
from polysift.training.plan import execution_for, shape_of
from polysift.training.stored_rows import storing


def train_batch(
    source: DataSource,
    job: Job,
    before: RunningSums | None,
    start: Callable[[Any], WarmStart] | None,
) -> tuple[Trained, RunningSums]:
    """Add a batch of rows to the sums of those before; return the model of all, and the sums.

    Parameters
    ----------
    source : DataSource
        The rows of the batch.
    job : Job
        The parameters, and all classes.
    before : RunningSums or None
        The sums of the batches before; None if this is the first.
    start : callable, optional
        Takes the classes, returns the feature map of the batches before as a warm start.
    """
    settings: Any = job.settings
    job = replace(job, settings=replace(settings, max_iter=1))
    with (
        Monitor(job.time_limit, show=job.show) as monitor,
        single_threaded_blas(),
        storing(source, job.backend) as source,
    ):
        context = FitContext(monitor, job.backend)
        try:
            mapped = map_rows(source, job, context, start)
            job, prepared = mapped.job, mapped.prepared
            data = prepared.data
            if before is None:
                before = RunningSums.zeros(mapped.feature_map.n_centers, data.n_columns)
            shape = shape_of(source, job, len(prepared.classes), data.weighted)
            with context.executing(execution_for(job, shape)) as context:
                engine = context.engine(data, mapped.feature_map)
                sums, result = first_iterate(engine, job.settings, before)
        except OutOfTime:
            raise TimeoutError(
                f"time_limit={job.time_limit:g} s struck before the batch was added; the model is "
                "as before. Raise time_limit, or pass smaller batches."
            ) from None
    summary = summarise(prepared, job.memory_limit, context)
    summary["expected_memory"] = job.backend.peak_bytes(shape, context.execution)
    trained = Trained(
        mapped.feature_map.fitted(),
        prepared.classes,
        result,
        monitor.timings(),
        summary,
        columns=prepared.columns,
        notes=prepared.notes,
        selection=mapped.selection,
    )
    return trained, sums
