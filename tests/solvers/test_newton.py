"""solver="newton": against the optimum, the ADMM, and itself by other ways."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import polysift
from clusters import Shaky
from oracles import kernel, lp_optimum
from polysift import FPCClassifierCV
from polysift.cluster.engine import ClusterEngine
from polysift.cluster.held_rows import PartitionedSource
from polysift.cluster.partitions import cut_into_partitions
from polysift.data.source import ArraySource
from polysift.data.training_set import TrainingSet
from polysift.engine import budget, compiled
from polysift.engine.budget import Execution
from polysift.engine.local import LocalEngine
from polysift.engine.sums import STEP_LENGTHS, NewtonSums
from polysift.features.kernels import full_dimension
from polysift.plots import ConvergenceDisplay
from polysift.runtime import checkpoints
from polysift.runtime.parallel import Pool
from polysift.runtime.progress import Monitor, OutOfTime
from polysift.solvers.factor import Ridge, factorise
from polysift.solvers.loop import Loop
from polysift.solvers.newton import (
    EXPECTED_PASSES,
    RISING_STEP_FACTOR,
    Newton,
    NewtonSettings,
)
from polysift.solvers.newton_column import (
    DAMPING_DIVISOR,
    FIRST_DELTA,
    HESSIAN_MEMORY,
    LOOK_BACK_STEPS,
    MAX_DAMPING_FACTOR,
    MIN_DAMPING,
    NewtonColumn,
)
from polysift.solvers.result import Status
from problems import noisy_problem, optional, paper_classifier
from solving import PROBLEMS, converged, engine_for, solve

figure = optional("matplotlib.figure")

X, Y = noisy_problem(np.random.default_rng(0), 1500, 3)
MANY_X, MANY_Y = noisy_problem(np.random.default_rng(1), 12_001, 3)


def newton(**changes):
    names = ("rho", "relative_rho", "floor_multiple")
    ridge = Ridge(**{name: changes.pop(name) for name in names if name in changes})
    return NewtonSettings(ridge, **changes)


def classifier(degree=3, **changes):
    return paper_classifier(degree, solver="newton", **({"random_state": 0} | changes))


def loss(clf, X, y, weights=None):
    return np.average(np.maximum(0, 1 - y * clf.decision_function(X)), weights=weights)


class TestColumn:
    def test_the_bfgs_update_solves_the_secant_equation(self, rng):
        column = NewtonColumn.at(np.zeros(6), np.zeros(6))
        B = rng.normal(size=(6, 6))
        column.W = B @ B.T + np.eye(6)
        s, y = rng.normal(size=(2, 6))
        y *= np.sign(s @ y)
        column.follow(s, y)
        np.testing.assert_allclose(column.W @ y, s, atol=1e-12)
        np.testing.assert_allclose(column.W, column.W.T, atol=1e-12)
        assert np.linalg.eigvalsh(column.W)[0] > 0
        before = column.W.copy()
        column.follow(s, -y)  # no curvature along s: nothing to learn
        np.testing.assert_array_equal(column.W, before)

    def test_a_new_hessian(self, rng):
        column = NewtonColumn.at(np.zeros(4), np.zeros(4))
        A = rng.normal(size=(9, 4))
        column.since, column.delta, column.damping = 7, 0.25, 0.3
        column.refresh(A.T @ A, 9.0)
        H = A.T @ A / (4 * 0.25 * 9) + HESSIAN_MEMORY * np.eye(4) / (4 * FIRST_DELTA)
        np.testing.assert_allclose(column.W @ (H + 0.3 * np.eye(4)), np.eye(4), atol=1e-12)
        assert column.since == 0
        column.M, column.damping = np.zeros((4, 4)), 0.0
        column.refresh(np.ones((4, 4)), 1.0)  # singular: a ridge helps
        assert np.isfinite(column.W).all() and np.linalg.eigvalsh(column.W)[0] > 0

    def test_damping_follows_what_was_taken_of_a_step(self):
        column = NewtonColumn.at(np.zeros(2), np.zeros(2))
        column.damping = 1.0
        for taken, damping in (
            (0.1, 10.0),
            (1e-6, 10 * MAX_DAMPING_FACTOR),
            (0.5, 10 * MAX_DAMPING_FACTOR),
        ):
            column.taken = taken
            column.damp()
            assert column.damping == pytest.approx(damping)
        column.taken = 1.0
        column.damp()
        assert column.damping == pytest.approx(10 * MAX_DAMPING_FACTOR / DAMPING_DIVISOR)
        column.damping, column.taken = 0.0, 0.1
        column.damp()
        assert column.damping == pytest.approx(10 * MIN_DAMPING / (4 * FIRST_DELTA))

    def test_what_damping_hides_counts(self):
        column = NewtonColumn.at(np.zeros(1), np.zeros(1))
        column.g, column.losses = np.array([0.01]), np.ones(LOOK_BACK_STEPS + 1)
        column.W = np.array([[0.5]])  # of a curvature of 2, half of which is damping
        column.damping = 1.0
        column.aim(1e-3)
        assert column.left() == pytest.approx(0.01**2 / (2.0 - 1.0))

    @pytest.mark.parametrize(
        ("slopes", "length"),
        [
            (lambda t: t - 1.0, 1.0),
            (lambda t: t / 1.4 - 1.0, 1.0),  # a little short, but good
            (lambda t: t / 0.1 - 1.0, 0.1),
            (lambda t: t / 3.0 - 1.0, 3.0),
            (lambda t: t / 1e-4 - 1.0, 1e-4),  # before the first slope that is known
            (lambda t: t * 0.0 - 1.0, STEP_LENGTHS[-1]),  # down all the way
        ],
    )
    def test_the_length_of_a_step(self, slopes, length):
        column = NewtonColumn.at(np.zeros(1), np.zeros(1))
        column.decrement = 1.0
        assert column.right_length(slopes(STEP_LENGTHS)) == pytest.approx(length)

    def test_a_step_that_leads_up_is_not_good(self):
        """A slope that is small beside a decrement beyond all reason says little."""
        column = NewtonColumn.at(np.zeros(1), np.zeros(1))
        column.decrement = 100.0
        slopes = np.where(STEP_LENGTHS < 0.1, -1.0, 20.0)
        assert column.right_length(slopes) == 1.0
        assert 0.0 < column.right_length(slopes, higher=True) < 0.125
        assert column.right_length(-slopes, higher=True) == 1.0  # by rounding, on the way down

    def test_what_other_rows_have_settled(self):
        column = NewtonColumn.at(np.zeros(1), np.zeros(1))
        column.g = np.array([1e-3])
        for claimed, done in ((0.49, True), (0.4, False)):
            column.losses = np.array([0.5, *np.full(LOOK_BACK_STEPS, np.inf)])
            column.claimed = claimed
            column.aim(0.1)
            assert column.done == done
        column.aim(0.1)  # it is judged once
        assert not column.done

    def test_a_loss_that_is_small_enough(self):
        column = NewtonColumn.at(np.zeros(1), np.zeros(1))
        column.g, column.losses = np.ones(1), np.array([0.01, *np.full(LOOK_BACK_STEPS, np.inf)])
        column.aim(1e-3)
        assert not column.done
        column.small_loss = 0.02
        column.aim(1e-3)
        assert column.done

    def test_delta_shrinks_where_the_rounding_hides_more_than_a_step_gains(self):
        column = NewtonColumn.at(np.zeros(1), np.zeros(1))
        column.g, column.losses = np.array([0.01]), np.full(LOOK_BACK_STEPS + 1, 0.5)
        for gap, delta in ((1e-5, FIRST_DELTA), (1e-2, FIRST_DELTA / 2)):
            column.gap = gap
            column.aim(1e-3)
            assert column.next_delta == delta
            assert column.decrement == pytest.approx(2e-4)
            assert column.done == (gap < 1e-4)
        column.losses[-1] = 0.6  # not settled
        column.gap = 1e-5
        column.aim(1e-3)
        assert not column.done

    def test_how_far_it_is(self):
        column = NewtonColumn.at(np.zeros(1), np.zeros(1))
        assert np.isnan(column.left())
        column.decrement, column.gap, column.losses = 0.1, 0.3, np.array([0.0])
        assert column.left() == 0.0
        column.losses = np.array([2.0])
        assert column.left() == pytest.approx(0.2)


@pytest.mark.parametrize(("d", "degree", "m", "noise"), PROBLEMS)
def test_it_reaches_the_lp_optimum(d, degree, m, noise):
    rng = np.random.default_rng(1000 * d + degree)
    X, y = noisy_problem(rng, m, d, noise)
    C = rng.random((full_dimension(degree, d), d))
    A = kernel(X, C, degree)
    optimum, _ = lp_optimum(A, y)
    result = solve(engine_for(X, y, C, degree), newton())
    objective = np.maximum(0, 1 - y * (A @ result.u[:, 0])).mean()
    assert optimum * (1 - 1e-9) <= objective <= 1.01 * optimum
    assert objective == pytest.approx(np.nanmin(result.history["objective"]), rel=1e-9)
    assert result.status is Status.MINIMUM and result.n_iter < 150
    assert result.history["dual_residual"][-1] < 1e-3
    admm = solve(engine_for(X, y, C, degree), converged(m))
    assert objective <= admm.history["objective"][-1] * (1 + 2e-3)


def test_a_smaller_tolerance_brings_it_closer(rng):
    C = rng.random((20, 3))
    optimum, _ = lp_optimum(kernel(X[:500], C, 3), Y[:500])
    gaps = [
        solve(engine_for(X[:500], Y[:500], C, 3), newton(tol=tol)).history["objective"].min()
        / optimum
        - 1
        for tol in (1e-1, 1e-3, 1e-5)
    ]
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 1e-4


@pytest.mark.parametrize("scale", [0.0, 1.0, -30.0])
def test_any_start_ends_in_the_same_objective(scale, rng):
    C = rng.random((10, 3))
    u0 = scale * rng.normal(size=(10, 1))
    result = solve(engine_for(X, Y, C, 2), newton(), u0=u0)
    optimum, _ = lp_optimum(kernel(X, C, 2), Y)
    assert result.status is Status.MINIMUM and result.n_iter < 100
    assert result.history["objective"].min() <= 1.005 * optimum


@pytest.mark.parametrize("Y", [Y, np.minimum((3 * X[:, 0]).astype(int), 2)])
def test_a_warm_start_at_its_own_solution_takes_few_passes(Y):
    clf = classifier(warm_start=True).fit(X, Y)
    passes, best = clf.n_iter_, clf.history_["objective"].min()
    clf.fit(X, Y)
    assert clf.n_iter_ <= min(passes, 12)
    assert clf.history_["objective"].min() <= best * (1 + 1e-9)
    clf.set_params(solver="paper").fit(X, Y)
    clf.set_params(solver="newton").fit(X, Y)
    assert clf.history_["objective"].min() <= best * (1 + 2e-3)


def test_separable_data_reach_zero_loss(rng):
    X = rng.random((600, 2))
    z = (X[:, 0] - 0.5) ** 2 + (X[:, 1] - 0.5) ** 2 - 0.09
    X, y = X[np.abs(z) > 0.02], np.sign(z[np.abs(z) > 0.02])
    clf = classifier().fit(X, y)
    assert clf.status_ == "zero_loss"
    assert loss(clf, X, y) == 0.0 == clf.history_["objective"][-1]
    assert clf.history_["dual_residual"][-1] == 0.0


def test_weights_are_multiplicities(rng):
    """The problems and their minima are the same; the paths part where rows are drawn."""
    weights = rng.integers(0, 4, len(Y)).astype(float)
    C = rng.random((20, 3))
    weighted = classifier(centers=C).fit(X, Y, weights)
    again = np.repeat(np.arange(len(Y)), weights.astype(int))
    repeated = classifier(centers=C).fit(X[again], Y[again])
    ratio = loss(weighted, X, Y, weights) / loss(repeated, X, Y, weights)
    assert ratio == pytest.approx(1.0, abs=1e-3)
    first, same = (clf.history_["objective"][:1] for clf in (weighted, repeated))
    np.testing.assert_allclose(first, same, rtol=1e-4)
    scaled = classifier(centers=C).fit(X, Y, 1e-3 * weights)
    assert loss(scaled, X, Y, weights) == pytest.approx(loss(weighted, X, Y, weights), rel=1e-3)


@pytest.mark.parametrize(
    ("rows", "columns", "parameters"),
    [
        (2, 1, {"degree": 1}),
        (2, 3, {"degree": 5}),
        (60, 1, {"degree": 2, "n_centers": 1}),
        (60, 3, {"degree": 1, "n_centers": 1, "centers": "uniform"}),
        (20, 3, {"degree": 4, "centers": "uniform"}),  # fewer rows than centers
        (20, 3, {"degree": 4, "centers": "random"}),
    ],
)
def test_corners(rows, columns, parameters, rng):
    X = rng.random((rows, columns))
    y = np.where(np.arange(rows) % 2, 1, -1)
    clf = classifier(**parameters).fit(X, y)
    assert clf.status_ in ("minimum", "zero_loss")
    assert loss(clf, X, y) <= 1.0
    if clf.n_centers_ >= rows:
        assert clf.status_ == "zero_loss"


def test_one_row():
    engine = engine_for(np.array([[0.5]]), np.array([1]), np.array([[0.3]]), 1)
    result = solve(engine, newton())
    assert result.status is Status.ZERO_LOSS and 1.15 * result.u[0, 0] >= 1


def test_three_classes_with_a_rare_one_and_calibration(rng):
    y = np.where(X[:, 0] + 0.2 * rng.normal(size=len(X)) > 0.5, "b", "a")
    y[[3, 700]] = "rare"  # folds without them see columns of one label
    clf = classifier(degree=2, calibration="sigmoid").fit(X, y)
    assert clf.coef_.shape == (3, 10) and clf.status_ == "minimum"
    proba = clf.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert clf.score(X, y) > 0.8
    alone = classifier(degree=2).fit(X, y)
    np.testing.assert_allclose(clf.decision_function(X), alone.decision_function(X), atol=1e-6)


def test_columns_are_problems_of_their_own(rng):
    y = np.clip(3 * X[:, 0] + 0.3 * rng.normal(size=len(X)), 0, 2.9).astype(int)
    centers = X[:10]
    scores = classifier(2, centers=centers).fit(X, y).decision_function(X)
    for k in range(3):
        own = np.where(y == k, 1, -1)
        alone = loss(classifier(2, centers=centers).fit(X, own), X, own)
        assert np.maximum(0, 1 - own * scores[:, k]).mean() == pytest.approx(alone, rel=2e-3)


def test_calibration_scores_rows_by_their_best_models():
    clf = classifier(calibration="isotonic").fit(X, Y)
    assert clf.calibration_report_["brier_score"] < 0.25  # of even odds
    np.testing.assert_array_equal(clf.coef_.shape, (1, 20))


def test_float32_rows_are_as_good():
    wide, single = classifier(6).fit(X, Y), classifier(6).fit(X.astype(np.float32), Y)
    assert loss(single, X, Y) <= 1.003 * loss(wide, X, Y)
    assert single.status_ == "minimum"


def test_sparse_rows():
    Z = np.where(X < 0.3, 0.0, X)
    dense, sparse = classifier(2).fit(Z, Y), classifier(2).fit(sp.csr_array(Z), Y)
    assert loss(sparse, Z, Y) == pytest.approx(loss(dense, Z, Y), rel=1e-3)
    np.testing.assert_allclose(sparse.history_["objective"][0], dense.history_["objective"][0])


def test_history_and_what_is_drawn_of_it(tmp_path, capsys):
    clf = classifier(2, verbose=1).fit(X, Y)
    printed = capsys.readouterr().err
    assert "nan" not in printed and "(dual)" in printed and "(primal)" not in printed
    for name in ("objective", "training_error", "dual_residual", "seconds"):
        assert np.isfinite(clf.history_[name]).all(), name
    for name in ("primal_residual", "h_norm_difference"):
        assert np.isnan(clf.history_[name]).all(), name
    assert clf.history_["training_error"][-1] == pytest.approx(1 - clf.score(X, Y), abs=0.01)
    assert clf.history_["dual_residual"][-1] < 1e-3 and clf.status_ == "minimum"
    assert clf.timings_["curvature"] > 0
    display = ConvergenceDisplay.from_estimator(clf, ax=figure.Figure().subplots())
    assert len(display.objective_line_.get_xdata()) == clf.n_iter_
    named = [text.get_text() for text in display.residual_ax_.get_legend().get_texts()]
    assert named == ["objective", "dual residual"]
    display.figure_.canvas.draw()
    polysift.report(clf, {"training": (X, Y)}, tmp_path / "report.html")
    html = (tmp_path / "report.html").read_text()
    assert "There is no picture" not in html and "estimated distance to the minimum" in html


def test_a_model_file(tmp_path):
    clf = classifier(2).fit(X, Y)
    polysift.save(clf, tmp_path / "m.polysift")
    again = polysift.load(tmp_path / "m.polysift")
    assert again.solver == "newton" and again.status_ == "minimum"
    np.testing.assert_array_equal(again.decision_function(X), clf.decision_function(X))
    np.testing.assert_array_equal(again.history_["dual_residual"], clf.history_["dual_residual"])
    assert np.isnan(again.history_["primal_residual"]).all()


def test_the_command_line(tmp_path, monkeypatch):
    pytest.importorskip("typer")
    from typer.testing import CliRunner

    from polysift.cli.app import app

    monkeypatch.chdir(tmp_path)
    np.savetxt("train.csv", np.column_stack([X, Y]), delimiter=",", header="a,b,c,y", comments="")
    command = "fit train.csv --target y --degree 2 --solver newton -o m.polysift --seed 0"
    outcome = CliRunner().invoke(app, command.split())
    assert outcome.exit_code == 0, outcome.output
    assert polysift.load("m.polysift").status_ == "minimum"


def test_what_cannot_be():
    with pytest.raises(ValueError, match=r"gram='sampled' cannot go with solver='newton'"):
        classifier(gram="sampled").fit(X, Y)
    with pytest.raises(ValueError, match=r"solvers.*'paper'.*'converged', 'newton'; got 'minimum'"):
        FPCClassifierCV(solvers=("minimum",)).fit(X, Y)
    clf = classifier(gram="auto").fit(X, Y)
    assert clf.gram_ == "exact" and clf.n_products_ == 0


def test_too_few_passes():
    with pytest.warns(ConvergenceWarning, match=r"'newton' stopped at max_iter=4 about .* above"):
        clf = classifier(max_iter=4).fit(X, Y)
    assert clf.status_ == "max_iter" and clf.n_iter_ == 4
    assert loss(clf, X, Y) == pytest.approx(clf.history_["objective"].min(), rel=1e-9)
    with pytest.warns(ConvergenceWarning):
        clf = classifier(max_iter=25, tol=0).fit(X, Y)  # tol=0 never stops
    assert clf.n_iter_ == 25


class Clock(Monitor):
    """Raises when so many phases have begun."""

    def __init__(self, phases):
        super().__init__()
        self.left = phases

    def watch(self, phase, total, parts):
        self.left -= 1
        if self.left < 0:
            raise OutOfTime(phase, 0.0)
        return super().watch(phase, total, parts)


@pytest.mark.parametrize("sweeps", [0, 1, 2, 5, 6, 7, 8])
def test_out_of_time_at_any_moment(sweeps, rng):
    """Also within a Hessian, and before the first point: then least squares is the model."""
    C = rng.random((20, 3))
    engine = engine_for(X, Y, C, 3)
    clock = engine._monitor = Clock(1 + sweeps)
    result = solve(engine, newton(), monitor=clock)
    assert result.status is Status.TIME_LIMIT
    A = kernel(X, C, 3)
    objective = np.maximum(0, 1 - Y * (A @ result.u[:, 0])).mean()
    if sweeps:
        assert objective == pytest.approx(np.nanmin(result.history["objective"]), rel=1e-6)
    else:
        best = np.linalg.lstsq(A, Y, rcond=None)[0]
        squares = [np.mean((A @ u - Y) ** 2) for u in (result.u[:, 0], best)]
        assert squares[0] == pytest.approx(squares[1], rel=1e-4)


def test_time_limit(clock, monkeypatch):
    clock.after(monkeypatch, LocalEngine, "sweep", 1.0)
    clf = classifier(8, n_centers=165, tol=0, max_iter=10**6, time_limit=4.5).fit(MANY_X, MANY_Y)
    assert clf.status_ == "time_limit"
    assert loss(clf, MANY_X, MANY_Y) == pytest.approx(np.nanmin(clf.history_["objective"]))


def test_callbacks_get_the_best_point_and_may_stop(rng):
    C = rng.random((20, 3))
    A = kernel(X, C, 3)

    class Hook:
        def __init__(self):
            self.seen = []

        def begin(self):
            pass

        def end(self, u):
            self.seen.append(np.maximum(0, 1 - Y * (A @ u[:, 0])).mean())
            return len(self.seen) == 5

    hook = Hook()
    result = solve(engine_for(X, Y, C, 3), newton(), callback=hook)
    assert result.status is Status.CALLBACK and result.n_iter == 5
    assert (np.diff(hook.seen) <= 1e-12).all()


def test_a_step_beyond_the_range_of_numbers(rng):
    A = rng.random((30, 3))
    settings = newton()
    run = Newton(factorise(A.T @ A, settings.ridge), A.T @ np.ones((30, 1)), settings, 30.0)
    run.step()
    swept = NewtonSums.zeros(3, 1, 1)
    swept.r[:] = np.nan
    run.update(swept, 0.0)
    (column,) = run.columns
    assert column.length == STEP_LENGTHS[0] and not column.arrived
    assert column.best == np.inf
    before = run.u
    run.step()
    np.testing.assert_allclose(run.u, STEP_LENGTHS[0] * before)
    assert run.problem.update.roundings == ((FIRST_DELTA, -1.0),)


def test_a_step_that_ends_above_its_start_is_shortened(rng):
    engine = engine_for(X, Y, rng.random((20, 3)), 3)
    settings = newton()
    G, Aty = engine.gram().over()
    run = Newton(factorise(G, settings.ridge), Aty, settings, engine.total_weight())
    Loop(engine, [run]).run(until=2)
    (column,) = run.columns
    column.length, column.trial, start = 0.3, False, column.u
    run.step()
    swept = NewtonSums.zeros(20, 1, 1)
    swept.loss[:] = 1.01 * run.m * column.ceiling(run.m)
    run.update(swept, 0.0)
    assert column.length == pytest.approx(0.3 * RISING_STEP_FACTOR) and column.u is start


@pytest.mark.parametrize("position", [0, 1, 1597])
def test_it_does_not_matter_where_an_outlier_stands(position):
    """A row that were in every Hessian by its position would count for many others."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 3))
    y = np.where(X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=4000) > 0, 1, -1)
    C = X[:30].copy()
    X[2500] = 60.0
    moved = np.arange(4000)
    moved[[position, 2500]] = 2500, position
    fits = [classifier(2, centers=C, scaler=None).fit(X[o], y[o]) for o in (slice(None), moved)]
    there, here = (clf.history_["objective"].min() for clf in fits)
    assert here == pytest.approx(there, rel=1e-3)


