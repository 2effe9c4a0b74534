"""Samples of the rows: which rows are drawn, when that pays, and the Gram matrix of those drawn.

A pass over many shards adds up a matrix per shard. Where rows are few the matrices would be most of
the memory, and adding them most of the work. Here threads share one matrix: each fills panels of
its upper triangle. The borders of blocks and panels depend on n alone, and each entry is summed in
the order of the rows, so the number of threads does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from polysift.runtime.parallel import Pool, Span, Workspace, block_spans
from polysift.runtime.types import Block, FloatArray, IntArray

FIRST_ROWS_PER_CENTER = 4
"""Rows per center of the first sample, in which all rows have the same chance; one more per center
is drawn along, to judge leverages by."""

LEAST_SECOND_ROWS_PER_CENTER, MOST_SECOND_ROWS_PER_CENTER = 8, 32
"""Rows per center of the second sample, in which rows have the chance that they deserve."""

SECOND_SHARE = 1 / 16
"""The share of all rows that the second sample takes, within these bounds."""

LEAST_ROWS_RATIO = 2
"""There must be so many times the rows of both samples."""

SKETCH_DIRECTIONS = 8
"""Random directions by which the leverage of a row is judged."""

FEATURE_COST = 10.0
DIMENSION_COST = 2.0
COLUMN_COST = 4.0
"""The cost of a feature in a pass over the rows, in multiply-adds of the Gram matrix: for itself,
for each column of X, and for each column of coefficients."""

PAPER_PASSES = 9.0
CONVERGED_PASSES = 60.0
"""Passes that a sampled Gram matrix costs more: products, and iterations that do less."""


@dataclass(frozen=True)
class Sample:
    """The number of rows, how many of them to draw first and then, and the seed of the draws."""

    rows: int
    first: int
    second: int
    seed: int


def sample_of(rows: int, centers: int, seed: int) -> Sample | None:
    """Return how to sample, or None where there are too few rows for it."""
    second = int(
        np.clip(
            SECOND_SHARE * rows,
            LEAST_SECOND_ROWS_PER_CENTER * centers,
            MOST_SECOND_ROWS_PER_CENTER * centers,
        )
    )
    first = FIRST_ROWS_PER_CENTER * centers
    return (
        Sample(rows, first, second, seed) if rows >= LEAST_ROWS_RATIO * (first + second) else None
    )


def sampling_pays(
    sample: Sample, centers: int, features: int, columns: int, *, converged: bool
) -> bool:
    """Return whether a sampled Gram matrix takes less time than one of all rows.

    It depends on the shape alone, and not on this machine, so that a model does not, either.
    """
    per_feature = FEATURE_COST + DIMENSION_COST * features + COLUMN_COST * columns
    passes = CONVERGED_PASSES if converged else PAPER_PASSES
    taken = sample.first + sample.second + centers  # a Cholesky factor, twice, is not free, either
    return taken * centers + passes * sample.rows * per_feature < sample.rows * centers


@dataclass(frozen=True)
class Draw:
    """Who is in a sample: every row with the same chance, or besides with a chance of its own.

    A row has two numbers in [0, 1), which depend on the seed and on its place in the data alone:
    not on shards, threads or workers. It is in the sample if one of them is below its chance.

    Attributes
    ----------
    seed : int
        The seed.
    even : float
        The chance of every row, by its first number.
    slope : float
        The chance by the second one, for a leverage of 1.
    sketch : ndarray of shape (n, k) or None
        S such that ``|a'S|^2`` judges ``a'M^-1 a``, where M is a matrix like G + rho I. Without it,
        features are not looked at, and only the first number counts.
    """

    seed: int
    even: float
    slope: float = 0.0
    sketch: FloatArray | None = None

    def chances(self, leverage: FloatArray | None) -> float | FloatArray:
        """Return the chance of rows of some leverage to be in the sample."""
        if leverage is None:
            return self.even
        return 1.0 - (1.0 - self.even) * (1.0 - np.minimum(self.slope * leverage, 1.0))

    def taken(self, rows: IntArray, leverage: FloatArray | None) -> IntArray:
        """Return which rows, by their places in the data, are in the sample."""
        found = uniform_numbers(rows, 2 * self.seed) < self.even
        if leverage is not None:
            found |= uniform_numbers(rows, 2 * self.seed + 1) < self.slope * leverage
        return found


def uniform_numbers(rows: IntArray, seed: int) -> FloatArray:
    """Return a number in [0, 1) for each row: SplitMix64 of its place and the seed."""
    z = rows.astype(np.uint64) + np.uint64((seed * 0xD1342543DE82EF95 + 1) % 2**64)
    z = z * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(11)).astype(float) * 2.0**-53


def leverages(A: FloatArray, sketch: FloatArray, weights: FloatArray | None) -> FloatArray:
    """Return how much of some direction each row has to itself, from 0 to 1, judged by a sketch."""
    B = (A @ sketch.astype(A.dtype)).astype(float)
    found = np.einsum("ij,ij->i", B, B)
    return np.minimum(found if weights is None else found * weights, 1.0)


def slope_for(share: float, leverage: FloatArray) -> float:
    """Return the slope for which rows like these are drawn by that share, by their leverage."""
    low, high = 0.0, 1.0 / max(float(leverage.min()), 1e-12)
    for _ in range(100):
        slope = (low + high) / 2
        if np.minimum(slope * leverage, 1.0).mean() < share:
            low = slope
        else:
            high = slope
    return high


@dataclass
class Picked:
    """Rows of a sample, in parts, and what the pass that drew them has added up.

    Attributes
    ----------
    X : list of Block
        The rows; a part of them has one fold part.
    counts : list of ndarray
        How many rows each stands for: its weight over its chance.
    fold_parts : list of int
        The fold part of each part.
    Aty : ndarray of shape (fold parts, n, K)
        A' Omega y over all rows, if features were looked at.
    trace : ndarray of shape (fold parts,)
        The trace of A' Omega A over all rows, likewise.
    """

    Aty: FloatArray
    trace: FloatArray
    X: list[Block] = field(default_factory=list)
    counts: list[FloatArray] = field(default_factory=list)
    codes: list[IntArray] = field(default_factory=list)
    fold_parts: list[int] = field(default_factory=list)

    @property
    def n_rows(self) -> int:
        """How many rows were picked."""
        return sum(map(len, self.counts))

    def add(self, other: Picked) -> Picked:
        """Return both, in this order."""
        return Picked(
            self.Aty + other.Aty,
            self.trace + other.trace,
            self.X + other.X,
            self.counts + other.counts,
            self.codes + other.codes,
            self.fold_parts + other.fold_parts,
        )

    def split(self, every: int) -> tuple[Picked, Picked]:
        """Return the rows but for every so many-th, and those."""
        kept, held = Picked(self.Aty, self.trace), Picked(self.Aty, self.trace)
        first = 0
        parts = zip(self.X, self.counts, self.codes, self.fold_parts, strict=True)
        for X, counts, codes, fold_part in parts:
            apart = (first + np.arange(len(counts))) % every == 0
            kept.append(X[~apart], counts[~apart], codes[~apart], fold_part)
            held.append(X[apart], counts[apart], codes[apart], fold_part)
            first += len(counts)
        return kept, held

    def in_one_fold_part(self) -> Picked:
        """Return the same rows, all in one fold part; their sums do not count."""
        fold_parts = [0] * len(self.X)
        return Picked(self.Aty[:1], self.trace[:1], self.X, self.counts, self.codes, fold_parts)

    def append(self, X: Block, counts: FloatArray, codes: IntArray, fold_part: int) -> None:
        """Add a part, if there are rows in it."""
        if len(counts):
            self.X.append(X)
            self.counts.append(counts)
            self.codes.append(codes)
            self.fold_parts.append(fold_part)


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
