"""Corners that once broke: precision, weights, labels, odd parameters."""

import datetime
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from polysift import PolynomialKernelMap
from polysift.datasets import make_bayes_curve
from problems import noisy_problem, optional, paper_classifier

pd = optional("pandas")

X, Y = noisy_problem(np.random.default_rng(0), 60, 3)


@pytest.fixture
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def test_scores_do_not_depend_on_how_rows_are_stored(quiet):
    A, b = make_bayes_curve(4000, random_state=0)
    A = A.astype(np.float32)
    clf = paper_classifier(6, solver="converged", random_state=0).fit(A.astype(float), b)
    np.testing.assert_array_equal(clf.decision_function(A), clf.decision_function(A.astype(float)))


def test_float32_does_not_fit_the_rounding_noise(quiet):
    A, b = noisy_problem(np.random.default_rng(0), 1000, 3, 0.1)
    make = paper_classifier(10, solver="converged", max_iter=2000, tol=1e-300, random_state=0)
    objective = make.fit(A.astype(np.float32), b).history_["objective"]
    assert objective[-1] <= 1.05 * objective.min()


def test_features_that_vanish_do_not_hang(quiet):
    clf = paper_classifier(1, centers=[[1.0]], scaler=None, solver="converged", max_iter=3)
    assert np.isfinite(clf.fit([[-1.0], [-1.0]], [0, 1]).coef_).all()
    clf = paper_classifier(solver="converged", max_iter=3)
    assert np.isfinite(clf.fit(X, Y, np.full(60, 1e-320)).coef_).all()


@pytest.mark.parametrize("far", [1e60, 1e120])
def test_rows_of_weight_zero_may_overflow(far):
    rows, labels = np.vstack([X, [[far, 0, 0]]]), np.append(Y, 1)
    with np.errstate(over="ignore", invalid="ignore"):
        clf = paper_classifier(scaler=None, random_state=0)
        clf.fit(rows, labels, np.append(np.ones(60), 0))
    expected = paper_classifier(scaler=None, random_state=0).fit(X, Y)
    np.testing.assert_allclose(clf.decision_function(X), expected.decision_function(X), atol=1e-8)
    assert np.isfinite(clf.history_["h_norm_difference"]).all()


def test_sparse_statistics_of_a_full_column_far_from_zero(rng):
    A = np.column_stack([1e9 + rng.normal(size=1000), rng.random(1000)])
    w = rng.random(1000) + 0.1
    scale = [
        PolynomialKernelMap(2, scaler="standard").fit(Z, sample_weight=w).scaler_["scale"]
        for Z in (A, sp.csr_array(A))
    ]
    np.testing.assert_allclose(scale[0], scale[1], rtol=1e-4)


def test_rows_that_overflow_at_prediction_are_named():
    clf = paper_classifier(scaler=None).fit(X, Y)
    far = np.vstack([X[:4], [[1e120, 0, 0]]])
    with pytest.raises(ValueError, match="overflows float64 in row 4"):
        clf.decision_function(far)
    model = PolynomialKernelMap(9, scaler=None).fit(X)
    with pytest.raises(ValueError, match="overflows float32 in row 0"):
        model.transform(np.full((1, 3), 1e6, dtype=np.float32))


def test_wide_sparse_rows_stay_sparse_until_the_end():
    import tracemalloc

    rng, count = np.random.default_rng(0), 60_000
    places = rng.integers(3000, size=count), rng.integers(20_000, size=count)
    wide = sp.csr_matrix((rng.random(count), places), shape=(3000, 20_000))
    tracemalloc.start()
    model = PolynomialKernelMap(2, 50, random_state=0).fit(wide)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert model.centers_.shape == (50, 20_000)
    assert peak < 8 * model.centers_.nbytes


def test_many_classes_do_not_warn(rng):
    clf = paper_classifier(2).fit(rng.random((3000, 2)), rng.integers(0, 60, 3000))
    assert len(clf.classes_) == 60


def test_continuous_labels_are_refused(rng):
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        paper_classifier().fit(X, rng.random(60))


def test_converged_with_tolerance_zero_has_a_full_history():
    clf = paper_classifier(2, solver="converged", tol=0, max_iter=5)
    with pytest.warns(ConvergenceWarning, match=r"primal residual of \d"):
        clf.fit(X, Y)
    assert np.isfinite(clf.history_["objective"]).all()


