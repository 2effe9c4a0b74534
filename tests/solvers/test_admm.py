"""The solver against Algorithm 1 as printed, the paper's theorems, and the LP optimum."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import algorithm_1, h_norm, kernel, lp_optimum, lp_solution
from polysift.features.kernels import full_dimension
from polysift.losses import HINGE
from polysift.solvers.admm import Admm
from polysift.solvers.factor import RHO_FLOOR, Ridge, factorise
from polysift.solvers.loop import Loop
from polysift.solvers.result import Status
from problems import noisy_problem
from solving import PROBLEMS, converged, engine_for, paper, solve

EPS = np.finfo(float).eps


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("alpha", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("beta", [0.01, 1.0, 100.0])
def test_iterates_are_those_of_algorithm_1(degree, alpha, beta):
    rng = np.random.default_rng(degree)
    X, y = noisy_problem(rng, 300, 3)
    C = rng.random((min(25, full_dimension(degree, 3)), 3))
    A = kernel(X, C, degree)
    trace, rho = np.sum(A * A), alpha / beta
    if rho <= RHO_FLOOR * EPS * trace:
        pytest.skip("the floor acts here, which the paper's formula knows nothing of")
    tolerance = max(1e-8, 100 * EPS * trace / rho)
    expected = algorithm_1(A, y, alpha, beta, 7)
    for n_iter in (1, 2, 7):
        result = solve(engine_for(X, y, C, degree), paper(beta, rho=rho, max_iter=n_iter, tol=0.0))
        scores, printed = A @ result.u[:, 0], A @ expected[n_iter][0]
        assert np.abs(scores - printed).max() <= tolerance * np.abs(printed).max()
        assert not result.rho_raised
        assert result.n_iter == n_iter


def test_history_is_that_of_algorithm_1(rng):
    X, y = noisy_problem(rng, 200, 2)
    C = rng.random((6, 2))
    A, alpha, beta = kernel(X, C, 2), 0.5, 0.02
    p = algorithm_1(A, y, alpha, beta, 6)
    result = solve(engine_for(X, y, C, 2), paper(beta, rho=alpha / beta, max_iter=6, tol=1e-300))
    H = A.T @ A + alpha / beta * np.eye(6)
    for k in range(6):
        u, v, w = p[k + 1]
        f = A @ u
        row = {name: column[k] for name, column in result.history.items()}
        assert np.isclose(row["objective"], np.maximum(0, 1 - y * f).mean(), rtol=1e-9)
        assert np.isclose(row["training_error"], np.mean(np.where(f >= 0, 1, -1) != y))
        assert np.isclose(row["h_norm_difference"], h_norm(p[k + 1], p[k], alpha, beta), rtol=1e-6)
        primal = np.linalg.norm(f - v) / max(np.linalg.norm(f), np.linalg.norm(v))
        assert np.isclose(row["primal_residual"], primal, rtol=1e-6)
        g = A.T @ w
        dual = np.sqrt(g @ np.linalg.solve(H, g)) / np.linalg.norm(w)
        assert np.isclose(row["dual_residual"], dual, rtol=1e-5)


def test_dual_residual_of_the_relaxed_iteration_is_exact(rng):
    """The recursion for A'q must agree with A'q computed from the rows."""
    X, y = noisy_problem(rng, 400, 3)
    C = rng.random((10, 3))
    A, m, rho = kernel(X, C, 2), 400, 3.0
    gamma, relax = 0.1, 1.7
    result = solve(engine_for(X, y, C, 2), converged(m, rho=rho, max_iter=25, tol=1e-300))
    H = A.T @ A + rho * np.eye(10)
    u, v, q = np.zeros(10), y.astype(float), np.zeros(m)
    for k in range(25):
        u = u + np.linalg.solve(H, A.T @ (v - q - A @ u))
        b = relax * A @ u + (1 - relax) * v + q
        v = b + y * np.clip(1 - y * b, 0, 1 / gamma)
        q = b - v
        g = A.T @ q
        dual = np.sqrt(g @ np.linalg.solve(H, g)) / np.linalg.norm(q)
        assert np.isclose(result.history["dual_residual"][k], dual, rtol=1e-6)
    np.testing.assert_allclose(result.u[:, 0], u, rtol=1e-7)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    m=st.integers(5, 120),
    d=st.integers(1, 4),
    degree=st.integers(1, 4),
    log_alpha=st.floats(-3, 3),
    log_beta=st.floats(-4, 3),
)
def test_theorem_2_the_h_norm_difference_never_grows(seed, m, d, degree, log_alpha, log_beta):
    rng = np.random.default_rng(seed)
    X, y = noisy_problem(rng, m, d)
    C = rng.random((full_dimension(degree, d), d))
    beta = 10.0**log_beta
    rho = 10.0**log_alpha / beta
    result = solve(engine_for(X, y, C, degree), paper(beta, rho=rho, max_iter=40, tol=1e-300))
    steps = result.history["h_norm_difference"][1:]
    # Rounding: of the size of the state, times eps, squared where the steps themselves are tiny.
    trace = np.sum(kernel(X, C, degree) ** 2)
    slack = 1e-9 + 1e3 * EPS * trace / result.rho
    assert (np.diff(steps) <= slack * steps[:-1] + 1e-18 * (1 + steps[0])).all()


@pytest.mark.parametrize("seed", range(4))
def test_contraction_lemma_of_appendix_a(seed):
    """Every step brings the iterates closer to any solution, by at least its own length."""
    rng = np.random.default_rng(seed)
    X, y = noisy_problem(rng, 40, 2)
    C, alpha, beta = rng.random((3, 2)), 1.0, 0.05
    star = lp_solution(kernel(X, C, 1), y)

    def iterate(k):
        engine = engine_for(X, y, C, 1)
        settings = paper(beta, rho=alpha / beta, max_iter=1000, tol=1e-300)
        G, Aty = engine.gram().over()
        run = Admm(factorise(G, settings.ridge), Aty, settings, 40.0)
        Loop(engine, [run]).run(until=k)
        t = engine.state[:, 0]
        step = HINGE.prox_step(t, 40 * beta)
        return run.u[:, 0], y * (t + step), -beta * y * step

    before = np.zeros(3), y.astype(float), np.zeros(40)
    for k in range(1, 61):
        after = iterate(k)
        gain = h_norm(before, star, alpha, beta) - h_norm(after, star, alpha, beta)
        assert gain >= h_norm(before, after, alpha, beta) * (1 - 1e-9) - 1e-9
        before = after


@pytest.mark.parametrize(("d", "degree", "m", "noise"), PROBLEMS)
def test_converged_reaches_the_lp_optimum(d, degree, m, noise):
    rng = np.random.default_rng(1000 * d + degree)
    optimum = condition = 0.0
    while optimum < 0.1 or condition <= 1e-8:  # the problem is outside the promise
        X, y = noisy_problem(rng, m, d, noise)
        C = rng.random((full_dimension(degree, d), d))
        A = kernel(X, C, degree)
        optimum, condition = lp_optimum(A, y)
    result = solve(engine_for(X, y, C, degree), converged(m))
    objective = np.maximum(0, 1 - y * (A @ result.u[:, 0])).mean()
    assert objective <= 1.01 * optimum
    assert objective >= optimum * (1 - 1e-9)
    assert result.n_iter <= 300


@pytest.mark.parametrize("start", [None, 0.0, 1.0, -30.0])
def test_theorem_1_any_start_ends_in_the_same_objective(start):
    rng = np.random.default_rng(7)
    X, y = noisy_problem(rng, 500, 3)
    C = rng.random((10, 3))
    u0 = None if start is None else start * rng.normal(size=(10, 1))
    result = solve(engine_for(X, y, C, 2), converged(500, max_iter=2000, tol=1e-5), u0=u0)
    optimum, _ = lp_optimum(kernel(X, C, 2), y)
    assert np.isclose(result.history["objective"][-1], optimum, rtol=2e-4)


def test_separable_data_reach_zero_loss(rng):
    X = rng.random((600, 2))
    z = (X[:, 0] - 0.5) ** 2 + (X[:, 1] - 0.5) ** 2 - 0.09
    X, y = X[np.abs(z) > 0.02], np.sign(z[np.abs(z) > 0.02])
    C = rng.random((10, 2))
    result = solve(engine_for(X, y, C, 3), converged(len(y), max_iter=2000))
    assert result.status is Status.ZERO_LOSS
    assert result.history["objective"][-1] == 0


@pytest.mark.parametrize(("n", "iterations"), [(286, 2000), (1000, 500)])
def test_nearly_singular_gram_matrix_stays_stable(n, iterations):
    """The direct form of the u-step reaches an objective of 1e14 here, after 300 iterations."""
    rng = np.random.default_rng(0)
    X, y = noisy_problem(rng, 1000, 3, 0.1)
    result = solve(
        engine_for(X, y, rng.random((n, 3)), 10), converged(1000, max_iter=iterations, tol=1e-300)
    )
    objective = result.history["objective"]
    assert np.isfinite(objective).all()
    assert objective[-1] <= 1.05 * objective.min()
    assert result.n_iter == iterations


def test_floor_on_rho(rng):
    A = kernel(rng.random((50, 4)), rng.random((30, 4)), 9)
    G = A.T @ A
    trace = np.trace(G)
    floor = RHO_FLOOR * EPS * trace
    raised = factorise(G.copy(), Ridge(rho=1e-30))
    assert raised.rho_raised and raised.rho >= floor
    assert raised.rho_floor == pytest.approx(floor)
    kept = factorise(G.copy(), Ridge(relative_rho=1e-6))
    assert not kept.rho_raised
    assert kept.rho == pytest.approx(1e-6 * trace / 30)
    default = factorise(G.copy(), Ridge(floor_multiple=3.0))
    assert default.rho == pytest.approx(3 * floor) and not default.rho_raised


def test_tolerance_zero_skips_the_last_sweep(rng):
    X, y = noisy_problem(rng, 100, 2)
    C = rng.random((3, 2))
    result = solve(engine_for(X, y, C, 1), paper(1.0, rho=1.0, max_iter=4, tol=0.0))
    assert result.status is Status.MAX_ITER
    assert np.isnan(result.history["objective"][-1])
    assert np.isfinite(result.history["objective"][:-1]).all()
    assert np.isfinite(result.history["seconds"]).all()
    full = solve(engine_for(X, y, C, 1), paper(1.0, rho=1.0, max_iter=4, tol=1e-300))
    np.testing.assert_array_equal(full.u, result.u)


def test_gram_is_the_weighted_gram_matrix(rng):
    X, y = noisy_problem(rng, 5000, 3)
    C, weights = rng.random((7, 3)), rng.random(5000)
    A = kernel(X, C, 3)
    sums = engine_for(X, y, C, 3, weights).gram()
    np.testing.assert_allclose(sums.G[0], A.T @ (weights[:, None] * A), rtol=1e-11)
    np.testing.assert_allclose(sums.Aty[0, :, 0], A.T @ (weights * y), rtol=1e-10, atol=1e-8)
    single = engine_for(X, y, C, 3, dtype=np.float32).gram()
    assert single.G.dtype == float
    np.testing.assert_allclose(single.G[0], A.T @ A, rtol=1e-5)
