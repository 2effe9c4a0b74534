"""The names of our types, for tools that load only what they are told to trust."""

from __future__ import annotations

from polysift.cluster.ray_cluster import RayCluster
from polysift.estimators.classifier import FPCClassifier
from polysift.estimators.search import FPCClassifierCV
from polysift.estimators.transformer import PolynomialKernelMap

TRUSTED_TYPES: list[str] = [
    f"{kind.__module__}.{kind.__qualname__}"
    for kind in (FPCClassifier, FPCClassifierCV, PolynomialKernelMap, RayCluster)
]
"""What a file of one of our models holds beside plain values, as skops and MLflow name it:
``skops.io.load(file, trusted=TRUSTED_TYPES)``."""
