"""A sample of the rows with their labels, which the survey keeps in memory.

Signs of leakage (``features.leakage``) and the choice of a feature map (``training.choice``) are
found in it. Which rows are in it depends on a seeded hash of their content alone: neither on their
order nor on repetition, so that it is the same for threads, files and workers. Where rows repeat so
often that too few of them differ, it is by their position instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from polysift.data.labels import Encoding, LabelPart
from polysift.features.centers import Words, hash_rows, mix
from polysift.runtime.types import Block, BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class SampledRows:
    """Rows of the sample, in the order of the data.

    Attributes
    ----------
    rows : ndarray or CSR array of shape (k, d)
        The rows, as the source gives them.
    labels : LabelPart
        Their labels, and their weights if they have any.
    numbers : ndarray of int of shape (k,)
        Their positions in the data.
    """

    rows: Block
    labels: LabelPart
    numbers: IntArray


@dataclass(frozen=True)
class LabelledSample:
    """The whole sample, with classes.

    Attributes
    ----------
    rows : ndarray or CSR array of shape (k, d)
        The rows.
    codes : ndarray of int of shape (k,)
        The class of each.
    own_weights : ndarray of shape (k,) or None
        Their own weights, if they have any.
    weights : ndarray of shape (k,) or None
        Their weights with those of their classes, if there are any.
    numbers : ndarray of int of shape (k,)
        Their positions in the data.
    """

    rows: Block
    codes: IntArray
    own_weights: FloatArray | None
    weights: FloatArray | None
    numbers: IntArray

    @property
    def total(self) -> float:
        """The total of the rows' own weights."""
        return float(len(self.codes) if self.own_weights is None else self.own_weights.sum())

    @property
    def n_distinct(self) -> int:
        """The number of distinct rows."""
        return len(np.unique(hash_rows(self.rows, 0)))

    @property
    def n_effective(self) -> float:
        """The number of distinct rows, as far as the weights of their classes let them count.

        It is Kish's effective size, (sum r)^2 / sum r^2, with r the weight of a row's class; a
        row's own weight is its multiplicity.
        """
        if self.weights is None:
            return self.n_distinct
        own = np.ones(len(self.codes)) if self.own_weights is None else self.own_weights
        r = np.divide(self.weights, own, out=np.zeros_like(own), where=own > 0)
        return float(self.n_distinct * (own @ r) ** 2 / (own.sum() * (own @ r**2)))

    def share(self, share: float, seed: int) -> LabelledSample:
        """Return the rows that would be in a sample of a smaller share."""
        return self._of(np.flatnonzero(is_sampled(self.rows, share, seed)))

    def first(self, total: float) -> LabelledSample:
        """Return the first rows, of at most this total of their own weights, but one at least."""
        own = np.ones(len(self.codes)) if self.own_weights is None else self.own_weights
        count = int(np.searchsorted(own.cumsum(), total, side="right"))
        return self._of(np.arange(max(count, 1)))

    def in_order(self, seed: int) -> LabelledSample:
        """Return the rows in an order that depends on their content, class and weight alone."""
        keys = mix(hash_rows(self.rows, seed))
        own = np.zeros(len(keys)) if self.own_weights is None else self.own_weights
        return self._of(np.lexsort((own, self.codes, keys)))

    def _of(self, chosen: IntArray) -> LabelledSample:
        own, weights = (
            None if given is None else given[chosen] for given in (self.own_weights, self.weights)
        )
        numbers = self.numbers[chosen]
        return LabelledSample(self.rows[chosen], self.codes[chosen], own, weights, numbers)

    def distinct(self, most: int) -> tuple[FloatArray, FloatArray]:
        """Return some distinct dense rows and their weights; order and repetition do not matter."""
        keys = hash_rows(self.rows, 0)
        keys, first, groups = np.unique(keys, return_index=True, return_inverse=True)
        totals = np.bincount(groups, self.weights, len(keys))
        return self.rows[first[:most]], totals[:most].astype(float)


def is_sampled(block: Block, share: float, seed: int) -> BoolArray:
    """Return which rows of a block are in a sample of this share of the distinct rows."""
    return has_sampled_hash(hash_rows(block, seed), share)


def has_sampled_hash(hashes: Words, share: float) -> BoolArray:
    """Return which rows, by their seeded hashes, are in a sample of this share."""
    if share >= 1.0:
        return np.ones(len(hashes), dtype=bool)
    return _below(mix(hashes), share)  # mixed once more, since small hashes are those of centers


def is_sampled_at(first_row: int, count: int, share: float, seed: int) -> BoolArray:
    """Return which of adjacent rows, of which the first has this number, are in a sample."""
    positions = np.arange(first_row, first_row + count, dtype=np.uint64)
    return _below(mix(positions + mix(np.array([seed], dtype=np.uint64))), share)


def _below(keys: Words, share: float) -> BoolArray:
    return np.asarray((keys >> np.uint64(11)) < np.uint64(share * 2.0**53))


def labelled_sample(parts: Sequence[SampledRows], encoding: Encoding) -> LabelledSample | None:
    """Return the parts of a sample joined; None if there are none."""
    if not parts:
        return None
    blocks = [part.rows for part in parts]
    rows = sp.vstack(blocks, format="csr") if sp.issparse(blocks[0]) else np.concatenate(blocks)
    codes = np.concatenate([encoding.codes(part.labels) for part in parts]).astype(int)
    given = [part.labels.weights for part in parts if part.labels.weights is not None]
    own = encoding.own_weights(np.concatenate(given)) if given else None
    numbers = np.concatenate([part.numbers for part in parts])
    return LabelledSample(rows, codes, own, encoding.weights(own, codes), numbers)
