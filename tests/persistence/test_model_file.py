"""Model files: all of a model comes back, and a file that is not right is refused, never run.

Run as a program it writes the sample files of the present format to the folder ``files``,
unless they are there: those of a format that is out in the world are kept for good.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import io
import json
import os
import pickle
import struct
import subprocess
import sys
import tracemalloc
import warnings
import zipfile
from collections import OrderedDict
from decimal import Decimal
from functools import reduce
from itertools import product
from operator import getitem
from pathlib import Path

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline

from mixed_tables import mixed_table, strange_rows
from polysift import FPCClassifier, FPCClassifierCV, PolynomialKernelMap, RayCluster
from polysift.persistence import archive, model_file
from polysift.persistence.model_file import ModelFileError, NotSaved, load, save
from polysift.persistence.plain import Encoder, NotPlainError, decode
from polysift.runtime.arrays import ArrayHeader
from problems import noisy_problem, optional, paper_classifier

pd = optional("pandas")
skops_io = optional("skops.io")

DATA = Path(__file__).parent / "files"
SMALL = {"degrees": (1, 2), "n_centers": 6, "rhos": None, "solvers": "paper", "cv": 3}
FOLDER = []


@pytest.fixture(autouse=True, scope="module")
def folder(tmp_path_factory):
    """A folder for ``saved`` and ``loaded``."""
    FOLDER[:] = [tmp_path_factory.mktemp("models")]


def saved(model) -> bytes:
    """Return the bytes of a model's file."""
    path = FOLDER[0] / "model.polysift"
    save(model, path, overwrite=True)
    return path.read_bytes()


def loaded(data: bytes):
    path = FOLDER[0] / "again.polysift"
    path.unlink(missing_ok=True)  # to overwrite a file is slow on some disks
    path.write_bytes(data)
    return load(path)


def problem(labels=(0, 1), m=150, d=3):
    X, y = noisy_problem(np.random.default_rng(0), m, d)
    codes = (y > 0).astype(int)
    if len(labels) == 3:
        codes += X[:, 0] > 0.6
    return X, np.array(labels)[codes]


def assert_same(a, b):
    """Compare two values, and their types, all the way down."""
    assert type(a) is type(b)
    if isinstance(a, dict):
        assert list(a) == list(b)
        assert_same(list(a.values()), list(b.values()))
    elif isinstance(a, list | tuple):
        for x, y in zip(a, b, strict=True):
            assert_same(x, y)
    elif isinstance(a, np.ma.MaskedArray):
        for part in ("data", "fill_value"):
            assert_same(getattr(a, part), getattr(b, part))
        assert_same(np.ma.getmaskarray(a), np.ma.getmaskarray(b))
    elif isinstance(a, np.ndarray) and a.dtype == object:
        assert a.shape == b.shape
        assert_same(a.reshape(-1).tolist(), b.reshape(-1).tolist())
    elif isinstance(a, np.ndarray | np.generic):
        assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    elif isinstance(a, float):
        assert struct.pack("<d", a) == struct.pack("<d", b)
    elif isinstance(a, FPCClassifier | FPCClassifierCV):
        assert_same(dict(sorted(vars(a).items())), dict(sorted(vars(b).items())))
    else:
        assert a == b


def check_round_trip(model, X):
    """Save and load a model, and compare all there is; returns the loaded one."""
    data = saved(model)
    assert data == saved(model) == saved(copy.deepcopy(model))
    again = loaded(data)
    assert_same(again, model)
    assert saved(again) == data
    assert repr(again) == repr(model) and repr(clone(again)) == repr(clone(model))
    for method in ("decision_function", "predict", "predict_proba"):
        assert hasattr(again, method) == hasattr(model, method)
        if hasattr(model, method):
            assert_same(getattr(again, method)(X), getattr(model, method)(X))
    return again


LABELS = [(0, 1), (-1.0, 2.0), (False, True), ("no", "yes"), ("dog", "ox", "cat"), (3, 1, 2)]
LABELS += [np.array(["2020-01-01", "2021-01-01"], "M8[D]"), np.array([1, 2], "u1")]
LABELS += [np.array([b"no", b"yes"], dtype=object), np.array(["no", "yes"], dtype=object)]


@pytest.mark.parametrize("labels", LABELS, ids=str)
def test_labels_come_back(labels):
    X, y = problem(labels)
    check_round_trip(paper_classifier(2, calibration="sigmoid").fit(X, y), X)


@pytest.mark.parametrize("scaler", ["minmax", "symmetric", "standard", "quantile", None])
@pytest.mark.parametrize("calibration", [None, "sigmoid", "isotonic"])
@pytest.mark.parametrize("classes", [2, 3])
def test_scalers_and_calibrators_come_back(scaler, calibration, classes):
    X, y = problem(tuple(range(classes)))
    X[:, 1] = np.round(X[:, 1])  # few knots, and below a constant column: one
    X[:, 2] = 3.0
    clf = paper_classifier(2, scaler=scaler, calibration=calibration, n_centers=8).fit(X, y)
    again = check_round_trip(clf, X)
    assert again.random_state is None and again.random_state_ == clf.random_state_


@pytest.mark.parametrize("engine", ["ray", RayCluster(), RayCluster("auto", 3, patience=5.0)])
def test_engines_come_back(engine):
    X, y = problem()
    clf = check_round_trip(
        paper_classifier(2, random_state=0).fit(X, y).set_params(engine=engine), X
    )
    assert clf.engine == engine
    search = FPCClassifierCV(**SMALL, random_state=0).fit(X, y).set_params(engine=engine)
    search.best_estimator_.set_params(engine=engine)
    again = check_round_trip(search, X)
    assert again.best_estimator_.engine == again.engine == engine


def test_no_file_leads_to_another_machine():
    """Rows are sent to an engine, and what comes from there is trusted."""
    X, y = problem()
    clf = paper_classifier(2).fit(X, y).set_params(engine=RayCluster("10.0.0.1:6379", 2))
    data = saved(clf)
    assert b"10.0.0.1" not in data and loaded(data).engine == RayCluster(workers=2)
    clf.set_params(engine={"RayCluster": {"address": "10.0.0.1:6379"}})
    with pytest.raises(ModelFileError, match="names an engine that cannot be"):
        loaded(saved(clf))
    clf.set_params(engine={"RayCluster": {"wat": 1}})
    with pytest.raises(ModelFileError, match="not as save writes it"):
        loaded(saved(clf))

    class Own:
        def open(self):
            pass

    clf.set_params(engine=Own())
    assert isinstance(loaded(saved(clf)).engine, NotSaved)


def test_all_kinds_of_training_come_back():
    X, y = problem()
    centers = np.random.default_rng(1).random((5, 3))
    frame = pd.DataFrame(X, columns=["a", "b", "Größe"])
    settings = {"class_weight": {1: 2.0, 0: 1}, "memory_limit": "1GB", "n_jobs": np.int64(1)}
    check_round_trip(paper_classifier(2, **settings).fit(sp.csr_array(X), y), sp.csr_array(X))
    check_round_trip(paper_classifier(np.int16(2), centers=centers).fit(X, y), X)
    check_round_trip(paper_classifier(2, centers=centers.tolist(), scaler=None).fit(X, y), X)
    check_round_trip(paper_classifier(2, tol=0, alpha=0.5, rho=1e-3).fit(X.astype("f4"), y), X)
    again = check_round_trip(paper_classifier(2).fit(frame, y), frame)
    assert again.feature_names_in_.tolist() == ["a", "b", "Größe"]
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame[["b", "a", "Größe"]])


