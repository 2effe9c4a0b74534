import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import QuantileTransformer

from polysift.features.scalers import KNOTS, learn_scaler, scaler_from_dict
from polysift.features.statistics import (
    SKETCH_SIZE,
    ColumnStatistics,
    column_statistics,
    quantile_sketch,
    thin,
)
from polysift.runtime.parallel import tree_sum


def statistics_of(X, weights=None, parts=1):
    weights = np.ones(X.shape[0]) if weights is None else weights
    pieces = np.array_split(np.arange(X.shape[0]), parts)
    return tree_sum((column_statistics(X[p], weights[p]) for p in pieces), ColumnStatistics.merge)


def sketch_of(X, weights=None, parts=1):
    weights = np.ones(len(X)) if weights is None else weights
    pieces = np.array_split(np.arange(len(X)), parts)
    return tree_sum((quantile_sketch(X[p], weights[p]) for p in pieces), lambda a, b: a.merge(b))


def assert_same(a, b):
    assert a.weight == b.weight
    for name in ("low", "high", "mean", "deviation"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-12, atol=1e-14)


def test_statistics_merge_to_those_of_the_whole(rng):
    X = rng.normal(5, 3, (1000, 4))
    found = statistics_of(X, parts=20)
    np.testing.assert_array_equal(found.low, X.min(0))
    np.testing.assert_array_equal(found.high, X.max(0))
    np.testing.assert_allclose(found.mean, X.mean(0), rtol=1e-13)
    np.testing.assert_allclose(found.deviation, X.std(0), rtol=1e-13)


def test_statistics_do_not_cancel(rng):
    X = 1e9 + rng.normal(0, 1e-3, (5000, 2))
    np.testing.assert_allclose(statistics_of(X, parts=7).deviation, X.std(0), rtol=1e-4)


def test_weights_are_multiplicities(rng):
    X = rng.normal(size=(200, 3))
    counts = rng.integers(1, 4, 200)
    repeated = np.repeat(X, counts, axis=0)
    assert_same(statistics_of(X, counts.astype(float), 3), statistics_of(repeated, parts=5))
    for kind in ("minmax", "standard", "quantile"):
        a = learn_scaler(kind, statistics_of(X, counts * 1.0), sketch_of(X, counts * 1.0, 3))
        b = learn_scaler(kind, statistics_of(repeated), sketch_of(repeated, parts=2))
        np.testing.assert_allclose(a.transform(X), b.transform(X), atol=1e-13)


@pytest.mark.parametrize("make", [sp.csr_array, sp.csr_matrix])
def test_sparse_statistics_count_the_zeros(rng, make):
    X = rng.normal(size=(300, 6)) * (rng.random((300, 6)) < 0.3)
    X[:, 2] = rng.random(300) + 1  # no zero at all
    X[:, 3] = 0
    weights = rng.integers(1, 3, 300).astype(float)
    assert_same(statistics_of(make(X), weights, 4), statistics_of(X, weights))


@pytest.mark.parametrize("kind", ["minmax", "standard", None])
def test_sparse_scaling_is_dense_scaling(rng, kind):
    X = rng.normal(size=(50, 5)) * (rng.random((50, 5)) < 0.4)
    X[:, 1] = rng.random(50) + 3  # zero lies far outside: it is clipped like any other value
    scaler = learn_scaler(kind, statistics_of(X), None)
    new = np.vstack([X, 20 * X, np.zeros((1, 5))])
    origin, shifted = scaler.transform_sparse(sp.csr_array(new))
    assert shifted.nnz <= sp.csr_array(new).nnz
    np.testing.assert_allclose(origin + shifted.toarray(), scaler.transform(new), atol=1e-13)


