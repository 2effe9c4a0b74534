"""Conversion of the parameters of a search to a job, and its candidates."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from polysift.data.source import DataSource
from polysift.engine.backend import Backend
from polysift.engine.budget import parse_memory_limit
from polysift.features.feature_map import (
    AUTO_CENTERS,
    MapSpec,
    check_centers,
    check_degree,
    is_table,
)
from polysift.features.kernels import degree_bound
from polysift.features.scalers import SCALERS, sparse_choices, takes_sparse
from polysift.runtime.checkpoints import digest
from polysift.runtime.parallel import usable_jobs
from polysift.runtime.parameters import check_choice, check_flag, check_integer, check_real, listed
from polysift.runtime.types import FloatArray
from polysift.selection.candidates import Candidate
from polysift.selection.scoring import Scorer, check_scorer
from polysift.solvers.solver import SolverSettings
from polysift.training.calibration import CALIBRATIONS
from polysift.training.job import (
    MAX_PARAMETER,
    backend_of,
    check_solver_numbers,
    seed_of,
    solver_settings,
)

SEARCHED = ("paper", "converged")
"""Solvers whose iterates a search can compare."""

PAPER_ITERATIONS = 5
"""The iterations of candidates with the paper's solver."""

MIN_AUTO_MAX_DEGREE = 5
"""degrees="auto" includes all degrees up to this one at least."""

AUTO_CENTER_COUNTS = 5
MIN_AUTO_CENTERS = 30
"""n_centers="auto" tries so many numbers, each half of the one before, down to this minimum."""

