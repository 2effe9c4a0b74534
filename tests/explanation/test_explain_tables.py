"""Explanations of models of tables: a column is one feature, whatever it holds."""

from __future__ import annotations

import json
from itertools import combinations
from math import factorial

import numpy as np
import pytest

import polysift
from every_kind import every_kind
from polysift import FPCClassifierCV, explain
from polysift.explanation.attributions import Attributor
from polysift.explanation.parts import Products
from polysift.explanation.score import Score, score_of
from polysift.features.feature_map import FeatureMap
from polysift.features.scalers import AffineScaler
from problems import noisy_problem, paper_classifier

pd = pytest.importorskip("pandas")

FRAME, Y = every_kind()


@pytest.fixture(scope="module")
def model():
    return paper_classifier(3, 60, random_state=0).fit(FRAME, Y)


@pytest.fixture(scope="module")
def found(model):
    return explain(model, FRAME)


def brute_force(score, Z, baseline):
    """Return the Shapley values of one row by the sum over all subsets of columns, (d, K)."""
    owners = score.parts.owners
    d, used = score.n_columns, np.unique(owners).tolist()

    def value(subset):
        mixed = np.where(np.isin(owners, subset), Z, baseline)
        return score.scores(mixed[None])[0]

    out = np.zeros((d, len(score.coef)))
    for g in used:
        others = [other for other in used if other != g]
        for size in range(len(others) + 1):
            weight = factorial(size) * factorial(len(others) - size) / factorial(len(used))
            for subset in combinations(others, size):
                out[g] += weight * (value([*subset, g]) - value([*subset]))
    return out


@pytest.mark.parametrize("degree", [1, 2, 3, 5])
def test_attributions_are_shapley_values_of_columns(degree):
    rng = np.random.default_rng(degree)
    owners = np.array([0, 0, 2, 3, 3, 3, 5])  # out of six columns, two have no coordinate
    centers, coef = rng.normal(size=(20, 7)), rng.normal(size=(2, 20))
    Z, baseline = rng.normal(size=(4, 7)), rng.normal(size=7)
    scaler = AffineScaler.identity(7)
    parts = Products(scaler, centers, owners, 6)
    plain = Score(FeatureMap(scaler, centers, degree), parts, coef, degree)
    expected = (1 + Z @ centers.T) ** degree @ coef.T
    np.testing.assert_allclose(plain.scores(Z), expected, rtol=1e-12)
    values = Attributor(parts, coef, degree)(Z, parts.baseline(baseline[None], np.ones(1)))
    assert values.shape == (4, 6, 2)
    for row, got in zip(Z, values, strict=True):
        np.testing.assert_allclose(got, brute_force(plain, row, baseline), rtol=1e-9, atol=1e-9)


def test_attributions_of_a_table(model, found):
    score = score_of(model)
    assert score.parts.has_several and len(score.parts.owners) == model.centers_.shape[1] > 7
    rows = FRAME[:3]
    Z = score.transform(polysift.data.inputs.rows_source(model, rows, reset=False).rows((0, 3)))
    expected = [brute_force(score, row, found.reference.means[:, 1])[:, 0] for row in Z]
    np.testing.assert_allclose(found.attributions(rows), expected, rtol=1e-9, atol=1e-12)


def test_values_have_a_column_each(model, found):
    values = found.attributions(FRAME)
    assert values.shape == found.gradients(FRAME).shape == found.scaled(FRAME).shape == (400, 7)
    np.testing.assert_allclose(
        values.sum(axis=1) + found.base_score(), model.decision_function(FRAME), atol=1e-10
    )
    assert found.attribution.shape == (1, 7) and found.baseline.shape == (7,)
    left_out = [0, 6]
    assert (values[:, left_out] == 0).all() and (found.attribution[:, left_out] == 0).all()
    assert (found.baseline[left_out] == 0).all()
    assert np.isnan(found.baseline).tolist() == [False, False, True, True, True, True, False]
    assert {entry["feature"] for entry in found.features(4)} >= {"size", "colour"}
    np.testing.assert_allclose(  # all of the rows are in the sample
        found.attribution[0], np.abs(values).mean(axis=0), atol=1e-12
    )


