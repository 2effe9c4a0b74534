"""What a plain fit says of rows that it has not seen, beside what such rows say.

Each table of the folder POLYSIFT_DATA is split once, 70 to 30. The figures of the fit
(``held_out_``) are compared with those of the other rows: z is the difference over the root of the
sum of both variances, so that 95 of 100 are below 1.96 if the estimate is right.

    python benchmarks/held_out.py [TABLE ...]
"""

from __future__ import annotations

import sys

import numpy as np

from harness.table_data import read_split, table_files
from polysift import FPCClassifier
from polysift.reporting.evaluation import evaluate
from polysift.training.metrics import QUANTILE, Estimate

MOST_ROWS = 30_000
SHOWN = ("accuracy", "roc_auc", "log_loss")


def main(wanted: list[str]) -> None:
    """Print a row for each table, and how many figures agree."""
    heads = " | ".join(f"{name}: held out | other rows | z" for name in SHOWN)
    print(f"| table | rows | {heads} |\n|{'---|' * (2 + 3 * len(SHOWN))}")
    all_z: dict[str, list[float]] = {name: [] for name in SHOWN}
    for table, path in table_files().items():
        if wanted and table not in wanted:
            continue
        rows = read_split(str(path), 0, MOST_ROWS)
        model = FPCClassifier(random_state=0).fit(rows.X, rows.y)
        test, cells = evaluate(model, rows.X_test, rows.y_test), []
        for name in SHOWN:
            found, true = Estimate(*model.held_out_["figures"][name]), test.figures[name]
            z = (true.value - found.value) / np.hypot(_error(found), _error(true))
            all_z[name].append(z)
            cells.append(f"{found.value:.4f} | {true.value:.4f} | {z:+.1f}")
        print(f"| {table} | {len(rows.X):,} | {' | '.join(cells)} |", flush=True)
    for name, z in all_z.items():
        agree, middle = np.sum(np.abs(z) < QUANTILE), np.median(z)
        print(f"{name}: {agree} of {len(z)} within the interval; median z {middle:+.2f}")


def _error(estimate: Estimate) -> float:
    return max((estimate.high - estimate.low) / (2 * QUANTILE), 1e-9)


if __name__ == "__main__":
    main(sys.argv[1:])
