"""The ratio rho by generalised cross-validation, from the sums of a Gram pass alone.

The first iterate of the ADMM is a ridge regression on the labels, u = (G + rho I)^-1 A'y. Its
leave-one-out error is estimated, for every rho, by

    GCV(rho) = (rss / m) / (1 - c df / m)^2,   rss = |y - A u|^2,   df = trace((G + rho I)^-1 G)

with c = 1.4 (robust GCV), which guards small data: with c = 1 it overfits where n comes near m.
With G = Q T Q', T tridiagonal, every rho costs O(n): no fold, no held-out row, no further pass.
Labels are +1 and -1, so that y'y is the total weight; over several label columns rss adds up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from polysift.runtime.types import FloatArray

ROBUSTNESS = 1.4
"""The factor c of the degrees of freedom."""

STEPS_PER_DECADE = 4
"""Values of rho that are tried, per factor of ten."""

MAX_RELATIVE_RHO = 10.0
"""The largest rho that is tried, in units of trace(G) / min(n, m): its df is at most m / 10, so
that there is always one to choose."""


@dataclass(frozen=True)
class RidgeChoice:
    """The rho with the least GCV.

    Attributes
    ----------
    rho : float
        The ratio, absolute.
    score : float
        Its GCV, relative to that of the model that is zero: less than one if the features help.
    freedom : float
        Its degrees of freedom, df.
    """

    rho: float
    score: float
    freedom: float


def choose_rho(G: FloatArray, Aty: FloatArray, m: float, floor: float) -> RidgeChoice:
    """Return the choice of rho, at least ``floor``; ties go to the larger one.

    Parameters
    ----------
    G : ndarray of shape (n, n)
        The Gram matrix, of which the upper triangle is read.
    Aty : ndarray of shape (n, K)
        A'y.
    m : float
        The total weight of the rows.
    floor : float
        The smallest rho.
    """
    n, K = Aty.shape
    d, e, b = _tridiagonal(G, Aty)
    unit = max(float(d.max()), floor)  # sums of squares of large features would overflow
    d, e, b = d / unit, e / unit, b / np.sqrt(unit)
    w = np.maximum(scipy.linalg.eigvalsh_tridiagonal(d, e) if n > 1 else d, 0.0)
    best = RidgeChoice(np.inf, np.inf, 0.0)
    for rho in _candidates(floor / unit, MAX_RELATIVE_RHO * float(w.sum()) / min(n, m)):
        df = float(np.sum(w / (w + rho)))
        room = 1.0 - ROBUSTNESS * df / m
        if room <= 0.0:
            break  # nor is there for a smaller one
        u = _solve(d + rho, e, b)
        if u is None:
            continue
        rss = max(K * m - float(np.vdot(u, b)) - rho * float(np.vdot(u, u)), 0.0)
        score = rss / (K * m) / room**2
        if score < best.score:
            best = RidgeChoice(float(rho) * unit, score, df)
    return best


def _candidates(floor: float, largest: float) -> FloatArray:
    """Return the values to try, the largest first."""
    count = max(int(np.ceil(STEPS_PER_DECADE * np.log10(max(largest / floor, 1.0)))), 1) + 1
    return np.geomspace(max(largest, floor), floor, count)


def _tridiagonal(G: FloatArray, B: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the diagonals of T and Q'B, where G = Q T Q'."""
    n = len(G)
    work = int(lapack.dsytrd_lwork(n, lower=1)[0])
    c, d, e, tau, _ = lapack.dsytrd(G.T, lower=1, lwork=work)  # columns of G.T are contiguous
    b = np.array(B, dtype=float, order="F")
    if n > 1:  # reflectors that lie below the subdiagonal, as those of a QR decomposition
        room = lapack.dormqr("L", "T", c[1:, :-1], tau, b[1:], lwork=-1)[1][0]
        b[1:] = lapack.dormqr("L", "T", c[1:, :-1], tau, b[1:], lwork=int(room))[0]
    return d, e, b


def _solve(d: FloatArray, e: FloatArray, b: FloatArray) -> FloatArray | None:
    """Solve a tridiagonal system; None if the matrix is not positive definite."""
    if len(d) == 1:
        return np.asarray(b / d) if d[0] > 0 else None
    _, _, x, info = lapack.dptsv(d, e, b)
    return None if info else np.asarray(x)
