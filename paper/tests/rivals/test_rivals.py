"""The rivals: each against what it must find, the table of methods, and real data."""

import pickle
import sys
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem, PolynomialCountSketch, RBFSampler
from sklearn.linear_model import Ridge
from sklearn.preprocessing import PolynomialFeatures
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from polysift_paper.rivals import (
    METHODS,
    FalkonClassifier,
    ProxPFGMClassifier,
    falkon,
    make,
)
from polysift_paper.rivals.base import median_distance
from polysift_paper.rivals.linear_svm import NewtonLinearSVC
from polysift_paper.rivals.prox_pfgm import (
    candidate_pairs,
    feature_scores,
    features,
    penalty,
    prox,
    slack,
    solve,
)
from polysift_paper.rivals.random_features import MedianFourierFeatures, QuickCountSketch
from problems import load_real, noisy_problem, three_parts

PAPER = [
    ("svm_rbf", "SVM-RBF"),
    ("svm_poly", "SVM-Poly"),
    ("linear_svm", "linear-SVM"),
    ("l1_svm", "l1-SVM"),
    ("random_forest", "RF"),
    ("prox_pfgm", "PROX-PFGM"),
    ("falkon", "FALKON"),
    ("rr_fourier", "RR-Fourier"),
    ("tensor_sketch", "TS"),
]
SIZES = list(range(200, 2001, 200))


def blend(rng, m=300, d=3):
    """Return a problem with a curved boundary and little noise."""
    return noisy_problem(rng, m, d, noise=0.05)


# --- scikit-learn's checks -----------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::FutureWarning")  # the checks touch scikit-learn's own
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([ProxPFGMClassifier(), FalkonClassifier(), NewtonLinearSVC()])
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("name", ["ProxPFGM", "Falkon"])
def test_one_or_three_classes_are_refused(rng, name):
    model = {"ProxPFGM": ProxPFGMClassifier(), "Falkon": FalkonClassifier()}[name]
    X = rng.random((30, 2))
    with pytest.raises(ValueError, match="y must hold two classes; got 3.*OneVsRestClassifier"):
        model.fit(X, np.arange(30) % 3)
    with pytest.raises(ValueError, match="y must hold two classes.*got one class, 'a'"):
        model.fit(X, ["a"] * 30)


# --- PROX-PFGM -----------------------------------------------------------------------------------


def brute_prox(v, groups, tau):
    """Minimise in the group norms, which a general solver sees as a smooth problem with bounds."""
    o = np.sqrt(np.bincount(groups, v * v))

    def value(x):
        return 0.5 * np.sum((x - o) ** 2) + 0.5 * tau * x.sum() ** 2

    def slope(x):
        return x - o + tau * x.sum()

    options = {"ftol": 1e-16, "gtol": 1e-13, "maxiter": 10_000}
    start = np.full(len(o), o.mean())
    bounds = [(0, None)] * len(o)
    x = minimize(value, start, jac=slope, bounds=bounds, method="L-BFGS-B", options=options).x
    return v * np.divide(x, o, out=np.zeros_like(o), where=o > 0)[groups]


@pytest.mark.parametrize("tau", [0.01, 0.3, 2.0, 50.0])
@pytest.mark.parametrize("sizes", [(1,), (3,), (1, 1, 1, 1), (2, 5, 1, 3), (4,) * 8])
def test_prox_is_the_minimum(rng, sizes, tau):
    groups = np.repeat(np.arange(len(sizes)), sizes)
    for _ in range(5):
        v = rng.normal(size=len(groups)) * rng.choice([0.1, 1.0, 10.0], len(sizes))[groups]
        np.testing.assert_allclose(prox(v, groups, tau), brute_prox(v, groups, tau), atol=2e-6)


def test_prox_with_zeros_and_ties():
    groups = np.array([0, 0, 1, 1, 2])
    v = np.array([3.0, 4.0, -5.0, 0.0, 0.0])
    # Two norms of 5: both become 5 / (1 + 2 tau).
    np.testing.assert_allclose(prox(v, groups, 0.5), v / 2)
    assert not prox(np.zeros(5), groups, 0.5).any()
    np.testing.assert_array_equal(prox(v, groups, 0.0), v)


