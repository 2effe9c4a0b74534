"""The outcomes of studies as a page: HTML that needs no other file, or Markdown with pictures."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from polysift._report_page import (
    NONE,
    Markup,
    facts,
    joined,
    listing,
    markup,
    page,
    plain,
    table,
)
from polysift.experiments._results import TABLES, Outcome, columns_of, versions, write_whole
from polysift.experiments._study import Row

TITLE = "The paper's simulations, run again"

PAPER = (
    "J. Zeng, M. Wu, S.-B. Lin, D.-X. Zhou: Fast Polynomial Kernel Classification for Massive Data"
)

BADGES = {True: ("#e5f5ee", "#00684b"), False: ("#fdece2", "#a34700"), None: ("#eef1f4", "#5d6a76")}
"""The background and the ink of a verdict."""

INCH = 96
"""Pixels, by which a browser counts."""


def heading(outcome: Outcome) -> str:
    """Return the heading of a study."""
    study = outcome.study
    return f"{study.name}. {study.title}" if study.name.isdigit() else study.title


def origin(outcome: Outcome) -> str:
    """Return where in the paper a study comes from."""
    return outcome.study.figure or "a study of our own"


def write_page(outcomes: Sequence[Outcome], path: Path, command: str) -> None:
    """Write one page about all outcomes, with the command that makes it."""
    sections = [("overview", "Overview", _overview(outcomes))]
    sections += [(outcome.folder.name, heading(outcome), _section(outcome)) for outcome in outcomes]
    sections.append(("again", "Run it again", listing(command)))
    made = ", ".join(f"{name} {number}" for name, number in versions().items())
    write_whole(path, page(TITLE, PAPER, sections, f"Made with {made}.").encode())


def _overview(outcomes: Sequence[Outcome]) -> Markup:
    rows = [
        (
            Markup(f'<a href="#{outcome.folder.name}">{markup(heading(outcome))}</a>'),
            origin(outcome),
            _badge(outcome),
        )
        for outcome in outcomes
    ]
    return table(
        ("Study", "In the paper", "Do our data agree with the claim?"),
        rows,
        caption="Verdicts, by criteria that the sections state.",
        kind="words",
    )


def _badge(outcome: Outcome) -> Markup:
    background, ink = BADGES[outcome.verdict.agrees]
    style = (
        f"background:{background};color:{ink};padding:.1rem .6rem;border-radius:5px;"
        "font-weight:600;white-space:nowrap"
    )
    return Markup(f'<span style="{style}">{markup(outcome.answer)}</span>')


def _section(outcome: Outcome) -> Markup:
    return joined(
        (
            facts(
                (
                    ("In the paper", origin(outcome)),
                    ("Claim", outcome.study.claim),
                    ("Verdict", _badge(outcome)),
                    ("Why", outcome.verdict.text),
                    ("Runs", f"{outcome.runs}, from the base seed {outcome.seed}"),
                )
            ),
            _picture(outcome),
            _folded("The numbers of the picture", _numbers(outcome)),
        )
    )


def _picture(outcome: Outcome) -> Markup:
    """Return the picture at its own size, at which its letters are as large as the page's."""
    data = b64encode(outcome.svg).decode()
    words = f"Picture of study {outcome.study.name}: {outcome.study.title}"
    width = round(outcome.size[0] * INCH)
    return Markup(
        f'<figure><img style="max-width:min(100%,{width}px)" src="data:image/svg+xml;base64,{data}"'
        f' alt="{markup(words)}"></figure>\n'
    )


def _folded(summary: str, content: Markup) -> Markup:
    return Markup(f"<details><summary>{markup(summary)}</summary>\n{content}</details>\n")


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


def write_markdown(outcomes: Sequence[Outcome], folder: Path, command: str) -> Path:
    """Write ``simulations.md`` into a folder.

    Pictures go to ``images/simulations`` in it, tables as CSV to ``results/simulations``.

    Parameters
    ----------
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
    images, tables = (folder / kind / "simulations" for kind in ("images", "results"))
    images.mkdir(parents=True, exist_ok=True)
    lines = [
        f"# {TITLE}",
        "",
        f"{PAPER}: its section V, and what the paper says elsewhere that can be simulated. This "
        "page is made by",
        "",
        *(f"    {line}" for line in command.splitlines()),
        "",
        f"with {', '.join(f'{name} {number}' for name, number in versions().items())}. Verdicts "
        "follow from the data, by criteria that the sections state.",
        "",
        *_markdown_table(
            ["Study", "In the paper", "Our data and the claim"],
            [[heading(one), origin(one), one.answer] for one in outcomes],
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
            f"## {_escaped(heading(outcome))}",
            "",
            f"Claim ({_escaped(outcome.study.figure or 'our own')}): "
            f"{_escaped(outcome.study.claim)}",
            "",
            f"**Verdict: {outcome.answer}.** {_escaped(outcome.verdict.text)}",
            "",
            f"![{_escaped(outcome.study.title)}](images/simulations/{name}.svg)",
            "",
            f"<details><summary>The numbers ({outcome.runs} runs, base seed {outcome.seed})"
            "</summary>",
            "",
            *_markdown_table(*_cells(outcome.summary)),
            "",
            "</details>",
            "",
            f"Tables: {', '.join(f'[{x}](results/simulations/{name}/{x})' for x in TABLES)}",
        ]
    path = folder / "simulations.md"
    write_whole(path, "\n".join([*lines, ""]).encode())
    return path


def _markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [heads, ["---"] * len(heads), *rows]
    return [f"| {' | '.join(map(_escaped, line))} |" for line in lines]


def _escaped(text: str) -> str:
    """Return a text on one line, without what Markdown or HTML would take for more than text."""
    text = " ".join(plain(text).split())
    for sign in "\\`*_[]<>|":
        text = text.replace(sign, f"\\{sign}")
    return text
