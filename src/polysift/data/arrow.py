"""Rows as Arrow tables: a source that loads one unit after the other.

A unit is what Arrow decodes at once: a row group of a Parquet file, a record batch of an IPC file,
a table in memory. pyarrow is imported late: the package works without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from polysift.data.columns import Roles, resolve_names
from polysift.data.source import DataSource, decoding, find_name
from polysift.runtime.parallel import Span
from polysift.runtime.types import FloatArray

if TYPE_CHECKING:
    from polysift.data.formats import OpenOptions
    from polysift.data.locations import FoundFiles

TEXT_LABEL_BYTES = 64
"""The memory of a label that is text: a short word as a Python object."""

NESTED_TYPES = ("list", "large_list", "struct", "map", "fixed_size_list")
"""How pyarrow's names of types begin whose values are not single."""


def load_pyarrow(*modules: str) -> Any:
    """Return pyarrow with some of its modules, or say how to install it."""
    try:
        for name in ("pyarrow", *(f"pyarrow.{module}" for module in modules)):
            import_module(name)
    except ImportError as error:
        raise ImportError(
            "Reading and writing files needs pyarrow. Install it with: pip install "
            "'polysift[files]'"
        ) from error
    return import_module("pyarrow")


@dataclass(frozen=True)
class Unit:
    """Rows that are decoded at once: a row group, a batch, a table.

    Attributes
    ----------
    n_rows : int
        The number of its rows.
    file : str
        Where it comes from, for messages.
    first_row : int
        The number of its first row in that file.
    load : callable
        Takes names of columns, returns a pyarrow Table of them.
    resident : bool
        Whether it is in memory (or in a mapped file) already, so that loading allocates nothing.
    stored : bool
        Whether it is decoded from a file, which may be damaged, and not held by others for us.
    """

    n_rows: int
    file: str
    first_row: int
    load: Callable[[list[str]], Any]
    resident: bool = False
    stored: bool = True


def load_unit(unit: Unit, columns: list[str]) -> Any:
    """Return the given columns of a unit as a table."""
    if not unit.stored:
        return unit.load(columns)
    failure: OSError | None = None
    what = f"its row group of {unit.n_rows} rows from row {unit.first_row} on is damaged"
    with decoding(f"{unit.file} cannot be read: {what}", ". Write the file again."):
        try:
            table = unit.load(columns)
            table.validate()
            if table.num_rows != unit.n_rows:
                raise ValueError(f"it holds {table.num_rows} rows")
            return table
        except OSError as error:
            failure = error
    if isinstance(failure, FileNotFoundError):
        raise FileNotFoundError(f"{unit.file} was removed after it was opened.") from failure
    raise OSError(
        f"{unit.file} could not be read from row {unit.first_row} on: {failure}. The file itself "
        "may be intact: check the storage and the network, and try again."
    ) from failure


def table_units(table: Any, name: str) -> list[Unit]:
    """Return the unit of a table in memory."""
    return [Unit(table.num_rows, name, 0, table.select, resident=True)]


def cut_out(unit: Unit, columns: list[str], rows: Span) -> Unit:
    """Return some rows of a resident unit as a unit that holds no others and maps no file."""
    import pyarrow as pa

    table = unit.load(columns).slice(rows[0], rows[1] - rows[0])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:  # a slice is cut to its rows here
        writer.write_table(table)
    table = pa.ipc.open_stream(sink.getvalue()).read_all()
    return Unit(len(table), unit.file, unit.first_row + rows[0], table.select, resident=True)


