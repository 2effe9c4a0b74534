"""What a sweep is compared with: plain NumPy blocks, and a limit set by the arithmetic alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from harness.engines import GAMMA, RELAX, Bench
from harness.timing import Work, best_times, blas_threads

PLAIN_ROWS = 128

CHAIN, LANES = 8, 256
"""Multiply-adds in a row, and numbers at a time: more of either are no faster here."""


def plain_blocks(bench: Bench, threads: int) -> Work:
    """Return the sweep as one writes it with NumPy: fused over blocks of 128 rows, and threads.

    It has no statistics, no weights and no scaling to do: its rows are scaled already.
    """
    shape, dtype = bench.shape, bench.shape.dtype
    C = np.column_stack([bench.map.centers, np.ones(shape.n)]).T.astype(dtype)
    X = np.column_stack([bench.map.scaler.transform(bench.X), np.ones(shape.m)]).astype(dtype)
    y = np.where(bench.codes, 1.0, -1.0)
    t, u = np.ones(shape.m), bench.u[:, 0].astype(dtype)

    def visit(start: int, stop: int) -> np.ndarray:
        r, Z, base = np.zeros(shape.n), *np.empty((2, PLAIN_ROWS, shape.n), dtype)
        for lo in range(start, stop, PLAIN_ROWS):
            own = slice(lo, min(lo + PLAIN_ROWS, stop))
            A = np.matmul(X[own], C, out=Z[: own.stop - lo])
            power(A, shape.degree, base[: own.stop - lo])
            f = (A @ u) * y[own]
            k = np.clip(1.0 - t[own], 0.0, 1.0 / GAMMA)
            t[own] = RELAX * (f - k) + (1.0 - RELAX) * t[own]
            k = np.clip(1.0 - t[own], 0.0, 1.0 / GAMMA)
            r += A.T @ ((t[own] + 2.0 * k - f) * y[own]).astype(dtype)
        return r

    borders = np.linspace(0, shape.m, 8 * threads + 1).astype(int)

    def work() -> np.ndarray:
        with blas_threads(1), ThreadPoolExecutor(threads) as pool:
            return np.sum(list(pool.map(visit, borders[:-1], borders[1:])), axis=0)

    return work


def power(A: np.ndarray, degree: int, base: np.ndarray) -> None:
    """Raise to an integer power in place, by repeated multiplication."""
    np.copyto(base, A)
    for bit in bin(degree)[3:]:
        A *= A
        if bit == "1":
            A *= base


def operations(d: int, degree: int) -> int:
    """Return the multiply-adds of one feature: its product, its power, and both its uses."""
    multiplications = degree.bit_length() - 1 + degree.bit_count() - 1
    return d + 1 + multiplications + 2


def limit(d: int, degree: int, dtype: str, threads: int) -> float:
    """Return the features per second at which the arithmetic alone could go; NaN without numba."""
    if find_spec("numba") is None:
        return np.nan
    return _multiply_adds(dtype, threads) / operations(d, degree)


@cache
def _multiply_adds(dtype: str, threads: int) -> float:
    """Return multiply-adds per second on numbers that stay in registers and in the first cache."""
    chain = import_module("numba").njit(nogil=True, fastmath={"contract"})(_chain)
    rounds = 200_000
    parts = [np.ones((2, LANES), dtype) for _ in range(threads)]
    factor = np.dtype(dtype).type(0.5)

    def work() -> None:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda part: chain(part[0], part[1], factor, rounds), parts))

    return threads * rounds * LANES * CHAIN / best_times({"chain": work}, 7)["chain"]


def _chain(inputs: Any, outputs: Any, factor: Any, rounds: int) -> None:
    """Do CHAIN multiply-adds to each number; a loop would keep the compiler from using vectors."""
    for _ in range(rounds):
        for j in range(inputs.size):
            c, a = inputs[j], outputs[j]
            a = a * factor + c
            a = a * factor + c
            a = a * factor + c
            a = a * factor + c
            a = a * factor + c
            a = a * factor + c
            a = a * factor + c
            a = a * factor + c
            outputs[j] = a
