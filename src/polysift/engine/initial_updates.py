"""The updates of rows in the first passes after an initial point of Algorithm 1 that is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from polysift.engine.row_updates import AdmmColumns, AdmmUpdate
from polysift.engine.sums import AdmmSums, weighted_sum
from polysift.runtime.types import FloatArray


@dataclass(frozen=True)
class GivenUpdate(AdmmUpdate):
    """No update: a sweep returns A'(t - A u) for given states t, and leaves them as they are."""

    @staticmethod
    def columns(updates: Sequence[AdmmUpdate], K: int) -> GivenColumns:
        """Return the updates of problems with K columns each, side by side."""
        return GivenColumns(1.0, 1.0, updates[0].loss)


@dataclass(frozen=True)
class GivenColumns(AdmmColumns):
    """``GivenUpdate`` for all columns."""

    task: str = "given"

    def apply(
        self, t: FloatArray, f: FloatArray, counts: FloatArray | None, sums: AdmmSums
    ) -> FloatArray:
        """Return t - f."""
        return np.asarray(t - f)

    def add_statistics(
        self,
        sums: AdmmSums,
        f: FloatArray,
        t_old: FloatArray,
        t: FloatArray,
        counts: FloatArray | None,
    ) -> None:
        """Add nothing."""


@dataclass(frozen=True)
class FirstUpdate(AdmmUpdate):
    """``AdmmUpdate`` after an initial point that is given: the state of a row is its q, not its t.

    The q of a given point need not be one that a t has. What v has moved is for the caller to add,
    who knows where it was.
    """

    @staticmethod
    def columns(updates: Sequence[AdmmUpdate], K: int) -> FirstColumns:
        """Return the updates of problems with K columns each, side by side."""
        (gamma,) = {update.gamma for update in updates}
        return FirstColumns(gamma, 1.0, updates[0].loss)


@dataclass(frozen=True)
class FirstColumns(AdmmColumns):
    """``FirstUpdate`` for all columns."""

    task: str = "first"

    def apply(
        self, t: FloatArray, f: FloatArray, counts: FloatArray | None, sums: AdmmSums
    ) -> FloatArray:
        """Update the states from q to t = f + q; return v - q - f of the new v and q."""
        t += f
        return self.residual(t, f)

    def add_statistics(
        self,
        sums: AdmmSums,
        f: FloatArray,
        t_old: FloatArray,
        t: FloatArray,
        counts: FloatArray | None,
    ) -> None:
        """Add the sums over rows that measure progress, but for the change of v."""
        k, _ = self.add_sizes(sums, f, t, counts)
        sums.dq2 += weighted_sum((k + t_old) ** 2, counts)
