"""The ADMM with a Gram matrix that is estimated from a sample of the rows.

The u-step solves (G + rho I) du = r. With M = H + rho I, where H estimates G from a sample of the
rows, the eigenvalues of M^-1 (G + rho I) are close to one another: conjugate gradients need some
five products with G, each a pass over the rows, and G itself is never formed. They also estimate
the largest of these eigenvalues, lambda. From then on ``du = (lambda M)^-1 r`` is a step that needs
no product: that of the proximal ADMM with the proximal matrix lambda M - G instead of rho I, which
converges as the paper's does, since lambda M >= G.

Rows are sampled twice. The first sample is uniform, and its Gram matrix gives an estimate of the
leverage of each row, ``omega a'(G + rho I)^-1 a``. The second sample draws rows by their leverage.
At high degrees a few rows have most of the leverage; a uniform sample misses most of them, and its
matrix is far too small in their directions. It is far too large in the directions of those that are
in the sample, whose leverage is then underestimated, and which the second sample may miss: so the
matrix is that of both samples together. A row is weighted by the inverse of its probability to be
in one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from polysift.engine.backend import FitContext
from polysift.engine.engine import SamplingEngine
from polysift.engine.sampling import (
    FIRST_ROWS_PER_CENTER,
    SKETCH_DIRECTIONS,
    Draw,
    Picked,
    Sample,
    add_gram,
    feature_blocks,
    leverages,
    panel_rows,
    slope_for,
)
from polysift.engine.sums import GramSums, checked_gram
from polysift.runtime.arrays import require, required_array
from polysift.runtime.parallel import Workspace
from polysift.runtime.types import FloatArray
from polysift.solvers.admm import Admm, AdmmSettings
from polysift.solvers.factor import Factor, Ridge, chosen_ridge, factored, factorise

HELD_OUT_EVERY = FIRST_ROWS_PER_CENTER + 1
"""Every fifth row of the first sample is held out, to estimate leverages on."""

LEVERAGE_RHO = 1e-6
"""The rho of leverages, relative to trace(G) / n, where rho is chosen later."""

STEP_TOLERANCE = 0.003
"""The residual that a step may leave, relative to that of the paper's start; norms are those of
M^-1 here."""

MAX_PRODUCTS = 40
"""The maximal number of products of a step."""

MAX_IDLE_PRODUCTS = 6
"""Products in a row that do not reduce the residual, after which rounding errors dominate."""

MAX_STEP_GROWTH = 10.0
"""Steps of the proximal ADMM hardly grow. If they grow by this factor, lambda was too small, and a
step by conjugate gradients finds a larger one."""

RESCUE_TOLERANCE = 0.1
"""The residual that such a step may leave, relative to its own right-hand side."""


@dataclass
class SampledSums(GramSums):
    """Estimates of G, in its upper triangle, with A'y and the trace of G over all rows.

    Attributes
    ----------
    trace : ndarray of shape (fold parts,)
        The trace of A' Omega A.
    """

    trace: FloatArray

    def trace_over(self, without: int | None) -> float:
        """Return the trace of the Gram matrix that ``over`` estimates."""
        return float(sum(x for fold_part, x in enumerate(self.trace) if fold_part != without))


def sampled_sums(
    engine: SamplingEngine, sample: Sample, ridge: Ridge, context: FitContext
) -> SampledSums:
    """Draw both samples and return the sums of the second, which includes the first.

    They are saved in the checkpoint as the state "gram", and loaded from it.
    """
    checkpoint = context.checkpoint
    saved = None if checkpoint is None else checkpoint.load("gram")
    if saved is not None:
        assert checkpoint is not None
        with checkpoint.using("gram"):
            return _checked_sums(saved[0])
    draw = _by_leverage(engine, sample, ridge, context)
    picked = engine.pick(draw)
    sums = SampledSums(_gram(engine, picked, context), picked.Aty, picked.trace)
    if checkpoint is not None:
        checkpoint.save("gram", vars(sums), {})
    return sums


def _checked_sums(arrays: dict[str, FloatArray]) -> SampledSums:
    """Return the sums of a checkpoint, whose shapes must fit each other."""
    sums = checked_gram(arrays, "G", "Aty")
    return SampledSums(sums.G, sums.Aty, required_array(arrays, "trace", "f", sums.G.shape[:1]))


def _by_leverage(engine: SamplingEngine, sample: Sample, ridge: Ridge, context: FitContext) -> Draw:
    """Return the draw by leverages, which are estimated from a first sample."""
    first, probability = _first_sample(engine, sample)
    picked, held = first.split(HELD_OUT_EVERY)
    G = _gram(engine, picked.in_one_fold_part(), context)[0]
    G *= HELD_OUT_EVERY / FIRST_ROWS_PER_CENTER
    if ridge.automatic:  # it is chosen by the second sample
        ridge = Ridge(relative_rho=LEVERAGE_RHO)
    factor = factorise(G, ridge).cholesky[0]
    # With G + rho I = R'R and z of entries N(0, 1), |a'R^-1 z|^2 is a'(G + rho I)^-1 a on average.
    directions = np.random.default_rng(sample.seed).normal(
        size=(len(G), SKETCH_DIRECTIONS)
    ) / np.sqrt(SKETCH_DIRECTIONS)
    sketch = scipy.linalg.solve_triangular(factor, directions, check_finite=False)
    parts = feature_blocks(engine.features, held.X, len(G), panel_rows(len(G)), context.pool)
    weights = np.concatenate(held.counts) * probability
    found = [leverages(A, sketch, weights[slice(*rows)]) for rows, A in parts]
    present_rows = first.n_rows / probability
    slope = slope_for(min(sample.second / present_rows, 1.0), np.concatenate(found))
    return Draw(sample.seed, probability, slope, sketch)


def _first_sample(engine: SamplingEngine, sample: Sample) -> tuple[Picked, float]:
    """Return a uniform sample and its probability, larger where many rows have no weight."""
    wanted = sample.first * HELD_OUT_EVERY / FIRST_ROWS_PER_CENTER
    share = min(wanted / sample.rows, 1.0)
    while True:
        picked = engine.pick(Draw(sample.seed, share))
        if share == 1.0 or picked.n_rows > wanted / 2:
            return picked, share
        share = min(1.0, share * wanted / max(picked.n_rows, 1))


def _gram(engine: SamplingEngine, picked: Picked, context: FitContext) -> FloatArray:
    """Return the Gram matrices of picked rows, weighted by ``counts``, for each fold part."""
    n = picked.Aty.shape[1]
    G, work, pool = np.zeros((len(picked.trace), n, n)), Workspace(), context.pool

    def blocks() -> Iterator[tuple[int, None]]:
        for fold_part in range(len(G)):
            own = [i for i, c in enumerate(picked.fold_parts) if c == fold_part]
            parts = [picked.X[i] for i in own]
            counts = np.concatenate([np.empty(0), *(picked.counts[i] for i in own)])
            for rows, A in feature_blocks(engine.features, parts, n, panel_rows(n), pool):
                add_gram(G[fold_part], A, counts[slice(*rows)], pool, work)
                yield len(A), None

    for _ in context.monitor.watch("Gram matrix", picked.n_rows, blocks()):
        pass
    return G


class ConjugateGradients:
    """Preconditioned conjugate gradients for (G + rho I) du = r, for all columns at once.

    Parameters
    ----------
    factor : Factor
        The factor of the preconditioner M.
    r : ndarray of shape (n, K)
        The right-hand sides.
    target : ndarray of shape (K,)
        The squared norms of the residuals at which columns are done.
    least : int
        The minimal number of products.

    Attributes
    ----------
    du : ndarray of shape (n, K)
        The solution so far.
    P : ndarray of shape (n, K)
        The directions to be multiplied by G next; zero for columns that are done.
    products : int
        The number of products so far.
    """

    def __init__(self, factor: Factor, r: FloatArray, target: FloatArray, least: int = 0) -> None:
        self._factor, self._target, self._least = factor, target, least
        self._residual = r.copy()
        self.du = np.zeros_like(r)
        z = factor.solve(r)
        self._square = _dot(r, z)
        self._open = self._square > (0.0 if least else target)
        self.P = np.where(self._open, z, 0.0)
        self._smallest, self._waited = self._square.copy(), np.zeros(r.shape[1], int)
        self._lengths: list[FloatArray] = []
        self._ratios: list[FloatArray] = []

    @property
    def products(self) -> int:
        """The number of products so far."""
        return len(self._lengths)

    @property
    def done(self) -> bool:
        """Whether all columns are done."""
        return not self._open.any()

    def absorb(self, GP: FloatArray) -> None:
        """Take a step, given the product of G with the directions."""
        Q = GP + self._factor.rho * self.P
        curvature = _dot(self.P, Q)
        going = self._open & (curvature > 0.0)
        length = np.divide(self._square, curvature, out=np.zeros_like(curvature), where=going)
        self.du += length * self.P
        self._residual -= length * Q
        z = self._factor.solve(self._residual)
        square = _dot(self._residual, z)
        ratio = np.divide(square, self._square, out=np.zeros_like(square), where=going)
        self._lengths.append(length)
        self._ratios.append(ratio)
        self._waited = np.where(square < self._smallest, 0, self._waited + 1)
        self._smallest = np.minimum(square, self._smallest)
        self._square = square
        self._open = going & (square > 0.0) & (self._waited < MAX_IDLE_PRODUCTS)
        if self.products >= self._least:
            self._open &= square > self._target
        if self.products >= MAX_PRODUCTS:
            self._open[:] = False
        self.P = np.where(self._open, z + ratio * self.P, 0.0)

    def largest(self) -> float:
        """Return an estimate, from below, of the largest eigenvalue of M^-1 (G + rho I).

        The lengths and ratios of the steps give the entries of Lanczos' tridiagonal matrix.
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


