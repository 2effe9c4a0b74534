"""How a sweep updates the state of rows: v and w of the ADMM, or margins of Newton's method.

Labels do not appear here: the scores f, v and q = w / beta are margins, that is multiplied by y.
The state of a row is one float64 per column.

``AdmmUpdate`` is lines 4 and 5 of Algorithm 1. Its state is t = f + q, from which v = t + k and
q = -k follow, where k is the loss's proximal step from t.

``NewtonUpdate`` sets rows to new margins and updates their multipliers. Its state is the margin,
whose last 16 of 64 bits hold the row's multiplier; ten digits and more remain for the margin. A
loss without kinks needs no multipliers, and its state is the margin alone (``SmoothColumns``).

An update is a plain value of one problem; ``columns`` puts those of several problems side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from polysift.engine.sums import (
    SCALES,
    STEP_LENGTHS,
    AdmmSums,
    NewtonSums,
    ScaleSums,
    names_of,
    weighted_sum,
)
from polysift.losses import HINGE, Loss, next_multiplier
from polysift.runtime.types import FloatArray, IntArray

GOLDEN_RATIO = 0.6180339887498949
"""The fractional parts of its multiples are spread evenly over [0, 1)."""

MULTIPLIER_LEVELS = 2**16 - 1
"""Multipliers are kept as multiples of 1 / MULTIPLIER_LEVELS, in a margin's last 16 bits."""

NO_MULTIPLIERS = np.empty(0)
"""The multipliers of rows by a loss without kinks, which does not look at them."""


class ColumnUpdates(Protocol):
    """The updates of all columns of a sweep.

    Attributes
    ----------
    loss : Loss
        What is minimised.
    task : str
        The update's name in the compiled loops, after that of the loss.
    """

    loss: Loss
    task: str

    def zeros(self, n: int, columns: int, problems: int) -> Any:
        """Return the empty sums of a sweep."""

    def apply(
        self, t: FloatArray, f: FloatArray, counts: FloatArray | None, sums: Any
    ) -> FloatArray:
        """Update the states t by the margins f; return the residuals, which A' multiplies."""

    def add_statistics(
        self,
        sums: Any,
        f: FloatArray,
        t_old: FloatArray,
        t: FloatArray,
        counts: FloatArray | None,
    ) -> None:
        """Add the sums over rows that measure progress, where ``apply`` has not done so."""

    def compiled_arguments(self) -> tuple[float, float, FloatArray]:
        """Return two parameters and an array for the sums of a compiled loop over one column."""

    def add_compiled(self, sums: Any, found: FloatArray) -> None:
        """Add the sums of a compiled loop over one column."""


@dataclass(frozen=True)
class AdmmUpdate:
    """Lines 4 and 5 of Algorithm 1: the v and the w of a row.

    Attributes
    ----------
    gamma : float
        m beta, the parameter of the prox.
    relax : float
        Over-relaxation: A u counts as ``relax A u + (1 - relax) v`` in the new state.
    loss : Loss
        What is minimised.
    """

    gamma: float = 1.0
    relax: float = 1.0
    loss: Loss = HINGE

    @staticmethod
    def columns(updates: Sequence[AdmmUpdate], K: int) -> AdmmColumns:
        """Return the updates of problems with K columns each, side by side."""

        def shared(values: list[float]) -> float | FloatArray:
            return values[0] if len(set(values)) == 1 else np.repeat(values, K)

        gamma = shared([update.gamma for update in updates])
        return AdmmColumns(gamma, shared([update.relax for update in updates]), updates[0].loss)


