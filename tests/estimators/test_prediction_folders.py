"""Predictions to a folder: the same files for any engine, and all of them or none."""

from __future__ import annotations

import os
import pickle
import signal
import sys
from pathlib import Path
from shlex import split

import numpy as np
import pytest

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
import pandas as pd
import pyarrow.parquet as pq
import scipy.sparse as sp
from threadpoolctl import threadpool_info, threadpool_limits

from clusters import Shaky
from polysift import FPCClassifierCV, RayCluster, load, open_data, save
from polysift.cluster.backend import ClusterBackend
from polysift.cluster.tasks import process_partition
from polysift.data.source import ArraySource
from polysift.engine.backend import LocalBackend
from polysift.estimators import prediction_files
from polysift.estimators.fitted import feature_map_of
from polysift.estimators.prediction_files import FolderTask, is_folder, open_file, write_error
from polysift.runtime.outputs import check_output_folder, part_name, replacing, replacing_folder
from polysift.runtime.progress import Monitor, OutOfTime
from problems import paper_classifier

M, SHARDS = 30_000, 15


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).random((M, 3))


@pytest.fixture(scope="module")
def clf(rows):
    """Return a model of two classes, with probabilities."""
    y = np.where(rows[:, 0] * rows[:, 1] > 0.3 * rows[:, 2], "yes", "no")
    clf = paper_classifier(2, calibration="sigmoid", random_state=0)
    return clf.fit(rows, y)


@pytest.fixture(scope="module")
def file(rows, tmp_path_factory):
    """Return a Parquet file, whose row groups do not end where shards do."""
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    pd.DataFrame(rows, columns=["a", "b", "c"]).to_parquet(path, row_group_size=3500)
    return path


@pytest.fixture(scope="module")
def expected(clf, file, tmp_path_factory):
    """Return the files that this process writes, by name."""
    out = tmp_path_factory.mktemp("expected") / "out"
    clf.predict_to(open_data(file), out, proba=True)
    return content(out)


def content(folder):
    return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}


def using(clf, **parameters):
    """Return a model with other parameters; the coefficients are shared."""
    other = paper_classifier(**clf.get_params()).set_params(**parameters)
    vars(other).update({k: v for k, v in vars(clf).items() if k.endswith("_")})
    return other


