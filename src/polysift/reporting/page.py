"""The HTML of a report: numbers as text, escaped elements, the page and its style sheet.

Text is escaped on its way into an element, unless it is ``Markup``, which all functions that make
elements return.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from polysift.runtime.types import FloatArray
from polysift.training.plan import duration

FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"

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
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light">\n'
        f"<title>{markup(title)}</title>\n<style>\n{STYLE}{style}</style>\n</head>\n<body>\n"
        f'<header>\n<p class="eyebrow">polysift report</p>\n<h1>{markup(title)}</h1>\n'
        f'<p class="subtitle">{markup(subtitle)}</p>\n</header>\n'
        f'<nav aria-label="Contents">\n{links}</nav>\n<main>\n{body}</main>\n'
        f"<footer>{markup(end)}</footer>\n</body>\n</html>\n"
    )


STYLE = f"""\
:root {{ color-scheme: light; --accent: #0072b2; --other: #d55e00; --ink: #1d2730;
  --soft: #5d6a76; --line: #e3e7eb; --wash: #f5f7f9; }}
* {{ box-sizing: border-box; }}
html {{ scroll-padding-top: 4rem; -webkit-text-size-adjust: 100%; }}
@media (prefers-reduced-motion: no-preference) {{ html {{ scroll-behavior: smooth; }} }}
body {{ margin: 0; background: var(--wash); color: var(--ink); font: 16px/1.6 {FONTS};
  font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }}
header, main, footer {{ max-width: 1040px; margin: 0 auto; padding: 0 1.25rem; }}
header {{ padding-top: 3.5rem; padding-bottom: 1.75rem; }}
.eyebrow {{ margin: 0; color: var(--accent); font-size: .8rem; font-weight: 600;
  letter-spacing: .09em; text-transform: uppercase; }}
h1 {{ margin: .35rem 0 .5rem; font-size: clamp(1.7rem, 5vw, 2.5rem); line-height: 1.15;
  letter-spacing: -.02em; font-weight: 700; }}
.subtitle {{ margin: 0; max-width: 46rem; color: var(--soft); font-size: 1.08rem; }}
nav {{ position: sticky; top: 0; z-index: 2; display: flex; gap: .1rem; overflow-x: auto;
  padding: .5rem max(.75rem, calc(50vw - 520px + .6rem)); background: rgba(255,255,255,.95);
  border: solid var(--line); border-width: 1px 0; scrollbar-width: thin; }}
nav a {{ padding: .3rem .6rem; border-radius: 99px; color: var(--soft); font-size: .85rem;
  text-decoration: none; white-space: nowrap; }}
nav a:hover, nav a:focus-visible {{ background: #e5f1f8; color: var(--accent); }}
section {{ margin: 1.5rem 0; padding: 1.75rem 2rem 2rem; background: #fff;
  border: 1px solid var(--line); border-radius: 14px; }}
h2 {{ margin: 0 0 .75rem; font-size: 1.35rem; line-height: 1.25; letter-spacing: -.01em; }}
h3 {{ margin: 1.75rem 0 .5rem; font-size: 1rem; }}
p {{ margin: .5rem 0 1rem; max-width: 46rem; }}
.note {{ color: var(--soft); font-size: .9rem; }}
section > :last-child, .beside > div > :last-child {{ margin-bottom: 0; }}
.tiles {{ display: grid; grid-template-columns: repeat(5, minmax(0, 1fr)); gap: .75rem;
  margin: 1.25rem 0 0; }}
.tile {{ padding: .85rem 1rem .8rem; background: var(--wash); border-radius: 10px; }}
.tile dt {{ color: var(--soft); font-size: .82rem; }}
.tile dd {{ margin: 0; font-size: 1.65rem; font-weight: 650; line-height: 1.3;
  letter-spacing: -.01em; }}
.tile small {{ display: block; color: var(--soft); font-size: .78rem; font-weight: 400;
  line-height: 1.35; letter-spacing: 0; }}
.tile:first-child {{ grid-column: span 2; grid-row: span 2; padding: 1.1rem 1.3rem;
  background: var(--accent); display: flex; flex-direction: column; justify-content: center; }}
.tile:first-child dt, .tile:first-child small {{ color: #e3f1f9; font-size: .92rem; }}
.tile:first-child dd {{ color: #fff; font-size: clamp(2.4rem, 5vw, 3.3rem); line-height: 1.2; }}
.facts {{ margin: 0 0 1.25rem; }}
.facts > div {{ display: grid; grid-template-columns: 11rem 1fr; gap: 1rem; padding: .38rem 0;
  border-bottom: 1px solid var(--line); }}
.facts > div:last-child {{ border-bottom: 0; }}
.facts dt {{ color: var(--soft); }}
.facts dd {{ margin: 0; }}
.beside {{ display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 1rem 2.5rem;
  align-items: start; }}
figure {{ margin: 0 0 .5rem; }}
figure img {{ display: block; width: 100%; max-width: 560px; height: auto; background: #fff; }}
figcaption {{ color: var(--soft); font-size: .86rem; line-height: 1.45; margin-top: .35rem; }}
.scroll {{ overflow-x: auto; margin: .5rem 0 1.25rem; }}
table {{ border-collapse: collapse; font-size: .93rem; width: 100%; }}
caption {{ padding-bottom: .4rem; color: var(--soft); font-size: .86rem; text-align: left; }}
th, td {{ padding: .42rem .7rem; border-bottom: 1px solid var(--line); text-align: right;
  vertical-align: top; overflow-wrap: normal; }}
th {{ font-weight: 500; }}
thead th {{ color: var(--soft); font-size: .84rem; vertical-align: bottom; }}
tbody th, thead th:first-child {{ text-align: left; padding-left: 0; }}
th small {{ display: block; color: var(--soft); font-size: .8rem; font-weight: 400; }}
.figures td {{ font-weight: 600; }}
.figures tbody th {{ min-width: 13rem; }}
.figures thead th {{ overflow-wrap: anywhere; min-width: 5.5rem; }}
.pairs td:nth-child(2), .pairs tbody th, .parameters td {{ overflow-wrap: anywhere;
  min-width: 7rem; }}
.words td, .words th, .pairs td:nth-child(2), .pairs th, .pairs thead th:nth-child(2)
  {{ text-align: left; }}
.parameters td {{ text-align: left; font-family: ui-monospace, Menlo, Consolas, monospace;
  font-size: .86rem; }}
.parameters thead th {{ text-align: left; }}
td small {{ display: block; color: var(--soft); font-size: .92em; }}
.marked > * {{ background: #eaf4fa; }}
.marked > th {{ box-shadow: inset 3px 0 var(--accent); padding-left: .7rem; }}
.best tbody th, .best thead th:first-child {{ padding-left: .7rem; text-align: right;
  white-space: nowrap; }}
.best td {{ white-space: nowrap; }}
.best td:nth-child(2), .best td:nth-child(5), .best thead th:nth-child(2),
.best thead th:nth-child(5) {{ text-align: left; }}
.parameters th, .parameters td {{ padding-top: .25rem; padding-bottom: .25rem; }}
.bars {{ margin: .25rem 0 1.25rem; }}
.bars th, .bars td {{ border: 0; padding: .25rem 0; line-height: 18px; vertical-align: top; }}
.bars tbody th {{ max-width: 11rem; overflow: hidden; padding-right: .9rem;
  text-overflow: ellipsis; white-space: nowrap; }}
.bars .track {{ width: 70%; }}
.bars .value {{ padding-left: .75rem; text-align: right; color: var(--soft); font-size: .86rem;
  white-space: nowrap; }}
.value span {{ display: block; }}
.value span + span {{ color: #b04e00; }}
.track i {{ display: block; min-width: 2px; height: 12px; margin: 3px 0 6px;
  border-radius: 0 3px 3px 0; background: var(--accent); }}
.track .bar1 {{ background: #fff; border: 1.5px solid var(--other); }}
.track .muted {{ background: #c3ccd4; }}
.track .hidden {{ visibility: hidden; }}
.key i {{ display: inline-block; width: .8rem; height: .72rem; margin: 0 .35rem 0 .9rem;
  border-radius: 2px; background: var(--accent); }}
.key i:first-child {{ margin-left: 0; }}
.key .bar1 {{ background: #fff; border: 1.5px solid var(--other); }}
.confusion {{ width: auto; border-spacing: 2px; border-collapse: separate; font-size: .88rem; }}
.confusion th, .confusion td {{ border: 0; border-radius: 4px; padding: .4rem .55rem;
  text-align: center; vertical-align: middle; line-height: 1.3; min-width: 2.7rem; }}
.confusion th {{ max-width: 11rem; overflow: hidden; text-overflow: ellipsis;
  white-space: nowrap; }}
.confusion tbody th {{ text-align: right; }}
.confusion .corner {{ color: var(--soft); font-size: .78rem; text-align: right; }}
.dense th, .dense td {{ min-width: 2rem; padding: .3rem .25rem; font-size: .8rem; }}
.dense .margin {{ font-size: .72rem; }}
.roomy td {{ min-width: 5rem; padding: .7rem .6rem; font-size: .95rem; }}
.confusion td small {{ color: inherit; font-size: .76rem; opacity: .85; }}
.confusion .dark {{ color: #fff; }}
.confusion .zero {{ color: #b4bcc4; background: var(--wash); }}
.confusion .margin {{ color: var(--soft); font-size: .8rem; white-space: nowrap;
  text-align: center; }}
.upright thead th span {{ display: inline-block; max-height: 10rem; overflow: hidden;
  text-overflow: ellipsis; writing-mode: vertical-rl; transform: rotate(180deg); }}
.names {{ display: flex; flex-wrap: wrap; gap: .35rem; margin: .15rem 0; padding: 0;
  list-style: none; }}
.names li {{ max-width: 100%; padding: .05rem .55rem; border-radius: 5px; background: var(--wash);
  font-size: .86rem; }}
pre {{ margin: .5rem 0 1.25rem; padding: 1rem 1.2rem; overflow-x: auto; background: #1d2730;
  color: #eef2f5; border-radius: 10px; font: .86rem/1.6 ui-monospace, Menlo, Consolas, monospace;
  overflow-wrap: normal; }}
footer {{ padding-top: .5rem; padding-bottom: 3rem; color: var(--soft); font-size: .86rem; }}
@media (max-width: 720px) {{
  header {{ padding-top: 2.25rem; }}
  header, main, footer {{ padding-left: .9rem; padding-right: .9rem; }}
  section {{ padding: 1.25rem 1rem 1.4rem; margin: 1rem 0; }}
  .beside {{ grid-template-columns: minmax(0, 1fr); }}
  .facts > div {{ grid-template-columns: minmax(0, 2fr) minmax(0, 3fr); }}
  .bars tbody th {{ max-width: 8.5rem; font-size: .84rem; }}
  th, td {{ padding-left: .4rem; padding-right: .4rem; }}
  .figures tbody th {{ min-width: 8rem; }}
  .figures thead th {{ min-width: 5rem; }}
  .roomy td {{ min-width: 3.9rem; padding: .5rem .3rem; }}
  .confusion .margin {{ min-width: 0; }}
  .tiles {{ grid-template-columns: repeat(2, minmax(0, 1fr)); gap: .6rem; }}
  .tile:first-child {{ grid-row: auto; }}
  .tile dd {{ font-size: 1.35rem; }}
}}
@media print {{
  body {{ background: #fff; font-size: 10.5pt; }}
  * {{ print-color-adjust: exact; -webkit-print-color-adjust: exact; }}
  nav {{ display: none; }}
  header, main, footer {{ max-width: none; padding-left: 0; padding-right: 0; }}
  section {{ border: 0; padding: 0; }}
  h2, h3, caption {{ break-after: avoid; }}
  figure, tr, .tile, pre {{ break-inside: avoid; }}
  .scroll {{ overflow: visible; }}
  pre {{ background: var(--wash); color: var(--ink); white-space: pre-wrap; }}
}}
"""
"""The style sheet of all pages."""
