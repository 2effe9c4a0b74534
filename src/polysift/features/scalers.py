"""Scalers: monotone maps of each column, learned from a survey's statistics.

A scaler is one class, and nothing outside of this module tells scalers apart: the class says what
it is learned from, how rows are scaled (dense, sparse, in compiled loops), its derivative, its ONNX
nodes, and what its fields must be when a model file is read. ``SCALERS`` lists them by the words
of the parameter ``scaler``. What belongs to other parts of the package, an ONNX graph under
construction and the compiled loops, is passed in and known here by a protocol.

All arithmetic is in float64, also for float32 rows: a block of scaled rows is small beside its
features, and ``x - offset`` cancels.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from functools import cache
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from polysift.features.kernels import POLYNOMIAL, Kernel
from polysift.features.knots import Knots, apart, knot_slopes, validate_knots
from polysift.features.scaling_loops import Lookup, ScalingLoops
from polysift.features.statistics import ColumnStatistics, QuantileSketch, thin
from polysift.runtime.arrays import InvalidFieldError, require, required_array
from polysift.runtime.types import Block, BoolArray, FloatArray, IntArray

MINMAX_MARGIN = 0.1
"""How far beyond its range a column may lie, as a share of it: a polynomial explodes outside."""

MAX_DEVIATIONS = 4.0
"""The standard deviations from the mean at which standard scaling clips."""

MAX_KNOTS = 1024
"""Knots of a quantile scaler's piecewise linear map, per column."""

ML_DOMAIN = "ai.onnx.ml"
"""Where ONNX keeps its operators on text."""

ONNX_INT64, ONNX_DOUBLE = 7, 11
"""How a Cast names its type: the numbers of onnx.TensorProto.DataType."""


