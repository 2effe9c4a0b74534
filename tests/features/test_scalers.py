"""Statistics and scalers, and how a scaler is added: ``SoftsignScaler`` is the guide to it."""

from dataclasses import dataclass
from typing import get_args, get_type_hints

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import QuantileTransformer

import polysift
from polysift import FPCClassifierCV
from polysift.engine import compiled
from polysift.features.scalers import (
    MAX_KNOTS,
    SCALERS,
    MinMaxScaler,
    Scaler,
    learn_scaler,
    scaler_from_dict,
)
from polysift.features.statistics import (
    MAX_SKETCH_SIZE,
    ColumnStatistics,
    column_statistics,
    quantile_sketch,
    thin,
)
from polysift.runtime.arrays import InvalidFieldError, require, required_array
from polysift.runtime.parallel import tree_sum
from problems import noisy_problem, optional, paper_classifier

options = optional("polysift.cli.options")


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
    for kind in ("minmax", "symmetric", "standard", "quantile"):
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


@pytest.mark.parametrize("kind", ["minmax", "symmetric", "standard", None])
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


def test_symmetric(rng):
    X = np.column_stack([rng.normal(size=100), np.full(100, 7.0), 1e9 + rng.random(100)])
    scaler = learn_scaler("symmetric", statistics_of(X), None)
    scaled = scaler.transform(X)
    np.testing.assert_allclose(scaled[:, [0, 2]].min(0), -1, rtol=1e-6)
    np.testing.assert_allclose(scaled[:, [0, 2]].max(0), 1, rtol=1e-6)
    assert (scaled[:, 1] == 0).all(), "a constant column becomes 0"
    unit = learn_scaler("minmax", statistics_of(X), None)
    np.testing.assert_allclose(scaled[:, 0], 2 * unit.transform(X)[:, 0] - 1, atol=1e-14)
    far = scaler.transform(np.array([[1e9, 8.0, 0.0], [-1e9, 6.0, 2e9]]))
    np.testing.assert_allclose(far, [[1.2, 0, -1.2], [-1.2, 0, 1.2]], rtol=1e-6)


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
    assert len(sketch.values[0]) <= MAX_SKETCH_SIZE
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


@pytest.mark.parametrize("kind", list(SCALERS))
def test_scalers_survive_as_plain_arrays(rng, kind):
    X = rng.normal(size=(40, 3))
    scaler = learn_scaler(kind, statistics_of(X), sketch_of(X))
    fields = scaler.to_dict()
    assert {type(value) for value in fields.values()} <= {str, np.ndarray}
    np.testing.assert_array_equal(scaler_from_dict(fields).transform(X), scaler.transform(X))


def test_quantile_knots_are_bounded(rng):
    X = rng.normal(size=(9000, 1))
    scaler = learn_scaler("quantile", statistics_of(X), sketch_of(X))
    assert scaler.counts[0] == MAX_KNOTS


@pytest.mark.parametrize("name", list(SCALERS))
def test_fields_of_another_scaler_are_refused(rng, name):
    X = rng.normal(size=(40, 3))
    fields = learn_scaler(name, statistics_of(X), sketch_of(X)).to_dict()
    scaler_from_dict(fields).validate(3)
    with pytest.raises(InvalidFieldError, match="shape"):
        scaler_from_dict(fields).validate(4)
    for kind in ("robust", None, []):
        with pytest.raises(InvalidFieldError, match="one of the kinds affine, quantile"):
            scaler_from_dict(fields | {"kind": kind})
    for wrong in (fields | {"more": 1}, dict(list(fields.items())[:-1])):
        with pytest.raises(InvalidFieldError, match="must have the keys"):
            scaler_from_dict(wrong)


def test_the_command_line_offers_all_scalers():
    """Its help must not import NumPy, so its list is written out."""
    hint = get_type_hints(options.ModelOptions)["scaler"]
    words = [word for choice in get_args(hint) for word in get_args(choice)]
    assert words == ["auto", *(name or "none" for name in SCALERS)]


# How to add a scaler


@dataclass(frozen=True)
class SoftsignScaler(Scaler):
    """``t / (1 + |t|)`` of ``t = (x - median) * scale``: all that a new scaler has to say."""

    kind = "softsign"
    needs_sketch = True

    median: np.ndarray
    scale: np.ndarray

    @classmethod
    def learn(cls, statistics, sketch):
        columns = zip(sketch.values, sketch.weights, strict=True)
        middle = [v[np.searchsorted(np.cumsum(w), w.sum() / 2)] for v, w in columns]
        return cls(np.array(middle), 1.0 / np.maximum(statistics.deviation, 1e-300))

    def transform(self, block):
        t = (block - self.median) * self.scale
        return t / (1.0 + np.abs(t))

    def slope(self, block):
        return self.scale / (1.0 + np.abs((block - self.median) * self.scale)) ** 2

    def to_onnx(self, graph, x):
        t = graph.op("Sub", x, graph.constant("median", self.median))
        t = graph.op("Mul", t, graph.constant("scale", self.scale))
        below = graph.op("Add", graph.op("Abs", t), graph.constant("one", 1.0))
        return graph.op("Div", t, below)

    def validate(self, d):
        required_array(vars(self), "median", "f", (d,))
        require((required_array(vars(self), "scale", "f", (d,)) > 0).all(), "scale must be > 0")


