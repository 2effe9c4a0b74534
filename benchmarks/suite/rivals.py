"""Time to equal accuracy, with memory: polysift against kernels, random features and boosted trees.

Each system climbs a ladder of growing models on half of the rows; each model is fitted in a process
of its own on all threads, and judged on the other half. For each rival the table takes its best
accuracy, and the cheapest model of polysift that is as accurate or more.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from harness.cells import climb, store
from harness.figures import Lines, curves, panels
from harness.ladders import ladders
from harness.problems import Problem, halves, smooth
from harness.report import Column, Report, Row, Table, Target
from harness.run import Run
from harness.systems import SYSTEMS
from harness.timing import say
from polysift.datasets import available

REAL = ("magic", "skin", "covtype_binary")
DRAWN = "smooth"

FASTER = 3.0
"""Times as fast as every kernel or random-feature rival."""

CELLS = (
    Column("data", "data"),
    Column("title", "system"),
    Column("params", "model"),
    Column("seconds", "seconds", ".2f"),
    Column("accuracy", "test accuracy", ".2%"),
    Column("megabytes", "memory, MB", ",.0f"),
    Column("status", "remark"),
)

SUMMARY = (
    Column("data", "data"),
    Column("rival", "rival"),
    Column("accuracy", "its best accuracy", ".2%"),
    Column("seconds", "in seconds", ".2f"),
    Column("megabytes", "MB", ",.0f"),
    Column("our_accuracy", "polysift's", ".2%"),
    Column("our_seconds", "in seconds", ".2f"),
    Column("our_megabytes", "MB", ",.0f"),
    Column("ratio", "times as fast", ".1f"),
    Column("least", "at least, over its models", ".1f"),
    Column("verdict", ""),
)


def measure(run: Run) -> Report:
    """Climb all ladders."""
    rows: list[Row] = []
    notes = []
    for data in run.pick((), REAL, REAL):
        if available(data):
            rows += _climbed(run, data, halves(data, run.pick(200, 10_000, None)))
        else:
            notes.append(f"{data} is not at hand: set POLYSIFT_DATA to a folder that has it.")
    drawn = smooth(run.pick(300, 20_000, 1_000_000), test=run.pick(100, 20_000, 100_000))
    rows += _climbed(run, DRAWN, drawn)
    sets = dict.fromkeys(row["data"] for row in rows)
    summary = [line for data in sets for line in _summary(rows, data)]
    tables = [
        Table("summary", "Time to equal accuracy", summary, SUMMARY),
        Table("", "All models", rows, CELLS),
    ]
    report = Report(tables, _targets(summary), notes)
    if run.size != "tiny":
        report.pictures[""] = _picture(rows)
    return report


def _climbed(run: Run, data: str, problem: Problem) -> list[Row]:
    m, d = problem.X.shape
    say(f"{data}: {m:,} x {d}")
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        folder = store(Path(name) / data, problem)
        for system, ladder in ladders(data, run.size).items():
            if system in SYSTEMS:
                rows += climb(folder, system, ladder, run.threads, run.pick(10.0, 10.0, 20.0))
    about = {"data": data, "rows": m, "d": d}
    return [about | {"title": SYSTEMS[row["system"]].title} | row for row in rows]


def _summary(rows: list[Row], data: str) -> list[Row]:
    """Return a line for each rival on one data set."""
    done = [row for row in rows if row["data"] == data and "seconds" in row]
    ours = [row for row in done if SYSTEMS[row["system"]].kind == "polysift"]
    found = []
    for name in dict.fromkeys(row["system"] for row in done):
        kind = SYSTEMS[name].kind
        if kind != "polysift":
            own = [row for row in done if row["system"] == name]
            found.append({"data": data, "kind": kind} | _against(own, ours))
    return found


def _against(own: list[Row], ours: list[Row]) -> Row:
    """Compare a rival's best with the cheapest of ours that is as good, and so all its models."""
    best = max(own, key=lambda row: (row["accuracy"], -row["seconds"]))
    ratios = [row["seconds"] / cheap["seconds"] for row in own if (cheap := _cheapest(row, ours))]
    line: Row = {"rival": best["title"], "least": min(ratios, default=np.nan)}
    line |= {key: best[key] for key in ("accuracy", "seconds", "megabytes")}
    found = _cheapest(best, ours)
    if found is None:
        top = max((row["accuracy"] for row in ours), default=np.nan)
        return line | {
            "our_accuracy": top,
            "ratio": np.nan,
            "verdict": "polysift does not reach it",
        }
    ratio = best["seconds"] / found["seconds"]
    return line | {
        "our_accuracy": found["accuracy"],
        "our_seconds": found["seconds"],
        "our_megabytes": found["megabytes"],
        "our_model": f"{found['title']}, {found['params']}",
        "ratio": ratio,
        "verdict": "polysift is faster" if ratio > 1 else "the rival is faster",
    }


def _cheapest(rival: Row, ours: list[Row]) -> Row | None:
    """Return the fastest of our models that is as accurate as a rival's, if there is one."""
    good = [row for row in ours if row["accuracy"] >= rival["accuracy"]]
    return min(good, key=lambda row: row["seconds"]) if good else None


def _targets(summary: list[Row]) -> list[Target]:
    """Return the least ratio of each data set, over the rivals that the target is about."""
    targets = []
    for data in dict.fromkeys(row["data"] for row in summary):
        own = [row for row in summary if row["data"] == data and row["kind"] == "kernel"]
        if own:
            # A rival that is more accurate than all of ours is not beaten at any speed.
            worst = min(own, key=lambda row: np.nan_to_num(row["ratio"]))
            why = "more accurate than all of ours" if np.isnan(worst["ratio"]) else "the closest"
            what = f"{data}: times as fast as {worst['rival']}, {why}"
            targets.append(Target(what, float(np.nan_to_num(worst["ratio"])), FASTER, True, ".1f"))
    return targets


def _picture(rows: list[Row]) -> Any:
    """Draw accuracy against time, a panel for each data set, each system a curve."""
    content: dict[str, Lines] = {}
    for data in dict.fromkeys(row["data"] for row in rows):
        own = [row for row in rows if row["data"] == data]
        content[f"{data}, {own[0]['rows']:,} rows"] = curves(own)
    return panels(content, len(content) * ["seconds to fit"], "test accuracy (%)", log=False)