@pytest.mark.parametrize("calibration", [None, "isotonic"])
@pytest.mark.parametrize("labels", [(0, 1), ("dog", "ox", "cat")])
def test_a_search_comes_back(labels, calibration):
    X, y = problem(labels)
    frame = pd.DataFrame(X, columns=list("abc"))
    search = FPCClassifierCV(**SMALL, calibration=calibration, random_state=0).fit(frame, y)
    again = check_round_trip(search, frame)
    assert type(again.best_estimator_) is FPCClassifier
    assert again.score(frame, y) == search.score(frame, y)


def test_a_search_without_a_model_comes_back():
    X, y = problem()
    search = FPCClassifierCV(**SMALL | {"cv": 0.3}, refit=False, time_limit=1e3).fit(X, y)
    assert not hasattr(check_round_trip(search, X), "best_estimator_")
    given = FPCClassifierCV(**SMALL | {"degrees": range(1, 3), "n_centers": np.array([2, 4])})
    given.set_params(centers=np.random.default_rng(1).random((5, 3)), scalers=None).fit(X, y)
    assert check_round_trip(given, X).degrees == range(1, 3)


@pytest.mark.parametrize("scaler", ["minmax", "standard", "quantile"])
@pytest.mark.parametrize("calibration", [None, "isotonic"])
def test_a_model_of_a_table_comes_back(scaler, calibration):
    frame, y = mixed_table()
    clf = paper_classifier(2, 20, scaler=scaler, calibration=calibration, max_levels=20)
    clf.set_params(columns={"unit": "drop"}, random_state=0).fit(frame, y)
    assert set(clf.column_kinds_) == {
        *("number", "category", "encoded category", "date"),
        *("identifier", "drop"),
    }
    again = check_round_trip(clf, frame)
    with pytest.warns(UserWarning, match="Values are missing"):
        expected = clf.decision_function(strange_rows(frame))
    with pytest.warns(UserWarning, match="Values are missing"):
        assert_same(again.decision_function(strange_rows(frame)), expected)


def test_a_search_over_a_table_comes_back():
    frame, y = mixed_table()
    search = FPCClassifierCV(**SMALL, max_levels=20, random_state=0).fit(frame, y)
    assert check_round_trip(search, frame).best_estimator_.scaler_["kind"] == "table"


def test_a_table_of_numbers_with_columns_left_out_comes_back():
    X, y = problem()
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(row=range(len(X)))
    clf = paper_classifier(2).fit(frame, y)
    assert clf.column_kinds_.tolist() == ["number", "number", "number", "identifier"]
    check_round_trip(clf, frame)


def test_warm_start_goes_on():
    X, y = problem(("a", "b", "c"))
    clf = paper_classifier(3, warm_start=True, tol=0, max_iter=3, random_state=0).fit(X, y)
    again = loaded(saved(clf))
    for model in (clf, again):
        model.fit(X, y)
    np.testing.assert_array_equal(again.coef_, clf.coef_)
    with pytest.raises(ValueError, match="warm_start=True goes on with degree=3"):
        again.set_params(degree=2).fit(X, y)
    again.set_params(degree=3, warm_start=False).fit(X, y)
    np.testing.assert_array_equal(again.centers_, clf.centers_)


def test_what_is_no_plain_data_is_described():
    X, y = problem()

    def scoring(estimator, X, y):
        return float(np.mean(estimator.predict(X) == y))

    search = FPCClassifierCV(**SMALL | {"cv": KFold(3)}, scoring=scoring).fit(X, y)
    again = loaded(saved(search))
    assert repr(again.cv) == "<not saved: KFold(n_splits=3, random_state=None, shuffle=False)>"
    assert "scoring" in repr(again.scoring) and "0x" not in repr(again.scoring)
    assert saved(again) == saved(search)
    assert again.get_params() == clone(again).get_params() and "not saved" in repr(again)
    np.testing.assert_array_equal(again.predict(X), search.predict(X))
    for attempt in (again.score, again.fit):
        with pytest.raises(ValueError, match="scoring must be .*not saved"):
            attempt(X, y)
    with pytest.raises(ValueError, match="cv must be .*not saved: KFold"):
        again.set_params(scoring=None).fit(X, y)
    again.set_params(cv=3).fit(X, y)

    splits = list(KFold(3).split(X))
    for cv, text in [(splits, "list of length 3"), (iter(splits), "list_iterator")]:
        search = FPCClassifierCV(**SMALL | {"cv": splits}).fit(X, y).set_params(cv=cv)
        again = loaded(saved(search))
        assert text in repr(again.cv)
        with pytest.raises(ValueError, match="cv must be"):
            again.fit(X, y)
    assert len(list(cv)) == 3, "an iterator is not consumed"
    search = FPCClassifierCV(**SMALL, scoring=make_scorer(f1_score)).fit(X, y)
    assert "make_scorer(f1_score" in repr(loaded(saved(search)).scoring)


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_a_generator_becomes_the_seed(make):
    X, y = problem()
    for model in (paper_classifier(2), FPCClassifierCV(**SMALL)):
        model.set_params(random_state=make(3)).fit(X, y)
        again = loaded(saved(model))
        assert again.random_state == model.random_state_
        np.testing.assert_array_equal(again.fit(X, y).predict(X), model.predict(X))


def test_paths_become_text_and_frames_arrays(tmp_path):
    X, y = problem()
    centers = pd.DataFrame(np.random.default_rng(1).random((5, 3)))
    clf = paper_classifier(2, centers=centers, checkpoint=tmp_path / "c", warm_start=True).fit(X, y)
    again = loaded(saved(clf))
    assert again.checkpoint == str(tmp_path / "c")
    np.testing.assert_array_equal(again.centers, centers)
    again.set_params(checkpoint=None).fit(X, y)
    search = FPCClassifierCV(**SMALL, centers=centers).fit(X, y)
    np.testing.assert_array_equal(loaded(saved(search)).best_params_["centers"], centers)


def test_what_else_a_model_carries_stays_behind():
    X, y = problem()
    clf = paper_classifier(2).fit(X, y)
    data = saved(clf)
    clf._mine, clf.note = object(), object()
    assert saved(clf) == data
    clf.note_ = "kept"
    assert loaded(saved(clf)).note_ == "kept"


