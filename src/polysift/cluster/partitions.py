"""Partitions of the rows: runs of neighbouring shards, each of which is the data of one task."""

from __future__ import annotations

from dataclasses import dataclass

from polysift.engine.shard_features import joined_spans
from polysift.runtime.parallel import FAN_IN, Span, partial_sums

SHORT_TASK_ROWS = 2**16
"""Rows below which a task is so short that the time to submit it counts."""

MAX_PARTITIONS = 1024
"""Partitions beyond which submitting the tasks takes longer than the workers gain."""

MAX_JOINED_SPANS = 64
"""Joined spans of a partition, at most, so that no task takes long: some million rows."""


@dataclass(frozen=True)
class Partition:
    """A run of neighbouring shards.

    Attributes
    ----------
    shards : list of (int, int)
        Their spans.
    first_shard : int
        The number of the first of them.
    joined : list of (int, int)
        The spans of a Gram matrix by fold parts, over the same rows.
    first_joined : int
        The number of the first of those.
    """

    shards: list[Span]
    first_shard: int
    joined: list[Span]
    first_joined: int

    @property
    def rows(self) -> Span:
        """The first row, and the one after the last."""
        return self.shards[0][0], self.shards[-1][1]

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.rows[1] - self.rows[0]

    @property
    def n_sums(self) -> int:
        """The most sums over its shards, or joined spans, that the tree of all sums needs."""
        spans = (self.first_shard, len(self.shards)), (self.first_joined, len(self.joined))
        return max(len(partial_sums(first, range(count), max)) for first, count in spans)

    def __str__(self) -> str:
        return f"rows {self.rows[0]:,} to {self.rows[1] - 1:,}"


def partition_sizes(shards: list[Span], workers: int) -> list[int]:
    """Return how many joined spans a partition may have, in decreasing order down to 1.

    The longer the partitions, the fewer tasks and sums there are. But each worker should have four
    of them, since their times differ; two where they are so short that submitting a task counts, or
    where one is a run of eight, 64, ... spans, of which the tree needs but one sum. One process
    submits all tasks and adds up their sums, so with many workers there are fewer of them for each.
    """
    joined = joined_spans(shards)
    count, rows = len(joined), shards[-1][1]

    def per_worker(size: int) -> int:
        return 2 if rows / count * size < SHORT_TASK_ROWS else 4

    size = 1
    while count >= per_worker(2 * size) * workers * 2 * size:
        size *= 2
    whole = 1
    while count >= 2 * workers * FAN_IN * whole:
        whole *= FAN_IN
    longest = max(size, whole)
    while count > MAX_PARTITIONS * longest:
        longest *= 2
    longest = min(longest, MAX_JOINED_SPANS)
    return [2**k for k in reversed(range(longest.bit_length()))]


def cut_into_partitions(shards: list[Span], size: int) -> list[Partition]:
    """Cut shards into partitions of ``size`` joined spans each."""
    joined = joined_spans(shards)
    numbers = {start: number for number, (start, _) in enumerate(shards)}
    starts = [*(numbers[start] for start, _ in joined), len(shards)]
    partitions = []
    for first in range(0, len(joined), size):
        last = min(first + size, len(joined))
        own = shards[starts[first] : starts[last]]
        partitions.append(Partition(own, starts[first], joined[first:last], first))
    return partitions
