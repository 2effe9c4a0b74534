"""Whether data are what was published, and how they compare with what the paper prints."""

from __future__ import annotations

import numpy as np

from polysift.datasets.catalogue import Entry, Printed
from polysift.datasets.prepared import Content, digest, unordered_digest
from polysift.runtime.types import IntArray


def count_classes(y: IntArray) -> tuple[int, int]:
    """Return the numbers of labels -1 and +1."""
    positive = int(np.count_nonzero(y == 1))
    return len(y) - positive, positive


def deviations(entry: Entry, content: Content, sha: str | None = None) -> tuple[str, ...]:
    """Say in sentences how data differ from the published ones; what is missing is not known.

    The order of the rows is not part of that: publishers do not agree on it.
    """
    found = []
    counts, width = count_classes(content.y), content.X.shape[1]
    if width != len(entry.features):
        found.append(
            f"The data should have {len(entry.features):,} attributes; they have {width:,}."
        )
    if entry.counts is not None and counts != entry.counts:
        found.append(
            f"The published data have {sum(entry.counts):,} rows, {entry.counts[0]:,} of class -1 "
            f"and {entry.counts[1]:,} of class +1; these have {sum(counts):,}, {counts[0]:,} and "
            f"{counts[1]:,}."
        )
    if found or entry.digests is None or (sha or digest(content)) == entry.digests[0]:
        return tuple(found)
    if unordered_digest(content) == entry.digests[1]:
        return ()
    return ("Some values differ from the published ones.",)


def printed_differences(entry: Entry, content: Content) -> tuple[str, ...]:
    """Say in sentences where published data differ from what the paper's tables print."""
    if entry.printed is None:
        return ()
    printed, (m, d) = entry.printed, content.X.shape
    share = round(100 * max(count_classes(content.y)) / m, 2)
    facts: list[tuple[str, str, str, bool]] = [
        ("rows", f"{printed.rows:,} rows", f"{m:,}", m != printed.rows),
        ("attributes", f"{printed.attributes:,} attributes", f"{d:,}", d != printed.attributes),
        (
            "majority",
            f"{printed.majority} % of the rows in the larger class",
            f"{share} %",
            printed.majority not in (None, share),
        ),
    ]
    return tuple(
        f"The paper's Table {printed.table} prints {there}{_parts(printed, what)}; the data have "
        f"{here}{_reason(entry, what)}."
        for what, there, here, differs in facts
        if differs
    )


def _parts(printed: Printed, what: str) -> str:
    if what != "rows" or printed.parts is None:
        return ""
    train, valid, test = printed.parts
    return f" ({train:,} for training, {valid:,} for validation, {test:,} for test)"


def _reason(entry: Entry, what: str) -> str:
    return f": {entry.reasons[what]}" if what in entry.reasons else ""


def fixed_split(
    entry: Entry, m: int
) -> tuple[tuple[IntArray, IntArray, IntArray] | None, tuple[str, ...]]:
    """Return the paper's split, where the order of the rows makes it, and what to say of it."""
    printed = entry.printed
    if printed is None or printed.parts is None or not printed.ordered:
        return None, ()
    said: tuple[str, ...] = ()
    _, valid, test = printed.parts
    if m != printed.rows:
        valid, test = (round(m * part / printed.rows) for part in (valid, test))
        said = (
            f"The split has the paper's proportions: {m - valid - test:,} rows for training, "
            f"{valid:,} for validation, {test:,} for test, in the order of the file.",
        )
    train, validation, last = np.split(np.arange(m), [m - valid - test, m - test])
    return (train, validation, last), said
