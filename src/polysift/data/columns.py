"""Which column is what: features, target and weight, by name or by position."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from polysift.data.source import find_name

Column = str | int


@dataclass(frozen=True)
class Roles:
    """What a user says of columns.

    Attributes
    ----------
    target, weight : str, int or None
        The columns of labels and weights, by name or position; None where there are none.
    columns : sequence of str and int, or None
        The features, in the order of X; None takes all that have no other role.
    drop : sequence of str and int
        What is no feature.
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
            raise ValueError("columns and drop cannot go together: columns says it all.")

    @property
    def given(self) -> bool:
        """Whether anything was said."""
        return self != Roles()

    def resolve(
        self, find: Callable[[Column], int], names: Sequence[Column], where: str
    ) -> tuple[list[int], int | None, int | None]:
        """Return the positions of features, target and weight; ``find`` gives that of a column.

        ``names`` is what a message calls the columns of ``where``, in their order.
        """
        y, w = (None if role is None else find(role) for role in (self.target, self.weight))
        if self.columns is None:
            others = {y, w, *map(find, self.drop)}
            features = [place for place in range(len(names)) if place not in others]
        else:
            features = [find(column) for column in self.columns]
        used = [*features, *(place for place in (y, w) if place is not None)]
        for place, count in Counter(used).items():
            if count > 1:
                raise ValueError(
                    f"Column {names[place]!r} of {where} is used {count} times. A column is the "
                    "target, the weight, or once among columns."
                )
        if not features:
            raise ValueError(f"No column of {where} is left as a feature. Pass at least one.")
        return features, y, w


def find_column(column: Column, names: Sequence[str], where: str) -> int:
    """Return the position of a column; text that is no name, but a whole number, is a position."""
    if isinstance(column, str) and (column in names or as_position(column) is None):
        return find_name(column, names, where)
    return check_position(int(column), len(names), where)


def as_position(text: str) -> int | None:
    """Return the whole number that text holds, or None."""
    try:
        return int(text)
    except ValueError:
        return None


def check_position(place: int, width: int, where: str) -> int:
    """Return a position, counted from 0, of one that may count from the end, or raise."""
    if not -width <= place < width:
        raise ValueError(
            f"There is no column {place} in {where}, which has {width} columns. Pass a position "
            f"from 0 to {width - 1}, or a negative one to count from the end."
        )
    return place % width


def resolve_names(
    names: Sequence[str], where: str, roles: Roles
) -> tuple[list[str], str | None, str | None]:
    """Return the names of features, target and weight."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"Two columns of {where} are called {twice[0]!r}. Rename one of them.")
    features, y, w = roles.resolve(lambda column: find_column(column, names, where), names, where)
    y_name, w_name = (None if place is None else names[place] for place in (y, w))
    return [names[place] for place in features], y_name, w_name
