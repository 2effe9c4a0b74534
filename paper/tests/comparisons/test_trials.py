"""Comparisons on real data: which rows, which systems, how a choice is made, what is kept."""

from __future__ import annotations

import json
import os
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("matplotlib")

from typer.testing import CliRunner

from polysift.cli.app import app
from polysift.cli.console import state
from polysift.datasets import UCI, available, make_bayes_curve
from polysift_paper.algorithm import DEMO, PRINT, TEXT, VARIANTS, choose_degree, scaled_whole
from polysift_paper.comparisons import plan as planning
from polysift_paper.comparisons import results, trial
from polysift_paper.comparisons.case import Case, open_case, three_parts
from polysift_paper.comparisons.comparison import COLUMNS, REVERSED
from polysift_paper.comparisons.contenders import (
    Effort,
    SearchResult,
    contender,
    contenders,
    search_polysift,
    search_sizes,
)
from polysift_paper.comparisons.trial import measure
from polysift_paper.rivals import METHODS
from polysift_paper.studies.worker import OverLimitError, WorkerError
from problems import paper_classifier

needs_data = pytest.mark.skipif(
    not available("banknote"), reason="banknote is not at hand: see POLYSIFT_DATA"
)


def cell(**entries):
    settings = {"data": "banknote", "method": "fpc", "run": 0, "seed": 0, "grid": "quick"}
    settings |= {"limit": 60.0, "threads": 1, "sizes": None, "rows": None}
    return settings | entries


