"""The stages of a search: successive halving of the candidates of one feature map, and the refit.

A ``Stage`` compares the candidates of one scaler and degree over all rounds of splits. ``refit``
fits the chosen one to all rows, with the Gram matrices of its stage if they were kept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polysift.data.source import DataSource
from polysift.engine.backend import FitContext
from polysift.engine.budget import Shape
from polysift.engine.compiled import MAX_COUNTED_PASSES, with_loops
from polysift.engine.sums import GramSums
from polysift.features.feature_map import FeatureMap, MapSpec, build_feature_map
from polysift.features.scalers import needs_sketch
from polysift.runtime.types import FloatArray
from polysift.selection.candidates import Candidate, Outcome, Reading, Row
from polysift.selection.halving import CANDIDATES_PER_SOLVER, SuccessiveHalving
from polysift.selection.job import SearchJob
from polysift.selection.scoring import HeldOutScorer
from polysift.solvers.starts import FullGram, solve
from polysift.training.calibration import Calibration, calibrate
from polysift.training.fit import Trained, summarise
from polysift.training.folds import Round
from polysift.training.preparation import Prepared


@dataclass(frozen=True)
class SearchContext:
    """What all parts of a search share.

    Attributes
    ----------
    source : DataSource
        The rows.
    job : SearchJob
        The parameters of the search.
    prepared : Prepared
        The results of the survey.
    rounds : list of Round
        The splits.
    fit : FitContext
        The backend, threads, progress and the checkpoint.
    scorer : HeldOutScorer
        Scores the held-out rows.
    """

    source: DataSource
    job: SearchJob
    prepared: Prepared
    rounds: list[Round]
    fit: FitContext
    scorer: HeldOutScorer

    @property
    def n_splits(self) -> int:
        """The number of splits, over all rounds."""
        return sum(round_.n_splits for round_ in self.rounds)

    def feature_map(self, spec: MapSpec) -> FeatureMap:
        """Return a feature map, learned from the survey."""
        total_weight = self.prepared.data.total_weight()
        return build_feature_map(spec, self.prepared.found, self.source.dtype, total_weight)

    def shape(self, n: int, fold_parts: int) -> Shape:
        """Return the shape of a fit with n centers, but for ``problems``."""
        data = self.prepared.data
        shape = Shape.of(
            self.source,
            n,
            data.n_columns,
            weighted=data.weights is not None,
            quantiles=needs_sketch(*self.job.scalers),
        )
        return replace(shape, fold_parts=fold_parts)


def empty_rows(
    context: SearchContext, spec: MapSpec, candidates: list[Candidate]
) -> dict[Reading, Row]:
    """Return a row without scores for each candidate of a feature map, at each of its reads."""
    common: dict[str, Any] = {
        "kernel": spec.kernel,
        "degree": spec.degree,
        "scaler": spec.scaler,
    }
    scheme, _ = spec.resolve(context.source.n_features)
    if scheme != "given":
        common["centers"] = scheme
    return {
        (candidate, read): Row(
            common
            | {
                "n_centers": candidate.n,
                "solver": candidate.solver,
                "rho": candidate.rho,
                "max_iter": read,
            },
            np.full(context.n_splits, np.nan),
        )
        for candidate in candidates
        for read in candidate.reads
    }


class Stage:
    """The comparison of the candidates of one scaler and degree.

    Parameters
    ----------
    context : SearchContext
        The context of the search.
    spec : MapSpec
        The scaler, the degree and the centers of all candidates.
    feature_map : FeatureMap
        The feature map with the most centers.
    bar : float
        The mean score below which candidates are eliminated at a rung.
    memory_limit : int
        The most bytes that the stage may allocate.

    Attributes
    ----------
    rows : list of Row
        A row for each candidate and read; updated after each round, even if it was ended early.
    sums : GramSums or None
        The Gram matrices of the first round.
    gram_seconds, sweep_seconds : float
        The seconds of the Gram matrices of the first round, and of a sweep of one problem.
    """

    def __init__(
        self,
        context: SearchContext,
        spec: MapSpec,
        feature_map: FeatureMap,
        bar: float,
        memory_limit: int,
    ) -> None:
        self._context, self._map, self._bar = context, feature_map, bar
        scaler, degree = spec.scaler, spec.degree
        self._memory_limit = memory_limit
        self._name = f"-{scaler}-{degree}"
        self._candidates = context.job.candidates(feature_map.n_centers)
        self._row_of = empty_rows(context, spec, self._candidates)
        self.rows = list(self._row_of.values())
        self.sums: GramSums | None = None
        self.gram_seconds = self.sweep_seconds = 0.0

    def run(self) -> None:
        """Run successive halving, round by round; the first round decides the eliminations."""
        outcomes: list[Outcome] = []
        for number, round_ in enumerate(self._context.rounds):
            outcomes.append(Outcome())
            try:
                last = outcomes[0].last if number else None
                self._run_round(number, round_, last, outcomes[-1])
            finally:
                self._update_rows(outcomes)
        for row in self.rows:
            row.screened = not row.finished

    def _run_round(
        self, number: int, round_: Round, last: dict[Candidate, int] | None, outcome: Outcome
    ) -> None:
        """Run successive halving on the splits of a round."""
        context, job, candidates = self._context, self._context.job, self._candidates
        data = replace(
            context.prepared.data, fold_parts=round_.fold_parts, n_fold_parts=round_.n_fold_parts
        )
        wanted = len(candidates)
        if job.screen:
            wanted = min(wanted, CANDIDATES_PER_SOLVER * len(job.solvers))
        execution, at_once = job.backend.fit_problems(
            self._memory_limit,
            context.shape(self._map.n_centers, round_.n_fold_parts),
            round_.n_splits,
            wanted,
            job.threads,
            keep_features=any(job.settings(c).many_sweeps for c in candidates),
        )
        rows, n = context.source.n_rows, self._map.n_centers
        columns = context.source.n_features
        execution = with_loops(execution, rows, n, MAX_COUNTED_PASSES, columns)
        name, seconds = f"{self._name}-{number}", context.fit.monitor.seconds
        bytes_per_candidate = 8 * context.source.n_rows * data.n_columns
        with context.fit.executing(execution) as fit:
            engine = fit.engine(data, self._map, name)
            before = seconds.get("Gram matrix", 0.0)
            sums = engine.gram()
            if number == 0:
                self.gram_seconds = seconds["Gram matrix"] - before
                self.sums, self.sweep_seconds = sums, engine.sweep_seconds()
            halving = SuccessiveHalving(
                engine,
                sums,
                round_.n_splits,
                job.settings,
                lambda scores: context.scorer(scores, round_.fold_parts, round_.n_splits),
                fit,
                name=name,
                outcome=outcome,
                n_columns=data.n_columns,
                candidates_at_once=at_once,
                scores_at_once=max(1, self._memory_limit // 4 // bytes_per_candidate),
                bar=self._bar,
            )
            halving.run(candidates, screen=job.screen, last=last)

    def _update_rows(self, outcomes: list[Outcome]) -> None:
        """Update the rows by the outcomes of the rounds so far."""
        rounds = self._context.rounds
        for key, row in self._row_of.items():
            results = [outcome.results.get(key) for outcome in outcomes]
            known = [result for result in results if result is not None]
            if not known:
                continue
            scores = np.concatenate([result.scores for result in known])
            row.scores[: len(scores)] = scores
            counts = [len(result.scores) for result in known]
            row.iterations = float(
                np.average([result.iterations for result in known], weights=counts)
            )
            row.finished = len(known) == len(rounds) and all(result.finished for result in known)

    def estimate_costs(self) -> None:
        """Estimate the seconds of fitting each row alone on one split, from those of this stage."""
        rounds, rows = self._context.rounds, self._context.source.n_rows
        learned = [
            np.count_nonzero((round_.fold_parts >= 0) & (round_.fold_parts != split))
            for round_ in rounds
            for split in range(round_.n_splits)
        ]
        share = float(np.mean(learned)) / rows
        gram = self.gram_seconds * rows / np.count_nonzero(rounds[0].fold_parts >= 0)
        for row in self.rows:
            relative = row.params["n_centers"] / self._map.n_centers
            survey = self._context.fit.monitor.seconds.get("survey", 0.0)
            row.fixed_seconds = share * (survey + gram * relative**2)
            row.iteration_seconds = share * self.sweep_seconds * relative


@dataclass(frozen=True)
class Kept:
    """The Gram matrices of one feature map, kept for the refit."""

    scaler: str | None
    degree: int
    sums: GramSums

    def sums_of(self, params: dict[str, Any]) -> GramSums | None:
        """Return the matrices of a model with these parameters; None if its features differ."""
        if (self.scaler, self.degree) != (params["scaler"], params["degree"]):
            return None
        n = params["n_centers"]
        return GramSums(self.sums.G[:, :n, :n], self.sums.Aty[:, :n])


def refit_round(context: SearchContext) -> Round | None:
    """Return the round whose fold parts the refit uses; None if it needs none.

    It is the first round of the search if that uses all rows, so that its Gram matrices can be
    used again.
    """
    if context.rounds[0].complete:
        return context.rounds[0]
    return context.prepared.folds


def refit(context: SearchContext, params: dict[str, Any], kept: Kept | None) -> Trained:
    """Fit the model with these parameters to all rows, from kept Gram matrices if they match."""
    job, data, n = context.job, context.prepared.data, params["n_centers"]
    widest = context.feature_map(job.map_spec(params["scaler"], params["degree"]))
    feature_map = FeatureMap(widest.scaler, widest.centers[:n], widest.degree)
    round_, folds = refit_round(context), 0
    if round_ is not None:
        data = replace(data, fold_parts=round_.fold_parts, n_fold_parts=round_.n_fold_parts)
        folds = 0 if job.calibration is None else round_.n_splits
    candidate = Candidate(n, params["rho"], params["solver"], (params["max_iter"],))
    settings = job.settings(candidate)
    shape = context.shape(n, data.n_fold_parts)
    shape = replace(shape, problems=1 + folds, calibrated=folds > 0)
    execution = job.backend.fit_in(
        job.memory_limit, shape, job.threads, keep_features=settings.many_sweeps
    )
    source = context.source
    execution = with_loops(
        execution, source.n_rows, n, params["max_iter"], columns=source.n_features
    )
    key = "-".join(str(params[name]) for name in sorted(params))
    with context.fit.executing(execution) as fit:
        result, scores = solve(
            fit.engine(data, feature_map, f"-refit-{key}"),
            settings,
            fit,
            n_folds=folds,
            start=FullGram(None if kept is None else kept.sums_of(params)),
            name=f"solver-refit-{key}",
        )
    calibration = None if round_ is None else _calibration(context, round_, scores)
    summary = summarise(context.prepared, job.memory_limit, fit)
    return Trained(
        feature_map.fitted(),
        context.prepared.classes,
        result,
        fit.monitor.timings(),
        summary,
        calibration,
        context.prepared.columns,
        context.prepared.notes,
    )


def _calibration(context: SearchContext, round_: Round, scores: FloatArray) -> Calibration | None:
    """Return the calibration by the scores of held-out rows, if probabilities are asked for."""
    kind, data = context.job.calibration, context.prepared.data
    if kind is None:
        return None
    held_out = np.where(round_.fold_parts < round_.n_splits, round_.fold_parts, -1)
    weights = context.prepared.weights
    return calibrate(kind, scores, data.codes, data.n_classes, weights, held_out)
