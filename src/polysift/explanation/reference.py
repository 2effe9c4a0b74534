"""Reference rows: the marginal distributions that a polynomial depends on, and a sample of rows.

All that a polynomial of degree s depends on of a column is the triangular factor R of the matrix
with entries ``z^k``, k = 0, ..., s: column k of R holds the coordinates of ``z^k`` in the
polynomials that are orthonormal over the column. (The Hankel matrix of its moments, R'R, has the
same information with half of the digits.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from polysift.data.source import DataSource, check_finite
from polysift.features.scalers import Scaler
from polysift.features.survey import checked_weights
from polysift.runtime.parallel import Span, block_spans, single_threaded_blas
from polysift.runtime.types import Block, FloatArray

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
        The factors R of the columns, of rows with a total weight of 1.
    rows : ndarray of shape (r, d)
        Some of the rows, evenly spread.
    weights : ndarray of shape (r,)
        Their weights, which sum to 1.
    """

    name: str
    factors: FloatArray
    rows: FloatArray
    weights: FloatArray

    @property
    def means(self) -> FloatArray:
        """The mean of ``z^k`` of each column, of shape (d, s + 1)."""
        return np.asarray(self.factors[:, :1, 0] * self.factors[:, 0, :])

    @property
    def squares(self) -> FloatArray:
        """The mean of ``z^2k`` of each column, of shape (d, s + 1)."""
        return np.asarray(np.einsum("dlk,dlk->dk", self.factors, self.factors))


def reference_of(source: DataSource, scaler: Scaler, degree: int, name: str) -> Reference:
    """Return the reference of a source's rows, which count by their weights."""
    spans = _evenly(source.shards())
    count = sum(hi - lo for lo, hi in spans)
    R, weight = np.zeros((source.n_features, degree + 1, degree + 1)), 0.0
    rows, weights = [], []
    step, done = -(-count // SAMPLE_ROWS), 0
    with single_threaded_blas():
        for Z, counts in _weighted_blocks(source, spans, scaler):
            R, weight = _with_rows(R, Z, np.sqrt(counts)), weight + float(counts.sum())
            present = np.flatnonzero(counts)  # a row of weight zero does not count
            kept = present[-done % step :: step]
            rows.append(Z[kept])
            weights.append(counts[kept])
            done += len(present)
    if weight == 0:
        raise ValueError("All weights are zero: there are no rows to refer to.")
    if count < source.n_rows:
        name = f"{count:,} of {name}"
    sample = np.concatenate(weights)
    return Reference(name, R / np.sqrt(weight), np.concatenate(rows), sample / sample.sum())


def dense(block: Block) -> FloatArray:
    """Return a block of rows as a dense array."""
    return np.asarray(block.toarray() if sp.issparse(block) else block)


def _weighted_blocks(
    source: DataSource, spans: list[Span], scaler: Scaler
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield scaled rows with their weights."""
    for span, part in source.parts(spans):
        X = source.rows(part)
        check_finite(source, span[0], X)
        found = checked_weights(source, span[0], source.weights(part))
        counts = np.ones(X.shape[0]) if found is None else np.asarray(found, dtype=float)
        for lo, hi in block_spans((0, X.shape[0]), BLOCK_ROWS):
            yield scaler.transform(dense(X[lo:hi])), counts[lo:hi]


def _with_rows(R: FloatArray, Z: FloatArray, roots: FloatArray) -> FloatArray:
    """Return the factors with more rows appended, each times the root of its weight."""
    powers = np.vander(Z.T.ravel(), R.shape[-1], increasing=True)
    powers = roots[:, None] * powers.reshape(Z.shape[1], len(Z), R.shape[-1])
    return np.asarray(np.linalg.qr(np.concatenate([R, powers], axis=1), mode="r"))


def _evenly(spans: list[Span]) -> list[Span]:
    """Return the shards, or the beginning of each where there are more than ``REFERENCE_ROWS``."""
    each = max(1, REFERENCE_ROWS // len(spans))
    return [(lo, min(hi, lo + each)) for lo, hi in spans]
