"""Files and frames as sources: the same model, bit for bit, and clear errors."""

import gzip
import os
import re
import subprocess
import sys
import tempfile
from importlib import import_module
from types import ModuleType

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from polysift import DataSource, PolynomialKernelMap, open_data
from polysift.data.formats import FORMATS, Format, format_by_ending
from polysift.data.source import ArraySource
from problems import noisy_problem, optional, paper_classifier

pd = optional("pandas")
pl = optional("polars")
pa = optional("pyarrow")
pq = optional("pyarrow.parquet")

M, D = 9000, 4


@pytest.fixture(scope="module")
def problem():
    X, y = noisy_problem(np.random.default_rng(0), M, D)
    weights = np.random.default_rng(1).integers(0, 3, M).astype(float)
    return X, y, weights


@pytest.fixture(scope="module")
def frame(problem):
    X, y, weights = problem
    names = {f"x{j}": X[:, j] for j in range(D)}
    return pd.DataFrame(names | {"label": np.where(y > 0, "good", "bad"), "w": weights})


def classifier(**changes):
    return paper_classifier(**({"degree": 2, "n_centers": 9, "random_state": 0} | changes))


def write(frame, folder, kind):
    """Write a frame in some format and return what ``open_data`` takes."""
    path = folder / f"data.{kind}"
    if kind == "parquet":
        frame.to_parquet(path, row_group_size=1234)
    elif kind == "folder":
        path.mkdir()
        for i, lo in enumerate(range(0, M, 2500)):
            frame[lo : lo + 2500].to_parquet(path / f"part-{i}.parquet", row_group_size=999)
    elif kind == "glob":
        write(frame, folder, "folder")
        path = folder / "data.folder" / "part-*.parquet"
    elif kind in ("arrow", "stream.arrow"):
        table = pa.Table.from_pandas(frame)
        make = pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream
        with make(str(path), table.schema) as writer:
            writer.write_table(table, max_chunksize=777)
    elif kind == "csv" or kind == "csv.gz":
        frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("scaler", ["minmax", "quantile"])
@pytest.mark.parametrize(
    "kind", ["parquet", "folder", "glob", "arrow", "stream.arrow", "csv", "csv.gz"]
)
def test_the_same_model_from_every_file(frame, problem, tmp_path, kind, scaler):
    X, y, weights = problem
    expected = classifier(scaler=scaler).fit(X, np.where(y > 0, "good", "bad"), weights)
    source = open_data(str(write(frame, tmp_path, kind)), target="label", weight="w")
    assert isinstance(source, DataSource)
    assert (source.n_rows, source.n_features, source.dtype) == (M, D, np.float64)
    clf = classifier(scaler=scaler).fit(source)
    np.testing.assert_array_equal(clf.coef_, expected.coef_)
    np.testing.assert_array_equal(clf.centers_, expected.centers_)
    assert clf.classes_.tolist() == ["bad", "good"]
    assert clf.feature_names_in_.tolist() == ["x0", "x1", "x2", "x3"]
    np.testing.assert_array_equal(clf.decision_function(source), expected.decision_function(X))
    assert clf.score(source) == pytest.approx(
        expected.score(X, np.where(y > 0, "good", "bad"), weights)
    )


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "npy", "npz", "compressed npz"])
def test_the_same_model_from_memory_and_numpy_files(frame, problem, tmp_path, kind):
    X, y, _ = problem
    expected = classifier().fit(X, y)
    plain = frame.drop(columns=["w", "label"]).assign(y=y)
    if kind == "pandas":
        source = open_data(plain, target="y")
    elif kind == "polars":
        source = open_data(pl.from_pandas(plain), target="y")
    elif kind == "pyarrow":
        source = open_data(pa.Table.from_pandas(plain), target=-1)
    elif kind == "npy":
        np.save(tmp_path / "data.npy", np.asfortranarray(np.column_stack([y, X])))
        source = open_data(tmp_path / "data.npy", target=0)
    else:
        save = np.savez if kind == "npz" else np.savez_compressed
        save(tmp_path / "data.npz", X=X, y=y)
        source = open_data(tmp_path / "data.npz")
    clf = classifier().fit(source)
    np.testing.assert_array_equal(clf.coef_, expected.coef_)
    np.testing.assert_array_equal(clf.predict(source), expected.predict(X))


