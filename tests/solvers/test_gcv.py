"""Generalised cross-validation, against its definition and leave-one-out."""

from __future__ import annotations

import numpy as np
import pytest

from polysift.solvers import gcv
from polysift.solvers.factor import Ridge, chosen_ridge, rho_floor
from polysift.solvers.gcv import ROBUSTNESS, RidgeChoice, choose_rho


class Sums:
    """A Gram matrix and A'y, as an engine returns them."""

    def __init__(self, G, Aty):
        self.G, self.Aty = G, Aty

    def over(self, without):
        assert without is None
        return self.G.copy(), self.Aty.copy()


def direct(A, Y, w, rho):
    """Return the GCV and the degrees of freedom of a ridge regression, by their definition."""
    G = A.T @ (w[:, np.newaxis] * A)
    inverse = np.linalg.inv(G + rho * np.eye(len(G)))
    residuals = Y - A @ (inverse @ (A.T @ (w[:, np.newaxis] * Y)))
    m, df = w.sum(), np.trace(inverse @ G)
    rss = np.sum(w[:, np.newaxis] * residuals**2)
    return rss / (m * Y.shape[1]) / (1 - ROBUSTNESS * df / m) ** 2, df


def problem(rng, m=60, n=7, K=1, weighted=False):
    """Return features, labels and weights, of which the labels depend on the features."""
    A = rng.normal(size=(m, n)) * np.logspace(0, -2, n)
    Y = np.where(A @ rng.normal(size=(n, K)) + rng.normal(size=(m, K)) > 0, 1.0, -1.0)
    return A, Y, rng.integers(1, 5, m).astype(float) if weighted else np.ones(m)


def chosen(A, Y, w):
    """Return the choice for weighted rows."""
    G, Aty = A.T @ (w[:, np.newaxis] * A), A.T @ (w[:, np.newaxis] * Y)
    return choose_rho(G, Aty, float(w.sum()), rho_floor(float(np.trace(G))))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "K"), [(1, 1), (2, 1), (7, 1), (7, 4)])
def test_it_has_the_least_of_all_values_by_definition(rng, n, K, weighted):
    A, Y, w = problem(rng, n=n, K=K, weighted=weighted)
    found = chosen(A, Y, w)
    score, df = direct(A, Y, w, found.rho)
    np.testing.assert_allclose([found.score, found.freedom], [score, df], rtol=1e-9)
    trace = np.sum(w[:, np.newaxis] * A**2)
    others = [direct(A, Y, w, rho)[0] for rho in np.geomspace(1e-10, 10 / n, 40) * trace]
    assert found.score <= min(others) * 1.01


def test_weights_are_multiplicities(rng):
    A, Y, w = problem(rng, weighted=True)
    each = np.repeat(np.arange(len(A)), w.astype(int))
    repeated = chosen(A[each], Y[each], np.ones(len(each)))
    assert repeated.rho == pytest.approx(chosen(A, Y, w).rho)
    assert repeated.score == pytest.approx(chosen(A, Y, w).score)


def test_the_upper_triangle_is_read_and_nothing_is_changed(rng):
    A, Y, _ = problem(rng)
    G, Aty = A.T @ A, A.T @ Y
    upper, before = np.triu(G), Aty.copy()
    floor = rho_floor(float(np.trace(G)))
    assert choose_rho(upper, Aty, len(A), floor) == choose_rho(G, Aty, len(A), floor)
    np.testing.assert_array_equal(Aty, before)
    np.testing.assert_array_equal(G, A.T @ A)


def test_it_is_near_leave_one_out(rng, monkeypatch):
    """Without the robust factor, on a small problem whose rows have about equal leverage."""
    monkeypatch.setattr(gcv, "ROBUSTNESS", 1.0)
    A, Y, w = problem(rng, m=80, n=5)
    found, errors = chosen(A, Y, w), []
    for i in range(len(A)):
        rest = np.arange(len(A)) != i
        G = A[rest].T @ A[rest] + found.rho * np.eye(5)
        errors.append((Y[i] - A[i] @ np.linalg.solve(G, A[rest].T @ Y[rest])) ** 2)
    assert found.score == pytest.approx(np.mean(errors), rel=0.03)


def test_ties_go_to_the_larger_value():
    """Labels that the features say nothing of: every rho has the same residuals."""
    G = np.diag([4.0, 1.0])
    found = choose_rho(G, np.zeros((2, 1)), 1e12, rho_floor(5.0))
    assert found.rho == pytest.approx(gcv.MAX_RELATIVE_RHO * 5.0 / 2)
    assert found.score == pytest.approx(1.0)


@pytest.mark.parametrize("m", [2, 3, 5, 20])
@pytest.mark.parametrize("n", [1, 2, 20, 100])
def test_degrees_of_freedom_leave_room(rng, m, n):
    """Even with more centers than rows, where a small rho fits all labels."""
    A = rng.normal(size=(m, n))
    Y = np.where(rng.random((m, 1)) < 0.5, 1.0, -1.0)
    found = chosen(A, Y, np.ones(m))
    assert np.isfinite([found.rho, found.score]).all() and found.rho > 0
    assert ROBUSTNESS * found.freedom < m


def test_weights_far_below_one_leave_room(rng):
    A, Y, w = problem(rng)
    found = chosen(A, Y, w * 1e-6)
    assert np.isfinite(found.score) and ROBUSTNESS * found.freedom < 60e-6


def test_features_that_are_zero(rng):
    G, Aty = np.zeros((3, 3)), np.zeros((3, 2))
    floor = rho_floor(0.0)
    found = choose_rho(G, Aty, 10.0, floor)
    assert found == RidgeChoice(floor, 1.0, 0.0)
    ridge, again = chosen_ridge(Sums(G, Aty), Ridge(automatic=True), 10.0)
    assert again == found and ridge.asked(0.0, 3, floor) == 0.0


@pytest.mark.parametrize("scale", [1e-140, 1e-8, 1e8, 1e150])
def test_the_size_of_the_features_has_no_effect(rng, scale):
    A, Y, w = problem(rng)
    plain, scaled = chosen(A, Y, w), chosen(A * scale, Y, w)
    assert scaled.rho / scale**2 == pytest.approx(plain.rho)
    assert scaled.score == pytest.approx(plain.score)


def test_the_ridge_of_folds_is_relative(rng):
    A, Y, w = problem(rng)
    G, Aty = A.T @ A, A.T @ Y
    ridge, choice = chosen_ridge(Sums(G, Aty), Ridge(automatic=True), len(A))
    assert choice == chosen(A, Y, w)
    assert ridge.asked(float(np.trace(G)), 7, 0.0) == pytest.approx(choice.rho)
    assert ridge.asked(float(np.trace(G)) / 2, 7, 0.0) == pytest.approx(choice.rho / 2)
    given = Ridge(relative_rho=0.5)
    assert chosen_ridge(Sums(G, Aty), given, len(A)) == (given, None)
