"""The paper's synthetic problem (its section V)."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from polysift._params import check_integer
from polysift._types import FloatArray, IntArray


def bayes_curve(t: FloatArray) -> FloatArray:
    """Return h(t) = ((1 - 2t)_+^5 (32 t^2 + 10 t + 1) + 1) / 2, the true boundary.

    Parameters
    ----------
    t : ndarray
        First coordinates, in [0, 1].

    Returns
    -------
    ndarray
        The second coordinate of the boundary there.
    """
    return np.asarray((np.maximum(1 - 2 * t, 0) ** 5 * (32 * t**2 + 10 * t + 1) + 1) / 2)


def make_bayes_curve(
    n_samples: int = 1000, *, noise: float = 0.1, random_state: Any = None
) -> tuple[FloatArray, IntArray]:
    """Draw the paper's synthetic problem: the unit square, cut by ``bayes_curve``.

    Parameters
    ----------
    n_samples : int, default=1000
        The number of rows.
    noise : float, default=0.1
        The share of the labels that are reversed, chosen uniformly.
    random_state : int, RandomState or None, default=None
        The seed.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        Points, uniform in the unit square.
    y : ndarray of shape (n_samples,)
        +1 on and above the curve, -1 below it, before the noise.

    Examples
    --------
    >>> from polysift.datasets import make_bayes_curve
    >>> X, y = make_bayes_curve(4, noise=0.25, random_state=0)
    >>> X.shape, y.tolist()
    ((4, 2), [1, -1, 1, 1])
    """
    m = check_integer("n_samples", n_samples)
    if not 0 <= noise <= 1:
        raise ValueError(f"noise must lie between 0 and 1; got {noise!r}.")
    rng = check_random_state(random_state)
    X = rng.random_sample((m, 2))
    y = np.where(X[:, 1] >= bayes_curve(X[:, 0]), 1, -1)
    y[rng.permutation(m)[: round(m * noise)]] *= -1
    return X, y
