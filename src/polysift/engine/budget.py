"""How much memory there is, how much a fit takes, and how to make it take less."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from polysift.data.source import DataSource
from polysift.engine.sampling import PANEL, Sample, panel_rows
from polysift.features.statistics import SKETCH_SIZE
from polysift.runtime.parallel import FAN_IN, shard_spans

UNITS = {"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}

STORED_SHARE = 0.25
"""The share of the memory limit that kept features may take."""

BLOCK_BUFFERS = 24e6
"""What a thread holds for blocks of any shape: features, scratch, rows, margins."""


def free_memory() -> int:
    """Return the bytes this process may still take: the machine's, or its container's if less."""
    free = _available()
    for folder in _control_groups():
        for limit, used in (
            ("memory.max", "memory.current"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):
            try:
                allowed, taken = (int(_read(f"{folder}/{name}")) for name in (limit, used))
            except (OSError, ValueError):  # no such file, or "max"
                continue
            free = min(free, allowed - taken)
    return max(free, 0)


def _read(path: str) -> str:
    with open(path, "rb", buffering=0) as file:  # pathlib takes several times as long
        return file.read().decode()


def _control_groups() -> tuple[str, ...]:
    """Return the folders of this process's control groups and their ancestors (Linux)."""
    try:
        return _folders(_read("/proc/self/cgroup"))
    except OSError:
        return ()


@lru_cache(1)
def _folders(cgroup: str) -> tuple[str, ...]:
    """Return the folders that ``/proc/self/cgroup`` speaks of, and their ancestors."""
    root = Path("/sys/fs/cgroup")
    groups = []
    for line in cgroup.splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers in ("", "memory"):
            own = root / controllers / path.lstrip("/")
            groups += [
                own,
                *(parent for parent in own.parents if root in (parent, *parent.parents)),
            ]
    return tuple(map(str, groups))


def _available() -> int:
    try:
        text = _read("/proc/meminfo")
        return int(re.search(r"MemAvailable:\s+(\d+) kB", text).group(1)) * 1024  # type: ignore[union-attr]
    except (OSError, AttributeError):
        pass
    try:  # no count of what is free: half of what there is
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return 2 * 2**30


def parse_memory_limit(value: Any) -> int:
    """Return bytes: of "2GB", a number, a fraction of what is free, or None for half of that."""
    if value is None:
        return free_memory() // 2
    if isinstance(value, str):
        match = re.fullmatch(r"\s*([0-9.]+)\s*([KMGT]?I?B?)\s*", value.upper())
        if match and match[2] in UNITS and match[1].count(".") <= 1 and float(match[1]) > 0:
            return int(float(match[1]) * UNITS[match[2]])
    elif isinstance(value, Real) and not isinstance(value, bool) and np.isfinite(float(value)):
        number = float(value)
        if 0 < number <= 1 and not isinstance(value, int):
            return int(number * free_memory())
        if number >= 1:
            return int(number)
    raise ValueError(
        'memory_limit must be a size such as "2GB", a number of bytes, or a fraction of the free '
        f"memory such as 0.5; got {value!r}."
    )


@dataclass(frozen=True)
class Shape:
    """What determines the memory of a fit: rows, features, centers, label columns, and so on.

    ``fold_parts`` counts the Gram matrices that are summed in one pass, and ``problems`` the
    solvers that share a sweep: both are 1 for a plain fit. ``sample`` says which rows stand for all
    in the Gram matrix, if not all do, ``hessians`` whether label columns have Hessians, and
    ``subsample`` on how many rows Newton's method begins.
    """

    rows: int
    features: int
    centers: int
    columns: int
    itemsize: int
    weighted: bool
    quantiles: bool
    unit_bytes: int
    fold_parts: int = 1
    problems: int = 1
    hessians: bool = False
    subsample: int = 0
    sample: Sample | None = None
    sparse: bool = False

    @classmethod
    def of(
        cls, source: DataSource, centers: int, columns: int, *, weighted: bool, quantiles: bool
    ) -> Shape:
        """Return the shape of a fit on a source."""
        itemsize = source.dtype.itemsize
        return cls(
            source.n_rows,
            source.n_features,
            centers,
            columns,
            itemsize,
            weighted,
            quantiles,
            source.unit_bytes,
            sparse=source.sparse,
        )


@dataclass(frozen=True)
class Execution:
    """How the passes over the rows are executed; the model does not depend on the first three.

    Attributes
    ----------
    threads : int
        Threads over shards.
    in_flight : int
        Shards that are read or computed at once, at most.
    spill : bool
        Whether the state of the rows lies in a temporary file.
    keep_features : bool
        Whether the features are kept in memory from the first sweep on.
    compiled : bool
        Whether the compiled loops are used.
    float64 : bool
        Whether features are float64 also of float32 rows.
    """

    threads: int = 1
    in_flight: int = 1
    spill: bool = False
    keep_features: bool = False
    compiled: bool = False
    float64: bool = False


SERIAL = Execution()
"""One thread, NumPy, nothing kept."""


def state_bytes(shape: Shape) -> int:
    """Return the size of the solver's per-row state."""
    return 8 * shape.rows * shape.columns * shape.problems


def stored_bytes(shape: Shape) -> int:
    """Return the size of all features."""
    return shape.rows * shape.centers * shape.itemsize


def sample_bytes(shape: Shape, rows: int) -> int:
    """Return the size of the rows that stand for all; sparse ones are taken to be mostly zero."""
    row = shape.features * shape.itemsize // (8 if shape.sparse else 1)
    return 2 * rows * (row + 8)  # in parts, and their pieces


