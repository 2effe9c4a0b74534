"""Categories as coordinates: each level has a row of a table.

Up to some number of levels these are centred one-hot coordinates. Of more levels, a level's row is
what its labels say, learned from other rows than the one that is encoded (cross-fitted), and drawn
towards the mean of all (smoothed); or, where there are no labels, its hash chooses the row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from polysift.data.kinds import MISSING_WORDS, levels_of, spellings
from polysift.features.levels import LevelCounts
from polysift.features.scalers import ML_DOMAIN, ONNX_DOUBLE, OnnxGraph
from polysift.features.scaling_loops import ScalingLoops
from polysift.runtime.arrays import require, required_array
from polysift.runtime.types import FloatArray, IntArray

MAX_SELF_KERNEL = 16.0
"""The largest kappa(a, a) of a column: rare levels would swamp the powers of the kernel's sum."""

MIN_LEVEL_ROWS = 10.0
"""Levels that occur less often are joined to one."""

RARE, UNKNOWN, MISSING = "(rare)", "(unknown)", "(missing)"
"""The words of the rare levels together, of levels that are not known, and of no value at all."""

UNKNOWN_LEVEL, FIRST_CODE = -1.0, -2.0
"""Values in the place of a level: of one that is not counted, and the first that stands for a level
and a fold; the others follow downwards."""


@dataclass(frozen=True)
class LevelColumn:
    """A category as a table of coordinates.

    Attributes
    ----------
    column : int
        The number of the column.
    levels : ndarray of shape (L,)
        The levels, ascending.
    words : list of str
        Their words.
    codes : ndarray of int of shape (L,)
        The row of each level in the table.
    table : ndarray of shape (R + 1, width)
        The coordinates; the last row, for levels that are not known, is zero.
    buckets : int
        If not 0, the row is the level modulo this number, whatever ``levels`` are.
    """

    column: int
    levels: FloatArray
    words: list[str]
    codes: IntArray
    table: FloatArray
    buckets: int = 0

    @property
    def width(self) -> int:
        """The number of coordinates."""
        return int(self.table.shape[1])

    def rows(self, values: FloatArray) -> IntArray:
        """Return the row of the table of each value; the last one for what is not known."""
        unknown = len(self.table) - 1
        if self.buckets:
            missing = np.isnan(values)
            found = np.where(missing, 0.0, values).astype(np.int64) % self.buckets
            return np.where(missing, unknown, found)
        if not len(self.levels):
            return np.full(len(values), unknown)
        at = np.minimum(np.searchsorted(self.levels, values), len(self.levels) - 1)
        return np.where(self.levels[at] == values, self.codes[at], unknown)

    def rows_compiled(self, loops: ScalingLoops, block: FloatArray, out: IntArray) -> None:
        """Write the row of the table of each row of a block into ``out``, by a compiled loop."""
        if self.buckets:
            out[:] = self.rows(block[:, self.column])
            return
        first, unknown = self._first_row, len(self.table) - 1
        loops.find_rows(
            block, self.column, self.levels, self.codes, unknown, first, FIRST_CODE, out
        )

    @property
    def _first_row(self) -> int:
        """The row of the table that code 0 stands for."""
        return 0

    @property
    def names(self) -> list[str]:
        """The words of the rows of the table: of a level, of rare ones together, of unknown ones.

        One more word at the end is that of a missing value (``named_rows``).
        """
        names = [RARE] * (len(self.table) - 1)
        counts = np.bincount(self.codes, minlength=len(names))
        for word, code in zip(self.words, self.codes, strict=True):
            if counts[code] == 1:
                names[code] = word
        return [*names, UNKNOWN, MISSING]

    def named_rows(self, values: FloatArray) -> IntArray:
        """Return the position of each value's word among ``names``."""
        return np.where(np.isnan(values), len(self.table), self.rows(values))

    def known(self, values: FloatArray) -> Any:
        """Return which values have a level of the training rows."""
        return self.rows(values) < len(self.table) - 1

    def fitted(self) -> LevelColumn:
        """Return the column as predictions use it."""
        return self

    def words_to_onnx(self, graph: OnnxGraph, words: str) -> str:
        """Add the nodes that read words as rows of the table, float64; NaN for a missing word.

        A truth value has a key for each of its spellings, and a missing word one for up to two
        blanks on either side: ONNX cannot take off white space, as ``data.kinds.is_missing`` does.
        """
        if self.buckets:
            raise ValueError(
                f"Column {self.column} cannot be exported: its levels are hashed, and ONNX has no "
                "such hash. Fit a classifier, whose labels stand for the levels."
            )
        blanks = [" " * count for count in range(3)]
        padded = (f"{a}{word}{b}" for word in sorted(MISSING_WORDS) for a in blanks for b in blanks)
        rows = dict.fromkeys(padded, np.nan)
        for word, code in zip(self.words, self.codes.tolist(), strict=True):
            rows |= dict.fromkeys(spellings(word), float(code))
        found = graph.op(
            "LabelEncoder",
            words,
            domain=ML_DOMAIN,
            keys_strings=list(rows),
            values_floats=list(rows.values()),  # exact as float32: there are fewer than 2^24
            default_float=float(len(self.table) - 1),
        )
        return graph.op("Cast", found, to=ONNX_DOUBLE)

    def to_onnx(self, graph: OnnxGraph, rows: str) -> str:
        """Add the node that looks up rows of the table, given as integers of shape (rows,)."""
        return graph.op("Gather", graph.constant("levels", self.table), rows)

    def validate(self, d: int) -> None:
        """Raise an ``InvalidFieldError`` unless the fields make a column of a table."""
        own = vars(self)
        require(type(self.column) is int and 0 <= self.column < d, "a category must be a feature")
        levels = required_array(own, "levels", "f", (None,))
        codes = required_array(own, "codes", "i", levels.shape)
        table = required_array(own, "table", "f", (None, None))
        require(len(table) > 0 and not table[-1].any(), "an unknown level must be at zero")
        within = ((codes >= 0) & (codes < len(table) - 1)).all()
        require(within, "the codes of scaler_ must be within bounds")
        hashed = (len(levels), self.buckets) == (0, len(table) - 1)
        whole = type(self.buckets) is int and (self.buckets == 0 or hashed)
        require(whole, "the buckets of scaler_ must be the rows of its table")
        words: Any = self.words  # as it was read, which may be anything
        text = isinstance(words, list) and all(isinstance(word, str) for word in words)
        require(text and len(words) == len(levels), "the words of scaler_ must be text")
        require((levels[1:] > levels[:-1]).all(), "the levels of scaler_ must ascend")
        own_levels = np.array_equal(levels, levels_of(self.words))
        require(own_levels, "the levels of scaler_ must be those of its words")