def test_prox_beats_all_points_nearby(rng):
    groups = np.array([0, 0, 1, 2, 2, 2])
    v, tau = rng.normal(size=6), 0.7
    w = prox(v, groups, tau)

    def value(u):
        return 0.5 * np.sum((u - v) ** 2) + tau * penalty(u, groups)

    for scale in (1e-4, 1e-2, 1.0):
        for _ in range(50):
            assert value(w) <= value(w + scale * rng.normal(size=6)) + 1e-15


@pytest.mark.parametrize("C", [0.01, 0.1, 1.0, 30.0, 1000.0])
def test_subproblem_has_no_duality_gap(rng, C):
    X, y = blend(rng, 200, 4)
    Z = features(X, candidate_pairs(4))
    Z -= Z.mean(axis=0)
    groups = np.repeat(np.arange(5), [1, 2, 4, 3, 4])
    found = solve(Z, y, groups, C, tol=1e-13)
    alpha = C * slack(found.f, y)
    # The intercept wants the classes to balance; rounding must not make the bound invalid.
    alpha[y > 0] *= alpha[y < 0].sum() / alpha[y > 0].sum()
    norms = np.sqrt(np.bincount(groups, ((alpha * y) @ Z) ** 2))
    dual = alpha.sum() - np.sum(alpha**2) / (2 * C) - 0.5 * norms.max() ** 2
    assert 0 < dual <= found.objective * (1 + 1e-9)
    np.testing.assert_allclose(found.objective, dual, rtol=1e-6)


@pytest.mark.parametrize("C", [1.0, 30.0])
def test_subproblem_against_a_general_solver(rng, C):
    X, y = blend(rng, 60, 3)
    Z = features(X, candidate_pairs(3))
    Z -= Z.mean(axis=0)
    groups = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2])
    found = solve(Z, y, groups, C, tol=1e-13)

    # Norms bound by variables s: smooth objective, smooth constraints.
    def value(x):
        f = Z @ x[:9] + x[9]
        return 0.5 * x[10:].sum() ** 2 + 0.5 * C * np.sum(slack(f, y) ** 2)

    def slope(x):
        r = C * y * slack(Z @ x[:9] + x[9], y)
        return np.concatenate([-(r @ Z), [-r.sum()], np.full(3, x[10:].sum())])

    def room(x):
        return x[10:] ** 2 - np.bincount(groups, x[:9] ** 2)

    bounds = [(None, None)] * 10 + [(0, None)] * 3
    start = np.concatenate([rng.normal(size=10), np.full(3, 4.0)])
    options = {"ftol": 1e-14, "maxiter": 2000}
    limits = {"type": "ineq", "fun": room}
    best = minimize(value, start, jac=slope, bounds=bounds, constraints=limits, options=options)
    assert found.objective <= best.fun * (1 + 1e-8)
    np.testing.assert_allclose(found.objective, best.fun, rtol=1e-5)
    np.testing.assert_allclose(Z @ found.w + found.b, Z @ best.x[:9] + best.x[9], atol=5e-3)
    np.testing.assert_allclose(found.f, Z @ found.w + found.b, atol=1e-9)


def test_scores_are_those_of_the_explicit_features(rng):
    X, g = rng.random((40, 4)), rng.normal(size=40)
    g[::3] = 0.0
    pairs = candidate_pairs(4)
    Z = features(X, pairs)
    np.testing.assert_allclose(feature_scores(X, g), np.abs(g @ Z), rtol=1e-12, atol=1e-13)
    # The features are those of the kernel, less its constant.
    np.testing.assert_allclose(Z @ Z.T + 1, (1 + X @ X.T) ** 2, rtol=1e-12)
    plain = PolynomialFeatures(2, include_bias=False).fit_transform(X)
    np.testing.assert_allclose(Z / np.where(pairs[:, 0] == pairs[:, 1], 1, np.sqrt(2)), plain)


def test_the_objective_falls_and_is_the_documented_one(rng):
    X, y = blend(rng, 400, 6)
    model = ProxPFGMClassifier(C=3.0, n_features_per_round=4, tol=0.0).fit(X, y)
    assert model.n_iter_ == len(model.objective_history_) == len(model.groups_) == 7
    assert len(model.coef_) == len(model.selected_) == 27
    assert len(np.unique(model.selected_, axis=0)) == 27
    assert (np.diff(model.objective_history_) <= 0).all()
    norms = [np.linalg.norm(w) for w in np.split(model.coef_, np.arange(4, 27, 4))]
    miss = slack(model.decision_function(X), y)
    objective = 0.5 * sum(norms) ** 2 + 1.5 * np.sum(miss**2)
    np.testing.assert_allclose(model.objective_history_[-1], objective, rtol=1e-10)
    assert abs(np.sum(miss * y)) < 1e-2 * miss.sum()  # the intercept is at its best