def test_a_baseline_is_a_row_of_the_table(model, found):
    first, second = FRAME[:1], FRAME[1:2]
    values = found.attributions(second, baseline=first)
    gained = model.decision_function(second) - model.decision_function(first)
    np.testing.assert_allclose(values.sum(axis=1), gained, atol=1e-10)
    same = [name for name in FRAME if FRAME[name][0] == FRAME[name][1]]
    assert (values[0, [FRAME.columns.get_loc(name) for name in same]] == 0).all()


@pytest.mark.parametrize("scaler", ["minmax", "quantile"])
def test_gradients_are_limits_of_differences(scaler):
    frame = FRAME.assign(size=FRAME["size"] / 10)
    model = paper_classifier(3, 60, scaler=scaler, random_state=0).fit(frame, Y)
    gradients = explain(model, frame).gradients(frame)
    names = list(frame)
    for name, step in (("size", 1e-6), ("age", 1e-5), ("since", 0.05)):
        moved = [frame.copy(), frame.copy()]
        for sign, rows in zip((-1, 1), moved, strict=True):
            change = pd.to_timedelta(step, unit="s") if name == "since" else step
            rows[name] = rows[name] + sign * change
        low, high = (model.decision_function(rows) for rows in moved)
        expected = (high - low) / (2 * step)
        got = gradients[:, names.index(name)]
        size = np.abs(expected).max()
        close = np.abs(got - expected) < 1e-3 * size
        assert size > 0 and close.mean() > 0.95, "knots and ends may lie within a step"
        assert (got[frame[name].isna()] == 0).all()
    assert (gradients[:, [0, 3, 4, 6]] == 0).all(), "of categories and what is left out"


class TestLevels:
    def test_they_are_means_over_rows(self, found):
        values = found.attributions(FRAME)[:, 3]
        entries = found.levels("colour")
        assert entries == found.levels(3)
        assert {entry["level"] for entry in entries} == {"red", "green", "blue", "grey"}
        for entry in entries:
            rows = (FRAME["colour"] == entry["level"]).to_numpy()
            assert entry["share"] == pytest.approx(rows.mean())
            assert entry["attribution"] == pytest.approx(values[rows].mean())
        sizes = [abs(entry["attribution"]) for entry in entries]
        assert sizes == sorted(sizes, reverse=True)
        assert found.levels("colour", top=2) == entries[:2]
        by_name = {entry["level"]: entry["attribution"] for entry in entries}
        assert by_name["red"] > 0 > by_name["green"]

    def test_no_value_and_unknown_levels_have_names(self, model):
        rows = FRAME[:50].copy()
        rows["colour"] = ["violet"] * 10 + [None] * 10 + ["red"] * 30
        with pytest.warns(UserWarning, match="missing in column 'colour'"):
            found = explain(model, rows)
        shares = {entry["level"]: entry["share"] for entry in found.levels("colour")}
        assert shares == pytest.approx({"(unknown)": 0.2, "(missing)": 0.2, "red": 0.6})
        assert "(missing)" in {entry["level"] for entry in found.levels("plan")}
        assert "(missing)" in str(found)

    def test_rare_levels_are_one(self):
        frame = FRAME.copy()
        frame.loc[:2, "colour"] = ["a", "b", "c"]
        found = explain(paper_classifier(2, 60, random_state=0).fit(frame, Y), frame)
        shares = {entry["level"]: entry["share"] for entry in found.levels("colour")}
        assert shares["(rare)"] == pytest.approx(3 / 400) and "a" not in shares

    def test_of_the_centers(self, model):
        found = explain(model)
        assert "centers" in found.reference.name
        assert {entry["level"] for entry in found.levels("plan")} == {"free", "paid", "(missing)"}
        assert sum(entry["share"] for entry in found.levels("plan")) == pytest.approx(1)
        given = explain(model, FRAME)
        assert found.levels("colour")[0]["level"] == given.levels("colour")[0]["level"]

    def test_points_that_are_no_rows_have_none(self):
        model = paper_classifier(2, 60, centers="uniform", random_state=0).fit(FRAME, Y)
        found = explain(model)
        assert found.categories() == []
        with pytest.raises(ValueError, match=r"levels of column 'colour'. Pass rows"):
            found.levels("colour")
        assert "colour" in explain(model, FRAME).categories()

    def test_many_levels(self):
        rng = np.random.default_rng(0)
        frame = FRAME.assign(town=[f"town {k}" for k in rng.integers(0, 30, 400)])
        model = paper_classifier(2, 60, max_levels=10, random_state=0).fit(frame, Y)
        assert model.column_kinds_[-1] == "encoded category"
        found = explain(model, frame)
        assert {e["level"] for e in found.levels("town")} == set(frame["town"])

    def test_three_classes(self):
        y = np.where(FRAME["colour"] == "red", "r", Y)
        found = explain(paper_classifier(2, 60, random_state=0).fit(FRAME, y), FRAME)
        red = next(e for e in found.levels("colour") if e["level"] == "red")
        assert len(red["attribution"]) == 3 and red["attribution"][found.classes.index("r")] > 0
        assert found.attributions(FRAME[:5]).shape == (5, 7, 3)
        lines = str(found).splitlines()
        assert next(line for line in lines if line.startswith("red ")).split()[3] == "r"

    def test_other_columns_have_none(self, found):
        with pytest.raises(ValueError, match="'size' has no levels: it is of the kind 'number'"):
            found.levels("size")
        with pytest.raises(ValueError, match="Did you mean 'colour'"):
            found.levels("color")


