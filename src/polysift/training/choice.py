"""The automatic choice of the kernel, its scaler and degree, and the weights of the columns.

Feature maps are tried on a sample of the rows (``features.sampled_rows``) and compared by
generalised cross-validation (``solvers.gcv``), from the sums of these rows alone: no folds, and no
pass over the others. The degree climbs, from a low one, as long as that pays. Then columns that
matter more to the best map so far get more weight, as long as that pays. The fit on all rows takes
its own rho by the same rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polysift.data.source import ArraySource, DataSource
from polysift.data.training_set import TrainingSet
from polysift.engine.backend import FitContext
from polysift.engine.local import LocalEngine
from polysift.features.feature_map import (
    FeatureMap,
    MapSpec,
    build_feature_map,
    check_centers,
    check_degree,
    check_kernel,
    check_n_centers,
    is_table,
)
from polysift.features.kernels import KERNELS
from polysift.features.sampled_rows import LabelledSample
from polysift.features.scalers import SCALERS
from polysift.runtime.errors import FeatureOverflowError
from polysift.runtime.parameters import check_choice, check_integer
from polysift.runtime.types import FloatArray
from polysift.solvers.factor import GRAM_OVERFLOWS, Ridge, factorise, rho_floor
from polysift.solvers.gcv import RidgeChoice, choose_rho
from polysift.training.column_weights import column_weights
from polysift.training.preparation import Prepared

AUTO = "auto"
"""The word of parameters that are left open."""

DEGREES = (1, 2, 3, 4, 6, 8)
"""The degrees that are tried."""

FIRST_DEGREE = 2
"""Where the climb over the degrees begins."""

SCALERS_TRIED = ("standard", "quantile")
"""The scalers that are tried for the polynomial kernel; beside the spline kernel, the first."""

NOTHING_FOUND = 0.98
"""The GCV from which features say nothing of the labels: then every degree is tried, since lower
degrees see nothing of, say, a product of four columns."""

POLYNOMIAL_GAIN = 0.05
"""The share of the GCV by which the polynomial kernel must be better than the spline kernel: few
centers favour it, since they span less of what the spline kernel can be."""

MIN_WEIGHTS_GAIN = 0.005
"""The share of the GCV by which weights of columns must be better than equal ones."""

FIRST_ROWS, MIN_GROWTH = 4000, 1.5
"""The rows of the sample on which everything is tried; the best is tried on all of the sample, if
that is so many times as large."""

ROWS_PER_CENTER = 10
"""Rows per center on a sample. With 20 a fit takes a third less time, and chose no worse on 24
tables; but on smooth problems of 20 columns fewer centers hide which degree and which columns are
best, and cost up to two points."""

MIN_ROWS_PER_CENTER, FEWEST_ROWS_PER_CENTER = 4, 2
"""The fewest rows per center, and the fewest where a small model would be left with less than it
needs: on 30 tables of 500 to 2,300 rows half of them gave better accuracy and log loss than a
quarter. With all of them GCV breaks down, since the fit reproduces its labels."""

MIN_TRIED_CENTERS = 400
"""The centers on a sample, if it has enough rows."""

COST_SHARE = 20.0
"""The cube of the rows of the sample, in multiply-adds of the fit's Gram matrix: with a tenth as
many centers, four maps of the sample cost no more than the fit, and with a million rows and more,
where the sample has as many centers as the fit, a small part of it. Fewer rows favour degrees that
are too low."""

MAX_SAMPLED_VALUES = 2**23
"""The most values of the sample."""

MAX_AUTO_CENTERS, MAX_CHEAP_CENTERS, MAX_AUTO_COST = 2000, 1000, 2e12
"""The most centers where their number is left open, with which the Gram matrix takes no more than
so many multiply-adds; or the second number, if that is more."""

MIN_AUTO_CENTERS, CENTERS_PER_FREEDOM = 800, 6.0
"""Fewer centers will do: those per degree of freedom of the best map, but no fewer than the first
number."""


@dataclass(frozen=True)
class Openings:
    """What is left open to the choice.

    Attributes
    ----------
    kernels : tuple of str
        The kernels.
    scalers : tuple of (str or None)
        The scalers of the polynomial kernel.
    degrees : tuple of int
        The degrees, ascending.
    weights : bool
        Whether columns may have different weights.
    centers : bool
        Whether fewer centers may do.
    """

    kernels: tuple[str, ...]
    scalers: tuple[str | None, ...]
    degrees: tuple[int, ...]
    weights: bool
    centers: bool


@dataclass(frozen=True)
class Trial:
    """A feature map that was tried, and how it did.

    Attributes
    ----------
    spec : MapSpec
        Its parameters.
    ridge : RidgeChoice or None
        Its rho and GCV; None if its features overflow.
    feature_map : FeatureMap or None
        The map itself.
    u : ndarray of shape (n, K) or None
        The coefficients of the ridge regression, where columns may be weighed by them.
    """

    spec: MapSpec
    ridge: RidgeChoice | None = None
    feature_map: FeatureMap | None = None
    u: FloatArray | None = None

    @property
    def score(self) -> float:
        """The GCV, infinite if there is none."""
        return np.inf if self.ridge is None else self.ridge.score

    def facts(self) -> dict[str, Any]:
        """Return plain values: what was tried, and what came of it."""
        spec, ridge = self.spec, self.ridge
        return {
            "kernel": spec.kernel,
            "scaler": spec.scaler if spec.kernel == "polynomial" else None,
            "degree": spec.degree,
            "weights": "equal" if spec.weights is None else "by importance",
            "gcv": None if ridge is None else float(ridge.score),
            "degrees_of_freedom": None if ridge is None else float(ridge.freedom),
        }


def open_map_spec(estimator: Any, source: DataSource, seed: int) -> tuple[MapSpec, Openings | None]:
    """Return the parameters of an estimator's feature map, and what they leave to the choice.

    What is left open has some value, with which the fit can be planned.
    """
    degree, scaler, kernel = estimator.degree, estimator.scaler, estimator.kernel
    centers = check_centers(estimator.centers, source.n_features)
    uniform = isinstance(centers, str) and centers == "uniform"
    open_degree, open_scaler = _is_auto(degree), _is_auto(scaler)
    kernels: tuple[str, ...] = KERNELS[:1] if source.sparse or uniform else KERNELS[::-1]
    if not _is_auto(kernel):
        check_choice("kernel", kernel, (*KERNELS, AUTO))
        kernels = (check_kernel(kernel, estimator.centers, source),)
    alone = kernels == ("polynomial",) and not source.sparse
    scalers: tuple[str | None, ...] = SCALERS_TRIED if alone else SCALERS_TRIED[:1]
    if not open_scaler:
        scalers = (check_choice("scaler", scaler, (*SCALERS, AUTO)),)
    degrees = DEGREES if open_degree else (check_degree(degree, hint=' Or use degree="auto".'),)
    chosen = open_degree or _is_auto(kernel) or (open_scaler and kernels != ("spline",))
    n = check_n_centers(estimator.n_centers)
    spec = MapSpec(
        degree=FIRST_DEGREE if open_degree else degrees[0],
        n_centers=_most_centers(source) if n is None and isinstance(centers, str) else n,
        centers=centers,
        scaler=scalers[0],
        seed=seed,
        table=is_table(source) or "spline" in kernels or (chosen and not source.sparse),
        max_levels=check_integer("max_levels", estimator.max_levels, least=2),
        kernel=kernels[0],
    )
    weights = chosen and not source.sparse and _is_auto(kernel)
    few = n is None and isinstance(centers, str)
    return spec, Openings(kernels, scalers, degrees, weights, few) if chosen else None


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == AUTO


def auto_centers(rows: float, distinct: float) -> int:
    """Return the most centers for so many rows, where their number is left open.

    Only distinct rows count where they are few, since rows that repeat are fitted as one.
    """
    affordable = max((MAX_AUTO_COST / rows) ** 0.5, MAX_CHEAP_CENTERS)
    few = min(distinct // FEWEST_ROWS_PER_CENTER, MIN_AUTO_CENTERS)
    most = max(rows // MIN_ROWS_PER_CENTER, few)
    return int(max(1, min(most, MAX_AUTO_CENTERS, affordable)))


def auto_centers_of(prepared: Prepared) -> int:
    """Return the most centers for prepared rows, where their number is left open."""
    rows, sample = float(prepared.counts.sum()), prepared.sample
    return auto_centers(rows, rows if sample is None else sample.n_effective)


def _most_centers(source: DataSource) -> int:
    """Return the most centers for the rows of a source, whose weights are not known yet."""
    if source.has_weights:
        return min(source.n_rows, MAX_AUTO_CENTERS)
    return auto_centers(source.n_rows, source.n_rows)


def _most_of(spec: MapSpec) -> int:
    """Return the most centers of a feature map, whatever its degree."""
    given = np.inf if isinstance(spec.centers, str) else len(spec.centers)
    return int(min(given, np.inf if spec.n_centers is None else spec.n_centers))


def sampled_rows(rows: int, features: int, centers: int) -> int:
    """Return the expected rows of the sample: more where the fit itself costs more."""
    affordable = (COST_SHARE * rows * centers**2) ** (1 / 3)
    wanted = max(FIRST_ROWS, affordable)
    return int(min(rows, wanted, max(MAX_SAMPLED_VALUES // features, 1)))


def sampled_centers(rows: float, centers: int) -> int:
    """Return the number of centers of the maps that are tried on so many rows."""
    few = min(MIN_TRIED_CENTERS, rows // FEWEST_ROWS_PER_CENTER)
    return int(max(1, min(centers, max(few, rows // ROWS_PER_CENTER))))


class MapChooser:
    """Tries feature maps on the sample of prepared rows.

    Parameters
    ----------
    prepared : Prepared
        The survey and the sample.
    openings : Openings
        What is open.
    context : FitContext
        Threads and progress.

    Attributes
    ----------
    trials : list of Trial
        All that was tried, in order.
    """

    def __init__(self, prepared: Prepared, openings: Openings, context: FitContext) -> None:
        assert prepared.sample is not None
        self._openings, self._context = openings, context
        self._survey, self._sample = prepared.found, prepared.sample
        self._n_classes = prepared.data.n_classes
        self._use(prepared.sample.first(FIRST_ROWS))
        self.trials: list[Trial] = []
        self._count: Callable[[], None] = lambda: None
        self._overflow: FeatureOverflowError | None = None

    def _use(self, sample: LabelledSample) -> None:
        """Compute with these rows of the sample from now on."""
        self._total = sample.total
        self._data = TrainingSet(
            ArraySource(sample.rows), sample.codes, self._n_classes, sample.weights
        )

    def facts(self, best: Trial) -> dict[str, Any]:
        """Return plain values: the sample, the trials, and which was the best."""
        specs = [trial.spec for trial in self.trials]
        weights = best.spec.weights
        return {
            "rows": self._data.source.n_rows,
            "centers": best.spec.n_centers,
            "trials": [trial.facts() for trial in self.trials],
            "best": next(i for i, spec in enumerate(specs) if spec is best.spec),
            "column_weights": None if weights is None else weights.tolist(),
        }

    def choose(self, spec: MapSpec) -> Trial:
        """Return the best trial, among maps whose other parameters are those of ``spec``."""
        n = _most_of(spec)
        with self._context.monitor.trials("choice") as self._count:
            best = self._best_kernel(spec, n)
            if self._openings.weights:
                best = self._weighed(best)
            if self._sample.total > MIN_GROWTH * self._total:
                self._use(self._sample)
                best = self._confirmed(best.spec, n)
        return best

    def _on_sample(self, spec: MapSpec, n: int) -> MapSpec:
        return replace(spec, n_centers=sampled_centers(self._total, n))

    def _best_kernel(self, spec: MapSpec, n: int) -> Trial:
        """Return the best trial over kernels, scalers and degrees, with equal weights."""
        spec = self._on_sample(spec, n)
        best, degree = Trial(spec), spec.degree
        found: list[Trial] = []
        for kernel in self._openings.kernels:
            if kernel == "spline" != self._openings.kernels[-1] and not self._has_numbers():
                continue  # the other kernel is the same
            scalers = self._openings.scalers if kernel == "polynomial" else (spec.scaler,)
            for scaler in scalers:
                tried = replace(spec, kernel=kernel, scaler=scaler, degree=degree)
                found.append(self._climb(self._try(tried), best.score))
            best = _preferred([best, *found])
            degree = best.spec.degree
        if self._overflow is not None and best.ridge is None:
            raise self._overflow
        return best

    def _weighed(self, best: Trial) -> Trial:
        """Return the best trial with weights of columns, or the one before if it is no better."""
        weights = self._weights(best)
        if weights is None:
            return best
        found = self._climb(self._try(replace(best.spec, weights=weights)))
        return found if found.score < (1.0 - MIN_WEIGHTS_GAIN) * best.score else best

    def _confirmed(self, spec: MapSpec, n: int) -> Trial:
        """Return the best trial on the whole sample, which may have other weights and degrees.

        More rows tell better which columns matter. A polynomial kernel must be better once more,
        with more centers.
        """
        spec = self._on_sample(spec, n)
        began = self._try(spec)
        weights = self._weights(began) if self._openings.weights else None
        if weights is not None:
            again = self._try(replace(spec, weights=weights))
            gain = MIN_WEIGHTS_GAIN if spec.weights is None else 0.0
            began = again if again.score < (1.0 - gain) * began.score else began
        trials = [self._climb(began)]
        if spec.kernel == "polynomial" and "spline" in self._openings.kernels:
            trials.append(self._climb(self._try(replace(began.spec, kernel="spline"))))
        return _preferred(trials)

    def _has_numbers(self) -> bool:
        return len(self._survey.statistics.low) > 0

    def _climb(self, best: Trial, rival: float = np.inf) -> Trial:
        """Return the best trial over degrees, up or down from that of a trial while it pays.

        A kernel that is no better than its rival, at the rival's best degree, is not so at another:
        on 92 tables none was, so that further trials would be for nothing.
        """
        spec, degrees = best.spec, self._openings.degrees
        at = degrees.index(spec.degree)
        if rival < min(best.score, NOTHING_FOUND):
            return best
        for ahead in (degrees[at + 1 :], degrees[:at][::-1]):
            began = best
            for degree in ahead:
                found = self._try(replace(spec, degree=degree))
                if found.score < best.score:
                    best = found
                elif best.score < NOTHING_FOUND:
                    break
            if best is not began:
                break
        return best

    def _try(self, spec: MapSpec) -> Trial:
        """Try a feature map on the sample."""
        try:
            found = self._tried(spec)
        except FeatureOverflowError as error:
            self._overflow, found = error, Trial(spec)
        self.trials.append(replace(found, feature_map=None, u=None))
        self._count()
        return found

    def _tried(self, spec: MapSpec) -> Trial:
        data, context = self._data, self._context
        feature_map = build_feature_map(spec, self._survey, float, data.total_weight())
        G, Aty = LocalEngine(data, feature_map, context.pool, context.execution).gram().over(None)
        with np.errstate(over="ignore"):
            trace = float(np.trace(G))
        if not np.isfinite(trace):
            raise FeatureOverflowError(GRAM_OVERFLOWS)
        ridge = choose_rho(G, Aty, data.total_weight(), rho_floor(trace))
        weighs = self._openings.weights and np.isfinite(ridge.rho)
        u = factorise(G, Ridge(rho=ridge.rho), trace).solve(Aty) if weighs else None
        return Trial(spec, ridge, feature_map, u)

    def _weights(self, trial: Trial) -> FloatArray | None:
        """Return weights of the columns by how much each matters to a trial's scores."""
        columns = self._survey.columns
        if trial.feature_map is None or trial.u is None or columns is None:
            return None
        return column_weights(trial.feature_map, trial.u, self._sample, columns)


def _preferred(trials: Sequence[Trial]) -> Trial:
    """Return the best trial; the polynomial kernel must be clearly better than the spline's."""

    def score(trial: Trial) -> float:
        margin = POLYNOMIAL_GAIN if trial.spec.kernel == "polynomial" else 0.0
        return trial.score / (1.0 - margin)

    return min(trials, key=score)


def enough_centers(best: Trial, n: int) -> int:
    """Return how many of n centers the fit needs, by the degrees of freedom of the best trial."""
    if best.ridge is None:
        return n
    return int(min(n, max(MIN_AUTO_CENTERS, CENTERS_PER_FREEDOM * best.ridge.freedom)))
