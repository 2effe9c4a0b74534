"""Test accuracy on musk2 by degree, where the paper's formula breaks, on seeded 50/25/25 splits.

The file is read from the folder that POLYSIFT_DATA names. Usage: python benchmarks/accuracy.py
[--splits 5]
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings

import numpy as np

from common import load, three_parts
from harness.classifiers import paper_classifier


def report(name: str, accuracy: list[float], beside: str) -> None:
    mean, deviation = 100 * np.mean(accuracy), 100 * np.std(accuracy)
    print(f"{name:<24} {mean:6.2f} +- {deviation:4.2f}   {beside}", flush=True)


def musk2(degree: int, splits: int) -> None:
    X, y = load("musk2")
    accuracy = []
    for seed in range(splits):
        train, _, test = three_parts(len(y), seed)
        clf = paper_classifier(degree, 1500, centers="random", random_state=seed)
        accuracy.append(clf.fit(X[train], y[train]).score(X[test], y[test]))
    report(f"musk2, degree {degree}", accuracy, "the paper, best degree: 99.27")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=5)
    options = parser.parse_args()
    if "POLYSIFT_DATA" not in os.environ:
        sys.exit("Set POLYSIFT_DATA to the folder of the data sets (musk2.parquet, ...).")
    warnings.simplefilter("ignore")  # rho is at its floor
    for degree in range(2, 7):
        musk2(degree, options.splits)


if __name__ == "__main__":
    main()
