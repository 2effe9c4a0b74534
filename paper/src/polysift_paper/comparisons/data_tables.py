"""Tables I and V: what the paper says of its data sets, and what the data say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from polysift.datasets import available, load
from polysift.datasets.catalogue import Entry, find_entry
from polysift_paper.comparisons.printed import SETS
from polysift_paper.studies.page import MADE_BY, PAPER, escaped, markdown_table
from polysift_paper.studies.results import write_whole
from polysift_paper.studies.study import Row

HEADS = ("Data set", "Table", "Rows", "Attributes", "Majority (%)", "Agrees")

TITLE = "The paper's data sets: what it says of them, and what they are"

NAME = "paper-data"

INTRODUCTION = (
    "The paper's figure stands first, ours after it. Rows and attributes of its Table V are those "
    "of all parts together. Where a set is not at hand, what is known of it is the paper's word, "
    "and its cells in Tables VI and VII are not verified here."
)


def data_rows(names: Sequence[str] = tuple(SETS)) -> list[Row]:
    """Return of each data set of the paper what is printed, and what the data have."""
    return [_row(find_entry(name)) for name in names]


def _row(entry: Entry) -> Row:
    assert entry.printed is not None
    row: Row = {
        "data": entry.name,
        "table": entry.printed.table,
        "paper_rows": entry.printed.rows,
        "paper_attributes": entry.printed.attributes,
        "paper_majority": entry.printed.majority,
        "rows": None,
        "attributes": None,
        "majority": None,
        "remarks": (),
    }
    if available(entry.name):
        found = load(entry.name, fetch=False)
        share = float(np.mean(found.y == 1))
        row |= {
            "rows": len(found.y),
            "attributes": found.X.shape[1],
            "majority": round(100 * max(share, 1 - share), 2),
            "remarks": tuple(found.remarks),
        }
    return row


def agrees(row: Row) -> str:
    """Return whether the data are as printed, in a word."""
    if row["rows"] is None:
        return "not verified"
    pairs = [(row[f"paper_{name}"], row[name]) for name in ("rows", "attributes", "majority")]
    return "yes" if all(paper in (None, mine) for paper, mine in pairs) else "no"


def cells_of(rows: Sequence[Row]) -> list[list[str]]:
    """Return the table: the paper's figure, and ours."""
    return [
        [
            SETS[row["data"]],
            row["table"],
            _pair(row, "rows", ",d"),
            _pair(row, "attributes", ",d"),
            _pair(row, "majority", ".2f"),
            agrees(row),
        ]
        for row in rows
    ]


def _pair(row: Row, name: str, form: str) -> str:
    printed, mine = (row[key] for key in (f"paper_{name}", name))
    texts = ["none printed" if printed is None else format(printed, form)]
    texts.append("not at hand" if mine is None else format(mine, form))
    return " / ".join(texts)


def write_data_docs(rows: Sequence[Row], docs: Path, command: str) -> Path:
    """Write the page into a folder of documents."""
    lines = [f"# {TITLE}", "", f"{PAPER}: Tables I and V. {MADE_BY}", "", f"    {command}", ""]
    lines += [INTRODUCTION, ""]
    lines += markdown_table(HEADS, [[escaped(cell) for cell in row] for row in cells_of(rows)])
    remarks = [(row["data"], remark) for row in rows for remark in row["remarks"]]
    if remarks:
        lines += ["", "## Where they differ, and why", ""]
        lines += [f"- {escaped(SETS[data])}: {escaped(remark)}" for data, remark in remarks]
    path = docs / f"{NAME}.md"
    write_whole(path, "\n".join([*lines, ""]).encode())
    return path
