"""What is done to one shard of rows: its share of the Gram matrix, of a sweep, of scores.

Engines differ in who calls this, and where.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from polysift._data import TrainingSet
from polysift._feature_map import BlockFeatures, FeatureMap
from polysift._lanes import LaneTable
from polysift._parallel import Span, Workspace, block_spans
from polysift._sums import GramSums, SweepSums, add_statistics, move, predicted_codes, weighted_sum
from polysift._types import Block, FloatArray, IntArray

GRAM_ROWS = 2048
STATISTICS_ROWS = 1024, 8192
STATISTICS_SIZE = 2**17

Item = tuple[Span, Any]


def joined_spans(shards: list[Span]) -> list[Span]:
    """Return runs of neighbouring shards that have some thousand rows each."""
    spans: list[Span] = []
    for start, stop in shards:
        if spans and spans[-1][1] - spans[-1][0] < 4 * GRAM_ROWS:
            spans[-1] = spans[-1][0], stop
        else:
            spans.append((start, stop))
    return spans


class ShardWork:
    """The work on shards of one training set with one feature map; threads may share it.

    With ``store`` the features that the first sweep computes are kept for those that follow;
    ``features`` are those that another has kept.
    """

    def __init__(
        self,
        data: TrainingSet,
        feature_map: FeatureMap,
        store: bool = False,
        features: FloatArray | None = None,
    ) -> None:
        self._data, self._map = data, feature_map
        self.n_centers = feature_map.n_centers
        self._features = BlockFeatures(feature_map, data.source.dtype)
        self._block_rows = feature_map.block_rows(data.source.dtype)
        self._work = Workspace()
        self._stored = features
        self._kept: set[Span] = set() if features is None else set(data.shards)
        if store and features is None:
            self._stored = np.empty((data.source.n_rows, self.n_centers), data.source.dtype)
        self._precise = self._features
        if data.source.dtype != np.float64:
            self._precise = BlockFeatures(feature_map, np.float64)

    def spans(self) -> list[Span]:
        """Return the borders for ``gram``: the shards, or runs of them where cells cut them up."""
        shards = self._data.shards
        return shards if self._data.cells is None else joined_spans(shards)

    def gram(self, item: Item) -> GramSums:
        """Return A' Omega A and A' Omega y, both summed in float64 also for float32 features."""
        span, part = item
        n, data = self._map.n_centers, self._data
        X = data.source.rows(part)
        sums = GramSums.zeros(data.n_cells, n, data.n_columns)
        product = self._work.array("product", (n, n), float)
        for cell, rows in self._rows_by_cell(span, GRAM_ROWS):
            A = self._gram_features(_taken(X, rows, span[0]))
            y, weights = data.labels_of(rows), data.weights_of(rows)
            if weights is not None:
                A[weights == 0] = 0.0  # such rows were not surveyed, and may overflow
                root = np.sqrt(weights)[:, np.newaxis]
                A *= root
                y *= root
            np.matmul(A.T, A, out=product)  # numpy sees the symmetry and halves the work
            sums.G[cell] += product
            sums.Aty[cell] += A.T @ y
        return sums

    def _rows_by_cell(self, span: Span, limit: int) -> Iterator[tuple[int, slice | IntArray]]:
        """Yield each cell of a span with its rows, at most ``limit`` at a time."""
        if self._data.cells is None:
            for lo, hi in block_spans(span, limit):
                yield 0, slice(lo, hi)
            return
        cells = self._data.cells[span[0] : span[1]]
        order = np.argsort(cells, kind="stable")
        borders = np.searchsorted(cells[order], np.arange(self._data.n_cells + 1))
        for cell in range(self._data.n_cells):
            for lo, hi in block_spans((int(borders[cell]), int(borders[cell + 1])), limit):
                yield cell, span[0] + order[lo:hi]

    def _gram_features(self, X: Block) -> FloatArray:
        """Return the features of many rows as float64, made in blocks that fit the cache."""
        A = self._work.array("A", (X.shape[0], self._map.n_centers), float)
        for lo, hi in block_spans((0, X.shape[0]), self._block_rows):
            if X.dtype == A.dtype:
                self._features(X[lo:hi], out=A[lo:hi])
            else:
                A[lo:hi] = self._features(X[lo:hi])
        return A

    def sweep(self, item: Item, lanes: LaneTable, u: FloatArray, state: FloatArray) -> SweepSums:
        """Visit the rows of a shard with new coefficients and move their state.

        The state is the margin t = y b of b = A u + w / beta.
        """
        span, part = item
        X = None if span in self._kept else self._data.source.rows(part)
        sums = SweepSums.zeros(len(u), lanes.n_columns, lanes.n_lanes)
        u_cast = u.astype(self._data.source.dtype)
        limit = int(np.clip(STATISTICS_SIZE // lanes.n_columns, *STATISTICS_ROWS))
        for rows in block_spans(span, limit):
            inside = slice(rows[0] - span[0], rows[1] - span[0])
            block = None if X is None else X[inside]
            self._sweep_rows(slice(*rows), block, lanes, u_cast, state[inside], sums)
        if self._stored is not None:
            self._kept.add(span)
        return sums

    def all_kept(self) -> bool:
        """Return whether a sweep needs no rows any more."""
        return len(self._kept) == len(self._data.shards)

    def kept_features(self) -> FloatArray | None:
        """Return the features of all rows, if they are kept."""
        return self._stored if self.all_kept() else None

    def _sweep_rows(
        self,
        rows: slice,
        X: Block | None,
        lanes: LaneTable,
        u: FloatArray,
        t: FloatArray,
        sums: SweepSums,
    ) -> None:
        """Move the state of many rows by blocks, then take their statistics in one go."""
        data = self._data
        f = self._work.array("f", t.shape, float)
        y = np.tile(data.labels_of(rows), lanes.n_lanes)
        weights = data.weights_of(rows)
        cells = None if data.cells is None else data.cells[rows]
        counts = lanes.multiplicities(weights, cells)
        y_counts = y
        if counts is not None:
            y_counts = y * (counts if counts.ndim == 2 else counts[:, np.newaxis])
        t_old = t.copy()
        for lo, hi in block_spans((0, len(t)), self._block_rows):
            part = slice(lo, hi)
            A = None if self._stored is None else self._stored[rows][part]
            if X is not None:
                A = self._features(X[part], out=A)
                if weights is not None:
                    A[weights[part] == 0] = 0.0  # such rows were not surveyed, and may overflow
            assert A is not None
            for n, columns in lanes.groups:
                f[part, columns] = A[:, :n] @ u[:n, columns]
            f[part] *= y[part]
            residual = move(t[part], f[part], lanes.gamma, lanes.relax)
            residual *= y_counts[part]
            residual = residual.astype(A.dtype, copy=False)
            for n, columns in lanes.groups:
                sums.r[:n, columns] += A[:, :n].T @ residual[:, columns]
        scores = (f * y).reshape(len(f), lanes.n_lanes, lanes.K)
        wrong = predicted_codes(scores) != data.codes[rows, np.newaxis]
        per_lane = counts if counts is None or counts.ndim == 1 else counts[:, :: lanes.K]
        sums.wrong += weighted_sum(wrong, per_lane)
        add_statistics(sums, f, t_old, t, lanes.gamma, counts)

    def scores(self, item: Item, lanes: LaneTable, coefficients: list[FloatArray]) -> FloatArray:
        """Return the scores of the rows of a shard, by the coefficients (n, columns) of their cell.

        Features are float64, as in prediction. A row in no cell has NaN.
        """
        span, part = item
        X = self._data.source.rows(part)
        out = np.full((span[1] - span[0], lanes.n_columns), np.nan)
        limit = self._map.block_rows(np.float64)
        for cell, rows in self._rows_by_cell(span, limit):
            if cell >= len(coefficients):
                continue
            A, u = self._precise(_taken(X, rows, span[0])), coefficients[cell]
            values = np.empty((len(A), lanes.n_columns))
            for n, columns in lanes.groups:
                values[:, columns] = A[:, :n] @ u[:n, columns]
            out[_shifted(rows, span[0])] = values
        return out


def _shifted(rows: slice | IntArray, first: int) -> slice | IntArray:
    if isinstance(rows, slice):
        return slice(rows.start - first, rows.stop - first)
    return rows - first


def _taken(X: Block, rows: slice | IntArray, first: int) -> Block:
    return X[_shifted(rows, first)]
