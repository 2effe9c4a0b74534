"""Text cells: how the words of a column are read, as categories, dates or numbers.

A column of text is a category, unless every word of it that is not missing is a date
(``data.written_dates``) or a number (``data.written_numbers``) as people write them. What can be
read in two ways is refused when it is read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import numpy as np

from polysift.data.kinds import (
    CATEGORY,
    DATE,
    NUMBER,
    ColumnType,
    is_missing,
    levels_of,
    plain_word,
)
from polysift.data.written_dates import (
    DATE_READINGS,
    DAY_FIRST,
    EITHER,
    ISO,
    MONTH_FIRST,
    SHOWN_DATES,
    date_readings,
    written_date,
)
from polysift.data.written_numbers import (
    AMBIGUOUS,
    COMMA,
    LISTED,
    NUMBER_READINGS,
    POINT,
    THOUSANDS,
    has_comma,
    is_plain_number,
    number_readings,
    shown_reading,
    written_number,
)
from polysift.runtime.types import FloatArray

READINGS = ("", *DATE_READINGS, *NUMBER_READINGS)
"""How text is read (``ColumnType.reading``): as it is, as dates or as numbers."""


class UnreadableWordError(ValueError):
    """A word that is not what its column is.

    Attributes
    ----------
    word : str
        The word.
    """

    def __init__(self, word: str, expected: str) -> None:
        self.word = word
        super().__init__(f"{word!r}, which cannot be read as {expected}")


class AmbiguousWordError(UnreadableWordError):
    """A word that can be read in two ways, as all of its column can.

    Attributes
    ----------
    kinds : tuple of str
        The kinds by which a user says which it is.
    """

    kinds = ("thousands comma", "decimal comma")

    def __init__(self, word: str, unit: str) -> None:
        self.word = word
        thousands, comma = (written_number(word, f"{style} {unit}") for style in (THOUSANDS, COMMA))
        ValueError.__init__(
            self,
            f"{word!r}, which is {thousands:.15g} if the comma is between thousands and "
            f"{comma:.15g} if it is a decimal comma, and no other value of the column tells which",
        )

    def remedy(self, key: str) -> str:
        """Return what to do about a column, by its name or position."""
        ways = " or ".join(f"columns={{{key}: {kind!r}}}" for kind in self.kinds)
        return f"Pass {ways} to say which"


class AmbiguousDateError(AmbiguousWordError):
    """A date in which the day or the month may come first, as in all of its column."""

    kinds = (DAY_FIRST, MONTH_FIRST)

    def __init__(self, word: str) -> None:
        self.word = word
        ValueError.__init__(
            self,
            f"{word!r}, in which the day or the month may come first, and no other value of the "
            "column tells which",
        )


class ListedWordError(UnreadableWordError):
    """A word that is a number or several, in a file in which commas separate fields."""

    def __init__(self, word: str, reading: str) -> None:
        self.word = word
        ValueError.__init__(
            self,
            f"{word!r}, which is {written_number(word, reading):.15g} if the comma belongs to a "
            "number, and several values if it separates them, as it separates the fields of the "
            "file",
        )


class WordEvidence:
    """What all words of a column may be, gathered part by part."""

    def __init__(self) -> None:
        self._possible: frozenset[str] | None = None  # None before the first word
        self._commas = self._marked = False

    @property
    def empty(self) -> bool:
        """Whether all words so far are missing."""
        return self._possible is None

    @property
    def settled(self) -> bool:
        """Whether further words cannot change that it is a category."""
        return self._possible is not None and not self._possible

    def add(self, words: Iterable[str | None]) -> None:
        """Take further words into account; None stands for a missing one."""
        for word in words:
            if self.settled:
                return
            if word is None:
                continue
            if is_missing(word):
                # Numbers are text in memory because of such a word, as ``?`` for pandas.
                self._marked |= bool(word.strip())
                continue
            here = _readings(word)
            self._possible = here if self._possible is None else self._possible & here
            self._commas |= has_comma(word)

    def decide(self) -> ColumnType:
        """Return the type of a column of text with these words."""
        possible = self._possible or frozenset()
        if dates := possible.intersection(DATE_READINGS):
            return ColumnType(DATE, reading=EITHER if len(dates) > 1 else min(dates))
        if not possible:
            return ColumnType(CATEGORY)
        unit = next(iter(possible)).partition(" ")[2]
        if self._commas:
            styles = [s for s in (THOUSANDS, COMMA) if f"{s} {unit}".rstrip() in possible]
            style = styles[0] if len(styles) == 1 else AMBIGUOUS
        else:
            style = POINT
            if POINT not in {reading.partition(" ")[0] for reading in possible}:
                return ColumnType(CATEGORY)  # 1.200.000 alone may be a version, too
        if style == POINT and not (unit or self._marked):
            return ColumnType(CATEGORY)  # numbers that somebody stores as text, such as codes
        return ColumnType(NUMBER, reading=f"{style} {unit}".rstrip())


def is_ambiguous(column: ColumnType | None) -> bool:
    """Return whether the words of a column can be read in two ways."""
    return column is not None and column.reading.startswith((AMBIGUOUS, LISTED, EITHER))


def among_commas(column: ColumnType) -> ColumnType:
    """Return the type of a column of text in a file whose fields are separated by commas.

    There ``5,1`` need not be a number, unless it has a unit.
    """
    if column.reading not in (THOUSANDS, COMMA):
        return column
    return replace(column, reading=f"{LISTED} {column.reading}")


def infer_words(words: Iterable[str | None]) -> ColumnType:
    """Return the type of a column of text with these words."""
    evidence = WordEvidence()
    evidence.add(words)
    return evidence.decide()


def read_words(words: Collection[str | None], column: ColumnType) -> FloatArray:
    """Return words as the numbers of a block, or raise an ``UnreadableWordError``."""
    if column.kind == CATEGORY:
        return levels_of(map(plain_word, words))
    reading = _seconds if column.kind == DATE else _number

    def read(word: str) -> float:
        return reading(word, column.reading)

    return np.array(
        [np.nan if word is None or is_missing(word) else read(word) for word in words], dtype=float
    )


def reading_notes(types: Sequence[ColumnType], names: Sequence[str] | None) -> tuple[str, ...]:
    """Return the sentences on columns of text that are read as numbers or dates, unasked."""
    notes = []
    for position, column in enumerate(types):
        if column.reading in ("", ISO) or is_ambiguous(column) or column.asked:
            continue
        key = position if names is None else names[position]
        shown = SHOWN_DATES.get(column.reading) or shown_reading(column.reading)
        notes.append(
            f"Column {key!r} is read as {shown}; to read it as words, pass "
            f"columns={{{key!r}: 'category'}}."
        )
    return tuple(notes)


def _readings(word: str) -> frozenset[str]:
    return date_readings(word) or number_readings(word)


def _seconds(word: str, reading: str) -> float:
    """Return a date as seconds since 1970; without a reading, one that can be only one date."""
    shown = SHOWN_DATES.get(reading, "a date such as 2024-01-31 08:30 or 31.01.2024")
    if not reading:
        fitting = date_readings(word)
        reading = EITHER if len(fitting) > 1 else min(fitting, default=ISO)
    if reading == EITHER:
        raise AmbiguousDateError(word)
    value = written_date(word, reading)
    if value is None:
        raise UnreadableWordError(word, shown)
    return value


def _number(word: str, reading: str) -> float:
    """Return a number in a reading; without one it is written as programs do."""
    if not reading:
        if is_plain_number(word):
            return float(word)
        raise UnreadableWordError(word, "a number")
    if reading.startswith(AMBIGUOUS):
        unit = reading.removeprefix(AMBIGUOUS).strip()
        if has_comma(word):
            raise AmbiguousWordError(word, unit)
        reading = f"{THOUSANDS} {unit}".rstrip()
    if reading.startswith(LISTED):
        reading = reading.removeprefix(LISTED).strip()
        if has_comma(word):
            raise ListedWordError(word, reading)
    value = written_number(word, reading)
    if value is None:
        raise UnreadableWordError(word, shown_reading(reading))
    return value
