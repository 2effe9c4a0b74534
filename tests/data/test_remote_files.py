"""Files in object storage: the same rows as on a disk, clear errors, and secrets that stay so."""

import json
import os
import pickle
import subprocess
import sys
import threading
from contextlib import nullcontext
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shlex import split

import numpy as np
import pytest

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
import pandas as pd
import pyarrow.fs as pafs

from polysift import open_data
from polysift.data.locations import Address, find, identity, public_name
from polysift.data.readers import format_of
from problems import noisy_problem, paper_classifier

KEY, SECRET = "AKIAOPEN", "hid/den+one"
LOGIN = "AKIAOPEN:hid%2Fden%2Bone"
M = 6000

FILES = [
    "flat/part-0.parquet",
    "flat/part-1.parquet",
    "flat/part-10.parquet",
    "flat/other.pq",
    "days/day=1/a.parquet",
    "days/day=2/b.parquet",
    "days/day=2/hour=1/c.parquet",
    "days/.tmp/d.parquet",
    "days/.e.parquet",
    "odd/whole.parquet/part-0.parquet",
    "odd/two words [1].parquet",
]
NAMES = [
    "flat",
    "flat/",
    "flat/part-1.parquet",
    "flat/part-*.parquet",
    "flat/part-[01].parquet",
    "flat/p*-1*",
    "flat/other.pq",
    "*/part-0.parquet",
    "days",
    "days/*",
    "days/day=*",
    "days/*/*.parquet",
    "days/**",
    "days/**/*.parquet",
    "days/**/hour=1/*",
    "days/.*.parquet",
    "**/*.parquet",
    "**/whole.parquet/**",
    "odd",
    "odd/whole.parquet",
    "odd/two words [1].parquet",
    "odd/two w*",
]
"""What stands for the same files in a folder of a disk and in a bucket."""


@pytest.fixture(scope="module")
def frame():
    X, y = noisy_problem(np.random.default_rng(0), M, 3)
    columns = {f"x{j}": X[:, j] for j in range(3)}
    return pd.DataFrame(columns | {"label": np.where(y > 0, "good", "bad")})


@pytest.fixture(scope="module")
def folder(frame, tmp_path_factory):
    """Return a folder of Parquet files, each with other rows."""
    root = tmp_path_factory.mktemp("tree")
    step = M // len(FILES)
    for i, name in enumerate(FILES):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        frame[i * step : (i + 1) * step].to_parquet(path, row_group_size=200)
    return root


@pytest.fixture(scope="module")
def store():
    """Start an object store that speaks S3; return its address."""
    moto = pytest.importorskip("moto.server", reason="an object store needs moto[server,s3]")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.delenv(name)
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")  # nobody answers there
        server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()
        host, port = server.get_host_and_port()
        yield f"{host}:{port}"
        server.stop()


def filesystem(store, **options):
    return pafs.S3FileSystem(
        access_key=KEY, secret_key=SECRET, endpoint_override=store, scheme="http", **options
    )


@pytest.fixture(scope="module")
def bucket(store, folder):
    """Return how to make a URI of a path in a bucket that holds the same files."""
    fs = filesystem(store, allow_bucket_creation=True)
    fs.create_dir("bucket")
    pafs.copy_files(str(folder), "bucket", destination_filesystem=fs)
    return lambda path: f"s3://{LOGIN}@bucket/{path}?endpoint_override={store}&scheme=http"


def put(store, path, content):
    with filesystem(store).open_output_stream(path) as file:
        file.write(content)


def message(error, call, *args, **options):
    """Return what a call raises; neither it nor what is shown with it holds a secret."""
    with pytest.raises(error) as caught:
        call(*args, **options)
    shown = caught.value
    while shown is not None:
        check_secrets(str(shown))
        shown = shown.__cause__ or (None if shown.__suppress_context__ else shown.__context__)
    return str(caught.value)


def check_secrets(text):
    for secret in (KEY, SECRET, LOGIN, "den+one", "den%2Bone"):
        assert secret not in text


def rows_of(source):
    return np.concatenate([source.rows(part) for _, part in source.parts()])


