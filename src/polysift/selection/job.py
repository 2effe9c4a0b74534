"""Conversion of the parameters of a search to a job, and its candidates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from polysift.data.source import DataSource
from polysift.engine.backend import Backend
from polysift.engine.budget import parse_memory_limit
from polysift.features.feature_map import AUTO_CENTERS, MapSpec, check_degree, check_kernel
from polysift.features.kernels import KERNELS, degree_bound
from polysift.features.scalers import SCALERS, needs_sketch, sparse_choices, takes_sparse
from polysift.losses import LOSSES, solver_and_loss
from polysift.runtime.checkpoints import digest
from polysift.runtime.parallel import usable_jobs
from polysift.runtime.parameters import check_choice, check_flag, check_integer, check_real, listed
from polysift.selection.candidates import Candidate, Variant
from polysift.selection.scoring import Scorer, check_scorers
from polysift.solvers.solver import SolverSettings
from polysift.training.calibration import CALIBRATIONS
from polysift.training.choice import Openings, open_map_spec
from polysift.training.job import (
    MAX_PARAMETER,
    backend_of,
    check_class_weight,
    check_solver_numbers,
    seed_of,
    solver_settings,
)
from polysift.training.thresholds import Threshold, check_threshold

SEARCHED = ("paper", "lbfgs", "converged", "newton")
"""Solvers that a search can compare."""

EFFORTS = ("normal", "high")
"""How much a search tries where nothing is said."""

PAPER_ITERATIONS = 5
"""The iterations of candidates with the paper's solver."""

AUTO_READS: dict[str, tuple[int, ...]] = {
    "lbfgs": (7,),
    "converged": (30, 100, 300),
    "newton": (300,),
}
"""max_iter="auto": the iterations at which candidates are scored, by solver."""

AUTO_MULTIPLES = (1.0, 0.1, 10.0)
"""rhos="auto": multiples of the rho that generalised cross-validation chooses."""

GRID_SCALERS = ("minmax", "quantile")
"""scalers="auto" where a kernel or degrees are given, so that there is no automatic choice."""

HIGH_PAIRS = (("lbfgs", "logistic"), ("lbfgs", "squared_hinge"), ("paper", "hinge"))
"""Solvers and losses that effort="high" tries."""

HIGH_SCALERS = ("standard", "quantile", "minmax")
"""Scalers of the polynomial kernel that effort="high" tries."""

MIN_AUTO_MAX_DEGREE = 5
"""degrees="auto" includes all degrees up to this one at least."""

AUTO_CENTER_COUNTS, MIN_AUTO_CENTERS = 5, 30
"""n_centers="auto" tries so many numbers, each half of the one before, down to this minimum."""

SEARCH_PARAMETERS = (
    "degrees",
    "n_centers",
    "scalers",
    "kernels",
    "rhos",
    "solvers",
    "losses",
    "max_iter",
    "scoring",
    "effort",
    "threshold",
    "screen",
    "one_standard_error",
    "refit",
    "calibration",
    "alpha",
    "beta",
    "tol",
    "class_weight",
    "columns",
    "max_levels",
)
"""Parameters that must agree to resume from a checkpoint, besides the centers and the splits."""


