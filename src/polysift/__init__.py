"""polysift: fast polynomial kernel classification for massive data."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polysift import datasets, plots
    from polysift._checkpoint import CheckpointError
    from polysift._data import DataSource
    from polysift._forecast import Forecast
    from polysift._kernel import degree_bound
    from polysift._monitor import WorkersLostError
    from polysift._ray import RayCluster
    from polysift._readers import open_data
    from polysift._report import report
    from polysift.classifier import FPCClassifier
    from polysift.export import to_onnx
    from polysift.persist import ModelFileError, load, save
    from polysift.search import FPCClassifierCV
    from polysift.transformer import PolynomialKernelMap

__version__ = "0.1.0.dev0"

# Imported when first asked for: the command line answers without waiting for scikit-learn.
_HOMES = {
    "CheckpointError": "_checkpoint",
    "DataSource": "_data",
    "FPCClassifier": "classifier",
    "FPCClassifierCV": "search",
    "Forecast": "_forecast",
    "ModelFileError": "persist",
    "PolynomialKernelMap": "transformer",
    "RayCluster": "_ray",
    "WorkersLostError": "_monitor",
    "degree_bound": "_kernel",
    "load": "persist",
    "open_data": "_readers",
    "report": "_report",
    "save": "persist",
    "to_onnx": "export",
}
_MODULES = ("datasets", "plots")

__all__ = [
    "CheckpointError",
    "DataSource",
    "FPCClassifier",
    "FPCClassifierCV",
    "Forecast",
    "ModelFileError",
    "PolynomialKernelMap",
    "RayCluster",
    "WorkersLostError",
    "__version__",
    "datasets",
    "degree_bound",
    "load",
    "open_data",
    "plots",
    "report",
    "save",
    "to_onnx",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"polysift.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'polysift' has no attribute {name!r}")
    value = getattr(import_module(f"polysift.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