class TestAddingAScaler:
    """A class and its name in ``SCALERS`` are all it takes."""

    @pytest.fixture(autouse=True)
    def registered(self, monkeypatch):
        monkeypatch.setitem(SCALERS, "softsign", SoftsignScaler)

    @pytest.fixture
    def problem(self, rng):
        X, y = noisy_problem(rng, 600, 3)
        return np.exp(3 * X), y

    @pytest.fixture
    def fitted(self, problem):
        return paper_classifier(3, scaler="softsign", random_state=0).fit(*problem)

    def test_fit(self, problem, fitted):
        X, y = problem
        by_hand = learn_scaler("softsign", statistics_of(X), sketch_of(X))
        np.testing.assert_allclose(fitted.scaler_["median"], np.sort(X, axis=0)[299])
        same = paper_classifier(3, centers=fitted.centers_, scaler=None).fit(
            by_hand.transform(X), y
        )
        np.testing.assert_allclose(
            fitted.decision_function(X), same.decision_function(by_hand.transform(X)), rtol=1e-6
        )

    def test_weights_are_multiplicities(self, problem):
        X, y = problem
        counts = np.arange(len(X)) % 3
        make = paper_classifier(2, scaler="softsign", random_state=0)
        a = make.fit(X, y, counts.astype(float)).decision_function(X)
        b = make.fit(np.repeat(X, counts, axis=0), np.repeat(y, counts)).decision_function(X)
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)

    @pytest.mark.needs("numba")
    def test_compiled_loops(self, problem):
        X, y = problem
        make = paper_classifier(3, scaler="softsign", random_state=0)
        with compiled.disabled():
            plain = make.fit(X, y).decision_function(X)
        with compiled.enabled():
            found = make.fit(X, y).decision_function(X)
        np.testing.assert_allclose(found, plain, rtol=1e-6, atol=1e-9)

    @pytest.mark.needs("onnx", "onnxruntime")
    def test_onnx(self, problem, fitted):
        import onnxruntime

        X, _ = problem
        session = onnxruntime.InferenceSession(polysift.to_onnx(fitted).SerializeToString())
        scores = session.run(["score"], {"X": X})[0]
        np.testing.assert_allclose(scores, fitted.decision_function(X), rtol=1e-9, atol=1e-9)

    def test_model_file(self, problem, fitted, tmp_path):
        X, _ = problem
        polysift.save(fitted, tmp_path / "model.polysift")
        again = polysift.load(tmp_path / "model.polysift")
        assert again.scaler_["kind"] == "softsign"
        np.testing.assert_array_equal(again.decision_function(X), fitted.decision_function(X))
        fitted.scaler_["scale"] *= -1
        with pytest.raises(polysift.ModelFileError, match="scale must be > 0"):
            polysift.save(fitted, tmp_path / "other.polysift")

    def test_gradients(self, problem, fitted):
        X, _ = problem
        at, step = X[:20], 1e-6
        found = polysift.explain(fitted).gradients(at)
        for i, shift in enumerate(step * np.eye(3)):
            up, down = (fitted.decision_function(at + sign * shift) for sign in (1, -1))
            np.testing.assert_allclose(found[:, i], (up - down) / (2 * step), rtol=1e-4, atol=1e-4)

    def test_search_and_sparse_rows(self, problem):
        X, y = problem
        search = FPCClassifierCV(2, 8, scalers=("minmax", "softsign"), cv=2, random_state=0)
        assert {*search.fit(X, y).cv_results_["param_scaler"]} == {"minmax", "softsign"}
        assert {*search.fit(sp.csr_array(X), y).cv_results_["param_scaler"]} == {"minmax"}
        with pytest.raises(ValueError, match="scaler='softsign' needs dense rows.*'standard' or"):
            paper_classifier(scaler="softsign").fit(sp.csr_array(X), y)

    def test_its_name_is_offered(self, problem):
        with pytest.raises(ValueError, match="'quantile', None, 'softsign', 'auto'; got 'robust'"):
            paper_classifier(scaler="robust").fit(*problem)


def test_one_that_learns_differently_is_read_as_its_base(rng):
    scaler = learn_scaler("minmax", statistics_of(rng.normal(size=(9, 2))), None)
    assert type(scaler) is MinMaxScaler and scaler.to_dict()["kind"] == "affine"
    assert type(scaler_from_dict(scaler.to_dict())) is SCALERS[None]
