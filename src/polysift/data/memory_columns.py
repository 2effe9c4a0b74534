"""Columns of tables in memory: of pandas, NumPy and Arrow, and of Python's own objects.

A column is floats, or distinct words and the position of each row's. What no column can hold, such
as lists, is noted, and is an error once the column is used (``data.tables``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from importlib import import_module
from numbers import Real
from typing import Any

import numpy as np

from polysift.data.kinds import CATEGORY, DATE, NUMBER, word_of
from polysift.runtime.types import FloatArray, IntArray


@dataclass(frozen=True)
class Column:
    """A column of a table: its values, or its distinct words and the position of each row's.

    Attributes
    ----------
    numbers : ndarray of shape (m,) or None
        The values of a column of numbers, dates or truth values, NaN where they are missing.
    words : list of str or None
        Distinct words, None for a missing one.
    codes : ndarray of int of shape (m,) or None
        The position of each row's word; -1 for a missing one.
    kind : str
        What the type of the column says: "number", "category", "date", or "text", whose words
        decide.
    unusable : str
        What the column holds that is no value of a table, if it does.
    """

    numbers: FloatArray | None = None
    words: list[str | None] = field(default_factory=list)
    codes: IntArray | None = None
    kind: str = NUMBER
    unusable: str = ""


def is_categorical(dtype: Any) -> bool:
    """Return whether a type is the one of pandas for categories."""
    return hasattr(dtype, "categories") and hasattr(dtype, "ordered")


def pandas_column(series: Any) -> Column:
    """Return a column of a pandas frame."""
    dtype = series.dtype
    if is_categorical(dtype):
        codes = np.asarray(series.cat.codes, dtype=int)
        return _of_words(dtype.categories, codes, CATEGORY)
    kind = getattr(dtype, "kind", "O")
    if type(dtype).__name__ == "PeriodDtype":
        return array_column(series.dt.to_timestamp().to_numpy(dtype="datetime64[us]"))
    if kind == "M":
        zoned = series.dt.tz_convert("UTC").dt.tz_localize(None) if _zone(dtype) else series
        return array_column(zoned.to_numpy(dtype="datetime64[us]"))
    if kind in "iuf":
        return Column(series.to_numpy(dtype=float, na_value=np.nan))
    return array_column(series.to_numpy(dtype=None if kind in "bm" else object))


def _of_words(values: Iterable[Any], codes: IntArray, kind: str) -> Column:
    """Return a column of distinct values, by the position of each row's."""
    words: list[str | None] = []
    for value in values:
        try:
            words.append(value if isinstance(value, str) else word_of(value))
        except TypeError as error:
            row = int(np.argmax(codes == len(words)))
            return _no_values(len(codes), str(error), row)
    return Column(words=words, codes=codes, kind=kind)


def _truths(codes: IntArray) -> Column:
    """Return a column of truth values, 0, 1 and -1 for a missing one: a category, or numbers."""
    numbers = np.where(codes < 0, np.nan, codes)
    return Column(numbers, words=["False", "True"], codes=codes, kind=CATEGORY)


def _no_values(rows: int, shown: str, row: int) -> Column:
    return Column(np.full(rows, np.nan), unusable=f"{shown} in row {row} (counted from 0)")


def _zone(dtype: Any) -> Any:
    return getattr(dtype, "tz", None)


def array_column(values: np.ndarray[Any, Any]) -> Column:
    """Return a column of any numpy type."""
    if values.ndim > 1:
        return _no_values(len(values), f"arrays of shape {values.shape[1:]}", 0)
    kind = values.dtype.kind
    if kind in "iuf":
        return Column(values.astype(float))
    if kind in "Mm":
        unit = "datetime64[us]" if kind == "M" else "timedelta64[us]"
        whole = values.astype(unit).astype(np.int64)
        seconds = np.where(np.isnat(values), np.nan, whole / 1e6)
        return Column(seconds, kind=DATE if kind == "M" else NUMBER)
    if kind == "b":
        return _truths(values.astype(int))
    return object_column(values.tolist())