@dataclass(frozen=True)
class SearchJob:
    """The checked parameters of a search.

    Attributes
    ----------
    spec : MapSpec
        The feature map of all variants, but for kernel, scaler, degree and weights.
    openings : Openings or None
        What the automatic choice of a plain fit may choose from; None if the kernels, scalers or
        degrees are given.
    kernels, scalers, degrees : list
        The variants where there is no automatic choice, degrees ascending.
    class_weights : list
        The weights of the classes.
    n_centers : list of int or None
        The numbers of centers; None means to choose them.
    rhos : list of float or None
        Ratios relative to trace(G) / n; None means the solver's default.
    multiples : tuple of float
        Multiples of the rho that generalised cross-validation chooses.
    pairs : list of (str, str)
        The solvers and losses.
    iterations : list of int or None
        The iterations at which candidates are scored, ascending; None means those of the solver.
    alpha, beta, tol : float or None
        The parameters of the solvers that all candidates share.
    dtype : dtype
        The dtype of the rows.
    effort : str
        How much is tried where nothing is said.
    screen : bool
        Whether worse candidates are eliminated early.
    scorers : dict of str to (callable or None)
        The scikit-learn scorers, the one that counts first; None means accuracy.
    cv, groups : object
        See ``make_rounds``.
    one_standard_error, refit : bool
        How to choose, and whether to fit the choice to all rows.
    calibrations : tuple of str
        The calibrations of out-of-fold scores to probabilities to choose from, if any.
    threshold : Threshold or None
        What decision thresholds are chosen for, if any.
    threads, memory_limit, time_limit, checkpoint, parameters, show, backend
        As in ``Job``.
    """

    spec: MapSpec
    openings: Openings | None
    kernels: list[str]
    scalers: list[str | None]
    degrees: list[int]
    class_weights: list[Any]
    n_centers: list[int] | None
    rhos: list[float | None]
    multiples: tuple[float, ...]
    pairs: list[tuple[str, str]]
    iterations: list[int] | None
    alpha: float | None
    beta: float | None
    tol: float | None
    dtype: Any
    effort: str
    screen: bool
    scorers: dict[str, Scorer | None]
    cv: Any
    groups: Any
    one_standard_error: bool
    refit: bool
    calibrations: tuple[str, ...]
    threshold: Threshold | None
    threads: int
    memory_limit: int
    time_limit: float | None
    checkpoint: Any
    parameters: dict[str, Any]
    show: bool
    backend: Backend

    @property
    def seed(self) -> int:
        """The seed of centers, samples and of a validation part."""
        return self.spec.seed

    @property
    def quantiles(self) -> bool:
        """Whether a survey must estimate quantiles."""
        return self.spec.table or self.openings is not None or needs_sketch(*self.scalers)

    def most_variants(self) -> int:
        """Return the most variants that the search can have, for displays of progress."""
        kernels, degrees, scalers = len(self.kernels), len(self.degrees), len(self.scalers)
        if self.openings is not None:
            kernels, degrees = len(self.openings.kernels), len(self.openings.degrees)
            scalers = len(HIGH_SCALERS)
        return kernels * degrees * scalers * len(self.class_weights)

    def grid(self) -> list[Variant]:
        """Return the variants where there is no automatic choice.

        High degrees come first: on large data they are the best, and then candidates of other
        variants are eliminated early.
        """
        specs = [
            replace(self.spec, kernel=kernel, degree=degree, scaler=scaler)
            for degree in reversed(self.degrees)
            for kernel in self.kernels
            for scaler in (self.scalers if kernel == "polynomial" else self.scalers[:1])
        ]
        return self.weighed([(spec, False) for spec in specs])

    def weighed(self, specs: list[tuple[MapSpec, bool]]) -> list[Variant]:
        """Return the variants of feature maps, with all weights of classes.

        Each map comes with whether it is the choice of a plain fit.
        """
        return [
            Variant(self._name(spec, automatic, number), spec, weight, automatic)
            for spec, automatic in specs
            for number, weight in enumerate(self.class_weights)
        ]

    def _name(self, spec: MapSpec, automatic: bool, number: int) -> str:
        scaler = f"{spec.scaler or 'no scaler'}, " if spec.kernel == "polynomial" else ""
        name = f"{scaler}degree {spec.degree}"
        if self.openings is not None or len(self.kernels) > 1:
            name = f"{spec.kernel}, {name}"
        name = f"automatic choice ({name})" if automatic else name
        weight = self.class_weights[number]
        if len(self.class_weights) == 1:
            return name
        return f"{name}, {'balanced' if weight == 'balanced' else f'class weights {number + 1}'}"

    def candidates(self, variant: Variant, available: int) -> list[Candidate]:
        """Return the candidates of a variant with ``available`` centers."""
        return [
            Candidate(n, rho, solver, self._reads(solver), loss, multiple)
            for n in self._sizes(variant, available)
            for solver, loss in self.pairs
            for rho, multiple in (
                *((rho, None) for rho in self.rhos),
                *((None, multiple) for multiple in self.multiples),
            )
        ]

    def _reads(self, solver: str) -> tuple[int, ...]:
        if solver == "paper":
            return (PAPER_ITERATIONS,)
        return AUTO_READS[solver] if self.iterations is None else tuple(self.iterations)

    def _sizes(self, variant: Variant, available: int) -> list[int]:
        if self.n_centers is not None:
            return sorted({min(n, available) for n in self.n_centers})
        if self.openings is not None:
            return [min(variant.spec.n_centers or available, available)]
        most = min(available, AUTO_CENTERS)
        halves = {most >> k for k in range(AUTO_CENTER_COUNTS)}
        return sorted(n for n in halves if n >= min(MIN_AUTO_CENTERS, most))

    def settings(self, candidate: Candidate) -> SolverSettings:
        """Return the solver's settings for a candidate.

        A multiple of the chosen rho is a number to the solver, which is not known here.
        """
        rho: Any = candidate.rho
        if candidate.multiple is not None:
            rho = "auto" if candidate.multiple == 1.0 else 1.0
        chosen = SimpleNamespace(
            solver=candidate.solver,
            loss=candidate.loss,
            rho=rho,
            max_iter=candidate.reads[-1],
            alpha=self.alpha,
            beta=self.beta,
            tol=self.tol,
        )
        return solver_settings(chosen, self.dtype)


