"""The memory budget of a fit: the memory limit, the expected peak, the execution that fits.

``parse_memory_limit`` turns the parameter ``memory_limit`` into bytes. ``Shape`` holds the sizes
from which ``peak_bytes`` estimates the memory of a fit, and ``fit_in`` and ``fit_problems`` choose
the fastest ``Execution`` whose estimate is within the limit.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np

from polysift.data.source import DataSource
from polysift.engine.sampling import MAX_PANEL_COLUMNS, Sample, panel_rows
from polysift.features.statistics import sketch_size
from polysift.runtime.parallel import FAN_IN, shard_spans

UNITS = {"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}

MAX_KEPT_FEATURES_SHARE = 0.25
"""The largest share of the memory limit that kept features may occupy."""

BLOCK_BUFFER_BYTES = 24e6
"""The most that a thread holds for a block of rows: features, scratch, rows, margins."""


def free_memory() -> int:
    """Return the bytes that this process may still allocate, within its container's limit."""
    free = _available()
    for folder in _control_groups():
        for names in (("max", "current"), ("limit_in_bytes", "usage_in_bytes")):
            try:
                allowed, in_use = (int(_read(f"{folder}/memory.{name}")) for name in names)
            except (OSError, ValueError):  # no such file, or "max"
                continue
            free = min(free, allowed - in_use)
    return max(free, 0)


def _read(path: str) -> str:
    with open(path, "rb", buffering=0) as file:  # pathlib is several times slower
        return file.read().decode()


def _control_groups() -> tuple[str, ...]:
    """Return the folders of this process's control groups and their ancestors (Linux)."""
    try:
        return _folders(_read("/proc/self/cgroup"))
    except OSError:
        return ()


@lru_cache(1)
def _folders(cgroup: str) -> tuple[str, ...]:
    """Return the folders that ``/proc/self/cgroup`` names, and their ancestors."""
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
    """Return the free bytes of this machine."""
    try:
        text = _read("/proc/meminfo")
        return int(re.search(r"MemAvailable:\s+(\d+) kB", text).group(1)) * 1024  # type: ignore[union-attr]
    except (OSError, AttributeError):
        pass
    try:  # free memory is unknown: half of the installed memory
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return 2 * 2**30


def parse_memory_limit(value: Any) -> int:
    """Return a memory limit in bytes.

    Parameters
    ----------
    value : str, int, float or None
        A size such as "2GB", a number of bytes, or a fraction of the free memory; None means half
        of the free memory.
    """
    if value is None:
        return free_memory() // 2
    if isinstance(value, str):
        match = re.fullmatch(r"\s*([0-9.]+)\s*([KMGT]?I?B?)\s*", value.upper())
        if match and match[2] in UNITS and match[1].count(".") <= 1 and float(match[1]) > 0:
            return int(float(match[1]) * UNITS[match[2]])
    elif not isinstance(value, bool) and isinstance(value, Real) and np.isfinite(float(value)):
        number = float(value)
        if 0 < number <= 1 and not isinstance(value, Integral):
            return int(number * free_memory())
        if number >= 1:
            return int(number)
    raise ValueError(
        'memory_limit must be a size such as "2GB", a number of bytes, or a fraction of the free '
        f"memory such as 0.5; got {value!r}."
    )


