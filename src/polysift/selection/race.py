"""The race of a search: levels of ever more rows, a stage for each variant, and the model.

The automatic choice of a plain fit comes first, so that there is a model within seconds, and rivals
of it follow. After each level the best variants and candidates go on to more rows, and the best one
so far is fitted to the rows of the level: it is what remains if the search is ended.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from polysift.runtime.errors import FeatureOverflowError
from polysift.runtime.progress import OutOfTime
from polysift.selection.candidates import (
    Candidate,
    NoModel,
    Row,
    SearchResult,
    Stopped,
    Variant,
    best_so_far,
    seconds_alone,
)
from polysift.selection.costs import Costs, affordable, finalists
from polysift.selection.job import SearchJob
from polysift.selection.levels import Level
from polysift.selection.refit import Kept, refit
from polysift.selection.results import SURVIVING_SHARE, Racing, Results
from polysift.selection.saving import as_saved, restored
from polysift.selection.stage import SearchContext, Stage, state_name
from polysift.selection.variants import automatic_variants, first_choice
from polysift.solvers.result import Status
from polysift.training.fit import Trained
from polysift.training.held_out import UnseenRows
from polysift.training.plan import duration

MAX_SECONDS_AFTER_INTERRUPT = 10.0
"""After Ctrl-C a refit is begun only if it takes no longer, by its forecast, or if there is no
model of a sample."""


FIRST = "first choice"
"""The name of the variant of the first model, which leaves when the first level is done."""


class StageCallback(Protocol):
    """Is told of the stages of a search, and may end it.

    Attributes
    ----------
    keeps_models : bool
        Whether the models that come before the last one are wanted.
    """

    keeps_models: bool

    def begin(self) -> None:
        """Note that a stage begins."""

    def end(self, rows: list[Row], classes: Any) -> bool:
        """Take the rows of all stages so far; return whether to end the search."""

    def model(self, found: SearchResult) -> None:
        """Take the best model so far, of some rows, with the result as if the search ended now."""


class Race:
    """The state of a running search.

    ``_racing`` has the variants of the current level with their candidates that take part, and
    ``_done`` the names of those that are done; ``_model`` is a model of a level that is done, and
    the row it belongs to, and ``_unseen`` the best row with its scores of held-out rows.
    """

    def __init__(self, context: SearchContext, callback: StageCallback | None = None) -> None:
        self._context, self._job, self._callback = context, context.job, callback
        self._monitor = context.fit.monitor
        self._results = Results(context)
        self._at = 0
        self._racing: Racing = []
        self._done: list[str] = []
        self._kept: Kept | None = None
        self._model: tuple[Row, Trained] | None = None
        self._unseen: tuple[Row, UnseenRows | None] | None = None
        self._costs = Costs(context)
        self._over_time: list[tuple[float, float]] = []
        self._overflow: FeatureOverflowError | None = None

    def run(self) -> SearchResult:
        """Run all levels, choose the best row, and refit its model."""
        job = self._job
        if job.one_standard_error and np.isinf(
            self._results.error(Row({}, np.zeros(self._context.n_splits)))
        ):
            raise ValueError(
                "one_standard_error=True needs two splits or more, or accuracy as the score: cv "
                "has one split only. Set cv=5, say."
            )
        status = self._run_levels()
        rows = self._results.in_order()
        chosen = self._results.chosen(rows, one_standard_error=job.one_standard_error)
        if chosen is None:
            if status is Status.INTERRUPTED:
                raise NoModel(status)
            if status is None and self._overflow is not None:
                raise self._overflow
            raise NoModel(Status.TIME_LIMIT, too_late(job, self._monitor.title))
        model = None
        if job.refit:
            chosen, model = self._final(chosen, status)
        if status is None and model is not None and model.result.status is Status.TIME_LIMIT:
            status = Status.TIME_LIMIT
        return self._result(chosen, model, status)

    def _result(self, chosen: Row, model: Trained | None, status: Status | None) -> SearchResult:
        rows = self._results.in_order()
        return SearchResult(
            rows,
            next(i for i, row in enumerate(rows) if row is chosen),
            self._context.prepared.classes,
            status,
            model,
            self._monitor.timings(),
            seconds_alone(rows),
            self._context.whole.n_rows,
            self._over_time,
        )

    # The levels

    def _run_levels(self) -> Status | None:
        """Run the levels that are not done yet; return why they were ended early, or None."""
        try:
            self._begin()
            while True:
                level = self._context.levels[self._at]
                if self._run_level(level):
                    return Status.CALLBACK
                if level.whole:
                    return None
                self._fit_to(level)
                self._results.rows.pop(FIRST, None)
                following = self._context.levels[self._at + 1]
                racing = self._results.survivors(self._racing, level, following)
                if not racing:  # to compare on all rows would take longer than the last fit
                    return None
                self._at, self._racing, self._done = self._at + 1, racing, []
        except Stopped as stop:
            return stop.status
        except OutOfTime:
            return Status.TIME_LIMIT
        except KeyboardInterrupt:
            return Status.INTERRUPTED

    def _begin(self) -> None:
        """Choose what takes part in the first level, or take it from the checkpoint."""
        job, context = self._job, self._context
        if job.openings is None:
            variants = job.grid()
        else:
            self._monitor.title = "automatic choice"
            self._first_model()
            variants, selection = automatic_variants(context)
            self._context = replace(context, selection=selection)
        self._results.variants |= {variant.name: variant for variant in variants}
        centers = [context.centers_of(variant.spec) for variant in variants]
        self._check_memory(max(centers), job.memory_limit)
        racing = [(variant, self._results.candidates(variant)) for variant in variants]
        self._racing = affordable(context, context.levels[0], racing)
        self._restore()

    def _first_model(self) -> None:
        """Fit a model to the first sample at once, where the automatic choice takes long."""
        level = self._context.levels[0]
        spec = first_choice(self._context)
        if spec is None or level.whole or self._context.fit.checkpoint is not None:
            return
        self._monitor.title = f"first choice{level.title}"
        (variant, *_) = self._job.weighed([(spec, True)])
        variant = replace(variant, name=FIRST)
        self._run_stage(level, variant, self._results.candidates(variant)[:1])
        self._fit_to(level)

    def _run_level(self, level: Level) -> bool:
        """Run the stages of a level; return whether the callback ends the search."""
        count = len(self._racing)
        for number, (variant, candidates) in enumerate(self._racing, start=1):
            if variant.name in self._done:
                continue
            self._monitor.title = f"{variant.name} ({number} of {count}{level.title})"
            self._results.add(variant, self._results.candidates(variant))  # also those not run
            expected = self._costs.seconds(level, [(variant, candidates)])
            if expected is not None and expected > self._monitor.seconds_left():
                raise Stopped(Status.TIME_LIMIT)
            if self._follow(level, variant, candidates):
                return True
        return False

    def _follow(self, level: Level, variant: Variant, candidates: list[Candidate]) -> bool:
        """Run a stage, and return whether the callback ends the search with the best row so far."""
        if self._callback is None:
            self._run_stage(level, variant, candidates)
            return False
        self._callback.begin()
        self._run_stage(level, variant, candidates)
        if self._results.best() is None:
            return False
        return self._callback.end(self._results.in_order(), self._context.prepared.classes)

    def _run_stage(self, level: Level, variant: Variant, candidates: list[Candidate]) -> None:
        """Compare the candidates of a variant on the rows of a level."""
        rows = self._results.add(variant, candidates)
        began = self._monitor.elapsed()
        try:
            limit = self._room(level, variant)
            stage = Stage(self._context, level, variant, rows, self._results.bar(level), limit)
            self._monitor.reserve(self._reserve())
            stage.run()
        except FeatureOverflowError as error:
            self._overflow = error
            for row in rows.values():
                row.overflow = True
            return
        seconds = self._monitor.elapsed() - began
        self._costs.measured(level, variant, candidates, seconds)
        if level.whole:
            stage.estimate_costs()
        best = self._results.best()
        if any(row is best for row in rows.values()):
            self._keep(stage, level, variant)
            self._unseen = None if best is None else (best, stage.unseen(best))
        self._done.append(variant.name)
        self._save(level, variant)
        self._report(list(rows.values()))

    def _report(self, rows: list[Row]) -> None:
        """Report the best score of a stage, and of all stages so far."""
        own, best = best_so_far(rows), self._results.best()
        if own is None or best is None:
            return
        values = rows[own].values
        if not self._over_time or self._over_time[-1][1] != best.mean:
            self._over_time.append((self._monitor.elapsed(), best.mean))
        self._monitor.stage(
            f"{self._monitor.title}: {rows[own].mean:.5g} with n_centers={values['n_centers']}, "
            f"solver={values['solver']!r}; best so far {best.mean:.5g}{self._time_left()}"
        )

    def _time_left(self) -> str:
        """Return the expected time of what is left, as far as it is known, as text."""
        levels, total = self._context.levels, 0.0
        racing = [pair for pair in self._racing if pair[0].name not in self._done]
        for level in levels[self._at :]:
            total += self._costs.seconds(level, racing) or 0.0
            count = -(-len(self._racing) // SURVIVING_SHARE)
            racing = self._racing[: min(count, finalists(self._context, self._racing))]
        return f", about {duration(total)} left" if total else ""

    # The model

    def _fit_to(self, level: Level) -> None:
        """Fit the best row so far to the rows of a level, to have a model if the search ends."""
        best = self._results.best()
        if best is not None and self._job.refit:
            with self._monitor.keeping_limit():
                self._model = best, self._refit(level, best)
                if self._callback is not None and self._callback.keeps_models:
                    self._callback.model(self._result(*self._model, Status.INTERRUPTED))

    def _refit(self, level: Level, row: Row) -> Trained:
        scored, unseen = self._unseen or (None, None)
        place = self._results.place(row)
        unseen = unseen if scored is row else None
        return refit(self._context, level, *place, row, self._kept, unseen)

    def _final(self, row: Row, status: Status | None) -> tuple[Row, Trained]:
        """Fit a row to all rows, or to a sample where there is no time for that."""
        monitor, level = self._monitor, self._level_in_time(row, status)
        if self._model is not None and not level.whole:
            return self._model
        monitor.title = "refit"
        monitor.reserve(0.0)
        if self._model is None:
            monitor.lift()  # a refit that is cut short would be no model at all
        try:
            return row, self._refit(level, row)
        except (OutOfTime, KeyboardInterrupt):
            if self._model is None:
                raise NoModel(Status.INTERRUPTED) from None
            return self._model

    def _level_in_time(self, row: Row, status: Status | None) -> Level:
        """Return the level of most rows to which a row can be refitted in time, else the first."""
        seconds = self._monitor.seconds_left()
        if status is Status.INTERRUPTED:
            seconds = min(seconds, MAX_SECONDS_AFTER_INTERRUPT)
        place = self._results.place(row)
        for level in reversed(self._context.levels):
            expected = self._costs.refit_seconds(level, *place, self._kept)
            if expected is None or expected <= seconds:
                return level
        return self._context.levels[0]

    def _reserve(self) -> float:
        """Return the seconds to leave for the refit, if there is time for it at all."""
        best = self._results.best()
        if best is None or not self._job.refit:
            return 0.0
        place = self._results.place(best)
        expected = self._costs.refit_seconds(self._context.whole, *place, self._kept)
        late = expected is None or expected > self._monitor.seconds_left()
        return 0.0 if late or expected is None else expected

    def _keep(self, stage: Stage, level: Level, variant: Variant) -> None:
        """Keep the Gram matrices for the refit of the best row so far."""
        if level.rounds[0].complete and self._job.refit and stage.sums is not None:
            self._kept = Kept(variant.name, level.n_rows, stage.sums, stage.ridges)

    # Memory

    def _room(self, level: Level, variant: Variant) -> int:
        """Return the bytes a stage may allocate; drop kept Gram matrices if these are too few."""
        limit = self._job.memory_limit
        if self._kept is None:
            return limit
        room = limit - self._kept.sums.G.nbytes
        try:
            n = level.most_centers(self._context.centers_of(variant.spec))
            self._check_memory(n, room)
        except MemoryError:
            self._kept = None
            return limit
        return room

    def _check_memory(self, n: int, limit: int) -> None:
        """Raise if a stage with n centers, or its refit, needs more than ``limit`` bytes."""
        job, context, level = self._job, self._context, self._context.whole
        last = level.refit_round
        rounds = level.rounds if last is None else [*level.rounds, last]
        folds = last.n_splits if last is not None and context.held_out else 0
        shape = replace(
            context.shape(level, n, max(round_.n_fold_parts for round_ in rounds)),
            problems=max(1 + folds, *(round_.n_splits for round_ in level.rounds)),
            calibrated=folds > 0,
        )
        job.backend.fit_in(limit, shape, job.threads)

    # The checkpoint

    def _save(self, level: Level, variant: Variant) -> None:
        """Save the stages that are done, and drop the states of the last one."""
        checkpoint = self._context.fit.checkpoint
        if checkpoint is None:
            return
        state = as_saved(self._results, self._at, self._racing, self._done, self._kept)
        if checkpoint.save("search", *state):
            checkpoint.drop(f"*{state_name(self._context, level, variant)}-*")

    def _restore(self) -> None:
        """Go on from the checkpoint, if there is something."""
        checkpoint = self._context.fit.checkpoint
        if checkpoint is None:
            return
        with checkpoint.using("search"):
            saved = checkpoint.load("search")
            if saved is not None:
                state = restored(self._context, self._results, *saved)
                self._at, self._racing, self._done, self._kept = state


def too_late(job: SearchJob, where: str) -> str:
    """Return the message where there is no candidate yet when the time limit strikes."""
    kept = "" if job.checkpoint is None else f" The checkpoint {job.checkpoint} keeps what is done."
    return (
        f"time_limit={job.time_limit:g} s struck before a first candidate was finished (in: "
        f"{where}).{kept} Raise time_limit, or search less: fewer degrees, scalers or centers."
    )
