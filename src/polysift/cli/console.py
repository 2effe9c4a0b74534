"""What commands print: results on standard output, everything else on standard error."""

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
from signal import SIGINT, SIGTERM, raise_signal, signal
from threading import Timer, current_thread, main_thread
from types import FrameType
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from polysift.runtime.terminal import escaped, escaping_output, safe_console

UNUSABLE, USAGE, INTERRUPTED = 1, 2, 130
"""Exit codes: the data or the model cannot be used, the command is wrong, Ctrl-C."""

USER_ERRORS = (ValueError, TypeError, OSError, ImportError, MemoryError, AttributeError)
"""What the library raises for an error of its user; anything else is a bug."""

NOTHING_WRITTEN = "nothing was written."

OPTIONS_OF_ADVICE = (
    (r"\bcolumns=\{'?([^{}]+?)'?: '(decimal|thousands) comma'\}", r"--\2-comma '\1'"),
    (r"\bcolumns=\{'?([^{}]+?)'?: '(day|month) first'\}", r"--\2-first '\1'"),
    (r"(open_data\(\.\.\., )?\bcolumns=\{'?(.+?)'?: 'number'\}\)?", r"--numeric '\2'"),
    (r"(open_data\(\.\.\., )?\bcolumns=\{'?(.+?)'?: '(category|date)'\}\)?", r"--\3 '\2'"),
    (r"open_data\(\.\.\., drop=\[\.\.\.\]\)", "--drop"),
    (r"name it in columns=\[\.\.\.\]", "name it with --columns"),
    (r"open_data\(\.\.\., columns=(\.\.\.|\[\.\.\.\])\)", "--columns or --drop"),
    (r"or leave it out\.", "or leave it out with --drop."),
    (r"\bheader=True\b", "--header"),
    (r"\bcolumn_types=\{'?(.+?)'?: '(\w+)'\}", r"--column-types '\1=\2'"),
    (r"\bmax_monomials=", "--max-monomials "),
    (r"; pass overwrite=True to replace it", ". Replace it with --force"),
)
"""What the library's messages advise to pass, and the options that do it."""

Debug = Annotated[
    bool,
    typer.Option("--debug", help="Show where an error came from.", show_default=False),
]

PIPE_WIDTH = 10_000
"""Characters of a line in a pipe or file: no table is wider."""

IMPORT_SECONDS = 0.05
"""After which time an interrupt during an import is tried again."""

state = {"debug": False}
"""Whether errors are shown with a traceback."""


class WrongUsage(Exception):
    """An error of the command itself, not of the data."""


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Report what a command raises by a message and an exit code; adds the option --debug."""

    @wraps(command)
    def run(*, debug: bool, **options: Any) -> None:
        state["debug"] |= debug
        _escape_unprintable()
        try:
            with escaping_output(), _shown_warnings(), _interruptible():
                command(**options)
        except WrongUsage as error:
            _fail(error, USAGE)
        except KeyboardInterrupt as stop:
            _fail(stop if stop.args else KeyboardInterrupt(NOTHING_WRITTEN), INTERRUPTED)
        except BrokenPipeError:  # the reader closed the pipe; typer ends silently
            raise
        except USER_ERRORS as error:
            _fail(error, UNUSABLE)

    parameters = signature(command).parameters.values()
    debug = Parameter("debug", Parameter.KEYWORD_ONLY, default=False, annotation=Debug)
    run.__signature__ = Signature([*parameters, debug])  # type: ignore[attr-defined]
    run.__annotations__ = {**command.__annotations__, "debug": Debug}
    return run


@contextmanager
def _interruptible() -> Iterator[None]:
    """Treat a request to terminate, as schedulers and containers send it, like Ctrl-C.

    Both wait for the end of an import, in whose callbacks Python would lose them.
    """
    if current_thread() is not main_thread():  # only the main thread may set handlers
        yield
        return
    before = {number: signal(number, _interrupt) for number in (SIGINT, SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal(number, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            again = Timer(IMPORT_SECONDS, raise_signal, (number,))
            again.daemon = True
            again.start()
            return
        frame = frame.f_back
    raise KeyboardInterrupt


def _fail(error: BaseException, code: int) -> None:
    """Print an error, and exit."""
    if state["debug"]:
        errors().print_exception()
    say("Interrupted" if code == INTERRUPTED else "Error", _message(error), "bold red")
    raise typer.Exit(code) from None


def _escape_unprintable() -> None:
    """Escape characters that the encoding of the terminal lacks, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        stream = getattr(stream, "rich_proxied_file", stream)
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _message(error: BaseException) -> str:
    message = with_options(_first_message(error))
    whole = " ".join([message, *getattr(error, "__notes__", ())])
    return whole.replace("\n", "\\n")  # of a file's name, say: a message is one line


