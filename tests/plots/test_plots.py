"""What displays draw against what the estimators hold; their errors; that they leave no trace."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="displays need polysift[plots]")
import matplotlib as mpl
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, make_scorer
from sklearn.pipeline import make_pipeline

from every_kind import every_kind
from polysift import FPCClassifierCV, explain
from polysift.plots import (
    ConvergenceDisplay,
    ImportanceDisplay,
    ReliabilityDisplay,
    SearchCurveDisplay,
)
from polysift.plots.base import COLOURS, Display
from polysift.plots.search import PARAMETERS, Curve
from problems import noisy_problem, optional, paper_classifier

pd = optional("pandas")
mpl.use("Agg")

from matplotlib import pyplot as plt  # noqa: E402

QUICK = {
    "scalers": ("minmax", "quantile"),
    "solvers": ("paper", "converged"),
    "degrees": (1, 2, 3),
    "n_centers": (3, 6, 10),
    "max_iter": (5, 10),
    "rhos": (None, 1e-3, 10.0),
    "random_state": 0,
}
X, Y = noisy_problem(np.random.default_rng(0), 300, 2)


@pytest.fixture(scope="module")
def search():
    return FPCClassifierCV(**QUICK, cv=3, calibration="sigmoid").fit(X, Y)


@pytest.fixture(scope="module")
def converged():
    clf = paper_classifier(2, solver="converged", tol=1e-2, calibration="isotonic", random_state=0)
    return clf.fit(X, Y)


@pytest.fixture(autouse=True)
def no_leaks():
    """Close what a test has opened; matplotlib's settings must be as before."""
    before = dict(mpl.rcParams)
    yield
    plt.close("all")
    assert dict(mpl.rcParams) == before


@pytest.fixture
def ax():
    return plt.figure().subplots()


def table(search):
    """Return the candidates as a frame, each with its standard error over the splits."""
    results = search.cv_results_
    frame = pd.DataFrame(results["params"])
    frame["rho"] = frame["rho"].fillna(-1.0).astype(float)
    frame["scaler"] = frame["scaler"].fillna("no scaler")
    splits = pd.DataFrame({k: v for k, v in results.items() if k.startswith("split")})
    frame["mean"], frame["error"] = splits.mean(axis=1), splits.sem(axis=1)
    frame["finished"] = results["status"] == "finished"
    return frame


def expected_curve(frame, param):
    """Return the best finished candidate at each value; of those screened, where there is none."""
    rows = []
    for _, group in frame.groupby(param):
        pool = group[group["finished"]] if group["finished"].any() else group
        rows.append(pool.loc[pool["mean"].idxmax()])
    return pd.DataFrame(rows)


