"""Fits with the spline kernel: the same model however it is computed, in every solver."""

from __future__ import annotations

import os

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import polysift
from mixed_tables import mixed_table, strange_rows
from polysift import CheckpointError, FPCClassifier, PolynomialKernelMap, open_data
from polysift.engine.local import LocalEngine
from polysift.features.tables import stored_scaler
from polysift.runtime import checkpoints
from problems import optional

pd, pa = optional("pandas"), optional("pyarrow")

M = 2_500


def classifier(**params):
    given = {
        "kernel": "spline",
        "degree": 3,
        "n_centers": 50,
        "scaler": "minmax",
        "alpha": 1.0,
        "solver": "paper",
    }
    return FPCClassifier(**(given | {"max_levels": 20, "random_state": 0} | params))


def numbers(m=M):
    """Return rows with a continuous column, ties, missing values and outliers, and labels."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m, 4))
    X[:, 1] = rng.integers(0, 6, m)
    X[:, 3] = np.exp(4 * X[:, 3])
    y = X[:, 0] * X[:, 2] + np.sin(2 * X[:, 1]) > 0
    X[rng.random(m) < 0.2, 2] = np.nan
    return X, np.where(y ^ (rng.random(m) < 0.02), "yes", "no")


def same_model(one, other):
    """Check that two fits ended in the same bits."""
    for name in ("coef_", "centers_", "column_kinds_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.fixture(scope="module")
def table():
    frame, y = mixed_table(M)
    return frame.assign(target=y)


@pytest.fixture(scope="module")
def fitted(table):
    return classifier().fit(table.drop(columns="target"), table["target"])


def test_it_learns_what_is_not_smooth():
    X, y = numbers()
    half = len(X) // 2
    model = classifier(n_centers=200).fit(X[:half], y[:half])
    plain = classifier(n_centers=200, kernel="polynomial").fit(X[:half], y[:half])
    assert model.score(X[half:], y[half:]) > 0.75
    assert model.score(X[half:], y[half:]) > plain.score(X[half:], y[half:]) - 0.02


class TestTheSameModel:
    def test_from_threads(self):
        X, y = numbers()
        first = classifier(n_jobs=1).fit(X, y)
        same_model(classifier(n_jobs=3).fit(X, y), first)
        np.testing.assert_array_equal(
            clone(first).set_params(n_jobs=2).fit(X, y).decision_function(X),
            first.decision_function(X),
        )

    @pytest.mark.needs("pandas", "pyarrow")
    @pytest.mark.parametrize("rows", [700, 10_000])
    def test_from_files_and_budgets(self, fitted, table, tmp_path, rows):
        path = tmp_path / "table.parquet"
        table.to_parquet(path, row_group_size=rows)
        source = open_data(path, target="target")
        same_model(classifier(n_jobs=1).fit(source), fitted)
        same_model(classifier(n_jobs=3, memory_limit="30MB").fit(source), fitted)
        np.testing.assert_array_equal(
            fitted.predict(open_data(path, drop=["target"])),
            fitted.predict(table.drop(columns="target")),
        )

    @pytest.mark.needs("pandas", "pyarrow", "ray")
    @pytest.mark.parametrize(
        "params", [{}, {"calibration": "sigmoid", "solver": "converged", "max_iter": 5, "tol": 0}]
    )
    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    def test_from_workers(self, table, tmp_path, four_workers, params):
        path = tmp_path / "table.parquet"
        table.to_parquet(path, row_group_size=500)
        source = open_data(path, target="target")
        local = classifier(**params).fit(source)
        same_model(classifier(engine="ray", **params).fit(source), local)
        from_memory = classifier(engine="ray", **params)
        same_model(from_memory.fit(table.drop(columns="target"), table["target"]), local)

    @pytest.mark.parametrize("stop_at", [1, 2])
    def test_from_a_checkpoint(self, tmp_path, monkeypatch, stop_at):
        monkeypatch.setattr(checkpoints.Checkpoint, "due", lambda self: True)
        monkeypatch.setattr(os, "fsync", lambda _: None)
        X, y = numbers(600)
        expected = classifier(max_iter=3, tol=0).fit(X, y)
        original, calls = LocalEngine.sweep, []

        def failing(self, *arguments):
            calls.append(1)
            if len(calls) == stop_at:
                raise MemoryError  # unlike Ctrl-C, this ends the fit at any moment
            return original(self, *arguments)

        model = classifier(max_iter=3, tol=0, checkpoint=tmp_path)
        with monkeypatch.context() as patch:
            patch.setattr(LocalEngine, "sweep", failing)
            with pytest.raises(MemoryError):
                model.fit(X, y)
        same_model(model.fit(X, y), expected)
        with pytest.raises(CheckpointError, match="its kernel is .'spline'"):
            clone(model).set_params(kernel="polynomial").fit(X, y)

    def test_whatever_the_scaler(self):
        X, y = numbers(600)
        first = classifier(scaler="minmax").fit(X, y)
        for scaler in ("standard", "quantile", None):
            same_model(classifier(scaler=scaler).fit(X, y), first)

    def test_float32(self):
        X, y = numbers()
        X = X.astype(np.float32)
        one, other = classifier().fit(X, y), classifier().fit(X.astype(float), y)
        np.testing.assert_array_equal(one.centers_, other.centers_)
        np.testing.assert_allclose(
            one.decision_function(X), other.decision_function(X.astype(float)), atol=1e-2
        )


class TestEverySolver:
    @pytest.mark.parametrize("params", [{"solver": "newton"}, {"solver": "converged"}])
    def test_they_agree(self, params):
        """The minimum of the loss over the features that the map alone makes."""
        X, y = numbers(800)
        model = classifier(n_centers=10, degree=2, tol=1e-4, max_iter=20_000, **params).fit(X, y)
        Z = PolynomialKernelMap(
            2, 10, kernel="spline", scaler="minmax", max_levels=20, random_state=0
        ).fit_transform(X)
        np.testing.assert_allclose(Z @ model.coef_[0], model.decision_function(X), atol=1e-8)
        signs = np.where(y == "yes", 1.0, -1.0)
        loss = np.maximum(1.0 - signs * model.decision_function(X), 0.0).mean()
        other = classifier(n_centers=10, degree=2).fit(X, y).decision_function(X)
        assert loss <= np.maximum(1.0 - signs * other, 0.0).mean() + 1e-6
        newton = classifier(n_centers=10, degree=2, solver="newton").fit(X, y)
        least = np.maximum(1.0 - signs * newton.decision_function(X), 0.0).mean()
        assert loss == pytest.approx(least, rel=1e-3)

    def test_a_sampled_gram_matrix(self):
        X, y = numbers(6_000)
        exact = classifier(n_centers=30, tol=0).fit(X, y)
        sampled = classifier(n_centers=30, tol=0, gram="sampled").fit(X, y)
        assert sampled.gram_ == "sampled"
        np.testing.assert_allclose(
            sampled.decision_function(X), exact.decision_function(X), atol=0.02
        )

    def test_a_warm_start_goes_on(self):
        X, y = numbers(800)
        model = classifier(warm_start=True, max_iter=2, tol=0).fit(X, y)
        first, centers = model.coef_, model.centers_
        model.fit(X, y)
        np.testing.assert_array_equal(model.centers_, centers)
        assert model.n_iter_ == 2 and np.any(model.coef_ != first)

    @pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
    def test_calibration(self, calibration):
        X, y = numbers(800)
        model = classifier(calibration=calibration).fit(X, y)
        p = model.predict_proba(X)
        np.testing.assert_allclose(p.sum(axis=1), 1.0)
        assert np.mean((p[:, 1] - (y == "yes")) ** 2) < 0.25

    def test_weights_are_multiplicities(self):
        X, y = numbers(600)
        counts = np.random.default_rng(1).integers(0, 3, 600)
        at = np.repeat(np.arange(600), counts)
        given = {"centers": np.nan_to_num(X[:40]), "n_centers": "auto"}
        weighted = classifier(**given).fit(X, y, sample_weight=counts)
        repeated = classifier(**given).fit(X[at], y[at])
        np.testing.assert_allclose(weighted.centers_, repeated.centers_, atol=1e-12)
        np.testing.assert_allclose(
            weighted.decision_function(X), repeated.decision_function(X), atol=1e-7
        )

    def test_three_classes(self):
        X, y = numbers(800)
        y = np.where(X[:, 0] > 1, "high", y)
        model = classifier().fit(X, y)
        assert model.decision_function(X).shape == (800, 3) and model.score(X, y) > 0.7


class TestFiles:
    def test_a_model_comes_back(self, fitted, table, tmp_path):
        polysift.save(fitted, tmp_path / "model.polysift")
        again = polysift.load(tmp_path / "model.polysift")
        same_model(again, fitted)
        assert again.kernel == "spline"
        rows = table.drop(columns="target")
        np.testing.assert_array_equal(again.decision_function(rows), fitted.decision_function(rows))

    def test_a_table_of_an_older_file_has_no_spline(self, table):
        rows = table.drop(columns="target")
        model = classifier(kernel="polynomial").fit(rows, table["target"])
        older = {name: value for name, value in model.scaler_.items() if name != "spline"}
        assert len(older) == len(model.scaler_) - 1
        assert stored_scaler(older).spline is None
        expected = model.decision_function(rows)
        model.scaler_ = older
        np.testing.assert_array_equal(model.decision_function(rows), expected)


class TestMissingValues:
    def test_unseen_levels_and_values(self, fitted, table):
        rows = strange_rows(table.drop(columns="target"))
        with pytest.warns(UserWarning, match="missing in column 'Größe'"):
            scores = fitted.decision_function(rows)
        assert np.isfinite(scores).all()

    def test_a_row_without_any_value_is_the_middle(self):
        X, y = numbers()
        X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
        model = classifier().fit(X, y)
        scores = model.decision_function(np.full((3, 4), np.nan))
        assert np.isfinite(scores).all() and np.ptp(scores) < 1e-12


class TestRefusals:
    def test_sparse_rows(self):
        X, y = numbers(100)
        rows = sp.csr_array(np.nan_to_num(X))
        with pytest.raises(ValueError, match=r"kernel='spline' needs dense rows.*X\.toarray"):
            classifier().fit(rows, y)
        model = classifier().fit(rows.toarray(), y)
        with pytest.raises(ValueError, match="dense"):
            model.predict(rows)

    @pytest.mark.parametrize("make", [classifier, PolynomialKernelMap])
    def test_parameters(self, make):
        X, y = numbers(100)
        with pytest.raises(ValueError, match="centers='uniform' needs kernel='polynomial'"):
            make(kernel="spline", centers="uniform").fit(X, y)
        with pytest.raises(ValueError, match="kernel must be one of 'polynomial', 'spline'"):
            make(kernel="cubic").fit(X, y)


def test_a_plan_is_that_of_the_fit():
    X, y = numbers()
    expected = classifier().plan(X, y, show=False)
    assert (expected.rows, expected.features, expected.centers) == (M, 4, 50)
    plain = classifier(degree=1, kernel="polynomial", n_centers=500).plan(X, y, show=False)
    wide = classifier(degree=1, n_centers=500).plan(X, y, show=False)
    assert plain.centers < wide.centers == 500, "there is no limit by the dimension"


def test_the_map_alone():
    X, _ = numbers(300)
    made = PolynomialKernelMap(2, 20, kernel="spline", scaler=None, random_state=0).fit(X)
    Z = made.transform(X)
    assert Z.shape == (300, 20)
    own = PolynomialKernelMap(1, 20, kernel="spline", scaler=None, random_state=0).fit(X)
    np.testing.assert_allclose(own.transform(X) ** 2, Z, rtol=1e-12)
