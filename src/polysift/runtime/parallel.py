"""Shards, threads over them, sums that do not depend on the threads, and scratch memory.

A model must be the same, bit for bit, for any number of threads. That takes four things: borders
that depend on the shape of the data alone, BLAS on one thread, partial sums added in a fixed tree,
and one order of work inside a shard. The first three live here.

Scratch memory (``Workspace``) outlives the fit that allocated it: page faults of fresh memory cost
as much as the arithmetic done in it. A fit of 3,000 rows and 200 centers takes 9.6 ms with memory
that is used again, and 13.9 ms without.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, reduce
from itertools import islice, pairwise
from math import prod
from typing import Any, Generic, TypeVar

import joblib
import numpy as np
import numpy.typing as npt
import scipy.linalg  # noqa: F401 - so that the controller below sees scipy's BLAS too
from threadpoolctl import ThreadpoolController

from polysift.runtime.types import FloatArray

T = TypeVar("T")
R = TypeVar("R")

Span = tuple[int, int]
"""A run of rows: the first, and the one after the last."""

MIN_SHARD_ROWS, MAX_SHARD_ROWS, USUAL_SHARDS = 2048, 65536, 64
"""The rows of a shard, and the number of shards while both bounds on their rows allow it."""

FAN_IN = 8
"""How many partial sums a node of the tree of sums adds."""

MIN_THREADED_FEATURES = 2**20
"""With fewer features to compute, handing work to threads costs more than doing it."""


def shard_spans(n_rows: int) -> list[Span]:
    """Cut ``n_rows`` rows into shards ``(start, stop)`` of equal size, give or take a row.

    The number of shards depends on the number of rows alone: as many as keep a shard at 2048 rows
    or more, up to 64; beyond 64 x 65536 rows, as many as keep it at 65536 or less.
    """
    few, many = -(-n_rows // MAX_SHARD_ROWS), -(-n_rows // MIN_SHARD_ROWS)
    count = max(min(USUAL_SHARDS, many), few, 1)
    borders = [i * n_rows // count for i in range(count + 1)]
    return [span for span in pairwise(borders) if span[0] < span[1]]


def block_spans(span: Span, rows: int) -> Iterator[Span]:
    """Cut a shard into blocks of ``rows`` rows; the last one may be shorter."""
    start, stop = span
    for lo in range(start, stop, rows):
        yield lo, min(lo + rows, stop)


class TreeSum(Generic[T]):
    """A sum in a fixed tree: runs of eight parts, then runs of eight of those, and so on.

    At most one partial sum per level is alive, and a worker that owns an aligned run of eight (or
    64, ...) parts can add those up by itself. ``levels`` is all there is to save and to go on from.

    Parameters
    ----------
    add : callable
        ``add(total, part)`` returns the sum; it may work in place on ``total``.
    levels : list of (int, partial sum or None), optional
        The levels of an interrupted sum: how many parts of its run each has, and their sum.
    """

    def __init__(
        self, add: Callable[[T, T], T], levels: list[tuple[int, T | None]] | None = None
    ) -> None:
        self._add = add
        self.levels = levels or []

    def push(self, part: T, level: int = 0, count: int = 1) -> None:
        """Add the next part, or a sum of parts as ``partial_sums`` returns it."""
        while level >= len(self.levels):
            self.levels.append((0, None))
        before, total = self.levels[level]
        total = part if total is None else self._add(total, part)
        if before + count == FAN_IN:
            self.levels[level] = (0, None)
            self.push(total, level + 1)
        else:
            self.levels[level] = (before + count, total)

    def result(self) -> T:
        """Return the sum of all parts; the object must not be used any more."""
        remaining = [total for _, total in reversed(self.levels) if total is not None]
        if not remaining:
            raise ValueError("A sum needs at least one part.")
        return reduce(self._add, remaining)


def tree_sum(parts: Iterable[T], add: Callable[[T, T], T]) -> T:
    """Sum ``parts`` in the tree of ``TreeSum``."""
    tree = TreeSum(add)
    for part in parts:
        tree.push(part)
    return tree.result()


Partial = tuple[int, int, T]
"""A level of a tree, how many parts of a run there, and their sum."""


def partial_sums(first: int, parts: Iterable[T], add: Callable[[T, T], T]) -> list[Partial[T]]:
    """Sum a run of parts, the first of which is number ``first``, as far as ``TreeSum`` would.

    Pushed one after the other, what it returns gives the tree the same bits as the parts
    themselves: one sum for each aligned run of eight, of 64 and so on, and for the beginning of
    the next one; parts before the first aligned run stay as they are.
    """
    sums: list[Partial[T]] = []
    begun: list[tuple[int, T | None]] = []

    def push(number: int, part: T, level: int) -> None:
        if level == len(begun):
            begun.append((0, None))
        count, total = begun[level]
        if total is None and number % FAN_IN:
            sums.append((level, 1, part))
            return
        total = part if total is None else add(total, part)
        if count + 1 < FAN_IN:
            begun[level] = count + 1, total
        else:
            begun[level] = 0, None
            push(number // FAN_IN, total, level + 1)

    for number, part in enumerate(parts, first):
        push(number, part, 0)
    for level, (count, total) in reversed(list(enumerate(begun))):
        if total is not None:
            sums.append((level, count, total))
    return sums


def usable_jobs(n_jobs: int | None) -> int:
    """Return the number of threads that ``n_jobs`` asks for.

    None means all cores this process may use (its affinity and its container's quota count), but
    one inside a joblib worker, whose siblings use the others. A negative number counts from the
    end: -1 means all cores.
    """
    if n_jobs is None:
        backend, _ = joblib.parallel.get_active_backend()
        return 1 if backend.nesting_level else int(joblib.cpu_count())
    if n_jobs < 0:
        return max(1, int(joblib.cpu_count()) + 1 + n_jobs)
    return n_jobs


class Pool:
    """Threads that map a function over items and hand the results back in order.

    With one thread everything runs in the caller's. At most ``in_flight`` items (two per thread by
    default) are worked on or wait at a time, so memory is bounded whatever their number.
    """

    def __init__(self, n_threads: int, in_flight: int | None = None) -> None:
        self.n_threads = n_threads
        self._in_flight = in_flight or 2 * n_threads
        self._executor: ThreadPoolExecutor | None = None  # until there is work for it

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)

    def map(
        self,
        fn: Callable[[T], R],
        items: Iterable[T],
        *,
        work: int = MIN_THREADED_FEATURES,
        together: int = 1,
    ) -> Iterator[R]:
        """Yield ``fn(item)`` in the order of ``items``.

        Parameters
        ----------
        fn : callable
            The function.
        items : iterable
            Its arguments.
        work : int
            The number of features to compute; where it is small, no thread is used.
        together : int, default=1
            How many items a thread takes at a time.
        """
        if self.n_threads < 2 or work < MIN_THREADED_FEATURES:
            yield from map(fn, items)
            return
        if together > 1:
            left = iter(items)
            runs = iter(lambda: list(islice(left, together)), [])
            for found in self.map(lambda run: [fn(item) for item in run], runs, work=work):
                yield from found
            return
        if self._executor is None:
            self._executor = ThreadPoolExecutor(self.n_threads, initializer=_limit_here)
        waiting: deque[Future[R]] = deque()
        try:
            for item in items:
                waiting.append(self._executor.submit(fn, item))
                if len(waiting) >= self._in_flight:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:  # the consumer stopped, or a task failed: start no further ones
            for future in waiting:
                future.cancel()


@cache
def _blas() -> list[Any]:
    # Found once in the life of a process: that takes a millisecond, and a limit a microsecond.
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


def _threaded_blas() -> list[tuple[Any, int]]:
    """Return the libraries that use several threads, each with their number."""
    counted = ((library, library.num_threads) for library in _blas())
    return [(library, threads) for library, threads in counted if threads not in (1, None)]


def _limit_all(limits: Iterable[tuple[Any, int]]) -> None:
    """Set the threads of BLAS libraries, whichever thread did so before.

    Since threadpoolctl 3.8 the first thread to set a limit owns it, and those of other threads are
    ignored without a word, until that one gives it up.
    """
    for library, threads in limits:
        give_up = getattr(library, "clear_controlling_thread", lambda force: None)
        give_up(force=True)
        library.set_num_threads(threads)
        give_up(force=True)


def _limit_here() -> None:
    """Keep BLAS on one thread in a thread of a pool: some libraries keep a limit per thread."""
    if _blas_users:
        _limit_all((library, 1) for library, _ in _threaded_blas())


_blas_lock = threading.Lock()
_blas_users = 0
_blas_before: list[tuple[Any, int]] = []


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Keep BLAS on one thread; nested and concurrent uses share one limit.

    The setting belongs to the process, so two fits at once must not undo each other's: the first
    one in sets it, the last one out restores it.
    """
    global _blas_users, _blas_before
    with _blas_lock:
        if _blas_users == 0:
            _blas_before = _threaded_blas()
            _limit_all((library, 1) for library, _ in _blas_before)
        _blas_users += 1
    try:
        yield
    finally:
        with _blas_lock:
            _blas_users -= 1
            if _blas_users == 0:
                _limit_all(_blas_before)
                _blas_before = []


