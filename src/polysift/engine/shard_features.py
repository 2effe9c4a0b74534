"""The features of shards of rows: computed block by block, or kept from an earlier pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from polysift.data.training_set import TrainingSet
from polysift.engine.budget import SERIAL, Execution
from polysift.engine.compiled import CompiledRows
from polysift.engine.problems import Problems
from polysift.features.feature_map import BlockFeatures, FeatureMap
from polysift.runtime.parallel import Span, Workspace, block_spans
from polysift.runtime.types import Block, BoolArray, FloatArray, IntArray

GRAM_BLOCK_ROWS = 2048
"""Rows whose features are held in float64 at once, to add their Gram matrix."""

Item = tuple[Span, Any]
"""A span of rows, with what the source needs to read them."""


def joined_spans(shards: list[Span]) -> list[Span]:
    """Join neighbouring shards to spans of at least ``4 * GRAM_BLOCK_ROWS`` rows."""
    spans: list[Span] = []
    for start, stop in shards:
        if spans and spans[-1][1] - spans[-1][0] < 4 * GRAM_BLOCK_ROWS:
            spans[-1] = spans[-1][0], stop
        else:
            spans.append((start, stop))
    return spans


class ShardFeatures:
    """The features of one training set by one feature map; threads may share it.

    Parameters
    ----------
    data : TrainingSet
        The rows.
    feature_map : FeatureMap
        The features.
    execution : Execution
        Whether to keep features, their precision, and whether loops are compiled.
    features : ndarray of shape (rows, n), optional
        The features, if an earlier pass kept them.
    """

    def __init__(
        self,
        data: TrainingSet,
        feature_map: FeatureMap,
        execution: Execution = SERIAL,
        features: FloatArray | None = None,
    ) -> None:
        self._data, self._map = data, feature_map
        self._dtype = np.dtype(float) if execution.float64 else data.source.dtype
        self.n_centers = feature_map.n_centers
        self._features = BlockFeatures(feature_map, self._dtype)
        self._block_rows = feature_map.block_rows(self._dtype)
        self._work = Workspace()
        self._stored = features
        self._kept: set[Span] = set() if features is None else set(data.shards)
        if execution.keep_features and features is None:
            self._stored = np.empty((data.source.n_rows, self.n_centers), self._dtype)
        self._precise = self._features
        if self._dtype != np.float64:
            self._precise = BlockFeatures(feature_map, np.float64)
        self._loops: CompiledRows | None = None  # by which features are computed
        splines = execution.compiled_splines and self._features.kernel.ranks > 0
        if (execution.compiled or splines) and not data.source.sparse:
            self._loops = CompiledRows(self._features)
            self._block_rows = self._loops.block_rows or self._block_rows
        self._compiled = self._loops if execution.compiled else None  # all of a sweep

    def spans(self) -> list[Span]:
        """Return the spans for ``gram``: the shards, or joined shards where folds divide them."""
        shards = self._data.shards
        return shards if self._data.fold_parts is None else joined_spans(shards)

    def all_kept(self) -> bool:
        """Return whether the features of all shards are kept, so that a sweep needs no rows."""
        return len(self._kept) == len(self._data.shards)

    def kept_features(self) -> FloatArray | None:
        """Return the features of all rows; None unless all are kept."""
        return self._stored if self.all_kept() else None

    def _rows_by_fold_part(self, span: Span, limit: int) -> Iterator[tuple[int, slice | IntArray]]:
        """Yield each fold part of a span with its rows, at most ``limit`` at a time."""
        if self._data.fold_parts is None:
            for lo, hi in block_spans(span, limit):
                yield 0, slice(lo, hi)
            return
        fold_parts = self._data.fold_parts[span[0] : span[1]]
        order = np.argsort(fold_parts, kind="stable")
        borders = np.searchsorted(fold_parts[order], np.arange(self._data.n_fold_parts + 1))
        for fold_part in range(self._data.n_fold_parts):
            for lo, hi in block_spans(
                (int(borders[fold_part]), int(borders[fold_part + 1])), limit
            ):
                yield fold_part, span[0] + order[lo:hi]

    @property
    def gram_block_rows(self) -> int:
        """The rows whose Gram matrix is added at once: whole blocks, as those of a sweep."""
        return max(GRAM_BLOCK_ROWS // self._block_rows, 1) * self._block_rows

    @property
    def _keeps_in_gram(self) -> bool:
        """Whether features are kept from the Gram pass on: its rows are in the order of a sweep."""
        return self._stored is not None and self._data.fold_parts is None

    def _gram_features(self, rows: slice | IntArray, X: Block) -> FloatArray:
        """Return the features of many rows in float64, computed in blocks that fit the cache.

        Those of rows of no weight are zero. Where rows have weights, the caller may overwrite them.
        """
        weights = self._data.weights_of(rows)
        A = self._work.array("A", (X.shape[0], self._map.n_centers), float)
        kept = A
        if self._keeps_in_gram:
            assert self._stored is not None
            kept = self._stored[rows]
            if weights is None and kept.dtype == A.dtype:
                A = kept
        # The compiled loops make blocks of their own, of rows that are scaled at once.
        limit = self._block_rows if self._loops is None else self._loops.max_rows
        for lo, hi in block_spans((0, X.shape[0]), limit):
            own = None if weights is None else weights[lo:hi]
            into = kept[lo:hi] if kept.dtype == self._dtype else None
            made = self._present_features(X[lo:hi], own, into)
            if into is None or kept is not A:
                A[lo:hi] = made
        return A

    def _block_features(self, X: Block, out: FloatArray | None = None) -> FloatArray:
        """Return the features of a block, in ``out`` or in scratch space."""
        return self._features(X, out) if self._loops is None else self._loops.features(X, out)

    def _present_features(
        self, X: Block, weights: FloatArray | None, out: FloatArray | None = None
    ) -> FloatArray:
        """Return the features of a block, zero for rows of no weight."""
        A = self._block_features(X, out)
        if weights is not None:
            A[weights == 0] = 0.0  # such rows were not surveyed, and may overflow
        return A

    def _chosen_features(self, X: Block, rows: IntArray) -> FloatArray:
        """Return the features of some rows of a shard, in float64, as a sweep computes them.

        Whole blocks are computed, since the rounding of BLAS depends on the number of rows.
        """
        A = self._work.array("A", (len(rows), self.n_centers), float)
        for lo, hi in block_spans((0, X.shape[0]), self._block_rows):
            first, last = np.searchsorted(rows, (lo, hi))
            if first < last:
                A[first:last] = self._block_features(X[lo:hi])[rows[first:last] - lo]
        return A

    def _compiled_for(self, problems: Problems) -> CompiledRows | None:
        """Return the compiled loops for a pass with a single column, which uses all centers."""
        return self._compiled if problems.groups == [(self.n_centers, slice(0, 1))] else None

    def _counts(
        self, rows: slice, problems: Problems
    ) -> tuple[FloatArray | None, BoolArray | None]:
        """Return the multiplicities of rows, and a mask of those of weight zero."""
        weights = self._data.weights_of(rows)
        fold_parts = None if self._data.fold_parts is None else self._data.fold_parts[rows]
        absent = None if weights is None else weights == 0
        return problems.multiplicities(weights, fold_parts), absent


def shifted_rows(rows: slice | IntArray, first: int) -> slice | IntArray:
    """Return row numbers relative to ``first``, the first row of a span."""
    if isinstance(rows, slice):
        return slice(rows.start - first, rows.stop - first)
    return rows - first


def rows_of_span(X: Block, rows: slice | IntArray, first: int) -> Block:
    """Return rows, by their numbers in the data, of a span X that begins at row ``first``."""
    return X[shifted_rows(rows, first)]
