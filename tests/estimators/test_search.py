"""The search against plain fits, fold by fold, and what it promises besides."""

from __future__ import annotations

import pickle
import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    PredefinedSplit,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
    TimeSeriesSplit,
)
from sklearn.utils.estimator_checks import parametrize_with_checks

import polysift
from oracles import kernel
from polysift import FeatureOverflowError, FPCClassifier, FPCClassifierCV, degree_bound, open_data
from polysift.engine.local import LocalEngine
from polysift.features.centers import hash_rows
from polysift.features.scalers import SCALERS, MinMaxScaler
from polysift.features.survey import FOLD_SEED
from polysift.runtime import progress
from polysift.selection import race
from polysift.training.folds import stratified_folds
from problems import optional, paper_classifier
from searching import (
    QUICK,
    fold_scores,
    margin,
    on_given_centers,
    problem,
    quiet_fit,
    same_results,
)

pd = optional("pandas")
pl = optional("polars")


def grid_search(X, y, grid, cv, **fixed):
    search = GridSearchCV(paper_classifier(**fixed), grid, cv=cv, scoring=margin, refit=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return search.fit(X, y).cv_results_


def compare(results, expected, tolerance):
    """Compare the fold scores of every candidate; ``tolerance`` takes its parameters."""
    theirs = fold_scores(expected)
    for params, ours in zip(results["params"], fold_scores(results), strict=True):
        matches = [
            row
            for other, row in zip(expected["params"], theirs, strict=True)
            if all(params[name] == value for name, value in other.items())
        ]
        assert len(matches) == 1, params
        np.testing.assert_allclose(ours, matches[0], atol=tolerance(params), rtol=0)


def bound(X, C):
    """100 eps trace(G) / rho, the size of what rounding in G does to scores."""

    def tolerance(params):
        A = kernel(X, C[: params["n_centers"]], params["degree"])
        trace = float(np.sum(A * A))
        ratio = 1.0 if params["rho"] is None else params["rho"] * trace / params["n_centers"]
        return max(1e-8, 100 * np.finfo(float).eps * trace / ratio)

    return tolerance


@pytest.mark.parametrize(
    "cv",
    [
        5,
        StratifiedKFold(3, shuffle=True, random_state=0),
        KFold(4),
        RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0),
        ShuffleSplit(3, test_size=0.2, train_size=0.5, random_state=0),
        PredefinedSplit(np.repeat([-1, 0, 1], [200, 120, 80])),
        TimeSeriesSplit(3),
    ],
    ids=lambda cv: type(cv).__name__,
)
def test_paper_mode_equals_plain_fits_fold_by_fold(cv):
    X, y = problem()
    C = np.random.default_rng(1).random((10, 3))
    grid = {"degree": [2, 3], "n_centers": [4, 7, 10], "rho": [None, 1e-4]}
    search = FPCClassifierCV(
        grid["degree"],
        grid["n_centers"],
        C,
        scalers=None,
        rhos=grid["rho"],
        solvers="paper",
        cv=cv,
        screen=False,
        scoring=margin,
    ).fit(X, y)
    expected = grid_search(X, y, grid, cv, centers=C, scaler=None, random_state=0)
    assert len(search.cv_results_["params"]) == 12
    assert (search.cv_results_["status"] == "finished").all()
    compare(search.cv_results_, expected, bound(X, C))


@pytest.mark.parametrize("classes", [2, 3])
def test_converged_mode_equals_plain_fits_fold_by_fold(classes):
    X, y = problem(200, classes=classes)
    C = np.random.default_rng(1).random((10, 3))
    grid = {"n_centers": [4, 10], "max_iter": [10, 25, 60], "rho": [None, 1e-4]}
    search = FPCClassifierCV(
        2,
        grid["n_centers"],
        C,
        scalers=None,
        rhos=grid["rho"],
        solvers="converged",
        max_iter=grid["max_iter"],
        cv=2,
        screen=False,
        scoring=margin,
    ).fit(X, y)
    assert (search.cv_results_["status"] == "finished").all()
    fixed = {"degree": 2, "centers": C, "scaler": None, "solver": "converged"}
    compare(search.cv_results_, grid_search(X, y, grid, 2, **fixed), lambda _: 1e-8)


def test_three_classes_equal_plain_fits_fold_by_fold():
    X, y = problem(classes=3)
    C = np.random.default_rng(1).random((10, 3))
    grid = {"degree": [2, 3], "n_centers": [4, 10], "rho": [None, 1e-4]}
    search = FPCClassifierCV(
        grid["degree"],
        grid["n_centers"],
        C,
        scalers=None,
        rhos=grid["rho"],
        solvers="paper",
        cv=3,
        screen=False,
        scoring=margin,
    ).fit(X, y)
    compare(search.cv_results_, grid_search(X, y, grid, 3, centers=C, scaler=None), bound(X, C))


def plain_scores(results, X, y, splits, score, weights=None, **fixed):
    """Return the fold scores and iterations of plain fits of all candidates."""
    scores, iterations = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for params in results["params"]:
            row = []
            for train, test in splits:
                clf = paper_classifier(**params | fixed)
                clf.fit(X[train], y[train], None if weights is None else weights[train])
                row.append((score(clf, test), clf.n_iter_))
            scores.append([value for value, _ in row])
            iterations.append(np.mean([count for _, count in row]))
    return np.array(scores), np.array(iterations)


