"""A sample of the rows with their labels, which the survey keeps in memory.

Signs of leakage (``features.leakage``) and the choice of a feature map (``training.choice``) are
found in it. Which rows are in it depends on a seeded hash of their content alone: neither on their
order nor on repetition, so that it is the same for threads, files and workers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from polysift.data.labels import Encoding, LabelPart
from polysift.features.centers import hash_rows, mix
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


def is_sampled(block: Block, share: float, seed: int) -> BoolArray:
    """Return which rows of a block are in a sample of this share of the distinct rows."""
    if share >= 1.0:
        return np.ones(block.shape[0], dtype=bool)
    keys = mix(hash_rows(block, seed))  # once more, since small hashes are those of centers
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
