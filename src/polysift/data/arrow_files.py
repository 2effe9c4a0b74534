"""Units of Arrow tables as a source, of one file or several, and Arrow IPC files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from polysift.data.arrow import ArrowSource, load_pyarrow
from polysift.data.arrow_units import Unit, intact_column, table_units
from polysift.data.checks import decoding
from polysift.data.columns import resolve_names, resolve_types
from polysift.data.formats import OpenOptions
from polysift.data.locations import FoundFiles
from polysift.data.memory_columns import is_arrow_text
from polysift.data.source import DataSource

PANDAS_INDEX = re.compile(r"__index_level_[0-9]+__")
"""The names that pandas gives the columns of an index in a file."""


def open_ipc(found: FoundFiles, options: OpenOptions) -> DataSource:
    """Return Arrow IPC files (or streams) of equal columns as one source."""
    load_pyarrow()

    def opened(path: str) -> tuple[list[Unit], Any]:
        with decoding(f"{path} is not a readable Arrow IPC file"):
            return ipc_units(path)

    return joined_source(found.names, map(opened, found.names), options)


def joined_source(
    names: Sequence[str], files: Iterable[tuple[list[Unit], Any]], options: OpenOptions
) -> DataSource:
    """Return files of equal columns, each as its units and its schema, as one source.

    A column without values has any type, and one of integers may have fractions in other files.
    """
    opened = list(files)
    schema = opened[0][1] if opened else None
    for name, (_, present) in zip(names, opened, strict=True):
        if schema is not None and columns_of_schema(present) != columns_of_schema(schema):
            schema = _joined_schema(schema, present)
            if schema is None:
                raise ValueError(schema_difference(names[0], opened[0][1], name, present))
    units = [
        unit if columns_of_schema(present) == columns_of_schema(schema) else _cast(unit, schema)
        for more, present in opened
        for unit in more
    ]
    if not units and schema is not None:  # messages name the file all the same
        units = table_units(schema.empty_table(), names[0])
    return arrow_source(units, schema, options)


def _joined_schema(one: Any, other: Any) -> Any:
    """Return a schema for the rows of both; None where columns or types differ too much."""
    import pyarrow as pa

    if one.names != other.names:
        return None
    fields = []
    for a, b in zip(one, other, strict=True):
        if pa.types.is_null(a.type) or str(a.type) == str(b.type):
            fields.append(b.with_nullable(True))
        elif pa.types.is_null(b.type):
            fields.append(a.with_nullable(True))
        elif all(pa.types.is_integer(x.type) or pa.types.is_floating(x.type) for x in (a, b)):
            whole = all(pa.types.is_integer(x.type) and x.type != pa.uint64() for x in (a, b))
            fields.append(pa.field(a.name, pa.int64() if whole else pa.float64()))
        else:
            return None
    return pa.schema(fields)


def _cast(unit: Unit, schema: Any) -> Unit:
    """Return a unit whose columns have the types of a schema."""
    cast = _Cast(unit, {field.name: field.type for field in schema})
    pieces = None if unit.load_pieces is None else cast.load_pieces
    return replace(unit, load=cast.load, load_pieces=pieces, resident=False)


@dataclass(frozen=True)
class _Cast:
    """Loads columns of a unit as these types."""

    unit: Unit
    types: dict[str, Any]

    def load(self, columns: list[str]) -> Any:
        return self._converted(self.unit.load(columns), columns)

    def load_pieces(self, columns: list[str]) -> Iterator[Any]:
        assert self.unit.load_pieces is not None
        for piece in self.unit.load_pieces(columns):
            yield self._converted(piece, columns)

    def _converted(self, table: Any, columns: list[str]) -> Any:
        import pyarrow as pa

        schema = pa.schema([(name, self.types[name]) for name in columns])
        return table.cast(schema, safe=False)


def columns_of_schema(schema: Any) -> list[tuple[str, str]]:
    """Return the names and types of columns."""
    return [(field.name, str(field.type)) for field in schema]


def schema_difference(first: str, one: Any, path: str, other: Any) -> str:
    """Return the message that says how the schemas of two files differ."""
    for name in [*one.names, *other.names]:
        a = str(one.field(name).type) if name in one.names else "absent"
        b = str(other.field(name).type) if name in other.names else "absent"
        if a != b:
            return (
                f"The files differ in column {name!r}: {a} in {first}, {b} in {path}. Write them "
                "with the same columns and types."
            )
    return f"The files have their columns in different orders: {first} and {path}."


def ipc_units(path: str) -> tuple[list[Unit], Any]:
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


@dataclass(frozen=True)
class _WithoutWords:
    """Loads columns of a unit; words of features that stand for missing values become null."""

    unit: Unit
    missing: tuple[str, ...]
    features: tuple[str, ...]

    def load(self, columns: list[str]) -> Any:
        return _without(self.unit.load(columns), self.missing, self.features)

    def load_pieces(self, columns: list[str]) -> Iterator[Any]:
        assert self.unit.load_pieces is not None
        for piece in self.unit.load_pieces(columns):
            yield _without(piece, self.missing, self.features)

    def loading(self) -> Unit:
        pieces = None if self.unit.load_pieces is None else self.load_pieces
        return replace(self.unit, load=self.load, load_pieces=pieces)


def _without(table: Any, missing: tuple[str, ...], features: tuple[str, ...]) -> Any:
    pa = load_pyarrow("compute")
    absent = pa.array(missing, pa.string())
    for position, name in enumerate(table.column_names):
        if name not in features or not is_arrow_text(table.schema.types[position]):
            continue
        words = intact_column(table, name).cast(pa.string())
        listed = pa.compute.is_in(pa.compute.utf8_trim_whitespace(words), absent)
        table = table.set_column(position, name, pa.compute.if_else(listed, None, words))
    return table


def arrow_source(units: list[Unit], schema: Any, options: OpenOptions) -> DataSource:
    """Return the source of units whose columns have the given roles and types."""
    where = units[0].file if units else "the data"
    with decoding(f"{where} has columns whose names cannot be read"):
        names = schema.names
    features, target, weight = resolve_names(names, where, options.roles)
    indexes = []
    if options.roles.columns is None and not options.types:
        indexes = [name for name in features if PANDAS_INDEX.fullmatch(name)]
    kept = [name for name in features if name not in indexes] or features
    if options.missing:
        units = [_WithoutWords(unit, options.missing, tuple(kept)).loading() for unit in units]
    source = ArrowSource(units, schema, kept, target, weight)
    source.indexes = tuple(indexes)
    return source.retyped(resolve_types(options.types, names, kept, where))
