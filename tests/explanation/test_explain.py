"""The expansion, importances, attributions and gradients of a model against their definitions."""

from __future__ import annotations

import json
from itertools import combinations, product
from math import comb, factorial

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

import polysift
from polysift import Explanation, FPCClassifierCV, explain
from polysift.data.source import ArraySource
from polysift.explanation.attributions import Attributor, _coin_cumulants
from polysift.explanation.parts import Products
from polysift.explanation.reference import SAMPLE_ROWS, reference_of
from polysift.explanation.variances import importance_of
from polysift.features.monomials import expand, monomial_exponents, monomials, multinomials
from polysift.features.scalers import AffineScaler, scaler_from_dict
from problems import noisy_problem, optional, paper_classifier

pd = optional("pandas")

EPS = np.finfo(float).eps


def rows_and_labels(d, m=300, seed=0):
    return noisy_problem(np.random.default_rng(seed), m, d)


def size_of_scores(model, Z):
    """Return ``sum_j |u_j| (1 + |z|.|c_j|)^s``: what the rounding errors of a score scale with."""
    features = (1.0 + np.abs(Z) @ np.abs(model.centers_).T) ** model.degree_
    return features @ np.abs(model.coef_).T


def scores_of(model, X):
    return model.decision_function(X).reshape(len(X) if not sp.issparse(X) else X.shape[0], -1)


def assert_same_polynomial(model, X):
    """The expansion gives the scores up to rounding; so do the attributions with the baseline."""
    found = explain(model)
    Z, scores = found.scaled(X), scores_of(model, X)
    allowed = 8 * EPS * size_of_scores(model, Z)
    assert (np.abs(found.polynomial(Z) - scores) <= allowed).all()
    values = found.attributions(X).reshape(len(Z), Z.shape[1], -1)
    start = np.reshape(found.base_score(), -1)
    whole = allowed + 8 * EPS * size_of_scores(model, found.baseline[None])
    assert (np.abs(values.sum(axis=1) + start - scores) <= whole).all()


class TestMonomials:
    @pytest.mark.parametrize(("d", "degree"), [(1, 1), (1, 7), (2, 3), (3, 4), (6, 2), (9, 1)])
    def test_each_comes_once_degree_by_degree(self, d, degree):
        E = monomial_exponents(d, degree).astype(int)
        assert E.shape == (comb(degree + d, degree), d)
        assert len({tuple(row) for row in E}) == len(E)
        assert (np.diff(E.sum(axis=1)) >= 0).all() and E.sum(axis=1).max() == degree
        Z = np.random.default_rng(0).normal(size=(5, d))
        expected = np.prod(Z[None] ** E[:, None], axis=2)
        np.testing.assert_allclose(monomials(Z.T, degree), expected, rtol=1e-13)

    def test_multinomials_are_exact(self):
        E = monomial_exponents(3, 12).astype(int)
        for exponents, found in zip(E.tolist(), multinomials(E, 12), strict=True):
            parts = [*exponents, 12 - sum(exponents)]
            assert found == factorial(12) // np.prod([factorial(k) for k in parts], dtype=object)

    def test_a_kernel_written_out_by_hand(self):
        # 2 (1 + 3a - b)^2 = 2 + 12a - 4b + 18a^2 - 12ab + 2b^2
        found = expand(np.array([[3.0, -1.0]]), np.array([[2.0]]), 2)
        assert found.exponents.tolist() == [[0, 0], [1, 0], [0, 1], [2, 0], [1, 1], [0, 2]]
        assert found.coefficients.tolist() == [[2, 12, -4, 18, -12, 2]]


