"""Runs of the ADMM that share sweeps: one fit, or many candidates and folds of a search.

One fit with its folds: the model, and scores of every row by a model that did not see it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from polysift.engine.local import Engine
from polysift.engine.sampling import Sample
from polysift.engine.sums import GramSums
from polysift.runtime.checkpoints import Checkpoint
from polysift.runtime.parallel import Pool
from polysift.runtime.progress import Monitor, OutOfTime
from polysift.runtime.types import FloatArray
from polysift.solvers.admm import Factor, Run, Settings, factorise
from polysift.solvers.conjugate_gradients import sampled_sums, take_steps
from polysift.solvers.newton import NewtonRun
from polysift.solvers.result import HISTORY_COLUMNS, Result, Status

AnyRun = Run | NewtonRun


class IterationHook(Protocol):
    """Whoever wants to know of iterations."""

    def begin(self) -> None:
        """Learn that an iteration begins."""

    def end(self, u: FloatArray) -> bool:
        """Learn that it has ended, with these coefficients; true asks to stop."""


class Batch:
    """Runs that advance together, through the same sweeps of one engine.

    Parameters
    ----------
    engine : Engine
        The data.
    runs : sequence of Run
        The runs. Neighbours should have the same number of centers. The first leads: it is the one
        that is reported.
    monitor : Monitor, optional
        Told of each iteration; may raise ``OutOfTime``, which ends all runs with their latest u.
    checkpoint : Checkpoint, optional
        Where to save the runs, as the state ``name``, and to go on from.
    pool : Pool, optional
        Threads for the u-steps.
    report : bool
        Whether the monitor is told of each iteration.
    since : float, optional
        The ``perf_counter`` from which the history counts seconds; now by default.

    Attributes
    ----------
    runs : sequence of Run
        The runs.
    note : dict
        Plain values of the owner's that are saved and restored along.
    """

    def __init__(
        self,
        engine: Engine,
        runs: Sequence[AnyRun],
        *,
        monitor: Monitor | None = None,
        checkpoint: Checkpoint | None = None,
        name: str = "solver",
        pool: Pool | None = None,
        report: bool = True,
        since: float | None = None,
    ) -> None:
        self._engine, self.runs = engine, runs
        self._monitor = monitor or Monitor()
        self._checkpoint, self._name = checkpoint, name
        self._pool = pool or Pool(1)
        self._report = report
        self.note: dict[str, Any] = {}
        self._alive = list(range(len(runs)))
        if not self._restore():
            engine.begin(len(runs))
        self._before = max((run.rows[-1]["seconds"] for run in runs if run.rows), default=0.0)
        self._began = perf_counter() if since is None else since

    def advance(self, until: int | None = None, hook: IterationHook | None = None) -> None:
        """Iterate until every run has ended, or has had ``until`` iterations.

        ``hook`` is told when each iteration of the first run begins, and given its u; it may end
        all runs.
        """
        lead = self.runs[0]
        try:
            self._retire()
            while self._alive and (until is None or self._active()[0].iterates < until):
                watched = hook if lead.status is None else None
                if watched is not None:
                    watched.begin()
                self._iterate()
                if watched is not None and watched.end(lead.coefficients()):
                    for run in self._active():
                        run.status = run.status or Status.CALLBACK
                self._retire()
                if self._checkpoint is not None and (not self._alive or self._checkpoint.due()):
                    self.save()
                if self._alive:
                    self._monitor.check()
        except (OutOfTime, KeyboardInterrupt) as stop:
            if all(run.iterates == 0 for run in self.runs):
                raise
            late = isinstance(stop, OutOfTime)
            for run in self._active():
                run.status = Status.TIME_LIMIT if late else Status.INTERRUPTED
        self._complete_histories()

    def drop(self, runs: Sequence[AnyRun]) -> None:
        """Let runs rest where they are, for good."""
        gone = {id(run) for run in runs}
        self._keep([i for i in self._alive if id(self.runs[i]) not in gone])

    def save(self) -> None:
        """Save all runs."""
        if self._checkpoint is None:
            return
        self._complete_histories()
        arrays = {"state": self._engine.state}
        own: list[dict[str, Any]] = []
        for i, run in enumerate(self.runs):
            found, plain = run.saved()
            arrays |= {f"{name}-{i}": array for name, array in found.items()}
            own.append(plain)
        words = [None if run.status is None else run.status.name for run in self.runs]
        rows = [run.rows for run in self.runs]
        values = {"alive": self._alive, "rows": rows, "status": words, "note": self.note}
        values["own"] = own
        self._checkpoint.save(self._name, arrays, values)
        self._engine.saved(self._checkpoint, self._name)

    def _restore(self) -> bool:
        def state(values: dict[str, Any]) -> dict[str, Any]:
            self._engine.begin(len(values["alive"]))
            return {"state": self._engine.state}

        saved = None if self._checkpoint is None else self._checkpoint.load(self._name, state)
        if saved is None:
            return False
        assert self._checkpoint is not None
        self._engine.saved(self._checkpoint, self._name)
        arrays, values = saved
        self._alive, self.note = values["alive"], values["note"]
        for i, run in enumerate(self.runs):
            own = {
                key.removesuffix(f"-{i}"): x for key, x in arrays.items() if key.endswith(f"-{i}")
            }
            run.restore(own, values["own"][i])
            run.rows, word = values["rows"][i], values["status"][i]
            run.iterates = len(run.rows)
            run.status = None if word is None else Status[word]
        return True

    def _active(self) -> list[AnyRun]:
        return [self.runs[i] for i in self._alive]

    def _iterate(self) -> None:
        """Take every run's u-step, then sweep for those that need it."""
        take_steps(self._engine, self._active(), self._pool)
        self._retire()
        runs = self._active()
        if not runs:
            return
        u = np.zeros((max(run.problem.n for run in runs), sum(run.u.shape[1] for run in runs)))
        K = runs[0].u.shape[1]
        for i, run in enumerate(runs):
            u[: run.problem.n, i * K : (i + 1) * K] = run.u
        swept = self._engine.sweep([run.problem for run in runs], u)
        seconds = self._seconds()["seconds"]

        def absorb(item: tuple[int, Any]) -> None:
            i, run = item
            run.absorb(swept.of_problem(i, run.problem.n), seconds)

        for _ in self._pool.map(absorb, enumerate(runs)):
            pass
        for i, run in enumerate(runs):
            run.finish(self._engine, i)
        if self._report:
            self._monitor.iteration(runs[0].iterates, runs[0].rows[-1])

    def _retire(self) -> None:
        """Free the state of runs that have ended."""
        self._keep([i for i in self._alive if self.runs[i].status is None])

    def _keep(self, alive: list[int]) -> None:
        if alive != self._alive:
            self._engine.keep([self._alive.index(i) for i in alive])
            self._alive = alive

    def _complete_histories(self) -> None:
        """Give iterations whose sweep was skipped or cut short their row."""
        for run in self.runs:
            if run.status is not None and len(run.rows) < run.iterates:
                run.rows.append(dict.fromkeys(HISTORY_COLUMNS, np.nan) | self._seconds())

    def _seconds(self) -> dict[str, float]:
        return {"seconds": self._before + perf_counter() - self._began}


