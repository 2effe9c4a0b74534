"""The search from the choice of a plain fit, over growing samples of the rows, and its ends."""

from __future__ import annotations

import contextlib
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import balanced_accuracy_score, f1_score
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold, TimeSeriesSplit

import polysift
from polysift import FPCClassifier, FPCClassifierCV
from polysift.engine.local import LocalEngine
from polysift.runtime.progress import Monitor
from polysift.selection import costs, levels, race, variants
from polysift.selection.race import Race
from searching import (
    at_call,
    fold_scores,
    interrupt,
    margin,
    on_given_centers,
    problem,
    quiet_fit,
    same_results,
)

QUICK = {"n_centers": 12, "cv": 3, "random_state": 0}


@pytest.fixture
def small_levels(monkeypatch):
    """Let samples begin with few rows."""
    monkeypatch.setattr(levels, "FIRST_LEVEL_ROWS", 150)
    monkeypatch.setattr(variants, "FIRST_ROWS", 150)


def rows_of(level):
    source = level.data.source
    return np.concatenate([source.rows(part) for _, part in source.parts()])


@pytest.fixture
def races(monkeypatch):
    """Record the races of searches."""
    found, original = [], Race.__init__

    def init(self, *arguments):
        original(self, *arguments)
        found.append(self)

    monkeypatch.setattr(Race, "__init__", init)
    return found


def test_the_choice_of_a_plain_fit_comes_first_and_is_never_lost():
    X, y = problem(500, 4)
    search = FPCClassifierCV(cv=3, random_state=0).fit(X, y)
    results = search.cv_results_
    plain = FPCClassifier(random_state=0).fit(X, y)
    first = results["params"][0]
    assert results["automatic"][0] and first["rho"] == "auto"
    assert (first["kernel"], first["degree"]) == (plain.kernel_, plain.degree_)
    assert first["n_centers"] == plain.n_centers_
    assert search.best_score_ >= results["mean_test_score"][0]
    assert set(results["param_kernel"]) == {"spline", "polynomial"}
    assert (results["status"] == "finished").all(), "there are too few rows for a sample"
    assert search.predict_proba(X).shape == (500, 2), "the logistic loss has probabilities"


@pytest.mark.parametrize("rhos", ["auto", ["auto"]])
def test_the_best_parameters_fit_the_same_model_again(rhos):
    X, y = problem(400)
    search = FPCClassifierCV(**QUICK, rhos=rhos).fit(X, y)
    again = FPCClassifier(**search.best_params_, random_state=0).fit(X, y)
    best = search.best_estimator_
    assert (best.kernel_, best.degree_) == (again.kernel_, again.degree_)
    np.testing.assert_allclose(
        best.decision_function(X), again.decision_function(X), rtol=1e-5, atol=1e-7
    )
    if rhos == ["auto"]:
        assert set(search.cv_results_["param_rho"]) == {"auto"}


@pytest.mark.usefixtures("small_levels")
def test_bad_candidates_see_a_sample_only(races):
    X, y = problem(2500, 4)
    search = FPCClassifierCV(**QUICK).fit(X, y)
    results = search.cv_results_
    finished = results["status"] == "finished"
    assert set(results["status"]) == {"finished", "screened"}
    assert (results["n_rows"][finished] == 2500).all()
    assert results["n_rows"][~finished].max() < 2500
    assert search.best_score_ == results["mean_test_score"][finished].max()
    assert search.n_refit_rows_ == search.best_estimator_.training_summary_["rows"] == 2500
    # Candidates of the choice of a plain fit are always among those that see all rows.
    assert results["automatic"][finished].any()
    found = races[0]._context.levels
    assert [level.whole for level in found] == [False, False, True]
    one, two, three = (level.data.source.n_rows for level in found)
    assert 100 < one < 200 and 400 < two < 800 and three == 2500
    rows = [{row.tobytes() for row in rows_of(level)} for level in found[:2]]
    assert rows[0] < rows[1], "samples are nested"
    assert (np.diff(search.scores_over_time_[:, 0]) >= 0).all()
    assert search.status_message_ == "All candidates were compared."


@pytest.mark.usefixtures("small_levels", "threaded")
def test_the_same_bits_for_threads_and_without_samples_the_same_scores():
    X, y = problem(2000, 4)
    one, two = (FPCClassifierCV(**QUICK, n_jobs=n).fit(X, y) for n in (1, 2))
    same_results(one, two)
    np.testing.assert_array_equal(one.best_estimator_.coef_, two.best_estimator_.coef_)
    full = FPCClassifierCV(**QUICK, screen=False).fit(X, y)
    assert (full.cv_results_["status"] == "finished").all()
    keys = [repr(params) for params in full.cv_results_["params"]]
    for i in np.flatnonzero(one.cv_results_["status"] == "finished"):
        j = keys.index(repr(one.cv_results_["params"][i]))
        np.testing.assert_allclose(
            fold_scores(one.cv_results_)[i], fold_scores(full.cv_results_)[j], atol=1e-9
        )