def test_weights_count_in_learning_and_in_scoring():
    X, y = problem(200)
    weights = np.random.default_rng(2).integers(0, 4, len(y))
    search = on_given_centers(cv=KFold(3)).fit(X, y, weights)

    def weighted_accuracy(clf, test):
        return clf.score(X[test], y[test], weights[test])

    expected, _ = plain_scores(
        search.cv_results_,
        X,
        y,
        list(KFold(3).split(X)),
        weighted_accuracy,
        weights,
        centers=search.centers,
    )
    np.testing.assert_allclose(fold_scores(search.cv_results_), expected, atol=1e-9)
    assert search.best_score_ == expected.mean(axis=1).max()


@pytest.mark.parametrize("scalers", ["minmax", "standard", "quantile"])
def test_rows_of_weight_zero_are_not_there(scalers):
    X, y = problem()
    far = np.vstack([X[:200], np.full((7, 3), 1e6), X[200:]])
    labels = np.concatenate([y[:200], [5, 5, 1, 1, -1, 7, 7], y[200:]])
    weights = np.r_[np.ones(200), np.zeros(7), np.ones(200)]
    settings = QUICK | {"scalers": scalers, "rhos": 1e-4, "cv": 3, "random_state": 0}
    with np.errstate(over="ignore", invalid="ignore"):
        search = FPCClassifierCV(**settings).fit(far, labels, weights)
    expected = FPCClassifierCV(**settings).fit(X, y)
    np.testing.assert_array_equal(search.classes_, [-1, 1])
    assert search.best_params_ == expected.best_params_
    np.testing.assert_allclose(
        fold_scores(search.cv_results_), fold_scores(expected.cv_results_), atol=1e-9
    )
    np.testing.assert_allclose(
        search.decision_function(X), expected.decision_function(X), rtol=1e-6, atol=1e-8
    )


def test_rows_of_weight_zero_are_not_there_in_calibration():
    X, y = problem(200)
    settings = QUICK | {"cv": 3, "calibration": "sigmoid", "random_state": 0}
    expected = FPCClassifierCV(**settings).fit(X, y).predict_proba(X)
    more, labels = np.vstack([X, X[:1]]), np.append(y, y[0])
    search = FPCClassifierCV(**settings).fit(more, labels, np.append(np.ones(200), 0))
    np.testing.assert_allclose(search.predict_proba(X), expected, atol=1e-6)


def test_weights_are_multiplicities_where_the_folds_agree():
    X, y = problem(150)
    counts = np.random.default_rng(3).integers(0, 3, 150)
    groups = np.arange(150) % 3
    made = on_given_centers(cv=GroupKFold(3)).fit(X, y, counts, groups=groups)
    again = np.repeat(np.arange(150), counts)
    splits = [
        tuple(np.flatnonzero(np.isin(again, part)) for part in pair)
        for pair in GroupKFold(3).split(X, y, groups)
    ]
    expected = on_given_centers(cv=splits).fit(X[again], y[again])
    np.testing.assert_allclose(
        fold_scores(made.cv_results_), fold_scores(expected.cv_results_), atol=1e-9
    )


@pytest.mark.parametrize("class_weight", ["balanced", {-1: 3.0, 1: 0.5}])
def test_class_weights_count_in_learning_only(class_weight):
    X, y = problem(300)
    keep = (y == 1) | (np.arange(300) % 3 == 0)
    X, y = X[keep], y[keep]
    factors = class_weight
    if class_weight == "balanced":
        factors = {label: len(y) / (2 * np.sum(y == label)) for label in (-1, 1)}
    rows = np.where(y == 1, factors[1], factors[-1])
    splits = list(StratifiedKFold(3).split(X, y))
    search = on_given_centers(class_weight=class_weight).fit(X, y)
    expected, _ = plain_scores(
        search.cv_results_,
        X,
        y,
        splits,
        lambda clf, test: clf.score(X[test], y[test]),
        rows,
        centers=search.centers,
    )
    np.testing.assert_allclose(fold_scores(search.cv_results_), expected, atol=1e-9)
    assert search.best_estimator_.class_weight == class_weight


def test_float32_rows_equal_plain_fits_to_their_rounding():
    X, y = problem()
    X = X.astype(np.float32)
    search = on_given_centers(scoring=margin).fit(X, y)
    expected, _ = plain_scores(
        search.cv_results_,
        X,
        y,
        list(StratifiedKFold(3).split(X, y)),
        lambda clf, test: margin(clf, X[test], y[test]),
        centers=search.centers,
    )
    np.testing.assert_allclose(fold_scores(search.cv_results_), expected, atol=1e-4)
    assert search.best_estimator_.coef_.dtype == np.float64
    assert (search.predict(X) == search.predict(X.astype(float))).all()


def test_sparse_rows_give_the_same_search():
    X, y = problem()
    X = X * (np.random.default_rng(4).random(X.shape) < 0.6)
    make = FPCClassifierCV(**QUICK | {"rhos": 1e-4}, cv=3, random_state=0, scoring="roc_auc")
    dense, sparse = clone(make).fit(X, y), clone(make).fit(sp.csr_array(X), y)
    same_results(sparse, dense, atol=1e-9)
    np.testing.assert_allclose(
        sparse.decision_function(sp.csr_array(X)), dense.decision_function(X), atol=1e-8
    )


