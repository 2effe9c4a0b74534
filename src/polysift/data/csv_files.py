"""CSV files, plain or compressed, parsed once into a memory map.

The layout is inferred from the first lines (``inspect_csv``), a type is assigned to each column,
and pyarrow parses the file batch by batch.
"""

from __future__ import annotations

import csv
import operator
import re
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import numpy as np

from polysift.data.arrow import load_pyarrow
from polysift.data.columns import Roles, as_position, check_position, find_column
from polysift.data.formats import OpenOptions
from polysift.data.inputs import ENCODE
from polysift.data.locations import FoundFiles
from polysift.data.source import DataSource
from polysift.data.text import (
    ParsedText,
    TextLabels,
    is_gzip,
    open_binary,
    reading,
    temporary_folder,
)
from polysift.runtime.outputs import TemporaryFolder

BLOCK_BYTES = 1 << 20
"""How much text is parsed at a time; pyarrow reads some 32 blocks ahead."""

SAMPLE_LINES, MAX_LINE_CHARACTERS = 20, 1 << 24
"""The lines from which delimiter and header are inferred, and how much is read of each."""

DELIMITERS = ",;\t| "
"""The characters among which the delimiter is inferred; of equal ones, the first."""

MISSING = ("", "#N/A", "-NaN", "-nan", "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null")
"""Fields that stand for a missing value."""

COLUMN_TYPES = ("string", "bool", "double", "float64", "float32", "int64", "int32", "int16", "int8")
"""The names that ``column_types`` takes; the first is for labels only."""

CONVERSION_ERROR = re.compile(r"(?s)column #(\d+): Row #(\d+): .*?: (?:invalid value '(.*)')?")
RAGGED_ERROR = re.compile(r"(?s)Row #(\d+): Expected (\d+) columns, got (\d+): (.*)")
"""pyarrow's messages on a field that does not convert, and on a row of another length."""


def open_csv(found: FoundFiles, options: OpenOptions) -> DataSource:
    """Return a CSV file as a source."""
    parsed = parse_csv(
        found.single,
        roles=options.roles,
        header=options.header,
        delimiter=options.delimiter,
        column_types=options.column_types,
    )
    return parsed.source(found.single)


def parse_csv(
    path: Path,
    *,
    roles: Roles,
    header: bool | None = None,
    delimiter: str | None = None,
    column_types: Mapping[str | int, str] | None = None,
) -> ParsedText:
    """Parse a CSV file, plain or .gz, with bounded memory.

    Parameters
    ----------
    path : Path
        The file: UTF-8 text, gzip-compressed where the name ends in .gz.
    roles : Roles
        Which column is what.
    header : bool or None
        Whether the first line holds names; None infers it from the first two lines.
    delimiter : str or None
        One character; None infers it among comma, semicolon, tab, bar and space.
    column_types : mapping from column to pyarrow type name, or None
        Types of labels that the first rows do not show ("string"), or of features that are not
        written as numbers ("bool" reads true and false as 1 and 0).
    """
    load_pyarrow("compute", "csv")
    table = inspect_csv(Path(path), header, delimiter)
    plan = _assign(table, roles, column_types or {})
    with temporary_folder() as folder:
        return _convert(table, plan, folder)


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
        """Return a column as a user writes it in ``column_types``."""
        return str(position) if self.names is None else repr(self.names[position])


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
        raise ValueError(f"{path} is empty. It must hold at least one row of numbers.")
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


def _plausibility(lines: Sequence[str], delimiter: str) -> tuple[bool, int, int]:
    """Return the rank of a delimiter: equally many fields in all lines, then many numbers."""
    rows = [row for row in _split(lines, delimiter) if row]
    widths = [len(row) for row in rows] or [0]
    numbers = sum(is_number(text) for row in rows for text in row)
    return len(set(widths)) == 1 and widths[0] > 1, numbers, widths[0]


def _has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first line holds names: words above numbers, or nothing but words."""
    words = [not (is_number(text) or text.strip() in MISSING) for text in rows[0]]
    below = rows[1] if len(rows) > 1 else []
    over_numbers = any(word and is_number(text) for word, text in zip(words, below, strict=False))
    return over_numbers or all(words)


def is_number(text: str) -> bool:
    """Return whether a field can be read as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


