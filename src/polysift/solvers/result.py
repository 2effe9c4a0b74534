"""What a solver run ends in: a status with its message, the history, the frozen result."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from polysift.runtime.types import FloatArray

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
    """Why the iterations ended; the value is the message a user reads."""

    TOLERANCE = "The squared H-norm of the last step fell below tol (the paper's stopping rule)."
    CONVERGED = "Both residuals and the change of the objective fell below tol."
    ZERO_LOSS = "The loss of every training row is zero, which is its minimum."
    MINIMUM = "What a step could still gain fell below tol, relative to the loss."
    MAX_ITER = "All max_iter iterations were done."
    TIME_LIMIT = "time_limit struck; this is the latest model."
    INTERRUPTED = "The fit was interrupted; this is the latest model."
    CALLBACK = "A callback asked to stop."

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
        The smallest ratio that rounding allows; ``rho`` was raised to it if ``rho_raised``.
    rho_raised : bool
        Whether the floor acted.
    status : Status
        Why the iterations ended.
    history : dict of str to ndarray of shape (n_iter,)
        One array per name in ``HISTORY_COLUMNS``.
    products : int or None
        Products with the Gram matrix that the u-steps took; None where it was formed.
    shortfall : str
        How far from its goal the last iteration was, where the solver has one.
    """

    u: FloatArray
    rho: float
    rho_floor: float
    rho_raised: bool
    status: Status
    history: dict[str, FloatArray]
    products: int | None = None
    shortfall: str = ""

    @property
    def n_iter(self) -> int:
        """The number of iterations done."""
        return len(self.history["seconds"])


def as_history(rows: list[dict[str, float]]) -> dict[str, FloatArray]:
    """Turn one dict per iteration into one array per column."""
    return {name: np.array([row[name] for row in rows]) for name in HISTORY_COLUMNS}