def test_sparse_rows_go_without_the_quantile_scaler():
    X, y = problem(60)
    settings = QUICK | {"scalers": ("minmax", "quantile")}
    results = FPCClassifierCV(**settings, cv=2).fit(sp.csr_array(X), y).cv_results_
    assert set(results["param_scaler"]) == {"minmax"}
    with pytest.raises(ValueError, match="scalers='quantile' needs dense rows"):
        FPCClassifierCV(scalers="quantile").fit(sp.csr_array(X), y)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames_keep_their_names(make):
    X, y = problem(120)
    names = ["x", "y", "z"]
    frame = make(dict(zip(names, X.T, strict=True)))
    settings = QUICK | {"cv": 3, "random_state": 0}
    search = FPCClassifierCV(**settings).fit(frame, y)
    assert search.feature_names_in_.tolist() == names and search.n_features_in_ == 3
    assert search.best_estimator_.feature_names_in_.tolist() == names
    same_results(search, FPCClassifierCV(**settings).fit(X, y))
    with pytest.raises(ValueError, match="feature names"):
        search.predict(frame[["z", "y", "x"]])
    search.fit(X, y)
    assert not hasattr(search, "feature_names_in_")


@pytest.mark.parametrize("weight", [None, "w"])
def test_a_file_gives_the_same_search_as_arrays(tmp_path, weight):
    X, y = problem(5000)
    w = np.random.default_rng(5).integers(0, 3, 5000)
    rows = pd.DataFrame(X, columns=["a", "b", "c"])
    rows.assign(y=y, w=w).to_parquet(tmp_path / "rows.parquet", row_group_size=700)
    columns = list(rows.columns)
    source = open_data(tmp_path / "rows.parquet", target="y", weight=weight, columns=columns)
    settings = QUICK | {"cv": 3, "calibration": "sigmoid", "random_state": 0}
    from_file = FPCClassifierCV(**settings).fit(source)
    expected = FPCClassifierCV(**settings).fit(rows, y, w if weight else None)
    same_results(from_file, expected)
    np.testing.assert_array_equal(from_file.predict_proba(rows), expected.predict_proba(rows))
    assert from_file.score(source) == pytest.approx(expected.score(rows, y, w if weight else None))
    from_file.predict_to(source, tmp_path / "out.parquet")
    written = pd.read_parquet(tmp_path / "out.parquet")["prediction"]
    assert (written == expected.predict(rows)).all()
    ranked = FPCClassifierCV(**settings | {"scoring": "roc_auc"}).fit(source)
    with pytest.raises(ValueError, match="scoring='roc_auc' cannot score a data source"):
        ranked.score(source)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.usefixtures("threaded")
def test_the_search_is_the_same_bit_for_bit_for_any_number_of_threads(classes):
    X, y = problem(53_000, 4, classes=classes)
    settings = {"scalers": "minmax", "degrees": (2, 3), "n_centers": (10, 20), "max_iter": (2, 4)}
    settings |= {"rhos": 1e-6, "cv": 2, "random_state": 0, "scoring": margin}
    one = FPCClassifierCV(**settings, n_jobs=1).fit(X, y)
    two = FPCClassifierCV(**settings, n_jobs=2).fit(X, y)
    same_results(one, two)
    np.testing.assert_array_equal(one.best_estimator_.coef_, two.best_estimator_.coef_)


SCHEMES = {"auto": "auto", "uniform": "uniform", "first": "first", "random": "random"}


SCHEMES["given"] = np.random.default_rng(7).random((12, 3))


