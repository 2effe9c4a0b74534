"""The options that the commands of ``polysift reproduce`` share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from polysift.cli.console import as_usage
from polysift.cli.option_types import duration, items
from polysift.cli.options import BUDGET, OUTPUT, option

RUNNING = "Experiment"
"""The panel of options on what is run."""

MAX_RUNS, MAX_SEED = 10_000, 1_000
"""With more, the seeds of one base seed would run into those of the next, or beyond 32 bits."""


Earlier = Annotated[
    Path | None,
    option(
        RUNNING,
        "A folder with results of the same command: what it has is not run again.",
        "nothing",
        "--continue-from",
        metavar="FOLDER",
    ),
]
"""Where studies were run before."""


@dataclass
class RunOptions:
    """Repetitions, base seed and processes."""

    runs: Annotated[
        int | None,
        option(RUNNING, "How often to repeat each.", "as the paper does", min=1, max=MAX_RUNS),
    ] = None
    seed: Annotated[
        int, option(RUNNING, "Base seed of all random numbers.", "0", min=0, max=MAX_SEED)
    ] = 0
    jobs: Annotated[
        int | None,
        option(BUDGET, "Processes.", "as many as cores", "--jobs", "-j", min=1),
    ] = None

    done: Annotated[
        bool,
        option(RUNNING, "Run nothing: write the pages about what is finished.", None, "--done"),
    ] = False

    def workers(self) -> int:
        """Return the number of processes."""
        from polysift.runtime.parallel import usable_jobs

        return usable_jobs(self.jobs)

    def words(self) -> list[str]:
        """Return the options that change the numbers, as they are typed."""
        words = [] if self.runs is None else ["--runs", str(self.runs)]
        return words + (["--seed", str(self.seed)] if self.seed else [])


@dataclass
class OutputOptions:
    """The folder of the results, and what is printed."""

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


def _check_folder(folder: Path | None) -> None:
    """Raise before the work if a folder cannot be written to after it."""
    if folder is not None and folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; name a folder.")


@dataclass
class ComparisonOptions:
    """Data sets, systems, candidates, and the time limit of a fit."""

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
    continue_from: Annotated[
        Path | None,
        option(
            RUNNING,
            "A results.csv of the same command: what it has is not run again.",
            "nothing",
            "--continue-from",
            metavar="FILE",
        ),
    ] = None
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
