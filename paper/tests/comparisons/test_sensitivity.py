"""Appendix F: cells, measurements on small data, pictures, and when the verdicts agree."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from polysift.datasets import UCI, make_bayes_curve
from polysift_paper.algorithm import TEXT
from polysift_paper.comparisons import sensitivity
from polysift_paper.comparisons.case import Case, three_parts
from polysift_paper.comparisons.sensitivity_pictures import NearBest
from polysift_paper.studies.averages import column, where

pytest.importorskip("matplotlib")

NAMES = ("centers", "alpha", "beta")

BANKNOTE = Path(os.environ.get("POLYSIFT_DATA", "nowhere")) / "banknote.parquet"


def study_of(name, data=("a", "b", "c")):
    return {study.name: study for study in sensitivity.studies(data)}[f"sensitivity-{name}"]


@pytest.fixture
def tiny(monkeypatch):
    """Let every name be 200 rows of the synthetic problem, with a bit less noise for "b"."""

    def open_tiny(data, seed):
        X, y = make_bayes_curve(200, noise=0.1 if data == "a" else 0.0, random_state=seed)
        return Case(X, y, *three_parts(len(y), seed))

    monkeypatch.setattr(sensitivity, "open_case", open_tiny)
    return open_tiny


def summary_of(name, accuracy, auc=None, *, runs=20, spread=0.5, **more):
    """Return a hand-made summary; ``accuracy`` and ``auc`` have a row of values per data set."""
    auc = auc or [[0.9] * len(row) for row in accuracy]
    return [
        {
            "data": data,
            name: value,
            "runs": runs,
            "accuracy_percent": accuracy[i][j],
            "accuracy_percent_spread": spread,
            "auc": auc[i][j],
            "auc_spread": 0.01,
            "full": 1.0,
            "raised": 0.0,
            "degree": 2,
        }
        | more
        for i, data in enumerate(UCI[: len(accuracy)])
        for j, value in enumerate(sensitivity.PARAMETERS[name])
    ]


@pytest.mark.parametrize("name", NAMES)
class TestCells:
    def test_are_plain_and_distinct_and_fewer_runs_come_first(self, name):
        study = study_of(name)
        few, many = study.cells(2), study.cells(5)
        assert few == many[: len(few)] == json.loads(json.dumps(few))
        assert len({json.dumps(cell) for cell in many}) == len(many) == 5 * len(few) // 2
        assert column(many, "run") == sorted(column(many, "run"))

    def test_have_all_values_for_each_data_set(self, name):
        cells = study_of(name, ("a", "b")).cells(1)
        assert all(cell.keys() == {"run", "seed", "data", "range", name} for cell in cells)
        for data in ("a", "b"):
            values = column(where(cells, data=data), name)
            assert tuple(values) == sensitivity.PARAMETERS[name]

    def test_seeds_are_those_of_runs(self, name):
        assert all(cell["seed"] == cell["run"] for cell in study_of(name).cells(3))
        assert {cell["seed"] for cell in study_of(name).cells(2, base=7)} == {7000, 7001}


class TestStudies:
    def test_are_the_papers_three_over_nine_data_sets(self):
        found = [(study.name, study.figure, study.runs) for study in sensitivity.STUDIES]
        assert found == [
            (f"sensitivity-{name}{ending}", figure, 20)
            for ending in ("", "-symmetric")
            for name, figure in zip(NAMES, ("Fig. 14", "Fig. 15", "Fig. 16"), strict=True)
        ]
        for study, values in zip(sensitivity.STUDIES, (3, 6, 5) * 2, strict=True):
            assert study.parallel and study.claim.endswith(".")
            assert len(study.cells(1)) == 9 * values
            assert set(column(study.cells(1), "data")) == set(UCI)

    @pytest.mark.parametrize("name", NAMES)
    def test_go_to_other_processes(self, name):
        study = study_of(name)
        assert pickle.loads(pickle.dumps(study.measure)) is study.measure


class TestMeasure:
    @pytest.mark.parametrize(
        "varied",
        [{"centers": "random"}, {"centers": "first"}, {"alpha": 0.01}, {"beta": 10.0}],
        ids=["random", "first", "alpha", "beta"],
    )
    def test_is_that_of_the_degree_which_is_best_on_the_validation_rows(self, tiny, varied):
        case = tiny("a", 3)
        tried = []
        for params in TEXT.candidates(len(case.train), 2):
            model = TEXT.classifier(random_state=3, **params, **varied).fit(*case.of(case.train))
            tried.append((model.score(*case.of(case.validation)), model))
        best = max(tried, key=lambda pair: pair[0])[1]  # the first of equals
        (row,) = sensitivity.measure({"run": 3, "seed": 3, "data": "a", "range": "unit", **varied})
        assert row["degree"] == best.degree
        assert row["accuracy"] == best.score(*case.of(case.test))
        assert 0.5 < row["auc"] <= 1.0
        assert row["full"] and row["raised"] is False
        assert json.loads(json.dumps(row)) == row

    def test_tells_when_rounding_raised_alpha(self, tiny):
        (row,) = sensitivity.measure(
            {"run": 0, "seed": 0, "data": "a", "range": "unit", "alpha": 1e-30}
        )
        assert row["raised"] is True

    def test_tells_when_centers_are_few(self, monkeypatch):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(60, 40))
        y = np.where(X[:, 0] > 0, 1, -1)
        case = Case(X, y, *three_parts(60, 0))
        monkeypatch.setattr(sensitivity, "open_case", lambda data, seed: case)
        (row,) = sensitivity.measure(
            {"run": 0, "seed": 0, "data": "a", "range": "unit", "beta": 1.0}
        )
        assert not row["full"]  # 41 dimensions, 30 training rows

    @pytest.mark.skipif(not BANKNOTE.exists(), reason="POLYSIFT_DATA has no banknote")
    def test_of_a_real_data_set(self):
        (row,) = sensitivity.measure(
            {"run": 0, "seed": 0, "data": "banknote", "range": "symmetric", "alpha": 1.0}
        )
        assert row["accuracy"] > 0.96 and row["auc"] > 0.99
        assert 2 <= row["degree"] <= 4


class TestSummarise:
    def test_has_means_deviations_and_the_most_common_degree(self):
        rows = [
            {
                "run": run,
                "seed": run,
                "data": data,
                "alpha": 1.0,
                "accuracy": 0.9 + 0.01 * run,
                "auc": 0.95,
                "degree": degree,
                "full": data == "a",
                "raised": run == 0,
            }
            for data, degrees in (("a", (3, 2, 3, 1)), ("b", (4, 2, 4, 2)))
            for run, degree in enumerate(degrees)
        ]
        a, b = sensitivity.summarise("alpha", rows)
        assert (a["data"], a["alpha"], a["runs"]) == ("a", 1.0, 4)
        assert a["accuracy_percent"] == pytest.approx(91.5)
        assert a["accuracy_percent_spread"] == pytest.approx(np.std([0, 1, 2, 3], ddof=1))
        assert (a["auc"], a["auc_spread"]) == (pytest.approx(0.95), pytest.approx(0.0))
        assert (a["degree"], b["degree"]) == (3, 2)  # of equally common ones, the smaller
        assert (a["full"], b["full"], a["raised"]) == (1.0, 0.0, 0.25)
        assert a.keys() == b.keys()

    @pytest.mark.parametrize("name", NAMES)
    def test_a_whole_study_can_be_drawn_and_judged(self, tiny, name):
        study = study_of(name, ("a", "b"))
        rows = [{**cell, **row} for cell in study.cells(2) for row in study.measure(cell)]
        summary = study.summarise(rows)
        assert len(summary) == 2 * len(sensitivity.PARAMETERS[name])
        assert json.loads(json.dumps([summary, rows])) == [summary, rows]
        study.draw(summary, rows).draw_without_rendering()
        verdict = study.judge(summary, rows)
        assert verdict.agrees in (True, False)
        assert "nan" not in verdict.text and "  " not in verdict.text


class TestDraw:
    @pytest.mark.parametrize("name", NAMES)
    def test_has_both_panels_and_one_legend(self, name):
        values = len(sensitivity.PARAMETERS[name])
        accuracy = [[80.0 + 2.4 * i + 0.1 * j for j in range(values)] for i in range(9)]
        figure = study_of(name).draw(summary_of(name, accuracy), [])
        figure.draw_without_rendering()
        assert [ax.get_title(loc="left") for ax in figure.axes] == ["(a) Test accuracy", "(b) AUC"]
        (legend,) = figure.legends
        labels = [text.get_text() for text in legend.get_texts()]
        assert len(labels) == (3 if name == "centers" else 10)  # the sets, and the paper's choice
        assert len(set(labels)) == len(labels)

    @pytest.mark.parametrize("name", NAMES)
    def test_shows_the_best_that_can_be_and_values_that_are_all_alike(self, name):
        values = len(sensitivity.PARAMETERS[name])
        summary = summary_of(name, [[100.0] * values], [[1.0] * values], spread=0.0)
        figure = study_of(name).draw(summary, [])
        figure.draw_without_rendering()
        limits = figure.axes[0].get_xlim() if name == "centers" else figure.axes[0].get_ylim()
        assert limits[0] < 100 < limits[1]

    def test_the_scale_can_be_inverted(self):
        scale = NearBest(100.0, 0.1)
        values = np.array([3.0, 50.0, 99.0, 99.95, 100.0])
        np.testing.assert_allclose(scale.backward(scale.forward(values)), values)
        assert np.all(np.diff(scale.forward(values)) > 0)
        assert np.isfinite(scale.forward(200.0))


def flat(name, sets=3, level=90.0):
    return [[level] * len(sensitivity.PARAMETERS[name]) for _ in range(sets)]


class TestJudge:
    @pytest.mark.parametrize("name", NAMES)
    def test_one_run_settles_nothing(self, name):
        verdict = study_of(name).judge(summary_of(name, flat(name), runs=1), [])
        assert verdict.agrees is None

    @pytest.mark.parametrize("name", NAMES)
    def test_no_effect_is_what_the_paper_claims(self, name):
        verdict = study_of(name).judge(summary_of(name, flat(name)), [])
        assert verdict.agrees is True
        assert "3 of 3 sets." in verdict.text and "Exceptions" not in verdict.text

    @pytest.mark.parametrize(
        ("rows", "agrees"),
        [
            ([[90.4, 90.0, 90.0], [95.0, 95.0, 95.0]], True),
            ([[90.6, 90.0, 90.0], [95.0, 95.0, 95.0]], False),  # too far apart
            ([[90.0, 90.4, 90.0], [95.0, 95.0, 95.0]], False),  # scheme 2 is the best
        ],
        ids=["near", "far", "other-scheme"],
    )
    def test_centers(self, rows, agrees):
        verdict = study_of("centers").judge(summary_of("centers", rows), [])
        assert verdict.agrees is agrees
        assert ("Exceptions: breast (accuracy 0.60 points" in verdict.text) == (rows[0][0] == 90.6)

    def test_centers_that_differ_in_auc_alone(self):
        auc = [[0.9, 0.9, 0.9], [0.9, 0.9, 0.92], [0.9, 0.9, 0.9]]
        verdict = study_of("centers").judge(summary_of("centers", flat("centers"), auc), [])
        assert verdict.agrees is False
        assert "2 of 3 sets. Exceptions: banknote (AUC 0.0200, deviation 0.0100)." in verdict.text

    def test_few_centers_are_told(self):
        summary = summary_of("centers", flat("centers", 4))
        summary[9]["full"] = 0.5
        text = study_of("centers").judge(summary, []).text
        assert "On musk2 the centers are fewer than C(s + d, s)" in text

    @pytest.mark.parametrize(
        ("rows", "agrees"),
        [
            ([[90.0, 90.0, 90.0, 90.0, 90.1, 90.0]] * 3, True),
            ([[90.0, 90.0, 90.0, 90.0, 90.0, 90.1]] * 3, False),  # 10 is better
            ([*flat("alpha", 2), [60.0, 90.0, 90.0, 90.0, 90.0, 90.0]], True),  # most are stable
            (flat("alpha", 1) + [[60.0, 90.0, 90.0, 90.0, 90.0, 90.0]] * 2, False),
        ],
        ids=["stable", "ten-is-better", "most-stable", "most-unstable"],
    )
    def test_alpha(self, rows, agrees):
        assert study_of("alpha").judge(summary_of("alpha", rows), []).agrees is agrees

    @pytest.mark.parametrize(
        ("row", "agrees"),
        [
            ([60.0, 80.0, 90.0, 90.4, 70.0], True),  # others may be bad
            ([60.0, 80.0, 90.0, 90.6, 70.0], False),
        ],
        ids=["almost", "not-almost"],
    )
    def test_beta(self, row, agrees):
        rows = [*flat("beta"), row]
        verdict = study_of("beta").judge(summary_of("beta", rows), [])
        assert verdict.agrees is agrees
        assert f"{4 if agrees else 3} of 4 sets." in verdict.text

    def test_what_rounding_raised_is_told(self):
        summary = summary_of("alpha", flat("alpha"))
        for line in where(summary, alpha=1e-4):
            line["raised"] = 0.5
        text = study_of("alpha").judge(summary, []).text
        assert "Rounding raised the paper's alpha: of the fits, 50% at 0.0001." in text