@pytest.mark.parametrize("scaler", ["minmax", "quantile", "standard", None])
@pytest.mark.parametrize("centers", SCHEMES)
def test_the_refit_is_a_plain_fit_of_the_best_parameters(scaler, centers):
    X, y = problem(300)
    search = FPCClassifierCV(
        (2, 3),
        (6, 9),
        SCHEMES[centers],
        scalers=scaler,
        rhos=1e-4,
        max_iter=(5, 10),
        cv=2,
        random_state=np.random.default_rng(3),
    ).fit(X, y)
    best = search.best_estimator_
    assert search.best_params_["scaler"] == scaler
    plain = FPCClassifier(**search.best_params_, random_state=search.random_state_)
    quiet_fit(plain, X, y)
    np.testing.assert_allclose(best.centers_, plain.centers_, atol=1e-14)
    np.testing.assert_allclose(best.coef_, plain.coef_, rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(search.predict(X), plain.predict(X))
    assert (best.n_iter_, best.status_) == (plain.n_iter_, plain.status_)
    assert best.rho_ == pytest.approx(plain.rho_)


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("solver", ["paper", "converged"])
@pytest.mark.parametrize("cv", [0.3, ShuffleSplit(1, test_size=0.3, train_size=0.4)], ids=str)
def test_the_refit_does_not_depend_on_how_candidates_were_compared(degree, solver, cv):
    X, y = problem(300, classes=3)
    search = FPCClassifierCV(
        degree, 8, scalers="minmax", solvers=solver, rhos=None, max_iter=7, cv=cv, random_state=0
    ).fit(X, y)
    plain = quiet_fit(FPCClassifier(**search.best_params_, random_state=0), X, y)
    np.testing.assert_allclose(
        search.decision_function(X), plain.decision_function(X), rtol=1e-6, atol=1e-7
    )


def test_the_refit_takes_over_what_is_shared():
    X, y = problem(200)
    w = np.random.default_rng(0).random(200)
    shared = {"alpha": 2.0, "beta": 0.5, "tol": 1e-6, "class_weight": "balanced", "n_jobs": 1}
    shared["calibration"] = "isotonic"
    codes = np.unique(y, return_inverse=True)[1]
    own = PredefinedSplit(stratified_folds(codes, w, hash_rows(X, FOLD_SEED), 5).fold_parts)
    search = FPCClassifierCV(**QUICK | {"rhos": None, "cv": own}, **shared, random_state=4)
    search.fit(X, y, w)
    best = search.best_estimator_
    assert {name: getattr(best, name) for name in shared} == shared
    plain = FPCClassifier(**search.best_params_, **shared, random_state=search.random_state_)
    quiet_fit(plain, X, y, w)
    np.testing.assert_allclose(search.predict_proba(X), plain.predict_proba(X), atol=1e-6)
    assert search.calibration_report_ is best.calibration_report_
    assert search.calibrator_ is best.calibrator_


def test_a_refit_without_calibration_scores_no_rows(monkeypatch):
    X, y = problem(200)
    original = race.refit

    def refit(self, *arguments):
        monkeypatch.setattr(LocalEngine, "scores", lambda *_: pytest.fail("there are no folds"))
        return original(self, *arguments)

    monkeypatch.setattr(race, "refit", refit)
    search = FPCClassifierCV(**QUICK, cv=3).fit(X, y)
    assert np.isfinite(search.best_estimator_.coef_).all()


def test_the_best_estimator_can_be_fitted_further():
    X, y = problem(200)
    search = FPCClassifierCV(**QUICK, cv=3, random_state=0).fit(X, y)
    best = search.best_estimator_.set_params(warm_start=True)
    centers, before = best.centers_, best.coef_
    quiet_fit(best, X, y)
    np.testing.assert_array_equal(best.centers_, centers)
    assert (best.coef_ != before).any()


def test_every_candidate_of_given_centers_is_a_classifiers_parameters():
    X, y = problem(200)
    search = on_given_centers(solvers="paper").fit(X, y)
    params = search.cv_results_["params"][0]
    clf = paper_classifier(**params).fit(X, y)
    assert (clf.degree_, clf.n_centers_) == (params["degree"], params["n_centers"])


def test_candidates_are_all_combinations():
    X, y = problem(200, 2)
    search = FPCClassifierCV(
        (1, 2),
        (2, 5, 100),
        scalers=("minmax", None),
        rhos=(None, 1e-3),
        solvers=("paper", "converged"),
        max_iter=(3, 6),
        cv=2,
        random_state=0,
    ).fit(X, y)
    params = pd.DataFrame(search.cv_results_["params"])
    # Degree 1 has three features at most and degree 2 six; the paper's solver has one read-off.
    assert len(params) == 2 * (2 + 3) * 2 * (1 + 2) and not params.duplicated().any()
    sizes = params.groupby("degree")["n_centers"].unique()
    assert sizes[1].tolist() == [2, 3] and sizes[2].tolist() == [2, 5, 6]
    assert set(params.loc[params["solver"] == "paper", "max_iter"]) == {5}
    assert set(params.loc[params["solver"] == "converged", "max_iter"]) == {3, 6}


def test_auto_means_the_papers_degrees_or_more_and_halved_sizes():
    X, y = problem(300, 6)
    quick = {"scalers": None, "rhos": None, "solvers": "paper", "cv": 2, "random_state": 0}
    paper = FPCClassifierCV("paper", **quick).fit(X, y).cv_results_
    assert set(paper["param_degree"]) == set(range(1, degree_bound(300, 6) + 1))
    auto = FPCClassifierCV("auto", **quick).fit(X, y).cv_results_
    assert set(auto["param_degree"]) == {1, 2, 3, 4, 5}
    sizes = {degree: [] for degree in range(1, 6)}
    for params in auto["params"]:
        sizes[params["degree"]].append(params["n_centers"])
    assert sizes[1] == [7]
    assert sizes[3] == [42, 84]
    assert sizes[5] == [57, 115, 231, 462]  # from C(11, 5) down


@pytest.mark.parametrize("degrees", ["auto", (1, 2)])
def test_degrees_that_overflow_are_left_out_with_a_warning(degrees):
    X, y = problem(100, 2)
    large = (X * 1e60).astype(float)
    quick = {"n_centers": 4, "centers": "random", "scalers": None, "solvers": "paper", "cv": 2}
    search = FPCClassifierCV(degrees, **quick, random_state=0)
    with pytest.warns(FitFailedWarning, match=r"degree 2.* overflow.*add a scaler"):
        search.fit(large, y)
    results = search.cv_results_
    fallen = results["status"] == "overflow"
    np.testing.assert_array_equal(fallen, results["param_degree"].data > 1)
    assert np.isnan(results["mean_test_score"][fallen]).all()
    assert results["rank_test_score"][fallen].min() > results["rank_test_score"][~fallen].max()
    assert search.best_params_["degree"] == 1
    with pytest.raises(FeatureOverflowError, match="degree=2 overflows"):  # nothing is left
        FPCClassifierCV(2, **quick).fit(large, y)


def test_a_degree_that_overflows_with_one_scaler_only_needs_no_warning(tmp_path):
    X, y = problem(100, 2)
    quick = {"n_centers": 4, "centers": "random", "solvers": "paper", "cv": 2, "random_state": 0}
    search = FPCClassifierCV(2, scalers=(None, "minmax"), checkpoint=tmp_path, **quick)
    for _ in range(2):  # the second takes what it can from the checkpoint
        results = search.fit(X * 1e90, y).cv_results_
        fallen = results["status"] == "overflow"
        np.testing.assert_array_equal(fallen, results["param_scaler"].data == None)  # noqa: E711
    alone = FPCClassifierCV(2, scalers="minmax", **quick).fit(X * 1e90, y)
    np.testing.assert_array_equal(search.best_estimator_.coef_, alone.best_estimator_.coef_)


class RefusesOnce(MinMaxScaler):
    """A scaler that cannot be learned at first."""

    refused = 0

    @classmethod
    def learn(cls, statistics, sketch):
        """Raise the first time: in the stage of the highest degree."""
        cls.refused += 1
        if cls.refused == 1:
            raise ValueError("This scaler is of no use here.")
        return super().learn(statistics, sketch)


def test_an_error_that_is_no_overflow_ends_the_search(monkeypatch):
    X, y = problem(100, 2)
    monkeypatch.setitem(SCALERS, "refusing", RefusesOnce)
    search = FPCClassifierCV("auto", scalers="refusing", n_centers=4, cv=2, random_state=0)
    with pytest.raises(ValueError, match="of no use here"):
        search.fit(X, y)
    assert RefusesOnce.refused == 1


def test_results_read_as_a_frame_and_agree_with_each_other():
    X, y = problem(200)
    search = FPCClassifierCV(**QUICK, cv=3, random_state=0).fit(X, y)
    frame = pd.DataFrame(search.cv_results_)
    splits = frame[[f"split{k}_test_score" for k in range(3)]].to_numpy()
    np.testing.assert_allclose(frame["mean_test_score"], splits.mean(axis=1))
    np.testing.assert_allclose(frame["std_test_score"], splits.std(axis=1))
    for name in ("degree", "n_centers", "centers", "scaler", "solver", "rho", "max_iter"):
        assert list(frame[f"param_{name}"]) == [params[name] for params in frame["params"]]
    assert frame.loc[search.best_index_, "mean_test_score"] == search.best_score_
    assert frame.loc[search.best_index_, "rank_test_score"] == 1
    assert frame.loc[search.best_index_, "params"] == search.best_params_
    assert search.n_splits_ == 3 and search.status_ == "finished"
    assert search.timings_["total"] > 0 and np.isfinite(search.time_saved_)


@pytest.mark.parametrize("classes", [2, 3])
def test_no_nan_leaves_a_search(classes):
    X, y = problem(200, classes=classes)
    search = FPCClassifierCV(**QUICK | {"tol": None, "cv": 3, "calibration": "isotonic"})
    search.fit(X, y)
    for name, column in search.cv_results_.items():
        if getattr(column, "dtype", np.dtype(object)).kind == "f":
            assert np.isfinite(column).all(), name
    assert np.isfinite(search.best_estimator_.coef_).all()
    assert np.isfinite(search.decision_function(X)).all()
    assert np.isfinite(search.predict_proba(X)).all()
    assert np.isfinite([search.best_score_, search.time_saved_]).all()


def test_screening_says_where_each_candidate_stopped():
    X, y = problem(300)
    settings = {"scalers": ("minmax", "standard"), "degrees": (2, 3), "n_centers": (3, 6, 9, 10)}
    settings |= {"max_iter": (5, 10, 20), "rhos": (None, 1e-4), "cv": 2, "random_state": 0}
    search = FPCClassifierCV(**settings).fit(X, y)
    results = search.cv_results_
    status, limits = results["status"], results["param_max_iter"].astype(int)
    assert set(status) == {"finished", "screened"}
    assert (results["n_iter"][status == "screened"] < limits[status == "screened"]).all()
    assert (results["n_iter"] >= 1).all() and (results["n_iter"] <= limits).all()
    assert status[search.best_index_] == "finished"
    worst, first = results["rank_test_score"][status == "finished"].max(), status == "screened"
    assert (results["rank_test_score"][first] > worst).all()
    finished = results["mean_test_score"][status == "finished"]
    assert search.best_score_ == finished.max()
    order = np.argsort(results["rank_test_score"][status == "finished"], kind="stable")
    assert (np.diff(finished[order]) <= 0).all()
    full = FPCClassifierCV(**settings, screen=False).fit(X, y)
    assert (full.cv_results_["status"] == "finished").all()
    assert full.best_score_ >= search.best_score_ - 1e-12
    # Whoever was finished has the scores that it would have had anyway.
    same = status == "finished"
    np.testing.assert_allclose(
        fold_scores(results)[same], fold_scores(full.cv_results_)[same], atol=1e-9
    )


def test_screening_halves_the_tracks_of_each_degree_at_each_rung():
    X, y = problem(300)
    search = FPCClassifierCV(
        2,
        (3, 5, 7, 10),
        scalers="minmax",
        rhos=(None, 1e-9, 1e-6, 1e-3),
        solvers=("paper", "converged"),
        max_iter=(5, 10, 20),
        cv=3,
        random_state=0,
    ).fit(X, y)
    results = search.cv_results_
    gone = {}
    for params, count in zip(results["params"], results["n_iter"], strict=True):
        gone.setdefault((params["solver"], params["n_centers"], params["rho"]), []).append(count)
    reached = [max(counts) for (solver, *_), counts in gone.items() if solver == "converged"]
    assert sorted(count for count in reached if count > 1) == [5, 10, 20]
    sizes = [n for (solver, n, _), counts in gone.items() if solver == "paper" and max(counts) > 1]
    assert len(sizes) == len(set(sizes)) == 3, "three sizes of each solver go on"


def test_iterations_are_the_mean_over_the_splits():
    X, y = problem()
    cv = RepeatedStratifiedKFold(n_splits=2, n_repeats=2, random_state=0)
    for splitter in (StratifiedKFold(3), cv):
        search = on_given_centers(degrees=2, tol=0.02, max_iter=(12, 40), cv=splitter).fit(X, y)
        _, expected = plain_scores(
            search.cv_results_,
            X,
            y,
            list(splitter.split(X, y)),
            lambda clf, test: 0.0,
            centers=search.centers,
            tol=0.02,
        )
        assert (search.cv_results_["status"] == "finished").all()
        np.testing.assert_allclose(search.cv_results_["n_iter"], expected)


def test_without_screening_every_candidate_is_run_to_its_end_in_every_round():
    X, y = problem()
    search = FPCClassifierCV(
        2,
        10,
        scalers="minmax",
        solvers="converged",
        rhos=None,
        max_iter=(12, 20, 40, 80, 300),
        tol=0.02,
        cv=RepeatedStratifiedKFold(n_splits=2, n_repeats=4, random_state=0),
        screen=False,
        random_state=0,
    ).fit(X, y)
    assert (search.cv_results_["status"] == "finished").all()


def test_one_standard_error_takes_a_smaller_model():
    X, y = problem(300, seed=1)
    settings = {"scalers": "minmax", "solvers": "paper", "cv": 5, "random_state": 0}
    settings |= {"degrees": (1, 2, 3), "n_centers": (4, 10, 20), "screen": False}
    settings |= {"rhos": (None, 1e-9, 1e-6, 1e-3)}
    best = FPCClassifierCV(**settings).fit(X, y)
    small = FPCClassifierCV(**settings, one_standard_error=True).fit(X, y)
    np.testing.assert_array_equal(
        small.cv_results_["mean_test_score"], best.cv_results_["mean_test_score"]
    )
    spread = fold_scores(best.cv_results_)[best.best_index_].std(ddof=1) / np.sqrt(5)
    assert best.best_score_ - spread <= small.best_score_ <= best.best_score_
    within = best.cv_results_["mean_test_score"] >= best.best_score_ - spread
    sizes = best.cv_results_["param_n_centers"][within]
    assert small.best_params_["n_centers"] == min(sizes) < best.best_params_["n_centers"]
    part = FPCClassifierCV(**settings | {"cv": 0.3}, one_standard_error=True).fit(X, y)
    assert part.n_splits_ == 1, "the accuracy on a single part has a standard error"
    for scoring in ("roc_auc", "balanced_accuracy"):
        with pytest.raises(ValueError, match="one_standard_error=True needs two splits or more"):
            FPCClassifierCV(**settings | {"cv": 0.3}, one_standard_error=True, scoring=scoring).fit(
                X, y
            )


@pytest.mark.parametrize(
    "cv",
    [
        0.25,
        PredefinedSplit(np.repeat([0, 1, -1], [60, 60, 80])),
        GroupKFold(4),
        "pairs",
        "masks",
        "generator",
    ],
    ids=str,
)
def test_every_way_to_split(cv):
    X, y = problem(200)
    groups = np.arange(200) % 9
    splits = [(np.arange(100), np.arange(100, 200)), (np.arange(50, 200), np.arange(50))]
    masks = [tuple(np.isin(np.arange(200), part) for part in pair) for pair in splits]
    given = {"pairs": splits, "masks": masks, "generator": (pair for pair in splits)}
    search = on_given_centers(cv=given.get(cv, cv) if isinstance(cv, str) else cv, max_iter=5)
    search.fit(X, y, groups=groups if isinstance(cv, GroupKFold) else None)
    if isinstance(cv, float):
        splits = [next(StratifiedShuffleSplit(1, test_size=cv, random_state=0).split(X, y))]
    elif not isinstance(cv, str):
        splits = list(cv.split(X, y, groups if isinstance(cv, GroupKFold) else None))
    expected, _ = plain_scores(
        search.cv_results_,
        X,
        y,
        splits,
        lambda clf, test: clf.score(X[test], y[test]),
        centers=search.centers,
    )
    assert search.n_splits_ == len(splits)
    np.testing.assert_allclose(fold_scores(search.cv_results_), expected, atol=1e-9)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"degrees": 0}, "degrees must be an integer of at least 1; got 0"),
        ({"degrees": 2.5}, "degrees must be an integer of at least 1; got 2.5"),
        ({"degrees": [2, "x"]}, "degrees must be an integer of at least 1; got 'x'"),
        ({"degrees": "x"}, "degrees must be"),
        ({"degrees": []}, "degrees must hold at least one value"),
        ({"degrees": True}, "degrees must be"),
        ({"n_centers": 0}, 'n_centers must be an integer of at least 1; got 0. Or use n_centers="'),
        ({"n_centers": [10, 2.5]}, "n_centers must be an integer of at least 1; got 2.5"),
        ({"n_centers": "x"}, "n_centers must be an integer of at least 1; got 'x'"),
        ({"n_centers": ()}, "n_centers must hold at least one value"),
        ({"centers": "grid"}, "centers must be one of"),
        ({"centers": np.ones((4, 2))}, r"centers must have shape \(n, 3\)"),
        ({"scalers": "robust"}, "scalers must be one of 'minmax', .*, None; got 'robust'"),
        ({"scalers": ["minmax", 3]}, "scalers must be one of"),
        ({"solvers": ("paper", "exact")}, "solvers must be one of 'paper', 'lbfgs', .*; got 'ex"),
        ({"solvers": None}, "solvers must be one of"),
        ({"rhos": [1e-3, -1.0]}, r"rhos must be a number of at least 0; got -1\.0"),
        ({"rhos": []}, "rhos must hold at least one value"),
        ({"max_iter": (5, 0)}, "max_iter must be an integer of at least 1; got 0"),
        ({"max_iter": None}, "max_iter must be an integer"),
        ({"cv": 1}, "cv must be a number of folds"),
        ({"cv": 61}, "cv=61 folds need at least 61 rows; got 60"),
        ({"cv": 1.5}, "cv must be a number of folds"),
        ({"cv": "five"}, "cv must be a number of folds"),
        ({"scoring": "nope"}, "scoring='nope' is not a scorer"),
        ({"scoring": []}, "scoring must be a scorer, or a list"),
        ({"scoring": ["accuracy"]}, "refit must name the one of several scorers"),
        ({"scoring": ["accuracy", "nope"], "refit": "accuracy"}, "'nope' is not a scorer"),
        ({"kernels": "gauss"}, "kernels must be one of 'polynomial', 'spline'; got 'gauss'"),
        ({"losses": "huber"}, "losses must be one of 'hinge', .*; got 'huber'"),
        ({"losses": "hinge", "solvers": "lbfgs"}, "solvers='lbfgs' needs a smooth loss"),
        ({"effort": "low"}, "effort must be one of 'normal', 'high'; got 'low'"),
        ({"threshold": "roc"}, "threshold must be 'accuracy', 'f1', 'balanced', None, or a matr"),
        ({"threshold": np.ones((3, 3))}, r"threshold must be a matrix of costs .* \(3, 3\)"),
        ({"class_weight": [None, "even"]}, "class_weight must be"),
        ({"refit": "roc_auc"}, "refit must be True or False; got 'roc_auc'"),
        ({"screen": 1}, "screen must be True or False"),
        ({"one_standard_error": None}, "one_standard_error must be True or False"),
        ({"calibration": "platt"}, "calibration must be one of 'sigmoid', 'isotonic', None"),
        ({"alpha": 0}, "alpha must be"),
        ({"beta": -1}, "beta must be"),
        ({"tol": -1}, "tol must be"),
        ({"class_weight": "even"}, "class_weight must be"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"random_state": "x"}, "random_state must be"),
        ({"memory_limit": "lots"}, "memory_limit must be"),
        ({"time_limit": 0}, "time_limit must be a positive number"),
    ],
    ids=str,
)
def test_wrong_parameters(parameters, message):
    X, y = problem(60)
    with pytest.raises(ValueError, match=message):
        FPCClassifierCV(**parameters).fit(X, y)


