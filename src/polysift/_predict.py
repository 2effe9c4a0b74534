"""Prediction by blocks: scores, or the features themselves, of rows that need not fit in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from polysift._data import DataSource, check_finite
from polysift._feature_map import BlockFeatures, FeatureMap
from polysift._parallel import Pool, Span, block_spans, single_threaded_blas
from polysift._types import FloatArray

SMALL_WORK = 2**20

R = TypeVar("R")


def score_shards(
    source: DataSource,
    feature_map: FeatureMap,
    coef: FloatArray,
    n_threads: int,
    finish: Callable[[Span, Any, FloatArray], R],
) -> Iterator[R]:
    """Yield ``finish(span, part, scores)`` for each shard in order; ``coef`` is (K, n)."""
    features = BlockFeatures(feature_map, source.dtype)
    u = np.ascontiguousarray(coef.T, dtype=source.dtype)
    block_rows = feature_map.block_rows(source.dtype)

    def visit(item: tuple[Span, Any]) -> R:
        span, part = item
        X = source.rows(part)
        check_finite(source, span[0], X)
        scores = np.empty((X.shape[0], u.shape[1]))
        for lo, hi in block_spans((0, X.shape[0]), block_rows):
            scores[lo:hi] = features(X[lo:hi]) @ u
        return finish(span, part, scores)

    small = source.n_rows * feature_map.n_centers < SMALL_WORK
    with single_threaded_blas(), Pool(1 if small else n_threads) as pool:
        yield from pool.map(visit, source.parts())


def feature_matrix(source: DataSource, feature_map: FeatureMap, n_threads: int) -> FloatArray:
    """Return the features A of every row, of shape (m, n), in the dtype of the rows."""
    features = BlockFeatures(feature_map, source.dtype)
    out = np.empty((source.n_rows, feature_map.n_centers), dtype=source.dtype)
    block_rows = feature_map.block_rows(source.dtype)

    def visit(item: tuple[Span, Any]) -> None:
        span, part = item
        X = source.rows(part)
        check_finite(source, span[0], X)
        for lo, hi in block_spans((0, X.shape[0]), block_rows):
            features(X[lo:hi], out=out[span[0] + lo : span[0] + hi])

    small = out.size < SMALL_WORK
    with single_threaded_blas(), Pool(1 if small else n_threads) as pool:
        for _ in pool.map(visit, source.parts()):
            pass
    return out
