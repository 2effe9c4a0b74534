"""The exported graph, run by onnxruntime, against the classifier."""

import datetime
import json
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from polysift import FPCClassifier, FPCClassifierCV, __version__
from polysift.estimators.fitted import feature_map_of
from polysift.features.feature_map import BlockFeatures
from polysift.persistence import onnx_graph
from polysift.persistence.onnx import to_onnx
from polysift.persistence.onnx_graph import Graph, Value
from polysift.training.calibration import (
    IsotonicCalibrator,
    SigmoidCalibrator,
    calibrator_from_dict,
)
from problems import load_real, noisy_problem, paper_classifier

onnx = pytest.importorskip("onnx", reason="the export needs onnx")
ort = pytest.importorskip("onnxruntime", reason="the exported graph needs something to run it")

pytestmark = [
    pytest.mark.filterwarnings("ignore::scipy.linalg.LinAlgWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

SCALERS = ["minmax", "symmetric", "standard", "quantile", None]


def session_of(proto):
    onnx.checker.check_model(proto, full_check=True)
    return ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])


def run(model, X, batch=10_000, **options):
    """Return the outputs of the exported model, by name."""
    session = session_of(to_onnx(model, **options))
    names = [output.name for output in session.get_outputs()]
    starts = range(0, max(len(X), 1), batch)
    parts = [session.run(None, {"X": X[start : start + batch]}) for start in starts]
    columns = map(np.concatenate, zip(*parts, strict=True))
    return dict(zip(names, columns, strict=True))


def assert_labels(model, label, scores):
    """Compare labels with those of the scores, but for rows on the boundary."""
    if scores.ndim == 1:
        margin, code = np.abs(scores), (scores >= 0).astype(int)
    else:
        top = np.sort(scores, axis=1)
        margin, code = top[:, -1] - top[:, -2], scores.argmax(axis=1)
    clear = margin > 1e-9
    assert_array_equal(label[clear], model.classes_[code][clear])


def assert_same(model, X, atol=1e-10, **options):
    """Compare all outputs with the classifier's; returns them."""
    found = run(model, X, **options)
    scores = model.decision_function(X)
    assert found["score"].dtype == float
    np.testing.assert_allclose(found["score"], scores, rtol=0, atol=atol)
    assert found["label"].shape == (len(X),)
    assert_labels(model, found["label"], scores)
    if model.calibration is None:
        assert list(found) == ["label", "score"]
        return found
    assert list(found) == ["label", "score", "probabilities"]
    # Isotonic steps can be steep: rounding of a score moves a probability as far as they are.
    columns = found["score"].reshape(len(X), -1)
    expected = calibrator_from_dict(model.calibrator_).probabilities(columns)
    np.testing.assert_allclose(found["probabilities"], expected, rtol=0, atol=1e-14)
    if model.calibration == "sigmoid":
        expected = model.predict_proba(X)
        np.testing.assert_allclose(found["probabilities"], expected, rtol=0, atol=1e-10)
    return found


def far_rows(rng, X):
    """Return rows inside, around and far outside the range of X."""
    low, high = X.min(axis=0), X.max(axis=0)
    near = low + (high - low) * rng.uniform(-0.5, 1.5, (200, X.shape[1]))
    return np.vstack([X[:200], near, 1e6 * rng.normal(size=(50, X.shape[1]))])


REAL = [("magic", 4000), ("htru2", 4000), ("occupancy", 4000), ("covtype_binary", 8000)]


@pytest.mark.parametrize(("name", "m"), REAL)
def test_real_data(name, m):
    X, y = load_real(name)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:m], order[-10_000:]
    for scaler, degree, input_type in [
        ("minmax", 3, "float64"),
        ("quantile", 4, "float32"),
        ("standard", 2, "float64"),
    ]:
        clf = paper_classifier(degree, 300, scaler=scaler, calibration="sigmoid", random_state=0)
        clf.fit(X[train], y[train])
        assert_same(clf, X[test].astype(input_type), input_type=input_type)


