"""The command line: parses and calls. What takes time to import is imported by the commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from polysift import __version__
from polysift._comparison_command import highdim, massive, uci
from polysift._console import Debug, guarded, state
from polysift._model_commands import evaluate, export, inspect, predict
from polysift._option_groups import grouped
from polysift._output_options import check_file
from polysift._reproduce_command import app as reproduce
from polysift._train_commands import fit, tune

app = typer.Typer(
    name="polysift",
    help="Fast polynomial kernel classification for massive data.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


PICTURES = (".png", ".svg", ".pdf")


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


for command in (fit, tune, predict, evaluate, inspect, export):
    app.command()(command)
for command in (uci, massive, highdim):
    reproduce.command()(command)
app.add_typer(reproduce, name="reproduce")


@app.command()
@guarded
@grouped
def demo(
    rows: Annotated[int, typer.Option(help="Training rows.", min=2)] = 1_000_000,
    noise: Annotated[float, typer.Option(help="Share of reversed labels.", min=0, max=1)] = 0.1,
    degree: Annotated[int, typer.Option(help="Degree of the kernel.", min=1)] = 9,
    solver: Annotated[Literal["paper", "converged"], typer.Option(help="Solver.")] = "paper",
    seed: Annotated[int, typer.Option(help="Seed.")] = 0,
    output: Annotated[Path, typer.Option("--output", "-o", help="The picture.")] = Path(
        "polysift-demo.png"
    ),
) -> None:
    """Learn a million rows of a synthetic problem, tell what it took, and draw it."""
    from polysift.demo import run

    check_file(output, force=True, endings=PICTURES)
    run(rows, noise, degree, solver, seed, output)
