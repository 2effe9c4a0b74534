"""The paper's data: its synthetic problem (section V), and the real data sets by name.

``real`` has ``load``: ``catalogue`` describes the data sets, ``cache`` finds or fetches their
files, ``published`` reads files as their publishers write them, and ``prepared`` reads and checks
tables in one common form.
"""

from polysift.datasets.catalogue import NAMES, UCI
from polysift.datasets.prepared import DatasetError
from polysift.datasets.real import Dataset, available, load
from polysift.datasets.synthetic import (
    KINDS,
    bayes_curve,
    make_bayes_curve,
    make_machines,
    make_noisy_curve,
)

__all__ = [
    "KINDS",
    "NAMES",
    "UCI",
    "Dataset",
    "DatasetError",
    "available",
    "bayes_curve",
    "load",
    "make_bayes_curve",
    "make_machines",
    "make_noisy_curve",
]
