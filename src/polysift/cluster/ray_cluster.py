"""``RayCluster``, a Ray cluster as an engine: its settings, the connection, and its workers."""

from __future__ import annotations

import logging
import os
import re
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache
from importlib import import_module
from inspect import signature
from math import inf
from typing import Any

from polysift.cluster.backend import ClusterBackend
from polysift.cluster.future_workers import FutureWorkers
from polysift.cluster.last_words import last_words
from polysift.cluster.scheduler import LostError, Ref
from polysift.runtime import clock
from polysift.runtime.checkpoints import machine_fingerprint
from polysift.runtime.parallel import usable_jobs
from polysift.runtime.parameters import check_integer, check_real
from polysift.runtime.progress import WorkersLostError

ANSWER_SECONDS = 5.0
"""How long a cluster may take to answer before it counts as gone."""

POLL_SECONDS = 0.5
"""The time between two checks of the time limit and the cluster while a result is not ready."""

logger = logging.getLogger("polysift")


def load_ray() -> Any:
    """Return Ray, or say how to install it."""
    try:
        ray = import_module("ray")
        import_module("ray.util.scheduling_strategies")
    except ImportError as error:
        raise ImportError(
            "engine='ray' needs Ray. Install it with: pip install 'polysift[ray]'"
        ) from error
    return ray


