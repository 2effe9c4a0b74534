"""Scores and features of rows, computed shard by shard: the rows need not fit in memory."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeVar

import numpy as np

from polysift.data.source import DataSource, check_finite
from polysift.features.feature_map import BlockFeatures, FeatureMap
from polysift.runtime.errors import FeatureOverflowError
from polysift.runtime.parallel import Pool, Span, block_spans, single_threaded_blas
from polysift.runtime.types import FloatArray

R = TypeVar("R")


def score_shards(
    source: DataSource,
    feature_map: FeatureMap,
    coef: FloatArray,
    n_threads: int,
    finish: Callable[[Span, Any, FloatArray], R],
) -> Generator[R]:
    """Yield ``finish(span, part, scores)`` for each shard in order; threads call it.

    It holds threads, and BLAS on one thread, so whoever may stop before its end closes it.
    ``coef`` is (K, n). Features are float64 also for float32 rows: coefficients can be large and
    cancel, and the scores of a row should not depend on how it is stored.
    """
    features = BlockFeatures(feature_map, np.float64)
    u = np.ascontiguousarray(coef.T)
    block_rows = feature_map.block_rows(np.float64)

    def visit(item: tuple[Span, Any]) -> R:
        span, part = item
        X = source.rows(part)
        check_finite(source, span[0], X)
        scores = np.empty((X.shape[0], u.shape[1]))
        with np.errstate(over="ignore", invalid="ignore"):  # an error below names the row
            for lo, hi in block_spans((0, X.shape[0]), block_rows):
                scores[lo:hi] = features(X[lo:hi]) @ u
        _refuse_overflow(source, span[0], scores)
        return finish(span, part, scores)

    work = source.n_rows * feature_map.n_centers
    with single_threaded_blas(), Pool(n_threads) as pool:
        yield from pool.map(visit, source.parts(), work=work)


def feature_matrix(source: DataSource, feature_map: FeatureMap, n_threads: int) -> FloatArray:
    """Return the features A of every row, of shape (m, n), in the dtype of the rows."""
    features = BlockFeatures(feature_map, source.dtype)
    out = np.empty((source.n_rows, feature_map.n_centers), dtype=source.dtype)
    block_rows = feature_map.block_rows(source.dtype)

    def visit(item: tuple[Span, Any]) -> None:
        span, part = item
        X = source.rows(part)
        check_finite(source, span[0], X)
        with np.errstate(over="ignore", invalid="ignore"):
            for lo, hi in block_spans((0, X.shape[0]), block_rows):
                features(X[lo:hi], out=out[span[0] + lo : span[0] + hi])
        _refuse_overflow(source, span[0], out[span[0] : span[1]])

    with single_threaded_blas(), Pool(n_threads) as pool:
        for _ in pool.map(visit, source.parts(), work=out.size):
            pass
    return out


def _refuse_overflow(source: DataSource, first_row: int, values: FloatArray) -> None:
    """Raise if a row has infinite scores or features."""
    wrong = ~np.isfinite(values).all(axis=1)
    if wrong.any():
        raise FeatureOverflowError(
            f"The kernel overflows {values.dtype} in "
            f"{source.place(first_row + int(wrong.argmax()))}: that row lies too far from the "
            "training data. Use a scaler, which clips, or a lower degree."
        )
