"""CSV files, plain or compressed, one or several, parsed once into a memory map.

The layout is inferred from the first lines (``data.csv_layout``). pyarrow splits the files batch by
batch; features are read as text, and ``data.text_columns`` finds what they hold.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from polysift.data.arrow import load_pyarrow
from polysift.data.columns import Roles, no_feature
from polysift.data.csv_layout import CsvTable, inspect_files
from polysift.data.formats import OpenOptions
from polysift.data.kinds import CATEGORY, ColumnType
from polysift.data.locations import FoundFiles
from polysift.data.packing import open_arrow_stream
from polysift.data.source import DataSource
from polysift.data.text import ParsedText, TextLabels, reading, temporary_folder
from polysift.data.text_columns import TextColumn, TextColumns, UnreadableCellError
from polysift.data.words import (
    AmbiguousWordError,
    ListedWordError,
    reading_notes,
)
from polysift.data.written_numbers import is_plain_number
from polysift.runtime.outputs import TemporaryFolder
from polysift.runtime.types import FloatArray

MISSING = ("", "#N/A", "-NaN", "-nan", "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null")
"""Fields that stand for a missing label or weight; "-" and "?" may be classes."""

COLUMN_TYPES = ("string", "bool", "double", "float64", "float32", "int64", "int32", "int16", "int8")
"""The names that ``column_types`` takes; a feature of the first is a category."""

INDEX_NAMES = ("", "Unnamed: 0")
"""What pandas calls a first column that holds the numbers of rows."""

MAX_PASSES = 3
"""How often a file is parsed at most, until it is known what its columns hold."""

CONVERSION_ERROR = re.compile(r"(?s)column #(\d+): Row #(\d+): .*?: (?:invalid value '(.*)')?")
RAGGED_ERROR = re.compile(r"(?s)Row #(\d+): Expected (\d+) columns, got (\d+): (.*)")
"""pyarrow's messages on a field that does not convert, and on a row of another length."""


def open_csv(found: FoundFiles, options: OpenOptions) -> DataSource:
    """Return CSV files of equal columns as one source."""
    parsed = parse_csv(
        *map(Path, found.names),
        roles=options.roles,
        header=options.header,
        delimiter=options.delimiter,
        column_types=options.column_types,
        types=options.types,
        missing=options.missing,
    )
    return parsed.source(found.origin)