def test_a_failed_fit_of_another_width_leaves_the_old_model():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    clf = paper_classifier().fit(frame, Y)
    with pytest.raises(ValueError, match="no column to learn from"):
        clf.fit(np.full((20, 5), np.nan), np.arange(20) % 2)
    assert clf.n_features_in_ == 3 and clf.feature_names_in_.tolist() == ["a", "b", "c"]
    clf.predict(frame)


def test_warm_start_notices_other_centers():
    clf = paper_classifier(2, centers=X[:6], warm_start=True).fit(X, Y)
    with pytest.raises(ValueError, match="goes on with centers="):
        clf.set_params(centers=X[10:13]).fit(X, Y)


def test_text_in_a_list_is_a_category():
    rows = [[*row, "tall" if label > 0 else "short"] for row, label in zip(X, Y, strict=True)]
    clf = paper_classifier(random_state=0).fit(rows, Y)
    assert clf.column_kinds_.tolist() == ["number"] * 3 + ["category"]
    assert clf.score(rows, Y) == 1.0


def test_cells_that_are_no_values():
    rows = X.astype(object)
    rows[3, 1] = {"a": 1}
    with pytest.raises(
        TypeError, match="column 1 holds .* of type dict in row 3 .*A cell must be a number"
    ):
        paper_classifier().fit(rows, Y)


@pytest.mark.parametrize(
    "labels",
    [
        np.array([1, 2], dtype=object),
        np.array([True, False], dtype=object),
        np.array([datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)]),
        pd.Series(["a", "b"], dtype="string"),
    ],
)
def test_labels_of_unusual_types(labels):
    y = labels[(Y > 0).astype(int)]
    clf = paper_classifier(2).fit(X, np.asarray(y) if isinstance(labels, np.ndarray) else list(y))
    assert set(clf.predict(X)) <= set(labels)


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA], ids=["None", "nan", "NA"])
def test_missing_labels_are_named(missing):
    y = np.array(["a", "b"], dtype=object)[(Y > 0).astype(int)]
    y[7] = missing
    with pytest.raises(ValueError, match="missing value, first in row 7"):
        paper_classifier().fit(X, y)


def test_labels_that_have_no_order():
    y = np.array([1, "a"], dtype=object)[(Y > 0).astype(int)]
    with pytest.raises(ValueError, match=r"different types \(int, str\)"):
        paper_classifier().fit(X, y)


def test_class_weight_may_name_an_absent_class():
    extra = paper_classifier(class_weight={-1: 1.0, 1: 2.0, 7: 5.0}, random_state=0).fit(X, Y)
    plain = paper_classifier(class_weight={-1: 1.0, 1: 2.0}, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(extra.coef_, plain.coef_)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": 1e308, "beta": 1e-10}, "alpha must be a number of at most 1e.100"),
        ({"alpha": 10**400}, "alpha must be a positive number"),
        ({"random_state": 2**70}, r"random_state must be below 2\*\*64"),
        ({"time_limit": 0}, "time_limit must be a positive number; got 0"),
    ],
)
def test_odd_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        paper_classifier(**parameters).fit(X, Y)


def test_odd_inputs():
    dates = np.arange(120).reshape(60, 2).astype("datetime64[D]")
    assert paper_classifier().fit(dates, Y).column_kinds_.tolist() == ["date", "date"]
    with pytest.raises(ValueError, match="0 feature"):
        paper_classifier().fit(pd.DataFrame(index=range(60)), Y)
    scalar = paper_classifier(random_state=0).fit(X, Y, sample_weight=2.0)
    full = paper_classifier(random_state=0).fit(X, Y, sample_weight=np.full(60, 2.0))
    np.testing.assert_array_equal(scalar.coef_, full.coef_)


@pytest.mark.parametrize("scaler", ["standard", "quantile"])
def test_class_weight_does_not_move_the_scaler(scaler):
    """Labels enter the loss, never the features."""
    plain = paper_classifier(2, scaler=scaler, random_state=0).fit(X, Y)
    weighted = paper_classifier(2, scaler=scaler, random_state=0, class_weight={1: 9.0}).fit(X, Y)
    np.testing.assert_array_equal(weighted.centers_, plain.centers_)
    for name, value in plain.scaler_.items():
        np.testing.assert_array_equal(weighted.scaler_[name], value)