def test_what_cannot_be_saved(tmp_path, monkeypatch):
    X, y = problem()
    clf = paper_classifier(2).fit(X, y)

    def refused(model, error, match):
        with pytest.raises(error, match=match):
            save(model, tmp_path / "model.polysift")
        assert not list(tmp_path.iterdir())

    class Mine(FPCClassifier):
        pass

    for model in (paper_classifier(), FPCClassifierCV()):
        refused(model, NotFittedError, "not fitted")
    expected = "must be a fitted FPCClassifier or FPCClassifierCV; got "
    refused(PolynomialKernelMap(2).fit(X), TypeError, f"{expected}PolynomialKernelMap")
    refused(FPCClassifier, TypeError, "got ABCMeta|got type")
    refused(make_pipeline(paper_classifier()), TypeError, "last step, .* skops")
    grid = GridSearchCV(paper_classifier(), {"degree": [1]}, cv=2).fit(X, y)
    refused(grid, TypeError, "got GridSearchCV. Save its best_estimator_")
    refused(Mine().fit(X, y), TypeError, "got Mine. A class of your own")
    days = np.array([Decimal(1), Decimal(2)], dtype=object)[(y > 0).astype(int)]
    refused(paper_classifier(2).fit(X, days), ModelFileError, "classes_ must be plain")
    for name in ("MAX_MEMBERS", "MAX_HEADER_BYTES", "MAX_HEADER_VALUES"):
        with monkeypatch.context() as patch:
            patch.setattr(archive, name, 10)
            refused(clf, ModelFileError, "cannot be saved: its file has a header")
    for value, match in [
        ({"a": [1, object()]}, r"extra_.a\[1\] .* type object. Nothing was written"),
        (np.zeros(3, complex), "extra_ cannot be saved: its dtype is complex"),
        (reduce(lambda deep, _: [deep], range(40), 1), "nested deeper"),
        (10**2000, "extra_"),
    ]:
        clf.extra_ = value
        refused(clf, TypeError, match)
    clf.coef_ = clf.coef_ * np.nan
    refused(clf, ModelFileError, "cannot be saved: coef_ must not hold NaN")


def test_files_are_written_whole(tmp_path, monkeypatch):
    X, y = problem()
    clf = paper_classifier(2).fit(X, y)
    path = tmp_path / "model.polysift"
    path.write_text("before")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        save(clf, path)
    other = copy.copy(clf)
    other.extra_ = object()
    with pytest.raises(TypeError):
        save(other, path, overwrite=True)

    def full(*_):
        raise OSError(28, "No space left on device")

    for name in ("_member", "_file_digest"):
        with monkeypatch.context() as patch:
            patch.setattr(archive, name, full)
            with pytest.raises(OSError, match="No space"):
                save(clf, path, overwrite=True)
    assert path.read_text() == "before" and list(tmp_path.iterdir()) == [path]
    save(clf, str(path), overwrite=True)
    assert_same(load(str(path)), clf)
    with pytest.raises(FileNotFoundError, match="create it first"):
        save(clf, tmp_path / "no" / "model.polysift")
    with pytest.raises(IsADirectoryError):
        save(clf, tmp_path, overwrite=True)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
def test_pickle_joblib_and_skops(tmp_path, calibration):
    X, y = problem(("dog", "ox", "cat"))
    clf = paper_classifier(2, calibration=calibration).fit(X, y)
    search = FPCClassifierCV(**SMALL, calibration=calibration).fit(X, y)
    for model in (clf, search, loaded(saved(clf)), loaded(saved(search))):
        joblib.dump(model, tmp_path / "model.joblib")
        stored = skops_io.dumps(model)
        untrusted = skops_io.get_untrusted_types(data=stored)
        assert all(name.startswith(("polysift.", "numpy.ma.")) for name in untrusted)
        for again in (
            joblib.load(tmp_path / "model.joblib"),
            joblib.load(tmp_path / "model.joblib", mmap_mode="r"),
            skops_io.loads(stored, trusted=untrusted),
        ):
            assert_same(again.predict_proba(X), model.predict_proba(X))
            assert_same(loaded(saved(again)).predict_proba(X), model.predict_proba(X))


# Plain values


def round_trip(value):
    encoder = Encoder()
    tree = json.loads(json.dumps(encoder.encode(value, "value"), allow_nan=False))
    again = decode(tree, encoder.arrays)
    assert not encoder.arrays, "each is taken"
    return again


def as_objects(values):
    array = np.empty(len(values), dtype=object)
    for position, value in enumerate(values):
        array[position] = value
    return array


NUMBERS = st.integers() | st.floats(allow_nan=False) | st.just(np.nan) | st.booleans() | st.none()
KINDS = ["?", "<i1", "<i8", "<u2", "<f2", "<f4", "<f8", "<U3", "<S4", "<M8[ns]", "<m8[25s]"]
SHAPES = hnp.array_shapes(min_dims=0, min_side=0, max_side=3)
ARRAYS = st.sampled_from(KINDS).flatmap(lambda kind: hnp.arrays(np.dtype(kind), SHAPES))
FULL = ARRAYS.filter(lambda array: array.size and array.dtype.kind != "S")
LEAVES = NUMBERS | st.text() | st.binary() | FULL.map(lambda array: array.reshape(-1)[0])
KEYS = st.text() | st.integers() | st.tuples(st.integers(), st.text())
PLAIN = st.recursive(
    LEAVES | ARRAYS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(KEYS, inner, max_size=3)
        | st.dictionaries(st.sampled_from(["$", "$tuple", "a", "a.b", "a-b"]), inner)
        | st.lists(LEAVES, max_size=4).map(as_objects)
    ),
    max_leaves=8,
)


@given(PLAIN)
@settings(max_examples=300, deadline=None)
def test_plain_values_come_back(value):
    assert_same(round_trip(value), value)


class Animal(str):
    __slots__ = ()


STRINGS = np.zeros(1, getattr(np.dtypes, "StringDType", lambda: "c8")())
ROW = np.ma.MaskedArray(as_objects([1, None, "x"]), [False, True, False])
ODD = [-0.0, float("inf"), 5e-324, 0.1 + 0.2, 2**64, "\ud800", range(0, 10, 3), np.str_("")]
ODD += [np.float32(0.1), np.array("text"), NotSaved("KFold()"), ROW, ROW.reshape(1, 3)]
ODD += [as_objects([[1, 2], (3,), {"a": 1}, None]), {1: 2.0, "a": 4, np.int64(7): 5}]
UNFIT = [object(), {1, 2}, 1j, np.zeros(2, "c8"), np.zeros(2, "i4,f4"), len, 1 << 5000, STRINGS]
UNFIT += [np.ma.MaskedArray([1.0]), np.ma.MaskedArray([1, 2], [True, False], fill_value=7)]
UNFIT += [np.ma.MaskedArray(as_objects([1]), fill_value=7)]


def test_odd_values_come_back():
    for value in ODD:
        assert_same(round_trip(value), value)
    for value, plain in [
        (OrderedDict(a=1), {"a": 1}),
        (Animal("cat"), "cat"),
        (Path("a") / "b", str(Path("a") / "b")),
        (np.array([1, 2], ">i4"), np.array([1, 2], "<i4")),
        (np.asfortranarray(np.eye(3)[:2]), np.eye(3)[:2]),
        (np.arange(10.0)[::-2], np.arange(10.0)[::-2].copy()),
    ]:
        assert_same(round_trip(value), plain)
    for value in UNFIT:
        with pytest.raises(NotPlainError, match="value"):
            round_trip([value])


