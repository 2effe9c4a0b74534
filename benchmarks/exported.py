"""Scores of the exported ONNX graph beside ours: how far apart, how fast.

For each solver and scaler, the largest difference over all data sets and degrees, and how many
labels differ; 4,000 training rows, up to 10,000 others to compare on. The rounding of our own
scores is shown by the same rows, scored one by one instead of together. The files are read from the
folder that POLYSIFT_DATA names.

Usage: python benchmarks/exported.py [--degrees 2 3 4 6]
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings

import numpy as np
import onnxruntime

from common import best_time, load
from polysift import FPCClassifier, to_onnx

SETS = ("magic", "htru2", "occupancy", "covtype_binary")
TRAINED, COMPARED, ALONE = 4_000, 10_000, 100


def compare(name: str, degree: int, solver: str, scaler: str | None) -> dict[str, float]:
    X, y = load(name)
    order = np.random.default_rng(0).permutation(len(y))
    train, rest = np.split(order[: TRAINED + COMPARED], [TRAINED])
    clf = FPCClassifier(degree=degree, solver=solver, scaler=scaler, random_state=0)
    clf.fit(X[train], y[train])
    rows = np.ascontiguousarray(X[rest])
    session = onnxruntime.InferenceSession(to_onnx(clf).SerializeToString())
    label, score = session.run(["label", "score"], {"X": rows})
    ours = clf.decision_function(rows)
    alone = np.array([clf.decision_function(row[np.newaxis])[0] for row in rows[:ALONE]])
    return {
        "apart": float(np.abs(score - ours).max()),
        "labels": int(np.sum(label != clf.predict(rows))),
        "own": float(np.abs(alone - ours[:ALONE]).max()),
        "time": best_time(lambda: session.run(["score"], {"X": rows}))
        / best_time(lambda: clf.decision_function(rows)),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--degrees", type=int, nargs="+", default=[2, 3, 4, 6])
    degrees = parser.parse_args().degrees
    if "POLYSIFT_DATA" not in os.environ:
        print("Set POLYSIFT_DATA to the folder of the data sets.", file=sys.stderr)
        return 1
    warnings.simplefilter("ignore")
    print("solver     scaler    graph - ours  labels  ours alone - in a batch  time / ours")
    for solver in ("paper", "converged"):
        for scaler in ("minmax", "standard", "quantile", None):
            found = [compare(name, s, solver, scaler) for name in SETS for s in degrees]
            worst = {key: max(one[key] for one in found) for key in ("apart", "own")}
            labels = sum(one["labels"] for one in found)
            time = np.median([one["time"] for one in found])
            print(
                f"{solver:<10} {scaler!s:<9} {worst['apart']:<13.1e} {labels:<7} "
                f"{worst['own']:<24.1e} {time:.2f}",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
