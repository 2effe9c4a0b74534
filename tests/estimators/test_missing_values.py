"""Values that rows lack at prediction though the training rows had them: filled in, and told."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from mixed_tables import mixed_table
from polysift import FPCClassifierCV, PolynomialKernelMap, open_data
from polysift.features.tables import stored_scaler
from problems import noisy_problem, optional, paper_classifier

pd = optional("pandas")


@pytest.fixture
def problem(rng):
    """Rows, labels, and rows that lack values in their second and third column."""
    X, y = noisy_problem(rng, 400, 4)
    holes = X.copy()
    holes[::5, 1] = holes[3, 2] = np.nan
    return X, y, holes


def told(call, *names):
    """Return what a call returns, which must warn once, of these columns."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = call()
    messages = [str(one.message) for one in caught]
    assert len(messages) == 1, messages
    assert messages[0].startswith(f"Values are missing in {', '.join(names)}, where no training")
    assert caught[0].category is UserWarning
    return found, caught[0].filename


@pytest.mark.parametrize("scaler", ["minmax", "standard", "quantile", None])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_mean_of_the_centers_stands_for_a_missing_value(problem, scaler, dtype):
    X, y, holes = problem
    clf = paper_classifier(2, scaler=scaler, random_state=0).fit(X.astype(dtype), y)
    scores, place = told(lambda: clf.decision_function(holes.astype(dtype)), "column 1", "column 2")
    assert place == __file__
    z = stored_scaler(clf.scaler_).transform(holes.astype(dtype).astype(float))
    z = np.where(np.isnan(z), clf.centers_.mean(axis=0), z)
    expected = (1.0 + z @ clf.centers_.T) ** 2 @ clf.coef_[0]
    np.testing.assert_allclose(scores, expected, atol=1e-9 * np.abs(clf.coef_).sum())
    whole = ~np.isnan(holes).any(axis=1)
    np.testing.assert_array_equal(
        scores[whole], clf.decision_function(X.astype(dtype))[whole], "no bit of another row"
    )


def test_every_way_to_predict_warns_once(problem, tmp_path):
    pytest.importorskip("pyarrow")
    X, y, holes = problem
    names = [f"column {name!r}" for name in "bc"]
    frame = pd.DataFrame(X, columns=list("abcd"))
    rows = pd.DataFrame(holes, columns=list("abcd"))
    clf = paper_classifier(2, calibration="sigmoid", random_state=0).fit(frame, y)
    search = FPCClassifierCV(
        degrees=2, n_centers=5, rhos=None, solvers="paper", cv=2, random_state=0
    ).fit(frame, y)
    rows.assign(y=y).to_parquet(tmp_path / "rows.parquet")
    source = open_data(tmp_path / "rows.parquet", target="y")
    for call in (
        lambda: clf.predict(rows),
        lambda: clf.predict_proba(rows),
        lambda: clf.score(rows, y),
        lambda: clf.score(source),
        lambda: clf.decision_function(source),
        lambda: search.predict(rows),
        lambda: clf.predict_to(rows, tmp_path / "out.parquet"),
        lambda: clf.predict_to(rows, tmp_path / "folder"),
    ):
        told(call, *names)
    learned = PolynomialKernelMap(2, random_state=0).fit(frame)
    features, _ = told(lambda: learned.transform(rows), *names)
    assert np.isfinite(features).all()


def test_rows_of_many_shards_are_told_of_together(problem):
    X, y, _ = problem
    clf = paper_classifier(2, n_jobs=2, random_state=0).fit(X, y)
    rows = np.tile(X, (500, 1))
    rows[-1, 3] = rows[0, 0] = np.nan
    scores, _ = told(lambda: clf.decision_function(rows), "column 0", "column 3")
    assert np.isfinite(scores).all()


def test_many_columns_are_counted(rng):
    X, y = noisy_problem(rng, 300, 9)
    clf = paper_classifier(1, random_state=0).fit(X, y)
    with pytest.warns(UserWarning, match="column 0, column 1, column 2, column 3, column 4 and 4"):
        clf.predict(np.full((2, 9), np.nan))


def test_what_training_rows_lacked_is_no_news():
    frame, y = mixed_table()
    clf = paper_classifier(2, 20, max_levels=20, random_state=0).fit(frame, y)
    rows = frame.head(10).assign(age=np.nan, city=None, row="", unit=None)
    clf.predict(rows)  # warnings are errors
    told(lambda: clf.predict(rows.assign(street="?")), "column 'street'")


def test_sparse_rows_lack_nothing(problem):
    X, y, holes = problem
    clf = paper_classifier(3, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="Input X contains NaN in column 1"):
        clf.predict(sp.csr_array(holes))