@dataclass(frozen=True)
class Shape:
    """The sizes on which the memory and the time of a fit depend.

    Attributes
    ----------
    rows, features, centers : int
        The number of rows, of columns of X, and of centers.
    columns : int
        Label columns: 1 for two classes, else one per class.
    itemsize : int
        Bytes of one feature value.
    weighted : bool
        Whether rows have weights.
    quantiles : bool
        Whether the survey estimates quantiles.
    unit_bytes : int
        Bytes of the largest unit that is decoded at once, such as a row group of a file; 0 for
        rows in memory.
    fold_parts : int
        Gram matrices that are summed in one pass; 1 for a plain fit.
    problems : int
        Problems that share a sweep; 1 for a plain fit.
    hessians : bool
        Whether each label column has a Hessian.
    subsample : int
        Rows of the subsample on which Newton's method begins; 0 if it begins on all rows.
    sample : Sample or None
        The sample from which the Gram matrix is estimated; None if it is that of all rows.
    sparse : bool
        Whether the rows are sparse.
    calibrated : bool
        Whether a calibrator is learned from the scores of all rows.
    decoded_once : bool
        Whether only the survey decodes units, and stores the rows for later passes.
    level_bytes : int
        The bytes per row of the levels of categories that the survey collects for folds.
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
    calibrated: bool = False
    decoded_once: bool = False
    level_bytes: int = 0

    @classmethod
    def of(
        cls, source: DataSource, centers: int, columns: int, *, weighted: bool, quantiles: bool
    ) -> Shape:
        """Return the shape of a fit on a source."""
        sizes = source.n_rows, source.n_features, centers, columns, source.dtype.itemsize
        return cls(*sizes, weighted, quantiles, source.unit_bytes, sparse=source.sparse)


@dataclass(frozen=True)
class Execution:
    """How the passes over the rows are executed.

    The model does not depend on ``threads``, ``in_flight``, ``spill`` and ``keep_features``.

    Attributes
    ----------
    threads : int
        Threads that process shards.
    in_flight : int
        The maximal number of shards that are read or computed at once.
    spill : bool
        Whether the per-row state is in a temporary file.
    keep_features : bool
        Whether the features are kept in memory from the first sweep on.
    compiled : bool
        Whether the compiled loops are used.
    compiled_splines : bool
        Whether those loops are used that compute the features of the spline kernel, if no others.
    float64 : bool
        Whether features are float64 even if the rows are float32.
    """

    threads: int = 1
    in_flight: int = 1
    spill: bool = False
    keep_features: bool = False
    compiled: bool = False
    compiled_splines: bool = False
    float64: bool = False


SERIAL = Execution()
"""One thread, NumPy, nothing kept."""


def state_bytes(shape: Shape) -> int:
    """Return the bytes of the per-row state of all problems."""
    return 8 * shape.rows * shape.columns * shape.problems


def features_bytes(shape: Shape) -> int:
    """Return the bytes of the features of all rows."""
    return shape.rows * shape.centers * shape.itemsize


def sample_bytes(shape: Shape, rows: int) -> int:
    """Return the bytes of so many sampled rows; sparse ones are assumed to be mostly zero."""
    row = shape.features * shape.itemsize // (8 if shape.sparse else 1)
    return 2 * rows * (row + 8)  # the parts of each shard, and their concatenation


def tree_levels(n_shards: int) -> int:
    """Return how many partial sums a tree over so many shards holds at once."""
    return 1 + int(np.log(max(n_shards, 2)) / np.log(FAN_IN))


def peak_bytes(
    shape: Shape, execution: Execution, *, shard_rows: int | None = None, sums: int | None = None
) -> int:
    """Return the most bytes that a fit holds at once, beside its input.

    Parameters
    ----------
    shape : Shape
        The sizes of the fit.
    execution : Execution
        How it is executed.
    shard_rows : int, optional
        The rows of the largest shard; by default as in a fit of ``shape.rows`` rows. A worker
        passes it, whose rows are some of those of a larger fit.
    sums : int, optional
        How many partial sums over shards are held at once; by default likewise.
    """
    shards = shard_spans(shape.rows)
    shard_rows = shard_rows or max(stop - start for start, stop in shards)
    waiting = execution.in_flight + (sums or tree_levels(len(shards)))
    # Files: a decoded unit, the next one, about as much again to decode it, what Arrow's allocator
    # keeps, and the shards cut from them. Four units agree with measurements.
    reading = 4 * shape.unit_bytes
    if shape.unit_bytes:
        reading += execution.in_flight * shard_rows * shape.features * shape.itemsize
    per_thread = _thread_bytes(shape, shard_rows)
    survey = _survey_bytes(shape, execution, waiting)
    fit = max(
        _gram_bytes(shape, execution, waiting, per_thread),
        _solve_bytes(shape, execution, waiting, per_thread),
    )
    held, labels = _permanent_bytes(shape, execution), _labels_bytes(shape)
    if shape.decoded_once:
        most = max(labels + reading + survey, held + fit)
    else:
        most = held + reading + max(survey, fit)
    return int(max(most, labels + calibration_bytes(shape)))


def _labels_bytes(shape: Shape) -> int:
    """Return what labels, weights and folds take."""
    return shape.rows * (1 + (8 if shape.weighted else 0) + (4 if shape.fold_parts > 1 else 0))


def calibration_bytes(shape: Shape) -> int:
    """Return what the calibration holds, when state and features are gone."""
    K, classes = shape.columns, max(shape.columns, 2)
    most = max(120 + 13 * K + 8 * classes, 40 + 35 * classes)  # to learn by folds, or to assess
    return shape.rows * (8 * K + most) if shape.calibrated else 0


def _permanent_bytes(shape: Shape, execution: Execution) -> int:
    """Return what is held from the survey to the end: labels, weights, state, kept features."""
    kept = _labels_bytes(shape)
    kept += 0 if execution.spill else state_bytes(shape)
    kept += features_bytes(shape) if execution.keep_features else 0
    if shape.subsample:
        columns = shape.columns * shape.problems
        kept += sample_bytes(shape, shape.subsample) + 16 * columns * shape.subsample
    return kept


def _thread_bytes(shape: Shape, shard_rows: int) -> float:
    """Return what a thread holds while it computes features and their sums."""
    n, columns = shape.centers, shape.columns * shape.problems
    found = min(BLOCK_BUFFER_BYTES, 64 * shard_rows * (n + shape.features))
    found += 8 * n * min(2048, shard_rows)  # shard_features.GRAM_BLOCK_ROWS
    # The rows of a sweep's block, as in shards.py, with ten numbers per column.
    return found + 80 * columns * min(max(1024, min(2**17 // columns, 8192)), shard_rows)


def _square_bytes(shape: Shape) -> int:
    """Return the bytes of a Gram matrix and A'y."""
    return 8 * shape.centers * (shape.centers + shape.columns)


