"""What ``polysift.drift`` finds: shares by column, sentences on those that are much, a table."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from html import escape
from math import inf, sqrt
from reprlib import repr as shortened
from typing import Any

from polysift.data.kinds import DATE
from polysift.explanation.tables import Table, as_text
from polysift.runtime.terminal import escaped

MUCH_SHARE = 0.01
"""A share is much larger than that in training if it is so by more than this,"""

MUCH_ERRORS = 5.0
"""and by more than so many standard errors."""

ROWS_BEYOND = 10.0
"""Of m training rows, the range counts as leaving out so many in m: further rows like them leave it
more often for one range in 20,000."""

SHOWN_COLUMNS = 30
"""How many columns ``print`` shows: those first that differ most."""


@dataclass(frozen=True)
class ColumnDrift:
    """How one column of some rows differs from that of the training rows.

    Attributes
    ----------
    name : str
        The name of the column; "x0", "x1", ... where the training rows had none.
    kind : str
        What it is: see ``FPCClassifier.column_kinds_``.
    low, high : float or None
        The smallest and the largest value in training, of a number or a date.
    below, above : float or None
        The shares of the rows beyond them.
    unseen : float or None
        Of a category, the share of the rows whose level was not among those of training.
    unseen_words : tuple of (str, float)
        The most frequent of these levels, and the share of the rows of each.
    missing, trained_missing : float
        The share of the rows without a value, and that share in training.
    sentences : tuple of str
        What is much: one sentence for each share that is much larger than in training.
    """

    name: str
    kind: str
    low: float | None
    high: float | None
    below: float | None
    above: float | None
    unseen: float | None
    unseen_words: tuple[tuple[str, float], ...]
    missing: float
    trained_missing: float
    sentences: tuple[str, ...]

    @property
    def excess(self) -> float:
        """The largest of its shares, that of missing values beyond the one in training."""
        shares = (self.below, self.above, self.unseen, self.missing - self.trained_missing)
        return max(share for share in shares if share is not None)


@dataclass(frozen=True, repr=False)
class Drift:
    """The result of ``polysift.drift``; ``print`` shows it as a table.

    Attributes
    ----------
    rows : int
        The number of rows that were compared.
    columns : tuple of ColumnDrift
        The columns that the model uses, in their order.
    untold : tuple of str
        Sentences on what cannot be told, since the model does not know it.

    See Also
    --------
    drift : Compares rows with the training rows of a model.

    Examples
    --------
    >>> import numpy as np
    >>> from polysift import FPCClassifier, drift
    >>> X = np.random.default_rng(0).random((1_000, 2))
    >>> clf = FPCClassifier(2, random_state=0).fit(X, X[:, 0] > X[:, 1])
    >>> drift(clf, X).sentences
    ()
    """

    rows: int
    columns: tuple[ColumnDrift, ...]
    untold: tuple[str, ...] = ()

    @property
    def differing(self) -> int:
        """The number of columns that differ much."""
        return sum(bool(column.sentences) for column in self.columns)

    @property
    def sentences(self) -> tuple[str, ...]:
        """One sentence for each share that is much larger than in training."""
        return tuple(text for column in self.columns for text in column.sentences)

    @property
    def summary(self) -> str:
        """The sentences in one, with the first of them; empty where nothing is much."""
        if not self.sentences:
            return ""
        verb = "differ" if self.differing > 1 else "differs"
        how = f"{self.differing} of {len(self.columns)} columns {verb} much from the training rows"
        return f"{how}, as in {self.sentences[0]}"

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values, ready for JSON.

        Returns
        -------
        dict
            "rows", "columns" (the attributes of each ``ColumnDrift``), "sentences" and "untold".
        """
        return {
            "rows": self.rows,
            "columns": [asdict(column) for column in self.columns],
            "sentences": list(self.sentences),
            "untold": list(self.untold),
        }

    def __repr__(self) -> str:
        differing = sum(bool(column.sentences) for column in self.columns)
        return (
            f"<Drift: {self.rows:,} rows, {differing} of {len(self.columns)} columns differ much>"
        )

    def __str__(self) -> str:
        return "\n\n".join([as_text(drift_table(self)), escaped("\n".join(drift_notes(self)))])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def judged(column: ColumnDrift, n: float, m: float, expected: float) -> ColumnDrift:
    """Return a column with a sentence for each share that is much larger than in training."""
    said = []
    for what, side, border in (
        (column.below, "below", "smallest"),
        (column.above, "above", "largest"),
    ):
        if what is not None and is_much(what, min(ROWS_BEYOND / m, 1.0), n):
            end = _shown(column.low if side == "below" else column.high, column.kind)
            said.append(
                f"{percent(what)} of the rows are {side} {end}, the {border} value of the training "
                "rows."
            )
    if column.unseen is not None and is_much(column.unseen, expected, n, m):
        words = ", ".join(f"{shortened(word)} ({percent(p)})" for word, p in column.unseen_words)
        said.append(
            f"{percent(column.unseen)} of the rows have a level that the training rows did not "
            f"have, most often {words}."
        )
    if is_much(column.missing, column.trained_missing, n, m):
        said.append(
            f"{percent(column.missing)} of the rows lack a value; of the training rows "
            f"{percent(column.trained_missing)} did."
        )
    sentences = tuple(f"{column.name}: {text}" for text in said)
    return replace(column, sentences=sentences)


def is_much(share: float, before: float, n: float, m: float = inf) -> bool:
    """Return whether a share of n rows is much larger than one of m training rows.

    The standard error is that of Agresti and Coull, who add four rows, half of each kind: a few
    rows prove little, whatever they are. If m is infinite, the share in training is exact.
    """
    near = (share * n + 2.0) / (n + 4.0)
    error = sqrt(near * (1.0 - near) / (n + 4.0) + before * (1.0 - before) / m)
    return share - before > max(MUCH_SHARE, MUCH_ERRORS * error)


def drift_table(found: Drift) -> Table:
    """Return the table that ``print`` shows: the columns that differ most first."""
    order = sorted(found.columns, key=lambda c: (not c.sentences, -c.excess))
    rows = [
        [
            column.name,
            column.kind,
            *(percent(share) for share in (column.below, column.above, column.unseen)),
            *(percent(share) for share in (column.missing, column.trained_missing)),
            "much" if column.sentences else "",
        ]
        for column in order[:SHOWN_COLUMNS]
    ]
    heads = ["column", "kind", "below", "above", "unseen", "missing", "in training", ""]
    title = f"{found.rows:,} rows against the training rows"
    if len(order) > SHOWN_COLUMNS:
        title += f": the {SHOWN_COLUMNS} of {len(order)} columns that differ most"
    return title, heads, rows


def drift_notes(found: Drift) -> list[str]:
    """Return the sentences below the table."""
    return [*(found.sentences or ["No column differs much from the training rows."]), *found.untold]


def percent(share: float | None) -> str:
    """Return a share in per cent, or a dash."""
    return "-" if share is None else f"{100 * share:.1f} %"


def _shown(value: float | None, kind: str) -> str:
    """Return the end of a range as text: a date as such."""
    assert value is not None
    if kind != DATE:
        return f"{value:.6g}"
    try:
        return datetime.fromtimestamp(value, UTC).strftime("%Y-%m-%d %H:%M")
    except (OverflowError, OSError, ValueError):  # beyond what a calendar of Python has
        return f"{value:.6g} s since 1970"
