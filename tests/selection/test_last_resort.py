"""The small model of a search that is ended before it has one."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold, PredefinedSplit, TimeSeriesSplit

import polysift
from polysift import FPCClassifierCV, open_data
from polysift.selection import last_resort
from polysift.selection import search as searching_module
from polysift.selection.last_resort import MAX_ROWS, READING_SECONDS, SPREAD_ROWS, few_rows
from problems import optional
from searching import at_call, interrupt, problem

pd = optional("pandas")


@pytest.fixture
def interrupted(monkeypatch):
    """Fit a search whose survey is interrupted."""

    def fit(search, *data, **options):
        at_call(monkeypatch, searching_module, "_prepare", 1, interrupt)
        with pytest.warns(ConvergenceWarning, match="interrupted"), warnings.catch_warnings():
            return search.fit(*data, **options)

    return fit


def table(m=5000):
    X, y = problem(m)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["word"] = np.where(y > 0, "up", "down")
    frame.loc[::7, "word"] = "level"
    frame.loc[::11, "a"] = np.nan
    return frame, np.where(y > 0, "yes", "no")


def test_with_nothing_given_it_is_a_quick_one(interrupted, tmp_path):
    X, y = problem(5000)
    search = interrupted(FPCClassifierCV(random_state=0), X, y)
    assert search.best_params_["kernel"] == "spline"
    assert search.best_params_["n_centers"] == last_resort.MAX_CENTERS
    assert (search.n_splits_, search.n_refit_rows_) == (5, MAX_ROWS)
    polysift.save(search, tmp_path / "model")
    same = polysift.load(tmp_path / "model").predict_proba(X[:50])
    np.testing.assert_array_equal(same, search.predict_proba(X[:50]))


@pytest.mark.needs("pandas")
@pytest.mark.parametrize("kind", ["frame", "sparse", "csv", "parquet"])
def test_rows_of_any_kind(interrupted, tmp_path, kind):
    frame, y = table()
    if kind == "frame":
        data = (frame, y)
    elif kind == "sparse":
        data = (sp.csr_array(np.nan_to_num(frame[["a", "b", "c"]].to_numpy())), y)
    else:
        pytest.importorskip("pyarrow")
        file = tmp_path / f"rows.{kind}"
        whole = frame.assign(label=y)
        whole.to_csv(file, index=False) if kind == "csv" else whole.to_parquet(file)
        data = (open_data(file, target="label"),)
    search = interrupted(FPCClassifierCV(random_state=0), *data)
    assert search.n_refit_rows_ <= MAX_ROWS
    assert search.score(*data) > (0.55 if kind == "sparse" else 0.8)
    assert set(search.classes_) == {"yes", "no"}


@pytest.mark.parametrize("cv", [GroupKFold(3), TimeSeriesSplit(3), 0.3], ids=str)
def test_the_splits_are_those_of_the_search(interrupted, cv):
    X, y = problem(5000)
    groups = np.arange(5000) // 10 if isinstance(cv, GroupKFold) else None
    search = interrupted(FPCClassifierCV(cv=cv, random_state=0), X, y, groups=groups)
    assert search.n_splits_ == (1 if cv == 0.3 else 3)


@pytest.mark.parametrize("kind", ["named rows", "generator"])
def test_splits_by_the_numbers_of_all_rows_give_way_to_folds(interrupted, kind):
    X, y = problem(5000)
    fold = np.arange(5000) % 4
    cv = PredefinedSplit(fold)
    if kind == "generator":
        cv = ((np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(4))
    search = interrupted(FPCClassifierCV(cv=cv, random_state=0), X, y)
    assert search.n_splits_ == 5


def test_weights_and_scorers_stay(interrupted):
    X, y = problem(5000)
    settings = {"scoring": "roc_auc", "threshold": "balanced", "calibration": "sigmoid"}
    search = FPCClassifierCV(**settings, class_weight="balanced", random_state=0)
    interrupted(search, X, y, np.where(y > 0, 3, 1))
    assert 0.5 < search.best_score_ < 1.0
    assert search.calibrator_ and search.best_estimator_.decision_thresholds_ is not None


def test_without_refit_there_are_parameters(interrupted):
    search = interrupted(FPCClassifierCV(refit=False, random_state=0), *problem(5000))
    assert search.best_params_["degree"] == 2 and not hasattr(search, "best_estimator_")


def test_of_one_class_nothing_can_be_learned(monkeypatch, clock):
    X, _ = problem(5000)
    at_call(monkeypatch, searching_module, "_prepare", 1, interrupt)
    with pytest.raises(KeyboardInterrupt):
        FPCClassifierCV().fit(X, np.zeros(5000))
    clock.tick = 10
    with pytest.raises(TimeoutError, match="time_limit=5 s struck before a first candidate"):
        FPCClassifierCV(time_limit=5).fit(X, np.r_[np.zeros(4999), 1])


@pytest.mark.needs("pandas", "pyarrow")
def test_files_are_read_no_longer_than_a_moment(tmp_path, clock):
    frame, y = table(9000)
    frame.assign(label=y).to_parquet(tmp_path / "rows.parquet")
    source = open_data(tmp_path / "rows.parquet", target="label")
    some, numbers = few_rows(source, 0)
    starts = (0, *(MAX_ROWS * 2**k for k in range(3)))
    counts = (MAX_ROWS // 2, SPREAD_ROWS, SPREAD_ROWS, SPREAD_ROWS)
    expected = [np.arange(lo, lo + n) for lo, n in zip(starts, counts, strict=True)]
    np.testing.assert_array_equal(numbers, np.concatenate(expected))
    assert some.labels((0, some.n_rows)).tolist() == y[numbers].tolist()
    clock.tick = READING_SECONDS
    assert few_rows(source, 0)[0].n_rows == MAX_ROWS // 2
