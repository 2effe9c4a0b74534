"""A small table of all kinds of columns, for tests of what is said about models of tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from problems import optional

pd = optional("pandas")


def every_kind(m: int = 400, seed: int = 0) -> tuple[Any, np.ndarray]:
    """Return a frame with numbers, categories, dates and missing values, and labels.

    The column "row" numbers the rows and "unit" is constant: both are left out of a model.
    """
    rng = np.random.default_rng(seed)
    size, age = rng.normal(size=m), rng.uniform(18, 90, m)
    age[rng.random(m) < 0.1] = np.nan
    colour = rng.choice(["red", "green", "blue", "grey"], m, p=[0.4, 0.3, 0.2, 0.1]).astype(object)
    plan = rng.choice(["free", "paid"], m).astype(object)
    plan[rng.random(m) < 0.1] = None
    since = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 10**8, m), unit="s")
    frame = pd.DataFrame(
        {
            "row": np.arange(1, m + 1),
            "size": size,
            "age": age,
            "colour": colour,
            "plan": plan,
            "since": since,
            "unit": "cm",
        }
    )
    score = size + (colour == "red") - (plan == "paid") + np.where(np.isnan(age), 1.0, 0.0)
    y = np.where(score + 0.5 * rng.normal(size=m) > 0.2, "yes", "no")
    return frame, y
