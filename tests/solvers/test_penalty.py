"""A penalty on u'u, for the solvers that go to the minimum."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from oracles import kernel, penalised_hinge_optimum
from polysift.engine.backend import LOCAL, FitContext
from polysift.engine.sampling import Sample
from polysift.runtime.checkpoints import Checkpoint
from polysift.runtime.progress import Monitor
from polysift.solvers import starts
from polysift.solvers.admm import ConvergedSettings
from polysift.solvers.conjugate_gradients import SampledGram
from polysift.solvers.factor import Ridge
from polysift.solvers.newton import NewtonSettings
from polysift.solvers.result import Status
from problems import noisy_problem
from solving import PROBLEMS, engine_for, solve

SETTINGS = {"newton": NewtonSettings(), "converged": ConvergedSettings()}


@pytest.fixture(params=list(SETTINGS))
def settings(request):
    return SETTINGS[request.param]


def penalised(settings, rho=None, **changes):
    return replace(settings, ridge=Ridge(rho), penalised=True, **changes)


def objective(A, y, u, rho, weights=None):
    losses = np.maximum(0, 1 - y * (A @ u))
    return float(np.sum(losses if weights is None else weights * losses) + rho / 2 * u @ u)


@pytest.mark.parametrize(("d", "degree", "m", "noise"), PROBLEMS)
def test_it_reaches_the_optimum(settings, d, degree, m, noise):
    rng = np.random.default_rng(100 * d + degree)
    X, y = noisy_problem(rng, m, d, noise)
    C = rng.random((30, d))
    A = kernel(X, C, degree)
    rho = 0.01 * np.sum(A**2) / 30
    optimum = penalised_hinge_optimum(A, y, rho)
    result = solve(engine_for(X, y, C, degree), penalised(settings, rho))
    found = objective(A, y, result.u[:, 0], rho)
    assert optimum * (1 - 1e-9) <= found <= optimum * (1 + 1e-3)
    assert result.status in (Status.MINIMUM, Status.CONVERGED)
    assert result.rho == rho
    assert found / m == pytest.approx(np.nanmin(result.history["objective"]), rel=1e-3)
    absolute = Ridge(relative_rho=0.01)  # the same in other words
    same = solve(engine_for(X, y, C, degree), replace(settings, ridge=absolute, penalised=True))
    assert objective(A, y, same.u[:, 0], rho) == pytest.approx(found, rel=1e-3)


@pytest.mark.parametrize("relative_rho", [1e-9, 1e-6, 1e-3])
def test_both_solvers_agree_where_the_penalty_is_small(relative_rho, rng):
    X, y = noisy_problem(rng, 800, 3)
    C = rng.random((20, 3))
    A = kernel(X, C, 3)
    rho = relative_rho * np.sum(A**2) / 20
    values = [
        objective(A, y, solve(engine_for(X, y, C, 3), penalised(s, rho)).u[:, 0], rho)
        for s in SETTINGS.values()
    ]
    assert values[0] == pytest.approx(values[1], rel=3e-3)


def test_the_larger_the_smaller(settings, rng):
    X, y = noisy_problem(rng, 500, 3)
    C = rng.random((20, 3))
    sizes = [
        np.linalg.norm(solve(engine_for(X, y, C, 3), penalised(settings, rho)).u)
        for rho in (1e-2, 1.0, 1e2, 1e4)
    ]
    assert np.all(np.diff(sizes) < 0)


def test_without_one_rho_does_not_matter(settings, rng):
    X, y = noisy_problem(rng, 500, 3)
    C = rng.random((10, 3))
    objectives = [
        solve(engine_for(X, y, C, 2), replace(settings, ridge=Ridge(rho))).history["objective"]
        for rho in (1e-6, 1e-3)
    ]
    assert np.nanmin(objectives[0]) == pytest.approx(np.nanmin(objectives[1]), rel=3e-3)


def test_weights_are_multiplicities(settings, rng):
    X, y = noisy_problem(rng, 500, 3)
    C = rng.random((20, 3))
    weights = rng.integers(0, 4, len(y)).astype(float)
    again = np.repeat(np.arange(len(y)), weights.astype(int))
    A = kernel(X, C, 3)
    optimum = penalised_hinge_optimum(A, y, 5.0, weights)
    for engine in (engine_for(X, y, C, 3, weights), engine_for(X[again], y[again], C, 3)):
        u = solve(engine, penalised(settings, 5.0)).u[:, 0]
        assert objective(A, y, u, 5.0, weights) == pytest.approx(optimum, rel=1e-3)


def test_float32_rows(settings, rng):
    X, y = noisy_problem(rng, 500, 3)
    C = rng.random((20, 3))
    A = kernel(X, C, 3)
    u = solve(engine_for(X, y, C, 3, dtype=np.float32), penalised(settings, 5.0)).u[:, 0]
    assert objective(A, y, u, 5.0) <= 1.002 * penalised_hinge_optimum(A, y, 5.0)


@pytest.mark.parametrize("beta", [1e-9, 1e-3, 1e-2])
def test_any_beta(beta, rng):
    """It is raised where it would make the weight of the proximal term negative."""
    X, y = noisy_problem(rng, 500, 3)
    C = rng.random((20, 3))
    A = kernel(X, C, 3)
    changed = penalised(ConvergedSettings(), 5.0, beta=beta, max_iter=5000, tol=1e-5)
    u = solve(engine_for(X, y, C, 3), changed).u[:, 0]
    assert objective(A, y, u, 5.0) == pytest.approx(penalised_hinge_optimum(A, y, 5.0), rel=1e-3)


def test_a_warm_start(settings, rng):
    X, y = noisy_problem(rng, 500, 3)
    C = rng.random((20, 3))
    first = solve(engine_for(X, y, C, 3), penalised(settings, 5.0))
    again = solve(engine_for(X, y, C, 3), penalised(settings, 5.0), u0=first.u)
    best = [np.nanmin(result.history["objective"]) for result in (first, again)]
    assert best[1] == pytest.approx(best[0], rel=1e-3)
    assert again.n_iter <= first.n_iter or isinstance(settings, ConvergedSettings)


def test_a_sampled_gram_matrix(rng):
    X, y = noisy_problem(rng, 4000, 3)
    C = rng.random((20, 3))
    A = kernel(X, C, 3)
    start = SampledGram(Sample(seed=0, rows=4000, first=100, second=300))
    changed = penalised(ConvergedSettings(), 50.0)
    result = solve(engine_for(X, y, C, 3), changed, start=start)
    exact = solve(engine_for(X, y, C, 3), changed)
    assert result.products
    found, best = (objective(A, y, r.u[:, 0], 50.0) for r in (result, exact))
    assert found == pytest.approx(best, rel=1e-3)


class Dying(Monitor):
    """Ends the process, as it were, after so many iterations."""

    def __init__(self, iterations):
        super().__init__()
        self.left = iterations

    def check(self):
        self.left -= 1
        if self.left == 0:
            raise SystemError("killed")


def test_a_checkpoint(settings, rng, tmp_path, monkeypatch):
    monkeypatch.setattr(Checkpoint, "due", lambda self: True)
    X, y = noisy_problem(rng, 500, 3)
    C = rng.random((20, 3))

    def run(monitor):
        checkpoint = Checkpoint(tmp_path, {})
        context = FitContext(monitor, LOCAL, checkpoint=checkpoint)
        try:
            return starts.solve(engine_for(X, y, C, 3), penalised(settings, 5.0), context)[0]
        finally:
            checkpoint.close()

    for _ in range(2):
        with pytest.raises(SystemError, match="killed"):
            run(Dying(3))
    whole = solve(engine_for(X, y, C, 3), penalised(settings, 5.0))
    np.testing.assert_array_equal(run(Monitor()).u, whole.u)


def few_rows(rng, rows):
    """Return rows of a weak signal, 12 % of them of the positive class."""
    X = rng.normal(size=(rows, 16))
    signal = 0.9 * X[:, 0] - 0.6 * X[:, 1] + 0.4 * X[:, 2] * X[:, 3] + rng.logistic(size=rows)
    return X / 4, np.where(signal > np.quantile(signal, 0.88), 1.0, -1.0)


@pytest.mark.slow
def test_few_rows_per_center(settings):
    """Without a penalty the model is worse than the class of most rows; with one it is not."""
    X, y = few_rows(np.random.default_rng(0), 3200)
    C, A_test = X[:1000], kernel(X[1600:], X[:1000], 3)
    majority = np.mean(y[1600:] < 0)
    accuracy = {}
    for relative_rho in (None, 0.1):
        changed = replace(
            settings, ridge=Ridge(relative_rho=relative_rho), penalised=relative_rho is not None
        )
        u = solve(engine_for(X[:1600], y[:1600], C, 3), changed).u[:, 0]
        accuracy[relative_rho] = np.mean(np.sign(A_test @ u) == y[1600:])
    assert accuracy[None] < majority - 0.05
    assert accuracy[0.1] >= majority - 0.005
