"""The generators of the paper's synthetic problem."""

from __future__ import annotations

import numpy as np
import pytest

from polysift.datasets import KINDS, bayes_curve, make_bayes_curve, make_noisy_curve


def truth(X):
    return np.where(X[:, 1] >= bayes_curve(X[:, 0]), 1, -1)


def region(X, kind, width):
    distance = abs(X[:, 1] - bayes_curve(X[:, 0]))
    return {"inside": distance <= width, "outside": distance > width}.get(kind, distance >= 0)


def test_the_curve_has_the_values_of_its_formula():
    t = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
    steep = (0.5**5 * (32 * 0.0625 + 2.5 + 1) + 1) / 2
    np.testing.assert_allclose(bayes_curve(t), [1, steep, 0.5, 0.5, 0.5], rtol=1e-15)


def test_points_fill_the_unit_square():
    X, _ = make_bayes_curve(5000, random_state=0)
    assert X.min() >= 0 and X.max() < 1
    np.testing.assert_allclose(X.mean(axis=0), 0.5, atol=0.02)
    np.testing.assert_allclose(X.var(axis=0), 1 / 12, atol=0.005)


@pytest.mark.parametrize(("m", "noise"), [(1, 0.4), (7, 0.5), (1000, 0.1), (333, 0.037), (50, 1)])
def test_bayes_curve_reverses_so_many_labels_and_stays_as_it_was(m, noise):
    X, y = make_bayes_curve(m, noise=noise, random_state=3)
    assert np.sum(y != truth(X)) == round(m * noise)
    rng = np.random.RandomState(3)  # the recipe of the first release
    points = rng.random_sample((m, 2))
    labels = truth(points)
    labels[rng.permutation(m)[: round(m * noise)]] *= -1
    np.testing.assert_array_equal(X, points)
    np.testing.assert_array_equal(y, labels)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [0.0, 0.05, 0.3, 2.0])
@pytest.mark.parametrize("ratio", [0.0, 0.15, 0.5, 1.0])
def test_noise_is_exact_and_keeps_to_its_region(kind, width, ratio):
    X, y = make_noisy_curve(800, kind=kind, width=width, ratio=ratio, random_state=1)
    within = region(X, kind, width)
    wrong = y != truth(X)
    assert set(y) <= {-1, 1}
    assert not wrong[~within].any()
    assert wrong.sum() == round(within.sum() * ratio)


def test_the_two_generators_agree_on_noise_everywhere():
    plain = make_bayes_curve(300, noise=0.2, random_state=5)
    noisy = make_noisy_curve(300, kind="everywhere", ratio=0.2, random_state=5)
    np.testing.assert_array_equal(plain[0], noisy[0])
    np.testing.assert_array_equal(plain[1], noisy[1])


@pytest.mark.parametrize("kind", KINDS)
def test_more_noise_adds_to_less(kind):
    few, many = (
        make_noisy_curve(500, kind=kind, width=0.2, ratio=ratio, random_state=2)
        for ratio in (0.1, 0.4)
    )
    np.testing.assert_array_equal(few[0], many[0])
    before = few[1] != truth(few[0])
    assert np.all((many[1] != truth(many[0]))[before])


def test_reversed_labels_are_spread_over_their_region():
    X, y = make_noisy_curve(20_000, kind="outside", width=0.2, ratio=0.3, random_state=0)
    wrong, right = X[y != truth(X)], X[region(X, "outside", 0.2) & (y == truth(X))]
    np.testing.assert_allclose(wrong.mean(axis=0), right.mean(axis=0), atol=0.02)


def test_seeds_repeat_and_generators_go_on():
    one, two = (make_noisy_curve(50, kind="inside", random_state=8) for _ in range(2))
    np.testing.assert_array_equal(one[0], two[0])
    np.testing.assert_array_equal(one[1], two[1])
    rng = np.random.RandomState(8)
    first, second = (make_noisy_curve(50, kind="inside", random_state=rng) for _ in range(2))
    np.testing.assert_array_equal(one[0], first[0])
    assert not np.array_equal(first[0], second[0])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_samples": 0}, "n_samples must be an integer of at least 1; got 0"),
        ({"kind": "near"}, "kind must be one of 'inside', 'outside', 'everywhere'; got 'near'"),
        ({"kind": None}, "kind must be one of"),
        ({"width": -0.1}, "width must be a number of at least 0; got -0.1"),
        ({"width": float("nan")}, "width must be"),
        ({"ratio": 1.5}, "ratio must lie between 0 and 1; got 1.5"),
        ({"ratio": float("nan")}, "ratio must lie between 0 and 1; got nan"),
    ],
)
def test_bad_parameters_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        make_noisy_curve(**{"n_samples": 10, **settings})


def test_bad_noise_is_named():
    with pytest.raises(ValueError, match="noise must lie between 0 and 1; got -1"):
        make_bayes_curve(10, noise=-1)
