"""The compiled loops on tables, against NumPy's: coordinates, and categories that are looked up."""

from __future__ import annotations

import numpy as np
import pytest

from mixed_tables import mixed_table, strange_rows
from polysift.data.inputs import rows_source
from polysift.engine import compiled
from polysift.estimators.fitted import feature_map_of
from polysift.features.feature_map import BlockFeatures
from polysift.features.level_columns import (
    FIRST_CODE,
    UNKNOWN_LEVEL,
    LevelColumn,
    fold_codes,
    hashed_column,
    target_column,
)
from polysift.features.levels import count_levels
from problems import paper_classifier

pytest.importorskip("numba")
pytest.importorskip("pandas")
compiled_features = pytest.importorskip("polysift.engine.compiled_features")

pytestmark = pytest.mark.filterwarnings("ignore:Values are missing in")


def mapped(**options):
    """Return the feature map of a table, and rows as floats, strange ones among them."""
    frame, y = mixed_table()
    options = {"degree": 3, "n_centers": 30, "max_levels": 40, "random_state": 0} | options
    clf = paper_classifier(**options).fit(frame, y)
    blocks = []
    for rows in (frame, strange_rows(frame)):
        source = rows_source(clf, rows, reset=False)
        blocks += [source.rows(part) for _, part in source.parts()]
    return feature_map_of(clf), np.concatenate(blocks)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "options", [{}, {"scaler": "quantile"}, {"kernel": "spline"}, {"max_levels": 20}, {"degree": 1}]
)
def test_features(options, dtype):
    feature_map, X = mapped(**options)
    features = BlockFeatures(feature_map, dtype)
    loops = compiled.CompiledRows(features)
    rtol = 1e-4 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(loops.features(X), features(X), rtol=rtol, atol=rtol)


@pytest.mark.parametrize(("options", "found"), [({}, 2), ({"max_levels": 20}, 1)])
def test_wide_categories_are_looked_up(options, found):
    """Those of many levels, which labels stand for, and truth values have one coordinate.

    Of the 30 streets, the rare ones are one level together.
    """
    feature_map, X = mapped(**options)
    features = BlockFeatures(feature_map, np.float64)
    lookups = feature_map.scaler.lookups()
    widths = [lookup.table.shape[1] for lookup in lookups]
    assert len(widths) == found and widths[0] == 4
    assert all(4 < width < 30 for width in widths[1:])
    scaled, added = compiled.CompiledRows(features)._scaled(X)
    assert scaled.shape[1] == len(features.C1) - sum(widths)
    assert added.shape[1] == len(widths)
    whole = features.rows(X)
    for lookup in lookups:
        assert not lookup.table[-1].any()
        own = whole[:, lookup.start : lookup.start + lookup.table.shape[1]]
        assert (~own.any(axis=1)).any(), "a level that is not known is at zero"


def test_rows_of_no_weight_add_nothing():
    feature_map, X = mapped()
    loops = compiled.CompiledRows(BlockFeatures(feature_map, np.float64))
    absent = np.zeros(len(X), dtype=bool)
    absent[::3] = True
    X[absent, 0] = 1e300
    scaled, added = loops._rows(X, absent)
    A = np.empty((len(X), 30))
    loops._features_by_blas(scaled, added, A)
    np.testing.assert_array_equal(A[absent], 1.0)


@pytest.mark.parametrize("kind", ["encoded", "hashed", "without levels"])
def test_rows_of_levels(kind):
    rng = np.random.default_rng(0)
    words = np.sort(rng.choice(2**40, 50, replace=False)).astype(float)
    values = rng.choice(words, 400)
    counts = count_levels(values, np.ones(400), {level: str(level) for level in words.tolist()})
    if kind == "hashed":
        found = hashed_column(1, counts, 7, 1.0)
    else:
        found = target_column(1, counts, rng.random((5, len(counts.levels), 2)), 1.0)
    if kind == "without levels":
        found = LevelColumn(1, np.empty(0), [], np.empty(0, np.int64), np.zeros((1, 0)))
    if kind == "encoded":
        values[:200] = fold_codes(values[:200], counts.levels, rng.integers(5, size=200))
        assert values.min() < FIRST_CODE
        values[::50] = UNKNOWN_LEVEL
    values[::30] = np.nan
    block = np.stack([np.zeros(400), values], axis=1)
    rows = np.empty(400, np.int64)
    found.rows_compiled(compiled_features, block, rows)
    np.testing.assert_array_equal(rows, found.rows(values))


def test_parts_of_dates():
    """The same numbers, in order or not, with missing ones and dates before 1970."""
    feature_map, X = mapped()
    unfold = feature_map.scaler._unfolding
    for rows in (X, np.ascontiguousarray(X[np.argsort(X[:, -1])])):
        found = unfold.compiled(compiled_features, rows)
        np.testing.assert_array_equal(found, unfold(rows))
