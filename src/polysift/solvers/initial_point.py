"""The initial point (u, v, w) of Algorithm 1, where it is given and not (0, y, 0).

Theorem 1 of the paper holds for any finite point. That one can begin anywhere serves to check it,
and to go on from where another program has stopped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polysift.data.training_set import TrainingSet
from polysift.runtime.types import FloatArray


@dataclass(frozen=True)
class InitialPoint:
    """Where Algorithm 1 begins.

    Attributes
    ----------
    u : ndarray of shape (n, K)
        The coefficients.
    v, w : ndarray of shape (m, K)
        The copy of A u and the multiplier, both multiplied by the labels, as the state of rows is.
    weights : ndarray of shape (m,) or None
        How often each row counts; None means once.
    """

    u: FloatArray
    v: FloatArray
    w: FloatArray
    weights: FloatArray | None

    def moved(self, v: FloatArray) -> FloatArray:
        """Return the squared distance to another v, of each column."""
        squares = (v - self.v) ** 2
        return squares.sum(axis=0) if self.weights is None else self.weights @ squares


def initial_point(given: Any, data: TrainingSet, n: int) -> InitialPoint:
    """Check what a user has given, (u0, v0, w0) with None for the paper's choice of one.

    Parameters
    ----------
    given : sequence of three arrays or None
        u0 of shape (K, n), as ``coef_`` has it, v0 and w0 of shape (m, K); of two classes, K = 1
        may be left out.
    data : TrainingSet
        The rows.
    n : int
        The number of centers.
    """
    if not isinstance(given, Sequence) or len(given) != 3:
        raise ValueError(
            "initial_point must be (u0, v0, w0), with None for the paper's choice: zeros for u0 "
            f"and w0, the labels for v0; got {type(given).__name__}."
        )
    m, K = data.source.n_rows, data.n_columns
    y = data.labels_of(slice(None))
    u, v, w = given
    return InitialPoint(
        np.zeros((n, K)) if u is None else _checked("u0", u, (K, n)).T.copy(),
        np.ones((m, K)) if v is None else y * _checked("v0", v, (m, K)),
        np.zeros((m, K)) if w is None else y * _checked("w0", w, (m, K)),
        data.weights,
    )


def _checked(name: str, value: Any, shape: tuple[int, int]) -> FloatArray:
    """Return an array of a shape, where the one of its two sides that is 1 may be left out."""
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} of initial_point must be an array of numbers; got {type(value).__name__}."
        ) from None
    flat = tuple(side for side in shape if side != 1) or (1,)
    if array.shape not in (shape, flat):
        wanted = " or ".join(str(one) for one in dict.fromkeys((flat, shape)))
        raise ValueError(f"{name} of initial_point must have shape {wanted}; got {array.shape}.")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} of initial_point must be finite; got NaN or infinity.")
    return array.reshape(shape)
