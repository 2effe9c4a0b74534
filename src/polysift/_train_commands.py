"""``polysift fit`` and ``polysift tune``."""

from __future__ import annotations

import sys
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polysift._console import (
    NOTHING_WRITTEN,
    WrongUsage,
    as_usage,
    guarded,
    show_facts,
    show_json,
    show_table,
)
from polysift._option_groups import grouped
from polysift._options import (
    BUDGET,
    DATA,
    MODEL,
    OUTPUT,
    Candidates,
    Labels,
    Model,
    Output,
    Reading,
    Solver,
    given,
    option,
)

if TYPE_CHECKING:
    from polysift import DataSource, Forecast, FPCClassifier, FPCClassifierCV

Data = Annotated[
    str,
    typer.Argument(metavar="DATA", help="Parquet (also a folder or glob), CSV, libsvm, npy, ..."),
]
Validation = Annotated[str | None, option(DATA, "A file to judge by, beside the training data.")]


@guarded
@grouped
def fit(
    data: Data,
    labels: Labels,
    reading: Reading,
    model: Model,
    solver: Solver,
    output: Output,
    validation: Validation = None,
    warm_start: Annotated[
        Path | None, option(MODEL, "A model file to go on from, with its parameters.")
    ] = None,
    dry_run: Annotated[
        bool,
        option(BUDGET, "Print what it would cost (the forecast), and stop.", None, "--dry-run"),
    ] = False,
) -> None:
    """Train a classifier, and save it."""
    from polysift._job import check_solver_parameters

    estimator = _classifier(given(model, solver), warm_start)
    estimator.set_params(verbose=0 if output.quiet else 1)
    with as_usage():
        check_solver_parameters(estimator)
    if not dry_run:
        output.check()
    source = labels.open(data, reading, quiet=output.quiet)
    if dry_run:
        _show_forecast(estimator.plan(source, show=False), output)
        return
    judges = _judges(data, source, validation, labels, reading, output)
    forecast = estimator.plan(source, show=False) if output.report else None
    _train(estimator, source)
    _finish(estimator, judges, forecast, output)


@guarded
@grouped
def tune(
    data: Data,
    labels: Labels,
    reading: Reading,
    candidates: Candidates,
    solver: Solver,
    output: Output,
    validation: Validation = None,
    top: Annotated[int, option(OUTPUT, "How many candidates to list.", "10", min=0)] = 10,
) -> None:
    """Choose all parameters by cross-validation, train, and save the model."""
    from polysift import FPCClassifierCV
    from polysift._search_job import check_search_parameters

    search = FPCClassifierCV(**given(candidates, solver), verbose=0 if output.quiet else 1)
    with as_usage():
        check_search_parameters(search)
    output.check()
    source = labels.open(data, reading, quiet=output.quiet)
    judges = _judges(data, source, validation, labels, reading, output)
    _train(search, source)
    _finish(search, judges, None, output, top=top)


def _classifier(parameters: dict[str, Any], warm_start: Path | None) -> FPCClassifier:
    """Return the classifier to fit: a new one, or one that goes on."""
    from polysift import FPCClassifier, load

    if warm_start is None:
        return FPCClassifier(**parameters)
    model = load(warm_start)
    model = model if isinstance(model, FPCClassifier) else model.best_estimator_
    return model.set_params(**parameters, warm_start=True)


def _judges(
    data: str,
    source: DataSource,
    validation: str | None,
    labels: Labels,
    reading: Reading,
    output: Output,
) -> dict[str, DataSource]:
    """Return what to judge the model by, opened before the work: a mistake there costs nothing."""
    if validation is None:
        return {"training": source} if output.report else {}
    if Path(validation).resolve() == Path(data).resolve():
        raise WrongUsage(f"--validation is the training data itself: {data}.")
    other = labels.open(validation, reading, quiet=output.quiet, names=source.names)
    return {"training": source, "validation": other}


def _train(estimator: FPCClassifier | FPCClassifierCV, source: DataSource) -> None:
    try:
        estimator.fit(source)
    except KeyboardInterrupt:
        kept = NOTHING_WRITTEN
        if estimator.checkpoint is not None:
            kept = f"{estimator.checkpoint} keeps what is done; the same command goes on."
        raise KeyboardInterrupt(kept) from None


def _finish(
    estimator: FPCClassifier | FPCClassifierCV,
    judges: dict[str, DataSource],
    forecast: Forecast | None,
    output: Output,
    *,
    top: int = 0,
) -> None:
    """Save the model, judge it, and show what came out."""
    from polysift import report, save
    from polysift._descriptions import candidates_table, figures_table, training_facts
    from polysift._evaluation import evaluate

    quiet = estimator.get_params()["verbose"] == 0
    save(estimator.set_params(verbose=0), output.output, overwrite=output.force)
    model: Any = getattr(estimator, "best_estimator_", estimator)
    model.set_params(verbose=0 if quiet else 1)
    if estimator.status_ == "interrupted":
        raise KeyboardInterrupt(
            f"the latest model is in {output.output}.{_how_to_go_on(estimator)}"
        )
    figures = {name: evaluate(model, judge) for name, judge in judges.items()}
    if output.report is not None:
        report(
            estimator,
            judges,
            output.report,
            forecast=forecast,
            command=join(["polysift", *sys.argv[1:]]),
            overwrite=output.force,
        )
    if output.json:
        show_json(_result(estimator, figures, output))
    elif not output.quiet:
        show_facts([("saved in", str(output.output)), *training_facts(estimator)])
        if top and estimator is not model:
            show_table(*candidates_table(estimator, top))
        if figures:
            show_table(*figures_table(figures))
        if output.report is not None:
            show_facts([("report", str(output.report))])


def _how_to_go_on(estimator: Any) -> str:
    if estimator.checkpoint is not None:
        return " The same command, with --force, goes on."
    return " Go on with fit --warm-start." if hasattr(estimator, "warm_start") else ""


def _result(estimator: Any, figures: dict[str, Any], output: Output) -> dict[str, Any]:
    """Return what came out, for machines."""
    from polysift._descriptions import describe

    judged = {name: figure.to_dict() for name, figure in figures.items()}
    return {
        "model": output.output,
        "report": output.report,
        **describe(estimator),
        **judged,
    }


def _show_forecast(forecast: Forecast, output: Output) -> None:
    from dataclasses import asdict

    if output.json:
        show_json(asdict(forecast))
    else:
        print(forecast)
