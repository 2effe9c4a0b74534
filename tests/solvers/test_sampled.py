"""A sampled Gram matrix: its rows, its products, and models beside those of the exact one."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import eigh
from sklearn.exceptions import ConvergenceWarning

from clusters import K, M, N, Shaky, engines, equal
from oracles import kernel, lp_optimum
from polysift import load, save
from polysift.data.source import ArraySource
from polysift.data.training_set import TrainingSet
from polysift.engine.backend import LOCAL, FitContext
from polysift.engine.budget import Execution, Shape, peak_bytes
from polysift.engine.local import LocalEngine
from polysift.engine.problems import Problem
from polysift.engine.row_updates import AdmmUpdate
from polysift.engine.sampling import (
    Draw,
    add_gram,
    feature_blocks,
    sample_of,
    sampling_pays,
    slope_for,
    uniform_numbers,
)
from polysift.engine.shards import ShardWork
from polysift.features.feature_map import FeatureMap
from polysift.features.scalers import AffineScaler
from polysift.runtime import checkpoints
from polysift.runtime.parallel import Pool, Workspace
from polysift.runtime.progress import Monitor
from polysift.solvers import conjugate_gradients
from polysift.solvers.conjugate_gradients import ConjugateGradients, SampledGram, sampled_sums
from polysift.solvers.factor import Ridge, factorise
from problems import noisy_problem, paper_classifier
from solving import converged, solve

X, Y = noisy_problem(np.random.default_rng(0), 6000, 3)


def engine_for(X, y, C, degree, *, classes=2, threads=1, **more):
    d = X.shape[1]
    same = AffineScaler(np.zeros(d), np.ones(d), np.full(d, -np.inf), np.full(d, np.inf))
    own = {
        name: more.pop(name) for name in ("weights", "fold_parts", "n_fold_parts") if name in more
    }
    data = TrainingSet(ArraySource(X), y, classes, **own)
    return LocalEngine(data, FeatureMap(same, C, degree), Pool(threads), Execution(**more))


def heavy_tailed(rng, m, n=40):
    """Return rows a few of which have most of the leverage, centers among them, and features."""
    X = rng.standard_t(3, size=(m, 3))
    C = X[rng.permutation(m)[:n]] / 4
    return X, C, kernel(X, C, 4)


class TestProduct:
    @pytest.mark.parametrize("kind", ["float64", "float32", "sparse", "kept"])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_it_is_that_of_the_gram_matrix(self, rng, kind, weighted):
        X = rng.random((5000, 4)) * (rng.random((5000, 4)) < 0.5)
        C, y = rng.random((20, 4)), rng.integers(0, 3, 5000)
        weights = rng.integers(0, 3, 5000) * rng.random(5000) if weighted else None
        fold_parts = rng.integers(-1, 2, 5000)
        if kind == "float32":
            X = X.astype(np.float32)
        rows = sp.csr_array(X) if kind == "sparse" else X
        more = {
            "weights": weights,
            "fold_parts": fold_parts,
            "n_fold_parts": 2,
            "keep_features": kind == "kept",
        }
        engine = engine_for(rows, y, C, 3, classes=3, **more)
        problems = [
            Problem(20, AdmmUpdate(1.0, 1.0)),
            Problem(20, AdmmUpdate(1.0, 1.7), 1),
            Problem(12, AdmmUpdate(2.0, 1.0), 0),
        ]
        P = rng.normal(size=(20, 9))
        A, counts = kernel(X.astype(float), C, 3), np.ones(5000) if weights is None else weights
        expected = np.zeros((20, 9))
        for i, one in enumerate(problems):
            own, part = (
                counts * (fold_parts >= 0) * (fold_parts != one.without),
                slice(3 * i, 3 * i + 3),
            )
            G = A[:, : one.n].T @ (own[:, None] * A[:, : one.n])
            expected[: one.n, part] = G @ P[: one.n, part]
        tolerance = 1e-4 if kind == "float32" else 1e-10
        for _ in range(2):  # the second time from features that are kept
            found = engine.product(problems, P)
            np.testing.assert_allclose(found, expected, atol=tolerance * abs(expected).max())

    def test_it_moves_no_state(self, rng):
        engine = engine_for(X, (Y > 0).astype(int), rng.random((5, 3)), 2)
        engine.begin(1)
        engine.product([Problem(5, AdmmUpdate(1.0, 1.0))], np.ones((5, 1)))
        np.testing.assert_array_equal(engine.state, 1.0)

    def test_one_row_one_feature_one_center(self):
        engine = engine_for(np.array([[2.0]]), np.array([1]), np.array([[3.0]]), 2)
        assert engine.product([Problem(1, AdmmUpdate(1.0, 1.0))], np.array([[0.5]])) == 0.5 * 7.0**4


class TestDraws:
    def test_numbers_depend_on_the_position_alone(self):
        numbers = uniform_numbers(np.arange(100_000), 7)
        assert numbers.min() >= 0 and numbers.max() < 1
        counts, _ = np.histogram(numbers, 20, (0, 1))
        assert abs(counts - 5000).max() < 400
        np.testing.assert_array_equal(numbers[500:900], uniform_numbers(np.arange(500, 900), 7))
        other = uniform_numbers(np.arange(100_000), 8)
        assert abs(np.corrcoef(numbers, other)[0, 1]) < 0.02
        assert uniform_numbers(np.arange(3), 2**65 + 1).min() >= 0  # twice a large seed

    def test_slope(self, rng):
        leverage = rng.random(1000) ** 8
        for share in (0.01, 0.3, 0.9):
            slope = slope_for(share, leverage)
            assert np.minimum(slope * leverage, 1).mean() == pytest.approx(share, rel=1e-3)
        assert np.isfinite(slope_for(0.5, np.zeros(10)))

    @pytest.mark.parametrize("fold_parts", [False, True])
    def test_sums_along_the_way(self, rng, fold_parts):
        X, C, _ = heavy_tailed(rng, 9000)
        y, weights = rng.integers(0, 2, 9000), rng.integers(0, 3, 9000) * 1.5
        own = {"fold_parts": rng.integers(-1, 3, 9000), "n_fold_parts": 3} if fold_parts else {}
        engine = engine_for(X, y, C, 4, weights=weights, **own)
        picked = engine.pick(Draw(0, 0.01, 1.0, rng.normal(size=(40, 8)) / 1e3))
        exact = engine.gram()
        np.testing.assert_allclose(picked.Aty, exact.Aty, rtol=1e-9, atol=1e-6)
        np.testing.assert_allclose(picked.trace, np.trace(exact.G, axis1=1, axis2=2))
        assert 0 < picked.n_rows < 9000
        assert all((counts >= 1.5).all() for counts in picked.counts), "rows of no weight stay out"

    def test_rows_that_count_little_do_not_spoil_the_first_sample(self, rng):
        weights = (np.arange(6000) % 100 == 0).astype(float)
        engine = engine_for(X, (Y > 0).astype(int), rng.random((4, 3)), 2, weights=weights)
        sums = sampled_sums(engine, sample_of(6000, 4, 0), Ridge(1.0), FitContext(Monitor(), LOCAL))
        assert np.trace(sums.G[0]) == pytest.approx(sums.trace[0], rel=0.7)


class TestPreconditioner:
    @pytest.mark.parametrize("seed", range(3))
    def test_it_is_close_to_the_gram_matrix(self, seed):
        """An even sample of the same size is off by a factor of a hundred and more here."""
        rng = np.random.default_rng(seed)
        X, C, A = heavy_tailed(rng, 8000)
        engine = engine_for(X, rng.integers(0, 2, 8000), C, 4)
        G = A.T @ A
        rho = 1e-9 * np.trace(G)
        found = sampled_sums(
            engine, sample_of(8000, 40, seed), Ridge(rho), FitContext(Monitor(), LOCAL)
        )
        upper = np.triu(found.G[0])
        M = upper + np.triu(upper, 1).T + rho * np.eye(40)
        eigenvalues = eigh(G + rho * np.eye(40), M, eigvals_only=True)
        assert eigenvalues[0] > 0.05 and eigenvalues[-1] < 4
        even = engine.pick(Draw(seed, 500 / 8000))
        B = kernel(np.concatenate(even.X), C, 4) * np.sqrt(np.concatenate(even.counts))[:, None]
        worse = eigh(G + rho * np.eye(40), B.T @ B + rho * np.eye(40), eigvals_only=True)
        assert worse[-1] > 10 * eigenvalues[-1]

    @pytest.mark.parametrize("threads", [1, 3])
    def test_panels(self, rng, threads):
        parts = [rng.random((count, 3)) for count in (5, 0, 1000, 70, 333)]
        C, counts = rng.random((150, 3)), rng.random(1408)

        def features(X, out):
            out[:] = kernel(X, C, 2)

        G, first = np.zeros((150, 150)), []
        with Pool(threads) as pool:
            for rows, A in feature_blocks(features, parts, 150, 256, pool):
                first.append(rows)
                add_gram(G, A, counts[slice(*rows)], pool, Workspace())
        A = kernel(np.concatenate(parts), C, 2)
        np.testing.assert_allclose(np.triu(G), np.triu(A.T @ (counts[:, None] * A)), rtol=1e-10)
        assert first[0] == (0, 256) and first[-1] == (1280, 1408)


class TestConjugateGradients:
    def system(self, rng, n=30, K=3):
        A = rng.normal(size=(200, n)) * 10.0 ** rng.uniform(-2, 2, n)
        G, H = A.T @ A, A[:100].T @ A[:100] * 2
        rho = 1e-6 * np.trace(G)
        factor = factorise(H, Ridge(rho), trace=np.trace(G))
        return G, factor, rng.normal(size=(n, K)) * [1.0, 1e-3, 1e5][:K]

    def solve(self, G, steps):
        while not steps.done:
            steps.absorb(G @ steps.P)
        return steps

    def test_each_column_comes_down_to_its_target(self, rng):
        G, factor, r = self.system(rng)
        target = np.array([1e-2, 1e-6, 1e-4]) ** 2 * factor.square(r)
        steps = self.solve(G, ConjugateGradients(factor, r, target))
        left = r - (G + factor.rho * np.eye(30)) @ steps.du
        assert (factor.square(left) <= 1.01 * target).all()
        alone = self.solve(G, ConjugateGradients(factor, r[:, :1], target[:1]))
        assert alone.products < steps.products
        np.testing.assert_allclose(steps.du[:, 0], alone.du[:, 0], rtol=1e-10)

    def test_the_largest_eigenvalue(self, rng):
        G, factor, r = self.system(rng)
        steps = self.solve(G, ConjugateGradients(factor, r, np.zeros(3), least=30))
        M = factor.cholesky[0]
        M = np.triu(M).T @ np.triu(M)
        largest = eigh(G + factor.rho * np.eye(30), M, eigvals_only=True)[-1]
        assert steps.largest() == pytest.approx(largest, rel=1e-3)

    def test_nothing_to_do(self, rng):
        _, factor, r = self.system(rng)
        assert ConjugateGradients(factor, r, 2 * factor.square(r)).done
        zero = ConjugateGradients(factor, np.zeros_like(r), np.zeros(3), least=5)
        assert zero.done and not zero.du.any() and zero.products == 0

    def test_noise_ends_it(self, rng):
        G, factor, r = self.system(rng)
        steps = ConjugateGradients(factor, r, np.zeros(3))
        while not steps.done:
            noise = 1 + 1e-4 * rng.normal(size=steps.P.shape)
            steps.absorb((G @ steps.P) * noise)
        assert steps.products <= conjugate_gradients.MAX_PRODUCTS and np.isfinite(steps.du).all()
        left = r - (G + factor.rho * np.eye(30)) @ steps.du
        assert (factor.square(left) < factor.square(r)).all()


def both(X, y, *, weights=None, **parameters):
    """Return a classifier with each Gram matrix."""
    defaults = {"degree": 4, "n_centers": 30, "centers": "random", "random_state": 0}
    fitted = [
        paper_classifier(**(defaults | parameters), gram=gram).fit(X, y, weights)
        for gram in ("exact", "sampled")
    ]
    assert [clf.gram_ for clf in fitted] == ["exact", "sampled"]
    assert fitted[0].n_products_ == 0 < fitted[1].n_products_ < 20
    return fitted


def problem(kind, rng):
    y = np.where(Y > 0, "yes", "no")
    if kind == "multiclass":
        y = np.where(X[:, 0] + X[:, 1] > 1.2, "maybe", y)
    rows = X.astype(np.float32) if kind == "float32" else X
    if kind == "sparse":
        rows = sp.csr_array(X * (rng.random(X.shape) < 0.6))
    weights = rng.integers(0, 3, len(X)) * rng.random(len(X)) if kind == "weights" else None
    more = {"calibration": "sigmoid"} if kind == "calibration" else {}
    return rows, y, {"weights": weights, **more}


KINDS = ["float64", "float32", "weights", "multiclass", "calibration", "sparse"]


class TestModels:
    @pytest.mark.parametrize("kind", KINDS)
    def test_paper_mode(self, rng, kind):
        rows, y, more = problem(kind, rng)
        exact, sampled = both(rows, y, **more)
        scores, other = (clf.decision_function(rows) for clf in (exact, sampled))
        assert np.linalg.norm(scores - other) < 0.01 * np.linalg.norm(scores)
        last = [clf.history_["objective"][-1] for clf in (exact, sampled)]
        assert last[1] == pytest.approx(last[0], rel=1e-3)
        dual = [clf.history_["dual_residual"][0] for clf in (exact, sampled)]
        assert dual[1] == pytest.approx(dual[0], rel=0.3)
        assert sampled.rho_ == exact.rho_
        if kind == "calibration":
            probabilities = [clf.predict_proba(rows) for clf in (exact, sampled)]
            np.testing.assert_allclose(*probabilities, atol=0.02)

    @pytest.mark.parametrize("kind", KINDS)
    def test_converged_mode(self, rng, kind):
        rows, y, more = problem(kind, rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            exact, sampled = both(rows, y, solver="converged", max_iter=150, **more)
        last = [clf.history_["objective"][-1] for clf in (exact, sampled)]
        assert last[1] <= 1.03 * last[0]  # neither is at the minimum yet
        agree = np.mean(exact.predict(rows) == sampled.predict(rows))
        assert agree > 0.97
        assert sampled.rho_ == pytest.approx(exact.rho_, rel=1e-5)

    @pytest.mark.parametrize(("d", "degree", "noise"), [(2, 3, 0.2), (3, 3, 0.25), (5, 2, 0.15)])
    def test_converged_mode_reaches_the_lp_optimum(self, d, degree, noise):
        rng = np.random.default_rng(d)
        X, y = noisy_problem(rng, 900, d, noise)
        C = rng.random((10 if d == 2 else 20, d))
        A = kernel(X, C, degree)
        optimum, _ = lp_optimum(A, y)
        engine = engine_for(X, (y > 0).astype(int), C, degree)
        start = SampledGram(sample_of(900, len(C), 0))
        result = solve(engine, converged(900, max_iter=600), start=start)
        assert result.products is not None
        objective = np.maximum(0, 1 - y * (A @ result.u[:, 0])).mean()
        assert optimum * (1 - 1e-9) <= objective <= 1.005 * optimum

    @pytest.mark.parametrize("solver", ["paper", "converged"])
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_ill_conditioned(self, solver, dtype):
        from polysift.datasets import make_bayes_curve

        X, y = make_bayes_curve(4000, noise=0.1, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exact, sampled = both(
                X.astype(dtype), y, degree=9, n_centers=55, solver=solver, centers="uniform"
            )
        last = [clf.history_["objective"][-1] for clf in (exact, sampled)]
        assert last[1] <= 1.01 * last[0]
        scores = [clf.score(X, y) for clf in (exact, sampled)]
        assert scores[1] > scores[0] - 0.005

    def test_one_feature_one_center(self):
        for solver in ("paper", "converged"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                exact, sampled = both(X[:, :1], Y, degree=1, n_centers=1, solver=solver)
            np.testing.assert_allclose(sampled.coef_, exact.coef_, rtol=1e-2)

    @pytest.mark.parametrize("gram", ["sampled", "auto"])
    def test_few_rows_are_all_taken(self, gram):
        rows, y = X[:500], Y[:500]
        exact = paper_classifier(4, n_centers=30, random_state=0).fit(rows, y)
        other = paper_classifier(4, n_centers=30, random_state=0, gram=gram).fit(rows, y)
        assert other.gram_ == "exact" and other.n_products_ == 0
        np.testing.assert_array_equal(other.coef_, exact.coef_)

    def test_warm_start(self):
        _, sampled = both(X, Y, solver="converged", max_iter=100, tol=0.05)
        before = sampled.history_["objective"][-1]
        sampled.set_params(warm_start=True, tol=0.01, max_iter=300).fit(X, Y)
        assert sampled.history_["objective"][-1] < before and sampled.gram_ == "sampled"
        paper = paper_classifier(4, n_centers=30, random_state=0, gram="sampled").fit(X, Y)
        before = paper.history_["objective"][-1]
        paper.set_params(warm_start=True).fit(X, Y)
        assert paper.history_["objective"][-1] <= before * (1 + 1e-6)

    def test_a_scale_that_was_too_small_is_found_out(self, monkeypatch):
        """Without lambda, a preconditioner that is too small lets the steps grow."""
        honest, found = ConjugateGradients.largest, []

        def largest(self):
            found.append(honest(self))
            return honest(self) if len(found) > 1 else 1.0

        def too_small(*args, **more):
            sums = sampled_sums(*args, **more)
            sums.G *= 0.05
            return sums

        exact = paper_classifier(4, n_centers=30, random_state=0, solver="converged").fit(X, Y)
        monkeypatch.setattr(conjugate_gradients, "sampled_sums", too_small)
        monkeypatch.setattr(ConjugateGradients, "largest", largest)
        clf = paper_classifier(4, n_centers=30, random_state=0, solver="converged", gram="sampled")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            clf.fit(X, Y)
        assert len(found) > 1 and found[-1] > 15
        assert clf.n_products_ < 100
        assert clf.history_["objective"][-1] < 1.01 * exact.history_["objective"][-1]


WIDE = {"degree": 4, "n_centers": 35, "random_state": 0, "gram": "sampled", "max_iter": 6}
MANY = noisy_problem(np.random.default_rng(1), 32_000, 4)


def model(solver="paper", **changes):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clf = paper_classifier(**(WIDE | {"solver": solver, "tol": 1e-9} | changes)).fit(*MANY)
    assert clf.gram_ == "sampled"
    return clf


class TestSameBits:
    @pytest.mark.parametrize("more", [{}, {"calibration": "sigmoid"}, {"solver": "converged"}])
    @pytest.mark.usefixtures("threaded")
    def test_any_number_of_threads(self, more):
        expected = model(n_jobs=1, **more)
        for n_jobs in (2, 3):
            found = model(n_jobs=n_jobs, **more)
            np.testing.assert_array_equal(found.coef_, expected.coef_)
            assert found.n_products_ == expected.n_products_

    def test_any_limit_of_memory(self):
        expected = model(solver="converged")
        found = model(solver="converged", memory_limit="40MB")
        np.testing.assert_array_equal(found.coef_, expected.coef_)

    @pytest.mark.parametrize("fold_parts", [False, True])
    @pytest.mark.parametrize("keep_features", [False, True])
    def test_a_cluster_that_loses_things(self, rng, fold_parts, keep_features):
        source = ArraySource(rng.random((M, 3)), None, rng.integers(0, K, M), rng.random(M))
        d = np.ones(3)
        feature_map = FeatureMap(AffineScaler(0 * d, d, -d, 2 * d), rng.random((N, 3)), 2)
        cluster = Shaky(3)
        local, remote = engines(
            (source, feature_map), cluster, fold_parts=fold_parts, store=keep_features
        )
        for draw in (Draw(1, 0.01), Draw(1, 0.01, 1.0, rng.normal(size=(N, 4)) / 100)):
            one, other = (engine.pick(draw) for engine in (local, remote))
            for name in ("Aty", "trace", "X", "counts"):
                values = [getattr(picked, name) for picked in (one, other)]
                if isinstance(values[0], list):
                    values = [np.concatenate(value) for value in values]
                np.testing.assert_array_equal(*values, err_msg=name)
        problems = [
            Problem(N, AdmmUpdate(1.0, 1.7), 0 if fold_parts else None),
            Problem(N - 3, AdmmUpdate(2.0, 1.0)),
        ]
        for engine in (local, remote):
            engine.begin(2)
        for _ in range(3):
            P = rng.normal(size=(N, 2 * K))
            np.testing.assert_array_equal(local.product(problems, P), remote.product(problems, P))
            equal(local.sweep(problems, P), remote.sweep(problems, P))
        assert cluster.losses > 0

    def test_ray(self, four_workers):
        from polysift import RayCluster

        expected = model()
        found = model(engine=RayCluster("auto", 2))
        np.testing.assert_array_equal(found.coef_, expected.coef_)
        assert found.n_products_ == expected.n_products_

    @pytest.mark.parametrize("solver", ["paper", "converged"])
    @pytest.mark.parametrize(("verb", "stop_at"), [("pick", 3), ("product", 40), ("sweep", 50)])
    def test_a_checkpoint(self, tmp_path, monkeypatch, solver, verb, stop_at):
        monkeypatch.setattr(checkpoints.Checkpoint, "due", lambda self: True)
        expected = model(solver)
        original, calls = getattr(ShardWork, verb), []

        def failing(self, *args):
            calls.append(1)
            if len(calls) == stop_at:
                raise RuntimeError("as if killed")
            return original(self, *args)

        monkeypatch.setattr(ShardWork, verb, failing)
        with pytest.raises(RuntimeError, match="killed"):
            model(solver, checkpoint=tmp_path, n_jobs=1)
        found = model(solver, checkpoint=tmp_path, n_jobs=2)
        np.testing.assert_array_equal(found.coef_, expected.coef_)
        assert found.n_products_ == expected.n_products_
        calls.clear()
        again = model(solver, checkpoint=tmp_path)
        np.testing.assert_array_equal(again.coef_, expected.coef_)
        assert not calls and again.n_products_ == expected.n_products_


class TestBudget:
    SHAPE = Shape(2_000_000, 8, 8000, 1, 4, False, False, 0)

    def test_a_matrix_and_a_factor_are_enough(self):
        sampled = replace(self.SHAPE, sample=sample_of(2_000_000, 8000, 0))
        work = Execution(2, 4)
        square = 8 * 8000**2
        assert peak_bytes(self.SHAPE, work) > 6 * square
        assert 3 * square < peak_bytes(sampled, work) < 4 * square

    def test_too_little_memory(self):
        clf = paper_classifier(4, n_centers=35, gram="sampled", memory_limit=2_000_000)
        with pytest.raises(MemoryError, match="Set memory_limit to"):
            clf.fit(*MANY)

    def test_when_it_pays(self):
        def pays(rows, centers, d, converged=False):
            sample = sample_of(rows, centers, 0)
            return sample is not None and sampling_pays(sample, centers, d, 1, converged=converged)

        assert pays(2_000_000, 3000, 8) and pays(4_000_000, 1600, 8)
        assert pays(2_000_000, 8000, 8, converged=True)
        assert not pays(2_000_000, 200, 8)
        assert not pays(2_000_000, 1000, 8, converged=True)
        assert not pays(60_000, 3000, 8)  # too few rows

    def test_auto_follows_it(self, monkeypatch):
        for pays in (False, True):
            monkeypatch.setattr(
                "polysift.training.plan.sampling_pays", lambda *a, pays=pays, **k: pays
            )
            clf = paper_classifier(4, n_centers=20, random_state=0, gram="auto").fit(X, Y)
            assert clf.gram_ == ("sampled" if pays else "exact")

    def test_the_forecast(self):
        plain = paper_classifier(4, n_centers=35).plan(*MANY, show=False)
        sampled = paper_classifier(4, n_centers=35, gram="sampled").plan(*MANY, show=False)
        assert plain.sample == 0 and "of all rows" in str(plain)
        assert 35 * 12 <= sampled.sample < 32_000 and "of some" in str(sampled)
        assert {"sample", "product"} <= sampled.seconds_by_phase.keys()
        assert sampled.passes > plain.passes
        clf = model()
        assert {"sample", "Gram matrix", "product", "sweep"} <= clf.timings_.keys()

    @pytest.mark.parametrize(("phase", "verb"), [("sample", "pick"), ("product", "product")])
    def test_the_time_limit(self, clock, monkeypatch, phase, verb):
        clock.after(monkeypatch, ShardWork, verb, 1.0)
        with pytest.raises(TimeoutError, match=f"struck in the phase '{phase}'"):
            model(time_limit=0.5)


class TestParameter:
    @pytest.mark.parametrize("value", ["nystrom", None, 3, True])
    def test_bad_values(self, value):
        message = "gram must be one of 'exact', 'sampled', 'auto'; got"
        with pytest.raises(ValueError, match=message):
            paper_classifier(gram=value).fit(X, Y)

    def test_files(self, tmp_path):
        clf = paper_classifier(4, n_centers=20, random_state=0, gram="sampled").fit(X, Y)
        save(clf, tmp_path / "m.polysift")
        again = load(tmp_path / "m.polysift")
        assert again.gram == again.gram_ == "sampled"
        assert again.n_products_ == clf.n_products_
        np.testing.assert_array_equal(again.coef_, clf.coef_)

    def test_the_command_line(self, tmp_path, monkeypatch):
        typer_testing = pytest.importorskip("typer.testing")
        from polysift.cli.app import app

        monkeypatch.chdir(tmp_path)
        np.savez("rows.npz", X=X, y=Y)
        words = [
            "fit",
            "rows.npz",
            "-t",
            "y",
            "--solver",
            "paper",
            "--gram",
            "sampled",
            "--n-centers",
            "20",
            "--seed",
            "0",
        ]
        outcome = typer_testing.CliRunner().invoke(app, words)
        assert outcome.exit_code == 0, outcome.output
        assert "of a sample of the rows" in outcome.output
        assert load("model.polysift").gram_ == "sampled"
