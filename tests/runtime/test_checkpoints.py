"""Checkpoints: killed at any moment, a fit goes on to the identical model."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
import tracemalloc

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from polysift import CheckpointError
from polysift.runtime import arrays, checkpoints
from polysift.runtime.arrays import MalformedError, read_arrays, write_arrays
from problems import noisy_problem, paper_classifier

X, Y = noisy_problem(np.random.default_rng(0), 30_000, 4)


@pytest.fixture(autouse=True)
def save_always(monkeypatch):
    monkeypatch.setattr(checkpoints, "MIN_SECONDS_BETWEEN_SAVES", 0.0)
    monkeypatch.setattr(checkpoints.Checkpoint, "due", lambda self: True)


def classifier(**changes):
    return paper_classifier(
        **({"degree": 3, "max_iter": 4, "tol": 1e-300, "random_state": 0} | changes)
    )


def test_states_round_trip(tmp_path, rng):
    given = {"a": rng.random((3, 4)), "b": np.arange(5), "empty": np.zeros((0, 2))}
    given |= {"text": np.array(["a", "bc"]), "scalar": np.array(3.5), "truth": np.array([True])}
    write_arrays(tmp_path / "x.state", given, {"k": 3, "value": 0.1, "nan": float("nan")})
    read, values = read_arrays(tmp_path / "x.state")
    for name, array in given.items():
        np.testing.assert_array_equal(read[name], array)
        assert read[name].dtype == array.dtype
    assert values["k"] == 3 and values["value"] == 0.1 and np.isnan(values["nan"])
    assert [p.name for p in tmp_path.iterdir()] == ["x.state"]


def test_every_damage_is_found(tmp_path, rng):
    path = tmp_path / "x.state"
    write_arrays(path, {"a": rng.random(20)}, {"k": 3})
    content = path.read_bytes()
    for position in range(0, len(content), 7):
        damaged = bytearray(content)
        damaged[position] ^= 0x10
        path.write_bytes(damaged)
        with pytest.raises(MalformedError):
            read_arrays(path)
    for length in (0, 5, 40, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(MalformedError):
            read_arrays(path)


def test_no_value_is_used_before_the_index_is_verified(tmp_path):
    path = tmp_path / "x.state"
    write_arrays(path, {"a": np.arange(4.0)}, {"alive": [0, 1]})
    path.write_bytes(path.read_bytes().replace(b"alive", b"alike"))
    with pytest.raises(MalformedError, match="wrong checksum"):
        read_arrays(path, lambda values: values["alive"])


def test_arrays_are_read_only_as_large_as_their_file(tmp_path, rng):
    """Also where an index has the right digest."""
    path = tmp_path / "x.state"
    write_arrays(path, {"a": rng.random((4, 5))}, {})
    content = path.read_bytes()
    index = content[len(arrays.MAGIC) + 160 : -24]
    for old, new, match in [
        (b"[4, 5]", b"[400000, 500000]", "ends within an array"),
        (b"[4, 5]", b"[-4, -5]", "shape"),
        (b"[4, 5]", b"[4.0, 5]", "shape"),
        (b"<f8", b"|O", "dtype"),
        (b"<f8", b"<c16", "dtype"),
    ]:
        text = index.replace(old, new)
        tail = arrays._digest(text) + len(text).to_bytes(8, "little")
        path.write_bytes(content[: -24 - len(index)] + text + tail)
        with pytest.raises(MalformedError, match=match):
            read_arrays(path)


def test_arrays_stream_without_a_copy(tmp_path):
    state, back = np.ones((2**22, 1)), np.zeros((2**22, 1))  # 32 MiB each
    tracemalloc.start()
    write_arrays(tmp_path / "x.state", {"state": state}, {})
    read_arrays(tmp_path / "x.state", lambda _: {"state": back})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_array_equal(back, state)
    assert peak < 2**20


@pytest.mark.parametrize("solver", ["paper", "converged"])
def test_a_finished_fit_is_found_again(tmp_path, solver):
    make = classifier(solver=solver, checkpoint=tmp_path / "c")
    plain = classifier(solver=solver)
    if solver == "converged":
        with pytest.warns(ConvergenceWarning):
            plain.fit(X, Y)
        with pytest.warns(ConvergenceWarning):
            first = make.fit(X, Y).coef_
        with pytest.warns(ConvergenceWarning):
            again = make.fit(X, Y).coef_
    else:
        plain.fit(X, Y)
        first = make.fit(X, Y).coef_
        again = make.fit(X, Y).coef_
    np.testing.assert_array_equal(first, plain.coef_)
    np.testing.assert_array_equal(again, plain.coef_)


@pytest.mark.parametrize("stop_at", [0, 3, 8, 14])
def test_an_interrupted_gram_matrix_is_gone_on_with(tmp_path, monkeypatch, stop_at):
    from polysift.engine.shards import ShardWork

    expected = classifier().fit(X, Y).coef_
    original, calls = ShardWork.gram, []

    def failing(self, item):
        calls.append(item[0])
        if len(calls) > stop_at:
            raise KeyboardInterrupt
        return original(self, item)

    monkeypatch.setattr(ShardWork, "gram", failing)
    with pytest.raises(KeyboardInterrupt):
        classifier(checkpoint=tmp_path, n_jobs=1).fit(X, Y)
    calls.clear()
    monkeypatch.setattr(
        ShardWork, "gram", lambda self, item: calls.append(1) or original(self, item)
    )
    clf = classifier(checkpoint=tmp_path, n_jobs=2).fit(X, Y)
    np.testing.assert_array_equal(clf.coef_, expected)
    assert len(calls) == 15 - stop_at, "finished shards are not done again"


def test_the_seed_is_kept(tmp_path):
    first = classifier(random_state=None, n_centers=9, checkpoint=tmp_path).fit(X, Y)
    again = classifier(random_state=None, n_centers=9, checkpoint=tmp_path).fit(X, Y)
    assert again.random_state_ == first.random_state_
    np.testing.assert_array_equal(again.coef_, first.coef_)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"degree": 2}, "degree"),
        ({"max_iter": 5}, "max_iter"),
        ({"random_state": 1}, "seed"),
        ({"scaler": "standard"}, "scaler"),
    ],
)
def test_other_parameters_are_refused(tmp_path, changes, word):
    classifier(checkpoint=tmp_path).fit(X, Y)
    with pytest.raises(CheckpointError, match=f"belongs to another fit: its {word} is"):
        classifier(checkpoint=tmp_path, **changes).fit(X, Y)


def test_other_data_are_refused(tmp_path):
    classifier(checkpoint=tmp_path).fit(X, Y)
    other = X.copy()
    other[100, 2] += 1e-6
    for rows, labels, weights in (
        (other, Y, None),
        (X[:-1], Y[:-1], None),
        (X, -Y, None),
        (X, Y, np.ones(len(Y)) * 2),
    ):
        with pytest.raises(CheckpointError, match="belongs to another fit"):
            classifier(checkpoint=tmp_path).fit(rows, labels, weights)


def test_another_machine_is_refused(tmp_path):
    classifier(checkpoint=tmp_path).fit(X, Y)
    path = tmp_path / "fingerprint.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"numpy": "0.0"}))
    with pytest.raises(CheckpointError, match="its numpy is '0.0'"):
        classifier(checkpoint=tmp_path).fit(X, Y)


def test_damage_is_reported_and_never_used(tmp_path):
    classifier(checkpoint=tmp_path).fit(X, Y)
    for name in ("gram.state", "solver.state"):
        content = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(content[:100] + b"?" + content[101:])
        with pytest.raises(CheckpointError, match=rf"{name} is damaged .*checksum"):
            classifier(checkpoint=tmp_path).fit(X, Y)
        (tmp_path / name).write_bytes(content)
    (tmp_path / "fingerprint.json").write_text("{")
    with pytest.raises(CheckpointError, match="fingerprint.json is not readable"):
        classifier(checkpoint=tmp_path).fit(X, Y)


def test_a_folder_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="no folder that can be written to"):
        classifier(checkpoint=tmp_path / "file").fit(X, Y)


def test_data_with_the_same_statistics_are_refused(tmp_path):
    rng = np.random.default_rng(0)
    A = rng.integers(0, 4, (4096, 3)).astype(float)
    b = A.sum(axis=1) > 4
    classifier(checkpoint=tmp_path).fit(A, b)
    B = A.copy()
    B[:, 0] = rng.permutation(A[:, 0])
    with pytest.raises(CheckpointError, match="its data is"):
        classifier(checkpoint=tmp_path).fit(B, b)


def test_ctrl_c_within_an_addition_corrupts_nothing(tmp_path, monkeypatch):
    from polysift.engine.sums import GramSums

    expected = classifier().fit(X, Y).coef_
    original, calls = GramSums.add, []

    def interrupted(self, other):
        calls.append(1)
        if len(calls) == 5:
            self.G += other.G  # half of the work
            raise KeyboardInterrupt
        return original(self, other)

    with monkeypatch.context() as patch:
        patch.setattr(GramSums, "add", interrupted)
        with pytest.raises(KeyboardInterrupt):
            classifier(checkpoint=tmp_path, n_jobs=1).fit(X, Y)
    resumed = classifier(checkpoint=tmp_path).fit(X, Y)
    np.testing.assert_array_equal(resumed.coef_, expected)


def test_states_know_their_fit(tmp_path):
    classifier(checkpoint=tmp_path).fit(X, Y)
    (tmp_path / "fingerprint.json").unlink()
    with pytest.raises(CheckpointError, match=r"gram.state belongs to another fit"):
        classifier(checkpoint=tmp_path).fit(X, -Y)


def test_a_folder_serves_one_fit_at_a_time(tmp_path):
    pytest.importorskip("fcntl")
    held = checkpoints.Checkpoint(tmp_path, {})
    with pytest.raises(CheckpointError, match="in use by another fit"):
        classifier(checkpoint=tmp_path).fit(X, Y)
    held.close()


def test_a_spilled_state_is_resumed(tmp_path, monkeypatch):
    from polysift.engine.backend import LocalBackend
    from polysift.engine.budget import Execution

    expected = classifier().fit(X, Y).coef_
    spilled = staticmethod(lambda *_, **__: Execution(2, 4, spill=True))
    monkeypatch.setattr(LocalBackend, "fit_in", spilled)
    first = classifier(checkpoint=tmp_path).fit(X, Y)
    again = classifier(checkpoint=tmp_path).fit(X, Y)
    np.testing.assert_array_equal(first.coef_, expected)
    np.testing.assert_array_equal(again.coef_, expected)


SERVER = """
import os, sys, time, warnings
import numpy as np
from polysift import PAPER, FPCClassifier
from polysift.runtime import arrays, checkpoints
checkpoints.MIN_SECONDS_BETWEEN_SAVES = 0.0
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.random((60_000, 6))
y = rng.integers(0, 3, 60_000)