def small_case(m=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((m, 2))
    y = np.where(X[:, 0] + 0.3 * np.sin(6 * X[:, 1]) > 0.6, 1, -1).astype(np.int8)
    return Case(X, y, *three_parts(m, seed))


class Calls:
    """A worker that counts, and answers from a table."""

    def __init__(self, scores, slow=(), pilot=None, broken=()):
        self.scores, self.slow, self.pilot, self.broken = scores, slow, pilot or {}, broken
        self.tried = []

    def call(self, function, _cell, params, *rows, limit=None):
        assert function is trial.attempt
        key = tuple(params.values())
        if rows:
            return self.pilot[key]
        self.tried.append(key)
        if key in self.slow:
            raise OverLimitError(f"over {limit:g} s")
        if key in self.broken:
            raise WorkerError("MemoryError")
        return self.scores[key]


def test_three_parts_are_a_half_and_two_quarters_of_all_rows():
    parts = three_parts(103, 1)
    assert [len(part) for part in parts] == [51, 25, 27]
    assert sorted(np.concatenate(parts)) == list(range(103))
    assert not np.array_equal(parts[0], three_parts(103, 2)[0])


def test_a_drawn_shape_is_that_of_the_paper_in_small():
    case = open_case("susy_shape", 0, 8_000)
    assert [len(part) for part in (case.train, case.validation, case.test)] == [8000, 1000, 1000]
    assert case.X.shape == (10_000, 8) and case.X.dtype == np.float32
    assert set(np.unique(case.y)) == {-1, 1}
    np.testing.assert_array_equal(case.X, open_case("susy_shape", 0, 8_000).X)


@pytest.mark.parametrize("data", REVERSED)
def test_no_classifier_of_a_drawn_shape_errs_less_than_its_rule(data):
    X, y = (case := open_case(data, 0, 40_000)).X, case.y
    rule = np.where((X[:, 0] - 0.5) ** 2 + X[:, 1] * X[:, 2] > 0.3, 1, -1)
    share, slack = REVERSED[data], 4 * np.sqrt(0.25 / len(y))
    assert abs(np.mean(rule != y) - share) < slack
    for one in (rule == 1, rule == -1):  # whatever the rule says
        assert abs(np.mean((rule != y)[one]) - share) < 2 * slack
    assert 0.4 < np.mean(rule == 1) < 0.6


@needs_data
def test_rows_can_be_fewer():
    whole, part = open_case("banknote", 3), open_case("banknote", 3, 100)
    assert len(part.train) == 100 and len(part.test) == len(whole.test) * 100 // len(whole.train)
    np.testing.assert_array_equal(part.train, whole.train[:100])


def test_the_systems_of_the_paper_then_ours():
    assert list(contenders()) == [
        *(name for name, method in METHODS.items() if method.in_paper),
        "fpc",
        "fpc_demo",
        "fpc_print",
        "polysift",
        "polysift_auc",
        "polysift_plain",
        "lightgbm",
    ]


def test_fpc_is_the_papers():
    assert TEXT.candidates(686, 4) == [
        {"degree": 1, "n_centers": 5},
        {"degree": 2, "n_centers": 15},
        {"degree": 3, "n_centers": 35},
        {"degree": 4, "n_centers": 70},
        {"degree": 5, "n_centers": 126},
    ]
    bounds = {name: len(one.candidates(686, 4)) for name, one in VARIANTS.items()}
    assert bounds == {"fpc": 5, "fpc_demo": 4, "fpc_print": 6}
    assert TEXT.candidates(300, 166) == [{"degree": 1, "n_centers": 167}]
    assert PRINT.candidates(300, 166)[-1] == {"degree": 2, "n_centers": 300}
    model = contender("fpc").build(random_state=7, degree=2, n_centers=15)
    wanted = {"centers": "uniform", "alpha": 1.0, "beta": 1.0, "max_iter": 5, "tol": 0.0}
    wanted |= {"scaler": "minmax", "solver": "paper", "random_state": 7, "n_centers": 15}
    params = model.get_params()
    assert {name: params[name] for name in wanted} == wanted


def test_fpc_chooses_among_sizes_where_the_paper_does():
    system = contender("fpc", [3, 5, 8])
    assert system.candidates is None
    params = system.search(small_case(), Effort()).params
    assert params["degree"] == 3  # C(2 + 2, 2) is 6
    assert params["n_centers"] in (3, 5, 8) and params["solver"] == "paper"
    assert contender("fpc").candidates(686, 4, "full") == TEXT.candidates(686, 4)


def demo_program(xtr, ytr, xte, s, cx):
    """FPC.m of the authors, line by line; returns the scores of the test rows."""
    ATrain, ATest = (1 + xtr @ cx.T) ** s, (1 + xte @ cx.T) ** s
    m, n = ATrain.shape
    u, v, w = np.zeros(n), ytr.astype(float), np.zeros(m)
    for _ in range(5):
        u = np.linalg.solve(ATrain.T @ ATrain + np.eye(n), u + ATrain.T @ (v - w))
        b = ATrain @ u + w
        step = ytr * b <= 1 - 1 / m
        v = np.where(step, b + ytr / m, np.where(ytr * b < 1, ytr, b))
        w = w + ATrain @ u - v
    return ATest @ u


def test_the_demo_is_the_authors_program():
    X, y = make_bayes_curve(400, noise=0.1, random_state=0)
    X = scaled_whole(np.vstack([X[:5], X[:5], X])[:400] * [3.0, 70.0] - 1.0)  # repeated rows, too
    train, check, test = np.split(np.arange(400), [200, 300])
    errors = []
    for params in DEMO.candidates(200, 2):
        s, n = params["degree"], params["n_centers"]
        scores = demo_program(X[train], y[train], X[check], s, X[train][:n])
        errors.append(np.mean(np.where(scores >= 0, 1, -1) != y[check]))
    best = DEMO.candidates(200, 2)[int(np.argmin(errors))]
    centers = X[train][: best["n_centers"]]
    assert len(np.unique(centers, axis=0)) < len(centers)
    model = choose_degree(DEMO, (X[train], y[train]), (X[check], y[check]))
    assert model.degree == best["degree"] > 1
    expected = demo_program(X[train], y[train], X[test], best["degree"], centers)
    np.testing.assert_allclose(model.decision_function(X[test]), expected, atol=1e-6)


def test_a_whole_set_is_scaled_with_its_test_rows():
    X = np.array([[1.0, 5.0, -2.0], [3.0, 5.0, 0.0], [2.0, 5.0, 2.0]])
    np.testing.assert_array_equal(scaled_whole(X), [[0, 0, 0], [1, 0, 0.5], [0.5, 0, 1]])
    case = open_case("susy_shape", 0, 100, whole=True)
    assert (case.X.min(), case.X.max()) == (0.0, 1.0)
    assert open_case("susy_shape", 0, 100).X.max() < 1.0


def test_sizes_are_chosen_by_the_validation_rows():
    case = small_case()
    scores = {}
    params = search_sizes(case, Effort(seed=1), (2, 6)).params
    for n in (2, 6):
        drawn = params | {"n_centers": n, "random_state": 1}
        model = paper_classifier(**drawn).fit(*case.of(case.train))
        scores[n] = model.score(*case.of(case.validation))
    assert scores[params["n_centers"]] == max(scores.values())


@pytest.mark.filterwarnings("ignore:solver='converged' stopped")
@pytest.mark.parametrize("scoring", ["accuracy", "roc_auc"])
def test_our_search_gives_parameters_that_fit(scoring):
    case = small_case()
    params = search_polysift(case, Effort(grid="quick"), scoring).params
    model = paper_classifier(**params).fit(*case.of(case.train))
    assert model.score(*case.of(case.test)) > 0.85


def test_the_best_candidate_is_chosen_and_of_equals_the_first(monkeypatch):
    monkeypatch.setitem(METHODS, "random_forest", _forest([2, 4, 6, 8]))
    worker = Calls({(2,): 0.7, (4,): 0.9, (6,): 0.9, (8,): 0.8})
    found = trial._select(worker, cell(method="random_forest"), 1000, 3)
    assert found == ({"n_estimators": 4}, "ok")
    assert len(worker.tried) == 4


def test_what_costs_more_than_a_slow_candidate_is_not_tried(monkeypatch):
    monkeypatch.setitem(METHODS, "random_forest", _forest([2, 4, 6, 8]))
    worker = Calls({(2,): 0.7, (4,): 0.6}, slow=[(6,)])
    found = trial._select(worker, cell(method="random_forest", limit=30.0), 1000, 3)
    status = "limited: 1 of 4 candidates over 30 s, 1 not tried after that"
    assert found == ({"n_estimators": 2}, status)
    assert worker.tried == [(2,), (4,), (6,)]


def test_no_candidate_within_the_limit(monkeypatch):
    monkeypatch.setitem(METHODS, "random_forest", _forest([2, 4]))
    found = trial._select(Calls({}, slow=[(2,)]), cell(method="random_forest", limit=1), 1000, 3)
    assert found == (None, "over limit: 1 of 2 candidates over 1 s, 1 not tried after that")


def test_a_candidate_that_fails_is_no_reason_to_give_up(monkeypatch):
    monkeypatch.setitem(METHODS, "random_forest", _forest([2, 4, 6]))
    worker = Calls({(2,): 0.7}, broken=[(4,)])
    found = trial._select(worker, cell(method="random_forest"), 1000, 3)
    status = "limited: 1 of 3 candidates failed, MemoryError, 1 not tried after that"
    assert found == ({"n_estimators": 2}, status)
    found = trial._select(Calls({}, broken=[(2,)]), cell(method="random_forest"), 1000, 3)
    assert found[0] is None and found[1].startswith("failed: 1 of 3 candidates failed, MemoryError")


def test_a_search_that_ran_out_of_time_is_marked():
    found = SearchResult({"degree": 2}, finished=False)

    class Searched:
        def call(self, function, _cell):
            assert function is trial.search
            return found

    chosen = trial._select(Searched(), cell(method="polysift"), 1500, 2)
    assert chosen == (found.params, "limited: the search was out of time")


def test_what_has_failed_is_run_again_and_nothing_else(tmp_path):
    def measure(one):
        return [dict.fromkeys(COLUMNS[4:]) | {"status": statuses[one["method"]]}]

    statuses = {"fpc": "failed: no", "falkon": "over limit: 1 of 1", "l1_svm": "ok"}
    trials = planning.Trials("uci", ("a",), tuple(statuses), 1, measure=measure)
    planning.run(trials, tmp_path)
    statuses |= dict.fromkeys(statuses, "limited: now")
    rows = planning.run(trials, tmp_path)
    assert [row["status"] for row in rows] == ["limited: now", "over limit: 1 of 1", "ok"]
    assert planning.run(trials, tmp_path) == rows


def test_a_pilot_puts_promising_candidates_first_where_costs_cannot_be_told(monkeypatch):
    grid = METHODS["svm_rbf"].coarse
    keys = [tuple(params.values()) for params in grid]
    pilot = {key: place / 100 for place, key in enumerate(keys)}
    worker = Calls(dict.fromkeys(keys, 0.5) | {keys[-3]: 0.9}, slow=[keys[-2]], pilot=pilot)
    params, status = trial._select(worker, cell(method="svm_rbf", grid="coarse"), 5000, 3)
    assert worker.tried == keys[: -trial.FINALISTS - 1 : -1]
    assert tuple(params.values()) == keys[-3]
    assert status == f"limited: 1 of {trial.FINALISTS} candidates over 60 s"


def test_a_selection_ends_when_too_many_are_slow():
    keys = [tuple(params.values()) for params in METHODS["svm_rbf"].coarse]
    worker = Calls(dict.fromkeys(keys, 0.5), slow=keys[1 : 1 + trial.MAX_STOPPED_CANDIDATES])
    _, status = trial._select(worker, cell(method="svm_rbf", grid="coarse"), 500, 3)
    assert worker.tried == keys[: 1 + trial.MAX_STOPPED_CANDIDATES]
    assert status.startswith(f"limited: {trial.MAX_STOPPED_CANDIDATES} of {len(keys)} candidates")


def _forest(sizes):
    from dataclasses import replace

    grid = tuple({"n_estimators": size} for size in sizes)
    return replace(METHODS["random_forest"], coarse=grid, quick=grid, full=grid)


@needs_data
@pytest.mark.parametrize("method", ["fpc", "linear_svm", "random_forest", "polysift"])
def test_a_cell_has_all_figures_and_is_the_same_again(method):
    (row,) = measure(cell(method=method))
    assert list(row) == list(COLUMNS[4:])
    assert row["status"] == "ok"
    assert 0.95 < row["accuracy"] <= 1 and 0.95 < row["auc"] <= 1
    assert row["search_seconds"] > 0 and row["fit_seconds"] > 0 and row["predict_seconds"] > 0
    (again,) = measure(cell(method=method))
    for name in ("accuracy", "auc", "params"):
        assert again[name] == row[name]


@needs_data
def test_the_figures_of_fpc_are_those_of_the_classifier():
    (row,) = measure(cell(seed=5))
    case = open_case("banknote", 5)
    model = TEXT.classifier(random_state=5, **row["params"]).fit(*case.of(case.train))
    assert row["accuracy"] == model.score(*case.of(case.test))


@needs_data
def test_a_failure_is_a_status_and_not_an_error():
    (row,) = measure(cell(data="nothing"))
    assert row["status"].startswith("failed: ") and "nothing" in row["status"]
    assert row["accuracy"] is None and row["params"] is None


@needs_data
def test_a_fit_over_the_limit_is_a_status():
    (row,) = measure(cell(method="random_forest", grid="full", limit=1e-4))
    assert row["status"] == "over limit: 1 of 10 candidates over 0.0001 s, 9 not tried after that"
    assert row["accuracy"] is None


def test_a_search_of_ours_over_its_limit_is_over_the_limit(monkeypatch):
    def late(*_):
        raise WorkerError("TimeoutError: time_limit=0.01 s struck")

    monkeypatch.setattr(trial.Worker, "call", late)
    (row,) = measure(cell(method="polysift"))
    assert row["status"] == "over limit: time_limit=0.01 s struck"


def test_cells_come_run_by_run():
    trials = planning.Trials("uci", ("a", "b"), ("fpc", "falkon"), 2, limit=30.0)
    found = trials.cells(2)
    assert [(one["run"], one["data"], one["method"]) for one in found] == [
        (run, data, method) for run in (0, 1) for data in "ab" for method in ("fpc", "falkon")
    ]
    assert trials.cells(1) == found[:4]
    assert json.loads(json.dumps(found)) == found


@needs_data
def test_plans():
    trials = planning.plan("uci", data=["Skin", "magic"], methods=["falkon", "fpc"], runs=3)
    assert trials.data == ("magic", "skin") and trials.methods == ("falkon", "fpc")
    assert (trials.runs, trials.grid, trials.limit) == (3, "coarse", 30.0)
    quick = planning.plan("uci", quick=True)
    assert (quick.runs, quick.grid, quick.limit) == (2, "quick", 10.0)
    assert len(quick.methods) == (15 if find_spec("lightgbm") is None else 16)
    assert set(quick.data) <= set(UCI)
    assert any("24 attributes" in note for note in quick.notes)


def test_what_is_not_at_hand_is_said_and_replaced(monkeypatch):
    monkeypatch.setattr(planning, "available", lambda name: False)
    trials = planning.plan("massive")
    assert trials.data == ("susy_shape", "higgs_shape")
    assert not trials.parallel
    assert "susy is not at hand; in its place there is susy_shape." in trials.notes[0]
    sizes = {one["data"]: one["sizes"] for one in trials.cells(1)}
    assert sizes["susy_shape"] == list(range(1500, 1701, 20))
    assert sizes["higgs_shape"] == list(range(300, 501, 20))
    with pytest.raises(ValueError, match="mnist38 is not at hand"):
        planning.plan("highdim", data=["mnist38"])


def test_a_set_that_the_paper_lacks_is_run_if_asked_for(monkeypatch):
    monkeypatch.setattr(planning, "available", lambda name: True)
    monkeypatch.setattr(planning, "load", lambda name, fetch: SimpleNamespace(remarks=()))
    assert "covtype_binary" not in planning.plan("highdim").data
    trials = planning.plan("highdim", data=["covtype", "mnist38"])
    assert trials.data == ("mnist38", "covtype_binary")
    assert trials.notes == ("covtype_binary is not in the paper.",)
    assert trials.cells(1)[-1]["sizes"] == list(range(200, 2001, 200))
    with pytest.raises(ValueError, match="no data set covtype_binary"):
        planning.plan("massive", data=["covtype"])


def test_a_stand_in_that_is_asked_for_too_is_run_once(monkeypatch):
    monkeypatch.setattr(planning, "available", lambda name: False)
    assert planning.plan("massive", data=["susy", "susy_shape"]).data == ("susy_shape",)


def test_what_is_not_at_hand_is_said_once_with_what_to_do(monkeypatch):
    monkeypatch.setattr(planning, "available", lambda name: False)
    with pytest.raises(ValueError, match=r"skin are not at hand\. .*POLYSIFT_DATA") as caught:
        planning.plan("uci")
    assert str(caught.value).count("not at hand") == 1


def test_lightgbm_is_left_out_where_it_is_not_installed(monkeypatch):
    monkeypatch.setattr(planning, "find_spec", lambda name: None)
    trials = planning.plan("massive", data=["susy_shape"])
    assert "lightgbm" not in trials.methods and "polysift" in trials.methods
    assert any("lightgbm is left out" in note for note in trials.notes)
    with pytest.raises(ValueError, match="lightgbm is not installed"):
        planning.plan("massive", data=["susy_shape"], methods=["lightgbm"])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"data": ["iris"]}, "There is no data set iris here; there are breast_cancer, "),
        ({"methods": ["svm"]}, "There is no method svm here; there are svm_rbf, "),
    ],
    ids=["data", "methods"],
)
def test_unknown_names(wrong, said):
    with pytest.raises(ValueError, match=said):
        planning.plan("uci", **wrong)


