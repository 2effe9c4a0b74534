"""``polysift fit`` and ``polysift tune``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polysift.cli.console import (
    NOTHING_WRITTEN,
    WrongUsage,
    as_usage,
    guarded,
    say,
    show_facts,
    show_json,
    show_table,
)
from polysift.cli.data_options import LabelOptions, ReadingOptions
from polysift.cli.option_types import grouped, label_of
from polysift.cli.options import (
    BUDGET,
    DATA,
    MODEL,
    OUTPUT,
    EngineOptions,
    ModelOptions,
    SearchOptions,
    SolverOptions,
    given,
    option,
)
from polysift.cli.outputs import Output, shown_command

if TYPE_CHECKING:
    from polysift import DataSource, Forecast, FPCClassifier, FPCClassifierCV
    from polysift.training.evaluation import Evaluation

HELD_OUT = "held out"
"""The name of rows that --holdout keeps out of the training."""

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="Parquet, CSV, JSON lines, ORC, Arrow: a file, a folder or a glob; Excel, libsvm, "
        "npy, npz; sqlite:///x.db?table=t, duckdb:///...",
    ),
]
DryRun = Annotated[
    bool,
    option(BUDGET, "Print the forecast of time and memory, and stop.", None, "--dry-run"),
]
Validation = Annotated[str | None, option(DATA, "A file to evaluate on, beside the training data.")]
Holdout = Annotated[
    float | None,
    option(
        DATA,
        "The share of rows to hold out of the training, and to evaluate on.",
        min=0.0,
        max=1.0,
        metavar="SHARE",
    ),
]


@guarded
@grouped
def fit(
    data: Data,
    labels: LabelOptions,
    reading: ReadingOptions,
    model: ModelOptions,
    solver: SolverOptions,
    engine: EngineOptions,
    output: Output,
    validation: Validation = None,
    holdout: Holdout = None,
    warm_start: Annotated[
        Path | None, option(MODEL, "A model file to continue from, with its parameters.")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Train a classifier, and save it."""
    from polysift.training.job import check_solver_parameters

    estimator = _classifier(given(model, solver) | engine.parameters(), warm_start)
    estimator.set_params(verbose=0 if output.quiet else 1)
    with as_usage():
        check_solver_parameters(estimator)
    if not dry_run:
        output.check(data, validation)
    source = labels.open(data, reading, quiet=output.quiet)
    if dry_run:
        _set_class_weight(estimator, source)
        _show_forecast(estimator.plan(source, show=False), output)
        return
    _set_class_weight(estimator, source)
    evaluated = _evaluation_data(data, source, validation, labels, reading, output)
    if holdout is not None:
        source, evaluated = _parts(source, holdout, validation, estimator)
    forecast = estimator.plan(source, show=False) if output.report else None
    _train(estimator, source)
    _finish(estimator, evaluated, forecast, output)


@guarded
@grouped
def tune(
    data: Data,
    labels: LabelOptions,
    reading: ReadingOptions,
    candidates: SearchOptions,
    solver: SolverOptions,
    engine: EngineOptions,
    output: Output,
    validation: Validation = None,
    holdout: Holdout = None,
    top: Annotated[int, option(OUTPUT, "How many candidates to list.", "10", min=0)] = 10,
    dry_run: DryRun = False,
) -> None:
    """Choose all parameters by cross-validation, train, and save the model."""
    from polysift import FPCClassifierCV
    from polysift.selection.job import check_search_parameters

    parameters = given(candidates, solver) | engine.parameters()
    search = FPCClassifierCV(**parameters, verbose=0 if output.quiet else 1)
    with as_usage():
        check_search_parameters(search)
    if not dry_run:
        output.check(data, validation)
    source = labels.open(data, reading, quiet=output.quiet)
    _set_class_weight(search, source)
    if dry_run:
        _show_forecast(search.plan(source, show=False), output)
        return
    evaluated = _evaluation_data(data, source, validation, labels, reading, output)
    if holdout is not None:
        source, evaluated = _parts(source, holdout, validation, search)
    early = EarlyModels(output)
    with early.kept_for(search):
        _train(search, source, early)
    _finish(search, evaluated, None, early.replaced(), top=top)


def _classifier(parameters: dict[str, Any], warm_start: Path | None) -> FPCClassifier:
    """Return the classifier to fit: a new one, or a loaded one."""
    from polysift import FPCClassifier, load
    from polysift.estimators.search import classifier_of

    if warm_start is None:
        return FPCClassifier(**parameters)
    model = classifier_of("--warm-start needs", load(warm_start))
    # Its checkpoint is that of the fit it came from.
    return model.set_params(**{"checkpoint": None} | parameters, warm_start=True)