def test_rounds_end_by_each_of_the_rules(rng):
    X, y = blend(rng, 300, 5)
    few = {"n_features_per_round": 2}
    assert ProxPFGMClassifier(max_rounds=3, tol=0.0, **few).fit(X, y).n_iter_ == 3
    assert ProxPFGMClassifier(tol=0.5, **few).fit(X, y).n_iter_ <= 3
    assert ProxPFGMClassifier(n_features_per_round=1000).fit(X, y).n_iter_ == 1


def test_the_first_group_holds_the_features_that_matter(rng):
    X = rng.random((500, 20)) - 0.5
    y = np.where(X[:, 3] * X[:, 11] > 0, 1, -1)
    model = ProxPFGMClassifier(n_features_per_round=3).fit(X, y)
    assert [3, 11] in model.groups_[0].tolist()
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"C": 0}, "C must be a positive number; got 0"),
        ({"n_features_per_round": 0}, "n_features_per_round must be an integer of at least 1"),
        ({"max_rounds": 2.5}, "max_rounds must be an integer of at least 1; got 2.5"),
        ({"tol": -1}, "tol must be a number of at least 0; got -1"),
    ],
    ids=["C", "n_features_per_round", "max_rounds", "tol"],
)
def test_parameters_of_pfgm(rng, params, message):
    with pytest.raises(ValueError, match=message):
        ProxPFGMClassifier(**params).fit(*blend(rng, 20))


# --- FALKON --------------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [0.3, 1.0, "median"])
def test_falkon_reaches_the_nystrom_solution(rng, sigma):
    X, y = blend(rng, 300, 4)
    model = FalkonClassifier(60, sigma, penalty=1e-4, n_iter=60, random_state=0).fit(X, y)
    K = falkon.gaussian_kernel(X, model.centers_, model.sigma_)
    K_MM = falkon.gaussian_kernel(model.centers_, model.centers_, model.sigma_)
    a = np.linalg.solve(K.T @ K + 1e-4 * len(X) * K_MM, K.T @ y)
    np.testing.assert_allclose(model.decision_function(X), K @ a, atol=1e-7)
    if sigma == 0.3:
        np.testing.assert_allclose(model.coef_, a, rtol=1e-6, atol=1e-8)


def test_falkon_agrees_with_scikit_learn(rng):
    X, y = blend(rng, 400, 3)
    model = FalkonClassifier(50, 0.5, penalty=1e-3, n_iter=50, random_state=1).fit(X, y)
    nystroem = Nystroem(gamma=0.5 / 0.5**2, n_components=50).fit(model.centers_)
    ridge = Ridge(alpha=1e-3 * len(X), fit_intercept=False).fit(nystroem.transform(X), y)
    expected = ridge.predict(nystroem.transform(X))
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-8)


def test_twenty_iterations_are_enough(rng):
    X, y = blend(rng, 2000, 5)
    short = FalkonClassifier(300, random_state=0).fit(X, y)
    long = FalkonClassifier(300, n_iter=200, random_state=0).fit(X, y)
    assert short.n_iter_ == 20
    assert np.mean(short.predict(X) != long.predict(X)) < 0.01


def test_centers_are_distinct_rows(rng):
    X = np.repeat(rng.integers(0, 3, (20, 2)).astype(float), 10, axis=0)
    X[0] = -0.0 * X[0]
    y = np.where(X.sum(axis=1) > 2, 1, -1)
    model = FalkonClassifier(100, random_state=0).fit(X, y)
    distinct = np.unique(X + 0.0, axis=0)
    assert model.n_centers_ == len(distinct)
    np.testing.assert_array_equal(np.unique(model.centers_ + 0.0, axis=0), distinct)
    assert model.score(X, y) == 1.0


def test_wide_kernels_and_close_centers_do_no_harm(rng):
    X, y = blend(rng, 500, 2)
    X = np.vstack([X, X + 1e-9])
    model = FalkonClassifier(800, sigma=20.0, random_state=0).fit(X, np.tile(y, 2))
    assert np.isfinite(model.coef_).all() and model.score(X, np.tile(y, 2)) > 0.6


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("scale", [1e-160, 1e200])
def test_distances_beyond_all_numbers_are_refused(rng, scale):
    """Some LAPACKs refuse to factor NaN, and a larger diagonal would be tried without end."""
    X, y = blend(rng, 50, 3)
    with pytest.raises(ValueError, match="scale the columns of X first"):
        FalkonClassifier(20, random_state=0).fit(scale * X, y)


