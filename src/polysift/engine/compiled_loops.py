"""The loops of a sweep, compiled by numba: features, scores, the prox and the residual at once.

A tile of a few rows is worked through while its features lie in the innermost caches; nothing else
of a block's size is written to memory. There is one set of loops per degree and, where rows are
short, per number of columns, so that the compiler can unroll both; each is compiled on first use
and kept on disk. Rows ``X`` and centers ``C`` have the layout of ``BlockFeatures``: X (rows, d + 1)
with a last column of ones, C (d + 1, n) with a last row of ones.

With few centers, rows lie in the vector lanes instead, in tiles of their own.

The sums of a tile do not depend on whether its features were computed now or kept from before.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from polysift.engine.compiled_features import compiled
from polysift.engine.row_updates import MULTIPLIER_LEVELS
from polysift.engine.sums import STEP_LENGTHS
from polysift.runtime.types import FloatArray

MAX_UNROLLED_COLUMNS = 16
"""With more columns of X, BLAS multiplies rows with the centers, before the loop."""

TILE_ROWS, TILE_BYTES = 32, 2**17
"""The most rows of a tile, and bytes of their features."""

RESIDUAL_ROWS = 256
"""Rows whose residuals are summed in the rows' dtype, before they are added in float64; and those
of a tile with rows in the lanes."""

MAX_CENTERS_ACROSS = 64
"""With more centers these lie in the vector lanes, as their own number leaves few lanes empty."""

Columns = tuple[FloatArray, FloatArray]
"""The coefficients u, and the sums r of their residuals."""

Rows = tuple[FloatArray, FloatArray, FloatArray]
"""Of each row the multiplicity, the state t and the label; of some tasks empty."""

Arguments = tuple[float, float, FloatArray]
"""Gamma and relax, or delta and line; and the sums."""


def tile_rows(n: int, itemsize: int) -> int:
    """Return the rows of a tile; rounding depends on it, so it depends on n and dtype alone."""
    return int(np.clip(TILE_BYTES // (n * itemsize) // 4 * 4, 4, TILE_ROWS))


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


# The compiled twin of ``losses.Hinge``: its functions of one margin, and the loops that call them.
# Another loss has a block like this one, and its tasks in ``_visit``. A branch by loss inside the
# loops would be shorter, but the compiler does not move it out, and then vectorises less.


@compiled
def hinge_value(t: float) -> float:
    """Return ``Hinge.value`` of one margin."""
    return max(1.0 - t, 0.0)


@compiled
def hinge_prox_step(t: float, gamma: float) -> float:
    """Return ``Hinge.prox_step`` of one margin."""
    return min(max(1.0 - t, 0.0), 1.0 / gamma)


@compiled
def hinge_slope(t: float, step: float, delta: float) -> float:
    """Return ``Hinge.slope`` at a margin t + step."""
    x = 1.0 - t - step
    return 0.5 + 0.5 * x / np.sqrt(x * x + 4.0 * delta * delta)


@compiled
def hinge_curvature(t: float, delta: float, c: float, factor: float) -> float:
    """Return ``Hinge.curvature`` of one margin, with a factor instead of 2 delta."""
    x = 1.0 - t
    r = np.sqrt(x * x + 4.0 * delta * delta)
    return factor * (1.0 - (2.0 * c - 1.0) * x / r) / r


@compiled
def hinge_duality_gap(t: float, c: float) -> float:
    """Return ``Hinge.duality_gap`` of one margin."""
    return max(1.0 - t, 0.0) - c * (1.0 - t)


@compiled
def hinge_admm_column(
    f: FloatArray,
    t: FloatArray,
    y: FloatArray,
    counts: FloatArray,
    gamma: float,
    relax: float,
    a: FloatArray,
    sums: FloatArray,
) -> None:
    """Compute the same as ``AdmmUpdate``, for one column.

    ``a`` receives the residuals, ``sums`` the statistics in the order of ``AdmmSums``.
    """
    total = primal = f2 = v2 = q2 = dv2 = dq2 = wrong = 0.0
    for i in range(len(f)):
        margin, old, count = f[i] * y[i], t[i], counts[i]
        k_old = hinge_prox_step(old, gamma)
        new = relax * (margin - k_old) + (1.0 - relax) * old
        k = hinge_prox_step(new, gamma)
        v = new + k
        t[i] = new
        a[i] = (v + k - margin) * y[i] * count
        total += count * hinge_value(margin)
        primal += count * (margin - v) ** 2
        f2 += count * margin**2
        v2 += count * v**2
        q2 += count * k**2
        dv2 += count * (v - old - k_old) ** 2
        dq2 += count * (k - k_old) ** 2
        # A score of exactly 0 means the positive class.
        wrong += count if (f[i] >= 0) != (y[i] > 0) else 0.0
    sums += np.array([total, primal, f2, v2, q2, dv2, dq2, wrong])


@compiled
def hinge_admm_columns(
    f: FloatArray,
    t: FloatArray,
    y: FloatArray,
    counts: FloatArray,
    gamma: FloatArray,
    relax: FloatArray,
    a: FloatArray,
    sums: FloatArray,
) -> None:
    """Compute the same as ``AdmmUpdate``; f becomes margins, wrong rows are not counted."""
    rows, columns = f.shape
    for i in range(rows):
        for c in range(columns):
            margin, old, count = f[i, c] * y[i, c], t[i, c], counts[i, c]
            k_old = hinge_prox_step(old, gamma[c])
            new = relax[c] * (margin - k_old) + (1.0 - relax[c]) * old
            k = hinge_prox_step(new, gamma[c])
            v = new + k
            f[i, c] = margin
            t[i, c] = new
            a[i, c] = (v + k - margin) * y[i, c] * count
            sums[0, c] += count * hinge_value(margin)
            sums[1, c] += count * (margin - v) ** 2
            sums[2, c] += count * margin**2
            sums[3, c] += count * v**2
            sums[4, c] += count * k**2
            sums[5, c] += count * (v - old - k_old) ** 2
            sums[6, c] += count * (k - k_old) ** 2


@compiled
def hinge_newton_column(
    f: FloatArray,
    t: FloatArray,
    y: FloatArray,
    counts: FloatArray,
    delta: float,
    line: float,
    a: FloatArray,
    sums: FloatArray,
) -> None:
    """Compute the same as ``NewtonUpdate``, for one column.

    ``a`` receives minus the slopes, ``sums`` the loss, the gap, the curvature, the wrong rows and
    the slopes along the step.
    """
    total = gap = curved = wrong = 0.0
    kept, levels = t.view(np.int64), np.empty(len(f), np.int64)
    for i in range(len(f)):
        margin, count = f[i] * y[i], counts[i]
        c = hinge_slope(margin, 0.0, delta)
        own = (kept[i] & MULTIPLIER_LEVELS) / MULTIPLIER_LEVELS
        if line > 0.0:
            bend = hinge_curvature(t[i], line, own, 0.5)
            own = hinge_slope(t[i], 0.0, line) - bend * (margin - t[i])
            own = min(max(own, 0.0), 1.0)
        elif line < 0.0:
            own = c
        levels[i] = np.int64(np.rint(own * MULTIPLIER_LEVELS))
        a[i] = c * y[i] * count
        total += count * hinge_value(margin)
        gap += count * hinge_duality_gap(margin, c)
        curved += hinge_curvature(margin, delta, own, count * 2.0 * delta)
        wrong += count if (f[i] >= 0) != (y[i] > 0) else 0.0
    sums[0] += total
    sums[1] += gap
    sums[2] += curved
    sums[3] += wrong
    if line > 0.0:
        for s in range(len(STEP_LENGTHS)):
            slope = 0.0
            for i in range(len(f)):
                step = f[i] * y[i] - t[i]
                slope += counts[i] * hinge_slope(t[i], STEP_LENGTHS[s] * step, line) * step
            sums[4 + s] -= slope
    for i in range(len(f)):
        t[i] = f[i] * y[i]
        kept[i] = (kept[i] & ~MULTIPLIER_LEVELS) | levels[i]


FEATURES, PRODUCT, HINGE_ADMM, HINGE_NEWTON, LOGISTIC_NEWTON, SQUARED_HINGE_NEWTON = range(6)
"""The tasks of ``walk``."""


# The losses without kinks share their loop: exponentials are not vectorised anyway.


@compiled
def smooth_value(task: int, t: float) -> float:
    """Return ``Logistic.value`` or ``SquaredHinge.value`` of one margin."""
    if task == LOGISTIC_NEWTON:
        return np.log1p(np.exp(-abs(t))) + max(-t, 0.0)
    return 0.5 * max(1.0 - t, 0.0) ** 2


@compiled
def smooth_slope(task: int, t: float) -> float:
    """Return ``Logistic.slope`` or ``SquaredHinge.slope`` of one margin."""
    if task == LOGISTIC_NEWTON:
        small = np.exp(-abs(t))
        return (small if t > 0.0 else 1.0) / (1.0 + small)
    return max(1.0 - t, 0.0)


@compiled
def smooth_curvature(task: int, t: float) -> float:
    """Return the curvature of one margin."""
    if task == LOGISTIC_NEWTON:
        small = np.exp(-abs(t))
        return small / (1.0 + small) ** 2
    return 1.0 if t < 1.0 else 0.0


@compiled
def smooth_newton_column(
    task: int,
    f: FloatArray,
    t: FloatArray,
    y: FloatArray,
    counts: FloatArray,
    delta: float,
    line: float,
    a: FloatArray,
    sums: FloatArray,
) -> None:
    """Compute the same as ``NewtonUpdate`` by a loss without kinks, for one column.

    ``a`` and ``sums`` are those of ``hinge_newton_column``; the gap is zero.
    """
    total = curved = wrong = 0.0
    for i in range(len(f)):
        margin, count = f[i] * y[i], counts[i]
        a[i] = smooth_slope(task, margin) * y[i] * count
        total += count * smooth_value(task, margin)
        curved += count * smooth_curvature(task, margin)
        wrong += count if (f[i] >= 0) != (y[i] > 0) else 0.0
    sums[0] += total
    sums[2] += 4.0 * delta * curved
    sums[3] += wrong
    if line > 0.0:
        for s in range(len(STEP_LENGTHS)):
            slope = 0.0
            for i in range(len(f)):
                step = f[i] * y[i] - t[i]
                slope += counts[i] * smooth_slope(task, t[i] + STEP_LENGTHS[s] * step) * step
            sums[4 + s] -= slope
    for i in range(len(f)):
        t[i] = f[i] * y[i]


@compiled
def _update(
    task: int, f: FloatArray, a: FloatArray, lo: int, rows: Rows, arguments: Arguments
) -> None:
    """Update the rows from ``lo`` on by their scores f; ``a`` receives the residuals."""
    own, (first, second, sums) = slice(lo, lo + len(f)), arguments
    counts, t, y = rows
    if task == HINGE_ADMM:
        hinge_admm_column(f, t[own], y[own], counts[own], first, second, a, sums)
    elif task == HINGE_NEWTON:
        hinge_newton_column(f, t[own], y[own], counts[own], first, second, a, sums)
    elif task >= LOGISTIC_NEWTON:
        smooth_newton_column(task, f, t[own], y[own], counts[own], first, second, a, sums)
    else:
        a[:] = counts[own] * f


@compiled
def _visit(
    task: int,
    A: FloatArray,
    lo: int,
    u: FloatArray,
    part: FloatArray,
    rows: Rows,
    arguments: Arguments,
) -> None:
    """Add the sums of a tile with features A: scores, residuals, A' times the residuals."""
    f, a = np.empty(len(A), A.dtype), np.empty(len(A), A.dtype)
    _scores(A, u, f)
    _update(task, f, a, lo, rows, arguments)
    _add_products(A, a, part)


