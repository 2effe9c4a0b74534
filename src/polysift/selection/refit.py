"""The refit of a search: its choice, fitted to all rows, with a Gram matrix that is at hand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polysift.engine.compiled import worthwhile
from polysift.engine.sums import GramSums
from polysift.features.feature_map import FeatureMap
from polysift.runtime.parallel import Pool
from polysift.runtime.types import FloatArray
from polysift.selection.stage import Workshop
from polysift.selection.tracks import Track
from polysift.solvers.crossfit import CALIBRATION_FOLDS, solve_with_folds
from polysift.training.calibration import Calibration, calibrate
from polysift.training.fit import Trained, summarise
from polysift.training.folds import Round, stratified_folds


@dataclass(frozen=True)
class Kept:
    """The Gram matrices of one feature map, to refit without another pass."""

    scaler: str | None
    degree: int
    sums: GramSums

    def sums_of(self, params: dict[str, Any]) -> GramSums | None:
        """Return the matrices of a candidate, if it has this feature map."""
        if (self.scaler, self.degree) != (params["scaler"], params["degree"]):
            return None
        n = params["n_centers"]
        return GramSums(self.sums.G[:, :n, :n], self.sums.Aty[:, :n])


def refit_round(shop: Workshop) -> Round | None:
    """Return the cells of the refit's Gram matrix: those of the search, where they serve."""
    if shop.rounds[0].complete:
        return shop.rounds[0]
    if shop.job.calibration is None:
        return None
    return stratified_folds(shop.prepared.data.codes, shop.prepared.weights, CALIBRATION_FOLDS)


def refit(shop: Workshop, params: dict[str, Any], kept: Kept | None) -> Trained:
    """Fit a candidate to all rows."""
    job, data, n = shop.job, shop.prepared.data, params["n_centers"]
    widest = shop.feature_map(job.map_spec(params["scaler"], params["degree"]))
    feature_map = FeatureMap(widest.scaler, widest.centers[:n], widest.degree)
    round_, folds = refit_round(shop), 0
    if round_ is not None:
        data = replace(data, cells=round_.cells, n_cells=round_.n_cells)
        folds = 0 if job.calibration is None else round_.n_splits
    shape = replace(shop.shape(n, data.n_cells), lanes=1 + folds)
    many = params["solver"] == "converged"
    resources = job.place.fit_in(job.memory_limit, shape, job.threads, store=many)
    fused = worthwhile(shop.source.n_rows, n, params["max_iter"])
    resources = replace(resources, fused=fused)
    track = Track(n, params["rho"], params["solver"], (params["max_iter"],))
    mark = "-".join(str(params[name]) for name in sorted(params))
    with Pool(resources.threads, resources.in_flight) as pool:
        engine = shop.engine(data, feature_map, pool, resources, f"-refit-{mark}")
        sums = None if kept is None else kept.sums_of(params)
        result, scores = solve_with_folds(
            engine,
            engine.gram() if sums is None else sums,
            lambda m: job.settings(track, m, shop.source.dtype),
            folds,
            pool,
            monitor=shop.monitor,
            checkpoint=shop.checkpoint,
            name=f"solver-refit-{mark}",
        )
    calibration = None if round_ is None else _calibration(shop, round_, scores)
    summary = summarise(shop.prepared, resources, job.memory_limit, shop.monitor, job.place.workers)
    classes, timings = shop.prepared.classes, shop.monitor.timings()
    return Trained(feature_map, classes, result, timings, summary, calibration)


def _calibration(shop: Workshop, round_: Round, scores: FloatArray) -> Calibration | None:
    """Learn from the scores of rows that were held out, if probabilities are wanted."""
    kind, data = shop.job.calibration, shop.prepared.data
    if kind is None:
        return None
    held_out = np.where(round_.cells < round_.n_splits, round_.cells, -1)
    weights = shop.prepared.weights
    return calibrate(kind, scores, data.codes, data.n_classes, weights, held_out)
