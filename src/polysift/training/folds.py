"""Splits of the rows for cross-validation, grouped so that they share passes over the data.

A round is a sequence of splits whose test parts do not overlap, and whose training parts are all
the other rows: k-fold cross-validation is one round, repeated k-fold one per repetition. The rows
of a round are divided into fold parts, one per test part and one for rows that are in no test part.
One pass computes the Gram matrix of each part, and those of all parts but one add up to that of a
training part.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit, check_cv

from polysift.data.labels import shown
from polysift.features.centers import Words
from polysift.runtime.types import FloatArray, IntArray

Split = tuple[IntArray, IntArray]

ROUNDED_WEIGHT = 1e-6
"""A weight that is no more than what rounding leaves of sums of weights."""


@dataclass(frozen=True)
class Round:
    """Splits that share the passes over the data.

    Attributes
    ----------
    fold_parts : ndarray of shape (m,)
        The split whose test part has the row; ``n_splits`` for a row in no test part, and -1 for a
        row that is not used.
    n_splits : int
        The number of splits.
    complete : bool
        Whether every row of positive weight is used.
    starts : ndarray of shape (m,) or None
        For a calibration of rows that repeat so often that no row is in a test part
        (``stratified_folds``): the weight of the rows before each one.
    """

    fold_parts: IntArray
    n_splits: int
    complete: bool
    starts: FloatArray | None = None

    @property
    def n_fold_parts(self) -> int:
        """The number of fold parts, including that of rows in no test part, if any."""
        return self.n_splits + bool((self.fold_parts == self.n_splits).any())

    def of_rows(self, numbers: IntArray) -> Round:
        """Return the round of some of the rows."""
        starts = None if self.starts is None else self.starts[numbers]
        return Round(self.fold_parts[numbers], self.n_splits, self.complete, starts)


def stratified_folds(codes: IntArray, weights: FloatArray | None, hashes: Words, k: int) -> Round:
    """Return k stratified folds of the rows of positive weight, as one round.

    The rows of each class are dealt out in the order of their hashes, and equal rows are dealt as
    one: a row of weight 2 and a row that is there twice give the same folds, in whatever order the
    rows come. Where rows repeat more than k times on average, they are draws from a few distinct
    ones, whole folds of which could not be predicted from the others. Then no row is in a test
    part: a model without one of many equal rows is nearly the model of all.
    """
    present = np.arange(len(codes)) if weights is None else np.flatnonzero(weights > 0)
    w = np.ones(len(present)) if weights is None else weights[present]
    order = np.lexsort((w, hashes[present], codes[present]))
    w, hashes, codes_in_order = w[order], hashes[present][order], codes[present][order]
    first = np.ones(len(order), dtype=bool)  # whether a row begins a run of equal ones
    first[1:] = (hashes[1:] != hashes[:-1]) | (codes_in_order[1:] != codes_in_order[:-1])
    fold_parts = np.full(len(codes), -1, dtype=np.int32)
    if w.sum() > k * np.count_nonzero(first):
        fold_parts[present] = 0
        starts = np.zeros(len(codes))
        starts[present[order]] = np.cumsum(w) - w
        return Round(fold_parts, 0, True, starts)
    fold_parts[present[order]] = (np.cumsum(first) - 1) % k
    return Round(fold_parts, k, True)


ScoredRows = tuple[FloatArray, IntArray, FloatArray | None, IntArray]
"""The scores of rows, their classes, weights and folds; -1 for a row that is in none."""


def scored_rows(
    round_: Round, scores: FloatArray, codes: IntArray, weights: FloatArray | None, k: int
) -> ScoredRows:
    """Return what a calibration learns from, and the folds to assess it by.

    Where no row is in a test part, k folds share the weight of each row, dealt out in units: a row
    of weight 3 is in three folds with a weight of 1, as three equal rows would be.
    """
    if round_.starts is None:
        held_out = round_.fold_parts < round_.n_splits
        return scores, codes, weights, np.where(held_out, round_.fold_parts, -1)
    w = np.ones(len(codes)) if weights is None else weights
    start = round_.starts[:, np.newaxis]
    stop, fold = start + w[:, np.newaxis], np.arange(k)

    def dealt(before: FloatArray) -> FloatArray:
        """Return how much of the weight before a point is in each fold."""
        return before // k + np.clip(before % k - fold, 0.0, 1.0)

    shares = dealt(stop) - dealt(start)
    rows, folds = np.nonzero((shares > ROUNDED_WEIGHT) & (w > 0)[:, np.newaxis])
    return scores[rows], codes[rows], shares[rows, folds], folds


def make_rounds(
    cv: Any,
    codes: IntArray,
    weights: FloatArray | None,
    classes: Any,
    *,
    groups: Any = None,
    seed: int = 0,
) -> list[Round]:
    """Return the rounds of cross-validation.

    Parameters
    ----------
    cv : int, float, splitter or iterable of (training rows, test rows)
        The number of stratified folds, the share of rows in a single validation part, or anything
        that scikit-learn accepts.
    codes : ndarray of shape (m,)
        The class of each row.
    weights : ndarray of shape (m,) or None
        The rows' weights; rows of weight zero are ignored.
    classes : ndarray
        The classes, for error messages.
    groups : array-like of shape (m,), optional
        The groups of the rows, for splitters that use them.
    seed : int
        The seed of a single validation part.
    """
    splits = list(_splits(cv, codes, weights, classes, groups, seed))
    if not splits:
        raise ValueError(f"cv={cv!r} yields no split.")
    present = np.ones(len(codes), dtype=bool) if weights is None else weights > 0
    for number, (train, test) in enumerate(splits):
        _check_split(number, train[present[train]], test[present[test]], codes, classes)
    return list(_rounds(splits, present))


def _splits(
    cv: Any, codes: IntArray, weights: FloatArray | None, classes: Any, groups: Any, seed: int
) -> Iterable[Split]:
    if isinstance(cv, bool | np.bool_ | str):
        raise ValueError(_invalid_cv(cv))
    rows = np.arange(len(codes))
    alone = rows[:0]
    if cv is None or isinstance(cv, Real):
        rows = rows if weights is None else np.flatnonzero(weights > 0)
        rows, alone = _apart(rows, codes)
        splitter = _splitter(5 if cv is None else cv, codes[rows], classes, seed)
    else:
        try:
            splitter = check_cv(cv, codes, classifier=True)
        except ValueError:
            raise ValueError(_invalid_cv(cv)) from None
    seen = np.maximum(codes[rows], 0)  # a row of weight zero may have no class
    try:
        pairs = list(splitter.split(np.empty((len(rows), 0)), seen, groups))
    except (TypeError, ValueError) as error:
        raise ValueError(f"cv={cv!r} cannot split these rows: {error}") from None
    m = len(rows)
    return (
        (np.append(rows[_rows(train, m)], alone), rows[_rows(test, m)]) for train, test in pairs
    )


def _apart(rows: IntArray, codes: IntArray) -> tuple[IntArray, IntArray]:
    """Return rows without those that are the only ones of their class, and these.

    A class can only be learned where its row is in every training part. Where fewer than two
    classes would be left, none is set apart, and the splitter says why it cannot be.
    """
    counts = np.bincount(codes[rows])
    alone = counts[codes[rows]] == 1
    if np.count_nonzero(counts > 1) < 2:
        return rows, rows[:0]
    return rows[~alone], rows[alone]


def _invalid_cv(cv: Any) -> str:
    return (
        "cv must be a number of folds (2 or more), the share of rows for one validation part "
        "(between 0 and 1), a scikit-learn splitter, or pairs of training and test rows; got "
        f"{cv!r}."
    )


def _splitter(cv: Any, codes: IntArray, classes: Any, seed: int) -> Any:
    """Return the splitter for a number of folds or the share of a validation part."""
    counts = np.bincount(codes, minlength=len(classes))
    counts = np.where(counts, counts, len(codes))  # a class of one row is in no test part
    rarest = int(counts.argmin())
    if isinstance(cv, int | np.integer):
        if cv < 2:
            raise ValueError(_invalid_cv(cv))
        if cv > len(codes):
            raise ValueError(
                f"cv={cv} folds need at least {cv} rows; got {len(codes)}. Set cv to "
                f"{len(codes)} or less."
            )
        if counts[rarest] < min(cv, 2) or counts.max() < cv:
            _refuse_rare(f"cv={cv} folds", classes, counts, rarest)
        return StratifiedKFold(int(cv))
    if not 0.0 < float(cv) < 1.0:
        raise ValueError(_invalid_cv(cv))
    if counts[rarest] < 2:
        _refuse_rare("A validation part", classes, counts, rarest)
    return StratifiedShuffleSplit(1, test_size=float(cv), random_state=seed % 2**32)


def _refuse_rare(what: str, classes: Any, counts: IntArray, rarest: int) -> None:
    raise ValueError(
        f"{what} cannot hold every class: class {shown(classes[rarest : rarest + 1])} has "
        f"{counts[rarest]} row(s) only. Lower cv, or join rare classes."
    )


def _rows(given: Any, m: int) -> IntArray:
    """Return row numbers, from row numbers or a mask."""
    rows = np.asarray(given)
    if rows.dtype == bool:
        rows = np.flatnonzero(rows)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or (len(rows) and not rows.min() >= 0):
        raise ValueError("cv must yield pairs of arrays of row numbers, training and test.")
    if len(rows) and rows.max() >= m:
        raise ValueError(f"cv names row {rows.max()}, but there are {m} rows, counted from 0.")
    if len(np.unique(rows)) < len(rows):
        raise ValueError("cv names a row twice in one part. Give it a sample_weight of 2 instead.")
    return rows


def _check_split(
    number: int, train: IntArray, test: IntArray, codes: IntArray, classes: Any
) -> None:
    counts = np.bincount(codes[train], minlength=len(classes))
    if len(test) == 0 or len(train) == 0:
        part = "test" if len(test) == 0 else "training"
        raise ValueError(f"The {part} part of split {number} of cv is empty.")
    if (counts == 0).any():
        missing = classes[counts == 0]
        has = f"holds one class only, {shown(classes[counts > 0])}"
        if np.count_nonzero(counts) > 1:
            has = f"lacks class {shown(missing[:1])}"
        raise ValueError(
            f"The training part of split {number} of cv {has}, so nothing can be learned about "
            "the other. Use stratified folds (cv=5), fewer folds, or shuffle the rows."
        )
    if np.intersect1d(train, test).size:
        raise ValueError(f"The training and test parts of split {number} of cv share rows.")


def _rounds(splits: list[Split], present: Any) -> Iterable[Round]:
    """Yield rounds of consecutive splits, each as long as possible."""
    fold_parts = np.empty(0, dtype=np.int32)  # -2 for a row that is in no test part yet
    count = 0
    for train, test in splits:
        both = np.zeros(len(present), dtype=bool)
        both[train] = both[test] = True
        if count and np.array_equal(both, fold_parts != -1) and (fold_parts[test] == -2).all():
            fold_parts[test] = count
            count += 1
            continue
        if count:
            yield _round(fold_parts, count, present)
        fold_parts = np.where(both, np.int32(-2), np.int32(-1))
        fold_parts[test] = 0
        count = 1
    yield _round(fold_parts, count, present)


def _round(fold_parts: IntArray, count: int, present: Any) -> Round:
    """Return the round of ``count`` splits with these test parts."""
    fold_parts[fold_parts == -2] = count
    complete = bool((fold_parts[present] >= 0).all())
    fold_parts[~present] = -1
    return Round(fold_parts, count, complete)
