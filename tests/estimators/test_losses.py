"""The losses of FPCClassifier, against scikit-learn's linear models on the same features."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import polysift
from polysift import FPCClassifier, PolynomialKernelMap
from polysift.engine import compiled
from polysift.engine.local import LocalEngine
from polysift.runtime import checkpoints
from problems import noisy_problem

X, Y = noisy_problem(np.random.default_rng(0), 1500, 3)
THREE = np.clip(3 * X[:, 0] + 0.5 * np.random.default_rng(1).normal(size=len(X)), 0, 2.9).astype(
    int
)
MANY_X, MANY_Y = noisy_problem(np.random.default_rng(1), 12_001, 3)
FEATURES = {
    "kernel": "polynomial",
    "degree": 3,
    "n_centers": 20,
    "scaler": "minmax",
    "random_state": 0,
}
PRECISE = {"newton": {"tol": 1e-8}, "converged": {"tol": 1e-5, "max_iter": 2000}}

both_losses = pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
both_solvers = pytest.mark.parametrize("solver", ["newton", "converged"])


def classifier(loss="logistic", solver="newton", **changes):
    return FPCClassifier(**(FEATURES | {"loss": loss, "solver": solver, "rho": 1e-6} | changes))


def precise(loss, solver, **changes):
    return classifier(loss, solver, **PRECISE[solver], **changes)


def peer(loss, rho):
    """Return scikit-learn's model with the penalty that goes with rho."""
    if loss == "logistic":
        how = {"solver": "newton-cholesky", "max_iter": 1000, "tol": 1e-10}
        return LogisticRegression(C=4 / rho, fit_intercept=False, **how)
    return LinearSVC(C=0.5 / rho, fit_intercept=False, dual=False, tol=1e-10, max_iter=100_000)


def features():
    return PolynomialKernelMap(**FEATURES).fit_transform(X)


def one_against_rest(clf, y, weights=None, loss="logistic"):
    """Return the scores of scikit-learn's models, one for each column of a classifier's."""
    A = features()
    columns = [
        peer(loss, clf.rho_).fit(A, y == label, weights).decision_function(A)
        for label in clf.classes_
    ]
    return np.array(columns).T if len(columns) > 2 else columns[1]