def check_search_parameters(estimator: Any) -> None:
    """Check the parameters that can be checked before data are read."""
    check_scorers(estimator.scoring, estimator.refit)
    check_choice("effort", estimator.effort, EFFORTS)
    _degrees(estimator.degrees, 1)
    _sizes(estimator.n_centers)
    for name, choices in (("scalers", SCALERS), ("kernels", KERNELS), ("losses", LOSSES)):
        for value in listed(name, getattr(estimator, name)):
            if not is_auto(getattr(estimator, name)):
                check_choice(name, value, choices)
    _pairs(estimator)
    for rho in listed("rhos", estimator.rhos):
        if rho is not None and not is_auto(rho):
            check_real("rhos", rho, positive=False, most=MAX_PARAMETER)
    if not is_auto(estimator.max_iter):
        for count in listed("max_iter", estimator.max_iter):
            check_integer("max_iter", count)
    for name in ("screen", "one_standard_error"):
        check_flag(name, getattr(estimator, name))
    kinds = estimator.calibration
    for kind in listed("calibration", kinds):
        check_choice("calibration", kind, (*CALIBRATIONS, None) if kind is kinds else CALIBRATIONS)
    check_threshold(estimator.threshold)
    check_solver_numbers(estimator, class_weight=False)
    for weight in _class_weights(estimator.class_weight):
        check_class_weight(weight)


def is_auto(value: Any) -> bool:
    """Return whether a parameter is left open."""
    return isinstance(value, str) and value == "auto"


def _class_weights(value: Any) -> list[Any]:
    """Return the weights of classes to try: the given ones, or one of each kind in a list."""
    return list(value) if isinstance(value, list | tuple) else [value]


def _pairs(estimator: Any) -> list[tuple[str, str]]:
    """Return the solvers and losses to try: all pairs that go together."""
    if is_auto(estimator.solvers) and is_auto(estimator.losses) and estimator.effort == "high":
        return list(HIGH_PAIRS)
    solvers, losses = listed("solvers", estimator.solvers), listed("losses", estimator.losses)
    if not is_auto(estimator.solvers):
        for value in solvers:
            check_choice("solvers", value, SEARCHED)
    pairs = [
        solver_and_loss(SimpleNamespace(solver=solver, loss=loss))
        for solver in solvers
        for loss in losses
    ]
    known = [pair for pair in pairs if pair[0] != "lbfgs" or LOSSES[pair[1]].smooth]
    if not known:
        raise ValueError(
            "solvers='lbfgs' needs a smooth loss; got losses='hinge'. Use losses='logistic', or "
            "solvers='paper', 'converged' or 'newton'."
        )
    return list(dict.fromkeys(known))


def _degrees(value: Any, bound: int) -> list[int]:
    if isinstance(value, str):
        if value not in ("auto", "paper"):
            raise ValueError(
                f"degrees must be 'auto', 'paper', an integer or a list of integers; got {value!r}."
            )
        return list(range(1, (max(bound, MIN_AUTO_MAX_DEGREE) if value == "auto" else bound) + 1))
    return sorted({check_degree(degree, "degrees") for degree in listed("degrees", value)})


def _sizes(value: Any) -> list[int] | None:
    if isinstance(value, str) and value == "auto":
        return None
    hint = ' Or use n_centers="auto".'
    return sorted({check_integer("n_centers", n, hint=hint) for n in listed("n_centers", value)})


