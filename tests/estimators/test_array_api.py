"""Rows of other libraries, by the array API; those of torch where it is installed.

scikit-learn dispatches only if SCIPY_ARRAY_API was set when SciPy was imported: without it, one
test runs this file once more in a process that has it.
"""

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks

from clocks import GUARD
from polysift import FeatureOverflowError, FPCClassifier, FPCClassifierCV, PolynomialKernelMap
from problems import optional, paper_classifier

DISPATCHES = os.environ.get("SCIPY_ARRAY_API") == "1"
dispatched = pytest.mark.skipif(not DISPATCHES, reason="needs SCIPY_ARRAY_API=1")
pytestmark = pytest.mark.filterwarnings("ignore::scipy.linalg.LinAlgWarning")

strict = optional("array_api_strict")
torch = optional("torch")
LIBRARIES = [pytest.param(strict, id="strict"), pytest.param(torch, id="torch")]


@pytest.fixture
def dispatch():
    with sklearn.config_context(array_api_dispatch=True):
        yield


@pytest.mark.skipif(DISPATCHES, reason="this is that process")
@pytest.mark.needs("array_api_strict")
def test_all_of_this_file_with_dispatch():
    pytest.importorskip("scipy", minversion="1.14", reason="scikit-learn needs it for dispatch")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    environment.pop("PYTEST_XDIST_WORKER", None)
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=GUARD, check=False
    )
    assert done.returncode == 0 and " passed" in done.stdout, done.stdout[-4000:] + done.stderr


def numbers(m=300, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d)) * [1.0, 10.0, 0.1, 1.0]
    return X, (X[:, 0] * X[:, 3] > 0).astype(int) + 2 * (X[:, 1] > 8)


def with_gaps(X, seed=0):
    X = X.copy()
    X[np.random.default_rng(seed).random(X.shape) < 0.1] = np.nan
    return X


def same(found, expected, xp, atol=1e-10):
    """Check that an array is one of a library, and the values."""
    assert type(found) is type(xp.zeros(1))
    np.testing.assert_allclose(np.from_dlpack(found), expected, rtol=0, atol=atol)


@dispatched
@pytest.mark.usefixtures("dispatch")
@pytest.mark.parametrize("xp", LIBRARIES)
@pytest.mark.parametrize("scaler", ["minmax", "standard", "quantile", None])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_features(xp, scaler, dtype):
    X = numbers()[0].astype(dtype)
    model = PolynomialKernelMap(3, 20, scaler=scaler, random_state=0).fit(X)
    found = model.transform(xp.asarray(X))
    expected = model.transform(X)
    assert found.dtype == getattr(xp, dtype)
    atol = (1e-12 if dtype == "float64" else 1e-5) * np.abs(expected).max()
    same(found, expected, xp, atol)


@dispatched
@pytest.mark.usefixtures("dispatch")
@pytest.mark.parametrize("xp", LIBRARIES)
@pytest.mark.parametrize("kernel", ["polynomial", "spline"])
@pytest.mark.parametrize("gaps", [False, True])
def test_predictions(xp, kernel, gaps):
    X, y = numbers()
    X = with_gaps(X) if gaps else X
    X[:, 2] = 7.0  # a constant
    for labels in (y, y > 0, np.array(["a", "b", "c", "d"])[y]):
        clf = FPCClassifier(kernel=kernel, n_centers=30, random_state=0).fit(X, labels)
        rows = xp.asarray(X)
        same(clf.decision_function(rows), clf.decision_function(X), xp)
        same(clf.predict_proba(rows), clf.predict_proba(X), xp)
        predicted = clf.predict(rows)
        if labels.dtype.kind == "U":  # text, of which there are no tensors
            np.testing.assert_array_equal(predicted, clf.predict(X))
        else:
            same(predicted, clf.predict(X), xp)


@dispatched
@pytest.mark.usefixtures("dispatch")
@pytest.mark.parametrize("xp", LIBRARIES)
@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
def test_calibrated_probabilities(xp, calibration):
    X, y = numbers()
    for labels in (y, y > 0):
        clf = paper_classifier(2, 20, calibration=calibration, random_state=0).fit(X, labels)
        same(clf.predict_proba(xp.asarray(X)), clf.predict_proba(X), xp)


@dispatched
@pytest.mark.usefixtures("dispatch")
@pytest.mark.parametrize("xp", LIBRARIES)
def test_a_fit_takes_them_and_is_that_of_numpy(xp):
    X, y = numbers()
    weights = np.arange(len(y)) % 3.0
    rows, labels, counts = (xp.asarray(values) for values in (X, y, weights))
    expected = paper_classifier(2, random_state=0).fit(X, y, weights)
    clf = paper_classifier(2, random_state=0).fit(rows, labels, counts)
    np.testing.assert_array_equal(clf.coef_, expected.coef_)
    assert clf.score(rows, labels) == pytest.approx(expected.score(X, y), abs=1e-6)
    clf = paper_classifier(2, random_state=0).partial_fit(rows, labels, np.unique(y))
    assert type(clf.coef_) is np.ndarray
    mapping = PolynomialKernelMap(2, 9, random_state=0)
    same(mapping.fit_transform(rows), mapping.transform(X), xp)
    search = FPCClassifierCV(degrees=(1, 2), n_centers=9, cv=2, random_state=0).fit(rows, labels)
    same(search.predict(rows), search.predict(X), xp)


