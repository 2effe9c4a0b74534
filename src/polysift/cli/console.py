"""How the command line speaks: results on standard output, all else on standard error."""

from __future__ import annotations

import json
import math
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from inspect import Parameter, Signature, signature
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

UNUSABLE, USAGE, INTERRUPTED = 1, 2, 130
"""Exit codes: the data or the model cannot be used, the command is wrong, Ctrl-C."""

FORESEEN = (ValueError, TypeError, OSError, ImportError, MemoryError, AttributeError)
"""What the library raises for a mistake of its user; anything else is a mistake of ours."""

NOTHING_WRITTEN = "nothing was written."

OPTIONS = (
    (r"open_data\(\.\.\., columns=(\.\.\.|\[\.\.\.\])\)", "--columns or --drop"),
    (r"or leave it out\.", "or leave it out with --drop."),
    (r"\bheader=True\b", "--header"),
    (r"\bcolumn_types=\{'?(.+?)'?: '(\w+)'\}", r"--column-types '\1=\2'"),
    (r"\bmax_monomials=", "--max-monomials "),
    (r"; pass overwrite=True to replace it", ". Replace it with --force"),
)
"""What the library advises to pass, and the options that do it."""

Debug = Annotated[
    bool,
    typer.Option("--debug", help="Show where an error came from.", show_default=False),
]

WIDE = 10_000
"""The width of a table in a pipe or file: as wide as it needs to be."""

state = {"debug": False}
"""Whether a traceback is wanted."""


class WrongUsage(Exception):
    """The command itself must change, not the data."""


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Turn what a command raises into a message and an exit code; adds the option --debug."""

    @wraps(command)
    def run(*, debug: bool, **options: Any) -> None:
        state["debug"] |= debug
        _print_whatever()
        try:
            with _shown_warnings():
                command(**options)
        except WrongUsage as mistake:
            _complain(mistake, USAGE)
        except KeyboardInterrupt as stop:
            _complain(stop if stop.args else KeyboardInterrupt(NOTHING_WRITTEN), INTERRUPTED)
        except BrokenPipeError:  # whoever reads has enough; typer ends without a word
            raise
        except FORESEEN as mistake:
            _complain(mistake, UNUSABLE)

    parameters = signature(command).parameters.values()
    debug = Parameter("debug", Parameter.KEYWORD_ONLY, default=False, annotation=Debug)
    run.__signature__ = Signature([*parameters, debug])  # type: ignore[attr-defined]
    run.__annotations__ = {**command.__annotations__, "debug": Debug}
    return run


def _complain(mistake: BaseException, code: int) -> None:
    if state["debug"]:
        errors().print_exception()
    say("Interrupted" if code == INTERRUPTED else "Error", _message(mistake), "bold red")
    raise typer.Exit(code) from None


def _print_whatever() -> None:
    """Let names pass that the terminal has no letters for: they must not end a command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _message(mistake: BaseException) -> str:
    message = _with_options(_first_message(mistake))
    return " ".join([message, *getattr(mistake, "__notes__", ())])


def _with_options(message: str) -> str:
    """Return a message of the library with options in the place of its parameters."""
    for said, meant in OPTIONS:
        message = re.sub(said, meant, message)
    return message


def _first_message(mistake: BaseException) -> str:
    if isinstance(mistake, OSError) and mistake.strerror:  # str() begins with a number
        named = mistake.filename is not None and str(mistake.filename) not in mistake.strerror
        return f"{mistake.filename}: {mistake.strerror}" if named else mistake.strerror
    return str(mistake) or type(mistake).__name__


@contextmanager
def as_usage() -> Iterator[None]:
    """Count what is raised inside as wrong usage: nothing has been read yet."""
    try:
        yield
    except (ValueError, TypeError) as mistake:
        raise WrongUsage(str(mistake)) from mistake


@contextmanager
def _shown_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        # What these say to a programmer, a command says to its user in its own words.
        warnings.filterwarnings("ignore", r"The fit was interrupted|.*ended early \(interrupted")
        warnings.showwarning = lambda message, *_, **__: say("Warning", str(message), "yellow")
        yield


def errors() -> Console:
    """Return the console of standard error."""
    return Console(stderr=True, highlight=False)


def say(label: str, message: str, style: str) -> None:
    """Print a message to standard error, with a label."""
    # Long lines are left to the terminal: a message that is cut into lines cannot be searched for.
    errors().print(Text.assemble((f"{label}: ", style), message), soft_wrap=True)


@contextmanager
def busy(what: str, *, quiet: bool) -> Iterator[None]:
    """Show that something is going on, where somebody is watching."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    with errors().status(Text(what)):
        yield


def show_json(result: dict[str, Any]) -> None:
    """Print a result to standard output, for machines."""
    print(json.dumps(plain(result), indent=2, allow_nan=False), flush=True)


def plain(value: Any) -> Any:
    """Return a value as JSON has it: numpy's become Python's, what is not finite becomes null."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def show_facts(facts: Sequence[tuple[str, str]]) -> None:
    """Print names and values to standard output; in a pipe, a line each."""
    out = Console(highlight=False)
    if not out.is_terminal:  # lines that are cut cannot be searched for
        width = max(len(name) for name, _ in facts)
        print(*(f"{name:<{width}}  {value}" for name, value in facts), sep="\n", flush=True)
        return
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(name, Text(value))
    out.print(table)


def show_lines(lines: Sequence[str]) -> None:
    """Print sentences to standard output, with the options that they advise."""
    print("", *map(_with_options, lines), sep="\n", flush=True)


def show_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table to standard output; all columns but the first are numbers."""
    table = Table(box=None, pad_edge=False, padding=(0, 1))
    for place, name in enumerate(columns):
        table.add_column(Text(name), justify="left" if place == 0 else "right", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    out = Console(highlight=False)
    if not out.is_terminal:  # nobody's window is too narrow
        out.width = WIDE
    out.print()
    if title:
        out.print(Text(title, style="bold"))
    out.print(table)
