"""The loops of the spline kernel: comparisons of ranks per second, on one thread.

A comparison is one rank of a row with that of a center: a maximum and an addition. Beside the loop
are a limit, which is as many maxima and additions on numbers that stay in registers, and the loop
of the polynomial kernel. Whole features, rows to be scaled, are compared with NumPy's.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np

from harness.engines import feature_map
from harness.kernels import has_kernels
from harness.report import Column, Report, Row, Table, Target
from harness.run import Run
from harness.timing import Work, best_times, blas_threads, say
from polysift.engine.compiled import BLAS_PRODUCT_BYTES, CompiledRows
from polysift.features.feature_map import BlockFeatures

COLUMNS_OF_ROWS = (2, 4, 8, 16, 21, 54, 100, 200)
CENTERS = (200, 2000)
DEGREE = 2

UNROLLED = 16
"""Up to so many columns the polynomial kernel has a loop of its own; beyond, BLAS."""

HALF_OF_THE_LIMIT, AS_THE_LOOP, AS_BLAS = 0.5, 1.2, 2.5
"""Aims: the share of the limit, and the time over that of the polynomial kernel."""

BLOCKS = 4
"""Blocks of rows that are computed in turn."""

CHAIN, LANES = 8, 512

COLUMNS = (
    Column("d", "d"),
    Column("n", "n"),
    Column("dtype", "rows are"),
    Column("rate", "loop, 1e9/s", ".1f"),
    Column("limit", "limit", ".1f"),
    Column("by_limit", "/ limit", ".2f"),
    Column("over_polynomial", "time / polynomial features", ".2f"),
    Column("by_numpy", "features, times NumPy's", ".1f"),
)


def measure(run: Run) -> Report:
    """Time the loops over all shapes and both types."""
    if not has_kernels():
        return Report(text="The loops need numba.")
    shapes = product(run.pick((8,), (8, 21), COLUMNS_OF_ROWS), run.pick((200,), CENTERS, CENTERS))
    rows: list[Row] = []
    with blas_threads(1):
        for d, n in shapes:
            say(f"d = {d}, n = {n}")
            rows += [_row(run, d, n, dtype) for dtype in ("float32", "float64")]
    title = "1e9 comparisons of ranks per second, on one thread"
    return Report([Table("", title, rows, COLUMNS)], _targets(rows))


def _row(run: Run, d: int, n: int, dtype: str) -> Row:
    X = np.random.default_rng(0).random((BLOCKS * _block_rows(n, dtype), d)).astype(dtype)
    spline = BlockFeatures(feature_map(X, "spline", DEGREE, n), dtype)
    scaled, C, ranks = np.array(spline.rows(X)), spline.C1, spline.kernel.ranks
    loops, A = CompiledRows(spline), np.zeros((len(X), n), dtype)
    subtract = import_module("polysift.engine.compiled_features").subtract_larger

    def compare() -> None:
        for lo in range(0, len(X), len(X) // BLOCKS):
            own = slice(lo, lo + len(X) // BLOCKS)
            subtract(scaled[own], C, ranks, A[: own.stop - lo])

    times = best_times(
        {
            "loop": compare,
            "polynomial": _polynomial(X, n, A),
            "features": lambda: loops.features(X, A),
            "numpy": lambda: spline(X, A),
        },
        run.pick(3, 30, 60),
    )
    rate, limit = len(X) * n * ranks / times["loop"], _larger(dtype)
    return {
        "d": d,
        "n": n,
        "dtype": dtype,
        "rate": rate / 1e9,
        "limit": limit / 1e9,
        "by_limit": rate / limit,
        "over_polynomial": times["loop"] / times["polynomial"],
        "by_numpy": times["numpy"] / times["features"],
    }


def _block_rows(n: int, dtype: str) -> int:
    """Return the rows of a block, as ``CompiledRows`` has them."""
    rows = BLAS_PRODUCT_BYTES // (n * np.dtype(dtype).itemsize)
    return int(np.clip(rows // 8 * 8, 64, 2048))


def _polynomial(X: np.ndarray, n: int, A: np.ndarray) -> Work:
    """Return the features of the polynomial kernel, of rows that are scaled already, by blocks."""
    rows, d = len(X) // BLOCKS, X.shape[1]
    made = BlockFeatures(feature_map(X, "polynomial", DEGREE, n), X.dtype)
    scaled, C = np.array(made.rows(X)), made.C1
    loops = import_module("polysift.engine.compiled_loops")
    power = import_module("polysift.engine.compiled_features").raise_to_power
    none, nowhere = np.empty(0), np.empty((rows, 0), np.int64)
    tile = loops.tile_rows(n, X.itemsize)
    rest = (none.astype(X.dtype), none), (none, none, none), (1.0, 1.0, none)

    def work() -> None:
        for lo in range(0, len(X), rows):
            own, out = scaled[lo : lo + rows], A[:rows]
            if d <= loops.MAX_UNROLLED_COLUMNS:
                loops.walk(d, DEGREE)(loops.FEATURES, own, C, out, tile, *rest)
            else:
                np.matmul(own, C, out=out)
                power(out, C, nowhere, DEGREE)

    return work


@cache
def _larger(dtype: str) -> float:
    """Return maxima and additions per second on numbers that stay in registers."""
    chain = import_module("numba").njit(fastmath={"nsz"})(_chain)
    rounds, numbers = 2_000, np.random.default_rng(0).random((2, LANES)).astype(dtype)
    points = np.linspace(0, 1, CHAIN).astype(dtype)
    seconds = best_times({"chain": lambda: chain(*numbers, *points, rounds)}, 60)["chain"]
    return rounds * LANES * CHAIN / seconds


def _chain(
    ranks: Any,
    sums: Any,
    a: Any,
    b: Any,
    c: Any,
    d: Any,
    e: Any,
    f: Any,
    g: Any,
    h: Any,
    rounds: int,
) -> None:
    """Add the larger of each number and CHAIN others; a loop would keep vectors from being used."""
    for _ in range(rounds):
        for j in range(ranks.size):
            x, total = ranks[j], sums[j]
            total = total - (a if a > x else x)
            total = total - (b if b > x else x)
            total = total - (c if c > x else x)
            total = total - (d if d > x else x)
            total = total - (e if e > x else x)
            total = total - (f if f > x else x)
            total = total - (g if g > x else x)
            total = total - (h if h > x else x)
            sums[j] = total


def _targets(rows: list[Row]) -> list[Target]:
    worst = min(rows, key=lambda row: row["by_limit"])
    where = f"d = {worst['d']}, n = {worst['n']}, {worst['dtype']}"
    targets = [
        Target(
            f"share of the limit, at its least ({where})",
            worst["by_limit"],
            HALF_OF_THE_LIMIT,
            True,
        )
    ]
    for words, aim, own in (
        (f"up to d = {UNROLLED}", AS_THE_LOOP, [row for row in rows if row["d"] <= UNROLLED]),
        ("beyond", AS_BLAS, [row for row in rows if row["d"] > UNROLLED]),
    ):
        most = max((row["over_polynomial"] for row in own), default=float("nan"))
        targets.append(Target(f"time over the polynomial kernel's, {words}", most, aim, False))
    return targets
