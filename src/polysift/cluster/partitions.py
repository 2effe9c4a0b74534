"""Partitions: runs of neighbouring shards, each of which is one worker's task at a time."""

from __future__ import annotations

from dataclasses import dataclass

from polysift.engine.shard_features import joined_spans
from polysift.runtime.parallel import FAN_IN, Span, partial_sums

SHORT = 2**16
"""Rows below which a task takes so little time that its way to a worker counts."""

MANY = 1024
"""Partitions beyond which the process that hands them out takes longer than the workers gain."""

LONGEST = 64
"""The most joined spans of a partition, lest a task take too long: some million rows."""


@dataclass(frozen=True)
class Partition:
    """Neighbouring shards.

    Attributes
    ----------
    shards : list of (int, int)
        Their spans.
    first_shard : int
        The number of the first of them.
    joined : list of (int, int)
        The same rows in the spans of a Gram matrix by fold parts.
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
        """How many sums over its shards, or joined spans, the tree of all sums needs at most."""
        spans = (self.first_shard, len(self.shards)), (self.first_joined, len(self.joined))
        return max(len(partial_sums(first, range(count), max)) for first, count in spans)

    def __str__(self) -> str:
        return f"rows {self.rows[0]:,} to {self.rows[1] - 1:,}"


def partition_sizes(shards: list[Span], workers: int) -> list[int]:
    """Return how many joined spans a partition may take, the most first; 1 comes last.

    The longer the partitions, the fewer tasks and sums there are; but each worker should have four
    of them, since their times differ. Two will do where they are short, so that handing out a task
    counts, or where one is a run of eight, 64, ... spans, of which the tree needs but one sum. Who
    hands out the tasks and takes in the sums is one process, so many workers have to share few.
    """
    joined = joined_spans(shards)
    count, rows = len(joined), shards[-1][1]

    def each(size: int) -> int:
        return 2 if rows / count * size < SHORT else 4

    size = 1
    while count >= each(2 * size) * workers * 2 * size:
        size *= 2
    whole = 1
    while count >= 2 * workers * FAN_IN * whole:
        whole *= FAN_IN
    longest = max(size, whole)
    while count > MANY * longest:
        longest *= 2
    longest = min(longest, LONGEST)
    return [2**k for k in reversed(range(longest.bit_length()))]


def cut_into_partitions(shards: list[Span], size: int) -> list[Partition]:
    """Cut shards into partitions of so many joined spans."""
    joined = joined_spans(shards)
    numbers = {start: number for number, (start, _) in enumerate(shards)}
    starts = [*(numbers[start] for start, _ in joined), len(shards)]
    partitions = []
    for first in range(0, len(joined), size):
        last = min(first + size, len(joined))
        own = shards[starts[first] : starts[last]]
        partitions.append(Partition(own, starts[first], joined[first:last], first))
    return partitions