class OnnxGraph(Protocol):
    """An ONNX graph under construction (``persistence.onnx_graph.Graph``); values have names."""

    def constant(self, name: str, value: Any) -> str:
        """Add an array; returns its name."""

    def op(self, kind: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        """Add a node; returns the name of its result."""

    def interpolate(self, x: str, columns: list[Knots]) -> str:
        """Add ``np.interp`` of each column of x between knots of its own."""


@dataclass(frozen=True)
class Scaler(ABC):
    """A learned map from raw to scaled rows of d columns; a dataclass whose fields are plain.

    Attributes
    ----------
    kind : str
        Its name in a model file. Classes that only learn differently inherit it, and are read back
        as the class that defines it.
    needs_sketch : bool
        Whether it is learned from the quantile sketch, which takes memory and dense rows.
    takes_sparse : bool
        Whether it scales sparse rows without filling them.
    """

    kind: ClassVar[str]
    needs_sketch: ClassVar[bool] = False
    takes_sparse: ClassVar[bool] = False

    @property
    def kernel(self) -> Kernel:
        """How the coordinates of a row and a center are paired."""
        return POLYNOMIAL

    @property
    def places_missing(self) -> bool:
        """Whether a missing value has coordinates; else it stays NaN, and the map fills it in."""
        return False

    def n_coordinates(self, d: int) -> int:
        """Return the number of coordinates of rows of d columns, D."""
        return d

    def lookups(self) -> list[Lookup]:
        """Return coordinates in whose place ``transform_compiled`` tells the row of their table."""
        return []

    @classmethod
    @abstractmethod
    def learn(cls, statistics: ColumnStatistics, sketch: QuantileSketch | None) -> Self:
        """Learn from the columns; the sketch is there if the class needs it."""

    @abstractmethod
    def transform(self, block: FloatArray) -> FloatArray:
        """Scale dense rows; returns a new float64 array."""

    def transform_sparse(self, block: Block) -> tuple[FloatArray, Block]:
        """Scale CSR rows into ``origin`` (d,) and a CSR block whose sum is the scaled block."""
        raise ValueError(needs_dense_rows(n for n, cls in SCALERS.items() if cls is type(self)))

    def transform_compiled(
        self, loops: ScalingLoops, block: FloatArray, out: FloatArray, rows: IntArray
    ) -> None:
        """Scale dense rows into ``out`` of any float dtype, whose last column becomes one.

        The others are the coordinates, but for those of ``lookups``; ``rows`` (rows, lookups)
        receives the rows of their tables. To be overridden where a loop is faster than NumPy.
        """
        out[:, :-1] = self.transform(block)
        out[:, -1] = 1.0

    def box(self, statistics: ColumnStatistics) -> FloatArray:
        """Return the smallest and the largest value of each coordinate on the rows, (2, D)."""
        return self.transform(np.stack([statistics.low, statistics.high]))

    def fitted(self) -> Scaler:
        """Return the scaler as predictions use it."""
        return self

    def lacking(self, block: FloatArray) -> BoolArray:
        """Return which columns of dense rows lack values where no training row did, (d,)."""
        return np.asarray(np.isnan(block).any(axis=0))

    @abstractmethod
    def slope(self, block: FloatArray) -> FloatArray:
        """Return the derivative at each entry of dense rows; at a kink the mean of both sides."""

    @abstractmethod
    def to_onnx(self, graph: OnnxGraph, x: str) -> str:
        """Add the nodes that scale float64 rows, as ``transform`` does; returns their result."""

    @abstractmethod
    def validate(self, d: int) -> None:
        """Raise an ``InvalidFieldError`` unless the fields make a scaler of d columns."""

    def to_dict(self) -> dict[str, Any]:
        """Return the scaler as plain values; ``scaler_from_dict`` is the inverse."""
        return {"kind": self.kind, **asdict(self)}

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Self:
        """Return the scaler of a dict, which must have the right fields, of whatever values."""
        expected = _keys(cls)
        if stored.keys() != expected:
            raise InvalidFieldError(f"scaler_ must have the keys {sorted(expected)}")
        return cls(**{name: value for name, value in stored.items() if name != "kind"})


@cache
def _keys(cls: type[Scaler]) -> frozenset[str]:
    """Return the keys of ``to_dict``; kept, since every prediction rebuilds the scaler."""
    return frozenset({"kind", *(field.name for field in fields(cls))})


@dataclass(frozen=True)
class AffineScaler(Scaler):
    """``(clip(x, low, high) - offset) * scale``, column by column; all arrays have shape (d,)."""

    kind = "affine"
    takes_sparse = True

    offset: FloatArray
    scale: FloatArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def identity(cls, d: int) -> Self:
        """Return the scaler that leaves rows of d columns as they are."""
        return cls(np.zeros(d), np.ones(d), np.full(d, -np.inf), np.full(d, np.inf))

    @classmethod
    def learn(cls, statistics: ColumnStatistics, sketch: QuantileSketch | None) -> Self:
        """Return the identity; subclasses learn more."""
        return cls.identity(len(statistics.low))

    def transform(self, block: FloatArray) -> FloatArray:
        """Scale dense rows; returns a new float64 array."""
        scaled = np.maximum(block, self.low, dtype=float)
        np.minimum(scaled, self.high, out=scaled)
        scaled -= self.offset
        scaled *= self.scale
        return scaled

    def transform_sparse(self, block: Block) -> tuple[FloatArray, Block]:
        """Scale the stored entries of CSR rows; the origin is what a zero becomes."""
        zero = np.clip(0.0, self.low, self.high)
        columns = block.indices
        scaled = np.clip(block.data, self.low[columns], self.high[columns], dtype=float)
        scaled -= zero[columns]
        scaled *= self.scale[columns]
        shifted = type(block)((scaled, columns, block.indptr), shape=block.shape)
        return (zero - self.offset) * self.scale, shifted

    def transform_compiled(
        self, loops: ScalingLoops, block: FloatArray, out: FloatArray, rows: IntArray
    ) -> None:
        """Scale dense rows by a compiled loop."""
        loops.scale_affinely(block, self.low, self.high, self.offset, self.scale, out)

    def slope(self, block: FloatArray) -> FloatArray:
        """Return the derivative: the scale between the bounds, zero beyond, half of it on them."""
        to_the_right = (block >= self.low) & (block < self.high)
        to_the_left = (block > self.low) & (block <= self.high)
        return self.scale * (0.5 * to_the_left + 0.5 * to_the_right)

    def to_onnx(self, graph: OnnxGraph, x: str) -> str:
        """Add up to four nodes: steps that change nothing are left out."""
        if np.isfinite(self.low).any():
            x = graph.op("Max", x, graph.constant("low", self.low))
        if np.isfinite(self.high).any():
            x = graph.op("Min", x, graph.constant("high", self.high))
        if self.offset.any():
            x = graph.op("Sub", x, graph.constant("offset", self.offset))
        if (self.scale != 1.0).any():
            x = graph.op("Mul", x, graph.constant("scale", self.scale), name="scaled")
        return x

    def validate(self, d: int) -> None:
        """Raise unless offset and scale are finite, and the bounds in order."""
        for name in ("offset", "scale"):
            required_array(vars(self), name, "f", (d,))
        for name in ("low", "high"):
            required_array(vars(self), name, "f", (d,), finite=False)
        require((self.low <= self.high).all(), "the bounds of scaler_ must be in order")


class MinMaxScaler(AffineScaler):
    """Takes the range of each column to [0, 1], and clips a margin beyond it."""

    @classmethod
    def learn(cls, statistics: ColumnStatistics, sketch: QuantileSketch | None) -> Self:
        """Learn the ranges."""
        low, high = statistics.low, statistics.high
        width = high - low
        margin = MINMAX_MARGIN * width
        return cls(low, _inverse(width), low - margin, high + margin)


class SymmetricScaler(AffineScaler):
    """Takes the range of each column to [-1, 1], and clips a margin beyond it."""

    @classmethod
    def learn(cls, statistics: ColumnStatistics, sketch: QuantileSketch | None) -> Self:
        """Learn the ranges."""
        low, high = statistics.low, statistics.high
        width = high - low
        margin = MINMAX_MARGIN * width
        return cls(low + width / 2, 2.0 * _inverse(width), low - margin, high + margin)


class StandardScaler(AffineScaler):
    """Takes columns to mean 0 and variance 1 / d, and clips some standard deviations away."""

    @classmethod
    def learn(cls, statistics: ColumnStatistics, sketch: QuantileSketch | None) -> Self:
        """Learn the means and standard deviations."""
        mean = statistics.mean
        # Rounding leaves a constant column with a tiny deviation: its range tells it apart.
        deviation = np.where(statistics.high > statistics.low, statistics.deviation, 0.0)
        reach = MAX_DEVIATIONS * deviation
        return cls(mean, _inverse(deviation) / np.sqrt(len(mean)), mean - reach, mean + reach)


def _inverse(width: FloatArray) -> FloatArray:
    """Return 1 / width, and 0 where a column is constant (or its inverse overflows)."""
    usable = width > np.finfo(float).tiny
    return np.where(usable, 1.0 / np.where(usable, width, 1.0), 0.0)


@dataclass(frozen=True)
class QuantileScaler(Scaler):
    """``(2 q(x) - 1) / sqrt(d)``, with q piecewise linear between the knots of each column.

    Attributes
    ----------
    values, levels : ndarray of shape (d, MAX_KNOTS)
        The knots of each column, ascending, and q there; only the first ``counts`` are used.
    counts : ndarray of shape (d,)
        The number of knots of each column.
    """

    kind = "quantile"
    needs_sketch = True

    values: FloatArray
    levels: FloatArray
    counts: IntArray

    @classmethod
    def learn(cls, statistics: ColumnStatistics, sketch: QuantileSketch | None) -> Self:
        """Learn the distributions, as ranks of at most ``MAX_KNOTS`` values of each column."""
        assert sketch is not None
        d = len(sketch.values)
        values, levels = np.zeros((d, MAX_KNOTS)), np.full((d, MAX_KNOTS), 0.5)
        counts = np.empty(d, dtype=int)
        for j, column in enumerate(zip(sketch.values, sketch.weights, strict=True)):
            knots, weights = thin(*apart(*column), MAX_KNOTS)
            counts[j] = len(knots)
            values[j, : counts[j]] = knots
            if counts[j] > 1:
                # The middle rank of each value, so that ties are treated alike from both sides,
                # mapped so that the smallest value has q = 0 and the largest q = 1.
                rank = np.cumsum(weights) - weights / 2
                levels[j, : counts[j]] = (rank - rank[0]) / (rank[-1] - rank[0])
        return cls(values, levels, counts)

    def transform(self, block: FloatArray) -> FloatArray:
        """Scale dense rows; returns a new float64 array."""
        scaled = np.empty(block.shape)
        for j, (knots, levels) in enumerate(self.knots()):
            scaled[:, j] = np.interp(block[:, j], knots, levels)
        scaled *= 2.0
        scaled -= 1.0
        scaled /= np.sqrt(block.shape[1])
        return scaled

    def transform_column(self, values: FloatArray, j: int) -> FloatArray:
        """Scale values of one column."""
        knots, levels = self.knots()[j]
        return np.asarray(
            (2.0 * np.interp(values, knots, levels) - 1.0) / np.sqrt(len(self.counts))
        )

    def transform_compiled(
        self, loops: ScalingLoops, block: FloatArray, out: FloatArray, rows: IntArray
    ) -> None:
        """Scale dense rows by a compiled loop."""
        loops.scale_by_quantiles(block, self.values, self.levels, self.counts, out)

    def slope(self, block: FloatArray) -> FloatArray:
        """Return the derivative: between knots constant, zero beyond them, at a knot the mean."""
        return 2.0 * knot_slopes(block, self.knots()) / np.sqrt(block.shape[1])

    def to_onnx(self, graph: OnnxGraph, x: str) -> str:
        """Add a search among the knots, and the steps of ``transform`` one by one."""
        x = graph.interpolate(x, self.knots())
        x = graph.op("Mul", x, graph.constant("two", 2.0))
        x = graph.op("Sub", x, graph.constant("one", 1.0))
        root = np.sqrt(len(self.counts))
        return graph.op("Div", x, graph.constant("root_of_columns", root), name="scaled")

    def validate(self, d: int) -> None:
        """Raise unless each column has knots, which ascend."""
        validate_knots(self.values, self.levels, self.counts, d)

    def knots(self) -> list[Knots]:
        """Return the knots of each column that are used, and q there."""
        columns = zip(self.values, self.levels, self.counts, strict=True)
        return [(values[:count], levels[:count]) for values, levels, count in columns]


SCALERS: dict[str | None, type[Scaler]] = {
    "minmax": MinMaxScaler,
    "symmetric": SymmetricScaler,
    "standard": StandardScaler,
    "quantile": QuantileScaler,
    None: AffineScaler,
}
"""The classes by the words of the parameter ``scaler``: the one list of them."""


def learn_scaler(
    name: str | None, statistics: ColumnStatistics, sketch: QuantileSketch | None
) -> Scaler:
    """Learn the scaler of a name from the columns; some need the sketch."""
    return SCALERS[name].learn(statistics, sketch)


def scaler_from_dict(stored: dict[str, Any]) -> Scaler:
    """Return the scaler of ``Scaler.to_dict``; an unknown kind or a wrong key raises."""
    kind = stored.get("kind")
    own = [cls for cls in SCALERS.values() if "kind" in vars(cls)]
    for cls in own:
        if isinstance(kind, str) and cls.kind == kind:
            return cls.from_dict(stored)
    kinds = ", ".join(sorted(cls.kind for cls in own))
    raise InvalidFieldError(f"scaler_ must be of one of the kinds {kinds}")


def needs_sketch(*names: str | None) -> bool:
    """Return whether one of these scalers is learned from the quantile sketch."""
    return any(SCALERS[name].needs_sketch for name in names)


def takes_sparse(name: str | None) -> bool:
    """Return whether this scaler scales sparse rows."""
    return SCALERS[name].takes_sparse


def needs_dense_rows(names: Iterable[str | None]) -> str:
    """Return the message that scalers refuse sparse rows, and what to use for these."""
    refused = " or ".join(f"scaler={name!r}" for name in names)
    return (
        f"{refused} needs dense rows: it would fill sparse input, since a zero does not stay "
        f"zero. Use scaler={sparse_choices()}, or pass X.toarray()."
    )


def sparse_choices() -> str:
    """Return the names of the scalers of sparse rows, as a message lists them."""
    *others, last = (repr(name) for name in SCALERS if takes_sparse(name))
    return f"{', '.join(others)} or {last}"
