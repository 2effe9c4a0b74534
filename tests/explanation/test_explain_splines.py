"""Explanations with the spline kernel: the base is a sum over columns, so values are exact."""

from __future__ import annotations

import json
from itertools import combinations
from math import factorial

import numpy as np
import pytest

import polysift
from every_kind import every_kind
from polysift import FPCClassifier, explain
from polysift.explanation.score import score_of
from problems import noisy_problem, optional

pd = optional("pandas")


def classifier(degree=3, n_centers=40, **params):
    return FPCClassifier(
        degree,
        n_centers,
        kernel="spline",
        scaler="minmax",
        alpha=1.0,
        solver="paper",
        random_state=0,
        **params,
    )


def numbers(m=300, seed=0):
    """Return rows with a continuous column, ties, missing values and mostly zeros, and labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 4))
    X[:, 1] = rng.integers(0, 6, m)
    X[rng.random(m) < 0.2, 2] = np.nan
    X[rng.random(m) < 0.7, 3] = 0.0
    y = np.nan_to_num(X[:, 0] * X[:, 2]) + np.sin(X[:, 1]) + np.abs(X[:, 3]) > 0.7
    return X, y


def brute_force(f, row, baseline):
    """Return Shapley values by the sum over all subsets; f scores rows of any container."""
    d = row.shape[1]
    everything = range(d)

    def mixed(subset):
        made = baseline.copy()
        for j in subset:
            if hasattr(made, "iloc"):
                made.isetitem(j, row.iloc[:, j].to_numpy())
            else:
                made[:, j] = row[:, j]
        return f(made)[0]

    values = {s: mixed(s) for size in range(d + 1) for s in combinations(everything, size)}
    out = []
    for i in everything:
        total = 0.0
        for subset in (s for s in values if i not in s):
            weight = factorial(len(subset)) * factorial(d - 1 - len(subset)) / factorial(d)
            total += weight * (values[tuple(sorted((*subset, i)))] - values[subset])
        out.append(total)
    return np.array(out)


@pytest.mark.parametrize("degree", [1, 2, 5])
def test_attributions_against_all_subsets(degree):
    X, y = numbers()
    model = classifier(degree).fit(X, y)
    found = explain(model, X)
    X[7, 2], X[8, 2], X[9, 2] = np.nan, 0.3, np.nan
    for row, baseline in ((X[7:8], X[8:9]), (X[8:9], X[7:8]), (X[9:10], X[7:8])):
        values = found.attributions(row, baseline=baseline)[0]
        expected = brute_force(model.decision_function, row, baseline)
        np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-10)


@pytest.mark.needs("pandas")
def test_attributions_of_a_table_against_all_subsets():
    frame, y = every_kind(300)
    frame = frame[["size", "age", "colour", "plan", "since"]]
    model = classifier(3).fit(frame, np.where(frame["colour"] == "red", "r", y))
    found = explain(model, frame)
    rows = frame[:6].copy()
    rows["age"] = [30.0, np.nan, 50.0, np.nan, 1e6, 40.0]
    rows["colour"] = ["red", "blue", "violet", "grey", "red", "red"]
    for i, j in ((0, 1), (1, 2), (3, 4), (5, 5)):
        row, baseline = rows[i : i + 1], rows[j : j + 1]
        values = found.attributions(row, baseline=baseline)[0]
        expected = brute_force(model.decision_function, row, baseline)
        np.testing.assert_allclose(values, expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("degree", [1, 4])
def test_the_baseline_is_the_mean_of_the_parts(degree):
    X, y = numbers()
    model = classifier(degree).fit(X, y)
    found = explain(model, X)
    np.testing.assert_allclose(
        found.attributions(X).sum(axis=1) + found.base_score(),
        model.decision_function(X),
        atol=1e-9,
    )
    parts, weights = found._score.parts, np.full(len(X), 1 / len(X))
    Z = found._score.transform(X)
    base = 1.0 + sum(weights @ parts.part(j, Z) for j in range(4))
    expected = base**degree @ model.coef_[0]
    assert found.base_score() == pytest.approx(expected, abs=1e-9)
    if degree == 1:
        assert found.base_score() == pytest.approx(model.decision_function(X).mean(), abs=1e-9)
    np.testing.assert_allclose(parts.base(Z), 1 + sum(parts.part(j, Z) for j in range(4)))


def test_the_parts_of_the_rows_have_mean_zero():
    X, y = noisy_problem(np.random.default_rng(0), 500, 3)
    score = score_of(classifier().fit(X, y))
    Z = score.transform(X)
    for j in range(3):
        assert np.abs(score.parts.part(j, Z).mean(axis=0)).max() < 0.01 / 3


class TestGradients:
    def differences(self, model, X, j, step):
        moved = np.repeat(X[None], 2, axis=0)
        moved[0, :, j] -= step
        moved[1, :, j] += step
        low, high = (model.decision_function(rows) for rows in moved)
        return (high - low) / (2 * step)

    @pytest.mark.parametrize("degree", [1, 3])
    def test_between_knots_and_at_them(self, degree):
        X, y = numbers()
        X[:, 0] = np.round(X[:, 0], 1)  # rows, knots and centers are at the same values
        model = classifier(degree).fit(X, y)
        gradients = explain(model, X).gradients(X)
        for j in range(4):
            expected = self.differences(model, X, j, 1e-7)
            size = np.abs(expected[np.isfinite(expected)]).max()
            close = np.abs(gradients[:, j] - expected) < 1e-4 * max(size, 1.0)
            assert size > 0 and close.mean() > (0.999 if j in (0, 1) else 0.97)
        assert (gradients[np.isnan(X[:, 2]), 2] == 0).all()

    def test_beyond_the_rows(self):
        X, y = numbers()
        model = classifier().fit(X, y)
        rows = np.array([[1e9, 1e3, -1e9, 1e2]])
        assert (explain(model, X).gradients(rows) == 0).all()

    @pytest.mark.needs("pandas")
    def test_of_dates(self):
        frame, y = every_kind()
        model = classifier().fit(frame, y)
        gradients = explain(model, frame).gradients(frame)
        moved = [frame.assign(since=frame["since"] + pd.to_timedelta(s, unit="s")) for s in (-1, 1)]
        low, high = (model.decision_function(rows) for rows in moved)
        expected = (high - low) / 2
        close = np.abs(gradients[:, 5] - expected) < 1e-2 * np.abs(expected).max()
        assert np.abs(expected).max() > 0 and close.mean() > 0.9, "knots may lie within a step"
        assert (gradients[:, [0, 3, 4, 6]] == 0).all(), "of categories and what is left out"


class TestWhatIsShown:
    def test_the_reason(self):
        X, y = numbers()
        found = explain(classifier().fit(X, y), X)
        assert "spline kernel is no polynomial" in found.reason and found.reason in str(found)
        for call in (found.pairs, found.terms, lambda: found.polynomial, lambda: found.importance):
            with pytest.raises(ValueError, match="spline kernel is no polynomial"):
                call()
        assert found.n_monomials == 0 and "spline kernel of 4 features" in repr(found)
        told = json.loads(json.dumps(found.to_dict(2), allow_nan=False))
        assert told["reason"] == found.reason and "pairs" not in told
        assert set(told["baseline"].values()) == {None}
        assert found.features(1)[0]["feature"] in {"x0", "x1", "x2"}
        np.testing.assert_allclose(
            found.attribution[0], np.abs(found.attributions(X)).mean(axis=0), atol=1e-12
        )

    def test_numbers_have_several_coordinates(self):
        X, y = numbers()
        found = explain(classifier().fit(X, y), X)
        assert np.isnan(found.scaled(X)).all() and found.scaled(X).shape == X.shape
        assert np.isnan(found.baseline).all()

    @pytest.mark.needs("pandas")
    def test_levels_of_rows_and_of_centers(self):
        frame, y = every_kind()
        model = classifier().fit(frame, y)
        for found in (explain(model, frame), explain(model)):
            assert {e["level"] for e in found.levels("plan")} == {"free", "paid", "(missing)"}
            assert found.attribution[0, [0, 6]].tolist() == [0, 0]
            np.testing.assert_allclose(
                found.attributions(frame).sum(axis=1) + found.base_score(),
                model.decision_function(frame),
                atol=1e-9,
            )

    def test_a_loaded_model(self, tmp_path):
        X, y = numbers()
        model = classifier().fit(X, y)
        polysift.save(model, tmp_path / "model.polysift")
        one, other = explain(model), explain(polysift.load(tmp_path / "model.polysift"))
        np.testing.assert_array_equal(one.attributions(X), other.attributions(X))
        np.testing.assert_array_equal(one.gradients(X), other.gradients(X))

    @pytest.mark.needs("pandas")
    def test_categories_alone_are_products(self):
        frame, y = every_kind()
        model = classifier().fit(frame[["colour", "plan"]], y)
        found = explain(model, frame[["colour", "plan"]])
        assert "several coordinates" in found.reason
        gained = model.decision_function(frame[["colour", "plan"]]) - found.base_score()
        np.testing.assert_allclose(
            found.attributions(frame[["colour", "plan"]]).sum(axis=1), gained, atol=1e-10
        )

    def test_a_value_missing_where_training_had_none(self):
        X, y = noisy_problem(np.random.default_rng(0), 300, 3)
        model = classifier(2).fit(X, y)
        found = explain(model, X)
        X[7, 1] = np.nan
        with pytest.warns(UserWarning, match="missing in column 1, where no training row"):
            values = found.attributions(X)
        with pytest.warns(UserWarning, match="missing"):
            gained = model.decision_function(X) - found.base_score()
        np.testing.assert_allclose(values.sum(axis=1), gained, atol=1e-10)
        with pytest.warns(UserWarning, match="missing"):
            assert found.gradients(X)[7, 1] == 0
