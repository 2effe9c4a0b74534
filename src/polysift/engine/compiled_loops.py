"""The loops of a sweep, compiled by numba: features, scores, the prox and the residual in one go.

A tile of a few rows is worked through while its features lie in the innermost caches; nothing else
of a block's size is written to memory. There is one set of loops per degree and, where rows are
short, per number of columns, so that the compiler can unroll both; each is compiled on first use
and kept on disk. Rows ``X`` and centers ``C`` have the layout of ``BlockFeatures``: X (rows, d + 1)
with a last column of ones, C (d + 1, n) with a last row of ones.

The sums of a tile do not depend on whether its features were computed now or kept from before.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import numpy as np
from numba import njit

from polysift.losses import LEVELS, STEPS
from polysift.runtime.types import FloatArray, IntArray

UNROLLED = 16
"""Rows of more columns than that are multiplied with the centers by BLAS, before the loop."""

TILE_ROWS, TILE_BYTES = 32, 2**17
"""The most rows of a tile, and bytes of their features."""

RESIDUAL_ROWS = 256
"""Rows whose residuals are summed in the rows' dtype, before that goes to float64."""

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile a function on first use, and keep it on disk where there is a place for that."""
    # Sums may be reordered and contracted, but NaN and infinity keep their meaning.
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    options["fastmath"] = {"reassoc", "contract", "nsz", "arcp"}
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # neither this folder nor the user's cache can be written to
        return njit(**options)(function)


def tile_rows(n: int, itemsize: int) -> int:
    """Return the rows of a tile: by n and dtype alone, since borders reach the last bit."""
    return int(np.clip(TILE_BYTES // (n * itemsize) // 4 * 4, 4, TILE_ROWS))


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


@compiled
def _scores(Z: FloatArray, u: FloatArray, f: FloatArray) -> None:
    for i in range(Z.shape[0]):
        total = Z.dtype.type(0)
        for j in range(Z.shape[1]):
            total += Z[i, j] * u[j]
        f[i] = total


@compiled
def _add_products(Z: FloatArray, a: FloatArray, r: FloatArray) -> None:
    """Add Z'a to r, four rows at a time."""
    rows, n = Z.shape
    whole = rows - rows % 4
    for i in range(0, whole, 4):
        a0, a1, a2, a3 = a[i], a[i + 1], a[i + 2], a[i + 3]
        for j in range(n):
            r[j] += a0 * Z[i, j] + a1 * Z[i + 1, j] + a2 * Z[i + 2, j] + a3 * Z[i + 3, j]
    for i in range(whole, rows):
        a0 = a[i]
        for j in range(n):
            r[j] += a0 * Z[i, j]


@compiled
def _flush(r: FloatArray, total: FloatArray) -> None:
    for j in range(len(r)):
        total[j] += r[j]
        r[j] = 0


@compiled
def settle(
    f: FloatArray,
    t: FloatArray,
    y: FloatArray,
    counts: FloatArray,
    gamma: float,
    relax: float,
    a: FloatArray,
    sums: FloatArray,
) -> None:
    """Move the state of rows to new scores, as ``_sums.move`` and ``_sums.add_statistics`` do.

    ``a`` receives the residuals, ``sums`` the statistics in the order of ``SweepSums``.
    """
    most = 1.0 / gamma
    loss = primal = f2 = v2 = q2 = dv2 = dq2 = wrong = 0.0
    for i in range(len(f)):
        margin, old, count = f[i] * y[i], t[i], counts[i]
        k_old = min(max(1.0 - old, 0.0), most)
        new = relax * (margin - k_old) + (1.0 - relax) * old
        k = min(max(1.0 - new, 0.0), most)
        v = new + k
        t[i] = new
        a[i] = (v + k - margin) * y[i] * count
        loss += count * max(1.0 - margin, 0.0)
        primal += count * (margin - v) ** 2
        f2 += count * margin**2
        v2 += count * v**2
        q2 += count * k**2
        dv2 += count * (v - old - k_old) ** 2
        dq2 += count * (k - k_old) ** 2
        # A score of exactly 0 means the positive class.
        wrong += count if (f[i] >= 0) != (y[i] > 0) else 0.0
    sums += np.array([loss, primal, f2, v2, q2, dv2, dq2, wrong])