def test_libsvm_text_to_rounding(problem, tmp_path):
    X, y, _ = problem
    X = X * (np.random.default_rng(0).random(X.shape) < 0.5)
    with open(tmp_path / "data.svm", "w") as file:  # repr, so that the decimals are exact
        for label, row in zip(y, X, strict=True):
            stored = " ".join(f"{j + 1}:{float(row[j])!r}" for j in np.flatnonzero(row))
            file.write(f"{label} {stored}\n")
    source = open_data(tmp_path / "data.svm")
    assert source.n_features == D
    clf = classifier(rho=1e-6).fit(source)
    expected = classifier(rho=1e-6).fit(X, y)
    scores = clf.decision_function(source)
    np.testing.assert_allclose(scores, expected.decision_function(X), atol=1e-8)


def test_float32_only_if_every_column_is(frame, tmp_path):
    single = frame.drop(columns=["label", "w"]).astype(np.float32)
    single.to_parquet(tmp_path / "single.parquet")
    assert open_data(tmp_path / "single.parquet").dtype == np.float32
    single.assign(x1=np.int16(3)).to_parquet(tmp_path / "mixed.parquet")
    assert open_data(tmp_path / "mixed.parquet").dtype == np.float64
    X, y = single.to_numpy(), frame["label"]
    expected = classifier().fit(X, y)
    single.assign(label=y).to_parquet(tmp_path / "labelled.parquet")
    clf = classifier().fit(open_data(tmp_path / "labelled.parquet", target="label"))
    np.testing.assert_array_equal(clf.coef_, expected.coef_)


@pytest.mark.parametrize(("kept", "passes"), [(False, 5), (True, 2)])
def test_a_row_group_is_decoded_once_per_pass(frame, tmp_path, monkeypatch, kept, passes):
    if not kept:
        monkeypatch.setattr("polysift.training.plan.FEW_FEATURES", 0)
    frame.to_parquet(tmp_path / "data.parquet", row_group_size=1000)
    source = open_data(tmp_path / "data.parquet", target="label")
    loads = []
    for i, unit in enumerate(source._units):
        counted = lambda columns, i=i, load=unit.load: loads.append(i) or load(columns)  # noqa: E731
        object.__setattr__(unit, "load", counted)
    classifier(max_iter=3, tol=1e-300).fit(source)
    # Survey, Gram matrix and three sweeps, each in order; sweeps use features that were kept.
    assert loads == list(range(9)) * passes


def test_only_the_needed_columns_are_read(frame, tmp_path):
    frame.assign(note="text").to_parquet(tmp_path / "data.parquet")
    source = open_data(tmp_path / "data.parquet", target="label", columns=["x2", "x0"])
    assert source.names == ("x2", "x0")
    part = next(source.stream([(0, 10)]))
    assert part.column_names == ["x2", "x0", "label"]
    clf = classifier().fit(source)
    wide = open_data(frame.assign(note="text"))  # the model picks its columns by name
    np.testing.assert_array_equal(clf.predict(wide), clf.predict(source))