SEARCH_PARAMETERS = (
    "degrees",
    "n_centers",
    "scalers",
    "rhos",
    "solvers",
    "max_iter",
    "scoring",
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
    degrees : list of int
        The degrees, ascending.
    n_centers : list of int or None
        The numbers of centers; None means to choose them by the number available.
    centers : str or ndarray of shape (n, d)
        A scheme, or the centers in the units of the data.
    scalers : list of str or None
        The scalers.
    rhos : list of float or None
        Ratios relative to trace(G) / n; None means the solver's default.
    solvers : list of str
        The solvers.
    iterations : list of int
        The iterations at which candidates of the converged mode are scored, ascending.
    alpha, beta, tol : float or None
        The parameters of the solvers that all candidates share.
    dtype : dtype
        The dtype of the rows.
    screen : bool
        Whether worse candidates are eliminated early.
    scorer : callable or None
        A scikit-learn scorer; None means accuracy.
    cv, groups : object
        See ``make_rounds``.
    one_standard_error, refit : bool
        How to choose, and whether to fit the choice to all rows.
    calibration : str or None
        The calibration of out-of-fold scores to probabilities, if any.
    seed : int
        The seed of centers and of a validation part.
    class_weight, threads, memory_limit, time_limit, checkpoint, parameters, show, backend
        As in ``Job``.
    table, max_levels
        As in ``MapSpec``.
    """

    degrees: list[int]
    n_centers: list[int] | None
    centers: str | FloatArray
    scalers: list[str | None]
    rhos: list[float | None]
    solvers: list[str]
    iterations: list[int]
    alpha: float
    beta: float | None
    tol: float | None
    dtype: Any
    screen: bool
    scorer: Scorer | None
    cv: Any
    groups: Any
    one_standard_error: bool
    refit: bool
    calibration: str | None
    seed: int
    class_weight: Any
    threads: int
    memory_limit: int
    time_limit: float | None
    checkpoint: Any
    parameters: dict[str, Any]
    show: bool
    backend: Backend
    table: bool
    max_levels: int

    def map_spec(self, scaler: str | None, degree: int) -> MapSpec:
        """Return the feature map of a scaler and a degree, with the largest number of centers."""
        most = None if self.n_centers is None else max(self.n_centers)
        return MapSpec(degree, most, self.centers, scaler, self.seed, self.table, self.max_levels)

    def candidates(self, available: int) -> list[Candidate]:
        """Return the candidates of a feature map with ``available`` centers."""
        reads = {"paper": (PAPER_ITERATIONS,), "converged": tuple(self.iterations)}
        return [
            Candidate(n, rho, solver, reads[solver])
            for n in self._sizes(available)
            for rho in self.rhos
            for solver in self.solvers
        ]

    def _sizes(self, available: int) -> list[int]:
        if self.n_centers is not None:
            return sorted({min(n, available) for n in self.n_centers})
        most = min(available, AUTO_CENTERS)
        halves = {most >> k for k in range(AUTO_CENTER_COUNTS)}
        return sorted(n for n in halves if n >= min(MIN_AUTO_CENTERS, most))

    def settings(self, candidate: Candidate) -> SolverSettings:
        """Return the solver's settings for a candidate."""
        chosen = SimpleNamespace(
            solver=candidate.solver,
            rho=candidate.rho,
            max_iter=candidate.reads[-1],
            alpha=self.alpha,
            beta=self.beta,
            tol=self.tol,
        )
        return solver_settings(chosen, self.dtype)


def check_search_parameters(estimator: Any) -> None:
    """Check the parameters that can be checked before data are read."""
    check_scorer(estimator.scoring)
    _degrees(estimator.degrees, 1)
    _sizes(estimator.n_centers)
    for name, choices in (("scalers", SCALERS), ("solvers", SEARCHED)):
        for value in listed(name, getattr(estimator, name)):
            check_choice(name, value, choices)
    for rho in listed("rhos", estimator.rhos):
        if rho is not None:
            check_real("rhos", rho, positive=False, most=MAX_PARAMETER)
    for count in listed("max_iter", estimator.max_iter):
        check_integer("max_iter", count)
    for name in ("refit", "screen", "one_standard_error"):
        check_flag(name, getattr(estimator, name))
    check_choice("calibration", estimator.calibration, (*CALIBRATIONS, None))
    check_solver_numbers(estimator)


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
    sizes = listed("n_centers", value)
    return sorted({check_integer("n_centers", n, hint=hint) for n in sizes})


def _scalers(value: Any, source: DataSource) -> list[str | None]:
    scalers = list(dict.fromkeys(listed("scalers", value)))
    if source.sparse:  # others would map zeros to nonzeros, and make the rows dense
        scalers = [scaler for scaler in scalers if takes_sparse(scaler)]
    if not scalers:
        raise ValueError(
            f"scalers={value!r} needs dense rows. Use {sparse_choices()}, or pass X.toarray()."
        )
    return scalers


def _scorer_name(scoring: Any) -> str:
    """Return a name that is the same in another process, unlike the repr of a function."""
    name = getattr(scoring, "__qualname__", None)
    return repr(scoring) if name is None else f"{scoring.__module__}.{name}"


def search_job(estimator: Any, source: DataSource, groups: Any) -> SearchJob:
    """Return the job of a search over a source."""
    centers = check_centers(estimator.centers, source.n_features)
    parameters = {name: repr(getattr(estimator, name)) for name in SEARCH_PARAMETERS}
    parameters["centers"] = centers if isinstance(centers, str) else digest(centers)
    parameters["scoring"] = _scorer_name(estimator.scoring)
    bound = degree_bound(source.n_rows, source.n_features)
    rhos = [None if rho is None else float(rho) for rho in listed("rhos", estimator.rhos)]
    return SearchJob(
        degrees=_degrees(estimator.degrees, bound),
        n_centers=_sizes(estimator.n_centers),
        centers=centers,
        scalers=_scalers(estimator.scalers, source),
        rhos=list(dict.fromkeys(rhos)),
        solvers=list(dict.fromkeys(listed("solvers", estimator.solvers))),
        iterations=sorted({int(count) for count in listed("max_iter", estimator.max_iter)}),
        alpha=estimator.alpha,
        beta=estimator.beta,
        tol=estimator.tol,
        dtype=source.dtype,
        screen=bool(estimator.screen),
        scorer=check_scorer(estimator.scoring),
        cv=estimator.cv,
        groups=None if groups is None else np.asarray(groups),
        one_standard_error=bool(estimator.one_standard_error),
        refit=bool(estimator.refit),
        calibration=estimator.calibration,
        seed=seed_of(estimator),
        class_weight=estimator.class_weight,
        threads=usable_jobs(estimator.n_jobs),
        memory_limit=parse_memory_limit(estimator.memory_limit),
        time_limit=estimator.time_limit,
        checkpoint=estimator.checkpoint,
        parameters=parameters,
        show=bool(estimator.verbose),
        backend=backend_of(estimator.engine),
        table=is_table(source),
        max_levels=check_integer("max_levels", estimator.max_levels, least=2),
    )
