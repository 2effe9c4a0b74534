"""The forecast against what happens: time, and peak memory of the process, over six shapes.

Usage: python benchmarks/forecast.py [--quick]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from common import train, write_parquet

SHAPES = [
    # rows, features, dtype, parameters
    (1_000_000, 8, "float64", {"degree": 5, "n_centers": 500}),
    (2_000_000, 21, "float32", {"degree": 3, "n_centers": 400}),
    (300_000, 50, "float64", {"degree": 2, "n_centers": 1000}),
    (2_000_000, 3, "float32", {"degree": 9, "n_centers": 55, "max_iter": 5, "tol": 0}),
    (200_000, 20, "float64", {"degree": 2, "solver": "converged", "max_iter": 30, "tol": 0}),
    (100_000, 30, "float32", {"degree": 3, "n_centers": 2000}),
    (500_000, 8, "float64", {"degree": 4, "n_centers": 300, "scaler": "quantile"}),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, three shapes")
    quick = parser.parse_args().quick
    print("    rows    d     n  seconds  forecast  ratio    peak MB  forecast  ratio")
    with tempfile.TemporaryDirectory() as folder:
        for m, d, dtype, parameters in SHAPES[:3] if quick else SHAPES:
            m = m // 10 if quick else m
            path = Path(folder) / "data.parquet"
            write_parquet(path, m, d, dtype)
            found = train(path, **parameters)
            memory = (found["before"] + found["forecast_memory"]) / 1e6
            print(
                f"{m:>8} {d:>4} {found['n']:>5} {found['seconds']:>8.2f} "
                f"{found['forecast_seconds']:>9.2f} "
                f"{found['forecast_seconds'] / found['seconds']:>6.2f} "
                f"{found['peak'] / 1e6:>10.0f} {memory:>9.0f} "
                f"{memory / found['peak'] * 1e6:>6.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
