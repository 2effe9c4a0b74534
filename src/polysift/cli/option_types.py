"""The machinery of options: groups of them as dataclasses, and parsers of their values.

``grouped`` lets commands share groups of options. Each parser reads the text of one option and
raises ``typer.BadParameter`` with what is expected.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints

import typer

DURATION = re.compile(r"([0-9.]+(?:e-?[0-9]+)?)\s*(s|m|min|h|d)?")
SECONDS_PER_UNIT = {None: 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take dataclasses as parameters, each field of which becomes an option."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {}
    flat: list[Parameter] = []
    for name, parameter in signature(command).parameters.items():
        hint = hints[name]
        if not is_dataclass(hint):
            flat.append(parameter.replace(annotation=hint, kind=Parameter.KEYWORD_ONLY))
            continue
        groups[name] = hint
        own = get_type_hints(hint, include_extras=True)
        flat += [
            Parameter(
                field.name,
                Parameter.KEYWORD_ONLY,
                default=field.default,
                annotation=own[field.name],
            )
            for field in fields(hint)
        ]

    @wraps(command)
    def run(**options: Any) -> None:
        made = {
            name: group(**{field.name: options.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        command(**options, **made)

    run.__signature__ = Signature(flat)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in flat}
    return run


def whole_or_auto(text: str) -> int | str:
    """Read a positive integer, or "auto"."""
    value = number(text)
    if text == "auto":
        return text
    if isinstance(value, int) and value >= 1:
        return value
    raise typer.BadParameter(f'expected a whole number of at least 1, or "auto", got {text!r}.')


def ratio_or_word(text: str) -> float | str:
    """Read a number that is not negative, "auto" or "none"."""
    value = number(text)
    if text in ("auto", "none"):
        return text
    if value is not None and value >= 0:
        return float(value)
    raise typer.BadParameter(f'expected a number from 0, "auto" or "none", got {text!r}.')


def count_or_share(text: str) -> int | float:
    """Read a number of folds, or a share of the rows."""
    value = number(text)
    if value is None or not (0 < value < 1 or (isinstance(value, int) and value >= 2)):
        raise typer.BadParameter(
            f"expected a number of folds from 2, or a share of the rows between 0 and 1: {text!r}."
        )
    return value


def items(text: str) -> list[str]:
    """Read words separated by commas; a word that holds a comma is in double quotes."""
    try:
        words = next(csv.reader([text], skipinitialspace=True), [])
    except csv.Error as error:
        raise typer.BadParameter(f"expected words such as a,b,c, got {text!r} ({error}).") from None
    return [word.strip() for word in words if word.strip()]


def column_types(text: str) -> dict[str, str]:
    """Read types of columns, such as "label=string"."""
    pairs = [item.rpartition("=") for item in items(text)]
    if not all(column and kind for column, _, kind in pairs):
        raise typer.BadParameter(f"expected types such as label=string, got {text!r}.")
    return {column: kind for column, _, kind in pairs}


def delimiter(text: str) -> str:
    """Read a character, or "tab"."""
    read = "\t" if text in ("\\t", "tab") else text
    if len(read) != 1:
        raise typer.BadParameter(f"expected one character, or tab, got {text!r}.")
    return read


def values(text: str) -> Any:
    """Read a word, or a list of numbers and words; "none" is None."""
    read = [None if word == "none" else _number_or_word(word) for word in items(text)]
    return read[0] if len(read) == 1 and isinstance(read[0], str) else read


def memory(text: str) -> Any:
    """Read bytes, "2GB", or a share of the free memory such as 0.5."""
    from polysift.engine.budget import parse_memory_limit

    value = _number_or_word(text)
    try:
        parse_memory_limit(value)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return value


def duration(text: str) -> float:
    """Read seconds, or "10m", "1.5h", "2d"."""
    found = DURATION.fullmatch(text.strip())
    value = None if found is None else number(found[1])
    if found is None or value is None:
        raise typer.BadParameter(f"expected seconds, or a time such as 10m or 1.5h, got {text!r}.")
    return float(value) * SECONDS_PER_UNIT[found[2]]


def class_weight(text: str) -> Any:
    """Read "balanced", or weights such as "yes=2,no=1"; labels stay text until data are read."""
    if text == "balanced":
        return text
    weights = {}
    for item in items(text):
        label, found, weight = item.rpartition("=")
        value = number(weight)
        if not found or value is None:
            raise typer.BadParameter(
                f'expected "balanced" or weights such as yes=2,no=1, got {text!r}.'
            )
        weights[label.strip()] = float(value)
    return weights


def threshold(text: str) -> Any:
    """Read a measure, or costs such as "0,1;5,0"."""
    if text in ("accuracy", "f1", "balanced", "none"):
        return text
    rows = [[number(word) for word in items(row)] for row in text.split(";")]
    if len(rows) < 2 or any(None in row or len(row) != len(rows) for row in rows):
        raise typer.BadParameter(
            f"expected accuracy, f1, balanced or costs such as 0,1;5,0, got {text!r}."
        )
    return rows


def centers(text: str) -> Any:
    """Read the name of a scheme, or of an .npy file that holds points."""
    if text in ("auto", "uniform", "first", "random"):
        return text
    import numpy as np

    from polysift.data.readers import open_data

    try:
        source = open_data(text, format="npy")
        return np.concatenate([source.rows(part) for _, part in source.parts()])
    except (MemoryError, OSError, ValueError) as error:
        raise typer.BadParameter(
            f"expected auto, uniform, first, random or an .npy file of points, got {text!r} "
            f"({error})."
        ) from None


def label_of(text: str, kind: str) -> Any:
    """Return text as a label of a numpy kind: a bool, a number, or text."""
    if kind == "b" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    value = number(text) if kind in "iuf" else None
    return text if value is None else value


def number(text: str) -> int | float | None:
    """Return the number that text holds, or None."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None


def _number_or_word(word: str) -> Any:
    value = number(word)
    return word if value is None else value