@pytest.mark.usefixtures("small_levels")
@pytest.mark.parametrize("cv", [GroupKFold(3), TimeSeriesSplit(3), KFold(3)], ids=str)
def test_splits_are_those_of_all_rows_restricted_to_the_sample(cv, races):
    X, y = problem(1500)
    groups = np.random.default_rng(0).integers(0, 50, 1500)
    groups = groups if isinstance(cv, GroupKFold) else None
    search = FPCClassifierCV(**QUICK | {"cv": cv}).fit(X, y, groups=groups)
    sample, *_, whole = races[0]._context.levels
    number_of = {row.tobytes(): i for i, row in enumerate(X)}
    numbers = [number_of[row.tobytes()] for row in rows_of(sample)]
    for part, every in zip(sample.rounds, whole.rounds, strict=True):
        np.testing.assert_array_equal(part.fold_parts, every.fold_parts[numbers])
    assert search.n_splits_ == 3 and np.isfinite(search.decision_function(X)).all()


@pytest.mark.usefixtures("small_levels")
def test_a_sample_that_lacks_a_class_in_a_fold_is_left_out(races):
    X, y = problem(1500)
    y = np.where(np.arange(1500) % 300 == 0, 7, y)  # five rows
    FPCClassifierCV(**QUICK).fit(X, y)
    assert len(races[0]._context.levels) == 1


@pytest.mark.usefixtures("small_levels")
@pytest.mark.parametrize("end", ["limit", "interrupt"])
def test_every_end_leaves_a_model(clock, tmp_path, end):
    """Whenever a search is ended after its first model, the model loads and predicts."""
    X, y = problem(2500, 4)
    for owner, method, numbers in (
        (LocalEngine, "gram", (17, 26, 33)),
        (LocalEngine, "sweep", (6, 20, 40, 58)),
        (LocalEngine, "scores", (2, 11)),
    ):
        for number in numbers:
            search = FPCClassifierCV(**QUICK, time_limit=50)

            def late():
                clock.now += 60

            act = late if end == "limit" else interrupt
            with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                calls = at_call(patch, owner, method, number, act)
                search.fit(X, y)
            assert len(calls) >= number, (method, number, len(calls))
            file = tmp_path / f"{method}-{number}.polysift"
            polysift.save(search, file)
            again = polysift.load(file)
            np.testing.assert_array_equal(again.predict(X), search.predict(X))
            assert np.isfinite(search.decision_function(X)).all()
            assert search.status_ in ("finished", "time_limit", "interrupted")
            assert search.n_refit_rows_ == search.best_estimator_.training_summary_["rows"]


@pytest.mark.usefixtures("small_levels")
def test_a_model_of_a_sample_says_so(clock, monkeypatch):
    X, y = problem(2500, 4)

    def late(self, level):
        original(self, level)
        clock.now += 60

    original = Race._fit_to
    monkeypatch.setattr(Race, "_fit_to", late)
    search = FPCClassifierCV(**QUICK, time_limit=50)
    with pytest.warns(ConvergenceWarning, match=r"time_limit struck.*fitted to 1\d\d row"):
        search.fit(X, y)
    assert search.status_ == "time_limit" and 100 < search.n_refit_rows_ < 200
    assert search.cv_results_["n_rows"][search.best_index_] == search.n_refit_rows_
    assert np.isfinite(search.decision_function(X)).all()


@pytest.mark.usefixtures("small_levels")
def test_time_that_does_not_suffice_for_a_stage_is_left_to_the_refit(clock, monkeypatch):
    X, y = problem(2500, 4)
    monkeypatch.setattr(costs, "EXTRAPOLATED_SHARE", 1.0)
    whole = []
    original = race.Stage.run

    def run(self):
        original(self)
        clock.now += 0.01
        whole.append(self._level.whole)

    monkeypatch.setattr(race.Stage, "run", run)
    search = FPCClassifierCV(**QUICK, time_limit=1.0)
    with contextlib.suppress(TimeoutError):
        quiet_fit(search, X, y)
        assert search.n_refit_rows_ == 2500 or not any(whole)


def test_a_search_without_samples_is_as_before(monkeypatch):
    calls = at_call(monkeypatch, Monitor, "lift", 0, interrupt)
    X, y = problem(300)
    search = FPCClassifierCV(**QUICK).fit(X, y)
    assert search.n_refit_rows_ == 300 and calls


