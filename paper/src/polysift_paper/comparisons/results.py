"""What a comparison leaves in its folder: rows, summary, tables, pictures, verdicts and a page."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from polysift_paper.comparisons.comparison import COLUMNS, Comparison, ComparisonTable
from polysift_paper.comparisons.figures import draw_pictures
from polysift_paper.comparisons.page import write_comparison_page
from polysift_paper.comparisons.summary import checked_rows, lines_text, summarise
from polysift_paper.comparisons.tables import tables_markdown
from polysift_paper.comparisons.verdicts import findings
from polysift_paper.studies.page import escaped
from polysift_paper.studies.results import versions, write_whole
from polysift_paper.studies.study import Row

GIGABYTE = 1e9


def write_comparison(
    table: ComparisonTable,
    rows: Iterable[Row],
    folder: Path,
    *,
    command: str,
    runs: int,
    seed: int,
    notes: Sequence[str] = (),
) -> Comparison:
    """Summarise, draw and judge the rows of a comparison, and write its files.

    Parameters
    ----------
    table : ComparisonTable
        Which comparison of the paper.
    rows : iterable of dict
        What was measured; each row has all of ``COLUMNS``.
    folder : Path
        Where results are kept: the page, and a folder with the name of the comparison.
    command : str
        What makes it again.
    runs, seed : int
        How it was run.
    notes : sequence of str, default=()
        Sentences on the data, shown on top.

    Returns
    -------
    Comparison
        What was written.
    """
    home = folder / table.name
    home.mkdir(parents=True, exist_ok=True)
    measured = checked_rows(rows)
    summary = summarise(measured)
    comparison = Comparison(
        table=table,
        rows=measured,
        summary=summary,
        findings=findings(table, summary),
        pictures=draw_pictures(summary),
        command=command,
        runs=runs,
        seed=seed,
        notes=tuple(notes),
        versions=_versions(measured),
        machine=machine(),
        folder=home,
        page=folder / f"{table.name}.html",
    )
    write_whole(home / "results.csv", lines_text(measured).encode())
    write_whole(home / "summary.csv", lines_text(summary).encode())
    text = json.dumps(_entries(comparison), indent=1, ensure_ascii=False, allow_nan=False)
    write_whole(home / "results.json", f"{text}\n".encode())
    title = [f"# {escaped(table.title)}", ""]
    write_whole(home / "tables.md", "\n".join([*title, *tables_markdown(summary)]).encode())
    for name, picture in comparison.pictures.items():
        write_whole(home / f"{name}.svg", picture.svg)
        write_whole(home / f"{name}.png", picture.png)
    write_comparison_page(comparison)
    return comparison


def _entries(comparison: Comparison) -> dict[str, Any]:
    """Return the rows, and all one must know to get them again, as plain values."""
    return {
        "comparison": comparison.table.name,
        "title": comparison.table.title,
        "source": comparison.table.source,
        "command": comparison.command,
        "runs": comparison.runs,
        "seed": comparison.seed,
        "notes": list(comparison.notes),
        "versions": comparison.versions,
        "machine": comparison.machine,
        "verdicts": [
            {
                "name": one.name,
                "criterion": one.claim,
                "holds": one.verdict.agrees,
                "text": one.verdict.text,
            }
            for one in comparison.findings
        ],
        "columns": list(COLUMNS),
        "rows": comparison.rows,
    }


def _versions(rows: Sequence[Row]) -> dict[str, str]:
    found = versions()
    if any(row["method"] == "lightgbm" for row in rows):
        with suppress(PackageNotFoundError):  # the rows may come from elsewhere
            found["lightgbm"] = version("lightgbm")
    return found


def machine() -> dict[str, str]:
    """Return what kind of machine this is, without its name."""
    return {
        "Processor": _processor(),
        "Cores": str(os.cpu_count() or "unknown"),
        "Memory": _memory(),
        "System": f"{platform.system()} {_release()}, {platform.machine()}",
    }


def _release() -> str:
    return ".".join(platform.release().split(".")[:2])  # more would tell one machine from another


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or "unknown"
    names = [line.partition(":")[2].strip() for line in text.splitlines() if "model name" in line]
    return names[0] if names else platform.processor() or "unknown"


def _memory() -> str:
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return "unknown"
    return f"{size / GIGABYTE:.0f} GB"