def with_options(message: str) -> str:
    """Return a message of the library with options instead of parameters."""
    for said, meant in OPTIONS_OF_ADVICE:
        message = re.sub(said, meant, message)
    return message


def _first_message(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:  # str() begins with a number
        named = error.filename is not None and str(error.filename) not in error.strerror
        return f"{error.filename}: {error.strerror}" if named else error.strerror
    return str(error) or type(error).__name__


@contextmanager
def as_usage() -> Iterator[None]:
    """Report errors of the body as wrong usage, since no data have been read yet."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise WrongUsage(str(error)) from error


@contextmanager
def _shown_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        # These are for programmers; the commands print messages of their own.
        warnings.filterwarnings("ignore", r"The fit was interrupted|.*ended early \(interrupted")
        warnings.showwarning = lambda message, *_, **__: say("Warning", str(message), "yellow")
        yield


def errors() -> Console:
    """Return the console of standard error."""
    console: Console = safe_console(stderr=True)
    return console


def say(label: str, message: str, style: str) -> None:
    """Print a message to standard error, with a label."""
    # The terminal wraps long lines: a message that is split into lines cannot be searched for.
    errors().print(Text.assemble((f"{label}: ", style), message), soft_wrap=True)


def show_notes(notes: Sequence[str]) -> None:
    """Print sentences on how data were read to standard error."""
    for note in notes:
        say("Note", with_options(note), "cyan")


@contextmanager
def busy(what: str, *, quiet: bool) -> Iterator[None]:
    """Show a spinner, where standard error is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    with errors().status(Text(what)):
        yield


def show_json(result: dict[str, Any]) -> None:
    """Print a result to standard output as JSON."""
    print(json.dumps(plain(result), indent=2, allow_nan=False), flush=True)


def plain(value: Any) -> Any:
    """Return a value as JSON has it: plain Python types, and None for what is not finite."""
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
    """Print names and values to standard output; in a pipe, one line each."""
    out = safe_console()
    if not out.is_terminal:  # lines that are split cannot be searched for
        width = max(len(name) for name, _ in facts)
        print(*(f"{name:<{width}}  {value}" for name, value in facts), sep="\n", flush=True)
        return
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(name, _cell(value))
    out.print(table)


def show_lines(lines: Sequence[str]) -> None:
    """Print sentences to standard output, with options instead of parameters."""
    print("", *map(with_options, lines), sep="\n", flush=True)


def show_table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    words: Sequence[int] = (),
) -> None:
    """Print a table to standard output; all columns but the first and ``words`` are numbers."""
    table = Table(box=None, pad_edge=False, padding=(0, 1))
    for i, name in enumerate(columns):
        table.add_column(
            _cell(name), justify="right" if i and i not in words else "left", overflow="fold"
        )
    for row in rows:
        table.add_row(*map(_cell, row))
    out = safe_console()
    if not out.is_terminal:
        out.width = PIPE_WIDTH
    out.print()
    if title:
        out.print(Text(title, style="bold"))
    out.print(table)


def _cell(text: str) -> Text:
    """Return text for a table, whose columns are as wide as what is shown."""
    return Text(escaped(text))
