"""The roles of columns: features, target and weight, by name or by position."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from polysift.data.checks import find_name
from polysift.data.kinds import ColumnType

Column = str | int
"""A column, by name or by position."""


@dataclass(frozen=True)
class Roles:
    """The roles of columns, as a user gives them.

    Attributes
    ----------
    target, weight : str, int or None
        The columns of labels and weights, by name or position; None where there are none.
    columns : sequence of str and int, or None
        The features, in the order of X; None takes all columns that have no other role.
    drop : sequence of str and int
        The columns that are not features.
    """

    target: Column | None = None
    weight: Column | None = None
    columns: Sequence[Column] | None = None
    drop: Sequence[Column] = ()

    def __post_init__(self) -> None:
        for name in ("columns", "drop"):
            value = getattr(self, name)
            if isinstance(value, str):
                raise ValueError(
                    f"{name} must be a list of columns; got {value!r}. Pass [{value!r}]."
                )
        if self.columns is not None and len(self.drop):
            raise ValueError("columns and drop exclude each other: columns lists the features.")

    @property
    def given(self) -> bool:
        """Whether any role is given."""
        return self != Roles()

    def resolve(
        self, find: Callable[[Column], int], names: Sequence[Column], where: str
    ) -> tuple[list[int], int | None, int | None]:
        """Return the positions of features, target and weight.

        ``find`` returns the position of a column. ``names`` are the columns of ``where`` in
        messages, in their order.
        """
        y, w = (None if role is None else find(role) for role in (self.target, self.weight))
        if self.columns is None:
            others = {y, w, *map(find, self.drop)}
            features = [position for position in range(len(names)) if position not in others]
        else:
            features = [find(column) for column in self.columns]
        used = [*features, *(position for position in (y, w) if position is not None)]
        for position, count in Counter(used).items():
            if count > 1:
                raise ValueError(
                    f"Column {names[position]!r} of {where} is used {count} times. A column is the "
                    "target, the weight, or once among columns."
                )
        if not features:
            raise ValueError(f"No column of {where} is left as a feature. Pass at least one.")
        return features, y, w


def find_column(column: Column, names: Sequence[str], where: str) -> int:
    """Return the position of a column; text that is not a name but an integer is a position."""
    if isinstance(column, str) and (column in names or as_position(column) is None):
        return find_name(column, names, where)
    return check_position(int(column), len(names), where)


def as_position(text: str) -> int | None:
    """Return the integer that text holds, or None."""
    try:
        return int(text)
    except ValueError:
        return None


def check_position(position: int, width: int, where: str) -> int:
    """Return a position counted from 0, given one that may count from the end; or raise."""
    if not -width <= position < width:
        raise ValueError(
            f"There is no column {position} in {where}, which has {width} columns. Pass a position "
            f"from 0 to {width - 1}, or a negative one to count from the end."
        )
    return position % width


def resolve_names(
    names: Sequence[str], where: str, roles: Roles
) -> tuple[list[str], str | None, str | None]:
    """Return the names of features, target and weight."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"Two columns of {where} are called {twice[0]!r}. Rename one of them.")
    features, y, w = roles.resolve(lambda column: find_column(column, names, where), names, where)
    y_name, w_name = (None if position is None else names[position] for position in (y, w))
    return [names[position] for position in features], y_name, w_name


def resolve_types(
    types: Mapping[Column, ColumnType], names: Sequence[str], features: Sequence[str], where: str
) -> dict[int, ColumnType]:
    """Return the types that are given for columns, by the number of the feature."""
    found = {}
    for column, known in types.items():
        name = names[find_column(column, names, where)]
        if name not in features:
            raise ValueError(no_feature(column, where))
        found[list(features).index(name)] = known
    return found


def no_feature(column: Column, where: str) -> str:
    """Return the message on a kind that is given for a column that is no feature."""
    return (
        f"columns gives a kind for {column!r} of {where}, which is no feature. A kind goes with a "
        "feature, not with the target, the weight, or a column that is left out."
    )
