"""Sources: rows that can be read repeatedly, in order, one part at a time.

``DataSource`` is the interface, ``ArraySource`` the one over arrays, and ``TrainingSet`` a source
with class numbers and weights.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import numpy as np
import scipy.sparse as sp

from polysift.data.labels import Encoding
from polysift.runtime.parallel import Span, shard_spans
from polysift.runtime.types import Block, FloatArray, IntArray

Rows = slice | IntArray
"""Some rows of the data, by a slice or by their numbers."""

SHOWN_NAMES = 20
"""How many names of columns a message lists."""


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
    disk : int
        Bytes of temporary files that hold it.
    unit_bytes, first_unit : int
        The size of the largest run of rows that is decoded at once, in bytes, and that of the first
        one, in rows.
    first_row : int
        The number of its first row in the data that it was cut from.

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
    disk: int = 0
    unit_bytes: int = 0
    first_unit: int = 0
    first_row: int = 0
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


def find_name(name: str, names: Sequence[str], where: str) -> int:
    """Return the position of a column, or raise a ValueError with the closest names."""
    if name in names:
        return list(names).index(name)
    folded = {other.casefold(): other for other in names}
    near = [folded[match] for match in get_close_matches(name.casefold(), folded, n=3)]
    hint = f" Did you mean {', '.join(map(repr, near))}?" if near else ""
    shown = ", ".join(map(repr, names[:SHOWN_NAMES]))
    shown += ", ..." if len(names) > SHOWN_NAMES else ""
    raise ValueError(f"There is no column {name!r} in {where}.{hint} The columns are {shown}.")


@contextmanager
def decoding(what: str, remedy: str = "") -> Iterator[None]:
    """Raise an error that begins with ``what`` where the content of a file cannot be decoded.

    This is the boundary to the libraries that read files: whatever they raise inside, and that is
    all kinds of errors, is about the file, and nothing of this package is to be called there.
    """
    try:
        yield
    except FileNotFoundError:
        raise
    except MemoryError as error:
        raise MemoryError(
            f"{what}: it asks for more memory than there is ({error}). It is damaged, or the runs "
            "of rows that are decoded at once are too long."
        ) from error
    except Exception as error:
        raise ValueError(f"{what}: {str(error).strip() or type(error).__name__}{remedy}") from error


def check_finite(source: DataSource, first_row: int, block: Block) -> None:
    """Raise a ValueError that names row and column if ``block`` holds a NaN or an infinity."""
    values = block.data if sp.issparse(block) else block
    if np.isfinite(values).all():
        return
    if sp.issparse(block):
        entries = block.tocoo()
        bad = np.flatnonzero(~np.isfinite(entries.data))
        where, found = (entries.row[bad[0]], entries.col[bad[0]]), entries.data[bad[0]]
    else:
        where = tuple(np.argwhere(~np.isfinite(block))[0])
        found = block[where]
    what = "NaN" if np.isnan(found) else "infinity"
    raise ValueError(
        f"Input X contains {what} in {source.column(int(where[1]))}, first in "
        f"{source.place(first_row + int(where[0]))}. Impute or drop such values first, for "
        "example with sklearn.impute.SimpleImputer."
    )


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
    ) -> None:
        self.n_rows = int(X.shape[0])
        self.n_features = int(X.shape[1]) if take is None else len(take)
        self.dtype = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
        self.names = None if names is None else tuple(map(str, names))
        self.has_labels, self.has_weights = y is not None, sample_weight is not None
        self.disk, self.origin, self.sparse = disk, file, bool(sp.issparse(X))
        self.target = "y" if file is None else f"the target of {file}"
        self._X, self._y, self._weights, self._take, self._owner = X, y, sample_weight, take, owner

    def stream(self, spans: Iterable[Span]) -> Iterator[Span]:
        """Yield the spans themselves: an array need not be read."""
        yield from spans

    def rows(self, part: Span) -> Block:
        """Return a view of the rows of a span, or a copy where they must be converted."""
        block = self._X[part[0] : part[1]]
        if self._take is not None:
            block = block[:, self._take]
        return block if block.dtype == self.dtype else block.astype(self.dtype)

    def labels(self, part: Span) -> np.ndarray[Any, Any]:
        """Return the labels of a span."""
        return np.asarray(self._y[part[0] : part[1]])

    def weights(self, part: Span) -> FloatArray | None:
        """Return the weights of a span."""
        return None if self._weights is None else self._weights[part[0] : part[1]]

    def cut(self, spans: list[Span]) -> DataSource:
        """Return the rows of adjacent shards as a source of their own."""
        rows = slice(spans[0][0], spans[-1][1])
        part = ArraySource(
            self._X[rows] if sp.issparse(self._X) else np.asarray(self._X[rows]),
            self.names,
            None if self._y is None else np.asarray(self._y[rows]),
            None if self._weights is None else np.asarray(self._weights[rows]),
            take=self._take,
            file=self.origin,
        )
        part._cut_from(self, spans)
        return part

    def widen(self, n_features: int) -> DataSource:
        """Return sparse rows with further columns of zeros: a file may lack the last features."""
        if not sp.issparse(self._X) or self.names is not None or n_features <= self.n_features:
            return self
        wide = type(self._X)((self.n_rows, n_features), dtype=self._X.dtype)
        wide.data, wide.indices, wide.indptr = self._X.data, self._X.indices, self._X.indptr
        return ArraySource(
            wide,
            None,
            self._y,
            self._weights,
            owner=self._owner,
            disk=self.disk,
            file=self.origin,
        )

    def select(self, names: Sequence[str]) -> DataSource:
        """Return this source with the given features, in that order."""
        if self.names is None or tuple(names) == self.names:
            return self
        positions = [find_name(name, self.names, "the data") for name in names]
        take = np.array(positions) if self._take is None else self._take[positions]
        return ArraySource(
            self._X,
            names,
            self._y,
            self._weights,
            take=take,
            owner=self._owner,
            disk=self.disk,
            file=self.origin,
        )

    def place(self, row: int) -> str:
        """Return the label of a row in messages."""
        return super().place(row) + (f" of {self.origin}" if self.origin else "")


@dataclass(frozen=True)
class TrainingSet:
    """A source with its labels and weights, cut into shards.

    Attributes
    ----------
    source : DataSource
        The rows, m x d.
    codes : ndarray of shape (m,)
        The class of each row, 0 to n_classes - 1. Rows of weight zero may hold anything.
    n_classes : int
        The number of classes.
    weights : ndarray of shape (m,) or None
        How often each row counts; None means once.
    fold_parts : ndarray of shape (m,) or None
        The fold part of each row, 0 to n_fold_parts - 1, or -1 for a row in none. None means one
        fold part for all rows.
    n_fold_parts : int
        The number of fold parts.
    encoding : Encoding or None
        How the labels are encoded; where ``codes`` is empty, workers that hold the labels use it.
    """

    source: DataSource
    codes: IntArray
    n_classes: int
    weights: FloatArray | None = None
    fold_parts: IntArray | None = None
    n_fold_parts: int = 1
    encoding: Encoding | None = None
    shards: list[Span] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "shards", self.source.shards())

    @property
    def n_columns(self) -> int:
        """The number of label columns, K: one for two classes, else one per class."""
        return 1 if self.n_classes == 2 else self.n_classes

    @property
    def weighted(self) -> bool:
        """Whether rows have different weights."""
        classes_differ = self.encoding is not None and self.encoding.factors is not None
        return self.weights is not None or self.source.has_weights or classes_differ

    def total_weight(self, without: int | None = None) -> float:
        """Return the sum of the rows' weights.

        Rows of the fold part ``without`` do not count, nor rows in no fold part.
        """
        if self.fold_parts is None and self.encoding is not None:
            return self.encoding.total
        if self.fold_parts is None:
            return float(self.source.n_rows if self.weights is None else np.sum(self.weights))
        counts = self.fold_parts >= 0
        if without is not None:
            counts &= self.fold_parts != without
        return float(np.sum(counts) if self.weights is None else self.weights @ counts)

    def weights_of(self, rows: Rows) -> FloatArray | None:
        """Return the weights of rows, or None where all are one."""
        return None if self.weights is None else self.weights[rows]

    def labels_of(self, rows: Rows) -> FloatArray:
        """Return the labels of rows as +1 and -1, one-vs-rest, of shape (rows, K)."""
        codes = self.codes[rows, np.newaxis]
        positive = codes == (1 if self.n_classes == 2 else np.arange(self.n_classes))
        return np.where(positive, 1.0, -1.0)
