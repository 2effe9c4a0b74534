"""What an explanation shows: its features, pairs and terms in order, as tables and as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from polysift.explanation.levels import level_rows
from polysift.explanation.variances import Importance
from polysift.features.monomials import Polynomial
from polysift.runtime.terminal import escaped
from polysift.runtime.types import FloatArray, IntArray

if TYPE_CHECKING:
    from polysift.explanation.explanation import Explanation

Table = tuple[str, list[str], list[list[str]]]
"""A title, the names of the columns, and the rows."""

Entries = list[dict[str, Any]]

SHARES = {"alone": "alone", "total": "in all"}

TABLE_ROWS = 10

DEPENDENCE_VARIANCE_RATIO = 2.0
"""Above this ratio of the variance over independent features to that over rows, a note says so."""

MAX_LEVEL_TABLES = 3
"""How many categories have a table of their levels."""

MAX_NOTED_GROUPS, MAX_NOTED_COLUMNS = 5, 6
"""How many groups of columns that depend on each other are named, and how many of each."""

MAX_NAME_CHARACTERS = 40
"""The middle of longer names is left out in a table."""


def tables_of(explanation: Explanation, top: int = TABLE_ROWS) -> list[Table]:
    """Return the tables that ``print`` shows: features and, where known, pairs and terms."""
    tables = [feature_table(explanation.features(top)), *level_tables(explanation, top)]
    if explanation.reason is not None:
        return tables
    if len(explanation.feature_names) > 1 and explanation.model.degree_ > 1:
        tables.append(pair_table(explanation.pairs(top)))
    several = len(explanation.classes) > 1
    return [*tables, term_table(explanation.terms(top), classes=several)]


def notes_of(explanation: Explanation) -> list[str]:
    """Return the sentences below the tables: the reference, and limits of what they show."""
    over = f"Over {explanation.reference.name}."
    together = group_notes(explanation)
    if explanation.reason is not None:
        return [over, *together, explanation.reason]
    importance = explanation.importance
    higher = _share(float(importance.overall("higher")))
    three = f"Interactions of three features or more have {higher} of the variance."
    notes = [over, *together, three]
    apart, rows = float(importance.variance.sum()), float(explanation.score_variance.sum())
    if apart > DEPENDENCE_VARIANCE_RATIO * rows:
        notes.append(
            f"The score's variance is {rows:.3g} over these rows and {apart:.3g} over "
            "independent features: they depend on each other, and shares of the variance count "
            "regions without rows. Attributions are about the rows."
        )
    return notes


def group_notes(explanation: Explanation) -> list[str]:
    """Return a sentence for each group of columns that depend on each other."""
    notes = []
    for group in explanation.groups[:MAX_NOTED_GROUPS]:
        names = [_cut(explanation.feature_names[j]) for j in group.columns[:MAX_NOTED_COLUMNS]]
        rest = len(group.columns) - len(names)
        listed = " and ".join([", ".join(names[:-1]), names[-1]]) if not rest else ", ".join(names)
        listed += f" and {rest} more" if rest else ""
        each = ", ".join(f"{explanation.shuffled[j]:.3g}" for j in group.columns[: len(names)])
        notes.append(
            f"{listed} depend on each other (r = {group.correlation:.2f}): attributions divide "
            "among them what they say together, by the model's use of them, so judge them as one. "
            f"Shuffled together they change the score by {group.shuffled:.3g}, alone by {each}."
        )
    if (more := len(explanation.groups) - MAX_NOTED_GROUPS) > 0:
        notes.append(f"There are {more} more groups of columns that depend on each other.")
    return notes


def term_name(exponents: IntArray, names: Sequence[str]) -> str:
    """Return the text of a monomial: ``a^2 * b``."""
    factors = [
        name if power == 1 else f"{name}^{power}"
        for name, power in zip(names, exponents.tolist(), strict=True)
        if power
    ]
    return " * ".join(factors) or "1"


def feature_entries(
    importance: Importance | None,
    attribution: FloatArray,
    shuffled: FloatArray,
    names: Sequence[str],
    top: int | None,
) -> Entries:
    """Return features by their attributions (K, d), the largest first, with their shares."""
    sizes = attribution.mean(axis=0)
    entries = [
        {"feature": name, "attribution": float(x), "shuffled": float(y)}
        for name, x, y in zip(names, sizes, shuffled, strict=True)
    ]
    if importance is not None:
        shares = (importance.overall(name).tolist() for name in ("alone", "total"))
        for entry, alone, total in zip(entries, *shares, strict=True):
            entry |= {"alone": alone, "total": total}
    return [entries[i] for i in np.argsort(-sizes, kind="stable")[:top]]


def pair_entries(importance: Importance, names: Sequence[str], top: int | None) -> Entries:
    """Return pairs of features with the share of their interaction, the largest first."""
    shares = importance.overall("pairs")
    first, second = np.triu_indices(len(shares), 1)
    order = np.argsort(-shares[first, second], kind="stable")[:top]
    return [
        {"pair": (names[i], names[k]), "share": float(shares[i, k])}
        for i, k in zip(first[order], second[order], strict=True)
    ]


def term_entries(
    polynomial: Polynomial,
    spreads: FloatArray,
    names: Sequence[str],
    classes: Sequence[Any],
    top: int | None,
) -> Entries:
    """Return terms with coefficient and spread, the widest spread first."""
    order = np.argsort(-spreads, axis=None, kind="stable")[:top]
    return [
        {
            "term": term_name(polynomial.exponents[k], names),
            "class": classes[column],
            "coefficient": float(polynomial.coefficients[column, k]),
            "spread": float(spreads[column, k]),
        }
        for column, k in zip(*np.unravel_index(order, spreads.shape), strict=True)
    ]


def feature_table(entries: Entries) -> Table:
    """Return features with their mean absolute attribution and, where known, their shares."""
    rows = [
        [
            _cut(e["feature"]),
            f"{e['attribution']:.3g}",
            f"{e['shuffled']:.3g}",
            *(_share(e[k]) for k in SHARES if k in e),
        ]
        for e in entries
    ]
    heads = ["feature", "attribution", "shuffled", *(SHARES[k] for k in SHARES if k in entries[0])]
    several = len(heads) > 3
    more = "what shuffling changes" + (", and their shares of the variance" if several else "")
    joint = "" if several else "and "
    return f"features: the mean size of their attributions, {joint}{more}", heads, rows


def level_tables(explanation: Explanation, top: int) -> list[Table]:
    """Return the levels of the most important categories."""
    several = len(explanation.classes) > 1
    tables = []
    for name in explanation.categories()[:MAX_LEVEL_TABLES]:
        rows = [
            [_cut(word), _share(share), *([_cut(label)] if several else []), f"{value:+.3g}"]
            for word, share, label, value in level_rows(
                explanation.levels(name, top), explanation.classes
            )
        ]
        heads = ["level", "rows", *(["class"] if several else []), "attribution"]
        title = f"levels of {_cut(name)}: the mean attribution of their rows"
        tables.append(
            (f"{title}, to the class that it moves most" if several else title, heads, rows)
        )
    return tables


def pair_table(entries: Entries) -> Table:
    """Return pairs of features with the shares of their interactions."""
    rows = [[" & ".join(map(_cut, e["pair"])), _share(e["share"])] for e in entries]
    return "pairs: the share of their interactions in the variance", ["pair", "share"], rows


def term_table(entries: Entries, *, classes: bool) -> Table:
    """Return terms of the polynomial, with the class whose score it is where there are several."""
    rows = [
        [
            e["term"],
            *([_cut(e["class"])] if classes else []),
            f"{e['coefficient']:.4g}",
            f"{e['spread']:.3g}",
        ]
        for e in entries
    ]
    heads = ["term", *(["class"] if classes else []), "coefficient", "spread"]
    return "terms of the polynomial, in scaled features", heads, rows


def as_text(table: Table) -> str:
    """Return a table as lines of text; all columns but the first are numbers."""
    title, heads, rows = table
    shown = [[escaped(text) for text in row] for row in (heads, *rows)]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    lines = [title]
    for first, *others in shown:
        cells = (text.rjust(width) for text, width in zip(others, widths[1:], strict=True))
        lines.append("  ".join([first.ljust(widths[0]), *cells]).rstrip())
    return "\n".join(lines)


def _share(value: float) -> str:
    return f"{100 * value:.1f} %"


def _cut(name: Any) -> str:
    text, half = str(name), MAX_NAME_CHARACTERS // 2
    return text if len(text) <= MAX_NAME_CHARACTERS else f"{text[:half]}...{text[-half:]}"
