"""What the columns of a table are found to be, from their types and what a survey has counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from polysift.data.kinds import CATEGORY, DATE, DROP, NUMBER, ColumnType
from polysift.features.levels import LevelCounts, numbers_the_rows
from polysift.features.statistics import ColumnStatistics
from polysift.features.unfolding import Unfolding
from polysift.runtime.types import FloatArray

if TYPE_CHECKING:
    from polysift.features.survey import Survey

EMPTY, CONSTANT, IDENTIFIER, ENCODED = "empty", "constant", "identifier", "encoded category"
"""Kinds that the survey finds: a column without a value, one of a single value, one that names the
rows, and a category of so many levels that the labels stand for them."""

LEFT_OUT = (EMPTY, CONSTANT, IDENTIFIER, DROP)
"""The kinds that have no coordinates."""

COLUMN_KINDS = (NUMBER, CATEGORY, DATE, ENCODED, *LEFT_OUT)
"""All kinds that a column can be found to be."""

SHOWN_COLUMNS, SHOWN_LEVELS = 10, 5
"""How many columns a sentence names, and how many levels of a category are kept to be shown."""

MIN_IDENTIFIED_ROWS = 50
"""With fewer rows, text that is all different may be so by chance."""


@dataclass(frozen=True)
class TableColumns:
    """What the columns of a table are found to be.

    Attributes
    ----------
    types : tuple of ColumnType
        What the source says of them.
    kinds : tuple of str
        What they are: "number", "category", "date", or one of the kinds above.
    missing : ndarray of shape (d,)
        The share of rows without a value.
    ranges : ndarray of shape (2, d)
        The smallest and the largest value of numbers and dates; NaN of others.
    unseen : ndarray of shape (d,)
        Of categories, the share of further rows that may be expected to bring new levels.
    plain : bool
        Whether the columns that are used are numbers, none of them missing: the paper's kernel.
    whole : bool
        Whether weights are multiplicities.
    max_levels : int
        The most levels of a category with a coordinate for each.
    encoded : dict of int to ndarray of shape (folds, L, K)
        The weights of the levels of encoded categories by fold and class; empty where there are no
        labels.
    """

    types: tuple[ColumnType, ...]
    kinds: tuple[str, ...]
    missing: FloatArray
    ranges: FloatArray
    unseen: FloatArray
    plain: bool
    whole: bool
    max_levels: int
    encoded: Mapping[int, FloatArray] = field(default_factory=dict)

    @property
    def used(self) -> list[int]:
        """The columns that have coordinates."""
        return [j for j, kind in enumerate(self.kinds) if kind not in LEFT_OUT]

    @property
    def written(self) -> bool:
        """Whether numbers in use are read from text, in a way that a model must know."""
        return any(self.types[j].reading for j in self.used)

    @property
    def all_plain(self) -> bool:
        """Whether all columns are numbers as they are, none of them missing or left out."""
        return self.plain and len(self.used) == len(self.kinds) and not self.written

    @property
    def to_encode(self) -> tuple[int, ...]:
        """The columns that the labels stand for."""
        return tuple(j for j, kind in enumerate(self.kinds) if kind == ENCODED)


def find_columns(
    types: Sequence[ColumnType] | None,
    named: bool,
    n_rows: int,
    found: Survey,
    *,
    whole: bool = True,
    max_levels: int = 100,
) -> TableColumns:
    """Decide what the columns of a surveyed table are.

    Parameters
    ----------
    types : sequence of ColumnType or None
        What the source says of them; None for numbers.
    named : bool
        Whether they have names: others are never taken for identifiers.
    n_rows : int
        The number of rows.
    found : Survey
        What the survey has found.
    whole : bool
        Whether weights are multiplicities.
    max_levels : int
        The most levels of a category with a coordinate for each.
    """
    d = len(found.statistics.low) if types is None else len(types)
    types = (ColumnType(NUMBER),) * d if types is None else tuple(types)
    numbers = Unfolding.of([column.kind for column in types])
    position = {int(j): at for at, j in reversed(list(enumerate(numbers.owners)))}
    missing, unseen, kinds = np.zeros(d), np.zeros(d), []
    for j, column in enumerate(types):
        if j in position:
            missing[j] = found.statistics.missing_share[position[j]]
            kinds.append(_kind_of_numbers(column, j, position[j], named, n_rows, found))
        elif column.kind == CATEGORY:
            levels = found.levels[j]
            total = float(found.statistics.weight) or 1.0
            unit = 2.0**found.statistics.exponent
            missing[j] = max(0.0, 1.0 - levels.present / (total * unit))
            missing[j] = 0.0 if missing[j] < 1e-9 else missing[j]
            unseen[j] = levels.unseen_share(whole) * (1.0 - missing[j])
            kinds.append(
                _kind_of_category(
                    column, levels, bool(missing[j]), named, n_rows, whole, max_levels
                )
            )
        else:
            kinds.append(DROP)
    if all(kind in LEFT_OUT for kind in kinds):  # never the only column
        kinds = [
            column.kind if kind == IDENTIFIER else kind
            for kind, column in zip(kinds, types, strict=True)
        ]
    if all(kind in (EMPTY, DROP) for kind in kinds):
        raise ValueError(
            "X has no column to learn from: each of them is empty, or is to be left out. Pass at "
            "least one with values."
        )
    plain = all(kind in (NUMBER, *LEFT_OUT) for kind in kinds) and not any(
        share > 0 for share, kind in zip(missing, kinds, strict=True) if kind == NUMBER
    )
    ranges = _ranges(numbers, found.statistics, d)
    return TableColumns(types, tuple(kinds), missing, ranges, unseen, plain, whole, max_levels)


def _ranges(numbers: Unfolding, statistics: ColumnStatistics, d: int) -> FloatArray:
    """Return the smallest and the largest value of each column, NaN where there is none."""
    there = (numbers.parts == 0) & (statistics.present > 0)
    ranges = np.full((2, d), np.nan)
    ranges[:, numbers.owners[there]] = statistics.low[there], statistics.high[there]
    return ranges


def _kind_of_numbers(
    column: ColumnType, j: int, at: int, named: bool, n_rows: int, found: Survey
) -> str:
    statistics = found.statistics
    low, high = float(statistics.low[at]), float(statistics.high[at])
    if not statistics.present[at]:
        return EMPTY
    if not low < high and not statistics.missing[at]:
        return CONSTANT
    if column.kind == DATE or column.asked or not named or found.whole is None:
        return column.kind
    numbered = found.whole.possible[j] and numbers_the_rows(
        found.whole.values[j], low, high, n_rows
    )
    return IDENTIFIER if numbered else NUMBER


def _kind_of_category(
    column: ColumnType,
    levels: LevelCounts,
    missing: bool,
    named: bool,
    n_rows: int,
    whole: bool,
    most: int,
) -> str:
    if not len(levels.levels):
        return EMPTY
    if levels.distinct < 2 and not missing:
        return CONSTANT
    counts = levels.counts(whole)
    different = bool((counts <= 1).all()) and levels.distinct > 0.9 * n_rows
    if different and named and not column.asked and n_rows >= MIN_IDENTIFIED_ROWS:
        return IDENTIFIER
    return ENCODED if levels.distinct > most else CATEGORY


def column_facts(columns: TableColumns, levels: Mapping[int, LevelCounts]) -> list[dict[str, Any]]:
    """Return, as plain values, what is known of columns that are not just numbers, none missing.

    Each has the "column", its position; "kind"; "missing", the share of rows without a value; and
    of a category the number of "levels", an estimate where there are very many, and the most
    "frequent" ones as pairs of their word and their share of the values.
    """
    facts: list[dict[str, Any]] = []
    for j, (kind, missing) in enumerate(zip(columns.kinds, columns.missing, strict=True)):
        if kind == NUMBER and not missing:
            continue
        fact = {"column": j, "kind": kind, "missing": float(missing)}
        if j in levels:
            found = levels[j]
            order = np.argsort(-found.weights, kind="stable")[:SHOWN_LEVELS]
            shares = found.weights[order] / max(float(found.weights.sum()), 1e-300)
            fact["levels"] = round(found.distinct)
            words = found.words
            fact["frequent"] = [
                [words[i], share]
                for i, share in zip(order.tolist(), shares.tolist(), strict=True)
                if words
            ]
        facts.append(fact)
    return facts


def column_notes(
    columns: TableColumns, names: Sequence[str] | None, deciding: Mapping[int, float]
) -> list[str]:
    """Return sentences on columns: which are left out, and why; which decide the label alone.

    Parameters
    ----------
    columns : TableColumns
        What they are.
    names : sequence of str or None
        Their names.
    deciding : mapping of int to float
        The columns that nearly decide the label, and the share of rows in which they do.
    """
    labels = [str(j) if names is None else repr(names[j]) for j in range(len(columns.kinds))]
    reasons: dict[str, list[str]] = {}
    for label, kind in zip(labels, columns.kinds, strict=True):
        if kind in LEFT_OUT:
            reasons.setdefault(kind, []).append(label)
    return [_left_out(found, kind) for kind, found in reasons.items()] + [
        f"column {labels[j]} {DECIDES} in {100 * share:.1f} % of rows: is it known before the "
        "label is?"
        for j, share in deciding.items()
    ]


DECIDES = "alone decides the label"
"""What a sentence on leakage says of a column."""

_REASONS = {
    CONSTANT: (": it has the same value in every row", ": each has the same value in every row"),
    EMPTY: (": it has no values", ": they have no values"),
    IDENTIFIER: (": its values are all different", ": their values are all different"),
    DROP: (", as asked for", ", as asked for"),
}
"""Why a column is left out, and why several are."""


def _left_out(labels: Sequence[str], kind: str) -> str:
    one, several = _REASONS[kind]
    if len(labels) == 1:
        return f"column {labels[0]} is left out{one}."
    rest = f", ... ({len(labels)} in all)" if len(labels) > SHOWN_COLUMNS else ""
    return f"columns {', '.join(labels[:SHOWN_COLUMNS])}{rest} are left out{several}."
