"""A cluster as a backend: the survey, the engine and shard tasks by workers, and their memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

from polysift.cluster import tasks
from polysift.cluster.engine import ClusterEngine
from polysift.cluster.held_rows import PartitionedSource
from polysift.cluster.partitions import Partition, cut_into_partitions, partition_sizes
from polysift.cluster.scheduler import Cluster, LostError, Ref, Scheduler
from polysift.data.source import DataSource
from polysift.data.training_set import TrainingSet
from polysift.engine.backend import FitContext, ShardTask
from polysift.engine.budget import (
    MAX_KEPT_FEATURES_SHARE,
    Execution,
    Shape,
    calibration_bytes,
    features_bytes,
    megabytes,
    peak_bytes,
    state_bytes,
    tree_levels,
)
from polysift.engine.engine import FullEngine
from polysift.features.feature_map import FeatureMap
from polysift.features.survey import Questions, Survey, refuse_huge_values
from polysift.runtime.parallel import Pool, TreeSum, shard_spans
from polysift.runtime.progress import Monitor

MAX_TASK_ROWS_BYTES = 2**28
"""The most that the rows of a shard task take as numbers: arrays are sent in such parts."""


class ClusterBackend:
    """The workers of a cluster, for one fit, search or prediction; see ``Backend``.

    Parameters
    ----------
    cluster : Cluster
        The workers.
    future : bool
        Whether they are those of a cluster that does not run yet, to plan with.
    """

    gathers = False

    def __init__(self, cluster: Cluster, *, future: bool = False) -> None:
        self.cluster, self.future = cluster, future
        self._size: int | None = None  # the longest partition that fits the workers' memory
        self._source: tuple[DataSource, int, PartitionedSource] | None = None

    @property
    def workers(self) -> int:
        """How many tasks run at once."""
        return self.cluster.workers

    @property
    def threads(self) -> int:
        """The threads of each."""
        return self.cluster.threads

    def survey(
        self, source: DataSource, questions: Questions, pool: Pool, monitor: Monitor
    ) -> Survey:
        """Visit every row once and answer the questions."""
        rows = self._partitioned(source)
        tree: TreeSum[Survey] = TreeSum(lambda a, b: a.merge(b, questions.n_centers))
        for _, found in self._run("survey", rows, tasks.survey_partition, questions, monitor):
            for level, count, part in found:
                tree.push(part, level, count)
        total = tree.result()
        refuse_huge_values(source, total.statistics)
        return total

    def fit_in(
        self, limit: int, shape: Shape, threads: int, *, keep_features: bool = False
    ) -> Execution:
        """Return the execution of a fit: this process and each worker may take ``limit`` bytes."""
        execution = Execution(threads, 2 * self.cluster.workers)
        own = self.peak_bytes(shape, execution)
        if own > limit:
            raise MemoryError(
                f"This fit needs {megabytes(own)} in this process beside its workers "
                f"({shape.centers} centers), but memory_limit allows {megabytes(limit)}. Raise "
                "memory_limit, or lower n_centers."
            )
        self._size = self._longest_partition(limit, shape)
        return replace(execution, keep_features=keep_features and self._can_keep(limit, shape))

    def fit_problems(
        self,
        limit: int,
        shape: Shape,
        per_candidate: int,
        wanted: int,
        threads: int,
        *,
        keep_features: bool = False,
    ) -> tuple[Execution, int]:
        """Return the execution of a search, and how many candidates it advances at once."""
        candidates = max(wanted, 1)
        while candidates > 1:
            try:
                wide = replace(shape, problems=candidates * per_candidate)
                return self.fit_in(limit, wide, threads, keep_features=keep_features), candidates
            except MemoryError:
                candidates = -(-candidates // 2)
        one = replace(shape, problems=per_candidate)
        return self.fit_in(limit, one, threads, keep_features=keep_features), 1

    def peak_bytes(self, shape: Shape, execution: Execution) -> int:
        """Return the most that this process holds at once, beside the labels of the rows.

        Sums that wait to be added lie in the object store, however many workers make them.
        """
        sums = 1 + tree_levels(len(shard_spans(shape.rows)))
        few = replace(shape, rows=1, unit_bytes=0)
        return max(peak_bytes(few, Execution(1, 1), sums=sums), calibration_bytes(shape))

    def worker_bytes(self, shape: Shape, execution: Execution) -> int:
        """Return the most that a worker holds at once."""
        partitions = self._cut(shape)
        rows = max(partition.n_rows for partition in partitions)
        own = replace(shape, rows=rows, calibrated=False)  # the process of the fit calibrates
        kept = features_bytes(own) if execution.keep_features else 0
        return self._task_bytes(shape, partitions) + kept

    def engine(
        self,
        data: TrainingSet,
        feature_map: FeatureMap,
        context: FitContext,
        suffix: str = "",
    ) -> FullEngine:
        """Return an engine by the workers."""
        return ClusterEngine(
            data,
            feature_map,
            self._partitioned(data.source),
            monitor=context.monitor,
            checkpoint=context.checkpoint,
            suffix=suffix,
            execution=context.execution,
        )

    def last_words(self, advice: str) -> AbstractContextManager[None]:
        """Say ``advice``, if the cluster ends this process inside, where it can do so."""
        of_cluster = getattr(self.cluster, "last_words", None)
        return nullcontext() if of_cluster is None else of_cluster(advice)

    def process_shards(
        self, phase: str, source: DataSource, task: ShardTask, threads: int, monitor: Monitor
    ) -> None:
        """Run a task on all shards of a source, by workers that read the rows themselves."""
        rows = PartitionedSource(self.cluster, source, self._task_partitions(source))
        for i, error in self._run(phase, rows, tasks.process_partition, task, monitor):
            if error is not None:
                raise error
            rows.drop(i)  # they are read once: the cluster needs the room for others

    def _run(
        self,
        phase: str,
        rows: PartitionedSource,
        function: Callable[..., Any],
        value: Any,
        monitor: Monitor,
    ) -> Iterator[tuple[int, Any]]:
        """Run ``function(rows, value, first_shard, threads)`` on all partitions; yield results."""
        partitions, sent = rows.partitions, [self.cluster.put(value)]

        def submit(i: int) -> list[Ref]:
            first, threads = partitions[i].first_shard, self.cluster.threads
            return self.cluster.submit(function, rows[i], sent[0], first, threads)

        def recover(i: int, lost: LostError) -> str:
            if lost.objects:
                rows.drop(i)
                sent[0] = self.cluster.put(value)
            return ""

        scheduler = Scheduler(self.cluster, partitions, monitor)
        for i, _, result in scheduler.run(phase, range(len(partitions)), submit, recover):
            yield i, result

    def _partitioned(self, source: DataSource) -> PartitionedSource:
        """Return the partitions of a source; it is cut again only when they must be shorter."""
        size = self._size or 1
        if self._source is None or self._source[:2] != (source, size):
            partitions = cut_into_partitions(source.shards(), size)
            self._source = source, size, PartitionedSource(self.cluster, source, partitions)
        return self._source[2]

    def _task_partitions(self, source: DataSource) -> list[Partition]:
        """Return long partitions: a row group on the border of two is decoded by both tasks."""
        shards, row_bytes = source.shards(), source.dtype.itemsize * source.n_features
        partitions: list[Partition] = []
        for size in partition_sizes(shards, self.cluster.workers):
            partitions = cut_into_partitions(shards, size)
            if max(part.n_rows for part in partitions) * row_bytes <= MAX_TASK_ROWS_BYTES:
                break
        return partitions

    def _longest_partition(self, limit: int, shape: Shape) -> int:
        """Return how many joined spans a task can have, or raise with the parameter to change.

        Partitions never grow once they are cut, so that what the cluster holds remains of use.
        """
        room = min(limit, self.cluster.worker_memory)
        shards, least = shard_spans(shape.rows), 0
        for size in partition_sizes(shards, self.cluster.workers):
            least = self._task_bytes(shape, cut_into_partitions(shards, size))
            if least <= room:
                return size if self._size is None else min(size, self._size)
        raise MemoryError(
            f"This fit needs {megabytes(least)} in each worker at the least ({shape.features} "
            f"features, {shape.centers} centers), but has {megabytes(room)}: "
            + ("so much memory_limit allows" if limit <= room else "its share of its machine")
            + f". {'Raise memory_limit, or lower' if limit <= room else 'Lower'} n_centers."
        )

    def _can_keep(self, limit: int, shape: Shape) -> bool:
        """Return whether the features fit the object store, and a worker those of a partition."""
        partitions = self._cut(shape)
        rows = max(partition.n_rows for partition in partitions)
        own = replace(shape, rows=rows, calibrated=False)  # the process of the fit calibrates
        room = min(limit, self.cluster.worker_memory)
        fits = self._task_bytes(shape, partitions) + features_bytes(own) <= room
        return fits and features_bytes(shape) <= MAX_KEPT_FEATURES_SHARE * self.cluster.store_memory

    def _cut(self, shape: Shape) -> list[Partition]:
        return cut_into_partitions(shard_spans(shape.rows), self._size or 1)

    def _task_bytes(self, shape: Shape, partitions: list[Partition]) -> int:
        """Return the most that a task on any of some partitions holds at once."""
        rows = max(partition.n_rows for partition in partitions)
        own = replace(shape, rows=rows, calibrated=False)  # the process of the fit calibrates
        shard_rows = max(stop - start for part in partitions for start, stop in part.shards)
        sums = max(partition.n_sums for partition in partitions)
        threads = self.cluster.threads
        work = Execution(threads, 1 if threads == 1 else 2 * threads)
        most = peak_bytes(own, work, shard_rows=shard_rows, sums=sums)
        return most + state_bytes(own)  # the old state beside the new one
