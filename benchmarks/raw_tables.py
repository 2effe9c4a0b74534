"""Raw tables against the same classifier behind scikit-learn's encoders.

``FPCClassifier(random_state=0)`` is fitted to frames as they are, and to what a pipeline of
scikit-learn makes of them: numbers by ``SimpleImputer`` with indicators, categories by
``OneHotEncoder``, those of more than 100 levels by ``TargetEncoder``, dates as seconds. Three
quarters of the rows, of at most 20,000, are for training, the others for testing; the time is that
of fitting and predicting. The tables are read from the folder "tables" of the folder that
POLYSIFT_DATA names; the column "target" is what is to be predicted. Prints the table of
docs/tables.md.

Usage: python benchmarks/raw_tables.py [--splits 3] [--only loans,flights]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, TargetEncoder

from polysift import FPCClassifier

ROWS, MOST_LEVELS, MIN_FREQUENCY = 20_000, 100, 10


def as_seconds(frame: pd.DataFrame) -> pd.DataFrame:
    """Return dates, which may be text, as seconds."""
    dates = frame.apply(pd.to_datetime, utc=True)
    return (dates - pd.Timestamp(0, tz="UTC")).apply(lambda column: column.dt.total_seconds())


def pipeline(frame: pd.DataFrame, dates: list[str]) -> Pipeline:
    """Return encoders by the columns of the training rows, and the classifier behind them."""
    kinds: dict[str, list[str]] = {"number": [], "few": [], "many": []}
    for name in frame.columns.drop(dates):
        if pd.api.types.is_numeric_dtype(frame[name]):
            kinds["number"].append(name)
        else:
            kinds["few" if frame[name].nunique() <= MOST_LEVELS else "many"].append(name)
    impute = SimpleImputer(add_indicator=True)
    one_hot = OneHotEncoder(
        min_frequency=MIN_FREQUENCY, handle_unknown="ignore", sparse_output=False
    )
    encode = make_column_transformer(
        (impute, kinds["number"]),
        (one_hot, kinds["few"]),
        (TargetEncoder(random_state=0), kinds["many"]),
        (make_pipeline(FunctionTransformer(as_seconds), impute), dates),
    )
    return make_pipeline(encode, FPCClassifier(random_state=0))


def measure(model, frame: pd.DataFrame, y: np.ndarray, train, test) -> tuple[float, float]:
    began = perf_counter()
    right = model.fit(frame.iloc[train], y[train]).predict(frame.iloc[test]) == y[test]
    return 100 * float(np.mean(right)), perf_counter() - began


def compare(whole: pd.DataFrame, seed: int) -> dict[str, Any]:
    """Return what a split measures of the raw table, and of the encoded one."""
    frame = whole.iloc[np.random.default_rng(seed).permutation(len(whole))[:ROWS]].copy()
    y = frame.pop("target").astype(str).to_numpy()
    train, test = np.split(np.arange(len(y)), [3 * len(y) // 4])
    raw = FPCClassifier(random_state=0)
    ours = measure(raw, frame, y, train, test)
    dates = [name for name, kind in zip(frame, raw.column_kinds_, strict=True) if kind == "date"]
    encoded = measure(pipeline(frame.iloc[train], dates), frame, y, train, test)
    return {"shape": frame.shape, "raw": ours, "encoded": encoded}


def line(name: str, splits: list[dict[str, Any]]) -> str:
    """Return the line of a table."""
    rows, columns = splits[0]["shape"]
    found = np.array([[split["raw"], split["encoded"]] for split in splits])  # split, way, figure
    raw, encoded = found[:, 0, 0], found[:, 1, 0]
    gain, deviation = raw - encoded, (raw - encoded).std(ddof=min(1, len(raw) - 1))
    cells = [name, f"{rows:,} x {columns}", str(len(splits))]
    cells += [f"{values.mean():.2f} ± {values.std():.2f}" for values in (raw, encoded)]
    cells.append(f"{gain.mean():+.2f} ± {deviation / np.sqrt(len(raw)):.2f}")
    cells += [f"{seconds:.2f}" for seconds in found[:, :, 1].mean(axis=0)]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--only", default="", help="tables, by commas; else all")
    parser.add_argument("--results", type=Path, help="a JSON file that keeps what was measured")
    options = parser.parse_args()
    if "POLYSIFT_DATA" not in os.environ:
        sys.exit("Set POLYSIFT_DATA to the folder of the data sets (tables/loans.parquet, ...).")
    warnings.simplefilter("ignore")  # rho is at its floor
    folder = Path(os.environ["POLYSIFT_DATA"]) / "tables"
    wanted = options.only.split(",") if options.only else None
    results: dict[str, list[dict[str, Any]]] = {}
    if options.results is not None and options.results.exists():
        results = json.loads(options.results.read_text())
    heads = ["table", "rows x columns", "splits", "raw (%)", "encoded (%)", "raw - encoded"]
    print(f"| {' | '.join([*heads, 'raw (s)', 'encoded (s)'])} |\n|{'---|' * (len(heads) + 2)}")
    for path in sorted(folder.glob("*.parquet")):
        if wanted is not None and path.stem not in wanted:
            continue
        whole, splits = pd.read_parquet(path), results.setdefault(path.stem, [])
        for seed in range(len(splits), options.splits):
            splits.append(compare(whole, seed))
            if options.results is not None:
                options.results.write_text(json.dumps(results))
        print(line(path.stem, splits), flush=True)


if __name__ == "__main__":
    main()
