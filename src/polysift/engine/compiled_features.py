"""Compiled loops over rows before a sweep: they scale rows, and compute features of a spline.

``compiled`` compiles a function, here and in ``compiled_loops``. Numba finds by the outermost
function's file alone whether what it keeps on disk is out of date, so that a function must be in
the same file as those that call it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numba import njit

from polysift.runtime.types import FloatArray, IntArray

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile a function on first use, and cache it on disk if a folder is writable."""
    # Sums may be reordered and contracted, but NaN and infinity keep their meaning.
    return _compiled(function, {"reassoc", "contract", "nsz", "arcp"})


def compiled_exactly(function: F) -> F:
    """Compile a function that rounds as NumPy does."""
    return _compiled(function, set())


def _compiled(function: F, fastmath: set[str]) -> F:
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": fastmath}
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # neither this folder nor the user's cache can be written to
        return njit(**options)(function)


@compiled
def scale_affinely(
    X: FloatArray,
    low: FloatArray,
    high: FloatArray,
    offset: FloatArray,
    scale: FloatArray,
    out: FloatArray,
) -> None:
    """Scale rows as ``AffineScaler`` does, and set the last column to one."""
    rows, d = X.shape
    for i in range(rows):
        for j in range(d):
            clipped = min(max(np.float64(X[i, j]), low[j]), high[j])
            out[i, j] = (clipped - offset[j]) * scale[j]
        out[i, d] = 1.0


@compiled
def scale_by_quantiles(
    X: FloatArray, values: FloatArray, levels: FloatArray, counts: IntArray, out: FloatArray
) -> None:
    """Scale rows as ``QuantileScaler`` does, and set the last column to one."""
    rows, d = X.shape
    unit = 1.0 / np.sqrt(np.float64(d))
    for i in range(rows):
        for j in range(d):
            x, low, high = np.float64(X[i, j]), 0, counts[j] - 1
            if x <= values[j, 0]:
                q = levels[j, 0]
            elif x >= values[j, high]:
                q = levels[j, high]
            else:
                while high - low > 1:
                    middle = (low + high) // 2
                    if x < values[j, middle]:
                        high = middle
                    else:
                        low = middle
                share = (x - values[j, low]) / (values[j, high] - values[j, low])
                q = levels[j, low] + share * (levels[j, high] - levels[j, low])
            out[i, j] = (2.0 * q - 1.0) * unit
        out[i, d] = 1.0


@compiled_exactly
def interpolate_pairs(
    X: FloatArray,
    knots: FloatArray,
    first: FloatArray,
    second: FloatArray,
    counts: IntArray,
    out: FloatArray,
    other: FloatArray,
) -> None:
    """Interpolate two functions with the same knots in each column, as ``np.interp`` does.

    Their values at the knots are ``first`` and ``second``; those of X are written into ``out`` and
    ``other``. X has no NaN.
    """
    rows, d = X.shape
    x, at = np.empty(rows), np.empty(rows, np.int64)
    for k in range(d):
        own, f, g, last = knots[k], first[k], second[k], counts[k] - 1
        for i in range(rows):
            x[i], at[i] = X[i, k], 0
        left = last + 1
        while left > 1:  # a step of all searches at once: these are vectors, and no branches
            half = left >> 1
            for i in range(rows):
                j = at[i]
                at[i] = j + half if own[j + half] <= x[i] else j
            left -= half
        for i in range(rows):
            j = at[i]
            if j == last or x[i] <= own[0]:
                out[i, k], other[i, k] = f[j], g[j]
            else:
                width, step = own[j + 1] - own[j], x[i] - own[j]
                out[i, k] = (f[j + 1] - f[j]) / width * step + f[j]
                other[i, k] = (g[j + 1] - g[j]) / width * step + g[j]