def parse_csv(
    *paths: Path,
    roles: Roles,
    header: bool | None = None,
    delimiter: str | None = None,
    column_types: Mapping[str | int, str] | None = None,
    types: Mapping[str | int, ColumnType] | None = None,
    missing: Sequence[str] = (),
) -> ParsedText:
    """Parse CSV files, plain or compressed, with bounded memory.

    Parameters
    ----------
    paths : Path
        The files: UTF-8 text, compressed where the name says so (``data.packing``). Several are
        one table.
    roles : Roles
        Which column is what.
    header : bool or None
        Whether the first line holds names; None infers it from the first two lines.
    delimiter : str or None
        One character; None infers it among comma, semicolon, tab, bar and space.
    column_types : mapping from column to pyarrow type name, or None
        Types of labels that the first rows do not show ("string"), or of features that are to be
        read strictly ("bool" reads true and false as 1 and 0).
    types : mapping from column to ColumnType, or None
        What features hold, where this is known or asked for.
    missing : sequence of str
        Words that stand for a missing value of a feature, beside the usual ones.
    """
    load_pyarrow("compute", "csv")
    tables = inspect_files(paths, header, delimiter)
    plan = _assign(tables[0], roles, column_types or {}, types or {}, missing)
    with temporary_folder() as folder:
        for _ in range(MAX_PASSES):
            parsed = _convert(tables, plan, folder)
            if parsed is not None:
                return parsed
            plan.columns.restart()
    raise ValueError(f"{paths[0]} changed while it was read. Open it again.")


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
    columns : TextColumns
        What the features hold.
    index : bool
        Whether the first feature may count the rows.
    """

    features: list[int]
    target: int | None
    weight: int | None
    kinds: dict[int, Any]
    inferred: bool
    columns: TextColumns
    index: bool = False


def _assign(
    table: CsvTable,
    roles: Roles,
    column_types: Mapping[str | int, str],
    types: Mapping[str | int, ColumnType],
    missing: Sequence[str],
) -> _CsvPlan:
    """Find the columns and the type of each."""
    pyarrow = load_pyarrow("compute", "csv")
    features, y, w = roles.resolve(table.find, table.names or range(table.width), str(table.path))
    given = {table.find(column): name for column, name in column_types.items()}
    asked = {table.find(column): known for column, known in types.items()}
    for column in types:
        if table.find(column) not in features:
            raise ValueError(no_feature(column, str(table.path)))
    kinds = dict.fromkeys(features, pyarrow.string())
    if y is not None:
        kinds[y] = None if y in given else _infer_kind(table, y)
    if w is not None:
        kinds[w] = pyarrow.float64()
    for position in kinds.keys() & given.keys():
        kinds[position] = _kind(table, position, given[position])
        if given[position] == "string":
            asked.setdefault(position, ColumnType(CATEGORY, asked=True))
    commas = table.delimiter == ","
    found = [TextColumn(asked.get(position), among_commas=commas) for position in features]
    columns = TextColumns(found, missing)
    unnamed = table.names is not None and table.names[0] in INDEX_NAMES
    chosen = roles.columns is not None or bool({0} & (asked.keys() | given.keys()))
    index = unnamed and features[0] == 0 and len(features) > 1 and not chosen
    return _CsvPlan(features, y, w, kinds, y not in given, columns, index)


def _kind(table: CsvTable, position: int, name: str) -> Any:
    """Return the pyarrow type that ``column_types`` asks for, or raise."""
    if name not in COLUMN_TYPES:
        raise ValueError(
            f"column_types gives {name!r} for column {table.key(position)}; expected one of "
            f"{', '.join(map(repr, COLUMN_TYPES))}."
        )
    return load_pyarrow("compute", "csv").type_for_alias(name)


def _infer_kind(table: CsvTable, target: int) -> Any:
    """Return the type of the labels in the first block; dates and times are read as text."""
    pyarrow = load_pyarrow("compute", "csv")
    plan = _CsvPlan([], target, None, {target: None}, True, TextColumns([]))
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
    try:
        with (
            reading(table.path),
            open_arrow_stream(table.path) as stream,
            pyarrow.csv.open_csv(stream, read, parse, convert) as batches,
        ):
            yield from batches
    except pyarrow.ArrowInvalid as error:
        raise ValueError(_explain(table, plan, str(error))) from error


def _convert(
    tables: Sequence[CsvTable], plan: _CsvPlan, folder: TemporaryFolder
) -> ParsedText | None:
    """Write the features batch by batch, and gather labels and weights.

    Where a column turns out to be something else, the rest is looked through, and None returned.
    """
    d, n_rows, file = len(plan.features), 0, folder.path / "X"
    labels, weights, files = TextLabels(), [], []
    index = RowCount() if plan.index else None
    with file.open("wb") as out:
        for table in tables:
            first_row = n_rows
            for batch in _batches(table, plan):
                _refuse_missing(table, plan, batch, n_rows - first_row)
                block = _read_block(table, plan, batch, n_rows - first_row)
                if index is not None:
                    index.add(block[:, 0], n_rows - first_row)
                n_rows += batch.num_rows
                if plan.columns.wrong:
                    continue
                out.write(block.data)
                if plan.target is not None:
                    _add_labels(labels, batch.column(d))
                if plan.weight is not None:
                    weights.append(batch.columns[-1].to_numpy(zero_copy_only=False).astype(float))
            files.append((str(table.path), n_rows - first_row))
    if not n_rows:
        raise ValueError(f"{tables[0].path} holds a header line and no rows.")
    if plan.columns.wrong:
        return None
    X = np.memmap(file, np.float64, "r", shape=(n_rows, d))
    y = labels.finish() if plan.target is not None else None
    w = np.concatenate(weights) if plan.weight is not None else None
    parsed = _parsed(tables[0], plan, X, y, w, folder, index is not None and index.counts)
    return replace(parsed, files=tuple(files))


def _parsed(
    table: CsvTable,
    plan: _CsvPlan,
    X: FloatArray,
    labels: Any,
    weights: FloatArray | None,
    folder: TemporaryFolder,
    indexed: bool,
) -> ParsedText:
    """Return what was parsed, without the index of the rows, where the file has one."""
    first = int(indexed)
    names = None
    if table.names is not None:
        names = tuple(table.names[position] for position in plan.features[first:])
    types = plan.columns.types[first:]
    words = {j - first: found for j, found in plan.columns.words.items()}
    notes = reading_notes(types, names)
    if indexed:
        shown = table.names[0] if table.names else ""
        notes = (
            f"The first column, {shown!r}, counts the rows and is left out; to use it, name it in "
            "columns=[...].",
            *notes,
        )
    return ParsedText(X[:, first:], names, labels, weights, folder, types, words, notes)


@dataclass
class RowCount:
    """Whether a column counts the rows of each file, from 0 or from 1."""

    counts: bool = True
    start: float | None = None

    def add(self, values: FloatArray, first_row: int) -> None:
        """Look at further values."""
        if self.start is None and len(values):
            self.start = float(values[0]) - first_row
        expected = (self.start or 0.0) + first_row + np.arange(len(values))
        self.counts &= self.start in (None, 0.0, 1.0) and bool((values == expected).all())


def _read_block(table: CsvTable, plan: _CsvPlan, batch: Any, first_row: int) -> FloatArray:
    """Return the features of a batch as floats, or raise an error that names row and column."""
    cells = batch.columns[: len(plan.features)]
    try:
        return plan.columns.read(cells, batch.num_rows)
    except UnreadableCellError as error:
        key = table.key(plan.features[error.column])
        advice = "Correct it, or leave it empty"
        if isinstance(error.error, AmbiguousWordError):
            advice = error.error.remedy(key)
        if isinstance(error.error, ListedWordError):
            advice = f"Pass columns={{{key}: 'number'}} to read it as a number"
        raise ValueError(
            f"{table.path} has {error} in column {key}, row {first_row + error.row} (counted from "
            f"0). {advice}, or pass columns={{{key}: 'category'}} to read it as words."
        ) from None


def _add_labels(labels: TextLabels, column: Any) -> None:
    """Append a column of labels."""
    if column.type == "string":
        packed = column.dictionary_encode()
        labels.add(packed.indices.to_numpy(), packed.dictionary.to_pylist())
    else:
        labels.add(column.to_numpy(zero_copy_only=False))


def _refuse_missing(table: CsvTable, plan: _CsvPlan, batch: Any, first_row: int) -> None:
    """Raise for the first missing label or weight of a batch."""
    compute, found = load_pyarrow("compute", "csv").compute, []
    d = len(plan.features)
    for position, column in zip([*plan.kinds][d:], batch.columns[d:], strict=True):
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
        advice = "Fill it in, for example with 1, or leave the row out."
        if position == plan.target:
            advice = f"Leave it out or, if NA is a class, pass column_types={{{key}: 'string'}}."
        return f"{table.path} has a missing value in {where}: it is empty, NA or NaN. {advice}"
    if position == plan.target:
        wanted = "the first rows look like" if plan.inferred else "column_types asks for"
        other = "double" if is_plain_number(text) else "string"
        kind = plan.kinds[position]
        return (
            f"{table.path} has the label {text!r} in {where}, where {wanted} {kind}. "
            f"Pass column_types={{{key}: {other!r}}} to read all labels as that type."
        )
    advice = "Leave it out."
    if position == plan.weight:
        advice = "Weights must be numbers."
    elif position in plan.features:
        advice = f"Leave {key} out of column_types, which asks for {plan.kinds[position]}."
    return f"{table.path} has text in {where}: could not convert {text!r} to a number. {advice}"
