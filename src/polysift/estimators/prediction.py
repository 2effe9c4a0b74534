"""Scores and features of rows, computed shard by shard: the rows need not fit in memory."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from polysift.data.checks import check_finite
from polysift.data.source import DataSource
from polysift.features.feature_map import BlockFeatures, FeatureMap
from polysift.features.scalers import Scaler
from polysift.runtime.errors import FeatureOverflowError
from polysift.runtime.parallel import Pool, Span, block_spans, single_threaded_blas
from polysift.runtime.types import Block, FloatArray

R = TypeVar("R")

NAMED_COLUMNS = 5
"""How many columns a warning names."""

CALLERS = 5
"""The frames from here to the line that asks for predictions: two generators, a method, its public
name."""


class MissingWatch:
    """Notes which columns lack values that no training row lacked; threads may share it.

    Parameters
    ----------
    source : DataSource
        The rows.
    scaler : Scaler
        The scaler that was learned from the training rows.
    """

    def __init__(self, source: DataSource, scaler: Scaler) -> None:
        self._source, self._scaler = source, scaler
        self._lacking = np.zeros(source.n_features, dtype=bool)

    def look_at(self, block: Block) -> None:
        """Note what a block of rows lacks; sparse rows lack nothing (``check_finite``)."""
        if not sp.issparse(block):
            self._lacking[self._scaler.lacking(block)] = True

    def warn(self, stacklevel: int) -> None:
        """Warn if there is something to say, in one sentence about all rows."""
        found = np.flatnonzero(self._lacking).tolist()
        if not found:
            return
        named = [self._source.column(j) for j in found[:NAMED_COLUMNS]]
        more = f" and {len(found) - len(named)} more" if len(found) > len(named) else ""
        warnings.warn(
            f"Values are missing in {', '.join(named)}{more}, where no training row lacked one: "
            "the model has not learned what that means, and takes a mean for them. Fill them in, "
            "or fit to rows that lack values, too.",
            UserWarning,
            stacklevel=stacklevel + 1,
        )


def score_shards(
    source: DataSource,
    feature_map: FeatureMap,
    coef: FloatArray,
    n_threads: int,
    finish: Callable[[Span, Any, FloatArray], R],
) -> Generator[R]:
    """Yield ``finish(span, part, scores)`` for each shard in order; threads call it.

    It holds threads, and BLAS on one thread, so whoever may stop before its end closes it. In the
    end it warns of missing values that are new (``MissingWatch``). ``coef`` is (K, n). Features are
    float64 also for float32 rows: coefficients can be large and cancel, and the scores of a row
    should not depend on how it is stored.
    """
    features = BlockFeatures(feature_map, np.float64)
    watch = MissingWatch(source, feature_map.scaler)
    u = np.ascontiguousarray(coef.T)
    block_rows = feature_map.block_rows(np.float64)

    def visit(item: tuple[Span, Any]) -> R:
        span, part = item
        X = source.rows(part)
        check_finite(source, span[0], X)
        watch.look_at(X)
        scores = np.empty((X.shape[0], u.shape[1]))
        with np.errstate(over="ignore", invalid="ignore"):  # an error below names the row
            for lo, hi in block_spans((0, X.shape[0]), block_rows):
                scores[lo:hi] = features(X[lo:hi]) @ u
        _refuse_overflow(source, span[0], scores)
        return finish(span, part, scores)

    work = source.n_rows * feature_map.n_centers
    with single_threaded_blas(), Pool(n_threads) as pool:
        yield from pool.map(visit, source.parts(), work=work)
    watch.warn(CALLERS)


def feature_matrix(source: DataSource, feature_map: FeatureMap, n_threads: int) -> FloatArray:
    """Return the features A of every row, of shape (m, n), in the dtype of the rows."""
    features = BlockFeatures(feature_map, source.dtype)
    out = np.empty((source.n_rows, feature_map.n_centers), dtype=source.dtype)
    block_rows = feature_map.block_rows(source.dtype)
    watch = MissingWatch(source, feature_map.scaler)

    def visit(item: tuple[Span, Any]) -> None:
        span, part = item
        X = source.rows(part)
        check_finite(source, span[0], X)
        watch.look_at(X)
        with np.errstate(over="ignore", invalid="ignore"):
            for lo, hi in block_spans((0, X.shape[0]), block_rows):
                features(X[lo:hi], out=out[span[0] + lo : span[0] + hi])
        _refuse_overflow(source, span[0], out[span[0] : span[1]])

    with single_threaded_blas(), Pool(n_threads) as pool:
        for _ in pool.map(visit, source.parts(), work=out.size):
            pass
    watch.warn(3)
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