def _survey_bytes(shape: Shape, execution: Execution, waiting: int) -> int:
    """Return what the survey holds: labels, candidate centers, blocks of rows, sketches."""
    d = shape.features
    survey = (4 + shape.level_bytes) * shape.rows + waiting * 8 * shape.centers * d
    survey += 16 * shape.rows * (shape.weighted + shape.calibrated)  # weights, hashes, twice
    survey += execution.threads * 4 * 8 * min(max(2**20, 64 * d), shape.rows * d)
    if shape.quantiles:
        survey += waiting * 2 * 8 * d * min(sketch_size(d), shape.rows)
    return survey


def _gram_bytes(shape: Shape, execution: Execution, waiting: int, per_thread: float) -> float:
    """Return what the pass that forms or estimates the Gram matrix holds."""
    n, square, sample = shape.centers, _square_bytes(shape), shape.sample
    if sample is None:
        return execution.threads * (per_thread + square) + waiting * square * shape.fold_parts
    gram = execution.threads * (per_thread + 8 * n * MAX_PANEL_COLUMNS)
    gram += max(shape.fold_parts, 2) * square  # two: that of the first sample, with its factor
    return gram + sample_bytes(shape, sample.first + sample.second) + 8 * n * panel_rows(n)


def _solve_bytes(shape: Shape, execution: Execution, waiting: int, per_thread: float) -> float:
    """Return what the iterations hold: Gram matrices, factors, sums, and Hessians if any."""
    n, columns = shape.centers, shape.columns * shape.problems
    solve = (shape.fold_parts + 1 + shape.problems) * _square_bytes(shape)
    solve += 8 * n * waiting * (columns - 1)
    if shape.hessians:  # coordinates, and per column a Hessian, its inverse and their partial sums
        solve += 8 * n * n * (shape.problems + 2 * columns + 2 + execution.threads + waiting)
    solve += 8 * shape.rows * shape.columns if shape.calibrated else 0  # the scores held out
    return solve + execution.threads * per_thread


