"""The paper's synthetic problem (section V), with its types of noise."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from polysift.runtime.parameters import check_choice, check_integer, check_real
from polysift.runtime.types import FloatArray, IntArray

KINDS = ("inside", "outside", "everywhere")
"""Where ``make_noisy_curve`` reverses labels: the paper's noise types 1, 2 and 3."""


def bayes_curve(t: FloatArray) -> FloatArray:
    """Return h(t) = ((1 - 2t)_+^5 (32 t^2 + 10 t + 1) + 1) / 2, the true boundary.

    Parameters
    ----------
    t : ndarray
        First coordinates, in [0, 1].

    Returns
    -------
    ndarray
        The second coordinate of the boundary there.

    Examples
    --------
    >>> import numpy as np
    >>> from polysift.datasets import bayes_curve
    >>> bayes_curve(np.array([0.0, 0.25, 0.5, 1.0]))
    array([1.       , 0.5859375, 0.5      , 0.5      ])
    """
    return np.asarray((np.maximum(1 - 2 * t, 0) ** 5 * (32 * t**2 + 10 * t + 1) + 1) / 2)


def make_bayes_curve(
    n_samples: int = 1000, *, noise: float = 0.1, random_state: Any = None
) -> tuple[FloatArray, IntArray]:
    """Draw the paper's synthetic problem: the unit square, cut by ``bayes_curve``.

    Parameters
    ----------
    n_samples : int, default=1000
        The number of rows.
    noise : float, default=0.1
        The share of the labels that are reversed, chosen uniformly.
    random_state : int, RandomState or None, default=None
        The seed.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        Points, uniform in the unit square.
    y : ndarray of shape (n_samples,)
        +1 on and above the curve, -1 below it, before the noise.

    Examples
    --------
    >>> from polysift.datasets import make_bayes_curve
    >>> X, y = make_bayes_curve(4, noise=0.25, random_state=0)
    >>> X.shape, y.tolist()
    ((4, 2), [1, -1, 1, 1])
    """
    m = check_integer("n_samples", n_samples)
    _check_share("noise", noise)
    return _draw_noisy(m, "everywhere", 0.0, noise, random_state)


def make_noisy_curve(
    n_samples: int = 1000,
    *,
    kind: str = "everywhere",
    width: float = 0.1,
    ratio: float = 0.1,
    random_state: Any = None,
) -> tuple[FloatArray, IntArray]:
    """Draw the paper's synthetic problem with labels reversed in a part of the square only.

    The distance of a point from the boundary is the vertical one, ``|x(2) - h(x(1))|``.

    Parameters
    ----------
    n_samples : int, default=1000
        The number of rows.
    kind : {"inside", "outside", "everywhere"}, default="everywhere"
        Where labels are reversed: within ``width`` of the boundary (the paper's noise type 1),
        farther away than that (type 2), or in the whole square (type 3).
    width : float, default=0.1
        The distance between the boundary and the border of the band; it does not matter for
        "everywhere". The band reaches as far on either side, so it is twice as high as that.
    ratio : float, default=0.1
        The share of the rows of that region whose labels are reversed, chosen uniformly. Exactly
        ``round(ratio * rows in the region)`` of them are.
    random_state : int, RandomState or None, default=None
        The seed. The points are those of ``make_bayes_curve`` with the same seed.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        Points, uniform in the unit square.
    y : ndarray of shape (n_samples,)
        +1 on and above the curve, -1 below it, before the noise.

    Examples
    --------
    >>> from polysift.datasets import bayes_curve, make_noisy_curve
    >>> X, y = make_noisy_curve(500, kind="inside", width=0.1, ratio=0.5, random_state=0)
    >>> height = X[:, 1] - bayes_curve(X[:, 0])
    >>> inside = abs(height) <= 0.1
    >>> wrong = (height >= 0) != (y == 1)
    >>> int(inside.sum()), int(wrong.sum()), int(wrong[inside].sum())
    (97, 48, 48)
    """
    m = check_integer("n_samples", n_samples)
    check_choice("kind", kind, KINDS)
    width = check_real("width", width, positive=False)
    _check_share("ratio", ratio)
    return _draw_noisy(m, kind, width, ratio, random_state)


def make_machines(n_samples: int = 1000, *, random_state: Any = None) -> tuple[Any, Any]:
    """Draw a raw table: readings of machines, and whether a machine failed on the next day.

    Its columns are as people have them: numbers, of which some are missing, text with a few words
    and with hundreds, truth values, times, and a number of the row, which means nothing. Products
    and squares of readings decide, the kind of machine and the hour shift them, and a tenth of the
    deviation is noise.

    Parameters
    ----------
    n_samples : int, default=1000
        The number of rows.
    random_state : int, RandomState or None, default=None
        The seed.

    Returns
    -------
    X : pandas.DataFrame of shape (n_samples, 10)
        The table.
    y : ndarray of shape (n_samples,)
        "failed" or "fine".

    Examples
    --------
    >>> from polysift.datasets import make_machines
    >>> X, y = make_machines(500, random_state=0)
    >>> X.dtypes["heat"], X["maker"].nunique(), int(X["heat"].isna().sum())
    (dtype('float64'), 4, 58)
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(
            "make_machines returns a pandas DataFrame. Install pandas: pip install pandas"
        ) from error
    m = check_integer("n_samples", n_samples)
    rng = check_random_state(random_state)
    load, heat, shake, speed = rng.normal(size=(4, m))
    maker, machine = rng.randint(4, size=m), rng.randint(300, size=m)
    age = np.abs(np.sin(np.arange(300.0)))[machine]  # some of the 300 machines are old
    hours = rng.randint(24 * 365, size=m)
    night = (hours % 24 < 6) | (hours % 24 >= 22)
    guarded = rng.random_sample(m) < 0.3
    stress = load * heat + shake**2 - speed - 0.5 + age + 0.5 * (maker == 1) + 0.5 * night
    stress -= 0.5 * guarded
    y = np.where(stress + 0.2 * rng.normal(size=m) > 0, "failed", "fine")
    words = np.array(["Arno", "Brix", "Corvo", "Delta"], dtype=object)
    table = {
        "reading": np.arange(1, m + 1),
        "time": pd.Timestamp("2025-01-01") + pd.to_timedelta(hours, unit="h"),
        "machine": np.array([f"M{k:03d}" for k in range(300)], dtype=object)[machine],
        "maker": np.where(rng.random_sample(m) < 0.05, None, words[maker]),
        "guarded": guarded,
        "load": load,
        "heat": np.where(rng.random_sample(m) < 0.1, np.nan, 20 + 15 * heat),
        "shake": shake,
        "speed": np.exp(speed),
        "plant": "north",
    }
    return pd.DataFrame(table), y


def _check_share(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must lie between 0 and 1; got {value!r}.")


def _draw_noisy(
    m: int, kind: str, width: float, ratio: float, random_state: Any
) -> tuple[FloatArray, IntArray]:
    """Draw points, label them, and reverse a share of the labels of a region."""
    rng = check_random_state(random_state)
    X = rng.random_sample((m, 2))
    height = X[:, 1] - bayes_curve(X[:, 0])
    y = np.where(height >= 0, 1, -1)
    region = {"inside": abs(height) <= width, "outside": abs(height) > width}
    rows = np.flatnonzero(region.get(kind, np.ones(m, dtype=bool)))
    y[rng.permutation(rows)[: round(len(rows) * ratio)]] *= -1
    return X, y