def _evaluation_data(
    data: str,
    source: DataSource,
    validation: str | None,
    labels: LabelOptions,
    reading: ReadingOptions,
    output: Output,
) -> dict[str, DataSource]:
    """Return the sources to evaluate on, opened before the fit, so that errors come early."""
    from polysift.data.locations import identity, public_name

    if validation is None:
        return {"training": source} if output.report else {}
    if identity(validation) == identity(data):
        raise WrongUsage(f"--validation is the training data itself: {public_name(data)}.")
    other = labels.open(validation, reading, quiet=output.quiet, like=source)
    kinds = {_label_kind(opened) in "biuf" for opened in (source, other)}
    if len(kinds) > 1:
        raise ValueError(
            f"The labels of {public_name(data)} and {public_name(validation)} are numbers here "
            "and text there; they can never be equal."
        )
    return {"training": source, "validation": other}


def _parts(
    source: DataSource, share: float, validation: str | None, estimator: Any
) -> tuple[DataSource, dict[str, DataSource]]:
    """Return the rows to fit to, and the two parts of the rows to evaluate on."""
    from polysift.runtime.parameters import check_seed
    from polysift.training.holdout import held_out_parts

    if validation is not None:
        raise WrongUsage("--holdout and --validation both say on which rows to evaluate.")
    estimator.set_params(random_state=check_seed(estimator.random_state))
    try:
        training, held_out = held_out_parts(source, share, estimator.random_state)
    except ValueError as error:
        raise WrongUsage(str(error).replace("holdout", "--holdout", 1)) from None
    return training, {"training": training, HELD_OUT: held_out}


def _label_kind(source: DataSource) -> str:
    """Return numpy's kind of the labels in the first rows."""
    part = next(source.stream(source.shards()[:1]))
    return source.labels(part).dtype.kind


def _set_class_weight(estimator: Any, source: DataSource) -> None:
    """Convert the labels in ``class_weight``, which are text, to the type of the data's labels."""
    if isinstance(estimator.class_weight, dict):
        kind = _label_kind(source)
        typed = {label_of(str(key), kind): x for key, x in estimator.class_weight.items()}
        estimator.set_params(class_weight=typed)


class EarlyModels:
    """Saves the best model so far of a search, so that one is there if the process is killed.

    The first, of a few rows, comes at once.
    A file that was there before stays as it is until the search is done. An error removes the early
    model again.

    Parameters
    ----------
    output : Output
        Where the model of the search will be saved.
    """

    def __init__(self, output: Output) -> None:
        self._output, self._wanted = output, not output.output.exists()
        self.saved = False

    @contextmanager
    def kept_for(self, search: Any) -> Iterator[None]:
        """Save the models of a search that is fitted inside."""
        if not self._wanted:
            yield
            return
        search._keep_early = self._save
        try:
            yield
        except Exception:
            if self.saved:
                self._output.output.unlink(missing_ok=True)
            raise
        finally:
            del search._keep_early

    def _save(self, search: Any) -> None:
        from polysift import save

        with suppress(OSError):  # the model of the search is not lost with it
            save(search.set_params(verbose=0), self._output.output, overwrite=self.saved)
            if not (self.saved or self._output.quiet):
                rows = f"{search.n_refit_rows_:,} rows"
                where = f"is in {self._output.output}; better ones replace it as they come."
                say("polysift", f"a first model, of {rows}, {where}", "dim")
            self.saved = True

    def replaced(self) -> Output:
        """Return the output, to be replaced if there is an early model."""
        return replace(self._output, force=self._output.force or self.saved)


def _train(
    estimator: FPCClassifier | FPCClassifierCV,
    source: DataSource,
    early: EarlyModels | None = None,
) -> None:
    try:
        estimator.fit(source)
    except KeyboardInterrupt:
        kept = NOTHING_WRITTEN
        if early is not None and early.saved:
            kept = "the best model so far is saved, of a sample of the rows."
        if estimator.checkpoint is not None:
            kept = f"{estimator.checkpoint} has the state; the same command continues from it."
        raise KeyboardInterrupt(kept) from None


