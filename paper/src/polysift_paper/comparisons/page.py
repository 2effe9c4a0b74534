"""A comparison as a page: HTML that needs no other file, or Markdown with pictures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from polysift.reporting.page import (
    NONE,
    Markup,
    facts,
    joined,
    listing,
    markup,
    page,
    paragraph,
    table,
)
from polysift_paper.comparisons.comparison import (
    FPC_ROWS,
    Comparison,
    Finding,
    data_title,
    method_title,
)
from polysift_paper.comparisons.summary import Lines, by_pair, methods_of
from polysift_paper.comparisons.tables import (
    METRICS,
    Cell,
    Metric,
    cells_of,
    explanations,
    footnotes,
    print_alone,
    row_title,
    tables_markdown,
    value_text,
)
from polysift_paper.studies.page import (
    MADE_BY,
    PAPER,
    badge,
    escaped,
    folded,
    markdown_table,
    picture,
)
from polysift_paper.studies.results import write_whole
from polysift_paper.studies.study import Row

FILES = ("results.csv", "summary.csv")
"""The tables that go with the document."""

LOOK = """\
header, main, footer { max-width: 1500px; }
nav { padding-left: max(.75rem, calc(50vw - 750px + .6rem));
  padding-right: max(.75rem, calc(50vw - 750px + .6rem)); }
