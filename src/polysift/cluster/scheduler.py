"""Tasks over partitions of rows, by workers that may be lost.

What a worker was doing when it was lost is done again by another, from what this process knows. A
few losses of the same task are borne, then it is an error.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from polysift.cluster.partitions import Partition
from polysift.runtime.progress import Monitor, WorkersLostError

Ref = Any
"""A value on the cluster."""

logger = logging.getLogger("polysift")


class LostError(Exception):
    """A task was not finished, for no fault of its own.

    Attributes
    ----------
    reason : str
        What happened.
    objects : bool
        Whether a value that it needed is gone, too.
    """

    def __init__(self, reason: str, *, objects: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.objects = reason, objects


class Cluster(Protocol):
    """Workers in other processes, on this machine or others."""

    workers: int
    """How many tasks run at once."""

    worker_memory: int
    """The bytes that each task may take of its machine."""

    store_memory: int
    """The bytes that values on the cluster may take, all in all."""

    threads: int
    """The threads of a task."""

    retries: int
    """How often a task is done again when its worker is lost."""

    def put(self, value: Any) -> Ref:
        """Send a value, once for all tasks that get it."""

    def submit(self, task: Callable[..., Any], *args: Any, returns: int = 1) -> list[Ref]:
        """Have a task done; it gets the values of references among ``args``."""

    def get(self, ref: Ref, check: Callable[[], None]) -> Any:
        """Return a value, calling ``check`` while it is not there; raise ``LostError``."""

    def forget(self, refs: Sequence[Ref]) -> None:
        """Learn that nobody wants these results any more, nor their errors."""


class Scheduler:
    """The workers of a cluster, going over partitions.

    Parameters
    ----------
    cluster : Cluster
        The workers.
    partitions : list of Partition
        The rows.
    monitor : Monitor
        Told of the rows done.
    """

    def __init__(self, cluster: Cluster, partitions: list[Partition], monitor: Monitor) -> None:
        self._cluster, self._partitions, self._monitor = cluster, partitions, monitor

    def visit(
        self,
        phase: str,
        numbers: Sequence[int],
        submit: Callable[[int], list[Ref]],
        recover: Callable[[int, LostError], str],
    ) -> Iterator[tuple[int, list[Ref], Any]]:
        """Have a task done for each of some partitions; yield their results in this order.

        Parameters
        ----------
        phase : str
            What it is, for the progress bar and the log.
        numbers : sequence of int
            The partitions, by their numbers.
        submit : callable
            Takes such a number and returns the references of the task's results; the value of the
            first is yielded along with them.
        recover : callable
            Takes such a number and the loss before a task is submitted again, and returns what else
            will be done again.
        """
        rows = [self._partitions[i].n_rows for i in numbers]
        parts = zip(rows, self._in_order(phase, numbers, submit, recover), strict=True)
        yield from self._monitor.watch(phase, sum(rows), parts)

    def _in_order(
        self,
        phase: str,
        numbers: Sequence[int],
        submit: Callable[[int], list[Ref]],
        recover: Callable[[int, LostError], str],
    ) -> Iterator[tuple[int, list[Ref], Any]]:
        waiting: deque[tuple[int, list[Ref]]] = deque()
        in_flight = 2 * self._cluster.workers  # so none is idle, and few results wait at a time
        left = iter(numbers)
        try:
            while True:
                for i in left:
                    waiting.append((i, submit(i)))
                    if len(waiting) >= in_flight:
                        break
                if not waiting:
                    return
                i, refs = waiting[0]
                refs, value = self.result(phase, i, submit, recover, refs)
                waiting.popleft()
                yield i, refs, value
        finally:  # the consumer stopped, or a task failed
            self._cluster.forget([ref for _, refs in waiting for ref in refs])

    def result(
        self,
        phase: str,
        i: int,
        submit: Callable[[int], list[Ref]],
        recover: Callable[[int, LostError], str],
        refs: list[Ref] | None = None,
    ) -> tuple[list[Ref], Any]:
        """Return the result of a task, done again as often as it takes and is borne.

        ``refs`` are those of a task that was submitted before; see ``visit`` for the rest.
        """
        refs = submit(i) if refs is None else refs
        retries = self._cluster.retries
        times = Counter({True: 0, False: 0})  # a node takes a task's worker, then what it works on
        while True:
            try:
                return refs, self._cluster.get(refs[0], self._monitor.check)
            except LostError as lost:
                times[lost.objects] += 1
                if times[lost.objects] > retries:
                    raise WorkersLostError(
                        f"The worker on {self._partitions[i]} was lost {times.total()} times in "
                        f"the phase '{phase}' (retries={retries}), the last time because "
                        f"{lost.reason}."
                    ) from lost
                self._cluster.forget(refs)
                besides = recover(i, lost)
                logger.warning(
                    "%s: %s are done again (attempt %d), since %s.%s",
                    phase,
                    self._partitions[i],
                    times.total() + 1,
                    lost.reason,
                    f" {besides}" if besides else "",
                )
                refs = submit(i)
