"""The variants of a search where nothing is given: the automatic choice of a plain fit, and rivals.

Rivals are the other kernel and the degrees next to the chosen one, with equal weights of columns;
with effort="high" all degrees and scalers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from polysift.data.source import DataSource
from polysift.engine.budget import Shape
from polysift.features.feature_map import MapSpec
from polysift.features.sampled_rows import LabelledSample
from polysift.features.scalers import takes_sparse
from polysift.selection.candidates import Variant
from polysift.selection.job import HIGH_SCALERS, SearchJob
from polysift.selection.stage import SearchContext
from polysift.training.choice import (
    FIRST_ROWS,
    MapChooser,
    Openings,
    Trial,
    enough_centers,
    sampled_rows,
)

MIN_SAMPLE_GROWTH = 2.5
"""How much larger than the first rows of the choice its sample must be, so that a first model is
worth its time."""


def plain_share(source: DataSource, job: SearchJob) -> float:
    """Return the share of the rows in the sample of the automatic choice."""
    if job.openings is None:
        return 0.0
    _, n = job.spec.resolve(source.n_features)
    return sampled_rows(source.n_rows, source.n_features, n) / source.n_rows


def _plain_sample(context: SearchContext) -> LabelledSample | None:
    """Return the sample on which a plain fit chooses."""
    sample, source = context.prepared.sample, context.prepared.data.source
    if sample is None or not len(sample.codes):
        return None
    share = plain_share(source, context.job)
    own = sample.share(share, context.job.seed)
    expected = share * source.n_rows
    return own if len(own.codes) > expected / 2 else sample.first(expected)


def first_choice(context: SearchContext) -> MapSpec | None:
    """Return the choice by the first rows of the sample; None where that is most of it."""
    sample = _plain_sample(context)
    if sample is None or sample.total < MIN_SAMPLE_GROWTH * FIRST_ROWS:
        return None
    return _chosen(context, sample.first(FIRST_ROWS))[0].spec


def automatic_variants(context: SearchContext) -> tuple[list[Variant], dict[str, Any] | None]:
    """Return the choice of a plain fit and its rivals, and how it was chosen, as plain values."""
    job, sample = context.job, _plain_sample(context)
    assert job.openings is not None
    if sample is None:
        return job.weighed([(job.spec, True)]), None
    best, selection, trials = _chosen(context, sample)
    spec = best.spec
    rivals = _rivals(job, job.openings, spec, sparse=context.prepared.data.source.sparse)
    known = {_key(trial.spec): trial.score for trial in reversed(trials)}
    # Those that did well in the choice first; those it did not try last.
    rivals.sort(key=lambda rival: known.get(_key(rival), float("inf")))
    specs = [(spec, True), *((rival, False) for rival in rivals)]
    return job.weighed(specs), selection


def _chosen(
    context: SearchContext, sample: LabelledSample
) -> tuple[Trial, dict[str, Any], list[Trial]]:
    """Return the best trial on a sample with the centers of a fit, its facts, and all trials."""
    job, source = context.job, context.prepared.data.source
    assert job.openings is not None
    _, n = job.spec.resolve(source.n_features)
    shape = Shape.of(source, n, 1, weighted=False, quantiles=True)
    execution = job.backend.fit_in(job.memory_limit, shape, job.threads)
    with context.fit.executing(execution) as trying:
        chooser = MapChooser(replace(context.prepared, sample=sample), job.openings, trying)
        best = chooser.choose(job.spec)
    centers = job.spec.n_centers
    if job.openings.centers and centers is not None:
        centers = enough_centers(best, centers)
    chosen = replace(best, spec=replace(best.spec, n_centers=centers))
    return chosen, chooser.facts(best), chooser.trials


def _rivals(job: SearchJob, openings: Openings, spec: MapSpec, *, sparse: bool) -> list[MapSpec]:
    """Return the rivals of the choice of a plain fit."""
    degrees, at = openings.degrees, openings.degrees.index(spec.degree)
    scalers: tuple[str | None, ...] = openings.scalers
    if job.effort == "high":
        scalers = tuple(name for name in HIGH_SCALERS if not sparse or takes_sparse(name))
    else:
        degrees = degrees[max(at - 1, 0) : at + 2]
    rivals = [
        replace(spec, kernel=kernel, degree=degree, scaler=scaler, weights=None)
        for kernel in openings.kernels
        for degree in degrees
        for scaler in (scalers if kernel == "polynomial" else scalers[:1])
    ]
    equal = spec.weights is None
    return [rival for rival in rivals if not (equal and _key(rival) == _key(spec))]


def _key(spec: MapSpec) -> tuple[Any, ...]:
    """Return what tells maps with equal weights of columns apart."""
    scaler = spec.scaler if spec.kernel == "polynomial" else None
    return spec.kernel, spec.degree, scaler
