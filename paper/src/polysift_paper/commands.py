"""``polysift reproduce``: the paper's experiments, run again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polysift.cli.console import as_usage, guarded, say, show_facts, show_json, show_table
from polysift.cli.option_types import grouped, items
from polysift.cli.options import BUDGET, OUTPUT, option

if TYPE_CHECKING:
    from polysift_paper.studies.results import Outcome
    from polysift_paper.studies.study import Study

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


@dataclass
class Runs:
    """How often an experiment is run, and by how many."""

    runs: Annotated[
        int | None,
        option(RUNNING, "How often to repeat each.", "as the paper does", min=1, max=MOST_RUNS),
    ] = None
    seed: Annotated[
        int, option(RUNNING, "Base seed of all random numbers.", "0", min=0, max=MOST_SEEDS)
    ] = 0
    jobs: Annotated[
        int | None,
        option(BUDGET, "Processes.", "as many as cores", "--jobs", "-j", min=1),
    ] = None

    def workers(self) -> int:
        """Return the number of processes."""
        from polysift.runtime.parallel import usable_jobs

        return usable_jobs(self.jobs)

    def words(self) -> list[str]:
        """Return the options that change the numbers, as they are typed."""
        words = [] if self.runs is None else ["--runs", str(self.runs)]
        return words + (["--seed", str(self.seed)] if self.seed else [])


@dataclass
class Results:
    """Where results go."""

    output: Annotated[
        Path,
        option(OUTPUT, "Folder of the results.", "polysift-results", "--output", "-o"),
    ] = Path("polysift-results")
    docs: Annotated[
        Path | None,
        typer.Option(help="A folder for the same as Markdown.", hidden=True),
    ] = None
    json: Annotated[bool, option(OUTPUT, "Print the result as JSON.", None, "--json")] = False
    quiet: Annotated[
        bool, option(OUTPUT, "Print nothing but errors and warnings.", None, "--quiet", "-q")
    ] = False

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Make the folders, and say at Ctrl-C that what is done is there."""
        with as_usage():
            for folder in (self.output, self.docs):
                _check_folder(folder)
        self.output.mkdir(parents=True, exist_ok=True)
        try:
            yield
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"{self.output} keeps what is done; the same command goes on."
            ) from None


@app.command()
@guarded
@grouped
def simulations(
    runs: Runs,
    results: Results,
    which: Annotated[
        list[str] | None,
        typer.Argument(
            help="1 to 8, motivation, data, theory, or all.", show_default="all", metavar="WHICH"
        ),
    ] = None,
) -> None:
    """Run the simulations of the paper's section V, its motivation, and some of our own.

    What is done is kept in the folder of the results: after Ctrl-C, or with more runs, the same
    command goes on from there.
    """
    from polysift_paper.studies.page import SIMULATIONS
    from polysift_paper.studies.simulations import chosen

    with as_usage():
        studies = chosen(which or ["all"])
    words = ["simulations", *(which or ["all"]), *runs.words()]
    _run_studies(studies, SIMULATIONS, runs, results, words)


@app.command()
@guarded
@grouped
def sensitivity(
    runs: Runs,
    results: Results,
    data: Annotated[
        Any,
        option(RUNNING, "Data sets: magic,skin.", "all at hand", parser=items, metavar="a,b,..."),
    ] = None,
) -> None:
    """Run Appendix F: how FPC depends on centers, alpha and beta, on the UCI data sets.

    What is done is kept: after Ctrl-C, or with more runs, the same command goes on from there.
    """
    from polysift_paper.comparisons.sensitivity import studies
    from polysift_paper.comparisons.systems import uci_sets
    from polysift_paper.studies.page import SENSITIVITY

    with as_usage():
        found, notes = uci_sets(data)
    if not results.quiet:
        for note in notes:
            say("Note", note, "cyan")
    words = ["sensitivity", *(["--data", ",".join(data)] if data else []), *runs.words()]
    _run_studies(studies(found), SENSITIVITY, runs, results, words)


def _run_studies(
    studies: Sequence[Study], about: Any, runs: Runs, results: Results, words: Sequence[str]
) -> None:
    """Run studies, write a page about them, and show how they came out."""
    from polysift_paper.studies.page import write_markdown, write_page
    from polysift_paper.studies.simulations import reproduce as run

    with results.kept():
        jobs = runs.workers()
        outcomes = [
            run(
                study,
                results.output,
                runs=runs.runs,
                seed=runs.seed,
                jobs=jobs,
                show=not results.quiet,
            )
            for study in studies
        ]
        command = join(["polysift", "reproduce", *words])
        page = results.output / f"{about.name}.html"
        write_page(about, outcomes, page, command)
        if results.docs is not None:
            results.docs.mkdir(parents=True, exist_ok=True)
            write_markdown(about, outcomes, results.docs, command)
    if results.json:
        show_json(_result(outcomes, page))
    elif not results.quiet:
        _show(outcomes, page)


def _check_folder(folder: Path | None) -> None:
    """Raise before the work if a folder cannot be written to after it."""
    if folder is not None and folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; name a folder.")


def _show(outcomes: list[Outcome], page: Path) -> None:
    show_facts([(one.study.name, f"{one.study.title}. {one.verdict.text}\n") for one in outcomes])
    rows = [(one.heading, one.answer, str(one.runs), str(one.folder)) for one in outcomes]
    show_table("", ("Study", "Our data and the claim", "Runs", "Files"), rows)
    show_facts([("page", str(page))])


def _result(outcomes: list[Outcome], page: Path) -> dict[str, Any]:
    """Return what came out, for machines."""
    from polysift_paper.studies.results import verdict_entries

    entries = [verdict_entries(one) | {"folder": str(one.folder)} for one in outcomes]
    return {"page": page, "studies": entries}