def fit(folder):
    given = PAPER | {"n_centers": 84, "solver": sys.argv[1], "alpha": None, "beta": None}
    clf = FPCClassifier(**given, max_iter=12, tol=1e-300, random_state=0, checkpoint=folder)
    return clf.fit(X, y).coef_

fit(None)  # what is done once in a process is no part of what follows
began = time.perf_counter()
np.save("expected.npy", fit(None))
print(time.perf_counter() - began, flush=True)
for _ in sys.stdin:
    pid = os.fork()
    if pid == 0:
        np.save("resumed.npy", fit("c"))
        os._exit(0)
    print(pid, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")
@pytest.mark.parametrize("solver", ["paper", "converged"])
def test_kill_minus_nine_at_random_moments(tmp_path, solver):
    """A real process, killed again and again; the last one ends in the identical model."""
    command = [sys.executable, "-c", SERVER, solver]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    moments = random.Random(solver)
    with subprocess.Popen(command, cwd=tmp_path, **pipes) as server:

        def start():
            server.stdin.write("\n")
            server.stdin.flush()
            return int(server.stdout.readline())

        length = float(server.stdout.readline())
        for _ in range(5):
            pid = start()
            time.sleep(moments.uniform(0.05, 0.8) * length)
            with contextlib.suppress(ProcessLookupError):  # it was faster
                os.kill(pid, signal.SIGKILL)
            assert int(server.stdout.readline()) in (0, -signal.SIGKILL)
        start()
        assert int(server.stdout.readline()) == 0
    resumed = np.load(tmp_path / "resumed.npy")
    np.testing.assert_array_equal(resumed, np.load(tmp_path / "expected.npy"))
    assert (
        not list((tmp_path / "c").glob(".*partial")) or (tmp_path / "c" / "solver.state").exists()
    )


FULL_DISK = """
import resource, sys, warnings
from pathlib import Path
import numpy as np
from polysift import PAPER, FPCClassifier, FPCClassifierCV
from polysift.runtime.arrays import read_arrays
from polysift.runtime.checkpoints import Checkpoint

rng = np.random.default_rng(0)
X, y = rng.random((20_000, 3)), rng.integers(0, 2, 20_000)
params = PAPER | {"n_centers": 40, "max_iter": 6, "random_state": 0}
models = {
    "fit": FPCClassifier(tol=1e-300, **params),
    "sampled": FPCClassifier(gram="sampled", **params),
    "search": FPCClassifierCV((1, 2), n_centers=20, cv=2, solvers="paper", random_state=0),
}
model, (first, last) = models[sys.argv[1]], map(int, sys.argv[2:])
number, save, hard = 0, Checkpoint.save, resource.getrlimit(resource.RLIMIT_FSIZE)[1]

def limited(self, name, arrays, values):
    global number
    number += 1
    full = first <= number < last
    resource.setrlimit(resource.RLIMIT_FSIZE, (100 if full else hard, hard))
    done = save(self, name, arrays, values)
    assert done is not full, (name, number)
    return done

def coefficients():
    fitted = model.fit(X, y)
    return getattr(fitted, "best_estimator_", fitted).coef_

expected = coefficients()
Checkpoint.save, Checkpoint.due = limited, lambda self: True
model.set_params(checkpoint="c")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    assert (coefficients() == expected).all()
for warning in caught:
    print(warning.category.__name__, warning.message)
state = Path("c/solver.state")
print("iterations:", len(read_arrays(state)[1]["rows"][0]) if state.exists() else None)
first = last = 0
assert (coefficients() == expected).all()
"""


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="files have no size limit here")
@pytest.mark.parametrize(
    ("model", "first", "last", "iterations"),
    [("fit", 14, 999, 3), ("fit", 13, 15, 6), ("sampled", 1, 999, None), ("search", 1, 9, None)],
)
def test_a_full_disk_does_not_end_the_fit(tmp_path, model, first, last, iterations):
    """The last good state stays, and another fit goes on from there to the same bits."""
    command = [sys.executable, "-c", FULL_DISK, model, str(first), str(last)]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    assert f"iterations: {iterations}\n" in run.stdout, "of the state on disk"
    assert run.stdout.count("RuntimeWarning") == 1
    assert "could not be written: [Errno 27] File too large" in run.stdout
    assert not list((tmp_path / "c").glob(".*partial"))
