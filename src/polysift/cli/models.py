"""The commands that use a model file: ``predict``, ``evaluate``, ``inspect``, ``export``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from polysift.cli.console import (
    WrongUsage,
    guarded,
    say,
    show_facts,
    show_json,
    show_lines,
    show_table,
)
from polysift.cli.data_options import LabelOptions, ReadingOptions
from polysift.cli.option_types import grouped
from polysift.cli.options import (
    BUDGET,
    DATA,
    MODEL,
    OUTPUT,
    EngineOptions,
    option,
)
from polysift.cli.outputs import check_file, check_folder, shown_command

if TYPE_CHECKING:
    from polysift import DataSource, Explanation, FPCClassifier, FPCClassifierCV
    from polysift import Drift as Differences

ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model file, as fit and tune write it.")
]
Data = Annotated[str, typer.Argument(metavar="DATA", help="Rows, in any format that fit reads.")]
Jobs = Annotated[int | None, option(BUDGET, "Threads.", "all cores", "--jobs", "--n-jobs", "-j")]
Force = Annotated[bool, option(OUTPUT, "Replace what exists.", None, "--force", "-f")]
Json = Annotated[bool, option(OUTPUT, "Print the result as JSON.", None, "--json")]
Drift = Annotated[
    bool,
    option(OUTPUT, "Show how the rows differ from the training rows.", None, "--drift"),
]
Quiet = Annotated[
    bool, option(OUTPUT, "Print nothing but errors and warnings.", None, "--quiet", "-q")
]

MAX_JSON_TERMS = 100
"""How many pairs and terms an explanation in JSON has; there may be a hundred thousand."""

GLANCED_ROWS = 200_000
"""About how many rows are compared with the training rows, where nobody asks for it."""

INSPECTED_CANDIDATES = 10
"""How many candidates of a search ``inspect`` lists."""


@guarded
@grouped
def predict(
    model: ModelFile,
    data: Data,
    output: Annotated[
        str,
        option(
            OUTPUT,
            "Predictions: a .parquet or .csv file, or a folder of Parquet files.",
            None,
            "--output",
            "-o",
            metavar="PATH",
        ),
    ],
    reading: ReadingOptions,
    engine: EngineOptions,
    scores: Annotated[bool, option(OUTPUT, "Write scores, too.", None, "--scores")] = False,
    proba: Annotated[bool, option(OUTPUT, "Write probabilities, too.", None, "--proba")] = False,
    safe_csv: Annotated[
        bool,
        option(OUTPUT, "CSV: quote classes that a spreadsheet may execute.", None, "--safe-csv"),
    ] = False,
    drift: Drift = False,
    jobs: Jobs = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Write the class of each row to a file or a folder, in the order of the rows."""
    from polysift.estimators.prediction_files import is_folder

    where = {"engine": "local"} | engine.parameters()  # not that of the training
    if safe_csv and Path(output).suffix.lower() != ".csv":
        raise WrongUsage(f"--safe-csv goes with a .csv file; --output is {output}.")
    if is_folder(output):
        check_folder(output, force=force, inputs=(data, model))
    elif where["engine"] != "local":
        raise WrongUsage("--engine ray writes a folder of files; name one, without an ending.")
    else:
        check_file(Path(output), force=force, endings=(".parquet", ".csv"), inputs=(data, model))
    classifier = _ready(_load(model), jobs, quiet).set_params(**where)
    source = reading.open(data, like=classifier, quiet=quiet)
    wanted = {"scores": scores, "proba": proba, "safe_csv": safe_csv}
    classifier.predict_to(source, output, **wanted, overwrite=force)
    if not quiet:
        show_facts([("predictions", f"{output}, {source.n_rows:,} rows")])
    _show_drift(_drift(classifier, source, drift), shown=drift and not quiet)


