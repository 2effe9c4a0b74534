"""What is done with a model file: ``polysift predict``, ``evaluate``, ``inspect``, ``export``."""

from __future__ import annotations

import sys
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from polysift._console import guarded, show_facts, show_json, show_table
from polysift._option_groups import grouped
from polysift._options import BUDGET, OUTPUT, Labels, Reading, option
from polysift._output_options import check_file

if TYPE_CHECKING:
    from polysift import FPCClassifier, FPCClassifierCV

ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model file, as fit and tune write it.")
]
Data = Annotated[str, typer.Argument(metavar="DATA", help="Rows: Parquet, CSV, libsvm, npy, ...")]
Jobs = Annotated[int | None, option(BUDGET, "Threads.", "all cores", "--jobs", "--n-jobs", "-j")]
Force = Annotated[bool, option(OUTPUT, "Replace a file that exists.", None, "--force", "-f")]
Json = Annotated[bool, option(OUTPUT, "Print the result as JSON.", None, "--json")]
Quiet = Annotated[
    bool, option(OUTPUT, "Print nothing but errors and warnings.", None, "--quiet", "-q")
]


@guarded
@grouped
def predict(
    model: ModelFile,
    data: Data,
    output: Annotated[
        Path, option(OUTPUT, "Predictions: .parquet or .csv.", None, "--output", "-o")
    ],
    reading: Reading,
    scores: Annotated[bool, option(OUTPUT, "Write scores, too.", None, "--scores")] = False,
    proba: Annotated[bool, option(OUTPUT, "Write probabilities, too.", None, "--proba")] = False,
    jobs: Jobs = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Write the class of each row to a file, in the order of the rows."""
    check_file(output, force=force, endings=(".parquet", ".csv"), inputs=(data, model))
    classifier = _ready(_load(model), jobs, quiet)
    names = getattr(classifier, "feature_names_in_", None)
    source = reading.open(data, names=names, quiet=quiet)
    classifier.predict_to(source, output, scores=scores, proba=proba, overwrite=force)
    if not quiet:
        show_facts([("predictions", f"{output}, {source.n_rows:,} rows")])


@guarded
@grouped
def evaluate(
    model: ModelFile,
    data: Data,
    labels: Labels,
    reading: Reading,
    report: Annotated[Path | None, option(OUTPUT, "A page about it: report.html.")] = None,
    jobs: Jobs = None,
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Judge a model by labelled rows."""
    from polysift import report as write_report
    from polysift._descriptions import confusion_table, figures_table
    from polysift._evaluation import evaluate as judge

    if report is not None:
        check_file(report, force=force, inputs=(data, model))
    loaded = _load(model)
    classifier = _ready(loaded, jobs, quiet)
    names = getattr(classifier, "feature_names_in_", None)
    source = labels.open(data, reading, quiet=quiet, names=names)
    figures = judge(classifier, source)
    if report is not None:
        command = join(["polysift", *sys.argv[1:]])
        write_report(loaded, {Path(data).name: figures}, report, command=command, overwrite=force)
    if json:
        show_json({"model": model, "data": data, **figures.to_dict()})
    elif not quiet:
        show_table(*figures_table({Path(data).name: figures}))
        show_table(*confusion_table(figures))


@guarded
@grouped
def inspect(model: ModelFile, json: Json = False) -> None:
    """Tell what a model file holds."""
    from polysift._descriptions import candidates_table, describe, model_facts, training_facts

    loaded = _load(model)
    if json:
        show_json({"model": model, **describe(loaded)})
        return
    show_facts([("file", str(model)), *training_facts(loaded), *model_facts(loaded)])
    if hasattr(loaded, "cv_results_"):
        show_table(*candidates_table(loaded, 10))


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

    check_file(output, force=force, inputs=(model,))
    to_onnx(_load(model), output, input_type=input_type, overwrite=force)
    if not quiet:
        show_facts([("exported", f"{output}, {output.stat().st_size:,} bytes")])


def _load(path: Path) -> FPCClassifier | FPCClassifierCV:
    from polysift import load

    return load(path)


def _ready(loaded: Any, jobs: int | None, quiet: bool) -> FPCClassifier:
    """Return the classifier of what a file held, ready to predict."""
    from polysift._models import classifier_of

    model = classifier_of("This command needs", loaded)
    return model.set_params(n_jobs=jobs, verbose=0 if quiet else 1)
