"""Tables in memory as arrays of floats: pandas and polars frames, pyarrow tables, object arrays.

Every column becomes a column of floats as ``data.kinds`` says; what cannot be used is reported in
one message, for all columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from importlib import import_module
from numbers import Number
from typing import Any

import numpy as np

from polysift.data.kinds import (
    CATEGORY,
    DATE,
    DROP,
    NUMBER,
    WRITTEN_KINDS,
    ColumnType,
    Words,
    asked_kinds,
    asked_type,
    levels_of,
    levels_of_numbers,
    plain_word,
    word_of,
)
from polysift.data.words import (
    AmbiguousWordError,
    UnreadableWordError,
    infer_words,
    read_words,
)
from polysift.runtime.types import FloatArray, IntArray

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class UnusableColumnError(ValueError):
    """A column that cannot be used as what it is asked to be, or at all."""


@dataclass(frozen=True)
class Column:
    """A column of a table: its values, or its distinct words and the position of each row's.

    Attributes
    ----------
    numbers : ndarray of shape (m,) or None
        The values of a column of numbers or dates, NaN where they are missing.
    words : list of str or None
        Distinct words, None for a missing one.
    codes : ndarray of int of shape (m,) or None
        The position of each row's word; -1 for a missing one.
    kind : str
        What the type of the column says: "number", "category", "date", or "text", whose words
        decide.
    """

    numbers: FloatArray | None = None
    words: list[str | None] = field(default_factory=list)
    codes: IntArray | None = None
    kind: str = NUMBER


def infer_type(column: Column) -> ColumnType:
    """Return the type of a column that nobody has asked for."""
    return infer_words(column.words) if column.kind == "text" else ColumnType(column.kind)


def column_values(column: Column, wanted: ColumnType) -> tuple[FloatArray, Words]:
    """Return a column as the floats of a type, and the words of its levels."""
    if wanted.kind == DROP:
        count = len(column.numbers if column.codes is None else column.codes)  # type: ignore[arg-type]
        return np.zeros(count), {}
    if column.codes is None:
        assert column.numbers is not None
        if wanted.kind == CATEGORY:
            return levels_of_numbers(column.numbers)
        if wanted.kind == NUMBER and column.kind == DATE and not wanted.asked:
            raise UnusableColumnError("holds dates, where numbers are expected")
        return column.numbers, {}
    if wanted.kind != CATEGORY:
        return np.append(read_words(column.words, wanted), np.nan)[column.codes], {}
    words = list(map(plain_word, column.words))
    table = np.append(levels_of(words), np.nan)  # the last is for -1
    named = zip(table.tolist(), words, strict=False)
    return table[column.codes], {level: word for level, word in named if word is not None}


@dataclass(frozen=True)
class Table:
    """A table in memory as floats.

    Attributes
    ----------
    X : ndarray of shape (m, d)
        The values, float64.
    types : tuple of ColumnType
        What the columns hold.
    words : dict of int to words
        The words of the levels of categories.
    """

    X: FloatArray
    types: tuple[ColumnType, ...]
    words: dict[int, Words]


def read_table(
    columns: Sequence[Column],
    names: Sequence[str] | None,
    asked: Mapping[Any, str],
    known: Sequence[ColumnType] | None = None,
) -> Table:
    """Return columns as a table of floats.

    Parameters
    ----------
    columns : sequence of Column
        The columns.
    names : sequence of str or None
        Their names.
    asked : mapping
        The kinds that a user asks for.
    known : sequence of ColumnType, optional
        The types that a model knows; they decide, if given.
    """
    chosen = {} if known is not None else asked_kinds(asked, names, len(columns))
    X = np.empty((_length(columns), len(columns)), order="F")
    types: list[ColumnType] = []
    words: dict[int, Words] = {}
    unusable: list[str] = []
    remedy: str | None = None  # for a column that can be read in two ways
    for j, column in enumerate(columns):
        wanted = infer_type(column) if known is None else _with_reading(known[j], column)
        if j in chosen:
            wanted = _asked_type(chosen[j], wanted)
        label = f"column {j}" if names is None else f"column {names[j]!r}"
        types.append(wanted)
        try:
            X[:, j], found = column_values(column, wanted)
        except UnreadableWordError as error:
            unusable.append(_at(label, column, error))
            if isinstance(error, AmbiguousWordError):
                remedy = remedy or error.remedy(label.removeprefix("column "))
            continue
        except UnusableColumnError as error:
            unusable.append(f"{label} {error}")
            continue
        if wanted.kind == CATEGORY:
            words[j] = found
    if unusable:
        advice = " Correct or convert such values, or pass columns={...: 'category'} to read words."
        if remedy is not None:
            advice = f" {remedy}.{advice}"
        raise UnusableColumnError(
            f"X cannot be read: {'; '.join(unusable)}.{advice if known is None else ''}"
        )
    return Table(X, tuple(types), words)


def _asked_type(kind: str, found: ColumnType) -> ColumnType:
    if kind in WRITTEN_KINDS:
        return asked_type(kind)
    reading = found.reading if found.kind == kind else ""
    return replace(found, kind=kind, asked=True, reading=reading)


def _with_reading(known: ColumnType, column: Column) -> ColumnType:
    """Return a type with the way in which text is read as numbers, where it does not say."""
    if known.kind != NUMBER or known.reading or column.kind != "text":
        return known
    found = infer_type(column)
    return replace(known, reading=found.reading) if found.kind == NUMBER else known


def _length(columns: Sequence[Column]) -> int:
    first = columns[0]
    return len(first.numbers if first.codes is None else first.codes)  # type: ignore[arg-type]


def _at(label: str, column: Column, error: UnreadableWordError) -> str:
    assert column.codes is not None
    row = int(np.argmax(column.codes == column.words.index(error.word)))
    return f"{label} holds {error} in row {row} (counted from 0)"


def is_table(X: Any) -> bool:
    """Return whether X has columns of other kinds than numbers, or may have."""
    if _is_arrow(X):
        return not all(_is_plain_arrow(field.type) for field in X.schema)
    if _is_frame(X):
        return not all(_is_plain_dtype(dtype) for dtype in X.dtypes)
    dtype = getattr(X, "dtype", None)
    if dtype is None and isinstance(X, list | tuple):
        return _holds_text(X)
    if getattr(dtype, "names", None):
        return True
    return getattr(dtype, "kind", "f") in "OUSMmT" and getattr(X, "ndim", 2) == 2


def columns_of(X: Any) -> tuple[list[Column], list[str] | None]:
    """Return the columns of a table in memory, and their names, if it has any."""
    if _is_arrow(X):
        return [arrow_column(X.column(j)) for j in range(X.num_columns)], list(X.schema.names)
    if _is_frame(X):
        names = [str(name) for name in X.columns]
        if hasattr(X, "to_arrow"):  # polars
            return columns_of(X.to_arrow())[0], names
        return [_pandas_column(X.iloc[:, j]) for j in range(X.shape[1])], names
    if isinstance(X, list | tuple):
        X = np.array(X, dtype=object)
    if X.dtype.names:
        return [array_column(X[name]) for name in X.dtype.names], list(X.dtype.names)
    return [array_column(X[:, j]) for j in range(X.shape[1])], None


def _is_frame(X: Any) -> bool:
    return hasattr(X, "dtypes") and hasattr(X, "columns")


def _is_arrow(X: Any) -> bool:
    return hasattr(X, "schema") and hasattr(X, "column_names")


def _is_plain_arrow(kind: Any) -> bool:
    tests = import_module("pyarrow.types")
    return bool(tests.is_integer(kind) or tests.is_floating(kind) or tests.is_decimal(kind))


def _is_plain_dtype(dtype: Any) -> bool:
    if hasattr(dtype, "is_numeric"):  # polars
        return bool(dtype.is_numeric())
    # pandas' nullable numbers have a kind, too
    return getattr(dtype, "kind", "O") in "iuf" and not _is_categorical(dtype)


def _is_categorical(dtype: Any) -> bool:
    return hasattr(dtype, "categories") and hasattr(dtype, "ordered")


def _holds_text(rows: Any) -> bool:
    """Return whether lists of rows hold anything but numbers."""
    plain = (Number, np.generic)
    return any(
        isinstance(row, list | tuple)
        and any(not isinstance(value, plain) or isinstance(value, np.str_) for value in row)
        for row in rows
    )


def _pandas_column(series: Any) -> Column:
    dtype = series.dtype
    if _is_categorical(dtype):
        words = [word_of(value) for value in dtype.categories]
        return Column(words=words, codes=np.asarray(series.cat.codes, dtype=int), kind=CATEGORY)
    kind = getattr(dtype, "kind", "O")
    if kind == "M":
        zoned = series.dt.tz_convert("UTC").dt.tz_localize(None) if _zone(dtype) else series
        return array_column(zoned.to_numpy(dtype="datetime64[us]"))
    if kind in "iuf":
        return Column(series.to_numpy(dtype=float, na_value=np.nan))
    return array_column(series.to_numpy(dtype=None if kind in "bm" else object))


def _zone(dtype: Any) -> Any:
    return getattr(dtype, "tz", None)


def array_column(values: np.ndarray[Any, Any]) -> Column:
    """Return a column of any numpy type."""
    kind = values.dtype.kind
    if kind in "iuf":
        return Column(values.astype(float))
    if kind in "Mm":
        unit = "datetime64[us]" if kind == "M" else "timedelta64[us]"
        whole = values.astype(unit).astype(np.int64)
        seconds = np.where(np.isnat(values), np.nan, whole / 1e6)
        return Column(seconds, kind=DATE if kind == "M" else NUMBER)
    if kind == "b":
        return Column(words=["False", "True"], codes=values.astype(int), kind=CATEGORY)
    return _object_column(values.tolist())


def _object_column(values: list[Any]) -> Column:
    """Return a column of Python objects: numbers, dates, or words in order of appearance."""
    kinds = set(map(type, values))
    missing = {kind for kind in kinds if kind.__name__ in ("NoneType", "NAType", "NaTType")}
    held = kinds - missing
    if held and all(issubclass(kind, Number) and not issubclass(kind, bool) for kind in held):
        return Column(np.array([_number(value) for value in values], dtype=float))
    if held - {float} and all(issubclass(kind, datetime | date) for kind in held - {float}):
        return Column(np.array([_seconds(value) for value in values]), kind=DATE)
    if held and all(issubclass(kind, timedelta) for kind in held):
        spans = [np.nan if type(v) in missing else v.total_seconds() for v in values]
        return Column(np.array(spans), kind=NUMBER)
    if not held:
        return Column(np.full(len(values), np.nan))
    seen: dict[Any, int] = {}
    words: list[str | None] = []
    codes = np.empty(len(values), dtype=int)
    for row, value in enumerate(values):
        key = value if type(value) is str else (type(value), value)
        try:
            code = seen.get(key)
        except TypeError:  # what has no hash is no value of a cell
            word_of(value)
            raise
        if code is None:
            code = seen[key] = len(words)
            words.append(value if type(value) is str else word_of(value))
        codes[row] = code
    truths = all(issubclass(kind, bool | np.bool_) for kind in held)
    return Column(words=words, codes=codes, kind=CATEGORY if truths else "text")


def _number(value: Any) -> float:
    return np.nan if type(value).__name__ in ("NoneType", "NAType", "NaTType") else float(value)


def _seconds(value: Any) -> float:
    if not isinstance(value, date) or value != value:  # None, NaN, NaT
        return np.nan
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    return float((value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp())


def arrow_column(column: Any) -> Column:
    """Return a column of an Arrow table."""
    import pyarrow as pa

    kind = column.type
    tests = pa.types
    if tests.is_null(kind):
        return Column(np.full(len(column), np.nan))
    if tests.is_boolean(kind):
        codes = column.cast(pa.int8()).fill_null(-1).to_numpy()
        return Column(words=["False", "True"], codes=codes.astype(int), kind=CATEGORY)
    if tests.is_date(kind) or tests.is_timestamp(kind):
        whole = column.cast(pa.timestamp("us"), safe=False) if tests.is_date(kind) else column
        if tests.is_timestamp(kind):
            whole = column.cast(pa.timestamp("us", kind.tz), safe=False)
        return Column(_as_floats(whole.cast(pa.int64())) / 1e6, kind=DATE)
    if tests.is_time(kind) or tests.is_duration(kind):
        unit = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[kind.unit]
        whole = column.cast(pa.int32()) if tests.is_time32(kind) else column.cast(pa.int64())
        return Column(_as_floats(whole) / unit)
    if is_arrow_text(kind):
        return _arrow_words(column)
    return Column(as_numbers(column))


def is_arrow_text(kind: Any) -> bool:
    """Return whether values of an Arrow type are words."""
    tests = import_module("pyarrow.types")
    found = (tests.is_string, tests.is_large_string, tests.is_dictionary)
    view = getattr(tests, "is_string_view", None)
    return any(test(kind) for test in found) or bool(view and view(kind))


def _arrow_words(column: Any) -> Column:
    import pyarrow as pa

    given = column
    if isinstance(given, pa.ChunkedArray):
        given = given.unify_dictionaries().combine_chunks()
    if isinstance(given, pa.ChunkedArray):  # as older versions of pyarrow return it
        given = pa.concat_arrays(given.chunks)
    declared = pa.types.is_dictionary(given.type)
    packed = given if declared else given.dictionary_encode()
    codes = packed.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    held = packed.dictionary.to_pylist()
    words = [word if isinstance(word, str) else word_of(word) for word in held]
    return Column(words=words, codes=codes, kind=CATEGORY if declared else "text")


def as_numbers(column: Any) -> FloatArray:
    """Return a numeric Arrow column as float; a null becomes NaN."""
    import pyarrow as pa

    if not pa.types.is_floating(column.type) or str(column.type) == "halffloat":
        column = column.cast(pa.float64(), safe=False)
    return np.asarray(column.to_numpy())


def _as_floats(column: Any) -> FloatArray:
    import pyarrow as pa

    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy())


def known_words(levels: Iterable[float], words: Words) -> list[str]:
    """Return the words of levels; a word that is not known is empty."""
    return [words.get(float(level), "") for level in levels]
