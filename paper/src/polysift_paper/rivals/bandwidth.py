"""The width of a Gaussian kernel, by the median distance of a sample of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.utils import check_random_state

from polysift.runtime.types import FloatArray

SAMPLE_ROWS = 1000
"""How many rows the median distance is taken from."""


def median_distance(X: FloatArray, random_state: Any) -> float:
    """Return the median distance between two of a sample of rows; 1 if that is zero.

    Parameters
    ----------
    X : ndarray of shape (m, d)
        The rows.
    random_state : int, RandomState or None
        The seed of the sample.
    """
    rows = np.arange(len(X))
    if len(X) > SAMPLE_ROWS:
        rows = check_random_state(random_state).choice(len(X), SAMPLE_ROWS, replace=False)
    distances = pdist(X[rows])
    median = float(np.median(distances)) if len(distances) else 0.0
    return median if median > 0 else 1.0