@pytest.mark.parametrize(("name", "m"), REAL)
def test_real_data_with_isotonic_probabilities(name, m):
    X, y = load_real(name)
    order = np.random.default_rng(1).permutation(len(y))
    clf = paper_classifier(3, 200, calibration="isotonic", random_state=0)
    clf.fit(X[order[:m]], y[order[:m]])
    rows = X[order[-20_000:]]
    found = assert_same(clf, rows)["probabilities"][:, 1]
    scores, calibrator = clf.decision_function(rows), calibrator_from_dict(clf.calibrator_)
    low, high = (calibrator.positive(scores[:, None] + shift)[:, 0] for shift in (-1e-10, 1e-10))
    assert ((low - 1e-14 <= found) & (found <= high + 1e-14)).all()


def sums_of_sizes(clf, X):
    """Return sum_j |u_j| (1 + x.c_j)^s of each row: rounding errors are relative to it."""
    return np.abs(BlockFeatures(feature_map_of(clf), np.float64)(X)) @ np.abs(clf.coef_[0])


def assert_same_up_to_rounding(clf, X):
    """Compare scores by the accuracy that the classifier's own have."""
    found, expected = run(clf, X)["score"], clf.decision_function(X)
    rounding = 4 * np.finfo(float).eps * sums_of_sizes(clf, X)
    assert (np.abs(found - expected) <= np.maximum(rounding, 1e-10)).all()


@pytest.mark.parametrize("scaler", ["minmax", "quantile"])
def test_coefficients_that_cancel(scaler):
    X, y = load_real("magic")
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:3000], order[-3000:]
    clf = paper_classifier(3, 200, scaler=scaler, solver="converged", max_iter=100, random_state=0)
    clf.fit(X[train], y[train])
    assert sums_of_sizes(clf, X[test]).max() > 1e5
    assert_same_up_to_rounding(clf, X[test])
    assert_array_equal(run(clf, X[test])["label"], clf.predict(X[test]))


