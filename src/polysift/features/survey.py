"""The survey: one pass over the rows for all that must be known before a fit.

Column statistics, the quantile sketch, candidates for centers, labels and weights, and digests for
a checkpoint are collected by block and merged in a fixed tree. Invalid values, weights and labels
are found here, and named by row and column.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from polysift.data.checks import check_finite
from polysift.data.kinds import CATEGORY
from polysift.data.labels import LabelPart, label_part
from polysift.data.source import DataSource
from polysift.features.centers import Candidates, Words, find_candidates, hash_rows, mix
from polysift.features.columns import TableColumns
from polysift.features.levels import (
    LevelCounts,
    WholeNumbers,
    count_levels,
    find_whole_numbers,
)
from polysift.features.sampled_rows import SampledRows, has_sampled_hash, is_sampled_at
from polysift.features.scalers import SCALERS, needs_dense_rows, needs_sketch
from polysift.features.statistics import (
    ColumnStatistics,
    QuantileSketch,
    column_statistics,
    quantile_sketch,
)
from polysift.features.target_counts import (
    RowLevels,
    TargetCounts,
    count_targets,
    hashed_folds,
    row_levels,
)
from polysift.features.unfolding import unfolding_of
from polysift.runtime.checkpoints import digest
from polysift.runtime.errors import FeatureOverflowError
from polysift.runtime.parallel import Pool, Span, block_spans, tree_sum
from polysift.runtime.progress import Monitor
from polysift.runtime.types import BoolArray, FloatArray

BLOCK_VALUES = 2**20
"""Values of X that are surveyed at a time."""

VALUE_COST_IN_FEATURES = 8
"""The time that a value takes, in evaluations of a feature: small data are surveyed serially."""

FOLD_SEED = 0x666F6C64
"""The seed of the hashes by which folds are dealt: a calibration depends on the rows alone."""

MAX_ABS_VALUE = 1e150
"""Values beyond overflow when they are squared."""


@dataclass(frozen=True)
class Questions:
    """What a survey collects besides the column statistics.

    Attributes
    ----------
    labels : bool
        Whether to collect labels.
    digest : bool
        Whether to compute a digest of the rows' content, for a checkpoint.
    quantiles : bool
        Whether to compute the quantile sketch.
    scheme : str
        The scheme of the centers; "first" and "random" collect rows as candidates.
    n_centers : int
        The most candidates.
    seed : int
        The seed of the rows' hash.
    gather : bool
        Whether to collect each row's label and weight, or only the distinct labels.
    targets : bool
        Whether to count levels by label and hashed fold (``features.target_counts``).
    row_levels : bool
        Whether to collect the level of each row, for folds that are dealt when labels are known.
    sampled : float
        The share of the rows that are kept with their labels (``features.sampled_rows``).
    sampled_at : float
        The share of the rows that are kept by their position, should too few of the sample differ.
    hashes : bool
        Whether to collect a hash of each row, by which the folds of a calibration are dealt.
    """

    labels: bool
    digest: bool
    quantiles: bool
    scheme: str
    n_centers: int
    seed: int
    gather: bool = True
    targets: bool = False
    row_levels: bool = False
    sampled: float = 0.0
    sampled_at: float = 0.0
    hashes: bool = False

    @property
    def by_rows(self) -> bool:
        """Whether rows may be centers."""
        return self.scheme in ("first", "random")

    @property
    def hashed(self) -> bool:
        """Whether the hash of a row, with this seed, says what becomes of it."""
        return self.by_rows or self.targets or self.row_levels or self.sampled > 0


@dataclass
class Survey:
    """What was collected, from some of the rows or all.

    Attributes
    ----------
    statistics : ColumnStatistics
        The statistics of the numbers of the rows (``features.unfolding``).
    sketch : QuantileSketch or None
        Their distributions.
    candidates : Candidates or None
        Rows that may be centers.
    labels : list of LabelPart
        The labels, in the order of the rows.
    digests : list
        Digests of the rows.
    levels : dict of int to LevelCounts
        The levels of each category.
    whole : WholeNumbers or None
        Which columns may number the rows, where columns have names.
    columns : TableColumns or None
        What the columns are found to be (``features.columns``); None for the paper's kernel.
    sample, sample_at : list of SampledRows
        Some rows with their labels, by their content, and by their position.
    targets : TargetCounts or None
        The levels by label and hashed fold.
    row_levels : list of RowLevels
        The levels of the rows, in their order.
    """

    statistics: ColumnStatistics
    sketch: QuantileSketch | None
    candidates: Candidates | None
    labels: list[LabelPart] = field(default_factory=list)
    digests: list[Words] = field(default_factory=list)
    levels: dict[int, LevelCounts] = field(default_factory=dict)
    whole: WholeNumbers | None = None
    columns: TableColumns | None = None
    sample: list[SampledRows] = field(default_factory=list)
    sample_at: list[SampledRows] = field(default_factory=list)
    targets: TargetCounts | None = None
    row_levels: list[RowLevels] = field(default_factory=list)

    def merge(self, other: Survey, n_centers: int) -> Survey:
        """Return the survey of these rows and those of ``other``, which follow them."""
        return Survey(
            self.statistics.merge(other.statistics),
            self.sketch.merge(other.sketch) if self.sketch and other.sketch else None,
            self.candidates.merge(other.candidates, n_centers)
            if self.candidates and other.candidates
            else None,
            self.labels + other.labels,
            self.digests + other.digests,
            {j: found.merge(other.levels[j]) for j, found in self.levels.items()},
            self.whole.merge(other.whole) if self.whole and other.whole else None,
            sample=self.sample + other.sample,
            sample_at=self.sample_at + other.sample_at,
            targets=self.targets.merge(other.targets) if self.targets and other.targets else None,
            row_levels=self.row_levels + other.row_levels,
        )


def survey(
    source: DataSource, questions: Questions, pool: Pool, monitor: Monitor | None = None
) -> Survey:
    """Survey the rows of positive weight, none of whose values may be infinite."""
    rows = (stop - start for start, stop in source.shards())
    parts = zip(rows, survey_shards(source, questions, pool), strict=True)
    watched = (monitor or Monitor()).watch("survey", source.n_rows, parts)
    total = tree_sum(watched, lambda a, b: a.merge(b, questions.n_centers))
    refuse_huge_values(source, total.statistics)
    return total


def survey_shards(source: DataSource, questions: Questions, pool: Pool) -> Iterator[Survey]:
    """Yield the survey of each shard."""
    block_rows = int(np.clip(BLOCK_VALUES // source.n_features, 64, 8192))

    def visit(item: tuple[Span, Any]) -> Survey:
        span, part = item
        rows = source.rows(part)
        weights = checked_weights(source, span[0], source.weights(part))
        keys = np.zeros(rows.shape[0], dtype=np.uint64)
        if questions.hashed:
            keys = hash_rows(rows, questions.seed)
        blocks = (
            _survey_block(
                source,
                span[0] + lo,
                rows[lo:hi],
                _cut(weights, lo, hi),
                keys[lo:hi],
                questions,
            )
            for lo, hi in block_spans((0, span[1] - span[0]), block_rows)
        )
        found = tree_sum(blocks, lambda a, b: a.merge(b, questions.n_centers))
        found.levels = _survey_levels(source, part, rows, weights)
        if questions.labels:
            labels = _survey_labels(source, span[0], part, weights, questions)
            found.targets = _survey_targets(rows, weights, found.levels, labels, keys, questions)
            if questions.row_levels and found.levels:
                levels = {j: counts.levels for j, counts in found.levels.items()}
                found.row_levels = [row_levels(rows, levels, keys)]
            if questions.sampled:
                chosen = has_sampled_hash(keys, questions.sampled)
                found.sample = [_sampled(source, span[0], part, rows, weights, chosen)]
            if questions.sampled_at:
                first = source.first_row + span[0]
                chosen = is_sampled_at(first, len(keys), questions.sampled_at, questions.seed)
                found.sample_at = [_sampled(source, span[0], part, rows, weights, chosen)]
            labels = labels if questions.gather else replace(labels, codes=None, weights=None)
            hashes = _hashes(rows, block_rows) if questions.hashes else None
            found.labels = [replace(labels, hashes=hashes)]
        return found

    work = VALUE_COST_IN_FEATURES * source.n_rows * source.n_features
    yield from pool.map(visit, source.parts(), work=work)


def categories_of(source: DataSource) -> list[int]:
    """Return the columns of a source that are categories by their types."""
    return [j for j, column in enumerate(source.types or ()) if column.kind == CATEGORY]


def _survey_levels(
    source: DataSource, part: Any, rows: Any, weights: FloatArray | None
) -> dict[int, LevelCounts]:
    """Count the levels of the categories of a part."""
    categories = categories_of(source)
    if not categories:
        return {}
    words = source.words(part)
    w = np.ones(len(rows)) if weights is None else weights
    present = w > 0
    return {j: count_levels(rows[present, j], w[present], words.get(j, {})) for j in categories}


def _survey_targets(
    rows: FloatArray,
    weights: FloatArray | None,
    levels: dict[int, LevelCounts],
    labels: LabelPart,
    keys: Words,
    questions: Questions,
) -> TargetCounts | None:
    """Count the levels of categories by label and hashed fold."""
    if not questions.targets or not levels:
        return None
    assert labels.codes is not None
    of_columns = {j: counts.levels for j, counts in levels.items()}
    codes, folds = labels.codes, hashed_folds(keys)
    if weights is None:
        w = np.ones(len(rows))
    else:
        there = weights > 0
        rows, w, codes, folds = rows[there], weights[there], codes[there], folds[there]
    return count_targets(rows, w, of_columns, labels.distinct, codes, folds)


def _survey_labels(
    source: DataSource, first: int, part: Any, weights: FloatArray | None, questions: Questions
) -> LabelPart:
    labels = checked_labels(source, first, part)
    found = label_part(labels, weights)
    if questions.digest:
        words = np.frombuffer(repr(found.distinct.tolist()).encode(), np.uint8)
        digests = [digest(words, found.codes)]
        digests += [] if weights is None else [digest(weights)]
        found = replace(found, digests=tuple(digests))
    return found


def _hashes(rows: Any, block_rows: int) -> Words:
    """Return the hash of each row for folds, block by block."""
    spans = block_spans((0, rows.shape[0]), block_rows)
    return np.concatenate([hash_rows(rows[lo:hi], FOLD_SEED) for lo, hi in spans])


def _sampled(
    source: DataSource,
    first: int,
    part: Any,
    rows: Any,
    weights: FloatArray | None,
    chosen: BoolArray,
) -> SampledRows:
    """Return the chosen rows of a part that have a weight, with their labels."""
    if weights is not None:
        chosen = chosen & (weights > 0)
    labels = label_part(source.labels(part)[chosen], None if weights is None else weights[chosen])
    numbers = source.first_row + first + np.flatnonzero(chosen)
    return SampledRows(rows[chosen], labels, numbers)


def checked_weights(
    source: DataSource, first_row: int, weights: FloatArray | None
) -> FloatArray | None:
    """Return weights, none of which may be negative or not finite."""
    if weights is None:
        return None
    wrong = ~(np.isfinite(weights) & (weights >= 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"sample_weight must not be negative, NaN or infinite; got {weights[row]} in "
            f"{source.place(first_row + row)}. Use 0 to leave a row out."
        )
    return weights


def _survey_block(
    source: DataSource,
    first_row: int,
    block: Any,
    weights: FloatArray | None,
    keys: Words,
    questions: Questions,
) -> Survey:
    check_finite(source, first_row, block)
    if questions.quantiles and sp.issparse(block):
        raise ValueError(needs_dense_rows(filter(needs_sketch, SCALERS)))
    position = source.first_row + first_row
    w = np.ones(block.shape[0]) if weights is None else weights
    if not (w > 0).all():
        present = np.flatnonzero(w > 0)
        block, w, keys = block[present], w[present], keys[present]
    unfold = unfolding_of(source.types, source.n_features)
    numbers = unfold(block)
    with np.errstate(over="ignore", invalid="ignore"):  # refuse_huge_values names the column
        statistics = column_statistics(numbers, w)
    sketch = quantile_sketch(numbers, w) if questions.quantiles else None
    whole = None
    if source.names is not None and not sp.issparse(block):
        columns = np.zeros(source.n_features, dtype=bool)
        columns[unfold.owners[unfold.parts == 0]] = True
        whole = find_whole_numbers(block, w, columns)
    digests = []
    if questions.digest:  # of the rows with their positions: their order matters
        hashes = hash_rows(block, 0)
        positions = np.arange(position, position + len(hashes), dtype=np.uint64)
        digests = [np.bitwise_xor.reduce(mix(hashes + mix(positions)), keepdims=True)]
    candidates = None
    if questions.by_rows:
        candidates = find_candidates(block, keys, position, questions.scheme, questions.n_centers)
    return Survey(statistics, sketch, candidates, digests=digests, whole=whole)


def _cut(weights: FloatArray | None, lo: int, hi: int) -> FloatArray | None:
    return None if weights is None else weights[lo:hi]


def checked_labels(source: DataSource, first_row: int, part: Any) -> np.ndarray[Any, Any]:
    """Return the labels of a part, none of which may be missing."""
    labels = source.labels(part)
    if labels.dtype.kind == "O":
        missing = np.array([label is None or label != label for label in labels], dtype=bool)
    elif labels.dtype.kind == "f":
        missing = np.isnan(labels)
    elif labels.dtype.kind in "mM":
        missing = np.isnat(labels)
    else:
        return labels
    if missing.any():
        raise ValueError(
            f"The labels have a missing value in {source.place(first_row + int(missing.argmax()))}"
            ". Drop such rows, or fill them in."
        )
    return labels


def refuse_huge_values(source: DataSource, statistics: ColumnStatistics) -> None:
    """Raise where a column has values whose powers would overflow."""
    largest = np.maximum(np.abs(statistics.low), np.abs(statistics.high))
    largest = np.where(statistics.present > 0, largest, 0.0)  # a column may lack all values
    if largest.max(initial=0.0) > MAX_ABS_VALUE:
        worst = int(np.argmax(largest))
        column = int(unfolding_of(source.types, source.n_features).owners[worst])
        raise FeatureOverflowError(
            f"Input X holds a value of magnitude {largest[worst]:.3g} in {source.column(column)}, "
            f"whose square overflows; values up to {MAX_ABS_VALUE:g} work. Rescale that column."
        )