@pytest.mark.usefixtures("small_levels")
def test_levels_are_resumed(tmp_path, monkeypatch):
    X, y = problem(2500, 4)
    make = FPCClassifierCV(**QUICK, checkpoint=tmp_path / "whole")
    expected = clone(make).fit(X, y)
    for number in (4, 9, 40, 50):
        cut = clone(make).set_params(checkpoint=tmp_path / f"{number}")
        with monkeypatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            calls = at_call(patch, LocalEngine, "sweep", number, interrupt)
            with contextlib.suppress(KeyboardInterrupt):
                cut.fit(X, y)
        assert len(calls) >= number
        cut.fit(X, y)
        same_results(cut, expected)
        np.testing.assert_array_equal(cut.best_estimator_.coef_, expected.best_estimator_.coef_)


@pytest.mark.usefixtures("small_levels")
def test_a_log_has_a_line_for_each_stage(capsys):
    X, y = problem(2500, 4)
    FPCClassifierCV(**QUICK, verbose=1).fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    stages = [line for line in lines if "best so far" in line]
    assert 8 < len(stages) < 20 and len(lines) - len(stages) < 3
    assert "automatic choice (" in stages[1] and " rows): 0." in stages[1]


@pytest.mark.parametrize("solver", ["lbfgs", "newton"])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_smooth_losses_equal_plain_fits_fold_by_fold(solver, loss):
    X, y = problem(200)
    splits = list(StratifiedKFold(3).split(X, y))
    search = on_given_centers(
        solvers=solver, losses=loss, degrees=2, scoring=margin, max_iter=(3, 7), cv=splits
    ).fit(X, y)
    for params, ours in zip(
        search.cv_results_["params"], fold_scores(search.cv_results_), strict=True
    ):
        for (train, test), score in zip(splits, ours, strict=True):
            plain = FPCClassifier(**params, centers=search.centers)
            quiet_fit(plain, X[train], y[train])
            # Newton's method draws the rows of a Hessian by the number of all rows.
            close = 5e-3 if solver == "newton" else 1e-6
            assert margin(plain, X[test], y[test]) == pytest.approx(score, abs=close)


def test_kernels_solvers_and_losses_are_combined():
    X, y = problem(150)
    search = FPCClassifierCV(
        2,
        8,
        kernels=("polynomial", "spline"),
        scalers="standard",
        solvers=("paper", "lbfgs", "newton"),
        losses=("hinge", "logistic"),
        rhos=["auto"],
        max_iter=5,
        cv=2,
        screen=False,
        random_state=0,
    )
    results = search.fit(X, y).cv_results_
    pairs = {(params["solver"], params["loss"]) for params in results["params"]}
    assert pairs == {
        *(("paper", loss) for loss in ("hinge", "logistic")),
        *(("newton", loss) for loss in ("hinge", "logistic")),
        ("lbfgs", "logistic"),
    }
    assert set(results["param_kernel"]) == {"polynomial", "spline"}
    assert (results["status"] == "finished").all()


def test_several_metrics():
    X, y = problem(300)
    settings = {"degrees": (1, 2), "scalers": "minmax", "solvers": "paper", **QUICK}
    search = FPCClassifierCV(
        **settings, scoring=["accuracy", "roc_auc"], refit="roc_auc", screen=False
    ).fit(X, y)
    results = search.cv_results_
    np.testing.assert_array_equal(results["mean_test_score"], results["mean_test_roc_auc"])
    for name in ("accuracy", "roc_auc"):
        alone = FPCClassifierCV(**settings, scoring=name, screen=False).fit(X, y).cv_results_
        np.testing.assert_allclose(results[f"mean_test_{name}"], alone["mean_test_score"])
        np.testing.assert_allclose(results[f"split1_test_{name}"], alone["split1_test_score"])
    assert search.best_score_ == results["mean_test_roc_auc"].max()
    named = {"a": "accuracy", "b": margin}
    search.set_params(scoring=named, refit=False).fit(X, y)
    np.testing.assert_allclose(search.best_score_, search.cv_results_["mean_test_a"].max())


