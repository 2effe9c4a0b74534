"""Weights of the columns in a kernel, by how much each matters to the scores of a first model.

A kernel of many columns of which few matter is dominated by noise; with weights, each column has a
part of the kernel that goes with what it says.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polysift.features.columns import TableColumns
from polysift.features.feature_map import BlockFeatures, FeatureMap
from polysift.features.kernels import power_in_place
from polysift.features.parts import column_part
from polysift.features.sampled_rows import LabelledSample
from polysift.runtime.parallel import block_spans
from polysift.runtime.types import FloatArray

WEIGHED_ROWS, WEIGHED_PARTS = 1000, 2e7
"""The rows by which columns are weighed, and the most entries of all their parts of the kernel."""

WEIGHED_BLOCK_ROWS = 250
"""The rows that are weighed at once, so that their features stay in the cache."""

UNIFORM_SHARE = 0.1
"""The share of a column's weight that is the same for all."""


def column_weights(
    feature_map: FeatureMap, u: FloatArray, sample: LabelledSample, columns: TableColumns
) -> FloatArray | None:
    """Return the weights, which add up to one; None if there is nothing to weigh.

    What matters of a column is the mean square of what the scores change if nothing is known of it:
    if its part of the kernel is zero. The weights are as the root of that.

    Parameters
    ----------
    feature_map : FeatureMap
        The features of the model.
    u : ndarray of shape (n, K)
        Its coefficients.
    sample : LabelledSample
        The rows of which some are scored.
    columns : TableColumns
        What the columns are.
    """
    d, n = len(columns.used), feature_map.n_centers
    if d < 2:
        return None
    rows, counts = sample.distinct(int(min(WEIGHED_ROWS, max(WEIGHED_PARTS / (d * n), 100))))
    changes = _score_changes(feature_map, u, rows, counts, columns.used)
    if not changes.any():
        return None
    roots, weights = np.sqrt(changes), np.zeros(len(columns.kinds))
    weights[columns.used] = (1.0 - UNIFORM_SHARE) * roots / roots.sum() + UNIFORM_SHARE / d
    return weights


def _score_changes(
    feature_map: FeatureMap,
    u: FloatArray,
    rows: FloatArray,
    weights: FloatArray,
    columns: Sequence[int],
) -> FloatArray:
    """Return the mean squared change of the scores if the part of each column is zero."""
    features, out = BlockFeatures(feature_map, float), np.zeros(len(columns))
    for lo, hi in block_spans((0, len(rows)), WEIGHED_BLOCK_ROWS):
        X = features.rows(rows[lo:hi])
        base, power, scratch = np.empty((3, hi - lo, feature_map.n_centers))
        features.base(X, base, scratch)
        np.copyto(power, base)
        power_in_place(power, feature_map.degree, scratch)
        whole = power @ u
        for k, column in enumerate(columns):
            np.subtract(base, column_part(feature_map, X[:, :-1], column), out=power)
            power_in_place(power, feature_map.degree, scratch)
            out[k] += weights[lo:hi] @ np.sum((whole - power @ u) ** 2, axis=1)
    return out / weights.sum()