def test_the_cache_changes_nothing(rng, monkeypatch):
    monkeypatch.setattr(falkon, "BLOCK_BYTES", 8 * 40 * 64)
    X, y = blend(rng, 1000, 3)
    models = [FalkonClassifier(40, cache_size=s, random_state=0).fit(X, y) for s in (0, 0.1, 100)]
    for model in models[1:]:
        np.testing.assert_array_equal(model.coef_, models[0].coef_)
    kernel = falkon.KernelRows(X, models[0].centers_, 1.0, 0.1e6)
    assert len(list(kernel)) == 16 and len(kernel.cache) == 4


def test_the_seed_decides(rng):
    X, y = blend(rng, 2000, 3)
    first, again, other = (
        FalkonClassifier(30, random_state=seed).fit(X, y).coef_ for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_median_distance(rng):
    X = rng.random((40, 3))
    gaps = [np.linalg.norm(X[i] - X[j]) for i in range(40) for j in range(i)]
    np.testing.assert_allclose(median_distance(X, 0), np.median(gaps), rtol=1e-12)
    assert median_distance(np.ones((5, 2)), 0) == median_distance(np.ones((1, 2)), 0) == 1.0
    many = rng.random((5000, 3))
    assert median_distance(many, 0) == median_distance(many, 0) != median_distance(many, 1)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_centers": 0}, "n_centers must be an integer of at least 1; got 0"),
        ({"sigma": "mean"}, 'sigma must be a positive number or "median"; got \'mean\''),
        ({"sigma": -1.0}, "sigma must be a positive number; got -1.0"),
        ({"sigma_scale": 0}, "sigma_scale must be a positive number; got 0"),
        ({"penalty": 0}, "penalty must be a positive number; got 0"),
        ({"n_iter": 0}, "n_iter must be an integer of at least 1; got 0"),
        ({"cache_size": -1}, "cache_size must be a number of at least 0; got -1"),
        ({"implementation": "gpu"}, "implementation must be one of.*got 'gpu'"),
    ],
    ids=[
        "n_centers", "sigma-text", "sigma", "sigma_scale", "penalty", "n_iter", "cache_size",
        "implementation",
    ],
)  # fmt: skip
def test_parameters_of_falkon(rng, params, message):
    with pytest.raises(ValueError, match=message):
        FalkonClassifier(**params).fit(*blend(rng, 20))


def test_the_package_is_asked_for_by_name(rng, monkeypatch):
    monkeypatch.setattr(falkon, "find_spec", lambda name: None)
    X, y = blend(rng, 50)
    with pytest.raises(ImportError, match='needs the package falkon.*use implementation="own"'):
        FalkonClassifier(implementation="falkon").fit(X, y)
    own, auto = (
        FalkonClassifier(10, implementation=how, random_state=0).fit(X, y).coef_
        for how in ("own", "auto")
    )
    np.testing.assert_array_equal(own, auto)


def test_the_package_is_used_where_it_is(rng, monkeypatch):
    monkeypatch.setattr(falkon, "find_spec", lambda name: object())
    monkeypatch.setattr(falkon, "solve_by_package", lambda kernel, y, *_: (kernel.centers[:, 0], 7))
    X, y = blend(rng, 50)
    model = FalkonClassifier(10, random_state=0).fit(X, y)
    assert model.n_iter_ == 7
    np.testing.assert_array_equal(model.coef_, model.centers_[:, 0])


def test_what_the_package_is_told(rng, monkeypatch):
    told = {}

    class Falkon:
        def __init__(self, **options):
            told.update(options)

        def fit(self, X, y):
            told["shapes"] = X.shape, y.shape
            self.alpha_ = SimpleNamespace(numpy=lambda: np.ones((10, 1)))

    package = SimpleNamespace(
        Falkon=Falkon,
        FalkonOptions=dict,
        kernels=SimpleNamespace(GaussianKernel=dict),
        center_selection=SimpleNamespace(FixedSelector=len),
    )
    monkeypatch.setitem(sys.modules, "falkon", package)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(from_numpy=np.asarray))
    X, y = blend(rng, 50)
    kernel = falkon.KernelRows(X, X[:10], 0.5, 0)
    weights, steps = falkon.solve_by_package(kernel, y, 1e-3, 7)
    np.testing.assert_array_equal(weights, np.ones(10))
    assert steps == 7 and told["shapes"] == ((50, 3), (50, 1))
    assert told["kernel"] == {"sigma": 0.5} and told["center_selection"] == told["M"] == 10
    assert told["penalty"] == 1e-3 and told["maxiter"] == 7


