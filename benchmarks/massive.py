"""Training from a Parquet file that is written first: speed by phase, and peak memory.

Shapes as in the paper: HIGGS (10,000,000 x 21, degree 3, 400 centers) and SUSY (4,000,000 x 8,
degree 6, 1600 centers), float32. ``--scaling`` fits the exponent of time against rows instead.
Usage: python benchmarks/massive.py [--rows N] [--shape higgs|susy] [--scaling] [--folder DIR]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

from common import bare_gram, train, write_parquet

SHAPES = {"higgs": (10_000_000, 21, 3, 400), "susy": (4_000_000, 8, 6, 1600)}


def run(folder: Path, name: str, rows: int | None) -> None:
    m, d, degree, n = SHAPES[name]
    m = rows or m
    path = folder / f"{name}.parquet"
    write_parquet(path, m, d)
    bare = bare_gram(n)
    found = train(path, degree=degree, n_centers=n, memory_limit="1.5GB")
    path.unlink()
    seconds = found["timings"]
    gram = m * n * n / seconds["Gram matrix"]
    sweeps = m * n * found["n_iter"] / seconds["sweep"]
    print(f"{name}: {m:,} x {d}, degree {degree}, {n} centers; features {m * n * 4 / 1e9:.0f} GB")
    print(f"  training error {found['error']:.2%} after {found['n_iter']} iterations")
    print(f"  {found['seconds']:.1f} s, {m / found['seconds']:,.0f} rows/s")
    print(
        "  "
        + ", ".join(f"{phase} {value:.1f} s" for phase, value in seconds.items())
        + f"; forecast {found['forecast_seconds']:.1f} s"
    )
    print(f"  sweep {sweeps:.2e} feature evaluations/s")
    print(f"  Gram matrix {gram / 1e9:.0f} GFLOP/s, {gram / bare:.2f} of a bare A.T @ A")
    print(
        f"  peak memory of the process {found['peak'] / 1e6:,.0f} MB (forecast "
        f"{(found['before'] + found['forecast_memory']) / 1e6:,.0f})",
        flush=True,
    )


def scaling(folder: Path, largest: int) -> None:
    m_values = [10**5, 10**6, 10**7]
    times = []
    for m in [m for m in m_values if m <= largest]:
        path = folder / "scaling.parquet"
        write_parquet(path, m, 21)
        times.append(train(path, degree=3, n_centers=400)["seconds"])
        print(f"  {m:>10,} rows: {times[-1]:.2f} s", flush=True)
    exponent = np.polyfit(np.log(m_values[: len(times)]), np.log(times), 1)[0]
    print(f"time grows like rows^{exponent:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, help="fewer rows than the paper's")
    parser.add_argument("--shape", choices=SHAPES)
    parser.add_argument("--scaling", action="store_true")
    parser.add_argument("--folder", type=Path, help="where to write the file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        if options.scaling:
            scaling(Path(folder), options.rows or 10**7)
        else:
            for name in [options.shape] if options.shape else SHAPES:
                run(Path(folder), name, options.rows)


if __name__ == "__main__":
    main()
