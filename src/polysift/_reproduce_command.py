"""``polysift reproduce``: the paper's experiments, run again."""

from __future__ import annotations

from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polysift._console import as_usage, guarded, show_facts, show_json, show_table
from polysift._option_groups import grouped
from polysift._options import BUDGET, OUTPUT, option

if TYPE_CHECKING:
    from polysift.experiments._results import Outcome

RUNNING = "Experiment"

MOST_RUNS, MOST_SEEDS = 10_000, 1_000
"""With more, the seeds of one base seed would run into those of the next, or beyond 32 bits."""

app = typer.Typer(
    help="Run the paper's experiments again, draw them, and compare.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def reproduce() -> None:
    """Run the paper's experiments again, draw them, and compare."""


@app.command()
@guarded
@grouped
def simulations(
    which: Annotated[
        list[str] | None,
        typer.Argument(
            help="1 to 8, motivation, data, theory, or all.", show_default="all", metavar="WHICH"
        ),
    ] = None,
    runs: Annotated[
        int | None,
        option(RUNNING, "How often to repeat each.", "as the paper does", min=1, max=MOST_RUNS),
    ] = None,
    seed: Annotated[
        int, option(RUNNING, "Base seed of all random numbers.", "0", min=0, max=MOST_SEEDS)
    ] = 0,
    jobs: Annotated[
        int | None,
        option(BUDGET, "Processes.", "as many as cores", "--jobs", "-j", min=1),
    ] = None,
    output: Annotated[
        Path,
        option(OUTPUT, "Folder of the results.", "polysift-results", "--output", "-o"),
    ] = Path("polysift-results"),
    docs: Annotated[
        Path | None,
        typer.Option(help="A folder for the same as Markdown.", hidden=True),
    ] = None,
    json: Annotated[bool, option(OUTPUT, "Print the result as JSON.", None, "--json")] = False,
    quiet: Annotated[
        bool, option(OUTPUT, "Print nothing but errors and warnings.", None, "--quiet", "-q")
    ] = False,
) -> None:
    """Run the simulations of the paper's section V, its motivation, and some of our own.

    What is done is kept in the folder of the results: after Ctrl-C, or with more runs, the same
    command goes on from there.
    """
    from polysift._parallel import usable_jobs
    from polysift.experiments._page import write_markdown, write_page
    from polysift.experiments.simulations import chosen
    from polysift.experiments.simulations import reproduce as run

    with as_usage():
        studies = chosen(which or ["all"])
        for folder in (output, docs):
            _check_folder(folder)
    output.mkdir(parents=True, exist_ok=True)
    jobs = usable_jobs(jobs)
    outcomes = []
    for study in studies:
        try:
            outcomes.append(run(study, output, runs=runs, seed=seed, jobs=jobs, show=not quiet))
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"{output} keeps what is done; the same command goes on."
            ) from None
    command = _command(which, runs, seed)
    page = output / "simulations.html"
    write_page(outcomes, page, command)
    if docs is not None:
        docs.mkdir(parents=True, exist_ok=True)
        write_markdown(outcomes, docs, command)
    if json:
        show_json(_result(outcomes, page))
    elif not quiet:
        _show(outcomes, page)


def _check_folder(folder: Path | None) -> None:
    """Raise before the work if a folder cannot be written to after it."""
    if folder is not None and folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; name a folder.")


def _command(which: list[str] | None, runs: int | None, seed: int) -> str:
    """Return what gives the same numbers, wherever it is typed."""
    words = ["polysift", "reproduce", "simulations", *(which or ["all"])]
    words += [] if runs is None else ["--runs", str(runs)]
    words += ["--seed", str(seed)] if seed else []
    return join(words)


def _show(outcomes: list[Outcome], page: Path) -> None:
    show_facts([(one.study.name, f"{one.study.title}. {one.verdict.text}\n") for one in outcomes])
    rows = [
        (f"{one.study.name}. {one.study.title}", one.answer, str(one.runs), str(one.folder))
        for one in outcomes
    ]
    show_table("", ("Study", "Our data and the claim", "Runs", "Files"), rows)
    show_facts([("page", str(page))])


def _result(outcomes: list[Outcome], page: Path) -> dict[str, Any]:
    """Return what came out, for machines."""
    from polysift.experiments._results import verdict_entries

    entries = [verdict_entries(one) | {"folder": str(one.folder)} for one in outcomes]
    return {"page": page, "studies": entries}
