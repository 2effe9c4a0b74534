"""What workers are told: the task of an engine, the labels of rows, the steps of their state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from polysift.data.labels import Encoding
from polysift.engine.problems import Lane
from polysift.features.feature_map import FeatureMap
from polysift.runtime.types import FloatArray, IntArray


@dataclass(frozen=True)
class Task:
    """What all tasks of an engine must know.

    Attributes
    ----------
    feature_map : FeatureMap
        The features.
    n_classes, n_cells : int
        The numbers of classes and of cells of rows.
    encoding : Encoding
        How labels become class numbers.
    threads : int
        The threads of a task.
    store : bool
        Whether the features are kept from the first sweep on.
    fused : bool
        Whether to use the compiled loops.
    precise : bool
        Whether features are float64 also of float32 rows.
    """

    feature_map: FeatureMap
    n_classes: int
    n_cells: int
    encoding: Encoding | None
    threads: int = 1
    store: bool = False
    fused: bool = False
    precise: bool = False


@dataclass(frozen=True)
class RowLabels:
    """The class numbers, weights and cells of a stretch's rows, as in ``TrainingSet``."""

    codes: IntArray
    weights: FloatArray | None
    cells: IntArray | None


@dataclass(frozen=True)
class Sweep:
    """A step of the per-row state: a sweep with new coefficients."""

    lanes: Sequence[Lane]
    u: FloatArray


@dataclass(frozen=True)
class Keep:
    """A step of the per-row state: only these columns go on."""

    columns: list[int]


Step = Sweep | Keep
