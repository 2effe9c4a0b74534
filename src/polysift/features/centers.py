"""Centers: uniform points, or rows of the data with the smallest keys.

Centers are an ordered list, and fewer centers are a prefix of it. Rows that serve as "random"
centers do not depend on the order of the data, on repetition, on threads or on the file format: the
key of a row is a seeded hash of its content.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from polysift.runtime.parallel import block_spans
from polysift.runtime.types import Block, FloatArray

SCHEMES = ("auto", "uniform", "first", "random")

HASH_BLOCK_VALUES = 2**15
"""Values that are hashed at a time: few enough for the caches."""

Words = npt.NDArray[np.uint64]


def uniform_centers(low: FloatArray, high: FloatArray, n: int, seed: int) -> FloatArray:
    """Draw n points uniformly from the box between ``low`` and ``high`` (the paper's Scheme 1).

    The points are drawn row by row, so the first of them are those of a smaller n.
    """
    return low + (high - low) * np.random.default_rng(seed).random((n, len(low)))


@dataclass
class Candidates:
    """Distinct rows with the smallest keys seen so far, in the order of their keys.

    Attributes
    ----------
    keys : ndarray of shape (k,)
        The keys: the rows' hashes ("random"), or their positions ("first").
    hashes : ndarray of shape (k,)
        The hashes by which rows count as equal. Should two different rows share one of the 2^64
        hashes, one of them is lost as a center.
    rows : ndarray or CSR array of shape (k, d)
        The rows, not scaled.
    """

    keys: Words
    hashes: Words
    rows: Block

    def merge(self, other: Candidates, n: int) -> Candidates:
        """Return the n distinct rows of both with the smallest keys."""
        return best_candidates(
            np.append(self.keys, other.keys),
            np.append(self.hashes, other.hashes),
            sp.vstack([self.rows, other.rows], format="csr")
            if sp.issparse(self.rows)
            else np.concatenate([self.rows, other.rows]),
            n,
        )

    def dense_rows(self) -> FloatArray:
        """Return the rows as a dense float64 array."""
        dense = self.rows.toarray() if sp.issparse(self.rows) else self.rows
        return np.asarray(dense, dtype=float)


def find_candidates(block: Block, hashes: Words, first_row: int, scheme: str, n: int) -> Candidates:
    """Return the candidates of a block whose first row is number ``first_row`` of the data."""
    keys = hashes
    if scheme == "first":
        keys = np.arange(first_row, first_row + block.shape[0], dtype=np.uint64)
    return best_candidates(keys, hashes, block, n)


def best_candidates(keys: Words, hashes: Words, rows: Block, n: int) -> Candidates:
    """Return the n distinct rows with the smallest keys."""
    order = np.argsort(keys, kind="stable")
    _, first = np.unique(hashes[order], return_index=True)  # the smallest key of each distinct row
    chosen = order[np.sort(first)[:n]]
    return Candidates(keys[chosen], hashes[chosen], rows[chosen])


def hash_rows(block: Block, seed: int) -> Words:
    """Return a seeded 64-bit hash of each row's float64 bits, alike for dense and sparse rows.

    The hash of a row is a sum over its columns, in which a zero adds nothing: so the zeros that a
    sparse row does not store need not be visited. Minus zero counts as zero.
    """
    keys = _column_keys(block.shape[1], seed)
    at_zero = mix(keys)
    with np.errstate(over="ignore"):
        if sp.issparse(block):
            columns = block.indices
            terms = mix(_bits(block.data) ^ keys[columns]) - at_zero[columns]
            sums = np.zeros(len(block.indptr) - 1, dtype=np.uint64)
            filled = np.flatnonzero(np.diff(block.indptr))
            if len(filled):  # reduceat cannot express an empty row
                sums[filled] = np.add.reduceat(terms, block.indptr[filled])
        else:
            sums = np.empty(block.shape[0], dtype=np.uint64)
            # By blocks of rows: column by column, threads wait for each other.
            for lo, hi in block_spans((0, len(block)), max(HASH_BLOCK_VALUES // len(keys), 1)):
                terms = mix(_bits(block[lo:hi]) ^ keys)
                terms -= at_zero
                np.sum(terms, axis=1, out=sums[lo:hi])
        return mix(sums ^ mix(np.array([seed], dtype=np.uint64)))


def _bits(values: FloatArray) -> Words:
    plain = np.add(values, 0.0, dtype=float, order="C")  # + 0.0 turns -0.0 into 0.0
    missing = np.isnan(plain)
    if missing.any():
        plain[missing] = np.nan  # of which there are many
    return plain.view(np.uint64)


def _column_keys(d: int, seed: int) -> Words:
    with np.errstate(over="ignore"):
        steps = np.arange(1, d + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        return mix(steps + np.uint64(seed))


def mix(z: Words) -> Words:
    """Scramble 64-bit words, one to one (the finaliser of splitmix64)."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