@dataclass(frozen=True)
class CrossFittedColumn(LevelColumn):
    """A category as the rows of a fit see it: a level's row depends on the fold of the row too.

    Its table has the rows of ``plain``, which is what predictions use, and before them one for each
    fold and level. A negative value names one of these (``fold_codes``).
    """

    plain: LevelColumn = field(kw_only=True)

    @property
    def _first_row(self) -> int:
        """The row of the table that code 0 of ``plain`` stands for."""
        return len(self.table) - len(self.plain.table)

    def rows(self, values: FloatArray) -> IntArray:
        """Return the row of each value, whether of a fold or, as that of a center, of none."""
        folded = values <= FIRST_CODE
        if folded.all():
            return (FIRST_CODE - values).astype(np.int64)
        found = self._first_row + self.plain.rows(values)
        found[folded] = (FIRST_CODE - values[folded]).astype(np.int64)
        return found

    def fitted(self) -> LevelColumn:
        """Return the column as predictions use it."""
        return self.plain


def fold_codes(values: FloatArray, levels: FloatArray, folds: IntArray) -> FloatArray:
    """Return negative numbers that stand for the level and the fold of each row.

    A missing value stays missing; a level that is not among ``levels`` is ``UNKNOWN_LEVEL``.
    """
    at = np.minimum(np.searchsorted(levels, values), len(levels) - 1)
    codes = np.where(levels[at] == values, FIRST_CODE - (folds * len(levels) + at), UNKNOWN_LEVEL)
    return np.where(np.isnan(values), np.nan, codes)


def one_hot_column(column: int, found: LevelCounts, whole: bool, scale: float) -> LevelColumn:
    """Return centred one-hot coordinates ``(1[a = level] - p_level) / sqrt(1 - sum p^2)``.

    Their mean over the rows is zero and that of kappa(a, a) is one, but for levels whose own would
    be larger than ``MAX_SELF_KERNEL``; ``scale`` multiplies them. Two levels need one coordinate.
    """
    counts = found.counts(whole)
    rare = counts < MIN_LEVEL_ROWS
    codes = np.arange(len(counts))
    if np.count_nonzero(rare) > 1:
        codes = np.cumsum(~rare) - 1
        codes[rare] = int(codes.max()) + 1
    weights = np.bincount(codes, found.weights)
    p = weights / weights.sum()
    spread = 1.0 - float(p @ p)
    R = len(p)
    if R < 2 or spread <= 0.0:
        return LevelColumn(column, found.levels, found.words, codes, np.zeros((R + 1, 0)))
    Z = (np.eye(R) - p) / np.sqrt(spread)
    if R == 2:  # the same inner products in one coordinate
        Z = np.array([[p[1]], [-p[0]]]) / np.sqrt(p[0] * p[1])
    own = np.einsum("ij,ij->i", Z, Z)
    Z *= np.sqrt(np.minimum(1.0, MAX_SELF_KERNEL / np.maximum(own, 1e-300)))[:, np.newaxis]
    table = np.zeros((R + 1, Z.shape[1]))
    table[:-1] = scale * Z
    return LevelColumn(column, found.levels, found.words, codes, table)


