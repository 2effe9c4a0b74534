"""Samples of the rows: which rows are drawn, when that pays, and the Gram matrix of those drawn.

A ``Sample`` says how many rows to draw, a ``Draw`` with which probabilities, and ``Picked`` holds
the rows that were drawn. ``sampling_pays`` compares the costs.

The Gram matrix of sampled rows is formed by ``add_gram``. A pass over shards adds up one matrix per
shard; with few rows these matrices would be most of the memory, and their sums most of the work. So
threads share one matrix, and each fills panels of its upper triangle. The borders of blocks and
panels depend on n alone, and each entry is summed in the order of the rows: the result does not
depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from polysift.runtime.parallel import Pool, Span, Workspace, block_spans
from polysift.runtime.types import Block, FloatArray, IntArray

FIRST_ROWS_PER_CENTER = 4
"""Rows per center of the first sample, which is uniform; one more per center is drawn to estimate
leverages on rows that are not in its Gram matrix."""

MIN_SECOND_ROWS_PER_CENTER, MAX_SECOND_ROWS_PER_CENTER = 8, 32
"""Bounds of the rows per center of the second sample, which is drawn by leverage."""

SECOND_SAMPLE_SHARE = 1 / 16
"""The share of all rows in the second sample, within these bounds."""

MIN_ROWS_PER_SAMPLED_ROW = 2
"""Sampling needs at least so many rows per row of both samples."""

SKETCH_DIRECTIONS = 8
"""Random directions by which the leverage of a row is estimated."""

FEATURE_COST = 10.0
DIMENSION_COST = 2.0
COLUMN_COST = 4.0
"""The cost of a feature in a pass over the rows, in multiply-adds of the Gram matrix: for itself,
for each column of X, and for each column of coefficients."""

PAPER_PASSES = 9.0
CONVERGED_PASSES = 60.0
"""Additional passes that a sampled Gram matrix causes: products, and more iterations."""

GRAM_BLOCK_ENTRIES = 2**23
MIN_GRAM_BLOCK_ROWS, MAX_GRAM_BLOCK_ROWS = 256, 4096
"""The features, rows times centers, of which ``add_gram`` receives a block, and its rows."""

GRAM_PANELS = 16
MIN_PANEL_COLUMNS, MAX_PANEL_COLUMNS = 64, 512
"""The panels of a Gram matrix that threads fill, and the columns of each."""

Features = Callable[[Block, FloatArray], None]
"""Writes the features of rows into an array."""


@dataclass(frozen=True)
class Sample:
    """The sizes of the two samples from which a Gram matrix is estimated.

    Attributes
    ----------
    rows : int
        The number of all rows.
    first, second : int
        The expected rows of the first, uniform sample, and of the second, drawn by leverage.
    seed : int
        The seed of both draws.
    """

    rows: int
    first: int
    second: int
    seed: int


def sample_of(rows: int, centers: int, seed: int) -> Sample | None:
    """Return the sizes of the samples; None if there are too few rows to sample."""
    least, most = MIN_SECOND_ROWS_PER_CENTER * centers, MAX_SECOND_ROWS_PER_CENTER * centers
    first, second = (
        FIRST_ROWS_PER_CENTER * centers,
        int(np.clip(SECOND_SAMPLE_SHARE * rows, least, most)),
    )
    enough = rows >= MIN_ROWS_PER_SAMPLED_ROW * (first + second)
    return Sample(rows, first, second, seed) if enough else None


def sampling_pays(
    sample: Sample, centers: int, features: int, columns: int, *, converged: bool
) -> bool:
    """Return whether a fit with a sampled Gram matrix is faster than with that of all rows.

    The answer depends on the sizes alone and not on this machine, so that the model does not
    depend on the machine.
    """
    per_feature = FEATURE_COST + DIMENSION_COST * features + COLUMN_COST * columns
    passes = CONVERGED_PASSES if converged else PAPER_PASSES
    drawn = sample.first + sample.second + centers  # with the cost of two Cholesky factors
    return drawn * centers + passes * sample.rows * per_feature < sample.rows * centers


@dataclass(frozen=True)
class Draw:
    """Which rows are sampled: uniformly, or in addition with a probability by leverage.

    Each row has two uniform numbers in [0, 1), which depend only on the seed and on its position in
    the data, not on shards, threads or workers. It is in the sample if the first is below ``even``,
    or the second below ``slope`` times its leverage.

    Attributes
    ----------
    seed : int
        The seed.
    even : float
        The probability of every row to be drawn by its first number.
    slope : float
        The probability to be drawn by the second number, per unit of leverage.
    sketch : ndarray of shape (n, k) or None
        S such that ``|a'S|^2`` estimates ``a'M^-1 a``, where M estimates G + rho I. None draws
        uniformly, without computing features.
    """

    seed: int
    even: float
    slope: float = 0.0
    sketch: FloatArray | None = None

    def probabilities(self, leverage: FloatArray | None) -> float | FloatArray:
        """Return the probabilities of rows with these leverages to be in the sample."""
        if leverage is None:
            return self.even
        return 1.0 - (1.0 - self.even) * (1.0 - np.minimum(self.slope * leverage, 1.0))

    def selected(self, rows: IntArray, leverage: FloatArray | None) -> IntArray:
        """Return a mask of the rows, given by their positions in the data, that are sampled."""
        found = uniform_numbers(rows, 2 * self.seed) < self.even
        if leverage is not None:
            found |= uniform_numbers(rows, 2 * self.seed + 1) < self.slope * leverage
        return found


def uniform_numbers(rows: IntArray, seed: int) -> FloatArray:
    """Return a number in [0, 1) for each row: SplitMix64 of its position and the seed."""
    z = rows.astype(np.uint64) + np.uint64((seed * 0xD1342543DE82EF95 + 1) % 2**64)
    z = z * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(11)).astype(float) * 2.0**-53


def leverages(A: FloatArray, sketch: FloatArray, weights: FloatArray | None) -> FloatArray:
    """Return the leverage of each row, from 0 to 1, as estimated by a sketch."""
    B = (A @ sketch.astype(A.dtype)).astype(float)
    found = np.einsum("ij,ij->i", B, B)
    return np.minimum(found if weights is None else found * weights, 1.0)


def slope_for(share: float, leverage: FloatArray) -> float:
    """Return the slope with which the expected share of rows with these leverages is drawn."""
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
    """The rows of a sample, in parts, and the sums of the pass that drew them.

    Attributes
    ----------
    X : list of Block
        The rows; all rows of a part are in the same fold part.
    counts : list of ndarray
        How many rows each row represents: its weight over its probability.
    codes : list of ndarray
        Their class numbers.
    fold_parts : list of int
        The fold part of each part.
    Aty : ndarray of shape (fold parts, n, K)
        A' Omega y over all rows, if the draw computes features; else zero.
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
        """The number of sampled rows."""
        return sum(map(len, self.counts))

    def add(self, other: Picked) -> Picked:
        """Return the concatenation of both, with the sums added."""
        return Picked(
            self.Aty + other.Aty,
            self.trace + other.trace,
            self.X + other.X,
            self.counts + other.counts,
            self.codes + other.codes,
            self.fold_parts + other.fold_parts,
        )

    def split(self, every: int) -> tuple[Picked, Picked]:
        """Return two samples: every ``every``-th row is in the second, all others in the first."""
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
        """Return the same rows as a single fold part; their sums are not meaningful."""
        fold_parts = [0] * len(self.X)
        return Picked(self.Aty[:1], self.trace[:1], self.X, self.counts, self.codes, fold_parts)

    def append(self, X: Block, counts: FloatArray, codes: IntArray, fold_part: int) -> None:
        """Append a part, if it has rows."""
        if len(counts):
            self.X.append(X)
            self.counts.append(counts)
            self.codes.append(codes)
            self.fold_parts.append(fold_part)


def panel_rows(n: int) -> int:
    """Return the rows of a block for ``add_gram``."""
    return int(np.clip(GRAM_BLOCK_ENTRIES // n, MIN_GRAM_BLOCK_ROWS, MAX_GRAM_BLOCK_ROWS))


def feature_blocks(
    features: Features, parts: list[Block], n: int, rows: int, pool: Pool
) -> Iterator[tuple[Span, FloatArray]]:
    """Yield the features of rows in blocks of ``rows`` rows, with the rows of each.

    All blocks share one array, which the caller may overwrite.
    """
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

    The entries of G below the diagonal are undefined afterwards.
    """
    n = len(G)
    A *= np.sqrt(counts)[:, np.newaxis]

    def fill(panel: Span) -> None:
        lo, hi = panel
        product = work.array("product", (hi - lo, n - lo), float)
        np.matmul(A[:, lo:hi].T, A[:, lo:], out=product)
        G[lo:hi, lo:] += product

    width = int(np.clip(-(-n // GRAM_PANELS), MIN_PANEL_COLUMNS, MAX_PANEL_COLUMNS))
    for _ in pool.map(fill, block_spans((0, n), width), work=len(A) * n):
        pass