def test_class_weights_are_searched_over():
    X, y = problem(400)
    keep = (y == 1) | (np.arange(400) % 8 == 0)
    X, y = X[keep], y[keep]
    settings = {"degrees": 2, "scalers": "minmax", "solvers": "paper", **QUICK, "screen": False}
    both = FPCClassifierCV(
        **settings, class_weight=[None, "balanced"], scoring="balanced_accuracy"
    ).fit(X, y)
    results = both.cv_results_
    for weight in (None, "balanced"):
        alone = FPCClassifierCV(**settings, class_weight=weight, scoring="balanced_accuracy").fit(
            X, y
        )
        own = [params["class_weight"] == weight for params in results["params"]]
        np.testing.assert_allclose(
            fold_scores(results)[own], fold_scores(alone.cv_results_), atol=1e-9
        )
        if both.best_params_["class_weight"] == weight:
            np.testing.assert_allclose(
                both.decision_function(X), alone.decision_function(X), atol=1e-7
            )
    assert both.best_estimator_.class_weight == both.best_params_["class_weight"] == "balanced"


@pytest.mark.parametrize("threshold", ["f1", "balanced"])
def test_thresholds_of_a_search(threshold):
    X, y = problem(600)
    keep = (y == 1) | (np.arange(600) % 8 == 0)
    X, y = X[keep], (y[keep] == -1).astype(int)  # the second class is the rare one
    settings = {"degrees": 2, "scalers": "minmax", "solvers": "paper", **QUICK}
    scoring = {"f1": "f1", "balanced": "balanced_accuracy"}[threshold]
    plain = FPCClassifierCV(**settings, scoring=scoring).fit(X, y)
    search = FPCClassifierCV(**settings, scoring=scoring, threshold=threshold).fit(X, y)
    assert search.best_score_ > plain.best_score_, "candidates are scored with thresholds"
    best = search.best_estimator_
    assert best.threshold == threshold and best.decision_thresholds_[0] < 0
    report = best.threshold_report_
    assert report["after"] > report["before"] and report["measure"] == threshold
    measure = {"f1": f1_score, "balanced": balanced_accuracy_score}[threshold]
    assert measure(y, search.predict(X)) > measure(y, plain.predict(X))


def test_the_forecast_of_a_search():
    X, y = problem(600)
    plain = FPCClassifier(n_jobs=1).plan(X, y, show=False)
    search = FPCClassifierCV(n_jobs=1)
    forecast = search.plan(X, y, show=False)
    assert forecast.rows == 600 and forecast.seconds > forecast.seconds_by_phase["search"] > 0
    assert forecast.centers == plain.centers
    assert not hasattr(search, "n_features_in_")
    more = FPCClassifierCV(effort="high", n_jobs=1).plan(X, y, show=False)
    assert more.seconds_by_phase["search"] > 0


@pytest.mark.parametrize(("rows", "centers", "count"), [(10_000, 400, 2), (10**6, 1414, 1)])
def test_how_many_variants_see_all_rows_depends_on_the_sizes(rows, centers, count):
    assert costs.final_variants(rows, centers) == count


@pytest.mark.usefixtures("small_levels")
def test_work_on_all_rows_is_limited_unless_it_is_asked_for(monkeypatch):
    X, y = problem(2500, 4)
    search = FPCClassifierCV(cv=3, n_centers=20, random_state=0)
    extra = costs.stage_operations(2500, 20, 1, 3, [7]) - 2500 * 20**2
    monkeypatch.setattr(costs, "MAX_EXTRA_OPERATIONS", 1.5 * extra)
    results = clone(search).fit(X, y).cv_results_
    (best,) = np.flatnonzero(results["status"] == "finished")
    assert results["automatic"][best] and results["params"][best]["rho"] == "auto"
    results = clone(search).set_params(effort="high").fit(X, y).cv_results_
    assert (results["status"] == "finished").sum() > 1
    monkeypatch.setattr(costs, "MAX_EXTRA_OPERATIONS", 0)
    short = clone(search).fit(X, y)
    assert not (short.cv_results_["status"] == "finished").any()
    assert short.status_ == "finished" and short.n_refit_rows_ == 2500
    assert short.status_message_.startswith("All candidates were compared, on ")


def test_without_samples_rivals_are_limited_from_the_last_on(monkeypatch, tmp_path):
    X, y = problem(500, 4)
    search = FPCClassifierCV(cv=3, n_centers=20, random_state=0)
    every = clone(search).fit(X, y)
    one = costs.stage_operations(500, 20, 1, 3, [7, 7, 7])
    monkeypatch.setattr(costs, "MAX_EXTRA_OPERATIONS", 3 * one)
    some = clone(search).set_params(checkpoint=tmp_path).fit(X, y)
    assert len(every.cv_results_["params"]) > len(some.cv_results_["params"]) == 9
    same_results(some, clone(search).set_params(checkpoint=tmp_path).fit(X, y))
    monkeypatch.setattr(costs, "MAX_EXTRA_OPERATIONS", 0)
    least = clone(search).fit(X, y)
    assert list(least.cv_results_["status"]) == ["finished", "not run", "not run"]
    assert least.best_params_["rho"] == "auto"
