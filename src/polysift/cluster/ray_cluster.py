"""``RayCluster``: a Ray cluster as an engine."""

from __future__ import annotations

from inspect import signature

from polysift.cluster.backend import DistributedPlace
from polysift.cluster.ray_connection import connect, load_ray
from polysift.cluster.ray_workers import RayWorkers
from polysift.runtime.parameters import check_integer, check_real


class RayCluster:
    """An engine: the workers of a Ray cluster, as ``engine=`` of an estimator takes it.

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
        if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
            raise ValueError(f"retries must be an integer, 0 or more; got {retries!r}.")
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

    def open(self) -> DistributedPlace:
        """Connect; for polysift's own use."""
        ray = load_ray()
        cpus = None if self.workers is None else self.workers * self.cpus
        connect(ray, self.address, cpus)
        workers = RayWorkers(ray, self.workers, self.cpus, self.retries, self.patience)
        return DistributedPlace(workers)
