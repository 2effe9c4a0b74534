"""How well the figures that a plain fit tells of rows it has not seen agree with other rows.

Of each table of ``POLYSIFT_DATA`` a part is fitted; its accuracy, area under the ROC curve and log
loss by leave-one-out scores are compared with those of the other rows: z is the difference over the
root of the sum of both variances, so that 95 of 100 are below 1.96 if the estimate is right.
``share`` is the difference in units of the correction, that is, of what leaving out each row
changes of the figure.

    python benchmarks/held_out.py [--split 0] [TABLE ...]
"""

from __future__ import annotations

import argparse

import numpy as np

from harness.table_data import read_split, table_files
from polysift import FPCClassifier
from polysift.reporting.evaluation import evaluate
from polysift.training.metrics import QUANTILE, Estimate

MOST_ROWS = 30_000
SHOWN = ("accuracy", "roc_auc", "log_loss")


def main() -> None:
    """Print a row for each table, and how many figures agree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--split", type=int, default=0)
    parser.add_argument("tables", nargs="*")
    options = parser.parse_args()
    heads = " | ".join(f"{name}: held out | other rows | z | share" for name in SHOWN)
    print(f"| table | rows | {heads} |\n|{'---|' * (2 + 4 * len(SHOWN))}")
    all_z: dict[str, list[float]] = {name: [] for name in SHOWN}
    for table, path in table_files().items():
        if options.tables and table not in options.tables:
            continue
        rows = read_split(str(path), options.split, MOST_ROWS)
        model = FPCClassifier(random_state=options.split).fit(rows.X, rows.y)
        test, cells = evaluate(model, rows.X_test, rows.y_test), []
        for name in SHOWN:
            found, true = Estimate(*model.held_out_["figures"][name]), test.figures[name]
            z = (true.value - found.value) / np.hypot(_error(found), _error(true))
            correction = model.held_out_["training"][name] - found.value
            share = (true.value - found.value) / correction if correction else 0.0
            all_z[name].append(z)
            cells.append(f"{found.value:.4f} | {true.value:.4f} | {z:+.1f} | {share:+.2f}")
        print(f"| {table} | {len(rows.X):,} | {' | '.join(cells)} |", flush=True)
    for name, z in all_z.items():
        agree, middle = np.sum(np.abs(z) < QUANTILE), np.median(z)
        print(f"{name}: {agree} of {len(z)} within the interval; median z {middle:+.2f}")


def _error(estimate: Estimate) -> float:
    return max((estimate.high - estimate.low) / (2 * QUANTILE), 1e-9)


if __name__ == "__main__":
    main()
