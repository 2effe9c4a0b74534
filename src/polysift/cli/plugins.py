"""Commands that other distributions add, by entry points of the group ``polysift.commands``.

An entry point names a ``typer.Typer``. It is loaded when its command is called or listed, so a
plugin that is broken, or takes long to import, does not disturb the other commands.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import typer
from typer.core import TyperGroup

from polysift.cli.console import guarded
from polysift.runtime.terminal import escaped

GROUP = "polysift.commands"

REPRODUCE = "reproduce"
REPRODUCE_HELP = "Run the paper's experiments again (needs polysift-paper)."
REPRODUCE_MISSING = (
    "polysift reproduce needs the paper's experiments, a distribution of its own. Install it: "
    "pip install polysift-paper (in a checkout: pip install ./paper)"
)


USAGE_ERROR: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")
"""What typer reports by itself; newer versions have a copy of click, and thus of this."""


class CommandGroup(TyperGroup):
    """The commands of this package, and after them those of plugins, which cannot replace them."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        own = super().list_commands(ctx)
        added = {REPRODUCE, *entry_points(group=GROUP).names}
        return [*own, *sorted(added - set(own))]

    def make_context(self, *args: Any, **options: Any) -> Any:
        """Parse the options before the command."""
        with _escaped_usage():
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        """Parse the arguments of the command, and run it."""
        with _escaped_usage():
            return super().invoke(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of a name, or None."""
        own = super().get_command(ctx, cmd_name)
        return _plugin_command(cmd_name) if own is None else own


@contextmanager
def _escaped_usage() -> Iterator[None]:
    """Escape the messages of typer, which quote arguments: a shell puts names of files there."""
    try:
        yield
    except USAGE_ERROR as error:
        error.message = escaped(error.message)
        raise


def _plugin_command(name: str) -> Any:
    """Return a plugin's command, or one that says why there is none, or None."""
    plugin = next(iter(entry_points(group=GROUP, name=name)), None)
    if plugin is not None:
        return _load(plugin)
    return _unavailable(name, REPRODUCE_HELP, REPRODUCE_MISSING) if name == REPRODUCE else None


def _load(plugin: EntryPoint) -> Any:
    try:
        command = typer.main.get_group(plugin.load())
    except Exception as error:
        home = "an unknown distribution" if plugin.dist is None else plugin.dist.name
        return _unavailable(
            plugin.name,
            f"Cannot be loaded ({home}).",
            f"polysift {plugin.name} cannot be loaded from {plugin.value} of {home}: "
            f"{type(error).__name__}: {error}. Install {home} again, or uninstall it.",
        )
    command.name = plugin.name
    return command


def _unavailable(name: str, description: str, message: str) -> Any:
    """Return a command that takes any arguments, --help among them, and fails with a message."""
    app = typer.Typer(add_completion=False)

    @app.command(
        name,
        help=description,
        add_help_option=False,
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )
    @guarded
    def fail() -> None:
        raise ImportError(message)

    return typer.main.get_command(app)
