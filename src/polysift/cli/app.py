"""The command line: parses and calls. What takes time to import is imported by the commands."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Literal

import typer

from polysift import __version__
from polysift.cli.console import Debug, guarded, state
from polysift.cli.models import evaluate, export, inspect, predict
from polysift.cli.option_types import grouped
from polysift.cli.outputs import check_file
from polysift.cli.train import fit, tune

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


@app.command(
    "reproduce",
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)
@guarded
def _reproduce() -> None:
    """Run the paper's experiments again (needs polysift-paper)."""
    raise ImportError(
        "polysift reproduce needs the paper's experiments, a distribution of its own. Install it: "
        "pip install polysift-paper (in a checkout: pip install ./paper)"
    )


for plugin in entry_points(group="polysift.commands"):
    app.registered_commands = [c for c in app.registered_commands if c.name != plugin.name]
    app.add_typer(plugin.load(), name=plugin.name)


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
    from polysift.cli.demo import run

    check_file(output, force=True, endings=PICTURES)
    run(rows, noise, degree, solver, seed, output)
