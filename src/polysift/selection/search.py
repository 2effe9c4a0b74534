"""The search: a stage per scaler and degree, the choice among all candidates, the refit."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any, Protocol

import numpy as np

from polysift.data.source import DataSource
from polysift.engine.backend import FitContext, last_words
from polysift.engine.budget import Execution, Shape
from polysift.engine.sums import checked_gram
from polysift.features.feature_map import FeatureMap, MapSpec
from polysift.features.scalers import needs_sketch
from polysift.features.survey import Questions, categories_of
from polysift.runtime.arrays import require
from polysift.runtime.checkpoints import Checkpoint, digest
from polysift.runtime.errors import FeatureOverflowError
from polysift.runtime.parallel import single_threaded_blas
from polysift.runtime.progress import Monitor, OutOfTime, WorkersLostError
from polysift.runtime.types import FloatArray
from polysift.selection.candidates import (
    Row,
    SearchResult,
    Stopped,
    choose,
    row_from,
    seconds_alone,
    standard_error,
)
from polysift.selection.job import SearchJob
from polysift.selection.scoring import HeldOutScorer
from polysift.selection.stage import Kept, SearchContext, Stage, empty_rows, refit, refit_round
from polysift.solvers.result import Status
from polysift.training.fit import how_to_resume
from polysift.training.folds import Round, make_rounds
from polysift.training.preparation import Prepared, as_table, prepare, row_level_bytes
from polysift.training.stored_rows import is_stored, storing
from polysift.training.target_folds import with_targets

MAX_STANDARD_ERRORS_BEHIND = 0.5
"""How far a candidate may be behind the best of earlier stages, in standard errors."""


class StageCallback(Protocol):
    """Is told of the stages of a search, and may end it."""

    def begin(self) -> None:
        """Note that a stage begins."""

    def end(self, rows: list[Row], classes: Any) -> bool:
        """Take the rows of all stages so far; return whether to end the search."""


def search(
    source: DataSource, job: SearchJob, callback: StageCallback | None = None
) -> SearchResult:
    """Run a search, and return the results of all candidates and the refitted choice."""
    advice = how_to_resume(job.checkpoint)
    with (
        Monitor(job.time_limit, show=job.show) as monitor,
        single_threaded_blas(),
        last_words(job.backend, advice),
        storing(source, job.backend) as source,
    ):
        fit = FitContext(monitor, job.backend)
        try:
            prepared = _prepare(source, job, fit)
            job = replace(job, table=prepared.table)
        except OutOfTime as late:
            raise TimeoutError(_too_late(job, late.phase)) from None
        codes, weights, classes = prepared.data.codes, prepared.weights, prepared.classes
        rounds = make_rounds(job.cv, codes, weights, classes, groups=job.groups, seed=job.seed)
        prepared = with_targets(prepared, rounds[0], job.seed)
        kind = job.calibration or "sigmoid"
        scorer = HeldOutScorer(job.scorer, codes, classes, weights, kind)
        if job.checkpoint is not None:
            checkpoint = Checkpoint(job.checkpoint, _fingerprint(job, prepared, rounds))
            fit = replace(fit, checkpoint=checkpoint)
        try:
            context = SearchContext(prepared.data.source, job, prepared, rounds, fit, scorer)
            return _Search(context, callback).run()
        except WorkersLostError as lost:
            raise WorkersLostError(f"{lost} {advice}") from lost
        finally:
            if fit.checkpoint is not None:
                fit.checkpoint.close()


def _prepare(source: DataSource, job: SearchJob, fit: FitContext) -> Prepared:
    """Survey the rows, once for all stages."""

    def questions(table: bool) -> Questions:
        widest = _widest(source, replace(job, table=table))
        asked = widest.questions(source.n_features, labels=True, digest=job.checkpoint is not None)
        quantiles = table or needs_sketch(*job.scalers)
        hashes, levels = job.calibration is not None, bool(categories_of(source))
        return replace(asked, quantiles=quantiles, hashes=hashes, row_levels=levels)

    with fit.executing(_survey_execution(source, job)) as surveying:
        return prepare(source, _widest(source, job), questions, job.class_weight, surveying)


def _widest(source: DataSource, job: SearchJob) -> MapSpec:
    """Return the feature map that asks most of a survey."""
    specs = [job.map_spec(job.scalers[0], degree) for degree in job.degrees]
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
        weighted=source.has_weights or job.class_weight is not None,
        quantiles=as_table(source, _widest(source, job)) or needs_sketch(*job.scalers),
    )
    stored, levels = is_stored(source, job.backend), row_level_bytes(source)
    shape = replace(shape, decoded_once=stored, level_bytes=levels)
    return job.backend.fit_in(job.memory_limit, shape, job.threads)


class _Search:
    """The state of a running search: the stages that are done, and their rows."""

    def __init__(self, context: SearchContext, callback: StageCallback | None = None) -> None:
        self._context, self._job, self._callback = context, context.job, callback
        self._done: list[tuple[str | None, int]] = []
        self._rows: list[Row] = []
        self._kept: Kept | None = None
        self._refit_seconds = 0.0
        self._overflow: FeatureOverflowError | None = None
        self._restore()

    def run(self) -> SearchResult:
        """Run all stages, choose the best row, and refit its model."""
        job, monitor = self._job, self._context.fit.monitor
        if job.one_standard_error and np.isinf(
            self._error(Row({}, np.zeros(self._context.n_splits)))
        ):
            raise ValueError(
                "one_standard_error=True needs two splits or more, or accuracy as the score: cv "
                "has one split only. Set cv=5, say."
            )
        self._check_memory(self._most_centers(), job.memory_limit)
        status = self._run_stages()
        order = list(product(job.scalers, job.degrees))
        self._rows.sort(key=lambda row: order.index(_stage_of(row)))
        best = choose(self._rows, job.one_standard_error, self._validation_rows())
        if best is None:
            if status is Status.INTERRUPTED:
                raise KeyboardInterrupt
            if status is None and self._overflow is not None:
                raise self._overflow
            raise TimeoutError(_too_late(job, monitor.title))
        monitor.title = "refit"
        monitor.lift()  # the refit is not cut short: it would be another model
        model = refit(self._context, self._rows[best].params, self._kept) if job.refit else None
        classes = self._context.prepared.classes
        alone = seconds_alone(self._rows)
        return SearchResult(self._rows, best, classes, status, model, monitor.timings(), alone)

    def _run_stages(self) -> Status | None:
        """Run the stages that are not done yet; return why they were ended early, or None.

        High degrees come first: on large data they are the best, and then candidates of other
        stages are eliminated early.
        """
        stages = list(product(reversed(self._job.degrees), self._job.scalers))
        try:
            for number, (degree, scaler) in enumerate(stages):
                title = f"{scaler or 'no scaler'}, degree {degree} ({number + 1} of {len(stages)})"
                self._context.fit.monitor.title = title
                if (scaler, degree) not in self._done and self._follow(scaler, degree):
                    return Status.CALLBACK
        except Stopped as stop:
            return stop.status
        except OutOfTime:
            return Status.TIME_LIMIT
        except KeyboardInterrupt:
            if choose(self._rows) is None:
                raise
            return Status.INTERRUPTED
        return None

    def _follow(self, scaler: str | None, degree: int) -> bool:
        """Run a stage, and return whether the callback ends the search with the best row so far."""
        if self._callback is None:
            self._run_stage(scaler, degree)
            return False
        self._callback.begin()
        self._run_stage(scaler, degree)
        if choose(self._rows) is None:
            return False
        return self._callback.end(self._rows, self._context.prepared.classes)

    def _run_stage(self, scaler: str | None, degree: int) -> None:
        spec = self._job.map_spec(scaler, degree)
        try:
            feature_map = self._context.feature_map(spec)
            limit = self._room(feature_map)
            stage = Stage(self._context, spec, feature_map, self._bar(), limit)
            self._context.fit.monitor.reserve(self._refit_seconds)
            try:
                stage.run()
            finally:
                self._rows += stage.rows
        except FeatureOverflowError as error:
            self._leave_out(spec, error)
            return
        stage.estimate_costs()
        best = choose(self._rows)
        if best is not None and _stage_of(self._rows[best]) == (scaler, degree):
            self._keep(stage, self._rows[best])
        self._done.append((scaler, degree))
        self._save(scaler, degree)
        self._report(stage.rows, best)

    def _leave_out(self, spec: MapSpec, error: FeatureOverflowError) -> None:
        """Note that the candidates of a stage overflow; another run of the search tries again."""
        key = spec.scaler, spec.degree
        self._rows = [row for row in self._rows if _stage_of(row) != key]
        candidates = self._job.candidates(self._centers_of(spec))
        rows = list(empty_rows(self._context, spec, candidates).values())
        self._rows += [replace(row, overflow=True) for row in rows]
        self._overflow = error

    def _report(self, rows: list[Row], best: int | None) -> None:
        """Report the best score of a stage, and of all stages so far."""
        own = choose(rows)
        if own is None or best is None:
            return
        p = rows[own].params
        monitor = self._context.fit.monitor
        monitor.note(
            f"{monitor.title}: {rows[own].mean:.5g} with n_centers={p['n_centers']}, "
            f"solver={p['solver']!r}; best so far {self._rows[best].mean:.5g}"
        )

    def _keep(self, stage: Stage, best: Row) -> None:
        """Keep the Gram matrices for the refit of the best row so far, and estimate its time."""
        scaler, degree = _stage_of(best)
        self._refit_seconds = best.iterations * stage.sweep_seconds
        if self._job.calibration is not None:
            self._refit_seconds *= 2.0  # the models without a fold share its sweeps
        if not self._context.rounds[0].complete:
            self._refit_seconds += stage.gram_seconds
        elif self._job.refit and stage.sums is not None:
            self._kept = Kept(scaler, degree, stage.sums)

    def _room(self, feature_map: FeatureMap) -> int:
        """Return the bytes a stage may allocate; drop kept Gram matrices if these are too few."""
        limit = self._job.memory_limit
        if self._kept is None:
            return limit
        room = limit - self._kept.sums.G.nbytes
        try:
            self._check_memory(feature_map.n_centers, room)
        except MemoryError:
            self._kept = None
            return limit
        return room

    def _check_memory(self, n: int, limit: int) -> None:
        """Raise if a stage with n centers, or its refit, needs more than ``limit`` bytes."""
        job, context = self._job, self._context
        last = refit_round(context)
        rounds = context.rounds if last is None else [*context.rounds, last]
        folds = 0 if last is None or job.calibration is None else last.n_splits
        shape = replace(
            context.shape(n, max(round_.n_fold_parts for round_ in rounds)),
            problems=max(1 + folds, *(round_.n_splits for round_ in context.rounds)),
            calibrated=folds > 0,
        )
        job.backend.fit_in(limit, shape, job.threads)

    def _most_centers(self) -> int:
        return max(self._centers_of(self._job.map_spec(None, s)) for s in self._job.degrees)

    def _centers_of(self, spec: MapSpec) -> int:
        """Return the number of centers of a feature map."""
        scheme, n = spec.resolve(self._context.source.n_features)
        rows = self._context.prepared.found.candidates
        return n if scheme == "uniform" or rows is None else min(n, max(len(rows.keys), 1))

    def _bar(self) -> float:
        """Return the mean score below which candidates are eliminated at a rung."""
        best = choose(self._rows)
        if best is None:
            return -np.inf
        return self._rows[best].mean - MAX_STANDARD_ERRORS_BEHIND * self._error(self._rows[best])

    def _error(self, row: Row) -> float:
        return standard_error(row, self._validation_rows())

    def _validation_rows(self) -> float | None:
        """Return the weight of the validation part, if there is a single one scored by accuracy."""
        if self._context.n_splits > 1 or self._job.scorer is not None:
            return None
        held_out = self._context.rounds[0].fold_parts == 0
        weights = self._context.prepared.weights
        return float(held_out.sum() if weights is None else weights @ held_out)

    def _save(self, scaler: str | None, degree: int) -> None:
        """Save the stages that are done, and drop the states of the last one."""
        checkpoint = self._context.fit.checkpoint
        if checkpoint is None:
            return
        kept = [row for row in self._rows if not row.overflow]
        rows = [vars(row) | {"scores": list(row.scores)} for row in kept]
        values: dict[str, Any] = {"done": self._done, "rows": rows, "kept": None}
        values["refit_seconds"] = self._refit_seconds
        arrays: dict[str, FloatArray] = {}
        if self._kept is not None:
            values["kept"] = [self._kept.scaler, self._kept.degree]
            arrays = {"G": self._kept.sums.G, "Aty": self._kept.sums.Aty}
        if checkpoint.save("search", arrays, values):
            checkpoint.drop(f"*-{scaler}-{degree}-*")

    def _restore(self) -> None:
        checkpoint = self._context.fit.checkpoint
        if checkpoint is None:
            return
        with checkpoint.using("search"):
            saved = checkpoint.load("search")
            if saved is not None:
                self._resume(*saved)

    def _resume(self, arrays: dict[str, FloatArray], values: dict[str, Any]) -> None:
        """Resume from what ``_save`` has saved."""
        stages = set(product(self._job.scalers, self._job.degrees))
        self._done = [(scaler, degree) for scaler, degree in values["done"]]
        self._rows = [row_from(row, self._context.n_splits) for row in values["rows"]]
        schemed = [isinstance(self._job.centers, str)] * len(self._rows)
        require(["centers" in row.params for row in self._rows] == schemed, "centers are odd")
        require(
            set(self._done) | {_stage_of(row) for row in self._rows} <= stages, "a stage is odd"
        )
        self._refit_seconds = float(values["refit_seconds"])
        if values["kept"] is not None:
            scaler, degree = values["kept"]
            require((scaler, degree) in stages, "the kept stage must be of this search")
            own = [row for row in self._rows if _stage_of(row) == (scaler, degree)]
            n = max((row.params["n_centers"] for row in own), default=0)
            self._kept = Kept(scaler, degree, checked_gram(arrays, "G", "Aty", n))


def _stage_of(row: Row) -> tuple[str | None, int]:
    """Return the scaler and the degree of a row, which name its stage."""
    return row.params["scaler"], row.params["degree"]


def _fingerprint(job: SearchJob, prepared: Prepared, rounds: list[Round]) -> dict[str, Any]:
    """Return plain values by which a checkpoint recognises this search."""
    return {
        **job.parameters,
        **prepared.fingerprint(),
        "search": True,
        "seed": job.seed,
        "splits": digest(*(round_.fold_parts for round_ in rounds)),
    }


def _too_late(job: SearchJob, where: str) -> str:
    kept = "" if job.checkpoint is None else f" The checkpoint {job.checkpoint} keeps what is done."
    return (
        f"time_limit={job.time_limit:g} s struck before a first candidate was finished (in: "
        f"{where}).{kept} Raise time_limit, or search less: fewer degrees, scalers or centers."
    )
