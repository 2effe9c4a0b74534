"""What a run leaves in its folder: CSV files, pictures, and a page with them between markers."""

from __future__ import annotations

import csv
import re
from datetime import date
from pathlib import Path

from harness.report import TARGET_COLUMNS, Column, Report, Row, Table, as_markdown, paged

TEMPLATE = Path(__file__).resolve().parents[2] / "docs" / "performance" / "README.md"

TARGETS = "targets.csv"

MARKED = re.compile(r"(<!-- begin (\w+) -->\n).*?(<!-- end \2 -->)", re.DOTALL)


class Folder:
    """The results of a suite.

    Parameters
    ----------
    path : Path
        The folder; made if need be.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self._page = path / "README.md"
        if not self._page.exists():
            self._page.write_text(MARKED.sub(r"\1\3", TEMPLATE.read_text()))

    def describe(self, machine: dict[str, str]) -> None:
        """Put the machine of the latest run at the top."""
        rows: list[Row] = [{"what": key, "found": value} for key, value in machine.items()]
        cells = Table("", "", rows, [Column("what", "what"), Column("found", "found")]).cells()
        self._fill("machine", as_markdown(cells))

    def keep(self, section: str, report: Report, command: str, machine: str, took: float) -> None:
        """Write what a section found."""
        for table in report.tables:
            write_csv(self.path / f"{_joined(section, table.name)}.csv", table.rows)
        if report.text:
            (self.path / f"{section}.txt").write_text(report.text + "\n")
        pictures = []
        for name, drawing in report.pictures.items():
            pictures.append(f"{_joined(section, name)}.png")
            drawing.savefig(self.path / pictures[-1], dpi=130)
        head = f"*`{command}`, {date.today()}, {took:,.0f} s; {machine}.*"
        self._fill(section, f"{head}\n\n{paged(report, pictures)}")
        self._keep_targets(section, report)

    def _keep_targets(self, section: str, report: Report) -> None:
        """Replace the targets of a section among those of all."""
        path = self.path / TARGETS
        rows: list[Row] = []
        if path.exists():
            with path.open(newline="") as file:
                rows = [row for row in csv.DictReader(file) if row["section"] != section]
        rows += [{"section": section} | target.row() for target in report.targets]
        if not rows:
            return
        rows.sort(key=lambda row: row["section"])
        write_csv(path, rows)
        cells = Table("", "", rows, [Column("section", "section"), *TARGET_COLUMNS]).cells()
        self._fill("targets", as_markdown(cells))

    def _fill(self, section: str, text: str) -> None:
        """Put a text between two markers of the page."""
        page = self._page.read_text()

        def filled(found: re.Match[str]) -> str:
            if found[2] != section:
                return found[0]
            return f"{found[1]}{text}\n{found[3]}"

        self._page.write_text(MARKED.sub(filled, page))


def _joined(section: str, name: str) -> str:
    return f"{section}-{name}" if name else section


def write_csv(path: Path, rows: list[Row]) -> None:
    """Write rows with all entries that any of them has."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows({k: _rounded(v) for k, v in row.items()} for row in rows)


def _rounded(value: object) -> object:
    """Return a number with as many digits as a measurement has."""
    return float(f"{value:.6g}") if isinstance(value, float) else value
