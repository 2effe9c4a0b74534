"""Probabilities of FPCClassifier: from scores of rows by models that did not see them."""

from __future__ import annotations

import os
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.utils.estimator_checks import parametrize_with_checks

from polysift import CheckpointError
from polysift.engine.budget import Execution, Shape, fit_in, peak_bytes
from polysift.engine.local import LocalEngine
from polysift.features.centers import hash_rows
from polysift.features.survey import FOLD_SEED
from polysift.runtime import checkpoints
from polysift.training.calibration import calibrate
from polysift.training.folds import stratified_folds
from problems import noisy_problem, paper_classifier


def problem(m=400, classes=2, seed=0):
    X, y = noisy_problem(np.random.default_rng(seed), m, 3)
    y = (y > 0).astype(int)
    return X, y + (X[:, 0] > 0.7) if classes == 3 else y


def quiet_fit(estimator, *arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator.fit(*arguments)


def by_hand(clf, X, y, classes, weights=None):
    """Return the calibration of a classifier's like, by a plain fit per fold."""
    kind = clf.calibration
    scores, cells = np.empty((len(y), 1 if classes == 2 else classes)), np.full(len(y), -1)
    parts = stratified_folds(y, weights, hash_rows(X, FOLD_SEED), 5).fold_parts
    for fold in range(5):
        train, test = np.flatnonzero((parts >= 0) & (parts != fold)), np.flatnonzero(parts == fold)
        plain = clone(clf).set_params(calibration=None)
        quiet_fit(plain, X[train], y[train], None if weights is None else weights[train])
        scores[test] = plain.decision_function(X[test]).reshape(len(test), -1)
        cells[test] = fold
    return calibrate(kind, scores, y, classes, weights, cells)


@pytest.mark.parametrize("kind", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("solver", ["paper", "converged"])
def test_folds_in_one_run_equal_a_fit_per_fold(kind, classes, solver):
    X, y = problem(classes=classes)
    C = np.random.default_rng(1).random((8, 3))
    clf = paper_classifier(
        2, centers=C, scaler=None, solver=solver, rho=1e-4, max_iter=12, calibration=kind
    )
    quiet_fit(clf, X, y)
    expected = by_hand(clf, X, y, classes)
    scores = clf.decision_function(X).reshape(len(y), -1)
    np.testing.assert_allclose(
        clf.predict_proba(X), expected.calibrator.probabilities(scores), atol=1e-6
    )
    report = clf.calibration_report_
    assert report["brier_score"] == pytest.approx(expected.report["brier_score"], abs=1e-7)
    assert report["log_loss"] == pytest.approx(expected.report["log_loss"], abs=1e-6)
    plain = quiet_fit(clone(clf).set_params(calibration=None), X, y)
    np.testing.assert_allclose(clf.coef_, plain.coef_, rtol=1e-6, atol=1e-8)
    assert (clf.n_iter_, clf.status_) == (plain.n_iter_, plain.status_)
    np.testing.assert_allclose(
        clf.history_["objective"], plain.history_["objective"], rtol=1e-9, equal_nan=True
    )


def test_weights_count_in_calibration():
    X, y = problem()
    w = np.random.default_rng(2).integers(0, 3, len(y)).astype(float)
    C = np.random.default_rng(1).random((8, 3))
    clf = paper_classifier(2, centers=C, scaler=None, rho=1e-4, calibration="sigmoid").fit(X, y, w)
    expected = by_hand(clf, X, y, 2, w)
    scores = clf.decision_function(X)[:, None]
    np.testing.assert_allclose(
        clf.predict_proba(X), expected.calibrator.probabilities(scores), atol=1e-7
    )
    assert clf.calibration_report_["brier_score"] == pytest.approx(expected.report["brier_score"])
    assert clf.calibration_report_["reliability"]["weight"].sum() == pytest.approx(w.sum())
    kept = w > 0
    dropped = clone(clf).fit(X[kept], y[kept], w[kept])
    np.testing.assert_allclose(clf.predict_proba(X), dropped.predict_proba(X), atol=1e-8)


@pytest.mark.parametrize("kind", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_a_row_of_weight_two_is_calibrated_as_the_row_given_twice(kind, convert):
    X, y = problem(classes=3)
    w = np.random.default_rng(2).integers(0, 4, len(y))
    order = np.random.default_rng(3).permutation(w.sum())
    twice, labels = X.repeat(w, axis=0)[order], y.repeat(w)[order]
    C = np.random.default_rng(1).random((8, 3))
    clf = paper_classifier(2, centers=C, calibration=kind)
    weighted = clone(clf).fit(convert(X), y, sample_weight=w)
    repeated = clone(clf).fit(convert(twice), labels)
    np.testing.assert_allclose(
        weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-6, atol=1e-8
    )
    scores = (model.calibration_report_["brier_score"] for model in (weighted, repeated))
    assert next(scores) == pytest.approx(next(scores))


def test_probabilities_of_few_distinct_rows_are_their_shares():
    """Each distinct row is in every fold: none could be predicted from the others."""
    rng = np.random.default_rng(0)
    levels = np.array(["a", "b", "c"], dtype=object)
    drawn = rng.integers(0, 3, 3000)
    y = rng.random(3000) < np.array([0.9, 0.2, 0.6])[drawn]
    clf = paper_classifier(2, calibration="isotonic", random_state=0)
    clf.fit(levels[drawn][:, None], y)
    shares = [np.mean(y[drawn == level]) for level in range(3)]
    found = clf.predict_proba(levels[:, None])[:, 1]
    np.testing.assert_allclose(found, shares, atol=0.03)


@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_sum_to_one_in_the_order_of_classes(classes):
    X, y = problem(600, classes)
    names = np.array(["zebra", "ant", "fox"])[y]
    clf = paper_classifier(3, calibration="sigmoid", random_state=0).fit(X, names)
    p = clf.predict_proba(X)
    assert p.shape == (600, classes)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    order = np.argsort(p, axis=1)[:, -1]
    assert np.mean(clf.classes_[order] == names) > 0.6
    assert log_loss(names, p, labels=clf.classes_) < np.log(classes)


def test_the_report_is_of_rows_that_were_not_seen():
    X, y = problem(3000)
    clf = paper_classifier(3, calibration="isotonic", random_state=0).fit(X[:1500], y[:1500])
    report = clf.calibration_report_
    unseen = brier_score_loss(y[1500:], clf.predict_proba(X[1500:])[:, 1])
    assert report["brier_score"] == pytest.approx(unseen, abs=0.02)
    curve = report["reliability"]
    assert len(curve["predicted"]) == len(curve["observed"]) == len(curve["weight"]) <= 10
    assert np.abs(curve["predicted"] - curve["observed"]).mean() < 0.05


def test_probabilities_are_as_good_as_scikit_learns():
    X, y = problem(2000)
    for kind in ("sigmoid", "isotonic"):
        clf = paper_classifier(3, calibration=kind, random_state=0).fit(X[:1000], y[:1000])
        theirs = CalibratedClassifierCV(paper_classifier(3, random_state=0), method=kind, cv=5)
        theirs.fit(X[:1000], y[:1000])
        ours, other = (
            brier_score_loss(y[1000:], model.predict_proba(X[1000:])[:, 1])
            for model in (clf, theirs)
        )
        assert ours < other + 0.005


def test_there_is_no_predict_proba_unless_it_was_asked_for():
    X, y = problem(100)
    clf = paper_classifier(2).fit(X, y)
    assert not hasattr(clf, "predict_proba") and not hasattr(clf, "calibrator_")
    clf.calibration = "sigmoid"
    with pytest.raises(NotFittedError, match="calibration was set after fit"):
        clf.predict_proba(X)
    clf.fit(X, y)
    assert clf.calibrator_["kind"] == "sigmoid"
    clf.set_params(calibration=None).fit(X, y)
    assert not hasattr(clf, "predict_proba") and not hasattr(clf, "calibrator_")
    assert not hasattr(clf, "calibration_report_")


def test_wrong_calibration():
    X, y = problem(60)
    for value in ("platt", True, 1):
        with pytest.raises(ValueError, match="calibration must be one of 'sigmoid', 'isotonic'"):
            paper_classifier(calibration=value).fit(X, y)
    with pytest.raises(ValueError, match="warm_start=True cannot go with calibration"):
        paper_classifier(calibration="sigmoid", warm_start=True).fit(X, y)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.usefixtures("threaded")
def test_calibration_is_the_same_bit_for_bit_for_any_number_of_threads(dtype):
    X, y = problem(60_000, 3)
    X = X.astype(dtype)
    clf = paper_classifier(3, 20, max_iter=2, calibration="isotonic", random_state=0)
    one = clone(clf).set_params(n_jobs=1).fit(X, y)
    two = clone(clf).set_params(n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(one.coef_, two.coef_)
    for name, value in one.calibrator_.items():
        np.testing.assert_array_equal(value, two.calibrator_[name])


def test_the_model_does_not_depend_on_the_memory_limit():
    X, y = problem(6000)
    clf = paper_classifier(3, calibration="sigmoid", max_iter=3, tol=1e-300, random_state=0)
    free = clone(clf).fit(X, y)
    shape = Shape(6000, 3, 20, 1, 8, False, False, 0, fold_parts=5, problems=6, calibrated=True)
    least = peak_bytes(shape, Execution(1, 1, spill=True))
    assert fit_in(least, shape, 2).spill
    tight = clone(clf).set_params(memory_limit=least).fit(X, y)
    np.testing.assert_array_equal(tight.predict_proba(X), free.predict_proba(X))
    with pytest.raises(MemoryError, match="memory_limit"):
        clone(clf).set_params(memory_limit=least - 1).fit(X, y)


def test_sparse_rows_and_pickles():
    X, y = problem()
    X = X * (np.random.default_rng(0).random(X.shape) < 0.5)
    clf = paper_classifier(2, 8, rho=1e-4, calibration="sigmoid", random_state=0)
    dense = clone(clf).fit(X, y)
    sparse = clone(clf).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(
        sparse.predict_proba(sp.csr_array(X)), dense.predict_proba(X), atol=1e-8
    )
    again = pickle.loads(pickle.dumps(dense))
    np.testing.assert_array_equal(again.predict_proba(X), dense.predict_proba(X))


@pytest.fixture
def save_always(monkeypatch):
    monkeypatch.setattr(checkpoints.Checkpoint, "due", lambda self: True)
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.mark.parametrize("stop_at", [1, 3, 5])
def test_an_interrupted_fit_goes_on_to_the_same_probabilities(
    tmp_path, monkeypatch, save_always, stop_at
):
    X, y = problem()
    clf = paper_classifier(
        3, solver="converged", max_iter=6, calibration="sigmoid", random_state=0, n_jobs=1
    )
    expected = quiet_fit(clone(clf), X, y).predict_proba(X)
    original, calls = LocalEngine.sweep, []

    def failing(self, *arguments):
        calls.append(1)
        if len(calls) == stop_at:
            raise MemoryError  # unlike Ctrl-C, this ends the fit at any moment
        return original(self, *arguments)

    clf.set_params(checkpoint=tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(LocalEngine, "sweep", failing)
        with pytest.raises(MemoryError):
            clf.fit(X, y)
    np.testing.assert_array_equal(quiet_fit(clf, X, y).predict_proba(X), expected)
    with pytest.raises(CheckpointError, match="its calibration is"):
        clone(clf).set_params(calibration=None).fit(X, y)


@pytest.mark.parametrize("calibration", [None, "sigmoid"])
def test_a_finished_fit_is_found_again_with_all_its_iterations(tmp_path, calibration):
    X, y = problem(100)
    clf = paper_classifier(2, tol=0, calibration=calibration, random_state=0, checkpoint=tmp_path)
    first = clone(clf).fit(X, y)
    again = clone(clf).fit(X, y)
    np.testing.assert_array_equal(first.coef_, again.coef_)
    assert again.n_iter_ == first.n_iter_ == 5


def test_ctrl_c_calibrates_what_there_is(monkeypatch):
    X, y = problem()
    original, calls = LocalEngine.sweep, []

    def pressed(self, *arguments):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return original(self, *arguments)

    monkeypatch.setattr(LocalEngine, "sweep", pressed)
    clf = paper_classifier(
        3, solver="converged", max_iter=50, calibration="sigmoid", random_state=0
    )
    with pytest.warns(ConvergenceWarning, match="interrupted after 4 iterations"):
        clf.fit(X, y)
    assert clf.status_ == "interrupted"
    assert np.isfinite(clf.predict_proba(X)).all()


def test_rare_classes_are_calibrated_with_what_there_is():
    X, _ = problem(60)
    for count in (1, 2, 4):
        labels = np.append(np.zeros(60 - count, dtype=int), np.ones(count, dtype=int))
        for kind in ("sigmoid", "isotonic"):
            p = paper_classifier(1, calibration=kind).fit(X, labels).predict_proba(X)
            assert np.isfinite(p).all() and p[:, 1].mean() < 0.3


@pytest.mark.parametrize("solver", ["paper", "converged"])
def test_one_row_of_each_class(solver):
    X = np.array([[0.1], [0.5], [0.9]])
    clf = paper_classifier(1, solver=solver, calibration="sigmoid")
    message = ""
    try:
        assert np.isfinite(quiet_fit(clf, X, [0, 1, 2]).predict_proba(X)).all()
    except ValueError as error:
        message = str(error)
    assert not message or "calibration" in message


def test_a_callback_stops_the_folds_too(monkeypatch):
    pytest.importorskip("sklearn.callback", reason="this scikit-learn has no callbacks")
    from recording import Recorder

    X, y = problem()
    original, calls = LocalEngine.sweep, []
    monkeypatch.setattr(LocalEngine, "sweep", lambda *a: calls.append(1) or original(*a))
    clf = paper_classifier(
        2, solver="converged", max_iter=50, calibration="sigmoid", random_state=0
    )
    clf.set_callbacks(Recorder(stop_after=2)).fit(X, y)
    assert clf.status_ == "callback" and clf.n_iter_ == 2
    assert len(calls) <= 3


def test_the_forecast_counts_the_pass_for_scores():
    X, y = problem(100)
    plain = paper_classifier(2).plan(X, y)
    assert paper_classifier(2, calibration="sigmoid").plan(X, y).passes == plain.passes + 1


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::scipy.linalg.LinAlgWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")  # scikit-learn's own deprecations
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([paper_classifier(calibration="sigmoid")])
def test_scikit_learn(estimator, check):
    check(estimator)
