"""Predictions as CSV: labels that a spreadsheet would execute, quoted where one asks for it."""

import csv

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("pyarrow")

from typer.testing import CliRunner

from polysift import save
from polysift.cli.app import app
from polysift.estimators.prediction_files import quoted_formulas
from problems import paper_classifier

FORMULAS = ("=1+1", "+cmd", "-2+3", "@SUM(A1)", "\tx", "\rx", "\nx", "-", "=", "-1e9", "-1.5.")
PLAIN = ("a=1", "", " =1", "-1", "+1", "-12.5", "it's", "'=1")


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).random((200, 2))


def fitted(rows, *names):
    """Return a classifier of two classes, whose rows of both are in ``rows``."""
    return paper_classifier(1, random_state=0).fit(rows, np.array(names)[(rows[:, 0] > 0.5) * 1])


def cells(path):
    with path.open(newline="") as file:
        return list(csv.reader(file))


@pytest.mark.parametrize("kind", [str, object])
def test_what_is_quoted(kind):
    for name in FORMULAS:
        assert list(quoted_formulas(np.array([name], dtype=kind))) == [f"'{name}"]
    for name in PLAIN:
        assert list(quoted_formulas(np.array([name], dtype=kind))) == [name]
    numbers = np.array([-1, 1])
    assert quoted_formulas(numbers) is numbers


@pytest.mark.parametrize("name", FORMULAS[:7])
def test_command(rows, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    save(fitted(rows, name, "plain"), "m.polysift")
    np.save("rows.npy", rows)
    command = ["predict", "m.polysift", "rows.npy", "--scores", "--force", "-o", "out.csv"]
    for more, shown in (([], name), (["--safe-csv"], f"'{name}")):
        outcome = CliRunner().invoke(app, command + more)
        assert outcome.exit_code == 0, outcome.stderr
        head, *found = cells(tmp_path / "out.csv")
        assert head == ["prediction", "score"]
        assert {label for label, _ in found} == {shown, "plain"}
        assert min(float(score) for _, score in found) < 0, "a number is not quoted"


def test_labels_that_are_numbers(rows, tmp_path):
    clf = fitted(rows, -1, 1)
    for safe in (False, True):
        clf.predict_to(rows, tmp_path / f"{safe}.csv", safe_csv=safe)
    assert (tmp_path / "True.csv").read_bytes() == (tmp_path / "False.csv").read_bytes()


@pytest.mark.parametrize("output", ["out.parquet", "out"])
def test_other_outputs(rows, tmp_path, monkeypatch, output):
    monkeypatch.chdir(tmp_path)
    clf = fitted(rows, "=1", "b")
    with pytest.raises(ValueError, match=r"safe_csv goes with a \.csv file"):
        clf.predict_to(rows, output, safe_csv=True)
    save(clf, "m.polysift")
    outcome = CliRunner().invoke(
        app, ["predict", "m.polysift", "x.npy", "--safe-csv", "-o", output]
    )
    assert outcome.exit_code == 2 and "--safe-csv goes with a .csv file" in outcome.stderr
    assert not (tmp_path / output).exists()
