"""The loops that numba compiles: when they are used, and a class to call them with arrays.

They are used if numba is installed and the fit is large enough; otherwise NumPy does the same work.
The choice depends on the sizes of a fit alone, since the two differ in rounding: so the model does
not depend on anything else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np

from polysift.engine.budget import Execution
from polysift.engine.row_updates import AdmmColumns, ColumnUpdates
from polysift.engine.sums import AdmmSums, names_of
from polysift.features.feature_map import BlockFeatures
from polysift.features.scaling_loops import Lookup
from polysift.runtime.parallel import Workspace, block_spans
from polysift.runtime.types import BoolArray, FloatArray, IntArray

MIN_COMPILED_EVALUATIONS = 10**9
"""Feature evaluations of a whole fit that are worth compiling the loops, a second or two."""

BLAS_PRODUCT_BYTES = 2**19
"""Bytes of the products X C of a block of rows with the centers, where BLAS computes them."""

MIN_COMPILED_RANKS = 4 * 10**8
"""Ranks that a fit compares, rows times centers times columns, which are worth the loops of a
spline: numba takes a quarter of a second to import, NumPy some seconds for 10^10 of them."""

MAX_COUNTED_PASSES = 100
"""Passes that are counted at most: a fit may stop long before max_iter."""

ScaledRows = tuple[FloatArray, IntArray]
"""Rows in the coordinates that are multiplied, and what is to be added to their products."""

_forced: bool | None = None
"""Whether ``enabled`` overrules the choice by size."""


def installed() -> bool:
    """Return whether numba is installed."""
    return find_spec("numba") is not None


def worthwhile(rows: int, n_centers: int, passes: int) -> bool:
    """Return whether a fit uses the compiled loops.

    Parameters
    ----------
    rows, n_centers : int
        The sizes of the fit.
    passes : int
        Passes over the rows at most.
    """
    if _forced is not None:
        return _forced and installed()
    return (
        rows * n_centers * min(passes, MAX_COUNTED_PASSES) >= MIN_COMPILED_EVALUATIONS
        and installed()
    )


def with_loops(
    execution: Execution, rows: int, features_per_row: int, passes: int, columns: int
) -> Execution:
    """Return an execution with the compiled loops where these are worthwhile.

    Those of splines alone are where there are ranks enough: those of ``columns`` per feature.
    """
    ranks = rows * features_per_row * columns
    splines = _forced if _forced is not None else ranks >= MIN_COMPILED_RANKS
    return replace(
        execution,
        compiled=worthwhile(rows, features_per_row, passes),
        compiled_splines=splines and installed(),
    )


@contextmanager
def enabled(setting: bool = True) -> Iterator[None]:
    """Use the compiled loops for fits of any size, or for none: for tests and benchmarks."""
    global _forced
    before, _forced = _forced, setting
    try:
        yield
    finally:
        _forced = before


def disabled() -> AbstractContextManager[None]:
    """Use NumPy alone."""
    return enabled(False)


class CompiledRows:
    """The compiled loops for one feature map and dtype; several threads may share them.

    Attributes
    ----------
    max_rows : int
        How many rows to pass at most, so that the scaled rows fit the cache.
    block_rows : int or None
        The rows of the blocks in which features are computed, where BLAS computes the products and
        its rounding depends on them; else None.
    """

    def __init__(self, features: BlockFeatures) -> None:
        # Imported late: numba needs half a second.
        from polysift.engine import compiled_features, compiled_loops

        self._kernels: Any = compiled_loops
        self._before: Any = compiled_features
        self._features = features
        lookups = features.map.scaler.lookups()
        self._C, self._T, self._zeros = _looked_up(features, lookups)
        self._n, d = features.map.n_centers, len(self._C) - 1
        self._ranks = features.kernel.ranks
        wide = d > compiled_loops.MAX_UNROLLED_COLUMNS
        self._by_blas = self._ranks > 0 or wide or len(lookups) > 0
        self._across = not self._by_blas and self._n <= compiled_loops.MAX_CENTERS_ACROSS
        if self._across:
            self._walk = compiled_loops.walk_across(features.map.degree)
        elif not self._by_blas:
            self._walk = compiled_loops.walk(d, features.map.degree)
        self._none = np.empty((0, d + 1), features.dtype), np.empty((0, self._n), features.dtype)
        self._tile = compiled_loops.tile_rows(self._n, features.dtype.itemsize)
        rows = BLAS_PRODUCT_BYTES // (self._n * features.dtype.itemsize)
        self._product_rows = int(np.clip(rows // 8 * 8, 64, 2048))
        self._work = Workspace()
        self.max_rows = int(np.clip(2**17 // (d + 1), 256, 8192))
        self.block_rows = self._product_rows if self._by_blas else None
        if self.block_rows is not None:
            self.max_rows = max(self.max_rows // self.block_rows, 1) * self.block_rows

    def features(self, block: FloatArray, out: FloatArray | None = None) -> FloatArray:
        """Return the features of dense rows, in ``out`` or in this thread's scratch space."""
        dtype, none = self._features.dtype, np.empty(0)
        if out is None:
            out = self._work.array("block", (len(block), self._n), dtype)
        rows = (none,) * 3
        X, columns = self._scaled(block), (none.astype(dtype), none)
        self._run(self._kernels.FEATURES, X, out, columns, rows, (1.0, 1.0, none))
        return out

    def covers(self, update: ColumnUpdates, *, many: bool) -> bool:
        """Return whether a loop over one column, or over many, knows an update; else NumPy does it.

        A loss may have no compiled twin, and Newton's method has none for many columns.
        """
        name = f"{update.loss.name}_{update.task}"
        return hasattr(self._kernels, f"{name}_columns" if many else name.upper())

    def sweep(
        self,
        block: FloatArray | None,
        stored: FloatArray | None,
        u: FloatArray,
        t: FloatArray,
        y: FloatArray,
        counts: FloatArray | None,
        absent: BoolArray | None,
        update: ColumnUpdates,
        sums: Any,
    ) -> None:
        """Update the state t of rows for one column, and add to ``sums``.

        ``stored`` holds the rows' features if there is no block, and otherwise receives them;
        ``absent`` are rows of no weight.
        """
        rows = _multiplicities(counts, t.shape)[:, 0], t[:, 0], y[:, 0]
        X, columns = self._rows(block, absent), (u[:, 0], sums.r[:, 0])
        task = getattr(self._kernels, f"{update.loss.name}_{update.task}".upper())
        arguments = update.compiled_arguments()
        self._run(task, X, stored, columns, rows, arguments)
        update.add_compiled(sums, arguments[-1])

    def product(
        self,
        block: FloatArray | None,
        stored: FloatArray | None,
        p: FloatArray,
        n_rows: int,
        counts: FloatArray | None,
        absent: BoolArray | None,
        r: FloatArray,
    ) -> None:
        """Add A' Omega A p to r for one column p; the rest is as in ``sweep``."""
        none = np.empty(0)
        rows = _multiplicities(counts, (n_rows, 1))[:, 0], none, none
        X, columns = self._rows(block, absent), (p[:, 0], r[:, 0])
        self._run(self._kernels.PRODUCT, X, stored, columns, rows, (1.0, 1.0, none))

    def _scaled(self, block: FloatArray) -> ScaledRows:
        """Return rows as ``BlockFeatures.rows`` does; NumPy is slow where rows are short.

        In the place of coordinates that are looked up, there are the rows of T to add.
        """
        block = np.ascontiguousarray(block)
        X = self._work.array("X", (len(block), len(self._C)), self._features.dtype)
        added = self._work.array("added", (len(block), len(self._zeros)), np.int64)
        self._features.map.scaler.transform_compiled(self._before, block, X, added)
        # All of X is looked at first, since it takes longer without a column.
        if not self._features.map.scaler.places_missing and np.isnan(X).any():
            self._features.map.fill_missing(X[:, :-1])
        added[:, 1:] += self._zeros[:-1] + 1
        return X, added

    def _rows(self, block: FloatArray | None, absent: BoolArray | None) -> ScaledRows | None:
        if block is None:
            return None
        X, added = self._scaled(block)
        if absent is not None:  # such rows were not surveyed, and may overflow
            X[absent, :-1], added[absent] = 0.0, self._zeros
        return X, added

    def _run(
        self,
        task: int,
        scaled: ScaledRows | None,
        Z: FloatArray | None,
        columns: tuple[FloatArray, FloatArray],
        rows: tuple[FloatArray, ...],
        arguments: tuple[Any, ...],
    ) -> None:
        """Run a loop over kept features Z, or over features of scaled rows (into Z, if given)."""
        tile, dtype = self._tile, self._features.dtype
        m = len(rows[0]) if scaled is None else len(scaled[0])
        # Sums are added in float64 at the end of a block: with Z given, use the same blocks.
        for lo, hi in block_spans((0, m), self._product_rows if self._by_blas else m):
            part = slice(lo, hi)
            rest = columns, tuple(array[part] for array in rows), arguments
            if self._across:
                none, nothing = self._none
                given = Z if Z is not None else nothing
                if scaled is None:
                    self._walk(task, none, self._C, given, nothing, *rest)
                else:
                    self._walk(task, scaled[0], self._C, nothing, given, *rest)
                continue
            if scaled is None:
                assert Z is not None
                self._kernels.walk_kept(task, Z[part], tile, *rest)
                continue
            room = hi - lo if self._by_blas else tile
            A = self._work.array("A", (room, self._n), dtype) if Z is None else Z[part]
            X, added = scaled[0][part], scaled[1][part]
            if not self._by_blas:
                self._walk(task, X, self._C, A, tile, *rest)
                continue
            self._features_by_blas(X, added, A)
            if task != self._kernels.FEATURES:
                self._kernels.walk_kept(task, A, tile, *rest)

    def _features_by_blas(self, X: FloatArray, added: IntArray, A: FloatArray) -> None:
        """Write the features of scaled rows X into A; BLAS computes the products."""
        C, ranks = self._C, self._ranks
        np.matmul(X[:, ranks:], C[ranks:], out=A)
        if ranks:
            self._before.subtract_larger(X, C, ranks, A)
        self._before.raise_to_power(A, self._T, added, self._features.map.degree)

    def update(
        self,
        f: FloatArray,
        t: FloatArray,
        y: FloatArray,
        counts: FloatArray | None,
        update: AdmmColumns,
        sums: AdmmSums,
    ) -> FloatArray:
        """Update the state t of many columns by the scores f, which become margins.

        Return the residuals, and add to all of ``sums`` but ``r`` and ``wrong``.
        """
        columns, names = f.shape[1:], names_of(AdmmSums)[1:-1]
        residual = np.empty(f.shape, self._features.dtype)
        found = np.zeros((len(names), *columns))
        steps = (np.full(columns, value) for value in (update.gamma, update.relax))
        each = _multiplicities(counts, f.shape)
        loop = getattr(self._kernels, f"{update.loss.name}_{update.task}_columns")
        loop(f, t, y, each, *steps, residual, found)
        for name, value in zip(names, found, strict=True):
            getattr(sums, name)[:] += value
        return residual


def _looked_up(
    features: BlockFeatures, lookups: list[Lookup]
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return the centers without the coordinates that are looked up, and what these contribute.

    That is, for each row of the tables, one after the other, its products with the centers; and the
    last row of each table, which is zero.
    """
    others = np.ones(len(features.C1), dtype=bool)
    facing = features.kernel.facing(features.map.centers)
    tables = [np.empty((0, features.map.n_centers))]
    for start, table in lookups:
        own = slice(start, start + table.shape[1])
        others[own] = False
        tables.append(table @ facing[own])
    ends = np.cumsum([len(table) for table in tables[1:]], dtype=np.int64) - 1
    return features.C1[others], np.concatenate(tables).astype(features.dtype), ends


def _multiplicities(counts: FloatArray | None, shape: tuple[int, ...]) -> FloatArray:
    """Return the multiplicity of each row for each column, as a new array.

    Numba would compile the loops again for read-only arrays.
    """
    each = np.ones(shape)
    if counts is not None:
        each *= counts if counts.ndim == 2 else counts[:, np.newaxis]
    return each