# The file itself


def pack(members, compression=zipfile.ZIP_STORED) -> bytes:
    """Return a model file of these members, with a right digest."""
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w") as file:
        warnings.simplefilter("ignore")  # of names that are there twice
        for name, content in members:
            info = zipfile.ZipInfo(name)
            info.create_system, info.external_attr = 3, 0o100644 << 16
            file.writestr(info, content, compression)
        file.comment = archive.SIGNATURE + b"0" * 64
    return sealed(buffer.getvalue())


def sealed(data: bytes | bytearray) -> bytes:
    """Return a file with the digest that its contents have."""
    return bytes(data[:-64]) + hashlib.sha256(data[:-64]).hexdigest().encode()


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << (bit % 8)
    return bytes(changed)


def members_of(data: bytes):
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return [(name, file.read(name)) for name in file.namelist()]


def as_npy(array) -> bytes:
    buffer = io.BytesIO()
    archive.send_npy(array, buffer.write)
    return buffer.getvalue()


def repacked(data: bytes, change=lambda header: None, /, **arrays) -> bytes:
    """Return a file whose header was changed, and some of whose arrays."""
    members = dict(members_of(data))
    header = json.loads(members.pop("header.json"))
    for name, array in arrays.items():
        member = f"{name}.npy"
        assert member in members
        content = members[member] = as_npy(array)
        digest = hashlib.sha256(content).hexdigest()
        about = {"dtype": array.dtype.str, "shape": list(array.shape), "sha256": digest}
        header["arrays"][member] = about
    change(header)
    return pack([("header.json", json.dumps(header)), *members.items()])


@pytest.fixture(scope="module")
def binary():
    """The file of a calibrated classifier, and rows."""
    X, y = problem(m=60, d=2)
    clf = paper_classifier(
        2, calibration="isotonic", scaler="quantile", n_centers=5, random_state=0
    )
    frame = pd.DataFrame(X, columns=["a", "b"])
    return saved(narrowed(clf.fit(frame, y))), frame


@pytest.fixture(scope="module")
def tuned():
    """The file of a search over three classes, and rows."""
    X, y = problem(("dog", "ox", "cat"), m=60, d=2)
    search = FPCClassifierCV(**SMALL | {"degrees": 2}, scalers="minmax", calibration="sigmoid")
    return saved(search.set_params(random_state=0).fit(X, y)), X


@pytest.fixture(scope="module")
def table():
    """The file of a classifier of a table, and rows."""
    frame, y = mixed_table(120)
    clf = paper_classifier(2, 5, calibration="sigmoid", max_levels=20, random_state=0).fit(frame, y)
    return saved(clf), frame


def narrowed(clf):
    """Return a classifier whose quantile scaler keeps only the knots it uses."""
    width = clf.scaler_["counts"].max()
    for name in ("values", "levels"):
        clf.scaler_[name] = clf.scaler_[name][:, :width].copy()
    return clf


def refused(data: bytes, match: str = ".") -> None:
    with pytest.raises(ModelFileError, match=match) as caught:
        loaded(data)
    assert "again.polysift" in str(caught.value), "the message names the file"
    assert str(caught.value).endswith("."), "and says what to do"


def survives(data: bytes, X) -> bool:
    """Load a file that may be refused, or else must give a model that predicts."""
    try:
        model = loaded(data)
    except ModelFileError as error:
        if "is not as save writes it" in str(error):
            raise AssertionError("no check of its own found this") from error
        return False
    for method in ("decision_function", "predict", "predict_proba"):
        if hasattr(model, method):
            with contextlib.suppress(ValueError), warnings.catch_warnings():
                warnings.filterwarnings("ignore", "X has feature names|X does not have valid")
                warnings.filterwarnings("ignore", "Values are missing")
                getattr(model, method)(X)
    return True


def test_the_file_is_an_ordinary_zip(binary):
    data, _ = binary
    members = members_of(data)
    assert pack(members) == data, "and nothing else"
    header = json.loads(members[0][1])
    assert members[0][0] == "header.json"
    assert header["format"] == model_file.FORMAT and header["kind"] == "FPCClassifier"
    assert header["versions"].keys() == {"polysift", "numpy", "scipy", "scikit-learn"}
    assert header["params"]["degree"] == 2
    for name, content in members[1:]:
        array = np.load(io.BytesIO(content), allow_pickle=False)
        about = header["arrays"][name]
        assert (array.dtype.str, list(array.shape)) == (about["dtype"], about["shape"])
        assert hashlib.sha256(content).hexdigest() == about["sha256"]


def test_files_beyond_2_gigabytes(binary, monkeypatch):
    model = loaded(binary[0])
    for limit in (100, 1_000, 3_000):  # as if a zip could hold no more without its wide fields
        with monkeypatch.context() as patch:
            patch.setattr(zipfile, "ZIP64_LIMIT", limit)
            data = saved(model)
        assert len(data) > len(binary[0]) and members_of(data) == members_of(binary[0])
        assert_same(loaded(data), model)


def test_files_that_are_no_models(tmp_path):
    with pytest.raises(FileNotFoundError, match="no model file .*none"):
        load(tmp_path / "none.polysift")
    with pytest.raises(ModelFileError, match="folder or a device"):
        load(tmp_path)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(ModelFileError, match="folder or a device"):
            load(tmp_path / "pipe")
    noise = np.random.default_rng(0).bytes(10_000)
    foreign = io.BytesIO()
    with zipfile.ZipFile(foreign, "w") as file:
        file.writestr("header.json", "{}")
    foreign = foreign.getvalue()
    texts = (b"", b"PK", b"degree,score\n1,0.5\n", pickle.dumps({"a": 1}), archive.SIGNATURE)
    for data in (*texts, noise, foreign):
        refused(data, "signature at its end is missing")
        refused(sealed(data + archive.SIGNATURE + b"0" * 64), "not packed as|does not say|a format")
    refused(archive.SIGNATURE + b"0" * 64, "checksum")
    refused(pack([]), "does not begin with header.json")


def test_damage_is_noticed(binary, tuned):
    rng = np.random.default_rng(0)
    for data, _ in (binary, tuned):
        tail = range(8 * (len(data) - 120), 8 * len(data), 3)
        for bit in [*rng.integers(8 * len(data), size=250), *tail]:
            refused(flipped(data, bit))
    data, _ = binary
    for length in {*range(0, len(data), 97), *range(len(data) - 150, len(data))}:
        refused(data[:length])
    refused(data + b"\n")
    refused(data[1:])


def test_damage_with_a_new_digest(binary, tuned):
    rng = np.random.default_rng(1)
    for data, X in (binary, tuned):
        start = zipfile.ZipFile(io.BytesIO(data)).start_dir
        directory = rng.integers(8 * start, 8 * len(data), size=300)
        for bit in [*rng.integers(8 * start, size=300), *directory]:
            survives(sealed(flipped(data, bit)), X)
        for length in rng.integers(len(data), size=50):
            comment = archive.SIGNATURE + b"0" * 64
            assert not survives(sealed(data[:length] + comment), X)