def test_a_model_finds_its_columns_by_name(frame, tmp_path):
    X, y = frame[["x0", "x1", "x2", "x3"]], frame["label"]
    clf = classifier().fit(X, y)
    shuffled = frame[["x3", "w", "x1", "x0", "x2"]]
    np.testing.assert_array_equal(clf.predict(open_data(shuffled)), clf.predict(X))
    with pytest.raises(ValueError, match="no column 'x3'.*Did you mean"):
        clf.predict(open_data(shuffled.rename(columns={"x3": "x33"})))
    np.save(tmp_path / "few.npy", X.to_numpy()[:, :3])
    with pytest.raises(ValueError, match="X has 3 features, but FPCClassifier is expecting 4"):
        clf.predict(open_data(tmp_path / "few.npy"))


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("classes", [2, 3])
def test_predict_to(frame, tmp_path, ending, classes):
    X = frame[["x0", "x1", "x2", "x3"]]
    y = np.array(["a", "b", "c"])[np.arange(M) % classes]
    clf = classifier().fit(X, y)
    path = tmp_path / f"out.{ending}"
    clf.predict_to(open_data(X), path)
    read = pd.read_parquet(path) if ending == "parquet" else pd.read_csv(path)
    np.testing.assert_array_equal(read["prediction"], clf.predict(X))
    scores = read.drop(columns="prediction").to_numpy()
    np.testing.assert_allclose(scores.squeeze(), clf.decision_function(X), rtol=1e-12, atol=1e-15)
    assert list(tmp_path.iterdir()) == [path]
    before = path.read_bytes()
    with pytest.raises(FileExistsError, match="overwrite=True"):
        clf.predict_to(X, path)
    assert path.read_bytes() == before
    clf.predict_to(X[:10], path, scores=False, overwrite=True)
    read = pd.read_parquet(path) if ending == "parquet" else pd.read_csv(path)
    assert read.shape == (10, 1)


def test_predict_to_mistakes_leave_nothing(frame, tmp_path):
    X = frame[["x0", "x1", "x2", "x3"]]
    clf = classifier().fit(X, frame["label"])
    with pytest.raises(ValueError, match=r"must end in .parquet or .csv"):
        clf.predict_to(X, tmp_path / "out.xlsx")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        clf.predict_to(X, tmp_path / "no" / "out.csv")
    broken = X.copy()
    broken.iloc[8500, 2] = np.inf
    with pytest.raises(ValueError, match="infinity in column 'x2', first in row 8500"):
        clf.predict_to(open_data(broken), tmp_path / "out.parquet")
    assert list(tmp_path.iterdir()) == []


FULL_DISK = """
import resource, signal, sys
import numpy as np
from polysift import PAPER, FPCClassifier
X = np.random.default_rng(0).random((200_000, 2))
clf = FPCClassifier(**PAPER | {"degree": 1}, random_state=0).fit(X, X[:, 0] > 0.5)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    clf.predict_to(X, sys.argv[1])
except OSError as error:
    print("refused:", error)
"""


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.needs("pyarrow")
def test_a_full_disk_leaves_nothing(tmp_path, ending):
    pytest.importorskip("resource")
    path = tmp_path / f"out.{ending}"
    run = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(path)], capture_output=True, text=True, check=True
    )
    assert "refused:" in run.stdout and str(path) in run.stdout, run.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["SUSY", "HIGGS"])
@pytest.mark.needs("pyarrow")
def test_published_files_train_from_the_gz(tmp_path, kind):
    """Label first, no header; the first 8 of 18 (21 of 28) features are the low-level ones."""
    columns, low = (18, 8) if kind == "SUSY" else (28, 21)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, columns))
    y = (X[:, 0] + X[:, 1] ** 2 > 1).astype(float)
    path = tmp_path / f"{kind}.csv.gz"
    with gzip.open(path, "wt") as file:
        for label, row in zip(y, X, strict=True):
            file.write(",".join(f"{v:.18e}" for v in (label, *row)) + "\n")
    source = open_data(path, target=0, columns=range(1, low + 1))
    assert source.n_features == low and source.n_rows == 3000
    clf = classifier().fit(source)
    expected = classifier().fit(X[:, :low], y)
    np.testing.assert_array_equal(clf.coef_, expected.coef_)
    assert clf.classes_.tolist() == [0, 1]


def test_temporary_files_go_with_the_source(frame, tmp_path, monkeypatch):
    frame.to_csv(tmp_path / "data.csv", index=False)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    source = open_data(tmp_path / "data.csv", target="label")
    assert source.disk >= M * D * 8
    assert len(os.listdir(tmp_path / "tmp")) == 1
    del source
    assert os.listdir(tmp_path / "tmp") == []


def test_the_transformer_takes_sources(frame):
    X = frame[["x0", "x1", "x2", "x3"]]
    model = PolynomialKernelMap(2, random_state=0).fit(open_data(X))
    expected = PolynomialKernelMap(2, random_state=0).fit(X)
    np.testing.assert_array_equal(model.transform(open_data(X)), expected.transform(X))


