"""How the solvers of a fit start, and the functions that run them.

A ``Start`` makes the solvers: from the Gram matrix of all rows (``FullGram``), from a sampled one
(``conjugate_gradients``), or after a run on a subsample (``warm_start``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from polysift.engine.context import FitContext
from polysift.engine.engine import Engine, FullEngine
from polysift.engine.sums import GramSums
from polysift.runtime.types import FloatArray
from polysift.solvers.factor import factorise
from polysift.solvers.loop import IterationCallback, Loop
from polysift.solvers.result import Result
from polysift.solvers.solver import Solver, SolverSettings

CALIBRATION_FOLDS = 5
"""The number of folds whose held-out scores a calibration learns from."""


class Start(Protocol):
    """A way to make the solvers of a fit."""

    def solvers(
        self,
        engine: FullEngine,
        settings: Any,
        folds: Sequence[int | None],
        context: FitContext,
    ) -> Sequence[Solver]:
        """Return a solver for each fold, over all rows but those of that fold part."""


@dataclass(frozen=True)
class FullGram:
    """A start with the Gram matrix of all rows: ``sums``, or by a pass if None."""

    sums: GramSums | None = None

    def solvers(
        self,
        engine: Engine,
        settings: SolverSettings,
        folds: Sequence[int | None],
        context: FitContext,
    ) -> list[Solver]:
        """Return a solver for each fold, over all rows but those of that fold part."""
        sums = engine.gram() if self.sums is None else self.sums
        return [new_solver(sums, settings, engine.total_weight(fold), fold) for fold in folds]


def new_solver(
    sums: GramSums, settings: SolverSettings, m: float, without: int | None = None
) -> Solver:
    """Return a solver over all rows but those of one fold part, of total weight m."""
    G, Aty = sums.over(without)
    return settings.solver(factorise(G, settings.ridge), Aty, m, without)


def solve(
    engine: FullEngine,
    settings: SolverSettings,
    context: FitContext,
    *,
    start: Start = FullGram(),
    u0: FloatArray | None = None,
    callback: IterationCallback | None = None,
) -> Result:
    """Minimise the mean loss over all rows.

    Parameters
    ----------
    engine : FullEngine
        The passes over the rows.
    settings : SolverSettings
        The solver and its parameters.
    context : FitContext
        Threads, progress, the checkpoint.
    start : Start
        How the solver starts.
    u0 : ndarray of shape (n, K), optional
        Coefficients to start from. By default the paper's start, (u, v, w) = (0, y, 0).
    callback : IterationCallback, optional
        Called before and after each iteration; may stop the run.
    """
    began = perf_counter()
    (solver,) = start.solvers(engine, settings, [None], context)
    loop = Loop(
        engine, [solver], monitor=context.monitor, checkpoint=context.checkpoint, since=began
    )
    if u0 is not None and solver.iterates == 0:
        solver.start_from(engine, u0)
    loop.run(callback=callback)
    return solver.result()


def solve_with_folds(
    engine: FullEngine,
    settings: SolverSettings,
    n_folds: int,
    context: FitContext,
    *,
    start: Start = FullGram(),
    name: str = "solver",
    callback: IterationCallback | None = None,
) -> tuple[Result, FloatArray]:
    """Minimise over all rows and, in the same sweeps, without each fold.

    Return the result of the former, and the scores (m, K) of each row by the solver without its
    fold, if there are folds. The scores need one more pass, even after the time limit.
    """
    began = perf_counter()
    solvers = start.solvers(engine, settings, [None, *range(n_folds)], context)
    loop = Loop(
        engine,
        solvers,
        monitor=context.monitor,
        checkpoint=context.checkpoint,
        name=name,
        pool=context.pool,
        since=began,
    )
    loop.run(callback=callback)
    context.monitor.lift()
    if not n_folds:
        return solvers[0].result(), np.empty((0, 0))
    scores = engine.scores([solvers[0].problem], [s.coefficients() for s in solvers[1:]])
    return solvers[0].result(), np.asarray(scores)
