"""What passes over the rows add up, and what a sweep does to a row.

Labels are gone here: f, v and q are margins, that is multiplied by y.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TypeVar

import numpy as np

from polysift._hinge import hinge_loss, prox_step
from polysift._types import FloatArray

S = TypeVar("S", bound="_Sums")


class _Sums:
    """Arrays that add up, field by field."""

    def add(self: S, other: S) -> S:
        """Add ``other`` in place."""
        for f in fields(self):  # type: ignore[arg-type]
            total = getattr(self, f.name)
            total += getattr(other, f.name)
        return self


@dataclass
class GramSums(_Sums):
    """What the first pass adds up.

    Attributes
    ----------
    G : ndarray of shape (n, n)
        A' Omega A.
    Aty : ndarray of shape (n, K)
        A' Omega y, the residual of the start (u, v, w) = (0, y, 0).
    """

    G: FloatArray
    Aty: FloatArray


@dataclass
class SweepSums(_Sums):
    """What a sweep adds up; f = A u, v and q = w / beta are new, ``d_`` is new minus old.

    Attributes
    ----------
    r : ndarray of shape (n, K)
        The residual A' Omega (v - q - f) of the next u-step.
    loss, primal, f2, v2, q2, dv2, dq2 : ndarray of shape (K,)
        Sums over rows of the hinge loss of f, and of the squares of f - v, f, v, q, dv and dq.
    wrong : ndarray of shape (1,)
        The weight of the rows that f puts in the wrong class.
    """

    r: FloatArray
    loss: FloatArray
    primal: FloatArray
    f2: FloatArray
    v2: FloatArray
    q2: FloatArray
    dv2: FloatArray
    dq2: FloatArray
    wrong: FloatArray

    @classmethod
    def zeros(cls, n: int, K: int) -> SweepSums:
        """Return empty sums."""
        per_column = {f.name: np.zeros(K) for f in fields(cls)[1:-1]}
        return cls(r=np.zeros((n, K)), wrong=np.zeros(1), **per_column)


def move(t: FloatArray, f: FloatArray, gamma: float, relax: float) -> FloatArray:
    """Move the state t to the scores f (both as margins); return v - q - f, as margins too.

    The new t is ``relax f + (1 - relax) v + q`` with the old v and q.
    """
    k = prox_step(t, gamma)
    if relax == 1.0:
        np.subtract(f, k, out=t)
    else:
        t *= 1.0 - relax
        t += relax * (f - k)
    k = prox_step(t, gamma)
    k *= 2.0
    k += t
    k -= f
    return k


def add_statistics(
    sums: SweepSums,
    f: FloatArray,
    t_old: FloatArray,
    t: FloatArray,
    gamma: float,
    weights: FloatArray | None,
) -> None:
    """Add the sums over rows that measure progress; all arguments are margins."""

    def total(x: FloatArray) -> FloatArray:
        return np.asarray(x.sum(axis=0) if weights is None else weights @ x)

    k_old, k = prox_step(t_old, gamma), prox_step(t, gamma)
    v = t + k
    sums.loss += total(hinge_loss(f))
    sums.primal += total((f - v) ** 2)
    sums.f2 += total(f**2)
    sums.v2 += total(v**2)
    sums.q2 += total(k**2)
    sums.dv2 += total((v - t_old - k_old) ** 2)
    sums.dq2 += total((k - k_old) ** 2)


def predicted_codes(f: FloatArray) -> FloatArray:
    """Return the class of each row of scores (rows, K); a score of exactly 0 is the positive."""
    return (f[:, 0] >= 0).astype(np.intp) if f.shape[1] == 1 else f.argmax(axis=1)
