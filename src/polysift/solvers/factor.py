"""The ridge of the u-step and the Cholesky factor of G + rho I, which serves all label columns.

rho = alpha / beta has a floor in the order of the rounding errors in G: a smaller rho would be lost
in them, and the factor may not exist.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg

from polysift.engine.sums import GramSums
from polysift.runtime.errors import FeatureOverflowError
from polysift.runtime.types import FloatArray
from polysift.solvers.gcv import RidgeChoice, choose_rho

GRAM_OVERFLOWS = "The Gram matrix overflows. Lower the degree, or scale X down."

RHO_FLOOR = 10.0
"""The floor on rho in units of eps trace(G), the order of the rounding errors in G."""


@dataclass(frozen=True)
class Ridge:
    """The choice of rho: a number, relative to trace(G) / n, or a multiple of its floor.

    Attributes
    ----------
    rho : float or None
        alpha / beta, as an absolute number.
    relative_rho : float or None
        The same relative to trace(G) / n; used if ``rho`` is None.
    floor_multiple : float
        rho in units of its floor, where neither is given.
    automatic : bool
        Whether rho is chosen by generalised cross-validation (``gcv``); then the others do not
        matter.
    """

    rho: float | None = None
    relative_rho: float | None = None
    floor_multiple: float = 1.0
    automatic: bool = False

    def asked(self, trace: float, n: int, floor: float) -> float:
        """Return the requested rho for an n x n matrix with this trace."""
        if self.rho is not None:
            return self.rho
        if self.relative_rho is not None:
            return self.relative_rho * trace / n
        return self.floor_multiple * floor


@dataclass(frozen=True)
class Factor:
    """The Cholesky factor of G + rho I; it serves all label columns, and any beta.

    Attributes
    ----------
    cholesky : tuple
        The factor, as ``scipy.linalg.cho_factor`` returns it.
    rho, rho_floor : float
        The ratio alpha / beta, and its floor.
    rho_raised : bool
        Whether ``rho`` is larger than requested.
    choice : RidgeChoice or None
        How ``rho`` was chosen, if it was.
    """

    cholesky: Any
    rho: float
    rho_floor: float
    rho_raised: bool
    choice: RidgeChoice | None = None

    def solve(self, r: FloatArray) -> FloatArray:
        """Return (G + rho I)^-1 r."""
        return np.asarray(scipy.linalg.cho_solve(self.cholesky, r, check_finite=False))

    def square(self, r: FloatArray) -> FloatArray:
        """Return r'(G + rho I)^-1 r for each column."""
        return np.maximum(np.einsum("nk,nk->k", r, self.solve(r)), 0.0)


def factorise(G: FloatArray, ridge: Ridge, trace: float | None = None) -> Factor:
    """Choose rho, at least its floor, and factor G + rho I; G's diagonal is overwritten.

    With a sampled Gram matrix, ``trace`` is that of the matrix which ``G`` estimates.
    """
    diagonal = G.diagonal().copy()
    with np.errstate(over="ignore"):
        trace = float(diagonal.sum()) if trace is None else trace
    if not np.isfinite(trace):
        raise FeatureOverflowError(GRAM_OVERFLOWS)
    floor = rho_floor(trace)
    asked = ridge.asked(float(trace), len(G), float(floor))
    if not np.isfinite(asked):
        raise FeatureOverflowError(
            f"rho, or alpha, times the trace of the Gram matrix, {trace:.3g}, overflows. Lower rho "
            "or alpha, or the degree."
        )
    rho = max(asked, floor)
    while np.isfinite(rho):
        np.fill_diagonal(G, diagonal + rho)
        try:
            # The upper triangle is read and a new array written, so that G survives a failure.
            cholesky = scipy.linalg.cho_factor(G, check_finite=False)
        except scipy.linalg.LinAlgError:  # rare: rounding errors beyond the floor
            rho *= 10.0
        else:
            return Factor(cholesky, rho, floor, rho > asked)
    raise FeatureOverflowError(
        "G + rho I has no Cholesky factor for any rho. Lower the degree, or set rho larger."
    )


def rho_floor(trace: float) -> float:
    """Return the smallest rho for a Gram matrix with this trace."""
    return float(max(RHO_FLOOR * np.finfo(float).eps * trace, np.finfo(float).tiny))


def factored(
    sums: GramSums,
    ridge: Ridge,
    without: int | None,
    trace: float | None = None,
    choice: RidgeChoice | None = None,
) -> tuple[Factor, FloatArray]:
    """Return the factor of all rows but those of one fold part, and their A'y.

    ``choice`` says how the ridge was chosen, if it was: then nobody asked for another one.
    """
    G, Aty = sums.over(without)
    factor = factorise(G, ridge, trace)
    if choice is not None:
        factor = replace(factor, rho_raised=False, choice=choice)
    return factor, Aty


def chosen_ridge(
    sums: GramSums, ridge: Ridge, m: float, trace: float | None = None
) -> tuple[Ridge, RidgeChoice | None]:
    """Return the ridge of all rows of total weight m and of their folds, and how it was chosen.

    Where rho is chosen, it is so over all rows, and the folds take it relative to their traces.
    """
    if not ridge.automatic:
        return ridge, None
    G, Aty = sums.over(None)
    trace = float(np.trace(G)) if trace is None else trace
    if not np.isfinite(trace):
        return Ridge(relative_rho=1.0), None  # the factorisation says what to do
    choice = choose_rho(G, Aty, m, rho_floor(trace))
    return Ridge(relative_rho=choice.rho * len(G) / trace if trace > 0 else 0.0), choice
