"""Plain ``FPCClassifier()`` against boosted trees and others on raw tables, all by their defaults.

All tables of the folder that POLYSIFT_DATA names and of its folder "tables" (Parquet, with the
column "target"): at most 50,000 rows, drawn by the seed of the split, 30 % of them to judge on.
Each method fits each split in a process of its own. Cells that were measured are kept, and not
measured again, so that an interrupted run goes on where it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from harness.report import Column, Report, Row, Table, Target
from harness.run import Run
from harness.table_cells import Kept, Key, measured_cell
from harness.table_data import VARIABLE, table_files
from harness.table_methods import LINEAR, METHODS, OURS, REFERENCE, Method
from harness.table_picture import gaps, overview
from harness.table_summary import (
    ACCURACY,
    AUC,
    LOG_LOSS,
    MEASURES,
    Cells,
    Measure,
    ranks,
    tally,
    verdict,
    winners,
)
from harness.timing import say

MOST_ROWS = {"tiny": 400, "quick": 3_000, "full": 50_000}
SPLITS = {"tiny": 2, "quick": 1, "full": 3}
LIMIT = {"tiny": 120.0, "quick": 120.0, "full": 900.0}
"""Seconds of a cell, with all that is done before and after the fit."""

WINS_PER_LOSS, MOST_POINTS, TIMES, BELOW_LINEAR = 2.0, 3.0, 3.0, 0.5
"""Targets: wins per loss, points of the worst loss, time over LightGBM's, and points by which no
table may be below logistic regression."""


def measure(run: Run) -> Report:
    """Measure the cells that are missing, and report on all that are kept."""
    remedy = f"No tables: set {VARIABLE} to the folder of the data sets."
    return compared(run, table_files(), remedy)


def compared(run: Run, files: dict[str, Path], remedy: str) -> Report:
    """Measure the cells of these files that are missing, and report on all that are kept.

    ``remedy`` says what to do if there are no files.
    """
    kept = Kept(run.kept)
    notes = [] if files else [remedy]
    notes += _fill(run, files, kept)
    cells = Cells(kept.rows())
    notes += [f"Without figures: {sentence}." for sentence in cells.failures()]
    if not cells.rows:
        return Report(notes=notes)
    tables = [Table("methods", "All tables", _methods(cells), METHOD_COLUMNS)]
    tables += [table for measure in MEASURES if (table := _by_table(cells, measure)).rows]
    tables += [_seconds(cells), _costs(cells)]
    report = Report(tables, _targets(cells), notes)
    if OURS in cells.methods and REFERENCE in cells.methods:
        report.pictures[""] = gaps(cells)
        report.pictures["overview"] = overview(cells)
    return report


def _fill(run: Run, files: dict[str, Path], kept: Kept) -> list[str]:
    """Measure what is chosen and not there yet; return what a reader must know."""
    files = _chosen("table", files, run.tables)
    methods = _chosen("method", METHODS, run.methods)
    notes = [
        f"{method.title} is absent: {method.package} is not installed."
        for method in methods.values()
        if not method.installed()
    ]
    present = [method for method in methods.values() if method.installed()]
    splits = range(run.splits or SPLITS[run.size])
    keys = [(t, split, method.name) for t in files for split in splits for method in present]
    if run.fresh:
        kept.forget(set(keys))
    for key in keys:
        if key not in kept:
            kept.add(_measured(run, files[key[0]], key, METHODS[key[2]]))
    return notes


def _measured(run: Run, path: Any, key: Key, method: Method) -> Row:
    found = measured_cell(path, key[1], MOST_ROWS[run.size], method, run.threads, LIMIT[run.size])
    shown = found.get("status") or f"{found['accuracy']:.2%}, {found['seconds']:.2f} s"
    say(f"{key[0]}, split {key[1]}, {method.title}: {shown}")
    return found


def _chosen(what: str, known: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return those with the names, or all if there are no names."""
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"no {what} {', '.join(unknown)}; there are {', '.join(known)}")
    return {name: known[name] for name in names or known}


METHOD_COLUMNS = (
    Column("title", "method"),
    Column("version", "version"),
    Column("tables", "tables"),
    Column("accuracy_rank", "mean rank by accuracy", ".2f"),
    Column("auc_rank", "by AUC", ".2f"),
    Column("log_loss_rank", "by log loss", ".2f"),
    Column("accuracy_tally", "wins / ties / losses against LightGBM by accuracy"),
    Column("auc_tally", "by AUC"),
    Column("log_loss_tally", "by log loss"),
    Column("time", "time over LightGBM's: median", ".2f"),
    Column("most_time", "most", ".2f"),
    Column("cpu", "processor time: median", ".2f"),
)


def _methods(cells: Cells) -> list[Row]:
    """Return a line for each method, by mean rank."""
    by = {measure.key: ranks(cells, measure) for measure in MEASURES}
    rows = []
    for name in cells.methods:
        own = [row for row in cells.rows if row["method"] == name]
        row: Row = {"title": METHODS[name].title}
        row["version"] = ", ".join(dict.fromkeys(r["version"] for r in own))
        row["tables"] = len({r["table"] for r in own if "accuracy" in r})
        for measure in MEASURES:
            row[f"{measure.key}_rank"] = by[measure.key][name]
            counts = tally(cells, name, REFERENCE, measure)
            known = name != REFERENCE and sum(counts.values())
            row[f"{measure.key}_tally"] = " / ".join(map(str, counts.values())) if known else None
        wall, cpu = (_ratios(cells, name, key) for key in ("seconds", "cpu_seconds"))
        row |= {"time": _median(wall), "most_time": max(wall, default=np.nan), "cpu": _median(cpu)}
        rows.append(row)
    return sorted(rows, key=lambda row: np.nan_to_num(row["accuracy_rank"], nan=np.inf))


