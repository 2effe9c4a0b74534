"""The engine on a cluster: the same sums over rows, computed by workers beside their rows.

The cluster holds the rows and their state (``cluster.held_rows``); this process adds up the sums.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from polysift.cluster import tasks
from polysift.cluster.held_rows import HeldRows, HeldState, PartitionedSource
from polysift.cluster.scheduler import Ref
from polysift.cluster.tasks import Keep, Sweep, TaskContext
from polysift.data.training_set import TrainingSet
from polysift.engine.budget import SERIAL, Execution
from polysift.engine.local import features_of
from polysift.engine.problems import Problem
from polysift.engine.sampling import Draw, Picked
from polysift.engine.sums import GramSums, GrowingGram, SweepSums
from polysift.features.feature_map import FeatureMap
from polysift.runtime.checkpoints import Checkpoint
from polysift.runtime.parallel import Partial, Span, TreeSum
from polysift.runtime.progress import Monitor
from polysift.runtime.types import FloatArray

T = TypeVar("T")


class ClusterEngine:
    """The engine on a cluster; see ``Engine``.

    Parameters
    ----------
    data : TrainingSet
        The rows; where its codes are empty, workers find them by its encoding.
    feature_map : FeatureMap
        The features.
    source : PartitionedSource
        The rows on the cluster.
    monitor : Monitor
        Progress and the time limit.
    checkpoint : Checkpoint, optional
        Where the Gram matrix is saved while it grows, as the state "gram" with ``suffix``.
    suffix : str
        Distinguishes the states of one engine from those of another.
    execution : Execution
        How workers execute tasks.
    """

    def __init__(
        self,
        data: TrainingSet,
        feature_map: FeatureMap,
        source: PartitionedSource,
        *,
        monitor: Monitor,
        checkpoint: Checkpoint | None = None,
        suffix: str = "",
        execution: Execution = SERIAL,
    ) -> None:
        self._data, self._cluster = data, source.cluster
        self.n_rows = data.source.n_rows
        self._checkpoint, self._suffix = checkpoint, suffix
        context = TaskContext(
            feature_map,
            data.n_classes,
            data.n_fold_parts,
            data.encoding,
            replace(execution, threads=self._cluster.threads),
        )
        self._rows = HeldRows(data, context, source, monitor)
        self.features = features_of(data, feature_map)
        self._n_centers = feature_map.n_centers

    def total_weight(self, without: int | None = None) -> float:
        """Return the sum of the weights of all rows but those of one fold part."""
        return self._data.total_weight(without)

    def gram(self) -> GramSums:
        """Return the sums that do not depend on u, for each fold part of rows."""
        growing = GrowingGram(
            self._checkpoint, self._suffix, (self._n_centers, self._data.n_columns)
        )
        rows, spans, done = self._rows, self._spans(), growing.done
        left = [i for i, (first, own) in enumerate(spans) if first + len(own) > done]

        def skipped(i: int) -> int:
            return max(done - spans[i][0], 0)

        def submit(i: int) -> list[Ref]:
            first = spans[i][0]
            return rows.submit(tasks.gram, i, rows.labels(i), first, skipped(i), returns=2)

        with growing.saved_at_the_end():
            for i, refs, sums in rows.run("Gram matrix", left, submit):
                rows.set_found(i, refs[1])
                growing.push(sums, len(spans[i][1]) - skipped(i))
        return growing.result()

    def pick(self, draw: Draw) -> Picked:
        """Return the rows of a sample, and what its draw adds up over all rows."""
        rows, spans = self._rows, self._spans()

        def submit(i: int, sent: Ref) -> list[Ref]:
            return rows.submit(tasks.pick, i, rows.labels(i), spans[i][0], sent, returns=2)

        tree: TreeSum[Picked] = TreeSum(Picked.add)
        for i, refs, sums in rows.run_on_all("sample", draw, submit):
            rows.set_found(i, refs[1])
            _push(tree, sums)
        return tree.result()

    def product(self, problems: Sequence[Problem], P: FloatArray) -> FloatArray:
        """Return A' Omega A P, each problem's columns (n, K) by its own rows; no state moves."""
        rows = self._rows

        def submit(i: int, sent: Ref) -> list[Ref]:
            return rows.submit(tasks.product, i, *rows.inputs(i), list(problems), sent, returns=3)

        tree: TreeSum[FloatArray] = TreeSum(operator.add)
        for i, refs, sums in rows.run_on_all("product", P, submit):
            rows.set_found(i, *refs[1:])
            _push(tree, sums)
        return tree.result()

    def curvature(
        self, problem: Problem, number: int, k: int, least: float, T: FloatArray
    ) -> FloatArray:
        """Return T'A' D A T, with D how curved the rows are for a problem's k-th column."""
        rows = self._rows

        def submit(i: int, sent: Ref) -> list[Ref]:
            args = *rows.inputs(i), problem, number, k, least, sent, *rows.state_and_steps(i)
            return rows.submit(tasks.curvature, i, *args)

        tree: TreeSum[FloatArray] = TreeSum(operator.add)
        for _, _, sums in rows.run_on_all("curvature", T, submit):
            _push(tree, sums)
        return tree.result()

    def begin(self, n_problems: int) -> None:
        """Make a state for so many problems: t = 1, that is v = y and w = 0."""
        self._rows.begin(n_problems * self._data.n_columns)

    def keep(self, problems: Sequence[int]) -> None:
        """Drop the state of all other problems."""
        K = self._data.n_columns
        columns = [problem * K + k for problem in problems for k in range(K)]
        if len(columns) == self._rows.log.columns:
            return
        if not columns:
            self.begin(0)
            return
        self._rows.log.append(Keep(columns))  # done along with the next sweep, without a pass

    def sweep(self, problems: Sequence[Problem], u: FloatArray) -> Any:
        """Visit every row with new coefficients, (n, K per problem), and move its state."""
        rows = self._rows
        rows.log.append(Sweep(list(problems), u))
        tree: TreeSum[SweepSums] = TreeSum(SweepSums.add)
        for sums in rows.advance("sweep"):
            _push(tree, sums)
        if self._checkpoint is None and rows.log.should_be_truncated():
            rows.truncate_log()
        return tree.result()

    def scores(self, problems: Sequence[Problem], coefficients: list[FloatArray]) -> FloatArray:
        """Return the scores of every row by the coefficients (n, K per problem) of its fold."""
        rows = self._rows
        out = np.empty((self._data.source.n_rows, len(problems) * self._data.n_columns))

        def submit(i: int, sent: Ref) -> list[Ref]:
            return rows.submit(tasks.scores, i, rows.labels(i), list(problems), sent)

        for i, _, values in rows.run_on_all("scores", coefficients, submit):
            out[slice(*rows.partitions[i].rows)] = values
        return out

    def sweep_seconds(self) -> float:
        """Return the time that a sweep of one problem takes, extrapolated from the first shard."""
        rows = self._rows

        def submit(i: int) -> list[Ref]:
            return rows.submit(tasks.sweep_seconds_per_row, i, rows.labels(i))

        seconds = rows.result("sweep", 0, submit)
        at_once = self._cluster.workers * self._cluster.threads
        return float(seconds) * self._data.source.n_rows / at_once

    def saved(self, checkpoint: Checkpoint, name: str) -> None:
        """Note that the state has been saved: a lost one is made again from there."""
        self._rows.set_saved(checkpoint.path(name))

    @property
    def state(self) -> HeldState:
        """The state, as a checkpoint reads and writes it."""
        return self._rows.state

    def _spans(self) -> list[tuple[int, list[Span]]]:
        """Return the spans of each partition for a Gram matrix, after the number of the first."""
        partitions = self._rows.partitions
        if self._data.fold_parts is None:
            return [(partition.first_shard, partition.shards) for partition in partitions]
        return [(partition.first_joined, partition.joined) for partition in partitions]


def _push(tree: TreeSum[T], sums: Iterable[Partial[T]]) -> None:
    """Add the partial sums of a task to a tree."""
    for level, count, total in sums:
        tree.push(total, level, count)
