"""Feature evaluations per second of a sweep of one problem.

Beside it: the same engine with NumPy alone; plain NumPy blocks as one would write them; a limit,
which is multiply-adds in registers, as many per feature as its product, power and both uses take.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from harness.engines import Bench, Shape
from harness.figures import lines_of, panels
from harness.kernels import has_kernels
from harness.machine import has_avx512
from harness.report import Column, Report, Row, Table, Target
from harness.run import Run
from harness.sweeps import limit, plain_blocks
from harness.timing import best_times, say
from polysift.features.kernels import full_dimension
from polysift.runtime.parallel import Pool

FEATURES = (2, 4, 8, 16, 21, 50, 100, 200, 784)
DEGREES = (3, 6)
CENTERS = 500
"""At these, or at all that a kernel of few features has, d and degree vary."""

BY_CENTERS = (100, 400, 1600)
AT = (8, 6), (21, 3)
"""For these d and degrees n varies."""

HEADLINE = {"d": 8, "degree": 6, "n": 500, "dtype": "float32"}
AIM, MIN_SPEEDUP, NO_SLOWER = 3e9, 2.5, 0.95
"""Features per second on two AVX-512 cores; times plain blocks; NumPy's speed, give or take what
the clock does."""

FEW, MIN_SHARE = 100, 0.3
"""Up to so many centers a sweep aims at this share of the limit."""

SHOWN = 3
"""The degree that is drawn."""

LINES = {"rate": "engine", "numpy": "NumPy engine", "plain": "plain blocks", "limit": "limit"}

COLUMNS = (
    Column("d", "d"),
    Column("degree", "degree"),
    Column("n", "n"),
    Column("dtype", "rows are"),
    Column("rate", "engine, 1e9/s", ".2f"),
    Column("numpy", "NumPy engine", ".2f"),
    Column("plain", "plain blocks", ".2f"),
    Column("limit", "limit", ".2f"),
    Column("by_numpy", "/ NumPy", ".2f"),
    Column("by_plain", "/ plain", ".2f"),
    Column("by_limit", "/ limit", ".2f"),
)


def cases(run: Run) -> list[tuple[int, int, int]]:
    """Return d, degree and n of what is measured."""
    if run.size == "tiny":
        return [(8, 6, 500)]
    grid = [(d, s, min(CENTERS, full_dimension(s, d))) for d, s in product(FEATURES, DEGREES)]
    if run.size == "quick":
        return [case for case in grid if case[:2] in [*AT, (2, 9), (4, 3), (50, 3), (784, 3)]]
    return grid + [(d, s, n) for d, s in AT for n in BY_CENTERS]


def measure(run: Run) -> Report:
    """Sweep over all shapes and both types."""
    rows: list[Row] = []
    with Pool(run.threads) as pool:
        for d, degree, n in cases(run):
            say(f"d = {d}, degree {degree}, n = {n}")
            rows += [_row(run, pool, d, degree, n, dtype) for dtype in ("float32", "float64")]
    kernels = "" if has_kernels() else " (no numba kernels: both engines are the same)"
    title = f"A sweep of one problem, 1e9 features per second on {run.threads} threads{kernels}"
    report = Report([Table("", title, rows, COLUMNS)], _targets(rows))
    if run.size != "tiny":
        report.pictures[""] = _picture(rows)
    return report


def _picture(rows: list[Row]) -> Any:
    """Draw the rates over the number of features, at one degree."""
    content = {}
    for dtype in ("float32", "float64"):
        own = [row for row in rows if row["degree"] == SHOWN and row["dtype"] == dtype]
        first = {row["d"]: row for row in reversed(own)}  # of several n the first
        by_features = [first[d] for d in sorted(first)]
        content[f"degree {SHOWN}, {dtype}"] = lines_of(by_features, "d", LINES)
    return panels(content, 2 * ["features d"], "1e9 features per second")


def _row(run: Run, pool: Pool, d: int, degree: int, n: int, dtype: str) -> Row:
    shape = Shape(_rows(run, d, n), d, degree, n, dtype)
    bench = Bench(shape, pool)
    works = {
        "rate": bench.sweep,
        "numpy": Bench(shape, pool, fused=False).sweep,
        "plain": plain_blocks(bench, run.threads),
    }
    times = best_times(works, run.pick(1, 3, 3))
    features = shape.m * n
    rates = {name: features / seconds / 1e9 for name, seconds in times.items()}
    rates["limit"] = limit(d, degree, dtype, run.threads) / 1e9
    ratios = {f"by_{name}": rates["rate"] / rates[name] for name in ("numpy", "plain", "limit")}
    about = {"d": d, "degree": degree, "n": n, "dtype": dtype, "rows": shape.m}
    return about | rates | ratios


def _rows(run: Run, d: int, n: int) -> int:
    """Return so many rows that a sweep takes some tenths of a second, whatever d and n."""
    arithmetic = run.pick(2e7, 1e9, 8e9) / (d + 12)
    return int(min(max(arithmetic / n, run.pick(2_048, 16_384, 65_536)), 1_000_000))


def _targets(rows: list[Row]) -> list[Target]:
    main = next(row for row in rows if all(row[key] == HEADLINE[key] for key in HEADLINE))
    least, at = min(((row["by_numpy"], row) for row in rows), key=lambda pair: pair[0])
    vectors = "" if has_avx512() else " (aimed at two AVX-512 cores, which these are not)"
    where = f"d = {at['d']}, degree {at['degree']}, n = {at['n']}, {at['dtype']}"
    rate = Target(f"features per second{vectors}", 1e9 * main["rate"], AIM, True, ".2g")
    found = [rate]
    if few := [row for row in rows if row["n"] <= FEW]:
        row = min(few, key=lambda row: float(row["by_limit"]))
        at_least = f"d = {row['d']}, n = {row['n']}, {row['dtype']}"
        name = f"share of the limit up to n = {FEW}, at its least ({at_least})"
        found.append(Target(name, row["by_limit"], MIN_SHARE, True))
    return [
        *found,
        Target("times plain NumPy blocks", main["by_plain"], MIN_SPEEDUP, True),
        Target(f"times the NumPy engine, at its least ({where})", least, NO_SLOWER, True),
    ]