class TestFinding:
    @pytest.mark.parametrize("name", NAMES)
    def test_as_on_a_disk(self, folder, bucket, name):
        here = find(f"{folder}/{name}")
        there = find(bucket(name))
        expected = [Path(path).relative_to(folder).as_posix() for path in here.paths]
        assert there.names == [f"s3://bucket/{path}" for path in expected]
        assert len(set(expected)) == len(expected) > 0

    def test_a_whole_bucket(self, folder, bucket):
        assert len(find(bucket("")).paths) == len(FILES) - 1  # .pq is not .parquet

    def test_percent_encoded(self, bucket):
        found = find(bucket("odd/two%20words%20%5B1%5D.parquet"))
        assert found.paths == ["bucket/odd/two words [1].parquet"]

    def test_uris_of_this_machine(self, folder):
        name = "odd/two words [1].parquet"
        for uri in (f"file://{folder}/{name}", f"file://localhost{folder}/odd/two%20w*[[]1*"):
            assert find(uri).names == [f"{folder}/{name}"]
        with pytest.raises(ValueError, match="three slashes"):
            find("file://data/x.parquet")

    def test_every_format_by_a_uri_of_this_machine(self, frame, tmp_path):
        frame.to_csv(tmp_path / "data.csv", index=False)
        assert format_of(f"file://{tmp_path}/data.csv") == "csv"
        assert open_data(f"file://{tmp_path}/data.csv", target="label").n_rows == M

    def test_a_row_is_read_once(self, folder):
        """A folder may be called like a file, and ** finds folders beside their files."""
        assert open_data(folder / "odd").n_rows == 2 * (M // len(FILES))
        assert open_data(f"{folder}/days/**/*").n_rows == 3 * (M // len(FILES))


class TestReading:
    @pytest.mark.parametrize("name", ["flat", "flat/part-*.parquet", "flat/part-10.parquet"])
    def test_the_same_model(self, folder, bucket, name):
        models = [
            paper_classifier(degree=2, n_centers=8, random_state=0).fit(open_data(data, "label"))
            for data in (f"{folder}/{name}", bucket(name))
        ]
        np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
        here, there = (model.training_summary_["origin"] for model in models)
        assert there == "s3://bucket" + here.removeprefix(str(folder))

    def test_names_tell_no_secret(self, bucket):
        source = open_data(bucket("flat"), "label")
        assert source.origin == "s3://bucket/flat/part-0.parquet and 2 more"
        assert "s3://bucket/flat/part-0.parquet" in source.target
        assert source.place(0) == "row 0 (counted from 0) of s3://bucket/flat/part-0.parquet"
        check_secrets(repr(vars(source)))

    def test_credentials_of_the_environment(self, bucket, monkeypatch):
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        uri = bucket("flat").replace(f"{LOGIN}@", "").replace("s3:", "S3:")
        assert open_data(uri).n_rows == 3 * (M // len(FILES))

    def test_a_filesystem_of_ones_own(self, bucket, store, folder):
        expected = rows_of(open_data(folder / "flat", "label"))
        for path in ("bucket/flat", Path("bucket/flat"), "bucket/flat/part-?*.parquet"):
            source = open_data(path, "label", filesystem=filesystem(store))
            np.testing.assert_array_equal(rows_of(source), expected)
            assert source.origin == "s3://bucket/flat/part-0.parquet and 2 more"
        inside = pafs.SubTreeFileSystem(str(folder), pafs.LocalFileSystem())
        assert open_data("flat", filesystem=inside).origin == "flat/part-0.parquet and 2 more"

    @pytest.mark.parametrize("path", ["/tree/flat", "tree/flat", "tree/**/part-*.parquet"])
    def test_fsspec(self, folder, path):
        memory = pytest.importorskip("fsspec.implementations.memory")
        fs = memory.MemoryFileSystem(skip_instance_cache=True)
        fs.store, fs.pseudo_dirs = {}, [""]  # it shares them with all others of its kind
        fs.put(f"{folder}/flat", "/tree/flat", recursive=True)
        source = open_data(path, "label", filesystem=fs)
        np.testing.assert_array_equal(rows_of(source), rows_of(open_data(folder / "flat", "label")))


class TestMistakes:
    def test_nothing_there(self, bucket, store):
        for path in ("none", "flat/none.parquet"):
            text = message(FileNotFoundError, open_data, bucket(path))
            assert text == f"There is no file or folder s3://bucket/{path}."
        assert "matches s3://bucket/no*" in message(FileNotFoundError, open_data, bucket("no*"))
        put(store, "bucket/notes/readme.txt", b"x")
        text = message(FileNotFoundError, open_data, bucket("notes"))
        assert text == "s3://bucket/notes holds no .parquet files."
        other = bucket("x").replace("@bucket", "@nobody")
        assert "s3://nobody/x" in message(FileNotFoundError, open_data, other)

    def test_files_that_are_not_parquet(self, bucket, store, folder):
        content = (folder / FILES[0]).read_bytes()
        thrift = bytearray(content)
        thrift[-200:-8] = b"\xff" * 192
        bad = {"text": b"not at all", "cut": content[:3000], "thrift": bytes(thrift)}
        for name, stuff in bad.items():
            put(store, f"bucket/bad/{name}.parquet", stuff)
            text = message(ValueError, open_data, bucket(f"bad/{name}.parquet"))
            assert f"s3://bucket/bad/{name}.parquet is not a readable Parquet file" in text
        put(store, "bucket/bad/empty.parquet", b"")
        text = message(ValueError, open_data, bucket("bad/*.parquet"))
        assert text == "s3://bucket/bad/empty.parquet is empty."

    def test_files_that_differ(self, bucket, store, frame):
        for name, changed in (("a", frame), ("b", frame.assign(x1="one"))):
            put(store, f"bucket/differ/{name}.parquet", changed.to_parquet())
        text = message(ValueError, open_data, bucket("differ"))
        assert "'x1': double in s3://bucket/differ/a.parquet" in text
        assert "string in s3://bucket/differ/b.parquet" in text

    def test_other_formats(self, bucket, store):
        put(store, "bucket/text/data.csv", b"a,b\n1,2\n")
        text = message(ValueError, open_data, bucket("text/data.csv"))
        assert "s3://bucket/text/data.csv is of format csv" in text
        assert "only Parquet is read" in text and "copy it to a disk" in text
        text = message(ValueError, open_data, bucket("flat"), format="arrow")
        assert "of format arrow" in text
        assert "format must be one of" in message(ValueError, open_data, bucket("flat"), format="x")

    def test_infinite_values_name_the_file(self, bucket, store, frame):
        put(store, "bucket/inf.parquet", frame.assign(x1=np.inf).to_parquet())
        clf = paper_classifier(degree=1)
        text = message(ValueError, clf.fit, open_data(bucket("inf.parquet"), "label"))
        assert "infinity in column 'x1', first in row 0 (counted from 0) of s3://bucket/inf" in text

    def test_refused(self, store):
        with answering(403) as address:
            uri = f"s3://{LOGIN}@bucket/x?endpoint_override={address}&scheme=http"
            text = message(OSError, open_data, uri)
        assert text.startswith("s3://bucket/x cannot be reached: ")
        assert "ACCESS_DENIED" in text and "AWS_ACCESS_KEY_ID" in text

    def test_unreachable(self, store):
        retry = pafs.AwsStandardS3RetryStrategy(max_attempts=1)
        fs = filesystem("127.0.0.1:1", retry_strategy=retry)
        text = message(OSError, open_data, "bucket/x", filesystem=fs)
        assert "s3://bucket/x cannot be reached" in text and "NETWORK_CONNECTION" in text

    def test_gone_since_it_was_opened(self, bucket, store, folder):
        put(store, "bucket/brief.parquet", (folder / FILES[0]).read_bytes())
        source = open_data(bucket("brief.parquet"), "label")
        filesystem(store).delete_file("bucket/brief.parquet")
        text = message(FileNotFoundError, rows_of, source)
        assert text == "s3://bucket/brief.parquet was removed after it was opened."

    def test_lost_on_the_way(self, folder):
        """What is no fault of the file is not called damage, and may be over the next moment."""
        memory = pytest.importorskip("fsspec.implementations.memory")

        class Shaky(memory.MemoryFileSystem):
            cachable, failures = False, 0

            def _open(self, path, *args, **options):
                if self.failures:
                    Shaky.failures -= 1
                    raise OSError("Connection reset by peer")
                return super()._open(path, *args, **options)

        fs = Shaky()
        fs.store, fs.pseudo_dirs = {}, [""]
        content = bytearray((folder / FILES[0]).read_bytes())
        fs.pipe_file("/sound.parquet", bytes(content))
        content[4:400] = bytes(396)
        fs.pipe_file("/broken.parquet", bytes(content))
        sound, broken = (
            open_data(f"/{name}.parquet", "label", filesystem=fs) for name in ("sound", "broken")
        )
        Shaky.failures = 100
        text = message(OSError, rows_of, sound)
        assert "sound.parquet could not be read from row 0 on: Connection reset by peer" in text
        assert "damaged" not in text and "try again" in text
        Shaky.failures = 1
        assert len(rows_of(sound)) == M // len(FILES)
        text = message(ValueError, rows_of, broken)
        assert "broken.parquet cannot be read: its row group of 200 rows from row 0 on is" in text

    def test_schemes_and_types(self, frame):
        login = f"{LOGIN}@"
        text = message(ValueError, open_data, f"http://{login}host/x.parquet")
        assert text.startswith("http://host/x.parquet: pyarrow knows no storage called http://")
        assert "names no bucket" in message(ValueError, open_data, f"s3://{login}")
        text = message(ValueError, open_data, f"s3://{login}bucket/part-?.parquet")
        assert "options begin with ?" in text
        text = message(ValueError, open_data, "s3://x/y", filesystem=pafs.LocalFileSystem())
        assert "a path in it" in text
        with pytest.raises(TypeError, match=r"such as pyarrow.fs.S3FileSystem\(\); got str"):
            open_data("x", filesystem="s3")
        with pytest.raises(TypeError, match="goes with a path; data is a DataFrame"):
            open_data(frame, filesystem=pafs.LocalFileSystem())
        with pytest.raises(FileNotFoundError, match="as a Path it loses a slash"):
            open_data(Path("s3://bucket/x"))


class answering:
    """A server that answers every request with one status."""

    def __init__(self, status):
        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self):
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_GET = do_HEAD

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return f"127.0.0.1:{self.server.server_port}"

    def __exit__(self, *error):
        self.server.shutdown()
        self.server.server_close()


class TestSecrets:
    @pytest.mark.parametrize(
        ("uri", "shown"),
        [
            ("s3://key:secret@bucket/a@b/c", "s3://bucket/a@b/c"),
            ("s3://key:se/cret@bucket/c", "s3://bucket/c"),
            ("s3://key:se?cret@bucket/c", "s3://bucket/c"),
            ("s3://key:se#cret/@bucket/c", "s3://bucket/c"),
            ("s3://key:secret", "s3://"),
            ("s3://bucket/a b?client_secret=secret", "s3://bucket/a b"),
            ("S3://bucket/a%20b", "s3://bucket/a b"),
            ("hdfs://user:secret@host:8020/a", "hdfs://host:8020/a"),
            ("hdfs://host:8020/a", "hdfs://host:8020/a"),
            ("abfs://container:secret@account.dfs.core.windows.net/a", None),
        ],
    )
    def test_public_names(self, uri, shown):
        assert shown is None or public_name(uri) == shown
        assert "secret" not in public_name(uri) and "cret" not in public_name(uri)
        censored = Address.of(uri).censor(f"Cannot parse {uri}; se cret")
        assert "secret" not in censored and "cret@" not in censored
        assert public_name(f"dir/{uri[:2]}") == f"dir/{uri[:2]}"

    def test_a_secret_that_is_not_encoded(self):
        uri = f"s3://{KEY}:{SECRET}@bucket/x"
        assert "percent-encoded" in message(ValueError, open_data, uri)

    def test_the_same_data(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert identity("a.parquet") == identity(f"file://{tmp_path}/a.parquet")
        assert identity("s3://k:s@b/a/") == identity("S3://b/a") != identity("s3://b/a?region=x")


RESTORED = """
import pickle, sys
import numpy as np
with open(sys.argv[1], "rb") as file:
    sources = pickle.load(file)
out = {}
for kind, source in sources.items():
    for what in ("rows", "labels"):
        read = [getattr(source, what)(part) for _, part in source.parts()]
        out[f"{kind} {what}"] = np.concatenate(read).astype(float if what == "rows" else str)
np.savez(sys.argv[2], **out)
"""


class TestElsewhere:
    """A source that is pickled reads the same rows in another process and folder."""

    def test_another_process(self, folder, bucket, store, tmp_path, monkeypatch):
        cloudpickle = pytest.importorskip("cloudpickle", reason="it is what clusters pickle by")
        monkeypatch.chdir(folder)
        roles = {"target": "label", "columns": ["x2", "x0"]}
        sources = {
            "uri": open_data(bucket("flat"), **roles),
            "own": open_data("bucket/flat", **roles, filesystem=filesystem(store)),
            "disk": open_data("flat", **roles),  # relative to this folder, not to the other's
        }
        assert sources["disk"].origin == f"{Path('flat') / 'part-0.parquet'} and 2 more"
        (tmp_path / "sources.pickle").write_bytes(cloudpickle.dumps(sources))
        command = [sys.executable, "-W", "error", "-c", RESTORED, "sources.pickle", "read.npz"]
        run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert (run.returncode, run.stderr) == (0, "")
        expected = pd.concat(pd.read_parquet(folder / name) for name in FILES[:3])
        with np.load(tmp_path / "read.npz") as read:
            for kind in sources:
                np.testing.assert_array_equal(read[f"{kind} rows"], expected[["x2", "x0"]])
                np.testing.assert_array_equal(read[f"{kind} labels"], expected["label"])

    @pytest.mark.parametrize("pickler", ["pickle", "cloudpickle"])
    def test_restored_here(self, bucket, pickler):
        dumps = pytest.importorskip(pickler).dumps
        source = open_data(bucket("flat"), "label")
        restored = pickle.loads(dumps(source.select(["x1"])))
        np.testing.assert_array_equal(rows_of(restored), rows_of(source)[:, 1:2])


class TestCommands:
    @pytest.fixture(autouse=True)
    def here(self, tmp_path, monkeypatch):
        pytest.importorskip("typer", reason="the command line needs polysift[cli]")
        monkeypatch.chdir(tmp_path)

    def run(self, command, *words, code=0):
        from typer.testing import CliRunner

        from polysift.cli.app import app

        outcome = CliRunner().invoke(app, [*split(command), *words])
        assert outcome.exit_code == code, (outcome.stdout, outcome.stderr, outcome.exception)
        check_secrets(outcome.stderr)
        return outcome

    def test_fit_and_predict(self, bucket, folder):
        data, other = bucket("flat/part-*.parquet"), bucket("days/day=2")
        options = "-t label --degree 2 --n-centers 8 --seed 0 --quiet"
        self.run(f"fit {options} -o there", data, "--validation", other)
        self.run(f"fit {options} -o here", f"file://{folder}/flat")
        self.run("predict there -o there.parquet", other)
        self.run("predict here -o here.parquet", str(folder / "days" / "day=2"))
        there, here = (pd.read_parquet(f"{name}.parquet") for name in ("there", "here"))
        pd.testing.assert_frame_equal(there, here)

    def test_what_is_passed_on_tells_no_secret(self, bucket, monkeypatch):
        data, other, waiting = bucket("flat"), bucket("days"), []
        monkeypatch.setattr(
            "polysift.cli.data_options.busy",
            lambda text, **_: waiting.append(text) or nullcontext(),
        )
        for command, words in (
            ("fit -t label --degree 1 --report fit.html", [data, f"--validation={other}"]),
            ("evaluate model.polysift -t label --report evaluate.html", [data]),
        ):
            monkeypatch.setattr(sys, "argv", ["polysift", *split(command), *words])
            self.run(command, *words)
        for page, shown in (("fit.html", "--validation=s3://bucket/days"), ("evaluate.html", "")):
            text = Path(page).read_text()
            check_secrets(text)
            assert "endpoint_override" not in text
            assert "s3://bucket/flat" in text and shown in text
        out = self.run("evaluate model.polysift -t label --quiet --json", data).stdout
        check_secrets(out)
        assert json.loads(out)["data"] == "s3://bucket/flat"
        table = self.run("evaluate model.polysift -t label", data).stdout
        assert "endpoint_override" not in table
        text = self.run("fit -o other", data, code=2).stderr
        assert "the labels of s3://bucket/flat with --target" in text
        assert set(waiting) == {"reading s3://bucket/flat", "reading s3://bucket/days"}

    def test_predictions_replace_a_file(self, bucket):
        self.run("fit -t label --degree 1 --quiet", bucket("flat"))
        Path("out.csv").write_text("of before")
        for _ in range(2):
            self.run("predict model.polysift -o out.csv --force --quiet", bucket("flat"))
            assert Path("out.csv").read_text().startswith('"prediction"\n')

    def test_mistakes(self, bucket, folder):
        data = bucket("flat")
        options = "-t label --degree 1 --seed 0 --quiet"
        outcome = self.run(f"fit {options}", data, "--validation", bucket("flat/"), code=2)
        assert "the training data itself: s3://bucket/flat." in outcome.stderr
        outcome = self.run(f"fit {options}", bucket("none"), code=1)
        assert "There is no file or folder s3://bucket/none." in outcome.stderr
        outcome = self.run(f"fit {options}", f"xyz://{LOGIN}@bucket/x", code=1)
        assert "knows no storage called xyz://" in outcome.stderr
        assert list(Path().iterdir()) == []

    def test_inputs_are_not_replaced(self, frame, tmp_path):
        frame.to_parquet("rows.parquet")
        uri = f"file://{tmp_path}/rows.parquet"
        outcome = self.run("fit -t label -f -o rows.parquet", uri, code=2)
        assert "is read by this command" in outcome.stderr
