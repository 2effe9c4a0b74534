"""The refit of a candidate to the rows of a level, with the Gram matrices of its stage if kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from polysift.engine.sums import GramSums
from polysift.features.feature_map import FeatureMap
from polysift.losses import gives_probabilities
from polysift.selection.candidates import Candidate, Row, Variant
from polysift.selection.levels import Level
from polysift.selection.stage import Ridges, SearchContext, folded
from polysift.solvers.factor import Ridge, chosen_ridge
from polysift.solvers.starts import CALIBRATION_FOLDS, FullGram, solve
from polysift.training.fit import Trained, learned_from_held_out, summarise
from polysift.training.folds import scored_rows
from polysift.training.held_out import UnseenRows, out_of_fold_facts, unseen_rows


@dataclass(frozen=True)
class Kept:
    """The Gram matrices of a variant on the rows of a level, kept for the refit.

    ``ridges`` has the rho that was chosen from them for each number of centers, where it was.
    """

    variant: str
    n_rows: int
    sums: GramSums
    ridges: Ridges

    def sums_of(self, variant: Variant, level: Level, n: int) -> GramSums | None:
        """Return the matrices of a model with n centers; None if its features or rows differ."""
        if (self.variant, self.n_rows) != (variant.name, level.n_rows) or n > self.sums.G.shape[1]:
            return None
        return GramSums(self.sums.G[:, :n, :n], self.sums.Aty[:, :n])


def refit(
    context: SearchContext,
    level: Level,
    variant: Variant,
    candidate: Candidate,
    row: Row,
    kept: Kept | None,
    unseen: UnseenRows | None,
) -> Trained:
    """Fit a candidate to the rows of a level, from kept Gram matrices if they match.

    ``unseen`` are rows with their scores out of fold, as far as they are known.
    """
    job, data = context.job, level.data_of(variant, context.prepared)
    most = context.centers_of(variant.spec)
    widest = context.feature_map(replace(variant.spec, n_centers=level.most_centers(most)))
    n = min(level.candidate(candidate, most).n, widest.n_centers)
    feature_map = FeatureMap(widest.scaler, widest.centers[:n], widest.degree)
    round_, folds = level.refit_round, 0
    if round_ is not None:
        data = folded(data, round_) if round_.n_splits else data
        folds = round_.n_splits if context.held_out else 0
    tried = replace(candidate, n=n, reads=(row.params["max_iter"],))
    settings: Any = job.settings(tried)
    shape = context.shape(level, n, data.n_fold_parts)
    shape = replace(shape, problems=1 + folds, calibrated=context.held_out)
    execution = level.backend.fit_in(
        job.memory_limit, shape, job.threads, keep_features=settings.many_sweeps
    )
    execution = context.execution(execution, level, n, row.params["max_iter"])
    words = {**row.params, "rho": (candidate.rho, candidate.multiple)}
    key = "-".join(str(words[name]) for name in sorted(words))
    key = key if level.whole else f"{level.n_rows}-{key}"
    with context.fit.executing(execution) as fit:
        engine = level.backend.engine(data, feature_map, fit, f"-refit-{key}")
        sums = None if kept is None else kept.sums_of(variant, level, n)
        chosen = None if kept is None or sums is None else kept.ridges.get(n)
        if candidate.multiple not in (None, 1.0):
            sums = engine.gram() if sums is None else sums
            weight = engine.total_weight()
            ridge, _ = chosen or chosen_ridge(sums, Ridge(automatic=True), weight)
            assert candidate.multiple is not None
            row.params["rho"] = candidate.multiple * (ridge.relative_rho or 0.0)
            settings = replace(settings, ridge=Ridge(relative_rho=row.params["rho"]))
            chosen = None
        result, scores = solve(
            engine,
            settings,
            fit,
            n_folds=folds,
            scored=context.held_out,
            start=FullGram(sums, chosen),
            name=f"solver-refit-{key}",
        )
    calibration = thresholds = held_out = crossed = None
    if context.held_out and round_ is not None:
        own = scores, level.data.codes, level.own_weights
        known = scored_rows(round_, *own, CALIBRATION_FOLDS)
        calibration, thresholds = learned_from_held_out(
            job.calibrations, job.threshold, context.prepared.classes, known
        )
        if folds:
            unseen, crossed = unseen_rows(known), calibration
    if unseen is not None:
        log_odds = gives_probabilities(candidate)
        held_out = out_of_fold_facts(
            context.prepared, unseen, result, crossed, thresholds, log_odds=log_odds
        )
    summary = summarise(context.prepared, job.memory_limit, fit) | {"rows": level.n_rows}
    return Trained(
        feature_map.fitted(),
        context.prepared.classes,
        result,
        fit.monitor.timings(),
        summary,
        calibration,
        context.prepared.columns,
        context.prepared.notes,
        context.selection if variant.automatic else None,
        thresholds,
        held_out,
    )
