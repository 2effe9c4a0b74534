"""The levels of categories, counted with a cap, and columns that number the rows.

Which levels are kept does not depend on the order of the rows, on threads or on files: beyond the
cap they are those with the smallest hashes, and a level is a hash. A level that is kept in the end
was kept in every part, so that its counts are exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from polysift.data.kinds import MAX_COUNTED_LEVELS, Words, kept_words
from polysift.features.centers import mix
from polysift.runtime.types import BoolArray, FloatArray, IntArray

MAX_SAMPLED_NUMBERS = 4096
"""The values of a column of whole numbers that are kept, to tell whether it numbers the rows."""

MIN_NUMBERED_ROWS = 50
"""With fewer rows, whole numbers that differ by chance are common."""

MAX_ROW_NUMBER_GAP = 50.0
"""A row number is at most so many times the number of rows: a table is drawn from a larger one."""

LEVELS_IN_HASH = 2.0**53


@dataclass(frozen=True)
class LevelCounts:
    """The levels of one column, ascending.

    Attributes
    ----------
    levels : ndarray of shape (L,)
        The levels.
    weights : ndarray of shape (L,)
        The weight of the rows of each.
    rows : ndarray of shape (L,)
        The number of rows of each.
    named : mapping of float to str, or None
        The words of these levels, and perhaps of others; None where they are not asked for.
    complete : bool
        Whether these are all levels of the column.
    present : float
        The weight of all rows that have a value, also of those whose level is not among these.
    """

    levels: FloatArray
    weights: FloatArray
    rows: IntArray
    named: Words | None = None
    complete: bool = True
    present: float = 0.0

    @property
    def distinct(self) -> float:
        """The number of levels of the column; beyond the cap, an estimate."""
        if self.complete:
            return float(len(self.levels))
        return (len(self.levels) - 1) / (self.levels[-1] / LEVELS_IN_HASH)

    @property
    def words(self) -> list[str]:
        """The words of the levels; empty where they are not asked for."""
        if self.named is None:
            return []
        return [self.named.get(level, "") for level in self.levels.tolist()]

    def counts(self, whole: bool) -> FloatArray:
        """Return how often each level occurs: by weight, if weights are multiplicities."""
        return self.weights if whole else self.rows.astype(float)

    def unseen_share(self, whole: bool) -> float:
        """Return the share of further rows, among those with a value, whose level is none of these.

        It is about the share of the rows whose level occurs once (Good and Turing), and of those
        whose level is beyond the cap.
        """
        known = float(self.weights[self.counts(whole) > 1].sum())
        return max(0.0, 1.0 - known / self.present) if self.present > 0 else 0.0

    def merge(self, other: LevelCounts) -> LevelCounts:
        """Return the levels of both parts together."""
        joined = np.concatenate([self.levels, other.levels])
        levels, at = np.unique(joined, return_inverse=True)
        weights = np.zeros(len(levels))
        rows = np.zeros(len(levels), dtype=np.int64)
        for part, where in ((self, at[: len(self.levels)]), (other, at[len(self.levels) :])):
            weights[where] += part.weights
            rows[where] += part.rows
        named = self.named
        if named is not None and other.named is not None and named is not other.named:
            named = kept_words(named, other.named)
        complete, present = self.complete and other.complete, self.present + other.present
        return LevelCounts(levels, weights, rows, named, complete, present).capped()

    def capped(self) -> LevelCounts:
        """Return the first levels, no more than are counted."""
        cap = MAX_COUNTED_LEVELS
        if len(self.levels) <= cap:
            return self
        first = LevelCounts(self.levels[:cap], self.weights[:cap], self.rows[:cap])
        return replace(first, named=self.named, complete=False, present=self.present)


def count_levels(
    values: FloatArray, weights: FloatArray, words: Words | None = None
) -> LevelCounts:
    """Count the levels of a block of one column, which have these words; missing values are not."""
    present = ~np.isnan(values)
    w = weights[present]
    total = float(w.sum())
    if (w == 1.0).all():  # sorting alone is several times faster
        levels, rows = np.unique(values[present], return_counts=True)
        totals = rows.astype(float)
    else:
        levels, at = np.unique(values[present], return_inverse=True)
        rows = np.bincount(at.reshape(-1), minlength=len(levels))
        totals = np.bincount(at.reshape(-1), w, len(levels))
    return LevelCounts(levels, totals, rows, words, present=total).capped()


@dataclass(frozen=True)
class WholeNumbers:
    """Which columns of a part may number its rows: whole numbers, no two of them alike.

    Attributes
    ----------
    possible : ndarray of bool of shape (d,)
        Whether a column may.
    values : list of ndarray
        Of each such column, the values with the smallest hashes; of another none.
    counts : list of ndarray
        How often each of them occurs.
    """

    possible: BoolArray
    values: list[FloatArray]
    counts: list[FloatArray]

    def merge(self, other: WholeNumbers) -> WholeNumbers:
        """Return those of both parts together."""
        possible = self.possible & other.possible
        values, counts = [], []
        for j, may in enumerate(possible):
            kept = np.empty(0), np.empty(0)
            if may:
                kept = _smallest_hashes(
                    np.append(self.values[j], other.values[j]),
                    np.append(self.counts[j], other.counts[j]),
                )
                possible[j] = bool((kept[1] <= 1).all())
            values.append(kept[0])
            counts.append(kept[1])
        return WholeNumbers(possible, values, counts)


def find_whole_numbers(block: FloatArray, weights: FloatArray, columns: BoolArray) -> WholeNumbers:
    """Return which of some columns of a block may number the rows.

    A row whose weight is a whole number counts so often, any other once.
    """
    possible, values, counts = columns.copy(), [], []
    times = np.where(weights == np.rint(weights), weights, 1.0)
    for j, may in enumerate(columns):
        kept = np.empty(0), np.empty(0)
        if may:
            column = np.asarray(block[:, j], dtype=float)
            possible[j] = _all_different(column[:64]) and _all_different(column)
            if possible[j]:
                kept = _smallest_hashes(column, times)
                possible[j] = bool((kept[1] <= 1).all())
        values.append(kept[0])
        counts.append(kept[1])
    return WholeNumbers(possible, values, counts)


def _all_different(column: FloatArray) -> bool:
    with np.errstate(invalid="ignore"):
        whole = bool((column == np.rint(column)).all())  # not where a value is missing
    return whole and len(np.unique(column)) == len(column)


def _smallest_hashes(values: FloatArray, counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the distinct values with the smallest hashes, and how often each occurs."""
    distinct, at = np.unique(values, return_inverse=True)
    totals = np.bincount(at.reshape(-1), counts, len(distinct))
    with np.errstate(over="ignore"):
        keys = mix((distinct + 0.0).view(np.uint64))
    order = np.sort(np.argsort(keys, kind="stable")[:MAX_SAMPLED_NUMBERS])
    return distinct[order], totals[order]


def numbers_the_rows(values: FloatArray, low: float, high: float, n_rows: int) -> bool:
    """Return whether values that are all different look like the numbers of rows.

    They are spread evenly from near 0 or 1 on, in a range that is not much longer than the number
    of rows: the rows may have been drawn from a larger table.
    """
    length = high - low + 1.0
    if n_rows < MIN_NUMBERED_ROWS or length > MAX_ROW_NUMBER_GAP * n_rows:
        return False
    gap = length / n_rows
    if not 0.0 <= low <= 1.0 + 20.0 * (gap - 1.0):
        return False
    ranks = (np.sort(values) - low + 0.5) / length
    even = (np.arange(len(ranks)) + 0.5) / len(ranks)
    # The statistic of Kolmogorov and Smirnov, at one error in a thousand.
    return bool(np.abs(ranks - even).max() <= 1.95 / np.sqrt(len(ranks)))
