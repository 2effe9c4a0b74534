"""Newton's method on some of the rows first: which rows, when, and to what end."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from clocks import give_rates
from oracles import kernel, lp_optimum
from polysift.engine import budget
from polysift.engine.budget import SERIAL, Execution, Shape
from polysift.engine.local import LocalEngine
from polysift.engine.sampling import Draw
from polysift.runtime.checkpoints import Checkpoint
from polysift.solvers import newton
from polysift.solvers.newton import (
    EXPECTED_PASSES,
    EXPECTED_PASSES_LATE,
    EXPECTED_PASSES_ROUGH,
    ROUGH_TOLERANCE,
    Newton,
    NewtonSettings,
)
from polysift.solvers.subsample import _training_set
from problems import noisy_problem, paper_classifier
from solving import engine_for

X, Y = noisy_problem(np.random.default_rng(0), 9000, 3)


@pytest.fixture(autouse=True)
def few_rows(monkeypatch):
    """A tenth of the rows is enough to begin with."""
    monkeypatch.setattr(newton, "MIN_SUBSAMPLE_ROWS", 900)
    monkeypatch.setattr(newton, "SUBSAMPLE_ROWS_PER_CENTER", 20)


def classifier(degree=2, **changes):
    return paper_classifier(degree, solver="newton", **({"random_state": 0} | changes))


def without_subsample(monkeypatch, clf, *data):
    with monkeypatch.context() as patch:
        patch.setattr(NewtonSettings, "subsample_rows", lambda self, rows, centers: 0)
        return clf.fit(*data)


def loss(clf, X, y, weights=None):
    return np.average(np.maximum(0, 1 - y * clf.decision_function(X)), weights=weights)


def test_how_many_rows():
    assert NewtonSettings().subsample_rows(3599, 10) == 0
    assert NewtonSettings().subsample_rows(3600, 10) == 900
    assert NewtonSettings().subsample_rows(10_000, 100) == 2000


def test_the_rows_count_as_often_as_they_stand_for(rng):
    weights = rng.integers(0, 3, len(Y)).astype(float)
    engine = engine_for(X, Y, X[:10], 2, weights=weights)
    picked = engine.pick(Draw(7, 0.1))
    some = _training_set(picked, engine._data)
    assert 0.05 * len(Y) < some.source.n_rows < 0.1 * len(Y)  # a third have no weight
    assert some.total_weight() == pytest.approx(weights.sum(), rel=0.15)
    rows = some.source.rows((0, some.source.n_rows))
    places = [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in rows]
    assert places == sorted(places)
    np.testing.assert_array_equal(some.codes, engine._data.codes[places])
    np.testing.assert_allclose(some.weights, weights[places] / 0.1)


def test_it_reaches_the_minimum_without_a_gram_matrix_of_all_rows(monkeypatch):
    C = X[:10]
    optimum, _ = lp_optimum(kernel(X, C, 2), Y)
    clf = classifier(centers=C, scaler=None).fit(X, Y)
    assert clf.status_ == "minimum" and "sample" in clf.timings_
    assert optimum * (1 - 1e-9) <= loss(clf, X, Y) <= 1.003 * optimum
    alone = without_subsample(monkeypatch, classifier(centers=C, scaler=None), X, Y)
    assert "sample" not in alone.timings_
    assert clf.n_iter_ <= alone.n_iter_  # the passes over all rows
    assert loss(clf, X, Y) == pytest.approx(loss(alone, X, Y), rel=2e-3)


@pytest.mark.own_memory("it counts passes over a fit that keeps features")
def test_a_rough_tolerance_takes_one_pass_over_all_rows(monkeypatch):
    kept = []
    begin = LocalEngine.__init__

    def watch(self, data, feature_map, pool, execution=SERIAL, **options):
        kept.append((data.source.n_rows, execution.keep_features))
        begin(self, data, feature_map, pool, execution, **options)

    monkeypatch.setattr(LocalEngine, "__init__", watch)
    exact, rough = classifier().fit(X, Y), classifier(tol=2 * ROUGH_TOLERANCE).fit(X, Y)
    assert rough.n_iter_ == 1 < exact.n_iter_ and rough.status_ == "minimum"
    assert loss(rough, X, Y) <= 1.1 * loss(exact, X, Y)
    few, (m, kept_exact), fewer, (again, kept_rough) = kept[1], kept[0], kept[3], kept[2]
    assert few == fewer and few[0] < m == again == len(X)
    assert kept_exact and not kept_rough  # for a single pass that would not pay


def test_a_loss_that_says_more_of_the_rows_drawn_than_of_all(monkeypatch, rng):
    """Some of the rows can be told apart, all of them cannot."""
    y = np.where(X[:, 0] + 0.1 * X[:, 1] > 0.5, 1, -1)
    y[rng.random(len(y)) < 0.002] *= -1
    clf, alone = classifier(6).fit(X, y), without_subsample(monkeypatch, classifier(6), X, y)
    assert clf.status_ == "minimum" and loss(clf, X, y) <= 1.1 * loss(alone, X, y)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("limit", ["40MB", "2GB"])
@pytest.mark.usefixtures("threaded")
def test_the_same_bits_for_any_threads_and_memory(threads, limit):
    first = classifier(n_jobs=2, memory_limit="500MB").fit(X, Y)
    again = classifier(n_jobs=threads, memory_limit=limit).fit(X, Y)
    np.testing.assert_array_equal(first.coef_, again.coef_)


def test_classes_weights_folds_and_kinds_of_rows(monkeypatch, rng):
    many = np.clip(3 * X[:, 0] + 0.3 * rng.normal(size=len(X)), 0, 2.9).astype(int)
    weights = rng.integers(0, 3, len(Y)).astype(float)
    Z = np.where(X < 0.3, 0.0, X)
    for data in ((X, many, weights), (sp.csr_array(Z), Y), (X.astype(np.float32), Y)):
        clf = classifier(calibration="sigmoid").fit(*data)
        assert clf.status_ == "minimum" and "sample" in clf.timings_
        alone = without_subsample(monkeypatch, classifier(calibration="sigmoid"), *data)
        assert clf.history_["objective"].min() == pytest.approx(
            alone.history_["objective"].min(), rel=3e-3
        )
        difference = clf.predict_proba(data[0]) - alone.predict_proba(data[0])
        assert np.abs(difference).mean() < 0.03


def test_a_sample_of_one_class(rng):
    rare = np.where(np.arange(len(Y)) % 3000 == 17, 1, -1)
    clf = classifier().fit(X, rare)
    assert clf.status_ in ("minimum", "zero_loss")
    assert loss(clf, X, rare) <= 2 * 3 / len(Y) * 1.01  # no more than by saying no throughout


def test_hardly_a_row_with_weight(rng):
    weights = np.zeros(len(Y))
    weights[:40] = 1.0
    clf = classifier().fit(X, Y, weights)  # fewer rows are drawn than there are centers
    assert loss(clf, X[:40], Y[:40]) < 1.0  # that of the score 0


def test_time_limits(clock):
    clock.tick = 1.0
    clf = classifier(time_limit=0.5)
    with pytest.raises(TimeoutError, match="time_limit"):
        clf.fit(X, Y)


def interrupt(monkeypatch, when):
    finish = Newton.finish

    def stop(self, *args):
        finish(self, *args)
        if when(self):
            raise KeyboardInterrupt

    monkeypatch.setattr(Newton, "finish", stop)


def test_an_interrupt_before_there_is_a_model_of_all_rows(monkeypatch):
    interrupt(monkeypatch, lambda run: run.settings.tol == ROUGH_TOLERANCE and run.iterates == 3)
    with pytest.raises(KeyboardInterrupt):
        classifier().fit(X, Y)


def test_a_checkpoint_goes_on_to_the_same_bits(monkeypatch, tmp_path):
    whole = classifier(5).fit(X, Y)
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "due", lambda self: True)
        interrupt(patch, lambda run: run.settings.tol < ROUGH_TOLERANCE and run.iterates == 3)
        with pytest.warns(match="interrupted"):
            part = classifier(5, checkpoint=tmp_path / "c").fit(X, Y)
    assert part.n_iter_ == 3
    resumed = classifier(5, checkpoint=tmp_path / "c").fit(X, Y)
    assert resumed.n_iter_ == whole.n_iter_ > 3
    np.testing.assert_array_equal(whole.coef_, resumed.coef_)


def test_warm_starts_begin_where_they_are():
    clf = classifier(warm_start=True).fit(X, Y)
    clf.fit(X, Y)
    assert "sample" not in clf.timings_ and clf.n_iter_ <= 12


def test_the_forecast(monkeypatch):
    """With the rates of a row given: a measured one is another each time."""
    give_rates(monkeypatch)
    many = np.tile(X, (20, 1))
    plan = classifier(n_jobs=1).plan(many, np.tile(Y, 20), show=False)
    assert plan.passes == 2 + EXPECTED_PASSES_LATE
    assert {"sample", "curvature", "sweep"} <= set(plan.seconds_by_phase)
    assert plan.seconds_by_phase["Gram matrix"] < plan.seconds_by_phase["sweep"]
    assert classifier(n_jobs=1).plan(X[:900], Y[:900], show=False).passes == 2 + EXPECTED_PASSES
    rough = classifier(n_jobs=1, tol=ROUGH_TOLERANCE).plan(many, np.tile(Y, 20), show=False)
    assert rough.passes == 2 + EXPECTED_PASSES_ROUGH and rough.seconds < plan.seconds


def test_memory_counts_the_rows():
    shape = Shape(10**6, 50, 100, 1, 8, False, False, 0, hessians=True)
    more = Shape(10**6, 50, 100, 1, 8, False, False, 0, hessians=True, subsample=10_000)
    means = Execution(2, 4)
    added = budget.peak_bytes(more, means) - budget.peak_bytes(shape, means)
    assert added >= 10_000 * 50 * 8
