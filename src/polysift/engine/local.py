"""The engine on one machine: threads process shards of rows."""

from __future__ import annotations

import operator
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from polysift.data.training_set import TrainingSet
from polysift.engine.budget import SERIAL, Execution
from polysift.engine.problems import Problem, Problems
from polysift.engine.sampling import Draw, Picked
from polysift.engine.shard_features import Item
from polysift.engine.shards import ShardWork
from polysift.engine.sums import GramSums, GrowingGram, SweepSums
from polysift.features.feature_map import BlockFeatures, FeatureMap
from polysift.runtime import clock
from polysift.runtime.checkpoints import Checkpoint
from polysift.runtime.parallel import Pool, Span, block_spans, tree_sum
from polysift.runtime.progress import Monitor
from polysift.runtime.types import Block, FloatArray

T = TypeVar("T")

MIN_SHARD_FEATURES = 2**18
"""Features of a shard times columns of coefficients: with fewer, one thread does a pass."""


class LocalEngine:
    """The engine on one machine.

    Parameters
    ----------
    data : TrainingSet
        The rows.
    feature_map : FeatureMap
        The features; problems with fewer centers use the first of them.
    pool : Pool
        The threads.
    execution : Execution
        Whether state is spilled and features are kept, and whether loops are compiled.
    monitor : Monitor, optional
        Receives the shards that are done.
    checkpoint : Checkpoint, optional
        Where the partial Gram matrix is saved, as the state "gram" with ``suffix``.
    suffix : str
        Distinguishes the states of several engines in one checkpoint.
    """

    def __init__(
        self,
        data: TrainingSet,
        feature_map: FeatureMap,
        pool: Pool,
        execution: Execution = SERIAL,
        *,
        monitor: Monitor | None = None,
        checkpoint: Checkpoint | None = None,
        suffix: str = "",
    ) -> None:
        self._data, self._pool = data, pool
        self._work = ShardWork(data, feature_map, execution)
        self.features = features_of(data, feature_map)
        self._features_per_pass = data.source.n_rows * feature_map.n_centers
        self._monitor = monitor or Monitor()
        self._checkpoint, self._suffix = checkpoint, suffix
        self._spill = execution.spill
        self.n_rows = data.source.n_rows
        self.state = np.empty((self.n_rows, 0))

    def total_weight(self, without: int | None = None) -> float:
        """Return the sum of the weights of all rows but those of one fold part."""
        return self._data.total_weight(without)

    def gram(self) -> GramSums:
        """Return the sums that do not depend on u, for each fold part of rows."""
        growing = GrowingGram(
            self._checkpoint, self._suffix, (self._work.n_centers, self._data.n_columns)
        )
        spans = self._work.spans()[growing.done :]
        parts = self._pool.map(
            self._work.gram, self._data.source.parts(spans), work=self._features_per_pass
        )
        with growing.saved_at_the_end():
            for sums in self._watch("Gram matrix", spans, parts):
                growing.push([(0, 1, sums)], 1)
        return growing.result()

    def pick(self, draw: Draw) -> Picked:
        """Return the rows of a sample, and the sums of its draw over all rows."""
        spans = self._work.spans()
        work = self._features_per_pass
        parts = self._pool.map(
            lambda item: self._work.pick(item, draw), self._data.source.parts(spans), work=work
        )
        return tree_sum(self._watch("sample", spans, parts), Picked.add)

    def product(self, problems: Sequence[Problem], P: FloatArray) -> FloatArray:
        """Return A' Omega A P, each problem's columns (n, K) over its own rows; keeps the state."""
        table = Problems(problems, self._data.n_columns)
        parts = self._pool.map(
            lambda item: self._work.product(item, table, P),
            self._items(),
            **self._schedule(table.n_columns),
        )
        return tree_sum(self._watch("product", self._data.shards, parts), operator.add)

    def curvature(
        self, problem: Problem, number: int, k: int, least: float, T: FloatArray
    ) -> FloatArray:
        """Return T'A' D A T, with D the curvature of the rows in a problem's column k."""
        table = Problems([problem], self._data.n_columns)
        column = number * self._data.n_columns + k

        def visit(item: Item) -> FloatArray:
            t = np.asarray(self.state[slice(*item[0]), column])
            return self._work.curvature(item, table, k, least, t, T)

        parts = self._pool.map(visit, self._items(), **self._schedule(1))
        return tree_sum(self._watch("curvature", self._data.shards, parts), operator.iadd)

    def begin(self, n_problems: int) -> None:
        """Allocate the state of ``n_problems`` problems, with t = 1: v = y and w = 0."""
        self.state = new_state((len(self.state), n_problems * self._data.n_columns), self._spill)

    def keep(self, problems: Sequence[int]) -> None:
        """Keep the state of these problems, by their indices, and drop that of all others."""
        K, m = self._data.n_columns, len(self.state)
        columns = [problem * K + k for problem in problems for k in range(K)]
        if len(columns) == self.state.shape[1]:
            return
        flat = self.state.reshape(-1)  # packed in place: writes never overtake reads
        for lo, hi in block_spans((0, m), 2**16):
            kept = self.state[lo:hi, columns]
            flat[lo * len(columns) : hi * len(columns)] = kept.reshape(-1)
        self.state = flat[: m * len(columns)].reshape(m, len(columns))

    def sweep(self, problems: Sequence[Problem], u: FloatArray) -> Any:
        """Update the state of every row by new coefficients (n, K per problem); return the sums."""
        table = Problems(problems, self._data.n_columns)

        def visit(item: Item) -> SweepSums:
            return self._work.sweep(item, table, u, self.state[slice(*item[0])])

        parts = self._pool.map(visit, self._items(), **self._schedule(table.n_columns))
        return tree_sum(self._watch("sweep", self._data.shards, parts), SweepSums.add)

    def scores(self, problems: Sequence[Problem], coefficients: list[FloatArray]) -> FloatArray:
        """Return the scores of every row by the coefficients (n, K per problem) of its fold."""
        table = Problems(problems, self._data.n_columns)
        out = np.empty((len(self.state), table.n_columns))

        def visit(item: Item) -> None:
            out[item[0][0] : item[0][1]] = self._work.scores(item, table, coefficients)

        work = self._features_per_pass
        parts = self._pool.map(visit, self._data.source.parts(), work=work)
        for _ in self._watch("scores", self._data.shards, parts):
            pass
        return out

    def sweep_seconds(self) -> float:
        """Return the seconds of a sweep of one problem, measured on the first shard."""
        span = self._data.shards[0]
        item = next(self._data.source.parts([span]))
        K, n = self._data.n_columns, self._work.n_centers
        table, u, state = Problems([Problem(n)], K), np.zeros((n, K)), np.ones((span[1], K))
        self._work.sweep(item, table, u, state)  # untimed: it allocates the buffers
        began = clock.now()
        self._work.sweep(item, table, u, state)
        seconds = clock.now() - began
        return seconds * self._data.source.n_rows / (span[1] - span[0]) / self._pool.n_threads

    def _schedule(self, columns: int) -> dict[str, int]:
        """Return the arguments of ``Pool.map`` for a pass with so many columns.

        Between two shards a thread needs the interpreter lock. So rows in memory are processed
        several shards at a time, and by one thread where shards are little work.
        """
        work, shards = self._features_per_pass, len(self._data.shards)
        if self._data.source.unit_bytes:  # files: one thread reads while another computes
            return {"work": work}
        if work * columns < MIN_SHARD_FEATURES * shards:
            return {"work": 0}
        return {"work": work, "together": max(1, shards // (8 * self._pool.n_threads))}

    def _items(self) -> Iterable[Item]:
        """Return the shards, without their rows if all features are kept."""
        if self._work.all_kept():
            return [(span, None) for span in self._data.shards]
        return self._data.source.parts()

    def _watch(self, phase: str, spans: list[Span], parts: Iterator[T]) -> Iterator[T]:
        rows = [stop - start for start, stop in spans]
        return self._monitor.watch(phase, sum(rows), zip(rows, parts, strict=True))

    def saved(self, checkpoint: Checkpoint, name: str) -> None:
        """Do nothing: the state cannot be lost while this process lives."""


def features_of(data: TrainingSet, feature_map: FeatureMap) -> Callable[[Block, FloatArray], None]:
    """Return a function that writes the features of rows into a float64 array.

    They are computed as in a sweep, in the dtype of the data.
    """
    made = BlockFeatures(feature_map, data.source.dtype)

    def write(X: Block, out: FloatArray) -> None:
        if out.dtype == made.dtype:
            made(X, out)
        else:
            out[:] = made(X)

    return write


def new_state(shape: tuple[int, int], spill: bool) -> FloatArray:
    """Return a state of ones, in memory or in an unnamed temporary file."""
    if not spill or 0 in shape:
        return np.ones(shape)
    try:  # written, not only mapped: a full disk raises here, but would crash a mapped write
        with tempfile.TemporaryFile(prefix="polysift-") as file:
            for lo, hi in block_spans((0, shape[0]), 2**16):
                file.write(np.ones((hi - lo, shape[1])).data)
            file.flush()
            return np.memmap(file, dtype=float, mode="r+", shape=shape)
    except OSError as error:
        raise OSError(
            error.errno,
            f"The per-row state ({shape[0] * shape[1] * 8:,} bytes) could not be written to "
            f"{tempfile.gettempdir()}: {error}. Free space there, point TMPDIR elsewhere, or "
            "raise memory_limit.",
        ) from error
