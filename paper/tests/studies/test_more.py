"""The studies of the second page, and pages of what is done."""

from __future__ import annotations

import numpy as np
import pytest

from polysift_paper.studies import lifting, symmetric, theory_dual
from polysift_paper.studies.simulations import chosen, more_studies, reproduce, studies
from polysift_paper.studies.toy import SYMMETRIC, toy_data

pytest.importorskip("matplotlib")


def rows_of(study, runs):
    return [{**cell, **row} for cell in study.cells(runs) for row in study.measure(cell)]


def test_symmetric_rows_are_the_same_rows_elsewhere():
    unit, moved = toy_data(3), toy_data(3, SYMMETRIC)
    np.testing.assert_allclose(moved[0], 2 * unit[0] - 1)
    np.testing.assert_allclose(moved[2], 2 * unit[2] - 1)
    np.testing.assert_array_equal(moved[1], unit[1])


def test_symmetric_studies_are_simulations_1_to_4():
    assert [study.name for study in symmetric.STUDIES] == [f"symmetric-{k}" for k in (1, 2, 3, 4)]
    study = symmetric.STUDIES[1]
    cells = study.cells(2)
    assert all(cell["range"] == SYMMETRIC for cell in cells) and len(cells) == 2
    plain = {k: v for k, v in cells[0].items() if k != "range"}
    there, here = study.measure(plain), study.measure(cells[0])
    assert [row["alpha"] for row in there] == [row["alpha"] for row in here]
    assert [row["test_error"] for row in there] != [row["test_error"] for row in here]


def test_which_studies_are_chosen():
    first, more = chosen(["all"]), chosen(["more"])
    assert {one.name for one in more} == set(more_studies())
    assert {one.name for one in (*first, *more)} == set(studies())
    assert [one.name for one in chosen(["symmetric", "dual"])][-1] == "dual"
    with pytest.raises(ValueError, match="no study 99"):
        chosen(["99"])


def test_the_dual_has_the_same_optimum(monkeypatch):
    monkeypatch.setattr(theory_dual, "ROWS", 80)
    monkeypatch.setattr(theory_dual, "DEGREES", (1, 3))
    monkeypatch.setattr(theory_dual, "ITERATIONS", 400)
    study = theory_dual.STUDIES[0]
    rows = rows_of(study, 2)
    assert all(row["gap"] < 1e-9 and row["slackness"] < 1e-9 for row in rows)
    assert all(row["unsigned_is_unbounded"] for row in rows)
    assert all(0 < row["primal"] < 1 and -1e-9 < row["admm_gap"] < 0.2 for row in rows)
    summary = study.summarise(rows)
    verdict = study.judge(summary, rows)
    assert verdict.agrees and "infinite in 100%" in verdict.text
    worse = [{**row, "gap": 1e-3} for row in rows]
    assert not study.judge(study.summarise(worse), worse).agrees
    assert len(study.draw(summary, rows).axes) == 2


def test_a_dimension_more_separates_and_gives_a_margin():
    study = lifting.STUDIES[0]
    rows = rows_of(study, 2)
    summary = study.summarise(rows)
    assert study.judge(summary, rows).agrees
    assert len(study.draw(summary, rows).axes) == 4
    flat = [{**row, "margin": 0.01} for row in rows]
    assert not study.judge(study.summarise(flat), flat).agrees


def test_pages_of_what_is_done(tmp_path):
    study = lifting.STUDIES[0]
    with pytest.raises(FileNotFoundError, match="Nothing of lifting is finished"):
        reproduce(study, tmp_path, runs=4, done_only=True)
    reproduce(study, tmp_path, runs=2)
    outcome = reproduce(study, tmp_path, runs=4, done_only=True)
    assert outcome.runs == 2 and len(outcome.summary) == 4


def test_simulation_4_without_the_svm_is_open():
    study = symmetric.STUDIES[3]
    rows = [
        {"method": "FPC", "degree": s, "run": run, "test_error": 0.02 + 0.001 * (s - 10) ** 2 + run}
        | {"training_error": 0.1, "altered": False}
        for s in range(1, 21)
        for run in (0, 0.001)
    ]
    summary = study.summarise(rows)
    verdict = study.judge(summary, rows)
    assert verdict.agrees is None and "at degree 10" in verdict.text
    assert "was not run to its end" in verdict.text
    assert len(study.draw(summary, rows).axes) == 1
