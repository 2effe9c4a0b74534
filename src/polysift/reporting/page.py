"""The HTML of a report: numbers as text, escaped elements, and the page.

Text is escaped on its way into an element, unless it is ``Markup``, which all functions that make
elements return.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from polysift.reporting.style import STYLE, collected, policy
from polysift.runtime.types import FloatArray
from polysift.training.plan import duration

NOT_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
"""Characters that neither HTML nor XML may contain."""

NONE = "\u2013"
"""Shown where there is no number."""

SPACE = "\u00a0"
"""Keeps a number and its unit on one line."""

MAX_MATRIX_CLASSES = 25
"""A confusion matrix of more classes is too large to read."""

MAX_ROOMY_CLASSES = 8
"""Up to so many classes, the cells of a confusion matrix have room for shares below counts."""

MAX_LISTED_CONFUSIONS = 15

MAX_NAME_CHARACTERS = 16
"""Longer names are shortened at bars and in a confusion matrix; hovering shows all of them."""


class Markup(str):
    """Text that is HTML already, and is not escaped."""


def markup(value: Any) -> Markup:
    """Return a value as HTML."""
    return value if isinstance(value, Markup) else Markup(escape(plain(value)))


def joined(pieces: Iterable[Any]) -> Markup:
    """Return pieces concatenated."""
    return Markup("".join(map(markup, pieces)))


def plain(value: Any) -> str:
    """Return a value as text without characters that a page or a picture must not contain."""
    return NOT_TEXT.sub("\ufffd", str(value))


def shortened(text: str, length: int) -> str:
    """Return a text on one line, without its middle where it is longer: ends distinguish names."""
    text = " ".join(text.split())
    if len(text) <= length:
        return text
    return f"{text[: length // 2]}\u2026{text[-((length - 1) // 2) :]}"


def count_text(value: float) -> str:
    """Return a number of rows, which is fractional where rows have weights."""
    return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"


def share_text(value: float | None, digits: int = 1) -> str:
    """Return a share in percent, with enough digits to distinguish it from 0 % and 100 %."""
    if value is None or np.isnan(value):
        return NONE
    while digits < 4 and value not in (0, 1) and round(100 * value, digits) in (0, 100):
        digits += 1
    return f"{100 * value:.{digits}f}{SPACE}%"


def figure_text(value: float | None, digits: int = 4) -> str:
    """Return a metric such as the log loss."""
    return NONE if value is None or np.isnan(value) else f"{value:.{digits}f}"


def seconds_text(seconds: float) -> str:
    """Return a duration."""
    return duration(seconds).replace(" ", SPACE)


def size_text(size: float) -> str:
    """Return a number of bytes, with three digits."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 999.5 or unit == "GB":
            break
        size /= 1000
    digits = 0 if unit == "bytes" or size >= 99.95 else 1 if size >= 9.995 else 2
    return f"{size:,.{digits}f}{SPACE}{unit}"


def paragraph(*pieces: Any, kind: str = "") -> Markup:
    """Return a paragraph; ``kind`` is its class in the style sheet."""
    attribute = f' class="{kind}"' if kind else ""
    return Markup(f"<p{attribute}>{joined(pieces)}</p>\n")


def tiles(entries: Iterable[tuple[str, str, str]]) -> Markup:
    """Return the main numbers, each with a name above and a note below."""
    body = joined(
        Markup(
            f'<div class="tile"><dt>{markup(name)}</dt><dd>{markup(value)}'
            f"<small>{markup(note)}</small></dd></div>\n"
        )
        for name, value, note in entries
    )
    return Markup(f'<dl class="tiles">\n{body}</dl>\n')


def facts(entries: Iterable[tuple[str, Any]]) -> Markup:
    """Return a list of names with their values."""
    rows = joined(
        Markup(f"<div><dt>{markup(name)}</dt><dd>{markup(value)}</dd></div>\n")
        for name, value in entries
    )
    return Markup(f'<dl class="facts">\n{rows}</dl>\n')


def table(
    heads: Sequence[Any],
    rows: Iterable[Sequence[Any]],
    *,
    caption: str,
    kind: str = "",
    marked: Sequence[int] = (),
) -> Markup:
    """Return a table that scrolls in its own box; the first column has the names of the rows."""
    top = joined(Markup(f'<th scope="col">{markup(head)}</th>') for head in heads)
    body = []
    for number, (first, *cells) in enumerate(rows):
        row = joined(Markup(f"<td>{markup(cell)}</td>") for cell in cells)
        attribute = ' class="marked"' if number in marked else ""
        body.append(f'<tr{attribute}><th scope="row">{markup(first)}</th>{row}</tr>\n')
    return _scrolling(
        f'<table class="{kind}"><caption>{markup(caption)}</caption>\n'
        f"<thead><tr>{top}</tr></thead>\n<tbody>\n{''.join(body)}</tbody></table>",
        caption,
    )


def _scrolling(content: str, caption: str) -> Markup:
    """Return content in a box that scrolls, also by the keyboard."""
    attributes = f'role="region" tabindex="0" aria-label="{markup(caption)}"'
    return Markup(f'<div class="scroll" {attributes}>\n{content}\n</div>\n')


