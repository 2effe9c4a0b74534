"""Studies: running, going on, results, pages, and the command."""

from __future__ import annotations

import base64
import csv
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="pictures need polysift[plots]")
typer = pytest.importorskip("typer", reason="the command line needs polysift[cli]")
from typer.testing import CliRunner  # noqa: E402

from clocks import GUARD  # noqa: E402
from polysift.cli.console import state  # noqa: E402
from polysift_paper.app import app  # noqa: E402
from polysift_paper.studies import simulations  # noqa: E402
from polysift_paper.studies.averages import average, seeds  # noqa: E402
from polysift_paper.studies.page import SIMULATIONS, write_markdown, write_page  # noqa: E402
from polysift_paper.studies.pictures import legend, line, name_axes, new_figure  # noqa: E402
from polysift_paper.studies.results import read_table, table_text, write_results  # noqa: E402
from polysift_paper.studies.runner import CellError, run_study, seeded_cells  # noqa: E402
from polysift_paper.studies.study import Study, Verdict  # noqa: E402
from studying import die, measure  # noqa: E402

EVIL = '<script>alert("x")</script> | *a* _b_'


def interrupted_fit(cell):
    """Swallow Ctrl-C and return what there is, as a fit does."""
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(GUARD)
    except KeyboardInterrupt:
        pass
    return [{"x": 1, "error": 0.0}]


def draw(summary, rows):
    figure, ax = new_figure()
    x, mean = ([entry[name] for entry in summary] for name in ("x", "error"))
    line(ax, x, mean, [entry["error_spread"] for entry in summary], number=0, label="us")
    name_axes(ax, "x", "error", "title")
    legend(ax)
    return figure


def summarise(rows):
    return average(rows, ["x"], ["error"])


def judge(summary, rows):
    return Verdict(True, f"{len(rows)} measurements. {EVIL}")


@pytest.fixture
def study(tmp_path):
    return Study(
        name="1",
        title=f"A title {EVIL}",
        figure="Fig. 1",
        claim=f"A claim {EVIL}",
        runs=3,
        cells=seeds,
        measure=partial(measure, tmp_path / "log", None),
        summarise=summarise,
        draw=draw,
        judge=judge,
    )


@pytest.fixture
def measured(tmp_path):
    """Return a function that tells which seeds were measured since it was last asked."""
    (tmp_path / "log").touch()

    def ask():
        seen = sorted(map(int, (tmp_path / "log").read_text().split()))
        (tmp_path / "log").write_text("")
        return seen

    return ask


def failing(study, tmp_path, run):
    return replace(study, measure=partial(measure, tmp_path / "log", run))


def test_rows_hold_their_cells_in_order(study, tmp_path):
    rows = run_study(study, 3, tmp_path / "out")
    assert [(row["run"], row["seed"], row["x"]) for row in rows] == [
        (run, run, x) for run in range(3) for x in (1, 2)
    ]
    assert rows[0]["error"] == np.random.default_rng(0).random()
    assert rows[0]["fine"] is True


def test_what_is_done_is_not_done_again(study, tmp_path, measured):
    first = run_study(study, 2, tmp_path / "out")
    assert measured() == [0, 1]
    more = run_study(study, 4, tmp_path / "out")
    assert measured() == [2, 3]
    assert more[: len(first)] == first
    other = run_study(study, 1, tmp_path / "out", seed=1)
    assert measured() == [seeded_cells(study, 1, 1)[0]["seed"]]
    assert other[0]["error"] != first[0]["error"]
    assert run_study(study, 2, tmp_path / "out") == first
    assert measured() == []


def test_a_failing_cell_is_named_and_the_others_are_kept(study, tmp_path, measured):
    with pytest.raises(CellError, match=r"simulation 1 failed at run=2, seed=2: ValueError: no l"):
        run_study(failing(study, tmp_path, 2), 4, tmp_path / "out")
    assert measured() == [0, 1, 2]
    run_study(study, 4, tmp_path / "out")
    assert measured() == [2, 3]


@pytest.mark.parametrize("torn", [1, 2, 30])
def test_a_torn_line_is_as_good_as_none(study, tmp_path, measured, torn):
    rows = run_study(study, 3, tmp_path / "out")
    path = tmp_path / "out" / "simulation-1" / "cells.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-torn])
    measured()
    assert run_study(study, 4, tmp_path / "out")[: len(rows)] == rows
    assert measured() == ([3] if torn == 1 else [2, 3])  # without its newline a line is whole
    assert run_study(study, 3, tmp_path / "out") == rows
    assert measured() == []


def test_processes_do_not_change_results(study, tmp_path, measured):
    alone = run_study(study, 5, tmp_path / "one")
    measured()
    assert run_study(study, 5, tmp_path / "two", jobs=2) == alone
    assert measured() == list(range(5))
    with pytest.raises(CellError, match=r"failed at run=6, seed=6: ValueError"):
        run_study(failing(study, tmp_path, 6), 7, tmp_path / "two", jobs=2)


