"""What several benchmarks share: data, and a process that tells its peak memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import joblib
import numpy as np

from harness.timing import bare_gram as suite_gram

__all__ = ["bare_gram", "best_time", "load", "three_parts", "train", "write_parquet"]

CHUNK = 500_000

CHILD = """
import json, resource, sys, threading, time
import numpy as np
from polysift import PAPER, FPCClassifier, open_data

path, parameters = sys.argv[1], json.loads(sys.argv[2])
page = resource.getpagesize()

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * page

source = open_data(path, target="y")
clf = FPCClassifier(**PAPER | parameters, random_state=0)
before, peak, done = resident(), 0, False
forecast = clf.plan(source)
loaded = resident()  # with numba and what else a fit imports
source = open_data(path, target="y")  # the fit finds out by itself what text columns hold

def sample():
    global peak
    while not done:
        peak = max(peak, resident())
        time.sleep(0.01)

watcher = threading.Thread(target=sample)
watcher.start()
began, worked = time.perf_counter(), time.process_time()
clf.fit(source)
seconds, cpu = time.perf_counter() - began, time.process_time() - worked
done = True
watcher.join()
print()
print(json.dumps({
    "rows": source.n_rows, "seconds": seconds, "cpu": cpu, "before": before, "loaded": loaded,
    "peak": peak,
    "timings": clf.timings_, "n": clf.n_centers_, "n_iter": clf.n_iter_,
    "error": float(clf.history_["training_error"][-1]),
    "forecast_seconds": forecast.seconds, "forecast_memory": forecast.peak_memory,
    "evaluations": forecast.feature_evaluations,
}))
"""


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and labels of a real data set."""
    import pandas as pd

    frame = pd.read_parquet(Path(os.environ["POLYSIFT_DATA"]) / f"{name}.parquet")
    y = frame.pop("target").to_numpy()
    return frame.to_numpy(dtype=float), y


def three_parts(rows: int, seed: int) -> list[np.ndarray]:
    """Return training, validation and test rows: half, a quarter, a quarter, as in the paper."""
    order = np.random.default_rng(seed).permutation(rows)
    return np.split(order, [rows // 2, rows // 2 + rows // 4])


def write_parquet(path: Path, rows: int, features: int, dtype: str = "float32") -> None:
    """Write a noisy quadratic problem, a chunk at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    writer = None
    for first in range(0, rows, CHUNK):
        X = rng.random((min(CHUNK, rows - first), features), dtype=dtype)
        y = (X[:, 0] - 0.5) ** 2 + X[:, 1] * X[:, 2] > 0.3
        y ^= rng.random(len(y)) < 0.1
        table = pa.table({f"x{j}": X[:, j] for j in range(features)} | {"y": y.astype(np.int8)})
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def train(path: Path, **parameters: object) -> dict:
    """Plan and fit in a process of its own; return what it measured."""
    command = [sys.executable, "-c", CHILD, str(path), json.dumps(parameters)]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        sys.exit(run.stderr)
    return json.loads(run.stdout.splitlines()[-1])


def best_time(run: Callable[[], object], times: int = 3) -> float:
    def once() -> float:
        began = perf_counter()
        run()
        return perf_counter() - began

    return min(once() for _ in range(times))


def bare_gram(n: int) -> float:
    """Return the speed of one large float64 ``A.T @ A`` on all cores, in m n^2 per second."""
    work, products = suite_gram(n, joblib.cpu_count())
    return products / best_time(work)
