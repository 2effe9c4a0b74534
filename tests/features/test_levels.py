"""Levels, what columns are found to be, and the coordinates of categories and numbers."""

from __future__ import annotations

import numpy as np
import pytest

from polysift.data.kinds import CATEGORY, NUMBER, ColumnType, level_of, levels_of
from polysift.data.source import ArraySource
from polysift.features import levels as levels_module
from polysift.features.columns import find_columns
from polysift.features.level_columns import (
    MAX_SELF_KERNEL,
    hashed_column,
    one_hot_column,
    target_column,
)
from polysift.features.levels import count_levels, numbers_the_rows
from polysift.features.survey import Questions, survey
from polysift.features.table_learning import learn_table, restricted
from polysift.runtime.parallel import Pool

QUESTIONS = Questions(False, False, True, "given", 1, 0)


def words(count):
    return [f"word {i}" for i in range(count)]


def column(rng, count, m, p=None):
    """Return rows of levels of so many words, and the words."""
    named = {level_of(word): word for word in words(count)}
    return rng.choice(list(named), m, p=p), named


class TestCounts:
    def test_against_a_dictionary(self, rng):
        values, named = column(rng, 30, 500)
        values[:7] = np.nan
        w = rng.integers(1, 4, 500).astype(float)
        found = count_levels(values, w, named)
        for level, weight, rows, word in zip(
            found.levels, found.weights, found.rows, found.words, strict=True
        ):
            mine = values == level
            assert weight == w[mine].sum() and rows == mine.sum() and named[level] == word
        assert found.rows.sum() == 493 and found.complete

    @pytest.mark.parametrize("cap", [40, 10_000])
    def test_the_share_of_new_levels_is_that_of_further_rows(self, rng, monkeypatch, cap):
        """Also of levels beyond the cap, which are not known either."""
        monkeypatch.setattr(levels_module, "MAX_COUNTED_LEVELS", cap)
        values, named = column(rng, 2000, 8000)
        values[rng.random(8000) < 0.2] = np.nan
        w = np.ones(4000)
        found = count_levels(values[:2000], w[:2000], named)
        found = found.merge(count_levels(values[2000:4000], w[2000:], named))
        assert found.present == np.sum(~np.isnan(values[:4000]))
        further = values[4000:][~np.isnan(values[4000:])]
        new = np.mean(~np.isin(further, found.levels))
        assert found.unseen_share(whole=True) == pytest.approx(new, abs=0.03)

    @pytest.mark.parametrize("cap", [5, 17, 1000])
    def test_parts_in_any_order_count_the_same(self, rng, monkeypatch, cap):
        monkeypatch.setattr(levels_module, "MAX_COUNTED_LEVELS", cap)
        values, named = column(rng, 40, 600)
        w = np.ones(600)
        whole = count_levels(values, w, named)
        order = rng.permutation(600)
        parts = [count_levels(values[rows], w[rows], named) for rows in np.array_split(order, 7)]
        merged = parts[0]
        for part in parts[1:]:
            merged = merged.merge(part)
        for name in ("levels", "weights", "rows"):
            np.testing.assert_array_equal(getattr(merged, name), getattr(whole, name))
        assert merged.words == whole.words and merged.complete == whole.complete == (cap > 40)
        assert len(whole.levels) == min(cap, 40)

    def test_many_levels_are_estimated(self):
        values = levels_of(f"w{i}" for i in range(150_000))
        found = count_levels(values, np.ones(150_000))
        assert not found.complete and found.distinct == pytest.approx(150_000, rel=0.02)


class TestRowNumbers:
    def test_numbers_of_rows(self, rng):
        assert numbers_the_rows(np.arange(1000.0), 0, 999, 1000)
        drawn = rng.permutation(30_000)[:5000] + 1.0
        assert numbers_the_rows(drawn, drawn.min(), drawn.max(), 5000)

    def test_other_numbers(self, rng):
        squares = np.arange(1000.0) ** 2 / 30
        assert not numbers_the_rows(squares, 0, squares.max(), 1000)
        assert not numbers_the_rows(np.arange(1000.0) + 5000, 5000, 5999, 1000)
        assert not numbers_the_rows(np.arange(20.0), 0, 19, 20)


def kernel_of(found, values):
    z = found.table[found.rows(values)]
    return z @ z.T


