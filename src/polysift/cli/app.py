"""The command ``polysift``: its options and its list of commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from polysift import __version__
from polysift.cli.compare import compare
from polysift.cli.console import Debug, guarded, state
from polysift.cli.models import evaluate, export, inspect, predict
from polysift.cli.option_types import grouped
from polysift.cli.options import SolverName
from polysift.cli.outputs import check_file
from polysift.cli.plugins import CommandGroup
from polysift.cli.train import fit, tune

PICTURES = (".png", ".svg", ".pdf")
"""The endings of the picture that the demo draws."""

app = typer.Typer(
    name="polysift",
    cls=CommandGroup,
    help="Fast polynomial kernel classification for massive data.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(asked: bool) -> None:
    if asked:
        print(f"polysift {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="The version.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Fast polynomial kernel classification for massive data."""
    state["debug"] = debug


for command in (fit, tune, predict, evaluate, compare, inspect, export):
    app.command()(command)


@app.command()
@guarded
@grouped
def demo(
    rows: Annotated[int, typer.Option(help="Training rows.", min=2)] = 1_000_000,
    noise: Annotated[float, typer.Option(help="Share of reversed labels.", min=0, max=1)] = 0.1,
    degree: Annotated[int, typer.Option(help="Degree of the kernel.", min=1)] = 9,
    solver: Annotated[SolverName, typer.Option(help="Solver.")] = "paper",
    seed: Annotated[int, typer.Option(help="Seed.")] = 0,
    output: Annotated[Path, typer.Option("--output", "-o", help="The picture.")] = Path(
        "polysift-demo.png"
    ),
) -> None:
    """Train on a million rows of a synthetic problem, print time and errors, and draw it."""
    from polysift.cli.demo import run

    check_file(output, force=True, endings=PICTURES)
    run(rows, noise, degree, solver, seed, output)
