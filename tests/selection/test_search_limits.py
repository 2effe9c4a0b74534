"""The search within limits: memory, time, interruptions, and going on from a checkpoint."""

from __future__ import annotations

import contextlib
import os
import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import (
    KFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
)

from polysift import CheckpointError, FPCClassifier, FPCClassifierCV
from polysift.engine.backend import LocalBackend
from polysift.engine.budget import Execution, Shape, peak_bytes
from polysift.engine.local import LocalEngine
from polysift.engine.shards import ShardWork
from polysift.runtime import checkpoints
from polysift.selection import last_resort, race
from polysift.selection import search as searching_module
from polysift.selection.stage import Stage
from problems import paper_classifier
from searching import (
    QUICK,
    at_call,
    fold_scores,
    interrupt,
    margin,
    on_given_centers,
    problem,
    quiet_fit,
    same_results,
)


@pytest.fixture
def ways(monkeypatch):
    """Record the execution of stages, and the candidates at once."""
    chosen, original = [], LocalBackend.fit_problems

    def recorded(*arguments, **options):
        chosen.append(original(*arguments, **options))
        return chosen[-1]

    monkeypatch.setattr(LocalBackend, "fit_problems", staticmethod(recorded))
    return chosen


def test_less_memory_means_groups_then_a_file_and_the_same_scores(ways):
    X, y = problem(6000)
    make = on_given_centers(scoring=margin, rhos=(1e-2, 1e-4), max_iter=(2, 6))
    free = clone(make).fit(X, y)
    assert all(candidates == 8 and not execution.spill for execution, candidates in ways)
    shape = Shape(6000, 3, 8, 1, 8, False, False, 0, fold_parts=3, problems=3)
    least = peak_bytes(shape, Execution(1, 1, spill=True))
    few = peak_bytes(replace(shape, problems=6), Execution(1, 1))
    for limit, spilled in ((few, False), (least, True)):
        ways.clear()
        tight = clone(make).set_params(memory_limit=limit).fit(X, y)
        assert all(candidates < 8 and execution.spill == spilled for execution, candidates in ways)
        np.testing.assert_allclose(
            fold_scores(tight.cv_results_), fold_scores(free.cv_results_), atol=1e-9
        )
        assert tight.best_params_["degree"] == free.best_params_["degree"]
        np.testing.assert_allclose(tight.decision_function(X), free.decision_function(X), atol=1e-8)
    with pytest.raises(MemoryError, match="memory_limit"):
        clone(make).set_params(memory_limit=least - 1).fit(X, y)


def test_less_memory_screens_the_same_candidates(ways):
    X, y = problem(3000)
    settings = QUICK | {"degrees": 2, "n_centers": (3, 5, 7, 10), "max_iter": (5, 10, 20)}
    free = FPCClassifierCV(**settings, cv=3, random_state=0).fit(X, y)
    tight = FPCClassifierCV(**settings, cv=3, random_state=0, memory_limit="2MB").fit(X, y)
    assert ways[0][1] > ways[1][1]
    np.testing.assert_array_equal(tight.cv_results_["status"], free.cv_results_["status"])


def test_what_does_not_fit_is_refused_before_the_search(monkeypatch):
    X, y = problem(3000)
    part = ShuffleSplit(1, test_size=0.2, train_size=0.5, random_state=0)
    make = on_given_centers(degrees=3, n_centers=8, cv=part, solvers="paper")
    shape = Shape(3000, 3, 8, 1, 8, False, False, 0, fold_parts=2, problems=1)
    limit = peak_bytes(shape, Execution(1, 1, spill=True)) + 1000
    make.set_params(memory_limit=limit).fit(X, y)  # there is room for the search and a model
    swept = at_call(monkeypatch, LocalEngine, "sweep", 0, interrupt)
    refused = False
    try:
        make.set_params(calibration="sigmoid").fit(X, y)
    except MemoryError:
        refused = True
    assert not (refused and swept)


def advance(clock, seconds):
    clock.now += seconds


