"""The command as a report shows it: a report is passed on, and the command may hold secrets."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import join


def shown_command(words: Sequence[str]) -> str:
    """Return a command as text, with URIs without their secrets and options."""
    return join(["polysift", *map(_shown, words)])


def _shown(word: str) -> str:
    from polysift.data.addresses import public_name

    name, mark, value = word.partition("=")
    if mark and name.startswith("-"):  # --validation=s3://...
        return f"{name}={public_name(value)}"
    return public_name(word)
