"""Time, taken in turns and the best of some: what others do on the machine then counts least."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from time import perf_counter

import numpy as np
import scipy.linalg  # noqa: F401 - so that the controller below sees scipy's BLAS too
from threadpoolctl import ThreadpoolController

Work = Callable[[], object]


def say(text: str) -> None:
    """Tell on standard error how far it is."""
    print(f"  {text}", file=sys.stderr, flush=True)


def seconds_of(work: Work) -> float:
    """Return the seconds that a call takes."""
    began = perf_counter()
    work()
    return perf_counter() - began


def all_times(
    works: Mapping[str, Work], times: int, patience: float = np.inf
) -> dict[str, np.ndarray]:
    """Return the seconds of each of several calls, taken in turns.

    Each is called once before, so that compiling and first touches do not count. What has taken
    longer than ``patience`` in all is called no more.
    """
    for work in works.values():
        work()
    taken: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(times):
        for name, work in works.items():
            if sum(taken[name]) <= patience:
                taken[name].append(seconds_of(work))
    return {name: np.array(values) for name, values in taken.items()}


def best_times(works: Mapping[str, Work], times: int = 3) -> dict[str, float]:
    """Return the least seconds of each, taken in turns."""
    return {name: float(values.min()) for name, values in all_times(works, times).items()}


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


@contextmanager
def blas_threads(count: int) -> Iterator[None]:
    """Let BLAS take so many threads, whatever the environment says."""
    with _blas().limit(limits=count):
        yield


def bare_gram(n: int, threads: int, dtype: str = "float64", size: int = 2**25) -> tuple[Work, int]:
    """Return one large ``A.T @ A`` of ``size`` numbers, and its m n^2."""
    A = np.random.default_rng(0).random((max(size // n, 1), n), dtype=dtype)

    def work() -> None:
        with blas_threads(threads):
            A.T @ A

    return work, A.shape[0] * n * n