def tree_levels(n_shards: int) -> int:
    """Return how many partial sums over shards a tree of them keeps."""
    return 1 + int(np.log(max(n_shards, 2)) / np.log(FAN_IN))


def peak_bytes(
    shape: Shape, execution: Execution, *, shard_rows: int | None = None, sums: int | None = None
) -> int:
    """Return the most that a fit holds at once, beside its input.

    The rows of the largest shard, and how many sums over shards are kept, follow from the number
    of rows, unless these are but some rows of a larger fit.
    """
    shards = shard_spans(shape.rows)
    shard_rows = shard_rows or max(stop - start for start, stop in shards)
    n, d, columns = shape.centers, shape.features, shape.columns * shape.problems
    square = 8 * n * (n + shape.columns)
    waiting = execution.in_flight + (sums or tree_levels(len(shards)))

    kept = shape.rows * (1 + (8 if shape.weighted else 0) + (4 if shape.fold_parts > 1 else 0))
    kept += 0 if execution.spill else state_bytes(shape)
    kept += stored_bytes(shape) if execution.keep_features else 0
    # Rows that arrive in files: a unit in hand, the next one, about as much again to decode it,
    # what Arrow's allocator keeps, and the shards cut from them. Four units fit what was measured.
    reading = 4 * shape.unit_bytes
    if shape.unit_bytes:
        reading += execution.in_flight * shard_rows * d * shape.itemsize
    per_thread = min(BLOCK_BUFFERS, 64 * shard_rows * (n + d))
    per_thread += 8 * n * min(2048, shard_rows)
    per_thread += 80 * columns * min(max(1024, min(2**17 // columns, 8192)), shard_rows)
    survey = 4 * shape.rows + waiting * 8 * n * d
    survey += execution.threads * 4 * 8 * min(max(2**20, 64 * d), shape.rows * d)
    if shape.quantiles:
        survey += waiting * 2 * 8 * d * min(SKETCH_SIZE, shape.rows)
    gram = execution.threads * (per_thread + square) + waiting * square * shape.fold_parts
    if shape.sample is not None:
        gram = execution.threads * (per_thread + 8 * n * PANEL[1])
        gram += max(shape.fold_parts, 2) * square  # or that of the first sample, with its factor
        gram += sample_bytes(shape, shape.sample.first + shape.sample.second) + 8 * n * panel_rows(
            n
        )
    solve = (shape.fold_parts + 1 + shape.problems) * square + execution.threads * per_thread
    solve += waiting * 8 * n * (columns - 1)
    if (
        shape.hessians
    ):  # coordinates, and for each column a Hessian, its inverse and what makes them
        solve += 8 * n * n * (shape.problems + 2 * columns + 2 + execution.threads + waiting)
    if shape.subsample:
        kept += sample_bytes(shape, shape.subsample) + 16 * columns * shape.subsample
    return int(kept + reading + max(survey, gram, solve))


def fit_in(limit: int, shape: Shape, threads: int, *, keep_features: bool = False) -> Execution:
    """Return the fastest way to work within ``limit`` bytes, or raise with the knob to turn.

    ``keep_features`` says that keeping them pays, which is done where they take a small share.
    """
    for execution in _choices(threads):
        if peak_bytes(shape, execution) <= limit:
            return _keeping(limit, shape, execution) if keep_features else execution
    least = peak_bytes(shape, Execution(1, 1, spill=True))
    n = shape.centers
    while n > 1 and peak_bytes(replace(shape, centers=n), Execution(1, 1, spill=True)) > limit:
        n = n * 9 // 10
    remedy = f"Set memory_limit to {megabytes(least)} or more"
    if peak_bytes(replace(shape, centers=n), Execution(1, 1, spill=True)) <= limit:
        remedy += f", or n_centers to {n} or less"
    raise MemoryError(
        f"This fit needs {megabytes(least)} at the least ({shape.rows:,} rows, {shape.features} "
        f"features, {shape.centers} centers), but memory_limit allows {megabytes(limit)}. {remedy}."
    )


def _keeping(limit: int, shape: Shape, execution: Execution) -> Execution:
    keeping = replace(execution, keep_features=True)
    small = stored_bytes(shape) <= STORED_SHARE * limit
    return keeping if small and peak_bytes(shape, keeping) <= limit else execution


def fit_problems(
    limit: int,
    shape: Shape,
    per_candidate: int,
    wanted: int,
    threads: int,
    *,
    keep_features: bool = False,
) -> tuple[Execution, int]:
    """Return how to execute, and how many candidates of ``per_candidate`` problems to advance.

    Fewer threads come before fewer candidates, and a spilled state last, with one candidate.
    """
    candidates = max(wanted, 1)
    while candidates > 1:
        wide = replace(shape, problems=candidates * per_candidate)
        for execution in _choices(threads):
            if not execution.spill and peak_bytes(wide, execution) <= limit:
                return (
                    _keeping(limit, wide, execution) if keep_features else execution
                ), candidates
        candidates = -(-candidates // 2)
    return fit_in(
        limit, replace(shape, problems=per_candidate), threads, keep_features=keep_features
    ), 1


def _choices(threads: int) -> list[Execution]:
    """Return ways to work, fastest first: fewer shards in flight, then a spilled state."""
    counts = sorted({threads, max(1, threads // 2), 1}, reverse=True)
    return [
        Execution(t, flight, spill)
        for spill in (False, True)
        for t in counts
        for flight in sorted({2 * t, t}, reverse=True)
    ]


def megabytes(size: float) -> str:
    """Return a size as text, in MB below a gigabyte and in GB above."""
    if size < 1e7:
        return f"{size / 1e6:,.2f} MB"
    return f"{size / 1e6:,.0f} MB" if size < 1e9 else f"{size / 1e9:,.2f} GB"
