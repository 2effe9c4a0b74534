"""The levels of categories: how the rows that have a level are scored because of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polysift.explanation.reference import Reference
from polysift.explanation.score import Score
from polysift.features.level_columns import LevelColumn
from polysift.features.tables import TableScaler
from polysift.runtime.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class LevelEffects:
    """The levels of one category that occur in the sample of the reference rows.

    Attributes
    ----------
    names : list of str
        Their words; "(rare)" for the rare ones together, "(unknown)" for levels that were not in
        the training rows, "(missing)" for rows without a value.
    shares : ndarray of shape (L,)
        Their shares of the rows.
    attributions : ndarray of shape (L, K)
        The mean attribution of the column over the rows of each level, for each score.
    """

    names: list[str]
    shares: FloatArray
    attributions: FloatArray

    def entries(self, top: int | None) -> list[dict[str, Any]]:
        """Return the levels, the most influential first."""
        sizes = np.abs(self.attributions).mean(axis=1)
        several = self.attributions.shape[1] > 1
        return [
            {
                "level": self.names[i],
                "share": float(self.shares[i]),
                "attribution": self.attributions[i].tolist()
                if several
                else float(self.attributions[i, 0]),
            }
            for i in np.argsort(-sizes, kind="stable")[:top]
        ]


def level_effects(
    score: Score, reference: Reference, attributions: FloatArray
) -> dict[int, LevelEffects]:
    """Return the levels of each category, where they are known.

    Parameters
    ----------
    score : Score
        The score.
    reference : Reference
        The reference rows.
    attributions : ndarray of shape (r, d, K)
        The attributions of its sample.
    """
    return {
        found.column: _effects(
            found, reference.codes[found.column], reference.weights, attributions[:, found.column]
        )
        for found in score.levels
        if reference.codes[found.column].min() >= 0
    }


def _effects(
    found: LevelColumn, codes: IntArray, weights: FloatArray, attributions: FloatArray
) -> LevelEffects:
    present, at = np.unique(codes, return_inverse=True)
    shares = np.bincount(at, weights)
    sums = np.stack([np.bincount(at, weights * values) for values in attributions.T], axis=1)
    words = found.names
    return LevelEffects([words[i] for i in present], shares, sums / shares[:, None])


def levels_of_rows(score: Score, block: FloatArray) -> dict[int, IntArray]:
    """Return the levels of dense rows, for each category."""
    return {found.column: found.named_rows(block[:, found.column]) for found in score.levels}


def levels_of_coordinates(score: Score, Z: FloatArray) -> dict[int, IntArray]:
    """Return the levels of rows that are given as coordinates, such as centers.

    They are -1 for points that are no rows, and where several levels have the same coordinates.
    """
    scaler, codes = score.scaler, {}
    if not isinstance(scaler, TableScaler):
        return {}
    start = scaler.first_indicator + len(scaler.indicators)
    for found in scaler.levels:
        own = np.ascontiguousarray(Z[:, start : start + found.width])
        start += found.width
        known = {row.tobytes(): code for code, row in enumerate(found.table)}
        distinct = len(known) == len(found.table)
        at = [known.get(row.tobytes(), -1) if distinct else -1 for row in own]
        missing = _are_missing(scaler, Z, found.column)
        codes[found.column] = np.where(missing, len(found.table), np.array(at, dtype=int))
    return {found.column: codes[found.column] for found in score.levels}


def _are_missing(scaler: TableScaler, Z: FloatArray, column: int) -> Any:
    """Return in which rows a column has no value, by its indicator."""
    for number, owner in enumerate(scaler.indicators):
        if owner == column:
            return Z[:, scaler.first_indicator + number] == scaler.indicator_values[1, number]
    return np.zeros(len(Z), dtype=bool)


def level_rows(
    entries: Sequence[dict[str, Any]], classes: Sequence[Any]
) -> list[tuple[str, float, Any, float]]:
    """Return levels with their share and, of the score that they move most, class and value."""
    rows = []
    for entry in entries:
        values = np.atleast_1d(entry["attribution"])
        most = int(np.argmax(np.abs(values)))
        rows.append((entry["level"], entry["share"], classes[most], float(values[most])))
    return rows
