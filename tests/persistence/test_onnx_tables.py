"""Exported models of tables, run by onnxruntime, against the classifier."""

import json
import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from mixed_tables import load_table, mixed_table, onnx_inputs, raw_tables, strange_rows
from polysift import FPCClassifierCV
from polysift.data.kinds import MISSING_WORDS
from polysift.features.level_columns import LevelColumn
from polysift.persistence import onnx_graph
from polysift.persistence.onnx import to_onnx
from polysift.persistence.onnx_inputs import input_names
from problems import noisy_problem, paper_classifier

onnx = pytest.importorskip("onnx", reason="the export needs onnx")
ort = pytest.importorskip("onnxruntime", reason="the exported graph needs something to run it")
pd = pytest.importorskip("pandas")

pytestmark = pytest.mark.filterwarnings("ignore::scipy.linalg.LinAlgWarning")


def session_of(proto):
    onnx.checker.check_model(proto, full_check=True)
    return ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])


def run(model, frame, **options):
    """Return the outputs of the exported model, by name."""
    proto = to_onnx(model, **options)
    session = session_of(proto)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, onnx_inputs(proto, frame)), strict=True))


def assert_same(model, frame, **options):
    found = run(model, frame, **options)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Values are missing")
        np.testing.assert_allclose(
            found["score"], model.decision_function(frame), rtol=0, atol=1e-10
        )
        assert np.mean(found["label"] == model.predict(frame)) > 0.999
        if model.calibration is not None:
            np.testing.assert_allclose(
                found["probabilities"], model.predict_proba(frame), rtol=0, atol=1e-9
            )
    return found


def fitted(frame, y, scaler="minmax", **options):
    options = {"degree": 2, "n_centers": 40, "max_levels": 20, "random_state": 0} | options
    return paper_classifier(scaler=scaler, **options).fit(frame, y)


@pytest.mark.parametrize("name", raw_tables() or [pytest.param("", marks=pytest.mark.skip)])
def test_raw_tables(name):
    frame, y, others = load_table(name, 2_000)
    for scaler, calibration in [("minmax", "sigmoid"), ("quantile", None)]:
        clf = paper_classifier(
            2, 60, scaler=scaler, calibration=calibration, max_levels=20, random_state=0
        ).fit(frame, y)
        if clf.scaler_["kind"] == "table":
            assert_same(clf, others)
            assert_same(clf, frame)


@pytest.mark.parametrize("scaler", ["minmax", "standard", "quantile"])
@pytest.mark.parametrize("calibration", [None, "sigmoid", "isotonic"])
def test_every_kind_of_column(scaler, calibration):
    frame, y = mixed_table()
    clf = fitted(frame, y, scaler, calibration=calibration)
    assert "encoded category" in clf.column_kinds_ and "date" in clf.column_kinds_
    assert_same(clf, frame)
    assert_same(clf, strange_rows(frame))
    assert_same(clf, mixed_table(100, seed=1)[0])


@pytest.mark.parametrize("calibration", [None, "sigmoid"])
@pytest.mark.parametrize("degree", [1, 3])
def test_splines(degree, calibration):
    frame, y = mixed_table()
    clf = fitted(frame, y, degree=degree, calibration=calibration, kernel="spline", alpha=1.0)
    assert "encoded category" in clf.column_kinds_ and "date" in clf.column_kinds_
    assert_same(clf, frame)
    assert_same(clf, strange_rows(frame))
    assert_same(clf, mixed_table(100, seed=1)[0])
    three = np.where(frame["Größe"] > 0.8, "maybe", y)
    assert_same(fitted(frame, three, kernel="spline", alpha=1.0), strange_rows(frame))


def test_splines_of_categories_alone():
    frame, y = mixed_table()
    frame = frame[["city", "label"]]
    clf = fitted(frame, y, kernel="spline", alpha=1.0)
    assert_same(clf, frame)


