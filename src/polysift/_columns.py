"""Which column is what: features, target and weight, by name or by position."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from polysift._data import find_name

Column = str | int


def resolve_columns(
    names: Sequence[str],
    where: str,
    target: Column | None,
    weight: Column | None,
    columns: Sequence[Column] | None,
) -> tuple[list[str], str | None, str | None]:
    """Return the names of features, target and weight, each given by name or position."""

    def name_of(column: Column) -> str:
        if isinstance(column, str):
            return names[find_name(column, names, where)]
        if not -len(names) <= column < len(names):
            raise ValueError(
                f"There is no column number {column} in {where}, which has {len(names)} columns "
                "(counted from 0)."
            )
        return names[column]

    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"Two columns of {where} are called {twice[0]!r}. Rename one of them.")
    if isinstance(columns, str):
        raise ValueError(f"columns must be a list of columns; got the text {columns!r}.")
    y = None if target is None else name_of(target)
    w = None if weight is None else name_of(weight)
    if columns is None:
        features = [name for name in names if name not in (y, w)]
    else:
        features = [name_of(column) for column in columns]
        for name, role in ((y, "target"), (w, "weight")):
            if name in features:
                raise ValueError(f"Column {name!r} is the {role}; take it out of columns.")
    again = [name for name, count in Counter([*features, y, w]).items() if name and count > 1]
    if again:
        raise ValueError(f"Column {again[0]!r} of {where} is asked for twice.")
    if not features:
        raise ValueError(f"{where} leaves no column as a feature.")
    return features, y, w