class RayCluster:
    """The workers of a Ray cluster, to be passed as ``engine`` to an estimator.

    Each task reads its own rows: of a Parquet data set the row groups, wherever
    pyarrow finds them; arrays are sent to the cluster once. The model is the same, bit for bit, as
    that of the local engine, for any number of workers and after any of them is lost, as long as
    all have the same type of processor and the same versions of the libraries.

    Parameters
    ----------
    address : str, default=None
        The cluster to connect to: "auto" is the one that runs on this machine, "local" a new one.
        By default the one this process is connected to; else the one that ``RAY_ADDRESS`` names, or
        ``ray start`` has started here; else a new one on this machine, which listens on loopback
        alone and ends with this process.
    workers : int, default=None
        Tasks at a time; by default as many as the cluster has CPUs for. A new cluster has CPUs for
        so many.
    cpus : int, default=1
        The CPUs, and threads, of a task. With ten machines or more, set it to those of a machine:
        the fewer tasks, the fewer sums of n x n numbers come to this process.
    retries : int, default=3
        How often a task is done again when its worker is lost.
    patience : float, default=60
        Seconds to wait for a CPU when the cluster has none left.

    Examples
    --------
    >>> from polysift import FPCClassifier, RayCluster
    >>> clf = FPCClassifier(engine=RayCluster(workers=2))
    """

    def __init__(
        self,
        address: str | None = None,
        workers: int | None = None,
        *,
        cpus: int = 1,
        retries: int = 3,
        patience: float = 60.0,
    ) -> None:
        if workers is not None:
            check_integer("workers", workers)
        check_integer("cpus", cpus)
        check_integer("retries", retries, least=0)
        check_real("patience", patience, positive=False)
        self.address, self.workers, self.cpus = address, workers, cpus
        self.retries, self.patience = retries, patience

    def __repr__(self) -> str:
        defaults = signature(RayCluster).parameters
        given = [f"{k}={v!r}" for k, v in vars(self).items() if v != defaults[k].default]
        return f"RayCluster({', '.join(given)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RayCluster) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def open(self) -> ClusterBackend:
        """Connect to the cluster, or start it, and return it as a backend.

        Estimators call this at the beginning of each fit, search and prediction to a folder, as
        they do with any object that is passed as ``engine``. Call it yourself to start a cluster
        beforehand, or to see whether there is one.

        Returns
        -------
        backend
            The workers, as the protocol ``polysift.engine.backend.Backend`` describes them.

        Examples
        --------
        >>> from polysift import RayCluster
        >>> RayCluster("auto").open().workers  # doctest: +SKIP
        16
        """
        ray = load_ray()
        cpus = None if self.workers is None else self.workers * self.cpus
        connect(ray, self.address, cpus)
        workers = RayWorkers(ray, self.workers, self.cpus, self.retries, self.patience)
        return ClusterBackend(workers)

    def preview(self) -> ClusterBackend:
        """Return the cluster as a backend to plan with, and start none.

        Returns
        -------
        backend
            That of ``open``, where a cluster runs; else one that knows what a new cluster would
            have, and can do no work.
        """
        ray = load_ray()
        address = self.address or os.environ.get("RAY_ADDRESS") or None
        if ray.is_initialized() or (address != "local" and find_cluster(address) is not None):
            return self.open()
        workers = self.workers or max(1, usable_jobs(-1) // self.cpus)
        return ClusterBackend(FutureWorkers.on_this_machine(workers, self.cpus), future=True)


def connect(ray: Any, address: str | None, cpus: int | None) -> None:
    """Connect to a cluster, or start one with ``cpus`` CPUs, by default all of this machine."""
    if ray.is_initialized():
        _refuse_another(ray, address)
        return
    # Errors of tasks whose results are no longer wanted need no log: the first was raised.
    os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    address = address or os.environ.get("RAY_ADDRESS") or None
    found = None if address == "local" else find_cluster(address)
    if found is not None:
        where, listening = found
        _enable_token()
        try:
            with listening():
                ray.init(address=where, **options)
        except ConnectionError as error:
            raise ConnectionError(
                f"{str(error).rstrip('.')}, though something answers there. If it wants a token, "
                "set RAY_AUTH_MODE=token, and put the token where Ray looks for it."
            ) from error
    else:
        own = {"num_cpus": cpus or usable_jobs(-1), "include_dashboard": False}
        with on_loopback():
            ray.init(address="local", **own, **options)


def _refuse_another(ray: Any, address: str | None) -> None:
    """Raise if an address is not that of the cluster that this process is connected to."""
    if address is None or address in ("auto", "local") or "://" in address:
        return
    here = ray.get_runtime_context().gcs_address
    found = find_cluster(address)
    if found is None or _numbers(found[0]) != _numbers(here):
        raise ConnectionError(
            f"address={address!r}, but this process is connected to the Ray cluster at {here}. "
            "Leave the address out to use that one, or call ray.shutdown() first."
        )


def _numbers(address: str) -> tuple[str, str]:
    """Return the host of an address, as a number if it can be resolved, and the port."""
    host, port = address.rsplit(":", 1)
    with suppress(OSError):
        host = socket.gethostbyname(host.strip("[]"))
    return host, port


def _enable_token() -> None:
    """Have Ray send the token that this user has: a cluster that was started with it asks so."""
    with suppress(ImportError, AttributeError):
        setup = import_module("ray._private.authentication.authentication_token_setup")
        with _quiet("ray"):
            setup.maybe_enable_token_auth_if_token_available(warn_if_disabled=False)


@contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Let a logger log errors only."""
    chosen = logging.getLogger(name)
    before = chosen.level
    chosen.setLevel(logging.ERROR)
    try:
        yield
    finally:
        chosen.setLevel(before)


def find_cluster(address: str | None) -> tuple[str, Callable[[], Any]] | None:
    """Return the address of a cluster that answers, and a context in which to connect to it.

    None means that no address was given and no cluster runs. Ray itself would try to reach one that
    no longer runs for a quarter of an hour.
    """
    if address is not None and "://" in address:
        return address, nullcontext
    services: Any = import_module("ray._private.services")
    failure: Exception | None = None
    for listening in (nullcontext, on_loopback):
        try:
            with listening(), _quiet("ray"):
                found = services.canonicalize_bootstrap_address(address)
            if found is None:
                return None
            host, port = found.rsplit(":", 1)
            socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER_SECONDS).close()
            return found, listening
        except (OSError, ValueError) as error:
            failure = failure or error
    if address is None:
        return None
    raise ConnectionError(
        f"No Ray cluster answers at address={address!r} ({str(failure).rstrip('.')}). Start one "
        "with 'ray start --head', or leave the address out to have a local one."
    ) from failure


@contextmanager
def on_loopback() -> Iterator[None]:
    """Let a new cluster listen on loopback alone, where no other machine can reach it."""
    constants: Any = import_module("ray._private.ray_constants")
    before = getattr(constants, "ENABLE_RAY_CLUSTER", None)
    constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before


class RayWorkers:
    """The workers of the cluster that this process is connected to; see ``Cluster``.

    Attributes
    ----------
    workers : int
        How many tasks run at once.
    worker_memory : int
        Each task's share of its machine's memory, without the object store.
    store_memory : int
        The size of all object stores together.
    threads : int
        The CPUs of a task.
    retries : int
        How often a task is done again when its worker is lost.
    """

    def __init__(
        self, ray: Any, workers: int | None, cpus: int, retries: int, patience: float
    ) -> None:
        self._ray, self.threads, self.retries, self._patience = ray, cpus, retries, patience
        self._no_cpus_since = inf
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
        """Submit a task, which gets the values of references among ``args``."""
        options = {"num_returns": returns, "num_cpus": self.threads}
        refs = _remote(task).options(**options).remote(*args)
        return [refs] if returns == 1 else list(refs)

    def get(self, ref: Ref, check: Callable[[], None]) -> Any:
        """Return a value, calling ``check`` while it is not ready; raise ``LostError``."""
        failures = self._ray.exceptions
        while True:
            try:
                value = self._ray.get(ref, timeout=POLL_SECONDS)
            except failures.GetTimeoutError:
                check()
                self._check_cpus()
            except failures.RayTaskError as error:
                if isinstance(error.cause, failures.RayError):
                    raise _loss(failures, error.cause) from error
                raise _task_error(error.cause) from None
            except failures.RayError as error:
                raise _loss(failures, error) from error
            else:
                self._no_cpus_since = inf
                return value

    def forget(self, refs: Sequence[Ref]) -> None:
        """Discard results that are no longer wanted, and their errors.

        Tasks that run are not cancelled: Ray ends the process that cancels one in the moment of its
        completion.
        """
        for ref in refs:
            with suppress(Exception):  # Ray would log an error that is never fetched
                self._ray.get(ref, timeout=0)

    def last_words(self, advice: str) -> AbstractContextManager[None]:
        """Have another process say what to do, if this one ends inside without a word."""
        own = self._ray.get_runtime_context().get_node_id()
        sockets = {node["NodeID"]: node.get("RayletSocketName", "") for node in self._ray.nodes()}
        return last_words(advice, sockets.get(own, ""))

    def _wait_for_cpus(self) -> None:
        """Wait until there are CPUs for a task: a cluster may grow on demand."""
        ready, due = self.submit(machine_fingerprint), clock.now() + self._patience

        def warn_if_late() -> None:
            nonlocal due
            if clock.now() >= due:
                due = inf
                logger.warning(
                    "No worker of the Ray cluster has answered for %g s: its CPUs may be taken by "
                    "others. This process waits for %d of them.",
                    self._patience,
                    self.threads,
                )

        try:
            self.get(ready[0], warn_if_late)
        except LostError as lost:
            raise WorkersLostError(
                f"The Ray cluster cannot do the simplest task, since {lost.reason}. See whether it "
                "still runs ('ray status')."
            ) from lost

    def _check_cpus(self) -> None:
        """Raise if no node has had the CPUs for a task for ``patience`` seconds."""
        if any(_cpus(node) >= self.threads for node in self._ray.nodes() if node["Alive"]):
            self._no_cpus_since = inf
            return
        self._no_cpus_since = min(self._no_cpus_since, clock.now())
        if clock.now() - self._no_cpus_since >= self._patience:
            raise WorkersLostError(
                f"No node of the Ray cluster has had {self.threads} CPUs for {self._patience:g} s "
                "(patience): all workers are lost, or cpus is too large."
            )

    def _compare_nodes(self, nodes: list[str]) -> None:
        """Refuse other versions of polysift, and warn where the last bits may differ."""
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
                    "last bits of the model may depend on which node computes what.",
                    what,
                    found[what],
                    own[what],
                )


def _cpus(node: dict[str, Any]) -> float:
    return float(node["Resources"].get("CPU", 0))


@cache
def _remote(task: Callable[..., Any]) -> Any:
    # No retries by Ray: the scheduler does them, and logs them.
    return load_ray().remote(num_cpus=1, max_retries=0)(task)


def _loss(failures: Any, error: Exception) -> Exception:
    """Return a failure of the cluster as a ``LostError`` with the reason."""
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


def _task_error(cause: Exception) -> Exception:
    """Return the error that a task raised; for a missing module, one that says what to do."""
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
