"""The columns of a model's training rows, as the report and ``polysift inspect`` show them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from polysift.data.kinds import DROP, NUMBER
from polysift.estimators.classifier import FPCClassifier
from polysift.features.columns import DECIDES, LEFT_OUT
from polysift.reporting.case import Case, Section
from polysift.reporting.page import joined, paragraph, share_text, shortened, table

MAX_LISTED_COLUMNS = 100
"""Of more columns, the first are listed."""

MAX_WORD_CHARACTERS = 24

PLURALS = {"category": "categories", "encoded category": "encoded categories"}
"""The plurals that are not just an s more."""


@dataclass(frozen=True)
class ColumnFacts:
    """What is known of a column of the training rows.

    Attributes
    ----------
    name : str
        Its name, or its position.
    kind : str
        What it was found to be (``FPCClassifier.column_kinds_``).
    missing : float
        The share of rows without a value.
    levels : int or None
        The number of levels of a category.
    frequent : list of (str, float)
        Its most frequent levels, with their shares of the values.
    """

    name: str
    kind: str
    missing: float = 0.0
    levels: int | None = None
    frequent: tuple[tuple[str, float], ...] = ()

    @property
    def kind_text(self) -> str:
        """The kind, and whether the column is left out."""
        if self.kind == DROP:
            return "left out"
        return f"{self.kind}, left out" if self.kind in LEFT_OUT else self.kind

    @property
    def missing_text(self) -> str:
        """The share of missing values, or nothing."""
        return share_text(self.missing) if self.missing else ""

    @property
    def levels_text(self) -> str:
        """The number of levels, or nothing."""
        return "" if self.levels is None else f"{self.levels:,}"

    @property
    def frequent_text(self) -> str:
        """The most frequent levels, or nothing."""
        words = (
            f"{shortened(word, MAX_WORD_CHARACTERS)} {share_text(share, 0)}"
            for word, share in self.frequent
        )
        more = self.levels is not None and self.levels > len(self.frequent) > 0
        return ", ".join([*words, *(["\u2026"] if more else [])])


def columns_of_model(model: FPCClassifier) -> list[ColumnFacts]:
    """Return what is known of the columns; nothing for a model from an old file."""
    kinds = getattr(model, "column_kinds_", None)
    if kinds is None:
        return []
    names = getattr(model, "feature_names_in_", range(len(kinds)))
    summary = getattr(model, "training_summary_", {})
    known: dict[int, Any] = {fact["column"]: fact for fact in summary.get("columns", [])}
    columns = []
    for j, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        fact = known.get(j, {})
        frequent = tuple((word, share) for word, share in fact.get("frequent", []))
        columns.append(
            ColumnFacts(
                str(name), str(kind), fact.get("missing", 0.0), fact.get("levels"), frequent
            )
        )
    return columns


def kinds_text(columns: list[ColumnFacts]) -> str:
    """Return how many columns of each kind there are: "12 numbers, 3 categories"."""
    counts = Counter(column.kind for column in columns)
    used = [
        f"{count:,} {kind if count == 1 else PLURALS.get(kind, f'{kind}s')}"
        for kind, count in counts.items()
        if kind not in LEFT_OUT
    ]
    left_out = sum(counts[kind] for kind in LEFT_OUT)
    return ", ".join([*used, *([f"{left_out:,} left out"] if left_out else [])])


def is_plain(columns: list[ColumnFacts]) -> bool:
    """Return whether all columns are numbers, none of them missing."""
    return all(column.kind == NUMBER and not column.missing for column in columns)


def leakage_notes(model: FPCClassifier) -> list[str]:
    """Return the sentences on columns that nearly decide the label alone."""
    notes = getattr(model, "column_notes_", [])
    return [_sentence(note) for note in notes if DECIDES in note]


def columns_section(case: Case) -> Section | None:
    """Return the section on columns, a sentence where all are numbers; None of an old file."""
    columns = columns_of_model(case.model)
    if not columns:
        return None
    parts = [paragraph(f"{kinds_text(columns)}.")]
    notes = getattr(case.model, "column_notes_", [])
    parts += [paragraph(_sentence(note), kind="note") for note in notes]
    if not is_plain(columns):
        rows = [
            (c.name, c.kind_text, c.missing_text, c.levels_text, c.frequent_text)
            for c in columns[:MAX_LISTED_COLUMNS]
        ]
        caption = "The columns of the training rows"
        if len(columns) > MAX_LISTED_COLUMNS:
            caption = f"The first {MAX_LISTED_COLUMNS} of {len(columns):,} columns"
        heads = ("column", "kind", "missing", "levels", "most frequent")
        parts.append(table(heads, rows, caption=caption, kind="columns"))
    return "columns", "Columns", joined(parts)


def _sentence(note: str) -> str:
    return note[:1].upper() + note[1:]
