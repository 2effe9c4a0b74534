"""How the solvers of a fit start, and the functions that run them.

A ``Start`` makes the solvers: from the Gram matrix of all rows (``FullGram``), from a sampled one
(``conjugate_gradients``), or after a run on a subsample (``subsample``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from polysift.engine.backend import FitContext
from polysift.engine.engine import Engine, FullEngine
from polysift.engine.sums import GramSums
from polysift.runtime import clock
from polysift.runtime.types import FloatArray
from polysift.solvers.admm import Admm
from polysift.solvers.factor import Ridge, chosen_ridge, factored
from polysift.solvers.gcv import RidgeChoice
from polysift.solvers.initial_point import InitialPoint
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
    """A start with the Gram matrix of all rows: ``sums``, or by a pass if None.

    ``chosen`` is the rho that was chosen from these sums before, and how, if it was.
    """

    sums: GramSums | None = None
    chosen: tuple[Ridge, RidgeChoice | None] | None = None

    def solvers(
        self,
        engine: Engine,
        settings: SolverSettings,
        folds: Sequence[int | None],
        context: FitContext,
    ) -> list[Solver]:
        """Return a solver for each fold, over all rows but those of that fold part."""
        sums = engine.gram() if self.sums is None else self.sums
        ridge, choice = self.chosen or chosen_ridge(sums, settings.ridge, engine.total_weight())
        solvers = []
        for fold in folds:
            factor, Aty = factored(sums, ridge, fold, choice=choice)
            solvers.append(settings.solver(factor, Aty, engine.total_weight(fold), fold))
        return solvers


FULL_GRAM = FullGram()
"""The start of a fit that has the whole Gram matrix computed."""


def solve(
    engine: FullEngine,
    settings: SolverSettings,
    context: FitContext,
    *,
    n_folds: int = 0,
    scored: bool = False,
    start: Start = FULL_GRAM,
    u0: FloatArray | None = None,
    point: InitialPoint | None = None,
    name: str = "solver",
    callback: IterationCallback | None = None,
) -> tuple[Result, FloatArray]:
    """Minimise the mean loss over all rows and, in the same sweeps, without each fold.

    Parameters
    ----------
    engine : FullEngine
        The passes over the rows.
    settings : SolverSettings
        The method.
    context : FitContext
        Threads, progress, the checkpoint.
    n_folds : int
        The folds, which are the first fold parts of the engine's rows.
    scored : bool
        Whether to return scores without folds, too: those of all rows, which are in one fold part.
    start : Start
        How the solvers start.
    u0 : ndarray of shape (n, K), optional
        Coefficients to start from. By default the paper's start, (u, v, w) = (0, y, 0).
    point : InitialPoint, optional
        The point to start the ADMM from, on this machine.
    name : str
        The name of the solvers' state in the checkpoint.
    callback : IterationCallback, optional
        Called before and after each iteration; may end the run.

    Returns
    -------
    result : Result
        The outcome over all rows.
    scores : ndarray of shape (m, K)
        The score of each row by the solver without its fold, if asked for or there are folds;
        else empty. They take one more pass, also after the time limit.
    """
    began = clock.now()
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
    if u0 is not None and solvers[0].iterates == 0:
        solvers[0].start_from(engine, u0)
    if point is not None and solvers[0].iterates == 0:
        assert isinstance(solvers[0], Admm)
        solvers[0].start_at(engine, point)
    loop.run(callback=callback)
    context.monitor.lift()
    scores = np.empty((0, 0))
    if n_folds or scored:
        own = [solver.coefficients() for solver in solvers[1 if n_folds else 0 :]]
        scores = np.asarray(engine.scores([solvers[0].problem], own))
    first = solvers[0]
    result = replace(first.result(), solver=settings.name, leave_one_out=first.leave_one_out())
    return result, scores
