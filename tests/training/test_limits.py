"""Memory and time limits, the forecast, progress, interruption, callbacks."""

import os
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import stress
from clocks import give_rates
from polysift import Forecast, open_data
from polysift.engine import budget
from polysift.engine.budget import (
    Execution,
    Shape,
    fit_in,
    free_memory,
    parse_memory_limit,
    peak_bytes,
)
from polysift.engine.shards import ShardWork
from polysift.runtime.progress import Monitor, OutOfTime
from polysift.solvers.admm import Admm
from problems import noisy_problem, paper_classifier

X, Y = noisy_problem(np.random.default_rng(0), 30_000, 4)
SHAPE = Shape(10**6, 8, 500, 1, 8, False, False, 0)


def test_sizes_are_understood(monkeypatch):
    monkeypatch.setattr(budget, "free_memory", lambda: 8 * 10**9)
    assert parse_memory_limit("2GB") == 2 * 10**9
    assert parse_memory_limit("1.5 GiB") == 1.5 * 2**30
    assert parse_memory_limit("300mb") == 300 * 10**6
    assert parse_memory_limit(12345) == 12345
    assert parse_memory_limit(1) == parse_memory_limit(np.int64(1)) == 1
    assert parse_memory_limit(np.uint32(12345)) == parse_memory_limit(np.float32(12345)) == 12345
    assert parse_memory_limit(0.25) == parse_memory_limit(np.float32(0.25)) == 2 * 10**9
    assert parse_memory_limit(1.0) == parse_memory_limit(np.float64(1)) == 8 * 10**9
    assert parse_memory_limit(None) == 4 * 10**9


WRONG_SIZES = ["lots", "2 XB", "", "1.2.3GB", 0, -5, float("nan"), True, [], np.int64(0), np.True_]


@pytest.mark.parametrize("value", WRONG_SIZES)
def test_sizes_that_are_not(value):
    with pytest.raises(ValueError, match="memory_limit must be a size such as"):
        paper_classifier(memory_limit=value).fit(X[:100], Y[:100])


def test_a_container_limit_counts(tmp_path, monkeypatch):
    from polysift.engine import budget

    group = tmp_path / "slice" / "job"
    group.mkdir(parents=True)
    (group.parent / "memory.max").write_text("1000000000\n")
    (group.parent / "memory.current").write_text("400000000\n")
    (group / "memory.max").write_text("max\n")
    (group / "memory.current").write_text("1\n")
    monkeypatch.setattr(budget, "_control_groups", lambda: [group, group.parent])
    assert free_memory() == 600_000_000
    (group.parent / "memory.max").write_text("max\n")
    assert free_memory() > 600_000_000


def test_control_groups_are_found():
    from polysift.engine.budget import _control_groups

    if not os.path.exists("/proc/self/cgroup"):
        pytest.skip("no control groups here")
    assert all(str(group).startswith("/sys/fs/cgroup") for group in _control_groups())


def test_less_memory_means_fewer_shards_then_a_file():
    plenty = fit_in(10**10, SHAPE, 4)
    assert plenty == Execution(4, 8, spill=False)
    tight = fit_in(peak_bytes(SHAPE, Execution(1, 1)), SHAPE, 4)
    assert not tight.spill and tight.threads == 1
    least = peak_bytes(SHAPE, Execution(1, 1, spill=True))
    assert fit_in(least, SHAPE, 4).spill
    with pytest.raises(MemoryError, match=r"Set memory_limit to .* or n_centers to \d+ or less"):
        fit_in(least - 1, SHAPE, 4)


def test_features_are_kept_where_they_take_a_small_share():
    stored = 10**6 * 500 * 8
    assert fit_in(4 * stored, SHAPE, 4, keep_features=True) == Execution(4, 8, keep_features=True)
    assert not fit_in(4 * stored, SHAPE, 4).keep_features, "only where many sweeps make it pay"
    assert not fit_in(4 * stored - 8, SHAPE, 4, keep_features=True).keep_features
    kept = peak_bytes(SHAPE, Execution(4, 8, keep_features=True))
    assert kept == peak_bytes(SHAPE, Execution(4, 8)) + stored


@pytest.mark.own_memory("it is about features that are kept")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_kept_features_do_not_change_the_model(monkeypatch, dtype):
    from polysift.data.source import ArraySource
    from polysift.engine import budget

    reads = []
    original = ArraySource.rows
    monkeypatch.setattr(ArraySource, "rows", lambda *args: reads.append(1) or original(*args))
    weights = np.arange(len(X)) % 3  # rows of weight zero among them
    make = {"degree": 3, "solver": "converged", "max_iter": 6, "random_state": 0}
    models, passes = [], []
    for share in (0.25, 0.0):
        monkeypatch.setattr(budget, "MAX_KEPT_FEATURES_SHARE", share)
        reads.clear()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            models.append(paper_classifier(**make).fit(X.astype(dtype), Y, weights))
        passes.append(len(reads) / 15)
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
    assert passes == [2, 8], "survey and Gram matrix, and six sweeps where nothing is kept"


