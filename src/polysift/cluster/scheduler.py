"""Tasks over partitions of rows, by workers that may be lost.

``Cluster`` is what another kind of cluster must implement. The ``Scheduler`` runs a task on many
partitions and does it again where a worker is lost, from what this process knows; when the same
task is lost more often than ``retries`` allows, that is an error.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from typing import Any, Protocol

from polysift.cluster.partitions import Partition
from polysift.runtime.progress import Monitor, WorkersLostError

Ref = Any
"""A reference to a value on the cluster."""

logger = logging.getLogger("polysift")


class LostError(Exception):
    """A task was not finished, through no fault of its own.

    Attributes
    ----------
    reason : str
        What happened.
    objects : bool
        Whether a value that the task needs is lost, too.
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
    """The bytes that all values on the cluster may take together."""

    threads: int
    """The threads of a task."""

    retries: int
    """How often a task is done again when its worker is lost."""

    def put(self, value: Any) -> Ref:
        """Send a value, once for all tasks that get it."""

    def submit(self, task: Callable[..., Any], *args: Any, returns: int = 1) -> list[Ref]:
        """Submit a task, which gets the values of references among ``args``."""

    def get(self, ref: Ref, check: Callable[[], None]) -> Any:
        """Return a value, calling ``check`` while it is not ready; raise ``LostError``."""

    def forget(self, refs: Sequence[Ref]) -> None:
        """Discard results that are no longer wanted, and their errors."""


class Scheduler:
    """Runs tasks over partitions on the workers of a cluster.

    Parameters
    ----------
    cluster : Cluster
        The workers.
    partitions : list of Partition
        The partitions of the rows.
    monitor : Monitor
        Progress and the time limit.
    """

    def __init__(self, cluster: Cluster, partitions: list[Partition], monitor: Monitor) -> None:
        self._cluster, self._partitions, self._monitor = cluster, partitions, monitor

    def run(
        self,
        phase: str,
        numbers: Sequence[int],
        submit: Callable[[int], list[Ref]],
        recover: Callable[[int, LostError], str],
    ) -> Iterator[tuple[int, list[Ref], Any]]:
        """Run a task on some partitions; yield number, references and result of each, in order.

        Parameters
        ----------
        phase : str
            The name of the task, for the progress bar and the log.
        numbers : sequence of int
            The numbers of the partitions.
        submit : callable
            Takes the number of a partition, submits the task and returns the references to its
            results; the value of the first is the one that is yielded.
        recover : callable
            Takes the number of a partition and the ``LostError`` before its task is submitted
            again; returns what else must be done again, for the log.
        """
        rows = [self._partitions[i].n_rows for i in numbers]
        with closing(self._in_order(phase, numbers, submit, recover)) as results:
            parts = zip(rows, results, strict=True)
            yield from self._monitor.watch(phase, sum(rows), parts)

    def _in_order(
        self,
        phase: str,
        numbers: Sequence[int],
        submit: Callable[[int], list[Ref]],
        recover: Callable[[int, LostError], str],
    ) -> Generator[tuple[int, list[Ref], Any]]:
        waiting: deque[tuple[int, list[Ref]]] = deque()
        in_flight = 2 * self._cluster.workers  # no worker is idle, and few results wait at a time
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
        """Return references and result of the task on one partition, repeated where it is lost.

        ``refs`` are those of a task that is already submitted; see ``run`` for the rest.
        """
        refs = submit(i) if refs is None else refs
        retries = self._cluster.retries
        losses = Counter({True: 0, False: 0})  # a lost node takes a worker, then what it needs
        while True:
            try:
                return refs, self._cluster.get(refs[0], self._monitor.check)
            except LostError as lost:
                losses[lost.objects] += 1
                if losses[lost.objects] > retries:
                    raise WorkersLostError(
                        f"The worker on {self._partitions[i]} was lost {losses.total()} times in "
                        f"the phase '{phase}' (retries={retries}), the last time because "
                        f"{lost.reason}."
                    ) from lost
                self._cluster.forget(refs)
                besides = recover(i, lost)
                logger.warning(
                    "%s: %s are done again (attempt %d), since %s.%s",
                    phase,
                    self._partitions[i],
                    losses.total() + 1,
                    lost.reason,
                    f" {besides}" if besides else "",
                )
                refs = submit(i)
