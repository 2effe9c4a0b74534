"""The automatic choice of the feature map and rho: what it takes, and on what it depends."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import polysift
from mixed_tables import mixed_table
from polysift import FPCClassifier, open_data
from polysift.features.sampled_rows import LabelledSample
from polysift.runtime.errors import FeatureOverflowError
from polysift.training import choice
from polysift.training.choice import (
    DEGREES,
    FIRST_ROWS,
    auto_centers,
    sampled_centers,
    sampled_rows,
)
from problems import noisy_problem, optional

pa, pq, pd = optional("pyarrow"), optional("pyarrow.parquet"), optional("pandas")

KEYS = {"kernel", "scaler", "degree", "weights", "gcv", "degrees_of_freedom"}
PAPERS = {"solver": "paper", "loss": "hinge"}


def fitted(X, y=None, weights=None, **params):
    """Return a fitted classifier that is left to choose."""
    return FPCClassifier(**{"random_state": 0} | params).fit(X, y, weights)


def best(model):
    """Return the trial that was taken."""
    return model.selection_["trials"][model.selection_["best"]]


def map_of(model):
    """Return what was chosen, in words."""
    return {name: best(model)[name] for name in ("kernel", "scaler", "degree", "weights")}


def same(one, other):
    """Require two models to be the same, bit by bit, and to have been chosen in the same way."""
    assert one.selection_ == other.selection_
    np.testing.assert_array_equal(one.centers_, other.centers_)
    np.testing.assert_array_equal(one.coef_, other.coef_)
    assert one.rho_ == other.rho_


@pytest.fixture(scope="module")
def curved():
    """Rows whose sample is not all of them, with 50 centers."""
    return noisy_problem(np.random.default_rng(3), 8000, 4, noise=0.05)


class TestWhatIsChosen:
    def test_lines_have_degree_one(self, rng):
        X = rng.normal(size=(1000, 5))
        y = X @ [1.0, -2.0, 0.5, 0.0, 1.0] + 4 * rng.normal(size=1000) > 0
        assert fitted(X, y).degree_ == 1

    def test_a_product_of_columns_has_a_higher_degree(self, rng):
        """Of which lower degrees see nothing at all."""
        X = rng.uniform(-1, 1, (2000, 4))
        y = X[:, 0] * X[:, 1] * X[:, 2] * X[:, 3] > 0
        model = fitted(X, y)
        assert model.degree_ >= 4 and model.score(X, y) > 0.9

    def test_columns_that_matter_have_more_weight(self, rng):
        X = rng.uniform(-1, 1, (2000, 12))
        y = X[:, 0] * X[:, 5] > 0
        model = fitted(X, y)
        weights = np.array(model.selection_["column_weights"])
        assert best(model)["weights"] == "by importance"
        assert weights.shape == (12,) and weights.sum() == pytest.approx(1.0)
        assert set(np.argsort(weights)[-2:]) == {0, 5}

    def test_the_record(self, curved):
        model = fitted(*curved)
        found = model.selection_
        assert set(found) == {"rows", "centers", "trials", "best", "column_weights"}
        assert all(set(trial) == KEYS for trial in found["trials"])
        assert best(model)["degree"] == model.degree_ and best(model)["kernel"] == model.kernel_
        assert all(trial["degree"] in DEGREES for trial in found["trials"])
        assert 0 < best(model)["gcv"] < 1
        assert 0 < best(model)["degrees_of_freedom"] <= found["centers"]
        assert found["rows"] <= len(curved[0])

    def test_nothing_open_leaves_no_record(self, curved):
        model = fitted(*curved, degree=2, kernel="polynomial", scaler="standard")
        assert not hasattr(model, "selection_")
        model.set_params(degree="auto").fit(*curved)
        assert hasattr(model, "selection_")
        assert not hasattr(model.set_params(degree=2).fit(*curved), "selection_")


class TestGivenParameters:
    @pytest.mark.parametrize("kernel", ["polynomial", "spline"])
    def test_the_kernel(self, curved, kernel):
        model = fitted(*curved, kernel=kernel, n_centers=50)
        assert model.kernel_ == kernel
        assert {trial["kernel"] for trial in model.selection_["trials"]} == {kernel}
        assert {trial["weights"] for trial in model.selection_["trials"]} == {"equal"}

    def test_the_degree(self, curved):
        model = fitted(*curved, degree=5, n_centers=50)
        assert model.degree_ == 5
        assert {trial["degree"] for trial in model.selection_["trials"]} == {5}

    def test_the_scaler(self, curved):
        model = fitted(*curved, scaler="minmax", kernel="polynomial", n_centers=50)
        assert {trial["scaler"] for trial in model.selection_["trials"]} == {"minmax"}

    def test_the_number_of_centers(self, curved):
        assert fitted(*curved, n_centers=37, kernel="spline").n_centers_ == 37

    def test_centers(self, curved):
        X, y = curved
        model = fitted(X, y, centers=X[:20])
        assert model.n_centers_ <= 20
        uniform = fitted(X, y, centers="uniform", n_centers=30)
        assert uniform.kernel_ == "polynomial" and uniform.n_centers_ == 30
        assert fitted(X, y, centers="first", n_centers=30).n_centers_ == 30

    def test_rho(self, curved):
        given = PAPERS | {"kernel": "polynomial", "degree": 2, "scaler": "standard"}
        chosen = fitted(*curved, **given)
        paper = fitted(*curved, **given, rho=None)
        assert chosen.rho_ != paper.rho_ == 1.0
        assert fitted(*curved, **given, alpha=3.0).rho_ == 3.0
        assert fitted(*curved, **given, beta=4.0).rho_ == 0.25
        relative = [fitted(*curved, **given, rho=rho).rho_ for rho in (1e-3, 1e-2)]
        assert relative[1] == pytest.approx(10 * relative[0])

    @pytest.mark.parametrize("name", ["degree", "scaler", "kernel", "rho"])
    def test_other_words_are_refused(self, curved, name):
        with pytest.raises(ValueError, match=name):
            fitted(*curved, **{name: "automatic"})


class TestTheSameChoice:
    def test_again_and_for_threads(self, curved):
        one = fitted(*curved, n_jobs=1)
        same(one, fitted(*curved, n_jobs=1))
        same(one, fitted(*curved, n_jobs=3))

    def test_little_memory(self, curved):
        free = fitted(*curved, n_centers=60)
        same(free, fitted(*curved, n_centers=60, memory_limit="10MB"))

    @pytest.mark.needs("pyarrow", "pandas")
    def test_files_and_frames(self, curved, tmp_path):
        X, y = curved
        frame = pd.DataFrame(X, columns=list("abcd"))
        array = fitted(X, y, n_centers=50)
        assert array.selection_["rows"] < len(X)
        same(array, fitted(frame, y, n_centers=50))
        pq.write_table(pa.table(dict(frame) | {"y": y}), tmp_path / "x.parquet", row_group_size=999)
        same(array, fitted(open_data(tmp_path / "x.parquet", target="y"), n_centers=50))

    @pytest.mark.needs("ray")
    def test_two_workers(self, curved, four_workers):
        cluster = polysift.RayCluster(workers=2)
        same(fitted(*curved, n_centers=50), fitted(*curved, n_centers=50, engine=cluster))

    @pytest.mark.parametrize("n_centers", ["auto", 50])
    def test_another_order_of_the_rows(self, curved, rng, n_centers):
        X, y = curved
        order = rng.permutation(len(X))
        one, other = (fitted(*rows, n_centers=n_centers) for rows in ((X, y), (X[order], y[order])))
        assert map_of(one) == map_of(other)
        assert one.selection_["rows"] == other.selection_["rows"]
        np.testing.assert_allclose(one.centers_, other.centers_, atol=1e-2)  # ranks are estimated
        assert one.rho_ == pytest.approx(other.rho_, rel=1e-2)

    @pytest.mark.parametrize("m", [40, 700])
    def test_weights_are_repetitions(self, rng, m):
        X, y = noisy_problem(rng, m, 3)
        weights = rng.integers(0, 4, m)
        weighted = fitted(X, y, weights)
        repeated = fitted(np.repeat(X, weights, axis=0), np.repeat(y, weights))
        assert map_of(weighted) == map_of(repeated)
        assert weighted.n_centers_ == repeated.n_centers_
        np.testing.assert_allclose(
            weighted.decision_function(X), repeated.decision_function(X), rtol=1e-3, atol=1e-4
        )


class TestOddTables:
    def test_two_rows(self):
        model = fitted([[0.0], [1.0]], [0, 1])
        assert model.n_centers_ == 1 and np.isfinite(model.decision_function([[0.5]])).all()

    def test_one_column(self, rng):
        x = rng.uniform(-3, 3, (600, 1))
        assert fitted(x, np.sin(3 * x[:, 0]) > 0).score(x, np.sin(3 * x[:, 0]) > 0) > 0.9

    @pytest.mark.parametrize("kernel", ["auto", "polynomial", "spline"])
    def test_constant_columns(self, rng, kernel):
        X = np.column_stack([np.ones(200), rng.normal(size=200), np.zeros(200)])
        assert fitted(X, X[:, 1] > 0, kernel=kernel).score(X, X[:, 1] > 0) > 0.9

    def test_columns_that_are_all_constant(self):
        X, y = np.ones((50, 2)), np.arange(50) % 3 == 0
        assert not fitted(X, y).predict(X).any()

    def test_more_centers_than_rows(self, rng):
        X, y = noisy_problem(rng, 6, 2)
        model = fitted(X, y, centers=rng.random((40, 2)))
        assert np.isfinite(model.coef_).all() and model.rho_ > 0

    @pytest.mark.needs("pandas")
    @pytest.mark.parametrize("kernel", ["auto", "spline", "polynomial"])
    def test_categories_alone(self, rng, kernel):
        frame = pd.DataFrame(rng.choice(list("abcd"), (400, 3)), columns=list("xyz"))
        y = (frame["x"] == "a") ^ (frame["y"] == "b")
        assert fitted(frame, y, kernel=kernel).score(frame, y) == 1.0

    @pytest.mark.needs("pandas")
    def test_every_kind_of_column_and_missing_values(self):
        frame, y = mixed_table()
        model = fitted(frame, y, max_levels=20)
        weights = model.selection_["column_weights"]
        assert model.score(frame, y) > 0.8
        assert weights is None or len(weights) == frame.shape[1]

    @pytest.mark.parametrize("d", [3, 200])
    def test_sparse_rows(self, rng, d):
        X = sp.csr_array(rng.random((500, d)) * (rng.random((500, d)) < 0.2))
        y = X.sum(axis=1) > np.median(X.sum(axis=1))
        model = fitted(X, y)
        assert model.kernel_ == "polynomial" and model.selection_["column_weights"] is None
        assert {trial["scaler"] for trial in model.selection_["trials"]} == {"standard"}
        assert model.score(X, y) > 0.75

    def test_rows_that_repeat(self, rng):
        """Of eight distinct rows a sample by their content would have none, or one."""
        X = rng.integers(0, 2, (20_000, 3)).astype(float)
        y = X[:, 0] * X[:, 1] + X[:, 2] > 0.5
        model = fitted(X, y, n_centers=8)
        assert model.selection_["rows"] == pytest.approx(FIRST_ROWS, rel=0.1)
        assert model.score(X, y) == 1.0

    def test_many_classes(self, rng):
        X = rng.random((900, 2))
        y = np.floor(3 * X[:, 0]) + 3 * np.floor(3 * X[:, 1])
        assert fitted(X, y).score(X, y) > 0.85

    def test_classes_of_very_different_weights(self, rng):
        X, y = noisy_problem(rng, 300, 2)
        for weights in ({-1: 1e-9, 1: 1e-9}, {-1: 1e9, 1: 1.0}, "balanced"):
            assert np.isfinite(fitted(X, y, class_weight=weights).coef_).all()


class TestOverflow:
    def test_of_some_maps_is_no_error(self, rng):
        """The fourth power of these features is finite, the eighth is not."""
        X = 1e30 * rng.normal(size=(300, 2))
        y = X[:, 0] * X[:, 1] > 0
        model = fitted(X, y, kernel="polynomial", scaler=None)
        none = [trial["degree"] for trial in model.selection_["trials"] if trial["gcv"] is None]
        assert model.degree_ < min(none, default=8)
        assert np.isfinite(model.decision_function(X)).all()

    def test_of_all_maps_says_what_to_do(self, rng):
        X = 1e200 * rng.normal(size=(300, 2))
        with pytest.raises(FeatureOverflowError, match="[Ll]ower the degree|scale"):
            fitted(X, X[:, 0] > 0, kernel="polynomial", scaler=None, degree=3, rho="auto")
        with pytest.raises(FeatureOverflowError, match="[Ll]ower|scale"):
            fitted(X, X[:, 0] > 0, kernel="polynomial", scaler=None)


class TestWithTheRest:
    def test_warm_start_goes_on_with_the_choice(self, curved):
        X, y = curved
        given = {"solver": "converged", "max_iter": 3, "n_centers": 50, "warm_start": True}
        with pytest.warns(ConvergenceWarning):
            model = fitted(X, y, **given)
        before, centers = model.selection_, model.centers_
        with pytest.warns(ConvergenceWarning):
            model.fit(X, y)
        assert model.selection_ == before
        np.testing.assert_array_equal(model.centers_, centers)

    def test_a_checkpoint_leads_to_the_same_choice(self, curved, tmp_path):
        whole = fitted(*curved, n_centers=50)
        same(whole, fitted(*curved, n_centers=50, checkpoint=tmp_path))
        same(whole, fitted(*curved, n_centers=50, checkpoint=tmp_path))

    @pytest.mark.parametrize("kind", ["sigmoid", "isotonic"])
    def test_calibration(self, curved, kind):
        X, y = curved
        model = fitted(X, y, calibration=kind, n_centers=50)
        p = model.predict_proba(X)[:, 1]
        assert map_of(model) == map_of(fitted(X, y, n_centers=50))
        assert np.mean((p - (y > 0)) ** 2) < 0.2

    def test_a_sampled_gram_matrix(self, curved):
        model = fitted(*curved, n_centers=20, gram="sampled", solver="paper")
        assert model.gram_ == "sampled" and model.rho_ > 0

    def test_a_plan_needs_no_choice(self, curved):
        rows = len(curved[0])
        assert FPCClassifier().plan(*curved, show=False).centers <= auto_centers(rows, rows)

    def test_saved_and_loaded(self, curved, tmp_path):
        model = fitted(*curved, n_centers=50)
        polysift.save(model, tmp_path / "m.polysift")
        again = polysift.load(tmp_path / "m.polysift")
        assert again.selection_ == model.selection_ and again.kernel_ == model.kernel_
        X = curved[0][:100]
        np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


WRONG_RECORDS = {
    "no dict": lambda s: [],
    "a key is missing": lambda s: {key: s[key] for key in s if key != "best"},
    "no trials": lambda s: s | {"trials": []},
    "trials of another kind": lambda s: s | {"trials": [1]},
    "the best is beyond": lambda s: s | {"best": len(s["trials"])},
    "no rows": lambda s: s | {"rows": 0},
    "weights of other columns": lambda s: s | {"column_weights": [1.0]},
    "weights that are words": lambda s: s | {"column_weights": ["a"] * 4},
    "negative weights": lambda s: s | {"column_weights": [-1.0, 1.0, 1.0, 1.0]},
    "another key": lambda s: s | {"trials": [s["trials"][0] | {"x": 1}], "best": 0},
    "a kernel": lambda s: s | {"trials": [s["trials"][0] | {"kernel": "x"}], "best": 0},
    "a scaler": lambda s: s | {"trials": [s["trials"][0] | {"scaler": ["a"]}], "best": 0},
    "a degree": lambda s: s | {"trials": [s["trials"][0] | {"degree": 0}], "best": 0},
    "a score": lambda s: s | {"trials": [s["trials"][0] | {"gcv": "low"}], "best": 0},
}


@pytest.mark.parametrize("name", WRONG_RECORDS)
def test_records_that_no_choice_makes_are_refused(curved, tmp_path, name):
    model = fitted(*curved, n_centers=10)
    model.selection_ = WRONG_RECORDS[name](model.selection_)
    with pytest.raises(polysift.ModelFileError):
        polysift.save(model, tmp_path / "m.polysift")


class TestSizes:
    def test_centers_grow_with_the_rows(self):
        counts = [auto_centers(rows, rows) for rows in (1, 2, 7, 100, 2000, 4000, 1e4, 1e6, 1e9)]
        assert counts[:6] == [1, 1, 3, 50, choice.MIN_AUTO_CENTERS, 1000]
        assert max(counts) <= choice.MAX_AUTO_CENTERS and min(counts[-2:]) >= 1000

    def test_rows_that_repeat_count_once_for_small_data(self):
        assert auto_centers(1000, 600) == 300
        assert auto_centers(1000, 10) == 250  # as many as before: the scheme takes distinct rows

    def test_rows_of_a_class_of_little_weight_hardly_count(self, rng):
        X, codes = rng.normal(size=(40, 2)), np.arange(40) % 2
        sample = LabelledSample(X, codes, None, np.where(codes == 0, 1e3, 1e-3), np.arange(40))
        assert sample.n_effective == pytest.approx(20, rel=1e-4)
        double = LabelledSample(X, codes, np.full(40, 2.0), 2 * sample.weights, np.arange(40))
        assert double.n_effective == pytest.approx(sample.n_effective)

    def test_samples(self):
        assert sampled_rows(500, 10, 100) == 500
        assert sampled_rows(10**7, 10, 2000) < 10**5
        assert sampled_rows(10**6, 10**7, 100) == 1
        assert sampled_centers(3, 100) == 1 and sampled_centers(3000, 50) == 50

    def test_the_first_rows_of_a_sample(self, rng):
        X, codes = rng.normal(size=(9, 2)), np.arange(9) % 2
        own = np.array([1.0, 2, 3, 1, 1, 1, 1, 1, 1])
        sample = LabelledSample(X, codes, own, 5 * own, np.arange(9))
        assert len(sample.first(6.0).codes) == 3 and sample.first(6.0).total == 6.0
        assert len(sample.first(0.5).codes) == 1 and len(sample.first(99.0).codes) == 9
        order = rng.permutation(9)
        other = LabelledSample(X[order], codes[order], own[order], 5 * own[order], order)
        one, two = sample.in_order(4), other.in_order(4)
        np.testing.assert_array_equal(one.rows, two.rows)
        np.testing.assert_array_equal(one.numbers, two.numbers)
        each = np.repeat(np.arange(9), 2)
        twice = LabelledSample(X[each], codes[each], None, None, np.arange(18))
        np.testing.assert_array_equal(twice.distinct(5)[0], sample.distinct(5)[0])
        assert twice.n_distinct == 9 and twice.distinct(5)[1].tolist() == [2.0] * 5