@both_losses
@both_solvers
@pytest.mark.parametrize("rho", [1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize("y", [Y, THREE], ids=["two classes", "three classes"])
def test_the_minimum_is_that_of_scikit_learn(loss, solver, rho, y):
    clf = precise(loss, solver, rho=rho).fit(X, y)
    assert clf.status_ in ("minimum", "converged")
    expected = one_against_rest(clf, y, loss=loss)
    np.testing.assert_allclose(clf.decision_function(X), expected, rtol=2e-3, atol=5e-3)
    assert clf.n_iter_ < 50 or solver == "converged"


@both_losses
@both_solvers
def test_weights_of_rows_and_classes(loss, solver, rng):
    weights = rng.integers(0, 4, len(Y)).astype(float)
    by_class = {-1: 1.0, 1: 2.5}
    map_ = PolynomialKernelMap(**FEATURES).fit(X[weights > 0])
    A, total = map_.transform(X), weights * np.where(Y > 0, 2.5, 1.0)
    clf = precise(loss, solver, class_weight=by_class).fit(X, Y, weights)
    np.testing.assert_allclose(clf.centers_, map_.centers_)
    expected = peer(loss, clf.rho_).fit(A, Y, total).decision_function(A)
    np.testing.assert_allclose(clf.decision_function(X), expected, atol=2e-3)


@both_losses
@both_solvers
def test_float32_rows(loss, solver):
    """Their penalty has the same size, and the minimum is as good."""
    wide, single = (classifier(loss, solver).fit(X.astype(t), Y) for t in (float, np.float32))
    best = [np.nanmin(clf.history_["objective"]) for clf in (wide, single)]
    assert best[1] == pytest.approx(best[0], rel=2e-3)


@both_losses
def test_the_paper_remains_close_to_ridge_regression(loss):
    scores = [
        classifier(loss, "paper", rho=1e-6).fit(X, Y).decision_function(X)
        for loss in ("hinge", loss)
    ]
    np.testing.assert_allclose(scores[1], scores[0], atol=0.01)


def test_rows_that_can_be_separated(rng):
    """The logistic loss has no minimum there but for its penalty; the squared hinge has one."""
    Z = rng.random((600, 2))
    edge = (Z[:, 0] - 0.5) ** 2 + (Z[:, 1] - 0.5) ** 2 - 0.09
    Z, y = Z[np.abs(edge) > 0.02], np.sign(edge[np.abs(edge) > 0.02])
    for loss in ("logistic", "squared_hinge"):
        clf = classifier(loss, rho=None, n_centers=10).fit(Z, y)
        assert clf.status_ in ("minimum", "zero_loss") and clf.score(Z, y) == 1.0
        assert clf.history_["objective"].min() < 1e-5
        assert np.isfinite(clf.coef_).all()
    proba = classifier(rho=None, n_centers=10).fit(Z, y).predict_proba(Z)
    assert np.isfinite(proba).all()


def test_a_larger_rho_is_a_larger_penalty():
    sizes = [np.linalg.norm(classifier(rho=rho).fit(X, Y).coef_) for rho in (1e-8, 1e-4, 1.0)]
    assert np.all(np.diff(sizes) < 0)


@both_losses
def test_a_subsample_first(loss, monkeypatch):
    from polysift.solvers import newton

    all_rows = precise(loss, "newton").fit(MANY_X, MANY_Y)
    monkeypatch.setattr(newton, "MIN_SUBSAMPLE_ROWS", 2000)
    late = classifier(loss).fit(MANY_X, MANY_Y)
    best = [np.nanmin(clf.history_["objective"]) for clf in (all_rows, late)]
    assert "sample" in late.timings_
    assert best[1] == pytest.approx(best[0], rel=2e-3)


@both_losses
def test_a_warm_start(loss):
    clf = classifier(loss, warm_start=True).fit(X, Y)
    passes, best = clf.n_iter_, clf.history_["objective"].min()
    clf.fit(X, Y)
    assert clf.n_iter_ <= passes
    assert clf.history_["objective"].min() <= best * (1 + 1e-9)


@both_losses
@pytest.mark.parametrize("by_numba", [False, True])
@pytest.mark.usefixtures("threaded")
def test_same_bits_for_any_number_of_threads(loss, by_numba):
    if by_numba:
        pytest.importorskip("numba")
    with compiled.enabled(by_numba):
        for solver in ("newton", "converged"):
            one, two = (
                classifier(loss, solver, n_jobs=jobs).fit(MANY_X, MANY_Y) for jobs in (1, 2)
            )
            np.testing.assert_array_equal(one.coef_, two.coef_)
            assert one.status_ in ("minimum", "converged")


@pytest.mark.needs("ray")
def test_same_bits_on_a_cluster(four_workers):
    here, there = (classifier(engine=engine).fit(MANY_X, MANY_Y) for engine in ("local", "ray"))
    np.testing.assert_array_equal(here.coef_, there.coef_)


class Killed(Exception):
    """Stands for the end of a process."""


@both_losses
@both_solvers
def test_a_checkpoint(loss, solver, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints.Checkpoint, "due", lambda self: True)
    plain = classifier(loss, solver).fit(X, THREE)
    sweep, left = LocalEngine.sweep, [3]

    def dying(self, *args):
        left[0] -= 1
        if left[0] == 0:
            raise Killed
        return sweep(self, *args)

    monkeypatch.setattr(LocalEngine, "sweep", dying)
    with pytest.raises(Killed):
        classifier(loss, solver, checkpoint=tmp_path).fit(X, THREE)
    resumed = classifier(loss, solver, checkpoint=tmp_path).fit(X, THREE)
    np.testing.assert_array_equal(resumed.coef_, plain.coef_)
    with pytest.raises(polysift.CheckpointError, match="loss is"):
        classifier("hinge", solver, checkpoint=tmp_path).fit(X, THREE)


def test_a_time_limit(clock, monkeypatch):
    clock.after(monkeypatch, LocalEngine, "sweep", 1.0)
    clf = classifier(tol=0, max_iter=1000, time_limit=3.5).fit(X, Y)
    assert clf.status_ == "time_limit" and clf.score(X, Y) > 0.6


def test_what_cannot_be():
    with pytest.raises(ValueError, match=r"loss must be .*'hinge'.*'logistic'.*'squared_hinge'"):
        classifier("log").fit(X, Y)
    clf = classifier("squared_hinge").fit(X, Y)
    assert not hasattr(clf, "predict_proba")
    with pytest.raises(AttributeError) as raised:
        clf.predict_proba(X)
    assert 'or loss="logistic" with a solver other than "paper", and fit.' in str(raised.value)
    clf.set_params(loss="logistic")
    with pytest.raises(NotFittedError, match="loss was set after fit"):
        clf.predict_proba(X)


class TestProbabilities:
    def test_two_classes(self):
        clf = classifier().fit(X, Y)
        proba = clf.predict_proba(X)
        np.testing.assert_array_equal(proba[:, 1], expit(clf.decision_function(X)))
        np.testing.assert_array_equal(clf.classes_[proba.argmax(axis=1)], clf.predict(X))
        clf.set_params(solver="paper").fit(X, Y)
        assert not hasattr(clf, "predict_proba") and not hasattr(clf, "calibrator_")

    def test_three_classes(self):
        clf = classifier().fit(X, THREE)
        p = expit(clf.decision_function(X))
        np.testing.assert_allclose(clf.predict_proba(X), p / p.sum(axis=1, keepdims=True))

    def test_they_are_right(self, rng):
        """Those of rows whose classes are drawn by known probabilities."""
        Z = rng.random((40_000, 2))
        known = expit(4 * Z[:, 0] - 3 * Z[:, 1] * Z[:, 0] - 1)
        y = rng.random(len(Z)) < known
        clf = classifier(degree=2, n_centers=6, rho=1e-9, tol=1e-6).fit(Z, y)
        assert np.abs(clf.predict_proba(Z)[:, 1] - known).mean() < 0.01

    def test_calibration_has_the_last_word(self):
        clf = classifier(calibration="isotonic").fit(X, Y)
        assert clf.calibrator_["kind"] == "isotonic"
        clf.set_params(calibration=None).fit(X, Y)
        assert clf.calibrator_["kind"] == "sigmoid" and not hasattr(clf, "calibration_report_")

    @pytest.mark.needs("pyarrow")
    def test_files(self, tmp_path):
        import pyarrow.parquet as pq

        clf = classifier().fit(X, THREE)
        clf.predict_to(X, tmp_path / "out.parquet", proba=True)
        table = pq.read_table(tmp_path / "out.parquet")
        found = np.column_stack([table[f"probability_{label}"] for label in clf.classes_])
        np.testing.assert_array_equal(found, clf.predict_proba(X))
        polysift.save(clf, tmp_path / "m.polysift")
        again = polysift.load(tmp_path / "m.polysift")
        np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))

    @pytest.mark.needs("onnx", "onnxruntime")
    @pytest.mark.parametrize("y", [Y, THREE], ids=["two classes", "three classes"])
    def test_onnx(self, tmp_path, y):
        import onnxruntime

        clf = classifier().fit(X, y)
        polysift.to_onnx(clf, tmp_path / "m.onnx")
        session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
        inputs = {session.get_inputs()[0].name: X}
        (found,) = session.run(["probabilities"], inputs)
        np.testing.assert_allclose(found, clf.predict_proba(X), atol=1e-9)

    @pytest.mark.needs("jinja2", "matplotlib")
    def test_a_report(self, tmp_path):
        clf = classifier().fit(X, Y)
        polysift.report(clf, {"training": (X, Y)}, tmp_path / "report.html")
        html = (tmp_path / "report.html").read_text()
        assert "logistic loss" in html and "Brier" in html


