"""Tables in memory as arrays of floats: pandas and polars frames, pyarrow tables, object arrays.

Every column becomes a column of floats as ``data.kinds`` says; what cannot be used is reported in
one message, for all columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
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
)
from polysift.data.memory_columns import (
    Column,
    array_column,
    arrow_column,
    is_categorical,
    object_column,
    pandas_column,
)
from polysift.data.words import (
    AmbiguousWordError,
    UnreadableWordError,
    infer_words,
    read_words,
)
from polysift.runtime.types import FloatArray

NO_VALUES = (
    " A cell must be a number, text, a truth value, a date, or missing; an argument must be a "
    "string or a number. Unpack what is neither, or leave the column out: columns={...: 'drop'}."
)
"""What to do about cells that hold something else."""


class UnusableColumnError(ValueError):
    """A column that cannot be used as what it is asked to be, or at all."""


class UnusableCellError(UnusableColumnError, TypeError):
    """A column with something in a cell that is no value of a table, such as a list."""


def infer_type(column: Column) -> ColumnType:
    """Return the type of a column that nobody has asked for."""
    return infer_words(column.words) if column.kind == "text" else ColumnType(column.kind)


def column_values(column: Column, wanted: ColumnType) -> tuple[FloatArray, Words]:
    """Return a column as the floats of a type, and the words of its levels."""
    if wanted.kind == DROP:
        count = len(column.numbers if column.codes is None else column.codes)  # type: ignore[arg-type]
        return np.zeros(count), {}
    if column.unusable:
        raise UnusableCellError(f"holds {column.unusable}")
    if column.codes is None or (wanted.kind == NUMBER and column.numbers is not None):
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
    no_values = False
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
            no_values |= isinstance(error, UnusableCellError)
            continue
        if wanted.kind == CATEGORY:
            words[j] = found
    if unusable:
        advice = " Correct or convert such values, or pass columns={...: 'category'} to read words."
        if remedy is not None:
            advice = f" {remedy}.{advice}"
        advice = advice if known is None else ""
        if no_values:
            advice = f"{NO_VALUES}{advice}"
        failure = UnusableCellError if no_values else UnusableColumnError
        raise failure(f"X cannot be read: {'; '.join(unusable)}.{advice}")
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
            return [_polars_column(X[:, j]) for j in range(X.shape[1])], names
        return [pandas_column(X.iloc[:, j]) for j in range(X.shape[1])], names
    if isinstance(X, list | tuple):
        X = np.array(X, dtype=object)
    if X.dtype.names:
        return [array_column(X[name]) for name in X.dtype.names], list(X.dtype.names)
    return [array_column(X[:, j]) for j in range(X.shape[1])], None


def repeated_name(X: Any) -> str | None:
    """Return a name that several columns of a table in memory have; None if none is."""
    names = [] if not (_is_frame(X) or _is_arrow(X)) else list(map(str, _names_of(X)))
    if len(set(names)) == len(names):
        return None
    return next(name for name in names if names.count(name) > 1)


def _names_of(X: Any) -> Any:
    return X.schema.names if _is_arrow(X) else X.columns


def _polars_column(series: Any) -> Column:
    if str(series.dtype) == "Object":  # Arrow would have their addresses
        return object_column(series.to_list())
    return arrow_column(series.to_frame().to_arrow().column(0))


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
    return getattr(dtype, "kind", "O") in "iuf" and not is_categorical(dtype)


def _holds_text(rows: Any) -> bool:
    """Return whether lists of rows hold anything but numbers."""
    plain = (Number, np.generic)
    return any(
        isinstance(row, list | tuple)
        and any(not isinstance(value, plain) or isinstance(value, np.str_) for value in row)
        for row in rows
    )


def known_words(levels: Iterable[float], words: Words) -> list[str]:
    """Return the words of levels; a word that is not known is empty."""
    return [words.get(float(level), "") for level in levels]
