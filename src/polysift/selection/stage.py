"""The stages of a search: successive halving of the candidates of a variant.

A ``Stage`` compares the candidates of one variant over all rounds of splits, on the rows of one
level.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polysift.data.training_set import TrainingSet
from polysift.engine.backend import FitContext
from polysift.engine.budget import Execution, Shape
from polysift.engine.compiled import MAX_COUNTED_PASSES, with_loops
from polysift.engine.sums import GramSums
from polysift.features.feature_map import FeatureMap, MapSpec, build_feature_map
from polysift.features.scalers import needs_sketch
from polysift.runtime.types import FloatArray
from polysift.selection.candidates import Candidate, Outcome, Reading, Row, Variant
from polysift.selection.halving import CANDIDATES_PER_SOLVER, SuccessiveHalving
from polysift.selection.job import SearchJob
from polysift.selection.levels import Level
from polysift.solvers.factor import Ridge
from polysift.solvers.gcv import RidgeChoice
from polysift.training.folds import Round
from polysift.training.held_out import UnseenRows, unseen_rows
from polysift.training.preparation import Prepared

MAX_KEPT_SCORES = 3
"""Of so many readings of a stage, the best, the scores of held-out rows are kept."""

Ridges = dict[int, tuple[Ridge, RidgeChoice | None]]
"""The rho that was chosen for each number of centers, and how."""


@dataclass(frozen=True)
class SearchContext:
    """What all parts of a search share.

    Attributes
    ----------
    job : SearchJob
        The parameters of the search.
    prepared : Prepared
        The results of the survey.
    levels : list of Level
        The rows on which candidates are compared: samples, then all.
    fit : FitContext
        The backend, threads, progress and the checkpoint.
    selection : dict or None
        How the automatic choice was made, as plain values, if it was.
    """

    job: SearchJob
    prepared: Prepared
    levels: list[Level]
    fit: FitContext
    selection: dict[str, Any] | None = None

    @property
    def whole(self) -> Level:
        """The level of all rows."""
        return self.levels[-1]

    @property
    def n_splits(self) -> int:
        """The number of splits, over all rounds."""
        return sum(round_.n_splits for round_ in self.whole.rounds)

    @property
    def held_out(self) -> bool:
        """Whether a refit needs the scores of rows held out."""
        return bool(self.job.calibrations) or self.job.threshold is not None

    def feature_map(self, spec: MapSpec) -> FeatureMap:
        """Return a feature map, learned from the survey."""
        data = self.prepared.data
        return build_feature_map(spec, self.prepared.found, data.source.dtype, data.total_weight())

    def centers_of(self, spec: MapSpec) -> int:
        """Return the number of centers of a feature map."""
        scheme, n = spec.resolve(self.prepared.data.source.n_features)
        rows = self.prepared.found.candidates
        return n if scheme == "uniform" or rows is None else min(n, max(len(rows.keys), 1))

    def shape(self, level: Level, n: int, fold_parts: int) -> Shape:
        """Return the shape of a fit with n centers, but for ``problems``."""
        data = level.data
        shape = Shape.of(
            data.source,
            n,
            data.n_columns,
            weighted=level.own_weights is not None or self.job.class_weights != [None],
            quantiles=level.whole and needs_sketch(*self.job.scalers),
        )
        newton = any(solver == "newton" for solver, _ in self.job.pairs)
        if newton:
            shape = replace(shape, hessians=True, itemsize=8)
        return replace(shape, fold_parts=fold_parts)

    def execution(self, chosen: Execution, level: Level, n: int, passes: int) -> Execution:
        """Return an execution with compiled loops where they pay, in the type that solvers need."""
        float64 = any(solver == "newton" for solver, _ in self.job.pairs)
        columns = level.data.source.n_features
        return with_loops(replace(chosen, float64=float64), level.n_rows, n, passes, columns)


def empty_rows(
    context: SearchContext, variant: Variant, candidates: list[Candidate]
) -> dict[Reading, Row]:
    """Return a row without scores for each candidate of a variant, at each of its reads."""
    spec, job = variant.spec, context.job
    common: dict[str, Any] = {
        "kernel": spec.kernel,
        "degree": spec.degree,
        "scaler": spec.scaler,
    }
    used: dict[str, Any] = {}
    if variant.automatic:
        used, common = common, dict.fromkeys(common, "auto")
    if len(job.class_weights) > 1:
        common["class_weight"] = variant.class_weight
    scheme, _ = spec.resolve(context.prepared.data.source.n_features)
    if scheme != "given":
        common["centers"] = "auto" if variant.automatic and spec.centers == "auto" else scheme
    rows = {}
    for candidate in candidates:
        own: dict[str, Any] = {
            "n_centers": candidate.n,
            "solver": candidate.solver,
            "loss": candidate.loss,
            "rho": "auto" if candidate.multiple == 1.0 else candidate.rho,
        }
        values = dict(used)
        if variant.automatic and job.n_centers is None:
            values["n_centers"], own["n_centers"] = candidate.n, "auto"
        for read in candidate.reads:
            params = common | own | {"max_iter": read}
            missing = [np.full(context.n_splits, np.nan) for _ in job.scorers]
            rows[candidate, read] = Row(params, missing[0], dict(values), missing[1:])
    return rows


class Stage:
    """The comparison of the candidates of one variant on the rows of one level.

    Parameters
    ----------
    context : SearchContext
        The context of the search.
    level : Level
        The rows.
    variant : Variant
        The feature map and the weights of the classes.
    rows : dict of (Candidate, int) to Row
        The row of each candidate that takes part, and read; updated after each round, even if it
        was ended early.
    bar : float
        The mean score below which candidates are eliminated at a rung.
    memory_limit : int
        The most bytes that the stage may allocate.

    Attributes
    ----------
    sums : GramSums or None
        The Gram matrices of the first round.
    ridges : dict of int to (Ridge, RidgeChoice or None)
        The rho that was chosen from them for each number of centers, where it was.
    n_centers : int
        The most centers of its candidates.
    gram_seconds, sweep_seconds : float
        The seconds of the Gram matrices of the first round, and of a sweep of one problem.
    """

    def __init__(
        self,
        context: SearchContext,
        level: Level,
        variant: Variant,
        rows: dict[Reading, Row],
        bar: float,
        memory_limit: int,
    ) -> None:
        self._context, self._level, self._variant, self._bar = context, level, variant, bar
        self._memory_limit = memory_limit
        self._name = state_name(context, level, variant)
        self._row_of = rows
        most = context.centers_of(variant.spec)
        self._map = context.feature_map(replace(variant.spec, n_centers=level.most_centers(most)))
        tried = {candidate: level.candidate(candidate, most) for candidate, _ in rows}
        self._tried = {
            candidate: replace(found, n=min(found.n, self._map.n_centers))
            for candidate, found in tried.items()
        }
        self.n_centers = self._map.n_centers
        self.sums: GramSums | None = None
        self.ridges: Ridges = {}
        self._unseen: dict[bytes, UnseenRows] = {}
        self.gram_seconds = self.sweep_seconds = 0.0

    def run(self) -> None:
        """Run successive halving, round by round; the first round decides the eliminations."""
        outcomes: list[Outcome] = []
        for row in self._row_of.values():
            row.complete = False
        for number, round_ in enumerate(self._level.rounds):
            outcomes.append(Outcome())
            try:
                last = outcomes[0].last if number else None
                self._run_round(number, round_, last, outcomes[-1])
            finally:
                self._update_rows(outcomes)
        for row in self._row_of.values():
            row.screened = not row.complete

    def _run_round(
        self, number: int, round_: Round, last: dict[Candidate, int] | None, outcome: Outcome
    ) -> None:
        """Run successive halving on the splits of a round."""
        context, job, level = self._context, self._context.job, self._level
        candidates = list(dict.fromkeys(self._tried.values()))
        data = folded(level.data_of(self._variant, context.prepared), round_)
        wanted = len(candidates)
        if job.screen:
            wanted = min(wanted, CANDIDATES_PER_SOLVER * len(job.pairs))
        n = self._map.n_centers
        execution, at_once = level.backend.fit_problems(
            self._memory_limit,
            context.shape(level, n, round_.n_fold_parts),
            round_.n_splits,
            wanted,
            job.threads,
            keep_features=any(job.settings(c).many_sweeps for c in candidates),
        )
        execution = context.execution(execution, level, n, MAX_COUNTED_PASSES)
        name, seconds = f"{self._name}-{number}", context.fit.monitor.seconds
        bytes_per_candidate = 8 * level.n_rows * data.n_columns

        def score(scores: FloatArray) -> FloatArray:
            arguments = scores, round_.fold_parts, round_.n_splits
            values = np.column_stack([scorer(*arguments) for scorer in level.scorers])
            if number == 0:
                self._keep_scores(values[:, 0], scores, round_)
            return values

        with context.fit.executing(execution) as fit:
            engine = level.backend.engine(data, self._map, fit, name)
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
                score,
                fit,
                name=name,
                outcome=outcome,
                n_columns=data.n_columns,
                candidates_at_once=at_once,
                scores_at_once=max(1, self._memory_limit // 4 // bytes_per_candidate),
                bar=self._bar,
            )
            if number == 0:
                self.ridges = halving.chosen
                self._set_ratios(halving)
            halving.run(candidates, screen=job.screen, last=last)

    def _keep_scores(self, values: FloatArray, scores: FloatArray, round_: Round) -> None:
        """Keep the scores of held-out rows, if the scores of their splits are the best so far."""
        mean = float(np.mean(values))
        kept = sorted((float(np.mean(np.frombuffer(key))), key) for key in self._unseen)
        if len(kept) == MAX_KEPT_SCORES:
            if mean < kept[0][0]:
                return
            del self._unseen[kept[0][1]]
        folds = np.where(round_.fold_parts < round_.n_splits, round_.fold_parts, -1)
        if self._level.own_weights is not None:
            folds = np.where(self._level.own_weights > 0, folds, -1)
        rows = unseen_rows((scores, self._level.data.codes, self._level.own_weights, folds))
        self._unseen[values.astype(float).tobytes()] = rows

    def unseen(self, row: Row) -> UnseenRows | None:
        """Return the scores of held-out rows by the model of a row; None if they were not kept."""
        own = row.scores[: self._level.rounds[0].n_splits]
        return self._unseen.get(own.tobytes())

    def _set_ratios(self, halving: SuccessiveHalving) -> None:
        """Set rho of rows whose candidates have a multiple of the chosen one."""
        for (candidate, _), row in self._row_of.items():
            if candidate.multiple not in (None, 1.0):
                row.params["rho"] = halving.relative_rho(self._tried[candidate])

    def _update_rows(self, outcomes: list[Outcome]) -> None:
        """Update the rows by the outcomes of the rounds so far."""
        rounds = self._level.rounds
        for (candidate, read), row in self._row_of.items():
            key = self._tried[candidate], read
            results = [outcome.results.get(key) for outcome in outcomes]
            known = [result for result in results if result is not None]
            if not known:
                continue
            scores = np.concatenate([result.scores for result in known])
            for own, column in zip((row.scores, *row.others), scores.T, strict=True):
                own[: len(scores)], own[len(scores) :] = column, np.nan
            counts = [len(result.scores) for result in known]
            row.iterations = float(
                np.average([result.iterations for result in known], weights=counts)
            )
            row.n_rows = self._level.n_rows
            row.complete = len(known) == len(rounds) and all(result.finished for result in known)
            row.finished = row.complete and self._level.whole

    def estimate_costs(self) -> None:
        """Estimate the seconds of fitting each row alone on one split, from those of this stage."""
        rounds, rows = self._level.rounds, self._level.n_rows
        learned = [
            np.count_nonzero((round_.fold_parts >= 0) & (round_.fold_parts != split))
            for round_ in rounds
            for split in range(round_.n_splits)
        ]
        share = float(np.mean(learned)) / rows
        gram = self.gram_seconds * rows / np.count_nonzero(rounds[0].fold_parts >= 0)
        for (candidate, _), row in self._row_of.items():
            relative = self._tried[candidate].n / self._map.n_centers
            survey = self._context.fit.monitor.seconds.get("survey", 0.0)
            row.fixed_seconds = share * (survey + gram * relative**2)
            row.iteration_seconds = share * self.sweep_seconds * relative


def state_name(context: SearchContext, level: Level, variant: Variant) -> str:
    """Return the end of the names of a stage's states in a checkpoint."""
    spec = variant.spec
    words = [spec.kernel, spec.scaler, spec.degree]
    if variant.automatic:
        words.append("automatic")
    if len(context.job.class_weights) > 1:
        words.append(context.job.class_weights.index(variant.class_weight))
    if not level.whole:
        words.append(level.n_rows)
    return "-" + "-".join(map(str, words))


def folded(data: TrainingSet, round_: Round) -> TrainingSet:
    """Return rows in the fold parts of a round."""
    return replace(data, fold_parts=round_.fold_parts, n_fold_parts=round_.n_fold_parts)