def test_no_tolerance_at_all(rng):
    """Beyond the precision of numbers there is nothing to gain, and nothing that breaks."""
    for degree, n in ((2, 5), (3, 8)):
        X, y = noisy_problem(np.random.default_rng(degree), 400, 2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            clf = classifier(degree, n_centers=n, tol=0.0, max_iter=1000).fit(X, y)
        exact = classifier(degree, n_centers=n, tol=1e-6).fit(X, y)
        assert clf.history_["objective"].min() <= exact.history_["objective"].min() * (1 + 1e-6)


def test_few_rows_per_center():
    """A Hessian of hardly more rows than centers says little."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(900, 6)) ** 3
    y = np.where(X[:, 0] + X[:, 1] * X[:, 2] + 5 * rng.normal(size=900) > 9, 1, -1)
    how = {"degree": 3, "max_iter": 150, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        best, admm = (paper_classifier(solver=s, **how).fit(X, y) for s in ("newton", "converged"))
    assert loss(best, X, y) <= loss(admm, X, y)
    assert best.history_["objective"][-1] < 1.0


def test_the_forecast():
    clf = classifier(max_iter=50)
    expected = clf.plan(MANY_X, MANY_Y)
    assert expected.passes == 2 + EXPECTED_PASSES and expected.peak_memory > 0
    assert expected.seconds_by_phase["curvature"] > 0
    assert classifier(max_iter=5).plan(MANY_X, MANY_Y).passes == 7
    other = classifier(max_iter=50).set_params(solver="converged").plan(MANY_X, MANY_Y)
    assert expected.peak_memory > other.peak_memory  # Hessians
    single = clf.plan(MANY_X.astype(np.float32), MANY_Y)
    assert single.peak_memory == pytest.approx(expected.peak_memory, rel=0.2)


class Killed(Exception):
    """Stands for the end of a process."""


@pytest.mark.parametrize("y", [MANY_Y, np.minimum((3 * MANY_X[:, 0]).astype(int), 2)])
def test_killed_at_any_moment_it_ends_in_the_same_bits(tmp_path, monkeypatch, y):
    monkeypatch.setattr(checkpoints, "MIN_SECONDS_BETWEEN_SAVES", 0.0)
    monkeypatch.setattr(checkpoints.Checkpoint, "due", lambda self: True)
    plain = classifier(2).fit(MANY_X, y)
    calls = [0]
    verbs = {name: getattr(LocalEngine, name) for name in ("gram", "sweep", "curvature")}

    def dying(name):
        def verb(self, *args):
            calls[0] -= 1
            if calls[0] < 0:
                raise Killed
            return verbs[name](self, *args)

        return verb

    for name in verbs:
        monkeypatch.setattr(LocalEngine, name, dying(name))
    for lives in (1, 3, 4, 5, 4, 7, 1000):
        calls[0] = lives
        try:
            clf = classifier(2, checkpoint=tmp_path, n_jobs=1 + lives % 2).fit(MANY_X, y)
        except Killed:
            clf = None
    np.testing.assert_array_equal(clf.coef_, plain.coef_)
    for name in ("objective", "dual_residual"):
        np.testing.assert_array_equal(clf.history_[name], plain.history_[name])
    calls[0] = 1  # the Gram matrix, which is read
    again = classifier(2, checkpoint=tmp_path).fit(MANY_X, y)
    np.testing.assert_array_equal(again.coef_, plain.coef_)


@pytest.mark.parametrize(("by_numba", "dtype"), [(False, np.float32), (True, float)])
@pytest.mark.usefixtures("threaded")
def test_same_bits_for_any_threads_and_memory(monkeypatch, by_numba, dtype):
    if by_numba:
        pytest.importorskip("numba")
    rows, how = MANY_X.astype(dtype), {"max_iter": 7, "tol": 0, "calibration": "sigmoid"}
    with compiled.enabled(by_numba), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        expected = classifier(2, n_jobs=1, **how).fit(rows, MANY_Y)
        others = [classifier(2, n_jobs=jobs, **how).fit(rows, MANY_Y) for jobs in (2, 3)]
        monkeypatch.setattr(budget, "MAX_KEPT_FEATURES_SHARE", 0.0)  # features are not kept
        others.append(classifier(2, **how).fit(rows, MANY_Y))
    for clf in others:
        np.testing.assert_array_equal(clf.coef_, expected.coef_)
        np.testing.assert_array_equal(clf.predict_proba(rows[:9]), expected.predict_proba(rows[:9]))


@pytest.mark.parametrize("keep_features", [False, True])
def test_a_cluster_that_loses_things(rng, keep_features):
    codes = rng.integers(0, 3, len(MANY_X)).astype(np.int8)
    codes[MANY_X[:, 0] < 0.3] = 0
    local = engine_for(MANY_X, MANY_Y, rng.random((10, 3)), 2)
    data = TrainingSet(ArraySource(MANY_X), codes, 3, rng.random(len(codes)))
    feature_map = local._work._map
    cluster = Shaky(3)
    pieces = PartitionedSource(cluster, data.source, cut_into_partitions(data.source.shards(), 1))
    remote = ClusterEngine(
        data,
        feature_map,
        pieces,
        monitor=Monitor(),
        execution=Execution(keep_features=keep_features),
    )
    expected, found = (
        solve(engine, newton(max_iter=30, tol=1e-2))
        for engine in (LocalEngine(data, feature_map, Pool(2)), remote)
    )
    np.testing.assert_array_equal(found.u, expected.u)
    np.testing.assert_array_equal(found.history["objective"], expected.history["objective"])
    assert cluster.losses > 0 and "curvature" in cluster.done


def test_columns_that_are_done_rest(rng):
    """An easy column ends first, and stays where it is while others go on."""
    y = np.where(X[:, 0] > 0.7, 2, (Y > 0).astype(int))
    clf = classifier(2).fit(X, y)
    engine = engine_for(X, Y, clf.centers_, 2)
    data = TrainingSet(ArraySource(X), y.astype(np.int8), 3)
    engine = LocalEngine(data, engine._work._map, Pool(1))
    settings = newton()
    G, Aty = engine.gram().over()
    run = Newton(factorise(G, settings.ridge), Aty, settings, engine.total_weight())
    loop, ends = Loop(engine, [run]), {}
    while run.status is None:
        loop.run(until=run.iterates + 1)
        for k, column in enumerate(run.columns):
            if column.done:
                ends.setdefault(k, (run.iterates, column.u))
                np.testing.assert_array_equal(column.u, ends[k][1])
    assert len(ends) == 3 and len({when for when, _ in ends.values()}) > 1
    assert run.result().status is Status.MINIMUM