def test_labels_and_weights_come_from_the_source(frame):
    source = open_data(frame.drop(columns="label"))
    with pytest.raises(ValueError, match="no labels to learn from"):
        classifier().fit(source)
    with pytest.raises(ValueError, match="must be left out"):
        classifier().fit(open_data(frame, target="label"), frame["label"])


def bad(frame, **changes):
    return frame.drop(columns="w").assign(**changes)


def test_bad_values_name_file_column_and_row(frame, tmp_path):
    infinite = frame["x1"].copy()
    infinite[7654] = np.inf
    path = tmp_path / "data.parquet"
    bad(frame, x1=infinite).to_parquet(path, row_group_size=1000)
    with pytest.raises(ValueError, match=r"infinity in column 'x1', first in row 7654 .* of .*da"):
        classifier().fit(open_data(path, target="label"))
    text = frame["label"].where(np.arange(M) != 4321)
    bad(frame, label=text).to_parquet(path)
    with pytest.raises(ValueError, match=r"labels have a missing value in row 4321 .*data.parquet"):
        classifier().fit(open_data(path, target="label"))
    weights = frame["w"].copy()
    weights[5000] = -1
    with pytest.raises(ValueError, match="sample_weight must not be negative.*row 5000"):
        classifier().fit(open_data(frame.assign(w=weights), target="label", weight="w"))
    with pytest.raises(ValueError, match="at least two classes"):
        classifier().fit(open_data(bad(frame, label="one"), target="label"))


def test_bad_files(frame, tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no file"):
        open_data(tmp_path / "none.parquet")
    with pytest.raises(FileNotFoundError, match="No file matches"):
        open_data(str(tmp_path / "*.parquet"))
    with pytest.raises(FileNotFoundError, match=r"holds no .parquet files"):
        open_data(tmp_path)
    (tmp_path / "empty.parquet").touch()
    with pytest.raises(ValueError, match=r"empty.parquet is empty"):
        open_data(tmp_path / "empty.parquet")
    frame.to_parquet(tmp_path / "whole.parquet")
    content = (tmp_path / "whole.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(content[: len(content) // 2])
    for name in ("cut.parquet",):
        with pytest.raises(ValueError, match=f"{name} is not a readable Parquet file"):
            open_data(tmp_path / name)
    for name in ("bad.arrow", "bad.npy", "bad.npz"):
        (tmp_path / name).write_bytes(b"not at all")
        with pytest.raises(ValueError, match=f"{name} is not a readable"):
            open_data(tmp_path / name)
    (tmp_path / "data.xyz").write_text("1,2\n")
    with pytest.raises(ValueError, match="Pass format="):
        open_data(tmp_path / "data.xyz")
    with pytest.raises(TypeError, match="open_data takes a path"):
        open_data(np.ones((3, 2)))


def test_damaged_row_group_is_reported(frame, tmp_path):
    path = tmp_path / "data.parquet"
    pq.write_table(pa.Table.from_pandas(frame), path, row_group_size=1000, compression="zstd")
    content = bytearray(path.read_bytes())
    content[4000:6000] = bytes(2000)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"data.parquet.*row group"):
        classifier().fit(open_data(path, target="label"))


def test_files_that_differ(frame, tmp_path):
    frame.to_parquet(tmp_path / "a.parquet")
    frame.assign(x1="1").to_parquet(tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"differ in column 'x1': double in .*a.parquet, .*string"):
        open_data(tmp_path)
    frame.drop(columns="x3").to_parquet(tmp_path / "b.parquet")
    with pytest.raises(ValueError, match="'x3': double in .*, absent in"):
        open_data(tmp_path)


def test_the_index_of_a_frame_is_left_out(frame, tmp_path):
    shuffled = frame.drop(columns="w").sample(frac=1, random_state=0)
    shuffled.to_parquet(tmp_path / "indexed.parquet")
    source = open_data(tmp_path / "indexed.parquet", target="label")
    assert source.names == ("x0", "x1", "x2", "x3")
    assert source.notes == (
        "column '__index_level_0__' is left out: it is the index of a pandas frame.",
    )
    clf = classifier().fit(source)
    assert clf.column_notes_[0] == source.notes[0]
    asked = open_data(tmp_path / "indexed.parquet", target="label", columns=["__index_level_0__"])
    assert asked.names == ("__index_level_0__",) and not asked.notes


def test_columns_that_are_not_there(frame):
    with pytest.raises(ValueError, match="no column 'lable' .*Did you mean 'label'"):
        open_data(frame, target="lable")
    with pytest.raises(ValueError, match="no column 9"):
        open_data(frame, target=9)
    with pytest.raises(ValueError, match="'label' of the table is used 2 times"):
        open_data(frame, target="label", columns=["x0", "label"])
    with pytest.raises(ValueError, match="'label' of the table is not numeric.*Weights must be"):
        classifier().fit(open_data(frame, target="w", weight="label"))


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_a_file_without_rows_is_named(tmp_path, ending):
    path = tmp_path / f"empty.{ending}"
    table = pa.table({"a": pa.array([], pa.string()), "y": pa.array([], pa.int8())})
    write_table(table, path)
    with pytest.raises(ValueError, match=r"The data source .*empty.* has no rows"):
        paper_classifier().fit(open_data(path, target="y"))
    with pytest.raises(ValueError, match=f"No column of .*empty.{ending} is left"):
        open_data(path, target="y", columns=[])


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_a_column_may_have_an_empty_name(tmp_path, ending):
    path = tmp_path / f"data.{ending}"
    write_table(pa.table({"": [0, 1, 0], "a": [0.5, 1.5, 2.5]}), path)
    source = open_data(path, target=0)
    ((_, part),) = source.parts()
    assert_array_equal(source.labels(part), [0, 1, 0])
    assert_array_equal(source.rows(part), [[0.5], [1.5], [2.5]])
    weighted = open_data(path, weight=0)
    ((_, part),) = weighted.parts()
    assert_array_equal(weighted.weights(part), [0.0, 1.0, 0.0])


def write_table(table, path):
    """Write an Arrow table by the ending of the name."""
    if path.suffix == ".parquet":
        pq.write_table(table, path)
        return
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)


