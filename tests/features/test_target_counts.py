"""Levels by label and fold, counted in the survey."""

from __future__ import annotations

import numpy as np
import pytest

from polysift.data.kinds import CATEGORY, NUMBER, ColumnType, levels_of
from polysift.data.labels import find_encoding, label_part
from polysift.data.source import ArraySource
from polysift.features import target_counts
from polysift.features.centers import hash_rows
from polysift.features.levels import count_levels
from polysift.features.survey import Questions, survey
from polysift.features.target_counts import (
    HASHED_FOLDS,
    count_targets,
    hashed_folds,
    row_levels,
    sums_by_fold,
)
from polysift.runtime.parallel import Pool

M, COLUMN = 900, 1
LABELS = np.array(["a", "bb", "ccc"])


@pytest.fixture
def table(rng):
    """Return rows whose second column is a category, their labels, weights and folds."""
    levels = levels_of(f"word {i}" for i in range(40))
    rows = np.column_stack([rng.normal(size=M), levels[rng.integers(0, 40, M)]])
    rows[:50, COLUMN] = np.nan
    weights = rng.integers(1, 4, M).astype(float)
    return rows, rng.integers(0, 3, M), weights, hashed_folds(hash_rows(rows, 0))


def counted(rows, codes, weights, folds):
    levels = {COLUMN: count_levels(rows[:, COLUMN], weights).levels}
    distinct, at = np.unique(codes, return_inverse=True)
    return count_targets(rows, weights, levels, LABELS[distinct], at, folds)


def by_definition(rows, codes, weights, folds, levels, n_folds=HASHED_FOLDS):
    sums = np.zeros((n_folds, len(levels), 3))
    for row, code, weight, fold in zip(rows, codes, weights, folds, strict=True):
        at = np.flatnonzero(levels == row[COLUMN])
        sums[fold, at, code] += weight
    return sums


def encoding_of(codes, weights):
    return find_encoding([label_part(LABELS[codes], weights)], None)


def test_against_the_definition(table):
    _, codes, weights, _ = table
    found = counted(*table)
    sums = found.sums(COLUMN, encoding_of(codes, weights))
    np.testing.assert_array_equal(sums, by_definition(*table, found.levels[COLUMN]))


@pytest.mark.parametrize("cap", [7, 40, 1000])
def test_parts_in_any_order_count_the_same(rng, table, monkeypatch, cap):
    """Also where some parts lack labels, and beyond the cap."""
    monkeypatch.setattr(target_counts, "MAX_COUNTED_LEVELS", cap)
    rows, codes, weights, folds = table
    codes[: M // 2] = np.minimum(codes[: M // 2], 1)
    encoding = encoding_of(codes, weights)
    whole = by_definition(rows, codes, weights, folds, np.unique(rows[50:, COLUMN])[:cap])
    for order in (np.arange(M), rng.permutation(M)):
        merged = None
        for at in np.array_split(order, 6):
            part = counted(rows[at], codes[at], weights[at], folds[at])
            merged = part if merged is None else merged.merge(part)
        assert len(merged.levels[COLUMN]) == min(cap, 40)
        np.testing.assert_array_equal(merged.sums(COLUMN, encoding), whole)


def test_relative_weights_are_in_units_of_their_mean(table):
    rows, codes, weights, folds = table
    halves = weights / 7
    sums = counted(rows, codes, halves, folds).sums(COLUMN, encoding_of(codes, halves))
    np.testing.assert_allclose(sums.sum(), halves[50:].sum() / halves.mean())


def test_levels_of_rows_are_counted_by_any_folds(rng, table):
    rows, codes, weights, _ = table
    weights[::5] = 0.0
    given = rng.integers(0, 4, M)
    present = weights > 0
    levels = count_levels(rows[present, COLUMN], weights[present]).levels
    parts = []
    for at in np.array_split(np.arange(M), 4):
        own = {COLUMN: count_levels(rows[at, COLUMN], np.ones(len(at))).levels}
        parts.append(row_levels(rows[at], own, hash_rows(rows[at], 0)))
        assert parts[-1].codes[COLUMN].dtype == np.uint8
    sums = sums_by_fold(parts, COLUMN, levels[:30], given, codes, weights, (4, 3))
    expected = by_definition(
        rows[present], codes[present], weights[present], given[present], levels[:30], 4
    )
    np.testing.assert_array_equal(sums, expected)


def test_codes_of_as_many_levels_as_rows_take_two_bytes():
    levels = np.arange(2.0**16)
    rows = levels[:, np.newaxis]
    for values in (levels, np.append(levels[:-1], np.nan)):
        own = {0: values[~np.isnan(values)]}
        found = row_levels(values[:, np.newaxis], own, hash_rows(rows, 0))
        assert found.codes[0].dtype == np.uint16
        assert found.codes[0][-1] == 2**16 - 1


def test_the_survey_counts_them_for_any_threads(table):
    rows, codes, weights, folds = table
    source = ArraySource(
        rows,
        y=LABELS[codes],
        sample_weight=weights,
        types=[ColumnType(NUMBER), ColumnType(CATEGORY)],
    )
    asked = Questions(True, False, False, "given", 1, 0, targets=True, row_levels=True)
    for threads in (1, 3):
        with Pool(threads) as pool:
            found = survey(source, asked, pool)
        encoding = find_encoding(found.labels, None)
        levels = found.levels[COLUMN].levels
        expected = by_definition(rows, codes, weights, folds, levels)
        np.testing.assert_array_equal(found.targets.levels[COLUMN], levels)
        np.testing.assert_array_equal(found.targets.sums(COLUMN, encoding), expected)
        again = sums_by_fold(
            found.row_levels, COLUMN, levels, folds, codes, weights, (HASHED_FOLDS, 3)
        )
        np.testing.assert_array_equal(again, expected)


def test_labels_of_other_types_in_other_parts_are_refused(table):
    rows, codes, weights, folds = table
    half = M // 2
    levels = {COLUMN: count_levels(rows[:, COLUMN], weights).levels}
    one, other = (
        count_targets(rows[at], weights[at], levels, labels, np.minimum(codes[at], 1), folds[at])
        for at, labels in (
            (slice(half), np.array(["a", "b"], dtype=object)),
            (slice(half, M), np.array([1, 2], dtype=object)),
        )
    )
    with pytest.raises(ValueError, match=r"mixes labels of different types \(int, str\)"):
        one.merge(other)
