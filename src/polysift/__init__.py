"""polysift: fast polynomial kernel classification for massive data."""

from polysift._kernel import degree_bound
from polysift.classifier import FPCClassifier
from polysift.transformer import PolynomialKernelMap

__version__ = "0.1.0.dev0"

__all__ = ["FPCClassifier", "PolynomialKernelMap", "__version__", "degree_bound"]