def test_rows_that_cannot_be_split():
    X, y = problem(60)
    with pytest.raises(ValueError, match="training part of split 0 of cv holds one class only"):
        FPCClassifierCV(cv=KFold(2)).fit(X, np.sort(y))
    with pytest.raises(ValueError, match="cv=5 folds need at least 5 rows; got 4"):
        FPCClassifierCV().fit(X[:4], [0, 1, 0, 1])
    with pytest.raises(ValueError, match=r"cv=5 folds cannot hold every class: class 'b' has 1 r"):
        FPCClassifierCV().fit(X[:20], ["a"] * 19 + ["b"])
    with pytest.raises(ValueError, match="at least two classes"):
        FPCClassifierCV().fit(X, np.ones(60))


def test_a_failed_fit_leaves_the_old_model():
    X, y = problem(60)
    search = FPCClassifierCV(**QUICK, cv=3).fit(X, y)
    with pytest.raises(ValueError, match="no column to learn from"):
        search.fit(np.full((20, 5), np.nan), np.arange(20) % 2)
    search.predict(X)
    assert search.n_features_in_ == 3


def test_without_a_refit_there_is_nothing_to_predict_with():
    X, y = problem(120)
    search = FPCClassifierCV(**QUICK, cv=3, refit=False, calibration="sigmoid").fit(X, y)
    for name in ("predict", "decision_function", "predict_proba", "predict_to", "score"):
        assert not hasattr(search, name)
    for name in ("best_estimator_", "calibrator_", "calibration_report_"):
        assert not hasattr(search, name)
    with pytest.raises(AttributeError) as caught:
        search.predict(X)
    assert "refit=False" in str(caught.value.__cause__ or caught.value)
    quiet_fit(FPCClassifier(**search.best_params_), X, y)
    search.set_params(refit=True).fit(X, y).predict_proba(X)
    search.set_params(refit=False).fit(X, y)
    assert not hasattr(search, "best_estimator_")


