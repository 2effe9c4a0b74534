"""``polysift reproduce``: the paper's experiments, run again.

``app`` is an entry point of the group ``polysift.commands``. ``simulations`` and ``sensitivity``
run studies; ``uci``, ``massive`` and ``highdim`` run the paper's tables on real data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polysift.cli.console import as_usage, guarded, say, show_facts, show_json, show_table
from polysift.cli.option_types import grouped, items
from polysift.cli.options import BUDGET, option
from polysift_paper.options import RUNNING, ComparisonOptions, Earlier, OutputOptions, RunOptions

if TYPE_CHECKING:
    from polysift_paper.comparisons.comparison import Comparison
    from polysift_paper.studies.results import Outcome
    from polysift_paper.studies.study import Study

QUICK_RUNS = 2
SLOW_STUDIES = ("8",)
QUICK_SETS = ("breast_cancer", "banknote", "seismic_bumps", "htru2", "magic", "occupancy")
QUICK_ROWS = 20_000
"""What ``all --quick`` takes: runs, the studies without, the UCI sets, and rows of massive ones."""


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
    runs: RunOptions,
    results: OutputOptions,
    which: Annotated[
        list[str] | None,
        typer.Argument(
            help="1 to 8, motivation, data, theory, symmetric, dual, lifting; all, or more.",
            show_default="all",
            metavar="WHICH",
        ),
    ] = None,
    continue_from: Earlier = None,
) -> None:
    """Run the simulations of the paper's section V, its motivation, and some of our own.

    What is done is kept in the folder of the results: after Ctrl-C, or with more runs, the same
    command goes on from there.
    """
    _simulations(which or ["all"], runs, results, continue_from)


def _simulations(
    which: list[str], runs: RunOptions, results: OutputOptions, earlier: Path | None = None
) -> None:
    from polysift_paper.studies.page import MORE, SIMULATIONS
    from polysift_paper.studies.simulations import chosen, more_studies

    with as_usage():
        studies = chosen(which)
    words = ["simulations", *which, *runs.words()]
    about = MORE if all(study.name in more_studies() for study in studies) else SIMULATIONS
    _run_studies(studies, about, runs, results, words, earlier)


@app.command()
@guarded
@grouped
def sensitivity(
    runs: RunOptions,
    results: OutputOptions,
    data: Annotated[
        Any,
        option(RUNNING, "Data sets: magic,skin.", "all at hand", parser=items, metavar="a,b,..."),
    ] = None,
    continue_from: Earlier = None,
) -> None:
    """Run Appendix F: how FPC depends on centers, alpha and beta, on the UCI data sets.

    Columns are in [0, 1], as the text has them, and then in [-1, 1].
    What is done is kept: after Ctrl-C, or with more runs, the same command goes on from there.
    """
    _sensitivity(data, runs, results, continue_from)


def _sensitivity(
    data: Any, runs: RunOptions, results: OutputOptions, earlier: Path | None = None
) -> None:
    from polysift_paper.comparisons.plan import uci_sets
    from polysift_paper.comparisons.sensitivity import studies
    from polysift_paper.studies.page import SENSITIVITY

    with as_usage():
        found, notes = uci_sets(data)
    if not results.quiet:
        for note in notes:
            say("Note", note, "cyan")
    words = ["sensitivity", *(["--data", ",".join(data)] if data else []), *runs.words()]
    _run_studies(studies(found), SENSITIVITY, runs, results, words, earlier)


def _run_studies(
    studies: Sequence[Study],
    about: Any,
    runs: RunOptions,
    results: OutputOptions,
    words: Sequence[str],
    earlier: Path | None,
) -> None:
    """Run studies, write a page about them, and print the verdicts."""
    from polysift_paper.studies.page import write_markdown, write_page
    from polysift_paper.studies.simulations import reproduce as run

    with results.kept():
        jobs = runs.workers()
        if earlier is not None:
            _take_over(studies, earlier, runs, results)
        outcomes = [
            run(
                study,
                results.output,
                runs=runs.runs,
                seed=runs.seed,
                jobs=jobs,
                show=not results.quiet,
                done_only=runs.done,
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
        show_json(_studies_result(outcomes, page))
    elif not results.quiet:
        _show_studies(outcomes, page)


def _take_over(
    studies: Sequence[Study], earlier: Path, runs: RunOptions, results: OutputOptions
) -> None:
    """Take what was measured before, and say how much that is."""
    from polysift_paper.studies.simulations import continue_from

    with as_usage():
        if not earlier.is_dir():
            raise ValueError(f"--continue-from: there is no folder {earlier}.")
    taken = sum(
        continue_from(study, results.output, earlier, runs=runs.runs, seed=runs.seed)
        for study in studies
    )
    if not results.quiet:
        say("Note", f"{taken} cells are taken from {earlier}.", "cyan")


def _show_studies(outcomes: list[Outcome], page: Path) -> None:
    show_facts([(one.study.name, f"{one.study.title}. {one.verdict.text}\n") for one in outcomes])
    rows = [(one.heading, one.answer, str(one.runs), str(one.folder)) for one in outcomes]
    show_table("", ("Study", "Our data and the claim", "Runs", "Files"), rows)
    show_facts([("page", str(page))])


def _studies_result(outcomes: list[Outcome], page: Path) -> dict[str, Any]:
    """Return the result as plain values, for ``--json``."""
    from polysift_paper.studies.results import verdict_entries

    entries = [verdict_entries(one) | {"folder": str(one.folder)} for one in outcomes]
    return {"page": page, "studies": entries}


@app.command()
@guarded
@grouped
def uci(runs: RunOptions, choice: ComparisonOptions, results: OutputOptions) -> None:
    """Run Tables II, III and IV: nine data sets, the paper's ten systems, and ours.

    Half of the rows are for training, a quarter to choose parameters by, a quarter for the test;
    20 runs, as in the paper.
    What is done is kept: after Ctrl-C, or with more runs, the same command goes on from there.
    """
    _compare("uci", runs, choice, results)


@app.command()
@guarded
@grouped
def massive(
    runs: RunOptions,
    choice: ComparisonOptions,
    results: OutputOptions,
    rows: Annotated[
        int | None, option(BUDGET, "Training rows at most.", "all; 50,000 with --quick", min=100)
    ] = None,
) -> None:
    """Run Table VI: SUSY and HIGGS.

    Where they are not at hand, a sample of HIGGS stands in for the accuracy, and drawn numbers of
    the same shapes for the time. One fit runs at a time, on all cores, whatever --jobs is; one run.
    """
    _compare("massive", runs, choice, results, rows=rows)


@app.command()
@guarded
@grouped
def highdim(runs: RunOptions, choice: ComparisonOptions, results: OutputOptions) -> None:
    """Run Table VII: Gisette, MNIST38 and Dogs_vs_Cats, as far as they are at hand.

    Five runs, where the paper does not say how many; --quick takes 2,000 training rows at most.
    """
    _compare("highdim", runs, choice, results)


@app.command()
@guarded
@grouped
def datasets(results: OutputOptions) -> None:
    """Compare Tables I and V with the data sets that are at hand: rows, attributes, classes."""
    _datasets(results)


def _datasets(results: OutputOptions) -> None:
    from polysift_paper.comparisons.data_tables import HEADS, cells_of, data_rows, write_data_docs

    rows = data_rows()
    if results.docs is not None:
        results.docs.mkdir(parents=True, exist_ok=True)
        write_data_docs(rows, results.docs, "polysift reproduce datasets")
    if results.json:
        show_json({"datasets": rows})
    elif not results.quiet:
        show_table("The paper's figure / that of the data", HEADS, cells_of(rows))


@app.command(name="all")
@guarded
@grouped
def everything(
    runs: RunOptions,
    results: OutputOptions,
    quick: Annotated[
        bool,
        option(
            RUNNING,
            "Two runs of each, few candidates and short fits, without study 8.",
            None,
            "--quick",
        ),
    ] = False,
) -> None:
    """Run all of the above, one after the other: days, or with --quick a small part of that.

    What is done is kept: after Ctrl-C the same command goes on from there.
    """
    from polysift_paper.studies.simulations import more_studies, studies

    few = replace(runs, runs=runs.runs or QUICK_RUNS) if quick else runs
    first = [name for name in studies() if name not in more_studies() and name not in SLOW_STUDIES]
    _datasets(results)
    _simulations(first if quick else ["all"], few, results)
    _simulations(["more"], few, results)
    sets = list(QUICK_SETS) if quick else None
    _sensitivity(sets, few, results)
    _compare("uci", few, ComparisonOptions(data=sets, quick=quick), results)
    _compare("highdim", few, ComparisonOptions(quick=quick), results)
    rows = QUICK_ROWS if quick else None
    _compare("massive", few, ComparisonOptions(quick=quick), results, rows=rows)


def _compare(
    name: str, runs: RunOptions, choice: ComparisonOptions, results: OutputOptions, **more: Any
) -> None:
    """Plan and run a comparison, write its files, and print its tables."""
    from polysift_paper.comparisons.comparison import COMPARISONS
    from polysift_paper.comparisons.page import write_comparison_docs
    from polysift_paper.comparisons.plan import continue_from, plan, run
    from polysift_paper.comparisons.results import write_comparison
    from polysift_paper.comparisons.summary import read_rows

    with as_usage():
        if choice.time_limit == 0:
            raise ValueError("--time-limit must be longer than 0 s.")
        trials = plan(
            name,
            data=choice.data,
            methods=choice.methods,
            quick=choice.quick,
            grid="full" if choice.paper_grids else None,
            limit=choice.time_limit,
            runs=runs.runs,
            **more,
        )
    if not results.quiet:
        for note in trials.notes:
            say("Note", note, "cyan")
    with results.kept():
        if choice.continue_from is not None:
            with as_usage():
                earlier = read_rows(choice.continue_from.read_text(encoding="utf-8"))
            taken = continue_from(trials, results.output, earlier, seed=runs.seed)
            if not results.quiet:
                say("Note", f"{taken} rows are taken from {choice.continue_from}.", "cyan")
        rows = run(
            trials,
            results.output,
            seed=runs.seed,
            jobs=runs.workers(),
            show=not results.quiet,
            done_only=runs.done,
        )
        comparison = write_comparison(
            COMPARISONS[name],
            rows,
            results.output,
            command=_command(name, runs, choice, more),
            runs=trials.runs,
            seed=runs.seed,
            notes=trials.notes,
        )
        if results.docs is not None:
            results.docs.mkdir(parents=True, exist_ok=True)
            write_comparison_docs(comparison, results.docs, comparison.command)
    if results.json:
        show_json(_comparison_result(comparison))
    elif not results.quiet:
        _show_comparison(comparison)


def _command(name: str, runs: RunOptions, choice: ComparisonOptions, more: dict[str, Any]) -> str:
    """Return the command line that repeats the comparison."""
    words = ["polysift", "reproduce", name]
    for flag, values in (("--data", choice.data), ("--methods", choice.methods)):
        words += [flag, ",".join(values)] if values else []
    words += ["--quick"] if choice.quick else []
    words += ["--paper-grids"] if choice.paper_grids else []
    limit = None if choice.time_limit is None else f"{choice.time_limit:.15g}s"
    for flag, value in (("--time-limit", limit), ("--rows", more.get("rows"))):
        words += [] if value is None else [flag, str(value)]
    return join([*words, *runs.words()])


def _show_comparison(comparison: Comparison) -> None:
    from polysift_paper.comparisons.tables import METRICS, footnotes, plain_table

    for metric in METRICS:
        title, heads, rows = plain_table(comparison.summary, metric)
        if rows:
            show_table(title, heads, rows)
    print()
    marks = footnotes(comparison.summary)
    if marks:
        show_facts(marks)
        print()
    show_facts([(one.name, f"{one.answer}. {one.verdict.text}\n") for one in comparison.findings])
    show_facts([("files", str(comparison.folder)), ("page", str(comparison.page))])


def _comparison_result(comparison: Comparison) -> dict[str, Any]:
    """Return the result as plain values, for ``--json``."""
    return {
        "page": comparison.page,
        "folder": comparison.folder,
        "findings": [
            {
                "name": one.name,
                "claim": one.claim,
                "holds": one.verdict.agrees,
                "text": one.verdict.text,
            }
            for one in comparison.findings
        ],
        "summary": comparison.summary,
    }
