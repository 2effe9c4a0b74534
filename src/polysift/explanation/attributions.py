"""Exact Shapley values and gradients of a score, computed from the centers, for any size.

Between a baseline b and a row z, the score with the features in S from z and the others from b is
``v(S) = sum_j u_j (a_j + sum_{i in S} h_ij)^s`` with ``a_j = 1 + b.c_j`` and
``h_ij = (z_i - b_i) c_ji``. The Shapley value of feature i is an integral over t in [0, 1]: the
mean of ``v(S with i) - v(S)`` where every other feature is in S with probability t. With B_i(t)
such a coin, K_k(t) its k-th cumulant and ``m_r(t)`` the r-th moment of ``a_j + sum_i B_i h_ij``,

    phi_i = sum_j u_j sum_{k=1..s} h_ij^k C(s, k) int_0^1 K_k'(t) m_{s-k}(t) dt

(the generating function of the others is that of all over ``1 - t + t exp(h_i x)``, and
``(exp(y) - 1) / (1 - t + t exp(y))`` is the derivative by t of ``sum_k K_k(t) y^k / k!``).
Cumulants add up, so the moments need only the power sums ``sum_i h_ij^k``: 2 s matrix products in
all. The integrand is a polynomial of degree s - 1 in t: ceil(s / 2) nodes of Gauss and Legendre
are exact.

A feature may have several coordinates, as a column of a table has: then h_ij is the sum over them,
``sum_k (z_k - b_k) c_jk``, and its powers are no products of powers, so that such features are
computed one by one.
"""

from __future__ import annotations

from fractions import Fraction
from math import comb
from typing import Any

import numpy as np

from polysift.features.kernels import power_in_place
from polysift.runtime.parallel import block_spans
from polysift.runtime.types import FloatArray, IntArray

BLOCK_FEATURES = 2**17
"""Rows times centers in a block: a dozen arrays of that size stay in the cache."""