# --- What the pipelines are made of --------------------------------------------------------------


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_newton_finds_what_liblinear_finds(rng, C):
    X, y = noisy_problem(rng, 500, 6)
    ours = NewtonLinearSVC(C).fit(X, y)
    theirs = LinearSVC(C=C, dual=False, tol=1e-12, max_iter=100_000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_[0], rtol=1e-5, atol=1e-6)
    assert ours.n_iter_ <= 10


def test_newton_from_a_part_of_the_rows(rng, monkeypatch):
    X, y = noisy_problem(rng, 3000, 4)
    whole = NewtonLinearSVC().fit(X, y)
    monkeypatch.setattr("polysift_paper.rivals.linear_svm.SUBSAMPLE_FROM_ROWS", 500)
    np.testing.assert_allclose(NewtonLinearSVC().fit(X, y).coef_, whole.coef_, rtol=1e-9)


def test_newton_with_fewer_rows_than_columns(rng):
    X, y = rng.random((20, 100)), np.arange(20) % 2
    assert NewtonLinearSVC(C=100.0).fit(X, y).score(X, y) == 1.0


@pytest.mark.parametrize("n_components", [50, 51])
@pytest.mark.parametrize(("degree", "coef0"), [(2, 1), (3, 0), (2, 2.5)])
def test_quick_sketch_is_scikit_learns(rng, n_components, degree, coef0, monkeypatch):
    monkeypatch.setattr("polysift_paper.rivals.random_features.BLOCK_BYTES", 8 * 50 * 7)
    X = rng.random((40, 5))
    sketch = QuickCountSketch(
        gamma=0.7, degree=degree, coef0=coef0, n_components=n_components, random_state=0
    ).fit(X)
    expected = PolynomialCountSketch.transform(sketch, X)
    np.testing.assert_allclose(sketch.transform(X), expected, atol=1e-13)


def test_fourier_features_follow_the_median(rng):
    X = 10 * rng.random((100, 3))
    model = MedianFourierFeatures(64, 0.5, random_state=3).fit(X)
    assert model.sigma_ == 0.5 * median_distance(X, 3)
    plain = RBFSampler(gamma=0.5 / model.sigma_**2, n_components=64, random_state=3).fit(X)
    np.testing.assert_array_equal(model.transform(X), plain.transform(X))
    with pytest.raises(ValueError, match="n_components must be an integer of at least 1; got 0"):
        MedianFourierFeatures(0).fit(X)


# --- The table -----------------------------------------------------------------------------------


def test_the_table_has_the_papers_methods():
    assert list(METHODS) == [name for name, _ in PAPER] + ["lightgbm"]
    assert [METHODS[name].title for name, _ in PAPER] == [title for _, title in PAPER]
    assert [name for name, method in METHODS.items() if not method.in_paper] == ["lightgbm"]
    for name, method in METHODS.items():
        assert method.name == name and method.about.endswith(".")
        assert pickle.loads(pickle.dumps(method)) == method


def values_of(candidates, parameter):
    return sorted({candidate[parameter] for candidate in candidates})


def test_full_grids_are_the_papers():
    powers = [2.0**e for e in range(-5, 6)]
    rbf, poly = METHODS["svm_rbf"].full, METHODS["svm_poly"].full
    assert len(rbf) == 121 and len(poly) == 1210
    for grid, name in product((rbf, poly), ("C", "gamma")):
        assert values_of(grid, name) == powers
    assert values_of(poly, "degree") == list(range(1, 11))
    assert METHODS["linear_svm"].full == METHODS["l1_svm"].full == ({"C": 1.0},)
    assert values_of(METHODS["random_forest"].full, "n_estimators") == list(range(2, 21, 2))
    assert values_of(METHODS["falkon"].full, "n_centers") == SIZES
    assert values_of(METHODS["rr_fourier"].full, "n_components") == SIZES
    assert values_of(METHODS["tensor_sketch"].full, "n_components") == SIZES