@compiled
def settle_columns(
    f: FloatArray,
    t: FloatArray,
    y: FloatArray,
    counts: FloatArray,
    gamma: FloatArray,
    relax: FloatArray,
    a: FloatArray,
    sums: FloatArray,
) -> None:
    """Do as ``settle`` for many columns, but leave margins in f and do not count wrong rows."""
    rows, columns = f.shape
    for i in range(rows):
        for c in range(columns):
            margin, old, count = f[i, c] * y[i, c], t[i, c], counts[i, c]
            most = 1.0 / gamma[c]
            k_old = min(max(1.0 - old, 0.0), most)
            new = relax[c] * (margin - k_old) + (1.0 - relax[c]) * old
            k = min(max(1.0 - new, 0.0), most)
            v = new + k
            f[i, c] = margin
            t[i, c] = new
            a[i, c] = (v + k - margin) * y[i, c] * count
            sums[0, c] += count * max(1.0 - margin, 0.0)
            sums[1, c] += count * (margin - v) ** 2
            sums[2, c] += count * margin**2
            sums[3, c] += count * v**2
            sums[4, c] += count * k**2
            sums[5, c] += count * (v - old - k_old) ** 2
            sums[6, c] += count * (k - k_old) ** 2


@compiled
def settle_smoothly(
    f: FloatArray,
    t: FloatArray,
    y: FloatArray,
    counts: FloatArray,
    delta: float,
    line: float,
    a: FloatArray,
    sums: FloatArray,
) -> None:
    """Do as ``_sums.move_smoothly`` for one column; ``sums`` has its slopes at the end."""
    loss = gap = curved = wrong = 0.0
    wide, kept = 4.0 * delta * delta, t.view(np.int64)
    levels = np.empty(len(f), np.int64)
    for i in range(len(f)):
        margin, count = f[i] * y[i], counts[i]
        x = 1.0 - margin
        r = np.sqrt(x * x + wide)
        c = 0.5 + 0.5 * x / r
        own = (kept[i] & LEVELS) / LEVELS
        if line > 0.0:
            far = 1.0 - t[i]
            root = np.sqrt(far * far + 4.0 * line * line)
            bend = 0.5 * (1.0 - (2.0 * own - 1.0) * far / root) / root
            own = 0.5 + 0.5 * far / root - bend * (margin - t[i])
            own = min(max(own, 0.0), 1.0)
        elif line < 0.0:
            own = c
        levels[i] = np.int64(np.rint(own * LEVELS))
        a[i] = c * y[i] * count
        hinge = max(x, 0.0)
        loss += count * hinge
        gap += count * (hinge - c * x)
        curved += count * 2.0 * delta * (1.0 - (2.0 * own - 1.0) * x / r) / r
        wrong += count if (f[i] >= 0) != (y[i] > 0) else 0.0
    sums[0] += loss
    sums[1] += gap
    sums[2] += curved
    sums[3] += wrong
    if line > 0.0:
        widest = 4.0 * line * line
        for s in range(len(STEPS)):
            slope = 0.0
            for i in range(len(f)):
                way = f[i] * y[i] - t[i]
                x = 1.0 - t[i] - STEPS[s] * way
                slope += counts[i] * (0.5 + 0.5 * x / np.sqrt(x * x + widest)) * way
            sums[4 + s] -= slope
    for i in range(len(f)):
        t[i] = f[i] * y[i]
        kept[i] = (kept[i] & ~LEVELS) | levels[i]


FEATURES, PRODUCT, SWEEP, SMOOTH = 0, 1, 2, 3
"""What to do with the rows of a tile."""


