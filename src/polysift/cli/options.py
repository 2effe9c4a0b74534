"""The groups of options that commands share: models, solvers, engines, searches."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from polysift.cli.console import WrongUsage
from polysift.cli.option_types import (
    centers,
    class_weight,
    count_or_share,
    duration,
    memory,
    ratio_or_word,
    threshold,
    values,
    whole_or_auto,
)
from polysift.solvers.names import SOLVERS

if TYPE_CHECKING:
    SolverName = str
else:
    SolverName = Literal[SOLVERS]

DATA, MODEL, BUDGET, OUTPUT = "Data", "Model", "Budget", "Output"
"""The panels of the help."""


def option(panel: str, text: str, default: str | None = None, *names: str, **more: Any) -> Any:
    """Return an option of a panel; ``default`` describes its default value."""
    shown: Any = False if default is None else default
    return typer.Option(*names, help=text, show_default=shown, rich_help_panel=panel, **more)


@dataclass
class SolverOptions:
    """The options that a fit and a search share."""

    alpha: Annotated[float | None, option(MODEL, "Weight of the proximal term.", "1.0")] = None
    beta: Annotated[
        float | None,
        option(MODEL, "Augmented Lagrangian parameter.", "1, or 0.1/m for converged"),
    ] = None
    tol: Annotated[float | None, option(MODEL, "When to stop.", "5e-4, or 1e-3 for converged")] = (
        None
    )
    centers: Annotated[
        Any,
        option(
            MODEL,
            "Where centers come from: auto, uniform, first, random, or points in an .npy file.",
            "auto",
            parser=centers,
            metavar="NAME|FILE",
        ),
    ] = None
    max_levels: Annotated[
        int | None,
        option(MODEL, "Levels of a category that get a coordinate each.", "100", min=1),
    ] = None
    class_weight: Annotated[
        Any,
        option(
            MODEL,
            "Weights of the classes: balanced, or yes=2,no=1.",
            parser=class_weight,
            metavar="balanced|a=2,b=1",
        ),
    ] = None
    calibration: Annotated[
        Literal["sigmoid", "isotonic"] | None,
        option(MODEL, "How scores become probabilities.", "by the logistic loss"),
    ] = None
    threshold: Annotated[
        Any,
        option(
            MODEL,
            "What classes are chosen for: accuracy, f1, balanced, or costs such as 0,1;5,0.",
            "the highest score",
            parser=threshold,
            metavar="WORD|COSTS",
        ),
    ] = None
    random_state: Annotated[
        int | None, option(MODEL, "Seed of the centers.", "drawn anew", "--seed", min=0)
    ] = None
    n_jobs: Annotated[
        int | None, option(BUDGET, "Threads.", "all cores", "--jobs", "--n-jobs", "-j")
    ] = None
    memory_limit: Annotated[
        Any,
        option(
            BUDGET,
            "Memory beside the input: 2GB, bytes, or a share of what is free.",
            "half of what is free",
            parser=memory,
            metavar="SIZE",
        ),
    ] = None
    time_limit: Annotated[
        Any,
        option(
            BUDGET,
            "Seconds (or 10m, 2h) after which the fit stops with its latest model.",
            parser=duration,
            metavar="TIME",
        ),
    ] = None
    checkpoint: Annotated[
        Path | None,
        option(BUDGET, "Folder in which the state is saved; the same command continues from it."),
    ] = None


@dataclass
class EngineOptions:
    """The options of the engine."""

    engine: Annotated[
        Literal["local", "ray"] | None,
        option(
            BUDGET, "The engine: threads of this machine, or the workers of a Ray cluster.", "local"
        ),
    ] = None
    address: Annotated[
        str | None,
        option(BUDGET, "Ray: the cluster.", "the one that runs here, else a new one"),
    ] = None
    workers: Annotated[
        int | None, option(BUDGET, "Ray: tasks at a time.", "all its CPUs", min=1)
    ] = None
    cpus: Annotated[int | None, option(BUDGET, "Ray: CPUs of a task.", "1", min=1)] = None

    def parameters(self) -> dict[str, Any]:
        """Return the engine as a parameter, if an option names one."""
        if self.engine == "ray":
            from polysift.cluster.ray_cluster import RayCluster

            return {"engine": RayCluster(self.address, self.workers, cpus=self.cpus or 1)}
        for name in ("address", "workers", "cpus"):
            if getattr(self, name) is not None:
                raise WrongUsage(f"--{name} goes with --engine ray.")
        return {} if self.engine is None else {"engine": self.engine}


@dataclass
class ModelOptions:
    """The options of a fit alone."""

    kernel: Annotated[
        Literal["auto", "polynomial", "spline"] | None,
        option(MODEL, "Kernel: of numbers, or also of their ranks.", "auto"),
    ] = None
    degree: Annotated[
        Any, option(MODEL, "Degree of the kernel.", "auto", parser=whole_or_auto, metavar="N|auto")
    ] = None
    n_centers: Annotated[
        Any, option(MODEL, "Number of centers.", "auto", parser=whole_or_auto, metavar="N|auto")
    ] = None
    scaler: Annotated[
        Literal["auto", "minmax", "symmetric", "standard", "quantile", "none"] | None,
        option(MODEL, "How columns are scaled.", "auto"),
    ] = None
    solver: Annotated[SolverName | None, option(MODEL, "Solver.", "auto")] = None
    loss: Annotated[
        Literal["auto", "hinge", "logistic", "squared_hinge"] | None,
        option(MODEL, "What is minimised; logistic gives probabilities.", "auto"),
    ] = None
    rho: Annotated[
        Any,
        option(
            MODEL,
            "alpha / beta relative to trace(G) / n; none is by alpha and beta.",
            "auto, where neither alpha nor beta is given",
            parser=ratio_or_word,
            metavar="RATIO|auto|none",
        ),
    ] = None
    max_iter: Annotated[
        int | None,
        option(MODEL, "Maximum number of iterations.", "5; 300 for converged, newton", min=1),
    ] = None
    gram: Annotated[
        Literal["exact", "sampled", "auto"] | None,
        option(MODEL, "Gram matrix of all rows, or of a sample of them.", "exact"),
    ] = None


@dataclass
class SearchOptions:
    """The options of a search alone; lists are separated by commas."""

    degrees: Annotated[
        Any, option(MODEL, "Degrees: auto, paper, or 1,2,3.", "auto", parser=values, metavar="LIST")
    ] = None
    n_centers: Annotated[
        Any,
        option(
            MODEL, "Numbers of centers: auto, or 100,400.", "auto", parser=values, metavar="LIST"
        ),
    ] = None
    scalers: Annotated[Any, option(MODEL, "Scalers.", "auto", parser=values, metavar="LIST")] = None
    kernels: Annotated[
        Any, option(MODEL, "Kernels: polynomial,spline.", "auto", parser=values, metavar="LIST")
    ] = None
    rhos: Annotated[
        Any, option(MODEL, "Ratios rho.", "around auto", parser=values, metavar="LIST")
    ] = None
    solvers: Annotated[Any, option(MODEL, "Solvers.", "auto", parser=values, metavar="LIST")] = None
    losses: Annotated[Any, option(MODEL, "Losses.", "auto", parser=values, metavar="LIST")] = None
    max_iter: Annotated[
        Any, option(MODEL, "Iterations to evaluate at.", "auto", parser=values, metavar="LIST")
    ] = None
    effort: Annotated[
        Literal["normal", "high"] | None,
        option(BUDGET, "How much is tried where nothing is given.", "normal"),
    ] = None
    cv: Annotated[
        Any,
        option(
            MODEL, "Folds, or a share to validate on.", "5", parser=count_or_share, metavar="N|0.25"
        ),
    ] = None
    scoring: Annotated[str | None, option(MODEL, "scikit-learn's name of a score.", "accuracy")] = (
        None
    )
    one_standard_error: Annotated[
        bool,
        option(
            MODEL,
            "Take the smallest model within one standard error of the best.",
            None,
            "--one-standard-error",
        ),
    ] = False
    screen: Annotated[
        bool, option(MODEL, "Whether candidates with low scores stop early.", "screen")
    ] = True


def given(*groups: Any) -> dict[str, Any]:
    """Return the options that were given, by the names of parameters."""
    pairs = ((item.name, getattr(group, item.name)) for group in groups for item in fields(group))
    chosen = {name: value for name, value in pairs if value is not None}
    return {name: None if str(value) == "none" else value for name, value in chosen.items()}
