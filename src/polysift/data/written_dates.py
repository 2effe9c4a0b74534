"""Dates as people write them: ``2024-01-31 08:30``, ``31.01.2024``, ``1/31/2024 8:30 PM``.

A *reading* says how a column writes its dates: year, month and day as the ISO format does, or the
day or the month first. With slashes a word may fit two of them; what a column is, its words
together must say.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache

ISO, DAY_FIRST, MONTH_FIRST = "iso", "day first", "month first"

DATE_READINGS = (ISO, DAY_FIRST, MONTH_FIRST)
"""All readings of dates."""

KEPT_DATES = 2**15
"""Dates that are remembered: those of one part of a file are mostly those of the next."""

EITHER = "day or month first"
"""The reading of a column in which either may come first."""

ISO_DATE = re.compile(
    r"[0-9]{4}([-/])[0-9]{2}\1[0-9]{2}"
    r"([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]{1,9})?)?\s?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?)?"
)

WRITTEN_DATE = re.compile(
    r"([0-9]{1,2})([./-])([0-9]{1,2})\2([0-9]{4})"
    r"(?:,?[T ]\s?([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?\s?([AaPp][Mm])?)?"
)
"""Day and month, a year of four digits, and where there is one a time of day."""

SHOWN_DATES = {
    ISO: "dates such as 2024-01-31",
    DAY_FIRST: "dates with the day first, such as 31.01.2024",
    MONTH_FIRST: "dates with the month first, such as 01/31/2024",
}


@lru_cache(KEPT_DATES)
def date_readings(word: str) -> frozenset[str]:
    """Return the readings that a word fits."""
    return frozenset(r for r in DATE_READINGS if written_date(word, r) is not None)


def is_written_date(word: str) -> bool:
    """Return whether text is a date, with a time of day or without."""
    return bool(date_readings(word))


@lru_cache(KEPT_DATES)
def written_date(word: str, reading: str) -> float | None:
    """Return the seconds since 1970 of a date in a reading, or None if it does not fit.

    Without a zone it is taken as UTC.
    """
    word = word.strip()
    try:
        found = _iso_date(word) if reading == ISO else _ordered_date(word, reading)
    except ValueError:  # no such day, or no such time
        return None
    if found is None:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _iso_date(word: str) -> datetime | None:
    if not ISO_DATE.fullmatch(word):
        return None
    return datetime.fromisoformat(word[:10].replace("/", "-") + word[10:])


def _ordered_date(word: str, reading: str) -> datetime | None:
    """Return a date whose day or month comes first; between points it is always the day."""
    found = WRITTEN_DATE.fullmatch(word)
    if found is None:
        return None
    first, mark, second, year, hour, minute, seconds, half = found.groups()
    if mark == "." and reading == MONTH_FIRST:
        return None
    day, month = (first, second) if reading == DAY_FIRST else (second, first)
    hours = int(hour or 0)
    if half:
        if not 1 <= hours <= 12:
            return None
        hours = hours % 12 + (12 if half.lower() == "pm" else 0)
    clock = (hours, int(minute or 0), int(seconds or 0))
    return datetime(int(year), int(month), int(day), *clock)
