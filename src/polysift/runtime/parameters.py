"""Checks of parameters; every message names the parameter, what is expected, and the value."""

from __future__ import annotations

from collections.abc import Collection
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state


def check_integer(name: str, value: Any, *, least: int = 1, hint: str = "") -> int:
    """Return an int of at least ``least``, or raise a ValueError."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}; got {value!r}.{hint}")
    return int(value)


def check_real(
    name: str, value: Any, *, positive: bool, least: float = 0.0, most: float = np.inf
) -> float:
    """Return a finite float within bounds that is positive, or not negative, or raise."""
    try:
        number = np.nan if isinstance(value, bool | np.bool_ | str) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = np.nan
    if not np.isfinite(number) or number < 0 or (positive and number == 0):
        kind = "a positive number" if positive else "a number of at least 0"
        raise ValueError(f"{name} must be {kind}; got {value!r}.")
    if not least <= number <= most:
        bounds = f"from {least:g} to {most:g}" if least else f"of at most {most:g}"
        raise ValueError(f"{name} must be a number {bounds}; got {value!r}: its powers overflow.")
    return number


def check_choice(name: str, value: Any, choices: Collection[str | None]) -> Any:
    """Return ``value`` if it is one of the choices, or raise a ValueError."""
    if not (value is None or isinstance(value, str)) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}.")
    return value


def check_flag(name: str, value: Any) -> bool:
    """Return a bool, or raise a ValueError."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False; got {value!r}.")
    return bool(value)


def listed(name: str, value: Any) -> list[Any]:
    """Return values as a list, a single value as a list of one; no value is a ValueError."""
    several = isinstance(value, list | tuple | range) or getattr(value, "ndim", 0) == 1
    values = list(value) if several else [value]
    if not values:
        raise ValueError(f"{name} must hold at least one value; got {value!r}.")
    return values


def check_n_jobs(value: Any) -> int | None:
    """Return None or a nonzero int, or raise a ValueError."""
    if value is None:
        return None
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral) or value == 0:
        raise ValueError(
            f"n_jobs must be None, a number of threads, or -1 for all cores; got {value!r}."
        )
    return int(value)


def check_seed(random_state: Any) -> int:
    """Return a seed: the given integer, or one drawn from the given or the global generator.

    Anything else is a ValueError.
    """
    is_bool = isinstance(random_state, bool | np.bool_)
    if not is_bool and isinstance(random_state, Integral):
        if random_state >= 2**64:  # type: ignore[operator]
            raise ValueError(f"random_state must be below 2**64; got {random_state!r}.")
        return check_integer("random_state", random_state, least=0)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    try:
        return int(check_random_state(random_state).randint(2**31))
    except ValueError:
        raise ValueError(
            f"random_state must be None, an integer or a random generator; got {random_state!r}."
        ) from None
