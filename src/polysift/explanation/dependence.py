"""Columns that depend on each other, and what the scores lose when a column is shuffled.

Attributions share what two columns say together, by how the model happens to use them: two columns
that are nearly the same may have large attributions each, though either could be spared. Shuffling
a column, by which a row gets the value of another one, shows what the scores lose without it, but
makes rows that do not occur. Neither is the truth; where they differ, columns depend on each other,
and a group is better judged as a whole: all its columns shuffled together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from polysift.explanation.reference import Reference
from polysift.explanation.score import Score
from polysift.runtime.types import FloatArray, IntArray

MIN_CORRELATION = 0.9
"""The absolute correlation of the coordinates of two columns from which they form a group."""

MAX_SHUFFLED_ROWS, MAX_SHUFFLED_FEATURES = 500, 2e8
"""The most rows that are shuffled, and the most features of all columns together."""


@dataclass(frozen=True)
class Group:
    """Columns that depend on each other.

    Attributes
    ----------
    columns : tuple of int
        Their positions, the most important first.
    correlation : float
        The largest absolute correlation of two of them.
    shuffled : float
        The mean absolute change of the scores where all of them are shuffled together.
    """

    columns: tuple[int, ...]
    correlation: float
    shuffled: float


def shuffled_changes(
    score: Score, reference: Reference, sets: Sequence[Sequence[int]]
) -> FloatArray:
    """Return the mean absolute change of the scores, over rows and scores, for sets of columns."""
    n = len(score.parts.centers)
    most = min(MAX_SHUFFLED_ROWS, MAX_SHUFFLED_FEATURES / (max(len(sets), 1) * n))
    some = slice(None, None, -(-len(reference.rows) // max(int(most), 20)))
    Z, w = reference.rows[some], reference.weights[some]
    w = w / w.sum()
    other = np.random.default_rng(0).permutation(len(Z))  # the same one always
    base = score.parts.base(Z)
    scores = score.of_base(base)
    changes = []
    for columns in sets:
        moved = base.copy()
        for column in columns:
            part = score.parts.part(column, Z)
            moved += part[other] - part
        changes.append(float(w @ np.abs(score.of_base(moved) - scores).mean(axis=1)))
    return np.array(changes)


def dependent_groups(
    score: Score, reference: Reference, attribution: FloatArray
) -> list[tuple[tuple[int, ...], float]]:
    """Return columns that depend on each other, with the largest correlation of each group.

    A column counts by its first coordinate: with the spline kernel, its rank among the rows.
    """
    owners, w = score.parts.owners, reference.weights
    columns, first = np.unique(owners, return_index=True)
    Z = reference.rows[:, first]
    Z = (Z - w @ Z) * np.sqrt(w)[:, None]
    sizes = np.sqrt(np.sum(Z**2, axis=0))
    Z = np.divide(Z, sizes, out=np.zeros_like(Z), where=sizes > 1e-9)
    R = np.abs(Z.T @ Z)
    np.fill_diagonal(R, 0.0)
    labels = _components(R >= MIN_CORRELATION)
    order = np.argsort(-attribution.mean(axis=0)[columns], kind="stable")
    groups = []
    for label in np.unique(labels):
        members = [k for k in order if labels[k] == label]
        if len(members) > 1:
            largest = float(R[np.ix_(members, members)].max())
            groups.append((tuple(int(columns[k]) for k in members), min(largest, 1.0)))
    return groups


def _components(linked: FloatArray) -> IntArray:
    """Return the number of each column's component of a graph."""
    labels = np.arange(len(linked))
    for _ in range(len(linked)):
        least = np.where(linked, labels[None, :], len(linked)).min(axis=1, initial=len(linked))
        new = np.minimum(labels, least)
        if np.array_equal(new, labels):
            break
        labels = new
    return labels
