"""Conversion of a classifier's parameters to a job, and of its result to warnings."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgWarning
from sklearn.exceptions import ConvergenceWarning

from polysift.data.source import DataSource
from polysift.engine.backend import LOCAL, Backend, BackendFactory
from polysift.engine.budget import parse_memory_limit
from polysift.features.feature_map import MapSpec, check_n_centers
from polysift.losses import HINGE, LOSSES, solver_and_loss
from polysift.runtime.checkpoints import digest, stored_seed
from polysift.runtime.parallel import usable_jobs
from polysift.runtime.parameters import (
    check_choice,
    check_integer,
    check_n_jobs,
    check_real,
    check_seed,
)
from polysift.solvers.admm import AdmmSettings, ConvergedSettings
from polysift.solvers.factor import RHO_FLOOR, Ridge
from polysift.solvers.lbfgs import LbfgsSettings
from polysift.solvers.names import SOLVERS
from polysift.solvers.newton import NewtonSettings
from polysift.solvers.result import Result, Status
from polysift.solvers.solver import SolverSettings
from polysift.training.calibration import CALIBRATIONS
from polysift.training.choice import Openings, open_map_spec
from polysift.training.thresholds import Threshold, check_threshold

GRAMS = ("exact", "sampled", "auto")
ENGINES = ("local", "ray")

MAX_PARAMETER = 1e100
"""The largest alpha, beta and rho, and the inverse of the smallest beta: the squares of what the
solvers compute from them are finite."""

FLOAT32_FLOOR_MULTIPLE = 640.0
"""The default rho of the converged mode for float32 rows, in units of its floor: it is
100 eps32^2 trace(G).

