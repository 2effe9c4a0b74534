"""Columns that depend on each other are said to, and shuffling stands beside attributions."""

from __future__ import annotations

import numpy as np
import pytest

from polysift import FPCClassifier, explain


def doubled(rng, kernel: str):
    """Return the explanation of a model of a column, its near copy, another and noise."""
    X = rng.uniform(-1, 1, (1500, 4))
    X[:, 1] = X[:, 0] + rng.normal(0, 0.02, 1500)
    y = X[:, 0] + 0.5 * X[:, 2] > 0
    given = {"kernel": kernel, "degree": 2, "n_centers": 40, "random_state": 0}
    return explain(FPCClassifier(**given).fit(X, y), X)


@pytest.mark.parametrize("kernel", ["polynomial", "spline"])
def test_columns_that_are_nearly_the_same(rng, kernel):
    found = doubled(rng, kernel)
    (group,) = found.groups
    assert set(group.columns) == {0, 1} and group.correlation > 0.99
    assert group.shuffled > found.shuffled[2] > found.shuffled[3]
    entry = found.features()[0]
    assert entry["shuffled"] == found.shuffled[found.feature_names.index(entry["feature"])]
    text = str(found)
    assert "depend on each other (r = 1.00)" in text and "shuffled" in text
    (plain,) = found.to_dict()["groups"]
    assert set(plain["features"]) == {"x0", "x1"}


def test_independent_columns_are_no_group(rng):
    X = rng.uniform(-1, 1, (500, 3))
    given = {"kernel": "polynomial", "degree": 2, "scaler": None, "random_state": 0}
    clf = FPCClassifier(**given).fit(X, X[:, 0] > 0)
    found = explain(clf, X)
    assert found.groups == () and "depend on each other (" not in str(found)
    assert found.shuffled.argmax() == 0
    again = explain(clf, X)
    np.testing.assert_array_equal(found.shuffled, again.shuffled)
