"""Findings that are known, and are being mended; whoever mends one deletes its line."""

from __future__ import annotations

import re

LINES = "a line break in the name of a file splits a message"
STATES = "the index of a state is taken on trust"

KNOWN: tuple[tuple[str, str, str], ...] = (
    ("command", r"is not the last line", LINES),
    ("checkpoint", r"^(?!Crash|Hang)", STATES),
)
"""The target, a pattern of what is found, and the reason why it is still there."""


def known_reason(target: str, text: str) -> str | None:
    """Return the reason of a finding that is known, or None."""
    for name, pattern, reason in KNOWN:
        if name == target and re.search(pattern, text):
            return reason
    return None