@guarded
@grouped
def evaluate(
    model: ModelFile,
    data: Data,
    labels: LabelOptions,
    reading: ReadingOptions,
    report: Annotated[Path | None, option(OUTPUT, "An HTML report, such as report.html.")] = None,
    drift: Drift = False,
    jobs: Jobs = None,
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Evaluate a model on labelled rows."""
    from polysift import report as write_report
    from polysift.cli.descriptions import confusion_table, figures_table, headline_table
    from polysift.data.locations import public_name
    from polysift.estimators.headline import headline
    from polysift.reporting.evaluation import evaluate as compute
    from polysift.reporting.report import explained, is_training_file

    if report is not None:
        check_file(report, force=force, inputs=(data, model))
    loaded = _load(model)
    classifier = _ready(loaded, jobs, quiet)
    source = labels.open(data, reading, quiet=quiet, like=classifier)
    figures, shown = compute(classifier, source), Path(public_name(data)).name
    if report is not None:
        command = shown_command(sys.argv[1:])
        write_report(
            loaded,
            {shown: figures},
            report,
            command=command,
            explanation=explained(classifier, (source,)),
            overwrite=force,
        )
    differences = _drift(classifier, source, drift)
    if json:
        more = {"drift": differences.to_dict()} if drift else {}
        show_json({"model": model, "data": public_name(data), **figures.to_dict(), **more})
    elif not quiet:
        show_table(*figures_table({shown: figures}))
        show_table(*confusion_table(figures))
        if is_training_file(source, classifier.training_summary_):
            known = headline(loaded)
            show_lines(["The model was fitted to these rows: figures on others are worse."])
            if known is not None:
                show_table(*headline_table(known))
    _show_drift(differences, shown=drift and not (quiet or json))


@guarded
@grouped
def inspect(
    model: ModelFile,
    reading: ReadingOptions,
    explain: Annotated[
        bool, option(OUTPUT, "Show which features matter, and the polynomial.", None, "--explain")
    ] = False,
    rows: Annotated[
        str | None,
        option(
            DATA,
            "With --explain: representative rows to explain by.",
            "its centers",
            metavar="DATA",
        ),
    ] = None,
    max_monomials: Annotated[
        int,
        option(MODEL, "With --explain: how large a polynomial may be.", "100000", min=1),
    ] = 100_000,
    json: Json = False,
) -> None:
    """Show what a model file holds."""
    from polysift.cli.descriptions import (
        candidates_table,
        columns_table,
        describe,
        headline_table,
        model_facts,
        training_facts,
        unknown_quality,
    )
    from polysift.estimators.headline import headline
    from polysift.explanation.tables import notes_of, tables_of

    if rows is not None and not explain:
        raise WrongUsage("--rows goes with --explain.")
    loaded = _load(model)
    found = _explained(loaded, rows, reading, max_monomials) if explain else None
    if json:
        more = {} if found is None else {"explanation": found.to_dict(MAX_JSON_TERMS)}
        show_json({"model": model, **describe(loaded), **more})
        return
    show_facts([("file", str(model)), *training_facts(loaded), *model_facts(loaded)])
    if (known := headline(loaded)) is None:
        show_facts(unknown_quality(loaded))
    else:
        show_table(*headline_table(known))
    if (columns := columns_table(loaded)) is not None:
        show_table(*columns, words=(1, 4))
    if hasattr(loaded, "cv_results_"):
        show_table(*candidates_table(loaded, INSPECTED_CANDIDATES))
    if found is not None:
        for table in tables_of(found):
            show_table(*table)
        show_lines(notes_of(found))


@guarded
@grouped
def export(
    model: ModelFile,
    output: Annotated[
        Path, typer.Argument(metavar="OUTPUT", help="The file to write, model.onnx.")
    ],
    input_type: Annotated[
        Literal["float64", "float32"], option(OUTPUT, "What the graph is fed.", "float64")
    ] = "float64",
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Write a model as an ONNX graph, which runs without polysift."""
    from polysift import to_onnx
    from polysift.cli.descriptions import inputs_fact

    check_file(output, force=force, inputs=(model,))
    proto = to_onnx(_load(model), output, input_type=input_type, overwrite=force)
    if not quiet:
        size = f"{output}, {output.stat().st_size:,} bytes"
        show_facts([("exported", size), inputs_fact(proto)])


def _explained(loaded: Any, rows: str | None, reading: ReadingOptions, most: int) -> Explanation:
    from polysift import explain

    source = None
    if rows is not None:
        source = reading.open(rows, like=_ready(loaded, None, True))
    return explain(loaded, source, max_monomials=most)


def _drift(classifier: FPCClassifier, source: DataSource, whole: bool) -> Differences:
    """Compare rows with the training rows: all of them, or some that are spread over all."""
    from polysift import drift

    return drift(classifier, source, max_rows=None if whole else GLANCED_ROWS)


def _show_drift(found: Differences, *, shown: bool) -> None:
    """Print how rows differ from the training rows, or in a line that some differ much."""
    from polysift.reporting.drift import drift_notes, drift_table

    if shown:
        show_table(*drift_table(found))
        show_lines(drift_notes(found))
    elif found.sentences:
        say("Warning", f"{found.summary} --drift shows all columns.", "yellow")


def _load(path: Path) -> FPCClassifier | FPCClassifierCV:
    from polysift import load

    return load(path)


def _ready(loaded: Any, jobs: int | None, quiet: bool) -> FPCClassifier:
    """Return the classifier of a loaded model, ready to predict."""
    from polysift.estimators.search import classifier_of

    model = classifier_of("This command needs", loaded)
    return model.set_params(n_jobs=jobs, verbose=0 if quiet else 1)
