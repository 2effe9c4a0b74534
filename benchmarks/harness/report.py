"""What a section reports: tables, targets, remarks, pictures; as text and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isnan
from typing import Any

Row = dict[str, Any]

MISSING = "-"

LONG = 40
"""Lines of a script's output that a page does without; its file has them."""


@dataclass(frozen=True)
class Column:
    """A column that is shown: the entry of the rows, its heading, and how values are written."""

    key: str
    heading: str
    form: str = ""

    def text(self, row: Row) -> str:
        """Return a cell."""
        return written(row.get(self.key), self.form)


@dataclass(frozen=True)
class Table:
    """Rows that make one CSV file, and the columns of it that are shown."""

    name: str
    title: str
    rows: list[Row]
    columns: Sequence[Column]

    def cells(self) -> list[list[str]]:
        """Return headings, and a line of cells for each row."""
        lines = [[column.text(row) for column in self.columns] for row in self.rows]
        return [[column.heading for column in self.columns], *lines]


@dataclass(frozen=True)
class Target:
    """A figure that is aimed at.

    Attributes
    ----------
    what : str
        What the figure is.
    figure, limit : float
        What was found (NaN where it could not be), and what was aimed at.
    least : bool
        Whether the figure is to be at least the limit, else at most.
    form : str
        How both are written.
    """

    what: str
    figure: float
    limit: float
    least: bool
    form: str = ".2f"

    @property
    def verdict(self) -> str:
        """Whether it is met."""
        if self.figure is None or isnan(self.figure):
            return "not measured"
        good = self.figure >= self.limit if self.least else self.figure <= self.limit
        return "met" if good else "not met"

    def row(self) -> Row:
        """Return it as an entry of a table."""
        sign = "at least" if self.least else "at most"
        return {
            "what": self.what,
            "figure": written(self.figure, self.form),
            "target": f"{sign} {written(self.limit, self.form)}",
            "verdict": self.verdict,
        }


TARGET_COLUMNS = (
    Column("what", "figure"),
    Column("figure", "measured"),
    Column("target", "target"),
    Column("verdict", ""),
)


@dataclass
class Report:
    """What a section has found.

    Attributes
    ----------
    tables : list of Table
        The figures.
    targets : list of Target
        What was aimed at.
    notes : list of str
        What a reader must know, a sentence or two each.
    pictures : dict of str to Figure
        By name, without an ending.
    text : str
        The output of a script that prints its own tables.
    """

    tables: list[Table] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    pictures: dict[str, Any] = field(default_factory=dict)
    text: str = ""


def written(value: Any, form: str) -> str:
    """Return a value as a cell."""
    if value is None or (isinstance(value, float) and isnan(value)):
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    return format(value, form) if not isinstance(value, str) else value


def as_text(cells: list[list[str]]) -> str:
    """Return a table for a terminal; columns of numbers are flush right."""
    columns = []
    for column in zip(*cells, strict=True):
        width = max(map(len, column))
        numbers = all(cell[0] in "0123456789+-." for cell in column[1:] if cell)
        columns.append([cell.rjust(width) if numbers else cell.ljust(width) for cell in column])
    return "\n".join("  ".join(line).rstrip() for line in zip(*columns, strict=True))


def as_markdown(cells: list[list[str]]) -> str:
    """Return a table for a page."""
    lines = [f"| {' | '.join(line)} |" for line in cells]
    return "\n".join([lines[0], "|" + "---|" * len(cells[0]), *lines[1:]])


def printed(report: Report) -> str:
    """Return a report for a terminal."""
    parts = [f"{table.title}\n{as_text(table.cells())}" for table in report.tables]
    if report.text:
        parts.append(report.text.rstrip())
    if report.targets:
        parts.append(as_text(_target_table(report)))
    parts += report.notes
    return "\n\n".join(parts)


def paged(report: Report, pictures: Sequence[str]) -> str:
    """Return a report for a page, with pictures by the names of their files."""
    parts = [f"{table.title}:\n\n{as_markdown(table.cells())}" for table in report.tables]
    if report.text and report.text.count("\n") < LONG:
        parts.append(f"```\n{report.text.rstrip()}\n```")
    parts += [f"![{name.removesuffix('.png')}]({name})" for name in pictures]
    if report.targets:
        parts.append(as_markdown(_target_table(report)))
    parts += report.notes
    return "\n\n".join(parts)


def _target_table(report: Report) -> list[list[str]]:
    return Table("", "", [t.row() for t in report.targets], TARGET_COLUMNS).cells()