def object_column(values: list[Any]) -> Column:
    """Return a column of Python objects: numbers, dates, or words in order of appearance."""
    kinds = set(map(type, values))
    missing = {kind for kind in kinds if kind.__name__ in ("NoneType", "NAType", "NaTType")}
    held = kinds - missing
    numbers = (issubclass(kind, Real | Decimal) and not issubclass(kind, bool) for kind in held)
    if held and all(numbers):
        return Column(np.array([_number(value) for value in values], dtype=float))
    if held - {float} and all(issubclass(kind, datetime | date) for kind in held - {float}):
        return Column(np.array([_seconds(value) for value in values]), kind=DATE)
    if held and all(issubclass(kind, timedelta) for kind in held):
        spans = [np.nan if type(v) in missing else v.total_seconds() for v in values]
        return Column(np.array(spans), kind=NUMBER)
    if held and all(issubclass(kind, time) for kind in held):
        times = [np.nan if type(v) in missing else _seconds_of_day(v) for v in values]
        return Column(np.array(times), kind=NUMBER)
    if not held:
        return Column(np.full(len(values), np.nan))
    seen: dict[Any, int] = {}
    words: list[str | None] = []
    codes = np.empty(len(values), dtype=int)
    for row, value in enumerate(values):
        key = value if type(value) is str else (type(value), value)
        try:
            code = seen.get(key)
            if code is None:
                words.append(value if type(value) is str else word_of(value))
                code = seen[key] = len(words) - 1
        except TypeError:  # what has no hash is no value of a cell
            return _no_values(len(values), f"{value!r:.60} of type {type(value).__name__}", row)
        codes[row] = code
    truths = all(issubclass(kind, bool | np.bool_) for kind in held - {float})
    if truths and set(words) <= {None, "True", "False"}:  # a float may be NaN
        of_words = [-1 if word is None else int(word == "True") for word in words]
        return _truths(np.array(of_words)[codes])
    return Column(words=words, codes=codes, kind="text")


def _number(value: Any) -> float:
    if type(value).__name__ in ("NoneType", "NAType", "NaTType"):
        return np.nan
    try:
        return float(value)
    except OverflowError:  # an integer of more than 308 digits
        return np.inf if value > 0 else -np.inf


def _seconds_of_day(value: time) -> float:
    return 3600.0 * value.hour + 60.0 * value.minute + value.second + value.microsecond / 1e6


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
        return _truths(codes.astype(int))
    if tests.is_date(kind) or tests.is_timestamp(kind):
        whole = column.cast(pa.timestamp("us"), safe=False) if tests.is_date(kind) else column
        if tests.is_timestamp(kind):
            whole = column.cast(pa.timestamp("us", kind.tz), safe=False)
        return Column(_as_floats(whole.cast(pa.int64())) / 1e6, kind=DATE)
    if is_arrow_text(kind):
        return _arrow_words(column)
    if "binary" in str(kind):
        return object_column(column.to_pylist())
    try:
        return Column(as_numbers(column))
    except pa.ArrowException:
        rows = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
        return _no_values(len(column), f"values of type {kind}", int(rows[0]) if len(rows) else 0)


def is_arrow_text(kind: Any) -> bool:
    """Return whether values of an Arrow type are words."""
    tests = import_module("pyarrow.types")
    found = [tests.is_string, tests.is_large_string, tests.is_dictionary]
    found += [tests.is_binary, tests.is_large_binary]  # as some programs write text
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
    return _of_words(held, codes, CATEGORY if declared else "text")


def as_numbers(column: Any) -> FloatArray:
    """Return a column of numbers, or of seconds, as float; a null becomes NaN."""
    import pyarrow as pa

    kind, tests = column.type, pa.types
    if tests.is_time(kind) or tests.is_duration(kind):
        unit = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[kind.unit]
        whole = column.cast(pa.int32()) if tests.is_time32(kind) else column.cast(pa.int64())
        return _as_floats(whole) / unit
    if not tests.is_floating(kind) or str(kind) == "halffloat":
        column = column.cast(pa.float64(), safe=False)
    return np.asarray(column.to_numpy())


def _as_floats(column: Any) -> FloatArray:
    import pyarrow as pa

    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy())