@pytest.fixture
def command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(state, "debug", False)

    def run(*words, code=0):
        outcome = CliRunner().invoke(app, ["reproduce", *words])
        assert outcome.exit_code == code, (outcome.stdout, outcome.stderr)
        return outcome

    return run


@needs_data
def test_command(command, tmp_path):
    words = ("uci", "--quick", "--data", "banknote", "--methods", "fpc,linear_svm", "--jobs", "1")
    outcome = command(*words, "--docs", "docs")
    assert "linear-SVM" in outcome.stdout and "banknote" in outcome.stdout
    home = tmp_path / "polysift-results"
    lines = (home / "uci" / "results.csv").read_text().splitlines()
    assert lines[0] == ",".join(COLUMNS)
    assert [line.split(",")[:4] for line in lines[1:]] == [
        ["banknote", method, run, run] for method in ("linear_svm", "fpc") for run in "01"
    ]
    assert "polysift reproduce uci --data banknote --methods fpc,linear_svm --quick" in (
        home / "uci.html"
    ).read_text(encoding="utf-8")
    assert (tmp_path / "docs" / "comparison-uci.md").exists()
    kept = (home / "uci" / "cells.jsonl").read_bytes()

    result = json.loads(command(*words, "--json", "--runs", "1").stdout)
    assert (home / "uci" / "cells.jsonl").read_bytes() == kept  # nothing was run again
    assert {line["data"] for line in result["summary"]} == {"banknote"}
    assert os.path.join("polysift-results", "uci.html") == result["page"]


