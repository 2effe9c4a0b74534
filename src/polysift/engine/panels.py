"""The Gram matrix of rows that are at hand, in the memory of one matrix and a block of rows.

A pass over many shards adds up a matrix per shard. Where rows are few the matrices would be most of
the memory, and adding them most of the work. Here threads share one matrix: each fills panels of
its upper triangle. The borders of blocks and panels depend on n alone, and each entry is summed in
the order of the rows, so the number of threads does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from polysift.runtime.parallel import Pool, Span, Workspace, block_spans
from polysift.runtime.types import Block, FloatArray

BLOCK_SIZE = 2**23
BLOCK_ROWS = 256, 4096
PANELS = 16
PANEL = 64, 512

Features = Callable[[Block, FloatArray], None]
"""Writes the features of rows into an array."""


def panel_rows(n: int) -> int:
    """Return how many rows are worked on at once."""
    return int(np.clip(BLOCK_SIZE // n, *BLOCK_ROWS))


def feature_blocks(
    features: Features, parts: list[Block], n: int, rows: int, pool: Pool
) -> Iterator[tuple[Span, FloatArray]]:
    """Yield the features of rows that come in parts, so many at a time, in scratch space."""
    A = np.empty((rows, n))
    filled, done = 0, 0
    for X in parts:
        first = 0
        while first < X.shape[0]:
            last = min(first + rows - filled, X.shape[0])
            spans = list(block_spans((first, last), max(rows // 8, 1)))

            def write(span: Span, X: Block = X, shift: int = filled - first) -> None:
                features(X[span[0] : span[1]], A[span[0] + shift : span[1] + shift])

            for _ in pool.map(write, spans, work=(last - first) * n):
                pass
            filled, first = filled + last - first, last
            if filled == rows:
                yield (done, done + filled), A
                filled, done = 0, done + filled
    if filled:
        yield (done, done + filled), A[:filled]


def add_gram(G: FloatArray, A: FloatArray, counts: FloatArray, pool: Pool, work: Workspace) -> None:
    """Add A' diag(counts) A to the upper triangle of G; A is overwritten.

    Below the diagonal, G holds anything afterwards.
    """
    n = len(G)
    A *= np.sqrt(counts)[:, np.newaxis]

    def fill(panel: Span) -> None:
        lo, hi = panel
        product = work.array("product", (hi - lo, n - lo), float)
        np.matmul(A[:, lo:hi].T, A[:, lo:], out=product)
        G[lo:hi, lo:] += product

    width = int(np.clip(-(-n // PANELS), *PANEL))
    for _ in pool.map(fill, block_spans((0, n), width), work=len(A) * n):
        pass
