"""Sources: rows that can be read again and again, in order, a run of them at a time.

Arrays as a source, and a training set: a source with its labels and weights.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import numpy as np
import scipy.sparse as sp

from polysift.data.labels import Encoding
from polysift.runtime.parallel import Span, shard_spans
from polysift.runtime.types import Block, FloatArray, IntArray


class DataSource(ABC):
    """Rows in the place of ``X``, with their labels and weights where they have any.

    A pass over the data reads one part after the other (``stream``), in one thread; whoever works
    on a part turns it into numbers (``rows``, ``labels``, ``weights``), in any thread.

    Attributes
    ----------
    n_rows, n_features : int
        The shape.
    dtype : dtype
        float32 or float64.
    names : tuple of str, or None
        The names of the features.
    has_labels, has_weights : bool
        Whether it brings labels, and weights.
    sparse : bool
        Whether its rows are CSR.
    target : str
        How a message calls the labels.
    origin : str or None
        The file, or the first of several.
    disk : int
        Bytes of temporary files behind it.
    unit_bytes, first_unit : int
        The bytes of the largest run of rows that is decoded at once, and the rows of the first.
    first_row : int
        The number of its first row in the data it was cut from.

    Examples
    --------
    >>> import pandas as pd
    >>> from polysift import open_data
    >>> frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0], "y": ["no", "yes"]})
    >>> source = open_data(frame, target="y")
    >>> source.n_rows, source.n_features, source.names, source.has_labels
    (2, 2, ('a', 'b'), True)
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
        """Yield the part of each span; spans ascend.

        Examples
        --------
        >>> import pandas as pd
        >>> from polysift import open_data
        >>> frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0], "y": ["no", "yes"]})
        >>> source = open_data(frame, target="y")
        >>> [len(source.rows(part)) for part in source.stream([(0, 1), (1, 2)])]
        [1, 1]
        """

    @abstractmethod
    def rows(self, part: Any) -> Block:
        """Return the rows of a part, which the caller must not write to.

        Examples
        --------
        >>> import pandas as pd
        >>> from polysift import open_data
        >>> frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0], "y": ["no", "yes"]})
        >>> source = open_data(frame, target="y")
        >>> [source.rows(part) for span, part in source.parts()]
        [array([[1., 3.],
               [2., 4.]])]
        """

    @abstractmethod
    def labels(self, part: Any) -> np.ndarray[Any, Any]:
        """Return the labels of a part.

        Examples
        --------
        >>> import pandas as pd
        >>> from polysift import open_data
        >>> frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0], "y": ["no", "yes"]})
        >>> source = open_data(frame, target="y")
        >>> [source.labels(part).tolist() for span, part in source.parts()]
        [['no', 'yes']]
        """

    @abstractmethod
    def weights(self, part: Any) -> FloatArray | None:
        """Return the weights of a part, as they are, or None where there are none.

        Examples
        --------
        >>> import pandas as pd
        >>> from polysift import open_data
        >>> frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0], "y": ["no", "yes"]})
        >>> source = open_data(frame, target="y", weight="b")
        >>> [source.weights(part) for span, part in source.parts()]
        [array([3., 4.])]
        """

    @abstractmethod
    def select(self, names: Sequence[str]) -> DataSource:
        """Return this source with the given features, in that order.

        Examples
        --------
        >>> import pandas as pd
        >>> from polysift import open_data
        >>> frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0], "y": ["no", "yes"]})
        >>> source = open_data(frame, target="y")
        >>> source.select(["b"]).names
        ('b',)
        """

    @abstractmethod
    def cut(self, spans: list[Span]) -> DataSource:
        """Return the rows of neighbouring shards as a source of its own, to be sent elsewhere.

        It has the shards' borders, holds no other rows, and can be pickled.

        Examples
        --------
        >>> import pandas as pd
        >>> from polysift import open_data
        >>> frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0], "y": ["no", "yes"]})
        >>> source = open_data(frame, target="y")
        >>> source.cut(source.shards()).n_rows
        2
        """

    def widen(self, n_features: int) -> DataSource:
        """Return this source with as many features, where that is possible without inventing.

        Examples
        --------
        >>> import pandas as pd
        >>> from polysift import open_data
        >>> frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0], "y": ["no", "yes"]})
        >>> source = open_data(frame, target="y")
        >>> source.widen(3).n_features  # only sparse rows have columns that are not in the file
        2
        """
        return self

    def check(self) -> None:  # noqa: B027 - most sources have nothing to check
        """Raise for a feature that is not numeric.

        Examples
        --------
        >>> import pandas as pd
        >>> from polysift import open_data
        >>> frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0], "y": ["no", "yes"]})
        >>> open_data(frame).check()  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ValueError: Column 'y' of the table is not numeric...
        """

    def column(self, index: int) -> str:
        """Return how a message calls a feature: by its name, or by its number.

        Examples
        --------
        >>> import pandas as pd
        >>> from polysift import open_data
        >>> frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0], "y": ["no", "yes"]})
        >>> source = open_data(frame, target="y")
        >>> source.column(1)
        "column 'b'"
        """
        return f"column {index}" if self.names is None else f"column {self.names[index]!r}"

    def place(self, row: int) -> str:
        """Return how a message calls a row.

        Examples
        --------
        >>> import pandas as pd
        >>> from polysift import open_data
        >>> frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0], "y": ["no", "yes"]})
        >>> source = open_data(frame, target="y")
        >>> source.place(1)
        'row 1 (counted from 0) of the table'
        """
        return f"row {self.first_row + row} (counted from 0)"

    def shards(self) -> list[Span]:
        """Return the spans of the shards, which depend on the number of rows alone.

        Examples
        --------
        >>> import pandas as pd
        >>> from polysift import open_data
        >>> frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0], "y": ["no", "yes"]})
        >>> source = open_data(frame, target="y")
        >>> source.shards()
        [(0, 2)]
        """
        return shard_spans(self.n_rows) if self._spans is None else self._spans

    def _take_place(self, spans: list[Span], whole: DataSource) -> None:
        """Learn of which shards of which source these are the rows."""
        start = spans[0][0]
        self.first_row = whole.first_row + start
        self._spans = [(lo - start, hi - start) for lo, hi in spans]

    def parts(self, spans: list[Span] | None = None) -> Iterator[tuple[Span, Any]]:
        """Yield ascending spans, the shards by default, each with its part.

        Examples
        --------
        >>> import pandas as pd
        >>> from polysift import open_data
        >>> frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0], "y": ["no", "yes"]})
        >>> source = open_data(frame, target="y")
        >>> [span for span, part in source.parts()]
        [(0, 2)]
        """
        spans = self.shards() if spans is None else spans
        return zip(spans, self.stream(spans), strict=True)


