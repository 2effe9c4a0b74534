"""What is said of the columns of a table: sentences and facts."""

from __future__ import annotations

import numpy as np

from polysift.data.kinds import ColumnType
from polysift.features.columns import TableColumns, column_facts, column_notes
from polysift.features.levels import count_levels


def columns(*kinds, missing=None):
    types = tuple(ColumnType("category" if "categ" in kind else "number") for kind in kinds)
    shares = np.zeros(len(kinds)) if missing is None else np.array(missing)
    ranges, unseen = np.full((2, len(kinds)), np.nan), np.zeros(len(kinds))
    return TableColumns(types, kinds, shares, ranges, unseen, False, True, 100)


def test_each_reason_is_one_sentence():
    kinds = ("constant", "number", "identifier", "drop", "constant", "identifier", "empty")
    found = columns(*kinds, missing=[0, 0, 0, 0, 0, 0, 1.0])
    names = ["a", "b", "c", "it's", "e", "f", "g"]
    assert column_notes(found, names, {1: 0.998}) == [
        "columns 'a', 'e' are left out: each has the same value in every row.",
        "columns 'c', 'f' are left out: their values are all different.",
        'column "it\'s" is left out, as asked for.',
        "column 'g' is left out: it has no values.",
        "column 'b' alone decides the label in 99.8 % of rows: is it known before the label is?",
    ]


def test_many_columns_are_counted():
    (note,) = column_notes(columns(*["constant"] * 30, "number"), None, {})
    assert note.startswith("columns 0, 1, 2, ") and "9, ... (30 in all) are left out" in note


def test_all_numbers_have_nothing_to_say():
    found = columns("number", "number")
    assert column_notes(found, ["a", "b"], {}) == [] and column_facts(found, {}) == []


def test_facts_of_a_category():
    values = np.repeat([1.0, 2, 3, 4, 5, 6, np.nan], [40, 20, 10, 5, 3, 2, 20])
    words = {float(k): f"word {k}" for k in range(1, 7)}
    levels = count_levels(values, np.ones(100), words)
    found = columns("number", "category", "number", missing=[0, 0.2, 0.5])
    category, number = column_facts(found, {1: levels})
    assert number == {"column": 2, "kind": "number", "missing": 0.5}
    assert (category["column"], category["levels"], category["missing"]) == (1, 6, 0.2)
    assert category["frequent"][0] == ["word 1", 0.5] and len(category["frequent"]) == 5
