"""Numbers as people write them: ``$1``, ``12 %``, ``1,200``, ``5,1``.

A *reading* says how a column writes its numbers. It is a style and, where there is one, a unit:
``"point"`` (1200.5), ``"thousands"`` (1,200.5), ``"comma"`` (1200,5 or 1.200,5), ``"point $"``,
``"comma %"``. A word may fit several of them; what a column is, its words together must say.
"""

from __future__ import annotations

import re
from functools import lru_cache

POINT, THOUSANDS, COMMA = "point", "thousands", "comma"

AMBIGUOUS = "thousands or comma"
"""The reading of a column whose commas may be either."""

LISTED = "listed"
"""How the reading begins of a column whose commas may separate values, as they separate fields."""

CURRENCIES = ("$", "€", "£", "¥", "EUR", "USD", "GBP", "JPY", "CHF")

ANY_UNIT = "?"
"""Stands for any unit, in a column whose style a user has chosen."""

NUMBER_READINGS = (
    *(
        f"{style} {unit}".rstrip()
        for style in (POINT, THOUSANDS, COMMA)
        for unit in ("", *CURRENCIES, "%")
    ),
    *(f"{style} {ANY_UNIT}" for style in (THOUSANDS, COMMA)),
)
"""All readings of numbers."""

CURRENCY = "|".join(map(re.escape, CURRENCIES))

WRITTEN = re.compile(
    rf"([+-]?)\s?({CURRENCY})?\s?([+-]?)([0-9.][0-9.,]*(?:[eE][+-]?[0-9]+)?)"
    rf"\s?({CURRENCY}|%)?"
)
"""A sign, a unit before, a sign, digits with their marks, a unit after."""

EXPONENT = r"(?:[eE][+-]?[0-9]+)?"
DIGITS = {
    POINT: re.compile(rf"(?:[0-9]+\.?[0-9]*|\.[0-9]+){EXPONENT}"),
    THOUSANDS: re.compile(
        rf"[1-9][0-9]{{0,2}}(?:,[0-9]{{3}})+(?:\.[0-9]*)?|(?:[0-9]+\.?[0-9]*|\.[0-9]+){EXPONENT}"
    ),
    COMMA: re.compile(
        rf"[0-9]+(?:,[0-9]+)?{EXPONENT}|[1-9][0-9]{{0,2}}(?:\.[0-9]{{3}})+(?:,[0-9]+)?"
    ),
}
"""What digits look like in each style."""

PADDED = re.compile(r"[+-]?0[0-9]")
"""How a code such as 01234 begins: it is no number, though it can be read as one."""

SHOWN_STYLES = {
    POINT: "numbers",
    THOUSANDS: "numbers with a comma between thousands",
    COMMA: "numbers with a decimal comma",
}


@lru_cache(2**12)
def number_readings(word: str) -> frozenset[str]:
    """Return the readings that a word fits."""
    parts = _parts(word)
    if parts is None or PADDED.match(word.strip()):
        return frozenset()
    _, digits, unit = parts
    fitting = (style for style, pattern in DIGITS.items() if pattern.fullmatch(digits))
    return frozenset(f"{style} {unit}".rstrip() for style in fitting)


def written_number(word: str, reading: str) -> float | None:
    """Return the number that a word is in a reading, or None if it does not fit.

    The unit may be left out.
    """
    style, _, unit = reading.partition(" ")
    parts = _parts(word)
    if parts is None or not DIGITS[style].fullmatch(parts[1]):
        return None
    if parts[2] not in ("", unit) and unit != ANY_UNIT:
        return None
    sign, digits, _ = parts
    if style == COMMA:
        digits = digits.replace(".", "").replace(",", ".")
    return float(sign + digits.replace(",", ""))


def is_written_number(text: str) -> bool:
    """Return whether a cell is a number, plain or as people write them."""
    return is_plain_number(text) or bool(number_readings(text))


def is_plain_number(text: str) -> bool:
    """Return whether a cell can be read as a number as programs write them."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def has_comma(word: str) -> bool:
    """Return whether a number holds a comma, so that its style matters."""
    return "," in word


def shown_reading(reading: str) -> str:
    """Return how numbers are read, in the words of a message."""
    style, _, unit = reading.partition(" ")
    if unit in ("", ANY_UNIT):
        return SHOWN_STYLES[style]
    join = "with" if style == POINT else "and"
    return f"{SHOWN_STYLES[style]} {join} the sign {unit}"


def _parts(word: str) -> tuple[str, str, str] | None:
    """Return sign, digits and unit of a word; None if it is no number."""
    found = WRITTEN.fullmatch(word.strip())
    if found is None:
        return None
    first, before, second, digits, after = found.groups()
    if (first and second) or (before and after) or (second and not before):
        return None
    return first or second, digits, before or after or ""
