"""The rows of stretches on a cluster, sent when they are first needed."""

from __future__ import annotations

from polysift.cluster.partitions import Stretch
from polysift.cluster.scheduler import Cluster, Ref
from polysift.data.source import DataSource


class Pieces:
    """The rows of each stretch as a source of its own, on the cluster from its first use on."""

    def __init__(self, cluster: Cluster, source: DataSource, stretches: list[Stretch]) -> None:
        self.cluster, self.source, self.stretches = cluster, source, stretches
        self._refs: dict[int, Ref] = {}

    def __getitem__(self, i: int) -> Ref:
        if i not in self._refs:
            self._refs[i] = self.cluster.put(self.source.cut(self.stretches[i].shards))
        return self._refs[i]

    def forget(self, i: int) -> None:
        """Send the rows of a stretch anew when they are needed next."""
        self._refs.pop(i, None)
