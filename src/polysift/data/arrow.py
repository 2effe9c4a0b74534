"""Rows as Arrow tables: a source that loads one unit after the other (``data.arrow_units``).

pyarrow is imported late: the package works without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from polysift.data.arrow_units import (
    Unit,
    cut_out,
    intact_column,
    load_pieces,
    release_unused,
)
from polysift.data.checks import decoding, find_name
from polysift.data.kinds import CATEGORY, DROP, NUMBER, PLAIN_NUMBER, ColumnType, Words, kept_words
from polysift.data.memory_columns import arrow_column, as_numbers, is_arrow_text
from polysift.data.source import DataSource
from polysift.data.tables import column_values, infer_type
from polysift.data.words import (
    AmbiguousWordError,
    UnreadableWordError,
    WordEvidence,
    reading_notes,
)
from polysift.runtime.parallel import Span
from polysift.runtime.types import FloatArray

if TYPE_CHECKING:
    pass

TEXT_CELL_BYTES = 24
"""The memory of a cell of text while it is read: a short word in an Arrow array."""

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

    Attributes
    ----------
    indexes : tuple of str
        Columns that are left out, since they are the index of a pandas frame.
    """

    names: tuple[str, ...]
    indexes: tuple[str, ...] = ()

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
        kinds = {str(schema.field(name).type) for name in self.names}
        self.dtype = np.dtype(np.float32 if kinds == {"float"} else np.float64)
        self._known: tuple[ColumnType, ...] | None = None
        self._words: dict[int, Words] = {}  # of the units that were read
        largest = max((unit.rows_at_once for unit in units if not unit.resident), default=0)
        row_bytes = self.dtype.itemsize * self.n_features + 8 * self.has_weights
        texts = [name for name in self.names if is_arrow_text(schema.field(name).type)]
        row_bytes += TEXT_CELL_BYTES * len(texts)
        if target is not None:
            row_bytes += _width(schema.field(target).type)
        self.unit_bytes = largest * row_bytes
        self._skipped = 0  # rows of the first unit before this source's first row

    @property
    def types(self) -> tuple[ColumnType, ...] | None:  # type: ignore[override]
        """What the columns hold; None where all are numbers."""
        if self._known is None:
            self._known = tuple(map(self._type_of, self.names))
        plain = all(column == PLAIN_NUMBER for column in self._known)
        return None if plain else self._known

    def _type_of(self, name: str) -> ColumnType:
        """Return what a column holds; of text, units are read until it can only be a category."""
        if not is_arrow_text(self._schema.field(name).type):
            return infer_type(arrow_column(self._schema.empty_table().column(name)))
        evidence = WordEvidence()
        pieces = (piece for unit in self._units for piece in load_pieces(unit, [name]))
        for piece in pieces:
            with self._decoding(name):
                column = arrow_column(intact_column(piece, name))
            if column.kind == CATEGORY:  # a dictionary
                return ColumnType(CATEGORY)
            evidence.add(column.words)
            release_unused()
            if evidence.settled:
                break
        return evidence.decide()

    @property
    def notes(self) -> tuple[str, ...]:  # type: ignore[override]
        """Sentences on how columns are read."""
        left_out = (
            f"column {name!r} is left out: it is the index of a pandas frame."
            for name in self.indexes
        )
        return (*left_out, *reading_notes(self.types or (), self.names))

    def typed(self, types: Sequence[ColumnType]) -> DataSource:
        """Return this source with columns of other types, which are read as such."""
        made = ArrowSource(self._units, self._schema, self.names, self._target, self._weight)
        made.n_rows, made._skipped, made._spans = self.n_rows, self._skipped, self._spans
        made.target, made.origin, made.first_row = self.target, self.origin, self.first_row
        made.indexes, made.label = self.indexes, self.label
        made._known = tuple(map(self._with_reading, types, self.names))
        made.dtype = self.dtype if made.types is None else np.dtype(float)
        return made

    def _with_reading(self, wanted: ColumnType, name: str) -> ColumnType:
        """Return a type with the way in which text is read as numbers, where it does not say."""
        if wanted != PLAIN_NUMBER or not is_arrow_text(self._schema.field(name).type):
            return wanted
        found = self._type_of(name)
        # Text that is no number is told from numbers by the type, and refused when it is read.
        return found if found.kind == NUMBER else replace(wanted, asked=True)

    def check(self) -> None:
        """Raise for columns that cannot be used, all in one message."""
        if self._target is not None:
            kind = self._schema.field(self._target).type
            if str(kind).startswith(NESTED_TYPES):
                raise ValueError(f"{self.target} holds {kind}; a label must be a single value.")
        if self._weight is not None:
            self._refuse_text(self._weight)
        unusable = [
            f"{name!r} ({self._schema.field(name).type})"
            for name in self.names
            if not is_usable(self._schema.field(name).type)
        ]
        if unusable:
            raise ValueError(
                f"{'Column' if len(unusable) == 1 else 'Columns'} {', '.join(unusable)} of "
                f"{self.origin} cannot be used: a cell must be a number, text, a truth value or a "
                "date. Leave them out with open_data(..., drop=[...])."
            )

    def stream(self, spans: Iterable[Span]) -> Iterator[Any]:
        """Yield each span as a table of slices; each unit is loaded once."""
        import pyarrow as pa

        columns = self._columns()
        loaded: Any = None  # the current piece
        begin = end = 0  # the rows that it covers
        pieces: Iterator[Any] = iter(())
        units = iter(self._units)
        for first, last in spans:
            start, stop = first + self._skipped, last + self._skipped
            slices: list[Any] = []
            while start < stop:
                while end <= start:
                    loaded = None  # free one piece before the next is decoded
                    release_unused()
                    loaded = next(pieces, None)
                    begin = end
                    if loaded is not None:
                        end += loaded.num_rows
                    elif end + (unit := next(units)).n_rows > start:
                        pieces = self._load(unit, columns)
                    else:
                        end += unit.n_rows
                assert loaded is not None
                upto = min(stop, end)
                slices.append(loaded.slice(start - begin, upto - start))
                start = upto
            yield pa.concat_tables(slices)
        del loaded, pieces
        release_unused()

    def rows(self, part: Any) -> FloatArray:
        """Return the features of a part as a new C-ordered array."""
        out = np.empty((part.num_rows, self.n_features), dtype=self.dtype)
        for j, name in enumerate(self.names):
            out[:, j] = self._numbers(part, name)  # a null becomes NaN
        return out

    def words(self, part: Any) -> dict[int, Words]:
        """Return the words of all levels that were read so far."""
        return dict(self._words)

    def _load(self, unit: Unit, columns: list[str]) -> Iterator[Any]:
        """Yield the pieces of a unit, as they are read."""
        pieces = load_pieces(unit, columns)
        while (piece := next(pieces, None)) is not None:
            yield self._read(piece)
            del piece  # before the next one is decoded

    def _read(self, table: Any) -> Any:
        """Return a table whose columns that are not plain numbers are read, for all its parts."""
        import pyarrow as pa

        for j, column in enumerate(self.types or ()):
            if column == PLAIN_NUMBER:
                continue
            values, words = self._values(table, self.names[j], column)
            place = table.schema.get_field_index(self.names[j])
            table = table.set_column(place, self.names[j], pa.array(values))
            if words:
                self._words[j] = kept_words(self._words.get(j, {}), words)
        return table

    def _values(self, part: Any, name: str, column: ColumnType) -> tuple[FloatArray, Words]:
        """Return a column of a part as floats of its type, and the words of its levels."""
        if column.kind == DROP:
            return np.zeros(part.num_rows), {}
        with self._decoding(name):
            found = arrow_column(intact_column(part, name))
        try:
            return column_values(found, column)
        except UnreadableWordError as error:
            remedy = "Correct it"
            if isinstance(error, AmbiguousWordError):
                remedy = error.remedy(repr(name))
            raise ValueError(
                f"Column {name!r} of {self.origin} holds {error}. {remedy}, or pass "
                f"columns={{{name!r}: 'category'}} to read it as words."
            ) from None

    def labels(self, part: Any) -> np.ndarray[Any, Any]:
        """Return the labels of a part."""
        assert self._target is not None
        with self._decoding(self._target):
            column = intact_column(part, self._target).combine_chunks()
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
        made = ArrowSource(self._units, self._schema, names, self._target, self._weight)
        made.label = self.label
        if self._known is not None:
            types = dict(zip(self.names, self._known, strict=True))
            made._known = tuple(types.get(name) or made._type_of(name) for name in names)
            made.dtype = self.dtype if made.types is None else np.dtype(float)
        return made

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
        part._known = self.types or (PLAIN_NUMBER,) * self.n_features
        part.dtype = self.dtype
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
            return as_numbers(part.column(name))

    def _refuse_text(self, name: str) -> None:
        """Raise if a column of weights is not numeric."""
        kind = self._schema.field(name).type
        if not is_numeric(kind):
            raise ValueError(
                f"Column {name!r} of {self.origin} is not numeric: its type is {kind}. Weights "
                "must be numbers."
            )


def is_numeric(kind: Any) -> bool:
    """Return whether values of an Arrow type are numbers."""
    kinds = import_module("pyarrow.types")
    tests = (kinds.is_integer, kinds.is_floating, kinds.is_boolean, kinds.is_decimal)
    return any(test(kind) for test in tests)


def is_usable(kind: Any) -> bool:
    """Return whether a column of an Arrow type can be a feature."""
    kinds = import_module("pyarrow.types")
    tests = (kinds.is_temporal, kinds.is_null)
    known = is_numeric(kind) or is_arrow_text(kind) or any(test(kind) for test in tests)
    return known and not kinds.is_interval(kind)


def _width(kind: Any) -> int:
    """Return the bytes of a label in memory."""
    try:
        return max(1, kind.bit_width // 8)
    except ValueError:
        return TEXT_LABEL_BYTES
