"""From CSV text to memory maps: one streaming pass, whose numbers stay in a temporary folder."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from polysift.data.arrow_units import load_pyarrow
from polysift.data.columns import Roles
from polysift.data.csv_layout import MISSING, CsvTable, inspect_csv, is_number
from polysift.data.inputs import ENCODE
from polysift.data.parsing import ParsedText, TextLabels, is_gzip, reading, temporary_folder

KINDS = ("string", "bool", "double", "float64", "float32", "int64", "int32", "int16", "int8")
"""The names that ``column_types`` takes; the first for labels only."""

CONVERSION = re.compile(r"(?s)column #(\d+): Row #(\d+): .*?: (?:invalid value '(.*)')?")
RAGGED = re.compile(r"(?s)Row #(\d+): Expected (\d+) columns, got (\d+): (.*)")
"""What pyarrow says of a field that does not convert, and of a row that is too long or short."""


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
        How to read labels where the first rows do not tell ("string"), or features that are not
        written as numbers ("bool" reads true and false as 1 and 0).
    """
    load_pyarrow("compute", "csv")
    table = inspect_csv(Path(path), header, delimiter)
    plan = _assign(table, roles, column_types or {})
    with temporary_folder() as folder:
        return _convert(table, plan, folder)


@dataclass(frozen=True)
class _Plan:
    """Which columns are read as what; ``kinds`` holds pyarrow types, in the order of reading.

    ``inferred`` says whether the type of the labels is.
    """

    features: list[int]
    target: int | None
    weight: int | None
    kinds: dict[int, Any]
    inferred: bool


def _assign(table: CsvTable, roles: Roles, column_types: Mapping[str | int, str]) -> _Plan:
    """Find the columns and the type of each."""
    features, y, w = roles.resolve(table.find, table.names or range(table.width), str(table.path))
    used = [*features, *(place for place in (y, w) if place is not None)]
    given = {table.find(column): name for column, name in column_types.items()}
    kinds = dict.fromkeys(used, load_pyarrow("compute", "csv").float64())
    kinds.update({p: _kind(table, p, given[p], p == y) for p in used if p in given})
    if y is not None and y not in given:
        kinds[y] = _infer_kind(table, y)
    return _Plan(features, y, w, kinds, inferred=y not in given)


def _kind(table: CsvTable, place: int, name: str, is_label: bool) -> Any:
    """Return the pyarrow type of a name, where a column can be read as that type."""
    kinds = KINDS if is_label else KINDS[1:]
    if name not in kinds:
        raise ValueError(
            f"column_types gives {name!r} for column {table.key(place)}; expected one of "
            f"{', '.join(map(repr, kinds))}."
        )
    return load_pyarrow("compute", "csv").type_for_alias(name)


def _infer_kind(table: CsvTable, target: int) -> Any:
    """Return the type of the labels of the first block; dates and times count as text."""
    pyarrow = load_pyarrow("compute", "csv")
    plan = _Plan([], target, None, {target: None}, inferred=True)
    with closing(_batches(table, plan)) as batches:
        found = next((batch.schema.types[0] for batch in batches), None)
    plain = (pyarrow.bool_(), pyarrow.int64(), pyarrow.float64())
    return found if found in plain else pyarrow.string()