@compiled_exactly
def unfold_rows(
    X: FloatArray,
    owners: IntArray,
    parts: IntArray,
    cycles: FloatArray,
    fineness: float,
    out: FloatArray,
) -> None:
    """Write the numbers of rows as ``features.unfolding.Unfolding`` does.

    The cosine of a date's part is followed by its sine. What follows the same date in the column
    is not computed again: dates come in order, or at midnight, as often as not.
    """
    for k in range(len(owners)):
        j, part = owners[k], parts[k]
        if part == 0:
            for i in range(len(X)):
                out[i, k] = X[i, j]
        elif part % 2 == 1:
            length, start = cycles[part // 2]
            last = cosine = sine = np.nan
            for i in range(len(X)):
                x = np.float64(X[i, j])
                if x != last:
                    angle = 2.0 * np.pi * (((x + start) % length) / length)
                    cosine = np.rint(np.cos(angle) * fineness) / fineness
                    sine = np.rint(np.sin(angle) * fineness) / fineness
                    last = x
                out[i, k], out[i, k + 1] = cosine, sine


@compiled_exactly
def place_numbers(
    X: FloatArray,
    low: FloatArray,
    high: FloatArray,
    offset: FloatArray,
    scale: FloatArray,
    known: bool,
    out: FloatArray,
) -> None:
    """Scale rows as ``AffineScaler`` does; missing values become zero if they are known to."""
    rows, d = X.shape
    for i in range(rows):
        for k in range(d):
            x = X[i, k]
            if x == x:
                out[i, k] = (min(max(x, low[k]), high[k]) - offset[k]) * scale[k]
            else:
                out[i, k] = 0.0 if known else np.nan


@compiled_exactly
def find_rows(
    X: FloatArray,
    column: int,
    levels: FloatArray,
    codes: IntArray,
    unknown: int,
    first: int,
    folded: float,
    out: IntArray,
) -> None:
    """Find the rows of values in a table as ``LevelColumn.rows`` does.

    Values from ``folded`` downwards name rows from 0 on; a level's is ``first`` plus its code.
    """
    for i in range(len(X)):
        x, low, high = np.float64(X[i, column]), 0, len(levels)
        if x <= folded:
            out[i] = np.int64(folded - x)
            continue
        while low < high:
            middle = (low + high) >> 1
            if levels[middle] < x:
                low = middle + 1
            else:
                high = middle
        out[i] = unknown
        if low < len(levels) and levels[low] == x:
            out[i] = first + codes[low]


@compiled
def subtract_larger(X: FloatArray, C: FloatArray, ranks: int, A: FloatArray) -> None:
    """Subtract ``sum_k max(X[i, k], C[k, j])`` over the ranks from A; two rows by four ranks.

    A single rank would take a slow pass of its own: of an odd number three are taken at once.
    """
    rows, n = A.shape
    rest = ranks - 3 if ranks % 2 and ranks >= 3 else ranks
    pairs, fours, twos = rows - rows % 2, rest - rest % 4, rest - rest % 2
    for i in range(0, pairs, 2):
        for k in range(0, fours, 4):
            a0, a1, a2, a3 = X[i, k], X[i, k + 1], X[i, k + 2], X[i, k + 3]
            b0, b1, b2, b3 = X[i + 1, k], X[i + 1, k + 1], X[i + 1, k + 2], X[i + 1, k + 3]
            for j in range(n):
                c0, c1, c2, c3 = C[k, j], C[k + 1, j], C[k + 2, j], C[k + 3, j]
                A[i, j] -= (_larger(a0, c0) + _larger(a1, c1)) + (_larger(a2, c2) + _larger(a3, c3))
                A[i + 1, j] -= (_larger(b0, c0) + _larger(b1, c1)) + (
                    _larger(b2, c2) + _larger(b3, c3)
                )
        for k in range(fours, twos, 2):
            a0, a1, b0, b1 = X[i, k], X[i, k + 1], X[i + 1, k], X[i + 1, k + 1]
            for j in range(n):
                c0, c1 = C[k, j], C[k + 1, j]
                A[i, j] -= _larger(a0, c0) + _larger(a1, c1)
                A[i + 1, j] -= _larger(b0, c0) + _larger(b1, c1)
        for k in range(twos, rest):
            a0, b0 = X[i, k], X[i + 1, k]
            for j in range(n):
                c0 = C[k, j]
                A[i, j] -= _larger(a0, c0)
                A[i + 1, j] -= _larger(b0, c0)
        for k in range(rest, ranks, 3):
            a0, a1, a2 = X[i, k], X[i, k + 1], X[i, k + 2]
            b0, b1, b2 = X[i + 1, k], X[i + 1, k + 1], X[i + 1, k + 2]
            for j in range(n):
                c0, c1, c2 = C[k, j], C[k + 1, j], C[k + 2, j]
                A[i, j] -= (_larger(a0, c0) + _larger(a1, c1)) + _larger(a2, c2)
                A[i + 1, j] -= (_larger(b0, c0) + _larger(b1, c1)) + _larger(b2, c2)
    for i in range(pairs, rows):  # at most one
        for k in range(ranks):
            a0 = X[i, k]
            for j in range(n):
                A[i, j] -= _larger(a0, C[k, j])


@compiled
def _larger(a: float, b: float) -> float:
    return a if a > b else b  # max() would ask for NaN, too


@compiled
def raise_to_power(A: FloatArray, T: FloatArray, added: IntArray, degree: int) -> None:
    """Raise A to an integer power in place, as ``power_in_place`` does, row by row.

    Before, rows of T are added to each row: those that ``added`` names.
    """
    rows, n = A.shape
    first = 0
    while degree >> (first + 1):
        first += 1
    base = np.empty(n, A.dtype)
    for i in range(rows):
        for k in range(added.shape[1]):
            r = added[i, k]
            for j in range(n):
                A[i, j] += T[r, j]
        for j in range(n if degree & (degree - 1) else 0):  # a slice would be copied one by one
            base[j] = A[i, j]
        for bit in range(first - 1, -1, -1):
            if (degree >> bit) & 1:
                for j in range(n):
                    A[i, j] = A[i, j] * A[i, j] * base[j]
            else:
                for j in range(n):
                    A[i, j] *= A[i, j]
