import math

import numpy as np
import pytest

from oracles import kernel
from polysift import degree_bound
from polysift.features.kernels import full_dimension, power_in_place


@pytest.mark.parametrize("degree", range(1, 21))
def test_power_is_the_power(degree, rng):
    Z = rng.uniform(-2, 2, (7, 5))
    expected = Z**degree
    power_in_place(Z, degree, np.empty_like(Z))
    np.testing.assert_allclose(Z, expected, rtol=1e-13)


@pytest.mark.parametrize(("d", "degree"), [(1, 5), (2, 1), (2, 3), (3, 2), (3, 3), (5, 2)])
@pytest.mark.parametrize("seed", range(3))
def test_proposition_1_random_centers_have_full_rank(d, degree, seed):
    rng = np.random.default_rng(seed)
    n = full_dimension(degree, d)
    C = rng.uniform(-1, 1, (n, d))
    assert np.linalg.matrix_rank(kernel(C, C, degree), tol=None) == n
    more = rng.uniform(-1, 1, (n + 10, d))
    assert np.linalg.matrix_rank(kernel(more, more, degree)) == n


def test_full_dimension_counts_monomials():
    assert full_dimension(9, 2) == 55
    assert full_dimension(1, 7) == 8


def test_degree_bound_follows_code_and_text():
    for m, d in [(10, 1), (1000, 2), (3299, 166), (10_280, 5), (10**6, 2), (10**7, 21)]:
        code = min(math.ceil((m / math.log(m)) ** (1 / d)), 10)
        assert degree_bound(m, d) == max(1, code)
    assert degree_bound(1000, 3, formula="text") == 10  # an exact root, not 9.99...
    assert degree_bound(999, 3, formula="text") == 9
    assert degree_bound(5, 4, formula="text") == 1
    assert degree_bound(1, 1) == degree_bound(1, 1, formula="text") == 1
    assert degree_bound(2, 50) == 2


@pytest.mark.parametrize(
    ("m", "d", "bound"),
    [
        (3299, 166, 2),  # musk2, on which the text's bound would leave a linear model
        (4_000_000, 8, 7),  # SUSY: C(7 + 8, 8) = 6435 is more than its 1700 centers
        (10_000_000, 21, 3),  # HIGGS: C(3 + 21, 3) = 2024 is more than its 500
        (1000, 3, 10),
        (729, 3, 9),
        (730, 3, 10),
        (1, 4, 1),
        (10**9, 1, 10),
    ],
)
def test_ceil_is_the_exact_root_rounded_up(m, d, bound):
    assert degree_bound(m, d, formula="ceil") == bound
    assert bound >= degree_bound(m, d, formula="text")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 2), "n_samples must be an integer of at least 1; got 0"),
        ((10, 1.5), "n_features must be an integer of at least 1; got 1.5"),
    ],
)
def test_degree_bound_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        degree_bound(*arguments)
    with pytest.raises(ValueError, match="formula must be"):
        degree_bound(10, 2, formula="theory")
