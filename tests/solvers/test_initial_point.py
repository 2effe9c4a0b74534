"""The initial point of Algorithm 1: iterates from anywhere, against the oracle in 20 lines."""

from __future__ import annotations

import numpy as np
import pytest

from oracles import algorithm_1, h_norm, kernel, lp_optimum
from polysift import FPCClassifier
from problems import paper_classifier

M, N = 240, 10


@pytest.fixture
def problem(rng):
    X = rng.uniform(-1, 1, (M, 3))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=M) > 0, 1, -1)
    centers = rng.uniform(-1, 1, (N, 3))
    point = rng.normal(size=N), 3 * rng.normal(size=M), rng.normal(size=M)
    return X, y, centers, point


def classifier(centers, n_iter, **params):
    return paper_classifier(2, centers=centers, scaler=None, max_iter=n_iter, tol=0, **params)


@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (0.1, 0.02)])
@pytest.mark.parametrize("n_iter", [1, 2, 7])
def test_iterates_are_those_of_algorithm_1(problem, alpha, beta, n_iter):
    X, y, centers, point = problem
    A = kernel(X, centers, 2)
    expected = algorithm_1(A, y, alpha, beta, n_iter, point)[-1][0]
    model = classifier(centers, n_iter, alpha=alpha, beta=beta).fit(X, y, initial_point=point)
    np.testing.assert_allclose(model.coef_[0], expected, rtol=1e-8)


def test_the_history_counts_what_the_first_iteration_moved(problem):
    X, y, centers, point = problem
    A = kernel(X, centers, 2)
    path = algorithm_1(A, y, 1.0, 1.0, 4, point)
    steps = [h_norm(p, q, 1.0, 1.0) for p, q in zip(path[1:], path[:-1], strict=True)]
    model = classifier(centers, 4).set_params(tol=1e-300).fit(X, y, initial_point=point)
    np.testing.assert_allclose(model.history_["h_norm_difference"], steps, rtol=1e-8)
    tol = (steps[0] + steps[1]) / 2
    early = classifier(centers, 4).set_params(tol=tol).fit(X, y, initial_point=point)
    assert (early.n_iter_, early.status_) == (2, "tolerance")


def test_none_is_the_papers_choice(problem):
    X, y, centers, point = problem
    plain = classifier(centers, 3).fit(X, y)
    given = classifier(centers, 3).fit(X, y, initial_point=(None, None, None))
    explicit = classifier(centers, 3).fit(X, y, initial_point=(np.zeros(N), y, np.zeros(M)))
    np.testing.assert_allclose(given.coef_, plain.coef_, rtol=1e-10)
    np.testing.assert_array_equal(given.coef_, explicit.coef_)
    mixed = algorithm_1(kernel(X, centers, 2), y, 1.0, 1.0, 3, (point[0], y, np.zeros(M)))[-1][0]
    model = classifier(centers, 3).fit(X, y, initial_point=(point[0], None, None))
    np.testing.assert_allclose(model.coef_[0], mixed, rtol=1e-8)


def test_any_point_leads_to_the_minimum(problem):
    """Theorem 1 of the paper."""
    X, y, centers, point = problem
    A = kernel(X, centers, 2)
    model = classifier(centers, 4000, alpha=1e-3, beta=1 / M)
    score = model.fit(X, y, initial_point=point).decision_function(X)
    loss = np.maximum(0, 1 - y * score).mean()
    assert loss == pytest.approx(lp_optimum(A, y)[0], rel=1e-3)


def test_weights_are_multiplicities_and_classes_are_columns(problem, rng):
    X, y, centers, (u, v, w) = problem
    counts = rng.integers(1, 4, M)
    weighted = classifier(centers, 3).fit(X, y, counts, initial_point=(u, v, w))
    again = [np.repeat(rows, counts, axis=0) for rows in (X, y, v, w)]
    repeated = classifier(centers, 3).fit(*again[:2], initial_point=(u, *again[2:]))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-8)
    classes = np.argmax(X, axis=1)
    point = rng.normal(size=(3, N)), rng.normal(size=(M, 3)), rng.normal(size=(M, 3))
    model = classifier(centers, 3).fit(X, classes, initial_point=point)
    A = kernel(X, centers, 2)
    for k in range(3):
        own = point[0][k], point[1][:, k], point[2][:, k]
        signs = np.where(classes == k, 1, -1)
        expected = algorithm_1(A, signs, 1.0, 1.0, 3, own)[-1][0]
        np.testing.assert_allclose(model.coef_[k], expected, rtol=1e-8)


def test_threads_and_memory_change_no_bit(problem):
    X, y, centers, point = problem
    models = [classifier(centers, 3, n_jobs=jobs).fit(X, y, initial_point=point) for jobs in (1, 2)]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)


def test_a_checkpoint_goes_on_from_a_given_point(problem, tmp_path):
    X, y, centers, point = problem
    whole = classifier(centers, 6).fit(X, y, initial_point=point)
    kept = classifier(centers, 6, checkpoint=tmp_path)
    kept.fit(X, y, initial_point=point)
    np.testing.assert_array_equal(kept.fit(X, y, initial_point=point).coef_, whole.coef_)
    with pytest.raises(ValueError, match="checkpoint"):
        kept.fit(X, y, initial_point=(None, point[1], None))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.zeros(3), "initial_point must be .u0, v0, w0."),
        ((None, None), "initial_point must be"),
        ((np.zeros(9), None, None), r"u0 of initial_point must have shape \(10,\) or \(1, 10\)"),
        ((None, np.zeros(3), None), r"v0 of initial_point must have shape \(240,\)"),
        ((None, None, np.full(M, np.nan)), "w0 of initial_point must be finite"),
        (("here", None, None), "u0 of initial_point must be an array of numbers; got str"),
    ],
)
def test_bad_points_are_refused(problem, given, message):
    X, y, centers, _ = problem
    with pytest.raises(ValueError, match=message):
        classifier(centers, 2).fit(X, y, initial_point=given)


@pytest.mark.parametrize(
    "params",
    [{"solver": "newton"}, {"calibration": "sigmoid"}, {"gram": "sampled"}, {"warm_start": True}],
)
def test_other_settings_are_refused(problem, params):
    X, y, centers, point = problem
    (name,) = params
    with pytest.raises(ValueError, match=f"initial_point needs {name}="):
        classifier(centers, 2, **params).fit(X, y, initial_point=point)


def test_a_plain_classifier_says_what_it_needs(problem):
    X, y, _, point = problem
    with pytest.raises(ValueError, match="initial_point needs solver='paper'"):
        FPCClassifier().fit(X, y, initial_point=point)
