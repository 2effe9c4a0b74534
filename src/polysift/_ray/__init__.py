"""Ray: the workers of a cluster. Nothing else in the package imports it."""

from polysift._ray._cluster import RayCluster
from polysift._ray._connection import load_ray

__all__ = ["RayCluster", "load_ray"]