Directions of the features that are smaller than their rounding are noise; with a smaller rho the
iterations fit it, and then drift.
"""

MAX_NEWTON_CENTERS = 1000
"""The most centers with which ``solver="minimum"`` is Newton's method. Each of its steps factors a
Hessian; with more centers the ADMM, which factors one matrix in all, is faster: with 2,000 of them
and 13,000 to 21,000 rows 1.5 to 3 times on the hinge loss, with 300 it is up to 2 times slower."""

MODEL_PARAMETERS = (
    "degree",
    "n_centers",
    "scaler",
    "solver",
    "alpha",
    "beta",
    "rho",
    "max_iter",
    "tol",
    "class_weight",
    "calibration",
    "gram",
    "columns",
    "max_levels",
    "kernel",
    "loss",
    "threshold",
)
"""Parameters that must agree to resume from a checkpoint, besides the centers."""


@dataclass(frozen=True)
class Job:
    """The checked parameters of a fit.

    Attributes
    ----------
    spec : MapSpec
        The parameters of the feature map.
    settings : SolverSettings
        The solver and its parameters.
    class_weight : dict, "balanced" or None
        The weights of the classes.
    threads : int
        The maximal number of threads.
    memory_limit : int
        The most bytes that the fit may allocate.
    time_limit : float or None
        The time limit, in seconds.
    checkpoint : str or None
        The folder of the checkpoint.
    parameters : dict
        Plain values by which a checkpoint recognises the job.
    show : bool
        Whether to show progress.
    calibration : str or None
        The calibration of out-of-fold scores to probabilities, if any.
    backend : Backend
        Executes the passes over the rows.
    gram : str
        Whether the Gram matrix is "exact", "sampled", or "auto".
    openings : Openings or None
        What of the feature map is chosen by the data, if anything.
    auto_centers : bool
        Whether the number of centers is by the total weight of the rows; that of ``spec`` is then
        a limit.
    threshold : Threshold or None
        What decision thresholds are chosen for, if any.
    classes : ndarray or None
        All classes, where the rows are a batch of more.
    """

    spec: MapSpec
    settings: SolverSettings
    class_weight: Any
    threads: int
    memory_limit: int
    time_limit: float | None
    checkpoint: Any
    parameters: dict[str, Any]
    show: bool
    calibration: str | None = None
    backend: Backend = LOCAL
    gram: str = "exact"
    openings: Openings | None = None
    auto_centers: bool = False
    threshold: Threshold | None = None
    classes: Any = None

    @property
    def held_out(self) -> bool:
        """Whether scores of rows held out are needed, which take a model without each fold."""
        return self.calibration is not None or self.threshold is not None


def check_solver_parameters(estimator: Any) -> None:
    """Check the parameters that can be checked before data are read."""
    check_choice("solver", estimator.solver, SOLVERS)
    check_choice("gram", estimator.gram, GRAMS)
    check_choice("loss", estimator.loss, ("auto", *LOSSES))
    solver, loss = solver_and_loss(estimator)
    if solver in ("newton", "lbfgs") and estimator.gram == "sampled":
        raise ValueError(
            f"gram='sampled' cannot go with solver='{solver}'. Use gram='exact' or 'auto', or "
            "solver='paper' or 'converged'."
        )
    if solver == "lbfgs" and not LOSSES[loss].smooth:
        raise ValueError(
            f"solver='lbfgs' needs a smooth loss; got loss='{loss}'. Use loss='logistic', or "
            "solver='paper', 'converged' or 'newton'."
        )
    check_solver_numbers(estimator)
    if estimator.rho is not None and estimator.rho != "auto":
        check_real("rho", estimator.rho, positive=False, most=MAX_PARAMETER)
    if estimator.max_iter is not None:
        check_integer("max_iter", estimator.max_iter)
    check_choice("calibration", estimator.calibration, (*CALIBRATIONS, None))
    check_threshold(estimator.threshold)
    for name in ("calibration", "threshold"):
        if getattr(estimator, name) is not None and estimator.warm_start:
            raise ValueError(
                f"warm_start=True cannot go with {name}: the models without a fold would start "
                "from one that has seen it. Drop one of the two."
            )


def check_initial_point(estimator: Any) -> None:
    """Check that the parameters go with an initial point of Algorithm 1."""
    wanted = {"gram": "exact", "engine": "local", "calibration": None, "warm_start": False}
    wanted["threshold"] = None
    found = {name: getattr(estimator, name) for name in wanted} | {
        "solver": solver_and_loss(estimator)[0]
    }
    for name, value in ({"solver": "paper"} | wanted).items():
        if not isinstance(found[name], str | bool | None) or found[name] != value:
            raise ValueError(
                f"initial_point needs {name}={value!r}: it is the (u0, v0, w0) of Algorithm 1, "
                f"with a value for each row at hand; got {name}={found[name]!r}."
            )


def check_solver_numbers(estimator: Any, *, class_weight: bool = True) -> None:
    """Check the parameters that a classifier and a search share, with or without class weights."""
    if estimator.alpha is not None:
        check_real("alpha", estimator.alpha, positive=True, most=MAX_PARAMETER)
    if estimator.beta is not None:
        least = 1.0 / MAX_PARAMETER
        check_real("beta", estimator.beta, positive=True, least=least, most=MAX_PARAMETER)
    for name, positive in (("tol", False), ("time_limit", True)):
        value = getattr(estimator, name)
        if value is not None:
            check_real(name, value, positive=positive)
    if class_weight:
        check_class_weight(estimator.class_weight)
    check_n_jobs(estimator.n_jobs)
    check_engine(estimator.engine)


def check_class_weight(value: Any) -> None:
    """Raise ValueError unless these are weights of classes."""
    if value is not None and not isinstance(value, dict):
        check_choice("class_weight", value, ("balanced", None))


def solver_settings(estimator: Any, dtype: Any, centers: int = 0) -> SolverSettings:
    """Return the solver's settings for rows of this dtype.

    How many centers there may be decides which solver goes to the "minimum".
    """
    alpha, beta, rho = estimator.alpha, estimator.beta, estimator.rho
    automatic = isinstance(rho, str) and alpha is None and beta is None
    rho = None if isinstance(rho, str) else rho
    alpha = 1.0 if alpha is None else alpha
    solver, loss = solver_and_loss(estimator)
    if solver == "minimum":
        few = centers <= MAX_NEWTON_CENTERS
        solver = "newton" if few and estimator.gram != "sampled" else "converged"
    given = {name: getattr(estimator, name) for name in ("max_iter", "tol")}
    own = {name: value for name, value in given.items() if value is not None}
    own["loss"] = LOSSES[loss]
    ridge = Ridge(automatic=True)
    if solver == "lbfgs":
        return LbfgsSettings(ridge if automatic else Ridge(None, rho, alpha), **own)
    if solver == "paper":
        beta = 1.0 if beta is None else beta
        if not automatic:
            ridge = Ridge(alpha / beta) if rho is None else Ridge(relative_rho=rho)
        return AdmmSettings(beta=beta, ridge=ridge, **own)
    # At a minimum rho is a penalty, too; of the paper's loss only where it is chosen.
    own["penalised"] = automatic or loss != HINGE.name
    if solver == "newton":
        return NewtonSettings(ridge if automatic else Ridge(None, rho, alpha), **own)
    multiple = alpha * (1.0 if dtype == np.float64 else FLOAT32_FLOOR_MULTIPLE)
    return ConvergedSettings(
        beta=beta, ridge=ridge if automatic else Ridge(None, rho, multiple), **own
    )


def seed_of(estimator: Any) -> int:
    """Return the seed: that of ``random_state``, or the one stored in a checkpoint."""
    stored = None
    if estimator.random_state is None:
        stored = stored_seed(estimator.checkpoint)
    return check_seed(estimator.random_state) if stored is None else stored


def check_engine(engine: Any) -> None:
    """Raise ValueError unless ``engine`` is the name of an engine, or one itself."""
    is_object = hasattr(engine, "open") and not isinstance(engine, type)
    if not (engine in ENGINES if isinstance(engine, str) else is_object):
        raise ValueError(
            f"engine must be {' or '.join(map(repr, ENGINES))}, or an engine such as "
            f"polysift.RayCluster(); got {engine!r}."
        )


def backend_of(engine: Any, *, preview: bool = False) -> Backend:
    """Return the backend that the parameter ``engine`` asks for.

    ``preview`` says that it serves to plan: an engine with ``preview()`` need not start anything.
    """
    check_engine(engine)
    if engine == "local":
        return LOCAL
    if engine == "ray":
        from polysift.cluster.ray_cluster import RayCluster

        engine = RayCluster()
    factory: BackendFactory = engine
    return engine.preview() if preview and hasattr(engine, "preview") else factory.open()


def job_of(estimator: Any, source: DataSource, seed: int | None, *, preview: bool = False) -> Job:
    """Return the job of fitting an estimator to a source; by default with ``seed_of``.

    ``preview`` says that it is planned and not done.
    """
    if seed is None:
        seed = seed_of(estimator)
    spec, openings = open_map_spec(estimator, source, seed)
    parameters = {name: repr(getattr(estimator, name)) for name in MODEL_PARAMETERS}
    given = None if isinstance(spec.centers, str) else digest(spec.centers)
    parameters["centers"] = str(given or spec.centers)
    return Job(
        spec=spec,
        settings=solver_settings(estimator, source.dtype, spec.resolve(source.n_features)[1]),
        class_weight=estimator.class_weight,
        threads=usable_jobs(estimator.n_jobs),
        memory_limit=parse_memory_limit(estimator.memory_limit),
        time_limit=estimator.time_limit,
        checkpoint=estimator.checkpoint,
        parameters=parameters,
        show=bool(estimator.verbose),
        calibration=estimator.calibration,
        backend=backend_of(estimator.engine, preview=preview),
        gram=estimator.gram,
        openings=openings,
        auto_centers=given is None and check_n_centers(estimator.n_centers) is None,
        threshold=check_threshold(estimator.threshold),
    )


def warn_about(estimator: Any, result: Result, stacklevel: int) -> None:
    """Issue the warnings of a fit; else only a checkpoint that cannot be written warns."""
    if result.rho_raised:
        least = RHO_FLOOR * np.finfo(float).eps * estimator.n_centers_
        warnings.warn(
            f"alpha / beta was raised to rho_ = {result.rho:.3g}: anything smaller drowns in "
            "the rounding errors of the Gram matrix. The model is sound, but its steps are not "
            "exactly those of the alpha you asked for. To choose the ratio yourself, set "
            f"rho={1.5 * least:.0e} or more; to need none, lower degree or n_centers.",
            LinAlgWarning,
            stacklevel=stacklevel,
        )
    remedy = "Fit again with warm_start=True to continue."
    if estimator.checkpoint is not None:
        remedy = "Fit again with the same checkpoint to continue."
    if result.status is Status.INTERRUPTED:
        warnings.warn(
            f"The fit was interrupted after {result.n_iter} iterations; the latest model is "
            f"kept. {remedy}",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )
    if result.shortfall and result.status is Status.MAX_ITER:
        warnings.warn(
            f"solver='{estimator.solver}' stopped at max_iter={result.n_iter} "
            f"{result.shortfall}. Raise max_iter, or tol if the model is good enough.",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )
