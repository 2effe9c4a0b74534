"""The state of a search in a checkpoint: who takes part, what is done, the rows so far."""

from __future__ import annotations

from typing import Any

from polysift.engine.sums import checked_gram
from polysift.runtime.arrays import require
from polysift.runtime.types import FloatArray
from polysift.selection.candidates import row_from
from polysift.selection.refit import Kept
from polysift.selection.results import Racing, Results
from polysift.selection.stage import SearchContext, empty_rows

Saved = tuple[dict[str, FloatArray], dict[str, Any]]
"""Arrays and plain values, as a checkpoint keeps them."""


def as_saved(
    results: Results, at: int, racing: Racing, done: list[str], kept: Kept | None
) -> Saved:
    """Return the state of a search: the number of its level, and what is done there."""
    rows = {
        name: [row.plain() for row in rows.values()]
        for name, rows in results.rows.items()
        if not any(row.overflow for row in rows.values())
    }
    indices = [
        [variant.name, [results.candidates(variant).index(own) for own in candidates]]
        for variant, candidates in racing
    ]
    values: dict[str, Any] = {"level": at, "racing": indices, "done": done, "rows": rows}
    if kept is None:
        return {}, values | {"kept": None}
    arrays = {"G": kept.sums.G, "Aty": kept.sums.Aty}
    return arrays, values | {"kept": [kept.variant, kept.n_rows]}


def restored(
    context: SearchContext, results: Results, arrays: dict[str, FloatArray], values: dict[str, Any]
) -> tuple[int, Racing, list[str], Kept | None]:
    """Add the rows that ``as_saved`` has saved to the results; return the rest of the state."""
    names, at, done = set(results.variants), values["level"], list(values["done"])
    require(type(at) is int and 0 <= at < len(context.levels), "level must be one of this search")
    require({*done, *values["rows"]} <= names, "a variant is not of this search")
    for name, saved in values["rows"].items():
        variant = results.variants[name]
        made = empty_rows(context, variant, results.candidates(variant))
        rows = [row_from(row, context.n_splits) for row in saved]
        require(len(rows) == len(made), "a variant has other candidates")
        for expected, row in zip(made.values(), rows, strict=True):
            params = expected.params | {"rho": row.params["rho"]}
            same = row.params == params and row.used == expected.used
            require(same, "a candidate has other parameters")
            require(len(row.others) == len(expected.others), "a candidate has other metrics")
        results.rows[name] = dict(zip(made, rows, strict=True))
    racing: Racing = []
    for name, indices in values["racing"]:
        require(name in names, "a variant is not of this search")
        every = results.candidates(results.variants[name])
        known = all(type(i) is int and 0 <= i < len(every) for i in indices)
        require(known, "racing must be numbers of candidates")
        racing.append((results.variants[name], [every[i] for i in indices]))
    require(bool(racing), "racing must hold a variant")
    if values["kept"] is None:
        return at, racing, done, None
    name, n_rows = values["kept"]
    require(name in names and type(n_rows) is int, "the kept stage must be of this search")
    return at, racing, done, Kept(name, n_rows, checked_gram(arrays, "G", "Aty"), {})