def test_a_process_that_dies_is_reported(study, tmp_path):
    with pytest.raises(CellError, match="has died") as caught:
        run_study(replace(study, measure=die), 2, tmp_path / "out", jobs=2)
    assert isinstance(caught.value, OSError)  # a command shows its message, and no traceback


def test_the_time_left_is_known_though_cells_take_minutes():
    pytest.importorskip("rich")
    from polysift_paper.studies.runner import _rich_bar

    now = 0.0
    bar = _rich_bar()
    bar.get_time = lambda: now
    task = bar.add_task("cells", total=10)
    for done in (1, 2, 3):
        now = 100.0 * done
        bar.update(task, completed=done)
    assert bar.tasks[0].time_remaining == 700


def test_timed_studies_run_in_this_process(study, tmp_path):
    here = replace(study, parallel=False, measure=lambda cell: [{"pid": os.getpid()}])
    assert {row["pid"] for row in run_study(here, 2, tmp_path / "out", jobs=2)} == {os.getpid()}


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupted_fit_is_no_measurement(study, tmp_path, measured):
    run_study(study, 1, tmp_path / "out")
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        run_study(replace(study, measure=interrupted_fit), 3, tmp_path / "out")
    assert signal.getsignal(signal.SIGINT) is before
    measured()
    run_study(study, 3, tmp_path / "out")
    assert measured() == [1, 2]


def _wait_for(path, process):
    """Wait until a file is there; the process that writes it must not end before."""
    while not path.exists():
        assert process.poll() is None
        time.sleep(0.05)


def _all_gone(group):
    """Return whether a group of processes ends; one that has ended may take a while to go."""
    for _ in range(10 * GUARD):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c_ends_all_processes_and_keeps_cells(tmp_path):
    program = "from polysift_paper.app import app; app()"
    words = [sys.executable, "-c", program, "simulations", "5", "-o", "out", "--jobs", "2"]
    process = subprocess.Popen(
        words, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    cells = tmp_path / "out" / "simulation-5" / "cells.jsonl"
    _wait_for(cells, process)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=GUARD)
    assert process.returncode == 130
    assert "out keeps what is done; the same command goes on." in said
    assert "Traceback" not in said
    assert json.loads(cells.read_text().splitlines()[0])["cell"]["run"] in (0, 1)
    assert _all_gone(process.pid)


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_run_that_is_killed_leaves_no_process_behind(tmp_path):
    program = "from polysift_paper.app import app; app()"
    words = [sys.executable, "-c", program, "simulations", "5", "-o", "out", "--jobs", "2"]
    process = subprocess.Popen(
        words, cwd=tmp_path, stderr=subprocess.DEVNULL, start_new_session=True
    )
    cells = tmp_path / "out" / "simulation-5" / "cells.jsonl"
    _wait_for(cells, process)
    process.kill()
    process.wait(timeout=GUARD)
    assert _all_gone(process.pid)


def test_results(study, tmp_path):
    rows = run_study(study, 3, tmp_path)
    outcome = write_results(study, rows, tmp_path, runs=3, seed=0)
    home = tmp_path / "simulation-1"
    with open(home / "measurements.csv", newline="") as file:
        read = list(csv.DictReader(file))
    assert [float(row["error"]) for row in read] == [row["error"] for row in rows]
    assert list(read[0]) == ["run", "seed", "x", "error", "fine"]
    with open(home / "summary.csv", newline="") as file:
        assert [row["x"] for row in csv.DictReader(file)] == ["1", "2"]
    ElementTree.fromstring((home / "figure.svg").read_bytes())
    assert (home / "figure.png").read_bytes().startswith(b"\x89PNG")
    verdict = json.loads((home / "verdict.json").read_text())
    assert verdict["agrees"] is True and verdict["runs"] == 3 and "polysift" in verdict["versions"]
    again = write_results(study, rows, tmp_path, runs=3, seed=0)
    assert again.svg == outcome.svg
    assert not [path for path in home.iterdir() if path.name.startswith(".")]


class Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.words = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.words.append(data)


def test_the_page_needs_nothing_else_and_is_escaped(study, tmp_path):
    other = replace(study, name="theory", figure="", judge=lambda *_: Verdict(None, "who knows"))
    outcomes = [simulations.reproduce(one, tmp_path) for one in (study, other)]
    write_page(SIMULATIONS, outcomes, tmp_path / "page.html", "polysift reproduce <all>")
    reader = Reader()
    reader.feed((tmp_path / "page.html").read_text(encoding="utf-8"))
    tags = [tag for tag, _ in reader.tags]
    assert not {"script", "link", "iframe"} & set(tags)
    ids = {attrs.get("id") for _, attrs in reader.tags}
    for _, attrs in reader.tags:
        if "href" in attrs:
            assert attrs["href"][0] == "#" and attrs["href"][1:] in ids
    images = [attrs["src"] for tag, attrs in reader.tags if tag == "img"]
    head = "data:image/svg+xml;base64,"
    assert [base64.b64decode(image.removeprefix(head)) for image in images] == [
        outcome.svg for outcome in outcomes
    ]
    text = "".join(reader.words)
    for words in (f"A claim {EVIL}", "agrees", "cannot be settled", "3, from the base seed 0"):
        assert words in text
    assert tags.count("details") == 2


