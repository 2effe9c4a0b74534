"""Simulations 4 to 6: their cells, their measurements, and that the paper's conclusions hold."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.svm import SVC

from polysift_paper.studies import centers, degrees, noise
from polysift_paper.studies.averages import column, where
from polysift_paper.studies.toy import toy_data

pytest.importorskip("matplotlib")

STUDIES = (*degrees.STUDIES, *centers.STUDIES, *noise.STUDIES)


def run(study, runs, keep=lambda cell: True):
    cells = [cell for cell in study.cells(runs) if keep(cell)]
    rows = [{**cell, **row} for cell in cells for row in study.measure(cell)]
    return study.summarise(rows), rows


def check_outcome(study, summary, rows):
    """Check that a study can be drawn, judged, and kept as JSON."""
    assert json.loads(json.dumps([summary, rows])) == [summary, rows]
    assert all(line.keys() == summary[0].keys() for line in summary)
    figure = study.draw(summary, rows)
    figure.draw_without_rendering()
    verdict = study.judge(summary, rows)
    assert verdict.agrees in (True, False, None)
    assert "nan" not in verdict.text and "  " not in verdict.text
    return figure, verdict


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
class TestCells:
    def test_are_plain_distinct_and_the_same_for_more_runs(self, study):
        few, many = (
            [json.dumps(cell, sort_keys=True) for cell in study.cells(runs)] for runs in (2, 12)
        )
        assert len(set(many)) == len(many)
        assert set(few) < set(many)
        assert few == [cell for cell in many if json.loads(cell)["run"] < 2]
        assert study.cells(2) == json.loads(json.dumps(study.cells(2)))

    def test_seeds_are_those_of_runs(self, study):
        assert all(cell["seed"] == cell["run"] for cell in study.cells(3))
        assert {cell["seed"] for cell in study.cells(2, base=7)} == {7000, 7001}

    def test_says_what_it_is(self, study):
        assert study.runs == 50
        assert study.parallel
        assert study.figure.startswith("Fig")
        assert study.claim.endswith(".")


@pytest.fixture(scope="module")
def degrees_outcome():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(degrees, "PENALTIES", (1e-1, 1e-2, 1e-3, 1e-4))
        patch.setattr(degrees, "SVM_MAX_STEPS", 10_000)
        patch.setattr(degrees, "SVM_RUNS", 1)
        study = degrees.STUDIES[0]
        summary, rows = run(study, 6)
        return summary, rows, *check_outcome(study, summary, rows)


class TestDegrees:
    def test_the_best_degree_of_fpc_is_around_10(self, degrees_outcome):
        errors = column(where(degrees_outcome[0], method="FPC"), "test_error")
        assert 6 <= degrees.DEGREES[int(np.argmin(errors))] <= 17
        assert errors[0] > 2 * errors[9] and errors[19] > errors[9]
        assert 0.012 < errors[8] < 0.027

    def test_a_low_degree_is_bad_for_the_svm_too(self, degrees_outcome):
        errors = column(where(degrees_outcome[0], method="SVM-Poly"), "test_error")
        assert errors[0] > 2 * min(errors)

    def test_the_svm_takes_the_best_penalty(self, degrees_outcome):
        summary, rows = degrees_outcome[:2]
        for entry in where(summary, method="SVM-Poly"):
            tried = where(rows, method="SVM-Poly", degree=entry["degree"])
            assert entry["test_error"] == pytest.approx(min(column(tried, "test_error")))

    def test_what_rounding_or_the_cap_altered_is_counted(self, degrees_outcome):
        fpc, svm = (
            column(where(degrees_outcome[0], method=name), "altered_all")
            for name in ("FPC", "SVM-Poly")
        )
        assert fpc[0] == 0 and fpc[-1] == 1
        assert svm[0] == 0 and svm[-1] > 0

    def test_runs_are_counted(self, degrees_outcome):
        assert set(column(where(degrees_outcome[0], method="FPC"), "runs")) == {6}
        assert set(column(where(degrees_outcome[0], method="SVM-Poly"), "runs")) == {1}
        assert degrees_outcome[3].agrees is None  # one run of the SVM

    @pytest.mark.parametrize(("best", "agrees"), [(10, True), (12, True), (16, False)])
    def test_the_verdict_follows_the_minima(self, best, agrees):
        summary = [
            {
                "method": method,
                "degree": s,
                "runs": runs,
                "test_error": 0.016 + 0.0001 * (s - best) ** 2,
                "test_error_spread": 0.005,
                "altered": 0.0,
                "altered_all": 0.0,
            }
            for method, runs in (("FPC", 50), ("SVM-Poly", 10))
            for s in degrees.DEGREES
        ]
        verdict = degrees.judge(summary, [])
        assert verdict.agrees is agrees
        assert "0.0115 to 0.0124" in verdict.text

    def test_c_is_that_of_the_papers_objective(self):
        X, y, _, _ = toy_data(0)
        penalty = 1e-2
        svm = degrees._models({"method": "SVM-Poly", "degree": 3, "penalty": penalty})[0]

        def objective(factor):
            model = SVC(**{**svm.get_params(), "C": svm.C * factor}).fit(X, y)
            dual, support = model.dual_coef_[0], model.support_vectors_
            norm = dual @ (1 + support @ support.T) ** 3 @ dual
            loss = np.maximum(0, 1 - y * model.decision_function(X)).mean()
            return loss + penalty * norm

        assert objective(1.0) < min(objective(0.7), objective(1.4))


@pytest.fixture(scope="module")
def centers_outcome():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(centers, "SIZES", (5_000, 15_000))
        study = centers.STUDIES[0]
        summary, rows = run(study, 4)
        return summary, rows, *check_outcome(study, summary, rows)


class TestCenters:
    def test_the_schemes_are_almost_the_same(self, centers_outcome):
        means = np.reshape(column(centers_outcome[0], "test_error"), (2, 3))
        assert np.ptp(means.mean(axis=0)) < 0.15 * means.mean()
        assert centers_outcome[3].agrees

    def test_more_rows_are_better(self, centers_outcome):
        means = np.reshape(column(centers_outcome[0], "test_error"), (2, 3)).mean(axis=1)
        assert means[1] < means[0] < 0.014

    def test_the_best_degree_is_taken(self, centers_outcome):
        summary, rows = centers_outcome[:2]
        for entry in summary:
            tried = where(rows, rows=entry["rows"], scheme=entry["scheme"])
            by_degree = [column(where(tried, degree=s), "test_error") for s in centers.DEGREES]
            assert entry["test_error"] == pytest.approx(np.mean(by_degree, axis=1).min())

    def test_one_run_settles_nothing(self, centers_outcome, monkeypatch):
        monkeypatch.setattr(centers, "SIZES", (5_000, 15_000))
        first = where(centers_outcome[1], run=0)
        assert centers.judge(centers.summarise(first), first).agrees is None


class Score:
    """A model that has a given score."""

    def __init__(self, score):
        self.score = score

    def decision_function(self, X):
        return self.score(X[:, 0], X[:, 1])


@pytest.fixture(scope="module")
def noise_outcome():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(noise, "RATIOS", (0.0, 0.1, 0.3, 0.5))
        study = noise.STUDIES[0]
        summary, rows = run(study, 6)
        return summary, rows, *check_outcome(study, summary, rows)


class TestNoise:
    @pytest.mark.parametrize(
        ("score", "pieces"),
        [
            (lambda a, b: b - 0.5, 1),
            (lambda a, b: a + b + 1, 0),
            (lambda a, b: (a - 0.5) ** 2 + (b - 0.5) ** 2 - 0.1, 1),  # a closed curve
            (lambda a, b: (b - 0.2) * (b - 0.5) * (b - 0.8), 3),
            (lambda a, b: (b - 0.5) * ((a - 0.5) ** 2 + (b - 0.9) ** 2 - 0.02**2), 1),  # a speck
        ],
    )
    def test_pieces_are_counted(self, score, pieces):
        assert noise.count_pieces(Score(score)) == pieces

    def test_the_training_error_is_close_to_the_noise_level(self, noise_outcome):
        moderate = [entry for entry in noise_outcome[0] if entry["ratio"] <= 0.3]
        off = np.array(column(moderate, "training_error")) - column(moderate, "level")
        assert abs(off).max() < 0.04 and abs(off).mean() < 0.02

    def test_levels_are_those_of_the_regions(self, noise_outcome):
        for entry in noise_outcome[0]:
            width, ratio = entry["width"], entry["ratio"]
            share = {"inside": 2 * width, "outside": 1 - 2 * width, "everywhere": 1}[entry["kind"]]
            assert entry["level"] == pytest.approx(share * ratio, abs=0.04)

    def test_the_test_error_grows_with_noise(self, noise_outcome):
        for kind, width in (("inside", 0.2), ("outside", 0.3), ("everywhere", 0.0)):
            errors = column(where(noise_outcome[0], kind=kind, width=width), "test_error")
            assert errors[-1] > 1.5 * errors[0]

    def test_noise_of_type_2_splits_the_boundary(self, noise_outcome):
        split = column(where(noise_outcome[0], kind="outside", ratio=0.5), "pieces")
        whole = [
            e["pieces"] for e in noise_outcome[0] if e["kind"] != "outside" and e["ratio"] <= 0.3
        ]
        assert min(split) > 2.3 and max(whole) < 1.5
        assert np.mean(column(where(noise_outcome[0], kind="outside", ratio=0.5), "three")) > 0.5
        assert noise_outcome[3].agrees

    def test_one_run_settles_nothing(self, noise_outcome):
        first = where(noise_outcome[1], run=0)
        assert noise.judge(noise.summarise(first), first).agrees is None

    def test_the_picture_has_ten_panels(self, noise_outcome):
        assert len(noise_outcome[2].axes) == 10
