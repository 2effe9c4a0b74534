"""What is done before a fit or a search: the survey, the labels, and what the columns are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polysift.data.labels import LabelPart, find_encoding
from polysift.data.source import DataSource
from polysift.data.training_set import TrainingSet
from polysift.engine.backend import FitContext
from polysift.features.columns import (
    CONSTANT,
    LEFT_OUT,
    TableColumns,
    column_notes,
    find_columns,
)
from polysift.features.feature_map import MapSpec
from polysift.features.leakage import deciding_columns, sampled_share
from polysift.features.sampled_rows import LabelledSample, labelled_sample
from polysift.features.statistics import ColumnStatistics
from polysift.features.survey import Questions, Survey, categories_of
from polysift.features.table_learning import restricted
from polysift.features.target_counts import LEVEL_BYTES_PER_ROW
from polysift.runtime.checkpoints import digest
from polysift.runtime.types import FloatArray, IntArray
from polysift.solvers.starts import CALIBRATION_FOLDS
from polysift.training.folds import Round, stratified_folds

MAX_REPETITION = 8
"""How often rows of a sample by content may repeat on average; beyond, it is by position."""


@dataclass(frozen=True)
class Prepared:
    """The results of the first pass: labels, weights, and the statistics for feature maps.

    Attributes
    ----------
    data : TrainingSet
        The rows, weighted also by their classes.
    classes : ndarray
        The classes.
    counts : ndarray of shape (classes,)
        The sum of the rows' own weights in each class.
    weights : ndarray of shape (m,) or None
        The rows' own weights, if any, and if they were gathered: multiplicities, or relative to
        the mean over all rows, which is thus the same for every fold.
    found : Survey
        The results of the survey, without the labels.
    digests : tuple of str
        Digests of the labels and, if any, of the weights, if a checkpoint needs them.
    columns : TableColumns
        What the columns are found to be.
    numbers : ColumnStatistics
        The statistics of all numbers of the rows, also of columns that are left out.
    table : bool
        Whether the rows were surveyed as those of a table.
    notes : tuple of str
        Sentences on columns: how they were read, which are left out, which look like leakage.
    sample : LabelledSample or None
        Some rows with their classes, if there are any to try feature maps on.
    folds : Round or None
        Folds for a calibration, if the survey hashed the rows.
    """

    data: TrainingSet
    classes: Any
    counts: FloatArray
    weights: FloatArray | None
    found: Survey
    digests: tuple[str, ...]
    columns: TableColumns
    numbers: ColumnStatistics
    table: bool
    notes: tuple[str, ...] = ()
    sample: LabelledSample | None = None
    folds: Round | None = None

    def fingerprint(self) -> dict[str, Any]:
        """Return plain values and digests by which a checkpoint recognises the data."""
        source = self.data.source
        return {
            "rows": source.n_rows,
            "features": source.n_features,
            "dtype": str(source.dtype),
            "data": digest(*self.found.digests),
            "labels": self.digests[0],
            "weights": self.digests[1] if len(self.digests) > 1 else None,
        }


def prepare(
    source: DataSource,
    spec: MapSpec,
    asked: Questions,
    class_weight: Any,
    context: FitContext,
    classes: Any = None,
    *,
    resample: bool = True,
) -> Prepared:
    """Survey the rows, encode their labels, and find what the columns are.

    Parameters
    ----------
    source : DataSource
        The rows.
    spec : MapSpec
        Whether the rows are those of a table, as far as types say, and the most levels.
    asked : Questions
        What the survey must collect.
    class_weight : dict, "balanced" or None
        The weights of the classes.
    context : FitContext
        The backend, threads and progress.
    classes : ndarray, optional
        All classes, where the rows are a batch of more.
    resample : bool
        Whether a sample by position is taken beside the one by content, should too few rows of
        that differ.
    """
    resample = resample and 0.0 < asked.sampled < 1.0
    first = replace(
        asked,
        sampled=max(asked.sampled, sampled_share(source)),
        sampled_at=asked.sampled if resample else 0.0,
    )
    found = context.backend.survey(source, first, context.pool, context.monitor)
    parts, found.labels = found.labels, []
    encoding = find_encoding(parts, class_weight, source.target, classes)
    sample, found.sample = labelled_sample(found.sample, encoding), []
    to_try = None if sample is None else sample.share(asked.sampled, asked.seed)
    if resample and to_try is not None and _repeats(to_try, asked.sampled, source.n_rows):
        to_try = labelled_sample(found.sample_at, encoding)
    found.sample_at = []
    digests = tuple(_joined(words) for words in zip(*(part.digests for part in parts), strict=True))
    codes, own, weights = np.empty(0, np.int8), None, None
    if asked.gather:
        codes = np.concatenate([encoding.codes(part) for part in parts])
        if parts[0].weights is not None:
            given = np.concatenate([part.weights for part in parts if part.weights is not None])
            own = encoding.own_weights(given)
        weights = encoding.weights(own, codes)
    folds = _folds(parts, codes, own)

    known = columns_of(source, spec, found, whole=encoding.unit == 1.0)
    data = TrainingSet(source, codes, len(encoding.classes), weights, encoding=encoding)
    deciding = {}
    if sampled_share(source) > 0:
        deciding = deciding_columns(sample, len(encoding.classes), known.columns)
    notes = (*source.notes, *column_notes(known.columns, source.names, deciding))
    for note in notes:
        context.monitor.say(note)
    return Prepared(
        data,
        encoding.classes,
        encoding.counts,
        own,
        digests=digests,
        notes=notes,
        sample=to_try.in_order(asked.seed) if to_try is not None and asked.sampled else None,
        folds=folds,
        **vars(known),
    )


def _repeats(sample: LabelledSample, share: float, rows: int) -> bool:
    """Return whether too few rows of a sample by content differ."""
    return sample.n_distinct < share * rows / MAX_REPETITION


def _folds(parts: Sequence[LabelPart], codes: IntArray, own: FloatArray | None) -> Round | None:
    """Return the folds of a calibration, where the rows were hashed for them."""
    hashes = [part.hashes for part in parts if part.hashes is not None]
    if not hashes:
        return None
    return stratified_folds(codes, own, np.concatenate(hashes), CALIBRATION_FOLDS)


def as_table(source: DataSource, spec: MapSpec) -> bool:
    """Return whether to survey rows as those of a table, since they are or may turn out to be."""
    return spec.table or source.may_lack_values()


def row_level_bytes(source: DataSource) -> int:
    """Return the bytes per row of the levels that the survey of a fit with folds collects."""
    categories = len(categories_of(source))
    return LEVEL_BYTES_PER_ROW * categories + 1 if categories else 0


@dataclass(frozen=True)
class Surveyed:
    """A survey, and what it says of the columns; see ``Prepared`` for the attributes."""

    found: Survey
    columns: TableColumns
    numbers: ColumnStatistics
    table: bool


def columns_of(
    source: DataSource,
    spec: MapSpec,
    found: Survey,
    *,
    whole: bool = True,
) -> Surveyed:
    """Find what the columns of surveyed rows are.

    Parameters
    ----------
    source : DataSource
        The rows.
    spec : MapSpec
        Whether they were surveyed as those of a table, and the most levels.
    found : Survey
        What was found; with the distributions of the columns, unless these are known to be numbers,
        none of them missing (``as_table``).
    whole : bool
        Whether weights are multiplicities.
    """
    columns = find_columns(
        source.types,
        source.names is not None,
        source.n_rows,
        found,
        whole=whole,
        max_levels=spec.max_levels,
    )
    table = spec.table or not columns.plain
    numbers = found.statistics
    if table or columns.written or not set(columns.kinds) & {*LEFT_OUT} <= {CONSTANT}:
        found = replace(restricted(found, columns), columns=columns)
    return Surveyed(found, columns, numbers, table)


def _joined(words: Sequence[str]) -> str:
    return digest(np.frombuffer("".join(words).encode(), np.uint8))
