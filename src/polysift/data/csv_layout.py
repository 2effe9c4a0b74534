"""The layout of a CSV file, found in its first lines: delimiter, names, number of columns."""

from __future__ import annotations

import csv
import operator
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path

from polysift.data.columns import as_position, check_position, find_column
from polysift.data.kinds import is_missing
from polysift.data.packing import open_binary
from polysift.data.text import reading
from polysift.data.written_dates import is_written_date
from polysift.data.written_numbers import is_plain_number, is_written_number

BLOCK_BYTES = 1 << 20
"""How much text is parsed at a time; pyarrow reads some 32 blocks ahead."""

SAMPLE_LINES, MAX_LINE_CHARACTERS = 20, 1 << 24
"""The lines from which delimiter and header are inferred, and how much is read of each."""

DELIMITERS = ",;\t| "
"""The characters among which the delimiter is inferred; of equal ones, the first."""


@dataclass(frozen=True)
class CsvTable:
    """The layout of a CSV file.

    Attributes
    ----------
    path : Path
        The file.
    delimiter : str
        The character between fields.
    names : tuple of str, or None
        The names of the columns, where the file has a header line.
    width : int
        The number of columns.
    skip : int
        The number of lines before the data.
    block_bytes : int
        How much text is parsed at a time.
    """

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
        position = as_position(column) if isinstance(column, str) else operator.index(column)
        if position is None:
            raise ValueError(
                f"{self.path} has no header line, so there is no column {column!r}. Pass its "
                f"position, 0 to {self.width - 1}, or header=True if the first line holds names."
            )
        return check_position(position, self.width, str(self.path))

    def key(self, position: int) -> str:
        """Return a column as a user writes it in ``columns`` and ``column_types``."""
        return str(position) if self.names is None else repr(self.names[position])


def inspect_files(
    paths: Sequence[Path], header: bool | None, delimiter: str | None
) -> list[CsvTable]:
    """Return the layouts of files that are one table, or raise where their columns differ."""
    first = inspect_csv(paths[0], header, delimiter)
    tables = [first]
    for path in paths[1:]:
        table = inspect_csv(path, first.names is not None, first.delimiter)
        if (table.names or table.width) != (first.names or first.width):
            raise ValueError(_difference(first, table))
        tables.append(table)
    return tables


def _difference(first: CsvTable, other: CsvTable) -> str:
    """Return the message that says how the columns of two files differ."""
    one, two = first.names, other.names
    if one is None or two is None or set(one) == set(two):
        how = f"{first.width} columns in {first.path}, {other.width} in {other.path}"
        if first.width == other.width:
            how = f"their columns are in different orders in {first.path} and {other.path}"
        return f"The files differ: {how}. Write them with the same columns."
    name = next(name for name in [*one, *two] if name not in one or name not in two)
    there, absent = (first, other) if name in one else (other, first)
    return (
        f"The files differ in column {name!r}: {there.path} has it, {absent.path} has not. Write "
        "them with the same header, or pass header=False if the first lines hold no names."
    )


def inspect_csv(path: Path, header: bool | None, delimiter: str | None) -> CsvTable:
    """Find delimiter, names and number of columns in the first lines."""
    if delimiter is not None and not (len(delimiter) == 1 and delimiter.isascii()):
        raise ValueError(f"delimiter must be one character of ASCII or None; got {delimiter!r}.")
    with reading(path), open_binary(path) as raw, TextIOWrapper(raw, "utf-8-sig") as text:
        lines = [text.readline(MAX_LINE_CHARACTERS) for _ in range(SAMPLE_LINES)]
    found = delimiter or max(DELIMITERS, key=lambda mark: _plausibility(lines, mark))
    rows = _split(lines, found)
    filled = [row for row in rows if row]
    if not filled:
        raise ValueError(f"{path} is empty. It must hold at least one row.")
    names = None
    if _has_header(filled) if header is None else header:
        names = tuple(name.strip() for name in filled[0])
        name, count = Counter(names).most_common(1)[0]
        if count > 1:
            raise ValueError(f"{path} has {count} columns named {name!r}. Rename all but one.")
    skip = 0 if names is None else rows.index(filled[0]) + 1  # pyarrow counts blank lines here
    longest = max(len(line.encode()) for line in lines)
    return CsvTable(path, found, names, len(filled[0]), skip, max(BLOCK_BYTES, 2 * longest))


def _split(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    """Split lines into fields; a blank line has none."""
    try:
        return list(csv.reader(lines, delimiter=delimiter))
    except csv.Error:  # a field of more than 131072 characters: most likely the wrong delimiter
        return [[line] if line.strip() else [] for line in lines]


def _plausibility(lines: Sequence[str], delimiter: str) -> tuple[bool, float, bool, int]:
    """Return the rank of a delimiter.

    Equally many fields in all lines come first, then a large share of numbers, then that it is no
    space, which is in many words, and then many fields.
    """
    rows = [row for row in _split(lines, delimiter) if row]
    widths = [len(row) for row in rows] or [0]
    is_number = is_plain_number if delimiter == "," else is_written_number
    numbers = sum(is_number(text) for row in rows for text in row)
    equal = len(set(widths)) == 1 and widths[0] > 1
    return equal, numbers / max(sum(widths), 1), delimiter != " ", widths[0]


def _has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first line holds names: words above values, or nothing but words.

    The name of the first column may be empty, as that of an index is.
    """
    words = [not (_is_value(text) or is_missing(text)) for text in rows[0]]
    below = rows[1] if len(rows) > 1 else []
    if any(word and _is_value(text) for word, text in zip(words, below, strict=False)):
        return True
    index = not rows[0][0].strip() and len(words) > 1 and bool(below) and _is_value(below[0])
    return all(words[1:]) if index else all(words)


def _is_value(text: str) -> bool:
    return is_written_number(text) or is_written_date(text)
