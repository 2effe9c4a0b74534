from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from oracles import lemma_1
from polysift.losses import HINGE, LOGISTIC, LOSSES, SQUARED_HINGE, gives_probabilities

finite = st.floats(-50, 50, allow_nan=False)
gammas = st.floats(1e-3, 1e3)
labels = st.sampled_from([-1.0, 1.0])
every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
smooth = pytest.mark.parametrize("loss", [LOGISTIC, SQUARED_HINGE], ids=["logistic", "squared"])
T = np.linspace(-6, 6, 1201)


def prox(y, b, gamma):
    return b + y * float(HINGE.prox_step(np.array([y * b]), gamma)[0])


@given(labels, finite, gammas)
def test_prox_is_lemma_1(y, b, gamma):
    expected = lemma_1([y], [b], gamma)[0]
    np.testing.assert_allclose(prox(y, b, gamma), expected, rtol=1e-12, atol=1e-12)


def test_prox_minimises_its_objective_on_every_branch():
    for y in (-1.0, 1.0):
        for gamma in (0.1, 1.0, 20.0):
            kink = 1 - 1 / gamma
            for t in (kink - 2, kink, (kink + 1) / 2, 1.0, 3.0):  # the margin y b
                b = y * t

                def objective(v, b=b, y=y, gamma=gamma):
                    return max(0, 1 - y * v) + gamma / 2 * (v - b) ** 2

                v = prox(y, b, gamma)
                best = minimize_scalar(objective, bracket=(b - 1, b + 1 + 1 / gamma)).fun
                assert objective(v) <= best + 1e-9
                grid = np.linspace(b - 2 - 2 / gamma, b + 2 + 2 / gamma, 20001)
                assert objective(v) <= min(objective(g) for g in grid) + 1e-12


@given(finite, finite, gammas)
def test_prox_does_not_expand(a, b, gamma):
    moved = prox(1.0, a, gamma) - prox(1.0, b, gamma)
    assert abs(moved) <= abs(a - b) + 1e-12


@given(finite, gammas)
def test_the_step_is_a_dual_variable_and_a_subgradient(t, gamma):
    step = float(HINGE.prox_step(np.array([t]), gamma)[0])
    assert 0 <= step * gamma <= 1 + 1e-12
    v = t + step
    # gamma * step is minus a subgradient of the loss at v: 1 below the kink, 0 above it.
    if v < 1 - 1e-9:
        assert np.isclose(step * gamma, 1)
    if v > 1 + 1e-9:
        assert step == 0


def test_loss():
    np.testing.assert_array_equal(HINGE.value(np.array([-1.0, 0.5, 1.0, 2.0])), [2, 0.5, 0, 0])


@every_loss
@given(t=finite, gamma=gammas)
def test_the_proximal_step_of_every_loss(loss, t, gamma):
    """The optimality condition: gamma times the step is minus a slope at its end."""
    step = float(loss.prox_step(np.array([t]), gamma)[0])
    assert step >= 0.0

    def objective(s):
        return float(loss.value(np.array([s]))[0]) + gamma / 2 * (s - t) ** 2

    found = objective(t + step)
    for h in (1e-3, -1e-3, 1.0, -1.0):
        assert found <= objective(t + step + h) + 1e-9 * (1 + abs(found))
    if loss.smooth:
        slope = float(loss.slope(np.array([t + step]), 1.0)[0])
        np.testing.assert_allclose(gamma * step, slope, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("gamma", [1e-9, 1e-3, 1.0, 1e3, 1e9])
def test_proximal_steps_of_extreme_margins(gamma):
    t = np.array([-1e9, -1e3, -1.0, 0.0, 1.0, 1e3, 1e9])
    step = LOGISTIC.prox_step(t, gamma)
    assert np.isfinite(step).all() and (step >= 0).all() and (step <= 1 / gamma).all()
    # The condition on the end s of the step, with the logarithms of both sides.
    s = t + step
    inner = step > 1e-300
    want = np.log(gamma) + np.log(step[inner])
    off = np.abs(want + np.logaddexp(0, s[inner]))
    assert (off <= 1e-6 * (1 + np.abs(s[inner]))).all()


def test_a_proximal_step_does_not_depend_on_its_neighbours(rng):
    t, gamma = rng.normal(size=(40, 3)) * 10, np.array([1e-4, 0.1, 50.0])
    whole = LOGISTIC.prox_step(t, gamma)
    for i in range(len(t)):
        np.testing.assert_array_equal(LOGISTIC.prox_step(t[i : i + 1], gamma)[0], whole[i])


@smooth
def test_slopes_and_curvatures(loss):
    h, none = 1e-5, np.empty(0)
    slope = (loss.value(T + h) - loss.value(T - h)) / (2 * h)
    np.testing.assert_allclose(loss.slope(T, 0.3), -slope, atol=1e-5)
    change = (loss.slope(T - h, 0.3) - loss.slope(T + h, 0.3)) / (2 * h)
    away = np.abs(T - 1) > 2 * h
    curvature = loss.curvature(T, 0.3, none) / (4 * 0.3)
    np.testing.assert_allclose(curvature[away], change[away], atol=1e-6)
    assert not loss.duality_gap(T, T).any()
    assert loss.minimum == loss.value(np.array([1e9]))[0]


@smooth
def test_margins_of_any_size(loss):
    t = np.array([-1e8, -800.0, 800.0, 1e8])
    for found in (loss.value(t), loss.slope(t, 1.0), loss.curvature(t, 1.0, t)):
        assert np.isfinite(found).all() and (found >= 0).all()


def test_what_a_ridge_regression_has_in_common_with_them():
    """The penalty of a loss is that of a ridge regression by its curvature about zero."""
    zero = np.zeros(1)
    for loss in (LOGISTIC, SQUARED_HINGE):
        assert loss.ridge_share == loss.curvature(zero, 0.25, zero)[0]


def test_which_models_have_probabilities_by_their_loss():
    for loss, solver, expected in (
        ("logistic", "newton", True),
        ("logistic", "converged", True),
        ("logistic", "paper", False),
        ("squared_hinge", "newton", False),
        ("hinge", "newton", False),
    ):
        assert gives_probabilities(SimpleNamespace(loss=loss, solver=solver)) == expected
    assert not gives_probabilities(SimpleNamespace(solver="newton"))
