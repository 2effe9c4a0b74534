"""How the map of a table is learned: from the survey of its columns, and their weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from polysift.data.kinds import CATEGORY, DATE, DROP, NUMBER
from polysift.features.columns import TableColumns
from polysift.features.level_columns import (
    MAX_SELF_KERNEL,
    LevelColumn,
    hashed_column,
    one_hot_column,
    target_column,
)
from polysift.features.levels import LevelCounts
from polysift.features.scalers import AffineScaler, QuantileScaler, learn_scaler
from polysift.features.splines import SplineScaler
from polysift.features.statistics import QuantileSketch
from polysift.features.survey import Survey
from polysift.features.tables import TableScaler
from polysift.features.unfolding import Unfolding
from polysift.runtime.types import FloatArray, IntArray

INDICATOR_WEIGHT = 0.5
"""What the indicator of missing values is multiplied with."""


def restricted(found: Survey, columns: TableColumns) -> Survey:
    """Return a survey with the numbers of the columns in use alone."""
    surveyed = Unfolding.of([column.kind for column in columns.types])
    kept = np.flatnonzero(np.isin(surveyed.owners, columns.used))
    sketch = found.sketch
    if sketch is not None:
        sketch = QuantileSketch([sketch.values[j] for j in kept], [sketch.weights[j] for j in kept])
    return replace(found, statistics=found.statistics.columns(kept), sketch=sketch)


def learn_table(
    name: str | None,
    columns: TableColumns,
    found: Survey,
    *,
    spline: bool = False,
    weights: FloatArray | None = None,
) -> TableScaler:
    """Learn the map of a table from its restricted survey.

    Parameters
    ----------
    name : str or None
        How numbers are scaled; of no effect with a spline.
    columns : TableColumns
        What the columns are.
    found : Survey
        Their distributions.
    spline : bool
        Whether numbers have splines.
    weights : ndarray of shape (d,), optional
        The weights of the columns, which sum to one; by default they are equal.
    """
    used = columns.used
    unfold = Unfolding.of([kind if kind in (NUMBER, DATE) else DROP for kind in columns.kinds])
    spline = spline and len(unfold.owners) > 0
    shares = np.full(len(columns.kinds), 1.0 / max(len(used), 1)) if weights is None else weights
    if spline or (not (columns.plain and weights is None) and name is not None):
        parts = _number_parts(found, unfold.owners, shares) * (0.5 if spline else 1.0)
        ranks, affine = _learn_centred(None if spline else name, found, parts)
    else:
        ranks, affine = _learn_plain(name, found)
    indicators = np.array([j for j in used if columns.missing[j] > 0], dtype=int)
    p = columns.missing[indicators]
    values = np.stack([-p, 1.0 - p]) / np.sqrt(np.maximum(p * (1.0 - p), 1e-300))
    bound, scales = np.sqrt(MAX_SELF_KERNEL), np.sqrt(shares)
    levels = [
        _learn_levels(j, columns, found.levels[j], float(scales[j]))
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
        indicator_values=INDICATOR_WEIGHT * scales[indicators] * np.clip(values, -bound, bound),
        levels=levels,
        spline=_learn_splines(found, parts) if spline else None,
    )


def _number_parts(found: Survey, owners: IntArray, shares: FloatArray) -> FloatArray:
    """Return the weight of each number: that of its column, divided among those that vary."""
    assert found.sketch is not None
    varying = np.array([len(values) > 1 for values in found.sketch.values], dtype=bool)
    counts = np.bincount(owners[varying], minlength=len(shares))
    return np.asarray(shares[owners] / np.maximum(counts[owners], 1))


def _learn_splines(found: Survey, parts: FloatArray) -> SplineScaler:
    assert found.sketch is not None
    return SplineScaler.weighted(found.sketch, parts)


def _learn_levels(j: int, columns: TableColumns, found: LevelCounts, scale: float) -> LevelColumn:
    if columns.kinds[j] == CATEGORY:
        return one_hot_column(j, found, columns.whole, scale)
    if j in columns.encoded:
        return target_column(j, found, columns.encoded[j], scale)
    return hashed_column(j, found, columns.max_levels, scale)


def _learn_plain(name: str | None, found: Survey) -> tuple[QuantileScaler | None, AffineScaler]:
    """Learn the map of numbers of the paper's kernel."""
    learned = learn_scaler(name, found.statistics, found.sketch)
    if isinstance(learned, QuantileScaler):
        return learned, AffineScaler.identity(len(learned.counts))
    assert isinstance(learned, AffineScaler)
    return None, AffineScaler(learned.offset, learned.scale, learned.low, learned.high)


def _learn_centred(
    name: str | None, found: Survey, parts: FloatArray
) -> tuple[QuantileScaler | None, AffineScaler]:
    """Learn the map of numbers that are centred, scaled and bounded, and have these weights."""
    sketch = found.sketch
    assert sketch is not None
    ranks = QuantileScaler.learn(found.statistics, sketch) if name == "quantile" else None
    mean, deviation, shift = np.zeros((3, len(parts)))
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
    scale = np.where(deviation > 0, 1.0 / np.where(deviation > 0, deviation, 1.0), 0.0)
    return ranks, AffineScaler(
        mean + shift * deviation, scale * np.sqrt(parts), mean - reach, mean + reach
    )
