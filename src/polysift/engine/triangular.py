"""Products with a triangular matrix."""

from __future__ import annotations

from polysift.runtime.types import FloatArray

PANELS = 8
"""Columns of the triangular matrix are worked on in so many goes."""


def times_triangular(A: FloatArray, T: FloatArray) -> None:
    """Turn A into A T, with T upper triangular, for little more than half of the work.

    BLAS has a routine for it, but scipy does not let other threads work while it runs.
    """
    n = len(T)
    width = -(-n // PANELS)
    for hi in range(n, 0, -width):  # from the right: what is still needed stays
        lo = max(hi - width, 0)
        A[:, lo:hi] = A[:, :hi] @ T[:hi, lo:hi]
