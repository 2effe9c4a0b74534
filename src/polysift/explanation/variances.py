"""Importance of features: the variance of a polynomial, divided among sets of features.

Over independent features a function is, in one way only, a sum of terms that each depend on some
set of features and average to zero over any one of them (functional ANOVA; Sobol's indices). The
terms are uncorrelated, so their variances add up to that of the function. A polynomial has them in
closed form: in products of polynomials that are orthonormal over each feature, the variance of a
set's term is the sum of the squared coefficients of the products of just these features.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polysift.explanation.reference import Reference
from polysift.features.monomials import Polynomial
from polysift.runtime.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Importance:
    """The shares of features and of pairs of features in the variance of each score.

    The features are taken as independent, each distributed as in the reference rows. K is 1 for two
    classes, else the number of classes; shares of a score that does not vary are 0.

    Attributes
    ----------
    mean, variance : ndarray of shape (K,)
        The mean and the variance of each score.
    alone : ndarray of shape (K, d)
        The share of the variance that is due to one feature by itself (Sobol's first order).
    total : ndarray of shape (K, d)
        The share of all terms that a feature takes part in: what would be left, on average, if all
        others were known.
    pairs : ndarray of shape (K, d, d)
        The share of the interaction of two features, beyond their shares alone; symmetric, with
        zeros on the diagonal.
    """

    mean: FloatArray
    variance: FloatArray
    alone: FloatArray
    total: FloatArray
    pairs: FloatArray

    @property
    def higher(self) -> FloatArray:
        """The share of interactions of three features or more, of shape (K,)."""
        known = self.alone.sum(axis=1) + self.pairs.sum(axis=(1, 2)) / 2
        return np.where(self.variance > 0, np.maximum(1.0 - known, 0.0), 0.0)

    def overall(self, name: str) -> FloatArray:
        """Return "alone", "total", "pairs" or "higher" of all scores together, by variance."""
        whole = self.variance.sum()
        weights = self.variance / whole if whole > 0 else self.variance
        return np.asarray(np.tensordot(weights, getattr(self, name), axes=1))


def importance_of(polynomial: Polynomial, reference: Reference) -> Importance:
    """Divide the variance over independent features, distributed as the reference's columns."""
    factors = reference.factors
    E, d = polynomial.exponents, polynomial.exponents.shape[1]
    c = _orthonormal(polynomial, factors)
    mean = c[:, 0] * np.prod(np.sign(factors[:, 0, 0]))  # the first basis function may be -1
    squares = c[:, 1:] ** 2
    used = E[1:] > 0
    order = used.sum(axis=1)
    by_feature = np.stack([squares[:, column].sum(axis=1) for column in used.T], axis=1)
    alone, pairs = np.zeros((len(c), d)), np.zeros((len(c), d, d))
    which = np.nonzero(used[order == 1])[1]
    first, second = np.nonzero(used[order == 2])[1].reshape(-1, 2).T
    for k in range(len(c)):
        alone[k] = np.bincount(which, squares[k, order == 1], d)
        counts = np.bincount(first * d + second, squares[k, order == 2], d * d)
        pairs[k] = counts.reshape(d, d) + counts.reshape(d, d).T
    variance = squares.sum(axis=1)
    scale = np.divide(1.0, variance, out=np.zeros_like(variance), where=variance > 0)
    shares = (alone * scale[:, None], by_feature * scale[:, None], pairs * scale[:, None, None])
    return Importance(mean, variance, *shares)


def _orthonormal(polynomial: Polynomial, factors: FloatArray) -> FloatArray:
    """Return the coefficients in products of orthonormal polynomials, in the same order.

    One variable after the other: ``z^k = sum_l R[l, k] q_l(z)``. What is left of the monomials with
    ``z^k``, when it is taken out, is in the same order for all k, and a larger k has fewer of it: a
    prefix.
    """
    c = polynomial.coefficients.copy()
    for column, R in zip(np.ascontiguousarray(polynomial.exponents.T), factors, strict=True):
        positions = [np.flatnonzero(column == k) for k in range(polynomial.degree + 1)]
        for low, into in enumerate(positions):
            total = R[low, low] * c[:, into]
            for k in range(low + 1, len(positions)):
                total[:, : len(positions[k])] += R[low, k] * c[:, positions[k]]
            c[:, into] = total  # not read again: lower powers take from higher ones only
    return c


def term_spreads(polynomial: Polynomial, reference: Reference) -> FloatArray:
    """Return the standard deviation of each term ``w_a z^a`` by itself, of shape (K, M)."""
    squares = _products(polynomial.exponents, reference.squares)
    means = _products(polynomial.exponents, reference.means)
    return np.abs(polynomial.coefficients) * np.sqrt(np.maximum(squares - means**2, 0.0))


def _products(exponents: IntArray, table: FloatArray) -> FloatArray:
    """Return the product over the features of ``table[i, a_i]`` of each monomial."""
    out = np.ones(len(exponents))
    for column, values in zip(np.ascontiguousarray(exponents.T), table, strict=True):
        out *= values[column]
    return out