@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_only_where_they_were_asked_for(calibration, classes):
    X, y = problem(300, classes=classes)
    settings = QUICK | {"cv": 3, "random_state": 0}
    plain = FPCClassifierCV(**settings).fit(X, y)
    assert not hasattr(plain, "predict_proba") and not hasattr(plain, "calibrator_")
    search = FPCClassifierCV(**settings, calibration=calibration).fit(X, y)
    p = search.predict_proba(X)
    assert p.shape == (300, classes) and (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_allclose(search.decision_function(X), plain.decision_function(X), atol=1e-9)
    report = search.calibration_report_
    assert set(report) == {"brier_score", "log_loss", "reliability"}
    assert 0 < report["brier_score"] < 0.5 and 0 < report["log_loss"] < 2
    assert report["reliability"]["weight"].sum() == pytest.approx(300)
    if classes == 2:  # a coin's Brier score is 1/4
        assert report["brier_score"] < 0.25


def test_a_single_validation_part_calibrates_by_its_own_rows():
    X, y = problem(300)
    search = FPCClassifierCV(**QUICK, cv=0.4, calibration="sigmoid", random_state=0).fit(X, y)
    assert search.calibration_report_["reliability"]["weight"].sum() == pytest.approx(120)
    few = ShuffleSplit(1, test_size=0.2, train_size=0.3, random_state=0)
    search.set_params(cv=few).fit(X, y)
    assert search.calibration_report_["reliability"]["weight"].sum() == pytest.approx(300)


def test_calibration_that_is_set_after_the_search():
    X, y = problem(120)
    search = FPCClassifierCV(**QUICK, cv=3, random_state=0).fit(X, y)
    search.set_params(calibration="sigmoid")
    with pytest.raises(NotFittedError, match="calibration was set after fit"):
        search.predict_proba(X)


def test_a_search_is_cloned_and_pickled():
    X, y = problem(120)
    search = FPCClassifierCV(**QUICK | {"cv": KFold(3), "scoring": "f1", "random_state": 0})
    assert clone(search).get_params().keys() == search.get_params().keys()
    assert repr(clone(search)) == repr(search)
    search.set_params(calibration="sigmoid").fit(X, y)
    again = pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(again.predict_proba(X), search.predict_proba(X))
    same_results(again, search)
    assert not hasattr(clone(search), "best_estimator_")
    with pytest.raises(NotFittedError):
        clone(search).predict(X)


def test_a_seed_makes_a_search_repeatable():
    X, y = problem(150, 6)
    settings = {"scalers": "minmax", "degrees": 3, "n_centers": 10, "solvers": "paper"}
    first = FPCClassifierCV(**settings, cv=0.3).fit(X, y)
    again = FPCClassifierCV(**settings, cv=0.3, random_state=first.random_state_).fit(X, y)
    same_results(again, first)
    other = FPCClassifierCV(**settings, cv=0.3, random_state=first.random_state_ + 1).fit(X, y)
    assert (other.best_estimator_.centers_ != first.best_estimator_.centers_).any()


def test_progress_names_the_stage(capsys, monkeypatch):
    monkeypatch.setattr(progress._Lines, "end", lambda self, phase: self.note(phase.label))
    X, y = problem(120)
    FPCClassifierCV(**QUICK, cv=3, verbose=1).fit(X, y)
    shown = capsys.readouterr().err
    for stage in (
        r"degree \d \(1 of 2\): Gram matrix",
        r"degree \d \(2 of 2\): sweep",
        r"degree \d \(2 of 2\): 0\.\d+ with n_centers=\d+, solver='\w+'; best so far 0\.\d+",
        "refit: sweep",
    ):
        assert re.search(stage, shown), stage


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")  # scikit-learn's own deprecations
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore:The least populated class in y")
@parametrize_with_checks(
    [FPCClassifierCV((1, 2), (5, 10), scalers="minmax", rhos=1e-3, max_iter=5, cv=3)],
)
def test_scikit_learn(estimator, check):
    """The check that weights equal repetition passes, since it brings folds that agree."""
    check(estimator)


class TestSeveralCalibrations:
    """The one with the least log loss out of fold is taken."""

    @pytest.mark.parametrize("classes", [2, 3])
    def test_the_best_one(self, tmp_path, classes):
        X, y = problem(600, classes=classes)
        given = {"degrees": 2, "n_centers": 10, "solvers": "paper", "random_state": 0}
        alone = {
            kind: FPCClassifierCV(**given, calibration=kind).fit(X, y)
            for kind in ("sigmoid", "isotonic")
        }
        losses = {kind: one.calibration_report_["log_loss"] for kind, one in alone.items()}
        best = min(losses, key=losses.__getitem__)
        search = FPCClassifierCV(**given, calibration=["isotonic", "sigmoid"]).fit(X, y)
        assert search.best_params_["calibration"] == best == search.best_estimator_.calibration
        np.testing.assert_array_equal(search.predict_proba(X), alone[best].predict_proba(X))
        polysift.save(search, tmp_path / "m")
        loaded = polysift.load(tmp_path / "m")
        np.testing.assert_array_equal(loaded.predict_proba(X), search.predict_proba(X))

    def test_scorers_of_probabilities_see_the_best_one(self):
        X, y = problem(600)
        given = {"degrees": 2, "n_centers": 10, "solvers": "paper", "random_state": 0}
        given |= {"scoring": "neg_log_loss"}
        kinds = ("sigmoid", "isotonic", ["sigmoid", "isotonic"])
        scores = [
            FPCClassifierCV(**given, calibration=kind).fit(X, y).best_score_ for kind in kinds
        ]
        assert scores[2] == max(scores)

    @pytest.mark.parametrize("kinds", [[None], ["sigmoid", "platt"], []])
    def test_others_are_refused(self, kinds):
        with pytest.raises(ValueError, match="calibration must"):
            FPCClassifierCV(calibration=kinds).fit(*problem(60))
