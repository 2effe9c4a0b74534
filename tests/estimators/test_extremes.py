"""Numbers at the ends of what floats hold: a model, or one clear error, and no stray warning."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
import pytest
from scipy.linalg import LinAlgWarning
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning

from polysift import FeatureOverflowError, FPCClassifierCV, PolynomialKernelMap
from problems import paper_classifier

ROWS = 60
RNG = np.random.default_rng(0)
BASE = RNG.random((ROWS, 2))
Y = (BASE.sum(axis=1) + 0.2 * RNG.normal(size=ROWS) > 1).astype(int)
THREE = Y + (BASE[:, 0] > 0.7)
OWN = RNG.uniform(0.5, 2.0, ROWS)
ODD = np.arange(ROWS) % 2 == 1

DATA = {f"times {size:g}": BASE * size for size in (1e-310, 1e-160, 1e20, 1e75, 1e149, 1e300)} | {
    "mixed": BASE * [1e-200, 1e140],
    "one constant": np.column_stack([BASE[:, 0], np.full(ROWS, 3.0)]),
    "all constant": np.full((ROWS, 2), 1e100),
    "one row moves": np.vstack([np.ones((ROWS - 1, 2)), [[2.0, 2.0]]]),
    "largest float32": (BASE * 3e38).astype(np.float32),
    "smallest float32": (BASE * 1e-40).astype(np.float32),
}
WEIGHTS = {
    "tiny": OWN * 1e-300,
    "huge": OWN * 1e300,
    "denormal": np.full(ROWS, 5e-324),
    "both": np.where(ODD, 1e-300, 1e300),
    "most vanish": np.where(np.arange(ROWS) % 3, 1e-320, 1.0),
    "most repetitions": np.full(ROWS, 2.0**53),
    "a class vanishes": np.where(Y == 1, 1e-300, 1.5),
}
SOLVERS = {
    "paper": {},
    "converged": {"solver": "converged", "max_iter": 12},
    "newton": {"solver": "newton", "max_iter": 8},
    "sampled": {"gram": "sampled", "n_centers": 2, "tol": 0},
    "calibrated": {"calibration": "sigmoid"},
    "isotonic": {"calibration": "isotonic", "solver": "converged", "max_iter": 12},
}
PARAMETERS = [
    {"alpha": 5e-324},
    {"alpha": 1e100},
    {"beta": 1e-100},
    {"beta": 1e100},
    {"alpha": 1e100, "beta": 1e-100},
    {"rho": 0},
    {"rho": 1e-300},
    {"rho": 1e100},
    {"class_weight": {0: 1e15, 1: 1e-15}},
    {"class_weight": {0: 1e-15, 1: 1e-15}, "beta": 1e-100},
]


@pytest.fixture(autouse=True)
def quiet():
    """Let pass what polysift itself warns of: those are about iterations and the floor on rho."""
    with warnings.catch_warnings():
        for kind in (ConvergenceWarning, LinAlgWarning, FitFailedWarning):
            warnings.simplefilter("ignore", kind)
        yield


def try_fit(X, y=Y, weights=None, **params):
    """Fit and predict; return whether the numbers were small enough."""
    model = paper_classifier(**({"n_centers": 6, "random_state": 0, "n_jobs": 1} | params))
    try:
        model.fit(X, y, weights)
    except FeatureOverflowError:
        return False
    assert np.isfinite(model.decision_function(X)).all()
    assert not any(np.isinf(column).any() for column in model.history_.values())
    if model.calibration:
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    return True


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("solver", SOLVERS)
def test_features_of_any_size(name, solver):
    for scaler, degree in product(("minmax", "standard", "quantile", None), (1, 3, 50)):
        fits = try_fit(DATA[name], scaler=scaler, degree=degree, **SOLVERS[solver])
        assert fits or scaler is None or name == "times 1e+300"


@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_weights_of_any_size(name, solver):
    for y, dtype in ((Y, float), (THREE, np.float32)):
        assert try_fit(BASE.astype(dtype), y, WEIGHTS[name], degree=2, **SOLVERS[solver])


@pytest.mark.parametrize("params", PARAMETERS, ids=str)
@pytest.mark.parametrize("solver", SOLVERS)
def test_parameters_of_any_size(params, solver):
    for y, dtype in ((Y, float), (THREE, np.float32)):
        assert try_fit(BASE.astype(dtype), y, degree=2, **SOLVERS[solver], **params)


@pytest.mark.parametrize("name", ["none", *WEIGHTS])
def test_weights_and_features_of_any_size_together(name):
    weights = WEIGHTS.get(name)
    for X, scaler in product(DATA.values(), ("minmax", "standard", "quantile", None)):
        fits = try_fit(X, weights=weights, scaler=scaler, calibration="sigmoid")
        map_ = PolynomialKernelMap(3, scaler=scaler, n_centers=6, random_state=0)
        try:
            assert np.isfinite(map_.fit(X, sample_weight=weights).transform(X)).all()
        except FeatureOverflowError:
            assert not fits


@pytest.mark.parametrize("params", [{}, *PARAMETERS], ids=str)
def test_a_search_over_extremes(params):
    shared = {name: value for name, value in params.items() if name != "rho"}
    rhos = (None, params.get("rho", 1e-6))
    for number, (X, name) in enumerate(product(DATA.values(), ("tiny", "both"))):
        if number % 5 != len(params) % 5:
            continue
        search = FPCClassifierCV(
            (1, 3),
            n_centers=6,
            scalers=("minmax", None),
            rhos=rhos,
            max_iter=(5, 10),
            cv=2,
            calibration="sigmoid",
            random_state=0,
            n_jobs=1,
            **shared,
        )
        try:
            search.fit(X, Y, WEIGHTS[name])
        except FeatureOverflowError:
            assert np.abs(X).max() > 1e150
        else:
            assert np.isfinite(search.predict_proba(X)).all()


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"beta": 1e-300}, r"beta must be a number from 1e-100 to 1e\+100; got 1e-300"),
        ({"beta": 1e300}, "beta must be a number from 1e-100"),
        ({"alpha": 1e300}, r"alpha must be a number of at most 1e\+100; got 1e\+300"),
        ({"rho": 1e300}, r"rho must be a number of at most 1e\+100"),
        ({"class_weight": {1: 1e300}}, "class_weight must hold positive numbers, from 1e-15"),
    ],
)
def test_parameters_beyond_are_refused_by_name(params, words):
    with pytest.raises(ValueError, match=words):
        paper_classifier(**params).fit(BASE, Y)


def test_an_overflow_is_one_error_wherever_it_happens():
    assert issubclass(FeatureOverflowError, ValueError)
    assert issubclass(FeatureOverflowError, FloatingPointError)
    model = paper_classifier(2, scaler=None, random_state=0).fit(BASE, Y)
    with pytest.raises(FeatureOverflowError, match="row 0"):
        model.predict([[1e200, 1e200]])
    with pytest.raises(FeatureOverflowError, match="Rescale that column"):
        model.fit(BASE * 1e200, Y)
    with pytest.raises(FeatureOverflowError, match="degree=50 overflows"):
        paper_classifier(50, scaler=None).fit(BASE * 1e9, Y)
    with pytest.raises(FeatureOverflowError, match="overflows. Lower rho"):
        paper_classifier(1, scaler=None, rho=1e100).fit(BASE * 1e70, Y)
