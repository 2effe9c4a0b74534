"""Prediction by blocks: scores, or the features themselves, of rows that need not fit in memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from polysift._data import Source, check_finite
from polysift._feature_map import BlockFeatures, FeatureMap
from polysift._parallel import Pool, Span, block_spans, shard_spans, single_threaded_blas
from polysift._types import Block, FloatArray

SMALL_WORK = 2**20


def scores(source: Source, feature_map: FeatureMap, coef: FloatArray, n_threads: int) -> FloatArray:
    """Return the scores A u of every row, of shape (m, K), float64; ``coef`` is (K, n)."""
    features = BlockFeatures(feature_map, source.dtype)
    u = np.ascontiguousarray(coef.T, dtype=source.dtype)
    out = np.empty((source.n_rows, u.shape[1]))

    def visit(span: Span, block: Block) -> None:
        out[span[0] : span[1]] = features(block) @ u

    _for_each_block(source, feature_map, n_threads, visit)
    return out


def feature_matrix(source: Source, feature_map: FeatureMap, n_threads: int) -> FloatArray:
    """Return the features A of every row, of shape (m, n), in the dtype of the rows."""
    features = BlockFeatures(feature_map, source.dtype)
    out = np.empty((source.n_rows, feature_map.n_centers), dtype=source.dtype)

    def visit(span: Span, block: Block) -> None:
        features(block, out=out[span[0] : span[1]])

    _for_each_block(source, feature_map, n_threads, visit)
    return out


def _for_each_block(
    source: Source,
    feature_map: FeatureMap,
    n_threads: int,
    visit: Callable[[Span, Block], None],
) -> None:
    def visit_shard(shard: Span) -> None:
        for span in block_spans(shard, feature_map.block_rows(source.dtype)):
            block = source.read(span)
            check_finite(source, span, block)
            visit(span, block)

    small = source.n_rows * feature_map.n_centers < SMALL_WORK
    with single_threaded_blas(), Pool(1 if small else n_threads) as pool:
        for _ in pool.map(visit_shard, shard_spans(source.n_rows)):
            pass