def fit_in(limit: int, shape: Shape, threads: int, *, keep_features: bool = False) -> Execution:
    """Return the fastest execution of a fit within a memory limit.

    Parameters
    ----------
    limit : int
        The memory limit, in bytes.
    shape : Shape
        The sizes of the fit.
    threads : int
        The maximal number of threads.
    keep_features : bool
        Whether keeping features in memory saves time. They are kept if they need at most
        ``MAX_KEPT_FEATURES_SHARE`` of the limit.

    Raises
    ------
    MemoryError
        If no execution fits; the message says which parameter to change.
    """
    for execution in _executions(threads):
        if peak_bytes(shape, execution) <= limit:
            return _with_kept_features(limit, shape, execution) if keep_features else execution
    smallest = Execution(1, 1, spill=True)
    least = peak_bytes(shape, smallest)
    n = shape.centers
    while n > 1 and peak_bytes(replace(shape, centers=n), smallest) > limit:
        n = n * 9 // 10
    remedy = f"Set memory_limit to {megabytes(least)} or more"
    if peak_bytes(replace(shape, centers=n), smallest) <= limit:
        remedy += f", or n_centers to {n} or less"
    raise MemoryError(
        f"This fit needs {megabytes(least)} at the least ({shape.rows:,} rows, {shape.features} "
        f"features, {shape.centers} centers), but memory_limit allows {megabytes(limit)}. {remedy}."
    )


def fit_problems(
    limit: int,
    shape: Shape,
    per_candidate: int,
    wanted: int,
    threads: int,
    *,
    keep_features: bool = False,
) -> tuple[Execution, int]:
    """Return the fastest execution of a search, and how many candidates it advances at once.

    First the number of threads is reduced, then that of candidates; the state is spilled only
    with a single candidate.

    Parameters
    ----------
    limit : int
        The memory limit, in bytes.
    shape : Shape
        The sizes of the fit, but for ``problems``.
    per_candidate : int
        Problems of each candidate.
    wanted : int
        The maximal number of candidates.
    threads : int
        The maximal number of threads.
    keep_features : bool
        As in ``fit_in``.
    """
    candidates = max(wanted, 1)
    while candidates > 1:
        wide = replace(shape, problems=candidates * per_candidate)
        for execution in _executions(threads):
            if not execution.spill and peak_bytes(wide, execution) <= limit:
                if keep_features:
                    execution = _with_kept_features(limit, wide, execution)
                return execution, candidates
        candidates = -(-candidates // 2)
    one = replace(shape, problems=per_candidate)
    return fit_in(limit, one, threads, keep_features=keep_features), 1


def _executions(threads: int) -> list[Execution]:
    """Return the executions to try, fastest first: a spilled state is the last resort."""
    counts = sorted({threads, max(1, threads // 2), 1}, reverse=True)
    return [
        Execution(t, flight, spill)
        for spill in (False, True)
        for t in counts
        for flight in sorted({2 * t, t}, reverse=True)
    ]


def _with_kept_features(limit: int, shape: Shape, execution: Execution) -> Execution:
    """Return the execution with features kept in memory, if they fit; else as it is."""
    keeping = replace(execution, keep_features=True)
    small = features_bytes(shape) <= MAX_KEPT_FEATURES_SHARE * limit
    return keeping if small and peak_bytes(shape, keeping) <= limit else execution


def megabytes(size: float) -> str:
    """Return a number of bytes as text, in MB below a gigabyte and in GB above."""
    if size < 1e7:
        return f"{size / 1e6:,.2f} MB"
    return f"{size / 1e6:,.0f} MB" if size < 1e9 else f"{size / 1e9:,.2f} GB"
