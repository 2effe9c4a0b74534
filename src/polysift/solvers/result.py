"""The result of a solver: its coefficients, the status with a message, and the history."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from polysift.runtime.arrays import require
from polysift.runtime.types import FloatArray
from polysift.solvers.gcv import RidgeChoice
from polysift.solvers.leave_one_out import LeaveOneOut

HISTORY_COLUMNS = (
    "objective",
    "training_error",
    "primal_residual",
    "dual_residual",
    "h_norm_difference",
    "seconds",
)
"""The columns of a history, each with one number per iteration (see ``FPCClassifier``)."""


class Status(Enum):
    """Why the iterations ended; the value is the message for the user."""

    TOLERANCE = "The squared H-norm of the last step fell below tol (the paper's stopping rule)."
    CONVERGED = "Both residuals and the change of the objective fell below tol."
    ZERO_LOSS = "The loss of every training row is zero, which is its minimum."
    MINIMUM = "What a step could still gain fell below tol, relative to the loss."
    MAX_ITER = "All max_iter iterations were done."
    TIME_LIMIT = "time_limit struck; this is the latest model."
    INTERRUPTED = "The fit was interrupted; this is the latest model."
    CALLBACK = "A callback asked to stop."
    PARTIAL = "A ridge regression by the sums over all batches so far (partial_fit)."

    @property
    def word(self) -> str:
        """The short name, such as ``"max_iter"``."""
        return self.name.lower()


@dataclass(frozen=True)
class Result:
    """The outcome of one run of a solver.

    Attributes
    ----------
    u : ndarray of shape (n, K)
        The coefficients, one column per label column.
    rho : float
        The ratio alpha / beta that was used.
    rho_floor : float
        The smallest ratio that rounding errors allow.
    rho_raised : bool
        Whether ``rho`` was raised to its floor.
    status : Status
        Why the iterations ended.
    history : dict of str to ndarray of shape (n_iter,)
        One array per name in ``HISTORY_COLUMNS``.
    products : int or None
        The number of products with the Gram matrix; None if the matrix was formed.
    shortfall : str
        How far from convergence the last iteration was, for a warning; empty if not applicable.
    choice : RidgeChoice or None
        How ``rho`` was chosen, if it was.
    solver : str
        The name of the solver.
    leave_one_out : LeaveOneOut or None
        How the margin of a row would be without it, where the solver can tell.
    """

    u: FloatArray
    rho: float
    rho_floor: float
    rho_raised: bool
    status: Status
    history: dict[str, FloatArray]
    products: int | None = None
    shortfall: str = ""
    choice: RidgeChoice | None = None
    solver: str = ""
    leave_one_out: LeaveOneOut | None = None

    @property
    def n_iter(self) -> int:
        """The number of iterations."""
        return len(self.history["seconds"])


def checked_history(rows: Any) -> list[dict[str, float]]:
    """Return the rows of a history from a checkpoint, which must have all columns."""
    names = set(HISTORY_COLUMNS)
    require(isinstance(rows, list), "the history must be a list")
    for row in rows:
        known = isinstance(row, dict) and set(row) == names
        numbers = known and all(type(value) in (int, float) for value in row.values())
        require(numbers, f"the history must have the columns {', '.join(HISTORY_COLUMNS)}")
    return list(rows)


def as_history(rows: list[dict[str, float]]) -> dict[str, FloatArray]:
    """Return the rows of a history, one dict per iteration, as one array per column."""
    return {name: np.array([row[name] for row in rows]) for name in HISTORY_COLUMNS}
