"""What options are written as: numbers or words, lists, durations, weights."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import typer

DURATION = re.compile(r"([0-9.]+(?:e-?[0-9]+)?)\s*(s|m|min|h|d)?")
SECONDS = {None: 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}


def number(text: str) -> int | float | None:
    """Return the number that text holds, or None."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None


def whole_or_auto(text: str) -> int | str:
    """Read a whole number, or "auto"."""
    value = number(text)
    if text == "auto":
        return text
    if isinstance(value, int) and value >= 1:
        return value
    raise typer.BadParameter(f'expected a whole number of at least 1, or "auto", got {text!r}.')


def count_or_share(text: str) -> int | float:
    """Read a whole number, or a share."""
    value = number(text)
    if value is None:
        raise typer.BadParameter(f"expected a number of folds, or a share of the rows: {text!r}.")
    return value


def items(text: str) -> list[str]:
    """Read words that are separated by commas."""
    return [word.strip() for word in text.split(",") if word.strip()]


def values(text: str) -> Any:
    """Read a word, or numbers and words that are separated by commas; "none" is None."""
    read = [None if word == "none" else _number_or_word(word) for word in items(text)]
    return read[0] if len(read) == 1 and isinstance(read[0], str) else read


def _number_or_word(word: str) -> Any:
    value = number(word)
    return word if value is None else value


def memory(text: str) -> Any:
    """Read bytes, "2GB", or a share of the free memory such as 0.5."""
    return _number_or_word(text)


def duration(text: str) -> float:
    """Read seconds, or "10m", "1.5h", "2d"."""
    found = DURATION.fullmatch(text.strip())
    value = None if found is None else number(found[1])
    if found is None or value is None:
        raise typer.BadParameter(f"expected seconds, or a time such as 10m or 1.5h, got {text!r}.")
    return float(value) * SECONDS[found[2]]


def class_weight(text: str) -> Any:
    """Read "balanced", or weights such as "yes=2,no=1"."""
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
        weights[_number_or_word(label)] = float(value)
    return weights


def centers(text: str) -> Any:
    """Read a word, or the name of an .npy file that holds points."""
    if text in ("auto", "uniform", "first", "random"):
        return text
    import numpy as np

    try:
        return np.load(Path(text), allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise typer.BadParameter(
            f"expected auto, uniform, first, random or an .npy file of points, got {text!r} "
            f"({error})."
        ) from None