def test_float32_weights_count_as_float64(frame):
    weights = np.random.default_rng(0).random(M).astype(np.float32)
    expected = classifier(solver="converged", max_iter=3, scaler="standard")
    source = open_data(frame.assign(w=weights), target="label", weight="w")
    with pytest.warns(ConvergenceWarning):
        expected.fit(frame[["x0", "x1", "x2", "x3"]], frame["label"], weights)
    clf = classifier(solver="converged", max_iter=3, scaler="standard")
    with pytest.warns(ConvergenceWarning):
        clf.fit(source)
    np.testing.assert_array_equal(clf.coef_, expected.coef_)


def test_a_sparse_file_may_lack_its_last_features(tmp_path):
    (tmp_path / "train.svm").write_text("1 1:1 4:2\n-1 2:1\n1 1:2 3:1\n-1 2:2 4:1\n")
    (tmp_path / "test.svm").write_text("1 1:1 2:1\n-1 2:1\n")
    clf = classifier(degree=1, rho=1e-3).fit(open_data(tmp_path / "train.svm"))
    narrow = open_data(tmp_path / "test.svm")
    assert narrow.n_features == 2
    wide = open_data(tmp_path / "test.svm", n_features=4)
    np.testing.assert_array_equal(clf.decision_function(narrow), clf.decision_function(wide))
    assert 0 <= clf.score(narrow) <= 1


def test_score_checks_labels(frame):
    clf = classifier().fit(open_data(frame, target="label", columns=["x0", "x1", "x2", "x3"]))
    missing = frame.assign(label=frame["label"].where(np.arange(M) != 77))
    with pytest.raises(ValueError, match="missing value in row 77"):
        clf.score(open_data(missing, target="label"))
    with pytest.raises(ValueError, match="they can never be equal"):
        clf.score(open_data(frame.assign(label=1), target="label"))
    with pytest.raises(ValueError, match="All weights are zero"):
        clf.score(open_data(frame.assign(w=0.0), target="label", weight="w"))