class TestTheExpansionIsTheModel:
    @pytest.mark.parametrize("scaler", ["minmax", "symmetric", "standard", "quantile", None])
    @pytest.mark.parametrize("degree", [1, 3, 6])
    def test_for_each_scaler(self, scaler, degree):
        X, y = rows_and_labels(4)
        assert_same_polynomial(paper_classifier(degree, scaler=scaler, random_state=0).fit(X, y), X)

    def test_where_coefficients_cancel(self):
        X, y = rows_and_labels(3, 400)
        model = paper_classifier(9, solver="newton", tol=0.1, random_state=0).fit(X, y)
        assert size_of_scores(model, X).max() > 1e6 * np.abs(model.decision_function(X)).max()
        assert_same_polynomial(model, X)

    def test_small_models(self):
        X, y = rows_and_labels(1)
        assert_same_polynomial(paper_classifier(5, random_state=0).fit(X, y), X)
        X, y = rows_and_labels(3)
        one = paper_classifier(3, 1, centers="first").fit(X, y)
        assert one.n_centers_ == 1
        assert_same_polynomial(one, X)
        assert explain(one).importance.total.tolist() == [[0.0, 0.0, 0.0]], "one center varies not"
        assert "the model's center" in str(explain(one))

    def test_sparse_rows(self):
        X = sp.random(300, 20, 0.1, format="csr", random_state=0)
        y = np.asarray(X.sum(axis=1)).ravel() > 1
        for scaler in ("minmax", "standard", None):
            model = paper_classifier(2, 60, scaler=scaler, random_state=0).fit(X, y)
            assert_same_polynomial(model, X)
            assert explain(model, X).attribution == pytest.approx(
                explain(model, X.toarray()).attribution
            )

    def test_more_than_two_classes(self):
        X, y = load_iris(return_X_y=True)
        model = paper_classifier(3, random_state=0).fit(X, y)
        assert_same_polynomial(model, X)
        found = explain(model, X)
        assert found.classes == (0, 1, 2)
        assert found.polynomial.coefficients.shape == (3, comb(7, 3))
        assert found.importance.pairs.shape == (3, 4, 4)
        assert found.attributions(X[:5]).shape == found.gradients(X[:5]).shape == (5, 4, 3)
        assert found.base_score().shape == (3,)

    def test_float32_rows_and_constant_columns(self):
        X, y = rows_and_labels(3)
        X[:, 1] = 5.0
        for scaler in ("minmax", "standard", "quantile"):
            model = paper_classifier(2, scaler=scaler, random_state=0).fit(X.astype("float32"), y)
            assert_same_polynomial(model, X.astype("float32"))
            found = explain(model, X)
            assert found.importance.total[0, 1] == pytest.approx(0, abs=1e-12)
            assert found.gradients(X)[:, 1].tolist() == [0.0] * len(X)

    def test_a_search_and_a_loaded_model(self, tmp_path):
        X, y = rows_and_labels(2)
        search = FPCClassifierCV((1, 2), 6, max_iter=5, cv=3, random_state=0).fit(X, y)
        polysift.save(search, tmp_path / "model.polysift")
        found = explain(polysift.load(tmp_path / "model.polysift"), X)
        expected = explain(search.best_estimator_, X)
        np.testing.assert_array_equal(
            found.polynomial.coefficients, expected.polynomial.coefficients
        )
        np.testing.assert_array_equal(found.attributions(X), expected.attributions(X))

    def test_a_later_fit_does_not_change_it(self):
        X, y = rows_and_labels(2)
        model = paper_classifier(2, random_state=0).fit(X, y)
        found = explain(model)
        before = found.attributions(X)
        model.set_params(degree=3).fit(X, -y)
        np.testing.assert_array_equal(found.attributions(X), before)


def polynomial_of(d, degree, n_scores=1, seed=0):
    rng = np.random.default_rng(seed)
    centers, coef = rng.normal(size=(7, d)), rng.normal(size=(n_scores, 7))
    return expand(centers, coef, degree)


def reference(rows, degree, weights=None):
    source = ArraySource(rows, sample_weight=weights)
    return reference_of(source, AffineScaler.identity(rows.shape[1]), degree, "rows")