def test_minmax(rng):
    X = np.column_stack([rng.normal(size=100), np.full(100, 7.0)])
    scaler = learn_scaler("minmax", statistics_of(X), None)
    scaled = scaler.transform(X)
    assert scaled[:, 0].min() == 0
    assert np.isclose(scaled[:, 0].max(), 1)
    assert (scaled[:, 1] == 0).all(), "a constant column becomes 0"
    far = scaler.transform(np.array([[1e9, 8.0], [-1e9, 6.0]]))
    np.testing.assert_allclose(far, [[1.1, 0], [-0.1, 0]], atol=1e-12)


def test_standard(rng):
    X = np.column_stack([rng.normal(3, 2, 1000), np.full(1000, 0.1)])
    scaler = learn_scaler("standard", statistics_of(X), None)
    scaled = scaler.transform(X) * np.sqrt(2)
    inside = np.abs(X[:, 0] - X[:, 0].mean()) < 4 * X[:, 0].std()
    z = (X[:, 0] - X[:, 0].mean()) / X[:, 0].std()
    np.testing.assert_allclose(scaled[inside, 0], z[inside], atol=1e-10)
    assert (scaled[:, 1] == 0).all(), "rounding must not blow up a constant column"
    np.testing.assert_allclose(scaler.transform(np.array([[99.0, 1.0]])), [[4 / np.sqrt(2), 0]])


def test_quantile_follows_the_distribution(rng):
    X = np.column_stack([rng.exponential(size=3000), rng.integers(0, 3, 3000), np.ones(3000)])
    scaler = learn_scaler("quantile", statistics_of(X), sketch_of(X, parts=6))
    q = (scaler.transform(X) * np.sqrt(3) + 1) / 2
    expected = QuantileTransformer(n_quantiles=1000).fit_transform(X)
    assert np.abs(q[:, 0] - expected[:, 0]).max() < 2e-3
    assert q[:, :2].min() == 0
    np.testing.assert_allclose(q[:, :2].max(0), 1, rtol=1e-12)
    assert np.unique(q[:, 1]).size == 3
    assert (q[:, 2] == 0.5).all(), "a constant column lies in the middle"
    beyond = scaler.transform(np.array([[-5.0, -1, 0], [1e9, 9, 2]]))
    np.testing.assert_allclose(beyond * np.sqrt(3), [[-1, -1, 0], [1, 1, 0]], rtol=1e-12)


def test_sketch_error_is_as_documented(rng):
    x = np.sort(rng.lognormal(0, 2, 400_000))
    sketch = sketch_of(rng.permutation(x)[:, None], parts=64)
    assert len(sketch.values[0]) <= SKETCH_SIZE
    assert sketch.values[0][0] == x[0] and sketch.values[0][-1] == x[-1]
    assert np.isclose(sketch.weights[0].sum(), len(x))
    middle = np.cumsum(sketch.weights[0]) - sketch.weights[0] / 2
    true = (np.searchsorted(x, sketch.values[0]) + 0.5) / len(x)
    assert np.abs(middle / len(x) - true).max() < 3e-3


def test_thin_keeps_ends_and_weight(rng):
    values, weights = np.arange(10_000.0), rng.random(10_000)
    weights[77] = 1e4  # one value heavier than all others together
    v, w = thin(values, weights, 100)
    assert len(v) <= 100 and v[0] == 0 and v[-1] == 9999 and 77 in v
    assert (np.diff(v) > 0).all()
    assert np.isclose(w.sum(), weights.sum())


@pytest.mark.parametrize("kind", ["minmax", "standard", "quantile", None])
def test_scalers_survive_as_plain_arrays(rng, kind):
    X = rng.normal(size=(40, 3))
    scaler = learn_scaler(kind, statistics_of(X), sketch_of(X))
    fields = scaler.to_dict()
    assert {type(value) for value in fields.values()} <= {str, np.ndarray}
    np.testing.assert_array_equal(scaler_from_dict(fields).transform(X), scaler.transform(X))


def test_quantile_knots_are_bounded(rng):
    X = rng.normal(size=(9000, 1))
    scaler = learn_scaler("quantile", statistics_of(X), sketch_of(X))
    assert scaler.counts[0] == KNOTS