def _scalers(value: Any, source: DataSource) -> list[str | None]:
    given = GRID_SCALERS if is_auto(value) else value
    scalers = list(dict.fromkeys(listed("scalers", given)))
    if source.sparse:  # others would map zeros to nonzeros, and make the rows dense
        scalers = [scaler for scaler in scalers if takes_sparse(scaler)]
    if not scalers:
        raise ValueError(
            f"scalers={value!r} needs dense rows. Use {sparse_choices()}, or pass X.toarray()."
        )
    return scalers


def _scorer_name(scoring: Any) -> str:
    """Return a name that is the same in another process, unlike the repr of a function."""
    if isinstance(scoring, dict):
        return repr({name: _scorer_name(scorer) for name, scorer in scoring.items()})
    name = getattr(scoring, "__qualname__", None)
    return repr(scoring) if name is None else f"{scoring.__module__}.{name}"


def search_job(
    estimator: Any, source: DataSource, groups: Any, *, preview: bool = False
) -> SearchJob:
    """Return the job of a search over a source; ``preview`` says that it is only planned."""
    sizes = _sizes(estimator.n_centers)
    automatic = all(is_auto(getattr(estimator, name)) for name in ("kernels", "degrees", "scalers"))
    given = "polynomial" if is_auto(estimator.kernels) else estimator.kernels
    kernels = list(dict.fromkeys(listed("kernels", given)))
    for kernel in kernels:
        check_kernel(kernel, estimator.centers, source)
    spec, openings = open_map_spec(
        SimpleNamespace(
            degree="auto" if automatic else 1,
            scaler="auto" if automatic else None,
            kernel="auto" if automatic else kernels[0],
            centers=estimator.centers,
            n_centers="auto" if sizes is None else max(sizes),
            max_levels=estimator.max_levels,
        ),
        source,
        seed_of(estimator),
    )
    if openings is None and sizes is None:
        spec = replace(spec, n_centers=None)  # the numbers of a grid go by the degree
    spec = replace(spec, table=spec.table or "spline" in kernels)
    ratios = listed("rhos", estimator.rhos)
    rhos = [None if rho is None else float(rho) for rho in ratios if not is_auto(rho)]
    multiples: tuple[float, ...] = ()
    if is_auto(estimator.rhos):
        multiples = AUTO_MULTIPLES
    elif len(rhos) < len(ratios):
        multiples = (1.0,)
    if estimator.alpha is not None or estimator.beta is not None:
        rhos, multiples = rhos if rhos or not multiples else [None], ()
    iterations = None
    if not is_auto(estimator.max_iter):
        iterations = sorted({int(count) for count in listed("max_iter", estimator.max_iter)})
    return SearchJob(
        spec=spec,
        openings=openings,
        kernels=kernels,
        scalers=_scalers(estimator.scalers, source),
        degrees=_degrees(estimator.degrees, degree_bound(source.n_rows, source.n_features)),
        class_weights=_class_weights(estimator.class_weight),
        n_centers=sizes,
        rhos=list(dict.fromkeys(rhos)),
        multiples=multiples,
        pairs=_pairs(estimator),
        iterations=iterations,
        alpha=estimator.alpha,
        beta=estimator.beta,
        tol=estimator.tol,
        dtype=source.dtype,
        effort=estimator.effort,
        screen=bool(estimator.screen),
        scorers=check_scorers(estimator.scoring, estimator.refit),
        cv=estimator.cv,
        groups=None if groups is None else np.asarray(groups),
        one_standard_error=bool(estimator.one_standard_error),
        refit=bool(estimator.refit),
        calibrations=tuple(kind for kind in listed("calibration", estimator.calibration) if kind),
        threshold=check_threshold(estimator.threshold),
        threads=usable_jobs(estimator.n_jobs),
        memory_limit=parse_memory_limit(estimator.memory_limit),
        time_limit=estimator.time_limit,
        checkpoint=estimator.checkpoint,
        parameters=_fingerprinted(estimator, spec),
        show=bool(estimator.verbose),
        backend=backend_of(estimator.engine, preview=preview),
    )


def _fingerprinted(estimator: Any, spec: MapSpec) -> dict[str, Any]:
    """Return plain values by which a checkpoint recognises the job."""
    parameters = {name: repr(getattr(estimator, name)) for name in SEARCH_PARAMETERS}
    centers = spec.centers
    parameters["centers"] = centers if isinstance(centers, str) else digest(centers)
    parameters["scoring"] = _scorer_name(estimator.scoring)
    return parameters