def _ratios(cells: Cells, name: str, key: str) -> list[float]:
    """Return a method's cost over LightGBM's on each table that both have."""
    found = [cells.ratio(table, name, REFERENCE, key) for table in cells.tables]
    return [value for value in found if not np.isnan(value)]


def _median(values: list[float]) -> float:
    return float(np.median(values)) if values else np.nan


def _by_table(cells: Cells, measure: Measure) -> Table:
    """Return the means and standard deviations of each table, with the best ones marked."""
    rows = []
    for table in cells.tables:
        first = winners(cells, table, measure)
        shown = {name: _shown(cells, table, name, measure, first) for name in cells.methods}
        if first:
            differences = cells.differences(table, OURS, REFERENCE, measure)
            word = verdict(differences) or None
            rows.append({"table": table} | cells.about(table) | shown | {"verdict": word})
    columns = [Column("table", "table")]
    if measure is ACCURACY:
        heads = {"rows": "training rows", "columns": "columns", "classes": "classes"}
        columns += [Column(key, head, ",") for key, head in heads.items()]
    columns += [Column(name, METHODS[name].title) for name in cells.methods]
    columns.append(Column("verdict", "polysift against LightGBM"))
    unit = " in %" if measure is ACCURACY else ""
    title = f"{measure.title[0].upper()}{measure.title[1:]}{unit}, mean and standard deviation"
    title += " over splits, the best marked"
    return Table(measure.key.replace("_", "-"), title, rows, columns)


def _shown(cells: Cells, table: str, name: str, measure: Measure, first: list[str]) -> str | None:
    found = measure.scale * np.array(list(cells.values(table, name, measure.key).values()))
    if not len(found):
        return None
    text = format(found.mean(), measure.form)
    if name in first:
        text = f"**{text}**"
    return text if len(found) == 1 else f"{text} ± {format(found.std(ddof=1), measure.form)}"


def _seconds(cells: Cells) -> Table:
    """Return the mean seconds of each fit."""
    rows: list[Row] = [
        {"table": table}
        | {name: cells.mean(table, name, "seconds") for name in cells.methods}
        | {"ratio": cells.ratio(table, OURS, REFERENCE, "seconds")}
        | {"cpu_ratio": cells.ratio(table, OURS, REFERENCE, "cpu_seconds")}
        for table in cells.tables
    ]
    columns = [Column("table", "table")]
    columns += [Column(name, METHODS[name].title, ".2f") for name in cells.methods]
    columns += [
        Column("ratio", "polysift / LightGBM", ".2f"),
        Column("cpu_ratio", "by processor time", ".2f"),
    ]
    return Table("seconds", "Seconds to fit, mean over splits", rows, columns)


def _costs(cells: Cells) -> Table:
    """Return what prediction, memory and files take, for polysift and LightGBM."""
    kinds = {"predict_seconds": "seconds to predict", "megabytes": "MB to fit"}
    kinds["file_bytes"] = "file, kB"
    rows: list[Row] = []
    columns = [Column("table", "table")]
    there = [name for name in (OURS, REFERENCE) if name in cells.methods]
    for key, head in kinds.items():
        form = ".3f" if key == "predict_seconds" else ",.0f"
        columns += [
            Column(f"{name} {key}", f"{METHODS[name].title}: {head}", form) for name in there
        ]
    for table in cells.tables:
        row: Row = {"table": table}
        for name in there:
            row |= {f"{name} {key}": cells.mean(table, name, key) for key in kinds}
            row[f"{name} file_bytes"] /= 1e3
        rows.append(row)
    return Table("costs", "Prediction, memory and files, means over splits", rows, columns)


def _targets(cells: Cells) -> list[Target]:
    """Return what was aimed at."""
    if OURS not in cells.methods:
        return []
    targets = [_wins(cells, measure) for measure in (ACCURACY, AUC, LOG_LOSS)]
    targets.append(_worst(cells, REFERENCE, MOST_POINTS))
    place = sorted(ranks(cells, ACCURACY).values()).index(ranks(cells, ACCURACY)[OURS]) + 1
    targets.append(Target("place by mean rank of accuracy", place, 1, False, ".0f"))
    most = max(_ratios(cells, OURS, "seconds"), default=np.nan)
    targets.append(Target("time of a fit over LightGBM's, most of all tables", most, TIMES, False))
    targets.append(_worst(cells, LINEAR, BELOW_LINEAR))
    return targets


def _wins(cells: Cells, measure: Measure) -> Target:
    counts = tally(cells, OURS, REFERENCE, measure)
    known = sum(counts.values())
    figure = counts["win"] / max(counts["loss"], 1) if known else np.nan
    return Target(f"wins per loss by {measure.title}", figure, WINS_PER_LOSS, True)


def _worst(cells: Cells, rival: str, limit: float) -> Target:
    """Return by how many points we are behind a rival where it is most."""
    found = [cells.differences(table, OURS, rival, ACCURACY) for table in cells.tables]
    most = max((100 * float(np.mean(-values)) for values in found if len(values)), default=np.nan)
    what = f"points behind {METHODS[rival].title}, on the worst table"
    return Target(what, most, limit, False)
