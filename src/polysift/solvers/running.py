"""The first iterate from sums that grow batch by batch: what ``partial_fit`` does.

The first iterate of the ADMM, and the start of L-BFGS, is the ridge regression on the labels,
u = (G + rho I)^-1 A'y. G = A'A and A'y are sums over the rows, so that those of batches add up to
those of all rows, and with the total weight they are all that the choice of rho by generalised
cross-validation needs. No row is looked at twice but for the scale below.

L-BFGS scales u to the least loss, by the slopes of the loss at some factors of the scores (of rows
without their own influence). These add up, too, each batch's by the u that it led to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polysift.engine.engine import Engine
from polysift.engine.problems import Problem
from polysift.engine.row_updates import ScaleUpdate
from polysift.engine.sums import SCALES, GramSums
from polysift.runtime.types import FloatArray
from polysift.solvers.factor import Factor, chosen_ridge, factored
from polysift.solvers.lbfgs import LbfgsSettings, least_scale
from polysift.solvers.result import HISTORY_COLUMNS, Result, Status, as_history
from polysift.solvers.solver import SolverSettings

MAX_LEVERAGE = 0.9
"""The largest mean leverage that margins are corrected for."""


@dataclass(frozen=True)
class RunningSums:
    """Sums over all batches so far.

    Attributes
    ----------
    gram : ndarray of shape (n, n)
        G.
    labels : ndarray of shape (n, K)
        A'y.
    slopes : ndarray of shape (len(SCALES), K)
        The slopes of the loss by factors of the scores; zeros where none are needed.
    weight : float
        The total weight of the rows.
    """

    gram: FloatArray
    labels: FloatArray
    slopes: FloatArray
    weight: float

    @classmethod
    def zeros(cls, n: int, K: int) -> RunningSums:
        """Return the sums of no rows."""
        return cls(np.zeros((n, n)), np.zeros((n, K)), np.zeros((len(SCALES), K)), 0.0)


def first_iterate(
    engine: Engine, settings: SolverSettings, before: RunningSums
) -> tuple[RunningSums, Result]:
    """Add a batch to the sums before it; return the new sums, and the first iterate of all rows.

    Parameters
    ----------
    engine : Engine
        The passes over the batch.
    settings : SolverSettings
        The ridge, and whether the scores are scaled to a loss.
    before : RunningSums
        The sums of the batches before, which are not changed.
    """
    own = engine.gram()
    gram, labels = before.gram + own.G[0], before.labels + own.Aty[0]
    weight = before.weight + engine.total_weight()
    sums = GramSums(gram.copy()[np.newaxis], labels.copy()[np.newaxis])  # to be overwritten
    ridge, choice = chosen_ridge(sums, settings.ridge, weight)
    factor, Aty = factored(sums, ridge, None, choice=choice)
    u, slopes = factor.solve(Aty), before.slopes
    row: dict[str, Any] = dict.fromkeys(HISTORY_COLUMNS, np.nan) | {"seconds": 0.0}
    if isinstance(settings, LbfgsSettings):
        swept = _scaled(engine, settings, factor, u, weight)
        slopes = slopes + swept.slopes
        u = u * [least_scale(column)[0] for column in slopes.T]
        row["training_error"] = float(swept.wrong[0] / engine.total_weight())
    result = Result(
        u,
        factor.rho,
        factor.rho_floor,
        factor.rho_raised,
        Status.PARTIAL,
        as_history([row]),
        choice=factor.choice,
        solver=settings.name,
    )
    return RunningSums(gram, labels, slopes, weight), result


def _scaled(
    engine: Engine, settings: LbfgsSettings, factor: Factor, u: FloatArray, weight: float
) -> Any:
    """Return the sums of a sweep that looks at multiples of the scores."""
    freedom = 0.0 if factor.choice is None else factor.choice.freedom
    update = ScaleUpdate(min(freedom / weight, MAX_LEVERAGE), settings.loss)
    engine.begin(1)
    return engine.sweep([Problem(len(u), update)], u)
