"""The rows of a comparison as CSV and back, and their summary beside the paper's figures."""

from __future__ import annotations

import csv
import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from io import StringIO
from typing import Any

import numpy as np

from polysift_paper.comparisons.comparison import (
    CLOCKS,
    COLUMNS,
    DATA,
    DRAWN_FOR,
    FIGURES,
    KINDS,
    METHODS,
    kind_of,
)
from polysift_paper.comparisons.printed import printed
from polysift_paper.studies.results import table_text
from polysift_paper.studies.study import Row

AVERAGED = ("accuracy", "auc", "training_seconds", *FIGURES[2:])

Lines = dict[tuple[str, str], Row]
"""The lines of a summary, by data set and method."""


def checked_rows(rows: Iterable[Row]) -> list[Row]:
    """Return rows of plain values, figures that are no numbers as None.

    Raises
    ------
    ValueError
        If a row has other columns than those of a comparison.
    """
    found = []
    for row in rows:
        if set(row) != set(COLUMNS):
            wrong = ", ".join(sorted(set(row) ^ set(COLUMNS)))
            raise ValueError(f"A row of a comparison has {', '.join(COLUMNS)}; wrong: {wrong}.")
        found.append({name: _plain(name, row[name]) for name in COLUMNS})
    return found


def _plain(name: str, value: Any) -> Any:
    if name in FIGURES:
        return None if value is None or not math.isfinite(value) else float(value)
    if name in ("run", "seed"):
        return int(value)
    if name == "params":
        return json.loads(_json(value or {}))
    return str(value)


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=_item)


def _item(value: Any) -> Any:
    """Return a number of numpy as one of Python's, and anything else as text."""
    return value.item() if isinstance(value, np.generic) else str(value)


def lines_text(lines: Sequence[Row]) -> str:
    """Return rows, or the lines of a summary, as CSV with the parameters as JSON."""
    plain = [{**line, "params": _json(line["params"])} for line in lines]
    return table_text(plain) if plain else ",".join(COLUMNS) + "\n"


def read_rows(text: str) -> list[Row]:
    """Return the rows of a CSV text that ``lines_text`` wrote."""
    rows: list[Row] = []
    for entry in csv.DictReader(StringIO(text)):
        figures = {name: float(entry[name]) if entry[name] else None for name in FIGURES}
        clock = entry.get("clock", CLOCKS[1])  # older tables do not say
        rows.append({**entry, **figures, "clock": clock, "params": json.loads(entry["params"])})
    return checked_rows(rows)


def summarise(rows: Sequence[Row]) -> list[Row]:
    """Return a line for each data set and method: averages beside the paper's figures.

    Parameters
    ----------
    rows : sequence of dict
        As ``checked_rows`` returns them.

    Returns
    -------
    list of dict
        In the paper's order. A mean is taken over the runs that have the figure, one of seconds
        over those by one clock ("timed_runs" by "clock"), as ``CLOCKS`` says; under
        ``<name>_std`` is the standard deviation over them (with n - 1), None for a single one.
    """
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["data"], row["method"]), []).append(row)
    return [_line(data, method, groups[data, method]) for data, method in _ordered(groups)]


def _ordered(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return pairs in the paper's order; sets and methods that are unknown come last."""
    sets, methods = list(DATA), list(METHODS)

    def rank(pair: tuple[str, str]) -> tuple[int, int]:
        data, method = pair
        return (
            sets.index(data) if data in sets else len(sets),
            methods.index(method) if method in methods else len(methods),
        )

    return sorted(pairs, key=rank)


def _line(data: str, method: str, rows: list[Row]) -> Row:
    line: Row = {"data": data, "method": method}
    counted = [row for row in rows if row["fit_seconds"] is not None or row["accuracy"] is not None]
    line["runs"] = len(counted)
    clocks = {row["clock"] for row in counted}
    line["clock"] = next((clock for clock in CLOCKS if clock in clocks), None)
    timed = [row for row in rows if row["clock"] == line["clock"]]
    line["timed_runs"] = sum(row["fit_seconds"] is not None for row in timed)
    for name in AVERAGED:
        taken = timed if name.endswith("_seconds") else rows
        values = [value for row in taken if (value := _value(row, name)) is not None]
        line[name] = float(np.mean(values)) if values else None
        line[f"{name}_std"] = float(np.std(values, ddof=1)) if len(values) > 1 else None
    chosen = Counter(_json(row["params"]) for row in counted)
    text, times = chosen.most_common(1)[0] if chosen else ("{}", 0)
    worst = max((row["status"] for row in rows), key=lambda one: list(KINDS).index(kind_of(one)))
    line |= {"params": json.loads(text), "params_runs": times, "status": worst}
    line["status_runs"] = sum(kind_of(row["status"]) == kind_of(worst) for row in rows)
    return line | _beside(line)


def _value(row: Row, name: str) -> float | None:
    """Return a figure of a row, the time of training as selection and final fit together."""
    if name != "training_seconds":
        return row[name]
    if row["fit_seconds"] is None:
        return None
    return row["fit_seconds"] + (row["search_seconds"] or 0.0)  # None: nothing was to be selected


def _beside(line: Row) -> Row:
    """Return the paper's figures, and how ours differ."""
    entries: Row = {}
    for name in ("accuracy", "auc"):
        paper = printed(name, line["data"], line["method"])
        entries[f"paper_{name}"] = paper and paper.mean
        entries[f"paper_{name}_std"] = paper and paper.std
        there = paper is not None and line[name] is not None
        entries[f"{name}_difference"] = line[name] - paper.mean if there and paper else None
    paper = printed("seconds", timed_as(line["data"]), line["method"])
    entries["paper_seconds"] = paper and paper.mean
    for name in ("training", "fit"):
        mine = line[f"{name}_seconds"]
        entries[f"{name}_ratio"] = None if paper is None or mine is None else mine / paper.mean
    return entries


def timed_as(data: str) -> str:
    """Return the set of the paper with whose times those of a set can be compared."""
    return DRAWN_FOR.get(data, data)


def by_pair(summary: Iterable[Row]) -> Lines:
    """Return the lines of a summary by data set and method."""
    return {(line["data"], line["method"]): line for line in summary}


def figure(lines: Lines, data: str, method: str, name: str) -> float | None:
    """Return a figure of a summary, or None where there is none."""
    return lines.get((data, method), {}).get(name)


def sets_of(lines: Iterable[tuple[str, str]], name: str) -> list[str]:
    """Return the data sets of which to show a figure, in order: synthetic ones for time alone."""
    found = dict.fromkeys(data for data, _ in lines)
    return [data for data in found if data not in DRAWN_FOR or name not in ("accuracy", "auc")]


def methods_of(lines: Iterable[tuple[str, str]]) -> list[str]:
    """Return the methods that were run, in the paper's order."""
    found = {method for _, method in lines}
    return [*(one for one in METHODS if one in found), *sorted(found - set(METHODS))]
