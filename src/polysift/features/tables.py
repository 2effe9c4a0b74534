"""Tables: the map from rows of any columns to coordinates.

The kernel of a table is ``(1 + (1/d) sum_k kappa_k(x_k, c_k))^s``, a sum over its d columns. Each
kappa is an inner product of a few coordinates, which are centred and scaled by the column's own
distribution: their mean over the rows is 0, so that zero says "nothing is known", and the mean of
kappa(a, a) is 1, so that every column weighs the same. A missing value has coordinates zero, and
where values are missing at all an indicator says so, at half of a column's weight.

A table whose columns are all numbers, none of them missing, keeps the paper's kernel: its scaler is
one of ``features.scalers``, and if columns are left out, ``TableScaler`` holds that of the others.

With the spline kernel, the numbers' parts are those of ``features.splines``, whatever the table.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np

from polysift.data.kinds import CATEGORY, DATE, DROP, NUMBER
from polysift.data.words import READINGS
from polysift.features.columns import COLUMN_KINDS, CONSTANT, ENCODED, LEFT_OUT, TableColumns
from polysift.features.kernels import POLYNOMIAL, Kernel
from polysift.features.level_columns import (
    MAX_SELF_KERNEL,
    LevelColumn,
    hashed_column,
    level_column_from,
    one_hot_column,
    target_column,
)
from polysift.features.levels import LevelCounts
from polysift.features.scalers import (
    ONNX_DOUBLE,
    ONNX_INT64,
    AffineScaler,
    OnnxGraph,
    QuantileScaler,
    Scaler,
    learn_scaler,
    scaler_from_dict,
)
from polysift.features.splines import SplineScaler
from polysift.features.statistics import ColumnStatistics, QuantileSketch
from polysift.features.survey import Survey
from polysift.features.unfolding import Unfolding
from polysift.runtime.arrays import InvalidFieldError, require, required_array
from polysift.runtime.types import BoolArray, FloatArray, IntArray

INDICATOR_WEIGHT = 0.5
"""What the indicator of missing values is multiplied with."""


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
        With the spline kernel, takes the N numbers to their ranks and heights, in the place of
        ``ranks`` and ``affine``. There are further coordinates then, last of all: whether each
        number is absent and what is left of its part if another is (for those that may be
        missing), and the sum of the heights (``features.kernels.Kernel``).
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

    @property
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

    @property
    def absent(self) -> IntArray:
        """The numbers that may be missing, as positions among them."""
        return np.flatnonzero(self.missing[self.numbers] > 0)

    @property
    def owners(self) -> IntArray:
        """The column of each number, indicator and coordinate of a category."""
        of_levels = [np.full(found.width, found.column) for found in self.levels]
        return np.concatenate([self.numbers, self.indicators, *of_levels]).astype(int)

    @property
    def inputs(self) -> list[int]:
        """The columns that are not left out."""
        return [j for j, kind in enumerate(self.kinds) if kind not in LEFT_OUT]

    @property
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

    def _unfolding(self) -> Unfolding:
        kinds = [kind if kind in (NUMBER, DATE) else DROP for kind in self.kinds]
        return replace(Unfolding.of(kinds), whole=False)

    def transform(self, block: FloatArray) -> FloatArray:
        """Return the coordinates of dense rows, (rows, D); returns a new float64 array."""
        out = np.empty((len(block), self.width))
        raw = self._unfolding()(block)
        N, end = len(self.numbers), len(self.numbers) + len(self.indicators)
        if self.spline is None:
            z = self.affine.transform(raw if self.ranks is None else self.ranks.transform(raw))
            out[:, :N] = np.where(np.isnan(raw), 0.0, z) if self.places_missing else z
        else:
            self._transform_splines(self.spline, raw, out)
        absent = np.isnan(block[:, self.indicators])
        out[:, N:end] = np.where(absent, self.indicator_values[1], self.indicator_values[0])
        start = end
        for found in self.levels:
            out[:, start : start + found.width] = found.table[found.rows(block[:, found.column])]
            start += found.width
        return out

    def _transform_splines(self, spline: SplineScaler, raw: FloatArray, out: FloatArray) -> None:
        """Write ranks, absences and the sum of heights into coordinates of rows."""
        at = self.absent
        lacking = np.isnan(raw[:, at])
        filled = spline.filled(raw)
        q, heights = spline.transform(filled), spline.heights_of(filled)
        q[:, at] = np.where(lacking, 0.0, q[:, at])
        heights[:, at] = np.where(lacking, 0.0, heights[:, at])
        rest = out[:, len(self.owners) :]
        out[:, : q.shape[1]] = q
        rest[:, : len(at)] = lacking
        rest[:, len(at) : -1] = heights[:, at] - q[:, at]
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
        per second. Of the spline kernel, see ``spline_slopes``.
        """
        assert self.spline is None
        unfold = self._unfolding()
        raw = unfold(block)
        slopes = unfold.slope(block)
        if self.ranks is not None:
            slopes *= self.ranks.slope(raw)
        slopes *= self.affine.slope(raw if self.ranks is None else self.ranks.transform(raw))
        out = np.zeros((len(block), self.width))
        out[:, : len(self.numbers)] = np.where(np.isnan(raw), 0.0, slopes)
        return out

    def spline_slopes(self, block: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the derivatives of ranks and heights by their columns' values, each (rows, N)."""
        assert self.spline is not None
        unfold = self._unfolding()
        raw = unfold(block)
        outer = np.where(np.isnan(raw), 0.0, unfold.slope(block))
        filled = self.spline.filled(raw)
        return outer * self.spline.slope(filled), outer * self.spline.height_slope(filled)

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
            raw = self._unfolding().to_onnx(graph, x, position)
            if self.spline is not None:
                q, *rest = self._splines_to_onnx(self.spline, graph, raw)
                parts.append(q)
        if len(self.numbers) and self.spline is None:
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
        require(np.array_equal(numbers, self._unfolding().owners), "the numbers must be in order")
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
        return {"kind": self.kind, **vars(self), **scalers, "levels": levels}

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


def check_words(name: str, words: Any, known: Collection[str], d: int) -> None:
    """Raise an ``InvalidFieldError`` unless these are d of the known words."""
    fits = isinstance(words, list) and len(words) == d
    fits = fits and all(isinstance(word, str) and word in known for word in words)
    require(fits, f"{name} must be words such as {', '.join(filter(None, known))}")


def _number_scaler(stored: Any) -> Scaler:
    if not isinstance(stored, dict):
        raise InvalidFieldError("scaler_ must hold scalers of numbers")
    if stored.get("kind") == SplineScaler.kind:
        return SplineScaler.from_dict(stored)
    return scaler_from_dict(stored)


def restricted(found: Survey, columns: TableColumns) -> Survey:
    """Return a survey with the numbers of the columns in use alone."""
    surveyed = Unfolding.of([column.kind for column in columns.types])
    kept = np.flatnonzero(np.isin(surveyed.owners, columns.used))
    sketch = found.sketch
    if sketch is not None:
        sketch = QuantileSketch([sketch.values[j] for j in kept], [sketch.weights[j] for j in kept])
    return replace(found, statistics=found.statistics.columns(kept), sketch=sketch)


def learn_table(
    name: str | None, columns: TableColumns, found: Survey, *, spline: bool = False
) -> TableScaler:
    """Learn the map of a table from its restricted survey.

    ``name`` says how numbers are scaled, where these are not the coordinates of a ``spline``.
    """
    used = columns.used
    scale = 1.0 / np.sqrt(max(len(used), 1))
    unfold = Unfolding.of([kind if kind in (NUMBER, DATE) else DROP for kind in columns.kinds])
    wanted = spline and len(unfold.owners) > 0
    splines = _learn_splines(columns, found, unfold.owners) if wanted else None
    ranks, affine = None, AffineScaler.identity(len(unfold.owners))
    if splines is None:
        ranks, affine = _learn_numbers(name, columns, found, unfold.owners)
    indicators = np.array([j for j in used if columns.missing[j] > 0], dtype=int)
    p = columns.missing[indicators]
    values = np.stack([-p, 1.0 - p]) / np.sqrt(np.maximum(p * (1.0 - p), 1e-300))
    bound = np.sqrt(MAX_SELF_KERNEL)
    levels = [
        _learn_levels(j, columns, found.levels[j], scale)
        for j in used
        if columns.types[j].kind == CATEGORY
    ]
    return TableScaler(
        kinds=list(columns.kinds),
        readings=[column.reading for column in columns.types],
        numbers=unfold.owners,
        ranks=ranks,
        affine=affine,
        missing=columns.missing,
        indicators=indicators,
        indicator_values=INDICATOR_WEIGHT * scale * np.clip(values, -bound, bound),
        levels=levels,
        spline=splines,
    )


def _learn_splines(columns: TableColumns, found: Survey, owners: IntArray) -> SplineScaler:
    """Learn the splines of numbers, all of a column with the weight of one column."""
    assert found.sketch is not None
    varying = np.array([len(values) > 1 for values in found.sketch.values], dtype=bool)
    parts = np.bincount(owners[varying], minlength=len(columns.kinds))
    return SplineScaler.weighted(
        found.sketch, 1.0 / (np.maximum(parts[owners], 1) * max(len(columns.used), 1))
    )


def _learn_levels(j: int, columns: TableColumns, found: LevelCounts, scale: float) -> LevelColumn:
    if columns.kinds[j] == CATEGORY:
        return one_hot_column(j, found, columns.whole, scale)
    if j in columns.encoded:
        by_fold, n_folds = columns.encoded[j]
        return target_column(j, found, by_fold, n_folds, scale)
    return hashed_column(j, found, columns.max_levels, scale)


def _learn_numbers(
    name: str | None, columns: TableColumns, found: Survey, owners: IntArray
) -> tuple[QuantileScaler | None, AffineScaler]:
    """Learn the map of numbers: that of the paper's kernel, or centred, scaled and bounded."""
    statistics, sketch = found.statistics, found.sketch
    identity = AffineScaler.identity(len(owners))
    if columns.plain or name is None:
        learned = learn_scaler(name, statistics, sketch)
        if isinstance(learned, QuantileScaler):
            return learned, identity
        assert isinstance(learned, AffineScaler)
        return None, AffineScaler(learned.offset, learned.scale, learned.low, learned.high)
    assert sketch is not None
    ranks = QuantileScaler.learn(statistics, sketch) if name == "quantile" else None
    mean, deviation, shift = np.zeros((3, len(owners)))
    for k, (values, weights) in enumerate(zip(sketch.values, sketch.weights, strict=True)):
        if len(values) < 2:
            continue
        s = values if ranks is None else ranks.transform_column(values, k)
        total = weights.sum()
        mean[k] = weights @ s / total
        deviation[k] = np.sqrt(weights @ (s - mean[k]) ** 2 / total)
        if deviation[k] > 0:
            bound = np.sqrt(MAX_SELF_KERNEL)
            shift[k] = weights @ np.clip((s - mean[k]) / deviation[k], -bound, bound) / total
    reach = np.sqrt(MAX_SELF_KERNEL) * deviation
    varying = np.bincount(owners[deviation > 0], minlength=len(columns.kinds))
    parts = np.maximum(varying[owners], 1) * max(len(columns.used), 1)
    scale = np.where(deviation > 0, 1.0 / np.where(deviation > 0, deviation, 1.0), 0.0)
    return ranks, AffineScaler(
        mean + shift * deviation, scale / np.sqrt(parts), mean - reach, mean + reach
    )


def stored_scaler(stored: dict[str, Any]) -> Scaler:
    """Return the scaler of ``Scaler.to_dict``; an unknown kind or a wrong key raises."""
    kind = stored.get("kind")
    if isinstance(kind, str) and kind == TableScaler.kind:
        return TableScaler.from_dict(stored)
    return scaler_from_dict(stored)