@compiled
def _visit(
    task: int,
    A: FloatArray,
    rows: slice,
    u: FloatArray,
    part: FloatArray,
    counts: FloatArray,
    t: FloatArray,
    y: FloatArray,
    gamma: float,
    relax: float,
    sums: FloatArray,
) -> None:
    """Do the rest with a tile whose features A are there: scores, residuals, A' residuals."""
    f, a = np.empty(len(A), A.dtype), np.empty(len(A), A.dtype)
    _scores(A, u, f)
    if task == SWEEP:
        settle(f, t[rows], y[rows], counts[rows], gamma, relax, a, sums)
    elif task == SMOOTH:
        settle_smoothly(f, t[rows], y[rows], counts[rows], gamma, relax, a, sums)
    else:
        a[:] = counts[rows] * f
    _add_products(A, a, part)


@compiled
def walk_kept(
    task: int,
    Z: FloatArray,
    tile: int,
    u: FloatArray,
    r: FloatArray,
    counts: FloatArray,
    t: FloatArray,
    y: FloatArray,
    gamma: float,
    relax: float,
    sums: FloatArray,
) -> None:
    """Do as ``walk`` with rows whose features Z were computed before."""
    part, since = np.zeros(Z.shape[1], Z.dtype), 0
    for lo in range(0, len(Z), tile):
        hi = min(lo + tile, len(Z))
        _visit(task, Z[lo:hi], slice(lo, hi), u, part, counts, t, y, gamma, relax, sums)
        since += hi - lo
        if since >= RESIDUAL_ROWS:
            _flush(part, r)
            since = 0
    _flush(part, r)


def walk(d: int, degree: int) -> Callable[..., None]:
    """Return the loop over rows of d columns.

    It is called as ``walk(task, X, C, Z, tile, u, r, counts, t, y, gamma, relax, sums)``. FEATURES
    computes the features of the rows X into Z, which otherwise may also be room for a single tile;
    PRODUCT adds A' Omega A u to r; SWEEP moves the state t of the rows and adds to r and ``sums``,
    whose statistics have the order of ``SweepSums``; SMOOTH does so for a rounded loss, with delta
    and line in the place of gamma and relax. Where d is more than ``UNROLLED``, Z holds the
    products X C of all rows.
    """
    return _walk(d if d <= UNROLLED else 0, degree)


@cache
def _walk(d: int, degree: int) -> Callable[..., None]:
    """Compile the loop; with d = 0 it finds the products in Z.

    Only numbers may come from outside, and not functions: with those numba would not find again
    what it keeps on disk.
    """
    digits = bin(degree)[3:]  # after the leading one: square, and multiply where there is a one
    steps, ones = len(digits), int(digits or "0", 2)

    @compiled
    def loop(
        task: int,
        X: FloatArray,
        C: FloatArray,
        Z: FloatArray,
        tile: int,
        u: FloatArray,
        r: FloatArray,
        counts: FloatArray,
        t: FloatArray,
        y: FloatArray,
        gamma: float,
        relax: float,
        sums: FloatArray,
    ) -> None:
        m, n = len(X), Z.shape[1]
        part, since = np.zeros(n, Z.dtype), 0
        for lo in range(0, m, tile):
            hi = min(lo + tile, m)
            A = Z[lo:hi] if len(Z) == m else Z[: hi - lo]
            for i in range(hi - lo):
                for j in range(n):
                    if d == 0:
                        z = A[i, j]
                    else:
                        z = C[d, j]
                        for k in range(d):
                            z += X[lo + i, k] * C[k, j]
                    base = z
                    for step in range(steps):
                        z *= z
                        if (ones >> (steps - 1 - step)) & 1:
                            z *= base
                    A[i, j] = z
            if task == FEATURES:
                continue
            _visit(task, A, slice(lo, hi), u, part, counts, t, y, gamma, relax, sums)
            since += hi - lo
            if since >= RESIDUAL_ROWS:
                _flush(part, r)
                since = 0
        if task != FEATURES:  # r is empty then
            _flush(part, r)

    return loop