def test_three_classes_and_a_search():
    frame, y = mixed_table()
    three = np.where(frame["Größe"] > 0.8, "maybe", y)
    assert_same(fitted(frame, three, calibration="sigmoid"), strange_rows(frame))
    search = FPCClassifierCV(
        degrees=2, n_centers=10, rhos=None, solvers="paper", cv=2, max_levels=20, random_state=0
    ).fit(frame, y)
    assert_same(search, frame)


@pytest.mark.parametrize("dates", [False, True])
def test_inputs(dates):
    frame, y = mixed_table(dates=dates)
    clf = fitted(frame, y)
    for input_type, word in [("float64", "double"), ("float32", "float")]:
        session = session_of(to_onnx(clf, input_type=input_type))
        found = {value.name: value.type for value in session.get_inputs()}
        expected = {
            "age": f"tensor({word})",
            "Größe": f"tensor({word})",
            "city": "tensor(string)",
            "street": "tensor(string)",
            "label_2": "tensor(string)",
        }
        if dates:
            expected |= {"joined": "tensor(double)", "seen": "tensor(double)"}
        assert found == expected, "and none for what is left out"
        assert all(value.shape == ["rows", 1] for value in session.get_inputs())
    proto = to_onnx(clf)
    docs = {value.name: value.doc_string for value in proto.graph.input}
    assert "as text" in docs["city"] and "NaN if it is missing" in docs["age"]
    if dates:
        assert "seconds since 1970" in docs["seen"]
    about = {prop.key: json.loads(prop.value) for prop in proto.metadata_props}
    assert about["inputs"]["label_2"] == 4
    assert about["column_kinds"] == clf.column_kinds_.tolist()
    assert about["feature_names"] == list(frame.columns)
    assert {opset.domain for opset in proto.opset_import} == {"", "ai.onnx.ml"}
    assert "9 features" in proto.doc_string or not dates


def test_float32_numbers():
    frame, y = mixed_table()
    clf = fitted(frame, y)
    rows = frame.assign(Größe=frame["Größe"].astype(np.float32).astype(float))
    assert_same(clf, rows, input_type="float32")


def test_names_of_inputs():
    names = ["a", "", "a", "score", "a_2", "x1", "label", "Σ x"]
    found = input_names(names, range(len(names)))
    assert found == ["a", "x1", "a_2", "score_2", "a_2_2", "x1_2", "label_2", "Σ x"]
    assert input_names(names, [2, 3]) == ["a", "score_2"], "left out columns take no name"


def test_names_that_nodes_of_the_graph_have():
    frame, y = mixed_table(dates=False)
    taken = ["gather", "gather_2", "coordinates", "column", "X", "left", "out"]
    frame.columns = taken
    proto = to_onnx(fitted(frame, y))
    assert_same(fitted(frame, y), frame)
    made = [node.name for node in proto.graph.node]
    assert not {*made} & {*taken}


def test_arrays_without_names():
    frame, y = mixed_table(dates=False)
    clf = fitted(frame.drop(columns=["row", "unit"]).to_numpy(dtype=object), y)
    proto = to_onnx(clf)
    assert [value.name for value in proto.graph.input] == ["x0", "x1", "x2", "x3", "x4"]
    rows = strange_rows(frame).drop(columns=["row", "unit"])
    found = session_of(proto).run(["score"], onnx_inputs(proto, rows))[0]
    with pytest.warns(UserWarning, match="missing in column 1, column 3, "):
        expected = clf.decision_function(rows.to_numpy(dtype=object))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


