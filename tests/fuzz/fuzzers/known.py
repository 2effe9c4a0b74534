"""Findings that are known, and are being mended; whoever mends one deletes its line."""

from __future__ import annotations

import re

HEADERS = "headers of .npy files that numpy stumbles over"
ARROW = "Arrow files whose content is not checked before it is used"
ESCAPES = "control characters and line breaks from files and words in what is printed"
STATES = "the index of a state is taken on trust"

KNOWN: tuple[tuple[str, str, str], ...] = (
    ("model", r"^MemoryError[^$]*_masked", "a masked array of long text takes gigabytes"),
    ("model", r"holds control characters", ESCAPES),
    ("command", r"holds control characters|is not the last line", ESCAPES),
    ("command", r"^(TokenError|SyntaxError)", HEADERS),
    ("npy", r"^(TokenError|SyntaxError|OverflowError|RuntimeWarning|MemoryError)", HEADERS),
    ("npz", r"^(TokenError|SyntaxError|OverflowError|RuntimeWarning|MemoryError)", HEADERS),
    ("npz", r"mmap length is greater than file size", HEADERS),
    ("arrow", r"^(Arrow\w+|MemoryError|Finding: a damaged column)", ARROW),
    ("arrow", r"does not name the file[^$]*_refuse_text", ARROW),
    ("parquet", r"does not name the file[^$]*_refuse_text", ARROW),
    ("checkpoint", r"^(?!Crash|Hang)", STATES),
)
"""The target, a pattern of what is found, and the reason why it is still there."""


def known_reason(target: str, text: str) -> str | None:
    """Return the reason of a finding that is known, or None."""
    for name, pattern, reason in KNOWN:
        if name == target and re.search(pattern, text):
            return reason
    return None
