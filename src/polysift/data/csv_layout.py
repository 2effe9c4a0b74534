"""How a CSV file is cut into rows and columns, as told by its first lines."""

from __future__ import annotations

import csv
import operator
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path

from polysift.data.columns import as_position, check_position, find_column
from polysift.data.parsing import open_binary, reading

BLOCK_BYTES = 1 << 20
"""Bytes of text that are parsed at a time; pyarrow reads some 32 blocks ahead."""

SAMPLE_LINES, LONGEST_LINE = 20, 1 << 24
"""The lines from which delimiter and header are inferred, and the characters read of each."""

MISSING = ("", "#N/A", "-NaN", "-nan", "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null")
"""Fields that stand for a missing value."""


@dataclass(frozen=True)
class CsvTable:
    """A CSV file and how it is cut into rows and columns; ``skip`` rows precede the data."""

    path: Path
    delimiter: str
    names: tuple[str, ...] | None
    width: int
    skip: int
    block_bytes: int

    def find(self, column: str | int) -> int:
        """Return the position of a column, from 0, or raise."""
        if self.names is not None:
            return find_column(column, self.names, str(self.path))
        place = as_position(column) if isinstance(column, str) else operator.index(column)
        if place is None:
            raise ValueError(
                f"{self.path} has no header line, so there is no column {column!r}. Pass its "
                f"position, 0 to {self.width - 1}, or header=True if the first line holds names."
            )
        return check_position(place, self.width, str(self.path))

    def key(self, place: int) -> str:
        """Return what a user writes to name a column."""
        return str(place) if self.names is None else repr(self.names[place])


def inspect_csv(path: Path, header: bool | None, delimiter: str | None) -> CsvTable:
    """Find delimiter, names and number of columns in the first lines."""
    if delimiter is not None and len(delimiter) != 1:
        raise ValueError(f"delimiter must be one character or None; got {delimiter!r}.")
    with reading(path), open_binary(path) as raw, TextIOWrapper(raw, "utf-8-sig") as text:
        lines = [text.readline(LONGEST_LINE) for _ in range(SAMPLE_LINES)]
    mark = delimiter or max(",;\t| ", key=lambda mark: _promise(lines, mark))
    rows = _split(lines, mark)
    filled = [row for row in rows if row]
    if not filled:
        raise ValueError(f"{path} is empty. It must hold at least one row of numbers.")
    names = None
    if _has_header(filled) if header is None else header:
        names = tuple(name.strip() for name in filled[0])
        name, count = Counter(names).most_common(1)[0]
        if count > 1:
            raise ValueError(f"{path} has {count} columns named {name!r}. Rename all but one.")
    skip = 0 if names is None else rows.index(filled[0]) + 1  # pyarrow counts blank lines here
    longest = max(len(line.encode()) for line in lines)
    return CsvTable(path, mark, names, len(filled[0]), skip, max(BLOCK_BYTES, 2 * longest))


def _split(lines: Sequence[str], mark: str) -> list[list[str]]:
    """Cut lines into fields; a blank line has none."""
    try:
        return list(csv.reader(lines, delimiter=mark))
    except csv.Error:  # a field of more than 131072 characters: most likely the wrong delimiter
        return [[line] if line.strip() else [] for line in lines]


def _promise(lines: Sequence[str], mark: str) -> tuple[bool, int, int]:
    """Prefer a delimiter that cuts all lines into as many fields, then one that yields numbers."""
    rows = [row for row in _split(lines, mark) if row]
    widths = [len(row) for row in rows] or [0]
    numbers = sum(is_number(text) for row in rows for text in row)
    return len(set(widths)) == 1 and widths[0] > 1, numbers, widths[0]


def _has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Tell names from data: names are words above numbers, or the line holds nothing but words."""
    words = [not (is_number(text) or text.strip() in MISSING) for text in rows[0]]
    below = rows[1] if len(rows) > 1 else []
    over_numbers = any(word and is_number(text) for word, text in zip(words, below, strict=False))
    return over_numbers or all(words)


def is_number(text: str) -> bool:
    """Return whether a cell reads as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text