def test_fit_refuses_what_does_not_fit():
    with pytest.raises(MemoryError, match="at the least"):
        paper_classifier(5, 120, memory_limit="5MB").fit(X, Y)


@pytest.mark.parametrize("solver", ["paper", "converged"])
def test_the_model_does_not_depend_on_the_limit(solver):
    make = {"degree": 3, "solver": solver, "max_iter": 6, "tol": 0, "random_state": 0}
    y = np.arange(len(X)) % 3
    shape = Shape(len(X), 4, 35, 3, 8, False, False, 0)
    limit = peak_bytes(shape, Execution(1, 1, spill=True))
    assert fit_in(limit, shape, 4).spill
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        free = paper_classifier(**make).fit(X, y)
        spilled = paper_classifier(**make, memory_limit=limit).fit(X, y)
    np.testing.assert_array_equal(spilled.coef_, free.coef_)


LIMITED = """
import resource, sys, threading, time
import numpy as np
from polysift import PAPER, FPCClassifier, open_data

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()

source = open_data(sys.argv[1], target="y")
FPCClassifier(**PAPER).fit(open_data(sys.argv[2], target="y"))  # libraries loaded, pools warm
before, peak, done = resident(), 0, False
def sample():
    global peak
    while not done:
        peak = max(peak, resident())
        time.sleep(0.002)
thread = threading.Thread(target=sample); thread.start()
given = PAPER | {"degree": 4, "n_centers": 400, "memory_limit": sys.argv[3]}
clf = FPCClassifier(**given, max_iter=3, tol=1e-300, random_state=0)
clf.fit(source)
done = True; thread.join()
print(peak - before)
"""


@pytest.mark.needs("pandas", "pyarrow")
def test_the_limit_is_kept(tmp_path):
    """Resident memory, sampled while a process trains from a file, grows by less than the limit."""
    if not os.path.exists("/proc/self/statm"):
        pytest.skip("memory is sampled from /proc, which is not here")
    import pandas as pd

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((200_000, 8)), columns=list("abcdefgh"))
    frame = frame.assign(y=frame["a"] > 0.5)
    frame.to_parquet(tmp_path / "large.parquet", row_group_size=50_000)
    frame[:5000].to_parquet(tmp_path / "small.parquet")
    grown = []
    for limit in ("120MB", "300MB"):
        run = subprocess.run(
            [
                sys.executable,
                "-c",
                LIMITED,
                str(tmp_path / "large.parquet"),
                str(tmp_path / "small.parquet"),
                limit,
            ],
            capture_output=True,
            text=True,
            check=True,
        )
        grown.append(int(run.stdout))
        assert grown[-1] < parse_memory_limit(limit)


FULL_DISK = """
import resource, signal
from polysift.engine.local import new_state
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    new_state((1_000_000, 2), True)
except OSError as error:
    print("refused:", error)
"""


