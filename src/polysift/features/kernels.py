"""The polynomial kernel: its dimension, the bound on its degree, its integer power."""

from __future__ import annotations

from math import ceil, comb, log
from numbers import Integral
from typing import Any

import numpy as np

from polysift.runtime.types import FloatArray

MAX_DEGREE_BOUND = 10
"""The paper's cap on the degrees worth trying."""


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
    formula : {"code", "text"}, default="code"
        "code" is what the authors' program computes, min(ceil((m / ln m)^(1/d)), 10), and the
        order of the optimal degree in Theorem 3; "text" is what the paper prints,
        min([m^(1/d)], 10), with [.] the integer part.

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
    """
    values: dict[str, Any] = {"n_samples": n_samples, "n_features": n_features}
    for name, value in values.items():
        if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{name} must be an integer of at least 1; got {value!r}.")
    m, d = int(n_samples), int(n_features)
    if formula == "text":
        # An exact integer root: 1000 ** (1 / 3) is 9.99... in floating point.
        return max(s for s in range(1, MAX_DEGREE_BOUND + 1) if s == 1 or s**d <= m)
    if formula != "code":
        raise ValueError(f'formula must be "code" or "text"; got {formula!r}.')
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
