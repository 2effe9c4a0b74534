"""The score as a sum of monomials: an exact expansion of the kernel, in one fixed order.

Monomials come degree by degree. Within a degree the last variable counts most: those that end in
``z_v`` are ``z_v`` times the first ones of the degree before, which makes products of prefixes of
everything here. For two variables: 1; a, b; a^2, a b, b^2; a^3, a^2 b, ...
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import comb

import numpy as np

from polysift.features.kernels import full_dimension
from polysift.runtime.parallel import block_spans, single_threaded_blas
from polysift.runtime.types import FloatArray, IntArray

BLOCK_NUMBERS = 2**21
"""Monomials that are computed at a time: those of some rows, or of some centers."""


@dataclass(frozen=True, eq=False)
class Polynomial:
    """Scores as polynomials of the scaled features.

    Attributes
    ----------
    degree : int
        The degree s.
    exponents : ndarray of shape (M, d)
        The exponents of the monomials, M = C(s + d, s), in the order of ``monomial_exponents``.
        Columns of zeros are features that are not used, and do not count in d.
    coefficients : ndarray of shape (K, M)
        The coefficients of each score; K is 1 for two classes, else the number of classes.
    """

    degree: int
    exponents: IntArray
    coefficients: FloatArray

    def __call__(self, Z: FloatArray) -> FloatArray:
        """Return the scores of scaled rows (m, d), of shape (m, K)."""
        Z = np.asarray(Z, dtype=float)
        if len(self.exponents) < full_dimension(self.degree, Z.shape[1]):
            Z = Z[:, self.exponents.any(axis=0)]
        out = np.empty((len(Z), len(self.coefficients)))
        with single_threaded_blas():
            for lo, hi in _blocks(len(Z), len(self.exponents)):
                out[lo:hi] = (self.coefficients @ monomials(Z[lo:hi].T, self.degree)).T
        return out


def expand(centers: FloatArray, coef: FloatArray, degree: int) -> Polynomial:
    """Write ``sum_j u_j (1 + z.c_j)^s`` as a polynomial of z.

    The coefficient of ``z^a`` is ``s! / (a! (s - |a|)!) sum_j u_j c_j^a``. Its rounding error is
    that of the score itself: some eps times the same sum with absolute values.

    Parameters
    ----------
    centers : ndarray of shape (n, d)
        The centers c.
    coef : ndarray of shape (K, n)
        The coefficients u of each score.
    degree : int
        The degree s.
    """
    n, d = centers.shape
    exponents = monomial_exponents(d, degree)
    sums = np.zeros((len(coef), len(exponents)))
    with single_threaded_blas():  # whose sums do not depend on the machine's number of cores
        for lo, hi in _blocks(n, len(exponents)):
            sums += coef[:, lo:hi] @ monomials(centers[lo:hi].T, degree).T
    return Polynomial(degree, exponents, multinomials(exponents, degree) * sums)


def monomial_exponents(d: int, degree: int) -> IntArray:
    """Return the exponents of all monomials up to a degree, of shape (M, d)."""
    out = np.zeros((full_dimension(degree, d), d), dtype=np.min_scalar_type(degree))
    for _, v, into, prefix in _steps(d, degree):
        out[into] = out[prefix]
        out[into, v] += 1
    return out


def monomials(columns: FloatArray, degree: int) -> FloatArray:
    """Return all monomials of some rows, given as columns (d, rows), of shape (M, rows)."""
    d = len(columns)
    out = np.ones((full_dimension(degree, d), columns.shape[1]))
    for _, v, into, prefix in _steps(d, degree):
        np.multiply(out[prefix], columns[v], out=out[into])
    return out


def multinomials(exponents: IntArray, degree: int) -> FloatArray:
    """Return ``s! / (a! (s - |a|)!)`` of each monomial; exact up to 2^53."""
    out = np.ones(len(exponents))
    for k, v, into, prefix in _steps(exponents.shape[1], degree):
        # One more factor, of which there are a_v then: (s - k + 1) / a_v times as many orders.
        out[into] = out[prefix] * (degree - k + 1) / exponents[into, v]
    return out


def _steps(d: int, degree: int) -> Iterator[tuple[int, int, slice, slice]]:
    """Yield degree k, variable v, and where the monomials of degree k that end in v lie.

    They are ``z_v`` times the monomials of degree k - 1 in the variables up to v, the last slice.
    """
    start, end = 0, 1
    for k in range(1, degree + 1):
        into = end
        for v in range(d):
            count = comb(v + k - 1, k - 1)
            yield k, v, slice(into, into + count), slice(start, start + count)
            into += count
        start, end = end, into


def _blocks(rows: int, count: int) -> Iterator[tuple[int, int]]:
    return block_spans((0, rows), max(1, BLOCK_NUMBERS // count))
