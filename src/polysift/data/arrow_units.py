"""Units: what Arrow decodes at once, a row group, a record batch, a table in memory.

What is wrong with a file is said of the file and its rows. A large unit comes in pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from polysift.data.checks import decoding
from polysift.data.memory_columns import is_arrow_text
from polysift.runtime.parallel import Span, block_spans

PIECE_ROWS = 2**16
"""Rows of a large row group that are decoded at once."""

TABLE_UNIT_ROWS = 2**18
"""Rows of a table in memory that are read at once."""


def release_unused() -> None:
    """Give memory back that Arrow's allocator keeps of what was decoded."""
    import_module("pyarrow").default_memory_pool().release_unused()


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
    load_pieces : callable, optional
        Takes names of columns, yields tables of ``PIECE_ROWS`` rows, one after the other: a large
        row group need not be decoded whole.
    resident : bool
        Whether it is in memory (or in a mapped file) already, so that loading allocates nothing.
    stored : bool
        Whether it is decoded from a file, which may be damaged, and not held by others for us.
    """

    n_rows: int
    file: str
    first_row: int
    load: Callable[[list[str]], Any]
    load_pieces: Callable[[list[str]], Iterator[Any]] | None = None
    resident: bool = False
    stored: bool = True

    @property
    def rows_at_once(self) -> int:
        """The most rows of it that are decoded at once."""
        return self.n_rows if self.load_pieces is None else min(self.n_rows, PIECE_ROWS)


def load_unit(unit: Unit, columns: list[str]) -> Any:
    """Return the given columns of a unit as a table."""
    if not unit.stored:
        return unit.load(columns)
    table = _decoded(unit, lambda: unit.load(columns))
    if table.num_rows != unit.n_rows:
        raise ValueError(_damaged(unit, f"it holds {table.num_rows} rows"))
    return table


def load_pieces(unit: Unit, columns: list[str]) -> Iterator[Any]:
    """Yield the given columns of a unit as tables of ``PIECE_ROWS`` rows: their text is read then.

    What is decoded whole is cut, so that no more of its text is read at once.
    """
    if unit.load_pieces is None:
        table = load_unit(unit, columns)
        for start in range(0, max(unit.n_rows, 1), PIECE_ROWS):
            yield table.slice(start, PIECE_ROWS)
        return
    pieces, rows = unit.load_pieces(columns), 0
    while (piece := _decoded(unit, lambda: next(pieces, None))) is not None:
        rows += piece.num_rows
        yield piece
    if rows != unit.n_rows:
        raise ValueError(_damaged(unit, f"it holds {rows} rows"))


def _damaged(unit: Unit, how: str = "") -> str:
    what = f"its row group of {unit.n_rows} rows from row {unit.first_row} on is damaged"
    message = f"{unit.file} cannot be read: {what}"
    return f"{message}: {how}. Write the file again." if how else message


def _decoded(unit: Unit, load: Callable[[], Any]) -> Any:
    """Return a table of a unit, or None; what is wrong with its file is said of that."""
    failure: OSError | None = None
    with decoding(_damaged(unit), ". Write the file again."):
        try:
            table = load()
            if table is not None:
                table.validate()
            return table
        except OSError as error:
            failure = error
    if isinstance(failure, FileNotFoundError):
        raise FileNotFoundError(f"{unit.file} was removed after it was opened.") from failure
    raise OSError(
        f"{unit.file} could not be read from row {unit.first_row} on: {failure}. The file itself "
        "may be intact: check the storage and the network, and try again."
    ) from failure


def intact_column(table: Any, name: str) -> Any:
    """Return a column, or raise where its text lies elsewhere than its file says.

    ``load_unit`` does not look at each value; to compute with text that is not there may end the
    process.
    """
    column = table.column(name)
    column.validate(full=True)
    return column


def table_units(table: Any, name: str) -> list[Unit]:
    """Return the units of a table in memory, of bounded length: their text is read at once."""
    return [
        Unit(stop - start, name, start, table.slice(start, stop - start).select, resident=True)
        for start, stop in block_spans((0, table.num_rows), TABLE_UNIT_ROWS)
    ] or [Unit(0, name, 0, table.select, resident=True)]


def cut_out(unit: Unit, columns: list[str], rows: Span) -> Unit:
    """Return some rows of a resident unit as a unit that holds no others and maps no file."""
    import pyarrow as pa

    table = load_unit(unit, columns)
    texts = [name for name in columns if is_arrow_text(table.schema.field(name).type)]
    with decoding(f"{unit.file} cannot be read: it is damaged"):
        for name in texts:
            intact_column(table, name)
    table = table.slice(rows[0], rows[1] - rows[0])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:  # a slice is cut to its rows here
        writer.write_table(table)
    table = pa.ipc.open_stream(sink.getvalue()).read_all()
    return Unit(len(table), unit.file, unit.first_row + rows[0], table.select, resident=True)
