"""The subsample warm start of Newton's method: passes over all rows begin near the minimum.

The subsample is uniform, and its rows are weighted to represent all rows. With many rows per center
its minimum is near that of all rows. From there the method continues on all rows with the same
coordinates, whose Gram matrix need not be that of all rows, and with the same inverse Hessian.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from polysift.data.source import ArraySource
from polysift.data.training_set import TrainingSet
from polysift.engine.backend import LOCAL, FitContext
from polysift.engine.budget import Execution
from polysift.engine.engine import SamplingEngine
from polysift.engine.sampling import Draw, Picked
from polysift.features.feature_map import FeatureMap
from polysift.solvers.factor import chosen_ridge, factored
from polysift.solvers.loop import Loop
from polysift.solvers.newton import ROUGH_TOLERANCE, Newton, NewtonSettings
from polysift.solvers.result import Status
from polysift.solvers.solver import Solver
from polysift.solvers.starts import FullGram

OVERFITTED_LOSS = 0.5
"""The loss, in centers per row, below which a run on a subsample stops: it overfits."""


@dataclass(frozen=True)
class Subsample:
    """A start after runs on a subsample; if that has too few rows, one on all rows.

    Attributes
    ----------
    data : TrainingSet
        All rows, with their classes and fold parts.
    feature_map : FeatureMap
        The features.
    draw : Draw
        Which rows are sampled.
    execution : Execution
        How the passes over the subsample are executed, in this process.
    """

    data: TrainingSet
    feature_map: FeatureMap
    draw: Draw
    execution: Execution

    def solvers(
        self,
        engine: SamplingEngine,
        settings: NewtonSettings,
        folds: Sequence[int | None],
        context: FitContext,
    ) -> Sequence[Solver]:
        """Return a solver for each fold, over all rows but those of that fold part."""
        former = self._fitted(engine, settings, folds, context)
        if former is None:
            return FullGram().solvers(engine, settings, folds, context)
        return [
            Newton.after(solver, settings, engine.total_weight(fold))
            for solver, fold in zip(former, folds, strict=True)
        ]

    def _fitted(
        self,
        engine: SamplingEngine,
        settings: NewtonSettings,
        folds: Sequence[int | None],
        context: FitContext,
    ) -> list[Newton] | None:
        """Return solvers that ran on a subsample; None if it has too few rows."""
        picked = engine.pick(self.draw)
        n = picked.Aty.shape[1]
        if picked.n_rows < n:
            return None
        here = replace(context, backend=LOCAL, checkpoint=None, execution=self.execution)
        small = here.engine(_training_set(picked, self.data), self.feature_map)
        sums, rough = small.gram(), replace(settings, tol=max(settings.tol, ROUGH_TOLERANCE))
        solvers = []
        ridge, choice = chosen_ridge(sums, rough.ridge, small.total_weight())
        for fold in folds:
            factor, Aty = factored(sums, ridge, fold)
            factor = replace(factor, choice=choice)
            solvers.append(Newton(factor, Aty, rough, small.total_weight(fold), fold))
        for solver in solvers:
            for column in solver.columns:
                column.small_loss = OVERFITTED_LOSS * n / picked.n_rows
        Loop(small, solvers, monitor=context.monitor, pool=context.pool, report=False).run()
        if any(solver.status is Status.INTERRUPTED for solver in solvers):
            raise KeyboardInterrupt  # there is no model of all rows yet
        return solvers


def _training_set(picked: Picked, data: TrainingSet) -> TrainingSet:
    """Return sampled rows as a training set, weighted by the rows that they represent."""
    sparse = sp.issparse(picked.X[0])
    source = ArraySource(sp.vstack(picked.X, format="csr") if sparse else np.vstack(picked.X))
    fold_parts = None
    if data.n_fold_parts > 1:
        lengths = [len(counts) for counts in picked.counts]
        fold_parts = np.repeat(np.array(picked.fold_parts, np.int64), lengths)
    codes, counts = np.concatenate(picked.codes), np.concatenate(picked.counts)
    return TrainingSet(source, codes, data.n_classes, counts, fold_parts, data.n_fold_parts)
