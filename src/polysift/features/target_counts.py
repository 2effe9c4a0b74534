"""How often each level of a category occurs in each class and fold: what labels say of levels.

A plain fit divides the rows into folds by a hash of their content. So the survey counts levels by
class and fold at once (``TargetCounts``), and what it keeps is bounded, since levels are, and does
not depend on the order of the rows.

The folds of a search or a calibration are known when all labels are. The survey of one keeps the
level of each row beside its label, in two bytes or fewer (``RowLevels``); they are counted when
folds are dealt, and no row is read again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from polysift.data.kinds import MAX_COUNTED_LEVELS
from polysift.data.labels import Encoding, union_of_labels
from polysift.features.centers import Words
from polysift.runtime.types import BoolArray, FloatArray, IntArray

HASHED_FOLDS = 5
"""The folds into which rows are divided that are in no test part, or of a plain fit."""

LEVEL_BYTES_PER_ROW = 2
"""The most bytes that ``RowLevels`` take per row and category."""


def hashed_folds(hashes: Words) -> IntArray:
    """Return the fold of each row, by the hash of its content."""
    return np.asarray((hashes % np.uint64(HASHED_FOLDS)).astype(np.int64))


def find_levels(values: FloatArray, levels: FloatArray) -> tuple[IntArray, BoolArray]:
    """Return the position of each value among ascending levels, and whether it is one of them."""
    if not len(levels):
        return np.zeros(len(values), dtype=np.int64), np.zeros(len(values), dtype=bool)
    at = np.minimum(np.searchsorted(levels, values), len(levels) - 1)
    return at, np.asarray(levels[at] == values)


@dataclass(frozen=True)
class TargetCounts:
    """The weights of rows by level, label and hashed fold.

    Attributes
    ----------
    labels : ndarray of shape (K,)
        The labels, ascending.
    levels : dict of int to ndarray of shape (L,)
        The levels of each category, ascending; of very many, those with the smallest hashes.
    weights : dict of int to CSR array of shape (L, K * HASHED_FOLDS)
        The weight of the rows of each level, by label and, within a label, by fold.
    """

    labels: np.ndarray[Any, Any]
    levels: dict[int, FloatArray]
    weights: dict[int, sp.csr_array]

    def merge(self, other: TargetCounts) -> TargetCounts:
        """Return the counts of both parts together."""
        labels = union_of_labels([self.labels, other.labels])
        parts = self._among(labels), other._among(labels)
        levels, weights = {}, {}
        for j, own in self.levels.items():
            union = np.unique(np.concatenate([own, other.levels[j]]))[:MAX_COUNTED_LEVELS]
            one, two = (
                _in_rows(part[j], found, union)
                for part, found in zip(parts, (own, other.levels[j]), strict=True)
            )
            levels[j], weights[j] = union, one + two
        return TargetCounts(labels, levels, weights)

    def _among(self, labels: np.ndarray[Any, Any]) -> dict[int, sp.csr_array]:
        """Return the weights with columns for all these labels."""
        if len(labels) == len(self.labels):
            return self.weights
        first = np.searchsorted(labels, self.labels) * HASHED_FOLDS
        columns = (first[:, np.newaxis] + np.arange(HASHED_FOLDS)).reshape(-1)
        width = len(labels) * HASHED_FOLDS
        return {
            j: sp.csr_array((w.data, columns[w.indices], w.indptr), (w.shape[0], width))
            for j, w in self.weights.items()
        }

    def sums(self, column: int, encoding: Encoding) -> FloatArray:
        """Return the weights of a column by fold, level and class, (folds, L, classes)."""
        dense = self.weights[column].toarray().reshape(-1, len(self.labels), HASHED_FOLDS)
        numbers = encoding.numbers[np.searchsorted(encoding.labels, self.labels)]
        known = np.flatnonzero(numbers >= 0)
        sums = np.zeros((HASHED_FOLDS, len(dense), len(encoding.classes)))
        sums[:, :, numbers[known]] = dense[:, known].transpose(2, 0, 1)
        return sums / encoding.unit


def _in_rows(weights: sp.csr_array, levels: FloatArray, union: FloatArray) -> sp.csr_array:
    """Return the weights of ascending levels as rows of those of a union, which has its bounds."""
    kept = int(np.searchsorted(levels, union[-1:], side="right").sum())
    counts = np.zeros(len(union) + 1, dtype=weights.indptr.dtype)
    counts[1 + np.searchsorted(union, levels[:kept])] = np.diff(weights.indptr[: kept + 1])
    end = weights.indptr[kept]
    within = weights.data[:end], weights.indices[:end], np.cumsum(counts, dtype=counts.dtype)
    return sp.csr_array(within, (len(union), weights.shape[1]))


def count_targets(
    rows: FloatArray,
    weights: FloatArray,
    levels: Mapping[int, FloatArray],
    labels: np.ndarray[Any, Any],
    codes: IntArray,
    folds: IntArray,
) -> TargetCounts:
    """Count the levels of some rows by label and fold.

    Parameters
    ----------
    rows : ndarray of shape (m, d)
        The rows.
    weights : ndarray of shape (m,)
        Their weights, all positive.
    levels : mapping of int to ndarray
        The levels of each category.
    labels : ndarray
        The labels.
    codes : ndarray of int of shape (m,)
        The position of each row's label among them.
    folds : ndarray of int of shape (m,)
        The fold of each row.
    """
    cells = codes.astype(np.int64) * HASHED_FOLDS + folds
    counted = {}
    for j, own in levels.items():
        at, known = find_levels(rows[:, j], own)
        shape = len(own), len(labels) * HASHED_FOLDS
        counted[j] = sp.csr_array((weights[known], (at[known], cells[known])), shape)
        counted[j].sum_duplicates()
    return TargetCounts(labels, dict(levels), counted)


@dataclass(frozen=True)
class RowLevels:
    """The levels of the rows of a shard.

    Attributes
    ----------
    folds : ndarray of uint8 of shape (m,)
        The hashed fold of each row.
    levels : dict of int to ndarray of shape (L,)
        The levels of each category, ascending.
    codes : dict of int to ndarray of uint8 or uint16 of shape (m,)
        The position of each row's level among them, L where it is none.
    """

    folds: np.ndarray[Any, np.dtype[np.uint8]]
    levels: dict[int, FloatArray]
    codes: dict[int, np.ndarray[Any, Any]]


def row_levels(rows: FloatArray, levels: Mapping[int, FloatArray], hashes: Words) -> RowLevels:
    """Return the levels of the rows of a shard, of which there are at most 2^16."""
    codes = {}
    for j, own in levels.items():
        at, known = find_levels(rows[:, j], own)
        # A row without a level leaves one level fewer for the others, so that L has room.
        found = np.where(known, at, len(own))
        codes[j] = found.astype(np.min_scalar_type(int(found.max(initial=0))))
    return RowLevels(hashed_folds(hashes).astype(np.uint8), dict(levels), codes)


def sums_by_fold(
    parts: Sequence[RowLevels],
    column: int,
    levels: FloatArray,
    folds: IntArray,
    codes: IntArray,
    weights: FloatArray | None,
    shape: tuple[int, int],
) -> FloatArray:
    """Return the weights of a category by fold, level and class, (folds, L, classes).

    Parameters
    ----------
    parts : sequence of RowLevels
        The levels of all rows.
    column : int
        The number of the column.
    levels : ndarray of shape (L,)
        The levels that are counted, ascending.
    folds, codes : ndarray of int of shape (m,)
        The fold and the class of each row.
    weights : ndarray of shape (m,) or None
        The weights of the rows.
    shape : tuple of int
        The numbers of folds and classes.
    """
    n_folds, K = shape
    sums, start = np.zeros(n_folds * len(levels) * K), 0
    for part in parts:
        span = slice(start, start + len(part.folds))
        start = span.stop
        own, given = part.levels[column], part.codes[column]
        at, known = find_levels(own, levels)
        there = np.append(known, False)[given]
        w = np.ones(len(given)) if weights is None else weights[span]
        there &= w > 0
        of_level = np.append(at, 0)[given[there]]
        keys = (folds[span][there] * len(levels) + of_level) * K + codes[span][there]
        np.add.at(sums, keys, w[there])
    return sums.reshape(n_folds, len(levels), K)