class TestImportance:
    @pytest.mark.parametrize(("d", "degree"), [(1, 3), (2, 4), (3, 3), (4, 2), (4, 5)])
    def test_against_means_over_all_combinations(self, d, degree):
        """Independent features with a few values each: all of their combinations can be listed."""
        polynomial = polynomial_of(d, degree, n_scores=2)
        rows = np.random.default_rng(1).normal(size=(3, d))
        found = importance_of(polynomial, reference(rows, degree))
        f = polynomial(np.array(list(product(*rows.T)))).T.reshape(2, *[3] * d)
        axes = set(range(1, d + 1))
        variance = f.var(axis=tuple(axes))
        np.testing.assert_allclose(found.mean, f.mean(axis=tuple(axes)), rtol=1e-10)
        np.testing.assert_allclose(found.variance, variance, rtol=1e-10)
        for i in axes:
            others = tuple(axes - {i})
            alone = f.mean(axis=others).var(axis=1)
            total = f.var(axis=i).reshape(2, -1).mean(axis=1)
            np.testing.assert_allclose(found.alone[:, i - 1], alone / variance, rtol=1e-9)
            np.testing.assert_allclose(found.total[:, i - 1], total / variance, rtol=1e-9)
        for i, k in combinations(axes, 2):
            g = (
                f.mean(axis=tuple(axes - {i, k}))
                - f.mean(axis=tuple(axes), keepdims=False)[:, None, None]
            )
            rest = g - g.mean(axis=1, keepdims=True) - g.mean(axis=2, keepdims=True)
            expected = (rest**2).mean(axis=(1, 2)) / variance
            np.testing.assert_allclose(found.pairs[:, i - 1, k - 1], expected, atol=1e-12)
        known = found.alone.sum(axis=1) + found.pairs.sum(axis=(1, 2)) / 2 + found.higher
        np.testing.assert_allclose(known, 1.0, rtol=1e-12)

    def test_a_binary_column_and_weights(self):
        """Powers of a 0/1 column are the same, so its factor has no full rank; weights count."""
        rng = np.random.default_rng(2)
        rows = np.c_[rng.integers(0, 2, 40), rng.normal(size=40)].astype(float)
        weights = rng.integers(0, 3, 40).astype(float)
        polynomial = polynomial_of(2, 4)
        found = importance_of(polynomial, reference(rows, 4, weights))
        repeated = importance_of(polynomial, reference(rows.repeat(weights.astype(int), axis=0), 4))
        np.testing.assert_allclose(found.variance, repeated.variance, rtol=1e-10)
        np.testing.assert_allclose(found.pairs, repeated.pairs, rtol=1e-9, atol=1e-12)

    def test_an_interaction_comes_first(self):
        X = np.random.default_rng(0).uniform(-1, 1, (4000, 5))
        model = paper_classifier(3, scaler=None, random_state=0).fit(X, np.sign(X[:, 0] * X[:, 1]))
        for found in (explain(model, X), explain(model)):
            pairs = found.pairs()
            assert pairs[0]["pair"] == ("x0", "x1") and len(pairs) == 10
            assert pairs[0]["share"] > 0.8 > 10 * pairs[1]["share"]
            assert {entry["feature"] for entry in found.features(2)} == {"x0", "x1"}
            assert all(entry["alone"] < 0.1 < 0.8 < entry["total"] for entry in found.features(2))
            assert found.terms(1)[0]["term"] == "x0 * x1"

    def test_a_single_feature_has_it_all(self):
        X, _ = rows_and_labels(3)
        model = paper_classifier(2, random_state=0).fit(X, X[:, 2] > 0.5)
        first = explain(model, X).features(1)[0]
        assert first["feature"] == "x2" and first["alone"] > 0.95

    def test_dependent_features_are_told_of(self):
        rng = np.random.default_rng(0)
        a = rng.random(500)
        X = np.c_[a, a + 0.01 * rng.normal(size=500)]
        y = np.sin(6 * a) > 0
        told = str(
            explain(paper_classifier(4, solver="newton", tol=0.1, random_state=0).fit(X, y), X)
        )
        assert "they depend on each other" in told
        X = rng.random((500, 2))
        model = paper_classifier(2, random_state=0).fit(X, X.sum(axis=1) > 1)
        assert "depend on each other" not in str(explain(model, X))

    def test_many_rows_are_thinned(self, monkeypatch):
        monkeypatch.setattr("polysift.explanation.reference.REFERENCE_ROWS", 3000)
        X, y = rows_and_labels(2, 10_000)
        found = explain(paper_classifier(2, random_state=0).fit(X, y), X)
        assert found.reference.name == "3,000 of 10,000 rows"
        assert len(found.reference.rows) <= SAMPLE_ROWS
        assert found.baseline == pytest.approx(found.scaled(X).mean(axis=0), abs=0.03)

    def test_weights_of_the_reference(self):
        X, y = rows_and_labels(2, 50)
        model = paper_classifier(2, random_state=0).fit(X, y)
        weights = np.random.default_rng(0).integers(0, 3, 50)
        weighted = explain(model, X, sample_weight=weights)
        repeated = explain(model, X.repeat(weights, axis=0))
        for name in ("attribution", "baseline", "score_variance"):
            np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name), rtol=1e-9)


