import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from oracles import lemma_1
from polysift.losses import HINGE

finite = st.floats(-50, 50, allow_nan=False)
gammas = st.floats(1e-3, 1e3)
labels = st.sampled_from([-1.0, 1.0])


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
