"""One fit with its folds: the model, and scores of every row by a model that did not see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter

import numpy as np

from polysift.engine.local import Engine
from polysift.engine.sums import GramSums
from polysift.runtime.checkpoints import Checkpoint
from polysift.runtime.parallel import Pool
from polysift.runtime.progress import Monitor
from polysift.runtime.types import FloatArray
from polysift.solvers.admm import Settings, factorise
from polysift.solvers.loop import AnyRun, Batch, IterationHook, begin_run
from polysift.solvers.newton import NewtonRun
from polysift.solvers.result import Result

CALIBRATION_FOLDS = 5


def new_run(
    sums: GramSums, settings: Callable[[float], Settings], m: float, without: int | None = None
) -> AnyRun:
    """Return a run over all rows but those of one cell, of total weight m."""
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
    """Run the ADMM over all rows and, in the same sweeps, without each fold (a cell of rows).

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
    scores = engine.scores([runs[0].lane], [run.coefficients() for run in runs[1:]])
    return runs[0].result(), np.asarray(scores)