@pytest.mark.parametrize(
    ("phase", "rows"),
    [("survey", 9000), ("gram", 400), ("gram", 9000), ("sweep", 400), ("sweep", 9000)],
)
def test_a_time_limit_before_the_first_candidate(clock, monkeypatch, phase, rows):
    X, y = problem(rows)
    if phase == "survey":
        clock.tick = 10
    elif phase == "gram":
        at_call(monkeypatch, LocalEngine, "gram", 1, lambda: advance(clock, 11))
    else:
        at_call(monkeypatch, LocalEngine, "sweep", 1, lambda: advance(clock, 11))
    search = FPCClassifierCV(**QUICK, cv=3, time_limit=10, random_state=0)
    few = min(rows, last_resort.MAX_ROWS)
    fitted = "" if rows == few else f", as it was fitted to {few:,} rows: there was no time for all"
    message = rf"\(time_limit struck\): the only candidate so far was taken{fitted}\.$"
    with pytest.warns(ConvergenceWarning, match=message):
        search.fit(X, y)
    assert (search.status_, search.n_refit_rows_) == ("time_limit", few)
    assert search.cv_results_["status"].tolist() == ["finished" if rows == few else "stopped"]
    assert search.score(X, y) > 0.55


def test_a_time_limit_takes_the_best_candidate_so_far(clock, monkeypatch):
    X, y = problem()
    settings = QUICK | {"degrees": (1, 2, 3), "cv": 3, "random_state": 0}
    reserved = []
    clock.after(monkeypatch, ShardWork, "sweep", 1e-3)

    def late():  # with time left for the refit, but for no more
        monitor = stages[-1]._context.fit.monitor
        reserved.append(monitor._reserved)
        clock.now = monitor._deadline - monitor._reserved / 2

    stages, original = [], Stage.run

    def run(self):
        stages.append(self)
        if len(stages) == 2:
            late()
        original(self)

    monkeypatch.setattr(Stage, "run", run)
    search = FPCClassifierCV(**settings, time_limit=60)
    with pytest.warns(ConvergenceWarning, match=r"\(time_limit struck\): the best of"):
        search.fit(X, y)
    assert reserved[0] > 0
    assert search.status_ == "time_limit"
    results = search.cv_results_
    done = results["status"] == "finished"
    (degree,) = set(results["param_degree"][done])
    assert set(results["status"][results["param_degree"] != degree]) == {"stopped"}
    best = search.best_estimator_
    plain = quiet_fit(FPCClassifier(**search.best_params_, random_state=0), X, y)
    assert (best.status_, best.n_iter_) == (plain.status_, plain.n_iter_)
    np.testing.assert_allclose(search.decision_function(X), plain.decision_function(X), atol=1e-6)


def test_a_time_limit_in_the_first_stage_leaves_a_model_or_a_clear_error(clock, monkeypatch):
    X, y = problem(30_000)
    # The first rung is behind, so there are finished candidates; the stage is not at its end.
    at_call(monkeypatch, LocalEngine, "sweep", 7, lambda: advance(clock, 11))
    settings = QUICK | {"solvers": "converged", "max_iter": (3, 20), "cv": 2, "rhos": None}
    search = FPCClassifierCV(**settings, time_limit=10, random_state=0)
    with pytest.warns(ConvergenceWarning):
        search.fit(X, y)
    assert search.score(X, y) > 0.5


def test_the_refit_is_done_in_full_whatever_the_time(clock, monkeypatch):
    X, y = problem()
    original = race.refit

    def refit(self, *arguments):
        at_call(monkeypatch, LocalEngine, "sweep", 2, lambda: advance(clock, 11))
        return original(self, *arguments)

    monkeypatch.setattr(race, "refit", refit)
    settings = QUICK | {"solvers": "converged", "max_iter": 20, "cv": 2, "rhos": None}
    search = FPCClassifierCV(**settings, time_limit=10, random_state=0).fit(X, y)
    assert search.status_ == "finished"
    assert search.best_estimator_.status_ != "time_limit"


@pytest.mark.parametrize(
    "cv",
    [
        KFold(2),
        RepeatedStratifiedKFold(n_splits=2, n_repeats=3, random_state=0),
    ],
    ids=str,
)
def test_the_time_saved_is_honest(clock, monkeypatch, cv):
    """A Gram matrix takes a second; a fit alone on half of the rows would take half of that."""
    X, y = problem(200)
    clock.after(monkeypatch, ShardWork, "gram", 1.0)
    search = FPCClassifierCV(1, 4, scalers=None, solvers="paper", rhos=None, cv=cv).fit(X, y)
    alone = 0.5 * search.n_splits_
    assert search.time_saved_ + search.timings_["total"] == pytest.approx(alone, abs=0.1)