@dataclass(frozen=True)
class _CsvPlan:
    """Which columns are read, and as what.

    Attributes
    ----------
    features : list of int
        The positions of the features.
    target, weight : int or None
        The positions of labels and weights.
    kinds : dict of int to pyarrow type
        The type of each column, in the order of reading.
    inferred : bool
        Whether the type of the labels is inferred.
    """

    features: list[int]
    target: int | None
    weight: int | None
    kinds: dict[int, Any]
    inferred: bool


def _assign(table: CsvTable, roles: Roles, column_types: Mapping[str | int, str]) -> _CsvPlan:
    """Find the columns and the type of each."""
    features, y, w = roles.resolve(table.find, table.names or range(table.width), str(table.path))
    used = [*features, *(position for position in (y, w) if position is not None)]
    given = {table.find(column): name for column, name in column_types.items()}
    kinds = dict.fromkeys(used, load_pyarrow("compute", "csv").float64())
    kinds.update({p: _kind(table, p, given[p], p == y) for p in used if p in given})
    if y is not None and y not in given:
        kinds[y] = _infer_kind(table, y)
    return _CsvPlan(features, y, w, kinds, inferred=y not in given)


def _kind(table: CsvTable, position: int, name: str, is_label: bool) -> Any:
    """Return the pyarrow type that ``column_types`` asks for, or raise."""
    kinds = COLUMN_TYPES if is_label else COLUMN_TYPES[1:]
    if name not in kinds:
        raise ValueError(
            f"column_types gives {name!r} for column {table.key(position)}; expected one of "
            f"{', '.join(map(repr, kinds))}."
        )
    return load_pyarrow("compute", "csv").type_for_alias(name)


def _infer_kind(table: CsvTable, target: int) -> Any:
    """Return the type of the labels in the first block; dates and times are read as text."""
    pyarrow = load_pyarrow("compute", "csv")
    plan = _CsvPlan([], target, None, {target: None}, inferred=True)
    with closing(_batches(table, plan)) as batches:
        found = next((batch.schema.types[0] for batch in batches), None)
    plain = (pyarrow.bool_(), pyarrow.int64(), pyarrow.float64())
    return found if found in plain else pyarrow.string()


def _batches(table: CsvTable, plan: _CsvPlan) -> Generator[Any]:
    """Yield the columns of a plan as record batches; an error names row and column."""
    pyarrow = load_pyarrow("compute", "csv")
    read = pyarrow.csv.ReadOptions(
        use_threads=False,  # with threads, pyarrow's messages do not number the rows
        block_size=table.block_bytes,
        column_names=[str(position) for position in range(table.width)],
        skip_rows_after_names=table.skip,
    )
    parse = pyarrow.csv.ParseOptions(delimiter=table.delimiter, newlines_in_values=True)
    convert = pyarrow.csv.ConvertOptions(
        include_columns=[str(position) for position in plan.kinds],
        column_types={str(position): kind for position, kind in plan.kinds.items() if kind},
        null_values=MISSING,
        strings_can_be_null=plan.inferred,  # if text was asked for, NA may be a class
    )
    packing = "gzip" if is_gzip(table.path) else None
    try:
        with (
            reading(table.path),
            pyarrow.input_stream(str(table.path), compression=packing) as stream,
            pyarrow.csv.open_csv(stream, read, parse, convert) as batches,
        ):
            yield from batches
    except pyarrow.ArrowInvalid as error:
        raise ValueError(_explain(table, plan, str(error))) from error


