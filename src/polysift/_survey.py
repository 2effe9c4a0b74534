"""One pass over the rows that finds out all a feature map must know beforehand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polysift._centers import Candidates, find_candidates
from polysift._data import Source, check_finite
from polysift._parallel import Pool, Span, block_spans, shard_spans, tree_sum
from polysift._statistics import (
    ColumnStatistics,
    QuantileSketch,
    column_statistics,
    quantile_sketch,
)
from polysift._types import FloatArray

BLOCK_ELEMENTS = 2**20
LARGEST_VALUE = 1e150


@dataclass(frozen=True)
class Questions:
    """What a survey is asked.

    Attributes
    ----------
    quantiles : bool
        Whether to sketch the columns' distributions.
    scheme : str
        The scheme of the centers; "first" and "random" look for rows.
    n_centers : int
        How many rows at most.
    seed : int
        The seed of the rows' hash.
    """

    quantiles: bool
    scheme: str
    n_centers: int
    seed: int


@dataclass
class Survey:
    """The answers, for a part of the rows or for all of them."""

    statistics: ColumnStatistics
    sketch: QuantileSketch | None
    candidates: Candidates | None


def survey(source: Source, weights: FloatArray | None, questions: Questions, pool: Pool) -> Survey:
    """Visit every row of positive weight once; every value must be finite."""
    rows = int(np.clip(BLOCK_ELEMENTS // source.n_features, 64, 8192))

    def visit_block(span: Span) -> Survey:
        block = source.read(span)
        check_finite(source, span, block)
        w = np.ones(block.shape[0]) if weights is None else weights[span[0] : span[1]]
        if not (w > 0).all():
            present = np.flatnonzero(w > 0)
            block, w = block[present], w[present]
        with np.errstate(over="ignore", invalid="ignore"):  # _refuse_huge_values names the column
            statistics = column_statistics(block, w)
        sketch = quantile_sketch(block, w) if questions.quantiles else None
        candidates = None
        if questions.scheme in ("first", "random"):
            candidates = find_candidates(
                block, span[0], questions.scheme, questions.n_centers, questions.seed
            )
        return Survey(statistics, sketch, candidates)

    def merge(a: Survey, b: Survey) -> Survey:
        return Survey(
            a.statistics.merge(b.statistics),
            a.sketch.merge(b.sketch) if a.sketch and b.sketch else None,
            a.candidates.merge(b.candidates, questions.n_centers)
            if a.candidates and b.candidates
            else None,
        )

    def visit_shard(span: Span) -> Survey:
        return tree_sum(map(visit_block, block_spans(span, rows)), merge)

    total = tree_sum(pool.map(visit_shard, shard_spans(source.n_rows)), merge)
    _refuse_huge_values(source, total.statistics)
    return total


def _refuse_huge_values(source: Source, statistics: ColumnStatistics) -> None:
    largest = np.maximum(np.abs(statistics.low), np.abs(statistics.high))
    if largest.max() > LARGEST_VALUE:
        worst = int(np.argmax(largest))
        raise ValueError(
            f"Input X holds a value of magnitude {largest[worst]:.3g} in {source.column(worst)}, "
            f"whose square overflows; values up to {LARGEST_VALUE:g} work. Rescale that column."
        )