def test_ctrl_c_takes_the_best_candidate_so_far(monkeypatch):
    X, y = problem()
    at_call(monkeypatch, Stage, "run", 2, interrupt)
    search = FPCClassifierCV(**QUICK, cv=3, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"\(interrupted\): the best of") as caught:
        search.fit(X, y)
    assert caught[0].filename == __file__, "the warning points at the caller"
    assert search.status_ == "interrupted"
    results = search.cv_results_
    unseen = results["param_degree"] != search.best_params_["degree"]
    assert (results["status"][unseen] == "not run").all()
    assert np.isnan(results["mean_test_score"][unseen]).all()
    assert np.isnan(results["std_test_score"][unseen]).all()
    assert results["rank_test_score"][unseen].min() > results["rank_test_score"][~unseen].max()
    plain = quiet_fit(FPCClassifier(**search.best_params_, random_state=0), X, y)
    np.testing.assert_allclose(search.decision_function(X), plain.decision_function(X), atol=1e-6)


@pytest.mark.parametrize(
    ("owner", "method"),
    [(searching_module, "_prepare"), (LocalEngine, "gram"), (LocalEngine, "sweep")],
)
def test_ctrl_c_before_the_first_candidate_leaves_a_small_model(monkeypatch, owner, method):
    X, y = problem(5000)
    at_call(monkeypatch, owner, method, 1, interrupt)
    search = FPCClassifierCV(**QUICK, cv=3, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"\(interrupted\): the only candidate so far"):
        search.fit(X, y)
    assert (search.status_, search.n_refit_rows_) == ("interrupted", last_resort.MAX_ROWS)
    assert search.score(X, y) > 0.55


def test_a_second_ctrl_c_raises(monkeypatch):
    X, y = problem()
    monkeypatch.setattr(LocalEngine, "sweep", lambda *_: interrupt())
    search = FPCClassifierCV(**QUICK, cv=3, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, y)
    assert not hasattr(search, "best_estimator_")


def test_ctrl_c_in_the_refit_is_reported(monkeypatch):
    X, y = problem()
    original = race.refit

    def refit(self, *arguments):
        at_call(monkeypatch, LocalEngine, "sweep", 2, interrupt)
        return original(self, *arguments)

    monkeypatch.setattr(race, "refit", refit)
    settings = QUICK | {"solvers": "converged", "max_iter": 20, "cv": 2, "rhos": None}
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        FPCClassifierCV(**settings, random_state=0).fit(X, y)


@pytest.fixture
def save_always(monkeypatch):
    monkeypatch.setattr(checkpoints.Checkpoint, "due", lambda self: True)
    monkeypatch.setattr(os, "fsync", lambda _: None)  # nobody pulls the plug here


SEARCHED = {"scalers": "minmax", "degrees": (1, 2, 3), "n_centers": 10, "rhos": 1e-4}


SEARCHED |= {
    "solvers": ("paper", "converged"),
    "max_iter": (5, 10, 20),
    "cv": 3,
    "random_state": 0,
    "screen": False,
}


@cache
def searched(**changes):
    """Return a search that nobody interrupts, and that saves nothing."""
    return FPCClassifierCV(**SEARCHED | changes).fit(*problem())


def test_saving_changes_nothing(tmp_path, save_always):
    saved = FPCClassifierCV(**SEARCHED, checkpoint=tmp_path).fit(*problem())
    same_results(saved, searched())
    np.testing.assert_array_equal(saved.best_estimator_.coef_, searched().best_estimator_.coef_)


def interrupted(monkeypatch, owner, method, number, search, X, y):
    """Fit, and interrupt the given call of a method."""
    with monkeypatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        calls = at_call(patch, owner, method, number, interrupt)
        with contextlib.suppress(KeyboardInterrupt):
            search.fit(X, y)
    assert len(calls) >= number, "there was something to interrupt"


@pytest.mark.parametrize(
    ("method", "number"),
    [
        *(("gram", number) for number in (1, 3)),
        *(("sweep", number) for number in (1, 7, 23, 60)),
        *(("scores", number) for number in (2, 4, 9)),
    ],
)
def test_an_interrupted_search_goes_on_to_the_same_results(
    tmp_path, monkeypatch, save_always, method, number
):
    X, y = problem()
    search = FPCClassifierCV(**SEARCHED, refit=False, checkpoint=tmp_path)
    interrupted(monkeypatch, LocalEngine, method, number, search, X, y)
    same_results(search.fit(X, y), searched())