def _convert(table: CsvTable, plan: _CsvPlan, folder: TemporaryFolder) -> ParsedText:
    """Write the features batch by batch, and gather labels and weights."""
    d, n_rows, file = len(plan.features), 0, folder.path / "X"
    labels, weights = TextLabels(), []
    with file.open("wb") as out:
        for batch in _batches(table, plan):
            _refuse_missing(table, plan, batch, n_rows)
            columns = [column.to_numpy(zero_copy_only=False) for column in batch.columns[:d]]
            out.write(np.column_stack(columns).astype(float, copy=False).data)
            if plan.target is not None:
                _add_labels(labels, batch.column(d))
            if plan.weight is not None:
                weights.append(batch.columns[-1].to_numpy(zero_copy_only=False).astype(float))
            n_rows += batch.num_rows
    if not n_rows:
        raise ValueError(f"{table.path} holds a header line and no rows.")
    X = np.memmap(file, np.float64, "r", shape=(n_rows, d))
    names = (
        None if table.names is None else tuple(table.names[position] for position in plan.features)
    )
    y = labels.finish() if plan.target is not None else None
    w = np.concatenate(weights) if plan.weight is not None else None
    return ParsedText(X, names, y, w, folder)


def _add_labels(labels: TextLabels, column: Any) -> None:
    """Append a column of labels."""
    if column.type == "string":
        packed = column.dictionary_encode()
        labels.add(packed.indices.to_numpy(), packed.dictionary.to_pylist())
    else:
        labels.add(column.to_numpy(zero_copy_only=False))


def _refuse_missing(table: CsvTable, plan: _CsvPlan, batch: Any, first_row: int) -> None:
    """Raise for the first missing value of a batch."""
    compute, found = load_pyarrow("compute", "csv").compute, []
    for position, column in zip(plan.kinds, batch.columns, strict=True):
        if column.type == "string":
            empty = compute.equal(compute.utf8_trim_whitespace(column), "")
            column = compute.if_else(empty, None, column)
        if column.null_count:
            found.append((compute.index(column.is_null(), True).as_py(), position))
    if found:
        row, position = min(found)
        raise ValueError(_mismatch(table, plan, position, first_row + row, ""))


def _explain(table: CsvTable, plan: _CsvPlan, message: str) -> str:
    """Return the message for an error of pyarrow: row, column and remedy, where it has them."""
    if found := CONVERSION_ERROR.search(message):
        column, row, text = found.groups()
        return _mismatch(table, plan, int(column), int(row) - 1 - table.skip, text)
    if found := RAGGED_ERROR.search(message):
        row, wanted, got, text = found.groups()
        return (
            f"{table.path} has {got} fields instead of {wanted} in row "
            f"{int(row) - 1 - table.skip} (counted from 0): {text[:80]!r}. Correct this row, or "
            f"pass the delimiter if it is not {table.delimiter!r}."
        )
    return (
        f"{table.path} cannot be read as CSV with the delimiter {table.delimiter!r}: {message}. "
        "A quotation mark that is not closed, or a very long line, is a likely cause."
    )


def _mismatch(table: CsvTable, plan: _CsvPlan, position: int, row: int, text: str | None) -> str:
    """Return the message on a field that is not of its column's type, with the remedy."""
    key = table.key(position)
    where = f"column {key}, row {row} (counted from 0)"
    if text is None:
        return f"{table.path} has text that is not UTF-8 in {where}. Save the file as UTF-8."
    if text.strip() in MISSING:
        advice = "Fill it in, for example with sklearn.impute.SimpleImputer, or leave it out."
        if position == plan.target:
            advice = f"Leave it out or, if NA is a class, pass column_types={{{key}: 'string'}}."
        return f"{table.path} has a missing value in {where}: it is empty, NA or NaN. {advice}"
    if position == plan.target:
        wanted = "the first rows look like" if plan.inferred else "column_types asks for"
        other = "double" if is_number(text) else "string"
        kind = plan.kinds[position]
        return (
            f"{table.path} has the label {text!r} in {where}, where {wanted} {kind}. "
            f"Pass column_types={{{key}: {other!r}}} to read all labels as that type."
        )
    advice = "Weights must be numbers." if position == plan.weight else ENCODE
    if text.strip().lower() in ("true", "false"):
        advice = f"Pass column_types={{{key}: 'bool'}} to read the column as 1 and 0."
    return f"{table.path} has text in {where}: could not convert {text!r} to a number. {advice}"