class SampledAdmm(Admm):
    """One run of the ADMM with the factor of M = H + rho I, where H estimates G.

    Parameters are those of ``Admm``.

    Attributes
    ----------
    largest : float
        The estimate so far of the largest eigenvalue of M^-1 (G + rho I).
    products : int
        The number of products with G so far.
    """

    products: int

    def __init__(
        self,
        factor: Factor,
        Aty: FloatArray,
        settings: AdmmSettings,
        m: float,
        without: int | None = None,
    ) -> None:
        super().__init__(factor, Aty, settings, m, without)
        self.products, self.largest = 0, 1.0
        self._start_square = factor.square(
            Aty
        )  # |A'y|^2 in the norm of M^-1, the scale of residuals
        self._gradients: ConjugateGradients | None = None
        self._prepared = False

    def directions(self) -> FloatArray | None:
        """Return the directions of conjugate gradients; None when the step needs no product."""
        if not self._prepared:
            self._prepared, target = True, self._target()
            if target is not None:
                self._gradients = ConjugateGradients(self.factor, self.r, *target)
        return None if self._gradients is None or self._gradients.done else self._gradients.P

    def absorb_product(self, GP: FloatArray) -> None:
        """Take a step of conjugate gradients."""
        assert self._gradients is not None
        self._gradients.absorb(GP)

    def _target(self) -> tuple[FloatArray, int] | None:
        """Return the residual a step may leave, and its minimal products; None for no products."""
        settings = self.settings
        if self.iterates == 0:
            return STEP_TOLERANCE**2 * self._start_square, settings.first_products
        if not settings.many_sweeps:
            return STEP_TOLERANCE**2 * self._start_square, 0
        moves = [row["h_norm_difference"] for row in self.rows]
        if moves[-1] > MAX_STEP_GROWTH * min(moves):
            return RESCUE_TOLERANCE**2 * self.factor.square(self.r), 0
        return None

    def _solved(self) -> FloatArray:
        """Return the step by conjugate gradients, or (lambda M)^-1 r."""
        gradients, self._gradients, self._prepared = self._gradients, None, False
        if gradients is None or not gradients.products:
            return self.factor.solve(self.r) / self.largest
        self.products += gradients.products
        self.largest = max(self.largest, gradients.largest())
        return gradients.du

    def _next_g(self, r: FloatArray) -> FloatArray:
        """Return A'q of the new q.

        With over-relaxation and inexact steps there is no recursion for it, and -r = A'(q + f - v)
        replaces it, which is equal if the primal residual is zero.
        """
        return super()._next_g(r) if self.settings.relax == 1.0 else -r

    def saved(self) -> tuple[dict[str, FloatArray], dict[str, Any]]:
        """Return the state to resume from, as arrays and plain values."""
        return super().saved()[0], {"products": self.products, "largest": self.largest}

    def restore(self, arrays: dict[str, FloatArray], values: dict[str, Any]) -> None:
        """Resume from what ``saved`` returned."""
        super().restore(arrays, values)
        products, largest = values["products"], values["largest"]
        require(type(products) is int and products >= 0, "products must be a number of passes")
        require(isinstance(largest, float | int), "largest must be a number")
        self.products, self.largest = products, largest


@dataclass(frozen=True)
class SampledGram:
    """A start with the Gram matrix of a sample, for solvers that need no more."""

    sample: Sample

    def solvers(
        self,
        engine: SamplingEngine,
        settings: AdmmSettings,
        folds: Sequence[int | None],
        context: FitContext,
    ) -> list[SampledAdmm]:
        """Return a solver for each fold, over all rows but those of that fold part."""
        sums = sampled_sums(engine, self.sample, settings.ridge, context)
        ridge, choice = chosen_ridge(
            sums, settings.ridge, engine.total_weight(), sums.trace_over(None)
        )
        solvers = []
        for fold in folds:
            factor, Aty = factored(sums, ridge, fold, sums.trace_over(fold), choice)
            solvers.append(SampledAdmm(factor, Aty, settings, engine.total_weight(fold), fold))
        return solvers


def _dot(X: FloatArray, Y: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("nk,nk->k", X, Y))
