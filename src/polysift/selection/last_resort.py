"""A small model of a few rows, for a search that is ended before it has one, or keeps models.

Some rows of the source are drawn by their position, or are those that can be read in half a second.
One quick candidate is compared and fitted on them, in well under a second and without a time limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from polysift.data.kinds import Words
from polysift.data.source import ArraySource, DataSource
from polysift.engine.backend import LOCAL
from polysift.runtime import clock
from polysift.runtime.parallel import Span
from polysift.runtime.types import IntArray
from polysift.selection.candidates import NoModel, SearchResult
from polysift.selection.job import SearchJob
from polysift.training.choice import FIRST_DEGREE

MAX_ROWS, MAX_CENTERS = 2000, 200
"""The rows and the centers of the model."""

READING_SECONDS = 0.5
"""How long rows of files are read; each read after the first goes twice as far into them."""

SPREAD_ROWS = 200
"""The rows of each read after the first, which takes half of all."""

EXPECTED = (ValueError, TypeError, OSError, MemoryError)
"""What few rows can lead to where all would be in order, or what is wrong with all."""

FOLDS = (5, 2)
"""Numbers of folds to try where the rows cannot be split as all rows are."""


def last_resort(
    source: DataSource,
    job: SearchJob,
    search: Callable[[DataSource, SearchJob], SearchResult],
) -> SearchResult | None:
    """Return the result of one quick candidate on a few rows; None if there can be none.

    Parameters
    ----------
    source : DataSource
        The rows.
    job : SearchJob
        The search.
    search : callable
        Runs a search.
    """
    try:
        some, numbers = few_rows(source, job.seed)
    except EXPECTED:  # the search was ended before it was found that rows cannot be read
        return None
    small, found = _quick(job, numbers), None
    for cv in _splits(job.cv):
        try:
            found = search(some, replace(small, cv=cv))
            break
        except NoModel:  # Ctrl-C
            raise KeyboardInterrupt from None
        except EXPECTED:  # such as a class of one row: fewer folds may do
            continue
    if found is None:
        return None
    for row in found.rows:
        row.finished = row.finished and some.n_rows == source.n_rows
    return replace(found, n_rows=source.n_rows)


def few_rows(source: DataSource, seed: int) -> tuple[ArraySource, IntArray]:
    """Return some rows of a source, and their numbers."""
    spans, parts = [], []
    for span, part in _reads(source, seed):
        spans.append(span)
        own = source.rows(part), source.labels(part), source.weights(part), source.words(part)
        parts.append(own)
    blocks, labels, weights, words = zip(*parts, strict=True)
    sample = ArraySource(
        sp.vstack(blocks, format="csr") if source.sparse else np.concatenate(blocks),
        source.names,
        np.concatenate(labels),
        np.concatenate(weights) if source.has_weights else None,
        file=source.origin,
        types=source.types,
        words=_joined(words),
        notes=source.notes,
    )
    return sample, np.concatenate([np.arange(*span) for span in spans])


def _reads(source: DataSource, seed: int) -> Iterator[tuple[Span, Any]]:
    """Yield spans of some rows with their parts."""
    m = source.n_rows
    if m <= MAX_ROWS:
        yield from source.parts([(0, m)])
    elif isinstance(source, ArraySource):
        drawn = np.random.default_rng(seed).choice(m, MAX_ROWS, replace=False, shuffle=False)
        yield from source.parts([(int(row), int(row) + 1) for row in np.sort(drawn)])
    else:
        began, spans = clock.now(), list(_ever_further(m))
        for span, part in source.parts(spans):
            yield span, part
            if clock.now() - began > READING_SECONDS / 2:  # the next takes as long as all before
                return


def _ever_further(m: int) -> Iterator[Span]:
    """Yield the first rows of m, and a few after each doubling of the distance."""
    yield 0, MAX_ROWS // 2
    start = MAX_ROWS
    while start < m:
        yield start, min(start + SPREAD_ROWS, m)
        start *= 2


def _joined(words: tuple[dict[int, Words], ...]) -> dict[int, Words]:
    """Return the words of levels of all parts."""
    joined: dict[int, Words] = {}
    for part in words:
        for column, known in part.items():
            if joined.get(column) is not known:
                joined[column] = {**joined.get(column, {}), **known}
    return joined


def _quick(job: SearchJob, numbers: IntArray) -> SearchJob:
    """Return a search of one candidate, on the rows of these numbers."""
    given = job if job.openings is None else job.openings
    kernel, scaler, degree = given.kernels[0], given.scalers[0], given.degrees[0]
    degree = FIRST_DEGREE if FIRST_DEGREE in given.degrees else degree
    n = max([size for size in job.n_centers or () if size <= MAX_CENTERS], default=MAX_CENTERS)
    return replace(
        job,
        spec=replace(job.spec, n_centers=n, table=job.spec.table or kernel == "spline"),
        openings=None,
        kernels=[kernel],
        scalers=[scaler],
        degrees=[degree],
        class_weights=job.class_weights[:1],
        n_centers=[n],
        rhos=[] if job.multiples else job.rhos[:1],
        multiples=job.multiples[:1],
        pairs=job.pairs[:1],
        iterations=None if job.iterations is None else job.iterations[:1],
        one_standard_error=False,
        groups=None if job.groups is None else job.groups[numbers],
        time_limit=None,
        checkpoint=None,
        show=False,
        backend=LOCAL,
    )


def _splits(cv: Any) -> list[Any]:
    """Return splits to try in turn: those of the search, where they can be had of other rows."""
    again = cv is None or isinstance(cv, Real) or hasattr(cv, "split")
    return [*([cv] if again else []), *FOLDS]