def _batches(table: CsvTable, plan: _Plan) -> Generator[Any]:
    """Yield the columns of a plan as record batches; an error names row and column."""
    pyarrow = load_pyarrow("compute", "csv")
    read = pyarrow.csv.ReadOptions(
        use_threads=False,  # else pyarrow does not number the rows in its messages
        block_size=table.block_bytes,
        column_names=[str(place) for place in range(table.width)],
        skip_rows_after_names=table.skip,
    )
    parse = pyarrow.csv.ParseOptions(delimiter=table.delimiter, newlines_in_values=True)
    convert = pyarrow.csv.ConvertOptions(
        include_columns=[str(place) for place in plan.kinds],
        column_types={str(place): kind for place, kind in plan.kinds.items() if kind},
        null_values=MISSING,
        strings_can_be_null=plan.inferred,  # who asks for text may have a class named NA
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


def _convert(table: CsvTable, plan: _Plan, folder: Path) -> ParsedText:
    """Write the features batch by batch, and gather labels and weights."""
    d, n_rows, file = len(plan.features), 0, folder / "X"
    labels, weights = TextLabels(), []
    with file.open("wb") as out:
        for batch in _batches(table, plan):
            _refuse_missing(table, plan, batch, n_rows)
            columns = [column.to_numpy(zero_copy_only=False) for column in batch.columns[:d]]
            np.column_stack(columns).astype(float, copy=False).tofile(out)
            if plan.target is not None:
                _add_labels(labels, batch.column(d))
            if plan.weight is not None:
                weights.append(batch.columns[-1].to_numpy(zero_copy_only=False).astype(float))
            n_rows += batch.num_rows
    if not n_rows:
        raise ValueError(f"{table.path} holds a header line and no rows.")
    X = np.memmap(file, np.float64, "r", shape=(n_rows, d))
    names = None if table.names is None else tuple(table.names[place] for place in plan.features)
    y = labels.finish() if plan.target is not None else None
    w = np.concatenate(weights) if plan.weight is not None else None
    return ParsedText(X, names, y, w, folder)


def _add_labels(labels: TextLabels, column: Any) -> None:
    if column.type == "string":
        packed = column.dictionary_encode()
        labels.add(packed.indices.to_numpy(), packed.dictionary.to_pylist())
    else:
        labels.add(column.to_numpy(zero_copy_only=False))


def _refuse_missing(table: CsvTable, plan: _Plan, batch: Any, first_row: int) -> None:
    """Raise for the first field without a value."""
    compute, found = load_pyarrow("compute", "csv").compute, []
    for place, column in zip(plan.kinds, batch.columns, strict=True):
        if column.type == "string":
            empty = compute.equal(compute.utf8_trim_whitespace(column), "")
            column = compute.if_else(empty, None, column)
        if column.null_count:
            found.append((compute.index(column.is_null(), True).as_py(), place))
    if found:
        row, place = min(found)
        raise ValueError(_mismatch(table, plan, place, first_row + row, ""))


def _explain(table: CsvTable, plan: _Plan, message: str) -> str:
    """Put a message of pyarrow into the words of this package, where its wording is known."""
    if found := CONVERSION.search(message):
        column, row, text = found.groups()
        return _mismatch(table, plan, int(column), int(row) - 1 - table.skip, text)
    if found := RAGGED.search(message):
        row, wanted, got, text = found.groups()
        return (
            f"{table.path} has {got} fields instead of {wanted} in row "
            f"{int(row) - 1 - table.skip} (counted from 0): {text[:80]!r}. Mend this row, or pass "
            f"the delimiter if it is not {table.delimiter!r}."
        )
    return (
        f"{table.path} cannot be read as CSV with the delimiter {table.delimiter!r}: {message}. "
        "A quotation mark that is not closed, or a very long line, is a likely reason."
    )


def _mismatch(table: CsvTable, plan: _Plan, place: int, row: int, text: str | None) -> str:
    """Say which field is not of the type its column is read as, and what to do."""
    key = table.key(place)
    where = f"column {key}, row {row} (counted from 0)"
    if text is None:
        return f"{table.path} has text that is not UTF-8 in {where}. Save the file as UTF-8."
    if text.strip() in MISSING:
        advice = "Fill it in, for example with sklearn.impute.SimpleImputer, or leave it out."
        if place == plan.target:
            advice = f"Leave it out or, if NA is a class, pass column_types={{{key}: 'string'}}."
        return f"{table.path} has a missing value in {where}: it is empty, NA or NaN. {advice}"
    if place == plan.target:
        wanted = "the first rows look like" if plan.inferred else "column_types asks for"
        other = "double" if is_number(text) else "string"
        return (
            f"{table.path} has the label {text!r} in {where}, where {wanted} {plan.kinds[place]}. "
            f"Pass column_types={{{key}: {other!r}}} to read all labels as that type."
        )
    advice = "Weights must be numbers." if place == plan.weight else ENCODE
    if text.strip().lower() in ("true", "false"):
        advice = f"Pass column_types={{{key}: 'bool'}} to read the column as 1 and 0."
    return f"{table.path} has text in {where}: could not convert {text!r} to a number. {advice}"
