"""The search from start to end: the survey, the splits, the checkpoint, and the race."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

from polysift.data.source import DataSource
from polysift.engine.backend import FitContext, last_words
from polysift.engine.budget import Execution, Shape
from polysift.features.feature_map import MapSpec
from polysift.features.survey import categories_of
from polysift.runtime.checkpoints import Checkpoint, digest
from polysift.runtime.parallel import single_threaded_blas
from polysift.runtime.progress import Monitor, OutOfTime, WorkersLostError
from polysift.selection.candidates import NoModel, SearchResult
from polysift.selection.job import SearchJob
from polysift.selection.last_resort import last_resort
from polysift.selection.levels import make_levels, sample_sizes
from polysift.selection.race import Race, StageCallback, too_late
from polysift.selection.stage import SearchContext
from polysift.selection.variants import plain_share
from polysift.solvers.result import Status
from polysift.training.choice import auto_centers_of
from polysift.training.fit import how_to_resume
from polysift.training.folds import Round, make_rounds
from polysift.training.preparation import Prepared, as_table, prepare, row_level_bytes
from polysift.training.stored_rows import is_stored, storing
from polysift.training.target_folds import with_targets


def search(
    source: DataSource,
    job: SearchJob,
    callback: StageCallback | None = None,
    began: float | None = None,
) -> SearchResult:
    """Run a search, and return the results of all candidates and the refitted choice.

    If it is ended before there is a model, the result is that of one quick candidate on a few rows.
    Where models are kept as they come, that one is made before all else.

    Parameters
    ----------
    source : DataSource
        The rows.
    job : SearchJob
        The parameters of the search.
    callback : StageCallback, optional
        Is told of stages and models.
    began : float, optional
        When the time limit began, by ``clock.now``; now by default.
    """
    quick = None
    try:
        if callback is not None and callback.keeps_models:
            quick = _quick_model(source, job, callback)
        return _search(source, job, callback, began)
    except NoModel as ended:
        quick = quick or last_resort(source, job, _search)
        if quick is not None:
            return replace(quick, status=ended.status)
        if ended.status is Status.INTERRUPTED:
            raise KeyboardInterrupt from None
        raise TimeoutError(ended.message) from None


def _quick_model(
    source: DataSource, job: SearchJob, callback: StageCallback
) -> SearchResult | None:
    """Pass a quick model of a few rows to whoever keeps models; None if there can be none."""
    try:
        with warnings.catch_warnings():  # what few rows lack, all may have
            warnings.simplefilter("ignore")
            quick = last_resort(source, job, _search)
        if quick is not None and quick.model is not None:
            callback.model(replace(quick, status=Status.INTERRUPTED))
    except KeyboardInterrupt:
        raise NoModel(Status.INTERRUPTED) from None
    if quick is not None and quick.status is Status.INTERRUPTED:
        raise NoModel(Status.INTERRUPTED)
    return quick


def _search(
    source: DataSource,
    job: SearchJob,
    callback: StageCallback | None = None,
    began: float | None = None,
) -> SearchResult:
    """Run a search; raise ``NoModel`` if it is ended before there is one."""
    advice = how_to_resume(job.checkpoint)
    with (
        Monitor(job.time_limit, show=job.show, by_stage=True, began=began) as monitor,
        single_threaded_blas(),
        last_words(job.backend, advice),
        storing(source, job.backend) as source,
    ):
        fit = FitContext(monitor, job.backend)
        try:
            prepared = _prepare(source, job, fit)
            spec = replace(job.spec, table=prepared.table)
            if job.openings is not None and job.openings.centers:
                spec = replace(spec, n_centers=auto_centers_of(prepared))
            job = replace(job, spec=spec)
            codes, weights, classes = prepared.data.codes, prepared.weights, prepared.classes
            if job.threshold is not None:
                job.threshold.check_classes(classes)
            rounds = make_rounds(job.cv, codes, weights, classes, groups=job.groups, seed=job.seed)
            prepared = with_targets(prepared, rounds[0], job.seed)
        except OutOfTime as late:
            raise NoModel(Status.TIME_LIMIT, too_late(job, late.phase)) from None
        except KeyboardInterrupt:
            raise NoModel(Status.INTERRUPTED) from None
        if job.checkpoint is not None:
            checkpoint = Checkpoint(job.checkpoint, _fingerprint(job, prepared, rounds))
            fit = replace(fit, checkpoint=checkpoint)
        try:
            context = SearchContext(job, prepared, make_levels(prepared, job, rounds), fit)
            return Race(context, callback).run()
        except WorkersLostError as lost:
            raise WorkersLostError(f"{lost} {advice}") from lost
        finally:
            if fit.checkpoint is not None:
                fit.checkpoint.close()


def _prepare(source: DataSource, job: SearchJob, fit: FitContext) -> Prepared:
    """Survey the rows, once for all stages."""
    share = max([plain_share(source, job), *(s / source.n_rows for s in sample_sizes(source, job))])
    spec = _widest(source, job)
    table = as_table(source, spec)
    widest = _widest(source, replace(job, spec=replace(job.spec, table=table)))
    asked = widest.questions(source.n_features, labels=True, digest=job.checkpoint is not None)
    centers = job.spec.centers
    if job.openings is not None and isinstance(centers, str) and centers != "uniform":
        # Which centers a map has is known once it is chosen.
        scheme = "random" if centers == "auto" else centers
        asked = replace(asked, scheme=scheme, n_centers=job.spec.n_centers or asked.n_centers)
    asked = replace(
        asked,
        quantiles=table or job.quantiles,
        hashes=bool(job.calibrations) or job.threshold is not None,
        sampled=min(share, 1.0),
        row_levels=bool(categories_of(source)),
    )
    with fit.executing(_survey_execution(source, job)) as surveying:
        return prepare(source, spec, asked, job.class_weights[0], surveying)


def _widest(source: DataSource, job: SearchJob) -> MapSpec:
    """Return the feature map that asks most of a survey."""
    if job.openings is not None:
        return job.spec
    specs = [variant.spec for variant in job.grid()]
    return max(specs, key=lambda spec: _demand(source, spec))


def _demand(source: DataSource, spec: MapSpec) -> tuple[bool, int]:
    scheme, n = spec.resolve(source.n_features)
    return scheme in ("first", "random"), n


def _survey_execution(source: DataSource, job: SearchJob) -> Execution:
    """Return the execution of a pass before the stages."""
    by_rows, n = _demand(source, _widest(source, job))
    shape = Shape.of(
        source,
        min(n, source.n_rows) if by_rows else n,
        1,
        weighted=source.has_weights or job.class_weights != [None],
        quantiles=as_table(source, _widest(source, job)) or job.quantiles,
    )
    stored, levels = is_stored(source, job.backend), row_level_bytes(source)
    shape = replace(shape, decoded_once=stored, level_bytes=levels)
    return job.backend.fit_in(job.memory_limit, shape, job.threads)


def _fingerprint(job: SearchJob, prepared: Prepared, rounds: list[Round]) -> dict[str, Any]:
    """Return plain values by which a checkpoint recognises this search."""
    return {
        **job.parameters,
        **prepared.fingerprint(),
        "search": True,
        "seed": job.seed,
        "splits": digest(*(round_.fold_parts for round_ in rounds)),
    }