class TestHere:
    def test_one_file_per_shard(self, clf, file, tmp_path, expected):
        assert list(expected) == [f"part-{i:05}.parquet" for i in range(SHARDS)]
        clf.predict_to(open_data(file), tmp_path / "one.parquet", proba=True)
        clf.predict_to(open_data(file), tmp_path / "out", proba=True)
        assert content(tmp_path / "out") == expected
        assert sorted(path.name for path in tmp_path.iterdir()) == ["one.parquet", "out"]
        one, parts = pq.read_table(tmp_path / "one.parquet"), pq.read_table(tmp_path / "out")
        assert one.equals(parts)
        assert one.column_names == ["prediction", "score", "probability_no", "probability_yes"]

    def test_read_back_in_row_order(self, clf, file, rows, tmp_path):
        clf.predict_to(open_data(file), tmp_path / "out")
        back = open_data(tmp_path / "out", target="prediction")
        assert back.n_rows == M and back.names == ("score",)
        read = [(back.rows(part), back.labels(part)) for _, part in back.parts()]
        scores, labels = (np.concatenate(column) for column in zip(*read, strict=True))
        np.testing.assert_array_equal(scores[:, 0], clf.decision_function(rows))
        np.testing.assert_array_equal(labels, clf.predict(rows))

    @pytest.mark.parametrize("threads", [1, 3])
    def test_any_number_of_threads(self, clf, file, expected, tmp_path, threads):
        using(clf, n_jobs=threads).predict_to(open_data(file), tmp_path / "out", proba=True)
        assert content(tmp_path / "out") == expected

    def test_three_classes_and_a_search(self, rows, tmp_path):
        y = np.digitize(rows[:, 0], [0.3, 0.6])
        settings = {"degrees": 1, "n_centers": 4, "rhos": None, "solvers": "paper", "cv": 3}
        search = FPCClassifierCV(**settings, random_state=0).fit(rows[:3000], y[:3000])
        search.predict_to(rows[:5000], tmp_path / "out")
        table = pq.read_table(tmp_path / "out")
        assert table.column_names == ["prediction", "score_0", "score_1", "score_2"]
        np.testing.assert_array_equal(table["prediction"], search.predict(rows[:5000]))

    def test_names_sort_by_number(self):
        for count in (1, 99_999, 100_001, 1_000_001):
            numbers = [0, 1, count // 2, count - 1]
            names = [part_name(number, count) for number in numbers if number < count]
            assert sorted(names) == names

    def test_what_names_a_folder(self, tmp_path):
        (tmp_path / "v1.5").mkdir()
        for name in ("out", "out/", "a.b/", ".out", Path("out"), tmp_path / "v1.5"):
            assert is_folder(name)
        for name in ("out.parquet", "out.CSV", "out.csv/", "v1.5", Path("x.xlsx")):
            assert not is_folder(name)


def write_folder(path, meanwhile, *, overwrite):
    """Write a folder of one part; something else happens while the work goes on."""
    with replacing_folder(path, overwrite=overwrite) as partial:
        (partial / "part-00000.parquet").write_text("new")
        meanwhile()


class TestReplacing:
    def test_overwrite(self, clf, rows, tmp_path):
        out = tmp_path / "out"
        clf.predict_to(rows, out)
        before = content(out)
        with pytest.raises(FileExistsError, match="out exists already; pass overwrite=True"):
            clf.predict_to(rows, out)
        assert content(out) == before
        clf.predict_to(rows[:100], out, scores=False, overwrite=True)
        assert list(content(out)) == ["part-00000.parquet"]
        assert pd.read_parquet(out).shape == (100, 1)
        assert list(tmp_path.iterdir()) == [out]

    def test_what_a_link_leads_to(self, clf, rows, tmp_path):
        (tmp_path / "far").mkdir()
        (tmp_path / "link").symlink_to("far/out")
        for overwrite in (False, True):
            clf.predict_to(rows[:10], tmp_path / "link", overwrite=overwrite)
        assert (tmp_path / "link").is_symlink()
        assert os.listdir(tmp_path / "far") == ["out"]

    def test_other_things_are_never_lost(self, clf, rows, tmp_path):
        out = tmp_path / "out"
        clf.predict_to(rows[:10], out)
        (out / "notes.txt").write_text("precious")
        (out / "zz").mkdir()
        with pytest.raises(FileExistsError, match=r"parts: notes.txt and 1 more. It is not repl"):
            clf.predict_to(rows[:10], out, overwrite=True)
        assert (out / "notes.txt").read_text() == "precious"
        (out / "notes.txt").unlink()
        (out / "zz").rmdir()
        with pytest.raises(FileExistsError, match="late.txt"):
            write_folder(out, (out / "late.txt").touch, overwrite=True)
        assert sorted(os.listdir(out)) == ["late.txt", "part-00000.parquet"]
        assert os.listdir(tmp_path) == ["out"]

    def test_a_folder_that_came_meanwhile(self, tmp_path):
        def somebody_else():
            (tmp_path / "out").mkdir()
            (tmp_path / "out" / "mine").touch()

        with pytest.raises(OSError, match="not empty|exists"):
            write_folder(tmp_path / "out", somebody_else, overwrite=False)
        assert os.listdir(tmp_path) == ["out"] and os.listdir(tmp_path / "out") == ["mine"]

    def test_the_old_one_comes_back(self, tmp_path, monkeypatch):
        out = tmp_path / "out"
        out.mkdir()
        (out / "part-00000.parquet").write_text("old")
        rename, calls = os.rename, []

        def failing(a, b):
            calls.append(b)
            if len(calls) == 2:
                raise OSError(5, "Input/output error")
            rename(a, b)

        monkeypatch.setattr("polysift.runtime.outputs._exchanged", lambda *_: False)
        with pytest.raises(OSError, match="Input/output"):
            write_folder(out, lambda: monkeypatch.setattr(os, "rename", failing), overwrite=True)
        assert (out / "part-00000.parquet").read_text() == "old"
        assert os.listdir(tmp_path) == ["out"]

    def test_two_may_write_the_same_file(self, tmp_path):
        with replacing(tmp_path / "x") as one, replacing(tmp_path / "x") as other:
            for file in (one, other):
                file.write(b"same")
        assert os.listdir(tmp_path) == ["x"]


class TestMistakes:
    @pytest.mark.parametrize(
        ("name", "error", "text"),
        [
            ("", ValueError, "path is empty"),
            (".", ValueError, "names no folder of its own"),
            ("..", ValueError, "names no folder of its own"),
            ("/", ValueError, "names no folder of its own"),
            ("none/out", FileNotFoundError, "folder none does not exist; create it first"),
            ("taken", FileExistsError, "taken is a file; name a folder"),
            ("taken/out", FileNotFoundError, "folder taken does not exist"),
            ("out.xlsx", ValueError, "must end in .parquet or .csv, or name a folder"),
            ("s3://key:hidden@bucket/out", ValueError, "not to s3://bucket/out. Write them to"),
            ("s3://key:hidden@bucket/out.csv", ValueError, "not to s3://bucket/out.csv."),
        ],
    )
    def test_message(self, clf, rows, tmp_path, monkeypatch, name, error, text):
        monkeypatch.chdir(tmp_path)
        Path("taken").write_text("precious")
        for overwrite in (False, True):
            with pytest.raises(error, match=text) as caught:
                clf.predict_to(rows, name, overwrite=overwrite)
            assert "hidden" not in str(caught.value)
        assert os.listdir() == ["taken"] and Path("taken").read_text() == "precious"

    def test_rows_are_not_replaced(self, clf, file, tmp_path):
        source = tmp_path / "in"
        source.mkdir()
        for i in range(3):
            (source / f"part-0000{i}.parquet").write_bytes(file.read_bytes())
        before = content(source)
        (tmp_path / "link").symlink_to(source)
        one, whole = open_data(source / "part-00001.parquet"), open_data(source)
        for rows, output in ((one, source), (whole, source), (whole, tmp_path / "link")):
            with pytest.raises(ValueError, match="holds the rows themselves"):
                clf.predict_to(rows, output, overwrite=True)
        with pytest.raises(ValueError, match="holds the rows themselves"):
            clf.predict_to(whole, source / "part-00002.parquet", overwrite=True)
        assert content(source) == before

    def test_an_output_that_exists_beside_several_files(self, clf, file, tmp_path):
        """What the origin of rows is called need not be a file."""
        for name in ("a.parquet", "b.parquet"):
            (tmp_path / name).write_bytes(file.read_bytes())
        out = tmp_path / "out.csv"
        out.write_text("old")
        source = open_data(f"{tmp_path}/*.parquet")
        assert source.origin.endswith("a.parquet and 1 more")
        clf.predict_to(source, out, overwrite=True)
        assert len(pd.read_csv(out)) == 2 * M
        source = ArraySource(np.zeros((5, 3)), file="s3://bucket/x.parquet")
        clf.predict_to(source, out, overwrite=True)
        assert len(pd.read_csv(out)) == 5

    def test_a_worker_that_does_not_see_the_folder(self, rows, tmp_path):
        task = FolderTask(None, tmp_path / "gone", tmp_path / "out", 1)
        error = process_partition(ArraySource(rows), task, 0, 1)
        assert isinstance(error, FileNotFoundError)
        assert "out must be in storage that all nodes share" in str(error)


class TestFailures:
    """Nothing is left, and a folder that was there stays as it was."""

    @pytest.fixture(autouse=True, params=[False, True], ids=["new", "overwrite"])
    def out(self, request, tmp_path):
        self.path, self.options = tmp_path / "out", {"overwrite": request.param}
        if request.param:
            self.path.mkdir()
            (self.path / "part-00000.parquet").write_text("old")
        yield
        if request.param:
            assert content(self.path) == {"part-00000.parquet": b"old"}
        assert len(list(tmp_path.iterdir())) == request.param

    def test_a_full_disk(self, clf, rows, monkeypatch):
        write = prediction_files.write_part

        def full(path, rows, classes, output):
            if path.name == "part-00004.parquet":
                raise write_error(output, OSError(28, "No space left on device"))
            write(path, rows, classes, output)

        monkeypatch.setattr(prediction_files, "write_part", full)
        with pytest.raises(OSError, match=r"written to .*out: .*No space left.*Nothing was left"):
            clf.predict_to(rows, self.path, **self.options)

    def test_interrupted(self, clf, rows, monkeypatch):
        with pytest.raises(KeyboardInterrupt):
            clf.predict_to(Interrupting(rows), self.path, **self.options)

    def test_a_folder_that_cannot_be_made(self, clf, rows, monkeypatch):
        def refuse(*_):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "mkdir", refuse)
        with pytest.raises(PermissionError, match="written to .*out: .*Permission denied"):
            clf.predict_to(rows, self.path, **self.options)

    def test_rows_that_cannot_be_read(self, clf, file, tmp_path_factory):
        """That is no failure to write."""
        brief = tmp_path_factory.mktemp("brief") / "brief.parquet"
        brief.write_bytes(file.read_bytes())
        source = open_data(brief)
        brief.unlink()
        for path in (self.path, self.path.with_suffix(".csv")):
            with pytest.raises(FileNotFoundError) as caught:
                clf.predict_to(source, path, **self.options)
            assert str(caught.value) == f"{brief} was removed after it was opened."

    @pytest.mark.parametrize("engine", ["local", "ray"])
    def test_infinite_values(self, clf, rows, request, tmp_path_factory, engine):
        if engine == "ray":
            request.getfixturevalue("four_workers")
        frame = pd.DataFrame(rows, columns=["a", "b", "c"])
        frame.loc[[17_123, 25_001], "b"] = np.inf
        broken = tmp_path_factory.mktemp("broken") / "broken.parquet"
        frame.to_parquet(broken, row_group_size=4000)
        said = []
        for path in (self.path, self.path.with_suffix(".parquet")):
            with pytest.raises(
                ValueError, match="infinity in column 'b', first in row 17123"
            ) as ca:
                using(clf, engine=engine).predict_to(open_data(broken), path, **self.options)
            said.append(str(ca.value))
        assert said[0] == said[1] and str(broken) in said[0]