MIN_SPARE_BYTES, MAX_SPARES_BYTES = 2**16, 2**25
"""The smallest buffer that is kept as a spare (the allocator has smaller ones at hand), and the
bytes of all spares together."""

Buffer = npt.NDArray[np.uint8]

_spares: dict[int, Buffer] = {}  # by identity; single operations on a dict need no lock


class Workspace(threading.local):
    """Named scratch arrays, one set per thread, allocated once and used again."""

    def __init__(self) -> None:
        self._buffers: dict[str, Buffer] = {}

    def array(self, name: str, shape: tuple[int, ...], dtype: Any) -> FloatArray:
        """Return an uninitialised C-ordered array; the next call with this name overwrites it."""
        size = prod(shape) * np.dtype(dtype).itemsize
        buffer = self._buffers.get(name)
        if buffer is None or len(buffer) < size:
            buffer = self._buffers[name] = _lend(size)
        return buffer[:size].view(dtype).reshape(shape)


class _Loan:
    """The owner of a lent buffer, which becomes a spare when the last array in it is gone.

    numpy keeps the owner alive as long as any array lies in its memory, so a buffer is never lent
    while an array in it is in use.
    """

    def __init__(self, memory: Buffer) -> None:
        self._memory = memory
        self.__array_interface__ = memory.__array_interface__

    def __del__(self) -> None:
        spare_bytes = sum(map(len, list(_spares.values())))
        if len(self._memory) + spare_bytes <= MAX_SPARES_BYTES:
            _spares[id(self._memory)] = self._memory


def _lend(size: int) -> Buffer:
    """Return at least ``size`` bytes, and at most twice as many: a spare, or fresh memory."""
    if size < MIN_SPARE_BYTES:
        return np.empty(size, np.uint8)
    fitting = [(len(b), key) for key, b in list(_spares.items()) if size <= len(b) <= 2 * size]
    for _, key in sorted(fitting):
        memory = _spares.pop(key, None)
        if memory is not None:  # else another thread was faster
            return np.asarray(_Loan(memory))
    return np.asarray(_Loan(np.empty(size, np.uint8)))