def test_members_that_should_not_be_there(binary, monkeypatch):
    data, _ = binary
    members = members_of(data)
    for name in ("../evil.npy", "/etc/evil.npy", "a/b.npy", "C:\\x.npy", ".npy", "x.py", "ä.npy"):
        refused(pack([*members, (name, b"")]), "holds what no model has")
    refused(pack([*members, ("more.npy", members[1][1])]), "other arrays than its header says")
    refused(pack(members[:-1]), "other arrays than its header says")
    refused(pack([*members, members[0]]), "twice")
    refused(pack([*members, members[3]]), "twice")
    refused(pack(members[1:] + members[:1]), "does not begin")
    bomb = [members[0], ("bomb.npy", b"\0" * 10**6)]
    for kind in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        refused(pack(bomb, kind), "not packed as")
    refused(pack(members[:1] + [(f"a{k}.npy", b"") for k in range(3_000)]), "other arrays")
    with monkeypatch.context() as patch:
        patch.setattr(archive, "MAX_MEMBERS", 3)
        refused(data, "too many arrays")
    monkeypatch.setattr(archive, "MAX_DIRECTORY_BYTES", 500)
    refused(data, "directory that is too large")


def test_layouts_that_should_not_be(binary):
    data, _ = binary
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        start, second = file.start_dir, file.infolist()[1]
    entry = data.index(b"PK\1\2", start + 1)

    def changed(layout, offset, *values):
        made = bytearray(data)
        struct.pack_into(layout, made, offset, *values)
        return sealed(made)

    for offset in (0, second.header_offset + 1, start, len(data), 2**32 - 2):
        refused(changed("<I", entry + 42, offset), "not packed as")
    for size in (0, second.file_size - 1, second.file_size + 1, len(data), 2**32 - 1):
        refused(changed("<2I", entry + 20, size, size))
        refused(changed("<I", entry + 24, size), "not packed as")
    for flag in (1, 8, 32, 64, 2**11):  # encrypted, sizes behind it, patched, encrypted, Unicode
        refused(changed("<H", entry + 8, flag), "not packed as")
    for method in (1, 8, 14, 99):
        refused(changed("<H", entry + 10, method), "not packed as")
    for size in (0, 1, len(data), 2**32 - 1):  # of the directory
        refused(changed("<I", data.rindex(b"PK\5\6") + 12, size), "not packed as|begin|too large")
    refused(sealed(b"#!/bin/sh\n" + data), "does not begin")
    refused(changed("<I", second.header_offset, 0), "not packed as")
    refused(changed("<H", second.header_offset + 26, 2**16 - 1), "not packed as")
    refused(changed("<I", entry + 16, second.CRC ^ 1), "not packed as .*CRC")


def test_headers_that_cannot_be_read(binary, monkeypatch):
    members = members_of(binary[0])

    def with_header(text):
        return pack([("header.json", text), *members[1:]])

    texts = ["", "{", "[]", "null", '{"format": 1, "format": 1}', '{"format": NaN}', "9" * 10_000]
    for text in (*texts, "[" * 100_000, '{"a":' * 50_000, b"\xff\xfe", b"\xef\xbb\xbf{}"):
        refused(with_header(text), "header")
    refused(with_header("[" + "0," * archive.MAX_HEADER_VALUES + "0]"), "header that is too large")
    monkeypatch.setattr(archive, "MAX_HEADER_BYTES", 100)
    refused(binary[0], "header that is too large")


def test_formats(binary, monkeypatch):
    data, _ = binary

    def with_header(**changes):
        return repacked(data, lambda header: header.update(changes))

    newer = with_header(format=7)
    refused(newer, r"newer polysift \(format 7; this one reads up to 2\). Update polysift")
    for number in (0, -1, 1.0, True, "1", None, [], 10**400):
        refused(with_header(format=number), "format")
    for key in ("format", "kind", "versions", "params", "attributes", "arrays"):
        refused(repacked(data, lambda header: header.pop(key)), "format|lacks")  # noqa: B023
    refused(with_header(more=1), "too much: more")

    def upgrade(header):
        return header | {"format": 3, "kind": header["kind"].removeprefix("Old")}

    monkeypatch.setattr(model_file, "FORMAT", 3)
    monkeypatch.setitem(model_file.UPGRADES, 2, upgrade)
    assert_same(loaded(with_header(kind="OldFPCClassifier")), loaded(data))


JUNK = [None, True, -1, 0, 10**30, 1.5, 1e999, "", "x", [], {}, [[]], {"x": 1}, {"$array": "x"}]
JUNK += [{"$float": "nan"}, {"$tuple": [1]}, {"$not saved": "x"}, {"$scalar": ["<f8", "00" * 8]}]
JUNK += [{"$dict": [[[], 1]]}, {"$objects": [[2], [1, 2]]}, {"$masked": [1, 2, 3]}, {"$what": 1}]
JUNK += [{"$range": [0, 10**9, 1]}, {"$bytes": "zz"}, {"$str": "x"}, {"$": 1, "a": 2}, "missing"]


def paths_of(tree, path=()):
    """Yield the path of every value in a JSON tree."""
    if path:
        yield path
    for key in tree if isinstance(tree, dict) else range(len(tree) if type(tree) is list else 0):
        yield from paths_of(tree[key], (*path, key))


@pytest.mark.parametrize("sample", ["binary", "tuned", "table"])
def test_junk_in_every_place_of_the_header(sample, request):
    data, X = request.getfixturevalue(sample)
    members = members_of(data)
    text = members[0][1]
    paths = list(paths_of(json.loads(text)))
    rng = np.random.default_rng(0)
    some = paths if sample == "binary" else [paths[k] for k in rng.permutation(len(paths))[:100]]
    if sample == "table":
        some += [path for path in paths if path[:2] == ("attributes", "scaler_") and len(path) < 6]
    outcomes = []
    for *path, last in some:
        count = 12 if len(path) < 2 and path != ["arrays"] else 3
        for k in rng.choice(len(JUNK), count, replace=False):
            header = json.loads(text)
            owner = reduce(getitem, path, header)
            owner[last] = JUNK[k]
            if JUNK[k] == "missing":
                del owner[last]
            made = json.dumps(header).replace("Infinity", "1e999")
            outcomes.append(survives(pack([("header.json", made), *members[1:]]), X))
    assert 0.05 < np.mean(outcomes) < 0.5, "some of it does no harm, such as another parameter"


TOKENS = [b'"', b"{", b"}", b"[", b"]", b",", b"0", b"-", b"e9", b"null", b'"$tuple"', b'{"$array"']


@given(st.data())
@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_edits_of_the_header(binary, data):
    header, *others = members_of(binary[0])
    text = bytearray(header[1])
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        length = data.draw(st.sampled_from([0, 1, 1, 2, 5, 50]))
        text[start : start + length] = data.draw(st.binary(max_size=6) | st.sampled_from(TOKENS))
    survives(pack([("header.json", bytes(text)), *others]), binary[1])


