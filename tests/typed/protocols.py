"""Who implements which protocol, for the type checker: read by `make lint`, never run."""

from __future__ import annotations

from polysift import RayCluster
from polysift.cluster.backend import ClusterBackend
from polysift.cluster.engine import ClusterEngine
from polysift.cluster.held_rows import HeldState
from polysift.cluster.ray_cluster import RayWorkers
from polysift.cluster.scheduler import Cluster
from polysift.engine.backend import LOCAL, Backend, BackendFactory, ShardTask
from polysift.engine.engine import Engine
from polysift.engine.local import LocalEngine
from polysift.estimators.prediction_files import FolderTask
from polysift.runtime.arrays import RowBlocks


def engines(local: LocalEngine, by_workers: ClusterEngine) -> list[Engine]:
    return [local, by_workers]


def backends(by_workers: ClusterBackend) -> list[Backend]:
    return [LOCAL, by_workers]


def on_a_cluster(workers: RayWorkers, state: HeldState) -> tuple[Cluster, RowBlocks]:
    return workers, state


def parameters(task: FolderTask) -> tuple[BackendFactory, ShardTask]:
    return RayCluster(), task