@pytest.mark.parametrize("number", [1, 2, 8])
def test_an_interrupted_refit_goes_on_to_the_same_model(tmp_path, monkeypatch, save_always, number):
    X, y = problem()
    changes = {"solvers": "converged", "calibration": "sigmoid", "degrees": 2}
    expected = searched(**changes)
    make = FPCClassifierCV(**SEARCHED | changes, checkpoint=tmp_path)
    with monkeypatch.context() as patch:
        original = race.refit

        def refit(self, *arguments):
            at_call(patch, LocalEngine, "sweep", number, interrupt)
            return original(self, *arguments)

        patch.setattr(race, "refit", refit)
        with warnings.catch_warnings(), contextlib.suppress(KeyboardInterrupt):
            warnings.simplefilter("ignore", ConvergenceWarning)
            make.fit(X, y)
    make.fit(X, y)
    same_results(make, expected)
    np.testing.assert_array_equal(make.best_estimator_.coef_, expected.best_estimator_.coef_)
    np.testing.assert_array_equal(make.predict_proba(X), expected.predict_proba(X))
    assert make.best_estimator_.status_ == expected.best_estimator_.status_


@pytest.mark.parametrize("first", [False, True])
def test_the_model_of_an_interrupted_search_is_that_of_its_choice(
    tmp_path, monkeypatch, save_always, first
):
    """Ctrl-C ends in a refit of the best so far, whose state must not serve another's refit."""
    X, y = problem()
    for n in (4, 10):  # the best degree is the lowest for one, and the highest for the other
        expected = searched(n_centers=n)
        make = FPCClassifierCV(**SEARCHED | {"n_centers": n}, checkpoint=tmp_path / f"{n}")
        interrupted(monkeypatch, LocalEngine, "sweep", 7 if first else 45, make, X, y)
        make.fit(X, y)
        same_results(make, expected)
        np.testing.assert_array_equal(make.best_estimator_.coef_, expected.best_estimator_.coef_)


@pytest.mark.parametrize("number", [1, 2, 4])
def test_an_interrupted_gram_matrix_is_gone_on_with(tmp_path, monkeypatch, save_always, number):
    X, y = problem(20_000)
    settings = QUICK | {"solvers": "paper", "rhos": 1e-4, "cv": 2, "refit": False}
    settings |= {"random_state": 0, "screen": False}
    expected = FPCClassifierCV(**settings, checkpoint=tmp_path / "whole").fit(X, y)
    cut = FPCClassifierCV(**settings, checkpoint=tmp_path / "cut", n_jobs=1)
    interrupted(monkeypatch, ShardWork, "gram", number, cut, X, y)
    calls = at_call(monkeypatch, ShardWork, "gram", 0, interrupt)
    resumed = FPCClassifierCV(**settings, checkpoint=tmp_path / "cut").fit(X, y)
    same_results(resumed, expected)
    assert len(calls) == 4 - (number - 1), "finished spans, two of each stage, are not done again"


