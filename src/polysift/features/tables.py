"""Tables: the map from rows of any columns to coordinates.

The kernel of a table is ``(1 + (1/d) sum_k kappa_k(x_k, c_k))^s``, a sum over its d columns. Each
kappa is an inner product of a few coordinates, which are centred and scaled by the column's own
distribution: their mean over the rows is 0, so that zero says "nothing is known", and the mean of
kappa(a, a) is 1, so that every column weighs the same. A missing value has coordinates zero, and
where values are missing at all an indicator says so, at half of a column's weight.

A table whose columns are all numbers, none of them missing, keeps the paper's kernel: its scaler is
one of ``features.scalers``, and if columns are left out, ``TableScaler`` holds that of the others.

With the spline kernel, half of the weight of a number is that of its line, and half that of its
spline (``features.splines``), whatever the table. Columns may have weights other than 1/d.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from polysift.data.kinds import CATEGORY, DATE, DROP, NUMBER
from polysift.data.words import READINGS
from polysift.features.columns import COLUMN_KINDS, CONSTANT, ENCODED, LEFT_OUT
from polysift.features.kernels import POLYNOMIAL, Kernel
from polysift.features.level_columns import (
    LevelColumn,
    level_column_from,
)
from polysift.features.scalers import (
    ONNX_DOUBLE,
    ONNX_INT64,
    AffineScaler,
    OnnxGraph,
    QuantileScaler,
    Scaler,
    scaler_from_dict,
)
from polysift.features.scaling_loops import Lookup, ScalingLoops
from polysift.features.splines import SplineScaler
from polysift.features.statistics import ColumnStatistics, QuantileSketch
from polysift.features.unfolding import Unfolding
from polysift.runtime.arrays import InvalidFieldError, require, required_array
from polysift.runtime.types import BoolArray, FloatArray, IntArray

MIN_LOOKUP_WIDTH = 4
"""Coordinates of a category from which on a sum with a looked-up row is faster than a product."""


@dataclass(frozen=True)
class TableScaler(Scaler):
    """The map from the rows of a table, d columns, to D coordinates.

    Attributes
    ----------
    kinds : list of str
        What each column is.
    readings : list of str
        How text of each column is read.
    numbers : ndarray of int of shape (N,)
        The column of each number; a date has several (``features.unfolding``).
    ranks : QuantileScaler or None
        Takes numbers to their ranks first.
    affine : AffineScaler
        Takes the N numbers, or their ranks, to their coordinates.
    missing : ndarray of shape (d,)
        The share of missing values of each column in the training rows.
    indicators : ndarray of int of shape (I,)
        The columns that have an indicator of missing values.
    indicator_values : ndarray of shape (2, I)
        The coordinate of an indicator where the value is there, and where it is missing.
    levels : list of LevelColumn
        The categories.
    spline : SplineScaler or None
        With the spline kernel, takes the N numbers to their ranks, which are the first coordinates,
        and heights. There are further coordinates then, last of all: whether each number is absent
        and what is left of its part if another is (for those that may be missing), and the sum of
        the heights (``features.kernels.Kernel``).
    """

    kind = "table"
    needs_sketch = True

    kinds: list[str]
    readings: list[str]
    numbers: IntArray
    ranks: QuantileScaler | None
    affine: AffineScaler
    missing: FloatArray
    indicators: IntArray
    indicator_values: FloatArray
    levels: list[LevelColumn]
    spline: SplineScaler | None = None

    @classmethod
    def learn(cls, statistics: ColumnStatistics, sketch: QuantileSketch | None) -> Self:
        """Refuse: a table is learned by ``learn_table``."""
        raise TypeError("a table is learned from its columns")

    @cached_property
    def width(self) -> int:
        """The number of coordinates, D."""
        return len(self.owners) + (0 if self.spline is None else 2 * len(self.absent) + 1)

    @property
    def kernel(self) -> Kernel:
        """How the coordinates of a row and a center are paired."""
        if self.spline is None:
            return POLYNOMIAL
        return Kernel(len(self.numbers), len(self.absent))

    @property
    def by_column(self) -> bool:
        """Whether an exported model takes columns one by one: not for a spline of plain numbers."""
        plain = self.spline is not None and set(self.kinds) <= {NUMBER, CONSTANT}
        return not plain or bool(self.missing.any())

    @cached_property
    def absent(self) -> IntArray:
        """The numbers that may be missing, as positions among them."""
        return np.flatnonzero(self.missing[self.numbers] > 0)

    @cached_property
    def owners(self) -> IntArray:
        """The column of each rank, number, indicator and coordinate of a category."""
        of_levels = [np.full(found.width, found.column) for found in self.levels]
        ranks = [] if self.spline is None else [self.numbers]
        return np.concatenate([*ranks, self.numbers, self.indicators, *of_levels]).astype(int)

    @property
    def first_indicator(self) -> int:
        """The position of the first coordinate that is not of a number."""
        return len(self.numbers) * (1 if self.spline is None else 2)

    @cached_property
    def inputs(self) -> list[int]:
        """The columns that are not left out."""
        return [j for j, kind in enumerate(self.kinds) if kind not in LEFT_OUT]

    @cached_property
    def places_missing(self) -> bool:
        """Whether a missing value has coordinates: not in the paper's kernel, of numbers alone."""
        return (
            self.spline is not None
            or len(self.indicators) > 0
            or any(self.kinds[j] != NUMBER for j in self.inputs)
        )

    def n_coordinates(self, d: int) -> int:
        """Return the number of coordinates, D."""
        return self.width

    @cached_property
    def _unfolding(self) -> Unfolding:
        kinds = [kind if kind in (NUMBER, DATE) else DROP for kind in self.kinds]
        return replace(Unfolding.of(kinds), whole=False)

    def transform(self, block: FloatArray) -> FloatArray:
        """Return the coordinates of dense rows, (rows, D); returns a new float64 array."""
        out = np.empty((len(block), self.width))
        self._write(block, out)
        return out

    def lookups(self) -> list[Lookup]:
        """Return the coordinates of one-hot categories of some width."""
        start, found = self.first_indicator + len(self.indicators), []
        for column in self.levels:
            if _is_lookup(column):
                found.append(Lookup(start, column.table))
            start += column.width
        return found

    def transform_compiled(
        self, loops: ScalingLoops, block: FloatArray, out: FloatArray, rows: IntArray
    ) -> None:
        """Write the coordinates of dense rows by compiled loops, but for those of ``lookups``."""
        raw = self._unfolding.compiled(loops, block)
        first = self.first_indicator
        numbers = out[:, first - len(self.numbers) : first]
        if self.ranks is None:
            z, known = self.affine, self.places_missing
            loops.place_numbers(raw, z.low, z.high, z.offset, z.scale, known, numbers)
        else:
            numbers[:] = self._placed(raw, np.isnan(raw))
        if self.spline is not None:
            self._transform_splines(self.spline, raw, np.isnan(raw), out[:, :-1], loops)
        start, place = self._write_indicators(block, out), 0
        at = np.empty(len(block), dtype=np.int64)
        for found in self.levels:
            found.rows_compiled(loops, block, at)
            if _is_lookup(found):
                rows[:, place] = at
                place += 1
            else:
                out[:, start : start + found.width] = found.table[at]
                start += found.width
        out[:, -1] = 1.0

    def _placed(self, raw: FloatArray, lacking: BoolArray) -> FloatArray:
        """Return the coordinates of numbers; those of missing ones are zero."""
        z = self.affine.transform(raw if self.ranks is None else self.ranks.transform(raw))
        if self.places_missing and lacking.any():
            z[lacking] = 0.0
        return z

    def _write_indicators(self, block: FloatArray, out: FloatArray) -> int:
        """Write the indicators of missing values, and return the position that follows."""
        first = self.first_indicator
        end = first + len(self.indicators)
        if end > first:
            absent = np.isnan(block[:, self.indicators])
            out[:, first:end] = np.where(absent, self.indicator_values[1], self.indicator_values[0])
        return end

    def _write(self, block: FloatArray, out: FloatArray) -> None:
        raw = self._unfolding(block)
        lacking = np.isnan(raw)
        first = self.first_indicator
        out[:, first - len(self.numbers) : first] = self._placed(raw, lacking)
        if self.spline is not None:
            self._transform_splines(self.spline, raw, lacking, out, None)
        start = self._write_indicators(block, out)
        for found in self.levels:
            out[:, start : start + found.width] = found.table[found.rows(block[:, found.column])]
            start += found.width

    def _transform_splines(
        self,
        spline: SplineScaler,
        raw: FloatArray,
        lacking: BoolArray,
        out: FloatArray,
        loops: ScalingLoops | None,
    ) -> None:
        """Write ranks, absences and the sum of heights into coordinates of rows."""
        filled = spline.filled(raw) if lacking.any() else raw
        q, heights = spline.ranks_and_heights(filled, loops)
        at = self.absent
        rest = out[:, -2 * len(at) - 1 :]
        if len(at):
            gone = lacking[:, at]
            q[:, at] = np.where(gone, 0.0, q[:, at])
            heights[:, at] = np.where(gone, 0.0, heights[:, at])
            rest[:, : len(at)] = gone
            rest[:, len(at) : -1] = heights[:, at] - q[:, at]
        out[:, : q.shape[1]] = q
        rest[:, -1] = heights.sum(axis=1)

    def box(self, statistics: ColumnStatistics) -> FloatArray:
        """Return the smallest and the largest value of each coordinate, of shape (2, D).

        Of the spline kernel there is none: points of a box are no rows.
        """
        assert self.spline is None
        there = statistics.present > 0
        ends = np.stack([np.where(there, side, 0.0) for side in (statistics.low, statistics.high)])
        z = self.affine.transform(ends if self.ranks is None else self.ranks.transform(ends))
        tables = [found.table for found in self.levels]
        return np.concatenate(
            [
                np.stack([z.min(axis=0), z.max(axis=0)]),
                np.stack([self.indicator_values.min(axis=0), self.indicator_values.max(axis=0)]),
                *(np.stack([table.min(axis=0), table.max(axis=0)]) for table in tables),
            ],
            axis=1,
        )

    def fitted(self) -> TableScaler:
        """Return the map as predictions use it, without what only the rows of a fit need."""
        return replace(self, levels=[found.fitted() for found in self.levels])

    def slope(self, block: FloatArray) -> FloatArray:
        """Return the derivative of each coordinate by its column's value, (rows, D).

        It is zero for categories and indicators, and where a value is missing; that of a date is
        per second. Of a spline's own coordinates, which it leaves at zero, see ``spline_slopes``.
        """
        unfold = self._unfolding
        raw = unfold(block)
        slopes = unfold.slope(block)
        if self.ranks is not None:
            slopes *= self.ranks.slope(raw)
        slopes *= self.affine.slope(raw if self.ranks is None else self.ranks.transform(raw))
        out = np.zeros((len(block), self.width))
        numbers = slice(self.first_indicator - len(self.numbers), self.first_indicator)
        out[:, numbers] = np.where(np.isnan(raw), 0.0, slopes)
        return out

    def spline_slopes(self, block: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the derivatives of ranks and heights by their columns' values.

        Those of ranks are from below and from above the number, (2, rows, N): the larger of two
        ranks bends where they are equal. Those of heights are means of both, (rows, N).
        """
        assert self.spline is not None
        unfold = self._unfolding
        raw = unfold(block)
        outer = np.where(np.isnan(raw), 0.0, unfold.slope(block))
        filled = self.spline.filled(raw)
        return outer * self.spline.side_slopes(filled), outer * self.spline.height_slope(filled)

    def lacking(self, block: FloatArray) -> BoolArray:
        """Return which columns of dense rows lack values where no training row did, (d,)."""
        out = np.zeros(len(self.kinds), dtype=bool)
        expected = [j for j in self.inputs if self.missing[j] == 0]
        out[expected] = np.isnan(block[:, expected]).any(axis=0)
        return out

    def to_onnx(self, graph: OnnxGraph, x: str) -> str:
        """Add the nodes that make coordinates of rows, in float64: of ``inputs``, if by column.

        A category is there as the row of its table (``LevelColumn.words_to_onnx``).
        """
        position = {j: k if self.by_column else j for k, j in enumerate(self.inputs)}
        parts, rest = [], []
        if len(self.numbers):
            raw = self._unfolding.to_onnx(graph, x, position)
            if self.spline is not None:
                q, *rest = self._splines_to_onnx(self.spline, graph, raw)
                parts.append(q)
            z = raw if self.ranks is None else self.ranks.to_onnx(graph, raw)
            z = self.affine.to_onnx(graph, z)
            if self.places_missing:
                z = graph.op("Where", graph.op("IsNaN", raw), graph.constant("unknown", 0.0), z)
            parts.append(z)
        if len(self.indicators):
            at = graph.constant("indicators", [position[j] for j in self.indicators.tolist()])
            absent = graph.op("IsNaN", graph.op("Gather", x, at, axis=1))
            there, missing = (graph.constant("indicator", side) for side in self.indicator_values)
            parts.append(graph.op("Where", absent, missing, there))
        if self.levels:
            parts += self._levels_to_onnx(graph, x, position)
        parts += rest
        return graph.op("Concat", *parts, axis=1, name="coordinates")

    def _splines_to_onnx(self, spline: SplineScaler, graph: OnnxGraph, raw: str) -> list[str]:
        """Add ranks, absences and the sum of heights, as ``_transform_splines`` does."""
        lacking = graph.op("IsNaN", raw)
        known = graph.op("Where", lacking, graph.constant("medians", spline.middle), raw)
        q, heights = spline.to_onnx(graph, known), spline.heights_to_onnx(graph, known)
        axis = graph.constant("columns_axis", np.array([1]))
        if not len(self.absent):
            return [q, graph.op("ReduceSum", heights, axis, keepdims=1)]
        zero = graph.constant("unknown", 0.0)
        at = graph.constant("absent", self.absent)
        possible = np.zeros(len(self.numbers), dtype=bool)
        possible[self.absent] = True
        lacking = graph.op("And", lacking, graph.constant("may_be_absent", possible))
        q = graph.op("Where", lacking, zero, q)
        heights = graph.op("Where", lacking, zero, heights)
        left = graph.op("Sub", heights, q)
        gone = graph.op("Cast", lacking, to=ONNX_DOUBLE)
        columns = (graph.op("Gather", part, at, axis=1) for part in (gone, left))
        return [q, *columns, graph.op("ReduceSum", heights, axis, keepdims=1)]

    def _levels_to_onnx(self, graph: OnnxGraph, x: str, position: dict[int, int]) -> list[str]:
        at = graph.constant("categories", [position[found.column] for found in self.levels])
        rows = graph.op("Gather", x, at, axis=1)
        unknown = graph.constant("unknown", [len(found.table) - 1.0 for found in self.levels])
        rows = graph.op("Where", graph.op("IsNaN", rows), unknown, rows)
        rows = graph.op("Cast", rows, to=ONNX_INT64)
        columns = (graph.constant("category", k) for k in range(len(self.levels)))
        of_columns = (graph.op("Gather", rows, column, axis=1) for column in columns)
        return [
            found.to_onnx(graph, own) for found, own in zip(self.levels, of_columns, strict=True)
        ]

    def validate(self, d: int) -> None:
        """Raise an ``InvalidFieldError`` unless the fields make a table of d columns."""
        check_words("the kinds of scaler_", self.kinds, COLUMN_KINDS, d)
        check_words("the readings of scaler_", self.readings, READINGS, d)
        own = vars(self)
        numbers = required_array(own, "numbers", "i", (None,))
        require(np.array_equal(numbers, self._unfolding.owners), "the numbers must be in order")
        self.affine.validate(len(numbers))
        if self.ranks is not None:
            self.ranks.validate(len(numbers))
        if self.spline is not None:
            self.spline.validate(len(numbers))
        missing = required_array(own, "missing", "f", (d,))
        require(((missing >= 0) & (missing <= 1)).all(), "missing must hold shares of rows")
        indicators = required_array(own, "indicators", "i", (None,))
        lacking = [j for j in self.inputs if missing[j] > 0]
        require(indicators.tolist() == lacking, "the indicators must be of what was missing")
        required_array(own, "indicator_values", "f", (2, len(indicators)))
        for found in self.levels:
            found.validate(d)
        categories = [j for j, kind in enumerate(self.kinds) if kind in (CATEGORY, ENCODED)]
        known = [found.column for found in self.levels]
        require(known == categories, "each category of scaler_ must have its levels")

    def to_dict(self) -> dict[str, Any]:
        """Return the scaler as plain values."""
        parts = {"ranks": self.ranks, "affine": self.affine, "spline": self.spline}
        scalers = {name: None if part is None else part.to_dict() for name, part in parts.items()}
        levels = [asdict(found.fitted()) for found in self.levels]
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"kind": self.kind, **own, **scalers, "levels": levels}

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Self:
        """Return the scaler of a dict; older ones have no spline."""
        made: Any = super().from_dict({"spline": None, **stored})
        ranks, affine, spline = (
            None if part is None else _number_scaler(part)
            for part in (made.ranks, made.affine, made.spline)
        )
        fits = isinstance(affine, AffineScaler) and isinstance(ranks, QuantileScaler | None)
        if not fits or not isinstance(spline, SplineScaler | None):
            raise InvalidFieldError("scaler_ must hold scalers of numbers")
        if not isinstance(made.levels, list):
            raise InvalidFieldError("the levels of scaler_ must be a list")
        levels = [level_column_from(found) for found in made.levels]
        return replace(made, ranks=ranks, affine=affine, levels=levels, spline=spline)


def _is_lookup(found: LevelColumn) -> bool:
    """Return whether a row of a column's table is told instead of its coordinates.

    Its products with the centers are then looked up, which takes less time than to compute them.
    """
    return found.width >= MIN_LOOKUP_WIDTH and len(found.table) == found.width + 1


def check_words(name: str, words: Any, known: Collection[str], d: int) -> None:
    """Raise an ``InvalidFieldError`` unless these are d of the known words."""
    fits = isinstance(words, list) and len(words) == d
    fits = fits and all(isinstance(word, str) and word in known for word in words)
    require(fits, f"{name} must be words such as {', '.join(filter(None, known))}")


def _number_scaler(stored: Any) -> Scaler:
    if not isinstance(stored, dict):
        raise InvalidFieldError("scaler_ must hold scalers of numbers")
    kind = stored.get("kind")
    if isinstance(kind, str) and kind == SplineScaler.kind:
        return SplineScaler.from_dict(stored)
    return scaler_from_dict(stored)


def stored_scaler(stored: dict[str, Any]) -> Scaler:
    """Return the scaler of ``Scaler.to_dict``; an unknown kind or a wrong key raises."""
    kind = stored.get("kind")
    if isinstance(kind, str) and kind == TableScaler.kind:
        return TableScaler.from_dict(stored)
    return scaler_from_dict(stored)
