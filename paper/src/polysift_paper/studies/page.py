"""Pages about experiments, as self-contained HTML and as Markdown, and the parts they share."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polysift.reporting.page import NONE, Markup, facts, joined, listing, markup, page, plain, table
from polysift_paper.studies.results import TABLES, Outcome, columns_of, versions, write_whole
from polysift_paper.studies.study import Row

MADE_BY = (
    "The experiments are in `polysift-paper`: `pip install polysift-paper` (in a checkout: "
    "`pip install ./paper`). This page is made by"
)
"""What stands before the command, in Markdown."""

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


@dataclass(frozen=True)
class About:
    """What a page is about.

    Attributes
    ----------
    name : str
        Of its files and folders.
    title : str
        Its heading.
    words : str
        Which part of the paper it is, after the paper's title.
    """

    name: str
    title: str
    words: str


SIMULATIONS = About(
    "simulations",
    "The paper's simulations, run again",
    "its section V, and what the paper says elsewhere that can be simulated",
)
MORE = About(
    "simulations-more",
    "More of the paper's statements, simulated",
    "simulations 1 to 4 with columns in [-1, 1], Proposition 2, and the pictures of the motivation",
)
SENSITIVITY = About(
    "sensitivity", "How FPC depends on its parameters, on real data", "its Appendix F"
)


def write_page(about: About, outcomes: Sequence[Outcome], path: Path, command: str) -> None:
    """Write one page about all outcomes, with the command that makes it."""
    sections = [("overview", "Overview", _overview(outcomes))]
    sections += [(outcome.folder.name, outcome.heading, _section(outcome)) for outcome in outcomes]
    sections.append(("again", "Run it again", listing(command)))
    made = ", ".join(f"{name} {number}" for name, number in versions().items())
    write_whole(
        path, page(about.title, f"{PAPER}: {about.words}", sections, f"Made with {made}.").encode()
    )


def _overview(outcomes: Sequence[Outcome]) -> Markup:
    rows = [
        (
            Markup(f'<a href="#{outcome.folder.name}">{markup(outcome.heading)}</a>'),
            outcome.origin,
            badge(outcome.verdict.agrees, outcome.answer),
        )
        for outcome in outcomes
    ]
    return table(
        ("Study", "In the paper", "Do our data agree with the claim?"),
        rows,
        caption="Verdicts, by criteria that the sections state.",
        kind="words",
    )


def _section(outcome: Outcome) -> Markup:
    return joined(
        (
            facts(
                (
                    ("In the paper", outcome.origin),
                    ("Claim", outcome.study.claim),
                    ("Verdict", badge(outcome.verdict.agrees, outcome.answer)),
                    ("Why", outcome.verdict.text),
                    ("Runs", f"{outcome.runs}, from the base seed {outcome.seed}"),
                )
            ),
            picture(
                outcome.svg,
                outcome.size[0],
                f"Picture of study {outcome.study.name}: {outcome.study.title}",
            ),
            folded("The numbers of the picture", _numbers(outcome)),
        )
    )


def _numbers(outcome: Outcome) -> Markup:
    heads, rows = _cells(outcome.summary)
    return table(heads, rows, caption=f"{outcome.folder.name}/summary.csv, rounded")


def _cells(summary: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Return the heads and the rounded entries of a table."""
    names = columns_of(summary)
    rows = [[_text(row.get(name)) for name in names] for row in summary]
    return [name.replace("_", " ") for name in names], rows


def _text(value: Any) -> str:
    if value is None:
        return NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}".replace("nan", NONE)
    return str(value) if isinstance(value, int | str) else json.dumps(value)


def write_markdown(about: About, outcomes: Sequence[Outcome], folder: Path, command: str) -> Path:
    """Write the page as Markdown into a folder.

    Pictures go to ``images/<name>`` in it, tables as CSV to ``results/<name>``.

    Parameters
    ----------
    about : About
        What it is about, and its name.
    outcomes : sequence of Outcome
        What to tell.
    folder : Path
        Such as docs; it must exist.
    command : str
        What makes these pages.

    Returns
    -------
    Path
        The page.
    """
    images, tables = (folder / kind / about.name for kind in ("images", "results"))
    images.mkdir(parents=True, exist_ok=True)
    lines = [
        f"# {about.title}",
        "",
        f"{PAPER}: {about.words}. {MADE_BY}",
        "",
        *(f"    {line}" for line in command.splitlines()),
        "",
        f"with {', '.join(f'{name} {number}' for name, number in versions().items())}. Verdicts "
        "follow from the data, by criteria that the sections state.",
        "",
        *_escaped_table(
            ["Study", "In the paper", "Our data and the claim"],
            [[one.heading, one.origin, one.answer] for one in outcomes],
        ),
    ]
    for outcome in outcomes:
        name = outcome.folder.name
        write_whole(images / f"{name}.svg", outcome.svg)
        (tables / name).mkdir(parents=True, exist_ok=True)
        for file in TABLES:
            write_whole(tables / name / file, (outcome.folder / file).read_bytes())
        lines += [
            "",
            f"## {escaped(outcome.heading)}",
            "",
            f"Claim ({escaped(outcome.study.figure or 'our own')}): {escaped(outcome.study.claim)}",
            "",
            f"**Verdict: {outcome.answer}.** {escaped(outcome.verdict.text)}",
            "",
            f"![{escaped(outcome.study.title)}](images/{about.name}/{name}.svg)",
            "",
            f"<details><summary>The numbers ({outcome.runs} runs, base seed {outcome.seed})"
            "</summary>",
            "",
            *_escaped_table(*_cells(outcome.summary)),
            "",
            "</details>",
            "",
            f"Tables: {', '.join(f'[{x}](results/{about.name}/{name}/{x})' for x in TABLES)}",
        ]
    path = folder / f"{about.name}.md"
    write_whole(path, "\n".join([*lines, ""]).encode())
    return path


def _escaped_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return markdown_table(list(map(escaped, heads)), [list(map(escaped, row)) for row in rows])
