"""Checks of constructor parameters; every message names the parameter, what it takes, what came."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from polysift._centers import SCHEMES
from polysift._feature_map import MapSpec
from polysift._scalers import SCALERS
from polysift._types import FloatArray


def check_integer(name: str, value: Any, *, least: int = 1, hint: str = "") -> int:
    """Return an int of at least ``least``, or raise a ValueError."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}; got {value!r}.{hint}")
    return int(value)


def check_real(name: str, value: Any, *, positive: bool) -> float:
    """Return a finite float that is positive, or not negative; or raise a ValueError."""
    try:
        number = np.nan if isinstance(value, bool | np.bool_ | str) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = np.nan
    if not np.isfinite(number) or number < 0 or (positive and number == 0):
        kind = "a positive number" if positive else "a number of at least 0"
        raise ValueError(f"{name} must be {kind}; got {value!r}.")
    return number


def check_choice(name: str, value: Any, choices: tuple[str | None, ...]) -> Any:
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
    """Return several values as a list, a single one as a list of one; none at all is an error."""
    several = isinstance(value, list | tuple | range) or getattr(value, "ndim", 0) == 1
    values = list(value) if several else [value]
    if not values:
        raise ValueError(f"{name} must hold at least one value; got {value!r}.")
    return values


def check_n_jobs(value: Any) -> int | None:
    """Return None or an int other than zero."""
    if value is None:
        return None
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral) or value == 0:
        raise ValueError(
            f"n_jobs must be None, a number of threads, or -1 for all cores; got {value!r}."
        )
    return int(value)


def check_seed(random_state: Any) -> int:
    """Return a seed: the given integer, or one drawn from the given or the global generator."""
    if isinstance(random_state, Integral) and not isinstance(random_state, bool | np.bool_):
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


def check_map_spec(estimator: Any, n_features: int, seed: int) -> MapSpec:
    """Check the parameters that the classifier and the transformer share."""
    return MapSpec(
        degree=check_degree(estimator.degree),
        n_centers=check_n_centers(estimator.n_centers),
        centers=check_centers(estimator.centers, n_features),
        scaler=check_choice("scaler", estimator.scaler, SCALERS),
        seed=seed,
    )


def check_degree(value: Any, name: str = "degree") -> int:
    """Return the degree."""
    hint = ""
    if isinstance(value, float | np.floating) and 1 < value < 1e6:
        low = int(value)
        hint = f" Use {name}={low} or {name}={low + 1}."
    return check_integer(name, value, hint=hint)


def check_n_centers(value: Any) -> int | None:
    """Return the number of centers, None for "auto"."""
    if isinstance(value, str) and value == "auto":
        return None
    return check_integer("n_centers", value, hint=' Or use n_centers="auto".')


def check_centers(value: Any, n_features: int) -> str | FloatArray:
    """Return a scheme, or the given centers as a float64 array of shape (n, d)."""
    if isinstance(value, str) or value is None:
        return str(check_choice("centers", value, SCHEMES))
    try:
        centers = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(
            f"centers must be one of {', '.join(map(repr, SCHEMES))} or an array of numbers of "
            f"shape (n, {n_features}); got {type(value).__name__}."
        ) from None
    if centers.ndim != 2 or centers.shape[1] != n_features or len(centers) == 0:
        raise ValueError(
            f"centers must have shape (n, {n_features}), a row per center and a column per "
            f"feature of X; got shape {centers.shape}."
        )
    if not np.isfinite(centers).all():
        raise ValueError("centers must be finite; got NaN or infinity.")
    return centers
