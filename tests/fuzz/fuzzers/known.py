"""Findings that are known, and are being mended; whoever mends one deletes its line."""

from __future__ import annotations

import re

ESCAPES = "control characters and line breaks from files and words in what is printed"
STATES = "the index of a state is taken on trust"

KNOWN: tuple[tuple[str, str, str], ...] = (
    ("model", r"holds control characters", ESCAPES),
    ("command", r"holds control characters|is not the last line", ESCAPES),
    ("checkpoint", r"^(?!Crash|Hang)", STATES),
)
"""The target, a pattern of what is found, and the reason why it is still there."""


def known_reason(target: str, text: str) -> str | None:
    """Return the reason of a finding that is known, or None."""
    for name, pattern, reason in KNOWN:
        if name == target and re.search(pattern, text):
            return reason
    return None