def test_screening_and_rounds_are_resumed(tmp_path, monkeypatch, save_always):
    X, y = problem()
    settings = SEARCHED | {"screen": True, "n_centers": (4, 6, 8, 10), "refit": False}
    settings |= {"cv": RepeatedStratifiedKFold(n_splits=2, n_repeats=2, random_state=0)}
    settings |= {"degrees": (2, 3)}
    with monkeypatch.context() as patch:
        sweeps = at_call(patch, LocalEngine, "sweep", 0, interrupt)
        expected = FPCClassifierCV(**settings, checkpoint=tmp_path / "whole").fit(X, y)
    assert set(expected.cv_results_["status"]) == {"finished", "screened"}
    for number in (3, len(sweeps) // 4, len(sweeps) // 2, len(sweeps) - 2):
        cut = FPCClassifierCV(**settings, checkpoint=tmp_path / f"{number}")
        interrupted(monkeypatch, LocalEngine, "sweep", number, cut, X, y)
        same_results(cut.fit(X, y), expected)


def test_a_finished_search_is_found_again(tmp_path, monkeypatch, save_always):
    X, y = problem()
    settings = SEARCHED | {"random_state": None, "calibration": "sigmoid", "degrees": (1, 2)}
    first = FPCClassifierCV(**settings, checkpoint=tmp_path).fit(X, y)
    for name in ("gram", "sweep"):
        at_call(monkeypatch, LocalEngine, name, 1, interrupt)
    again = FPCClassifierCV(**settings, checkpoint=tmp_path).fit(X, y)
    assert again.random_state_ == first.random_state_
    same_results(again, first)
    np.testing.assert_array_equal(again.predict_proba(X), first.predict_proba(X))


def test_a_checkpoint_of_other_data_or_another_search_is_refused(tmp_path):
    X, y = problem(150)
    settings = QUICK | {"solvers": "paper", "rhos": None, "cv": 3, "random_state": 0}
    weights = np.ones(150)
    FPCClassifierCV(**settings, checkpoint=tmp_path).fit(X, y)
    other = X.copy()
    other[3, 1] += 1e-6
    for arguments in ((other, y), (X, -y), (X[:-1], y[:-1]), (X, y, 2 * weights)):
        with pytest.raises(CheckpointError, match="belongs to another fit"):
            FPCClassifierCV(**settings, checkpoint=tmp_path).fit(*arguments)
    for changes, word in (
        ({"cv": 4}, "splits"),
        ({"degrees": (1, 3)}, "degrees"),
        ({"n_centers": 7}, "n_centers"),
        ({"scoring": "roc_auc"}, "scoring"),
        ({"screen": False}, "screen"),
        ({"random_state": 1}, "seed"),
        ({"centers": X[:10]}, "centers"),
    ):
        with pytest.raises(CheckpointError, match=f"its {word} is"):
            FPCClassifierCV(**settings | changes, checkpoint=tmp_path).fit(X, y)
    with pytest.raises(CheckpointError, match="belongs to another fit"):
        paper_classifier(1, random_state=0, checkpoint=tmp_path).fit(X, y)


@pytest.mark.parametrize("sizes", [(6, 2), (2, 6)])
def test_more_or_less_memory_after_a_crash(tmp_path, monkeypatch, save_always, sizes):
    """By default the limit is half of what is free, which is never the same twice."""
    X, y = problem()
    settings = SEARCHED | {"n_centers": (4, 7, 10), "degrees": 2, "refit": False}
    expected = FPCClassifierCV(**settings).fit(X, y)
    original = LocalBackend.fit_problems
    for number, size in enumerate(sizes):
        with monkeypatch.context() as patch:

            def at_once(*args, n=size, **options):
                return original(*args, **options)[0], n

            patch.setattr(LocalBackend, "fit_problems", staticmethod(at_once))
            if number == 0:
                at_call(patch, LocalEngine, "sweep", 4, interrupt)
                with pytest.warns(ConvergenceWarning, match="Fit again with the same checkpoint"):
                    FPCClassifierCV(**settings, checkpoint=tmp_path, n_jobs=1).fit(X, y)
            else:
                resumed = FPCClassifierCV(**settings, checkpoint=tmp_path).fit(X, y)
    same_results(resumed, expected, atol=1e-9)


def test_a_callable_scorer_is_known_again_in_another_process(tmp_path):
    def made():  # as a new process would make it
        def scorer(estimator, X, y):
            return np.mean(estimator.predict(X) == y)

        return scorer

    X, y = problem(100)
    settings = QUICK | {"solvers": "paper", "rhos": None, "cv": 2, "random_state": 0}
    first, again = (
        FPCClassifierCV(**settings, scoring=scorer, checkpoint=tmp_path).fit(X, y)
        for scorer in (made(), made())
    )
    same_results(again, first)


def test_ratios_of_any_type_are_saved(tmp_path):
    X, y = problem(100)
    ratios = np.array([1e-4, 1e-2], dtype=np.float32)
    settings = QUICK | {"solvers": "paper", "rhos": ratios, "cv": 2, "random_state": 0}
    first = FPCClassifierCV(**settings, checkpoint=tmp_path).fit(X, y)
    assert set(first.cv_results_["param_rho"]) == {float(rho) for rho in ratios}
    same_results(FPCClassifierCV(**settings, checkpoint=tmp_path).fit(X, y), first)


def test_iterations_are_counted_alike_after_a_crash(tmp_path, monkeypatch, save_always):
    X, y = problem()
    settings = SEARCHED | {"tol": 0, "degrees": 2, "max_iter": 20, "refit": False}
    expected = FPCClassifierCV(**settings).fit(X, y)
    with monkeypatch.context() as patch:
        at_call(patch, LocalEngine, "sweep", 8, interrupt)
        with pytest.warns(ConvergenceWarning, match="Fit again with the same checkpoint"):
            FPCClassifierCV(**settings, checkpoint=tmp_path, n_jobs=1).fit(X, y)
    resumed = FPCClassifierCV(**settings, checkpoint=tmp_path).fit(X, y)
    np.testing.assert_array_equal(resumed.cv_results_["n_iter"], expected.cv_results_["n_iter"])
