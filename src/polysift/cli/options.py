"""The groups of options that commands share: reading data, models, solvers, engines, searches."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from polysift.cli.console import WrongUsage, busy, show_notes
from polysift.cli.option_types import (
    centers,
    class_weight,
    column_types,
    count_or_share,
    delimiter,
    duration,
    items,
    memory,
    ratio_or_word,
    threshold,
    values,
    whole_or_auto,
)
from polysift.data.formats import FORMATS
from polysift.solvers.names import SOLVERS

if TYPE_CHECKING:
    from polysift import DataSource

    FormatName = str
    SolverName = str
else:
    FormatName = Literal[tuple(FORMATS)]  # what --format offers
    SolverName = Literal[SOLVERS]

DATA, MODEL, BUDGET, OUTPUT = "Data", "Model", "Budget", "Output"
"""The panels of the help."""


def option(panel: str, text: str, default: str | None = None, *names: str, **more: Any) -> Any:
    """Return an option of a panel; ``default`` describes its default value."""
    shown: Any = False if default is None else default
    return typer.Option(*names, help=text, show_default=shown, rich_help_panel=panel, **more)


@dataclass
class ReadingOptions:
    """How a file is read."""

    columns: Annotated[
        Any,
        option(
            DATA,
            "Features, by name or position: a,b,c.",
            "all others",
            parser=items,
            metavar="a,b,...",
        ),
    ] = None
    drop: Annotated[
        Any, option(DATA, "Columns that are not features: id,day.", parser=items, metavar="a,b,...")
    ] = None
    category: Annotated[
        Any,
        option(
            DATA,
            "Columns that hold categories, whatever they look like.",
            parser=items,
            metavar="a,b,...",
        ),
    ] = None
    numeric: Annotated[
        Any, option(DATA, "Columns that hold numbers.", parser=items, metavar="a,b,...")
    ] = None
    date: Annotated[
        Any, option(DATA, "Columns that hold dates.", parser=items, metavar="a,b,...")
    ] = None
    decimal_comma: Annotated[
        Any, option(DATA, "Columns in which 1,200 is 1.2.", parser=items, metavar="a,b,...")
    ] = None
    thousands_comma: Annotated[
        Any, option(DATA, "Columns in which 1,200 is 1200.", parser=items, metavar="a,b,...")
    ] = None
    missing: Annotated[
        Any,
        option(
            DATA,
            "Text: words that stand for a missing value: unknown,-999.",
            "NA, NaN, ?, ...",
            parser=items,
            metavar="a,b,...",
        ),
    ] = None
    format: Annotated[FormatName | None, option(DATA, "Format.", "by the file's ending")] = None
    header: Annotated[
        bool | None, option(DATA, "CSV: whether the first row names the columns.", "inferred")
    ] = None
    delimiter: Annotated[
        Any,
        option(
            DATA,
            "CSV: what separates fields: a character, or tab.",
            "inferred",
            parser=delimiter,
            metavar="CHARACTER",
        ),
    ] = None
    column_types: Annotated[
        Any,
        option(
            DATA,
            "CSV: types that are not inferred correctly: label=string.",
            parser=column_types,
            metavar="a=TYPE,...",
        ),
    ] = None
    n_features: Annotated[
        int | None, option(DATA, "libsvm: how many features there are.", "as in the file")
    ] = None

    def open(
        self,
        path: str,
        *,
        target: str | None = None,
        weight: str | None = None,
        like: Any = None,
        quiet: bool = True,
    ) -> DataSource:
        """Open a file.

        ``like`` is a model or a source, whose features are selected, where no option does that, and
        read in the same way.
        """
        from polysift.data.columns import Roles
        from polysift.data.formats import OpenOptions
        from polysift.data.locations import public_name
        from polysift.data.readers import has_names, open_with

        if not path:
            raise WrongUsage("The name of the data is empty.")
        if self.columns is not None and self.drop:
            raise WrongUsage(
                "--columns and --drop exclude each other: --columns lists the features."
            )
        columns, (names, known) = self.columns, _known_columns(like)
        if names is None or not has_names(path, self.format):
            known = {}
        elif columns is None and not self.drop:
            columns = names
        else:
            chosen = set(columns or ()) or {*names} - {*self.drop}
            known = {name: kind for name, kind in known.items() if name in chosen}
        options = OpenOptions(
            Roles(target, weight, columns, self.drop or ()),
            known | self._asked(),
            header=self.header,
            delimiter=self.delimiter,
            column_types=self.column_types,
            missing=tuple(self.missing or ()),
            n_features=self.n_features,
        )
        with busy(f"reading {public_name(path)}", quiet=quiet):
            source = open_with(path, options, format=self.format)
        if like is not None and not quiet:  # the notes on training data are facts of the model
            show_notes(source.notes)
        return source

    def _asked(self) -> dict[str, Any]:
        """Return the types of columns that options ask for."""
        from polysift.data.kinds import CATEGORY, DATE, NUMBER, asked_type

        given = {CATEGORY: self.category, NUMBER: self.numeric, DATE: self.date}
        given |= {"decimal comma": self.decimal_comma, "thousands comma": self.thousands_comma}
        asked: dict[str, Any] = {}
        for kind, columns in given.items():
            for column in columns or ():
                if column in asked:
                    raise WrongUsage(
                        f"Column {column!r} is named twice among --category, --numeric, --date, "
                        "--decimal-comma and --thousands-comma."
                    )
                asked[column] = asked_type(kind)
        return asked


def _known_columns(like: Any) -> tuple[list[str] | None, dict[Any, Any]]:
    """Return the names of the features of a model or a source, and what those in use hold."""
    from polysift.data.inputs import known_types
    from polysift.data.kinds import DROP, ColumnType
    from polysift.data.source import DataSource

    names = getattr(like, "names" if isinstance(like, DataSource) else "feature_names_in_", None)
    if names is None:
        return None, {}
    types = like.types if isinstance(like, DataSource) else known_types(like)
    named = zip(map(str, names), types or (), strict=False)
    return list(map(str, names)), {
        name: ColumnType(known.kind, True, known.reading)
        for name, known in named
        if known.kind != DROP
    }


@dataclass
class LabelOptions:
    """Which columns hold labels and weights."""

    target: Annotated[
        str | None,
        option(DATA, "Column of the labels, by name or position.", None, "--target", "-t"),
    ] = None
    weight: Annotated[str | None, option(DATA, "Column of the sample weights.")] = None

    def open(
        self,
        path: str,
        reading: ReadingOptions,
        *,
        quiet: bool,
        like: Any = None,
    ) -> DataSource:
        """Open a file that has labels; ``like`` as ``ReadingOptions.open`` takes it.

        A model knows the column of its labels, so that it need not be named again.
        """
        from polysift.data.locations import public_name
        from polysift.data.readers import has_names

        target = self.target
        if target is None and path and has_names(path, reading.format):
            target = getattr(like, "training_summary_", {}).get("label")
        source = reading.open(path, target=target, weight=self.weight, like=like, quiet=quiet)
        if not source.has_labels:
            known = like is None and source.names is not None
            have = f" Its columns are {', '.join(source.names or ())}." if known else ""
            raise WrongUsage(
                f"Name the column of the labels of {public_name(path)} with --target.{have}"
            )
        return source


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
        option(MODEL, "How scores become probabilities.", "no probabilities"),
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
