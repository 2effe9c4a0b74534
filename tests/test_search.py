"""The search against plain fits, fold by fold, and what it promises besides."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    PredefinedSplit,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)

from conftest import noisy_problem
from oracles import kernel
from polysift import FPCClassifier, FPCClassifierCV

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