def begin_run(
    factor: Factor, Aty: FloatArray, settings: Settings, m: float, without: int | None = None
) -> AnyRun:
    """Return a run of the method that the settings ask for."""
    kind = NewtonRun if settings.newton else Run
    return kind(factor, Aty, settings, m, without)


def gram_sums(
    engine: Engine,
    settings: Settings,
    sample: Sample | None,
    pool: Pool,
    monitor: Monitor | None,
    checkpoint: Checkpoint | None,
) -> GramSums:
    """Return the sums that do not depend on u: over all rows, or by a sample of them."""
    if sample is None:
        return engine.gram()
    return sampled_sums(engine, sample, settings, pool=pool, monitor=monitor, checkpoint=checkpoint)


def solve(
    engine: Engine,
    settings: Settings,
    *,
    u0: FloatArray | None = None,
    monitor: Monitor | None = None,
    checkpoint: Checkpoint | None = None,
    hook: IterationHook | None = None,
    sample: Sample | None = None,
    pool: Pool | None = None,
    former: NewtonRun | None = None,
) -> Result:
    """Run the ADMM once, over all rows.

    Parameters
    ----------
    engine : Engine
        The data.
    settings : Settings
        How to run.
    u0 : ndarray of shape (n, K), optional
        Coefficients to start from. By default the paper's start, (u, v, w) = (0, y, 0).
    monitor : Monitor, optional
        Told of each iteration; may raise ``OutOfTime``, which ends the run with the latest u.
    checkpoint : Checkpoint, optional
        Where to save the state, and to go on from.
    hook : IterationHook, optional
        Told when each iteration begins, and given its u; it may end the run.
    sample : Sample, optional
        The rows that stand for all in the Gram matrix; all by default.
    pool : Pool, optional
        Threads for their Gram matrix.
    former : NewtonRun, optional
        A run over some of the rows, after which to begin.
    """
    began, m = perf_counter(), engine.total_weight()
    if former is not None:
        run: AnyRun = NewtonRun.after(former, settings, m)
    else:
        sums = gram_sums(engine, settings, sample, pool or Pool(1), monitor, checkpoint)
        G, Aty = sums.over()
        run = begin_run(factorise(G, settings, sums.trace_over()), Aty, settings, m)
        del sums, G  # n x n numbers that nobody needs any more
    batch = Batch(engine, [run], monitor=monitor, checkpoint=checkpoint, since=began)
    if u0 is not None and run.iterates == 0:
        run.start_from(engine, u0)
    batch.advance(hook=hook)
    return run.result()


