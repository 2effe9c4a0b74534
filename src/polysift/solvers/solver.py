"""The base class of solvers, and the protocol of their settings.

A solver minimises the loss of one problem, for each label column

    (1/m) [sum_i omega_i loss(y_i (A u)_i) + (penalty / 2) u'u],

where the penalty is zero, or that of a ridge regression: with the squared loss, (y - f)^2 / 2, and
a penalty of rho the minimum is u = (G + rho I)^-1 A'y, the first iterate.

Between the passes of an engine the loop (``loop``) calls a solver's methods: for a step, to update
it by the sums of a sweep, and for its status. The settings of a solver are a plain value, which
also has what the plan of a fit needs to know.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

import numpy as np

from polysift.engine.engine import Engine
from polysift.engine.problems import Problem
from polysift.losses import Loss
from polysift.runtime.errors import FeatureOverflowError
from polysift.runtime.types import FloatArray
from polysift.solvers.factor import Factor, Ridge
from polysift.solvers.leave_one_out import LeaveOneOut
from polysift.solvers.result import HISTORY_COLUMNS, Result, Status, as_history


class Solver(ABC):
    """One run of a solver, for all label columns of one problem.

    Parameters
    ----------
    factor : Factor
        The factor of G + rho I over its training rows.
    problem : Problem
        The problem as the engine sees it.
    u : ndarray of shape (n, K)
        The first coefficients.

    Attributes
    ----------
    factor : Factor
        The factor.
    problem : Problem
        The problem, with the update of its rows.
    u : ndarray of shape (n, K)
        The coefficients of the next sweep.
    iterates : int
        The number of steps so far; one more than ``rows`` during a sweep, or if it is skipped.
    rows : list of dict
        The history so far, a row per iteration.
    status : Status or None
        Why the iterations ended, if they have.
    products : int or None
        The number of products with the Gram matrix; None if the matrix was formed.
    """

    def __init__(self, factor: Factor, problem: Problem, u: FloatArray) -> None:
        self.factor, self.problem, self.u = factor, problem, u
        self.rows: list[dict[str, float]] = []
        self.iterates = 0
        self.status: Status | None = None
        self.products: int | None = None

    @abstractmethod
    def start_from(self, engine: Engine, u0: FloatArray) -> None:
        """Start from other coefficients."""

    def directions(self) -> FloatArray | None:
        """Return the columns to multiply by G before the next step, or None."""
        return None

    def absorb_product(self, GP: FloatArray) -> None:  # noqa: B027 - most have no directions
        """Update the step by the product of G with ``directions``."""

    @abstractmethod
    def step(self) -> None:
        """Update u: line 3 of Algorithm 1, or its counterpart."""

    @abstractmethod
    def update(self, swept: Any, seconds: float) -> None:
        """Update the solver by the sums of the sweep at the new u."""

    def finish(self, engine: Any, number: int) -> None:  # noqa: B027 - most need no more
        """Complete an iteration with further passes; it was problem ``number`` of the sweep."""

    @abstractmethod
    def saved(self) -> tuple[dict[str, FloatArray], dict[str, Any]]:
        """Return the state to resume from, as arrays and plain values."""

    @abstractmethod
    def restore(self, arrays: dict[str, FloatArray], values: dict[str, Any]) -> None:
        """Resume from what ``saved`` returned."""

    def coefficients(self) -> FloatArray:
        """Return the best coefficients so far."""
        return self.u

    def complete_history(self, seconds: float) -> None:
        """Append a row of NaN for an iteration whose sweep was skipped or interrupted."""
        if self.status is not None and len(self.rows) < self.iterates:
            self.rows.append(dict.fromkeys(HISTORY_COLUMNS, np.nan) | {"seconds": seconds})

    def leave_one_out(self) -> LeaveOneOut | None:
        """Return how the margin of a row would be without it; None if the solver cannot tell."""
        return None

    def shortfall(self) -> str:
        """Return how far from convergence the last iteration was, for a warning."""
        return ""

    def result(self) -> Result:
        """Return the result; raise FeatureOverflowError if coefficients are not finite."""
        u = self.coefficients()
        if not np.isfinite(u).all():
            raise FeatureOverflowError(
                "The iterations left the finite numbers. Lower the degree, or raise rho."
            )
        assert self.status is not None
        f = self.factor
        history, left = as_history(self.rows), self.shortfall()
        status, products = self.status, self.products
        return Result(
            u, f.rho, f.rho_floor, f.rho_raised, status, history, products, left, f.choice
        )


def penalty_of(settings: SolverSettings, factor: Factor) -> float:
    """Return the penalty on u'u / 2 that goes with the sum of the losses over all rows."""
    return settings.loss.ridge_share * factor.rho if settings.penalised else 0.0


def penalty_terms(penalty: float, u: FloatArray) -> FloatArray | float:
    """Return (penalty / 2) u'u for each column of u."""
    return 0.5 * penalty * np.einsum("nk,nk->k", u, u) if penalty else 0.0


class SolverSettings(Protocol):
    """The settings of a solver: a plain value that makes solvers, and estimates their cost.

    Attributes
    ----------
    name : str
        The solver, by its name in ``names.SOLVERS``.
    ridge : Ridge
        How rho is chosen.
    loss : Loss
        The loss that is minimised.
    penalised : bool
        Whether a penalty on u'u is added to the loss, of the size of rho; else rho only damps the
        steps, and the minimum does not depend on it.
    max_iter : int
        The maximal number of iterations.
    tol : float
        The tolerance of the stopping rule; 0 never stops early.
    samples : bool
        Whether it can do with a sampled Gram matrix.
    many_sweeps : bool
        Whether there are so many sweeps that keeping the features saves time.
    float64_features : bool
        Whether features are float64 even if the rows are float32.
    hessians : bool
        Whether each label column has a Hessian.
    update_cost : int
        The cost of the update of a row by NumPy, in features.
    """

    @property
    def name(self) -> str: ...  # noqa: D102

    @property
    def ridge(self) -> Ridge: ...  # noqa: D102

    @property
    def loss(self) -> Loss: ...  # noqa: D102

    @property
    def penalised(self) -> bool: ...  # noqa: D102

    @property
    def max_iter(self) -> int: ...  # noqa: D102

    @property
    def tol(self) -> float: ...  # noqa: D102

    @property
    def samples(self) -> bool: ...  # noqa: D102

    @property
    def many_sweeps(self) -> bool: ...  # noqa: D102

    @property
    def float64_features(self) -> bool: ...  # noqa: D102

    @property
    def hessians(self) -> bool: ...  # noqa: D102

    @property
    def update_cost(self) -> int: ...  # noqa: D102

    def solver(
        self, factor: Factor, Aty: FloatArray, m: float, without: int | None = None
    ) -> Solver:
        """Return a solver over all rows but those of one fold part, of total weight m.

        ``Aty`` is A'y over these rows: the residual of the paper's start, (u, v, w) = (0, y, 0).
        """

    def expected_sweeps(self, rows: int, centers: int, dtype: Any) -> int:
        """Return the expected number of sweeps of a fit, or an upper bound."""

    def subsample_rows(self, rows: int, centers: int) -> int:
        """Return the rows of the subsample on which to begin; 0 to begin on all rows."""
