"""Pieces that the pages about experiments share, in HTML and in Markdown."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence

from polysift.reporting.page import Markup, markup, plain

PAPER = (
    "J. Zeng, M. Wu, S.-B. Lin, D.-X. Zhou: Fast Polynomial Kernel Classification for Massive Data"
)

BADGES = {True: ("#e5f5ee", "#00684b"), False: ("#fdece2", "#a34700"), None: ("#eef1f4", "#5d6a76")}
"""The background and the ink of a verdict."""

INCH = 96
"""Pixels, by which a browser counts."""


def badge(agrees: bool | None, answer: str) -> Markup:
    """Return a verdict in a few words, coloured."""
    background, ink = BADGES[agrees]
    style = (
        f"background:{background};color:{ink};padding:.1rem .6rem;border-radius:5px;"
        "font-weight:600;white-space:nowrap"
    )
    return Markup(f'<span style="{style}">{markup(answer)}</span>')


def picture(svg: bytes, width: float, words: str, caption: str = "") -> Markup:
    """Return a picture at its own width in inches: its letters are as large as the page's."""
    data = b64encode(svg).decode()
    below = f"<figcaption>{markup(caption)}</figcaption>" if caption else ""
    return Markup(
        f'<figure><img style="max-width:min(100%,{round(width * INCH)}px)" '
        f'src="data:image/svg+xml;base64,{data}" alt="{markup(words)}">{below}</figure>\n'
    )


def folded(summary: str, content: Markup) -> Markup:
    """Return what is shown when one asks for it."""
    return Markup(f"<details><summary>{markup(summary)}</summary>\n{content}</details>\n")


def escaped(text: str) -> str:
    """Return a text on one line, without what Markdown or HTML would take for more than text."""
    text = " ".join(plain(text).split())
    for sign in "\\`*_[]<>|":
        text = text.replace(sign, f"\\{sign}")
    return text


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table whose entries are Markdown already."""
    lines = [heads, ["---"] * len(heads), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]
