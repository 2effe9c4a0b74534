"""``--drift`` of predict and evaluate, and the line on standard error without it."""

from __future__ import annotations

import json
from shlex import split

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("typer", reason="the command line needs polysift[cli]")
from typer.testing import CliRunner  # noqa: E402

import polysift  # noqa: E402
from polysift.cli import models  # noqa: E402
from polysift.cli.app import app  # noqa: E402
from problems import paper_classifier  # noqa: E402


@pytest.fixture
def here(tmp_path, monkeypatch, rng):
    """Return an empty folder with a model, rows like those of its training, and others."""
    monkeypatch.chdir(tmp_path)
    X = pd.DataFrame({"age": rng.uniform(18, 80, 900), "color": rng.choice(["red", "blue"], 900)})
    y = np.where(X["age"] + rng.normal(0, 15, 900) > 50, "yes", "no")
    clf = paper_classifier(2, 30, random_state=0).fit(X[:600], y[:600])
    polysift.save(clf, "model.polysift")
    like = X[600:].assign(label=y[600:])
    like.to_parquet("like.parquet", index=False)
    other = like.reset_index(drop=True)
    other.loc[:99, "age"], other.loc[:29, "color"] = 99.0, "grey"
    other.to_parquet("other.parquet", index=False)
    return tmp_path


def run(command):
    outcome = CliRunner().invoke(app, split(command))
    assert outcome.exit_code == 0, (outcome.stdout, outcome.stderr)
    return outcome


@pytest.mark.parametrize(
    "command",
    ["predict model.polysift {} -o out.csv", "evaluate model.polysift {} -t label"],
)
class TestBoth:
    def test_rows_like_those_of_the_training_are_not_spoken_of(self, here, command):
        done = run(command.format("like.parquet") + " --quiet")
        assert done.stdout == "" and done.stderr == ""

    def test_a_line_says_that_columns_differ(self, here, command):
        done = run(command.format("other.parquet") + " --quiet")
        assert done.stdout == ""
        line, end = done.stderr.split("\n")
        assert line.startswith("Warning: 2 of 2 columns differ much from the training rows, as in ")
        assert "age: 33.3 % of the rows are above 79." in line and end == ""
        assert line.endswith(" --drift shows all columns.")

    def test_the_table(self, here, command):
        done = run(command.format("other.parquet") + " --drift")
        assert "300 rows against the training rows" in done.stdout
        assert "most often 'grey' (10.0 %)." in done.stdout
        assert "Warning" not in done.stderr
        calm = run(command.format("like.parquet").replace("out.csv", "calm.csv") + " --drift")
        assert "No column differs much from the training rows." in calm.stdout


def test_a_glance_takes_few_of_many_rows(here, monkeypatch):
    monkeypatch.setattr(models, "GLANCED_ROWS", 2_000)
    rows = pd.concat([pd.read_parquet("other.parquet")] * 40)
    rows.to_parquet("many.parquet", index=False)
    seen = []
    given = polysift.drift
    monkeypatch.setattr(polysift, "drift", lambda *a, **k: seen.append(given(*a, **k)) or seen[-1])
    assert "Warning: " in run("predict model.polysift many.parquet -o out.csv").stderr
    run("predict model.polysift many.parquet -o out.csv --force --drift")
    assert [found.rows for found in seen] == [2_000, 12_000]


def test_json(here):
    command = "evaluate model.polysift other.parquet -t label --json"
    found = json.loads(run(f"{command} --drift").stdout)["drift"]
    assert [column["name"] for column in found["columns"]] == ["age", "color"]
    assert found["columns"][1]["unseen_words"] == [["grey", 0.1]]
    plain = run(command)
    assert "drift" not in json.loads(plain.stdout) and "Warning: " in plain.stderr