def labels(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


@pytest.mark.parametrize("by", [None, "scaler", "solver"])
@pytest.mark.parametrize("param", PARAMETERS)
def test_search_curves_are_the_best_of_the_candidates(search, param, by, ax):
    display = SearchCurveDisplay.from_estimator(search, param, by=by, ax=ax)
    frame = table(search)
    groups = dict(list(frame.groupby(["scaler", "solver"] if by is None else [by], sort=False)))
    assert [line.get_label() for line in display.lines_] == [", ".join(key) for key in groups]
    places = {-1.0: 0.0, 1e-3: 1.0, 10.0: 2.0}  # of rho: None first
    n_open = 0
    for line, band, curve, group in zip(
        display.lines_, display.bands_, display.curves, groups.values(), strict=True
    ):
        expected = expected_curve(group, param)
        x = expected[param].map(places) if param == "rho" else expected[param]
        np.testing.assert_array_equal(line.get_xdata(), x)
        np.testing.assert_allclose(line.get_ydata(), expected["mean"], rtol=1e-12)
        np.testing.assert_allclose(curve.errors, expected["error"], rtol=1e-9)
        np.testing.assert_array_equal(curve.finished, expected["finished"])
        assert list(line.get_markevery()) == list(np.flatnonzero(expected["finished"]))
        n_open += int((~expected["finished"]).sum())
        if len(expected) > 1:
            heights = band.get_paths()[0].vertices[:, 1]
            low, high = expected["mean"] - expected["error"], expected["mean"] + expected["error"]
            assert heights.min() == pytest.approx(low.min())
            assert heights.max() == pytest.approx(high.max())
    assert sum(len(marks.get_xdata()) for marks in display.screened_) == n_open
    assert any("screened out" in label for label in labels(ax)) == (n_open > 0)
    value = search.best_params_[param]
    assert display.chosen_.get_ydata()[0] == pytest.approx(search.best_score_)
    place = places[-1.0 if value is None else value] if param == "rho" else value
    assert display.chosen_.get_xdata()[0] == place
    assert ax.get_ylabel() == "accuracy" and ax.get_xlabel() == PARAMETERS[param]
    assert ax.get_title() and any("3 splits" in label for label in labels(ax))
    ax.figure.canvas.draw()


def test_some_candidate_is_screened_out(search, ax):
    """Or the test above would not see open markers."""
    display = SearchCurveDisplay.from_estimator(search, "rho", ax=ax)
    assert display.screened_ and "open: screened out,\nscore when stopped" in labels(ax)
    marks = display.screened_[0]
    assert marks.get_markerfacecolor() == "none" and marks.get_linestyle() == "None"


def test_ticks(search, ax):
    SearchCurveDisplay.from_estimator(search, "degree", ax=ax)
    ax.figure.canvas.draw()
    assert [text.get_text() for text in ax.get_xticklabels()] == ["1", "2", "3"]
    assert ax.get_xscale() == "linear"
    ax = SearchCurveDisplay.from_estimator(search, "rho").ax_
    assert [text.get_text() for text in ax.get_xticklabels()] == ["None", "0.001", "10"]


def curve_over(values):
    n = len(values)
    return Curve("all", values, np.linspace(0.6, 0.9, n), np.full(n, 0.01), np.full(n, True))


@pytest.mark.parametrize(
    ("param", "values", "scale", "ticks"),
    [
        ("n_centers", [3, 6, 10], "linear", [3, 6, 10]),
        ("n_centers", [10, 100], "linear", [10, 100]),
        ("n_centers", [9, 100], "log", [9, 100]),
        ("n_centers", [2, 20, 21, 200], "log", [2, 5, 10, 20, 50, 100, 200]),
        ("degree", [1, 2, 12], "linear", [1, 2, 12]),
        ("degree", list(range(1, 41)), "linear", list(range(5, 45, 5))),
        ("n_centers", [7], "linear", [7]),
    ],
)
def test_scales_and_ticks(param, values, scale, ticks, ax):
    SearchCurveDisplay([curve_over(values)], param=param).plot(ax)
    ax.figure.canvas.draw()
    assert ax.get_xscale() == scale
    low, high = ax.get_xlim()
    assert [tick for tick in ax.get_xticks() if max(low, 1) <= tick <= high] == ticks


def test_one_split_has_no_band():
    search = FPCClassifierCV(**QUICK | {"scalers": "minmax", "solvers": "paper"}, cv=0.33).fit(X, Y)
    display = SearchCurveDisplay.from_estimator(search)
    assert display.bands_ == [] and len(display.lines_) == 1
    assert not any("std. error" in label for label in labels(display.ax_))


def test_more_lines_than_colours_are_too_many():
    scalers = (None, "standard", "quantile", "minmax")
    search = FPCClassifierCV(**QUICK | {"scalers": scalers}, cv=0.33).fit(X, Y)
    names = [curve.label for curve in SearchCurveDisplay.from_estimator(search).curves]
    assert len(COLOURS) < 8 and names == ["no scaler", "standard", "quantile", "minmax"]


def test_candidates_that_were_not_run_are_left_out(search, ax):
    stopped = clone(search)
    results = {name: np.array(column) for name, column in search.cv_results_.items()}
    late = [p["degree"] == 3 or p["scaler"] == "quantile" for p in results["params"]]
    for name in results:
        if name.endswith("_test_score") and not name.startswith("rank"):
            results[name][late] = np.nan
    results["status"] = np.where(late, "not run", results["status"])
    finished = np.flatnonzero(results["status"] == "finished")
    best = int(finished[np.argmax(results["mean_test_score"][finished])])
    stopped.cv_results_, stopped.best_index_, stopped.n_splits_ = results, best, 3
    display = SearchCurveDisplay.from_estimator(stopped, ax=ax)
    assert [curve.values for curve in display.curves] == [[1, 2], [1, 2]]
    assert all("minmax" in curve.label for curve in display.curves)


@pytest.mark.parametrize(
    ("scoring", "name"),
    [
        ("accuracy", "accuracy"),
        ("roc_auc", "roc_auc"),
        (make_scorer(log_loss, greater_is_better=False), "negative log_loss"),
        (lambda estimator, X, y: 0.5, "<lambda>"),
    ],
)
def test_the_score_is_named(search, scoring, name, ax):
    other = clone(search)
    vars(other).update({k: v for k, v in vars(search).items() if k.endswith("_")})
    other.scoring = scoring
    assert SearchCurveDisplay.from_estimator(other, ax=ax).ax_.get_ylabel() == name


def test_convergence_of_a_fit(converged, ax):
    display = ConvergenceDisplay.from_estimator(converged, ax=ax)
    iterations = np.arange(1, converged.n_iter_ + 1)
    for line, column in (
        (display.objective_line_, "objective"),
        (display.primal_line_, "primal_residual"),
        (display.dual_line_, "dual_residual"),
    ):
        np.testing.assert_array_equal(line.get_xdata(), iterations)
        np.testing.assert_array_equal(line.get_ydata(), converged.history_[column])
    assert display.ax_ is ax and display.objective_line_.axes is ax
    assert display.primal_line_.axes is display.dual_line_.axes is display.residual_ax_
    assert display.residual_ax_.get_yscale() == "log" and ax.get_yscale() == "linear"
    assert labels(display.residual_ax_) == ["objective", "primal residual", "dual residual"]
    assert "converged" in ax.get_title() and str(converged.n_iter_) in ax.get_title()
    ax.figure.canvas.draw()


def test_convergence_of_a_search(search, ax):
    display = ConvergenceDisplay.from_estimator(search, ax=ax)
    history = search.best_estimator_.history_
    np.testing.assert_array_equal(display.objective_line_.get_ydata(), history["objective"])


def test_convergence_skips_what_is_not_known(ax):
    clf = paper_classifier(2, tol=0, max_iter=4, random_state=0).fit(X, Y)
    assert np.isnan(clf.history_["objective"]).tolist() == [False, False, False, True]
    display = ConvergenceDisplay.from_estimator(clf, ax=ax)
    assert list(display.objective_line_.get_xdata()) == [1, 2, 3]
    with pytest.raises(ValueError, match="no iteration without NaN.*tol=None"):
        ConvergenceDisplay.from_estimator(clf.set_params(max_iter=1).fit(X, Y))


def test_convergence_of_one_iteration_is_points(ax):
    clf = paper_classifier(2, max_iter=1, random_state=0).fit(X, Y)
    display = ConvergenceDisplay.from_estimator(clf, ax=ax)
    assert "1 iteration (" in ax.get_title()
    for line in (display.objective_line_, display.primal_line_, display.dual_line_):
        assert len(line.get_xdata()) == 1 and line.get_marker() in ("o", "s", "^")
    ax.figure.canvas.draw()
    assert all(tick == round(tick) for tick in ax.get_xticks())


def test_convergence_scales(ax):
    display = ConvergenceDisplay([1.0, 0.1, 0.01], [1e-3, 0.0, 1e-6], [0.0] * 3).plot(ax)
    assert ax.get_yscale() == "log" and display.residual_ax_.get_yscale() == "log"
    np.testing.assert_array_equal(np.isnan(display.primal_line_.get_ydata()), [False, True, False])
    ax.figure.canvas.draw()
    display = ConvergenceDisplay([1.0, 0.1, 0.0], [0.0] * 3, [0.0] * 3).plot()
    assert display.ax_.get_yscale() == "linear" == display.residual_ax_.get_yscale()
    display.figure_.canvas.draw()


@pytest.mark.parametrize("name", ["search", "converged"])
def test_reliability(name, request, ax):
    estimator = request.getfixturevalue(name)
    report = estimator.calibration_report_
    bins = report["reliability"]
    display = ReliabilityDisplay.from_estimator(estimator, ax=ax)
    points = np.column_stack([bins["predicted"], bins["observed"]])
    np.testing.assert_array_equal(display.line_.get_xydata(), points)
    np.testing.assert_array_equal(display.bins_.get_offsets(), points)
    sizes = display.bins_.get_sizes()
    np.testing.assert_allclose(sizes / sizes.max(), bins["weight"] / bins["weight"].max())
    np.testing.assert_array_equal(display.diagonal_.get_xydata(), [[0, 0], [1, 1]])
    assert f"Brier score {report['brier_score']:.4f}" in labels(ax)[1]
    assert "class 1" in ax.get_xlabel() and "class 1" in ax.get_ylabel()
    ax.figure.canvas.draw()


def test_reliability_of_three_classes(ax):
    y = np.array(["a", "b", "c"])[np.minimum((3 * X[:, 0]).astype(int), 2)]
    clf = paper_classifier(2, calibration="sigmoid", random_state=0).fit(X, y)
    ReliabilityDisplay.from_estimator(clf, ax=ax)
    assert "likeliest class" in ax.get_xlabel()


def test_importance(converged):
    found = explain(converged, X)
    drawn = ImportanceDisplay.from_estimator(converged, X, ax=plt.figure().subplots())
    assert drawn.names == [entry["feature"] for entry in found.features()]
    widths = [bar.get_width() for bar in drawn.bars_]
    assert widths == [entry["attribution"] for entry in found.features()]
    assert drawn.ax_.get_yticklabels()[0].get_text() == drawn.names[0]
    pairs = ImportanceDisplay.from_estimator(converged, X, of="pairs", top=2)
    assert pairs.values == [entry["share"] for entry in found.pairs(2)]
    with pytest.raises(ValueError, match='of must be "features" or "pairs"; got \'terms\''):
        ImportanceDisplay.from_estimator(converged, of="terms")


def test_importance_of_a_name_with_dollars(ax):
    display = ImportanceDisplay(["US$ of $ each", "size"], [0.4, 0.1]).plot(ax)
    assert [float(bar.get_width()) for bar in display.bars_] == [0.4, 0.1]
    assert ax.get_yticklabels()[0].get_text() == r"US\$ of \$ each"


DISPLAYS = [SearchCurveDisplay, ConvergenceDisplay, ReliabilityDisplay, ImportanceDisplay]


def test_each_display_is_among_them():
    assert set(Display.__subclasses__()) == set(DISPLAYS)


@pytest.mark.parametrize("display", DISPLAYS)
def test_where_it_is_drawn(display, search, ax):
    drawn = display.from_estimator(search, ax=ax)
    assert drawn.ax_ is ax and drawn.figure_ is ax.figure
    assert len(plt.get_fignums()) == 1, "axes were given: no figure is made"
    again = drawn.plot()
    assert again is drawn and drawn.ax_ is not ax and drawn.figure_ is drawn.ax_.figure
    assert len(plt.get_fignums()) == 2
    drawn.figure_.canvas.draw()


@pytest.fixture(scope="module")
def table_search():
    frame, y = every_kind()
    quick = QUICK | {"degrees": (1, 2), "n_centers": (10, 20)}
    return FPCClassifierCV(**quick, cv=3, calibration="sigmoid").fit(frame, y)


@pytest.mark.parametrize("display", DISPLAYS)
def test_models_of_tables(display, table_search, ax):
    display.from_estimator(table_search, ax=ax).figure_.canvas.draw()


def test_the_importance_of_columns(table_search, ax):
    frame, _ = every_kind()
    drawn = ImportanceDisplay.from_estimator(table_search, frame, ax=ax)
    assert sorted(drawn.names) == sorted(frame) and {"size", "colour"} <= set(drawn.names[:4])
    with pytest.raises(ValueError, match="columns of several coordinates"):
        ImportanceDisplay.from_estimator(table_search, of="pairs")


def test_the_importance_of_a_spline(ax):
    given = {
        "kernel": "spline",
        "scaler": "minmax",
        "alpha": 1.0,
        "solver": "paper",
        "random_state": 0,
    }
    model = paper_classifier(2, 40, **given).fit(X, Y)
    drawn = ImportanceDisplay.from_estimator(model, X, ax=ax)
    found = explain(model, X)
    assert drawn.names == [entry["feature"] for entry in found.features(15)]
    with pytest.raises(ValueError, match="spline kernel is no polynomial"):
        ImportanceDisplay.from_estimator(model, of="pairs")


@pytest.mark.parametrize("display", DISPLAYS)
def test_wrong_estimators(display, search):
    name = display.__name__
    with pytest.raises(TypeError, match=f"{name} draws a fitted FPC.*; got LogisticRegression"):
        display.from_estimator(LogisticRegression())
    with pytest.raises(TypeError, match=r"got Pipeline\. .*pipeline\[-1\]"):
        display.from_estimator(make_pipeline(search))
    with pytest.raises(TypeError, match="got the class FPCClassifierCV"):
        display.from_estimator(FPCClassifierCV)
    with pytest.raises(NotFittedError, match="FPCClassifierCV instance is not fitted"):
        display.from_estimator(clone(search))
    if display is SearchCurveDisplay:
        with pytest.raises(TypeError, match="got FPCClassifier"):
            display.from_estimator(search.best_estimator_)
    else:
        with pytest.raises(NotFittedError, match="FPCClassifier instance is not fitted"):
            display.from_estimator(paper_classifier())
    assert plt.get_fignums() == []


def test_wrong_parameters(search):
    choices = "'degree', 'n_centers', 'max_iter', 'rho'; got 'alpha'"
    with pytest.raises(ValueError, match=f"param must be one of {choices}"):
        SearchCurveDisplay.from_estimator(search, "alpha")
    with pytest.raises(ValueError, match="by must be one of 'scaler', 'solver', None; got 'rho'"):
        SearchCurveDisplay.from_estimator(search, by="rho")
    assert plt.get_fignums() == []


def test_a_model_without_probabilities():
    clf = paper_classifier(2, random_state=0).fit(X, Y)
    message = 'This FPCClassifier is not calibrated.*Set calibration="sigmoid" or'
    with pytest.raises(ValueError, match=message):
        ReliabilityDisplay.from_estimator(clf)
    with pytest.raises(ValueError, match=message):
        ReliabilityDisplay.from_estimator(clf.set_params(calibration="sigmoid"))
    assert plt.get_fignums() == []


def test_a_search_without_a_model():
    search = FPCClassifierCV(**QUICK | {"solvers": "paper"}, cv=0.33, refit=False).fit(X, Y)
    SearchCurveDisplay.from_estimator(search)
    for display in (ConvergenceDisplay, ReliabilityDisplay, ImportanceDisplay):
        with pytest.raises(ValueError, match="refit=False made none. Set refit=True"):
            display.from_estimator(search)


@pytest.mark.parametrize("display", DISPLAYS)
def test_without_matplotlib(display, search, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"pip install 'polysift\[plots\]'"):
        display.from_estimator(search)


def test_matplotlib_is_imported_late():
    code = "import sys; from polysift import plots; print('matplotlib' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
