"""What the cells on tables say: means over splits, ranks, and wins against a rival."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from harness.report import Row


@dataclass(frozen=True)
class Measure:
    """A figure by which methods are compared.

    Attributes
    ----------
    key, title : str
        The entry of a cell, and how tables call it.
    sign : int
        1 if more is better, else -1.
    form : str
        How a value is written.
    scale : float
        What a value is multiplied with before that.
    """

    key: str
    title: str
    sign: int
    form: str
    scale: float = 1.0


ACCURACY = Measure("accuracy", "accuracy", 1, ".2f", 100.0)
AUC = Measure("auc", "AUC", 1, ".4f")
LOG_LOSS = Measure("log_loss", "log loss", -1, ".4f")
MEASURES = (ACCURACY, AUC, LOG_LOSS)


class Cells:
    """The cells of all tables, splits and methods.

    Parameters
    ----------
    rows : list of dict
        The cells; those that failed have no figures.
    """

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows
        self.tables = list(dict.fromkeys(row["table"] for row in rows))
        self.methods = list(dict.fromkeys(row["method"] for row in rows))
        self._of: dict[tuple[str, str], dict[int, Row]] = {}
        for row in rows:
            self._of.setdefault((row["table"], row["method"]), {})[row["split"]] = row

    def values(self, table: str, method: str, key: str) -> dict[int, float]:
        """Return a figure by split, of the splits that have it."""
        cells = self._of.get((table, method), {})
        return {split: row[key] for split, row in cells.items() if row.get(key) is not None}

    def mean(self, table: str, method: str, key: str) -> float:
        """Return the mean over splits, NaN if there are none."""
        found = list(self.values(table, method, key).values())
        return float(np.mean(found)) if found else np.nan

    def about(self, table: str) -> Row:
        """Return rows, columns and classes of a table."""
        rows = [row for row in self.rows if row["table"] == table and "rows" in row]
        return {key: rows[0][key] for key in ("rows", "columns", "classes")} if rows else {}

    def differences(self, table: str, a: str, b: str, measure: Measure) -> np.ndarray:
        """Return by how much a is better than b on each split that both have."""
        one, other = (self.values(table, name, measure.key) for name in (a, b))
        both = [split for split in one if split in other]
        return measure.sign * np.array([one[split] - other[split] for split in both])

    def ratio(self, table: str, a: str, b: str, key: str) -> float:
        """Return the ratio of two methods' sums over the splits that both have."""
        one, other = (self.values(table, name, key) for name in (a, b))
        both = [split for split in one if split in other]
        below = sum(other[split] for split in both)
        return sum(one[split] for split in both) / below if below else np.nan

    def failures(self) -> Iterator[str]:
        """Yield a sentence for each cell that has no figures though it was tried."""
        for row in self.rows:
            if "accuracy" not in row and not row["status"].startswith("left out"):
                yield f"{row['table']}, split {row['split']}, {row['method']}: {row['status']}"


def verdict(differences: np.ndarray) -> str:
    """Return "win", "tie" or "loss": a tie is a mean within one standard deviation of zero.

    The standard deviation is that of the paired differences over the splits; of one split alone
    there is none, and only equal figures tie. Without a split the answer is empty.
    """
    if not len(differences):
        return ""
    mean = float(np.mean(differences))
    spread = float(np.std(differences, ddof=1)) if len(differences) > 1 else 0.0
    if abs(mean) <= spread:
        return "tie"
    return "win" if mean > 0 else "loss"


def tally(cells: Cells, a: str, b: str, measure: Measure) -> dict[str, int]:
    """Return how often a wins, ties and loses against b, over tables."""
    found = [verdict(cells.differences(table, a, b, measure)) for table in cells.tables]
    return {word: found.count(word) for word in ("win", "tie", "loss")}


def ranks(cells: Cells, measure: Measure) -> dict[str, float]:
    """Return the mean rank of each method, over the tables where it has the figure.

    On each table methods are ranked among those that have it; the first is 1, equals share.
    """
    found: dict[str, list[float]] = {method: [] for method in cells.methods}
    for table in cells.tables:
        means = {name: cells.mean(table, name, measure.key) for name in cells.methods}
        there = [name for name, value in means.items() if not np.isnan(value)]
        places = rankdata([-measure.sign * means[name] for name in there])
        for name, place in zip(there, places, strict=True):
            found[name].append(float(place))
    return {name: float(np.mean(places)) if places else np.nan for name, places in found.items()}


def winners(cells: Cells, table: str, measure: Measure) -> list[str]:
    """Return the methods with the best mean on a table, as it is written."""
    means = {name: cells.mean(table, name, measure.key) for name in cells.methods}
    shown = {
        name: format(measure.scale * value, measure.form)
        for name, value in means.items()
        if not np.isnan(value)
    }
    best = max(shown.values(), key=lambda text: measure.sign * float(text), default="")
    return [name for name, text in shown.items() if text == best]