@compiled
def walk_kept(
    task: int, Z: FloatArray, tile: int, columns: Columns, rows: Rows, arguments: Arguments
) -> None:
    """Compute the same as ``walk``, from kept features Z."""
    u, r = columns
    part, since = np.zeros(Z.shape[1], Z.dtype), 0
    for lo in range(0, len(Z), tile):
        hi = min(lo + tile, len(Z))
        _visit(task, Z[lo:hi], lo, u, part, rows, arguments)
        since += hi - lo
        if since >= RESIDUAL_ROWS:
            _flush(part, r)
            since = 0
    _flush(part, r)


@cache
def walk(d: int, degree: int) -> Callable[..., None]:
    """Return the loop over rows of d columns.

    It is called as ``walk(task, X, C, Z, tile, columns, rows, arguments)``.
    FEATURES computes the features of the rows X into Z, which for other tasks may also have the
    rows of a single tile; PRODUCT adds A' Omega A u to r; the updates of a loss update the state t
    of the rows and add to r and the sums.

    The closure may hold numbers only: with functions numba would not find its cache on disk.
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
        columns: Columns,
        rows: Rows,
        arguments: Arguments,
    ) -> None:
        u, r = columns
        m, n = len(X), Z.shape[1]
        part, since = np.zeros(n, Z.dtype), 0
        for lo in range(0, m, tile):
            hi = min(lo + tile, m)
            A = Z[lo:hi] if len(Z) == m else Z[: hi - lo]
            for i in range(hi - lo):
                for j in range(n):
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
            _visit(task, A, lo, u, part, rows, arguments)
            since += hi - lo
            if since >= RESIDUAL_ROWS:
                _flush(part, r)
                since = 0
        if task != FEATURES:  # r is empty then
            _flush(part, r)

    return loop


@compiled
def _bases_across(X: FloatArray, C: FloatArray, lo: int, width: int, A: FloatArray) -> None:
    """Write the products of rows from ``lo`` on with the centers into A (n, rows), but the last.

    Two coordinates at a time, whose values for all rows of the tile lie side by side.
    """
    d = len(C) - 1
    T = np.empty((d, width), X.dtype)
    for k in range(d):
        for i in range(width):
            T[k, i] = X[lo + i, k]
    for j in range(len(A)):
        c0 = C[0, j]
        for i in range(width):
            A[j, i] = T[0, i] * c0
        for k in range(1, d - 1, 2):
            c0, c1 = C[k, j], C[k + 1, j]
            for i in range(width):
                A[j, i] += T[k, i] * c0 + T[k + 1, i] * c1
        if d % 2 == 0:
            c0 = C[d - 1, j]
            for i in range(width):
                A[j, i] += T[d - 1, i] * c0


@compiled
def _scores_across(A: FloatArray, u: FloatArray, f: FloatArray) -> None:
    n, width = len(A), len(f)
    whole = n - n % 4
    f[:] = 0
    for j in range(0, whole, 4):
        u0, u1, u2, u3 = u[j], u[j + 1], u[j + 2], u[j + 3]
        for i in range(width):
            f[i] += u0 * A[j, i] + u1 * A[j + 1, i] + u2 * A[j + 2, i] + u3 * A[j + 3, i]
    for j in range(whole, n):
        u0 = u[j]
        for i in range(width):
            f[i] += u0 * A[j, i]


@compiled
def _add_products_across(A: FloatArray, a: FloatArray, r: FloatArray) -> None:
    for j in range(len(A)):
        total = A.dtype.type(0)
        for i in range(len(a)):
            total += A[j, i] * a[i]
        r[j] += total


@cache
def walk_across(degree: int) -> Callable[..., None]:
    """Return the loop for few centers, with rows in the vector lanes.

    It is called as ``walk_across(task, X, C, kept, out, columns, rows, arguments)`` and does the
    same as ``walk``; without rows X their features are those kept, and ``out`` receives them unless
    it is empty.
    """
    digits = bin(degree)[3:]
    steps, ones = len(digits), int(digits or "0", 2)

    @compiled
    def loop(
        task: int,
        X: FloatArray,
        C: FloatArray,
        kept: FloatArray,
        out: FloatArray,
        columns: Columns,
        rows: Rows,
        arguments: Arguments,
    ) -> None:
        d, n, m = len(C) - 1, C.shape[1], max(len(X), len(kept))
        A = np.empty((n, RESIDUAL_ROWS), X.dtype)
        scores, residuals = np.empty(RESIDUAL_ROWS, X.dtype), np.empty(RESIDUAL_ROWS, X.dtype)
        for lo in range(0, m, RESIDUAL_ROWS):
            width = min(RESIDUAL_ROWS, m - lo)
            if len(X) > 0:
                _bases_across(X, C, lo, width, A)
                for j in range(n):
                    last = C[d, j]
                    for i in range(width):
                        z = A[j, i] + last
                        base = z
                        for step in range(steps):
                            z *= z
                            if (ones >> (steps - 1 - step)) & 1:
                                z *= base
                        A[j, i] = z
                for i in range(width if len(out) > 0 else 0):
                    for j in range(n):
                        out[lo + i, j] = A[j, i]
            else:
                for i in range(width):
                    for j in range(n):
                        A[j, i] = kept[lo + i, j]
            if task != FEATURES:
                f, a = scores[:width], residuals[:width]
                _scores_across(A, columns[0], f)
                _update(task, f, a, lo, rows, arguments)
                _add_products_across(A, a, columns[1])

    return loop
