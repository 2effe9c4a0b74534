"""What a solver is: one problem on its way to the minimum, between the passes of an engine.

The loop (``loop``) asks every solver for the same: a step, what the sweep there adds up, whether to
go on. A solver's settings are a plain value, which knows what a plan must know of it.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from polysift.engine.engine import Engine
from polysift.engine.problems import Problem
from polysift.losses import Loss
from polysift.runtime.types import FloatArray
from polysift.solvers.factor import Factor, Ridge
from polysift.solvers.result import HISTORY_COLUMNS, Result, Status, as_history


class Solver:
    """One run of a method, for all label columns of one problem.

    Parameters
    ----------
    factor : Factor
        The factor of G + rho I over the rows it learns from.
    problem : Problem
        The problem as the engine sees it.
    u : ndarray of shape (n, K)
        The coefficients to begin with.

    Attributes
    ----------
    factor : Factor
        The factor.
    problem : Problem
        The problem, with the update of its rows.
    u : ndarray of shape (n, K)
        The coefficients, at which the next sweep takes place.
    iterates : int
        How many u there have been; one more than rows while a sweep runs, or if none is needed.
    rows : list of dict
        The history so far, a row per iteration.
    status : Status or None
        Why the iterations ended, if they have.
    products : int or None
        Products with the Gram matrix that its steps took; None where the matrix was formed.
    """

    def __init__(self, factor: Factor, problem: Problem, u: FloatArray) -> None:
        self.factor, self.problem, self.u = factor, problem, u
        self.rows: list[dict[str, float]] = []
        self.iterates = 0
        self.status: Status | None = None
        self.products: int | None = None

    def start_from(self, engine: Engine, u0: FloatArray) -> None:
        """Start from other coefficients."""
        raise NotImplementedError

    def directions(self) -> FloatArray | None:
        """Return what must be multiplied by G before the next step; None if nothing must."""
        return None

    def absorb_product(self, GP: FloatArray) -> None:
        """Take in the product of G with ``directions``."""
        raise NotImplementedError

    def step(self) -> None:
        """Move u: line 3 of Algorithm 1, or what stands for it."""
        raise NotImplementedError

    def update(self, swept: Any, seconds: float) -> None:
        """Take in what the sweep at the new u has added up."""
        raise NotImplementedError

    def finish(self, engine: Any, number: int) -> None:
        """Do what needs the engine after a sweep, of which this was problem ``number``."""

    def saved(self) -> tuple[dict[str, FloatArray], dict[str, Any]]:
        """Return all that is needed to resume, as arrays and plain values."""
        raise NotImplementedError

    def restore(self, arrays: dict[str, FloatArray], values: dict[str, Any]) -> None:
        """Resume from what ``saved`` returned."""
        raise NotImplementedError

    def coefficients(self) -> FloatArray:
        """Return the coefficients to use."""
        return self.u

    def complete_history(self, seconds: float) -> None:
        """Give an iteration whose sweep was skipped or cut short its row, of NaN."""
        if self.status is not None and len(self.rows) < self.iterates:
            self.rows.append(dict.fromkeys(HISTORY_COLUMNS, np.nan) | {"seconds": seconds})

    def shortfall(self) -> str:
        """Return how far from its goal the last iteration was, for a warning."""
        return ""

    def result(self) -> Result:
        """Return the outcome."""
        u = self.coefficients()
        if not np.isfinite(u).all():
            raise FloatingPointError(
                "The iterations left the finite numbers. Lower the degree, or raise rho."
            )
        assert self.status is not None
        f = self.factor
        history, left = as_history(self.rows), self.shortfall()
        status, products = self.status, self.products
        return Result(u, f.rho, f.rho_floor, f.rho_raised, status, history, products, left)


class SolverSettings(Protocol):
    """How a method is run: a plain value that makes solvers, and says what they take.

    Attributes
    ----------
    ridge : Ridge
        How rho is chosen.
    loss : Loss
        What is minimised.
    max_iter : int
        Iterations at most.
    tol : float
        The tolerance of the stopping rule; 0 never stops early.
    many_sweeps : bool
        Whether it takes so many sweeps that keeping the features pays.
    float64_features : bool
        Whether its features are float64 also of float32 rows.
    hessians : bool
        Whether each label column has a Hessian, with its memory and its passes.
    update_cost : int
        What the update of a row costs NumPy, in features.
    """

    @property
    def ridge(self) -> Ridge: ...  # noqa: D102

    @property
    def loss(self) -> Loss: ...  # noqa: D102

    @property
    def max_iter(self) -> int: ...  # noqa: D102

    @property
    def tol(self) -> float: ...  # noqa: D102

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
        """Return a solver over rows of total weight m, all but those of one fold part.

        ``Aty`` is A'y over these rows: the residual of the paper's start, (u, v, w) = (0, y, 0).
        """

    def expected_sweeps(self, rows: int, centers: int, dtype: Any) -> int:
        """Return how many sweeps a fit will take, at most where it cannot be told."""

    def subsample_rows(self, rows: int, centers: int) -> int:
        """Return on how many rows to begin; 0 to begin with all."""
