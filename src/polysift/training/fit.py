"""A fit from start to end: survey, labels, feature map, execution, engine, solver, calibration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from polysift.data.source import DataSource
from polysift.data.training_set import TrainingSet
from polysift.engine.backend import LOCAL, FitContext, last_words
from polysift.engine.budget import Execution, Shape
from polysift.engine.compiled import with_loops
from polysift.engine.sampling import Draw
from polysift.features.columns import TableColumns, column_facts
from polysift.features.feature_map import (
    FeatureMap,
    MapSpec,
    build_feature_map,
    refuse_overflow,
)
from polysift.features.survey import Questions, categories_of
from polysift.runtime.checkpoints import Checkpoint, digest
from polysift.runtime.parallel import single_threaded_blas
from polysift.runtime.progress import Monitor, OutOfTime, WorkersLostError
from polysift.runtime.types import FloatArray
from polysift.solvers.conjugate_gradients import SampledGram
from polysift.solvers.initial_point import InitialPoint, initial_point
from polysift.solvers.loop import IterationCallback
from polysift.solvers.result import Result
from polysift.solvers.starts import (
    CALIBRATION_FOLDS,
    FullGram,
    Start,
    solve,
)
from polysift.solvers.subsample import Subsample
from polysift.training.calibration import Calibration, best_calibration
from polysift.training.choice import MapChooser, auto_centers_of, enough_centers, sampled_rows
from polysift.training.folds import Round, ScoredRows, scored_rows
from polysift.training.held_out import (
    LeaveOneOutRows,
    leave_one_out_rows,
    out_of_fold_facts,
    unseen_rows,
)
from polysift.training.job import Job
from polysift.training.plan import execution_for, plan, shape_of
from polysift.training.preparation import Prepared, as_table, prepare
from polysift.training.stored_rows import storing
from polysift.training.target_folds import with_targets
from polysift.training.thresholds import Threshold, Thresholds, learn_thresholds


@dataclass(frozen=True)
class WarmStart:
    """The feature map, the coefficients (n, K) and the choice of an earlier fit, to start from."""

    feature_map: FeatureMap
    u: FloatArray
    selection: dict[str, Any] | None = None


@dataclass(frozen=True)
class Trained:
    """A fitted model, and how it was fitted.

    Attributes
    ----------
    feature_map : FeatureMap
        The features.
    classes : ndarray
        The classes.
    result : Result
        The coefficients, the status and the history of the solver.
    timings : dict of str to float
        Seconds by phase.
    summary : dict
        What the model was trained on and with (see ``summarise``).
    calibration : Calibration or None
        The calibrator, if probabilities were asked for.
    columns : TableColumns or None
        What the columns were found to be; None where an iteration is reported.
    notes : tuple of str
        Sentences on the columns.
    selection : dict or None
        How the feature map was chosen, as plain values, if it was.
    thresholds : Thresholds or None
        The decision thresholds, if there are any.
    held_out : dict or None
        The figures on rows that were not seen, as plain values, where they are known.
    unscored : LeaveOneOutRows or None
        What such figures are found from when they are asked for, if they were left for then.
    """

    feature_map: FeatureMap
    classes: Any
    result: Result
    timings: dict[str, float]
    summary: dict[str, Any]
    calibration: Calibration | None = None
    columns: TableColumns | None = None
    notes: tuple[str, ...] = ()
    selection: dict[str, Any] | None = None
    thresholds: Thresholds | None = None
    held_out: dict[str, Any] | None = None
    unscored: LeaveOneOutRows | None = None


def train(
    source: DataSource,
    job: Job,
    *,
    start: Callable[[Any], WarmStart] | None = None,
    initial: Any = None,
    callback: Callable[[FeatureMap, Any], IterationCallback] | None = None,
) -> Trained:
    """Run a job and return the fitted model.

    Parameters
    ----------
    source : DataSource
        The rows.
    job : Job
        The parameters of the fit.
    start : callable, optional
        Takes the classes, returns the warm start.
    initial : tuple, optional
        The initial point of Algorithm 1, (u0, v0, w0).
    callback : callable, optional
        Takes the feature map and the classes, returns the callback of the iterations.
    """
    advice = how_to_resume(job.checkpoint)
    with (
        Monitor(job.time_limit, show=job.show) as monitor,
        single_threaded_blas(),
        last_words(job.backend, advice),
        storing(source, job.backend) as source,
    ):
        context = FitContext(monitor, job.backend)
        try:
            mapped = map_rows(source, job, context, start)
            job, prepared, warm = mapped.job, mapped.prepared, mapped.warm
            feature_map, folds = mapped.feature_map, prepared.folds
            if job.threshold is not None:
                job.threshold.check_classes(prepared.classes)
            data, point = _folded(prepared, folds), None
            if initial is not None:
                point = initial_point(initial, data, feature_map.n_centers)
            if job.checkpoint is not None:
                checkpoint = Checkpoint(job.checkpoint, _fingerprint(job, prepared, warm, point))
                context = replace(context, checkpoint=checkpoint)
            fitted_map = feature_map.fitted()
            follow = None if callback is None else callback(fitted_map, prepared.classes)
            shape = shape_of(source, job, len(prepared.classes), prepared.data.weighted)
            with context.executing(execution_for(job, shape)) as context:
                result, scores = solve(
                    context.engine(data, feature_map),
                    job.settings,
                    context,
                    n_folds=0 if folds is None else folds.n_splits,
                    scored=folds is not None,
                    start=_start(data, feature_map, job, shape, warm=warm is not None),
                    u0=None if warm is None else warm.u,
                    point=point,
                    callback=follow,
                )
                afresh = warm is None and point is None
                learned = _learned_from_scores(mapped, result, scores, context, afresh)
        except OutOfTime as late:
            raise TimeoutError(_too_late(source, job, late)) from None
        except WorkersLostError as lost:
            raise WorkersLostError(f"{lost} {advice}") from lost
        finally:
            if context.checkpoint is not None:
                context.checkpoint.close()
    summary = summarise(prepared, job.memory_limit, context)
    summary["expected_memory"] = job.backend.peak_bytes(shape, context.execution)
    return Trained(
        fitted_map,
        prepared.classes,
        result,
        monitor.timings(),
        summary,
        columns=prepared.columns,
        notes=prepared.notes,
        selection=mapped.selection,
        **learned,
    )


@dataclass(frozen=True)
class Mapped:
    """Rows that are ready to be summed up.

    Attributes
    ----------
    job : Job
        The job, with what its parameters left open.
    prepared : Prepared
        What the survey has found.
    feature_map : FeatureMap
        The features.
    selection : dict or None
        How the feature map was chosen, if it was.
    warm : WarmStart or None
        The warm start, if there is one.
    """

    job: Job
    prepared: Prepared
    feature_map: FeatureMap
    selection: dict[str, Any] | None
    warm: WarmStart | None


def map_rows(
    source: DataSource,
    job: Job,
    context: FitContext,
    start: Callable[[Any], WarmStart] | None,
) -> Mapped:
    """Survey the rows, and choose and learn their feature map, or take that of a warm start."""
    prepared = _surveyed(source, job, context, warm=start is not None)
    job = replace(job, spec=_counted(job, prepared))
    warm = None if start is None else start(prepared.classes)
    if warm is None:
        prepared = with_targets(prepared, prepared.folds, job.spec.seed)
    job, selection = _chosen(source, job, prepared, context)
    selection = selection if warm is None else warm.selection
    feature_map = _feature_map(source, job, prepared, warm)
    return Mapped(job, prepared, feature_map, selection, warm)


def _surveyed(source: DataSource, job: Job, context: FitContext, *, warm: bool) -> Prepared:
    """Survey the rows, within the memory of a fit with two classes."""
    gather = job.backend.gathers or job.held_out
    levels = not warm and bool(categories_of(source))
    share, choosing = 0.0, job.openings is not None
    if not warm:
        _, n = job.spec.resolve(source.n_features)
        n = n if choosing else 0  # then the sample serves only to score rows without themselves
        share = sampled_rows(source.n_rows, source.n_features, n) / source.n_rows
    spec, digests = replace(job.spec, table=as_table(source, job.spec)), job.checkpoint is not None
    asked = spec.questions(source.n_features, labels=True, digest=digests)
    folds = job.held_out  # they are dealt when labels are known
    asked = replace(
        _with_open_centers(asked, job, source),
        gather=gather,
        sampled=share,
        hashes=folds,
        targets=levels and not folds,
        row_levels=levels and folds,
    )
    with context.executing(_least_execution(source, job)) as surveying:
        return prepare(
            source,
            job.spec,
            asked,
            job.class_weight,
            surveying,
            job.classes,
            resample=choosing,
        )


def _with_open_centers(asked: Questions, job: Job, source: DataSource) -> Questions:
    """Return questions that also ask for the rows that may be centers once more is known.

    Another degree, or fewer centers by the weights of the rows, may need other ones.
    """
    spec = job.spec
    is_open = job.openings is not None or (job.auto_centers and source.has_weights)
    if not is_open or not isinstance(spec.centers, str) or spec.centers == "uniform":
        return asked
    scheme = "random" if spec.centers == "auto" else spec.centers
    return replace(asked, scheme=scheme, n_centers=spec.n_centers or asked.n_centers)


def _counted(job: Job, prepared: Prepared) -> MapSpec:
    """Return the parameters of the feature map for rows whose weights are known."""
    spec = replace(job.spec, table=prepared.table)
    if not job.auto_centers:
        return spec
    return replace(spec, n_centers=auto_centers_of(prepared))


def _chosen(
    source: DataSource, job: Job, prepared: Prepared, context: FitContext
) -> tuple[Job, dict[str, Any] | None]:
    """Return the job with what its parameters leave open, and how that was chosen."""
    if job.openings is None or prepared.sample is None or not len(prepared.sample.codes):
        return job, None
    _, most = job.spec.resolve(source.n_features)
    execution = _least_execution(source, job)
    # The trials together compare about as many ranks as the fit.
    execution = with_loops(execution, source.n_rows, most, 0, source.n_features)
    with context.executing(execution) as trying:
        chooser = MapChooser(prepared, job.openings, trying)
        best = chooser.choose(job.spec)
    n = job.spec.n_centers
    if job.openings.centers and n is not None:
        n = enough_centers(best, n)
    spec = replace(best.spec, n_centers=n)
    return replace(job, spec=spec), chooser.facts(best)


def _least_execution(source: DataSource, job: Job) -> Execution:
    """Return the execution of a pass before the classes are known: that of a fit with two."""
    least = shape_of(source, job, 2, source.has_weights)
    return job.backend.fit_in(job.memory_limit, least, job.threads)


def _feature_map(
    source: DataSource, job: Job, prepared: Prepared, warm: WarmStart | None
) -> FeatureMap:
    """Return the feature map: learned from the survey, or that of a warm start."""
    total_weight = prepared.data.total_weight()
    if warm is None:
        return build_feature_map(job.spec, prepared.found, source.dtype, total_weight)
    refuse_overflow(warm.feature_map, prepared.numbers, source.dtype, total_weight)
    return warm.feature_map


def summarise(prepared: Prepared, memory_limit: int, context: FitContext) -> dict[str, Any]:
    """Return the data and the resources of a fit as plain values."""
    source = prepared.data.source
    return {
        "rows": source.n_rows,
        "class_counts": prepared.counts,
        "dtype": str(source.dtype),
        "origin": source.origin,
        "label": source.label,
        "threads": context.execution.threads,
        "workers": context.backend.workers,
        "memory_limit": memory_limit,
        "expected_memory": None,
        "measured_memory": context.monitor.memory(),
        "columns": column_facts(prepared.columns, prepared.found.levels),
    }


def _folded(prepared: Prepared, folds: Round | None) -> TrainingSet:
    """Return the rows, divided into the folds of a calibration, if there are any."""
    if folds is None or not folds.n_splits:
        return prepared.data
    return replace(prepared.data, fold_parts=folds.fold_parts, n_fold_parts=folds.n_fold_parts)


def _learned_from_scores(
    mapped: Mapped, result: Result, scores: FloatArray, context: FitContext, afresh: bool
) -> dict[str, Any]:
    """Return what rows say that a model has not seen, by the names of ``Trained``.

    ``scores`` are those of the rows by models without their folds. Without folds, leave-one-out
    scores say how good a fit is that was made ``afresh``, from no other model.
    """
    job, prepared, folds = mapped.job, mapped.prepared, mapped.prepared.folds
    calibration = thresholds = held_out = unscored = None
    if folds is not None:
        kinds = () if job.calibration is None else (job.calibration,)
        own = scores, prepared.data.codes, prepared.weights
        known = scored_rows(folds, *own, CALIBRATION_FOLDS)
        calibration, thresholds = learned_from_held_out(
            kinds, job.threshold, prepared.classes, known
        )
    learned = calibration, thresholds
    if folds is not None and folds.n_splits:
        held_out = out_of_fold_facts(prepared, unseen_rows(known), result, *learned)
    elif afresh:
        unscored = leave_one_out_rows(prepared, mapped.feature_map, result, *learned)
        if unscored is not None and not unscored.can_wait:
            held_out, unscored = unscored.facts(context), None
    return {
        "calibration": calibration,
        "thresholds": thresholds,
        "held_out": held_out,
        "unscored": unscored,
    }


def learned_from_held_out(
    calibrations: Sequence[str], threshold: Threshold | None, classes: Any, known: ScoredRows
) -> tuple[Calibration | None, Thresholds | None]:
    """Return the calibration and the decision thresholds by the scores of held-out rows.

    Each is None where it is not asked for; see ``best_calibration`` and ``learn_thresholds``.
    """
    scores, codes, weights, folds = known
    calibrated = learned = None
    if calibrations:
        calibrated = best_calibration(calibrations, scores, codes, len(classes), weights, folds)
    if threshold is not None:
        learned = learn_thresholds(threshold, scores, codes, classes, weights, folds)
    return calibrated, learned


def _start(data: TrainingSet, feature_map: FeatureMap, job: Job, shape: Shape, warm: bool) -> Start:
    """Return the start of the solvers: on all rows, with a sampled Gram matrix, or a subsample."""
    if shape.sample is not None:
        return SampledGram(shape.sample)
    if not shape.subsample or warm:
        return FullGram()
    few = replace(shape, rows=shape.subsample, unit_bytes=0, subsample=0)
    execution = execution_for(replace(job, backend=LOCAL), few)
    draw = Draw(job.spec.seed, shape.subsample / shape.rows)
    return Subsample(data, feature_map, draw, execution)


def _fingerprint(
    job: Job, prepared: Prepared, warm: WarmStart | None, point: InitialPoint | None
) -> dict[str, Any]:
    """Return plain values by which a checkpoint recognises this fit."""
    start = None if warm is None else digest(warm.u, warm.feature_map.centers)
    return {
        **job.parameters,
        **prepared.fingerprint(),
        "seed": job.spec.seed,
        "start": start if point is None else digest(point.u, point.v, point.w),
    }


def how_to_resume(checkpoint: Any) -> str:
    """Return the advice for an error after workers were lost."""
    if checkpoint is None:
        return "Nothing is kept; set checkpoint to be able to resume after such a loss."
    return f"The checkpoint {checkpoint} keeps what is done: fit again with it to resume."


def _too_late(source: DataSource, job: Job, late: OutOfTime) -> str:
    expected = plan(source, job)
    kept = ""
    if job.checkpoint is not None and late.phase != "survey":  # nothing of a survey is saved
        kept = f" The checkpoint {job.checkpoint} keeps what is done."
    return (
        f"time_limit={job.time_limit:g} s struck in the phase '{late.phase}' ({late.share:.0%} of "
        f"it was done), before there was a first model; the forecast for the whole fit is about "
        f"{expected.seconds:.3g} s.{kept} Raise time_limit, lower n_centers, or set checkpoint to "
        "resume later."
    )