def brute_force(f, row, baseline):
    """Return Shapley values by their definition: a weighted mean over all subsets."""
    d = len(row)
    values = []
    for i in range(d):
        total = 0.0
        for size in range(d):
            weight = 1 / (d * comb(d - 1, size))
            for subset in combinations([k for k in range(d) if k != i], size):
                mixed = baseline.copy()
                mixed[list(subset)] = row[list(subset)]
                with_it = mixed.copy()
                with_it[i] = row[i]
                total += weight * (f(with_it) - f(mixed))
        values.append(total)
    return np.array(values)


def shapley(centers, coef, degree, rows, baseline):
    """Return the Shapley values of a score in scaled features."""
    d = centers.shape[1]
    parts = Products(AffineScaler.identity(d), centers, np.arange(d), d)
    return Attributor(parts, coef, degree)(rows, parts.baseline(baseline[None], np.ones(1)))


class TestAttributions:
    @pytest.mark.parametrize(
        ("d", "degree"), [(1, 1), (1, 5), (2, 9), (3, 2), (5, 4), (6, 7), (8, 3)]
    )
    def test_against_all_subsets(self, d, degree):
        rng = np.random.default_rng(d)
        centers, coef = rng.normal(size=(6, d)), rng.normal(size=(1, 6))
        rows, baseline = rng.normal(size=(2, d)), rng.normal(size=d)
        found = shapley(centers, coef, degree, rows, baseline)[:, :, 0]
        size = (
            (1 + np.abs([*rows, baseline]) @ np.abs(centers).T) ** degree @ np.abs(coef[0])
        ).max()
        for values, row in zip(found, rows, strict=True):
            expected = brute_force(lambda z: coef[0] @ (1 + centers @ z) ** degree, row, baseline)
            np.testing.assert_allclose(values, expected, rtol=0, atol=100 * EPS * size)

    def test_of_a_model_with_several_baselines(self):
        X, y = rows_and_labels(4)
        model = paper_classifier(3, scaler="quantile", random_state=0).fit(X, y)
        found = explain(model)
        background = X[10:13]
        values = found.attributions(X[:3], background)
        for row, value in zip(X[:3], values, strict=True):
            expected = [
                brute_force(lambda x: model.decision_function(x[None])[0], row, baseline)
                for baseline in background
            ]
            np.testing.assert_allclose(value, np.mean(expected, axis=0), atol=1e-11)
        mean = model.decision_function(background).mean()
        assert found.base_score(background) == pytest.approx(mean, abs=1e-11)
        np.testing.assert_array_equal(
            found.attributions(X[:3], X[10]), found.attributions(X[:3], X[10:11])
        )
        assert found.attributions(X[:3], X[0])[0] == pytest.approx([0.0] * 4, abs=1e-12)

    def test_what_the_features_do_not_change_is_zero(self):
        """A column that no center has a part in has no attribution, and equal ones share alike."""
        centers = np.array([[1.0, 1.0, 0.0], [0.5, 0.5, 0.0]])
        coef, row = np.array([[1.0, -2.0]]), np.array([[0.3, 0.3, 5.0]])
        values = shapley(centers, coef, 4, row, np.zeros(3))[0, :, 0]
        assert values[2] == 0 and values[0] == pytest.approx(values[1])

    def test_cumulants_of_a_coin(self):
        t = 0.3
        found = [np.polynomial.polynomial.polyval(t, c) for c in _coin_cumulants(4)]
        q = t * (1 - t)
        assert found == pytest.approx([t, q, q * (1 - 2 * t), q * (1 - 6 * q)])

    def test_more_features_than_monomials_allow(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(200, 120))
        model = paper_classifier(4, 50, scaler="standard", random_state=0).fit(X, X[:, 7] > 0)
        found = explain(model, X)
        assert found.n_monomials == comb(124, 4) and "max_monomials=9381251" in found.reason
        whole = found.attributions(X).sum(axis=1) + found.base_score()
        np.testing.assert_allclose(whole, model.decision_function(X), atol=1e-9)
        assert found.features(1)[0] == {
            "feature": "x7",
            "attribution": float(found.attribution[0, 7]),
            "shuffled": float(found.shuffled[7]),
        }
        assert found.gradients(X[:2]).shape == (2, 120)
        assert found.reason in str(found) and found.to_dict()["reason"] == found.reason
        for name in ("polynomial", "importance"):
            with pytest.raises(ValueError, match="max_monomials=9381251"):
                getattr(found, name)


