"""The Gram pass of the engine, features included, against one bare ``A.T @ A`` in float64.

Both have the same n and threads: the engine's work on shards with BLAS on one thread each, the bare
product is one call with BLAS on all of them. Speed counts m n^2.
"""

from __future__ import annotations

from harness.engines import Bench, Shape
from harness.report import Column, Report, Row, Table, Target
from harness.run import Run
from harness.timing import bare_gram, best_times, say
from polysift.runtime.parallel import Pool

SHAPES = (
    # features, degree, centers, rows, target
    (21, 3, 400, 200_000, 0.7),
    (22, 3, 1000, 150_000, 0.85),
    (8, 6, 1600, 100_000, 0.85),
    (8, 6, 2000, 80_000, 0.85),
)

COLUMNS = (
    Column("n", "n"),
    Column("d", "d"),
    Column("degree", "degree"),
    Column("rows", "rows", ","),
    Column("dtype", "rows are"),
    Column("gflops", "engine, GFLOP/s", ".0f"),
    Column("bare_gflops", "A.T @ A float64", ".0f"),
    Column("ratio", "ratio", ".2f"),
    Column("bare32_gflops", "A.T @ A float32", ".0f"),
)


def measure(run: Run) -> Report:
    """Compare the four shapes."""
    rows: list[Row] = []
    for d, degree, n, m, target in SHAPES[: run.pick(1, 4, 4)]:
        m = run.pick(4_000, m // 10, m)
        say(f"n = {n}")
        rows += _compare(run, Shape(m, d, degree, n, ""), target)
    targets = [
        Target(f"Gram pass / A.T @ A, n = {r['n']}, {r['dtype']}", r["ratio"], r["target"], True)
        for r in rows
    ]
    title = f"Gram pass on {run.threads} threads, features included"
    return Report([Table("", title, rows, COLUMNS)], targets)


def _compare(run: Run, shape: Shape, target: float) -> list[Row]:
    n = shape.n
    size = run.pick(2**18, 2**23, 2**25)
    bare, products = bare_gram(n, run.threads, "float64", size)
    bare32, _ = bare_gram(n, run.threads, "float32", size)
    with Pool(run.threads) as pool:
        benches = {
            dtype: Bench(Shape(shape.m, shape.d, shape.degree, n, dtype), pool)
            for dtype in ("float32", "float64")
        }
        works = {dtype: bench.gram for dtype, bench in benches.items()}
        times = best_times({**works, "bare": bare, "bare32": bare32}, run.pick(1, 4, 4))
    speed = products / times["bare"]
    return [
        {
            "n": n,
            "d": shape.d,
            "degree": shape.degree,
            "rows": shape.m,
            "dtype": dtype,
            "gflops": shape.m * n * n / times[dtype] / 1e9,
            "bare_gflops": speed / 1e9,
            "ratio": shape.m * n * n / times[dtype] / speed,
            "target": target,
            "bare32_gflops": products / times["bare32"] / 1e9,
        }
        for dtype in benches
    ]