def test_coarse_grids():
    sizes = {name: len(method.coarse) for name, method in METHODS.items()}
    assert sizes["svm_rbf"] == 16 and sizes["svm_poly"] == 80
    assert all(size <= 16 for name, size in sizes.items() if name != "svm_poly")
    assert values_of(METHODS["svm_rbf"].coarse, "gamma") == [1 / 32, 1 / 4, 4, 32]
    assert values_of(METHODS["svm_poly"].coarse, "degree") == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("name", METHODS)
def test_candidates(name):
    method = METHODS[name]
    assert 1 <= len(method.quick) <= 4
    for grid in (method.quick, method.coarse, method.full):
        keys = set(grid[0])
        assert set(method.costs) <= keys and len({str(c) for c in grid}) == len(grid)
        assert all(set(candidate) == keys for candidate in grid)
        costs = [tuple(candidate[key] for key in method.costs) for candidate in grid]
        for i, first in enumerate(costs[:300]):
            for later in costs[i + 1 : 300]:
                dearer = first != later and all(a >= b for a, b in zip(first, later, strict=True))
                assert not dearer, f"{first} comes before {later}"
    assert all(candidate in method.coarse for candidate in method.quick)
    assert all(candidate in method.full for candidate in method.coarse)


EVERY_METHOD = [
    pytest.param(name, marks=pytest.mark.needs("lightgbm") if name == "lightgbm" else ())
    for name in METHODS
]


@pytest.mark.parametrize("name", EVERY_METHOD)
def test_every_method_learns(rng, name):
    X, y = noisy_problem(rng, 600, 3, noise=0.02)
    X = 50 * X - 7  # the pipelines scale
    X = np.column_stack([X, np.ones(len(X))])
    floor = 0.55 if name in ("linear_svm", "l1_svm") else 0.7
    for params in METHODS[name].quick:
        model = make(name, **params).fit(X[:400], y[:400])
        assert model.score(X[400:], y[400:]) > floor, params
        score = model.predict_proba if hasattr(model, "predict_proba") else model.decision_function
        again = clone(model).fit(X[:400], y[:400])
        repeat = again.predict_proba if hasattr(again, "predict_proba") else again.decision_function
        np.testing.assert_array_equal(score(X), repeat(X))
        assert pickle.loads(pickle.dumps(model)).score(X, y) == model.score(X, y)


@pytest.mark.parametrize("name", EVERY_METHOD)
def test_methods_take_all_their_candidates_and_a_seed(name):
    for params in METHODS[name].full[:: max(1, len(METHODS[name].full) // 40)]:
        model = make(name, random_state=5, **params)
        set_ = {k.split("__")[-1]: v for k, v in model.get_params().items()}
        assert all(set_[key] == value for key, value in params.items())


def test_make_names_what_it_knows():
    with pytest.raises(ValueError, match="name must be one of 'svm_rbf', .*'lightgbm'; got 'svm'"):
        make("svm")
    with pytest.raises(TypeError, match="The parameters of 'falkon' are n_centers.*; got gamma"):
        make("falkon", gamma=1.0)


def test_lightgbm_is_optional(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(ImportError, match=r"pip install lightgbm"):
        make("lightgbm")


# --- Real data -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "method", "params", "floor"),
    [
        ("banknote", "prox_pfgm", {}, 0.98),
        ("banknote", "falkon", {"n_centers": 200}, 0.98),
        ("magic", "prox_pfgm", {}, 0.845),
        ("magic", "falkon", {"n_centers": 600}, 0.855),
        ("magic", "rr_fourier", {"n_components": 600}, 0.855),
        ("magic", "tensor_sketch", {"n_components": 200}, 0.84),
        ("htru2", "prox_pfgm", {}, 0.975),
        ("htru2", "falkon", {"n_centers": 200}, 0.975),
    ],
    ids=[
        "banknote-prox_pfgm", "banknote-falkon", "magic-prox_pfgm", "magic-falkon",
        "magic-rr_fourier", "magic-tensor_sketch", "htru2-prox_pfgm", "htru2-falkon",
    ],
)  # fmt: skip
def test_rivals_are_as_good_as_in_the_paper(name, method, params, floor):
    X, y = load_real(name)
    train, _, test = three_parts(len(y), seed=0)
    model = make(method, **params).fit(X[train], y[train])
    assert model.score(X[test], y[test]) > floor
