"""What Arrow decodes at once: a row group of a Parquet file, a batch of an IPC file, a table.

pyarrow is imported late: the package works without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

from polysift.runtime.parallel import Span


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
    """What is decoded at once: a row group, a batch, a table.

    Attributes
    ----------
    n_rows : int
        Its rows.
    file : str
        Where it comes from, for messages.
    first_row : int
        The number of its first row in that file.
    load : callable
        Takes column names, returns a pyarrow Table of them.
    resident : bool
        Whether it lies in memory (or a map of a file) already, so that loading takes none.
    """

    n_rows: int
    file: str
    first_row: int
    load: Callable[[list[str]], Any]
    resident: bool = False


def load_unit(unit: Unit, columns: list[str]) -> Any:
    """Return a unit as a table of these columns."""
    import pyarrow as pa

    try:
        return unit.load(columns)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{unit.file} has gone since it was opened.") from error
    except pa.ArrowInvalid as error:
        raise ValueError(
            f"{unit.file} cannot be read: its row group of {unit.n_rows} rows from row "
            f"{unit.first_row} on is damaged ({error}). Write the file anew."
        ) from error
    except OSError as error:
        raise OSError(
            f"{unit.file} could not be read from row {unit.first_row} on: {error}. The file itself "
            "may be sound: check the storage and the way to it, and try again."
        ) from error


def table_units(table: Any, name: str) -> list[Unit]:
    """Return the unit of a table in memory."""
    return [Unit(table.num_rows, name, 0, table.select, resident=True)]


def parquet_units(fragments: Iterable[Any]) -> list[Unit]:
    """Return one unit per row group of a Parquet data set's files, in order.

    The units of a file share its fragment, which a pickle holds once and without its footer: so
    another process reads a footer once, and not again for each row group.
    """
    units = []
    for fragment in fragments:
        first = 0
        for group in fragment.row_groups:
            load = partial(_load_group, fragment, group.id)
            units.append(Unit(group.num_rows, fragment.path, first, load))
            first += group.num_rows
    return units


def _load_group(file: Any, number: int, columns: list[str]) -> Any:
    """Load a row group; what is wrong with its bytes raises ArrowInvalid, nothing else does.

    pyarrow raises OSError for damaged pages as for a lost connection. So the bytes are asked for
    once more: if they come, and still cannot be decoded, it is they that are wrong.
    """
    import pyarrow as pa

    def table() -> Any:
        return file.subset(row_group_ids=[number]).to_table(columns=columns)

    try:
        return table()
    except FileNotFoundError:
        raise
    except OSError:
        if not _bytes_come(file, number):
            raise
    try:
        return table()
    except OSError as error:
        raise pa.ArrowInvalid(str(error).strip()) from error


def _bytes_come(file: Any, number: int) -> bool:
    """Return whether all bytes of a row group can be read, whatever they are."""
    try:
        found = file.metadata.row_group(number)
        chunks = [found.column(i) for i in range(found.num_columns)]
        with file.filesystem.open_input_file(file.path) as stored:
            for chunk in chunks:
                places = (chunk.dictionary_page_offset, chunk.data_page_offset)
                stored.read_at(chunk.total_compressed_size, min(filter(None, places)))
    except OSError:
        return False
    return True


def cut_out(unit: Unit, columns: list[str], rows: Span) -> Unit:
    """Return some rows of a unit in memory as one that holds nothing else, nor maps a file."""
    import pyarrow as pa

    table = unit.load(columns).slice(rows[0], rows[1] - rows[0])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:  # a slice is cut to its rows here
        writer.write_table(table)
    table = pa.ipc.open_stream(sink.getvalue()).read_all()
    return Unit(len(table), unit.file, unit.first_row + rows[0], table.select, resident=True)


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
    return units, reader.schema


def _batch_loader(reader: Any, i: int) -> Callable[[list[str]], Any]:
    def load(columns: list[str]) -> Any:
        import pyarrow as pa

        return pa.Table.from_batches([reader.get_batch(i)]).select(columns)

    return load