def bars(
    entries: Iterable[tuple[str, Sequence[tuple[float | None, str]]]],
    *,
    caption: str,
    longest: float | None = None,
    muted: Sequence[str] = (),
) -> Markup:
    """Return horizontal bars: for each entry its name, and its values with their texts.

    The length of a bar is relative to ``longest``; a value of None has a text, but no bar. The bars
    of the names in ``muted`` are grey.
    """
    entries = list(entries)
    if longest is None:
        longest = max([value or 0.0 for _, pairs in entries for value, _ in pairs], default=0.0)
    rows = []
    for name, pairs in entries:
        tracks, texts = [], []
        for number, (value, text) in enumerate(pairs):
            width = 0.0 if value is None or not longest else 100 * value / longest
            shown = "hidden" if value is None else "muted" if name in muted else f"bar{number}"
            tracks.append(f'<i class="{shown}" style="width:{width:.2f}%"></i>')
            texts.append(f"<span>{markup(text)}</span>")
        rows.append(
            f'<tr><th scope="row" title="{markup(name)}">{_short(name)}</th>'
            f'<td class="track">{"".join(tracks)}</td>'
            f'<td class="value">{"".join(texts)}</td></tr>\n'
        )
    return Markup(
        f'<table class="bars"><caption>{markup(caption)}</caption><tbody>\n'
        f"{''.join(rows)}</tbody></table>\n"
    )


def picture(address: str, words: str, caption: str) -> Markup:
    """Return a picture with its alternative text and its caption."""
    return Markup(
        f'<figure><img src="{address}" alt="{markup(words)}">'
        f"<figcaption>{markup(caption)}</figcaption></figure>\n"
    )


def beside(*pieces: Any) -> Markup:
    """Return pieces side by side where the window is wide enough."""
    body = joined(Markup(f"<div>\n{markup(piece)}</div>\n") for piece in pieces)
    return Markup(f'<div class="beside">\n{body}</div>\n')


def _short(name: str) -> Markup:
    return markup(shortened(name, MAX_NAME_CHARACTERS))


def listing(text: str) -> Markup:
    """Return lines of code."""
    return Markup(f'<pre tabindex="0"><code>{escape(plain(text))}</code></pre>\n')


def confusion_table(names: Sequence[str], counts: FloatArray, caption: str) -> Markup:
    """Return a confusion matrix, shaded by the share of each row."""
    totals = counts.sum(axis=1)
    shares = counts / np.where(totals > 0, totals, 1.0)[:, np.newaxis]
    predicted, roomy = counts.sum(axis=0), len(names) <= MAX_ROOMY_CLASSES
    digits = 1 if roomy else 0
    heads = "".join(
        f'<th scope="col" title="{markup(name)}"><span>{_short(name)}</span></th>' for name in names
    )
    rows = []
    for i, name in enumerate(names):
        cells = "".join(
            _cell(counts[i, j], shares[i, j], right=i == j, roomy=roomy) for j in range(len(names))
        )
        right = share_text(shares[i, i] if totals[i] else None, digits)
        rows.append(
            f'<tr><th scope="row" title="{markup(name)}">{_short(name)}</th>'
            f'{cells}<td class="margin">{right}</td></tr>\n'
        )
    precise = [counts[j, j] / n if n else None for j, n in enumerate(predicted)]
    precisions = "".join(f'<td class="margin">{share_text(p, digits)}</td>' for p in precise)
    kind = "roomy" if roomy else "dense upright" if max(map(len, names)) > 3 else "dense"
    return _scrolling(
        f'<table class="confusion {kind}"><caption>{markup(caption)}</caption>\n'
        f'<thead><tr><th scope="col" class="corner">true \u2193 predicted \u2192</th>{heads}'
        f'<th scope="col" class="margin"><span>recall</span></th></tr></thead>\n<tbody>\n'
        f"{''.join(rows)}</tbody>\n"
        f'<tfoot><tr><th scope="row" class="margin">precision</th>{precisions}<td></td></tr>'
        "</tfoot></table>",
        caption,
    )


def _cell(count: float, share: float, *, right: bool, roomy: bool) -> str:
    # The root makes rare confusions visible beside the many correct rows.
    strength = share if right else np.sqrt(share)
    colour = "0,114,178" if right else "213,94,0"
    below = f"<small>{share_text(share)}</small>" if roomy else ""
    dark = ' class="dark"' if strength > 0.65 else ""
    shade = f' style="background:rgba({colour},{strength:.3f})"' if count else ' class="zero"'
    return (
        f'<td{dark}{shade} title="{share_text(share)} of the row">{count_text(count)}{below}</td>'
    )


def worst_confusions(counts: FloatArray) -> list[tuple[int, int]]:
    """Return the most frequent confusions, each as the true and the predicted class."""
    wrong = counts.copy()
    np.fill_diagonal(wrong, 0.0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:MAX_LISTED_CONFUSIONS]
    pairs = zip(*np.unravel_index(order, wrong.shape), strict=True)
    return [(int(i), int(j)) for i, j in pairs if wrong[i, j]]


def page(
    title: str,
    subtitle: Any,
    sections: Sequence[tuple[str, str, Markup]],
    end: Any,
    style: str = "",
) -> str:
    """Return a page of sections, each with its id, its heading and its content.

    ``style`` is appended to the style sheet of all pages.
    """
    links = "".join(f'<a href="#{name}">{markup(head)}</a>\n' for name, head, _ in sections)
    body = "".join(
        f'<section id="{name}">\n<h2>{markup(head)}</h2>\n{content}</section>\n'
        for name, head, content in sections
    )
    body, sheet = collected(body, f"\n{STYLE}{style}")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy(sheet)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light">\n'
        f"<title>{markup(title)}</title>\n<style>{sheet}</style>\n</head>\n<body>\n"
        f'<header>\n<p class="eyebrow">polysift report</p>\n<h1>{markup(title)}</h1>\n'
        f'<p class="subtitle">{markup(subtitle)}</p>\n</header>\n'
        f'<nav aria-label="Contents">\n{links}</nav>\n<main>\n{body}</main>\n'
        f"<footer>{markup(end)}</footer>\n</body>\n</html>\n"
    )
