"""``polysift tune`` that is ended at any moment: by a signal, an error, or the power."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from shlex import split

import numpy as np
import pytest

pytest.importorskip("pandas")
typer = pytest.importorskip("typer", reason="the command line needs polysift[cli]")
from typer.testing import CliRunner  # noqa: E402

import polysift  # noqa: E402
from clocks import GUARD  # noqa: E402
from polysift.cli.app import app  # noqa: E402
from polysift.cli.console import _interrupt  # noqa: E402
from polysift.selection import last_resort  # noqa: E402
from polysift.selection.race import Race  # noqa: E402
from problems import noisy_problem  # noqa: E402
from searching import at_call  # noqa: E402

TUNE = "tune rows.npz --seed 0 --rhos auto --n-centers 30"


@pytest.fixture(autouse=True)
def rows(tmp_path, monkeypatch):
    """Write so many rows that there is a sample of them."""
    monkeypatch.chdir(tmp_path)
    X, y = noisy_problem(np.random.default_rng(0), 21_000, 3)
    np.savez("rows.npz", X=X, y=y)
    return X


def run(command: str, code: int):
    outcome = CliRunner().invoke(app, split(command))
    assert outcome.exit_code == code, outcome.output
    return outcome


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM], ids=lambda sent: sent.name)
def test_a_signal_leaves_the_best_model_so_far(rows, sent):
    command = [sys.executable, "-m", "polysift", *split(TUNE)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            if "(1 of " in line and "5,000 rows" not in line:  # the sample is done with
                process.send_signal(sent)
                break
        _, rest = process.communicate(timeout=GUARD)
    if sent == signal.SIGKILL:
        assert process.returncode == -signal.SIGKILL
    else:
        assert process.returncode == 130
        assert "Interrupted: the latest model is in model.polysift" in rest
    model = polysift.load("model.polysift")
    assert model.status_ == "interrupted"
    assert len(model.predict(rows)) == len(rows)


def test_a_model_is_there_as_soon_as_rows_are_read(rows):
    command = [sys.executable, "-m", "polysift", *split(TUNE)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        first = process.stderr.readline()
        process.kill()
    assert "a first model, of 2,000 rows, is in model.polysift" in first
    model = polysift.load("model.polysift")
    assert model.n_refit_rows_ == 2000
    assert len(model.predict(rows)) == len(rows)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_the_first_model_may_fail(monkeypatch, error):
    """An interrupt leaves another one; what few rows lack is left to all rows."""

    def act():
        raise error

    at_call(monkeypatch, last_resort, "few_rows", 1, act)
    run(TUNE, 130 if error is KeyboardInterrupt else 0)
    few = polysift.load("model.polysift").n_refit_rows_ == 2000
    assert few == (error is KeyboardInterrupt)


def interrupted_at(monkeypatch, number, what=KeyboardInterrupt):
    """Raise in the given level of a search."""

    def act():
        raise what

    return at_call(monkeypatch, Race, "_run_level", number, act)


def test_an_interrupt_before_the_first_model_leaves_a_small_one(monkeypatch):
    interrupted_at(monkeypatch, 1)
    assert "the latest model is in model.polysift" in run(TUNE, 130).stderr
    assert polysift.load("model.polysift").n_refit_rows_ == 2000


def test_a_model_that_was_there_stays_until_the_end(monkeypatch):
    Path("model.polysift").write_text("another one")
    seen = []
    at_call(
        monkeypatch, Race, "_run_level", 2, lambda: seen.append(Path("model.polysift").read_text())
    )
    run(f"{TUNE} --force", 0)
    assert seen == ["another one"]
    assert polysift.load("model.polysift").status_ == "finished"


def test_an_error_leaves_no_early_model(monkeypatch):
    seen = []

    def fail():
        seen.append(polysift.load("model.polysift").n_refit_rows_)
        raise ValueError("no more")

    at_call(monkeypatch, Race, "_run_level", 2, fail)
    assert "no more" in run(TUNE, 1).stderr
    assert seen[0] < 21_000 and not Path("model.polysift").exists()


def test_an_interrupt_waits_for_the_end_of_an_import(monkeypatch, tmp_path):
    """Python would lose it in a callback of the import system."""
    (tmp_path / "imported.py").write_text(
        "import os, signal, sys\nos.kill(os.getpid(), signal.SIGTERM)\ndone = True\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    before = signal.signal(signal.SIGTERM, _interrupt)

    def import_and_wait():
        import imported

        while imported.done:
            os.getpid()

    try:
        with pytest.raises(KeyboardInterrupt):
            import_and_wait()
    finally:
        signal.signal(signal.SIGTERM, before)
