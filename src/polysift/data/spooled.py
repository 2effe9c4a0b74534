"""Rows that can be read only in order, written once to a temporary Arrow file.

Databases give Arrow batches. JSON lines, spreadsheets and SQLite give cells of any type: what a
column holds is known when all of them are seen, so that these are read twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from itertools import islice
from numbers import Real
from typing import Any

from polysift.data.arrow import load_pyarrow
from polysift.data.arrow_files import arrow_source, ipc_units
from polysift.data.formats import OpenOptions
from polysift.data.kinds import is_missing, word_of
from polysift.data.source import DataSource
from polysift.data.text import temporary_folder
from polysift.runtime.outputs import TemporaryFolder

BATCH_ROWS = 2**14
"""How many rows are converted at a time."""

Row = Sequence[Any]


def spooled_source(
    name: str, schema: Any, batches: Iterable[Any], options: OpenOptions
) -> DataSource:
    """Return record batches as a source; messages call it ``name``."""
    pa = load_pyarrow("ipc")
    with temporary_folder() as folder:
        path = folder.path / "rows.arrow"
        with path.open("wb") as out, pa.ipc.new_file(out, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        units, schema = ipc_units(str(path))
        kept = [replace(u, file=name, load=_keeping(u.load, folder)) for u in units]
        source = arrow_source(kept, schema, options)
        source.disk = path.stat().st_size
        return source


def _keeping(load: Callable[[list[str]], Any], folder: TemporaryFolder) -> Callable[..., Any]:
    """Return a loader that keeps the folder of its file alive."""

    def loaded(columns: list[str], _owner: TemporaryFolder = folder) -> Any:
        return load(columns)

    return loaded


def cell_source(
    name: str, names: Sequence[str], rows: Callable[[], Iterable[Row]], options: OpenOptions
) -> DataSource:
    """Return rows of Python cells as a source; ``rows`` begins anew with each call."""
    pa = load_pyarrow()
    kinds = [_Kinds() for _ in names]
    for row in rows():
        for kind, cell in zip(kinds, row, strict=True):
            kind.add(cell)
    schema = pa.schema([(title, kind.arrow_type) for title, kind in zip(names, kinds, strict=True)])

    def batches() -> Iterator[Any]:
        remaining = iter(rows())
        while block := list(islice(remaining, BATCH_ROWS)):
            columns = zip(*block, strict=True)
            yield pa.record_batch(
                [
                    pa.array(map(kind.plain, column), kind.arrow_type)
                    for kind, column in zip(kinds, columns, strict=True)
                ],
                schema=schema,
            )

    return spooled_source(name, schema, batches(), options)


class _Kinds:
    """The kinds of the cells of a column."""

    def __init__(self) -> None:
        self._found: set[str] = set()

    def add(self, cell: Any) -> None:
        """Take a further cell into account."""
        kind = _kind_of(cell)
        if kind is not None:
            self._found.add(kind)

    @property
    def arrow_type(self) -> Any:
        """The Arrow type that holds all cells; a list where some are no single values."""
        pa = load_pyarrow()
        if "nested" in self._found:
            return pa.list_(pa.null())
        alone = next(iter(self._found)) if len(self._found) == 1 else None
        known = {"number": pa.float64(), "truth": pa.bool_(), "date": pa.timestamp("us", "UTC")}
        if not self._found:
            return pa.float64()
        return known.get(alone or "", pa.string())

    def plain(self, cell: Any) -> Any:
        """Return a cell as a value of that type."""
        if "nested" in self._found:
            return None
        if self._found == {"text"} or len(self._found) > 1:
            word = cell if isinstance(cell, str) else word_of(cell)  # a label may be "-"
            return None if word is None else _encodable(word)
        if _kind_of(cell) is None:
            return None
        if self._found == {"date"}:
            return _moment(cell)
        return _float(cell) if self._found == {"number"} else cell


def _kind_of(cell: Any) -> str | None:
    """Return the kind of a cell; None if it is missing."""
    if cell is None or (isinstance(cell, str) and is_missing(cell)):
        return None
    if isinstance(cell, bool):
        return "truth"
    if isinstance(cell, Real):
        return None if cell != cell else "number"
    if isinstance(cell, date):
        return "date"
    return "text" if isinstance(cell, str | bytes) else "nested"


def _float(cell: Any) -> float:
    try:
        return float(cell)
    except OverflowError:  # an integer of hundreds of digits
        return math.inf if cell > 0 else -math.inf


def _encodable(word: str) -> str:
    """Return text without the halves of characters that JSON can hold, and no file."""
    return word.encode("utf-8", "backslashreplace").decode()


def _moment(cell: date) -> datetime:
    if not isinstance(cell, datetime):
        return datetime(cell.year, cell.month, cell.day, tzinfo=UTC)
    return cell if cell.tzinfo else cell.replace(tzinfo=UTC)
