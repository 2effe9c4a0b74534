"""Raw tables through every command at full size, as Parquet and as CSV.

Each table is split, three quarters for training, and written twice; then, as a user would:
``polysift fit``, ``tune``, ``predict --drift``, ``evaluate``, ``inspect --explain``, ``export``,
and onnxruntime on the exported model, each in a process of its own. The model of the CSV files must
be that of the Parquet files bit for bit, and the scores of onnxruntime those of the classifier;
what fails ends the run. Prints the accuracy on the test rows beside that of the same classifier
behind scikit-learn's encoders (``raw_tables``), and the seconds of commands. What is measured is
kept in ``--results``, and a further run goes on where the last one ended.

Usage: python benchmarks/walk_tables.py [--only loans,flights] [--tune-limit 60] [--results FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pandas as pd

import polysift
from raw_tables import pipeline

FORMS = ("parquet", "csv")


def run(folder: Path, command: str) -> float:
    """Run a command of polysift, which must succeed; return its seconds."""
    began = perf_counter()
    words = [sys.executable, "-m", "polysift", *command.split()]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"polysift {command}: exit {done.returncode}\n{done.stderr}")
    return perf_counter() - began


def onnx_inputs(proto: Any, frame: pd.DataFrame) -> dict[str, np.ndarray]:
    """Return the columns of a frame as an exported model takes them."""
    if len(proto.graph.input) == 1 and proto.graph.input[0].name == "X":
        return {"X": frame.to_numpy(float)}
    props = {prop.key: json.loads(prop.value) for prop in proto.metadata_props}
    fed = {}
    for name, j in props["inputs"].items():
        kind, column = props["column_kinds"][j], frame.iloc[:, j]
        if "category" in kind:
            values = np.array(["" if v is None or v != v else str(v) for v in column], dtype=object)
        elif kind == "date":
            times = pd.to_datetime(column, utc=True).dt.tz_localize(None).to_numpy("datetime64[us]")
            values = np.where(np.isnat(times), np.nan, times.astype(np.int64) / 1e6)
        else:
            values = column.to_numpy(dtype=float, na_value=np.nan)
        fed[name] = values.reshape(-1, 1)
    return fed


def exported_difference(path: Path, model: Any, rows: pd.DataFrame) -> float:
    """Return the largest difference of the scores of onnxruntime, relative to the scores' size."""
    proto = onnx.load(path)
    session = onnxruntime.InferenceSession(str(path))
    (scores,) = session.run(["score"], onnx_inputs(proto, rows))
    own = model.decision_function(rows)
    return float(np.abs(scores - own).max() / np.abs(own).max())


def walk(folder: Path, tune_limit: float) -> dict[str, Any]:
    """Take the files of a folder through every command; return what was measured."""
    seconds: dict[str, list[float]] = {}
    for form in FORMS:
        for command in (
            f"fit train.{form} -t target --seed 0 -o {form}.polysift",
            f"tune train.{form} -t target --seed 0 --time-limit {tune_limit} "
            f"-o tuned-{form}.polysift",
            f"predict {form}.polysift test.{form} -o {form}.out.parquet --drift",
            f"predict tuned-{form}.polysift test.{form} -o tuned-{form}.out.parquet",
            f"evaluate {form}.polysift test.{form} -t target",
            f"inspect {form}.polysift --explain --rows test.{form}",
            f"export {form}.polysift {form}.onnx",
        ):
            seconds.setdefault(command.split()[0], []).append(run(folder, command))
    models = [polysift.load(folder / f"{form}.polysift") for form in FORMS]
    for name in ("centers_", "coef_", "column_kinds_"):
        np.testing.assert_array_equal(*(getattr(model, name) for model in models))
    pd.testing.assert_frame_equal(*(pd.read_parquet(folder / f"{f}.out.parquet") for f in FORMS))
    test = pd.read_parquet(folder / "test.parquet")
    y, rows = test.pop("target").astype(str).to_numpy(), test
    difference = exported_difference(folder / "parquet.onnx", models[0], rows)
    if difference > 1e-6:
        sys.exit(f"onnxruntime: scores differ by {difference:.1e}")

    def accuracy(name: str) -> float:
        predicted = pd.read_parquet(folder / f"{name}.out.parquet").iloc[:, 0].astype(str)
        return 100 * float(np.mean(predicted.to_numpy() == y))

    return {
        "raw": accuracy("parquet"),
        "tuned": [accuracy(f"tuned-{form}") for form in FORMS],
        "onnx": difference,
        "seconds": seconds,
    }


def encoded(folder: Path) -> float:
    """Return the accuracy of the same classifier behind scikit-learn's encoders."""
    train, test = (pd.read_parquet(folder / f"{part}.parquet") for part in ("train", "test"))
    y, y_test = (part.pop("target").astype(str).to_numpy() for part in (train, test))
    kinds = polysift.load(folder / "parquet.polysift").column_kinds_
    dates = [name for name, kind in zip(train, kinds, strict=True) if kind == "date"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of scikit-learn's encoders
        model = pipeline(train, dates).fit(train, y)
        return 100 * float(np.mean(model.predict(test) == y_test))


def measure(path: Path, tune_limit: float) -> dict[str, Any]:
    """Walk one table."""
    table = pd.read_parquet(path)
    table = table.iloc[np.random.default_rng(0).permutation(len(table))]
    split = 3 * len(table) // 4
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part, rows in (("train", table[:split]), ("test", table[split:])):
            rows.to_parquet(folder / f"{part}.parquet", index=False)
            rows.to_csv(folder / f"{part}.csv", index=False)
        found = walk(folder, tune_limit)
        return {"shape": [len(table), table.shape[1] - 1], "encoded": encoded(folder), **found}


def line(name: str, found: dict[str, Any]) -> str:
    """Return the line of a table."""
    rows, columns = found["shape"]
    tuned = " and ".join(f"{value:.2f}" for value in found["tuned"])
    times = [" and ".join(f"{s:.0f}" for s in found["seconds"][word]) for word in ("fit", "tune")]
    cells = [name, f"{rows:,} x {columns}", f"{found['raw']:.2f}", f"{found['encoded']:.2f}", tuned]
    cells += [*times, f"{found['onnx']:.0e}"]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="tables, by commas; else all")
    parser.add_argument("--tune-limit", type=float, default=60.0, help="seconds of each search")
    parser.add_argument("--results", type=Path, help="a JSON file that keeps what was measured")
    options = parser.parse_args()
    if "POLYSIFT_DATA" not in os.environ:
        sys.exit("Set POLYSIFT_DATA to the folder of the data sets (tables/loans.parquet, ...).")
    paths = sorted((Path(os.environ["POLYSIFT_DATA"]) / "tables").glob("*.parquet"))
    wanted = options.only.split(",") if options.only else [path.stem for path in paths]
    results: dict[str, Any] = {}
    if options.results is not None and options.results.exists():
        results = json.loads(options.results.read_text())
    heads = ["table", "rows x columns", "fit (%)", "encoded (%)", "tune (%)", "fit (s)", "tune (s)"]
    print(f"| {' | '.join([*heads, 'onnxruntime'])} |\n|{'---|' * (len(heads) + 1)}")
    for path in sorted(paths, key=lambda path: path.stat().st_size):
        if path.stem in wanted:
            if path.stem not in results:
                results[path.stem] = measure(path, options.tune_limit)
                if options.results is not None:
                    options.results.write_text(json.dumps(results))
            print(line(path.stem, results[path.stem]), flush=True)


if __name__ == "__main__":
    main()
