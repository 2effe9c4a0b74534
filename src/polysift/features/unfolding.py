"""The numbers of a row: its columns of numbers, and the parts of its dates.

A date is a number, and its cyclic parts: the hour, the weekday and the season, each as a point on a
circle. Categories have no part in this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from polysift.data.kinds import DATE, NUMBER, ColumnType
from polysift.features.scalers import OnnxGraph
from polysift.features.scaling_loops import ScalingLoops
from polysift.runtime.types import FloatArray, IntArray

DAY, WEEK, YEAR = 86400.0, 7 * 86400.0, 365.2425 * 86400.0

CYCLES = {"hour": (DAY, 0.0), "weekday": (WEEK, 4 * DAY), "season": (YEAR, 0.0)}
"""The length of each cycle, and where in it 1970 began (on a Thursday), in seconds."""

DATE_PARTS = ("time", *(f"{name} {axis}" for name in CYCLES for axis in ("cos", "sin")))
"""The numbers that a date becomes."""

FINENESS = 2.0**40
"""Sines and cosines are rounded to multiples of its inverse: those of 6 and 18 o'clock differ in
their last bits, which ranks would tell apart, and another machine or runtime has other ones."""


@dataclass(frozen=True)
class Unfolding:
    """Which numbers the columns of a table become.

    Attributes
    ----------
    owners : ndarray of int of shape (N,)
        The column that each number comes from.
    parts : ndarray of int of shape (N,)
        Which of ``DATE_PARTS`` it is; 0 for a column of numbers.
    whole : bool
        Whether these are just the columns, in their order.
    """

    owners: IntArray
    parts: IntArray
    whole: bool

    @classmethod
    def of(cls, kinds: Sequence[str]) -> Unfolding:
        """Return the unfolding of columns of these kinds."""
        owners: list[int] = []
        parts: list[int] = []
        for j, kind in enumerate(kinds):
            count = {NUMBER: 1, DATE: len(DATE_PARTS)}.get(kind, 0)
            owners += [j] * count
            parts += range(count)
        whole = all(kind == NUMBER for kind in kinds)
        return cls(np.array(owners, dtype=int), np.array(parts, dtype=int), whole)

    def __call__(self, block: FloatArray) -> FloatArray:
        """Return the numbers of dense rows, of shape (rows, N); NaN where they are missing."""
        if self.whole:
            return block
        out = np.asarray(block[:, self.owners], dtype=float)
        for first in np.flatnonzero(self.parts == 1):
            for k, cycle in enumerate(CYCLES.values()):
                angle = _angle(out[:, first - 1], *cycle)
                out[:, first + 2 * k] = _rounded(np.cos(angle))
                out[:, first + 2 * k + 1] = _rounded(np.sin(angle))
        return out

    def compiled(self, loops: ScalingLoops, block: FloatArray) -> FloatArray:
        """Return the same by a compiled loop, also where these are just the columns."""
        out = np.empty((len(block), len(self.owners)))
        cycles = np.array(list(CYCLES.values()))
        loops.unfold_rows(block, self.owners, self.parts, cycles, FINENESS, out)
        return out

    def slope(self, block: FloatArray) -> FloatArray:
        """Return the derivative of each number by its column's value, of shape (rows, N)."""
        out = np.ones((len(block), len(self.owners)))
        for j in np.flatnonzero(self.parts):
            out[:, j] = date_part_slope(block[:, self.owners[j]], int(self.parts[j]))
        return out

    def to_onnx(self, graph: OnnxGraph, x: str, position: Mapping[int, int]) -> str:
        """Add the nodes that make numbers of rows whose columns are at these positions."""
        at = np.array([position[int(j)] for j in self.owners], dtype=np.int64)
        cyclic = np.flatnonzero(self.parts)
        if not len(cyclic):
            return graph.op("Gather", x, graph.constant("numbers", at), axis=1)
        plain = np.flatnonzero(self.parts == 0)
        numbers = graph.op("Gather", x, graph.constant("numbers", at[plain]), axis=1)
        seconds = graph.op("Gather", x, graph.constant("dates", at[cyclic]), axis=1)
        turns = _date_parts_to_onnx(graph, seconds, self.parts[cyclic])
        order = np.argsort(np.concatenate([plain, cyclic]))
        both = graph.op("Concat", numbers, turns, axis=1)
        return graph.op("Gather", both, graph.constant("order", order), axis=1)


def date_part(seconds: FloatArray, part: int) -> FloatArray:
    """Return a part of dates that is not the time itself."""
    turn = (np.cos, np.sin)[(part - 1) % 2]
    return _rounded(turn(_angle(seconds, *cycle_of(part))))


def _angle(seconds: FloatArray, length: float, start: float) -> FloatArray:
    return 2.0 * np.pi * (((seconds + start) % length) / length)


def _rounded(values: FloatArray) -> FloatArray:
    return np.asarray(np.rint(values * FINENESS) / FINENESS)


def date_part_slope(seconds: FloatArray, part: int) -> FloatArray:
    """Return the derivative of ``date_part`` by the seconds: a cosine falls where the sine is."""
    other, sign = (part + 1, -1.0) if part % 2 else (part - 1, 1.0)
    return sign * 2.0 * np.pi / cycle_of(part)[0] * date_part(seconds, other)


def cycle_of(part: int) -> tuple[float, float]:
    """Return the length of the cycle of a date's part, and where in it 1970 began."""
    return list(CYCLES.values())[(part - 1) // 2]


def _date_parts_to_onnx(graph: OnnxGraph, seconds: str, parts: IntArray) -> str:
    """Add ``date_part`` of each column; a cosine is a sine, which runtimes have for doubles."""
    lengths, starts = (np.array(side) for side in zip(*map(cycle_of, parts), strict=True))
    length = graph.constant("cycle", lengths)
    since = graph.op("Add", seconds, graph.constant("cycle_start", starts))
    rest = graph.op("Mod", since, length, fmod=1)
    negative = graph.op("Less", rest, graph.constant("zero", 0.0))  # fmod has the sign of a date
    rest = graph.op("Where", negative, graph.op("Add", rest, length), rest)
    share = graph.op("Div", rest, length)
    angle = graph.op("Mul", share, graph.constant("turn", 2.0 * np.pi))
    ahead = graph.constant("quarter", np.where(parts % 2 == 1, np.pi / 2, 0.0))
    exact = graph.op("Sin", graph.op("Add", angle, ahead))
    fineness = graph.constant("fineness", FINENESS)
    return graph.op("Div", graph.op("Round", graph.op("Mul", exact, fineness)), fineness)


def unfolding_of(types: Sequence[ColumnType] | None, n_features: int) -> Unfolding:
    """Return the unfolding of the columns of a source."""
    kinds = [NUMBER] * n_features if types is None else [column.kind for column in types]
    return Unfolding.of(kinds)