def _finish(
    estimator: FPCClassifier | FPCClassifierCV,
    evaluated: dict[str, DataSource],
    forecast: Forecast | None,
    output: Output,
    *,
    top: int = 0,
) -> None:
    """Save the model, evaluate it, and print the result."""
    from polysift import report
    from polysift.cli.descriptions import candidates_table, training_facts
    from polysift.reporting.report import explained
    from polysift.training.holdout import PartSource

    quiet = estimator.get_params()["verbose"] == 0
    model: Any = getattr(estimator, "best_estimator_", estimator)
    if isinstance(training := evaluated.get("training"), PartSource):
        model.training_summary_["rows"] = training.n_kept
    _save(estimator.set_params(verbose=0), output)
    model.set_params(verbose=0 if quiet else 1)
    if estimator.status_ == "interrupted":
        raise KeyboardInterrupt(
            f"the latest model is in {output.output}.{_how_to_continue(estimator)}"
        )
    kept = f"The model is saved in {output.output}."
    try:
        figures = _evaluated(model, evaluated)
        if output.report is not None:
            report(
                estimator,
                figures,
                output.report,
                forecast=forecast,
                command=_command(estimator),
                explanation=explained(model, (list(evaluated.values())[-1],)),
                overwrite=output.force,
            )
    except KeyboardInterrupt:
        raise KeyboardInterrupt(kept) from None
    except Exception as error:
        error.add_note(kept)
        raise
    if output.json:
        show_json(_result(estimator, figures, output))
    elif not output.quiet:
        show_facts([("saved in", str(output.output)), *training_facts(estimator)])
        if top and estimator is not model:
            show_table(*candidates_table(estimator, top))
        _show_quality(estimator, figures)
        if output.report is not None:
            show_facts([("report", str(output.report))])


def _evaluated(model: Any, evaluated: dict[str, DataSource]) -> dict[str, Evaluation]:
    """Return the figures of rows, those of rows that were not seen last.

    The training rows alone are not read once more where the fit has held-out figures.
    """
    from polysift.estimators.headline import held_out_evaluation
    from polysift.reporting.evaluation import evaluate
    from polysift.training.holdout import PartSource

    known = held_out_evaluation(model)
    if [*evaluated] == ["training"] and known is not None:
        return dict([known])
    figures = {name: evaluate(model, data) for name, data in evaluated.items()}
    for name, data in evaluated.items():
        if isinstance(data, PartSource):
            figures[name] = replace(figures[name], rows=data.n_kept)
    return figures


def _show_quality(estimator: Any, figures: dict[str, Evaluation]) -> None:
    """Print how good a model is on rows that it has not seen."""
    from polysift.cli.descriptions import given_headline, headline_table, unknown_quality
    from polysift.estimators.headline import headline

    names = [name for name in figures if name in ("validation", HELD_OUT)]
    if names:
        rows = figures[names[-1]].rows
        what = "of the validation file" if names[-1] == "validation" else "not used in training"
        given = given_headline(figures, estimator, f"{rows:,} rows {what}")
        show_table(*headline_table(given))
        unknown = figures[names[-1]].unknown
        if unknown:
            show_facts([("left out", f"{unknown:,} rows whose label is not a class of the model")])
    elif (found := headline(estimator)) is not None:
        show_table(*headline_table(found))
    else:
        show_facts(unknown_quality(estimator))


def _save(estimator: Any, output: Output) -> None:
    """Save a model; if the file exists meanwhile, or the disk is full, to a temporary folder."""
    from tempfile import mkdtemp

    from polysift import save

    try:
        save(estimator, output.output, overwrite=output.force)
    except OSError as error:
        elsewhere = Path(mkdtemp(prefix="polysift-")) / output.output.name
        save(estimator, elsewhere)
        why = error.strerror or str(error)
        raise OSError(
            f"{output.output}: {why} The model is saved in {elsewhere} instead."
        ) from error


def _command(estimator: Any) -> str:
    """Return the command that reproduces this model: with its seed, where that was drawn."""
    words = sys.argv[1:]
    if estimator.random_state is None:
        end = words.index("--") if "--" in words else len(words)
        words[end:end] = ["--seed", str(estimator.random_state_)]
    return shown_command(words)


def _how_to_continue(estimator: Any) -> str:
    if estimator.checkpoint is not None:
        return " The same command, with --force, continues."
    return " Continue with fit --warm-start." if hasattr(estimator, "warm_start") else ""


def _result(estimator: Any, figures: dict[str, Any], output: Output) -> dict[str, Any]:
    """Return the result as plain values."""
    from polysift.cli.descriptions import describe

    scores = {name: figure.to_dict() for name, figure in figures.items()}
    return {
        "model": output.output,
        "report": output.report,
        **describe(estimator),
        **scores,
    }


def _show_forecast(forecast: Forecast, output: Output) -> None:
    from dataclasses import asdict

    if output.json:
        show_json(asdict(forecast))
    else:
        print(forecast, flush=True)
