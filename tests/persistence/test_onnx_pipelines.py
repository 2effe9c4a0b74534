"""Exported pipelines, run by onnxruntime, against the pipelines themselves."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from mixed_tables import mixed_table, onnx_inputs
from polysift import FPCClassifierCV, PolynomialKernelMap, register_onnx_converters, to_onnx
from problems import noisy_problem, paper_classifier

onnx = pytest.importorskip("onnx", reason="the export needs onnx")
ort = pytest.importorskip("onnxruntime", reason="the exported graph needs something to run it")
skl2onnx = pytest.importorskip("skl2onnx", reason="it converts pipelines")
pd = pytest.importorskip("pandas")

types = skl2onnx.common.data_types

pytestmark = pytest.mark.filterwarnings("ignore::scipy.linalg.LinAlgWarning")


def run(proto, inputs):
    """Return the outputs of a model, by name."""
    onnx.checker.check_model(proto, full_check=True)
    session = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, inputs), strict=True))


def columns(frame, **dtypes):
    """Return the columns of a frame as inputs, floats where nothing else is said."""
    return {
        name: frame[[name]].to_numpy().astype(dtypes.get(name, float)) for name in frame.columns
    }


def assert_same(model, X, found, tolerance=1e-10):
    assert np.mean(found["label"] == model.predict(X)) > 0.999
    scores = model.decision_function(X)
    np.testing.assert_allclose(found["score"], scores, rtol=0, atol=tolerance)
    assert ("probabilities" in found) == hasattr(model, "predict_proba")
    if "probabilities" in found:
        np.testing.assert_allclose(
            found["probabilities"], model.predict_proba(X), rtol=0, atol=tolerance
        )


def houses(m=400):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(0, 90, m),
            "size": rng.normal(size=m),
            "city": rng.choice(["Bern", "Bonn", "Köln"], m),
            "rooms": rng.integers(1, 4, m),
        }
    )
    return frame, np.where((frame["age"] > 50) == (frame["city"] == "Bern"), "yes", "no")


@pytest.mark.parametrize("calibration", [None, "sigmoid", "isotonic"])
def test_steps_of_scikit_learn_before_a_classifier_on_a_mixed_table(calibration):
    frame, y = houses()
    steps = make_column_transformer(
        (StandardScaler(), ["age", "size"]),
        (OneHotEncoder(sparse_output=False, handle_unknown="ignore"), ["city", "rooms"]),
    )
    clf = paper_classifier(2, 60, scaler="standard", calibration=calibration, random_state=0)
    pipe = make_pipeline(steps, clf).fit(frame, y)
    proto = to_onnx(pipe, X=frame.head())
    assert [value.name for value in proto.graph.input] == list(frame.columns)
    rows = frame.replace({"city": {"Köln": "Atlantis"}})
    # Isotonic steps can be steep: rounding of a score moves a probability as far as they are.
    tolerance = 1e-8 if calibration == "isotonic" else 1e-10
    assert_same(pipe, rows, run(proto, columns(rows, city=object)), tolerance)


def test_float32_where_a_step_has_no_other():
    """onnxruntime fills in missing floats, but no doubles."""
    frame, y = houses()
    frame.loc[::7, "size"] = np.nan
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    words = OneHotEncoder(sparse_output=False)
    steps = make_column_transformer((numbers, ["age", "size"]), (words, ["city"]))
    clf = paper_classifier(2, 60, scaler="standard", random_state=0)
    pipe = make_pipeline(steps, clf).fit(frame, y)
    proto = to_onnx(pipe, X=frame, input_type="float32")
    inputs = columns(frame, age=np.float32, size=np.float32, rooms=np.float32, city=object)
    assert_same(pipe, frame, run(proto, inputs), 1e-3)


@pytest.mark.parametrize("kernel", ["polynomial", "spline"])
def test_a_raw_table_with_every_kind_of_column(kernel):
    frame, y = mixed_table()
    clf = paper_classifier(2, 40, kernel=kernel, max_levels=20, random_state=0)
    alone = clf.fit(frame, y)
    proto, expected = to_onnx(make_pipeline(clf)), to_onnx(alone)
    for side in ("input", "output"):
        names = [[value.name for value in getattr(own.graph, side)] for own in (proto, expected)]
        assert names[0] == names[1]
    assert_same(alone, frame, run(proto, onnx_inputs(expected, frame)))


def test_integers_and_truth_values_as_categories():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"zip": rng.integers(0, 9, 300), "old": rng.random(300) < 0.5})
    y = (frame["zip"] % 2 == 0) ^ frame["old"]
    clf = paper_classifier(2, 30, columns={"zip": "category"}, random_state=0).fit(frame, y)
    register_onnx_converters()
    proto = skl2onnx.to_onnx(make_pipeline(clf), frame[:2])
    found = run(proto, columns(frame, zip=np.int64, old=bool))
    assert found["label"].dtype == bool
    assert_same(clf, frame, found)


@pytest.mark.parametrize("kernel", ["polynomial", "spline"])
def test_features_below_a_linear_model_of_scikit_learn(kernel):
    frame, y = houses()
    mapping = PolynomialKernelMap(2, 50, kernel=kernel, random_state=0)
    pipe = make_pipeline(mapping, LogisticRegression(max_iter=10_000)).fit(frame, y)
    found = run(to_onnx(pipe, X=frame.head()), columns(frame, city=object))
    assert list(found) == ["label", "probabilities"]
    np.testing.assert_array_equal(found["label"], pipe.predict(frame))
    np.testing.assert_allclose(found["probabilities"], pipe.predict_proba(frame), atol=1e-10)


@pytest.mark.parametrize(("dtype", "atol"), [("float64", 1e-12), ("float32", 1e-5)])
def test_a_feature_map_alone(rng, dtype, atol):
    X = rng.random((50, 3))
    mapping = PolynomialKernelMap(3, 11, scaler="quantile", random_state=0).fit(X)
    rows = X.astype(dtype)
    (features,) = run(to_onnx(mapping, input_type=dtype), {"X": rows}).values()
    assert features.dtype == dtype
    np.testing.assert_allclose(features, mapping.transform(rows), rtol=0, atol=atol)


def test_a_search_behind_a_projection(rng):
    X, y = rng.normal(size=(300, 5)), rng.integers(0, 3, 300)
    search = FPCClassifierCV(
        degrees=(1, 2), scalers="standard", n_centers=10, cv=2, calibration="sigmoid"
    )
    pipe = make_pipeline(PCA(3), search).fit(X, y)
    found = run(to_onnx(pipe), {"X": X})
    assert found["score"].shape == found["probabilities"].shape == (300, 3)
    assert_same(pipe, X, found)


@pytest.mark.parametrize("threshold", ["f1", "balanced"])
def test_a_search_with_thresholds_behind_steps_on_a_mixed_table(threshold):
    frame, y = houses()
    steps = make_column_transformer(
        (StandardScaler(), ["age", "size"]), (OneHotEncoder(sparse_output=False), ["city"])
    )
    chosen = {"calibration": "sigmoid", "threshold": threshold, "random_state": 0}
    search = FPCClassifierCV(degrees=(1, 2), n_centers=20, cv=2, **chosen)
    pipe = make_pipeline(steps, search).fit(frame, y)
    inputs = columns(frame, city=object)
    assert_same(pipe, frame, run(to_onnx(pipe, X=frame), inputs))
    register_onnx_converters()
    asked = [
        (name, (types.StringTensorType if name == "city" else types.DoubleTensorType)([None, 1]))
        for name in frame.columns
    ]
    found = run(skl2onnx.to_onnx(pipe, initial_types=asked, options={"zipmap": False}), inputs)
    np.testing.assert_array_equal(found["label"], pipe.predict(frame))


def test_a_step_that_asks_for_probabilities(rng):
    X, y = noisy_problem(rng, 300, 3)
    register_onnx_converters()

    def voting(calibration):
        ours = paper_classifier(2, calibration=calibration, random_state=0)
        models = [("ours", ours), ("theirs", LogisticRegression())]
        return VotingClassifier(models, voting="soft", flatten_transform=False)

    votes = voting("sigmoid").fit(X, y)
    options = {"zipmap": False}
    found = run(skl2onnx.to_onnx(votes, X[:1], options={id(votes): options}), {"X": X})
    np.testing.assert_array_equal(found["label"], votes.predict(X))
    np.testing.assert_allclose(found["probabilities"], votes.predict_proba(X), atol=1e-6)
    with pytest.raises(ValueError, match='needs its probabilities.*Set calibration="sigmoid"'):
        skl2onnx.to_onnx(voting(None).fit(X, y), X[:1])


def test_the_same_pipeline_gives_the_same_bytes_also_in_a_file(rng, tmp_path):
    X, y = noisy_problem(rng, 200, 3)
    pipe = make_pipeline(StandardScaler(), paper_classifier(2, random_state=0)).fit(X, y)
    first = to_onnx(pipe, tmp_path / "model.onnx").SerializeToString(deterministic=True)
    assert (tmp_path / "model.onnx").read_bytes() == first
    assert to_onnx(pipe).SerializeToString(deterministic=True) == first


def test_what_cannot_be_exported_is_refused(rng, tmp_path):
    frame, y = houses(60)
    clf = paper_classifier(2, 9, columns={"rooms": "category"}, random_state=0)
    with pytest.raises(NotFittedError):
        to_onnx(make_pipeline(clf))
    steps = make_column_transformer((StandardScaler(), ["age"]))
    pipe = make_pipeline(steps, paper_classifier(2)).fit(frame, y)
    with pytest.raises(ValueError, match="pass a few of the training rows as X"):
        to_onnx(pipe, tmp_path / "model.onnx")
    with pytest.raises(ValueError, match="X must have the columns.*'age', 'size'.*got 'size', 'a"):
        to_onnx(pipe, X=frame[["size", "age", "city", "rooms"]])
    assert not list(tmp_path.iterdir())

    pipe = make_pipeline(clf).fit(frame, y)
    numbers = [(name, types.DoubleTensorType([None, 1])) for name in frame.columns]
    numbers[2:] = [(name, types.StringTensorType([None, 1])) for name in ("city", "rooms")]
    with pytest.raises(TypeError, match="'rooms' is a category.*declare the input as StringTens"):
        skl2onnx.to_onnx(pipe, initial_types=[*numbers[:3], ("rooms", numbers[0][1])])
    words = [("age", types.StringTensorType([None, 1])), *numbers[1:]]
    with pytest.raises(TypeError, match="'age' is text in the inputs, but holds numbers"):
        skl2onnx.to_onnx(pipe, initial_types=words)
    with pytest.raises(ValueError, match="fitted to 4 columns, but its inputs have 3"):
        skl2onnx.to_onnx(pipe, initial_types=numbers[:3])
    with pytest.raises(ValueError, match="target_opset must be at least 17.*got 13"):
        skl2onnx.to_onnx(pipe, initial_types=numbers, target_opset=13)


def test_without_skl2onnx_it_says_how_to_install_it():
    code = (
        "import sys; sys.modules['skl2onnx'] = None\n"
        "import polysift\n"
        "polysift.register_onnx_converters()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "Pipelines are exported by skl2onnx. Install it with: pip install" in done.stderr