@dataclass(frozen=True)
class AdmmColumns:
    """``AdmmUpdate`` for all columns; gamma and relax are one number where all share it."""

    gamma: float | FloatArray
    relax: float | FloatArray
    loss: Loss
    task: str = "admm"

    zeros = staticmethod(AdmmSums.zeros)

    def apply(
        self, t: FloatArray, f: FloatArray, counts: FloatArray | None, sums: AdmmSums
    ) -> FloatArray:
        """Update the states t by the margins f; return v - q - f.

        The new t is ``relax f + (1 - relax) v + q`` with the old v and q.
        """
        k = self.loss.prox_step(t, self.gamma)
        if isinstance(self.relax, float) and self.relax == 1.0:
            np.subtract(f, k, out=t)
        else:
            t *= 1.0 - self.relax
            t += self.relax * (f - k)
        return self.residual(t, f)

    def residual(self, t: FloatArray, f: FloatArray) -> FloatArray:
        """Return v - q - f of states t, where v = t + k and q = -k."""
        k = self.loss.prox_step(t, self.gamma)
        k *= 2.0
        k += t
        k -= f
        return k

    def add_statistics(
        self,
        sums: AdmmSums,
        f: FloatArray,
        t_old: FloatArray,
        t: FloatArray,
        counts: FloatArray | None,
    ) -> None:
        """Add the sums over rows that measure progress."""
        k_old = self.loss.prox_step(t_old, self.gamma)
        k, v = self.add_sizes(sums, f, t, counts)
        sums.dv2 += weighted_sum((v - t_old - k_old) ** 2, counts)
        sums.dq2 += weighted_sum((k - k_old) ** 2, counts)

    def add_sizes(
        self, sums: AdmmSums, f: FloatArray, t: FloatArray, counts: FloatArray | None
    ) -> tuple[FloatArray, FloatArray]:
        """Add the loss, and the squares of f - v, f, v and q; return k and v of the states t."""
        k = self.loss.prox_step(t, self.gamma)
        v = t + k
        sums.loss += weighted_sum(self.loss.value(f), counts)
        sums.primal += weighted_sum((f - v) ** 2, counts)
        sums.f2 += weighted_sum(f**2, counts)
        sums.v2 += weighted_sum(v**2, counts)
        sums.q2 += weighted_sum(k**2, counts)
        return k, v

    def compiled_arguments(self) -> tuple[float, float, FloatArray]:
        """Return gamma, relax, and an array for the sums."""
        return float(self.gamma), float(self.relax), np.zeros(len(names_of(AdmmSums)) - 1)

    def add_compiled(self, sums: AdmmSums, found: FloatArray) -> None:
        """Add the sums of a compiled loop over one column."""
        for name, value in zip(names_of(AdmmSums)[1:], found, strict=True):
            getattr(sums, name)[0] += value


@dataclass(frozen=True)
class NewtonUpdate:
    """New margins, the slope of the rounded loss there, and new multipliers.

    Attributes
    ----------
    roundings : tuple of (float, float)
        For each column the rounding delta at the new point, and ``line``, the one of the slopes
        along the step: 0 without such slopes, -1 if rows have no multipliers yet.
    loss : Loss
        What is minimised.
    """

    roundings: tuple[tuple[float, float], ...]
    loss: Loss = HINGE

    @staticmethod
    def columns(updates: Sequence[NewtonUpdate], K: int) -> NewtonColumns:
        """Return the updates of problems with K columns each, side by side."""
        pairs = np.array([pair for update in updates for pair in update.roundings])
        delta, line = pairs.reshape(-1, 2).T.copy()
        loss = updates[0].loss
        return (SmoothColumns if loss.smooth else NewtonColumns)(delta, line, loss)


@dataclass(frozen=True)
class NewtonColumns:
    """``NewtonUpdate`` for all columns."""

    delta: FloatArray
    line: FloatArray
    loss: Loss
    task: str = "newton"

    zeros = staticmethod(NewtonSums.zeros)

    def apply(
        self, t: FloatArray, f: FloatArray, counts: FloatArray | None, sums: NewtonSums
    ) -> FloatArray:
        """Set the margins t to f and add up all sums but r; return minus the slopes at f.

        The multipliers in t are updated where ``line`` is positive, set to minus the slope where it
        is negative, and unchanged where it is zero.
        """
        loss, delta, line = self.loss, self.delta, self.line
        c = loss.slope(f, delta)
        own = np.where(line < 0.0, c, multipliers(t))
        if np.any(line > 0.0):
            step = np.where(line > 0.0, f - t, 0.0)
            asked = np.where(line > 0.0, line, 1.0)
            start = np.where(line > 0.0, t, 1.0)
            own = np.where(line > 0.0, next_multiplier(loss, start, step, asked, own), own)
            for i, length in enumerate(STEP_LENGTHS):
                slopes = loss.slope(start + length * step, asked) * step
                sums.slopes[i] -= weighted_sum(slopes, counts)
        sums.loss += weighted_sum(loss.value(f), counts)
        sums.gap += weighted_sum(loss.duality_gap(f, c), counts)
        sums.curved += weighted_sum(loss.curvature(f, delta, own), counts)
        t[:] = f
        keep_multipliers(t, own)
        return c

    def add_statistics(
        self,
        sums: NewtonSums,
        f: FloatArray,
        t_old: FloatArray,
        t: FloatArray,
        counts: FloatArray | None,
    ) -> None:
        """Do nothing: ``apply`` has added all sums."""

    def compiled_arguments(self) -> tuple[float, float, FloatArray]:
        """Return delta, line, and an array for the sums."""
        return float(self.delta[0]), float(self.line[0]), np.zeros(4 + len(STEP_LENGTHS))

    def add_compiled(self, sums: NewtonSums, found: FloatArray) -> None:
        """Add the sums of a compiled loop over one column."""
        each = sums.loss, sums.gap, sums.curved, sums.wrong
        for total, value in zip(each, found[: len(each)], strict=True):
            total += value
        sums.slopes[:, 0] += found[len(each) :]

    def curvature(self, t: FloatArray, k: int) -> FloatArray:
        """Return 4 delta times the curvature of rows with states t in column k."""
        return self.loss.curvature(t, float(self.delta[k]), multipliers(t))


