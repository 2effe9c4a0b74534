"""Predictions: rows per second and memory of a batch, and latency of few rows.

Each system is trained on the same rows and predicts in a process of its own, on all threads; rounds
alternate between systems, and the best counts. ONNX Runtime runs polysift's own model.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import needs_paper  # noqa: F401 - before imports from polysift_paper
from harness.cells import PRELOAD, in_words, megabytes, recall, store
from harness.problems import Problem, smooth
from harness.report import Column, Report, Row, Table
from harness.run import Run
from harness.systems import SYSTEMS, Params
from harness.timing import all_times, say, seconds_of
from polysift.runtime.memory import MemoryMeter, forget_peak
from polysift_paper.studies.worker import Worker, WorkerError

ONNX = "onnx"
ROW_COUNTS = (1, 10, 100)

MODELS: dict[str, Params] = {
    "paper": {"degree": 3, "n_centers": 1000},
    ONNX: {"degree": 3, "n_centers": 1000},
    "falkon": {"n_centers": 1000},
    "nystroem": {"n_components": 1000},
    "rbf_sampler": {"n_components": 1000},
    "count_sketch": {"n_components": 1000},
    "lightgbm": {"n_estimators": 100},
    "hist_gb": {"max_iter": 100},
}

COLUMNS = (
    Column("system", "system"),
    Column("model", "model"),
    Column("rate", "rows per second", ",.0f"),
    Column("ratio", "polysift's / its rate", ".2f"),
    Column("megabytes", "memory, MB", ",.0f"),
    *(Column(f"rows_{k}", f"{k} row{'s'[: k > 1]}, microseconds", ",.0f") for k in ROW_COUNTS),
    Column("status", "remark"),
)


def measure(run: Run) -> Report:
    """Train each system once per round, and have it predict."""
    m, batch = run.pick(500, 4_000, 10_000), run.pick(1_000, 40_000, 200_000)
    systems = run.pick(("paper", ONNX, "rbf_sampler"), tuple(MODELS), tuple(MODELS))
    found: dict[str, list[Row]] = {name: [] for name in systems if _there(name)}
    with tempfile.TemporaryDirectory() as name:
        folder = store(Path(name) / "problem", smooth(m, test=batch))
        for _ in range(run.pick(1, 1, 2)):
            for system, rows in found.items():
                rows.append(_predicted(run, folder, system))
    best = {system: _best(rows) for system, rows in found.items()}
    rate = best["paper"].get("rate", np.nan)
    rows = [
        {"system": _title(system), "model": in_words(_params(run, system))}
        | {"ratio": rate / row.get("rate", np.nan)}
        | row
        for system, row in best.items()
    ]
    title = f"A batch of {batch:,} x 20 in float32, on {run.threads} threads"
    notes = ["Memory: by how much the process grew over the batch, its rows not counted."]
    return Report([Table("", title, rows, COLUMNS)], notes=notes)


def _there(system: str) -> bool:
    return find_spec("onnxruntime") is not None if system == ONNX else system in SYSTEMS


def _title(system: str) -> str:
    return "polysift by ONNX Runtime" if system == ONNX else SYSTEMS[system].title


def _predicted(run: Run, folder: Path, system: str) -> Row:
    times = run.pick((1, 3), (2, 50), (2, 200))
    with Worker(recall, folder, preload=PRELOAD, threads=run.threads) as worker:
        try:
            row: Row = worker.call(predicting, system, _params(run, system), run.threads, times)
        except WorkerError as error:
            row = {"status": str(error)}
    say(f"{_title(system)}: {row.get('rate', np.nan):,.0f} rows per second")
    return row


def _params(run: Run, system: str) -> Params:
    """Return the parameters of a model; in the smallest runs it is a small one."""
    params = MODELS[system]
    return {k: min(v, 20) for k, v in params.items()} if run.size == "tiny" else params


def predicting(problem: Problem, system: str, params: Params, threads: int, times: Any) -> Row:
    """Train, then predict a batch and few rows; return the best times."""
    warnings.simplefilter("ignore")
    predict = _predictor(problem, system, params, threads)
    few = {k: problem.X_test[:k].copy() for k in ROW_COUNTS}
    for rows in few.values():
        predict(rows)
    predict(problem.X_test[:2000])
    forget_peak()
    meter = MemoryMeter()
    best = min(seconds_of(lambda: predict(problem.X_test)) for _ in range(times[0]))
    grown = megabytes(meter)
    works = {f"rows_{k}": lambda rows=rows: predict(rows) for k, rows in few.items()}
    taken = all_times(works, times[1])
    latency = {name: 1e6 * float(values.min()) for name, values in taken.items()}
    return {"rate": len(problem.X_test) / best, "megabytes": grown} | latency


def _predictor(
    problem: Problem, system: str, params: Params, threads: int
) -> Callable[[np.ndarray], Any]:
    build = SYSTEMS["paper" if system == ONNX else system].build
    model = build(threads, **params).fit(problem.X, problem.y)
    return _onnx_predictor(model, threads) if system == ONNX else model.predict


def _onnx_predictor(model: Any, threads: int) -> Callable[[np.ndarray], Any]:
    import onnxruntime

    from polysift import to_onnx

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString(), options)
    dtype = {"tensor(double)": np.float64}.get(session.get_inputs()[0].type, np.float32)
    return lambda X: session.run(["label"], {"X": X.astype(dtype, copy=False)})[0]


def _best(rows: list[Row]) -> Row:
    """Return the best of each figure over the rounds."""
    done = [row for row in rows if "rate" in row]
    if not done:
        return rows[0]
    least = {key: min(row[key] for row in done) for key in done[0]}
    return least | {"rate": max(row["rate"] for row in done)}
