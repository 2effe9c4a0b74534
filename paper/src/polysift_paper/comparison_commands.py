"""``polysift reproduce uci``, ``massive`` and ``highdim``: the paper's tables on real data."""

from __future__ import annotations

from dataclasses import dataclass
from shlex import join
from typing import TYPE_CHECKING, Annotated, Any

from polysift.cli.console import as_usage, guarded, say, show_facts, show_json, show_table
from polysift.cli.option_types import duration, grouped, items
from polysift.cli.options import BUDGET, option
from polysift_paper.commands import RUNNING, Results, Runs

if TYPE_CHECKING:
    from polysift_paper.comparisons.comparison import Comparison


@dataclass
class Contest:
    """Who runs on what, and for how long."""

    data: Annotated[
        Any,
        option(RUNNING, "Data sets: magic,skin.", "all at hand", parser=items, metavar="a,b,..."),
    ] = None
    methods: Annotated[
        Any, option(RUNNING, "Systems: fpc,falkon.", "all", parser=items, metavar="a,b,...")
    ] = None
    quick: Annotated[
        bool,
        option(
            RUNNING, "Two runs, few candidates and short fits, for a first look.", None, "--quick"
        ),
    ] = False
    paper_grids: Annotated[
        bool,
        option(
            RUNNING, "All candidates of the paper: 1210 for svm_poly alone.", None, "--paper-grids"
        ),
    ] = False
    time_limit: Annotated[
        Any,
        option(
            BUDGET,
            "For one fit: 30s, 10m. A slower one is stopped, and marked in the tables.",
            "30 s for uci, 10 min for massive, 1 min for highdim; 10 s with --quick",
            "--time-limit",
            parser=duration,
            metavar="TIME",
        ),
    ] = None


@guarded
@grouped
def uci(runs: Runs, contest: Contest, results: Results) -> None:
    """Run Tables II, III and IV: nine data sets, the paper's ten systems, and ours.

    Half of the rows are for training, a quarter to choose parameters by, a quarter for the test;
    20 runs, as in the paper.
    What is done is kept: after Ctrl-C, or with more runs, the same command goes on from there.
    """
    _compare("uci", runs, contest, results)


@guarded
@grouped
def massive(
    runs: Runs,
    contest: Contest,
    results: Results,
    rows: Annotated[
        int | None, option(BUDGET, "Training rows at most.", "all; 50,000 with --quick", min=100)
    ] = None,
) -> None:
    """Run Table VI: SUSY and HIGGS.

    Where they are not at hand, a sample of HIGGS stands in for the accuracy, and drawn numbers of
    the same shapes for the time. One fit runs at a time, on all cores, whatever --jobs is; one run.
    """
    _compare("massive", runs, contest, results, rows=rows)


@guarded
@grouped
def highdim(runs: Runs, contest: Contest, results: Results) -> None:
    """Run Table VII: Gisette, MNIST38 and Dogs_vs_Cats, as far as they are at hand.

    Five runs, where the paper does not say how many.
    """
    _compare("highdim", runs, contest, results)


def _compare(name: str, runs: Runs, contest: Contest, results: Results, **more: Any) -> None:
    """Plan, run, write and show a comparison."""
    from polysift_paper.comparisons.comparison import COMPARISONS
    from polysift_paper.comparisons.page import write_comparison_docs
    from polysift_paper.comparisons.results import write_comparison
    from polysift_paper.comparisons.systems import plan, run

    with as_usage():
        if contest.time_limit == 0:
            raise ValueError("--time-limit must be longer than 0 s.")
        trials = plan(
            name,
            data=contest.data,
            methods=contest.methods,
            quick=contest.quick,
            grid="full" if contest.paper_grids else None,
            limit=contest.time_limit,
            runs=runs.runs,
            **more,
        )
    if not results.quiet:
        for note in trials.notes:
            say("Note", note, "cyan")
    with results.kept():
        rows = run(
            trials, results.output, seed=runs.seed, jobs=runs.workers(), show=not results.quiet
        )
        comparison = write_comparison(
            COMPARISONS[name],
            rows,
            results.output,
            command=_command(name, runs, contest, more),
            runs=trials.runs,
            seed=runs.seed,
            notes=trials.notes,
        )
        if results.docs is not None:
            results.docs.mkdir(parents=True, exist_ok=True)
            write_comparison_docs(comparison, results.docs, comparison.command)
    if results.json:
        show_json(_result(comparison))
    elif not results.quiet:
        _show(comparison)


def _command(name: str, runs: Runs, contest: Contest, more: dict[str, Any]) -> str:
    """Return what runs the same, wherever it is typed."""
    words = ["polysift", "reproduce", name]
    for flag, values in (("--data", contest.data), ("--methods", contest.methods)):
        words += [flag, ",".join(values)] if values else []
    words += ["--quick"] if contest.quick else []
    words += ["--paper-grids"] if contest.paper_grids else []
    limit = None if contest.time_limit is None else f"{contest.time_limit:.15g}s"
    for flag, value in (("--time-limit", limit), ("--rows", more.get("rows"))):
        words += [] if value is None else [flag, str(value)]
    return join([*words, *runs.words()])


def _show(comparison: Comparison) -> None:
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


def _result(comparison: Comparison) -> dict[str, Any]:
    """Return what came out, for machines."""
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