class TestCoordinates:
    @pytest.mark.parametrize("p", [None, [0.5, 0.3, 0.1, 0.05, 0.05]])
    def test_one_hot_is_centred_and_weighs_one(self, rng, p):
        values, named = column(rng, 5, 2000, p)
        counts = count_levels(values, np.ones(2000), named)
        found = one_hot_column(0, counts, True, 1.0)
        K = kernel_of(found, values)
        np.testing.assert_allclose(K.mean(axis=0), 0, atol=1e-12)
        assert np.diag(K).mean() == pytest.approx(1.0)

    def test_two_levels_need_one_coordinate(self, rng):
        values, named = column(rng, 2, 300, [0.8, 0.2])
        found = one_hot_column(0, count_levels(values, np.ones(300), named), True, 1.0)
        K = kernel_of(found, values)
        assert found.width == 1 and np.diag(K).mean() == pytest.approx(1.0)
        np.testing.assert_allclose(K.mean(axis=0), 0, atol=1e-12)

    def test_nearly_constant_is_bounded(self, rng):
        values, named = column(rng, 2, 5000, [0.996, 0.004])
        found = one_hot_column(0, count_levels(values, np.ones(5000), named), True, 1.0)
        assert np.diag(kernel_of(found, values)).max() <= MAX_SELF_KERNEL * (1 + 1e-12)

    def test_rare_levels_are_joined_and_unknown_ones_are_zero(self, rng):
        values = np.concatenate([column(rng, 2, 100)[0], levels_of(["u", "v", "w"])])
        found = one_hot_column(0, count_levels(values, np.ones(103)), True, 1.0)
        rare = found.rows(levels_of(["u", "v", "w"]))
        assert len(set(rare)) == 1 and found.width == 3
        unknown = found.table[found.rows(np.array([level_of("never"), np.nan]))]
        assert not unknown.any()

    def test_hashed(self, rng):
        values, _ = column(rng, 300, 2000)
        found = hashed_column(0, count_levels(values, np.ones(2000)), 16, 1.0)
        K = kernel_of(found, values)
        np.testing.assert_allclose(K.mean(axis=0), 0, atol=1e-9)

    def test_shares_of_classes_by_other_folds(self, rng):
        """Against the definition, row by row."""
        from polysift.features.level_columns import _smoothing, fold_codes

        values, named = column(rng, 6, 400)
        codes, folds = rng.integers(0, 2, 400), rng.integers(0, 3, 400)
        counts = count_levels(values, np.ones(400), named)
        keys = fold_codes(values, counts.levels, folds)
        sums = np.zeros((3, 6, 2))
        np.add.at(sums, (folds, np.searchsorted(counts.levels, values), codes), 1.0)
        found = target_column(0, counts, sums, 1.0)
        prior = np.bincount(codes) / 400
        a = _smoothing(sums.sum(axis=0), prior)

        def share(rows):
            return (codes[rows].sum() + a * prior[1]) / (rows.sum() + a)

        crossed = np.array(
            [
                share((values == value) & (folds != fold))
                for value, fold in zip(values, folds, strict=True)
            ]
        )
        plain = np.array([share(values == value) for value in values])
        mean, deviation = plain.mean(), plain.std()
        expected = np.clip((crossed - mean) / deviation, -4, 4)
        np.testing.assert_allclose(found.table[found.rows(keys), 0], expected, atol=1e-9)
        fitted = found.fitted()
        np.testing.assert_allclose(
            fitted.table[fitted.rows(values), 0], (plain - mean) / deviation, atol=1e-9
        )
        np.testing.assert_array_equal(
            found.table[found.rows(values)], fitted.table[fitted.rows(values)]
        )


@pytest.mark.parametrize("scaler", ["minmax", "standard", "quantile"])
@pytest.mark.parametrize("shape", ["normal", "binary", "zeros", "outliers", "nearly constant"])
def test_numbers_are_centred_and_bounded(rng, scaler, shape):
    m = 4000
    x = {
        "normal": rng.normal(3, 5, m),
        "binary": (rng.random(m) < 0.3) * 1.0,
        "zeros": np.where(rng.random(m) < 0.9, 0.0, rng.random(m)),
        "outliers": np.append(rng.normal(size=m - 2), [1e6, -1e7]),
        "nearly constant": (rng.random(m) < 0.002) * 1.0,
    }[shape]
    X = np.column_stack([x, levels_of(words(2))[rng.integers(0, 2, m)]])
    source = ArraySource(X, types=[ColumnType(NUMBER), ColumnType(CATEGORY)])
    found = survey(source, QUESTIONS, Pool(1))
    columns = find_columns(source.types, False, m, found)
    z = learn_table(scaler, columns, restricted(found, columns)).transform(X)[:, 0]
    own = 2 * z**2  # two columns: each has half of the kernel
    assert abs(z.mean()) < 1e-3 and own.max() <= 1.3 * MAX_SELF_KERNEL
    if shape in ("normal", "binary"):
        assert own.mean() == pytest.approx(1.0, rel=0.02)
    assert own.mean() <= 1.02
