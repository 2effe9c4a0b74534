"""The interface between solvers and data: an engine, which computes sums over the rows.

Let A be the m x n matrix of features, y the labels and omega the weights. An engine holds a state
of one float64 per row, label column and problem, which a sweep updates (``row_updates``). Engines
differ only in what processes the shards: the threads of this process (``local``), or workers
(``cluster``).

The ADMM and the loop need an ``Engine``. With a sampled Gram matrix a solver needs a
``SamplingEngine``, and Newton's method a ``CurvatureEngine``. A backend opens all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from polysift.engine.problems import Problem
from polysift.engine.sampling import Draw, Picked
from polysift.engine.sums import GramSums
from polysift.runtime.arrays import RowBlocks
from polysift.runtime.checkpoints import Checkpoint
from polysift.runtime.types import Block, FloatArray


class Engine(Protocol):
    """Gram matrices, sweeps and scores, and the state of the rows between sweeps."""

    @property
    def n_rows(self) -> int:
        """The number of rows."""

    def total_weight(self, without: int | None = None) -> float:
        """Return the sum of the weights of all rows but those of one fold part."""

    def gram(self) -> GramSums:
        """Return the sums that do not depend on u, for each fold part."""

    def sweep(self, problems: Sequence[Problem], u: FloatArray) -> Any:
        """Update the state of every row by new coefficients (n, K per problem); return the sums."""

    def scores(self, problems: Sequence[Problem], coefficients: list[FloatArray]) -> FloatArray:
        """Return the scores of every row by the coefficients (n, K per problem) of its fold."""

    @property
    def state(self) -> FloatArray | RowBlocks:
        """One number per row and column, K of them for each problem."""

    def begin(self, n_problems: int) -> None:
        """Allocate the state of ``n_problems`` problems, with t = 1: v = y and w = 0."""

    def keep(self, problems: Sequence[int]) -> None:
        """Keep the state of these problems, by their indices, and drop that of all others."""

    def saved(self, checkpoint: Checkpoint, name: str) -> None:
        """Note that the state has been saved under this name."""


class SamplingEngine(Engine, Protocol):
    """An engine that also samples rows: for a sampled Gram matrix, or a start on a subsample."""

    def pick(self, draw: Draw) -> Picked:
        """Return the rows of a sample, and the sums of its draw over all rows."""

    def features(self, X: Block, out: FloatArray) -> None:
        """Write the features of a few rows into a float64 array; this is thread-safe."""

    def product(self, problems: Sequence[Problem], P: FloatArray) -> FloatArray:
        """Return A' Omega A P, each problem's columns (n, K) over its own rows; keeps the state."""


class CurvatureEngine(Engine, Protocol):
    """An engine that also computes Hessians, for Newton's method."""

    def curvature(
        self, problem: Problem, number: int, k: int, least: float, T: FloatArray
    ) -> FloatArray:
        """Return T'A' D A T, with D the curvature of the rows in a problem's k-th column.

        The problem is the ``number``-th of the last sweep. Rows of a curvature less than ``least``
        are sampled, and weighted accordingly. T is upper triangular.
        """


class FullEngine(SamplingEngine, CurvatureEngine, Protocol):
    """An engine for every solver, which also measures its speed: what a backend opens."""

    def sweep_seconds(self) -> float:
        """Return the seconds of a sweep of one problem, measured on a few rows."""