@dispatched
@pytest.mark.usefixtures("dispatch")
@pytest.mark.parametrize("xp", LIBRARIES)
def test_categories_are_left_to_numpy_and_come_back(xp):
    X, y = numbers()
    X[:, 1] = np.rint(X[:, 1])
    clf = FPCClassifier(columns={1: "category"}, n_centers=20, random_state=0).fit(X, y)
    same(clf.decision_function(xp.asarray(X)), clf.decision_function(X), xp, 0.0)
    same(clf.predict(xp.asarray(X)), clf.predict(X), xp, 0.0)


@dispatched
@pytest.mark.usefixtures("dispatch")
@pytest.mark.parametrize("xp", LIBRARIES)
def test_integers_and_many_blocks(xp, monkeypatch):
    X, y = numbers()
    clf = paper_classifier(2, 20, random_state=0).fit(X, y)
    whole = np.rint(X).astype(np.int64)
    same(clf.decision_function(xp.asarray(whole)), clf.decision_function(whole), xp)
    monkeypatch.setattr("polysift.estimators.devices.BLOCK_FEATURES", 20 * 7)
    same(clf.decision_function(xp.asarray(X)), clf.decision_function(X), xp)


@dispatched
@pytest.mark.usefixtures("dispatch")
@pytest.mark.parametrize("xp", LIBRARIES)
def test_bad_rows_get_the_usual_errors(xp):
    X, y = numbers()
    clf = paper_classifier(2, 20, scaler=None, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="X has 3 features, but FPCClassifier is expecting 4"):
        clf.predict(xp.asarray(X[:, :3]))
    with pytest.raises(ValueError, match="Expected 2D array, got 1D"):
        clf.predict(xp.asarray(X[0]))
    bad = X.copy()
    bad[5, 2] = np.inf
    with pytest.raises(ValueError, match="infinity.*row 5"):
        clf.predict(xp.asarray(bad))
    bad[5, 2] = 1e200
    with pytest.raises(FeatureOverflowError, match="overflows"):
        clf.predict(xp.asarray(bad))
    bad[5, 2] = np.nan
    with pytest.warns(UserWarning, match="Values are missing in .*2") as found:
        clf.predict(xp.asarray(bad))
    assert found[0].filename == __file__


@dispatched
@pytest.mark.usefixtures("dispatch")
@pytest.mark.parametrize("xp", LIBRARIES)
def test_features_stay_where_they_are_below_a_model_of_scikit_learn(xp):
    X, y = numbers()
    model = make_pipeline(PolynomialKernelMap(2, 20, random_state=0), RidgeClassifier())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        if "array_api_support" not in str(RidgeClassifier().__sklearn_tags__()):
            pytest.skip("this scikit-learn has no such ridge")
        model.set_params(ridgeclassifier__solver="svd").fit(xp.asarray(X), xp.asarray(y))
        found = model.predict(xp.asarray(X))
    assert type(found) is type(xp.zeros(1))


def test_the_tag_says_so():
    for model in (FPCClassifier(), FPCClassifierCV(), PolynomialKernelMap()):
        assert model.__sklearn_tags__().array_api_support


@dispatched
@pytest.mark.needs("array_api_strict")
@pytest.mark.parametrize("model", [PolynomialKernelMap(), paper_classifier(2, 20)], ids=str)
def test_scikit_learns_checks_but_where_they_differ(model):
    """A model stays one of NumPy arrays, words about columns among them, and serves all rows."""
    if not hasattr(estimator_checks, "check_array_api_same_namespace"):
        pytest.skip("this scikit-learn has no such checks")
    differ = {
        "check_array_api_input": "attribute is in wrong namespace, expected array_api_strict",
        "check_array_api_mixed_inputs": "attribute is in wrong namespace",
        "check_array_api_same_namespace": "did not raise when called with a different array",
    }
    made = estimator_checks.check_estimator(model, expected_failed_checks=differ, on_skip=None)
    failed = [
        (found["check_name"], str(found["exception"])) for found in made if found["exception"]
    ]
    failed = [(name, error) for name, error in failed if "is not installed" not in error]
    assert {name for name, _ in failed} >= {"check_array_api_input"}
    for name, error in failed:
        assert differ[name] in error
    numpys = [found["status"] for found in made if found["check_name"] == "check_array_api_input"]
    assert numpys[0] == "passed", "that of NumPy's own arrays"


def test_without_dispatch_tensors_become_numpy_arrays():
    X, y = numbers()
    clf = paper_classifier(2, random_state=0).fit(torch.asarray(X), torch.asarray(y))
    found = clf.predict(torch.asarray(X))
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, clf.predict(X))
