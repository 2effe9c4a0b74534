"""Comparisons: the same folds, paired differences, raw tables, and what a verdict says."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from polysift import compare, open_data
from polysift.datasets import make_bayes_curve
from polysift.reporting.compare import _checked
from polysift.reporting.comparison_result import Comparison, ModelResult
from polysift.training.metrics import Influence
from problems import optional

pd = optional("pandas")


def made(ours: float, theirs: float, spread: float, name: str = "hist_gb") -> Comparison:
    """Return a comparison of two models whose rows differ so much."""
    rows = np.zeros(400)
    moves = np.where(np.arange(400) % 2, spread, -spread)
    models = (
        ModelResult("polysift", "polysift", {"accuracy": Influence(ours, rows, 400)}, 1.0, 0.1),
        ModelResult(name, "the other", {"accuracy": Influence(theirs, moves, 400)}, 2.0, 0.1),
    )
    return Comparison(400, np.array([0, 1]), np.array([200.0, 200.0]), 5, 5, models)


def test_the_verdict_says_when_another_model_is_better():
    assert made(0.8, 0.9, 1e-4).verdict.startswith("the other is the better choice here")
    assert made(0.9, 0.8, 1e-4).verdict.startswith("polysift is the better choice here")
    text = made(0.9, 0.901, 1e-3).verdict
    assert text.startswith("Neither polysift nor the other is clearly better")
    assert "2.0 times as long" in text
    assert "simpler: take it" in made(0.9, 0.899, 1e-3, "logistic").verdict
    assert "simpler" not in made(0.9, 0.8, 1e-4, "logistic").verdict


def test_the_verdict_is_on_the_tuned_fit_where_that_is_better():
    two = made(0.8, 0.9, 1e-4, "tuned")
    assert two.verdict == "There is no other model to compare with."
    plain, tuned = two.models
    third = replace(made(0.8, 0.85, 1e-4).models[1], title="the third")
    text = replace(two, models=(plain, tuned, third)).verdict
    assert text.startswith(f"{tuned.title} is the better choice here")


def test_all_that_are_installed_are_compared_where_nothing_is_said():
    assert {"polysift", "tuned", "logistic", "hist_gb"} <= set(_checked(None))


def test_a_difference_is_that_of_the_same_rows():
    found = made(0.8, 0.9, 1e-3).difference("hist_gb", "accuracy")
    assert found.value == pytest.approx(0.1)
    assert found.high - found.value == pytest.approx(1.96 * 0.02, rel=1e-3)


@pytest.fixture(scope="module")
def curve():
    X, y = make_bayes_curve(800, noise=0.05, random_state=0)
    return compare(X, y, models=["logistic"], cv=2)


@pytest.mark.needs("pandas")
def test_what_is_found(curve, tmp_path):
    assert [model.name for model in curve.models] == ["polysift", "logistic"]
    ours, theirs = (model.estimate("accuracy") for model in curve.models)
    assert ours.low < ours.value < ours.high and ours.value > theirs.value
    assert "polysift is the better choice" in curve.verdict
    values = json.loads(json.dumps(curve.to_dict()))
    assert values["models"]["logistic"]["better_by"]["accuracy"][2] < 0
    assert values["folds"] == 2 and values["rows"] == 800
    assert "logistic regression" in str(curve) and "95 % interval" in str(curve)
    assert curve.verdict[:20] in curve._repr_html_() and repr(curve).startswith("<Comparison")


@pytest.mark.needs("pandas")
def test_the_same_again():
    X, y = make_bayes_curve(300, noise=0.05, random_state=0)
    one, two = (compare(X, y, models=["logistic"], cv=2) for _ in range(2))
    for a, b in zip(one.models, two.models, strict=True):
        assert a.estimate("log_loss") == b.estimate("log_loss")


@pytest.mark.needs("pandas")
def test_a_page_and_a_picture(curve, tmp_path):
    pytest.importorskip("matplotlib")
    html = curve.report(tmp_path / "c.html")
    assert (tmp_path / "c.html").read_text() == html and "data:image/svg+xml" in html
    with pytest.raises(FileExistsError):
        curve.report(tmp_path / "c.html")
    assert len(curve.plot().axes) == 4


def test_a_raw_table_from_a_file(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": np.where(rng.random(300) < 0.1, np.nan, rng.random(300)),
            "city": rng.choice(["Rom", "Ulm", "Bonn", None], 300),
            "day": rng.choice(["2024-01-05", "2024-02-07"], 300),
        }
    )
    frame["label"] = np.where((frame["city"] == "Rom") ^ (rng.random(300) < 0.05), "yes", "no")
    frame.to_csv(tmp_path / "t.csv", index=False)
    source = open_data(tmp_path / "t.csv", target="label")
    found = compare(source, models=["logistic", "hist_gb"], cv=2, max_rows=250)
    assert found.rows == 250 and found.classes.tolist() == ["no", "yes"]
    assert all(model.estimate("accuracy").value > 0.85 for model in found.models)


@pytest.mark.needs("pandas")
def test_errors():
    X, y = make_bayes_curve(40, random_state=0)
    with pytest.raises(ValueError, match="models must be among"):
        compare(X, y, models=["svm"])
    with pytest.raises(ValueError, match="y is missing"):
        compare(X)
    with pytest.raises(ValueError, match="one class only"):
        compare(X, np.ones(40))
    with pytest.raises(ValueError, match="fewer than cv=5"):
        compare(X, np.arange(40) == 0)
    with pytest.raises(ValueError, match="40 rows, but y has 39"):
        compare(X, y[:39])
    with pytest.raises(TimeoutError, match="time_limit=1e-09 s struck"):
        compare(X, y, models=["logistic"], cv=2, time_limit=1e-9)