@pytest.mark.own_memory("it compares with a run that is not in the least memory")
@pytest.mark.parametrize("solver", ["paper", "converged", "newton"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_least_memory_spills_and_keeps_nothing(monkeypatch, solver):
    """What ``--least-memory`` does to all fits: another execution, and the same bits."""
    plain = paper_classifier(2, solver=solver, tol=1e-3, random_state=0, n_jobs=2).fit(X, Y)
    taken, fit_in = [], budget.fit_in
    monkeypatch.setattr(
        budget, "fit_in", lambda *a, **k: taken.append(fit_in(*a, **k)) or taken[-1]
    )
    stress.take_least_memory(monkeypatch)
    tight = paper_classifier(2, solver=solver, tol=1e-3, random_state=0, n_jobs=2).fit(X, Y)
    assert taken and all(one == stress.LEAST for one in taken)
    np.testing.assert_array_equal(tight.coef_, plain.coef_)


def test_another_seed_draws_other_numbers(monkeypatch):
    first = np.random.default_rng(0).random(3)
    with monkeypatch.context() as patch:
        stress.shift_seeds(patch, 5)
        drawn = [np.random.default_rng(seed).random(3) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert len({tuple(one) for one in (first, drawn[0], drawn[2])}) == 3


def test_a_spilled_state_on_a_full_disk_is_an_error():
    pytest.importorskip("resource")
    run = subprocess.run(
        [sys.executable, "-c", FULL_DISK], capture_output=True, text=True, check=True
    )
    assert "refused:" in run.stdout and "raise memory_limit" in run.stdout


@pytest.mark.needs("pandas", "pyarrow")
def test_a_frame_in_memory_is_input_not_work():
    import pandas as pd

    frame = pd.DataFrame(np.random.default_rng(0).random((200_000, 20)))
    frame.columns = [f"x{j}" for j in range(20)]
    source = open_data(frame.assign(y=frame["x0"] > 0.5), target="y")
    assert paper_classifier(1, memory_limit="90MB").fit(source).score(source) > 0.9


def test_plan_draws_nothing():
    rng = np.random.default_rng(0)
    paper_classifier(2, random_state=rng).plan(X, Y)
    drawn = paper_classifier(2, random_state=rng).fit(X, Y).random_state_
    assert (
        drawn == paper_classifier(2, random_state=np.random.default_rng(0)).fit(X, Y).random_state_
    )


@pytest.mark.needs("pyarrow")
def test_plan_tells_before_anything_runs(capsys, tmp_path, monkeypatch):
    clf = paper_classifier(3, random_state=0)
    expected = clf.plan(X, Y)
    assert isinstance(expected, Forecast)
    assert (expected.rows, expected.features, expected.centers) == (30_000, 4, 35)
    assert expected.passes == 4 and expected.feature_evaluations == 30_000 * 35 * 3
    assert expected.seconds > 0 and expected.peak_memory > 0
    printed = capsys.readouterr().out
    for word in ("30,000 x 4", "peak memory", "passes", "feature evaluations", "time"):
        assert word in printed
    assert not hasattr(clf, "coef_") and not hasattr(clf, "n_features_in_")
    np.savetxt(tmp_path / "data.csv", np.column_stack([X, Y]), delimiter=",")
    from_file = clf.plan(open_data(tmp_path / "data.csv", target=-1))
    assert from_file.disk >= X.nbytes
    with pytest.raises(MemoryError, match="n_centers"):
        paper_classifier(10, memory_limit="60MB").plan(X, Y)
    give_rates(monkeypatch, survey=1e-5, gram=1e-4, sweep=1e-3, reading=2.0)
    phases = clf.plan(X, Y, show=False).seconds_by_phase
    assert phases == pytest.approx({"survey": 2.3, "Gram matrix": 5.0, "sweep": 64.0})


def test_time_limit_returns_the_latest_model(clock, monkeypatch):
    clock.after(monkeypatch, Admm, "update", 1.0)
    how = {"solver": "converged", "max_iter": 100_000, "tol": 0, "random_state": 0}
    clf = paper_classifier(4, **how, time_limit=29.5).fit(X, Y)
    assert clf.status_ == "time_limit" and "time_limit" in clf.status_message_
    assert clf.n_iter_ == 30
    assert clf.score(X, Y) > 0.7


def test_time_limit_before_a_model_quotes_the_forecast(clock):
    clock.tick = 1.0
    clf = paper_classifier(3, 35, time_limit=0.5)
    with pytest.raises(TimeoutError, match=r"struck in the phase .*forecast .* is about .* s"):
        clf.fit(X, Y)
    assert not hasattr(clf, "coef_")


def test_time_limit_keeps_the_checkpoint(tmp_path, clock, monkeypatch):
    rng = np.random.default_rng(0)
    big = rng.random((140_000, 4))
    y = big[:, 0] > 0.5
    make = {"degree": 3, "random_state": 0, "n_jobs": 1}
    with monkeypatch.context() as patch:
        clock.after(patch, ShardWork, "gram", 0.1)
        with pytest.raises(TimeoutError, match=f"The checkpoint {tmp_path} keeps what is done"):
            paper_classifier(**make, checkpoint=tmp_path, time_limit=2.0).fit(big, y)
    assert (tmp_path / "gram.state").exists()
    resumed = paper_classifier(**make, checkpoint=tmp_path).fit(big, y)
    np.testing.assert_array_equal(resumed.coef_, paper_classifier(**make).fit(big, y).coef_)


def test_monitor_raises_at_the_deadline(clock):
    monitor = Monitor(time_limit=0.5)
    clock.now += 1.0
    passed = monitor.watch("phase", 30, [(10, "a"), (10, "b"), (10, "c")])
    assert next(passed) == "a"
    with pytest.raises(OutOfTime):
        next(passed)


def test_ctrl_c_after_the_first_iterate_keeps_the_model(monkeypatch):
    """A real signal, at a known moment: so that a slow machine cannot miss it."""
    original = Monitor.iteration

    def pressed(self, k, row):
        original(self, k, row)
        if k == 5:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Monitor, "iteration", pressed)
    clf = paper_classifier(4, solver="converged", max_iter=100_000, tol=0, random_state=0)
    with pytest.warns(ConvergenceWarning, match="interrupted after 5 iterations"):
        clf.fit(X, Y)
    assert clf.status_ == "interrupted" and clf.n_iter_ == 5
    assert clf.score(X, Y) > 0.7


def test_ctrl_c_before_the_first_iterate_raises(monkeypatch):
    from polysift.engine import local

    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(local.LocalEngine, "gram", interrupted)
    clf = paper_classifier(2)
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, Y)
    assert not hasattr(clf, "coef_") and not hasattr(clf, "n_features_in_")
