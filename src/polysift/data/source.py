"""Sources: rows that can be read repeatedly, in order, one part at a time.

``DataSource`` is the interface, and ``ArraySource`` the one over arrays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from polysift.data.checks import find_name
from polysift.data.kinds import (
    CATEGORY,
    DROP,
    NUMBER,
    PLAIN_NUMBER,
    ColumnType,
    Words,
    asked_type,
    levels_of_numbers,
)
from polysift.runtime.parallel import Span, block_spans, shard_spans
from polysift.runtime.types import Block, FloatArray, IntArray

NOUNS = {"number": "numbers", "category": "text", "date": "dates"}
"""What a column of each kind holds, in messages."""


COPIED_ATTRIBUTES = (
    *("n_rows", "n_features", "dtype", "names", "has_labels", "has_weights", "sparse", "target"),
    *("origin", "label", "disk", "unit_bytes", "first_unit", "first_row", "types", "notes"),
)
"""What a source that wraps another one takes over from it."""


CHECKED_VALUES = 2**20
"""Values of an array that are looked at at once."""


class DataSource(ABC):
    """Rows, with labels and weights where they have any; it takes the place of ``X``.

    A pass over the data reads one part after the other (``stream``), in one thread; a part is
    converted to arrays (``rows``, ``labels``, ``weights``) in any thread.

    Attributes
    ----------
    n_rows, n_features : int
        The numbers of rows and of features.
    dtype : dtype
        float32 or float64.
    names : tuple of str, or None
        The names of the features.
    has_labels, has_weights : bool
        Whether it has labels, and weights.
    sparse : bool
        Whether its rows are CSR.
    target : str
        The name of the labels in messages.
    origin : str or None
        The file, or the first of several.
    label : str or None
        The column of the labels, as it was named.
    disk : int
        Bytes of temporary files that hold it.
    unit_bytes, first_unit : int
        The size of the largest run of rows that is decoded at once, in bytes, and that of the first
        one, in rows.
    first_row : int
        The number of its first row in the data that it was cut from.
    types : tuple of ColumnType, or None
        What the columns hold; None for a plain table, whose columns are all numbers.
    notes : tuple of str
        Sentences on how columns were read, where a reader had to decide.

    Examples
    --------
    >>> import pandas as pd
    >>> from polysift import open_data
    >>> frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0], "y": ["no", "yes"]})
    >>> source = open_data(frame, target="y")
    >>> source.n_rows, source.n_features, source.names, source.has_labels
    (2, 2, ('a', 'b'), True)
    >>> [(source.rows(part), source.labels(part).tolist()) for span, part in source.parts()]
    [(array([[1., 3.],
           [2., 4.]]), ['no', 'yes'])]
    >>> source.select(["b"]).names
    ('b',)
    """

    n_rows: int
    n_features: int
    dtype: np.dtype[Any]
    names: tuple[str, ...] | None
    has_labels: bool
    has_weights: bool
    sparse: bool = False
    target: str = "y"
    origin: str | None = None
    label: str | None = None
    disk: int = 0
    unit_bytes: int = 0
    first_unit: int = 0
    first_row: int = 0
    types: tuple[ColumnType, ...] | None = None
    notes: tuple[str, ...] = ()
    _spans: list[Span] | None = None

    @abstractmethod
    def stream(self, spans: Iterable[Span]) -> Iterator[Any]:
        """Yield the part of each span; the spans must ascend."""

    @abstractmethod
    def rows(self, part: Any) -> Block:
        """Return the rows of a part, which the caller must not write to."""

    @abstractmethod
    def labels(self, part: Any) -> np.ndarray[Any, Any]:
        """Return the labels of a part."""

    @abstractmethod
    def weights(self, part: Any) -> FloatArray | None:
        """Return the weights of a part as given, or None where there are none."""

    @abstractmethod
    def select(self, names: Sequence[str]) -> DataSource:
        """Return this source with the given features, in that order."""

    @abstractmethod
    def cut(self, spans: list[Span]) -> DataSource:
        """Return the rows of adjacent shards as a source of their own, to be sent to a worker.

        It has the same shard borders, holds no other rows, and can be pickled.
        """

    def words(self, part: Any) -> dict[int, Words]:
        """Return the words of the levels that occur in a part, by the number of the column."""
        return {}

    def replace(self, span: Span, block: FloatArray) -> bool:
        """Put other rows in the place of those of a span; returns whether that can be done.

        Only a source that stores its rows can.
        """
        return False

    def asked(self, kinds: Mapping[int, str]) -> DataSource:
        """Return this source with the kinds that a user asks for, by the number of the column."""
        return self.retyped({column: asked_type(kind) for column, kind in kinds.items()})

    def retyped(self, changes: Mapping[int, ColumnType]) -> DataSource:
        """Return this source with other types of some columns, by the number of the column."""
        if not changes:
            return self
        types = list(self.types or (PLAIN_NUMBER,) * self.n_features)
        for column, wanted in changes.items():
            same = types[column].kind == wanted.kind
            reading = wanted.reading or (types[column].reading if same else "")
            types[column] = ColumnType(wanted.kind, wanted.asked, reading)
        return self.typed(types)

    def typed(self, types: Sequence[ColumnType]) -> DataSource:
        """Return this source with columns of other types, or raise where they cannot be had."""
        if all(column.kind == "number" for column in types):
            return self
        raise ValueError("The columns of this source are numbers, and cannot be anything else.")

    def may_lack_values(self) -> bool:
        """Return whether to expect missing values in the rows, before they are read.

        Rows in memory are looked at. Of others it may be, and a survey prepares for it. Sparse rows
        lack none: there NaN is refused.
        """
        return not self.sparse

    def widen(self, n_features: int) -> DataSource:
        """Return this source with ``n_features`` features, where the missing ones are known.

        Only sparse rows have columns that do not occur in the file; other sources stay as they are.
        """
        return self

    def check(self) -> None:  # noqa: B027 - most sources have nothing to check
        """Raise for a feature that is not numeric."""

    def column(self, index: int) -> str:
        """Return the label of a feature in messages: its name, or its number."""
        return f"column {index}" if self.names is None else f"column {self.names[index]!r}"

    def place(self, row: int) -> str:
        """Return the label of a row in messages."""
        return f"row {self.first_row + row} (counted from 0)"

    def shards(self) -> list[Span]:
        """Return the spans of the shards, which depend on the number of rows alone."""
        return shard_spans(self.n_rows) if self._spans is None else self._spans

    def parts(self, spans: list[Span] | None = None) -> Iterator[tuple[Span, Any]]:
        """Yield ascending spans, the shards by default, each with its part."""
        spans = self.shards() if spans is None else spans
        return zip(spans, self.stream(spans), strict=True)

    def _cut_from(self, whole: DataSource, spans: list[Span]) -> None:
        """Set the row numbers and shard borders of a source that is the given shards of another."""
        start = spans[0][0]
        self.first_row = whole.first_row + start
        self._spans = [(lo - start, hi - start) for lo, hi in spans]


class ArraySource(DataSource):
    """Rows of a dense array, a memory map or a CSR matrix.

    Parameters
    ----------
    X : ndarray or CSR array of shape (m, d)
        Numbers in any memory order; other types than float32 become float64, a block at a time.
    names : sequence of str, optional
        The names of the columns.
    y : ndarray of shape (m,), optional
        The labels.
    sample_weight : ndarray of shape (m,), optional
        The weights.
    take : ndarray of int, optional
        The columns that are the features; all by default.
    owner : object, optional
        An object that must live as long as this source, such as a temporary folder.
    disk : int, default=0
        Bytes in that folder.
    file : str, optional
        Where the rows come from, for messages.
    types : sequence of ColumnType, optional
        What the features hold; by default numbers. X holds the levels of categories.
    words : mapping of int to words, optional
        The words of these levels, by feature.
    notes : sequence of str, default=()
        Sentences on how the columns were read.
    files : sequence of (str, int), default=()
        Where the rows come from several files, the name of each and the number of its rows.
    """

    def __init__(
        self,
        X: Block,
        names: Sequence[str] | None = None,
        y: Any = None,
        sample_weight: FloatArray | None = None,
        *,
        take: IntArray | None = None,
        owner: object = None,
        disk: int = 0,
        file: str | None = None,
        types: Sequence[ColumnType] | None = None,
        words: Mapping[int, Words] | None = None,
        notes: Sequence[str] = (),
        files: Sequence[tuple[str, int]] = (),
    ) -> None:
        self.n_rows = int(X.shape[0])
        self.n_features = int(X.shape[1]) if take is None else len(take)
        self.dtype = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
        self.names = None if names is None else tuple(map(str, names))
        self.has_labels, self.has_weights = y is not None, sample_weight is not None
        self.disk, self.origin, self.sparse = disk, file, bool(sp.issparse(X))
        self.target = "y" if file is None else f"the target of {file}"
        self.types, self.notes = None if types is None else tuple(types), tuple(notes)
        self._words, self._files = dict(words or {}), tuple(files)
        self._as_levels: tuple[int, ...] = ()  # numbers in X that are categories
        self._lacking: bool | None = None  # whether values are missing, once it was looked at
        self._X, self._y, self._weights, self._take, self._owner = X, y, sample_weight, take, owner

    def stream(self, spans: Iterable[Span]) -> Iterator[Span]:
        """Yield the spans themselves: an array need not be read."""
        yield from spans

    def rows(self, part: Span) -> Block:
        """Return a view of the rows of a span, or a copy where they must be converted."""
        block = self._X[part[0] : part[1]]
        if self._take is not None:
            block = block[:, self._take]
        if self._as_levels:
            block = np.array(block, dtype=float)
            for column in self._as_levels:
                block[:, column], _ = levels_of_numbers(block[:, column])
        return block if block.dtype == self.dtype else block.astype(self.dtype)

    def words(self, part: Span) -> dict[int, Words]:
        """Return the words of all levels, of whatever part."""
        if not self._as_levels:
            return dict(self._words)
        take = range(self.n_features) if self._take is None else self._take
        rows = self._X[part[0] : part[1]]
        made = {column: levels_of_numbers(rows[:, take[column]])[1] for column in self._as_levels}
        return self._words | made

    def typed(self, types: Sequence[ColumnType]) -> DataSource:
        """Return this source with numbers as categories, where these are asked for."""
        types = tuple(types)
        before = self.types or (PLAIN_NUMBER,) * self.n_features
        changed = [j for j in range(self.n_features) if types[j].kind != before[j].kind]
        for column in changed:
            if types[column].kind == DROP:
                continue
            if sp.issparse(self._X):
                raise ValueError(
                    f"{self.column(column)} is {types[column].kind}, which sparse rows cannot "
                    "hold. Pass X.toarray(), or a frame."
                )
            if before[column].kind != NUMBER or types[column].kind == NUMBER:
                raise ValueError(self._untyped(column, before[column].kind, types[column].kind))
        made = self._copy(types=types)
        more = [j for j in changed if types[j].kind == CATEGORY]
        made._as_levels = (*self._as_levels, *more)
        if made._as_levels:
            made.dtype = np.dtype(float)
        return made

    def _untyped(self, column: int, found: str, wanted: str) -> str:
        """Return the message on a column that cannot be read as another kind any more."""
        held = next(iter(self._words.get(column, {}).values()), None)
        shown = "" if held is None else f", such as {held!r},"
        return (
            f"{self.column(column)} holds {NOUNS[found]}{shown} where {NOUNS[wanted]} are expected."
            " If it is not the data that are wrong, say how to read it when you open them: "
            f"open_data(..., columns={{{self._key(column)}: {wanted!r}}})."
        )

    def _key(self, column: int) -> str:
        return str(column) if self.names is None else repr(self.names[column])

    def may_lack_values(self) -> bool:
        """Return whether values are missing, if the rows are in memory."""
        if isinstance(self._X, np.memmap):
            return super().may_lack_values()
        if self._lacking is None:
            spans = block_spans((0, self.n_rows), max(CHECKED_VALUES // self.n_features, 1))
            self._lacking = bool(
                isinstance(self._X, np.ndarray)
                and self._X.dtype.kind == "f"
                and any(np.isnan(self._X[lo:hi]).any() for lo, hi in spans)
            )
        return self._lacking

    def labels(self, part: Span) -> np.ndarray[Any, Any]:
        """Return the labels of a span."""
        return np.asarray(self._y[part[0] : part[1]])

    def weights(self, part: Span) -> FloatArray | None:
        """Return the weights of a span."""
        return None if self._weights is None else self._weights[part[0] : part[1]]

    def _copy(self, **changes: Any) -> ArraySource:
        """Return this source with some of the constructor's arguments changed."""
        arguments: dict[str, Any] = {
            "X": self._X,
            "names": self.names,
            "y": self._y,
            "sample_weight": self._weights,
            "take": self._take,
            "owner": self._owner,
            "disk": self.disk,
            "file": self.origin,
            "types": self.types,
            "words": self._words,
            "notes": self.notes,
            "files": self._files,
        }
        made = ArraySource(**(arguments | changes))
        made._as_levels, made.label = self._as_levels, self.label
        if made._as_levels:
            made.dtype = np.dtype(float)
        return made

    def cut(self, spans: list[Span]) -> DataSource:
        """Return the rows of adjacent shards as a source of their own."""
        rows = slice(spans[0][0], spans[-1][1])
        part = self._copy(
            X=self._X[rows] if sp.issparse(self._X) else np.asarray(self._X[rows]),
            y=None if self._y is None else np.asarray(self._y[rows]),
            sample_weight=None if self._weights is None else np.asarray(self._weights[rows]),
            owner=None,
            disk=0,
        )
        part._cut_from(self, spans)
        return part

    def widen(self, n_features: int) -> DataSource:
        """Return sparse rows with further columns of zeros: a file may lack the last features."""
        if not sp.issparse(self._X) or self.names is not None or n_features <= self.n_features:
            return self
        wide = type(self._X)((self.n_rows, n_features), dtype=self._X.dtype)
        wide.data, wide.indices, wide.indptr = self._X.data, self._X.indices, self._X.indptr
        return self._copy(X=wide, names=None)

    def select(self, names: Sequence[str]) -> DataSource:
        """Return this source with the given features, in that order."""
        if self.names is None or tuple(names) == self.names:
            return self
        positions = [find_name(name, self.names, "the data") for name in names]
        take = np.array(positions) if self._take is None else self._take[positions]
        made = self._copy(
            names=names,
            take=take,
            types=None if self.types is None else [self.types[j] for j in positions],
            words={new: self._words[j] for new, j in enumerate(positions) if j in self._words},
        )
        made._as_levels = tuple(positions.index(j) for j in self._as_levels if j in positions)
        return made

    def place(self, row: int) -> str:
        """Return the label of a row in messages: its number in its file."""
        number = self.first_row + row
        for name, count in self._files:
            if number < count:
                return f"row {number} (counted from 0) of {name}"
            number -= count
        return super().place(row) + (f" of {self.origin}" if self.origin else "")
