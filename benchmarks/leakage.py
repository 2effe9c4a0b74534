"""How nearly single columns of real tables decide the label, by the rule that looks for leakage.

Prints the column of each table whose rule avoids most errors of always predicting the most frequent
class. Needs Parquet files with a column ``target`` where ``POLYSIFT_DATA`` points, and in its
folder ``tables``. ``--cost`` times the rules for 100,000 rows of 20 columns beside a fit to them
instead. Usage: python benchmarks/leakage.py [--cost]
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from time import perf_counter

import numpy as np

from harness.classifiers import paper_classifier
from polysift import open_data
from polysift.data.labels import Encoding, find_encoding
from polysift.data.source import ArraySource, DataSource
from polysift.features.columns import TableColumns, find_columns
from polysift.features.leakage import MIN_ERROR_CUT, sampled_share, single_column_accuracies
from polysift.features.survey import Questions, Survey, survey
from polysift.runtime.parallel import Pool


def surveyed(source: DataSource) -> tuple[Survey, Encoding, TableColumns]:
    """Return the survey of a source, with the sample, and what follows from it."""
    asked = Questions(
        labels=True,
        digest=False,
        quantiles=False,
        scheme="given",
        n_centers=0,
        seed=0,
        sampled=sampled_share(source),
    )
    with Pool(1) as pool:
        found = survey(source, asked, pool)
    columns = find_columns(source.types, True, source.n_rows, found)
    return found, find_encoding(found.labels, None), columns


def strongest(path: Path) -> tuple[str, float, float]:
    """Return the name of the strongest column, its accuracy, and the share of errors it avoids."""
    source = open_data(path, target="target")
    found, encoding, columns = surveyed(source)
    majority, accuracies = single_column_accuracies(found.sample, encoding, columns)
    best = max(accuracies, key=accuracies.__getitem__)
    assert source.names is not None
    accuracy = accuracies[best]
    return source.names[best], accuracy, 1.0 - (1.0 - accuracy) / (1.0 - majority)


def show_cost() -> None:
    """Print the time of the rules, and of a fit, which includes it."""
    X = np.random.default_rng(0).normal(size=(100_000, 20))
    y = X[:, 0] * X[:, 1] + X[:, 2] > 0
    source = ArraySource(X, [f"x{j}" for j in range(20)], y)
    found, encoding, columns = surveyed(source)
    began = perf_counter()
    single_column_accuracies(found.sample, encoding, columns)
    rules = perf_counter() - began
    began = perf_counter()
    paper_classifier(3, 1000, random_state=0).fit(source)
    print(f"rules {rules:.3f} s, a fit with 1,000 centers {perf_counter() - began:.1f} s")


def main() -> None:
    """Print a line for each table, or the cost."""
    if sys.argv[1:] == ["--cost"]:
        show_cost()
        return
    folder = Path(os.environ["POLYSIFT_DATA"])
    print(f"A column is named from {MIN_ERROR_CUT:.0%} of the errors avoided on.")
    for path in sorted([*folder.glob("*.parquet"), *folder.glob("tables/*.parquet")]):
        name, accuracy, avoided = strongest(path)
        print(f"{path.stem:20} {name:24} right {accuracy:6.1%}  errors avoided {avoided:6.1%}")


if __name__ == "__main__":
    main()
