"""What a study leaves in its folder: measurements, summary, picture and verdict."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from io import BytesIO, StringIO
from pathlib import Path
from platform import python_version
from typing import Any

from polysift import __version__
from polysift.plots.base import load_matplotlib
from polysift.runtime.outputs import replacing
from polysift_paper.studies.runner import study_folder
from polysift_paper.studies.study import Row, Study, Verdict

DOTS_PER_INCH = 200

LOOK = {
    "svg.fonttype": "path",  # the same letters everywhere
    "svg.hashsalt": "polysift",  # the same bits for the same picture
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 10.0,
}

MEASUREMENTS = "measurements.csv"

TABLES = ("summary.csv", MEASUREMENTS)

VALUES = {"": None, "True": True, "False": False}
"""What entries of a table stand for, beside numbers and words."""

ANSWERS = {True: "agrees", False: "does not agree", None: "cannot be settled"}
"""What a verdict says of the data and the claim."""


@dataclass(frozen=True)
class Outcome:
    """A study that was run.

    Attributes
    ----------
    study : Study
        Which one.
    runs, seed : int
        How often, and from which base seed.
    summary : list of dict
        The table.
    verdict : Verdict
        Whether the data agree with the claim.
    svg : bytes
        The picture.
    size : tuple of float
        Its width and height in inches.
    folder : Path
        Where the files are.
    """

    study: Study
    runs: int
    seed: int
    summary: list[Row]
    verdict: Verdict
    svg: bytes
    size: tuple[float, float]
    folder: Path

    @property
    def heading(self) -> str:
        """The heading of the study."""
        numbered = self.study.name.isdigit()
        return f"{self.study.name}. {self.study.title}" if numbered else self.study.title

    @property
    def origin(self) -> str:
        """Where in the paper the study comes from."""
        return self.study.figure or "a study of our own"

    @property
    def answer(self) -> str:
        """The verdict in a few words."""
        return ANSWERS[self.verdict.agrees]


def versions() -> dict[str, str]:
    """Return the versions that the numbers depend on."""
    names = ("numpy", "scipy", "scikit-learn")
    return {
        "polysift": __version__,
        "python": python_version(),
        **{name: version(name) for name in names},
    }


def write_results(study: Study, rows: list[Row], folder: Path, *, runs: int, seed: int) -> Outcome:
    """Summarise, draw and judge a study, and write its files.

    Parameters
    ----------
    study : Study
        The study.
    rows : list of dict
        Its measurements.
    folder : Path
        Where results are kept; the study has a folder of its own in it.
    runs, seed : int
        How it was run.

    Returns
    -------
    Outcome
        What was written.
    """
    home = study_folder(study, folder)
    home.mkdir(parents=True, exist_ok=True)
    summary = study.summarise(rows)
    verdict = study.judge(summary, rows)
    with load_matplotlib("style").context(["default", LOOK]):
        figure = study.draw(summary, rows)
        svg, png = drawn(figure, "svg"), drawn(figure, "png")
    outcome = Outcome(
        study, runs, seed, summary, verdict, svg, tuple(figure.get_size_inches()), home
    )
    for name, table in zip(TABLES, (summary, rows), strict=True):
        write_whole(home / name, table_text(table).encode())
    write_whole(home / "figure.svg", svg)
    write_whole(home / "figure.png", png)
    text = json.dumps(verdict_entries(outcome), indent=2, ensure_ascii=False)
    write_whole(home / "verdict.json", f"{text}\n".encode())
    return outcome


def drawn(figure: Any, kind: str) -> bytes:
    """Return a figure as "svg" or "png"."""
    file = BytesIO()
    dated = {"Date": None} if kind == "svg" else None  # or no two files were the same
    figure.savefig(file, format=kind, dpi=DOTS_PER_INCH, metadata=dated)
    return file.getvalue()


def verdict_entries(outcome: Outcome) -> dict[str, Any]:
    """Return the verdict, and all one must know to get it again, as plain values."""
    study = outcome.study
    return {
        "study": study.name,
        "title": study.title,
        "figure": study.figure,
        "claim": study.claim,
        "agrees": outcome.verdict.agrees,
        "verdict": outcome.verdict.text,
        "runs": outcome.runs,
        "seed": outcome.seed,
        "versions": versions(),
    }


def columns_of(rows: Sequence[Row]) -> list[str]:
    """Return the names of all entries, in the order in which they first come."""
    return list(dict.fromkeys(name for row in rows for name in row))


def table_text(rows: Sequence[Row]) -> str:
    """Return rows as CSV; floats keep all their digits."""
    file = StringIO()
    writer = csv.DictWriter(file, columns_of(rows), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def read_table(text: str) -> list[Row]:
    """Return the rows of ``table_text``: numbers and truth values as such, None where none is."""
    rows = csv.DictReader(StringIO(text))
    return [{name: _value(entry) for name, entry in row.items()} for row in rows]


def _value(entry: str) -> Any:
    if entry in VALUES:
        return VALUES[entry]
    for kind in (int, float):
        with suppress(ValueError):
            return kind(entry)
    return entry


def write_whole(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all."""
    with replacing(path) as file:
        file.write(content)
