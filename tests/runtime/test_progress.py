"""Progress as lines and as a bar, counted and timed by one monitor."""

import os
import subprocess
import sys

import pytest

from clocks import GUARD
from polysift.runtime.progress import Monitor, OutOfTime


def test_lines_of_a_pass_over_rows(clock, capsys):
    with Monitor(show=True) as monitor:
        monitor.title = "degree 2"
        for _ in monitor.watch("Gram matrix", 10_000, [(3000, None), (2000, None), (5000, None)]):
            clock.now += 3.0
    assert capsys.readouterr().err.splitlines() == [
        "polysift: degree 2: Gram matrix: 50%, 1,667 rows/s, 3 s left",
        "polysift: degree 2: Gram matrix: 10,000 rows in 9.0 s",
    ]
    assert monitor.timings() == {"Gram matrix": 9.0, "total": 9.0}


def test_no_lines_of_a_short_pass(clock, capsys):
    with Monitor(show=True) as monitor:
        clock.now += 5.0
        for _ in monitor.watch("sweep", 100, [(50, None), (50, None)]):
            clock.now += 0.5
    assert monitor.seconds == {"sweep": 1.0} and not capsys.readouterr().err


@pytest.mark.parametrize("total", [None, 4000, 5000])
def test_lines_of_a_task(total, clock, capsys):
    with Monitor(show=True) as monitor, monitor.task("reading", total, "rows") as advance:
        for _ in range(4):
            clock.now += 0.7
            advance(1000)
    first, *others, last = capsys.readouterr().err.splitlines()
    assert first == "polysift: reading: begun"
    of = " of 5,000" if total == 5000 else ""
    assert last == f"polysift: reading: 4,000{of} rows in 2.8 s"
    shown = {
        None: ["2,000 rows, 1,429 rows/s", "4,000 rows, 1,429 rows/s"],
        4000: ["50%, 1,429 rows/s, 1 s left"],
        5000: ["40%, 1,429 rows/s, 2 s left"],
    }
    assert others == [f"polysift: reading: {text}" for text in shown[total]]


def test_a_task_that_fails_has_no_last_line(capsys):
    def broken():
        with Monitor(show=True) as monitor, monitor.task("fetching", 10, "bytes") as advance:
            advance(5)
            raise ConnectionError

    with pytest.raises(ConnectionError):
        broken()
    assert capsys.readouterr().err == "polysift: fetching: begun\n"


def test_the_time_limit_is_looked_at_between_parts(clock):
    monitor = Monitor(time_limit=10.0)
    parts = monitor.watch("sweep", 4, [(1, "a"), (1, "b"), (2, "c")])
    assert [next(parts), next(parts)] == ["a", "b"]
    clock.now += 11.0
    with pytest.raises(OutOfTime) as late:
        next(parts)
    assert (late.value.phase, late.value.share) == ("sweep", 0.5)
    assert list(monitor.watch("last", 1, [(1, "d")])) == ["d"], "a pass that is done is not late"
    with pytest.raises(OutOfTime):
        monitor.check()
    monitor.lift()
    monitor.check()


def test_progress_bar_on_a_terminal():
    pytest.importorskip("rich")
    pty = pytest.importorskip("pty")
    code = (
        "import numpy as np; from polysift import PAPER, FPCClassifier; "
        "X = np.random.default_rng(0).random((200_000, 4)); "
        "FPCClassifier(**PAPER, verbose=1, max_iter=5, tol=1e-300).fit(X, X[:, 0] > 0.5)"
    )
    shown = bytearray()
    ours, theirs = pty.openpty()
    child = subprocess.Popen([sys.executable, "-c", code], stderr=theirs)
    os.close(theirs)
    while True:
        try:
            data = os.read(ours, 4096)
        except OSError:  # the other side is closed
            break
        if not data:
            break
        shown.extend(data)
    os.close(ours)
    status = child.wait(timeout=GUARD)
    text = shown.decode(errors="replace")
    assert status == 0, text
    for word in ("rows/s", "iteration 5", "objective", "100%"):
        assert word in text
