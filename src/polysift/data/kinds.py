"""Column kinds: what the values of a column mean, and how each becomes a number.

A block of rows is an array of floats whatever a table holds. A number is itself, a date or time its
seconds since 1970 in UTC, a category the *level* of its text, which is 53 bits of a hash, and a
missing value NaN. So threads, files, budgets and workers need not know what a column holds: what
levels there are is counted in the survey, and the words behind them are kept beside.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from enum import Enum
from functools import lru_cache
from hashlib import blake2b
from itertools import product
from numbers import Integral, Real
from pathlib import PurePath
from typing import Any
from uuid import UUID

import numpy as np

from polysift.data.checks import find_name
from polysift.runtime.types import FloatArray

NUMBER, CATEGORY, DATE, DROP = "number", "category", "date", "drop"

KINDS = (NUMBER, CATEGORY, DATE, DROP)
"""The kinds of columns."""

WRITTEN_KINDS = {
    "decimal comma": (NUMBER, "comma ?"),
    "thousands comma": (NUMBER, "thousands ?"),
    "day first": (DATE, "day first"),
    "month first": (DATE, "month first"),
}
"""What a user may ask for, too, of text that can be read in two ways: the kind, and how its words
are read (``data.written_numbers``, with any unit, and ``data.written_dates``)."""

ASKED_KINDS = (*KINDS, *WRITTEN_KINDS)
"""All that a user may ask for."""

MISSING_WORDS = frozenset(
    ("", "#N/A", "-NaN", "-nan", "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null", "<NA>", "?", "-")
)
"""Text that stands for a missing value, in any column; white space around it does not matter."""

TRUTH = {"true": "True", "false": "False"}
"""The words of truth values, which writers of files spell in several ways."""

KEPT_WORDS = 2**17
"""How many levels of words are remembered, so that a word is hashed once and not in each part."""

Words = Mapping[float, str]
"""The words of levels."""


@dataclass(frozen=True)
class ColumnType:
    """What a column holds, as far as its type and a user say; the survey finds the rest.

    Attributes
    ----------
    kind : str
        "number", "category", "date", or "drop" for a column that is not used.
    asked : bool
        Whether a user has chosen the kind: it is then not doubted.
    reading : str
        How text is read as a number or a date; empty where it need not be read (``data.words``).
    """

    kind: str
    asked: bool = False
    reading: str = ""


PLAIN_NUMBER = ColumnType(NUMBER)


def check_kinds(columns: Any, name: str = "columns") -> dict[str | int, str]:
    """Return the kinds that a user asks for, by column, or raise."""
    if columns is None:
        return {}
    if not isinstance(columns, Mapping):
        raise ValueError(
            f"{name} must map columns to kinds, such as {{'zip': 'category'}}; got {columns!r}."
        )
    for column, kind in columns.items():
        if kind not in ASKED_KINDS:
            raise ValueError(
                f"{name} gives {kind!r} for column {column!r}; the kinds are "
                f"{', '.join(map(repr, ASKED_KINDS))}."
            )
    return dict(columns)


def asked_type(kind: str) -> ColumnType:
    """Return the type of a column of a kind that a user asks for."""
    if kind in WRITTEN_KINDS:
        kind, reading = WRITTEN_KINDS[kind]
        return ColumnType(kind, True, reading)
    return ColumnType(kind, True)


def asked_kinds(
    columns: Mapping[Any, str], names: Sequence[str] | None, n_features: int
) -> dict[int, str]:
    """Return the kinds that a user asks for, by the position of the column, or raise."""
    found = {}
    for column, kind in columns.items():
        if isinstance(column, str) and names is not None:
            found[find_name(column, names, "X")] = kind
        elif isinstance(column, Integral) and 0 <= int(column) < n_features:
            found[int(column)] = kind
        else:
            whole = "columns have no names" if names is None else "columns are named"
            raise ValueError(
                f"columns names {column!r}, but there is no such column: X has {n_features}, and "
                f"{whole}. Pass names where there are any, else positions from 0."
            )
    return found


MAX_COUNTED_LEVELS = 2**16
"""The levels of a column that are counted; of more, those with the smallest hashes."""


def kept_words(known: Words, more: Words) -> Words:
    """Return words of both, only of levels that may be counted."""
    if more.keys() <= known.keys():
        return known
    joined = {**known, **more}
    if len(joined) <= MAX_COUNTED_LEVELS:
        return joined
    return {level: joined[level] for level in sorted(joined)[:MAX_COUNTED_LEVELS]}


@lru_cache(KEPT_WORDS)
def level_of(word: str) -> float:
    """Return the level of a word: 53 bits of its hash, which a float holds exactly.

    Of a million words two share a level with a probability of 1 in 20,000.
    """
    digest = blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return float(int.from_bytes(digest, "little") >> 11)


def levels_of(words: Iterable[str | None]) -> FloatArray:
    """Return the levels of words as ``plain_word`` returns them, NaN for a missing one."""
    return np.array([np.nan if word is None else level_of(word) for word in words], dtype=float)


@lru_cache(KEPT_WORDS)
def plain_word(word: str | None) -> str | None:
    """Return text as a category's word: None if it is missing, and truth values spelt alike."""
    if word is None or is_missing(word):
        return None
    return TRUTH.get(word.lower(), word)


def spellings(word: str) -> list[str]:
    """Return the text that ``plain_word`` takes for a word: itself, or all cases of a truth value.

    White space matters, since it is part of a word.
    """
    if word not in TRUTH.values():
        return [word]
    return ["".join(letters) for letters in product(*zip(word.lower(), word.upper(), strict=True))]


def is_missing(word: str) -> bool:
    """Return whether text stands for a missing value."""
    return word in MISSING_WORDS or word.strip() in MISSING_WORDS


NAMES = (datetime, date, time, timedelta, UUID, PurePath, Enum)
"""Types whose values are words of a category as they are shown."""


def word_of(value: Any) -> str | None:
    """Return a value as a category's word, alike for all containers; None if it is missing.

    What is no value of a table raises a TypeError that shows it.
    """
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, str):
        return plain_word(str(value))
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        return word_of_number(float(value))
    if isinstance(value, bytes):
        return word_of(value.decode("utf-8", "backslashreplace"))
    if isinstance(value, NAMES) or type(value).__name__ in ("Interval", "Period"):  # of pandas
        return str(value)
    raise TypeError(f"{value!r:.60} of type {type(value).__name__}")


def word_of_number(value: float) -> str | None:
    """Return a number as a category's word: 3.0 is "3", as the integer is."""
    if np.isnan(value):
        return None
    return str(int(value)) if value == np.rint(value) and abs(value) < 2**63 else repr(value)


def levels_of_numbers(values: FloatArray) -> tuple[FloatArray, dict[float, str]]:
    """Return the levels of numbers that are categories, and their words."""
    distinct, positions = np.unique(values, return_inverse=True)
    words = [word_of_number(float(value)) for value in distinct]
    levels = levels_of(words)
    named = zip(levels.tolist(), words, strict=True)
    return levels[positions.reshape(-1)], {level: word for level, word in named if word is not None}