def test_words():
    """Missing words, spellings of truth values, numbers as categories, and unknown levels."""
    rng = np.random.default_rng(0)
    flags, codes = rng.random(400) < 0.4, rng.integers(0, 5, 400).astype(float)
    frame = pd.DataFrame({"flag": flags, "code": codes, "x": rng.random(400)})
    frame.loc[::10, "code"] = np.nan
    y = np.where(flags, codes > 2, frame["x"] > 0.5)
    clf = fitted(frame, y, columns={"code": "category"})
    proto = to_onnx(clf)
    session = session_of(proto)

    def scores(flag, code):
        columns = {"flag": [[flag]], "code": [[code]]}
        fed = {name: np.array(cells, dtype=object) for name, cells in columns.items()}
        return session.run(["score"], fed | {"x": np.array([[0.4]])})[0][0]

    def expected(flag, code):
        row = pd.DataFrame({"flag": [flag], "code": [code], "x": [0.4]})
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Values are missing")
            return clf.decision_function(row)[0]

    for flag in ("True", "true", "TRUE", "tRuE", "False", "FALSE"):
        for code in ("3", "0", "99", "3.0"):
            assert abs(scores(flag, code) - expected(flag, code)) < 1e-12
    for word in sorted(MISSING_WORDS):
        assert abs(scores("True", word) - expected(True, None)) < 1e-12
        assert abs(scores(word, "1") - expected(None, 1.0)) < 1e-12
        for padded in (f" {word}", f"{word} ", f"  {word} "):
            assert scores("True", padded) == scores("True", word)
    assert scores("True", "3") != scores("True", "99") != scores("True", "")


def test_numbers_with_columns_left_out(rng):
    """The paper's kernel of a table: a value that lacks is a mean, as in rows without names."""
    X, y = noisy_problem(rng, 300, 3)
    frame = pd.DataFrame(X, columns=list("abc")).assign(row=np.arange(300))
    for scaler in ("minmax", "quantile", None):
        clf = paper_classifier(2, scaler=scaler, random_state=0).fit(frame, y)
        plain = paper_classifier(2, scaler=scaler, random_state=0).fit(X, y)
        proto = to_onnx(clf)
        assert [value.name for value in proto.graph.input] == ["a", "b", "c"]
        assert [opset.domain for opset in proto.opset_import] == [""]
        holes = np.where(rng.random((300, 3)) < 0.2, np.nan, X)
        rows = pd.DataFrame(holes, columns=list("abc")).assign(row=0)
        assert_same(clf, rows)
        with pytest.warns(UserWarning, match="missing in column 'a', column 'b', column 'c',"):
            found = clf.decision_function(rows)
        with pytest.warns(UserWarning, match="missing in column 0, column 1, column 2,"):
            np.testing.assert_allclose(found, plain.decision_function(holes), atol=1e-12)


@pytest.mark.parametrize("rows", [0, 1, 2, 300])
def test_any_number_of_rows(rows):
    frame, y = mixed_table()
    clf = fitted(frame, y, calibration="sigmoid")
    shapes = [output.shape for output in run(clf, frame[:rows]).values()]
    assert shapes == [(rows,), (rows,), (rows, 2)]


def test_blocks_give_the_bits_of_one_block(monkeypatch):
    frame, y = mixed_table(1_100)
    clf = fitted(frame, y, "quantile")
    whole = run(clf, frame)
    monkeypatch.setattr(onnx_graph, "BLOCK_VALUES", 1)
    for name, found in run(clf, frame).items():
        assert_array_equal(found, whole[name])


def test_file(tmp_path):
    frame, y = mixed_table()
    clf = fitted(frame, y)
    proto = to_onnx(clf, tmp_path / "model.onnx")
    first = (tmp_path / "model.onnx").read_bytes()
    to_onnx(clf, tmp_path / "model.onnx", overwrite=True)
    assert (tmp_path / "model.onnx").read_bytes() == first, "the same model gives the same bytes"
    assert len(first) == len(proto.SerializeToString())


def test_levels_that_are_hashed_have_no_graph():
    column = LevelColumn(3, np.empty(0), [], np.empty(0, dtype=int), np.zeros((5, 4)), 4)
    with pytest.raises(ValueError, match="Column 3 cannot be exported: its levels are hashed"):
        column.words_to_onnx(onnx_graph.Graph(), "x3")
