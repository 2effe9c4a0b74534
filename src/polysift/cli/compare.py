"""``polysift compare``: a plain fit beside other classifiers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from polysift.cli.console import WrongUsage, guarded, show_facts, show_json, show_lines, show_table
from polysift.cli.data_options import LabelOptions, ReadingOptions
from polysift.cli.option_types import duration, grouped, items
from polysift.cli.options import BUDGET, MODEL, OUTPUT, option
from polysift.cli.outputs import check_file

ENDINGS = (".png", ".svg", ".pdf")
"""The endings of a picture."""


@guarded
@grouped
def compare(
    data: Annotated[str, typer.Argument(metavar="DATA", help="Any format that fit reads.")],
    labels: LabelOptions,
    reading: ReadingOptions,
    models: Annotated[
        Any,
        option(
            MODEL,
            "Which models: polysift, tuned, logistic, lightgbm, hist_gb.",
            "all that are installed",
            parser=items,
            metavar="a,b,...",
        ),
    ] = None,
    cv: Annotated[int, option(MODEL, "Folds.", "5", min=2)] = 5,
    seed: Annotated[int, option(MODEL, "Seed of rows, folds and models.", "0", min=0)] = 0,
    max_rows: Annotated[
        int, option(BUDGET, "The most rows, drawn at random; 0 is all.", "50000", min=0)
    ] = 50_000,
    time_limit: Annotated[
        Any,
        option(
            BUDGET,
            "Begin no fold after 90, 90s, 10m or 2h.",
            parser=duration,
            metavar="DURATION",
        ),
    ] = None,
    jobs: Annotated[
        int | None, option(BUDGET, "Threads.", "all cores", "--jobs", "--n-jobs", "-j")
    ] = None,
    report: Annotated[Path | None, option(OUTPUT, "An HTML page, such as compared.html.")] = None,
    picture: Annotated[Path | None, option(OUTPUT, "A picture: .png, .svg or .pdf.")] = None,
    force: Annotated[bool, option(OUTPUT, "Replace what exists.", None, "--force", "-f")] = False,
    json: Annotated[bool, option(OUTPUT, "Print the result as JSON.", None, "--json")] = False,
    quiet: Annotated[
        bool, option(OUTPUT, "Print nothing but errors and warnings.", None, "--quiet", "-q")
    ] = False,
) -> None:
    """Compare plain and tuned fits with other classifiers, on the same folds."""
    from polysift import compare as run

    if report is not None:
        check_file(report, force=force, inputs=(data,))
    if picture is not None:
        check_file(picture, force=force, endings=ENDINGS, inputs=(data,))
        if report is not None and report.resolve() == picture.resolve():
            raise WrongUsage(f"--report and --picture are the same file, {report}.")
    if labels.weight is not None:
        raise WrongUsage("compare does not take --weight: not every model would count it alike.")
    source = labels.open(data, reading, quiet=quiet)
    found = run(
        source,
        models=models,
        cv=cv,
        max_rows=max_rows or None,
        time_limit=time_limit,
        n_jobs=jobs,
        random_state=seed,
        verbose=0 if quiet else 1,
    )
    if report is not None:
        found.report(report, overwrite=force)
    if picture is not None:
        _draw(found, picture)
    if json:
        show_json(found.to_dict())
    elif not quiet:
        show_table(*found.table())
        show_lines([found.verdict])
        written = [("report", report), ("picture", picture)]
        show_facts([(name, str(path)) for name, path in written if path is not None])


def _draw(found: Any, path: Path) -> None:
    """Write the picture, whole or not at all."""
    from polysift.runtime.outputs import replacing

    with replacing(path) as file:
        found.plot().savefig(file, format=path.suffix[1:].lower(), dpi=150)
