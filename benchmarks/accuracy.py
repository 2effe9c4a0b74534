"""Test accuracy on real data sets beside the paper's, on seeded 50/25/25 splits.

The files are read from the folder that POLYSIFT_DATA names. Usage: python benchmarks/accuracy.py
[--splits 5] [--centers 500]
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from itertools import product
from pathlib import Path

import numpy as np

from polysift import FPCClassifier

PAPER = {"occupancy": (98.77, 99.14), "magic": (86.52, 86.92), "htru2": (97.64, 97.93)}
GRID = list(product(("minmax", "standard", "quantile"), (2, 3, 4, 5), ("paper", "converged")))


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    import pandas as pd

    frame = pd.read_parquet(Path(os.environ["POLYSIFT_DATA"]) / f"{name}.parquet")
    y = frame.pop("target").to_numpy()
    return frame.to_numpy(dtype=float), y


def three_parts(m: int, seed: int) -> list[np.ndarray]:
    order = np.random.default_rng(seed).permutation(m)
    return np.split(order, [m // 2, m // 2 + m // 4])


def report(name: str, accuracy: list[float], beside: str) -> None:
    mean, deviation = 100 * np.mean(accuracy), 100 * np.std(accuracy)
    print(f"{name:<24} {mean:6.2f} +- {deviation:4.2f}   {beside}", flush=True)


def musk2(degree: int, splits: int) -> None:
    X, y = load("musk2")
    accuracy = []
    for seed in range(splits):
        train, _, test = three_parts(len(y), seed)
        clf = FPCClassifier(degree, 1500, centers="random", random_state=seed)
        accuracy.append(clf.fit(X[train], y[train]).score(X[test], y[test]))
    report(f"musk2, degree {degree}", accuracy, "the paper, best degree: 99.27")


def tuned(name: str, splits: int, centers: int) -> None:
    X, y = load(name)
    accuracy = []
    for seed in range(splits):
        train, validation, test = three_parts(len(y), seed)
        best = (-1.0, -1.0)
        for scaler, degree, solver in GRID:
            clf = FPCClassifier(degree, centers, scaler=scaler, solver=solver, random_state=0)
            clf.fit(X[train], y[train])
            found = clf.score(X[validation], y[validation]), clf.score(X[test], y[test])
            best = max(best, found, key=lambda pair: pair[0])
        accuracy.append(best[1])
    report(
        f"{name}, tuned", accuracy, "the paper: FPC {:.2f}, best rival {:.2f}".format(*PAPER[name])
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--centers", type=int, default=500)
    options = parser.parse_args()
    if "POLYSIFT_DATA" not in os.environ:
        sys.exit("Set POLYSIFT_DATA to the folder of the data sets (musk2.parquet, ...).")
    warnings.simplefilter("ignore")  # what is not converged, or at the floor, is part of the grid
    for degree in range(2, 7):
        musk2(degree, options.splits)
    for name in PAPER:
        tuned(name, options.splits, options.centers)


if __name__ == "__main__":
    main()
