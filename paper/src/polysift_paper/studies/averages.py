"""Averages over the runs of a study, and exponents of power laws."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from polysift_paper.studies.study import Row


def seeds(runs: int, base: int = 0) -> list[Row]:
    """Return the start of a cell for each run: its number, and its seed."""
    return [{"run": run, "seed": 1000 * base + run} for run in range(runs)]


def average(rows: Iterable[Row], by: Sequence[str], names: Sequence[str]) -> list[Row]:
    """Return a line for each combination of the entries ``by``, in the order of their coming.

    Parameters
    ----------
    rows : iterable of dict
        The measurements; those without one of the names are left out.
    by : sequence of str
        What tells lines apart.
    names : sequence of str
        The entries of which to take the mean, and under ``<name>_spread`` the standard deviation
        over the runs (0 for a single one).

    Returns
    -------
    list of dict
        The lines, each with the number of its ``runs``.
    """
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if all(name in row for name in (*by, *names)):
            groups.setdefault(tuple(row[name] for name in by), []).append(row)
    lines = []
    for key, group in groups.items():
        entry: Row = dict(zip(by, key, strict=True)) | {"runs": len(group)}
        for name in names:
            values = np.array([row[name] for row in group], dtype=float)
            entry[name] = float(values.mean())
            entry[f"{name}_spread"] = float(values.std(ddof=1)) if len(values) > 1 else 0.0
        lines.append(entry)
    return lines


def where(lines: Iterable[Row], /, **entries: Any) -> list[Row]:
    """Return the lines that have all these entries."""
    return [entry for entry in lines if all(entry.get(key) == entries[key] for key in entries)]


def column(rows: Iterable[Row], name: str) -> list[Any]:
    """Return one entry of each row."""
    return [row[name] for row in rows]


def exponent(x: Sequence[float], y: Sequence[float]) -> float:
    """Return b of the power law y = a x^b that fits best, by least squares of the logarithms."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])