class ArrowSource(DataSource):
    """Rows that are loaded as Arrow tables, one unit after the other.

    Each pass loads each unit once, whatever the shard borders: a part consists of slices, which
    copy nothing, and the thread that processes a part converts it to an array.

    Parameters
    ----------
    units : list of Unit
        The data, in order.
    schema : pyarrow.Schema
        All columns of the data.
    features : sequence of str
        The features, in order; all must be numeric.
    target, weight : str, optional
        The columns of labels and of weights.
    """

    names: tuple[str, ...]

    def __init__(
        self,
        units: list[Unit],
        schema: Any,
        features: Sequence[str],
        target: str | None = None,
        weight: str | None = None,
    ) -> None:
        self._units, self._schema, self._target, self._weight = units, schema, target, weight
        self.names = tuple(features)
        self._ends = np.cumsum([unit.n_rows for unit in units], dtype=np.int64)
        self.n_rows = int(self._ends[-1]) if units else 0
        self.n_features = len(self.names)
        self.has_labels, self.has_weights = target is not None, weight is not None
        where = units[0].file if units else "the data"
        self.target = f"The target {target!r} of {where}"
        files = list(dict.fromkeys(unit.file for unit in units))
        self.origin = where + (f" and {len(files) - 1} more" if len(files) > 1 else "")
        self.first_unit = units[0].n_rows if units else 0
        types = {str(schema.field(name).type) for name in self.names}
        self.dtype = np.dtype(np.float32 if types == {"float"} else np.float64)
        largest = max((unit.n_rows for unit in units if not unit.resident), default=0)
        row_bytes = self.dtype.itemsize * self.n_features + 8 * self.has_weights
        if target is not None:
            row_bytes += _width(schema.field(target).type)
        self.unit_bytes = largest * row_bytes
        self._skipped = 0  # rows of the first unit before this source's first row

    def check(self) -> None:
        """Raise for a feature or weight that is not numeric, or a label that is not one value."""
        if self._target is not None:
            kind = self._schema.field(self._target).type
            if str(kind).startswith(NESTED_TYPES):
                raise ValueError(f"{self.target} holds {kind}; a label must be a single value.")
        for name in [*self.names, *([] if self._weight is None else [self._weight])]:
            self._refuse_text(name)

    def stream(self, spans: Iterable[Span]) -> Iterator[Any]:
        """Yield each span as a table of slices; each unit is loaded once."""
        import pyarrow as pa

        columns = self._columns()
        loaded, begin, end = None, 0, 0  # the current unit, and the rows that it covers
        units = iter(self._units)
        for first, last in spans:
            start, stop = first + self._skipped, last + self._skipped
            slices = []
            while start < stop:
                while end <= start:
                    unit = next(units)
                    begin, end = end, end + unit.n_rows
                    loaded = None  # free one unit before the next is decoded
                    pa.default_memory_pool().release_unused()
                    loaded = load_unit(unit, columns) if end > start else None
                assert loaded is not None
                upto = min(stop, end)
                slices.append(loaded.slice(start - begin, upto - start))
                start = upto
            yield pa.concat_tables(slices)

    def rows(self, part: Any) -> FloatArray:
        """Return the features of a part as a new C-ordered array."""
        out = np.empty((part.num_rows, self.n_features), dtype=self.dtype)
        for j, name in enumerate(self.names):
            # A null becomes NaN, which check_finite reports with file, row and column.
            out[:, j] = self._numbers(part, name)
        return out

    def labels(self, part: Any) -> np.ndarray[Any, Any]:
        """Return the labels of a part."""
        assert self._target is not None
        with self._decoding(self._target):
            column = part.column(self._target).combine_chunks()
            column.validate(full=True)  # text may lie elsewhere than its file says
            if hasattr(column, "dictionary_decode"):
                column = column.dictionary_decode()
            return np.asarray(column.to_numpy(zero_copy_only=False))

    def weights(self, part: Any) -> FloatArray | None:
        """Return the weights of a part."""
        if self._weight is None:
            return None
        return self._numbers(part, self._weight).astype(float, copy=False)

    def select(self, names: Sequence[str]) -> DataSource:
        """Return this source with the given features, in that order."""
        for name in names:
            find_name(name, self._schema.names, "the data")
        return ArrowSource(self._units, self._schema, names, self._target, self._weight)

    def cut(self, spans: list[Span]) -> DataSource:
        """Return the rows of adjacent shards as a source of their own."""
        start, stop = spans[0][0] + self._skipped, spans[-1][1] + self._skipped
        columns = self._columns()
        first, last = np.searchsorted(self._ends, [start, stop - 1], side="right")
        units = self._units[first : last + 1]
        begins = [int(end) - u.n_rows for u, end in zip(units, self._ends[first:], strict=False)]
        skipped = start - begins[0]
        if any(unit.resident for unit in units):
            skipped = 0
            units = [
                cut_out(unit, columns, (max(start - begin, 0), stop - begin))
                for unit, begin in zip(units, begins, strict=True)
            ]
        part = ArrowSource(units, self._schema, self.names, self._target, self._weight)
        part.n_rows, part._skipped = stop - start, skipped
        part.target, part.origin = self.target, self.origin
        part._cut_from(self, spans)
        return part

    def place(self, row: int) -> str:
        """Return the label of a row in messages: its number in its file."""
        row += self._skipped
        for unit in self._units:
            if row < unit.n_rows:
                return f"row {unit.first_row + row} (counted from 0) of {unit.file}"
            row -= unit.n_rows
        return f"row {row}"

    def _columns(self) -> list[str]:
        """Return the columns that are loaded; a name may be empty."""
        roles = (self._target, self._weight)
        return [*self.names, *(name for name in roles if name is not None)]

    def _decoding(self, name: str) -> AbstractContextManager[None]:
        return decoding(f"Column {name!r} of {self.origin} cannot be read: it is damaged")

    def _numbers(self, part: Any, name: str) -> FloatArray:
        """Return a numeric column of a part as float; a null becomes NaN."""
        with self._decoding(name):
            return _as_numbers(part.column(name))

    def _refuse_text(self, name: str) -> None:
        """Raise if a column is not numeric."""
        kind = self._schema.field(name).type
        if not is_numeric(kind):
            first = next((unit for unit in self._units if unit.n_rows), None)
            where, held = self.origin, ""
            if first is not None:
                column = load_unit(first, [name]).column(name)
                with self._decoding(name):
                    where, held = first.file, f", and row 0 holds {column[0].as_py()!r}"
            raise ValueError(
                f"Column {name!r} of {where} is not numeric: its type is {kind}{held}. Encode it "
                "as numbers first, or leave it out with open_data(..., columns=[...])."
            )


