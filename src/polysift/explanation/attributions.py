"""Exact Shapley values and gradients of a score, computed from the centers, for any size.

The base of the kernel is a sum over features, ``1 + sum_i part_i(z, c_j)``; the polynomial kernel
has ``part_i = z_i c_ji``. So between a baseline b and a row z, the score with the features in S
from z and the others from b is ``v(S) = sum_j u_j (a_j + sum_{i in S} h_ij)^s`` with a_j the base
of b and ``h_ij = part_i(z, c_j) - part_i(b, c_j)``. The Shapley value of feature i is an integral
over t in [0, 1]: the mean of ``v(S with i) - v(S)`` where every other feature is in S with
probability t. With B_i(t) such a coin, K_k(t) its k-th cumulant and ``m_r(t)`` the r-th moment of
``a_j + sum_i B_i h_ij``,

    phi_i = sum_j u_j sum_{k=1..s} h_ij^k C(s, k) int_0^1 K_k'(t) m_{s-k}(t) dt

(the generating function of the others is that of all over ``1 - t + t exp(h_i x)``, and
``(exp(y) - 1) / (1 - t + t exp(y))`` is the derivative by t of ``sum_k K_k(t) y^k / k!``).
Cumulants add up, so the moments need only the power sums ``sum_i h_ij^k``: 2 s matrix products in
all. The integrand is a polynomial of degree s - 1 in t: ceil(s / 2) nodes of Gauss and Legendre
are exact.

Where a part is a product, so are its powers. Other features, such as a column of a table with
several coordinates, or a number in the spline kernel, are computed one by one.
"""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np

from polysift.explanation.parts import Baseline, Products
from polysift.features.kernels import power_in_place
from polysift.runtime.parallel import block_spans
from polysift.runtime.types import FloatArray

BLOCK_FEATURES = 2**17
"""Rows times centers in a block: a dozen arrays of that size stay in the cache."""


class Attributor:
    """Shapley values of the scores of one model.

    Parameters
    ----------
    parts : Products
        The parts of the base, and the centers.
    coef : ndarray of shape (K, n)
        The coefficients u of each score.
    degree : int
        The degree s.
    """

    def __init__(self, parts: Products, coef: FloatArray, degree: int) -> None:
        self._parts, self._coef, self._degree = parts, coef, degree
        self._features = parts.owners[parts.alone]
        self._powers = [parts.centers[:, parts.alone] ** k for k in range(1, degree + 1)]
        self._nodes = _nodes(degree)

    def __call__(self, Z: FloatArray, baseline: Baseline) -> FloatArray:
        """Return the Shapley values of coordinates of rows (m, D), as (m, d, K)."""
        out = np.empty((len(Z), self._parts.n_columns, len(self._coef)))
        for lo, hi in block_spans((0, len(Z)), max(1, BLOCK_FEATURES // self._coef.shape[1])):
            out[lo:hi] = self._block(Z[lo:hi], baseline)
        return out

    def _block(self, Z: FloatArray, baseline: Baseline) -> FloatArray:
        step = Z[:, self._parts.alone] - baseline.alone
        steps = [step**k for k in range(1, self._degree + 1)]
        sums = [h @ C.T for h, C in zip(steps, self._powers, strict=True)]
        for feature, part in baseline.parts.items():
            power = h = self._parts.part(feature, Z) - part
            for total in sums:
                total += power
                power = power * h
        out = np.zeros((len(Z), self._parts.n_columns, len(self._coef)))
        weights = self._weights(sums, baseline.base)
        for G, h, C in zip(weights, steps, self._powers, strict=True):
            for column, u in enumerate(self._coef):
                out[:, self._features, column] += h * ((G * u) @ C)
        for feature, part in baseline.parts.items():
            h = self._parts.part(feature, Z) - part
            total = weights[-1] * h
            for G in weights[-2::-1]:
                total = (total + G) * h
            out[:, feature] = total @ self._coef.T
        return out

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
    parts: Products, coef: FloatArray, degree: int, block: FloatArray, Z: FloatArray
) -> FloatArray:
    """Return the gradients by the columns of dense rows with coordinates Z, (rows, d, K)."""
    out = np.empty((len(Z), parts.n_columns, len(coef)))
    for lo, hi in block_spans((0, len(Z)), max(1, BLOCK_FEATURES // len(parts.centers))):
        P = parts.base(Z[lo:hi])
        if degree == 1:
            P[:] = 1.0
        else:
            power_in_place(P, degree - 1, np.empty_like(P))
        for column, u in enumerate(coef):
            W = P * (degree * u)
            out[lo:hi, :, column] = parts.gradients(block[lo:hi], Z[lo:hi], W)
    return out
