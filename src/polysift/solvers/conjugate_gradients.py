"""Conjugate gradients for the u-step, where a sample stands for the Gram matrix.

The u-step solves (G + rho I) du = r. With M = H + rho I, where H estimates G from a sample of the
rows, the eigenvalues of M^-1 (G + rho I) are close to one another: conjugate gradients need some
five products with G, each a pass over the rows, and G itself is never formed. They also tell the
largest of these eigenvalues, lambda. From then on ``du = (lambda M)^-1 r`` is a step that costs no
product: that of the proximal ADMM whose proximal matrix is lambda M - G in place of rho I, and
which converges as the paper's does, since lambda M >= G.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.linalg

from polysift.engine.local import Engine
from polysift.runtime.parallel import Pool
from polysift.runtime.types import FloatArray
from polysift.solvers.admm import Factor, Run

TOLERANCE = 0.003
"""The residual that a step may leave, relative to that of the paper's start; norms are those of
M^-1 here."""

FIRST_PRODUCTS = 3, 5
"""Products of the first step at least, so that lambda is known; and in the converged mode, where
all other steps rely on it."""

MOST_PRODUCTS = 40
"""Products of a step at most."""

PATIENCE = 6
"""Products without a smaller residual after which rounding errors are to blame."""

GROWTH = 10.0
"""Steps of the proximal ADMM do not grow but for a little. If they do by this factor, lambda was
too small, and a step by conjugate gradients finds a larger one."""

RESCUE = 0.1
"""The residual that such a step may leave, relative to its own."""


class ConjugateGradients:
    """The columns of one run, each with its own steps; those that are done rest.

    Parameters
    ----------
    factor : Factor
        That of M.
    r : ndarray of shape (n, K)
        The right-hand side.
    target : ndarray of shape (K,)
        Squared norms of the residual to come down to.
    least : int
        Products to take in any case.

    Attributes
    ----------
    du : ndarray of shape (n, K)
        The solution so far.
    P : ndarray of shape (n, K)
        The directions to be multiplied by G next; zero for columns that are done.
    products : int
        The products taken.
    """

    def __init__(self, factor: Factor, r: FloatArray, target: FloatArray, least: int = 0) -> None:
        self._factor, self._target, self._least = factor, target, least
        self._residual = r.copy()
        self.du = np.zeros_like(r)
        z = factor.precondition(r)
        self._square = _dot(r, z)
        self._open = self._square > (0.0 if least else target)
        self.P = np.where(self._open, z, 0.0)
        self._smallest, self._waited = self._square.copy(), np.zeros(r.shape[1], int)
        self._lengths: list[FloatArray] = []
        self._ratios: list[FloatArray] = []

    @property
    def products(self) -> int:
        """The products taken."""
        return len(self._lengths)

    @property
    def done(self) -> bool:
        """Whether all columns are."""
        return not self._open.any()

    def absorb(self, GP: FloatArray) -> None:
        """Take a step, given the product of G with the directions."""
        Q = GP + self._factor.rho * self.P
        curvature = _dot(self.P, Q)
        going = self._open & (curvature > 0.0)
        length = np.divide(self._square, curvature, out=np.zeros_like(curvature), where=going)
        self.du += length * self.P
        self._residual -= length * Q
        z = self._factor.precondition(self._residual)
        square = _dot(self._residual, z)
        ratio = np.divide(square, self._square, out=np.zeros_like(square), where=going)
        self._lengths.append(length)
        self._ratios.append(ratio)
        self._waited = np.where(square < self._smallest, 0, self._waited + 1)
        self._smallest = np.minimum(square, self._smallest)
        self._square = square
        self._open = going & (square > 0.0) & (self._waited < PATIENCE)
        if self.products >= self._least:
            self._open &= square > self._target
        if self.products >= MOST_PRODUCTS:
            self._open[:] = False
        self.P = np.where(self._open, z + ratio * self.P, 0.0)

    def largest(self) -> float:
        """Return the largest eigenvalue of M^-1 (G + rho I), as far as the columns have met it.

        The steps' lengths and ratios are the entries of Lanczos' tridiagonal matrix.
        """
        found = 0.0
        steps = np.array([self._lengths, self._ratios])
        for lengths, ratios in steps.transpose(2, 0, 1):
            k = int(np.count_nonzero(lengths))
            if k:
                own = 1.0 / lengths[:k]
                own[1:] += ratios[: k - 1] / lengths[: k - 1]
                beside = np.sqrt(ratios[: k - 1]) / lengths[: k - 1]
                found = max(found, float(scipy.linalg.eigvalsh_tridiagonal(own, beside)[-1]))
        return found


def take_steps(engine: Engine, runs: Sequence[Any], pool: Pool) -> None:
    """Take the u-step of every run, by conjugate gradients where it needs them."""
    solved = {}
    sampled = [run for run in runs if isinstance(run, Run) and run.factor.sampled]
    for run, steps in _solved(engine, sampled, pool):
        if steps.products:
            run.products += steps.products
            run.factor = replace(run.factor, largest=max(run.factor.largest, steps.largest()))
            solved[id(run)] = steps.du
    for _ in pool.map(lambda run: run.step(solved.get(id(run))), runs):
        pass


def _solved(
    engine: Engine, runs: Sequence[Run], pool: Pool
) -> list[tuple[Run, ConjugateGradients]]:
    """Solve for the steps of runs, all in the same products."""

    def begin(run: Run) -> ConjugateGradients | None:
        target = _target(run)
        return None if target is None else ConjugateGradients(run.factor, run.r, *target)

    begun = zip(runs, pool.map(begin, runs), strict=True)
    careful = [(run, steps) for run, steps in begun if steps is not None]
    while left := [(run, steps) for run, steps in careful if not steps.done]:
        GP = engine.product([run.lane for run, _ in left], np.hstack([s.P for _, s in left]))
        parts = zip(left, np.hsplit(GP, len(left)), strict=True)
        for _ in pool.map(lambda item: item[0][1].absorb(item[1]), parts):
            pass
    return careful


def _target(run: Run) -> tuple[FloatArray, int] | None:
    """Return the residual a run's step may leave, and its least products; None asks for none."""
    converged = run.settings.until_converged
    if run.iterates == 0:
        return TOLERANCE**2 * run.start_square, FIRST_PRODUCTS[converged]
    if not converged:
        return TOLERANCE**2 * run.start_square, 0
    moves = [row["h_norm_difference"] for row in run.rows]
    if moves[-1] > GROWTH * min(moves):
        return RESCUE**2 * run.factor.square(run.r), 0
    return None


def _dot(X: FloatArray, Y: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("nk,nk->k", X, Y))
