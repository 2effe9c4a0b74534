"""The work on one shard of rows: its part of a Gram matrix, a sweep, a product or a Hessian.

``ShardWork`` computes with the features of ``ShardFeatures``. Engines differ in which thread or
worker calls it, and add up its results.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from polysift.engine.problems import Problems
from polysift.engine.row_updates import AdmmColumns, NewtonColumns, draw_by_curvature
from polysift.engine.sampling import Draw, Picked, leverages
from polysift.engine.shard_features import (
    GRAM_BLOCK_ROWS,
    Item,
    ShardFeatures,
    rows_of_span,
    shifted_rows,
)
from polysift.engine.sums import GramSums, predicted_codes, weighted_sum
from polysift.runtime.parallel import block_spans
from polysift.runtime.types import Block, FloatArray

TRIANGULAR_PANELS = 8
"""Panels of columns into which a triangular matrix is split for a product."""

PRODUCT_ROWS = 256
"""Rows whose part of a product is summed in the features' dtype, before it is added in float64."""

MIN_SWEEP_ROWS, MAX_SWEEP_ROWS = 1024, 8192
MAX_SWEEP_ENTRIES = 2**17
"""The rows, and rows times columns, whose statistics a sweep computes at once."""


class ShardWork(ShardFeatures):
    """The work on one shard at a time; see ``ShardFeatures`` for the parameters."""

    def gram(self, item: Item) -> GramSums:
        """Return A' Omega A and A' Omega y, both summed in float64 also for float32 features."""
        span, part = item
        n, data = self._map.n_centers, self._data
        X = data.source.rows(part)
        sums = GramSums.zeros(data.n_fold_parts, n, data.n_columns)
        product = self._work.array("product", (n, n), float)
        for fold_part, rows in self._rows_by_fold_part(span, self.gram_block_rows):
            A = self._gram_features(rows, rows_of_span(X, rows, span[0]))
            y, weights = data.labels_of(rows), data.weights_of(rows)
            if weights is not None:
                root = np.sqrt(weights)[:, np.newaxis]
                A *= root
                y *= root
            np.matmul(A.T, A, out=product)  # numpy sees the symmetry and halves the work
            sums.G[fold_part] += product
            sums.Aty[fold_part] += A.T @ y
        if self._keeps_in_gram:
            self._kept.add(span)
        return sums

    def sweep(self, item: Item, problems: Problems, u: FloatArray, state: FloatArray) -> Any:
        """Update the state of the rows of a shard by new coefficients, and return the sums.

        The state is the margin t = y b of b = A u + w / beta.
        """
        span, part = item
        X = None if span in self._kept else self._data.source.rows(part)
        sums = problems.update.zeros(len(u), problems.n_columns, problems.n_problems)
        u_cast = u.astype(self._dtype)
        # Not np.clip, which takes as long as a shard with a few centers.
        limit = min(max(MAX_SWEEP_ENTRIES // problems.n_columns, MIN_SWEEP_ROWS), MAX_SWEEP_ROWS)
        # Whole blocks, so that their borders do not depend on the number of columns.
        limit = max(limit // self._block_rows, 1) * self._block_rows
        visit, loops = self._sweep_rows, self._compiled_for(problems)
        if loops is not None and loops.covers(problems.update, many=False):
            visit, limit = self._sweep_compiled, loops.max_rows
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
        """Update the state of rows block by block, then add up their statistics at once."""
        data = self._data
        f = self._work.array("f", t.shape, float)
        y = np.tile(data.labels_of(rows), problems.n_problems)
        weights = data.weights_of(rows)
        counts, _ = self._counts(rows, problems)
        y_counts = y
        if counts is not None:
            y_counts = y * (counts if counts.ndim == 2 else counts[:, np.newaxis])
        t_old = t.copy()
        update = problems.update
        loops = self._compiled
        if loops is not None and not loops.covers(update, many=True):
            loops = None
        for lo, hi in block_spans((0, len(t)), self._block_rows):
            part = slice(lo, hi)
            A = None if self._stored is None else self._stored[rows][part]
            if X is not None:
                A = self._present_features(X[part], None if weights is None else weights[part], A)
            assert A is not None
            for n, columns in problems.groups:
                f[part, columns] = A[:, :n] @ u[:n, columns]
            own = None if counts is None else counts[part]
            if loops is not None:
                admm = cast(AdmmColumns, update)  # no other has a loop over many columns
                residual = loops.update(f[part], t[part], y[part], own, admm, sums)
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
        """Compute the same as ``_sweep_rows``, for one column, by the compiled loops."""
        assert self._compiled is not None
        counts, absent = self._counts(rows, problems)
        stored = None if self._stored is None else self._stored[rows]
        y = self._data.labels_of(rows)
        self._compiled.sweep(X, stored, u, t, y, counts, absent, problems.update, sums)

    def pick(self, item: Item, draw: Draw) -> Picked:
        """Return the rows of a span that are in a sample.

        If the draw computes features, the result also has A' Omega y and the trace of A' Omega A
        over all rows of the span.
        """
        span, part = item
        data, n = self._data, self.n_centers
        X = data.source.rows(part)
        picked = Picked(
            np.zeros((data.n_fold_parts, n, data.n_columns)), np.zeros(data.n_fold_parts)
        )
        limit = span[1] - span[0] if draw.sketch is None else self._block_rows
        for fold_part, rows in self._rows_by_fold_part(span, limit):
            block, weights = rows_of_span(X, rows, span[0]), data.weights_of(rows)
            numbers = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
            leverage = None
            if draw.sketch is not None:
                A = self._present_features(block, weights)
                self._add_start(picked, fold_part, A, data.labels_of(rows), weights)
                leverage = leverages(A, draw.sketch, weights)
            drawn = draw.selected(data.source.first_row + numbers, leverage)
            counts = 1.0 / np.broadcast_to(draw.probabilities(leverage), drawn.shape)
            if weights is not None:
                drawn &= weights > 0
                counts = counts * weights
            picked.append(block[drawn], counts[drawn], data.codes[rows][drawn], fold_part)
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
        if not np.isfinite(squares):  # finite features may have infinite squares in float32
            squares = np.sum(np.square(A, dtype=float).T * (1.0 if weights is None else weights))
        picked.trace[fold_part] += squares
        precise = A
        if A.dtype != np.float64:  # A'y determines the first iterate, so it is exact
            precise = self._work.array("precise", A.shape, float)
            precise[:] = A
        picked.Aty[fold_part] += precise.T @ (y if weights is None else y * weights[:, np.newaxis])

    def product(self, item: Item, problems: Problems, P: FloatArray) -> FloatArray:
        """Return A' Omega A P over a shard, each column by the rows that its problem learns from.

        Rounding errors of A P are multiplied by A', and remain in its range, where they are
        harmless. Those of the sum over rows do not, and the preconditioner amplifies them; so the
        sum is added in float64 every ``PRODUCT_ROWS`` rows.
        """
        span, part = item
        X = None if span in self._kept else self._data.source.rows(part)
        total, cast = np.zeros(P.shape), P.astype(self._dtype)
        loops = self._compiled_for(problems)
        for lo, hi in block_spans(span, self._block_rows if loops is None else loops.max_rows):
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
        """Return T'A' D A T over the rows of a shard, with D the weighted curvature of the loss.

        The curvature follows from the state t. Rows whose curvature is less than ``least`` are
        sampled (``draw_by_curvature``). T is upper triangular. Features are multiplied by T before
        their Gram matrix is formed: in T'(A' D A) T small eigenvalues would be lost to rounding.
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
        for lo, hi in block_spans((0, len(rows)), GRAM_BLOCK_ROWS):
            own = rows[lo:hi]
            if X is None:
                assert self._stored is not None
                A = self._stored[span[0] : span[1]][own].astype(float, copy=False)
            else:
                A = self._chosen_features(X, own)
            if A.shape[1] > len(T):  # a problem with fewer centers
                A = np.ascontiguousarray(A[:, : len(T)])
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
            A, u = self._precise(rows_of_span(X, rows, span[0])), coefficients[fold_part]
            values = np.empty((len(A), problems.n_columns))
            for n, columns in problems.groups:
                values[:, columns] = A[:, :n] @ u[:n, columns]
            out[shifted_rows(rows, span[0])] = values
        return out


def times_triangular(A: FloatArray, T: FloatArray) -> None:
    """Overwrite A by A T, with T upper triangular, at little more than half of the full cost.

    BLAS has a routine for it, but scipy holds the interpreter lock while it runs.
    """
    n = len(T)
    width = -(-n // TRIANGULAR_PANELS)
    for hi in range(n, 0, -width):  # from the right: columns that are still needed are unchanged
        lo = max(hi - width, 0)
        A[:, lo:hi] = A[:, :hi] @ T[:hi, lo:hi]
