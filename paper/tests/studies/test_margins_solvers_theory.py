"""The studies of margins, solvers, scaling and theory, at small size."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from oracles import kernel, lp_optimum
from polysift.datasets import make_bayes_curve
from polysift_paper.studies import (
    margins,
    scaling,
    solvers,
    theory_convergence,
    theory_rank,
    theory_rate,
)
from polysift_paper.studies.averages import average, exponent, where
from problems import paper_classifier

pytest.importorskip("matplotlib", reason="pictures need polysift[plots]")

THEORY = (theory_rank, theory_convergence, theory_rate)
STUDIES = [study for module in (margins, solvers, scaling, *THEORY) for study in module.STUDIES]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(margins, "MARGIN_SIZES", (100, 400))
    monkeypatch.setattr(margins, "PENALTY_SIZES", (100, 1000))
    monkeypatch.setattr(margins, "PENALTIES", (0.0, 1e-4, 1e-3, 1.0))
    monkeypatch.setattr(margins, "SVM_STEPS", 100_000)
    monkeypatch.setattr(solvers, "ROWS", 500)
    monkeypatch.setattr(solvers, "STEPS", (1, 3, 10))
    monkeypatch.setattr(scaling, "ROW_COUNTS", (100_000, 300_000))
    monkeypatch.setattr(scaling, "CENTER_COUNTS", (100, 400))
    monkeypatch.setattr(scaling, "FIXED_ROWS", 20_000)
    monkeypatch.setattr(scaling, "FIXED_CENTERS", 50)
    monkeypatch.setattr(theory_convergence, "ROWS", 300)
    monkeypatch.setattr(theory_convergence, "STEPS", 400)
    monkeypatch.setattr(theory_convergence, "KEPT_ITERATIONS", (1, 2, 3, 10, 30, 40, 100, 200, 400))
    monkeypatch.setattr(theory_rank, "DEGREES", (1, 2, 5))
    monkeypatch.setattr(theory_rate, "SIZES", (100, 1000, 10_000))
    monkeypatch.setattr(theory_rate, "CONVERGED_SIZES", (100, 1000))
    monkeypatch.setattr(
        theory_rate, "DEGREES", {"paper": (3, 9), "converged": (3,), "minimiser": (5,)}
    )


def run(study, runs):
    """Return the measurements of a study, through JSON as the runner keeps them."""
    cells = study.cells(runs)
    return [cell | row for cell in cells for row in json.loads(json.dumps(study.measure(cell)))]


def outcome(study, runs=2):
    rows = run(study, runs)
    summary = json.loads(json.dumps(study.summarise(rows), allow_nan=False))
    figure = study.draw(summary, rows)
    figure.draw_without_rendering()
    verdict = study.judge(summary, rows)
    assert type(verdict.agrees) is bool
    return rows, summary, verdict


def named(name):
    return next(study for study in STUDIES if study.name == name)


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_cells_are_plain_and_those_of_a_run_are_always_the_same(study):
    few, many = study.cells(2), study.cells(12)
    assert few == [cell for cell in many if cell["run"] < 2]
    assert len({json.dumps(cell, sort_keys=True) for cell in many}) == len(many)
    assert all(cell["seed"] == cell["run"] for cell in many)
    assert replace(study, runs=1).claim.endswith(".")


# Margins.


def test_features_reproduce_the_kernel(rng):
    X = rng.random((20, 2))
    phi = margins.kernel_features(X, 9)
    np.testing.assert_allclose(phi @ phi.T, (1 + X @ X.T) ** 9, rtol=1e-12)


def test_the_penalised_problem_is_that_of_the_svm():
    X, y = make_bayes_curve(300, noise=0.1, random_state=0)
    phi, penalty = margins.kernel_features(X), 0.01
    coefficients, objective = margins.PenalisedHinge(X, y).solve(penalty)
    settings = {"loss": "hinge", "fit_intercept": False, "max_iter": 1_000_000, "tol": 1e-4}
    svm = LinearSVC(C=1 / (2 * penalty * len(y)), **settings, random_state=0).fit(phi, y)
    theirs, ours = (
        np.maximum(0, 1 - y * (phi @ w)).mean() + penalty * w @ w
        for w in (svm.coef_[0], coefficients)
    )
    assert objective == pytest.approx(ours, rel=1e-9)
    assert ours == pytest.approx(theirs, rel=1e-3)


def test_without_a_penalty_it_is_the_linear_programme():
    X, y = make_bayes_curve(400, noise=0.1, random_state=1)
    minimum, _ = solvers.hinge_minimum(solvers.legendre_basis(X, 4), y)
    assert margins.PenalisedHinge(X, y, degree=4).solve(0.0)[1] == pytest.approx(minimum, rel=2e-3)


def test_motivation():
    _, summary, verdict = outcome(named("motivation"))
    first, last = where(summary, part="margin")
    assert last["margin"] < first["margin"]
    assert 0.8 < exponent((100, 400), (first["inside"], last["inside"])) < 1.4
    few, many = (margins._effect(summary, size) for size in (100, 1000))
    assert many["range"] < few["range"] / 5 and many["cost"] < few["cost"]
    assert "libsvm hit its cap" in verdict.text


# Solvers.


def test_the_minimum_is_that_of_the_primal_programme():
    X, y = make_bayes_curve(200, noise=0.1, random_state=2)
    basis = solvers.legendre_basis(X, 3)
    minimum, found = solvers.hinge_minimum(basis, y)
    assert np.maximum(0, 1 - y * (basis @ found)).mean() == pytest.approx(minimum, abs=1e-9)
    centers = paper_classifier(3, scaler=None, random_state=0).fit(X, y).centers_
    assert lp_optimum(kernel(X, centers, 3), y)[0] == pytest.approx(minimum, abs=1e-9)


def test_solvers():
    rows, summary, verdict = outcome(named("7"))
    assert all(row["gap"] > -1e-9 for row in rows if "gap" in row)
    gaps = {(e["degree"], e["mode"]): e["gap"] for e in where(summary, at="end")}
    assert gaps[3, "converged"] < 1e-3
    for degree in (3, 9):
        assert gaps[degree, "converged"] < 0.3 * gaps[degree, "paper"]
    assert where(summary, at="minimum", degree=3)[0]["resolved"] == 10
    assert where(summary, at="minimum", degree=9)[0]["resolved"] < 40
    assert "converged mode" in verdict.text


# Scaling.


def test_scaling():
    rows, summary, verdict = outcome(named("8"), runs=1)
    # Other processes disturb the clock, so no test looks at what it says; the next one looks at
    # what becomes of it.
    assert all(entry["seconds"] > 0 for entry in summary)
    features = 300_000 * 50 * 4
    assert all(row["memory"] is None or row["memory"] < features / 2 for row in rows[:2])
    assert "time grows like" in verdict.text


def test_a_system_that_does_not_tell_its_memory():
    study = named("8")
    rows = [
        {**cell, "seconds": cell["rows"] * cell["centers"] * 1e-8, "memory": None, "input": 1}
        for cell in study.cells(1)
    ]
    summary = study.summarise(rows)
    study.draw(summary, rows).draw_without_rendering()
    verdict = study.judge(summary, rows)
    assert verdict.agrees and "does not tell" in verdict.text and "m^1.00" in verdict.text


def test_a_fit_that_fails_says_why(monkeypatch):
    monkeypatch.setattr(scaling, "CHILD", "raise SystemExit('the reason')")
    with pytest.raises(RuntimeError, match="the reason"):
        scaling.measure({"seed": 0, "rows": 100, "centers": -1})


# Theory.


def test_steps_of_the_admm_never_grow():
    rows, _, verdict = outcome(named("theory-convergence"), runs=1)
    assert all(row["rise"] < 1e-6 for row in rows if "rise" in row)
    assert "No rise beyond rounding" in verdict.text


def test_kernel_modulo_a_prime_is_exact():
    centers = np.random.default_rng(3).random((4, 2))
    found = theory_rank.kernel_modulo(centers, 3)
    exact = [[Fraction(float(value)) for value in row] for row in centers]
    for i in range(4):
        for j in range(4):
            value = (1 + sum(a * b for a, b in zip(exact[i], exact[j], strict=True))) ** 3
            whole = value * 2 ** (106 * 3)
            assert whole.denominator == 1 and int(whole) % theory_rank.PRIME == found[i, j]
    with pytest.raises(ValueError, match="multiples"):
        theory_rank.kernel_modulo(np.array([[2.0**-60]]), 1)


def test_rank_modulo_a_prime(rng):
    a, b = rng.integers(0, 50, (8, 3)), rng.integers(0, 50, (3, 8))
    assert theory_rank.rank_modulo(a @ b) == 3
    assert theory_rank.rank_modulo(np.eye(5, dtype=int)[::-1]) == 5
    assert theory_rank.rank_modulo(np.zeros((3, 3), dtype=int)) == 0


def test_random_centers_have_full_rank_and_those_on_a_line_do_not():
    rows, _, verdict = outcome(named("theory-rank"))
    assert all(row["exact_rank"] == row["centers"] for row in rows)
    assert all(row["line_rank"] == row["degree"] + 1 for row in rows)
    assert verdict.agrees and "12 of 12" in verdict.text


def test_the_error_falls_with_the_rows():
    _, summary, verdict = outcome(named("theory-rate"))
    best = theory_rate._best(summary, "paper")
    assert [entry["rows"] for entry in best] == [100, 1000, 10_000]
    assert best[-1]["excess"] < best[0]["excess"] / 2
    assert verdict.agrees and "upper bound" in verdict.text


# Averages.


def test_averages():
    rows = [{"m": 1, "x": 2.0}, {"m": 1, "x": 4.0}, {"m": 2, "x": 1.0}, {"m": 3}]
    lines = average(rows, ("m",), ("x",))
    assert lines[0] == {"m": 1, "runs": 2, "x": 3.0, "x_spread": pytest.approx(2**0.5)}
    assert lines[1:] == [{"m": 2, "runs": 1, "x": 1.0, "x_spread": 0.0}]
    assert exponent((1, 10, 100), (3, 30, 300)) == pytest.approx(1)