class TestGradients:
    @pytest.mark.parametrize("scaler", ["minmax", "symmetric", "standard", "quantile", None])
    @pytest.mark.parametrize("degree", [1, 2, 5])
    def test_against_central_differences(self, scaler, degree):
        X, y = rows_and_labels(3)
        model = paper_classifier(degree, scaler=scaler, random_state=0).fit(X, y)
        at = np.random.default_rng(5).uniform(-0.3, 1.3, (40, 3))
        found = explain(model).gradients(at)
        step = 1e-6
        for i in range(3):
            up, down = at.copy(), at.copy()
            up[:, i] += step
            down[:, i] -= step
            slopes = (model.decision_function(up) - model.decision_function(down)) / (2 * step)
            # A step across a kink sees a mixture of both sides; few do.
            near = np.abs(found[:, i] - slopes) <= 1e-5 * (1 + np.abs(found).max())
            assert near.mean() >= 0.95

    def test_at_kinks_it_is_the_mean_of_both_sides(self):
        X = np.array([[0.0], [1.0], [3.0], [4.0]])
        y = [0, 0, 1, 1]
        minmax = paper_classifier(1, centers=[[2.0]], scaler="minmax").fit(X, y)
        low, inside, high = 0 - 0.4, 1.0, 4 + 0.4  # a tenth of the range beyond it
        outside = [low - 1, high + 1]
        slopes = explain(minmax).gradients(np.array([[inside], [low], [high], *np.c_[outside]]))
        assert slopes[1:, 0] == pytest.approx(slopes[0, 0] * np.array([0.5, 0.5, 0, 0]))
        assert slopes[0, 0] != 0
        quantile = scaler_from_dict(paper_classifier(1, scaler="quantile").fit(X, y).scaler_)
        at = np.array([[-1.0], [0.0], [0.5], [1.0], [2.0], [3.0], [4.0], [5.0]])
        step = 1e-4
        central = (quantile.transform(at + step) - quantile.transform(at - step)) / (2 * step)
        np.testing.assert_allclose(quantile.slope(at), central, atol=1e-9)


