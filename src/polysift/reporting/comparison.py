"""Rows to predict against the training rows of a model, column by column.

A model keeps of its training rows the range of each number and date, the levels of each category
and the share of missing values. With these the rows are compared, one shard at a time. Columns that
the model leaves out are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import hypot, inf
from typing import Any

import numpy as np
import scipy.sparse as sp

from polysift.data.checks import check_finite
from polysift.data.inputs import rows_source
from polysift.data.kinds import DATE, NUMBER, Words
from polysift.data.source import DataSource
from polysift.estimators.classifier import FPCClassifier
from polysift.estimators.search import FPCClassifierCV, classifier_of
from polysift.features.columns import LEFT_OUT
from polysift.features.level_columns import LevelColumn
from polysift.features.levels import LevelCounts, count_levels
from polysift.features.survey import checked_weights
from polysift.features.tables import TableScaler, stored_scaler
from polysift.reporting.drift import ColumnDrift, Drift, judged
from polysift.runtime.parallel import Pool, Span, block_spans, tree_sum, usable_jobs
from polysift.runtime.parameters import check_integer, check_n_jobs
from polysift.runtime.types import Block, FloatArray

BLOCK_VALUES = 2**20
"""Values that are compared at a time."""

SHOWN_WORDS = 3
"""How many unseen words are kept of a column."""

NO_RANGES = (
    "The model does not know the ranges of its columns, since an older polysift has fitted it: "
    "whether values are out of range cannot be told. Fit it again."
)


def drift(model: FPCClassifier | FPCClassifierCV, X: Any, *, max_rows: int | None = None) -> Drift:
    """Compare rows with the training rows of a model, column by column.

    For each column: the shares of the rows that lie below and above the range of the training rows,
    that bring levels which these did not have, and that lack a value. A share is *much* larger than
    in training if the difference is more than 1 % of the rows, and more than five standard errors.
    Further rows like the m training rows leave their range, too, and bring new levels: as the share
    in training count 10 / m on each side of the range, and ``unseen_shares_``.

    Parameters
    ----------
    model : FPCClassifier or FPCClassifierCV
        The fitted model; of a search, its best one.
    X : array-like, sparse matrix or DataSource of shape (m, d)
        The rows. Those of a source are read shard by shard, and count by its weights, if any.
    max_rows : int, default=None
        About the most rows that are compared, in shards that are spread over all; None is all.

    Returns
    -------
    Drift
        The shares, and sentences on those that are much larger than in training.

    Examples
    --------
    >>> import numpy as np
    >>> from polysift import FPCClassifier, drift
    >>> X = np.random.default_rng(0).random((1_000, 2))
    >>> clf = FPCClassifier(2, random_state=0).fit(X, X[:, 0] > X[:, 1])
    >>> found = drift(clf, X + [0, 0.5])
    >>> found.columns[1].above > 0.4
    True
    >>> print(found.sentences[0])
    x1: 48.0 % of the rows are above 0.998067, the largest value of the training rows.
    """
    clf = classifier_of("drift compares rows with those of", model)
    source = rows_source(clf, X, reset=False)
    spans = source.shards()
    if max_rows is not None:
        spans = spans[:: -(-source.n_rows // check_integer("max_rows", max_rows))]
    scaler = stored_scaler(clf.scaler_)
    known = _Known.of(clf, scaler if isinstance(scaler, TableScaler) else None)
    with Pool(usable_jobs(check_n_jobs(clf.n_jobs))) as pool:
        counts = tree_sum(_counted(source, spans, known, pool), _Counts.merge)
    if counts.weight == 0:
        raise ValueError("All weights are zero: there is nothing to compare.")
    names = getattr(clf, "feature_names_in_", [f"x{j}" for j in range(clf.n_features_in_)])
    columns = tuple(_compared(j, str(names[j]), known, counts) for j in known.used)
    return Drift(counts.rows, columns, known.untold)


@dataclass(frozen=True)
class _Known:
    """What a model knows of its training rows.

    Attributes
    ----------
    rows : float
        Their number; infinity where it is not known.
    kinds : list of str
        What the columns are.
    ranges : ndarray of shape (2, d)
        Their ranges; NaN where there are none.
    single : bool
        Whether the training rows were float32.
    missing, unseen : ndarray of shape (d,)
        The shares of missing values, and the shares of unseen levels that are to be expected.
    levels : mapping of int to LevelColumn
        The categories.
    untold : tuple of str
        Sentences on what is not known.
    """

    rows: float
    kinds: list[str]
    ranges: FloatArray
    single: bool
    missing: FloatArray
    unseen: FloatArray
    levels: Mapping[int, LevelColumn]
    untold: tuple[str, ...]

    @classmethod
    def of(cls, clf: Any, table: TableScaler | None) -> _Known:
        """Return what a classifier knows, whose scaler may be that of a table."""
        d, summary = clf.n_features_in_, getattr(clf, "training_summary_", {})
        plain = [NUMBER] * d if table is None else table.kinds
        ranges = getattr(clf, "column_ranges_", None)
        levels = {} if table is None else {found.column: found for found in table.levels}
        return cls(
            rows=summary.get("rows", inf),
            kinds=list(getattr(clf, "column_kinds_", plain)),
            ranges=np.full((2, d), np.nan) if ranges is None else ranges,
            single=summary.get("dtype") == "float32",
            missing=np.zeros(d) if table is None else table.missing,
            unseen=getattr(clf, "unseen_shares_", np.zeros(d)),
            levels={j: found for j, found in levels.items() if not found.buckets},
            untold=(NO_RANGES,) if ranges is None else (),
        )

    @property
    def used(self) -> list[int]:
        """The columns that the model uses."""
        return [j for j, kind in enumerate(self.kinds) if kind not in LEFT_OUT]


@dataclass(frozen=True)
class _Counts:
    """The weights of rows that differ, by column.

    Attributes
    ----------
    rows : int
        The number of rows.
    weight, norm : float
        The sum of their weights, and the root of that of their squares.
    below, above, missing : ndarray of shape (d,)
        The weights of rows beyond the range, and without a value.
    unseen : mapping of int to LevelCounts
        The levels of categories that training did not have.
    """

    rows: int
    weight: float
    norm: float
    below: FloatArray
    above: FloatArray
    missing: FloatArray
    unseen: Mapping[int, LevelCounts]

    def merge(self, other: _Counts) -> _Counts:
        """Return the counts of both parts together."""
        return _Counts(
            self.rows + other.rows,
            self.weight + other.weight,
            hypot(self.norm, other.norm),
            self.below + other.below,
            self.above + other.above,
            self.missing + other.missing,
            {j: found.merge(other.unseen[j]) for j, found in self.unseen.items()},
        )


def _counted(source: DataSource, spans: list[Span], known: _Known, pool: Pool) -> Iterator[_Counts]:
    """Yield the counts of each shard."""
    # The end of a range must not lie beyond itself, only since one of both is float32.
    dtype = np.float32 if known.single or source.dtype == np.float32 else np.float64
    low, high = known.ranges.astype(dtype)

    def visit(item: tuple[Span, Any]) -> _Counts:
        span, part = item
        rows = source.rows(part)
        check_finite(source, span[0], rows)
        given = checked_weights(source, span[0], source.weights(part))
        w = np.ones(rows.shape[0]) if given is None else given
        below, above, missing = sums = np.zeros((3, source.n_features))
        step = int(np.clip(BLOCK_VALUES // source.n_features, 64, 8192))
        with np.errstate(over="ignore"):  # a large number is infinite in float32, and above
            for start, stop in block_spans((0, rows.shape[0]), step):
                block = rows[start:stop].astype(dtype, copy=False)
                sums += _beyond(block, w[start:stop], low, high)
        words = source.words(part) if known.levels else {}
        unseen = {
            j: _unseen(rows[:, j], w, found, words.get(j, {})) for j, found in known.levels.items()
        }
        return _Counts(rows.shape[0], float(w.sum()), _norm(w), below, above, missing, unseen)

    work = sum(stop - start for start, stop in spans) * source.n_features
    yield from pool.map(visit, source.parts(spans), work=work)


def _beyond(block: Block, w: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return the weights of rows below and above the ranges, and without a value, (3, d)."""
    if not sp.issparse(block):
        return np.stack([w @ (block < low), w @ (block > high), w @ np.isnan(block)])
    columns, x = block.indices, block.data
    each = np.repeat(w, np.diff(block.indptr))
    zeros = w.sum() - np.bincount(columns, each, len(low))  # that are not stored
    stored = (x < low[columns], x > high[columns])
    below, above = (np.bincount(columns, each * beyond, len(low)) for beyond in stored)
    return np.stack([below + zeros * (low > 0), above + zeros * (high < 0), np.zeros(len(low))])


