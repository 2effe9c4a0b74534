"""From CSV text to memory maps: one streaming pass, whose numbers stay in a temporary folder.

What parsers of text share: how to open a file, where to put numbers, what to return.

How a CSV file is cut into rows and columns, as told by its first lines.
"""

from __future__ import annotations

import csv
import gzip
import operator
import re
import shutil
import tempfile
import zlib
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import numpy as np

from polysift.data.arrow import load_pyarrow
from polysift.data.columns import Roles, as_position, check_position, find_column
from polysift.data.inputs import ENCODE
from polysift.runtime.types import Block, FloatArray


@dataclass(frozen=True)
class ParsedText:
    """What a text file held.

    Attributes
    ----------
    X : memmap or csr_array of shape (m, d)
        The features, float64 and read-only, on files in ``folder``.
    names : tuple of str, or None
        The names of the features, where the file has them.
    labels : ndarray of shape (m,), or None
        The labels: bool, int, float or text.
    weights : ndarray of shape (m,), or None
        The weights, float64.
    folder : Path
        The temporary folder, which the caller removes.
    n_bytes : int
        Bytes on disk in that folder.
    """

    X: Block
    names: tuple[str, ...] | None
    labels: np.ndarray[Any, Any] | None
    weights: FloatArray | None
    folder: Path
    n_bytes: int = field(init=False)

    def __post_init__(self) -> None:
        size = sum(file.stat().st_size for file in self.folder.iterdir())
        object.__setattr__(self, "n_bytes", size)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Make a folder that stays, unless the body fails."""
    folder = Path(tempfile.mkdtemp(prefix="polysift-"))
    try:
        yield folder
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        if type(error) is OSError:  # not of the file that is read: those have classes of their own
            raise OSError(
                error.errno,
                f"Temporary files could not be written to {folder.parent}: {error}. Free space "
                "there, or point TMPDIR elsewhere.",
            ) from error
        raise


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Say which file is at fault when it is missing, not text, or cut short."""
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {str(path)!r}. Check the path.")
    try:
        yield
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text ({error}). Save it as UTF-8 first.") from error
    except (EOFError, OSError, zlib.error) as error:
        # What the operating system reports, such as a full disk, carries a number.
        if not is_gzip(path) or getattr(error, "errno", None) is not None:
            raise
        message = f"{path} is corrupt or cut short: {error}. Fetch it or compress it again."
        raise ValueError(message) from error


def open_binary(path: Path) -> Any:
    """Open a file for reading bytes, decompressed."""
    return gzip.open(path, "rb") if is_gzip(path) else path.open("rb")


def is_gzip(path: Path) -> bool:
    """Tell by the name whether a file is compressed."""
    return path.name.lower().endswith(".gz")


@dataclass
class TextLabels:
    """Labels gathered batch by batch; of text, each distinct label is kept once."""

    parts: list[np.ndarray[Any, Any]] = field(default_factory=list)
    codes: dict[str, int] = field(default_factory=dict)

    def add(self, values: np.ndarray[Any, Any], words: Sequence[str] | None = None) -> None:
        """Append labels; where ``words`` are given, ``values`` are positions among them."""
        if words is not None:
            known = [self.codes.setdefault(word, len(self.codes)) for word in words]
            values = np.array(known, dtype=np.int32)[values]
        self.parts.append(values)

    def finish(self) -> np.ndarray[Any, Any]:
        """Return all labels."""
        whole = np.concatenate(self.parts)
        if not self.codes:
            return whole
        # numpy pads each label to the longest: it sorts fast, but long ones would fill memory.
        kind = str if max(map(len, self.codes)) <= 16 else object
        return np.array(list(self.codes), dtype=kind)[whole]


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