def is_numeric(kind: Any) -> bool:
    """Return whether values of an Arrow type are numbers."""
    kinds = import_module("pyarrow.types")
    tests = (kinds.is_integer, kinds.is_floating, kinds.is_boolean, kinds.is_decimal)
    return any(test(kind) for test in tests)


def _width(kind: Any) -> int:
    """Return the bytes of a label in memory."""
    try:
        return max(1, kind.bit_width // 8)
    except ValueError:
        return TEXT_LABEL_BYTES


def _as_numbers(column: Any) -> FloatArray:
    """Return a numeric column as float; a null becomes NaN."""
    import pyarrow as pa

    if not pa.types.is_floating(column.type) or str(column.type) == "halffloat":
        column = column.cast(pa.float64(), safe=False)
    return np.asarray(column.to_numpy())


def arrow_source(units: list[Unit], schema: Any, roles: Roles) -> ArrowSource:
    """Return the source of units whose columns have the given roles."""
    where = units[0].file if units else "the data"
    with decoding(f"{where} has columns whose names cannot be read"):
        names = schema.names
    features, target, weight = resolve_names(names, where, roles)
    return ArrowSource(units, schema, features, target, weight)


def open_ipc(found: FoundFiles, options: OpenOptions) -> DataSource:
    """Return an Arrow IPC file (or stream) as a source."""
    load_pyarrow()
    path = str(found.single)
    with decoding(f"{path} is not a readable Arrow IPC file"):
        units, schema = _ipc_units(path)
    return arrow_source(units, schema, options.roles)


def _ipc_units(path: str) -> tuple[list[Unit], Any]:
    """Return one unit per record batch of an Arrow IPC file (or stream), and its schema."""
    import pyarrow as pa

    mapped = pa.memory_map(path)
    try:
        reader = pa.ipc.open_file(mapped)
    except pa.ArrowInvalid:  # the streaming format: no index, so its batches are listed once
        mapped.seek(0)
        table = pa.ipc.open_stream(mapped).read_all()
        return table_units(table, path), table.schema
    units, first = [], 0
    for i in range(reader.num_record_batches):
        rows = reader.get_batch(i).num_rows
        units.append(Unit(rows, path, first, _batch_loader(reader, i), resident=True))
        first += rows
    return units or table_units(reader.schema.empty_table(), path), reader.schema


def _batch_loader(reader: Any, i: int) -> Callable[[list[str]], Any]:
    def load(columns: list[str]) -> Any:
        import pyarrow as pa

        return pa.Table.from_batches([reader.get_batch(i)]).select(columns)

    return load