def test_dates_as_labels(frame, tmp_path):
    days = np.where(frame["label"] == "good", "2020-01-01", "2021-01-01").astype("datetime64[ns]")
    dated = frame.drop(columns="w").assign(label=days)
    assert len(classifier().fit(open_data(dated, target="label")).classes_) == 2
    days[5] = "NaT"
    with pytest.raises(ValueError, match="missing value in row 5"):
        classifier().fit(open_data(dated.assign(label=days), target="label"))


def test_columns_asked_for_twice(frame):
    with pytest.raises(ValueError, match="'x0' of the table is used 2 times"):
        open_data(frame, columns=["x0", "x0"])
    with pytest.raises(ValueError, match="used 2 times"):
        open_data(frame, target="w", weight="w")
    with pytest.raises(ValueError, match="columns must be a list"):
        open_data(frame, columns="x0")
    double = pa.table([pa.array([1.0]), pa.array([2.0])], names=["a", "a"])
    with pytest.raises(ValueError, match="Two columns of the table are called 'a'"):
        open_data(double)
    with pytest.raises(TypeError, match=r"LazyFrame; pass .collect\(\)"):
        open_data(pl.LazyFrame({"a": [1.0]}))


def test_npz_corners(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", X=np.ones((5, 3)), y=np.arange(5))
    assert open_data(tmp_path / "a.npz").disk > 5 * 3 * 8
    for columns, message in ((["a"], "no column 'a'"), ([0, 7], "no column 7")):
        with pytest.raises(ValueError, match=message):
            open_data(tmp_path / "a.npz", columns=columns)
    assert open_data(tmp_path / "a.npz", columns=[2, 0]).n_features == 2
    np.savez(tmp_path / "w.npz", X=np.ones((2, 3)), w=np.array(["a", "b"]))
    with pytest.raises(ValueError, match=r"w.npz: w must hold numbers; its type is <U1"):
        open_data(tmp_path / "w.npz", weight="w")
    np.savez_compressed(tmp_path / "none.npz", X=np.ones((0, 3, 2)))
    with pytest.raises(ValueError, match=r"none.npz: X holds no numbers: its shape is \(0, 3, 2\)"):
        open_data(tmp_path / "none.npz")


def test_no_rows_of_many_columns(tmp_path):
    """A name for each would take gigabytes."""
    np.save(tmp_path / "wide.npy", np.ones((0, 2**40)))
    with pytest.raises(ValueError, match=r"wide.npy holds no numbers: its shape is \(0, 109951"):
        open_data(tmp_path / "wide.npy")


def test_a_constant_target_is_named(frame, tmp_path):
    constant = frame.drop(columns="w").assign(label="one")
    constant.to_parquet(tmp_path / "c.parquet")
    with pytest.raises(ValueError, match=r"target 'label' of .*c.parquet must hold at least two"):
        classifier().fit(open_data(tmp_path / "c.parquet", target="label"))
    lists = pa.table({"a": [1.0, 2.0], "y": [[0], [1]]})
    with pytest.raises(ValueError, match="a label must be a single value"):
        classifier().fit(open_data(lists, target="y"))


def test_files_that_differ_in_nullability_only(frame, tmp_path):
    table = pa.Table.from_pandas(frame, preserve_index=False)
    strict = pa.schema([field.with_nullable(False) for field in table.schema])
    pq.write_table(table, tmp_path / "a.parquet")
    pq.write_table(table.cast(strict), tmp_path / "b.parquet")
    assert open_data(tmp_path).n_rows == 2 * M


def test_a_file_that_has_gone(frame, tmp_path):
    frame.to_parquet(tmp_path / "a.parquet")
    source = open_data(tmp_path / "a.parquet", target="label")
    (tmp_path / "a.parquet").unlink()
    with pytest.raises(FileNotFoundError, match="was removed after it was opened"):
        classifier().fit(source)


def test_columns_by_numbers_in_text_and_left_out(tmp_path):
    frame = pd.DataFrame({"id": [7.0, 8, 9], "2": [1.0, 2, 3], "x": [4.0, 5, 6], "y": [0, 1, 0]})
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_csv(tmp_path / "bare.csv", index=False, header=False)
    np.savez(tmp_path / "a.npz", X=frame[["id", "2", "x"]].to_numpy(), y=frame["y"].to_numpy())
    np.save(tmp_path / "a.npy", frame.to_numpy())
    for data, names in ((tmp_path / "a.csv", ("2", "x")), (frame, ("2", "x"))):
        source = open_data(data, target="3", drop=["id"])
        assert source.names == names
        assert open_data(data, target="y", columns=["2"]).names == ("2",), "a name comes first"
    for name in ("bare.csv", "a.npz", "a.npy"):
        target = "y" if name == "a.npz" else "-1"
        source = open_data(tmp_path / name, target=target, drop=["0"])
        part = next(source.stream([(0, 3)]))
        assert_array_equal(source.rows(part), frame[["2", "x"]])
        assert_array_equal(source.labels(part), frame["y"])
    with pytest.raises(ValueError, match="columns and drop exclude each other"):
        open_data(frame, target="y", columns=["x"], drop=["id"])
    with pytest.raises(ValueError, match="no column 'idd'.*Did you mean 'id'"):
        open_data(frame, target="y", drop=["idd"])


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.needs("pyarrow")
def test_probabilities_to_a_file(rng, tmp_path, ending, capsys):
    X, y = noisy_problem(rng, 3000, 3)
    for labels, names in ((y, ("-1", "1")), (np.digitize(X[:, 0], [0.3, 0.6]), ("0", "1", "2"))):
        clf = paper_classifier(degree=2, calibration="sigmoid", random_state=0, verbose=1)
        clf.fit(X, labels)
        path = tmp_path / f"{len(names)}.{ending}"
        clf.predict_to(X, path, proba=True, scores=False)
        read = pd.read_parquet if ending == "parquet" else pd.read_csv
        table = read(path)
        assert list(table) == ["prediction", *(f"probability_{name}" for name in names)]
        assert_array_equal(table["prediction"], clf.predict(X))
        np.testing.assert_allclose(table.iloc[:, 1:], clf.predict_proba(X), rtol=1e-12)
    assert capsys.readouterr().out == "", "progress goes to standard error"
    with pytest.raises(AttributeError, match="only with calibration"):
        paper_classifier(random_state=0).fit(X, y).predict_to(X, tmp_path / "x.csv", proba=True)
    assert not (tmp_path / "x.csv").exists()


def test_every_format_has_its_opener_and_is_documented():
    endings = [ending for known in FORMATS.values() for ending in known.endings]
    assert len(endings) == len(set(endings))
    for name, known in FORMATS.items():
        module, function = known.opener.split(".")
        assert callable(getattr(import_module(f"polysift.data.{module}"), function))
        assert all(format_by_ending(f"rows{ending.upper()}") == name for ending in known.endings)
    documented = re.search(r"format : \{(.+)\}", open_data.__doc__)
    assert documented[1].replace('"', "").split(", ") == [*FORMATS]


def test_a_new_format_is_a_line_of_the_table(tmp_path, monkeypatch):
    def open_bytes(found, options):
        rows = np.frombuffer(found.single.read_bytes(), dtype=np.uint8).reshape(-1, 2)
        return ArraySource(rows, file=str(found.single))

    reader = ModuleType("polysift.data.byte_files")
    reader.open_bytes = open_bytes
    monkeypatch.setitem(sys.modules, reader.__name__, reader)
    monkeypatch.setitem(FORMATS, "bytes", Format((".bin",), "byte_files.open_bytes"))
    (tmp_path / "rows.bin").write_bytes(bytes([1, 2, 3, 4]))
    (tmp_path / "rows").write_bytes(bytes([1, 2, 3, 4]))
    for source in (
        open_data(tmp_path / "rows.bin"),
        open_data(tmp_path / "rows", format="bytes"),
    ):
        assert_array_equal(source.rows((0, 2)), [[1, 2], [3, 4]])
