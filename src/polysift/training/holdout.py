"""A share of the rows held out of a fit, to evaluate the model on: both parts of one source.

Which rows are held out depends on a seeded hash of their positions, so that files need not be
shuffled, and are not copied. To each part the rows of the other have the weight zero, which is as
if they were not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from polysift.data.source import COPIED_ATTRIBUTES, DataSource
from polysift.features.sampled_rows import is_sampled_at
from polysift.runtime.parallel import Span
from polysift.runtime.parameters import check_real
from polysift.runtime.types import Block, FloatArray


class PartSource(DataSource):
    """One of the two parts of a source: the rows that are held out, or the others.

    Parameters
    ----------
    source : DataSource
        All rows.
    share : float
        The share that is held out.
    seed : int
        The seed of the hash.
    held_out : bool
        Whether this is the part that is held out.
    """

    def __init__(self, source: DataSource, share: float, seed: int, *, held_out: bool) -> None:
        self._source, self._share, self._seed, self._held_out = source, share, seed, held_out
        for name in COPIED_ATTRIBUTES:
            setattr(self, name, getattr(source, name))
        self.has_weights = True

    @property
    def n_kept(self) -> int:
        """The number of rows of this part."""
        return int(np.count_nonzero(self._mask((0, self.n_rows))))

    def _mask(self, span: Span) -> Any:
        first = self._source.first_row + span[0]
        chosen = is_sampled_at(first, span[1] - span[0], self._share, self._seed)
        return chosen if self._held_out else ~chosen

    def stream(self, spans: Iterable[Span]) -> Iterator[Any]:
        """Yield each span with its part."""
        spans = list(spans)
        yield from zip(spans, self._source.stream(spans), strict=True)

    def rows(self, part: Any) -> Block:
        """Return the rows of a part."""
        return self._source.rows(part[1])

    def words(self, part: Any) -> Any:
        """Return the words of a part."""
        return self._source.words(part[1])

    def labels(self, part: Any) -> np.ndarray[Any, Any]:
        """Return the labels of a part."""
        return self._source.labels(part[1])

    def weights(self, part: Any) -> FloatArray:
        """Return the weights of a part: zero for rows of the other one."""
        span, inner = part
        own = self._source.weights(inner)
        mask = self._mask(span).astype(float)
        return mask if own is None else mask * own

    def select(self, names: Sequence[str]) -> DataSource:
        """Return the part with some of the columns."""
        inner = self._source.select(names)
        return PartSource(inner, self._share, self._seed, held_out=self._held_out)

    def cut(self, spans: list[Span]) -> DataSource:
        """Return the rows of adjacent shards as a source of their own."""
        inner = self._source.cut(spans)
        return PartSource(inner, self._share, self._seed, held_out=self._held_out)

    def shards(self) -> list[Span]:
        """Return the shards of the rows."""
        return self._source.shards()

    def place(self, row: int) -> str:
        """Return the label of a row in messages."""
        return self._source.place(row)


def held_out_parts(source: DataSource, share: float, seed: int) -> tuple[PartSource, PartSource]:
    """Return the rows to fit to, and those that are held out."""
    check_real("holdout", share, positive=True)
    if not share < 1.0:
        raise ValueError(f"holdout is the share of rows to hold out, below 1; got {share}.")
    parts = [PartSource(source, share, seed, held_out=held_out) for held_out in (False, True)]
    if not all(part.n_kept for part in parts):
        raise ValueError(
            f"holdout={share:g} of {source.n_rows:,} rows leaves none on one side. Choose another "
            "share, or give a file of rows to validate on."
        )
    return parts[0], parts[1]
