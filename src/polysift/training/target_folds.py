"""Rows whose categories of many levels are told apart by fold, so that labels can stand for them.

A row is encoded by the labels of rows in other folds (``features.level_columns.target_column``):
here the level of such a category is replaced by a code of the level and the row's fold.
The folds are those of a search or a calibration, so that the rows of a fold are encoded, and
scored, without their labels. A plain fit divides the rows by a hash of their content, which
depends neither on their order nor on repetition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from polysift.data.source import COPIED_ATTRIBUTES, DataSource
from polysift.features.centers import hash_rows
from polysift.features.level_columns import fold_codes
from polysift.features.target_counts import HASHED_FOLDS, hashed_folds, sums_by_fold
from polysift.runtime.parallel import Span
from polysift.runtime.types import FloatArray, IntArray
from polysift.training.folds import Round
from polysift.training.preparation import Prepared


class FoldedSource(DataSource):
    """A source whose categories of many levels are told apart by the fold of the row.

    Parameters
    ----------
    source : DataSource
        The rows.
    levels : mapping of int to ndarray
        The columns that are told apart, and their levels, ascending.
    folds : ndarray of shape (m,) or None
        The fold of each row, as ``joined_folds`` has it; None leaves all to the hash.
    n_given : int
        The number of folds that are given.
    seed : int
        The seed of the hash.
    """

    def __init__(
        self,
        source: DataSource,
        levels: Mapping[int, FloatArray],
        folds: IntArray | None,
        n_given: int,
        seed: int,
    ) -> None:
        self._source, self._levels, self._seed = source, dict(levels), seed
        self._folds, self._n_given = folds, n_given
        self._replaced: set[Span] = set()
        self._n_shards = len(source.shards())
        for name in COPIED_ATTRIBUTES:
            setattr(self, name, getattr(source, name))

    def stream(self, spans: Iterable[Span]) -> Iterator[Any]:
        """Yield each span with its part."""
        spans = list(spans)
        yield from zip(spans, self._source.stream(spans), strict=True)

    def rows(self, part: Any) -> FloatArray:
        """Return the rows of a part, with the levels of their folds."""
        (start, stop), inner = part
        if len(self._replaced) == self._n_shards:
            return self._source.rows(inner)
        block = self.coded(self._source.rows(inner), slice(start, stop))
        if self._source.replace((start, stop), block):
            self._replaced.add((start, stop))  # after one pass, rows are stored as they are here
        return block

    def coded(self, rows: FloatArray, numbers: slice | IntArray) -> FloatArray:
        """Return a copy of rows, by their numbers, with the levels of their folds."""
        block = np.array(rows, dtype=float)
        folds = hashed_folds(hash_rows(block, self._seed))
        if self._folds is not None:
            folds = joined_folds(self._folds[numbers], self._n_given, folds)
        for column, levels in self._levels.items():
            block[:, column] = fold_codes(block[:, column], levels, folds)
        return block

    def labels(self, part: Any) -> np.ndarray[Any, Any]:
        """Return the labels of a part."""
        return self._source.labels(part[1])

    def weights(self, part: Any) -> FloatArray | None:
        """Return the weights of a part."""
        return self._source.weights(part[1])

    def select(self, names: Sequence[str]) -> DataSource:
        """Refuse: the columns are chosen before."""
        raise TypeError("columns are selected before folds are told apart")

    def cut(self, spans: list[Span]) -> DataSource:
        """Return the rows of adjacent shards as a source of their own."""
        folds = None if self._folds is None else self._folds[spans[0][0] : spans[-1][1]]
        inner = self._source.cut(spans)
        return FoldedSource(inner, self._levels, folds, self._n_given, self._seed)

    def shards(self) -> list[Span]:
        """Return the shards of the rows."""
        return self._source.shards()

    def place(self, row: int) -> str:
        """Return the label of a row in messages."""
        return self._source.place(row)


def joined_folds(given: IntArray, n_given: int, hashed: IntArray) -> IntArray:
    """Return the fold of each row: the given one, or for a row in none of these that of its hash.

    Hashed folds are numbered from ``n_given`` on.
    """
    return np.where((given >= 0) & (given < n_given), given, n_given + hashed)


def with_targets(prepared: Prepared, folds: Round | None, seed: int) -> Prepared:
    """Return what was prepared with the counts of the levels that labels stand for, and their rows.

    The survey has counted them by hashed folds, or has kept the levels of the rows where ``folds``
    are given.
    """
    found = prepared.found
    columns, data = found.columns, prepared.data
    counted = replace(found, targets=None, row_levels=[])  # what they say is in the columns then
    if columns is None or not columns.to_encode:
        return replace(prepared, found=counted)
    levels = {j: found.levels[j].levels for j in columns.to_encode}
    if folds is None:
        assert found.targets is not None
        assert data.encoding is not None
        sums = {j: found.targets.sums(j, data.encoding) for j in levels}
        source = FoldedSource(data.source, levels, None, 0, seed)
    else:
        sums = _sums_of_folds(prepared, folds, levels)
        source = FoldedSource(data.source, levels, folds.fold_parts, folds.n_splits, seed)
    counted = replace(counted, columns=replace(columns, encoded=sums))
    sample = prepared.sample
    if sample is not None:
        sample = replace(sample, rows=source.coded(sample.rows, sample.numbers))
    return replace(prepared, data=replace(data, source=source), found=counted, sample=sample)


def _sums_of_folds(
    prepared: Prepared, folds: Round, levels: Mapping[int, FloatArray]
) -> dict[int, FloatArray]:
    """Return the weights of levels by fold and class, from the levels of the rows."""
    parts, data = prepared.found.row_levels, prepared.data
    hashed = np.concatenate([part.folds for part in parts]).astype(np.int64)
    of_rows = joined_folds(folds.fold_parts, folds.n_splits, hashed)
    codes, shape = data.codes.astype(np.int64), (folds.n_splits + HASHED_FOLDS, data.n_classes)
    return {
        j: sums_by_fold(parts, j, own, of_rows, codes, prepared.weights, shape)
        for j, own in levels.items()
    }