@needs_data
def test_command_of_the_massive_sets_and_of_sensitivity(command, tmp_path):
    outcome = command(
        *("massive", "--data", "susy_shape", "--methods", "fpc,rr_fourier", "--quick"),
        *("--rows", "3000", "--runs", "1"),
    )
    assert "size of SUSY" in outcome.stdout
    rows = (tmp_path / "polysift-results" / "massive" / "results.csv").read_text()
    assert '""n_centers"": 1' in rows
    outcome = command("sensitivity", "--data", "banknote", "--runs", "1", "--jobs", "1")
    assert "sensitivity-alpha" in outcome.stdout
    assert (tmp_path / "polysift-results" / "sensitivity.html").exists()


def test_command_refuses_what_is_not_there(command):
    said = command("uci", "--data", "iris", code=2).stderr
    assert "There is no data set iris here" in said
    assert "longer than 0 s" in command("uci", "--time-limit", "0", code=2).stderr


@pytest.fixture
def rows_of_a_plan(monkeypatch):
    """Give a comparison whose cells are over the limit at once."""

    def run(trials, *_, **__):
        one = dict.fromkeys(COLUMNS) | {"run": 0, "seed": 0, "status": "over limit: 1 of 1"}
        return [one | {"data": "susy_shape", "method": name} for name in trials.methods]

    monkeypatch.setattr(planning, "run", run)


