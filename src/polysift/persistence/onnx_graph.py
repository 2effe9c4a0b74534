"""ONNX graphs, and the parts of one that computes what a classifier computes, in float64.

Nodes repeat the operations of prediction one by one, in the same order, so that all but the two
matrix products give the same bits. The operators are those that runtimes implement for doubles.
A scaler adds its own nodes (``features.scalers.Scaler.to_onnx``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from polysift.features.feature_map import FeatureMap
from polysift.features.knots import Knots
from polysift.features.scalers import ONNX_DOUBLE, ONNX_INT64
from polysift.runtime.types import FloatArray
from polysift.training.calibration import Calibrator, IsotonicCalibrator, SigmoidCalibrator

MAX_BYTES = 2**31 - 2**20
"""The limit of a protobuf message, less some room for what is not an array."""

BOOL, INT64, DOUBLE = 9, ONNX_INT64, ONNX_DOUBLE
"""How a Cast names its type: the numbers of onnx.TensorProto.DataType."""

BLOCK_VALUES = 2**21
"""The numbers of a block of rows in each of its steps: 16 MiB, some of which are alive at once."""

MIN_BLOCK_ROWS = 256


def load_onnx() -> Any:
    """Return the module onnx, or say how to install it."""
    try:
        return import_module("onnx")
    except ImportError as error:
        raise ImportError(
            "to_onnx needs onnx. Install it with: pip install 'polysift[onnx]'"
        ) from error


@dataclass(frozen=True)
class Value:
    """An input or output of a graph: its type (object for text), shape and a sentence about it."""

    name: str
    dtype: Any
    shape: tuple[str | int, ...]
    doc: str

    def to_proto(self, onnx: Any) -> Any:
        """Return it as onnx describes it."""
        helper = onnx.helper
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype))
        return helper.make_tensor_value_info(self.name, kind, self.shape, self.doc)


class Graph:
    """Nodes and arrays, collected before anything is built from them.

    Names are given in the order of the calls, so that the same calls give the same graph.

    Parameters
    ----------
    taken : iterable of str
        Names that no node may have, those of the inputs.
    prefix : str
        What all names begin with, in a graph that is part of another one.
    """

    def __init__(self, taken: Iterable[str] = (), prefix: str = "") -> None:
        self._prefix = prefix
        self.nodes: list[tuple[str, tuple[str, ...], str, dict[str, Any]]] = []
        self.constants: dict[str, np.ndarray[Any, Any]] = {}
        self._uses: dict[str, int] = dict.fromkeys(taken, 1)

    def _inner(self) -> Graph:
        """Return the graph of a loop's body, which sees all names and constants of this one."""
        inner = Graph(prefix=self._prefix)
        inner.constants, inner._uses = self.constants, self._uses
        return inner

    def constant(self, name: str, value: Any) -> str:
        """Add an array; returns its name, which has a number where it is taken."""
        name = self._unique(self._prefix + name)
        self.constants[name] = np.asarray(value)
        return name

    def op(self, kind: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        """Add a node; returns the name of its result."""
        name = self._unique(self._prefix + (kind.lower() if name is None else name))
        self.nodes.append((kind, inputs, name, attributes))
        return name

    def to_proto(self, onnx: Any, name: str, inputs: list[Value], outputs: list[Value]) -> Any:
        """Return the graph as onnx describes it, or raise if it is too large for that."""
        size = sum(array.nbytes for array in self.constants.values())
        if size > MAX_BYTES:
            raise ValueError(
                f"The model holds {size / 2**30:.1f} GiB of numbers, but an ONNX file holds "
                "2 GiB at most. Fit with a smaller n_centers."
            )
        helper = onnx.helper
        return helper.make_graph(
            self.node_protos(onnx),
            name,
            [value.to_proto(onnx) for value in inputs],
            [value.to_proto(onnx) for value in outputs],
            [onnx.numpy_helper.from_array(array, name) for name, array in self.constants.items()],
        )

    def node_protos(self, onnx: Any) -> list[Any]:
        """Return the nodes as onnx describes them."""
        make = onnx.helper.make_node
        return [
            make(kind, sources, [result], name=result, **_attributes_proto(onnx, attributes))
            for kind, sources, result, attributes in self.nodes
        ]

    def in_blocks(
        self, inputs: Sequence[str], rows: int, add: Callable[[Graph, list[str]], str], name: str
    ) -> str:
        """Add a loop over blocks of so many rows of the inputs; returns the results of all rows.

        ``add`` adds the nodes for a block, given its names, and returns that of its result. A
        row's result is the same as without the loop, up to the rounding of matrix products of
        another number of rows; there is at least one block, if of no rows.
        """
        axis, zero = self.constant("rows_axis", np.array([0])), self.constant("first", 0)
        length = self.constant("block_rows", np.int64(rows))
        body = LoopBody(self._inner(), *map(self._unique, ("block", "go_on", "done")))
        inner = body.graph
        start = inner.op("Mul", body.number, length)
        ends = [inner.op("Unsqueeze", at, axis) for at in (start, inner.op("Add", start, length))]
        result = add(inner, [inner.op("Slice", x, *ends, axis) for x in inputs])
        body.more = inner.op("SequenceInsert", body.done, result)
        body.same = inner.op("Identity", body.go_on)
        count = self.op("Gather", self.op("Shape", inputs[0]), zero)
        last = self.op("Max", self.op("Sub", count, self.constant("one_row", 1)), zero)
        blocks = self.op("Add", self.op("Div", last, length), self.constant("one_block", 1))
        none = self.op("SequenceEmpty", dtype=DOUBLE)
        found = self.op("Loop", blocks, "", none, body=body)
        return self.op("ConcatFromSequence", found, axis=0, name=name)

    def interpolate(self, x: str, columns: list[Knots]) -> str:
        """Add ``np.interp`` of each column of x, (rows, K), between knots of its own.

        All columns search at once: the knots lie in one table, each column's padded with infinity
        to the same power of two, and every step advances ``position`` by half of what is left
        where the knot there is not beyond x. That takes log2 of the largest number of knots in
        steps of few nodes.
        """
        steps = max(len(knots) - 1 for knots, _ in columns).bit_length()
        width = 2**steps
        tables = [np.full((len(columns), width), fill) for fill in (np.inf, 0.0, 0.0)]
        for row, (knots, values) in enumerate(columns):
            for table, entries in zip(tables, (knots, values, _slopes(knots, values)), strict=True):
                table[row, : len(entries)] = entries
        # Beyond its knots a column is constant. Clipping also keeps infinity out of the product.
        x = self.op("Max", x, self.constant("first_knot", [knots[0] for knots, _ in columns]))
        x = self.op("Min", x, self.constant("last_knot", [knots[-1] for knots, _ in columns]))
        names = ("knots", "values", "slopes")
        flat = [self.constant(*pair) for pair in zip(names, map(np.ravel, tables), strict=True)]
        position = self.constant("column_start", width * np.arange(len(columns), dtype=np.int64))
        for step in reversed(range(steps)):
            ahead = self.op("Add", position, self.constant("half", np.int64(2**step)))
            reached = self.op("GreaterOrEqual", x, self.op("Gather", flat[0], ahead))
            position = self.op("Where", reached, ahead, position)
        knot, value, slope = (self.op("Gather", table, position) for table in flat)
        rise = self.op("Mul", slope, self.op("Sub", x, knot))
        return self.op("Add", rise, value)

    def _unique(self, name: str) -> str:
        self._uses[name] = self._uses.get(name, 0) + 1
        return name if self._uses[name] == 1 else self._unique(f"{name}_{self._uses[name]}")


@dataclass
class LoopBody:
    """The body of a loop that gathers the results of blocks: its nodes, inputs and outputs."""

    graph: Graph
    number: str
    go_on: str
    done: str
    same: str = ""
    more: str = ""

    def to_proto(self, onnx: Any) -> Any:
        """Return it as onnx describes it."""
        info = onnx.helper.make_tensor_value_info
        gathered = onnx.helper.make_tensor_sequence_value_info
        inputs = [info(self.number, INT64, []), info(self.go_on, BOOL, [])]
        inputs.append(gathered(self.done, DOUBLE, None))
        outputs = [info(self.same, BOOL, []), gathered(self.more, DOUBLE, None)]
        nodes = self.graph.node_protos(onnx)
        return onnx.helper.make_graph(nodes, "block", inputs, outputs)


def _attributes_proto(onnx: Any, attributes: dict[str, Any]) -> dict[str, Any]:
    return {
        key: value.to_proto(onnx) if isinstance(value, LoopBody) else value
        for key, value in attributes.items()
    }


def block_rows(*widths: int) -> int:
    """Return the rows of a block whose steps are so many numbers wide."""
    return max(MIN_BLOCK_ROWS, BLOCK_VALUES // max(widths))


def _slopes(knots: FloatArray, values: FloatArray) -> FloatArray:
    """Return the slopes between knots as ``np.interp`` computes them, finite in any case."""
    width, rise = np.diff(knots), np.diff(values)
    # No point lies between equal knots. Between two that are closer than 1e-308 a slope overflows.
    slopes = np.zeros_like(rise)
    with np.errstate(over="ignore"):
        np.divide(rise, width, out=slopes, where=width > 0)
    largest = np.finfo(float).max
    return np.clip(slopes, -largest, largest)


def featured(graph: Graph, x: str, feature_map: FeatureMap) -> str:
    """Add the features of float64 rows: their coordinates, and the kernel with the centers."""
    z = feature_map.scaler.to_onnx(graph, x)
    if not feature_map.scaler.places_missing:
        missing = graph.op("IsNaN", x)
        z = graph.op("Where", missing, graph.constant("fill", feature_map.fill), z)
    return _kernel(graph, z, feature_map)


def scored(graph: Graph, features: str, coef: FloatArray) -> str:
    """Add the sums of features with coefficients (K, n)."""
    return graph.op("Gemm", features, graph.constant("coef", coef), transB=1)


def _kernel(graph: Graph, x: str, feature_map: FeatureMap) -> str:
    """Add the kernel of coordinates and the centers."""
    # Gemm, not MatMul: onnxruntime moves a scalar factor that stands before or after a MatMul into
    # an attribute of it, where it is a float32.
    kernel = feature_map.kernel
    C = kernel.facing(feature_map.centers)
    if not kernel.ranks:
        one = graph.constant("one", np.ones(1))
        z = graph.op("Gemm", x, graph.constant("centers", feature_map.centers), one, transB=1)
    else:
        q = graph.op("Gather", x, graph.constant("of_ranks", np.arange(kernel.ranks)), axis=1)
        others = graph.constant("of_others", np.arange(kernel.ranks, len(C) - 1))
        rest = graph.op("Gather", x, others, axis=1)
        facing = graph.constant("centers", C[kernel.ranks : -1])
        z = graph.op("Gemm", rest, facing, graph.constant("own", C[-1]))
        z = _minus_larger(graph, z, q, C[: kernel.ranks])
    return _power(graph, z, feature_map.degree)


def _minus_larger(graph: Graph, z: str, q: str, C: FloatArray) -> str:
    """Subtract the larger of the ranks of a row and of a center, rank after rank."""
    for k, own in enumerate(C):
        at = graph.constant("rank", np.array([k]))
        larger = graph.op("Max", graph.op("Gather", q, at, axis=1), graph.constant("ranks", own))
        z = graph.op("Sub", z, larger)
    return z


def _power(graph: Graph, base: str, degree: int) -> str:
    """Raise to an integer power as ``power_in_place`` does: Pow has other last bits."""
    z = base
    for bit in bin(degree)[3:]:
        z = graph.op("Mul", z, z)
        if bit == "1":
            z = graph.op("Mul", z, base)
    return z


def labelled(
    graph: Graph, score: str, classes: np.ndarray[Any, Any], thresholds: FloatArray | None = None
) -> str:
    """Add the output "label"; ``score`` is (rows,) for two classes, else (rows, n_classes).

    ``thresholds`` (K,) are subtracted from the scores before.
    """
    if thresholds is not None and thresholds.any():
        score = graph.op("Sub", score, graph.constant("thresholds", thresholds))
    if len(classes) == 2:
        positive = graph.op("GreaterOrEqual", score, graph.constant("zero", 0.0))
        code = graph.op("Cast", positive, to=INT64)
    else:
        code = graph.op("ArgMax", score, axis=1, keepdims=0)
    return graph.op("Gather", graph.constant("classes", classes), code, name="label")


def probabilities(graph: Graph, scores: str, calibrator: Calibrator, n_classes: int) -> str:
    """Add the output "probabilities" of scores (rows, K)."""
    p = _positive(graph, scores, calibrator)
    if n_classes == 2:
        other = graph.op("Sub", graph.constant("one", 1.0), p)
        return graph.op("Concat", other, p, axis=1, name="probabilities")
    axis = graph.constant("axis", np.array([1]))
    total = graph.op("ReduceSum", p, axis, keepdims=1)
    usable = graph.op("Greater", total, graph.constant("zero", 0.0))
    share = graph.op("Div", p, total)
    uniform = graph.constant("uniform", 1.0 / n_classes)
    return graph.op("Where", usable, share, uniform, name="probabilities")


def _positive(graph: Graph, scores: str, calibrator: Calibrator) -> str:
    """Add the probability of each column's class against the rest."""
    one = graph.constant("one", 1.0)
    if isinstance(calibrator, IsotonicCalibrator):
        p = graph.interpolate(scores, calibrator.knots())
        return graph.op("Min", p, one)
    assert isinstance(calibrator, SigmoidCalibrator)
    t = graph.op("Mul", scores, graph.constant("slope", calibrator.slope))
    t = graph.op("Add", t, graph.constant("intercept", calibrator.intercept))
    # The operator Sigmoid may compute its lower tail as a difference from 1, which loses it. Here
    # exp may overflow, as in scipy: the quotient is then zero.
    e = graph.op("Exp", graph.op("Neg", t))
    return graph.op("Div", one, graph.op("Add", one, e))