class SmoothColumns(NewtonColumns):
    """``NewtonUpdate`` for all columns, by a loss without kinks: rows have no multipliers."""

    def apply(
        self, t: FloatArray, f: FloatArray, counts: FloatArray | None, sums: NewtonSums
    ) -> FloatArray:
        """Set the margins t to f and add up all sums but r; return minus the slopes at f."""
        loss = self.loss
        if np.any(self.line > 0.0):
            step = np.where(self.line > 0.0, f - t, 0.0)
            for i, length in enumerate(STEP_LENGTHS):
                slopes = loss.slope(t + length * step, self.delta) * step
                sums.slopes[i] -= weighted_sum(slopes, counts)
        sums.loss += weighted_sum(loss.value(f), counts)
        sums.curved += weighted_sum(loss.curvature(f, self.delta, NO_MULTIPLIERS), counts)
        t[:] = f
        return loss.slope(f, self.delta)

    def curvature(self, t: FloatArray, k: int) -> FloatArray:
        """Return 4 delta times the curvature of rows with states t in column k."""
        return self.loss.curvature(t, float(self.delta[k]), NO_MULTIPLIERS)


@dataclass(frozen=True)
class ScaleUpdate:
    """No update: the loss at multiples of the scores, corrected for a row's own influence.

    Attributes
    ----------
    leverage : float
        The mean leverage h: what a row's own label has added to its margin.
    loss : Loss
        The loss.
    """

    leverage: float
    loss: Loss

    @staticmethod
    def columns(updates: Sequence[ScaleUpdate], K: int) -> ScaleColumns:
        """Return the updates of problems with K columns each, side by side."""
        leverage = np.repeat([update.leverage for update in updates], K)
        return ScaleColumns(leverage, updates[0].loss)


@dataclass(frozen=True)
class ScaleColumns:
    """``ScaleUpdate`` for all columns."""

    leverage: FloatArray
    loss: Loss
    task: str = "scale"

    zeros = staticmethod(ScaleSums.zeros)

    def apply(
        self, t: FloatArray, f: FloatArray, counts: FloatArray | None, sums: ScaleSums
    ) -> FloatArray:
        """Add up all sums by the margins f; return zero residuals."""
        held_out = (f - self.leverage) / (1.0 - self.leverage)
        for i, scale in enumerate(SCALES):
            slopes = -self.loss.slope(scale * held_out, 1.0) * held_out
            sums.slopes[i] += weighted_sum(slopes, counts)
            curved = self.loss.curvature(scale * held_out, 0.25, NO_MULTIPLIERS)
            sums.curved[i] += weighted_sum(curved, counts)
        sums.loss += weighted_sum(self.loss.value(f), counts)
        return np.zeros_like(f)

    def add_statistics(
        self,
        sums: ScaleSums,
        f: FloatArray,
        t_old: FloatArray,
        t: FloatArray,
        counts: FloatArray | None,
    ) -> None:
        """Do nothing: ``apply`` has added all sums."""

    def compiled_arguments(self) -> tuple[float, float, FloatArray]:
        """Refuse: there is no compiled loop."""
        raise NotImplementedError

    def add_compiled(self, sums: ScaleSums, found: FloatArray) -> None:
        """Refuse: there is no compiled loop."""
        raise NotImplementedError


Update = AdmmUpdate | NewtonUpdate | ScaleUpdate

SCORES_ONLY: Update = AdmmUpdate()
"""The update of problems of which only scores are needed."""


def draw_by_curvature(curved: FloatArray, least: float, first: int) -> tuple[IntArray, FloatArray]:
    """Sample rows for a Hessian; return their indices and the curvature that each is given.

    A row of curvature less than ``least`` is drawn with the probability ``curved / least``, and
    then counts with ``least``. The numbers that decide it depend on the row's position in the data,
    ``first`` being that of the first row, and not on shards.
    """
    spread = (
        first + 0.5 + np.arange(len(curved))
    ) * GOLDEN_RATIO  # so that row 0 is not always drawn
    spread -= np.floor(spread)
    rows = np.flatnonzero(spread * least < curved)
    return rows, np.maximum(curved[rows], least)


def multipliers(t: FloatArray) -> FloatArray:
    """Return the multipliers that are kept in margins."""
    return np.asarray((t.view(np.int64) & MULTIPLIER_LEVELS) / MULTIPLIER_LEVELS)


def keep_multipliers(t: FloatArray, c: FloatArray) -> None:
    """Keep multipliers in margins."""
    bits = t.view(np.int64)
    bits &= ~MULTIPLIER_LEVELS
    bits |= np.rint(c * MULTIPLIER_LEVELS).astype(np.int64)
