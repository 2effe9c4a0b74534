"""The levels of a search: growing samples of the rows, each part of the next, and then all rows.

Variants and candidates are compared on a few rows first, and only the best of them on more. Which
rows are in a sample depends on a seeded hash of their content alone (``features.sampled_rows``);
the folds of a sample are those of all rows, restricted to it, so that groups and the order of time
are kept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from polysift.data.source import ArraySource, DataSource
from polysift.data.training_set import TrainingSet
from polysift.engine.backend import LOCAL, Backend
from polysift.features.sampled_rows import LabelledSample
from polysift.runtime.types import FloatArray, IntArray
from polysift.selection.candidates import Candidate, Variant
from polysift.selection.job import SearchJob
from polysift.selection.scoring import HeldOutScorer
from polysift.training.choice import MAX_SAMPLED_VALUES
from polysift.training.folds import Round
from polysift.training.preparation import Prepared

FIRST_LEVEL_ROWS, GROWTH = 5000, 4
"""The rows of the first sample, and by which factor a level is larger than the one before, at the
least."""

MIN_LEVEL_CENTERS, ROWS_PER_CENTER = 400, 20
"""The most centers on a sample: the first number, or one for so many rows, if that is more."""


@dataclass(frozen=True)
class Level:
    """The rows on which candidates are compared.

    Attributes
    ----------
    data : TrainingSet
        The rows.
    own_weights : ndarray of shape (m,) or None
        Their own weights, if they have any.
    rounds : list of Round
        The splits.
    scorers : list of HeldOutScorer
        Score the held-out rows by each metric.
    backend : Backend
        Executes the passes over the rows.
    folds : Round or None
        The folds of a calibration, where the rounds do not use all rows.
    whole : bool
        Whether these are all rows.
    """

    data: TrainingSet
    own_weights: FloatArray | None
    rounds: list[Round]
    scorers: list[HeldOutScorer]
    backend: Backend
    folds: Round | None
    whole: bool

    @property
    def refit_round(self) -> Round | None:
        """The round whose fold parts a refit uses; None if it needs none.

        It is the first round of the search if that uses all rows, so that its Gram matrices can
        be used again.
        """
        return self.rounds[0] if self.rounds[0].complete else self.folds

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.data.source.n_rows

    @property
    def title(self) -> str:
        """What the level is called in messages."""
        return "" if self.whole else f" on {self.n_rows:,} rows"

    def data_of(self, variant: Variant, prepared: Prepared) -> TrainingSet:
        """Return the rows, with the weights of classes of a variant."""
        encoding = prepared.data.encoding
        assert encoding is not None
        if not self.whole or variant.class_weight is not None:
            encoding = encoding.weighing(variant.class_weight)
        weights = encoding.weights(self.own_weights, self.data.codes)
        own = encoding if self.whole else None
        return replace(self.data, weights=weights, encoding=own)

    def most_centers(self, n: int) -> int:
        """Return how many of n centers are used here."""
        return n if self.whole else level_centers(self.n_rows, n)

    def candidate(self, candidate: Candidate, most: int) -> Candidate:
        """Return a candidate of a variant with at most so many centers as it is tried here.

        All numbers of centers are reduced alike.
        """
        share = self.most_centers(most) / most
        return replace(candidate, n=max(1, int(candidate.n * share)))


def level_centers(rows: int, n: int) -> int:
    """Return how many of n centers are used on a sample of so many rows."""
    return min(n, max(MIN_LEVEL_CENTERS, rows // ROWS_PER_CENTER))


def sample_sizes(source: DataSource, job: SearchJob) -> list[int]:
    """Return the rows of the samples, ascending; none where there are few rows."""
    most = min(source.n_rows // GROWTH, MAX_SAMPLED_VALUES // max(source.n_features, 1))
    sizes, size = [], FIRST_LEVEL_ROWS
    while job.screen and size <= most:
        sizes.append(size)
        size *= GROWTH
    return sizes


def make_levels(prepared: Prepared, job: SearchJob, rounds: list[Round]) -> list[Level]:
    """Return the levels of a search, the last of all rows."""
    data, sample = prepared.data, prepared.sample
    whole = Level(
        data,
        prepared.weights,
        rounds,
        _scorers(job, prepared, data.codes, prepared.weights),
        job.backend,
        prepared.folds,
        whole=True,
    )
    levels = []
    for size in sample_sizes(data.source, job):
        if sample is None:
            break
        mean_weight = sample.total / len(sample.codes)
        level = _sampled(prepared, job, rounds, sample.first(size * mean_weight))
        pairs = zip(level.rounds, rounds, strict=True)
        if all(_same_classes(part, all_, level.data.codes, data.codes) for part, all_ in pairs):
            levels.append(level)
    return [*levels, whole]


def _sampled(
    prepared: Prepared, job: SearchJob, rounds: list[Round], sample: LabelledSample
) -> Level:
    """Return the level of a sample."""
    data = TrainingSet(ArraySource(sample.rows), sample.codes, prepared.data.n_classes)

    folds = None if prepared.folds is None else prepared.folds.of_rows(sample.numbers)
    scorers = _scorers(job, prepared, sample.codes, sample.own_weights)
    parts = [round_.of_rows(sample.numbers) for round_ in rounds]
    return Level(data, sample.own_weights, parts, scorers, LOCAL, folds, whole=False)


def _scorers(
    job: SearchJob, prepared: Prepared, codes: IntArray, weights: FloatArray | None
) -> list[HeldOutScorer]:
    kinds = job.calibrations or ("sigmoid",)
    return [
        HeldOutScorer(scorer, codes, prepared.classes, weights, kinds, job.threshold)
        for scorer in job.scorers.values()
    ]


def _same_classes(part: Round, whole: Round, codes: IntArray, all_codes: IntArray) -> bool:
    """Return whether each training and test part of a sample has the classes of the whole one."""
    if part.n_fold_parts < whole.n_fold_parts:
        return False
    n = int(all_codes.max()) + 1

    def present(round_: Round, known: IntArray) -> IntArray:
        used = (round_.fold_parts >= 0) & (known >= 0)
        cells = round_.fold_parts[used].astype(int) * n + known[used]
        return np.bincount(cells, minlength=whole.n_fold_parts * n) > 0

    return bool((present(part, codes) == present(whole, all_codes)).all())
