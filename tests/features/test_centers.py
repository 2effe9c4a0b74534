import numpy as np
import pytest
import scipy.sparse as sp

from polysift import PolynomialKernelMap
from polysift.features.centers import hash_rows, uniform_centers


def drawn(X, scheme="random", n=10, seed=3, **fit):
    model = PolynomialKernelMap(2, n, centers=scheme, scaler=None, random_state=seed, n_jobs=1)
    return model.fit(X, **fit).centers_


def test_hash_tells_rows_apart_and_depends_on_the_seed(rng):
    X = rng.integers(0, 2, (5000, 40)).astype(float)
    distinct = len(np.unique(X, axis=0))
    assert len(np.unique(hash_rows(X, 1))) == distinct
    assert not np.intersect1d(hash_rows(X, 1), hash_rows(X, 2)).size
    swapped = X[:, ::-1]
    assert (hash_rows(X, 1) != hash_rows(swapped, 1)).mean() > 0.99


def test_hash_is_uniform(rng):
    X = rng.integers(0, 50, (20_000, 2)).astype(float)
    unique = np.unique(hash_rows(X, 9)) / 2.0**64
    counts, _ = np.histogram(unique, 10, (0, 1))
    assert counts.min() > 0.75 * counts.mean() and counts.max() < 1.25 * counts.mean()


def test_hash_sees_values_not_storage(rng):
    X = np.round(rng.normal(size=(100, 7)), 1) * (rng.random((100, 7)) < 0.4)
    X[5] = 0
    expected = hash_rows(X, 4)
    stored = sp.csr_array(X)
    stored.data[::3] = 0.0  # explicit zeros
    np.testing.assert_array_equal(hash_rows(stored, 4), hash_rows(stored.toarray(), 4))
    np.testing.assert_array_equal(hash_rows(sp.csr_matrix(X), 4), expected)
    np.testing.assert_array_equal(hash_rows(np.asfortranarray(X), 4), expected)
    np.testing.assert_array_equal(hash_rows(np.where(X == 0, -0.0, X), 4), expected)
    single = X.astype(np.float32)
    np.testing.assert_array_equal(hash_rows(single, 4), hash_rows(single.astype(float), 4))


def test_random_rows_ignore_order_and_repetition(rng):
    X = rng.normal(size=(5000, 4))
    expected = drawn(X)
    np.testing.assert_array_equal(drawn(X[rng.permutation(5000)]), expected)
    np.testing.assert_array_equal(drawn(np.vstack([X, X[:700], X[:3]])), expected)
    np.testing.assert_array_equal(drawn(sp.csr_array(X)), expected)
    assert (drawn(X, seed=4) != expected).any()


@pytest.mark.parametrize("scheme", ["uniform", "first", "random"])
def test_centers_are_nested(rng, scheme):
    X = rng.normal(size=(3000, 4))
    np.testing.assert_array_equal(drawn(X, scheme, 5), drawn(X, scheme, 14)[:5])


def test_uniform_centers_fill_the_box():
    C = uniform_centers(np.array([0.0, -2.0]), np.array([1.0, 3.0]), 2000, 0)
    assert (C.min(0) >= [0, -2]).all() and (C.max(0) <= [1, 3]).all()
    np.testing.assert_allclose(C.mean(0), [0.5, 0.5], atol=0.1)


def test_first_rows_are_distinct_and_in_order(rng):
    X = np.repeat(rng.normal(size=(4000, 3)), 2, axis=0)
    np.testing.assert_array_equal(drawn(X, "first", 9), X[:18:2])


def test_rows_of_weight_zero_are_no_centers(rng):
    X = rng.normal(size=(400, 4))
    weights = (np.arange(400) % 2).astype(float)
    for scheme in ("first", "random"):
        expected = drawn(X[1::2], scheme)
        np.testing.assert_array_equal(drawn(X, scheme, sample_weight=weights), expected)


def test_every_scheme_cuts_the_number_of_centers(rng):
    X = rng.normal(size=(300, 2))  # C(2+2, 2) = 6
    for centers in ("auto", "uniform", "first", "random", X[:50]):
        model = PolynomialKernelMap(2, 40, centers=centers).fit(X)
        assert model.n_centers_ == len(model.centers_) == 6
    few = np.repeat(X[:4], 10, axis=0)
    assert PolynomialKernelMap(2, 40, centers="random").fit(few).n_centers_ == 4
    assert PolynomialKernelMap(2, 40, centers="first").fit(few).n_centers_ == 4


def test_auto_is_uniform_at_full_dimension_and_rows_below(rng):
    X = rng.random((500, 3))
    full = PolynomialKernelMap(2, random_state=0, scaler=None).fit(X)
    assert full.n_centers_ == 10
    rows = {row.tobytes() for row in X}
    assert not any(c.tobytes() in rows for c in full.centers_)
    fewer = PolynomialKernelMap(2, 9, random_state=0, scaler=None).fit(X)
    assert all(c.tobytes() in rows for c in fewer.centers_)
    assert PolynomialKernelMap(4).fit(rng.random((1500, 12))).n_centers_ == 1000


def test_given_centers_are_in_the_units_of_the_data(rng):
    X = 100 * rng.random((200, 2))
    model = PolynomialKernelMap(3, centers=X[:5]).fit(X)
    low, high = X.min(0), X.max(0)
    np.testing.assert_allclose(model.centers_, (X[:5] - low) / (high - low))
    assert PolynomialKernelMap(3, 2, centers=X[:5]).fit(X).n_centers_ == 2
