"""The kernels: the s-th power of a base, which is a sum over columns.

The base of the polynomial kernel is ``1 + z.c``. That of the spline kernel has, beside the product
of two numbers, ``h(a) + h(b) - max(q_a, q_b)`` of their ranks (``features.splines``): the
reproducing kernel of functions of one variable with a square-integrable slope. Both are computed
from rows and centers in the same coordinates; ``Kernel`` says how these are paired.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, comb, log
from numbers import Integral
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from polysift.runtime.types import FloatArray

MAX_DEGREE_BOUND = 10
"""The paper's cap on the degrees worth trying."""


KERNELS = ("polynomial", "spline")
"""The words of the parameter ``kernel``."""


@dataclass(frozen=True)
class Kernel:
    """How the coordinates of a row and of a center make the base of the power.

    Coordinates are ``(q, z, a, e, g)``. The base is

        ``1 + z.z_c - (a.e_c + e.a_c) + g + g_c - sum_k max(q_k, q_ck)``

    The polynomial kernel has z alone. Of the spline kernel, q are scaled ranks, g is the sum over
    columns of what depends on one of the two points alone, and a and e are there for columns with
    missing values, which contribute nothing: a says that the value is absent, and e is what would
    be left of a column's part if the other value is absent.

    Attributes
    ----------
    ranks : int
        The number of ranks q; 0 for the polynomial kernel.
    absences : int
        The number of columns with a and e.
    """

    ranks: int = 0
    absences: int = 0

    def facing(self, centers: FloatArray) -> FloatArray:
        """Return centers as rows face them, (D + 1, n).

        The base is the sum over coordinates of a row times these, a last coordinate of ones
        included; of the ranks, minus the sum of the larger ones.
        """
        n, D = centers.shape
        out = np.empty((D + 1, n))
        out[:-1] = centers.T
        out[-1] = 1.0
        if self.ranks:
            first = D - 1 - 2 * self.absences
            middle = first + self.absences
            out[first:middle] = -centers[:, middle:-1].T
            out[middle:-2] = -centers[:, first:middle].T
            out[-2] = 1.0
            out[-1] += centers[:, -1]
        return out

    def parted(self, C: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return centers as ``base`` takes them, of what ``facing`` returns.

        ``max(a, b) = (a + b + |a - b|) / 2``: so the sum of the larger ranks is a product, of which
        the first array has the factors, and half of a distance to the ranks, of which the second
        one, float64 of shape (n, ranks), has the halves.
        """
        if not self.ranks:
            return C, np.empty((C.shape[1], 0))
        halves = 0.5 * C[: self.ranks].T.astype(float)
        product = C.copy()
        product[: self.ranks] = -0.5
        product[-1] -= halves.sum(axis=1).astype(C.dtype)
        return product, np.ascontiguousarray(halves)

    def base(
        self,
        X: FloatArray,
        parted: tuple[FloatArray, FloatArray],
        out: FloatArray,
        scratch: FloatArray,
    ) -> None:
        """Write the base of rows X (rows, D + 1), whose last coordinate is one, into ``out``.

        ``scratch`` has the shape and dtype of ``out``.
        """
        C, halves = parted
        np.matmul(X, C, out=out)
        if self.ranks:
            # One pass over rows and centers, four times as fast as a maximum for each rank.
            room = scratch if scratch.dtype == halves.dtype else None
            between = cdist(0.5 * X[:, : self.ranks], halves, "cityblock", out=room)
            np.subtract(out, between, out=out, casting="same_kind")


POLYNOMIAL = Kernel()


def full_dimension(degree: int, n_features: int) -> int:
    """Return C(s + d, s), the dimension of the polynomials of degree s in d variables.

    No set of centers spans more than that, so no model needs more centers.
    """
    return comb(degree + n_features, degree)


def degree_bound(n_samples: int, n_features: int, *, formula: str = "code") -> int:
    """Return s_max, the largest degree the paper's model selection tries.

    Parameters
    ----------
    n_samples : int
        The number of training rows, m.
    n_features : int
        The number of features, d.
    formula : {"code", "text", "ceil"}, default="code"
        "code" is what the authors' program computes, min(ceil((m / ln m)^(1/d)), 10), and the
        order of the optimal degree in Theorem 3; "text" is what the paper prints,
        min([m^(1/d)], 10), with [.] the integer part; "ceil", min(ceil(m^(1/d)), 10), is the one
        that agrees with all numbers of centers that the paper's tables name.

    Returns
    -------
    int
        The bound, at least 1.

    Examples
    --------
    >>> from polysift import degree_bound
    >>> degree_bound(10_280, 5)
    5
    >>> degree_bound(10_280, 5, formula="text")
    6
    >>> degree_bound(10_280, 5, formula="ceil")
    7
    """
    values: dict[str, Any] = {"n_samples": n_samples, "n_features": n_features}
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
            raise ValueError(f"{name} must be an integer of at least 1; got {value!r}.")
    m, d = int(n_samples), int(n_features)
    degrees = range(1, MAX_DEGREE_BOUND + 1)
    # Exact integer roots: 1000 ** (1 / 3) is 9.99... in floating point.
    if formula == "text":
        return max(s for s in degrees if s == 1 or s**d <= m)
    if formula == "ceil":
        return next((s for s in degrees if s**d >= m), MAX_DEGREE_BOUND)
    if formula != "code":
        raise ValueError(f'formula must be "code", "text" or "ceil"; got {formula!r}.')
    if m == 1:
        return 1
    return max(1, min(ceil((m / log(m)) ** (1 / d)), MAX_DEGREE_BOUND))


def power_in_place(Z: FloatArray, degree: int, scratch: FloatArray) -> None:
    """Raise ``Z`` to an integer power in place, by repeated squaring.

    ``**`` is two to three times slower, and allocates. ``scratch`` has the shape of ``Z``; it holds
    the base where the degree is not a power of two.
    """
    steps = bin(degree)[3:]  # the binary digits after the leading one, most significant first
    if "1" in steps:
        np.copyto(scratch, Z)
    for bit in steps:
        np.multiply(Z, Z, out=Z)
        if bit == "1":
            np.multiply(Z, scratch, out=Z)
