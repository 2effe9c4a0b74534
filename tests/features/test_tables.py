"""The coordinates of tables: their slopes, and the values that they lack."""

import numpy as np
import pytest

from mixed_tables import mixed_table
from polysift.data.inputs import rows_source
from polysift.features.tables import TableScaler, stored_scaler
from problems import paper_classifier

pytest.importorskip("pandas")


def learned(scaler="minmax"):
    """Return the scaler of a table and its rows as floats."""
    frame, y = mixed_table()
    clf = paper_classifier(2, 20, scaler=scaler, max_levels=20, random_state=0).fit(frame, y)
    found = stored_scaler(clf.scaler_)
    assert isinstance(found, TableScaler)
    source = rows_source(clf, frame, reset=False)
    return clf, found, np.concatenate([source.rows(part) for _, part in source.parts()])


@pytest.mark.parametrize("scaler", ["minmax", "symmetric", "standard", "quantile"])
def test_slopes_are_central_differences(scaler):
    clf, found, X = learned(scaler)
    slopes = found.slope(X)
    owners = found.owners
    assert slopes.shape == (len(X), len(owners))
    for name, step in {"age": 1e-4, "Größe": 1e-7, "joined": 1.0, "seen": 1.0}.items():
        j = list(clf.feature_names_in_).index(name)
        sides = [X.copy(), X.copy()]
        sides[0][:, j] -= step
        sides[1][:, j] += step
        change = (found.transform(sides[1]) - found.transform(sides[0])) / (2 * step)
        own = np.flatnonzero((owners == j) & (np.abs(slopes).max(axis=0) > 0))
        assert len(own) == {"joined": 7, "seen": 7}.get(name, 1)
        # At a kink, such as a rank's, both sides are not the same; there are few.
        scale = np.abs(slopes[:, own]).max(axis=0)
        wrong = np.abs(change - slopes)[:, own] > 1e-4 * scale
        assert np.nanmean(wrong) < 0.02, name
        assert not change[:, owners != j].any()


def test_slopes_of_what_has_none():
    clf, found, X = learned()
    slopes = found.slope(X)
    assert np.isfinite(slopes).all()
    assert not slopes[:, len(found.numbers) :].any(), "indicators and categories"
    names = list(clf.feature_names_in_)
    for name in ("age", "joined"):
        j = names.index(name)
        missing = np.isnan(X[:, j])
        assert missing.any() and not slopes[missing][:, found.owners == j].any()


def test_what_rows_lack_that_training_rows_had():
    clf, found, X = learned()
    assert not found.lacking(X).any(), "the training rows lack what they lack"
    lacking = found.lacking(np.full_like(X, np.nan))
    named = {name for name, one in zip(clf.feature_names_in_, lacking, strict=True) if one}
    assert named == {"Größe", "street", "label", "seen"}


def test_cosines_of_hours_that_are_alike():
    """Of 6 and 18 o'clock the cosine is zero; ranks would tell their rounding errors apart."""
    _, found, X = learned("quantile")
    unfold = found._unfolding
    hours = np.repeat(X[:1], 24, axis=0)
    dates = [j for j, kind in enumerate(found.kinds) if kind == "date"]
    hours[:, dates] = 3600.0 * np.arange(24)[:, np.newaxis]
    cosine = unfold(hours)[:, np.flatnonzero(unfold.parts == 1)[0]]
    np.testing.assert_array_equal(cosine[1:], cosine[:0:-1])
    assert cosine[6] == cosine[18] == 0.0
