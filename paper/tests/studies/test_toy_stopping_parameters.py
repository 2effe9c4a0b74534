"""Simulations 1 to 3 at small size: exact against plain fits, and the claims hold."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="pictures need polysift[plots]")

from polysift_paper.studies import parameters, stopping, toy
from polysift_paper.studies.toy import toy_classifier, toy_data

(FIRST,) = stopping.STUDIES
SECOND, THIRD = parameters.STUDIES


def run(study, runs, measure=None):
    rows = [
        {**cell, **row} for cell in study.cells(runs) for row in (measure or study.measure)(cell)
    ]
    summary = study.summarise(rows)
    return summary, rows, study.judge(summary, rows)


def test_training_and_test_rows_differ():
    X, _, X_test, _ = toy_data(0)
    assert X.shape == X_test.shape == (1000, 2)
    assert not np.isin(X, X_test).any()
    assert not np.isin(X, toy_data(1)[0]).any()


@pytest.fixture(scope="module")
def stopped():
    return run(FIRST, 3)


def test_each_tolerance_is_what_a_fit_with_it_gives(stopped):
    _, rows, _ = stopped
    X, y, X_test, y_test = toy_data(1)
    for row in [row for row in rows if row["run"] == 1][::6]:
        model = toy_classifier(1, tol=row["tolerance"]).fit(X, y)
        assert row["iterations"] == model.n_iter_
        assert row["test_error"] == pytest.approx(1 - model.score(X_test, y_test), abs=1e-12)
        assert row["training_error"] == pytest.approx(1 - model.score(X, y), abs=1e-12)


def test_the_tolerance_hardly_matters_but_costs(stopped):
    summary, rows, verdict = stopped
    assert len(summary) == 26
    assert verdict.agrees and "3.0 on average (at most 3) at 10^-3.2" in verdict.text
    assert "0.01235 is not reproduced" in verdict.text
    errors = [entry["test_error"] for entry in summary]
    assert max(errors) < 0.04 and max(errors) - min(errors) < 0.006
    assert 1200 < summary[-1]["iterations"] < 2500  # the paper: 1734
    counts = [entry["iterations"] for entry in summary]
    assert counts == sorted(counts)
    assert FIRST.draw(summary, rows).axes[0].get_title(loc="left") == "(a) Test error"


def test_alpha():
    def measure(cell):
        return parameters.measure("alpha", parameters.ALPHAS[::2], cell)

    summary, rows, verdict = run(SECOND, 6, measure)
    errors = {round(np.log10(entry["alpha"])): entry["test_error"] for entry in summary}
    assert max(abs(errors[g] - errors[0]) for g in range(-5, 0)) < 0.006
    assert errors[1] > errors[0]  # the upper end is where the claim is weakest
    assert summary[0]["rho_raised"] == 1.0 and "100% at 1e-05" in verdict.text
    assert summary[-1]["rho_raised"] == 0.0
    assert len(SECOND.draw(summary, rows).axes) == 2


def test_beta():
    def measure(cell):
        return parameters.measure("beta", parameters.BETAS[::2], cell)

    summary, rows, verdict = run(THIRD, 6, measure)
    assert verdict.agrees and "Stable within a factor of 3 of 1, as claimed: yes." in verdict.text
    errors = [entry["test_error"] for entry in summary]
    assert max(errors[5:]) - min(errors[5:]) < 0.006
    assert errors[0] > errors[5]
    assert len(THIRD.draw(summary, rows).axes) == 2


@pytest.mark.parametrize("study", [FIRST, SECOND, THIRD], ids=lambda study: study.name)
def test_one_run_settles_nothing(study, stopped):
    rows = run(study, 1)[1] if study is not FIRST else [r for r in stopped[1] if r["run"] == 0]
    summary = study.summarise(rows)
    assert study.judge(summary, rows).agrees is None
    study.draw(summary, rows)


def test_where_it_is_steady():
    values = [0.1, 1.0, 10.0, 100.0, 1000.0]
    means = [0.05, 0.02, 0.021, 0.04, 0.02]
    summary = [
        {"alpha": value, "test_error": mean, "test_error_spread": 0.002}
        for value, mean in zip(values, means, strict=True)
    ]
    low, high = parameters.steady_range("alpha", summary)
    assert (low["alpha"], high["alpha"]) == (1.0, 10.0)


def test_data_are_what_the_paper_says():
    (study,) = toy.STUDIES
    rows = [cell | row for cell in study.cells(5) for row in study.measure(cell)]
    assert {row["reversed"] for row in rows} == {100}
    assert {row["reversed_in_test"] for row in rows} == {0}
    summary = study.summarise(rows)
    verdict = study.judge(summary, rows)
    assert verdict.agrees, verdict.text
    study.draw(summary, rows).draw_without_rendering()
    wrong = [row | {"reversed": 99} for row in rows]
    assert not study.judge(study.summarise(wrong), wrong).agrees
