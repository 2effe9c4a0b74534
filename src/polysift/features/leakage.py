"""Signs of leakage: columns that decide the label alone, found in a sample of the rows.

A column that nearly decides the label is often one that is known only after it: a date of
cancellation, a code that was derived from the outcome. For each column alone, its values are put
into groups, the levels of a category or the quantiles of a number, and the rule that predicts the
most frequent class of a group is learned on one half of the sample and tried on the other.
"""

from __future__ import annotations

import numpy as np

from polysift.data.kinds import CATEGORY
from polysift.data.source import DataSource
from polysift.features.columns import TableColumns
from polysift.features.sampled_rows import LabelledSample
from polysift.runtime.types import FloatArray, IntArray

MAX_SAMPLED_ROWS, MAX_SAMPLED_VALUES = 10_000, 2**20
"""The expected rows of the sample, and the most values that these may have."""

MIN_SAMPLED_ROWS, MIN_OTHER_ROWS = 200, 20
"""The fewest rows of the sample that say something, and among them those of other classes than the
most frequent one."""

MAX_CLASSES = 100
"""With more classes no column is tried."""

ROWS_PER_GROUP = 10
"""The rows of the sample in a group of numbers: few, so that a border is seen where it is."""

MIN_ACCURACY, MIN_ERROR_CUT = 0.97, 0.97
"""A column nearly decides the label if its rule is right in this share of the rows, and avoids this
share of the errors of always predicting the most frequent class. Honest columns come near: the
light in a room avoids 94 % of the errors on whether somebody is there."""


def sampled_share(source: DataSource) -> float:
    """Return the share of a source's rows in the sample: none where columns have no names."""
    if source.names is None or source.sparse:
        return 0.0
    most = min(MAX_SAMPLED_ROWS, MAX_SAMPLED_VALUES // source.n_features)
    return min(1.0, most / source.n_rows)


def deciding_columns(
    sample: LabelledSample | None, n_classes: int, columns: TableColumns
) -> dict[int, float]:
    """Return the columns in use that nearly decide the label alone, and how often they do."""
    majority, found = single_column_accuracies(sample, n_classes, columns)
    allowed = min(1.0 - MIN_ACCURACY, (1.0 - MIN_ERROR_CUT) * (1.0 - majority))
    return {j: accuracy for j, accuracy in found.items() if 1.0 - accuracy <= allowed}


def single_column_accuracies(
    sample: LabelledSample | None, n_classes: int, columns: TableColumns
) -> tuple[float, dict[int, float]]:
    """Return the share of the most frequent class, and how often each column's rule is right.

    Where there are too few rows, or too many classes, no column is tried.
    """
    if sample is None or n_classes > MAX_CLASSES:
        return 0.0, {}
    X, codes, own = sample.rows, sample.codes, sample.own_weights
    weights = np.ones(len(X)) if own is None else own
    counts = np.bincount(codes, weights, n_classes)
    if len(X) < MIN_SAMPLED_ROWS or np.count_nonzero(codes != counts.argmax()) < MIN_OTHER_ROWS:
        return 0.0, {}
    return float(counts.max() / counts.sum()), {
        j: _rule_accuracy(
            _groups(X[:, j], columns.types[j].kind == CATEGORY), codes, weights, len(counts)
        )
        for j in columns.used
    }


def _groups(values: FloatArray, category: bool) -> IntArray:
    """Return the group of each value; a missing value has a group of its own."""
    _, at, counts = np.unique(values, return_inverse=True, return_counts=True)
    at = at.reshape(-1)
    if category:
        return at
    groups = (np.cumsum(counts) - counts) // ROWS_PER_GROUP
    return np.where(np.isnan(values), int(groups[-1]) + 1, groups[at])


def _rule_accuracy(groups: IntArray, codes: IntArray, weights: FloatArray, K: int) -> float:
    """Return how often the most frequent class of a group in the other half is right."""
    G, halves = int(groups.max()) + 1, np.arange(len(groups)) % 2
    flat = np.bincount((halves * G + groups) * K + codes, weights, 2 * G * K)
    counts = flat.reshape(2, G, K)
    right = 0.0
    for own, other in (counts, counts[::-1]):
        seen = np.where(other.any(axis=1, keepdims=True), other, other.sum(axis=0))
        right += float(own[np.arange(G), seen.argmax(axis=1)].sum())
    return right / float(weights.sum())