class Attributor:
    """Shapley values of the scores of one model.

    Parameters
    ----------
    centers : ndarray of shape (n, D)
        The centers c.
    coef : ndarray of shape (K, n)
        The coefficients u of each score.
    degree : int
        The degree s.
    owners : ndarray of int of shape (D,), optional
        The feature of each coordinate; by default each is a feature of its own.
    n_features : int, optional
        The number of features, d; by default D.
    """

    def __init__(
        self,
        centers: FloatArray,
        coef: FloatArray,
        degree: int,
        owners: IntArray | None = None,
        n_features: int | None = None,
    ) -> None:
        self._centers, self._coef, self._degree = centers, coef, degree
        self._n_features = centers.shape[1] if n_features is None else n_features
        self._groups: dict[int, IntArray] = {}  # the coordinates of features that have several
        self._alone: Any = slice(None)
        self._features: Any = slice(None)
        if owners is not None and not np.array_equal(owners, np.arange(self._n_features)):
            counts = np.bincount(owners, minlength=self._n_features)
            self._alone = np.flatnonzero(counts[owners] == 1)
            self._features = owners[self._alone]
            several = np.flatnonzero(counts > 1).tolist()
            self._groups = {feature: np.flatnonzero(owners == feature) for feature in several}
        self._powers = [centers[:, self._alone] ** k for k in range(1, degree + 1)]
        self._nodes = _nodes(degree)

    def __call__(self, Z: FloatArray, baseline: FloatArray) -> FloatArray:
        """Return the Shapley values of scaled rows (m, D) against a row (D,), as (m, d, K)."""
        out = np.empty((len(Z), self._n_features, len(self._coef)))
        for lo, hi in block_spans((0, len(Z)), max(1, BLOCK_FEATURES // self._coef.shape[1])):
            out[lo:hi] = self._block(Z[lo:hi] - baseline, 1.0 + self._centers @ baseline)
        return out

    def _block(self, step: FloatArray, start: FloatArray) -> FloatArray:
        """Return the values of rows with ``step = z - b``; ``start`` is a, of shape (n,)."""
        steps = [step[:, self._alone] ** k for k in range(1, self._degree + 1)]
        sums = [h @ C.T for h, C in zip(steps, self._powers, strict=True)]
        for group in self._groups.values():
            power = h = self._group(step, group)
            for total in sums:
                total += power
                power = power * h
        out = np.zeros((len(step), self._n_features, len(self._coef)))
        weights = self._weights(sums, start)
        for G, h, C in zip(weights, steps, self._powers, strict=True):
            for column, u in enumerate(self._coef):
                out[:, self._features, column] += h * ((G * u) @ C)
        for feature, group in self._groups.items():
            h = self._group(step, group)
            total = weights[-1] * h
            for G in weights[-2::-1]:
                total = (total + G) * h
            out[:, feature] = total @ self._coef.T
        return out

    def _group(self, step: FloatArray, group: IntArray) -> FloatArray:
        """Return h of a feature with several coordinates, of shape (rows, n)."""
        return step[:, group] @ self._centers[:, group].T

    def _weights(self, sums: list[FloatArray], start: FloatArray) -> list[FloatArray]:
        """Return ``C(s, k) int K_k' m_{s-k} dt`` for k = 1, ..., s, each of shape (rows, n)."""
        s = self._degree
        out = [np.zeros_like(sums[0]) for _ in range(s)]
        for weight, cumulants, slopes in self._nodes:
            parts = [value * p for value, p in zip(cumulants, sums, strict=True)]
            parts[0] += start
            m = _moments(parts, s - 1)
            for k in range(1, s + 1):
                out[k - 1] += (weight * comb(s, k) * slopes[k - 1]) * m[s - k]
        return out


def _moments(cumulants: list[FloatArray], highest: int) -> list[FloatArray]:
    """Return the moments up to an order; ``cumulants`` begins with the first."""
    m = [np.ones_like(cumulants[0])]
    for r in range(1, highest + 1):
        total = cumulants[0] * m[r - 1]
        for k in range(2, r + 1):
            total += comb(r - 1, k - 1) * cumulants[k - 1] * m[r - k]
        m.append(total)
    return m


def _nodes(degree: int) -> list[tuple[float, list[float], list[float]]]:
    """Return the nodes of the integral over t: weight, cumulants of a coin, their slopes."""
    points, weights = np.polynomial.legendre.leggauss((degree + 1) // 2)
    cumulants = _coin_cumulants(degree)
    return [
        (
            weight / 2,
            [_at(c, t) for c in cumulants],
            [_at(_derivative(c), t) for c in cumulants],
        )
        for t, weight in zip(((points + 1) / 2).tolist(), weights.tolist(), strict=True)
    ]


def _coin_cumulants(highest: int) -> list[list[int]]:
    """Return the cumulants of a coin as polynomials in t: K_1 = t, K_(k+1) = t (1 - t) K_k'."""
    found = [[0, 1]]
    while len(found) < highest:
        slope = _derivative(found[-1])
        found.append([a - b for a, b in zip([0, *slope, 0], [0, 0, *slope], strict=True)])
    return found


def _derivative(coefficients: list[int]) -> list[int]:
    return [k * c for k, c in enumerate(coefficients)][1:]


def _at(coefficients: list[int], t: float) -> float:
    """Return the value of a polynomial, rounded once: its coefficients are large and alternate."""
    total = Fraction(0)
    for c in reversed(coefficients):
        total = total * Fraction(t) + c
    return float(total)


def score_gradients(
    Z: FloatArray, centers: FloatArray, coef: FloatArray, degree: int
) -> FloatArray:
    """Return the gradients by the scaled features of rows (m, d), of shape (m, d, K)."""
    out = np.empty((*Z.shape, len(coef)))
    for lo, hi in block_spans((0, len(Z)), max(1, BLOCK_FEATURES // len(centers))):
        P = 1.0 + Z[lo:hi] @ centers.T
        if degree == 1:
            P[:] = 1.0
        else:
            power_in_place(P, degree - 1, np.empty_like(P))
        for column, u in enumerate(coef):
            out[lo:hi, :, column] = degree * ((P * u) @ centers)
    return out