def test_the_command_line(tmp_path, monkeypatch):
    pytest.importorskip("typer")
    from typer.testing import CliRunner

    from polysift.cli.app import app

    monkeypatch.chdir(tmp_path)
    np.savetxt("train.csv", np.column_stack([X, Y]), delimiter=",", header="a,b,c,y", comments="")
    for command in (
        "fit train.csv --target y --degree 2 --solver newton --loss logistic --rho 1e-6 "
        "--scaler minmax --n-centers 10 -o m.polysift --seed 0",
        "predict m.polysift train.csv --proba -o out.csv",
        "inspect m.polysift",
    ):
        outcome = CliRunner().invoke(app, command.split())
        assert outcome.exit_code == 0, outcome.output
    assert "loss='logistic'" in outcome.output
    assert polysift.load("m.polysift").loss == "logistic"
    assert "probability_1" in (tmp_path / "out.csv").read_text().splitlines()[0]


@pytest.mark.filterwarnings("ignore:solver=:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("n_centers", "way"), [(40, "newton"), (1_001, "converged")])
def test_the_minimum_is_reached_by_the_solver_that_suits_the_centers(n_centers, way):
    params = {"kernel": "spline", "degree": 2, "n_centers": n_centers, "random_state": 0}
    clf = FPCClassifier(**params, solver="minimum", max_iter=3, tol=0.9).fit(MANY_X, MANY_Y)
    named = FPCClassifier(**params, solver=way, max_iter=3, tol=0.9).fit(MANY_X, MANY_Y)
    assert clf.solver_ == named.solver_ == way
    np.testing.assert_array_equal(clf.coef_, named.coef_)


@pytest.mark.filterwarnings("ignore:solver=:sklearn.exceptions.ConvergenceWarning")
def test_a_sampled_gram_matrix_leaves_the_minimum_to_the_admm(tmp_path):
    params = FEATURES | {"solver": "minimum", "gram": "sampled", "max_iter": 2, "tol": 0.9}
    clf = FPCClassifier(**params).fit(X, Y)
    assert clf.solver_ == "converged"
    polysift.save(clf, tmp_path / "model.polysift")
    loaded = polysift.load(tmp_path / "model.polysift")
    assert (loaded.solver, loaded.solver_) == ("minimum", "converged")


def test_the_solver_that_was_taken_is_known():
    taken = [FPCClassifier(**FEATURES, solver=name).fit(X, Y).solver_ for name in ("auto", "paper")]
    assert taken == ["lbfgs", "paper"]