def test_what_fails_on_closing_is_told(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    path, classes = tmp_path / "out.csv", np.array([0, 1])
    said = pytest.raises(OSError, match=r"written to .*out.csv: .*No space")
    with said, open_file(path, classes) as writer:
        monkeypatch.setattr(writer, "close", fail)
    said = pytest.raises(OSError, match="^reading failed$")
    with said, open_file(path, classes):
        raise OSError("reading failed")
    assert list(tmp_path.iterdir()) == []


class Special(ArraySource):
    """Rows that do something else, too, when they are read, here or by a worker."""

    def cut(self, spans):
        piece = super().cut(spans)
        piece.__dict__.update(vars(self) | vars(piece))
        piece.__class__ = type(self)
        return piece


class Interrupting(Special):
    """Rows that press Ctrl-C, once, in the process that has made them."""

    def __init__(self, *args):
        super().__init__(*args)
        self.maker = os.getpid()

    def rows(self, part):
        if self.first_row + part[0] == 20_000:
            os.kill(self.maker, signal.SIGINT)
        return super().rows(part)


class Deadly(Special):
    """Rows whose worker is lost when they are read for the first time, in the midst of writing."""

    def rows(self, part):
        if self.first_row == 10_000 and not self.sign.exists():
            self.sign.touch()
            (folder,) = self.sign.parent.glob(".out.*.partial")
            (folder / ".part-00007.parquet.0123.partial").write_text("half a file")
            os._exit(1)
        return ArraySource.rows(self, part)


class Halves(LocalBackend):
    """A backend of another kind: tasks are pickled, and get the second half of the shards first."""

    def __init__(self):
        self.calls = []

    def survey(self, *args):
        """Survey as this process does."""
        self.calls.append("survey")
        return super().survey(*args)

    def process_shards(self, phase, source, task, threads, monitor):
        """Run a task on each half, and on the first one twice."""
        shards, middle = source.shards(), len(source.shards()) // 2
        for first, own in ((middle, shards[middle:]), (0, shards[:middle]), (0, shards[:middle])):
            sent = pickle.dumps((source.cut(own), task))
            part, copy = pickle.loads(sent)
            rows = list(copy(part, first, threads))
            assert rows == [stop - start for start, stop in own]
            self.calls.append((phase, first, len(own)))


class Opening:
    """An engine that is no cluster of Ray: any object with ``open()`` will do."""

    def __init__(self, backend):
        self.backend, self.opened = backend, 0

    def open(self):
        """Return the backend."""
        self.opened += 1
        return self.backend


class TestAnEngineOfOnesOwn:
    """The parameter ``engine`` takes any object with ``open()``, also for predictions."""

    def test_it_writes_the_folder(self, clf, file, expected, tmp_path):
        engine = Opening(Halves())
        model = using(clf, engine=engine)
        model.predict_to(open_data(file), tmp_path / "out", proba=True)
        assert content(tmp_path / "out") == expected
        middle = SHARDS // 2
        assert engine.backend.calls == [
            ("prediction", middle, SHARDS - middle),
            ("prediction", 0, middle),
            ("prediction", 0, middle),
        ]
        model.predict_to(open_data(file), tmp_path / "one.csv")
        assert engine.opened == 1  # a single file is written by this process

    def test_it_fits_and_predicts(self, rows, tmp_path):
        y, engine = rows[:, 0] > 0.4, Opening(Halves())
        model = paper_classifier(2, random_state=0, engine=engine).fit(rows, y)
        model.predict_to(rows, tmp_path / "out")
        assert engine.opened == 2 and engine.backend.calls[0] == "survey"
        local = paper_classifier(2, random_state=0).fit(rows, y)
        np.testing.assert_array_equal(model.coef_, local.coef_)
        local.predict_to(rows, tmp_path / "expected")
        assert content(tmp_path / "out") == content(tmp_path / "expected")

    def test_its_errors_leave_nothing(self, clf, rows, tmp_path):
        broken = rows.copy()
        broken[17_123, 1] = np.inf
        with pytest.raises(ValueError, match="infinity in column 1, first in row 17123"):
            using(clf, engine=Opening(Halves())).predict_to(broken, tmp_path / "out")
        assert os.listdir(tmp_path) == []

    def test_a_backend_that_forgets_some_shards(self, clf, rows, tmp_path):
        backend = Halves()
        backend.process_shards = lambda phase, source, task, *_: list(
            task(source.cut(source.shards()[:3]), 0, 1)
        )
        with pytest.raises(FileNotFoundError, match="12 of 15 files are missing .*part-00003"):
            using(clf, engine=Opening(backend)).predict_to(rows, tmp_path / "out")
        assert os.listdir(tmp_path) == []

    @pytest.mark.parametrize("seed", range(3))
    def test_a_cluster_that_loses_things(self, clf, file, expected, tmp_path, seed):
        cluster = Shaky(seed)
        cluster.loss_rate = 0.5
        engine = Opening(ClusterBackend(cluster))
        using(clf, engine=engine).predict_to(open_data(file), tmp_path / "out", proba=True)
        assert cluster.losses > 0 and set(cluster.done) == {"process_partition"}
        assert content(tmp_path / "out") == expected


class TestWorkers:
    @pytest.fixture(autouse=True)
    def ray(self, four_workers):
        here = sys.modules[__name__]  # which workers cannot import
        four_workers.cloudpickle.register_pickle_by_value(here)
        yield four_workers
        four_workers.cloudpickle.unregister_pickle_by_value(here)

    @pytest.mark.parametrize(
        "engine", ["ray", RayCluster(workers=1), RayCluster(workers=3), RayCluster(cpus=2)]
    )
    def test_the_same_files(self, clf, file, expected, tmp_path, engine):
        using(clf, engine=engine).predict_to(open_data(file), tmp_path / "out", proba=True)
        assert content(tmp_path / "out") == expected
        assert os.listdir(tmp_path) == ["out"]

    def test_all_kinds_of_rows(self, clf, rows, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)  # a relative path, which workers start elsewhere from
        frame = pd.DataFrame(rows, columns=["a", "b", "c"])
        frame.to_csv("rows.csv", index=False)
        kinds = [rows.astype(np.float32), sp.csr_array(rows), open_data(frame)]
        for i, X in enumerate([*kinds, open_data("rows.csv")]):
            clf.predict_to(X, f"local{i}")
            using(clf, engine="ray").predict_to(X, f"remote{i}")
            assert content(f"local{i}") == content(f"remote{i}")

    def test_a_worker_that_is_lost(self, clf, rows, tmp_path, caplog):
        clf.predict_to(rows, tmp_path / "expected")
        source = Deadly(rows)
        source.sign = tmp_path / "lost"
        using(clf, engine="ray").predict_to(source, tmp_path / "out")
        assert "prediction: rows 10,000 to 19,999 are done again" in caplog.text
        assert content(tmp_path / "out") == content(tmp_path / "expected")
        assert sorted(os.listdir(tmp_path)) == ["expected", "lost", "out"]

    def test_interrupted(self, four_workers, clf, rows, tmp_path):
        with pytest.raises(KeyboardInterrupt):
            using(clf, engine="ray").predict_to(Interrupting(rows), tmp_path / "out")
        assert os.listdir(tmp_path) == []
        # A task that needs all CPUs runs when workers have ended theirs, which leave nothing.
        four_workers.get(four_workers.remote(num_cpus=4)(lambda: None).remote())
        assert os.listdir(tmp_path) == []

    def test_a_file_that_cannot_be_written_there(self, clf, file, tmp_path, monkeypatch):
        """A folder stands where a file shall go, so that its worker fails."""
        make = Path.mkdir

        def spoiled(path):
            make(path)
            make(path / "part-00009.parquet")

        monkeypatch.setattr(Path, "mkdir", spoiled)
        with pytest.raises(OSError, match=r"could not be written to .*out: .*part-00009"):
            using(clf, engine="ray").predict_to(open_data(file), tmp_path / "out")
        assert os.listdir(tmp_path) == []

    @pytest.mark.parametrize("engine", ["local", "ray"])
    def test_progress(self, clf, file, tmp_path, monkeypatch, engine):
        seen, watch = [], Monitor.watch

        def watched(self, phase, total, parts):
            done = 0
            for part in parts:
                done += part[0]
                yield from watch(self, phase, part[0], [part])
            seen.append((phase, total, done, self._display is not None))

        monkeypatch.setattr(Monitor, "watch", watched)
        model = using(clf, engine=engine, verbose=1)
        model.predict_to(open_data(file), tmp_path / "out")
        assert seen == [("prediction", M, M, True)]

    def test_a_single_file_is_written_here(self, clf, rows, tmp_path, monkeypatch):
        monkeypatch.setattr(RayCluster, "open", None)
        using(clf, engine="ray").predict_to(rows[:10], tmp_path / "out.csv")
        assert len(pd.read_csv(tmp_path / "out.csv")) == 10


class TestCommand:
    @pytest.fixture(autouse=True)
    def here(self, clf, file, tmp_path, monkeypatch):
        pytest.importorskip("typer", reason="the command line needs polysift[cli]")
        monkeypatch.chdir(tmp_path)
        save(clf, "model")
        Path("rows").mkdir()
        Path("rows/part-00000.parquet").write_bytes(file.read_bytes())

    def run(self, command, code=0):
        from typer.testing import CliRunner

        from polysift.cli.app import app

        outcome = CliRunner().invoke(app, split(command))
        assert outcome.exit_code == code, (outcome.stdout, outcome.stderr, outcome.exception)
        return outcome

    def test_predict(self, expected, four_workers):
        shown = self.run("predict model rows -o local --scores --proba").stdout
        assert shown == "predictions  local, 30,000 rows\n"
        options = "--engine ray --workers 2 --scores --proba --quiet"
        self.run(f"predict model rows -o v1.5/ {options}")
        assert content("local") == content("v1.5") == expected
        assert (
            "local exists already. Replace it with --force"
            in self.run("predict model rows -o local", code=2).stderr
        )
        self.run("predict model rows -o local --force")
        assert pd.read_parquet("local").shape == (M, 1)

    @pytest.mark.parametrize("engine", ["ray", RayCluster("auto", 2)])
    def test_a_model_that_was_trained_elsewhere(self, clf, monkeypatch, engine):
        save(using(clf, engine=engine), "other")
        assert load("other").engine == engine
        monkeypatch.setattr(RayCluster, "open", None)
        self.run("predict other rows -o out")

    @pytest.mark.parametrize(
        ("options", "text"),
        [
            ("-o ''", "path is empty"),
            ("-o none/out", "folder none does not exist"),
            ("-o model", "model is read by this command"),
            ("-o other", "other is a file"),
            ("-o x.xlsx", "must end in .parquet or .csv"),
            ("-o rows --force", "rows is read by this command"),
            ("-o rows/out", "rows/out lies in the folder rows, whose files are read"),
            ("-o mixed --force", "mixed holds more than numbered parts: x.txt."),
            ("-o out.csv --engine ray", "--engine ray writes a folder"),
            ("-o out --workers 2", "--workers goes with --engine ray"),
        ],
    )
    def test_mistakes(self, options, text):
        Path("other").write_text("precious")
        Path("mixed").mkdir()
        Path("mixed/x.txt").touch()
        assert text in self.run(f"predict model rows {options}", code=2).stderr
        assert sorted(os.listdir()) == ["mixed", "model", "other", "rows"]
        assert os.listdir("rows") == ["part-00000.parquet"]

    def test_a_folder_that_cannot_be_written_to(self, monkeypatch):
        def refuse(**_):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("tempfile.TemporaryFile", refuse)
        assert "cannot be written to" in self.run("predict model rows -o out", code=2).stderr


def test_a_folder_is_checked_as_a_path(tmp_path):
    assert check_output_folder(tmp_path / "new", overwrite=False) == tmp_path / "new"


def blas_threads():
    return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="files have no size limit here")
@pytest.mark.parametrize("name", ["out.csv", "out.parquet", "out"])
def test_a_failure_leaves_no_limit_of_threads_behind(clf, rows, tmp_path, name):
    """Also while the exception, whose traceback holds all frames, is alive."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with threadpool_limits(2, user_api="blas"):
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
        try:
            with pytest.raises(OSError, match=f"could not be written to .*{name}") as caught:
                clf.predict_to(rows, tmp_path / name)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert caught.value.__traceback__ is not None
        assert set(blas_threads()) == {2}
    assert not list(tmp_path.iterdir())


def test_a_consumer_that_stops_leaves_no_limit_of_threads_behind(clf, rows, tmp_path):
    task = FolderTask(clf_predictor(clf), tmp_path, tmp_path / "out", SHARDS)
    with threadpool_limits(2, user_api="blas"), Monitor(1e-9) as monitor:
        with pytest.raises(OutOfTime) as caught:
            LocalBackend().process_shards("prediction", ArraySource(rows), task, 1, monitor)
        assert caught.value.__traceback__ is not None
        assert set(blas_threads()) == {2}


def clf_predictor(clf):
    return prediction_files.Predictor(
        feature_map_of(clf), clf.coef_, clf.classes_, scores=True, calibrator=None
    )