def test_markdown(study, tmp_path):
    outcome = simulations.reproduce(study, tmp_path, runs=2)
    path = write_markdown(SIMULATIONS, [outcome], tmp_path, "polysift reproduce simulations 1")
    text = path.read_text()
    assert "<script>" not in text and "\\<script\\>" in text
    assert "    polysift reproduce simulations 1\n" in text
    assert "![" in text and "](images/simulations/simulation-1.svg)" in text
    assert (tmp_path / "images" / "simulations" / "simulation-1.svg").read_bytes() == outcome.svg
    rows = [entry for entry in text.splitlines() if entry.startswith("| ")]
    assert len(rows) == 3 + 4
    for name in ("summary.csv", "measurements.csv"):
        kept = Path("results", "simulations", "simulation-1", name)
        assert f"({kept.as_posix()})" in text
        assert (tmp_path / kept).read_bytes() == (outcome.folder / name).read_bytes()


@pytest.fixture
def command(study, tmp_path, monkeypatch):
    """Return a function that runs the command, with two small studies, in an empty folder."""
    known = {"1": study, "theory": replace(study, name="theory", title="Theory")}
    monkeypatch.setattr(simulations, "studies", lambda: known)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(state, "debug", False)

    def run(*words, code=0):
        outcome = CliRunner().invoke(app, ["simulations", *words])
        if outcome.exception is not None and not isinstance(outcome.exception, SystemExit):
            raise outcome.exception
        assert outcome.exit_code == code, (outcome.stdout, outcome.stderr)
        return outcome

    return run


def test_command(command, measured, tmp_path):
    outcome = command("theory", "--runs", "2", "--jobs", "1")
    assert measured() == [0, 1]
    assert "Theory" in outcome.stdout and "agrees" in outcome.stdout
    assert (tmp_path / "polysift-results" / "theory" / "figure.svg").exists()
    page = (tmp_path / "polysift-results" / "simulations.html").read_text()
    assert "polysift reproduce simulations theory --runs 2<" in page
    assert str(tmp_path) not in page

    outcome = command("--jobs", "1", "--json", "--seed", "2", "--docs", "docs")
    result = json.loads(outcome.stdout)
    assert [one["study"] for one in result["studies"]] == ["1", "theory"]
    assert [one["runs"] for one in result["studies"]] == [3, 3]
    assert result["studies"][0]["folder"] == os.path.join("polysift-results", "simulation-1")
    assert (tmp_path / "docs" / "simulations.md").exists()

    outcome = command("--jobs", "1", "--quiet")
    assert outcome.stdout == outcome.stderr == ""


def test_a_study_goes_on_from_the_files_of_another_folder(command, measured, tmp_path):
    command("--runs", "2", "--jobs", "1", "-o", "first")
    assert measured() == [0, 0, 1, 1]
    (tmp_path / "first" / "theory" / "measurements.csv").unlink()  # of this study there is nothing
    outcome = command("--jobs", "1", "-o", "second", "--continue-from", "first")
    assert measured() == [0, 1, 2, 2]
    assert "2 cells are taken from first." in outcome.stderr
    command("--jobs", "1", "-o", "anew")
    for name in ("measurements.csv", "summary.csv"):
        paths = [tmp_path / one / "simulation-1" / name for one in ("second", "anew")]
        assert paths[0].read_bytes() == paths[1].read_bytes()


def test_tables_are_read_as_they_were_written():
    rows = [{"a": 1, "b": 0.1, "c": "x"}, {"a": 2, "b": 1e-05, "d": True, "e": 1.0}]
    names = {name: None for row in rows for name in row}
    assert read_table(table_text(rows)) == [names | row for row in rows]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--continue-from", "nowhere"], "there is no folder nowhere."),
        (["9", "1"], "There is no study 9; there are 1, theory, all and more."),
        (["--runs", "0"], "greater than or equal to 1"),
        (["--seed", "-1"], "greater than or equal to 0"),
        (["-o", "log"], "log is a file; name a folder."),
    ],
)
def test_wrong_commands(command, measured, words, said):
    outcome = command(*words, code=2)
    assert said in outcome.stderr
    assert measured() == []


def test_all_studies_are_there():
    known = simulations.studies()
    assert list(known)[:10] == ["motivation", "data", *"12345678"]
    assert simulations.chosen(["all", "more", "1"]) == list(known.values())
    theory = [one.name for one in simulations.chosen(["theory", "2"])]
    assert theory == ["2", *(name for name in known if name.startswith("theory"))]
    for name, one in known.items():
        assert one.name == name and one.title and one.claim
        cells = one.cells(2)
        assert json.loads(json.dumps(cells)) == cells
        more = one.cells(3)
        assert all(cell in more for cell in cells)  # runs add to one another
        seeded = seeded_cells(one, 2, 1)
        assert not [cell for cell in seeded if cell in cells]
