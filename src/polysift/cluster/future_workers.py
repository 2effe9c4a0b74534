"""The workers of a cluster that does not run yet: enough to plan with, and no work is done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from polysift.cluster.scheduler import Ref
from polysift.engine.budget import free_memory

STORE_SHARE = 0.3
"""The share of the free memory that Ray gives its object store."""


@dataclass
class FutureWorkers:
    """The workers that a new cluster would have; see ``Cluster`` for the attributes."""

    workers: int
    threads: int
    worker_memory: int
    store_memory: int
    retries: int = 0

    @classmethod
    def on_this_machine(cls, workers: int, threads: int) -> FutureWorkers:
        """Return the workers of a new cluster on this machine, which share its free memory."""
        free = free_memory()
        store = int(STORE_SHARE * free)
        return cls(workers, threads, (free - store) // workers, store)

    def put(self, value: Any) -> Ref:
        """Refuse: there is nobody to send it to."""
        raise RuntimeError("This cluster is planned only. Call open() of the engine to start it.")

    def submit(self, task: Callable[..., Any], *args: Any, returns: int = 1) -> list[Ref]:
        """Refuse likewise."""
        return [self.put(task)]

    def get(self, ref: Ref, check: Callable[[], None]) -> Any:
        """Refuse likewise."""
        return self.put(ref)

    def forget(self, refs: Sequence[Ref]) -> None:
        """Do nothing: there is nothing to discard."""
