"""Reference rows: the marginal distributions that a polynomial depends on, and a sample of rows.

All that a polynomial of degree s depends on of a column is the triangular factor R of the matrix
with entries ``z^k``, k = 0, ..., s: column k of R holds the coordinates of ``z^k`` in the
polynomials that are orthonormal over the column. (The Hankel matrix of its moments, R'R, has the
same information with half of the digits.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import scipy.sparse as sp

from polysift.data.checks import check_finite
from polysift.data.source import DataSource
from polysift.features.survey import checked_weights
from polysift.runtime.parallel import Span, block_spans, single_threaded_blas
from polysift.runtime.types import Block, FloatArray, IntArray

REFERENCE_ROWS = 100_000
"""The most rows that are read; of more, the beginning of each shard is taken."""

SAMPLE_ROWS = 1000
"""The approximate number of rows in the sample."""

BLOCK_ROWS = 2048


@dataclass(frozen=True, eq=False)
class Reference:
    """What is kept of the reference rows, scaled.

    Attributes
    ----------
    name : str
        A description, such as "150 rows".
    factors : ndarray of shape (d, s + 1, s + 1)
        The factors R of the columns, of rows with a total weight of 1. Of a table whose columns
        have several coordinates: those of the coordinates, as for s = 1.
    rows : ndarray of shape (r, d)
        Some of the rows, evenly spread; of such a table, their coordinates.
    weights : ndarray of shape (r,)
        Their weights, which sum to 1.
    codes : dict of int to ndarray of int of shape (r,)
        Of each category, the levels of these rows (``LevelColumn.names``); -1 where coordinates
        do not tell them.
    """

    name: str
    factors: FloatArray
    rows: FloatArray
    weights: FloatArray
    codes: dict[int, IntArray] = field(default_factory=dict)

    @property
    def means(self) -> FloatArray:
        """The mean of ``z^k`` of each column, of shape (d, s + 1)."""
        return np.asarray(self.factors[:, :1, 0] * self.factors[:, 0, :])

    @property
    def squares(self) -> FloatArray:
        """The mean of ``z^2k`` of each column, of shape (d, s + 1)."""
        return np.asarray(np.einsum("dlk,dlk->dk", self.factors, self.factors))


class RowMap(Protocol):
    """What maps rows to coordinates, such as a scaler."""

    def transform(self, block: FloatArray) -> FloatArray:
        """Return the coordinates of dense rows."""


def reference_of(
    source: DataSource,
    scaler: RowMap,
    degree: int,
    name: str,
    codes_of: Callable[[FloatArray], dict[int, IntArray]] = lambda rows: {},
    look_at: Callable[[Block], None] = lambda rows: None,
) -> Reference:
    """Return the reference of a source's rows, which count by their weights.

    ``codes_of`` returns the levels of rows, for each category; ``look_at`` is shown the rows.
    """
    spans = _evenly(source.shards())
    count = sum(hi - lo for lo, hi in spans)
    R, weight = None, 0.0
    rows, weights = [], []
    codes: list[dict[int, IntArray]] = []
    step, done = -(-count // SAMPLE_ROWS), 0
    with single_threaded_blas():
        for block, counts in _weighted_blocks(source, spans):
            look_at(block)
            Z = scaler.transform(block)
            if R is None:
                R = np.zeros((Z.shape[1], degree + 1, degree + 1))
            R, weight = _with_rows(R, Z, np.sqrt(counts)), weight + float(counts.sum())
            present = np.flatnonzero(counts)  # a row of weight zero does not count
            kept = present[-done % step :: step]
            rows.append(Z[kept])
            weights.append(counts[kept])
            codes.append(codes_of(block[kept]))
            done += len(present)
    if weight == 0:
        raise ValueError("All weights are zero: there are no rows to refer to.")
    if count < source.n_rows:
        name = f"{count:,} of {name}"
    assert R is not None
    sample = np.concatenate(weights)
    return Reference(
        name,
        R / np.sqrt(weight),
        np.concatenate(rows),
        sample / sample.sum(),
        {j: np.concatenate([part[j] for part in codes]) for j in codes[0]},
    )


def dense(block: Block) -> FloatArray:
    """Return a block of rows as a dense array."""
    return np.asarray(block.toarray() if sp.issparse(block) else block)


def _weighted_blocks(
    source: DataSource, spans: list[Span]
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield dense rows with their weights."""
    for span, part in source.parts(spans):
        X = source.rows(part)
        check_finite(source, span[0], X)
        found = checked_weights(source, span[0], source.weights(part))
        counts = np.ones(X.shape[0]) if found is None else np.asarray(found, dtype=float)
        for lo, hi in block_spans((0, X.shape[0]), BLOCK_ROWS):
            yield dense(X[lo:hi]), counts[lo:hi]


def _with_rows(R: FloatArray, Z: FloatArray, roots: FloatArray) -> FloatArray:
    """Return the factors with more rows appended, each times the root of its weight."""
    powers = np.vander(Z.T.ravel(), R.shape[-1], increasing=True)
    powers = roots[:, None] * powers.reshape(Z.shape[1], len(Z), R.shape[-1])
    return np.asarray(np.linalg.qr(np.concatenate([R, powers], axis=1), mode="r"))


def _evenly(spans: list[Span]) -> list[Span]:
    """Return the shards, or the beginning of each where there are more than ``REFERENCE_ROWS``."""
    each = max(1, REFERENCE_ROWS // len(spans))
    return [(lo, min(hi, lo + each)) for lo, hi in spans]
