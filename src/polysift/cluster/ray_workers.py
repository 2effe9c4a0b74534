"""The workers of the Ray cluster that this process is connected to."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from math import inf
from time import monotonic
from typing import Any

from polysift.cluster.ray_connection import load_ray
from polysift.cluster.scheduler import LostError, Ref
from polysift.runtime.fingerprint import machine_fingerprint
from polysift.runtime.progress import WorkersLostError

logger = logging.getLogger("polysift")

GLANCE = 0.5
"""Seconds between two looks at the clock and the cluster while a result is not there."""


class RayWorkers:
    """The workers of the cluster that this process is connected to; see ``Cluster``.

    Attributes
    ----------
    workers : int
        How many tasks run at once.
    worker_memory : int
        Each task's share of its machine's memory, beside the object store.
    store_memory : int
        The size of the object stores, all in all.
    threads : int
        The CPUs of a task.
    retries : int
        How often a task is done again when its worker is lost.
    """

    def __init__(
        self, ray: Any, workers: int | None, cpus: int, retries: int, patience: float
    ) -> None:
        self._ray, self.threads, self.retries, self._patience = ray, cpus, retries, patience
        self._lonely_since = inf
        self._wait_for_cpus()
        nodes = [node for node in ray.nodes() if node["Alive"] and _cpus(node) >= cpus]
        self.workers = workers or max(1, sum(int(_cpus(node) // cpus) for node in nodes))
        shares = [node["Resources"].get("memory", inf) / _cpus(node) for node in nodes]
        self.worker_memory = int(min([2.0**62, *(cpus * share for share in shares)]))
        self.store_memory = int(ray.cluster_resources().get("object_store_memory", 0))
        self._compare_nodes([node["NodeID"] for node in nodes])

    def put(self, value: Any) -> Ref:
        """Send a value, once for all tasks that get it."""
        return self._ray.put(value)

    def submit(self, task: Callable[..., Any], *args: Any, returns: int = 1) -> list[Ref]:
        """Have a task done; it gets the values of references among ``args``."""
        options = {"num_returns": returns, "num_cpus": self.threads}
        refs = _remote(task).options(**options).remote(*args)
        return [refs] if returns == 1 else list(refs)

    def get(self, ref: Ref, check: Callable[[], None]) -> Any:
        """Return a value, calling ``check`` while it is not there; raise ``LostError``."""
        failures = self._ray.exceptions
        while True:
            try:
                value = self._ray.get(ref, timeout=GLANCE)
            except failures.GetTimeoutError:
                check()
                self._look_for_cpus()
            except failures.RayTaskError as error:
                if isinstance(error.cause, failures.RayError):
                    raise _loss(failures, error.cause) from error
                raise _own_error(error.cause) from None
            except failures.RayError as error:
                raise _loss(failures, error) from error
            else:
                self._lonely_since = inf
                return value

    def forget(self, refs: Sequence[Ref]) -> None:
        """Learn that nobody wants these results any more, nor their errors.

        Tasks that run are left to end by themselves: Ray ends the process that cancels one in the
        moment of its completion.
        """
        for ref in refs:
            with suppress(Exception):  # an error that nobody looks at would be logged by Ray
                self._ray.get(ref, timeout=0)

    def _wait_for_cpus(self) -> None:
        """Wait until there are CPUs for a task, as in a cluster that grows on demand."""
        ready, due = self.submit(machine_fingerprint), monotonic() + self._patience

        def tell() -> None:
            nonlocal due
            if monotonic() >= due:
                due = inf
                logger.warning(
                    "No worker of the Ray cluster has answered for %g s: its CPUs may be taken by "
                    "others. This process waits for %d of them.",
                    self._patience,
                    self.threads,
                )

        try:
            self.get(ready[0], tell)
        except LostError as lost:
            raise WorkersLostError(
                f"The Ray cluster cannot do the simplest task, since {lost.reason}. See whether it "
                "still runs ('ray status')."
            ) from lost

    def _look_for_cpus(self) -> None:
        """Raise if the cluster has had no CPUs for a task for longer than patience lasts."""
        if any(_cpus(node) >= self.threads for node in self._ray.nodes() if node["Alive"]):
            self._lonely_since = inf
            return
        self._lonely_since = min(self._lonely_since, monotonic())
        if monotonic() - self._lonely_since >= self._patience:
            raise WorkersLostError(
                f"No node of the Ray cluster has had {self.threads} CPUs for {self._patience:g} s "
                "(patience): all workers are lost, or cpus is too large."
            )

    def _compare_nodes(self, nodes: list[str]) -> None:
        """Refuse other versions of polysift, and tell where the last bit may differ."""
        strategy = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        own, task = machine_fingerprint(), _remote(machine_fingerprint)
        asked = [  # without a CPU: those of a node may all be taken by others, for long
            task.options(num_cpus=0, scheduling_strategy=strategy(node, soft=True)).remote()
            for node in nodes
        ]
        for ref in asked:
            try:
                found = self.get(ref, lambda: None)
            except LostError:  # no longer a node of this cluster
                continue
            if found["polysift"] != own["polysift"]:
                raise RuntimeError(
                    f"A node of the Ray cluster has polysift {found['polysift']}, this process has "
                    f"{own['polysift']}. Install the same version everywhere."
                )
            for what in (key for key in own if found[key] != own[key]):
                logger.warning(
                    "A node of the Ray cluster has another %s (%s) than this process (%s): the "
                    "last bits of the model may depend on who adds up what.",
                    what,
                    found[what],
                    own[what],
                )


def _cpus(node: dict[str, Any]) -> float:
    return float(node["Resources"].get("CPU", 0))


@cache
def _remote(task: Callable[..., Any]) -> Any:
    # No retries by Ray: the crew does them, and can tell of them.
    return load_ray().remote(num_cpus=1, max_retries=0)(task)


def _loss(failures: Any, error: Exception) -> Exception:
    """Return a failure of the cluster as a loss, with its reason in words."""
    first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if isinstance(error, failures.ObjectLostError):
        return LostError("what it worked on was lost with a node", objects=True)
    if isinstance(error, failures.OutOfMemoryError):
        return LostError(f"Ray ended its worker for want of memory ({first.rstrip('.')})")
    if isinstance(error, failures.WorkerCrashedError):
        return LostError("its worker process was lost")
    if isinstance(error, failures.NodeDiedError):
        return LostError("its node was lost")
    return LostError(f"{type(error).__name__}: {first.rstrip('.')}")


def _own_error(cause: Exception) -> Exception:
    """Return an error that a task raised, or one that explains it."""
    missing = cause.name if isinstance(cause, ModuleNotFoundError) else None
    if isinstance(cause, RuntimeError) and "failed to import on the worker" in str(cause):
        named = re.findall(r"No module named '([^']+)'", str(cause))  # by Ray, for a whole task
        missing = named[-1] if named else None
    if missing is None:
        return cause
    return RuntimeError(
        f"A worker of the Ray cluster has no module {missing!r}. Install polysift with the "
        "same extras and versions on every node."
    )
