"""Scores of the exported ONNX graph beside ours: how far apart, how fast.

For each solver and scaler, the largest difference over all data sets and degrees, and how many
labels differ; 4,000 training rows, up to 10,000 others to compare on. The rounding of our own
scores is shown by the same rows, scored one by one instead of together. The files are read from the
folder that POLYSIFT_DATA names.

With --blocks, instead: time and peak memory of one call with 100,000 rows on a model of 1,000
centers, by the graph, which works in blocks of rows, and by one without a loop. Each runs in
processes of its own, in turns; made-up data, so POLYSIFT_DATA is not needed.

Usage: python benchmarks/exported.py [--degrees 2 3 4 6] [--blocks]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import onnxruntime

from common import best_time, load
from harness.classifiers import paper_classifier
from polysift import to_onnx
from polysift.persistence import onnx_graph

SETS = ("magic", "htru2", "occupancy", "covtype_binary")
TRAINED, COMPARED, ALONE = 4_000, 10_000, 100


def compare(name: str, degree: int, solver: str, scaler: str | None) -> dict[str, float]:
    X, y = load(name)
    order = np.random.default_rng(0).permutation(len(y))
    train, rest = np.split(order[: TRAINED + COMPARED], [TRAINED])
    clf = paper_classifier(degree=degree, solver=solver, scaler=scaler, random_state=0)
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


ONE_CALL = """
import sys, time
from pathlib import Path
import numpy as np
import onnxruntime

def peak():  # of this program: getrusage counts what its parent was before
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024

path, rows, columns, threads = sys.argv[1], *map(int, sys.argv[2:])
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = threads
session = onnxruntime.InferenceSession(path, options)
X = np.random.default_rng(1).random((rows, columns))
before = peak()
times = []
for _ in range(3 if rows > 1000 else 300):
    began = time.perf_counter()
    session.run(["score"], {"X": X})
    times.append(time.perf_counter() - began)
print(min(times), peak() - before)
"""


def measure_blocks(turns: int = 3) -> None:
    """Print the least seconds, and the memory beyond that of the rows, of both graphs."""
    X = np.random.default_rng(0).random((3_000, 20))
    y = X[:, 0] > X[:, 1]
    clf = paper_classifier(degree=3, n_centers=1_000, random_state=0).fit(X, y)
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: Path(folder) / f"{name}.onnx" for name in ("blocks", "plain")}
        to_onnx(clf, paths["blocks"])
        onnx_graph.Graph.in_blocks = lambda graph, x, _rows, add, name: graph.op(
            "Identity", add(graph, x), name=name
        )
        to_onnx(clf, paths["plain"])
        print("rows     threads  graph      seconds   MiB")
        for rows in (1, 100, 100_000):
            for threads in (1, 2):
                found = {name: [] for name in paths}
                for _ in range(turns):
                    for name, path in paths.items():
                        command = [sys.executable, "-c", ONE_CALL, path, rows, 20, threads]
                        text = subprocess.check_output([*map(str, command)], text=True)
                        found[name].append([*map(float, text.split())])
                for name, pairs in found.items():
                    seconds, size = np.min(pairs, axis=0)[0], np.max(pairs, axis=0)[1]
                    print(
                        f"{rows:<8} {threads:<8} {name:<10} {seconds:<9.3g} {size:.0f}", flush=True
                    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", action="store_true")
    parser.add_argument("--degrees", type=int, nargs="+", default=[2, 3, 4, 6])
    arguments = parser.parse_args()
    if arguments.blocks:
        measure_blocks()
        return 0
    degrees = arguments.degrees
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
