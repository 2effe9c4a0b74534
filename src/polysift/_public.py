"""The public names: each is listed here, and nowhere else.

``polysift.__all__``, the lazy import of ``polysift.name`` and what type checkers see of the package
are all read off this list. The redundant ``as`` says that a name is exported.
"""

from polysift import datasets as datasets
from polysift import plots as plots
from polysift._checkpoint import CheckpointError as CheckpointError
from polysift._explain import explain as explain
from polysift._explanation import Explanation as Explanation
from polysift._forecast import Forecast as Forecast
from polysift._kernel import degree_bound as degree_bound
from polysift._monitor import WorkersLostError as WorkersLostError
from polysift._ray import RayCluster as RayCluster
from polysift._readers import open_data as open_data
from polysift._report import report as report
from polysift._source import DataSource as DataSource
from polysift.classifier import FPCClassifier as FPCClassifier
from polysift.export import to_onnx as to_onnx
from polysift.persist import ModelFileError as ModelFileError
from polysift.persist import load as load
from polysift.persist import save as save
from polysift.search import FPCClassifierCV as FPCClassifierCV
from polysift.transformer import PolynomialKernelMap as PolynomialKernelMap
