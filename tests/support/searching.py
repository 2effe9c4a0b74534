"""What tests of the search share."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from polysift import FPCClassifierCV
from problems import noisy_problem

QUICK = {
    "scalers": "minmax",
    "degrees": (1, 2),
    "n_centers": (5, 10),
    "solvers": ("paper", "converged"),
    "rhos": (None, 1e-9, 1e-6, 1e-3),
    "max_iter": (5, 10),
}


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


def on_given_centers(**changes):
    """Return a search without scalers, over few centers, in which every candidate is run."""
    settings = {
        "degrees": (2, 3),
        "n_centers": (4, 8),
        "centers": np.random.default_rng(1).random((8, 3)),
        "scalers": None,
        "rhos": 1e-4,
        "solvers": ("paper", "converged"),
        "max_iter": (5, 20),
        "cv": 3,
        "screen": False,
        "random_state": 0,
    }
    return FPCClassifierCV(**settings | changes)


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


def quiet_fit(estimator, X, y, *weights):
    """Fit, whatever the solver says about its convergence."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator.fit(X, y, *weights)


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


def interrupt():
    raise KeyboardInterrupt
