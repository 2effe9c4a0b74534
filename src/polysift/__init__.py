"""polysift: fast polynomial kernel classification for massive data."""

from polysift._checkpoint import CheckpointError
from polysift._data import DataSource
from polysift._forecast import Forecast
from polysift._kernel import degree_bound
from polysift._readers import open_data
from polysift.classifier import FPCClassifier
from polysift.search import FPCClassifierCV
from polysift.transformer import PolynomialKernelMap

__version__ = "0.1.0.dev0"

__all__ = [
    "CheckpointError",
    "DataSource",
    "FPCClassifier",
    "FPCClassifierCV",
    "Forecast",
    "PolynomialKernelMap",
    "__version__",
    "degree_bound",
    "open_data",
]
