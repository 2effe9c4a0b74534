"""polysift: fast polynomial kernel classification for massive data."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.3.0.dev0"

if TYPE_CHECKING:
    from polysift import datasets as datasets
    from polysift import plots as plots
    from polysift.cluster.ray_cluster import RayCluster as RayCluster
    from polysift.data.readers import open_data as open_data
    from polysift.data.source import DataSource as DataSource
    from polysift.estimators.classifier import PAPER as PAPER
    from polysift.estimators.classifier import FPCClassifier as FPCClassifier
    from polysift.estimators.search import FPCClassifierCV as FPCClassifierCV
    from polysift.estimators.transformer import PolynomialKernelMap as PolynomialKernelMap
    from polysift.explanation.explain import explain as explain
    from polysift.explanation.explanation import Explanation as Explanation
    from polysift.features.kernels import degree_bound as degree_bound
    from polysift.persistence.model_file import ModelFileError as ModelFileError
    from polysift.persistence.model_file import load as load
    from polysift.persistence.model_file import save as save
    from polysift.persistence.onnx import to_onnx as to_onnx
    from polysift.persistence.onnx_converters import (
        register_onnx_converters as register_onnx_converters,
    )
    from polysift.persistence.trusted import TRUSTED_TYPES as TRUSTED_TYPES
    from polysift.reporting.compare import compare as compare
    from polysift.reporting.comparison import drift as drift
    from polysift.reporting.comparison_result import Comparison as Comparison
    from polysift.reporting.drift import Drift as Drift
    from polysift.reporting.report import report as report
    from polysift.runtime.checkpoints import CheckpointError as CheckpointError
    from polysift.runtime.errors import FeatureOverflowError as FeatureOverflowError
    from polysift.runtime.progress import WorkersLostError as WorkersLostError
    from polysift.training.plan import Forecast as Forecast

_HOMES = {
    "CheckpointError": "runtime.checkpoints",
    "Comparison": "reporting.comparison_result",
    "DataSource": "data.source",
    "Drift": "reporting.drift",
    "Explanation": "explanation.explanation",
    "FPCClassifier": "estimators.classifier",
    "FPCClassifierCV": "estimators.search",
    "FeatureOverflowError": "runtime.errors",
    "Forecast": "training.plan",
    "ModelFileError": "persistence.model_file",
    "PAPER": "estimators.classifier",
    "PolynomialKernelMap": "estimators.transformer",
    "RayCluster": "cluster.ray_cluster",
    "TRUSTED_TYPES": "persistence.trusted",
    "WorkersLostError": "runtime.progress",
    "compare": "reporting.compare",
    "degree_bound": "features.kernels",
    "drift": "reporting.comparison",
    "explain": "explanation.explain",
    "load": "persistence.model_file",
    "open_data": "data.readers",
    "register_onnx_converters": "persistence.onnx_converters",
    "report": "reporting.report",
    "save": "persistence.model_file",
    "to_onnx": "persistence.onnx",
}
"""Where the public names are defined: those above, as a test makes sure."""

__all__ = sorted([*_HOMES, "__version__", "datasets", "plots"])

if not TYPE_CHECKING:  # to which any name would be one of ours

    def __getattr__(name: str) -> Any:
        """Import a public name when it is first asked for: the command line answers at once."""
        if name in _HOMES:
            value = getattr(import_module(f"polysift.{_HOMES[name]}"), name)
        elif name in ("datasets", "plots"):
            value = import_module(f"polysift.{name}")
        else:
            raise AttributeError(f"module 'polysift' has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
