"""What the automatic choice loses by its sample, against a choice from all training rows.

The same fit twice: with the sample as it is, and with one of all rows, on which every feature map
is tried with a tenth as many centers as rows, up to those of the fit. Data: covtype_binary and
flights where they are found, and a drawn problem of 20 columns, smooth in three pairs of them.
Usage: python benchmarks/choice_sample.py [--rows 10000,100000,1000000] [--only drawn,flights]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from time import perf_counter
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from harness.table_data import TARGET, table_files
from polysift import FPCClassifier
from polysift.training import choice

TEST_ROWS = 50_000
COLUMNS = 20

ALL_ROWS = {"COST_SHARE": np.inf, "FIRST_ROWS": 2**62, "MAX_SAMPLED_VALUES": 2**62}
"""Constants of the choice with which its sample is all rows."""

AS_IT_IS = {name: getattr(choice, name) for name in ALL_ROWS}


def drawn(rows: int) -> tuple[Any, np.ndarray]:
    """Draw rows of 20 normal columns; the log-odds are sums of waves in pairs of columns."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, COLUMNS))
    odds = sum(2.0 * np.sin(X[:, i] * X[:, i + 1] + X[:, i]) for i in (0, 2, 4)) + X[:, 6]
    return X, (rng.random(rows) < 1 / (1 + np.exp(-odds))).astype(int)


def table(name: str) -> Callable[[int], tuple[Any, np.ndarray] | None]:
    """Return a function that reads at most so many rows of a table, or None if it has fewer."""

    def read(rows: int) -> tuple[Any, np.ndarray] | None:
        path = table_files().get(name)
        frame = None if path is None else pd.read_parquet(path)
        if frame is None or len(frame) < rows:
            return None
        frame = frame.sample(rows, random_state=0).reset_index(drop=True)
        return frame, frame.pop(TARGET).astype(str).to_numpy()

    return read


SOURCES = {"covtype_binary": table("covtype_binary"), "flights": table("flights"), "drawn": drawn}


def fitted(X: Any, y: np.ndarray, X_test: Any, y_test: np.ndarray) -> dict[str, Any]:
    """Return what a plain fit chose, how good it is, and its seconds."""
    began = perf_counter()
    clf = FPCClassifier(random_state=0).fit(X, y)
    seconds = perf_counter() - began
    best = clf.selection_["trials"][clf.selection_["best"]]
    return {
        "sample": clf.selection_["rows"],
        "chosen": f"{clf.kernel_}, {clf.degree_}, {best['weights']}, n = {clf.n_centers_}",
        "accuracy": 100 * clf.score(X_test, y_test),
        "log loss": log_loss(y_test, clf.predict_proba(X_test), labels=clf.classes_),
        "seconds": seconds,
        "of them choice": clf.timings_["choice"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", default="10000,100000,1000000")
    parser.add_argument("--only", default=",".join(SOURCES))
    options = parser.parse_args()
    heads = ["sample", "chosen", "accuracy", "log loss", "seconds", "of them choice"]
    print(f"| data | rows | {' | '.join(heads)} |\n" + "|---" * (len(heads) + 2) + "|")
    for rows in map(int, options.rows.split(",")):
        for name in options.only.split(","):
            found = SOURCES[name](rows + min(rows, TEST_ROWS))
            if found is None:
                continue
            parts = train_test_split(*found, train_size=rows, random_state=0)
            X, X_test, y, y_test = parts
            for constants in (AS_IT_IS, ALL_ROWS):
                with mock.patch.multiple(choice, **constants):
                    row = fitted(X, y, X_test, y_test)
                shown = [f"{v:.4g}" if isinstance(v, float) else f"{v}" for v in row.values()]
                print(f"| {name} | {rows:,} | {' | '.join(shown)} |", flush=True)


if __name__ == "__main__":
    main()
