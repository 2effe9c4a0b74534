"""Calibrated probabilities beside scikit-learn's CalibratedClassifierCV around the same classifier.

Brier scores on the test rows and times, over seeded splits of 75 % training and 25 % test rows,
degree 3, quantile scaling, 500 centers. scikit-learn's default (ensemble=True) averages five
models, each without a fifth of the rows; with ensemble=False it fits a sixth to all rows, as
polysift does. The files are read from the folder that POLYSIFT_DATA names.

Usage: python benchmarks/probabilities.py [--splits 5] [--solvers paper converged]
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from time import perf_counter

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import brier_score_loss

from common import load, three_parts
from harness.classifiers import paper_classifier


def measure(model, X, y, train, test) -> tuple[float, float]:
    began = perf_counter()
    model.fit(X[train], y[train])
    seconds = perf_counter() - began
    return brier_score_loss(y[test], model.predict_proba(X[test])[:, 1]), seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--solvers", nargs="+", default=["paper", "converged"])
    options = parser.parse_args()
    if "POLYSIFT_DATA" not in os.environ:
        sys.exit("Set POLYSIFT_DATA to the folder of the data sets (magic.parquet, ...).")
    warnings.simplefilter("ignore")
    print(
        "data   solver     method     polysift  scikit-learn  (no ensemble)  time, of scikit-learn"
    )
    for name in ("htru2", "magic"):
        X, y = load(name)
        for solver in options.solvers:
            common = {"degree": 3, "n_centers": 500, "scaler": "quantile", "random_state": 0}
            plain = paper_classifier(**common, solver=solver)
            for method in ("sigmoid", "isotonic"):
                models = [
                    paper_classifier(**common, solver=solver, calibration=method),
                    CalibratedClassifierCV(plain, method=method),
                    CalibratedClassifierCV(plain, method=method, ensemble=False),
                ]
                found = []
                for seed in range(options.splits):
                    train, validation, test = three_parts(len(y), seed)
                    rows = np.concatenate([train, validation])
                    found.append([measure(model, X, y, rows, test) for model in models])
                brier, seconds = np.mean(found, axis=0).T
                print(
                    f"{name:<6} {solver:<10} {method:<9} {brier[0]:>9.5f} {brier[1]:>13.5f} "
                    f"{brier[2]:>14.5f} {seconds[0] / seconds[1]:>12.2f}, "
                    f"{seconds[0] / seconds[2]:.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