def test_without_a_polynomial(found):
    assert "several coordinates" in found.reason and found.reason in str(found)
    for name in ("polynomial", "importance"):
        with pytest.raises(ValueError, match="several coordinates"):
            getattr(found, name)
    text = json.dumps(found.to_dict(2), allow_nan=False)
    told = json.loads(text)
    assert told["baseline"]["colour"] is None and told["baseline"]["size"] is not None
    assert [len(entries) for entries in told["levels"].values()] == [2, 2]
    assert list(told["levels"]) == found.categories()
    assert "alone" not in told["features"][0] and "reason" in told
    assert "levels of colour" in found._repr_html_()


def test_a_plain_table_with_columns_left_out_keeps_its_polynomial():
    X, y = noisy_problem(np.random.default_rng(0), 300, 3)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame.insert(1, "row", np.arange(1, 301))
    model = paper_classifier(3, random_state=0).fit(frame, y)
    assert model.scaler_["kind"] == "table" and model.centers_.shape[1] == 3
    found = explain(model, frame)
    Z = found.scaled(frame)
    assert Z.shape == (300, 4) and (Z[:, 1] == 0).all()
    np.testing.assert_allclose(found.polynomial(Z)[:, 0], model.decision_function(frame), atol=1e-9)
    assert found.n_monomials == len(found.polynomial.exponents) == 20
    assert found.importance.total.shape == (1, 4) and found.importance.total[0, 1] == 0
    assert all("row" not in entry["term"] for entry in found.terms())
    values = found.attributions(frame)
    assert values.shape == (300, 4) and (values[:, 1] == 0).all()
    np.testing.assert_allclose(
        values.sum(axis=1) + found.base_score(), model.decision_function(frame), atol=1e-9
    )
    assert (found.gradients(frame)[:, 1] == 0).all()
    alone = explain(paper_classifier(3, centers=X[:20], random_state=0).fit(X, y), X)
    same = paper_classifier(3, centers=frame[:20], random_state=0).fit(frame, y)
    np.testing.assert_allclose(
        np.delete(explain(same, frame).importance.total, 1, axis=1), alone.importance.total
    )


def test_a_search_and_a_loaded_model(tmp_path):
    search = FPCClassifierCV((1, 2), 30, max_iter=5, cv=3, random_state=0).fit(FRAME, Y)
    polysift.save(search, tmp_path / "model.polysift")
    found, expected = explain(polysift.load(tmp_path / "model.polysift"), FRAME), explain(search)
    assert found.categories() and expected.categories()
    np.testing.assert_array_equal(
        found.attributions(FRAME, FRAME[:1]), expected.attributions(FRAME, FRAME[:1])
    )


def test_missing_values_where_training_had_none():
    X, y = noisy_problem(np.random.default_rng(0), 300, 3)
    model = paper_classifier(2, random_state=0).fit(X, y)
    found = explain(model, X)
    X[7, 1] = np.nan
    with pytest.warns(UserWarning, match="missing in column 1, where no training row") as caught:
        explain(model, X)
    with pytest.warns(UserWarning, match="missing in column 1, where no training row") as more:
        values = found.attributions(X)
    assert {warning.filename for warning in [*caught, *more]} == {__file__}
    with pytest.warns(UserWarning, match="missing"):
        gained = model.decision_function(X) - found.base_score()
    np.testing.assert_allclose(values.sum(axis=1), gained, atol=1e-10)
    with pytest.warns(UserWarning, match="missing"):
        assert found.gradients(X)[7, 1] == 0
