"""``polysift compare`` and ``--holdout``, as a user types them."""

from __future__ import annotations

import json
from shlex import split

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("matplotlib")
pytest.importorskip("typer", reason="the command line needs polysift[cli]")
from typer.testing import CliRunner  # noqa: E402

from polysift.cli.app import app  # noqa: E402
from polysift.datasets import make_bayes_curve  # noqa: E402


def run(command):
    return CliRunner().invoke(app, split(command))


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = make_bayes_curve(400, noise=0.05, random_state=0)
    pd.DataFrame(X, columns=["a", "b"]).assign(label=y).to_csv("rows.csv", index=False)
    return tmp_path


def test_compare(here):
    command = "compare rows.csv -t label --models logistic --cv 2"
    done = run(f"{command} --report c.html --picture c.svg")
    assert done.exit_code == 0, done.stderr
    assert "out of fold: 400 rows, 2 classes, 2 folds" in done.stdout
    assert "better" in done.stdout and (here / "c.html").exists() and (here / "c.svg").exists()
    again = run(f"{command} --report c.html")
    assert again.exit_code == 2 and "exists already" in again.stderr
    values = json.loads(run(f"{command} --json -q").stdout)
    assert values["models"].keys() == {"polysift", "logistic"}
    assert run("compare rows.csv -t label --models svm").exit_code != 0
    assert "does not take --weight" in run("compare rows.csv -t label --weight a").stderr


def test_holdout(here):
    done = run("fit rows.csv -t label --seed 0 --holdout 0.25 --json")
    values = json.loads(done.stdout)
    assert values["rows"] + values["held out"]["rows"] == 400
    low, high = values["held out"]["intervals"]["accuracy"]
    assert low <= values["held out"]["accuracy"] <= high
    assert values["training"]["rows"] == values["rows"]
    both = run("fit rows.csv -t label --holdout 0.25 --validation rows.csv -o b.polysift")
    assert both.exit_code == 2 and not (here / "b.polysift").exists()
    none = run("fit rows.csv -t label --holdout 1 -o b.polysift")
    assert none.exit_code == 2 and "--holdout" in none.stderr
    assert np.isfinite(values["held_out"]["log_loss"])