KNOTS = np.zeros((2, 60))
ARRAY_JUNK = {
    "centers_": [np.zeros((5, 3)), np.zeros((0, 2)), np.zeros(5), np.zeros((5, 2), "f4")],
    "coef_": [np.zeros((2, 5)), np.zeros((1, 4)), np.full((1, 5), np.inf), np.zeros((1, 5), int)],
    "classes_": [
        *map(np.array, ([0], [1, 0], [0, 0], [0, 1, 2], [0.0, np.nan], [[0, 1]], 1)),
        np.array(["NaT", "2020"], "M8[D]"),
    ],
    "scaler_.values": [KNOTS, KNOTS[:, :0], KNOTS * np.nan],
    "scaler_.levels": [KNOTS[:, :59], np.linspace(1, 0, 120).reshape(2, 60)],
    "scaler_.counts": [*map(np.array, ([0, 1], [61, 1], [-1, 1], [2.0, 2]))],
    "calibrator_.counts": [*map(np.array, ([3], [2**62], [1, 1], [0]))],
    "calibrator_.values": [np.full(3, np.nan), np.zeros(0)],
    "calibrator_.thresholds": [np.zeros(2), np.zeros((2, 2))],
    "history_.objective": [np.zeros(99), np.zeros(5, "f4"), np.zeros((5, 1)), np.array("x")],
    "training_summary_.class_counts": [np.zeros(3), np.zeros(2, int)],
}


def test_arrays_that_make_no_model(binary, tuned):
    data, X = binary
    assert survives(repacked(data), X)
    for name, arrays in ARRAY_JUNK.items():
        for junk in arrays:
            refused(repacked(data, **{name: junk}), "holds an invalid model")
    model = loaded(data)
    for name in ("scaler_.values", "calibrator_.values", "calibrator_.thresholds"):
        owner, part = name.split(".")
        descending = getattr(model, owner)[part][..., ::-1].copy()
        refused(repacked(data, **{name: descending}), "must ascend")
    best = "best_estimator_.attributes"
    for name, junk in {
        "calibrator_.slope": np.array([np.inf, 1, 1]),
        f"{best}.calibrator_.slope": np.zeros(2),
        f"{best}.scaler_.low": np.full(2, 1e9),
        f"{best}.scaler_.scale": np.full(2, np.inf),
        f"{best}.classes_": np.array(["cat", "dog", "owl"]),
        "cv_results_.mean_test_score": np.zeros(7),
        "cv_results_.status": np.zeros((1, 1)),
    }.items():
        refused(repacked(tuned[0], **{name: junk}), "holds an invalid model")
    refused(repacked(tuned[0], classes_=np.frombuffer(b"\xff" * 36, "<U3")), "Unicode")
    mask = next(name for name, _ in members_of(tuned[0]) if "param_degree" in name)[:-4]
    truth = {mask: np.frombuffer(b"\x07", "?")}
    refused(repacked(tuned[0], **truth), "truth values")


@pytest.mark.parametrize(
    ("part", "name"), [("params", "calibration"), ("attributes", "calibrator_")]
)
def test_a_calibrated_search_needs_a_calibrated_best_estimator(tuned, part, name):
    def forget(header):
        del header["attributes"]["best_estimator_"][part][name]

    refused(repacked(tuned[0], forget), "best_estimator_ must have a calibration")


TABLE_JUNK = {
    "centers_": [np.zeros((5, 9)), np.zeros((5, 0))],
    "scaler_.numbers": [*map(np.array, ([0], [0, 1], [1, 0] + 14 * [7], [0.0], [[0]]))],
    "scaler_.missing": [np.full(9, 1.5), np.full(9, -0.1), np.full(9, np.nan), np.zeros(8)],
    "scaler_.indicators": [*map(np.array, ([], [0], [2, 0, 7], [0, 2, 99], [0, -7, 7], [5, 5, 5]))],
    "scaler_.indicator_values": [np.zeros((2, 2)), np.full((2, 3), np.inf), np.zeros(6)],
    "scaler_.affine.offset": [np.zeros(2), np.full(16, np.nan)],
    "scaler_.levels-0-.table": [np.ones((5, 4)), np.zeros((0, 4)), np.zeros((2, 4)), np.zeros(5)],
    "scaler_.levels-0-.codes": [
        *map(np.array, ([9, 0, 1, 2], [0, 1], [-1, 0, 1, 2], [0, 0, 0, 4]))
    ],
    "scaler_.levels-0-.levels": [np.arange(4.0), np.zeros(4), np.full(4, np.nan), np.zeros((2, 2))],
}


def test_arrays_that_make_no_table(table):
    data, X = table
    assert survives(repacked(data), X)
    for name, arrays in TABLE_JUNK.items():
        for junk in arrays:
            refused(repacked(data, **{name: junk}), "holds an invalid model")


def words_of(values) -> dict:
    return {"$objects": [[len(values)], values]}


TABLE_FIELDS = [
    ("kinds", lambda old: ["number"] * 9),
    ("kinds", lambda old: old[:-1]),
    ("kinds", lambda old: ["cat\x1b[2J", *old[1:]]),
    ("kinds", lambda old: "number"),
    ("readings", lambda old: ["wat", *old[1:]]),
    ("readings", lambda old: [[], *old[1:]]),
    ("ranks", lambda old: {"kind": "affine"}),
    ("ranks", lambda old: 5),
    ("affine", lambda old: None),
    ("affine", lambda old: {"kind": "table"}),
    ("levels", lambda old: old[1:]),
    ("levels", lambda old: old[::-1]),
    ("levels", lambda old: [*old[:-1], 5]),
    ("levels", lambda old: {}),
    ("levels.column", lambda old: -1),
    ("levels.column", lambda old: 10**30),
    ("levels.column", lambda old: True),
    ("levels.column", lambda old: 3),
    ("levels.words", lambda old: old[::-1]),
    ("levels.words", lambda old: old[:-1]),
    ("levels.words", lambda old: [*old[:-1], 7]),
    ("levels.words", lambda old: [*old[:-1], "Rome"]),
    ("levels.words", lambda old: "Bern"),
    ("levels.buckets", lambda old: 3),
    ("levels.buckets", lambda old: -4),
    ("levels.buckets", lambda old: 10**30),
    ("levels.buckets", lambda old: False),
    ("levels.buckets", lambda old: "4"),
]


@pytest.mark.parametrize(("name", "change"), TABLE_FIELDS)
def test_fields_that_make_no_table(table, name, change):
    def forge(header):
        owner = header["attributes"]["scaler_"]
        if "." in name:
            owner = owner["levels"][0]
        field = name.split(".")[-1]
        owner[field] = change(owner[field])

    refused(repacked(table[0], forge), "holds an invalid model|arrays of nothing")


@pytest.mark.parametrize(
    "kinds",
    [
        words_of(["number"] * 9),
        words_of(["number"] * 8),
        words_of([None] * 9),
        words_of([["number"]] * 9),
        ["number"] * 9,
        None,
    ],
)
def test_kinds_of_columns_that_cannot_be(table, kinds):
    def forge(header):
        header["attributes"]["column_kinds_"] = kinds

    refused(repacked(table[0], forge), "invalid model: (column_kinds_|invalid)")


