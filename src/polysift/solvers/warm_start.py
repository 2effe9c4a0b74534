"""Newton's method on some of the rows first: all of them are visited only near the minimum.

The rows are drawn evenly by their places in the data, and count as often as they stand for. Where
there are many rows per center their minimum is near that of all rows. The method goes on there with
the same coordinates, whose Gram matrix need not be that of all rows, and with what it has learned
of the curvature.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from polysift.data.source import ArraySource, TrainingSet
from polysift.engine.local import Engine
from polysift.engine.sampling import ROUGH, Draw, Picked
from polysift.runtime.parallel import Pool
from polysift.runtime.progress import Monitor
from polysift.solvers.admm import Settings
from polysift.solvers.loop import Batch, new_run
from polysift.solvers.newton import NewtonRun
from polysift.solvers.result import Status

FITTED = 0.5
"""Centers per row: a loss of less says more of the rows that were drawn than of all."""


def fit_subsample(
    engine: Engine,
    data: TrainingSet,
    draw: Draw,
    engine_for: Callable[[TrainingSet], Engine],
    settings: Callable[[float], Settings],
    folds: Sequence[int | None],
    *,
    pool: Pool,
    monitor: Monitor,
) -> list[NewtonRun] | None:
    """Return runs over some of the rows, at their ends; None if there are too few to learn from.

    Parameters
    ----------
    engine : Engine
        All rows.
    data : TrainingSet
        Their classes and folds.
    draw : Draw
        Who is drawn.
    engine_for : callable
        Returns an engine for a training set in memory.
    settings : callable
        Takes a total weight of rows.
    folds : sequence of int or None
        The fold part of rows that each run leaves out.
    pool : Pool
        Threads.
    monitor : Monitor
        Told of the passes.
    """
    picked = engine.pick(draw)
    n = picked.Aty.shape[1]
    if picked.n_rows < n:
        return None
    small = engine_for(_training_set(picked, data))
    sums = small.gram()

    def loosely(m: float) -> Settings:
        found = settings(m)
        return replace(found, tol=max(found.tol, ROUGH))

    begun = [new_run(sums, loosely, small.total_weight(fold), fold) for fold in folds]
    runs = [run for run in begun if isinstance(run, NewtonRun)]
    for run in runs:
        for column in run.columns:
            column.enough = FITTED * n / picked.n_rows
    Batch(small, runs, monitor=monitor, pool=pool, report=False).advance()
    if any(run.status is Status.INTERRUPTED for run in runs):
        raise KeyboardInterrupt  # before there was a model of all rows
    return runs


def _training_set(picked: Picked, data: TrainingSet) -> TrainingSet:
    """Return picked rows as a training set, in which they count as often as they stand for."""
    sparse = sp.issparse(picked.X[0])
    source = ArraySource(sp.vstack(picked.X, format="csr") if sparse else np.vstack(picked.X))
    fold_parts = None
    if data.n_fold_parts > 1:
        lengths = [len(counts) for counts in picked.counts]
        fold_parts = np.repeat(np.array(picked.fold_parts, np.int64), lengths)
    codes, counts = np.concatenate(picked.codes), np.concatenate(picked.counts)
    return TrainingSet(source, codes, data.n_classes, counts, fold_parts, data.n_fold_parts)