@pytest.mark.usefixtures("rows_of_a_plan")
def test_marks_are_explained_on_the_screen(command, tmp_path):
    words = ("massive", "--data", "susy_shape", "--methods", "fpc", "--time-limit", "20d")
    outcome = command(*words)
    assert "‡  over limit: 1 of 1: FPC, the text on size of SUSY" in outcome.stdout
    page = (tmp_path / "polysift-results" / "massive.html").read_text(encoding="utf-8")
    assert "--time-limit 1728000s" in page  # not 1.728e+06s, which nobody reads


@pytest.mark.usefixtures("rows_of_a_plan")
def test_ctrl_c_while_files_are_written_says_that_cells_are_kept(command, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(results, "write_comparison", interrupted)
    outcome = command("massive", "--data", "susy_shape", "--methods", "fpc", code=130)
    assert "keeps what is done" in outcome.stderr


@needs_data
def test_committed_rows_are_taken_and_not_run_again(command, tmp_path):
    words = ("uci", "--data", "banknote", "--methods", "linear_svm,fpc", "--quick", "--jobs", "1")
    command(*words, "--runs", "1", "-o", "first")
    kept = Path("first/uci/results.csv").read_text()
    more = (*words, "--runs", "2", "-o", "second")
    outcome = command(*more, "--continue-from", "first/uci/results.csv", "--done")
    assert "2 rows are taken" in " ".join(outcome.stderr.split())
    assert Path("second/uci/results.csv").read_text() == kept
    again = command(*more)
    assert len(Path("second/uci/results.csv").read_text().splitlines()) == 5
    assert again.exit_code == 0


def test_tables_i_and_v(command, tmp_path):
    text = command("datasets", "--docs", "pages").stdout
    assert "breast" in text and "Dogs_vs_Cats" in text
    page = Path("pages/paper-data.md").read_text()
    assert "| HIGGS | V | 11,000,000 / " in page
    if available("breast_cancer"):
        assert "683 / 683" in text and "64.44 / 65.01" in text
        assert "not reachable" in page or "no count out of 683" in page


@pytest.mark.skipif(not available("mnist38"), reason="made from MNIST, which is not at hand")
def test_a_set_made_as_gisette_was():
    case = open_case("gisette_like", 0, 60)
    assert case.X.shape == (60 + 10 + 65, 5000) and case.X.dtype == np.float32
    assert set(case.y) == {-1, 1} and case.X.min() >= 0 and case.X.max() <= 1
    other = open_case("gisette_like", 1, 60)
    assert not np.array_equal(case.X, other.X)
    np.testing.assert_array_equal(case.X, open_case("gisette_like", 0, 60).X)
    # Half of the columns are the values of others in another order.
    sums = np.sort(np.round(np.sort(case.X, axis=0).T @ np.arange(1.0, 136.0), 4))
    values, counts = np.unique(sums, return_counts=True)
    assert counts[values > 0].min() >= 2
    model = contender("fpc_print").build(random_state=0, degree=1, n_centers=50)
    assert model.fit(*case.of(case.train)).score(*case.of(case.test)) > 0.7


def test_all_begins_with_the_data_and_says_what_is_not_done(command):
    outcome = command("all", "--quick", "--done", code=1)
    assert "Dogs_vs_Cats" in outcome.stdout
    assert "Nothing of motivation is finished in polysift-results" in outcome.stderr