def test_what_columns_were_is_no_part_of_prediction(table, binary):
    """Files of format 1 get it by their number of columns, unless these are too many."""
    without = repacked(table[0], lambda header: header["attributes"].pop("column_kinds_"))
    assert survives(without, table[1])

    def of_format_1(count):
        def change(header):
            header["format"] = 1
            del header["attributes"]["column_kinds_"]
            header["attributes"]["n_features_in_"] = count

        return repacked(binary[0], change)

    assert loaded(of_format_1(2)).column_kinds_.tolist() == ["number", "number"]
    for count in (3, 0, -1, 10**9, 10**30, None, "2", [2], True):
        refused(of_format_1(count), "n_features_in_|feature_names_in_|column_kinds_")
    for junk in (None, [], 5, {"best_estimator_": {"attributes": {"scaler_": 1}}}):
        changes = {"format": 1, "attributes": junk}
        refused(repacked(binary[0], lambda header: header.update(changes)))  # noqa: B023


def test_arrays_that_are_not_what_they_say(binary):
    data, _ = binary
    members = dict(members_of(data))
    header = json.loads(members["header.json"])
    coef = members["coef_.npy"]

    def with_coef(content, **about):
        changed = copy.deepcopy(header)
        digest = hashlib.sha256(content).hexdigest()
        changed["arrays"]["coef_.npy"].update({"sha256": digest, **about})
        text = json.dumps(changed).encode()
        return pack((members | {"header.json": text, "coef_.npy": content}).items())

    assert with_coef(coef) == data
    pickled = io.BytesIO()
    np.save(pickled, np.array([[print]], dtype=object), allow_pickle=True)
    refused(with_coef(pickled.getvalue(), dtype="|O"), "dtype that is not stored")
    refused(with_coef(pickled.getvalue()), "shape")
    for dtype in ("O", "|O8", "<c16", "<f16", "f8", ">f8", "V8", "<i4,<i4", "<U0", "", 5, None):
        refused(with_coef(coef, dtype=dtype), "dtype")
    for dtype in ("<M8[xy]", "<i3"):
        refused(with_coef(coef, dtype=dtype), "unknown dtype")
    refused(with_coef(coef, dtype="<i8"), "another shape or dtype")
    refused(with_coef(coef, dtype="<f4"), "shape")
    for shape in ([10**12], [1, 5, 1], [5, 1], [-1, -5], [1, 5.0], [True, 5], "5", None, [1] * 99):
        refused(with_coef(coef, shape=shape), "shape")
    for shape in ((10**12,), (2**62, 2**62), (0, 10**12), (0, 2**47, 2**47)):
        lying = archive.npy_header(ArrayHeader(np.dtype("<f8"), shape))
        refused(with_coef(lying, shape=list(shape)), "shape|cannot be")
        refused(with_coef(lying), "shape")
    made = with_coef(archive.npy_header(ArrayHeader(np.dtype("<f8"), (10**11,))), shape=[10**11])
    tracemalloc.start()
    refused(made)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3e6, "claims are checked before anything is made"
    fortran = coef.replace(b"'fortran_order': False", b"'fortran_order': True ")
    refused(with_coef(fortran), "another shape")
    refused(with_coef(coef[:-1]), "another shape")
    refused(with_coef(coef[:20]), "shape")
    refused(with_coef(coef, sha256="0" * 64), "checksum of 'coef_.npy'")
    refused(with_coef(coef, more=1), "does not say")


def test_values_that_cannot_be(binary):
    data, _ = binary

    def with_value(value, where="attributes", name="extra_"):
        return repacked(data, lambda header: header[where].update({name: value}))

    refused(with_value(reduce(lambda deep, _: [deep], range(40), 1)), "nested")
    for value, match in [
        ({"$dict": [[1, 2], [1, 3]]}, "same key twice"),
        ({"$dict": [[1, 2, 3]]}, "cannot be"),
        ({"$dict": [[{"$dict": []}, 1]]}, "cannot be"),
        ({"$range": [0, 1, 0]}, "cannot be"),
        ({"$scalar": ["<f8", "00"]}, "cannot be"),
        ({"$scalar": ["<f8", "00" * 16]}, "cannot be"),
        ({"$scalar": ["|b1", "05"]}, "truth"),
        ({"$scalar": ["<U1", "ffffffff"]}, "Unicode"),
        ({"$objects": [[10**12], []]}, "not its size"),
        ({"$objects": [[0, 2**47, 2**47], []]}, "not its size"),
        ({"$masked": [{"$objects": [[1], [1]]}, {"$objects": [[1], [1]]}, None]}, "mask"),
        ({"$masked": [None, None, None]}, "masked"),
        ({"$masked": [{"$objects": [[1], [1]]}, None, 5]}, "not of objects"),
        ({"$float": "1"}, "cannot be"),
        ({"$tuple": 5}, "cannot be"),
        ({"$array": "coef_.npy"}, "cannot be"),  # it is taken already
        ({"$array": [1]}, "cannot be"),
    ]:
        refused(with_value(value), match)
    for name in ("predict", "__class__", "__dict__", "_x", "coef", "_map_params_", "Ä_"):
        refused(with_value(1, name=name), "no FPCClassifier has")
    refused(with_value(1, "params", "evil"), "no parameter 'evil': update polysift")
    unused = repacked(data, lambda header: header["attributes"].pop("calibrator_"))
    refused(unused, "arrays of nothing")


DTYPES = [
    "<U500000000",
    "|S999999999",
    "<U4096",
    "<U1",
    "|S1",
    "<f8",
    "<f2",
    "|b1",
    "<M8[ns]",
    "<u8",
]
DTYPES += ["|O", "|O8", "|V8", "<c16", "<f16", "<i4,<i4", "[('a', '<f8')]", ">f8", "<U0", "<m8[7s]"]
SIDES = [[0], [0, 3], [2**47, 0], [0, 2**47, 2**47], [2**40], [2**62, 4], [-1], [-1, -8], [1] * 33]
SIDES += [[], [1], [2**64], [1e9], [True], "9", None]
WRAPPED = [
    lambda array: array,
    lambda array: {"$masked": [array, None, "x"]},
    lambda array: {"$masked": [{"$objects": [[0], []]}, array, "x"]},
    lambda array: {"$objects": [[1], [array]]},
    lambda array: {"$dict": [[1, array]]},
]
BIG = [
    "1e400",
    "-1e400",
    "NaN",
    "Infinity",
    "9" * 4000,
    "9" * 5000,
    "-" + "9" * 9000,
    "0." + "9" * 9000,
]
BIG += ["[" * 5000 + "]" * 5000, '{"a":' * 900 + "1" + "}" * 900, "[" * 30 + "1" + "]" * 30]
BIG += ['{"$range": [0, 99999999999999999999, 1]}', '{"$bytes": "' + "00" * 10**6 + '"}']
BIG += ['{"$scalar": ["<U500000000", ""]}', '{"$scalar": ["|S999999999", "00"]}']
BIG += ['{"$objects": [[' + str(side) + "], []]}" for side in (2**31, 2**47, 10**30)]
BIG += ['{"$objects": [[0, 140737488355327], []]}', f'"{"x" * 10**6}"', '{"a": 1, "a": 2}']


