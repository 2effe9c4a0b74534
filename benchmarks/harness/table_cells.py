"""Cells of the comparison on tables: one method on one split of one table, kept in a file."""

from __future__ import annotations

import json
import pickle
import tempfile
import warnings
from collections.abc import Collection
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from sklearn.metrics import log_loss, roc_auc_score

import needs_paper  # noqa: F401 - before imports from polysift_paper
import polysift
from harness.cells import megabytes
from harness.kernels import warm_up
from harness.report import Row
from harness.table_data import Split, read_split
from harness.table_methods import METHODS, OURS, Method
from polysift.features.kernels import KERNELS
from polysift.runtime.memory import MemoryMeter, forget_peak
from polysift_paper.studies.worker import OverLimitError, Worker, WorkerError

PRELOAD = ("polysift_paper.rivals", "harness.table_methods", "lightgbm", "sklearn.ensemble")

Key = tuple[str, int, str]
"""Table, split and method."""


class Kept:
    """The cells that were measured so far, in a JSON file that is written after each.

    Parameters
    ----------
    path : Path
        The file; it need not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        rows = json.loads(path.read_text()) if path.exists() else []
        self._cells: dict[Key, Row] = {_key(row): row for row in rows}

    def __contains__(self, key: Key) -> bool:
        return key in self._cells

    def rows(self) -> list[Row]:
        """Return all cells, ordered by table, split and method."""
        order = list(METHODS)
        known = [row for row in self._cells.values() if row["method"] in order]
        return sorted(known, key=lambda row: (*_key(row)[:2], order.index(row["method"])))

    def add(self, row: Row) -> None:
        """Keep a cell."""
        self._cells[_key(row)] = row
        self._write()

    def forget(self, keys: Collection[Key]) -> None:
        """Drop cells, which are to be measured again."""
        self._cells = {key: row for key, row in self._cells.items() if key not in keys}
        self._write()

    def _write(self) -> None:
        lines = ",\n".join(json.dumps(row) for row in self.rows())
        self.path.parent.mkdir(parents=True, exist_ok=True)
        _replace(self.path, f"[\n{lines}\n]\n")


def _key(row: Row) -> Key:
    return row["table"], row["split"], row["method"]


def _replace(path: Path, text: str) -> None:
    """Write a file as a whole, so that an interruption leaves the former one."""
    part = path.with_name(f"{path.name}.part")
    part.write_text(text)
    part.replace(path)


def measured_cell(
    path: Path, split: int, most: int, method: Method, threads: int, limit: float
) -> Row:
    """Return the figures of a cell, measured in a process of its own; or only its "status"."""
    about: Row = {"table": path.stem, "split": split, "method": method.name, "threads": threads}
    about["version"] = method.version()
    with Worker(read_split, str(path), split, most, preload=PRELOAD, threads=threads) as worker:
        try:
            return about | worker.call(figures, method.name, threads, split, limit=limit)
        except (OverLimitError, WorkerError) as error:
            return about | {"status": str(error)[:300]}


def figures(data: Split, name: str, threads: int, seed: int) -> Row:
    """Fit a method to a split and judge it."""
    warnings.simplefilter("ignore")
    method = METHODS[name]
    rows, columns = data.X.shape
    shape: Row = {"rows": rows, "columns": columns, "classes": int(data.y.max()) + 1}
    if method.most_rows is not None and rows > method.most_rows:
        return shape | {"status": f"left out: more than {method.most_rows:,} training rows"}
    X, X_test = method.frames(data.X, data.X_test)
    _warm_up(method, threads, seed, X, data.y)
    model = method.build(threads, seed)
    forget_peak()
    meter, began, worked = MemoryMeter(), perf_counter(), process_time()
    model.fit(X, data.y)
    found = {"seconds": perf_counter() - began, "cpu_seconds": process_time() - worked}
    grown = megabytes(meter)
    began = perf_counter()
    predicted = model.predict(X_test)
    found["predict_seconds"] = perf_counter() - began
    found |= {"megabytes": grown, "file_bytes": _file_bytes(model)}
    return _rounded(shape | found | _quality(model, X_test, data.y_test, predicted))


def _warm_up(method: Method, threads: int, seed: int, X: Any, y: np.ndarray) -> None:
    """Fit a few rows, so that nothing is compiled or started while the clock runs."""
    model = method.build(threads, seed)
    warm_up(model, X, y)
    if method.name == OURS:
        for kernel in KERNELS:
            warm_up(model.set_params(kernel=kernel), X, y)


def _quality(model: Any, X: Any, y: np.ndarray, predicted: np.ndarray) -> Row:
    """Return accuracy, and what probabilities or scores allow."""
    found: Row = {"accuracy": float(np.mean(predicted == y))}
    binary = int(y.max()) == 1
    if hasattr(model, "predict_proba"):
        proba = np.asarray(model.predict_proba(X), dtype=float)
        found["log_loss"] = float(log_loss(y, proba, labels=np.arange(proba.shape[1])))
        scores = proba[:, 1]
    elif binary:
        scores = model.decision_function(X)
    if binary:
        found["auc"] = float(roc_auc_score(y, scores))
    return found


def _file_bytes(model: Any) -> int | None:
    """Return the size of the model's file: ours as it is saved, else a pickle; None if neither."""
    if isinstance(model, polysift.FPCClassifier):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.polysift"
            polysift.save(model, path)
            return path.stat().st_size
    try:
        return len(pickle.dumps(model))
    except (pickle.PicklingError, TypeError, AttributeError):
        return None


def _rounded(row: Row) -> Row:
    """Return figures with as many digits as they have; NaN, which JSON has not, is left out."""
    found = {key: float(f"{v:.6g}") if isinstance(v, float) else v for key, v in row.items()}
    return {key: value for key, value in found.items() if value == value}
