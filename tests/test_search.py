"""The search against plain fits, fold by fold, and what it promises besides."""

from __future__ import annotations

import contextlib
import pickle
import re
import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
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

from conftest import noisy_problem
from oracles import kernel
from polysift import (
    CheckpointError,
    FPCClassifier,
    FPCClassifierCV,
    _checkpoint,
    _monitor,
    _search,
    _stage,
    degree_bound,
    open_data,
)
from polysift._engine import LocalEngine
from polysift._memory import Resources, Shape, peak_bytes
from polysift._shards import ShardWork
from polysift._stage import Stage

QUICK = {"scalers": "minmax", "degrees": (1, 2), "n_centers": (5, 10), "max_iter": (5, 10)}


def problem(m=400, d=3, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    X, y = noisy_problem(rng, m, d)
    if classes == 3:
        y = y + 3 * (X[:, 0] > 0.6)
        y[y == 4] = 2
    return X, y


def margin(estimator, X, y):
    """A scorer that moves with every score, and that both searches can use."""
    scores = estimator.decision_function(X)
    if scores.ndim == 1:
        return float(np.mean(np.arctan(scores) * np.where(y == estimator.classes_[1], 1, -1)))
    own = scores[np.arange(len(y)), np.searchsorted(estimator.classes_, y)]
    return float(np.mean(np.arctan(own)))


def fold_scores(results):
    names = sorted(name for name in results if name.startswith("split"))
    return np.column_stack([results[name] for name in names])


def grid_search(X, y, grid, cv, **fixed):
    search = GridSearchCV(FPCClassifier(**fixed), grid, cv=cv, scoring=margin, refit=False)
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
                clf = FPCClassifier(**params | fixed)
                clf.fit(X[train], y[train], None if weights is None else weights[train])
                row.append((score(clf, test), clf.n_iter_))
            scores.append([value for value, _ in row])
            iterations.append(np.mean([count for _, count in row]))
    return np.array(scores), np.array(iterations)


def on_given_centers(**changes):
    """Return a search without scalers, over few centers, in which every candidate is run."""
    settings = {
        "degrees": (2, 3),
        "n_centers": (4, 8),
        "centers": np.random.default_rng(1).random((8, 3)),
        "scalers": None,
        "rhos": 1e-4,
        "max_iter": (5, 20),
        "cv": 3,
        "screen": False,
        "random_state": 0,
    }
    return FPCClassifierCV(**settings | changes)


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


def same_results(a, b, **tolerance):
    """Compare all of two searches' results but their times."""
    assert a.cv_results_.keys() == b.cv_results_.keys()
    assert a.cv_results_["params"] == b.cv_results_["params"]
    for name, column in a.cv_results_.items():
        if tolerance and getattr(column, "dtype", np.dtype(object)).kind == "f":
            np.testing.assert_allclose(column, b.cv_results_[name], **tolerance, err_msg=name)
        else:
            np.testing.assert_array_equal(column, b.cv_results_[name], err_msg=name)
    assert a.best_params_ == b.best_params_


def test_sparse_rows_give_the_same_search():
    X, y = problem()
    X = X * (np.random.default_rng(4).random(X.shape) < 0.6)
    make = FPCClassifierCV(**QUICK, rhos=1e-4, cv=3, random_state=0, scoring="roc_auc")
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
def test_the_search_is_the_same_bit_for_bit_for_any_number_of_threads(classes):
    X, y = problem(53_000, 4, classes=classes)  # enough work for threads to be used
    settings = {"scalers": "minmax", "degrees": (2, 3), "n_centers": (10, 20), "max_iter": (2, 4)}
    settings |= {"rhos": 1e-6, "cv": 2, "random_state": 0, "scoring": margin}
    one = FPCClassifierCV(**settings, n_jobs=1).fit(X, y)
    two = FPCClassifierCV(**settings, n_jobs=2).fit(X, y)
    same_results(one, two)
    np.testing.assert_array_equal(one.best_estimator_.coef_, two.best_estimator_.coef_)


@pytest.fixture
def ways(monkeypatch):
    """Record how stages work: resources, and tracks at once."""
    chosen, original = [], _stage.fit_lanes

    def recorded(*arguments, **options):
        chosen.append(original(*arguments, **options))
        return chosen[-1]

    monkeypatch.setattr(_stage, "fit_lanes", recorded)
    return chosen


def test_less_memory_means_groups_then_a_file_and_the_same_scores(ways):
    X, y = problem(6000)
    make = on_given_centers(scoring=margin, rhos=(1e-2, 1e-4), max_iter=(2, 6))
    free = clone(make).fit(X, y)
    assert all(tracks == 8 and not resources.spill for resources, tracks in ways)
    shape = Shape(6000, 3, 8, 1, 8, False, False, 0, cells=3, lanes=3)
    least = peak_bytes(shape, Resources(1, 1, spill=True))
    few = peak_bytes(replace(shape, lanes=6), Resources(1, 1))
    for limit, spilled in ((few, False), (least, True)):
        ways.clear()
        tight = clone(make).set_params(memory_limit=limit).fit(X, y)
        assert all(tracks < 8 and resources.spill == spilled for resources, tracks in ways)
        np.testing.assert_allclose(
            fold_scores(tight.cv_results_), fold_scores(free.cv_results_), atol=1e-9
        )
        assert tight.best_params_["degree"] == free.best_params_["degree"]
        np.testing.assert_allclose(tight.decision_function(X), free.decision_function(X), atol=1e-8)
    with pytest.raises(MemoryError, match="memory_limit"):
        clone(make).set_params(memory_limit=least - 1).fit(X, y)


def test_less_memory_screens_the_same_candidates(ways):
    X, y = problem(3000)
    settings = QUICK | {"degrees": 2, "n_centers": (3, 5, 7, 10), "max_iter": (5, 10, 20)}
    free = FPCClassifierCV(**settings, cv=3, random_state=0).fit(X, y)
    tight = FPCClassifierCV(**settings, cv=3, random_state=0, memory_limit="2MB").fit(X, y)
    assert ways[0][1] > ways[1][1]
    np.testing.assert_array_equal(tight.cv_results_["status"], free.cv_results_["status"])


def test_what_does_not_fit_is_refused_before_the_search(monkeypatch):
    X, y = problem(3000)
    part = ShuffleSplit(1, test_size=0.2, train_size=0.5, random_state=0)
    make = on_given_centers(degrees=3, n_centers=8, cv=part, solvers="paper")
    shape = Shape(3000, 3, 8, 1, 8, False, False, 0, cells=2, lanes=1)
    limit = peak_bytes(shape, Resources(1, 1, spill=True)) + 1000
    make.set_params(memory_limit=limit).fit(X, y)  # there is room for the search and a model
    swept = at_call(monkeypatch, LocalEngine, "sweep", 0, interrupt)
    refused = False
    try:
        make.set_params(calibration="sigmoid").fit(X, y)
    except MemoryError:
        refused = True
    assert not (refused and swept)


def quiet_fit(estimator, X, y, *weights):
    """Fit, whatever the solver says about its convergence."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator.fit(X, y, *weights)


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
    search = FPCClassifierCV(**QUICK | {"rhos": None, "cv": 5}, **shared, random_state=4)
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
    original = _search._Search._refit

    def refit(self, *arguments):
        monkeypatch.setattr(LocalEngine, "scores", lambda *_: pytest.fail("there are no folds"))
        return original(self, *arguments)

    monkeypatch.setattr(_search._Search, "_refit", refit)
    FPCClassifierCV(**QUICK, cv=3).fit(X, y)


def test_the_best_estimator_can_be_fitted_further():
    X, y = problem(200)
    search = FPCClassifierCV(**QUICK, cv=3, random_state=0).fit(X, y)
    best = search.best_estimator_.set_params(warm_start=True)
    quiet_fit(best, X, y)


def test_every_candidate_of_given_centers_is_a_classifiers_parameters():
    X, y = problem(200)
    search = on_given_centers(solvers="paper").fit(X, y)
    FPCClassifier(**search.cv_results_["params"][0]).fit(X, y)


def test_candidates_are_all_combinations():
    X, y = problem(200, 2)
    search = FPCClassifierCV(
        (1, 2),
        (2, 5, 100),
        scalers=("minmax", None),
        rhos=(None, 1e-3),
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


def test_degrees_that_overflow_are_left_out_where_they_were_not_asked_for():
    X, y = problem(100, 2)
    large = (X * 1e60).astype(float)
    quick = {"n_centers": 4, "centers": "random", "scalers": None, "solvers": "paper", "cv": 2}
    auto = FPCClassifierCV("auto", **quick, random_state=0)
    with np.errstate(over="ignore"):
        assert set(auto.fit(large, y).cv_results_["param_degree"]) == {1}
    with pytest.raises(ValueError, match="degree=2 overflows"):
        FPCClassifierCV((1, 2), **quick).fit(large, y)


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
        2, (3, 5, 7, 10), scalers="minmax", max_iter=(5, 10, 20), cv=3, random_state=0
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
        ({"scalers": "robust"}, "scalers must be one of 'minmax', 'standard', 'quantile', None"),
        ({"scalers": ["minmax", 3]}, "scalers must be one of"),
        ({"solvers": ("paper", "exact")}, "solvers must be one of 'paper', 'converged'; got 'ex"),
        ({"solvers": None}, "solvers must be one of"),
        ({"rhos": [1e-3, -1.0]}, r"rhos must be a number of at least 0; got -1\.0"),
        ({"rhos": []}, "rhos must hold at least one value"),
        ({"max_iter": (5, 0)}, "max_iter must be an integer of at least 1; got 0"),
        ({"max_iter": None}, "max_iter must be an integer"),
        ({"cv": 1}, "cv must be a number of folds"),
        ({"cv": 61}, "cv=61 folds need at least 61 rows; got 60"),
        ({"cv": 1.5}, "cv must be a number of folds"),
        ({"cv": "five"}, "cv must be a number of folds"),
        ({"scoring": "nope"}, "scoring='nope' is no scorer"),
        ({"scoring": ["accuracy"]}, "scoring must be"),
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
    with pytest.raises(ValueError, match="NaN"):
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
    monkeypatch.setattr(_monitor._Lines, "finish", lambda self, phase, *_: self._print(phase))
    X, y = problem(120)
    FPCClassifierCV(**QUICK, cv=3, verbose=1).fit(X, y)
    shown = capsys.readouterr().err
    for stage in (
        r"degree \d \(1 of 2\): Gram matrix",
        r"degree \d \(2 of 2\): sweep",
        "refit: sweep",
    ):
        assert re.search(stage, shown), stage


class Clock:
    """Time as the monitor sees it, which passes only when it is told to."""

    def __init__(self, monkeypatch):
        self.now = 1000.0
        monkeypatch.setattr(_monitor, "perf_counter", lambda: self.now)


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def at_call(monkeypatch, owner, name, number, action):
    """Do something just before the given call of a method; return the calls so far."""
    original, calls = getattr(owner, name), []

    def counted(self, *arguments):
        calls.append(1)
        if len(calls) == number:
            action()
        return original(self, *arguments)

    monkeypatch.setattr(owner, name, counted)
    return calls


def advance(clock, seconds):
    clock.now += seconds


@pytest.mark.parametrize(
    ("phase", "rows"),
    [("survey", 9000), ("gram", 400), ("gram", 9000), ("sweep", 400), ("sweep", 9000)],
)
def test_a_time_limit_before_the_first_candidate(clock, monkeypatch, phase, rows):
    X, y = problem(rows)
    if phase == "survey":
        monkeypatch.setattr(_monitor, "perf_counter", iter(range(0, 10**6, 10)).__next__)
    elif phase == "gram":
        at_call(monkeypatch, LocalEngine, "gram", 1, lambda: advance(clock, 11))
    else:
        at_call(monkeypatch, LocalEngine, "sweep", 1, lambda: advance(clock, 11))
    search = FPCClassifierCV(**QUICK, cv=3, time_limit=10)
    where = "survey" if phase == "survey" else r"minmax, degree \d \(1 of 2\)"
    message = f"time_limit=10 s struck before a first candidate was finished .in: {where}.*Raise"
    with pytest.raises(TimeoutError, match=message):
        search.fit(X, y)
    assert not hasattr(search, "best_estimator_")


def test_a_time_limit_takes_the_best_candidate_so_far(clock, monkeypatch):
    X, y = problem()
    settings = QUICK | {"degrees": (1, 2, 3), "cv": 3, "random_state": 0}
    reserved = []

    def late():  # with time left for the refit, but for no more
        monitor = stages[-1]._shop.monitor
        reserved.append(monitor._reserved)
        clock.now = monitor._deadline - monitor._reserved / 2

    stages, original = [], Stage.run

    def run(self):
        stages.append(self)
        if len(stages) == 2:
            late()
        original(self)

    monkeypatch.setattr(Stage, "run", run)
    search = FPCClassifierCV(**settings, time_limit=60)
    with pytest.warns(ConvergenceWarning, match=r"\(time_limit struck\): the best of"):
        search.fit(X, y)
    assert reserved[0] > 0
    assert search.status_ == "time_limit"
    results = search.cv_results_
    done = results["status"] == "finished"
    (degree,) = set(results["param_degree"][done])
    assert set(results["status"][results["param_degree"] != degree]) == {"stopped"}
    best = search.best_estimator_
    plain = quiet_fit(FPCClassifier(**search.best_params_, random_state=0), X, y)
    assert (best.status_, best.n_iter_) == (plain.status_, plain.n_iter_)
    np.testing.assert_allclose(search.decision_function(X), plain.decision_function(X), atol=1e-6)


def test_a_time_limit_in_the_first_stage_leaves_a_model_or_a_clear_error(clock, monkeypatch):
    X, y = problem(30_000)
    # The first rung is behind, so there are finished candidates; the stage is not at its end.
    at_call(monkeypatch, LocalEngine, "sweep", 7, lambda: advance(clock, 11))
    settings = QUICK | {"solvers": "converged", "max_iter": (3, 20), "cv": 2, "rhos": None}
    search = FPCClassifierCV(**settings, time_limit=10, random_state=0)
    with pytest.warns(ConvergenceWarning):
        search.fit(X, y)
    assert search.score(X, y) > 0.5


def test_the_refit_is_done_in_full_whatever_the_time(clock, monkeypatch):
    X, y = problem()
    original = _search._Search._refit

    def refit(self, *arguments):
        at_call(monkeypatch, LocalEngine, "sweep", 2, lambda: advance(clock, 11))
        return original(self, *arguments)

    monkeypatch.setattr(_search._Search, "_refit", refit)
    settings = QUICK | {"solvers": "converged", "max_iter": 20, "cv": 2, "rhos": None}
    search = FPCClassifierCV(**settings, time_limit=10, random_state=0).fit(X, y)
    assert search.status_ == "finished"
    assert search.best_estimator_.status_ != "time_limit"


@pytest.mark.parametrize(
    "cv",
    [
        KFold(2),
        RepeatedStratifiedKFold(n_splits=2, n_repeats=3, random_state=0),
    ],
    ids=str,
)
def test_the_time_saved_is_honest(clock, monkeypatch, cv):
    """A Gram matrix takes a second; a fit alone on half of the rows would take half of that."""
    X, y = problem(200)
    original = ShardWork.gram

    def slow(self, item):
        clock.now += 1.0
        return original(self, item)

    monkeypatch.setattr(ShardWork, "gram", slow)
    search = FPCClassifierCV(1, 4, scalers=None, solvers="paper", rhos=None, cv=cv).fit(X, y)
    alone = 0.5 * search.n_splits_
    assert search.time_saved_ + search.timings_["total"] == pytest.approx(alone, abs=0.1)


def interrupt():
    raise KeyboardInterrupt


def test_ctrl_c_takes_the_best_candidate_so_far(monkeypatch):
    X, y = problem()
    at_call(monkeypatch, Stage, "run", 2, interrupt)
    search = FPCClassifierCV(**QUICK, cv=3, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"\(interrupted\): the best of") as caught:
        search.fit(X, y)
    assert caught[0].filename == __file__, "the warning points at the caller"
    assert search.status_ == "interrupted"
    results = search.cv_results_
    unseen = results["param_degree"] != search.best_params_["degree"]
    assert (results["status"][unseen] == "not run").all()
    assert np.isnan(results["mean_test_score"][unseen]).all()
    assert np.isnan(results["std_test_score"][unseen]).all()
    assert results["rank_test_score"][unseen].min() > results["rank_test_score"][~unseen].max()
    plain = quiet_fit(FPCClassifier(**search.best_params_, random_state=0), X, y)
    np.testing.assert_allclose(search.decision_function(X), plain.decision_function(X), atol=1e-6)


def test_ctrl_c_before_the_first_candidate_raises(monkeypatch):
    X, y = problem()
    at_call(monkeypatch, LocalEngine, "sweep", 2, interrupt)
    search = FPCClassifierCV(**QUICK, cv=3, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, y)
    assert not hasattr(search, "best_estimator_")


def test_ctrl_c_in_the_refit_is_told(monkeypatch):
    X, y = problem()
    original = _search._Search._refit

    def refit(self, *arguments):
        at_call(monkeypatch, LocalEngine, "sweep", 2, interrupt)
        return original(self, *arguments)

    monkeypatch.setattr(_search._Search, "_refit", refit)
    settings = QUICK | {"solvers": "converged", "max_iter": 20, "cv": 2, "rhos": None}
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        FPCClassifierCV(**settings, random_state=0).fit(X, y)


@pytest.fixture
def save_always(monkeypatch):
    monkeypatch.setattr(_checkpoint.Checkpoint, "due", lambda self: True)
    monkeypatch.setattr(_checkpoint.os, "fsync", lambda _: None)  # nobody pulls the plug here


SEARCHED = {"scalers": "minmax", "degrees": (1, 2, 3), "n_centers": 10, "rhos": 1e-4}
SEARCHED |= {"max_iter": (5, 10, 20), "cv": 3, "random_state": 0, "screen": False}


@cache
def searched(**changes):
    """Return a search that nobody interrupts, and that saves nothing."""
    return FPCClassifierCV(**SEARCHED | changes).fit(*problem())


def test_saving_changes_nothing(tmp_path, save_always):
    saved = FPCClassifierCV(**SEARCHED, checkpoint=tmp_path).fit(*problem())
    same_results(saved, searched())
    np.testing.assert_array_equal(saved.best_estimator_.coef_, searched().best_estimator_.coef_)


def interrupted(monkeypatch, owner, method, number, search, X, y):
    """Fit, and interrupt the given call of a method."""
    with monkeypatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        calls = at_call(patch, owner, method, number, interrupt)
        with contextlib.suppress(KeyboardInterrupt):
            search.fit(X, y)
    assert len(calls) >= number, "there was something to interrupt"


@pytest.mark.parametrize(
    ("method", "number"),
    [
        *(("gram", number) for number in (1, 3)),
        *(("sweep", number) for number in (1, 7, 23, 60)),
        *(("scores", number) for number in (2, 4, 12)),
    ],
)
def test_an_interrupted_search_goes_on_to_the_same_results(
    tmp_path, monkeypatch, save_always, method, number
):
    X, y = problem()
    search = FPCClassifierCV(**SEARCHED, refit=False, checkpoint=tmp_path)
    interrupted(monkeypatch, LocalEngine, method, number, search, X, y)
    same_results(search.fit(X, y), searched())


@pytest.mark.parametrize("number", [1, 2, 8])
def test_an_interrupted_refit_goes_on_to_the_same_model(tmp_path, monkeypatch, save_always, number):
    X, y = problem()
    changes = {"solvers": "converged", "calibration": "sigmoid", "degrees": 2}
    expected = searched(**changes)
    make = FPCClassifierCV(**SEARCHED | changes, checkpoint=tmp_path)
    with monkeypatch.context() as patch:
        original = _search._Search._refit

        def refit(self, *arguments):
            at_call(patch, LocalEngine, "sweep", number, interrupt)
            return original(self, *arguments)

        patch.setattr(_search._Search, "_refit", refit)
        with warnings.catch_warnings(), contextlib.suppress(KeyboardInterrupt):
            warnings.simplefilter("ignore", ConvergenceWarning)
            make.fit(X, y)
    make.fit(X, y)
    same_results(make, expected)
    np.testing.assert_array_equal(make.best_estimator_.coef_, expected.best_estimator_.coef_)
    np.testing.assert_array_equal(make.predict_proba(X), expected.predict_proba(X))
    assert make.best_estimator_.status_ == expected.best_estimator_.status_


@pytest.mark.parametrize("first", [False, True])
def test_the_model_of_an_interrupted_search_is_that_of_its_choice(
    tmp_path, monkeypatch, save_always, first
):
    """Ctrl-C ends in a refit of the best so far, whose state must not serve another's refit."""
    X, y = problem()
    for n in (4, 10):  # the best degree is the lowest for one, and the highest for the other
        expected = searched(n_centers=n)
        make = FPCClassifierCV(**SEARCHED | {"n_centers": n}, checkpoint=tmp_path / f"{n}")
        interrupted(monkeypatch, LocalEngine, "sweep", 7 if first else 45, make, X, y)
        make.fit(X, y)
        same_results(make, expected)
        np.testing.assert_array_equal(make.best_estimator_.coef_, expected.best_estimator_.coef_)


@pytest.mark.parametrize("number", [1, 2, 4])
def test_an_interrupted_gram_matrix_is_gone_on_with(tmp_path, monkeypatch, save_always, number):
    X, y = problem(20_000)
    settings = QUICK | {"solvers": "paper", "rhos": 1e-4, "cv": 2, "refit": False}
    settings |= {"random_state": 0}
    expected = FPCClassifierCV(**settings, checkpoint=tmp_path / "whole").fit(X, y)
    cut = FPCClassifierCV(**settings, checkpoint=tmp_path / "cut", n_jobs=1)
    interrupted(monkeypatch, ShardWork, "gram", number, cut, X, y)
    calls = at_call(monkeypatch, ShardWork, "gram", 0, interrupt)
    resumed = FPCClassifierCV(**settings, checkpoint=tmp_path / "cut").fit(X, y)
    same_results(resumed, expected)
    assert len(calls) == 4 - (number - 1), "finished spans, two of each stage, are not done again"


def test_screening_and_rounds_are_resumed(tmp_path, monkeypatch, save_always):
    X, y = problem()
    settings = SEARCHED | {"screen": True, "n_centers": (4, 6, 8, 10), "refit": False}
    settings |= {"cv": RepeatedStratifiedKFold(n_splits=2, n_repeats=2, random_state=0)}
    settings |= {"degrees": (2, 3)}
    with monkeypatch.context() as patch:
        sweeps = at_call(patch, LocalEngine, "sweep", 0, interrupt)
        expected = FPCClassifierCV(**settings, checkpoint=tmp_path / "whole").fit(X, y)
    assert set(expected.cv_results_["status"]) == {"finished", "screened"}
    for number in (3, len(sweeps) // 4, len(sweeps) // 2, len(sweeps) - 2):
        cut = FPCClassifierCV(**settings, checkpoint=tmp_path / f"{number}")
        interrupted(monkeypatch, LocalEngine, "sweep", number, cut, X, y)
        same_results(cut.fit(X, y), expected)


def test_a_finished_search_is_found_again(tmp_path, monkeypatch, save_always):
    X, y = problem()
    settings = SEARCHED | {"random_state": None, "calibration": "sigmoid", "degrees": (1, 2)}
    first = FPCClassifierCV(**settings, checkpoint=tmp_path).fit(X, y)
    for name in ("gram", "sweep"):
        at_call(monkeypatch, LocalEngine, name, 1, interrupt)
    again = FPCClassifierCV(**settings, checkpoint=tmp_path).fit(X, y)
    assert again.random_state_ == first.random_state_
    same_results(again, first)
    np.testing.assert_array_equal(again.predict_proba(X), first.predict_proba(X))


def test_a_checkpoint_of_other_data_or_another_search_is_refused(tmp_path):
    X, y = problem(150)
    settings = QUICK | {"solvers": "paper", "rhos": None, "cv": 3, "random_state": 0}
    weights = np.ones(150)
    FPCClassifierCV(**settings, checkpoint=tmp_path).fit(X, y)
    other = X.copy()
    other[3, 1] += 1e-6
    for arguments in ((other, y), (X, -y), (X[:-1], y[:-1]), (X, y, 2 * weights)):
        with pytest.raises(CheckpointError, match="belongs to another fit"):
            FPCClassifierCV(**settings, checkpoint=tmp_path).fit(*arguments)
    for changes, word in (
        ({"cv": 4}, "splits"),
        ({"degrees": (1, 3)}, "degrees"),
        ({"n_centers": 7}, "n_centers"),
        ({"scoring": "roc_auc"}, "scoring"),
        ({"screen": False}, "screen"),
        ({"random_state": 1}, "seed"),
        ({"centers": X[:10]}, "centers"),
    ):
        with pytest.raises(CheckpointError, match=f"its {word} is"):
            FPCClassifierCV(**settings | changes, checkpoint=tmp_path).fit(X, y)
    with pytest.raises(CheckpointError, match="belongs to another fit"):
        FPCClassifier(1, random_state=0, checkpoint=tmp_path).fit(X, y)


@pytest.mark.parametrize("sizes", [(6, 2), (2, 6)])
def test_more_or_less_memory_after_a_crash(tmp_path, monkeypatch, save_always, sizes):
    """By default the limit is half of what is free, which is never the same twice."""
    X, y = problem()
    settings = SEARCHED | {"n_centers": (4, 7, 10), "degrees": 2, "refit": False}
    expected = FPCClassifierCV(**settings).fit(X, y)
    original = _stage.fit_lanes
    for number, size in enumerate(sizes):
        with monkeypatch.context() as patch:
            patch.setattr(_stage, "fit_lanes", lambda *a, n=size, **k: (original(*a, **k)[0], n))
            if number == 0:
                at_call(patch, LocalEngine, "sweep", 4, interrupt)
                with pytest.raises(KeyboardInterrupt):
                    FPCClassifierCV(**settings, checkpoint=tmp_path, n_jobs=1).fit(X, y)
            else:
                resumed = FPCClassifierCV(**settings, checkpoint=tmp_path).fit(X, y)
    same_results(resumed, expected, atol=1e-9)


def test_a_callable_scorer_is_known_again_in_another_process(tmp_path):
    def made():  # as a new process would make it
        def scorer(estimator, X, y):
            return np.mean(estimator.predict(X) == y)

        return scorer

    X, y = problem(100)
    settings = QUICK | {"solvers": "paper", "rhos": None, "cv": 2, "random_state": 0}
    for scorer in (made(), made()):
        FPCClassifierCV(**settings, scoring=scorer, checkpoint=tmp_path).fit(X, y)


def test_ratios_of_any_type_are_saved(tmp_path):
    X, y = problem(100)
    ratios = np.array([1e-4, 1e-2], dtype=np.float32)
    settings = QUICK | {"solvers": "paper", "rhos": ratios, "cv": 2, "random_state": 0}
    FPCClassifierCV(**settings, checkpoint=tmp_path).fit(X, y)


def test_iterations_are_counted_alike_after_a_crash(tmp_path, monkeypatch, save_always):
    X, y = problem()
    settings = SEARCHED | {"tol": 0, "degrees": 2, "max_iter": 20, "refit": False}
    expected = FPCClassifierCV(**settings).fit(X, y)
    with monkeypatch.context() as patch:
        at_call(patch, LocalEngine, "sweep", 8, interrupt)
        with pytest.raises(KeyboardInterrupt):
            FPCClassifierCV(**settings, checkpoint=tmp_path, n_jobs=1).fit(X, y)
    resumed = FPCClassifierCV(**settings, checkpoint=tmp_path).fit(X, y)
    np.testing.assert_array_equal(resumed.cv_results_["n_iter"], expected.cv_results_["n_iter"])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")  # scikit-learn's own deprecations
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [FPCClassifierCV((1, 2), (5, 10), scalers="minmax", rhos=1e-3, max_iter=5, cv=3)],
)
def test_scikit_learn(estimator, check):
    """The check that weights equal repetition passes, since it brings folds that agree."""
    check(estimator)