def hashed_column(column: int, found: LevelCounts, buckets: int, scale: float) -> LevelColumn:
    """Return one-hot coordinates of the levels modulo a number, for want of labels."""
    codes = found.levels.astype(np.int64) % buckets
    weights = np.bincount(codes, found.weights, buckets)
    p = weights / weights.sum()
    Z = (np.eye(buckets) - p) / np.sqrt(1.0 - float(p @ p))
    own = np.einsum("ij,ij->i", Z, Z)
    Z *= np.sqrt(np.minimum(1.0, MAX_SELF_KERNEL / own))[:, np.newaxis]
    table = np.concatenate([scale * Z, np.zeros((1, buckets))])
    return LevelColumn(column, np.empty(0), [], np.empty(0, dtype=np.int64), table, buckets)


def target_column(
    column: int, found: LevelCounts, sums: FloatArray, scale: float
) -> CrossFittedColumn:
    """Return a category whose coordinates are the shares of the classes at each level.

    A row is encoded by the labels of the rows of other folds. The share of a level is drawn to that
    of all rows, the more the fewer rows it has: by the ratio of the variance within levels to that
    between them.

    Parameters
    ----------
    column : int
        The number of the column.
    found : LevelCounts
        Its levels.
    sums : ndarray of shape (folds, L, K)
        The weights of its levels by fold and class.
    scale : float
        What multiplies the coordinates.
    """
    levels, L = found.levels, len(found.levels)
    total = sums.sum(axis=0)
    prior = total.sum(axis=0) / total.sum()
    smoothing = _smoothing(total, prior)

    def shares(counts: FloatArray) -> FloatArray:
        n = counts.sum(axis=-1, keepdims=True)
        return (counts + smoothing * prior) / (n + smoothing)

    columns = slice(1, None) if len(prior) == 2 else slice(None)
    plain = shares(total)[:, columns]
    crossed = shares(total - sums)[..., columns]
    weights = total.sum(axis=1)
    mean = weights @ plain / weights.sum()
    deviation = np.sqrt(weights @ (plain - mean) ** 2 / weights.sum())
    K = plain.shape[1]
    factor = scale / np.sqrt(K)

    def coordinates(values: FloatArray) -> FloatArray:
        z = (values - mean) / np.where(deviation > 1e-12, deviation, np.inf)
        return factor * np.clip(z, -np.sqrt(MAX_SELF_KERNEL), np.sqrt(MAX_SELF_KERNEL))

    zero = np.zeros((1, K))
    words = found.words
    end = LevelColumn(
        column, levels, words, np.arange(L), np.concatenate([coordinates(plain), zero])
    )
    table = np.concatenate([coordinates(crossed).reshape(-1, K), end.table])
    return CrossFittedColumn(column, levels, words, end.codes, table, plain=end)


def _smoothing(total: FloatArray, prior: FloatArray) -> float:
    """Return how many rows the mean of all counts for, as one number for all classes.

    The variance between levels is what is left of the spread of their shares when the part that is
    due to chance is taken off (the method of moments).
    """
    n = total.sum(axis=1)
    N, L = n.sum(), np.count_nonzero(n)
    if L < 2:
        return 1.0
    shares = total / np.where(n > 0, n, 1.0)[:, np.newaxis]
    within = float(np.sum(prior * (1.0 - prior)))
    spread = float(np.sum(n[:, np.newaxis] * (shares - prior) ** 2))
    between = (spread - (L - 1) * within) / max(N - float(n @ n) / N, 1e-300)
    if between <= within / N:
        return float(N)
    return float(np.clip(within / between, 1.0, N))


def level_column_from(stored: Any) -> LevelColumn:
    """Return the column of a dict of fields."""
    names = {"column", "levels", "words", "codes", "table", "buckets"}
    require(isinstance(stored, dict) and stored.keys() == names, "scaler_ has a wrong category")
    return LevelColumn(**stored)