.comparison { width: auto; font-size: .84rem; }
.comparison th, .comparison td { white-space: nowrap; line-height: 1.4; padding: .35rem .55rem; }
.comparison tbody th, .comparison thead th:first-child { position: sticky; left: 0; z-index: 1;
  background: #fff; padding-left: .55rem; box-shadow: 1px 0 var(--line); }
.comparison .marked > th { background: #eaf4fa; box-shadow: inset 3px 0 var(--accent); }
.comparison td small { font-size: .88em; }
.chosen td { text-align: left; min-width: 4rem; }
.chosen td:nth-child(6) { min-width: 16rem; overflow-wrap: anywhere; }
details { margin: .75rem 0; }
summary { cursor: pointer; color: var(--accent); }
@media (max-width: 720px) { .comparison { font-size: .78rem; } }
"""
"""What the tables of a comparison need beside the common style."""

EMPHASISED = (*FPC_ROWS, "polysift", "polysift_auc", "polysift_plain")

CHOSEN = (
    "Data",
    "Method",
    "Runs",
    "Prediction (s)",
    "Peak memory (MB)",
    "Parameters chosen most often",
    "Status",
)


def write_comparison_page(comparison: Comparison) -> None:
    """Write the page about a comparison, which needs no other file."""
    lines = by_pair(comparison.summary)
    sections = [("findings", "What the rows say", _overview(comparison))]
    tables = [_metric_table(lines, metric) for metric in METRICS]
    marks = joined(
        paragraph(f"{m} {where}", kind="note") for m, where in footnotes(comparison.summary)
    )
    averages = f"Means over the runs ({runs_text(comparison)}); ± is their standard deviation."
    content = joined([paragraph(averages, kind="note"), *tables, marks])
    sections.append(("tables", "Figures beside the paper's", content))
    sections += [
        (name, one.title, picture(one.svg, one.size[0], one.words, one.caption))
        for name, one in comparison.pictures.items()
    ]
    sections.append(("details", "Parameters, memory, prediction", _details(comparison.summary)))
    sections.append(("again", "Run it again", _again(comparison)))
    made = ", ".join(f"{name} {number}" for name, number in comparison.versions.items())
    subtitle = f"{PAPER}: {comparison.table.source}"
    text = page(comparison.table.title, subtitle, sections, f"Made with {made}.", LOOK)
    write_whole(comparison.page, text.encode())


def runs_text(comparison: Comparison) -> str:
    """Return how many runs there are: fewer of some systems where not all is done."""
    counts = sorted({line["runs"] for line in comparison.summary if line["runs"]})
    if len(counts) < 2:
        return str(comparison.runs)
    return f"{counts[0]} to {counts[-1]} (how many of each is in the last table)"


def _overview(comparison: Comparison) -> Markup:
    notes = [paragraph(note) for note in comparison.notes]
    rows = [
        (one.name, badge(one.verdict.agrees, one.answer), _count(one))
        for one in comparison.findings
    ]
    overview = table(
        ("Claim", "Verdict", "Holds on"),
        rows,
        caption="Verdicts, by the criteria below.",
        kind="words",
    )
    each = [
        folded(
            f"{one.name}: {one.answer}",
            facts((("Criterion", one.claim), ("Numbers", one.verdict.text))),
        )
        for one in comparison.findings
    ]
    return joined([*notes, overview, *each])


def _count(finding: Finding) -> Markup:
    """Return on how many sets a claim holds, with which its verdict begins."""
    count = finding.verdict.text.partition(" sets.")[0]
    return Markup(f'<span style="white-space:nowrap">{markup(count)}</span>')


def _metric_table(lines: Lines, metric: Metric) -> Markup:
    cells = cells_of(lines, metric)
    if not cells:
        return Markup("")
    sets, methods = list(dict.fromkeys(data for data, _ in cells)), methods_of(lines)
    rows = []
    for method in methods:
        title, remark = row_title(method)
        small = f"<small>{markup(remark)}</small>" if remark else ""
        head = Markup(f"{markup(title)}{small}")
        rows.append([head, *(_cell(cells[data, method]) for data in sets)])
    return joined(
        (
            Markup(f"<h3>{markup(metric.title)}</h3>\n"),
            paragraph(" ".join(explanations(lines, metric)), kind="note"),
            table(
                ["", *map(data_title, sets)],
                rows,
                caption="Ours above, the paper's below.",
                kind="comparison",
                marked=[i for i, method in enumerate(methods) if method in EMPHASISED],
            ),
        )
    )


def _cell(cell: Cell) -> Markup:
    mean = f"<b>{markup(cell.mean)}</b>" if cell.best else markup(cell.mean)
    spread = f" ± {markup(cell.spread)}" if cell.spread else ""
    change = f" ({cell.change})" if cell.change else ""
    below = f"<small>{markup(cell.beside + change)}</small>" if cell.beside else ""
    return Markup(f"{mean}{spread}{markup(cell.mark)}{below}")


def _chosen(summary: Sequence[Row]) -> list[list[str]]:
    """Return what the tables of figures leave out."""
    rows = []
    for line in summary:
        params = json.dumps(line["params"], ensure_ascii=False) if line["params"] else NONE
        peak = line["peak_mb"]
        rows.append(
            [
                data_title(line["data"]),
                method_title(line["method"]),
                str(line["runs"]),
                value_text("predict_seconds", line["predict_seconds"]),
                NONE if peak is None else f"{peak:,.0f}",
                params,
                line["status"],
            ]
        )
    return rows


def _details(summary: Sequence[Row]) -> Markup:
    content = table(CHOSEN, _chosen(summary), caption="From summary.csv", kind="chosen")
    return folded("All lines", content)


def _again(comparison: Comparison) -> Markup:
    runs = f"{runs_text(comparison)}, from the base seed {comparison.seed}"
    return joined(
        (
            listing(comparison.command),
            facts([("Runs", runs), *comparison.machine.items()]),
        )
    )


def write_comparison_docs(comparison: Comparison, docs: Path, command: str) -> Path:
    """Write the page of a comparison into a folder of documents.

    Pictures go to ``images/<name>`` in it, tables as CSV to ``results/<name>``. If there is a file
    ``results/<name>/remarks.md``, it stands near the top of the page as it is.

    Parameters
    ----------
    comparison : Comparison
        What to tell.
    docs : Path
        The folder; it must exist.
    command : str
        What makes the page.

    Returns
    -------
    Path
        The page.
    """
    name = comparison.table.name
    images, results = docs / "images" / name, docs / "results" / name
    for folder in (images, results):
        folder.mkdir(parents=True, exist_ok=True)
    for file, one in comparison.pictures.items():
        write_whole(images / f"{file}.svg", one.svg)
    for file in FILES:
        write_whole(results / file, (comparison.folder / file).read_bytes())
    path = docs / f"{comparison.table.page}.md"
    text = "\n".join(_document(comparison, results / "remarks.md", command))
    write_whole(path, f"{text}\n".encode())
    return path


def _document(comparison: Comparison, remarks: Path, command: str) -> list[str]:
    name = comparison.table.name
    made = ", ".join(f"{one} {number}" for one, number in comparison.versions.items())
    machine = "; ".join(f"{key.lower()}: {text}" for key, text in comparison.machine.items())
    lines = [
        f"# {escaped(comparison.table.title)}",
        "",
        f"{PAPER}: {comparison.table.source}. {MADE_BY}",
        "",
        *(f"    {line}" for line in command.splitlines()),
        "",
        f"with {escaped(made)} ({escaped(machine)}), {runs_text(comparison)} runs from the base "
        f"seed {comparison.seed}. Means are over the runs, ± is their standard deviation. Verdicts "
        "follow from the rows, by criteria that are stated.",
        "",
    ]
    for note in comparison.notes:
        lines += [escaped(note), ""]
    if remarks.exists():
        lines += [remarks.read_text(encoding="utf-8").strip(), ""]
    lines += ["## What the rows say", "", *_verdicts(comparison.findings), ""]
    lines += tables_markdown(comparison.summary)
    lines += _print_alone(comparison)
    for file, one in comparison.pictures.items():
        address = f"images/{name}/{file}.svg"
        lines += [f"## {one.title}", "", f"![{escaped(one.words)}]({address})", ""]
        lines += [escaped(one.caption), ""]
    chosen = [[escaped(entry) for entry in row] for row in _chosen(comparison.summary)]
    lines += [
        "## Parameters, memory, prediction",
        "",
        "<details><summary>All lines</summary>",
        "",
        *markdown_table(CHOSEN, chosen),
        "",
        "</details>",
        "",
        f"Tables: {', '.join(f'[{file}](results/{name}/{file})' for file in FILES)}",
    ]
    return lines


def _print_alone(comparison: Comparison) -> list[str]:
    heads, rows = print_alone(comparison.table, by_pair(comparison.summary))
    if not rows:
        return []
    entries = [[escaped(entry) for entry in row] for row in rows]
    title = "## Printed, and not run here"
    return [title, "", *markdown_table([escaped(head) for head in heads], entries), ""]


def _verdicts(findings: Sequence[Finding]) -> list[str]:
    lines = markdown_table(
        ("Claim", "Verdict"), [(escaped(one.name), f"**{one.answer}**") for one in findings]
    )
    for one in findings:
        lines += [
            "",
            f"**{escaped(one.name)}: {one.answer}.** {escaped(one.claim)}",
            "",
            escaped(one.verdict.text),
        ]
    return lines