class TestWhatIsShown:
    def test_names_and_tables(self):
        X, y = rows_and_labels(3)
        frame = pd.DataFrame(X, columns=["age", "height", "size"])
        found = explain(paper_classifier(2, random_state=0).fit(frame, y), frame)
        text = str(found)
        for part in ("age & height", "age^2", "size", "attribution", "300 rows", "coefficient"):
            assert part in text
        assert found.feature_names == ("age", "height", "size")
        assert found._repr_html_().startswith("<pre>") and "&amp;" in found._repr_html_()
        assert repr(found) == "<Explanation: degree 2, 10 monomials of 3 features, over 300 rows>"
        assert isinstance(found, Explanation)
        np.testing.assert_array_equal(
            found.attributions(frame, frame.iloc[0]), found.attributions(frame, frame[:1])
        )
        terms = {entry["term"]: entry["coefficient"] for entry in found.terms()}
        assert len(terms) == 10
        assert terms["1"] == found.polynomial.coefficients[0, 0]

    def test_spread_is_the_deviation_of_the_term(self):
        X, y = rows_and_labels(1)
        found = explain(paper_classifier(2, scaler=None, random_state=0).fit(X, y), X)
        for entry in found.terms():
            power = {"1": 0, "x0": 1, "x0^2": 2}[entry["term"]]
            expected = abs(entry["coefficient"]) * np.std(X**power)
            assert entry["spread"] == pytest.approx(expected, abs=1e-7)

    @pytest.mark.needs("pandas")
    def test_plain_values(self):
        X, y = load_iris(return_X_y=True, as_frame=True)
        names = np.array(["setosa", "versicolor", "virginica"])[y]
        found = explain(paper_classifier(2, random_state=0).fit(X, names), X)
        plain = json.loads(json.dumps(found.to_dict(top=3)))
        assert plain["classes"] == ["setosa", "versicolor", "virginica"]
        assert len(plain["features"]) == 4 and len(plain["pairs"]) == len(plain["terms"]) == 3
        assert plain["features"][0]["feature"].startswith("petal")
        assert sum(entry["alone"] for entry in plain["features"]) < 1
        assert "setosa" in str(found)


def test_wrong_input():
    X, y = rows_and_labels(2)
    model = paper_classifier(2, random_state=0)
    with pytest.raises(NotFittedError):
        explain(model)
    with pytest.raises(TypeError, match="explain describes a fitted FPCClassifier"):
        explain(X)
    model.fit(X, y)
    for wrong in (0, 2.5, True, "many"):
        with pytest.raises(ValueError, match="max_monomials must be an integer of at least 1"):
            explain(model, max_monomials=wrong)
    with pytest.raises(ValueError, match="sample_weight counts the rows of X"):
        explain(model, sample_weight=[1.0])
    with pytest.raises(ValueError, match="weight"):
        explain(model, X, sample_weight=np.zeros(len(X)))
    with pytest.raises(ValueError, match="3 features"):
        explain(model, np.ones((4, 3)))
    found = explain(model)
    broken = X.copy()
    broken[7, 1] = np.inf
    for answer in (found.attributions, found.gradients, found.scaled):
        with pytest.raises(ValueError, match="contains infinity in column 1, first in row 7"):
            answer(broken)
    with pytest.raises(ValueError, match="3 features"):
        found.attributions(X, np.zeros(3))
    far = explain(paper_classifier(5, scaler=None, random_state=0).fit(X, y))
    with pytest.raises(ValueError, match="overflows float64 in row 1 "):
        far.gradients(np.array([[0.0, 0.0], [1e300, 0.0]]))


def test_a_model_that_is_too_large_to_explain():
    X = np.random.default_rng(0).uniform(-1, 1, (50, 2))
    clf = paper_classifier(2, random_state=0).fit(X, X[:, 0] > 0)
    clf.coef_ = clf.coef_ * 1e200
    with pytest.raises(polysift.FeatureOverflowError, match="their squares, overflow"):
        polysift.explain(clf, X)
    clf.degree_ = 1_000_000
    with pytest.raises(ValueError, match="moments take .* GiB"):
        polysift.explain(clf, X)
