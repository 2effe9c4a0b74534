"""Commands on tables with columns of all kinds."""

from __future__ import annotations

import json
from shlex import split

import pytest
from numpy.testing import assert_array_equal

import polysift
from problems import optional

pytest.importorskip("typer", reason="commands need polysift[cli]")
pd = optional("pandas")
CliRunner = optional("typer.testing").CliRunner

pytestmark = pytest.mark.needs("pandas", "pyarrow")


def run(command: str, code: int = 0):
    from polysift.cli.app import app

    outcome = CliRunner().invoke(app, split(command))
    if outcome.exception is not None and not isinstance(outcome.exception, SystemExit):
        raise outcome.exception
    assert outcome.exit_code == code, (outcome.stdout, outcome.stderr)
    return outcome


@pytest.fixture
def frame(tmp_path, monkeypatch, rng):
    """Write train.csv, with an index, and return it."""
    monkeypatch.chdir(tmp_path)
    rows = 300
    made = pd.DataFrame(
        {
            "zip": rng.choice([10115, 20095, 80331], rows),
            "city": rng.choice(["Rom", "Ulm", "unknown"], rows),
            "day": rng.choice(["2024-01-31", "2024-02-29"], rows),
            "price": [f"€{value:.2f}" for value in rng.random(rows)],
        }
    )
    made["label"] = (made["zip"] == 20095).map({True: "yes", False: "no"})
    made.to_csv("train.csv")
    return made


def test_kinds_and_notes_are_printed(frame):
    outcome = run("fit train.csv -t label --seed 0 --category zip --missing unknown")
    lines = {line.partition("  ")[0]: line for line in outcome.stdout.splitlines()}
    assert lines["category columns"].split() == ["category", "columns", "zip,", "city"]
    assert lines["date columns"].endswith("day") and lines["number columns"].endswith("price")
    assert "The first column, '', counts the rows and is left out" in outcome.stdout
    assert "Column 'price' is read as numbers with the sign €" in outcome.stdout
    assert "pass --category 'price'." in outcome.stdout
    frame.to_csv("index.csv")
    told = run("predict model.polysift index.csv -o p.csv --drop label").stderr
    assert told.startswith("Note: The first column, '', counts the rows") and "--columns" in told
    model = polysift.load("model.polysift")
    source = polysift.open_data(
        "train.csv", target="label", columns={"zip": "category"}, missing=["unknown"]
    )
    expected = polysift.FPCClassifier(random_state=0).fit(source)
    assert_array_equal(model.coef_, expected.coef_)


def test_quiet(frame):
    outcome = run("fit train.csv -t label --seed 0 --quiet")
    assert outcome.stdout == outcome.stderr == ""


def test_the_kinds_are_in_json(frame):
    found = json.loads(run("fit train.csv -t label --json --quiet --drop zip").stdout)
    assert found["feature_names"] == ["city", "day", "price"]
    assert found["column_kinds"] == ["category", "date", "number"]


def test_the_model_says_how_new_files_are_read(frame):
    """Its categories are read as words, though all are numbers here; so are its numbers."""
    mixed = frame.assign(zip=frame["zip"].astype(str).where(frame.index > 0, "0A115"))
    mixed.to_csv("mixed.csv", index=False)
    run("fit mixed.csv -t label --seed 0 --quiet")
    new = frame.assign(zip=frame["zip"].map("{:06d}".format))
    new.to_csv("new.csv", index=False)
    run("predict model.polysift new.csv -o out.csv --quiet")
    written = pd.read_csv("out.csv")["prediction"]
    model = polysift.load("model.polysift")
    assert_array_equal(written, model.predict(new.drop(columns="label")))
    run("evaluate model.polysift new.csv -t label --quiet")
    new.assign(price="dear").to_csv("wrong.csv", index=False)
    outcome = run("predict model.polysift wrong.csv -o no.csv", 1)
    assert "'dear'" in outcome.stderr and "column 'price', row 0" in outcome.stderr


def test_validation_data_are_read_as_the_training_data(frame):
    codes = frame["zip"].map("{:06d}".format)
    mixed = frame.assign(zip=codes.where(frame.index > 0, "none"))
    mixed.to_csv("mixed.csv", index=False)
    frame.assign(zip=codes).to_csv("new.csv", index=False)
    found = json.loads(
        run("fit mixed.csv -t label --seed 0 --validation new.csv --json --quiet").stdout
    )
    assert found["validation"]["accuracy"] == 1.0


def test_kinds_by_options(frame):
    run("fit train.csv -t label --seed 0 --quiet --category zip,price --date day --numeric 0")
    model = polysift.load("model.polysift")
    kinds = dict(zip(model.feature_names_in_, model.column_kinds_, strict=True))
    assert kinds["zip"] == "category" and "category" in kinds["price"]
    assert kinds["day"] == "date" and "" in kinds


def test_databases_and_folders(frame, tmp_path):
    import sqlite3

    with sqlite3.connect("x.db") as connection:
        frame.to_sql("rows", connection, index=False)
    connection.close()
    run("fit 'sqlite:///x.db?table=rows' -t label --seed 0 --quiet -o a.polysift")
    (tmp_path / "parts").mkdir()
    for k in range(3):
        frame[k * 100 : (k + 1) * 100].to_csv(tmp_path / "parts" / f"{k}.csv", index=False)
    run("fit parts -t label --seed 0 --quiet -o b.polysift")
    models = [polysift.load(f"{name}.polysift") for name in "ab"]
    assert_array_equal(models[0].coef_, models[1].coef_)
    run("evaluate a.polysift 'sqlite:///x.db?table=rows' -t label --quiet")


def test_an_output_does_not_replace_a_file_of_an_input_folder(frame, tmp_path):
    (tmp_path / "parts").mkdir()
    frame.to_csv("parts/0.csv", index=False)
    run("fit parts -t label --seed 0 --quiet")
    outcome = run("predict model.polysift parts -o parts/0.csv --force", 2)
    assert "parts/0.csv is read by this command" in outcome.stderr


def test_tune_prints_kinds(frame):
    outcome = run(
        "tune train.csv -t label --seed 0 --degrees 1 --n-centers 4 --scalers minmax --rhos none "
        "--solvers paper --cv 2"
    )
    assert "category columns" in outcome.stdout and "date columns" in outcome.stdout