def _norm(w: FloatArray) -> float:
    """Return the root of the sum of squares of weights, which may be of any size."""
    largest = float(w.max(initial=0.0))
    return largest * float(np.linalg.norm(w / largest)) if largest > 0 else 0.0


def _unseen(values: FloatArray, w: FloatArray, found: LevelColumn, words: Words) -> LevelCounts:
    """Return the levels of a category that training did not have."""
    new = ~found.known(values) & (w > 0)
    return count_levels(values[new], w[new], words)


def _compared(j: int, name: str, known: _Known, counts: _Counts) -> ColumnDrift:
    """Return how a column differs, from the counts of all rows."""
    kind, (low, high) = known.kinds[j], known.ranges[:, j].tolist()
    ranged = kind in (NUMBER, DATE) and low == low
    below, above, missing = (
        float(part[j] / counts.weight) for part in (counts.below, counts.above, counts.missing)
    )
    unseen: float | None = None
    words: list[tuple[str, float]] = []
    if j in known.levels:
        found = counts.unseen[j]
        unseen = found.present / counts.weight
        order = np.argsort(-found.weights, kind="stable")[:SHOWN_WORDS]
        shares = found.weights[order] / counts.weight
        of_levels = found.words
        words = [(of_levels[i], p) for i, p in zip(order, shares.tolist(), strict=True)]
    column = ColumnDrift(
        name=name,
        kind=kind,
        low=low if ranged else None,
        high=high if ranged else None,
        below=below if ranged else None,
        above=above if ranged else None,
        unseen=unseen,
        unseen_words=tuple(words),
        missing=missing,
        trained_missing=float(known.missing[j]),
        sentences=(),
    )
    n = (counts.weight / counts.norm) ** 2  # as many rows of equal weight are as certain
    return judged(column, n, known.rows, float(known.unseen[j]))