@pytest.mark.slow
@pytest.mark.parametrize("degree", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("scaler", ["minmax", "standard", "quantile"])
@pytest.mark.parametrize(("name", "m"), REAL)
def test_real_data_at_every_degree(name, m, scaler, degree):
    X, y = load_real(name)
    order = np.random.default_rng(2).permutation(len(y))
    for solver in ("paper", "converged"):
        clf = paper_classifier(
            degree, 500, scaler=scaler, solver=solver, max_iter=50, random_state=0
        )
        clf.fit(X[order[:m]], y[order[:m]])
        assert_same_up_to_rounding(clf, X[order[-10_000:]])


@pytest.mark.parametrize("scaler", SCALERS)
@pytest.mark.parametrize("input_type", ["float32", "float64"])
def test_scalers_and_types(rng, scaler, input_type):
    X, y = noisy_problem(rng, 2000, 3)
    X[:, 1] = 5 * X[:, 1] - 300
    clf = paper_classifier(4, scaler=scaler, calibration="sigmoid", random_state=0).fit(X, y)
    rows = X if scaler is None else far_rows(rng, X)
    found = run(clf, rows.astype(input_type), input_type=input_type)
    expected = clf.decision_function(rows.astype(input_type).astype(float))
    atol = 1e-10 if scaler else 1e-6  # unscaled, 1 + x.c reaches 1e5, and its power 1e20
    np.testing.assert_allclose(found["score"], expected, rtol=0, atol=atol)
    if scaler:
        assert_same(clf, rows.astype(input_type), input_type=input_type)


@pytest.mark.parametrize("input_type", ["float32", "float64"])
@pytest.mark.parametrize("d", [1, 3, 9])
def test_splines(rng, d, input_type):
    X, y = noisy_problem(rng, 1000, d)
    X[:, 0] = np.round(5 * X[:, 0])
    clf = spline_of(4, calibration="sigmoid").fit(X, y)
    rows = far_rows(rng, X).astype(input_type)
    assert_same(clf, rows, input_type=input_type)
    assert [value.name for value in to_onnx(clf).graph.input] == ["X"]
    if input_type == "float64":
        rows[::3, 0] = np.nan
        with pytest.warns(UserWarning, match="Values are missing in column 0, where no"):
            expected = clf.decision_function(rows)
        np.testing.assert_allclose(run(clf, rows)["score"], expected, rtol=0, atol=1e-12)


def test_splines_with_a_constant_column_and_three_classes(rng):
    X, y = noisy_problem(rng, 600, 3)
    X[:, 1] = 2.0
    clf = spline_of(2).fit(X, np.where(X[:, 0] > 0.5, 3, y))
    assert_same(clf, X)


def spline_of(degree, **params):
    return FPCClassifier(
        degree,
        40,
        kernel="spline",
        scaler="minmax",
        alpha=1.0,
        solver="paper",
        random_state=0,
        **params,
    )


@pytest.mark.parametrize("degree", range(1, 11))
def test_degrees(rng, degree):
    X, y = noisy_problem(rng, 500, 2)
    clf = paper_classifier(degree, random_state=0).fit(X, y)
    assert_same(clf, far_rows(rng, X))
    kinds = [node.op_type for node in to_onnx(clf).graph.node]
    assert "Pow" not in kinds and "MatMul" not in kinds


@pytest.mark.parametrize("scaler", SCALERS)
def test_one_feature(rng, scaler):
    """onnxruntime takes a factor of one entry for a scalar, and would fuse it in float32."""
    X, y = noisy_problem(rng, 500, 1)
    X = 3 * X + 0.1
    clf = paper_classifier(3, scaler=scaler, calibration="sigmoid", random_state=0).fit(X, y)
    assert_same(clf, X)


@pytest.mark.parametrize("calibration", [None, "sigmoid", "isotonic"])
@pytest.mark.parametrize("load", [load_iris, load_wine, load_digits])
def test_more_than_two_classes(load, calibration):
    X, y = load(return_X_y=True)  # digits has constant columns
    for scaler in ("minmax", "quantile"):
        clf = paper_classifier(2, 150, scaler=scaler, calibration=calibration, random_state=0)
        found = assert_same(clf.fit(X, y), X)
        assert found["score"].shape == (len(X), len(clf.classes_))


@pytest.mark.parametrize(
    ("classes", "dtype"),
    [
        (np.array([-3, 7], dtype=np.int8), "int64"),
        (np.array([0, 2**63 - 1], dtype=np.uint64), "int64"),
        (np.array(["no", "größer"]), "string"),
        (np.array(["a", "b", "c"], dtype=object), "string"),
        (np.array([False, True]), "bool"),
        (np.array([True, False], dtype=object), "bool"),
        (np.array([-1.0, 1.0]), "double"),
        (np.array([-1, 1], dtype=np.float32), "float"),
    ],
)
def test_classes(rng, classes, dtype):
    X, y = noisy_problem(rng, 600, 2)
    codes = (y > 0).astype(int) + (X[:, 0] > 0.7) * (len(classes) == 3)
    clf = paper_classifier(2, random_state=0).fit(X, classes[codes])
    session = session_of(to_onnx(clf))
    assert session.get_outputs()[0].type == f"tensor({dtype})"
    (label,) = session.run(["label"], {"X": X})
    assert_array_equal(label, clf.predict(X))
    assert len(np.unique(label)) == len(classes)


@pytest.mark.parametrize(
    ("classes", "name"),
    [
        ([datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)], "date"),
        ([(1, 2), (1, 3)], "tuple"),
        (np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[D]"), "datetime64"),
        (np.array([0, 2**63], dtype=np.uint64), "uint64"),
    ],
)
def test_classes_that_onnx_has_no_type_for(rng, classes, name):
    X, y = noisy_problem(rng, 100, 2)
    clf = paper_classifier(1, random_state=0).fit(X, y)
    clf.classes_ = np.empty(2, dtype=object)
    clf.classes_[:] = classes
    if isinstance(classes, np.ndarray):
        clf.classes_ = classes
    with pytest.raises(ValueError, match=f"Classes of type {name}"):
        to_onnx(clf)


def test_ties(rng):
    """A score of 0 is the second class of two; of equal scores the first counts."""
    X, y = noisy_problem(rng, 200, 2)
    clf = paper_classifier(2, random_state=0).fit(X, y)
    clf.coef_ = np.zeros_like(clf.coef_)
    assert (run(clf, X)["label"] == 1).all()
    clf.coef_ = -clf.coef_
    assert (run(clf, X)["label"] == 1).all(), "nor does the sign of zero matter"
    X, y = load_iris(return_X_y=True)
    clf = paper_classifier(2, random_state=0).fit(X, y)
    clf.coef_[:] = clf.coef_[1]
    assert (run(clf, X)["label"] == 0).all()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("rows", [0, 1, 2, 1000])
def test_any_number_of_rows(rng, rows, n_classes):
    X, y = noisy_problem(rng, 1000, 3)
    y = y + 3 * (X[:, 0] > 0.7) * (n_classes == 3)
    for scaler, calibration in [("minmax", "sigmoid"), ("quantile", "isotonic")]:
        clf = paper_classifier(2, scaler=scaler, calibration=calibration, random_state=0).fit(X, y)
        if rows:
            assert_same(clf, X[:rows])
        shapes = [output.shape for output in run(clf, X[:rows]).values()]
        per_class = (rows, len(clf.classes_))
        assert shapes == [(rows,), (rows,) if n_classes == 2 else per_class, per_class]


def test_knots_of_the_quantile_scaler(rng):
    X, y = noisy_problem(rng, 3000, 3)
    X[:, 1], X[:, 2] = np.round(5 * X[:, 1]), 2.5  # few knots, and one
    clf = paper_classifier(3, scaler="quantile", random_state=0).fit(X, y)
    values, counts = clf.scaler_["values"], clf.scaler_["counts"]
    assert counts[0] > 1000 and counts[1] == 6 and counts[2] == 1
    columns = zip(values, counts, strict=True)
    knots = np.column_stack([column[np.arange(1024) % n] for column, n in columns])
    around = [knots, np.nextafter(knots, np.inf), np.nextafter(knots, -np.inf), 1e300 - knots]
    assert_same(clf, np.vstack([*around, -1e300 - knots]), atol=1e-13)


def test_isotonic_probabilities_of_zero(rng):
    """Where no class has a chance all are as likely; scipy's sigmoid can vanish as well."""
    X, y = load_iris(return_X_y=True)
    clf = paper_classifier(2, calibration="isotonic", random_state=0).fit(X, y)
    top = clf.decision_function(X).max(axis=0)
    thresholds = np.concatenate([[t - 0.5, t - 0.2] for t in top])
    never = IsotonicCalibrator(thresholds, np.tile([0.0, 1.0], 3), np.array([2, 2, 2]))
    clf.calibrator_ = never.to_dict()
    found = assert_same(clf, X)["probabilities"]
    uniform = (found == 1 / 3).all(axis=1)
    assert 0 < uniform.sum() < len(X)
    for intercept in (-800.0, -60.0):
        clf.calibration = "sigmoid"
        clf.calibrator_ = SigmoidCalibrator(np.ones(3), np.full(3, intercept)).to_dict()
        found = assert_same(clf, X)["probabilities"]
        assert (found == 1 / 3).all() == (intercept == -800.0)


def test_probabilities_never_exceed_one(rng):
    X, y = noisy_problem(rng, 500, 2)
    clf = paper_classifier(2, calibration="isotonic", random_state=0).fit(X, y)
    knots = np.sort(clf.decision_function(X))[::50]
    clf.calibrator_ = IsotonicCalibrator(
        knots, np.linspace(0, 1 + 1e-9, len(knots)), np.array([len(knots)])
    ).to_dict()
    found = assert_same(clf, X)["probabilities"]
    assert found.max() == 1.0 and found.min() == 0.0


def test_calibration_set_after_fit_gives_no_probabilities(rng):
    X, y = noisy_problem(rng, 200, 2)
    clf = paper_classifier(2, random_state=0).fit(X, y).set_params(calibration="sigmoid")
    assert list(run(clf, X)) == ["label", "score"]


def test_tuned_classifier(rng):
    X, y = noisy_problem(rng, 600, 2)
    search = FPCClassifierCV(
        degrees=[2, 3], n_centers=6, cv=3, max_iter=30, calibration="isotonic", random_state=0
    ).fit(X, y)
    assert to_onnx(search) == to_onnx(search.best_estimator_)
    found = run(search, X)
    np.testing.assert_allclose(found["score"], search.decision_function(X), rtol=0, atol=1e-10)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_given_centers_and_sparse_rows(rng, make):
    X, y = noisy_problem(rng, 500, 3)
    X[X < 0.5] = 0.0
    clf = paper_classifier(3, centers=rng.random((15, 3)), random_state=0).fit(make(X), y)
    assert clf.n_centers_ == 15
    assert_same(clf, X)


@pytest.mark.parametrize("input_type", ["float64", "float32"])
def test_missing_values_are_means_of_the_centers(rng, input_type):
    X, y = noisy_problem(rng, 500, 3)
    for scaler in SCALERS:
        clf = paper_classifier(2, scaler=scaler, random_state=0).fit(X, y)
        rows = X.astype(input_type)
        rows[::3, 1] = np.nan
        with pytest.warns(UserWarning, match="Values are missing in column 1, where no"):
            expected = clf.decision_function(rows)
        found = run(clf, rows, input_type=input_type)["score"]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


finite = st.floats(-1e100, 1e100)
columns_of_knots = st.lists(
    st.lists(st.tuples(finite, st.floats(-10, 10)), min_size=1, max_size=40), min_size=1, max_size=4
)


@settings(max_examples=100, deadline=None)
@given(columns_of_knots, st.lists(st.floats(-1e308, 1e308), max_size=20))
def test_interpolation_is_that_of_numpy(pairs, points):
    columns = []
    for column in pairs:
        knots = np.unique([knot for knot, _ in column])
        columns.append((knots, np.array([value for _, value in column[: len(knots)]])))
    inner = [np.concatenate([k, (k[1:] + k[:-1]) / 2, np.nextafter(k, 0)]) for k, _ in columns]
    points = np.concatenate([points, [0.0, np.inf, -np.inf], *inner])
    graph = Graph()
    name = graph.interpolate("X", columns)
    shape = ("rows", len(columns))
    values = [Value(n, float, shape, "") for n in ("X", name)]
    proto = graph.to_proto(onnx, "interp", values[:1], values[1:])
    opset = onnx.helper.make_opsetid("", 17)
    session = session_of(onnx.helper.make_model(proto, ir_version=8, opset_imports=[opset]))
    (found,) = session.run(None, {"X": np.repeat(points[:, None], len(columns), axis=1)})
    for column, knots in zip(found.T, columns, strict=True):
        expected = np.interp(points, *knots)
        assert np.isfinite(column).all()
        usable = np.isfinite(expected)  # numpy's slope overflows between knots 1e-308 apart
        np.testing.assert_allclose(column[usable], expected[usable], rtol=1e-15, atol=1e-14)
        at_knots = np.isin(points, knots[0])
        assert_array_equal(column[at_knots], expected[at_knots])


def test_interpolation_between_thousands_of_knots(rng):
    X, y = noisy_problem(rng, 500, 2)
    clf = paper_classifier(2, calibration="isotonic", random_state=0).fit(X, y)
    knots = np.sort(rng.normal(size=20_001))
    clf.calibrator_ = IsotonicCalibrator(
        knots, np.sort(rng.random(20_001)), np.array([20_001])
    ).to_dict()
    assert_same(clf, far_rows(rng, X))


def test_file(rng, tmp_path):
    X, y = noisy_problem(rng, 300, 2)
    clf = paper_classifier(2, calibration="isotonic", random_state=0).fit(X, y)
    path = tmp_path / "model.onnx"
    proto = to_onnx(clf, path)
    first = path.read_bytes()
    assert onnx.load(path) == proto
    with pytest.raises(FileExistsError, match="overwrite=True"):
        to_onnx(clf, path)
    to_onnx(clf, str(path), overwrite=True)
    assert path.read_bytes() == first, "the same model gives the same bytes"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(FileNotFoundError, match="does not exist"):
        to_onnx(clf, tmp_path / "no" / "model.onnx")
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    assert_array_equal(session.run(["label"], {"X": X})[0], clf.predict(X))


def test_description(rng):
    import pandas as pd

    X, y = noisy_problem(rng, 300, 2)
    frame = pd.DataFrame(X, columns=["länge", "width"])
    clf = paper_classifier(2, calibration="sigmoid", random_state=0).fit(frame, y)
    proto = to_onnx(clf, input_type="float32")
    assert (proto.producer_name, proto.producer_version) == ("polysift", __version__)
    assert "degree 2 with 6 centers, 2 features and 2 classes" in proto.doc_string
    assert {p.key: json.loads(p.value) for p in proto.metadata_props} == {
        "feature_names": ["länge", "width"],
        "classes": [-1, 1],
        "degree": 2,
        "n_centers": 6,
    }
    assert [opset.domain for opset in proto.opset_import] == [""] and proto.ir_version == 8
    assert "länge, width" in proto.graph.input[0].doc_string
    assert all(output.doc_string for output in proto.graph.output)
    (rows,) = session_of(proto).get_inputs()
    assert (rows.name, rows.type, rows.shape) == ("X", "tensor(float)", ["rows", 2])
    props = to_onnx(paper_classifier(2, random_state=0).fit(X, y)).metadata_props
    assert "feature_names" not in {p.key for p in props}


def test_mistakes(rng, monkeypatch):
    X, y = noisy_problem(rng, 300, 2)
    clf = paper_classifier(2, random_state=0)
    for unfitted in (clf, FPCClassifierCV()):
        with pytest.raises(NotFittedError):
            to_onnx(unfitted)
    clf.fit(X, y)
    with pytest.raises(ValueError, match='input_type must be "float64" or "float32".*float16'):
        to_onnx(clf, input_type="float16")
    with pytest.raises(TypeError, match="got LogisticRegression"):
        to_onnx(LogisticRegression())
    with pytest.raises(TypeError, match="got the class FPCClassifier"):
        to_onnx(FPCClassifier)
    search = FPCClassifierCV(degrees=2, n_centers=5, cv=2, solvers="paper", refit=False)
    with pytest.raises(ValueError, match="refit=False"):
        to_onnx(search.fit(X, y))
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'polysift\[onnx\]'"):
        to_onnx(clf)


def test_models_that_protobuf_cannot_hold(rng):
    X, y = noisy_problem(rng, 300, 2)
    clf = paper_classifier(2, random_state=0).fit(X, y)
    clf.coef_ = np.broadcast_to(clf.coef_[0, :1], (1, 2**29))  # takes no memory
    with pytest.raises(ValueError, match=r"4.0 GiB.*2 GiB at most.*n_centers"):
        to_onnx(clf)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("scaler", ["minmax", "quantile"])
@pytest.mark.parametrize("input_type", ["float64", "float32"])
def test_blocks_give_the_bits_of_one_block(monkeypatch, classes, scaler, input_type):
    rng = np.random.default_rng(0)
    X = rng.random((1_100, 3))
    y = (classes * X[:, 0]).astype(int)
    clf = paper_classifier(3, scaler=scaler, calibration="sigmoid", random_state=0).fit(X, y)
    whole = ort.InferenceSession(to_onnx(clf, input_type=input_type).SerializeToString())
    monkeypatch.setattr(onnx_graph, "BLOCK_VALUES", 1)
    blocks = ort.InferenceSession(to_onnx(clf, input_type=input_type).SerializeToString())
    for rows in (0, 1, 255, 256, 260, 512, 1_100):
        given = {"X": X[:rows].astype(input_type)}
        for one, other in zip(whole.run(None, given), blocks.run(None, given), strict=True):
            assert_array_equal(one, other)


PEAK = """
import sys
from pathlib import Path
import numpy as np
import onnxruntime

def peak():  # of this program: getrusage counts what its parent was before
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024

session = onnxruntime.InferenceSession(sys.argv[1])
X = np.random.default_rng(0).random((60_000, 6))
before = peak()
session.run(None, {"X": X})
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted in other units elsewhere")
@pytest.mark.parametrize("kernel", ["polynomial", "spline"])
def test_memory_does_not_grow_with_the_rows(tmp_path, kernel):
    X = np.random.default_rng(0).random((1_000, 6))
    clf = FPCClassifier(
        6, 400, kernel=kernel, scaler="minmax", alpha=1.0, solver="paper", random_state=0
    )
    clf.fit(X, X[:, 0] > X[:, 1])
    to_onnx(clf, tmp_path / "model.onnx")
    command = [sys.executable, "-c", PEAK, tmp_path / "model.onnx"]
    megabytes = float(subprocess.check_output(command, text=True))
    assert megabytes < 120, "the features of all rows are 183 MiB, in each of several steps"