def find_name(name: str, names: Sequence[str], where: str) -> int:
    """Return the position of a column's name, or raise with the nearest names."""
    if name in names:
        return list(names).index(name)
    folded = {other.casefold(): other for other in names}
    near = [folded[match] for match in get_close_matches(name.casefold(), folded, n=3)]
    hint = f" Did you mean {', '.join(map(repr, near))}?" if near else ""
    shown = ", ".join(map(repr, names[:20])) + (", ..." if len(names) > 20 else "")
    raise ValueError(f"There is no column {name!r} in {where}.{hint} The columns are {shown}.")


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


Rows = slice | IntArray
"""Some rows of the data, by a slice or by their numbers."""


class ArraySource(DataSource):
    """Rows of a dense array, a memory map or a CSR matrix.

    Parameters
    ----------
    X : ndarray or CSR array of shape (m, d)
        Numbers, in any memory order; what is not float32 becomes float64, a block at a time.
    names : sequence of str, optional
        The names of the columns.
    y : ndarray of shape (m,), optional
        The labels.
    sample_weight : ndarray of shape (m,), optional
        The weights.
    take : ndarray of int, optional
        The columns that are the features; all by default.
    owner : object, optional
        Kept alive as long as this source, such as a temporary folder.
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
        """Yield the spans themselves: an array needs no reading."""
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
        """Return the rows of neighbouring shards as a source of its own."""
        rows = slice(spans[0][0], spans[-1][1])
        piece = ArraySource(
            self._X[rows] if sp.issparse(self._X) else np.asarray(self._X[rows]),
            self.names,
            None if self._y is None else np.asarray(self._y[rows]),
            None if self._weights is None else np.asarray(self._weights[rows]),
            take=self._take,
            file=self.origin,
        )
        piece._take_place(spans, self)
        return piece

    def widen(self, n_features: int) -> DataSource:
        """Return sparse rows with more columns, all zero: a file may lack its last features."""
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
        places = [find_name(name, self.names, "the data") for name in names]
        take = np.array(places) if self._take is None else self._take[places]
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
        """Return how a message calls a row."""
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
        Which part of the folds each row is in, 0 to n_fold_parts - 1, or -1 for a row that takes
        no part. None means one part for all.
    n_fold_parts : int
        The number of fold parts.
    encoding : Encoding or None
        How its labels were encoded; where ``codes`` is empty, how they shall be where they are.
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
        """Whether rows count differently."""
        classes_differ = self.encoding is not None and self.encoding.factors is not None
        return self.weights is not None or self.source.has_weights or classes_differ

    def total_weight(self, without: int | None = None) -> float:
        """Return the number of rows, each counted as often as its weight says.

        Those of the fold part ``without`` do not count, nor those in no fold part.
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
