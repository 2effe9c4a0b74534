"""The engine: the two sums over rows that the solver asks for, by threads over shards.

Let A be the m x n matrix of features, y the labels and omega the weights. The state is one number
per row and label column: the margin t = y b of b = A u + w / beta. With k the step of the prox from
t, y v = t + k and y q = -k, where q = w / beta. An engine has two verbs, ``gram()`` and
``sweep(u)``; engines differ only in who adds up the shards.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from polysift._checkpoint import Checkpoint
from polysift._data import TrainingSet
from polysift._feature_map import BlockFeatures, FeatureMap
from polysift._monitor import Monitor, OutOfTime
from polysift._parallel import Pool, Span, TreeSum, Workspace, block_spans, tree_sum
from polysift._sums import GramSums, S, SweepSums, add_statistics, move, predicted_codes
from polysift._types import Block, FloatArray

GRAM_ROWS = 2048
STATISTICS_ROWS = 8192


class Engine(Protocol):
    """All that the solver knows of the data."""

    state: FloatArray
    """One number per row and label column, which a sweep moves."""

    @property
    def total_weight(self) -> float:
        """The number of rows, each counted as often as its weight says."""

    def gram(self) -> GramSums:
        """Return the sums that do not depend on u."""

    def sweep(self, u: FloatArray, gamma: float, relax: float) -> SweepSums:
        """Visit every row with new coefficients and move its state.

        Parameters
        ----------
        u : ndarray of shape (n, K)
            The coefficients.
        gamma : float
            m beta, the parameter of the prox.
        relax : float
            Over-relaxation: A u counts as ``relax A u + (1 - relax) v`` in the new state.
        """


class LocalEngine:
    """The engine on one machine. Its state starts at t = 1, that is v = y and w = 0."""

    def __init__(
        self,
        data: TrainingSet,
        feature_map: FeatureMap,
        pool: Pool,
        *,
        monitor: Monitor | None = None,
        checkpoint: Checkpoint | None = None,
        spill: bool = False,
    ) -> None:
        self._data = data
        self._map = feature_map
        self._features = BlockFeatures(feature_map, data.source.dtype)
        self._block_rows = feature_map.block_rows(data.source.dtype)
        self._pool = pool
        self._work = Workspace()
        self._features_per_pass = data.source.n_rows * feature_map.n_centers
        self._monitor = monitor or Monitor()
        self._checkpoint = checkpoint
        self.state = _new_state((data.source.n_rows, data.n_columns), spill)

    @property
    def total_weight(self) -> float:
        """The number of rows, each counted as often as its weight says."""
        return self._data.total_weight

    def gram(self) -> GramSums:
        """Return A' Omega A and A' Omega y, both summed in float64 also for float32 features."""
        tree, done = self._saved_gram()
        shards = self._data.shards[done:]
        parts = self._pool.map(
            self._gram_shard, self._data.source.parts(done), work=self._features_per_pass
        )
        try:
            for sums in self._watch("Gram matrix", shards, parts):
                tree.push(sums)
                done += 1
                if self._checkpoint is not None and self._checkpoint.due():
                    self._save_gram(tree, done)
        except OutOfTime:  # raised between parts; Ctrl-C can strike within one, and saves nothing
            self._save_gram(tree, done)
            raise
        if shards:
            self._save_gram(tree, done)
        return tree.result()

    def sweep(self, u: FloatArray, gamma: float, relax: float) -> SweepSums:
        """Visit every row with new coefficients and move its state."""

        def visit(item: tuple[Span, Any]) -> SweepSums:
            return self._sweep_shard(item, u, gamma, relax)

        parts = self._pool.map(visit, self._data.source.parts(), work=self._features_per_pass)
        return tree_sum(self._watch("sweep", self._data.shards, parts), SweepSums.add)

    def _watch(self, phase: str, shards: list[Span], parts: Iterator[S]) -> Iterator[S]:
        rows = [stop - start for start, stop in shards]
        return self._monitor.watch(phase, sum(rows), zip(rows, parts, strict=True))

    def _save_gram(self, tree: TreeSum[GramSums], done: int) -> None:
        """Save the partial sums, of which there is at most one per level of the tree."""
        if self._checkpoint is None:
            return
        arrays: dict[str, FloatArray] = {}
        for level, (_, total) in enumerate(tree.levels):
            if total is not None:
                arrays |= {f"G{level}": total.G, f"Aty{level}": total.Aty}
        counts = [count for count, _ in tree.levels]
        self._checkpoint.save("gram", arrays, {"shards": done, "counts": counts})

    def _saved_gram(self) -> tuple[TreeSum[GramSums], int]:
        saved = None if self._checkpoint is None else self._checkpoint.load("gram")
        if saved is None:
            return TreeSum(GramSums.add), 0
        arrays, values = saved
        levels = [
            (count, GramSums(arrays[f"G{i}"], arrays[f"Aty{i}"]) if f"G{i}" in arrays else None)
            for i, count in enumerate(values["counts"])
        ]
        return TreeSum(GramSums.add, levels), values["shards"]

    def _gram_shard(self, item: tuple[Span, Any]) -> GramSums:
        span, part = item
        n, data = self._map.n_centers, self._data
        X = data.source.rows(part)
        sums = GramSums(np.zeros((n, n)), np.zeros((n, data.n_columns)))
        product = self._work.array("product", (n, n), float)
        for rows in block_spans(span, GRAM_ROWS):
            A = self._gram_features(X[rows[0] - span[0] : rows[1] - span[0]])
            y, weights = data.labels_of(rows), data.weights_of(rows)
            if weights is not None:
                A[weights == 0] = 0.0  # such rows were not surveyed, and may overflow
                root = np.sqrt(weights)[:, np.newaxis]
                A *= root
                y *= root
            np.matmul(A.T, A, out=product)  # numpy sees the symmetry and halves the work
            sums.G += product
            sums.Aty += A.T @ y
        return sums

    def _gram_features(self, X: Block) -> FloatArray:
        """Return the features of many rows as float64, made in blocks that fit the cache."""
        A = self._work.array("A", (X.shape[0], self._map.n_centers), float)
        for lo, hi in block_spans((0, X.shape[0]), self._block_rows):
            if X.dtype == A.dtype:
                self._features(X[lo:hi], out=A[lo:hi])
            else:
                A[lo:hi] = self._features(X[lo:hi])
        return A

    def _sweep_shard(
        self, item: tuple[Span, Any], u: FloatArray, gamma: float, relax: float
    ) -> SweepSums:
        span, part = item
        X = self._data.source.rows(part)
        sums = SweepSums.zeros(*u.shape)
        u_cast = u.astype(self._data.source.dtype)
        for rows in block_spans(span, STATISTICS_ROWS):
            block = X[rows[0] - span[0] : rows[1] - span[0]]
            self._sweep_rows(rows, block, u_cast, gamma, relax, sums)
        return sums

    def _sweep_rows(
        self,
        rows: Span,
        X: Block,
        u: FloatArray,
        gamma: float,
        relax: float,
        sums: SweepSums,
    ) -> None:
        """Move the state of many rows by blocks, then take their statistics in one go."""
        shape = (rows[1] - rows[0], u.shape[1])
        f = self._work.array("f", shape, float)
        y = self._data.labels_of(rows)
        weights = self._data.weights_of(rows)
        y_omega = y if weights is None else y * weights[:, np.newaxis]
        t = self.state[rows[0] : rows[1]]
        t_old = t.copy()
        for lo, hi in block_spans((0, X.shape[0]), self._block_rows):
            A = self._features(X[lo:hi])
            part = slice(lo, hi)
            if weights is not None:
                A[weights[part] == 0] = 0.0  # such rows were not surveyed, and may overflow
            np.multiply(A @ u, y[part], out=f[part])
            residual = move(t[part], f[part], gamma, relax)
            residual *= y_omega[part]
            sums.r += A.T @ residual.astype(A.dtype, copy=False)
        wrong = predicted_codes(f * y) != self._data.codes[rows[0] : rows[1]]
        sums.wrong += wrong.sum() if weights is None else weights @ wrong
        add_statistics(sums, f, t_old, t, gamma, weights)


def _new_state(shape: tuple[int, int], spill: bool) -> FloatArray:
    """Return a state of ones, in memory or in a file that nobody else sees."""
    if not spill:
        return np.ones(shape)
    with tempfile.TemporaryFile(prefix="polysift-") as file:
        try:  # written, not only mapped: a full disk is an error here, and a crash in a map
            for lo, hi in block_spans((0, shape[0]), 2**16):
                file.write(np.ones((hi - lo, shape[1])).data)
            file.flush()
        except OSError as error:
            raise OSError(
                error.errno,
                f"The per-row state ({shape[0] * shape[1] * 8:,} bytes) could not be written to "
                f"{tempfile.gettempdir()}: {error}. Free space there, point TMPDIR elsewhere, or "
                "raise memory_limit.",
            ) from error
        return np.memmap(file, dtype=float, mode="r+", shape=shape)
