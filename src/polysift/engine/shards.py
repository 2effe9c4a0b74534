"""What is done to one shard of rows: its share of the Gram matrix, of a sweep, of scores.

Engines differ in who calls this, and where.

Products with a triangular matrix.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from polysift.engine.problems import Problems
from polysift.engine.row_updates import NewtonColumns, draw_by_curvature
from polysift.engine.sampling import Draw, Picked, leverages
from polysift.engine.shard_features import GRAM_ROWS, Item, ShardFeatures, shifted_rows, taken_rows
from polysift.engine.sums import GramSums, predicted_codes, weighted_sum
from polysift.runtime.parallel import block_spans
from polysift.runtime.types import Block, FloatArray

PANELS = 8
"""Columns of the triangular matrix are worked on in so many goes."""


def times_triangular(A: FloatArray, T: FloatArray) -> None:
    """Turn A into A T, with T upper triangular, for little more than half of the work.

    BLAS has a routine for it, but scipy does not let other threads work while it runs.
    """
    n = len(T)
    width = -(-n // PANELS)
    for hi in range(n, 0, -width):  # from the right: what is still needed stays
        lo = max(hi - width, 0)
        A[:, lo:hi] = A[:, :hi] @ T[:hi, lo:hi]


PRODUCT_ROWS = 256
STATISTICS_ROWS = 1024, 8192
STATISTICS_SIZE = 2**17


class ShardWork(ShardFeatures):
    """The work on shards; see ``ShardFeatures`` for its parameters."""

    def gram(self, item: Item) -> GramSums:
        """Return A' Omega A and A' Omega y, both summed in float64 also for float32 features."""
        span, part = item
        n, data = self._map.n_centers, self._data
        X = data.source.rows(part)
        sums = GramSums.zeros(data.n_fold_parts, n, data.n_columns)
        product = self._work.array("product", (n, n), float)
        for fold_part, rows in self._rows_by_fold_part(span, GRAM_ROWS):
            A = self._gram_features(taken_rows(X, rows, span[0]))
            y, weights = data.labels_of(rows), data.weights_of(rows)
            if weights is not None:
                A[weights == 0] = 0.0  # such rows were not surveyed, and may overflow
                root = np.sqrt(weights)[:, np.newaxis]
                A *= root
                y *= root
            np.matmul(A.T, A, out=product)  # numpy sees the symmetry and halves the work
            sums.G[fold_part] += product
            sums.Aty[fold_part] += A.T @ y
        return sums

    def sweep(self, item: Item, problems: Problems, u: FloatArray, state: FloatArray) -> Any:
        """Visit the rows of a shard with new coefficients and move their state.

        The state is the margin t = y b of b = A u + w / beta.
        """
        span, part = item
        X = None if span in self._kept else self._data.source.rows(part)
        sums = problems.update.zeros(len(u), problems.n_columns, problems.n_problems)
        u_cast = u.astype(self._dtype)
        least, most = STATISTICS_ROWS  # np.clip takes as long as a shard of a few centers
        limit = min(max(STATISTICS_SIZE // problems.n_columns, least), most)
        limit = max(limit // self._block_rows, 1) * self._block_rows  # for any number of columns
        visit, loops = self._sweep_rows, self._compiled_for(problems)
        if loops is not None:
            visit, limit = self._sweep_compiled, loops.most_rows
        for rows in block_spans(span, limit):
            inside = slice(rows[0] - span[0], rows[1] - span[0])
            block = None if X is None else X[inside]
            visit(slice(*rows), block, problems, u_cast, state[inside], sums)
        if self._stored is not None:
            self._kept.add(span)
        return sums

    def _sweep_rows(
        self,
        rows: slice,
        X: Block | None,
        problems: Problems,
        u: FloatArray,
        t: FloatArray,
        sums: Any,
    ) -> None:
        """Move the state of many rows by blocks, then take their statistics in one go."""
        data = self._data
        f = self._work.array("f", t.shape, float)
        y = np.tile(data.labels_of(rows), problems.n_problems)
        weights = data.weights_of(rows)
        fold_parts = None if data.fold_parts is None else data.fold_parts[rows]
        counts = problems.multiplicities(weights, fold_parts)
        y_counts = y
        if counts is not None:
            y_counts = y * (counts if counts.ndim == 2 else counts[:, np.newaxis])
        t_old = t.copy()
        update = problems.update
        loops = self._compiled if update.many_columns_compiled else None
        for lo, hi in block_spans((0, len(t)), self._block_rows):
            part = slice(lo, hi)
            A = None if self._stored is None else self._stored[rows][part]
            if X is not None:
                A = self._block_features(X[part], A)
                if weights is not None:
                    A[weights[part] == 0] = 0.0  # such rows were not surveyed, and may overflow
            assert A is not None
            for n, columns in problems.groups:
                f[part, columns] = A[:, :n] @ u[:n, columns]
            own = None if counts is None else counts[part]
            if loops is not None:
                residual = loops.update(f[part], t[part], y[part], own, update, sums)
            else:
                f[part] *= y[part]
                residual = update.apply(t[part], f[part], own, sums)
                residual *= y_counts[part]
                residual = residual.astype(A.dtype, copy=False)
            for n, columns in problems.groups:
                sums.r[:n, columns] += A[:, :n].T @ residual[:, columns]
        scores = (f * y).reshape(len(f), problems.n_problems, problems.K)
        wrong = predicted_codes(scores) != data.codes[rows, np.newaxis]
        per_problem = counts if counts is None or counts.ndim == 1 else counts[:, :: problems.K]
        sums.wrong += weighted_sum(wrong, per_problem)
        if loops is None:
            update.add_statistics(sums, f, t_old, t, counts)

    def _sweep_compiled(
        self,
        rows: slice,
        X: FloatArray | None,
        problems: Problems,
        u: FloatArray,
        t: FloatArray,
        sums: Any,
    ) -> None:
        """Do as ``_sweep_rows`` for one column, by the compiled loops."""
        assert self._compiled is not None
        counts, absent = self._counts(rows, problems)
        stored = None if self._stored is None else self._stored[rows]
        y = self._data.labels_of(rows)
        self._compiled.sweep(X, stored, u, t, y, counts, absent, problems.update, sums)

    def pick(self, item: Item, draw: Draw) -> Picked:
        """Return the rows of a span that are in a sample.

        If the draw looks at features, A' Omega y and the trace of A' Omega A come along, over all
        rows of the span.
        """
        span, part = item
        data, n = self._data, self.n_centers
        X = data.source.rows(part)
        picked = Picked(
            np.zeros((data.n_fold_parts, n, data.n_columns)), np.zeros(data.n_fold_parts)
        )
        limit = span[1] - span[0] if draw.sketch is None else self._block_rows
        for fold_part, rows in self._rows_by_fold_part(span, limit):
            block, weights = taken_rows(X, rows, span[0]), data.weights_of(rows)
            numbers = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
            leverage = None
            if draw.sketch is not None:
                A = self._present_features(block, weights)
                self._add_start(picked, fold_part, A, data.labels_of(rows), weights)
                leverage = leverages(A, draw.sketch, weights)
            taken = draw.taken(data.source.first_row + numbers, leverage)
            counts = 1.0 / np.broadcast_to(draw.chances(leverage), taken.shape)
            if weights is not None:
                taken &= weights > 0
                counts = counts * weights
            picked.append(block[taken], counts[taken], data.codes[rows][taken], fold_part)
        return picked

    def _add_start(
        self,
        picked: Picked,
        fold_part: int,
        A: FloatArray,
        y: FloatArray,
        weights: FloatArray | None,
    ) -> None:
        """Add A' Omega y and the trace of A' Omega A over a block of rows."""
        squares = np.vdot(A, A) if weights is None else weights @ np.einsum("ij,ij->i", A, A)
        if not np.isfinite(squares):  # the features are, their squares need not be
            squares = np.sum(np.square(A, dtype=float).T * (1.0 if weights is None else weights))
        picked.trace[fold_part] += squares
        precise = A
        if A.dtype != np.float64:  # nothing less will do for A'y, from which all else begins
            precise = self._work.array("precise", A.shape, float)
            precise[:] = A
        picked.Aty[fold_part] += precise.T @ (y if weights is None else y * weights[:, np.newaxis])

    def product(self, item: Item, problems: Problems, P: FloatArray) -> FloatArray:
        """Return A' Omega A P over a shard, each column by the rows that its problem learns from.

        Rounding errors of A P are in the range of A' once they are multiplied by it, and do no
        harm. Those of the sum over rows are not, and the preconditioner makes much of them, so it
        goes to float64 every few rows.
        """
        span, part = item
        X = None if span in self._kept else self._data.source.rows(part)
        total, cast = np.zeros(P.shape), P.astype(self._dtype)
        loops = self._compiled_for(problems)
        for lo, hi in block_spans(span, self._block_rows if loops is None else loops.most_rows):
            rows = slice(lo, hi)
            block = None if X is None else X[lo - span[0] : hi - span[0]]
            if loops is None:
                self._add_product(rows, block, problems, cast, total)
                continue
            counts, absent = self._counts(rows, problems)
            stored = None if self._stored is None else self._stored[rows]
            loops.product(block, stored, cast, hi - lo, counts, absent, total)
        if self._stored is not None:
            self._kept.add(span)
        return total

    def _add_product(
        self,
        rows: slice,
        X: Block | None,
        problems: Problems,
        P: FloatArray,
        total: FloatArray,
    ) -> None:
        """Add A' Omega A P over a block of rows."""
        counts, _ = self._counts(rows, problems)
        if counts is not None and counts.ndim == 1:
            counts = counts[:, np.newaxis]
        A = None if self._stored is None else self._stored[rows]
        if X is not None:
            A = self._present_features(X, self._data.weights_of(rows), A)
        assert A is not None
        for n, columns in problems.groups:
            f = A[:, :n] @ P[:n, columns]
            if counts is not None:
                own = counts if counts.shape[1] == 1 else counts[:, columns]
                f = (f * own).astype(f.dtype)
            for lo, hi in block_spans((0, len(A)), PRODUCT_ROWS):
                total[:n, columns] += A[lo:hi, :n].T @ f[lo:hi]

    def curvature(
        self, item: Item, problem: Problems, k: int, least: float, t: FloatArray, T: FloatArray
    ) -> FloatArray:
        """Return T'A' D A T over rows that are drawn, with D how curved and how many they are.

        The state t tells how curved rows are; of those less curved than ``least`` some are drawn.

        Features are multiplied by T, which is upper triangular, before they are squared: their Gram
        matrix alone has lost what T would bring to light.
        """
        span, part = item
        counts, _ = self._counts(slice(*span), problem)
        if counts is not None and counts.ndim == 2:
            counts = counts[:, k]
        curved = cast(NewtonColumns, problem.update).curvature(t, k)
        if counts is not None:
            curved = curved * counts
        rows, share = draw_by_curvature(curved, least, self._data.source.first_row + span[0])
        X = None if span in self._kept else self._data.source.rows(part)
        H = np.zeros(T.shape)
        for lo, hi in block_spans((0, len(rows)), GRAM_ROWS):
            own = rows[lo:hi]
            if X is None:
                assert self._stored is not None
                A = self._stored[span[0] : span[1]][own].astype(float, copy=False)
            else:
                A = self._chosen_features(X, own)
            A *= np.sqrt(share[lo:hi])[:, np.newaxis]
            times_triangular(A, T)
            H += A.T @ A
        return H

    def scores(self, item: Item, problems: Problems, coefficients: list[FloatArray]) -> FloatArray:
        """Return the scores of the rows of a shard, by the coefficients (n, columns) of their fold.

        Features are float64, as in prediction. A row in no fold part has NaN.
        """
        span, part = item
        X = self._data.source.rows(part)
        out = np.full((span[1] - span[0], problems.n_columns), np.nan)
        limit = self._map.block_rows(np.float64)
        for fold_part, rows in self._rows_by_fold_part(span, limit):
            if fold_part >= len(coefficients):
                continue
            A, u = self._precise(taken_rows(X, rows, span[0])), coefficients[fold_part]
            values = np.empty((len(A), problems.n_columns))
            for n, columns in problems.groups:
                values[:, columns] = A[:, :n] @ u[:n, columns]
            out[shifted_rows(rows, span[0])] = values
        return out