def forged_files(data: bytes):
    """Yield files with a right digest that claim what is not there, or too much."""
    members = members_of(data)
    text = members[0][1].decode()

    def with_array(dtype, shape, wrap, where):
        described = f"{{'descr': {dtype!r}, 'fortran_order': {wrap == 1}, 'shape': {shape!r}, }}"
        content = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(described)) + described.encode()
        with contextlib.suppress(Exception):  # the right content, where there can be one
            header = ArrayHeader(np.dtype(dtype), tuple(shape))
            content = archive.npy_header(header) + bytes(min(header.nbytes, 4096))
        header = json.loads(text)
        digest = hashlib.sha256(content).hexdigest()
        header["arrays"]["zz.npy"] = {"dtype": dtype, "shape": shape, "sha256": digest}
        header[where]["extra_" if where == "attributes" else "cv"] = WRAPPED[wrap](
            {"$array": "zz.npy"}
        )
        return pack([("header.json", json.dumps(header)), *members[1:], ("zz.npy", content)])

    for k, (dtype, shape) in enumerate(product(DTYPES, SIDES)):
        yield with_array(dtype, shape, k % len(WRAPPED), ("params", "attributes")[k % 2])
    for wrap, where in product(range(len(WRAPPED)), ("params", "attributes")):
        yield with_array("<U500000000", [0], wrap, where)
    for literal, name in product(BIG, ("random_state", "extra_", "n_iter_", "degree_", "classes_")):
        header = json.loads(text)
        header["params" if name == "random_state" else "attributes"][name] = "HERE"
        made = json.dumps(header).replace('"HERE"', literal)
        yield pack([("header.json", made), *members[1:]])
    bomb = ("coef_.npy", members[1][1] + bytes(10**7))
    yield pack([members[0], bomb], zipfile.ZIP_DEFLATED)
    yield pack([("header.json", b" " * 10**7 + members[0][1])], zipfile.ZIP_DEFLATED)
    yield pack([members[0], *members[1:], members[1]])


LOADER = """
import resource, sys
from pathlib import Path
from polysift import ModelFileError, load
from polysift.estimators import classifier, search
pages = int(Path("/proc/self/statm").read_text().split()[0])
limit = pages * resource.getpagesize() + 300 * 2**20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
refused = 0
for path in sorted(Path(sys.argv[1]).iterdir()):
    try:
        load(path)
    except ModelFileError as error:
        refused += 1
        if "not as save writes it" in str(error) or "more memory" in str(error):
            print(path.name, error)
    except BaseException as error:
        print(path.name, type(error).__name__, error)
print(refused)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's account of memory")
def test_forged_files_take_no_memory_and_raise_one_error(binary, tmp_path):
    count = 0
    for count, data in enumerate(forged_files(binary[0]), 1):
        (tmp_path / f"{count:04}").write_bytes(data)
    assert count > 400
    run = subprocess.run(
        [sys.executable, "-c", LOADER, tmp_path], capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stderr
    *unexpected, last = run.stdout.splitlines()
    assert not unexpected
    assert int(last) > 0.8 * count, "the others do no harm, such as empty arrays"


def test_a_file_that_needs_more_memory_than_there_is(binary, monkeypatch):
    def too_much(*_):
        raise MemoryError

    monkeypatch.setattr(ArrayHeader, "allocate", too_much)
    refused(binary[0], "more memory than there is")


def test_loading_writes_and_runs_nothing(tmp_path, binary, monkeypatch):
    path = tmp_path / "model.polysift"
    path.write_bytes(binary[0])
    path.chmod(0o400)

    def never(*_, **__):
        raise AssertionError

    for module, name in [(pickle, "loads"), (pickle, "load"), (np, "load")]:
        monkeypatch.setattr(module, name, never)
    load(path)
    assert list(tmp_path.iterdir()) == [path]


# Files of released formats


def samples():
    """Return models for the sample files, by name, and rows to predict."""
    X, y = problem(m=80, d=2)
    frame = pd.DataFrame(X, columns=["width", "Größe"])
    clf = paper_classifier(
        3, scaler="quantile", calibration="isotonic", n_centers=8, random_state=0
    )
    X3, y3 = problem(("cat", "dog", "ox"), m=80, d=2)
    mixed, answers = mixed_table(80)
    of_table = paper_classifier(2, 6, calibration="sigmoid", max_levels=20, random_state=0)
    search = FPCClassifierCV(**SMALL, calibration="sigmoid", scalers="standard", random_state=0)
    return {
        "isotonic": (narrowed(clf.fit(frame, y)), frame),
        "search": (search.fit(X3, y3), X3),
        "table": (of_table.fit(mixed, answers), as_text(mixed)),
    }


def as_text(frame):
    """Return a table as a file of text would hold it, which a model reads all the same."""
    cells = frame.astype(object).where(frame.notna(), "")
    return cells.map(lambda cell: cell.isoformat() if hasattr(cell, "isoformat") else str(cell))


def write_samples() -> None:
    """Write the sample files of the present format, unless they are there."""
    DATA.mkdir(exist_ok=True)
    for name, (model, X) in samples().items():
        stem = f"format{model_file.FORMAT}-{name}"
        save(model, DATA / f"{stem}.polysift")  # which refuses to replace one
        rows = np.asarray(X, dtype=str if name == "table" else None)[:20]
        given = pd.DataFrame(rows, columns=X.columns) if hasattr(X, "columns") else rows
        np.savez(
            DATA / f"{stem}.npz",
            rows=rows,
            scores=model.decision_function(given),
            probabilities=model.predict_proba(given),
            predictions=model.predict(given),
        )


@pytest.mark.parametrize("path", sorted(DATA.glob("*.polysift")), ids=lambda path: path.stem)
def test_old_files_are_still_read(path):
    model = load(path)
    with np.load(path.with_suffix(".npz")) as expected:
        rows = expected["rows"]
        if hasattr(model, "feature_names_in_"):
            rows = pd.DataFrame(rows, columns=model.feature_names_in_)
        # Another processor may add in another order.
        close = {"rtol": 1e-12, "atol": 1e-12}
        np.testing.assert_allclose(model.decision_function(rows), expected["scores"], **close)
        np.testing.assert_allclose(model.predict_proba(rows), expected["probabilities"], **close)
        np.testing.assert_array_equal(model.predict(rows), expected["predictions"])
    assert loaded(saved(model)).get_params() == model.get_params()


def test_there_are_samples_of_every_format():
    found = {path.stem for path in DATA.glob("*.polysift")}
    first = {f"format1-{name}" for name in ("isotonic", "search")}
    later = product(range(2, model_file.FORMAT + 1), ("isotonic", "search", "table"))
    assert found == first | {f"format{k}-{name}" for k, name in later}


if __name__ == "__main__":
    write_samples()