CALIBRATION_FOLDS = 5


def new_run(
    sums: GramSums, settings: Callable[[float], Settings], m: float, without: int | None = None
) -> AnyRun:
    """Return a run over all rows but those of one fold part, of total weight m."""
    G, Aty = sums.over(without)
    chosen = settings(m)
    return begin_run(factorise(G, chosen, sums.trace_over(without)), Aty, chosen, m, without)


def solve_with_folds(
    engine: Engine,
    sums: GramSums | Sequence[NewtonRun],
    settings: Callable[[float], Settings],
    n_folds: int,
    pool: Pool,
    *,
    monitor: Monitor,
    checkpoint: Checkpoint | None = None,
    name: str = "solver",
    hook: IterationHook | None = None,
) -> tuple[Result, FloatArray]:
    """Run the ADMM over all rows and, in the same sweeps, without each fold (a fold part of rows).

    Returns the result of the former, and the scores (m, K) of each row by the run without its
    fold, if there are folds.
    ``sums`` are the engine's, or runs over some of the rows, to begin after; ``settings`` takes a
    total weight of rows. The scores need one pass more, also after a time limit has struck.
    """
    began = perf_counter()
    folds: list[int | None] = [None, *range(n_folds)]
    weights = [engine.total_weight(fold) for fold in folds]
    runs: list[AnyRun] = []
    if isinstance(sums, GramSums):
        runs += [new_run(sums, settings, m, fold) for m, fold in zip(weights, folds, strict=True)]
    else:
        begun = zip(weights, sums, strict=True)
        runs += [NewtonRun.after(former, settings(m), m) for m, former in begun]
    batch = Batch(
        engine,
        runs,
        monitor=monitor,
        checkpoint=checkpoint,
        name=name,
        pool=pool,
        since=began,
    )
    batch.advance(hook=hook)
    monitor.lift()
    if not n_folds:
        return runs[0].result(), np.empty((0, 0))
    scores = engine.scores([runs[0].problem], [run.coefficients() for run in runs[1:]])
    return runs[0].result(), np.asarray(scores)
