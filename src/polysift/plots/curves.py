"""Validation curves: the best score of a search at each value of a parameter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polysift.runtime.types import FloatArray, IntArray


@dataclass(frozen=True)
class Curve:
    """One line of a ``SearchCurveDisplay``.

    Attributes
    ----------
    label : str
        Its name in the legend.
    values : list
        The values of the parameter that occur, ascending; None, which rho may be, comes first.
    scores : ndarray of shape (n_values,)
        The best mean score at each value.
    errors : ndarray of shape (n_values,)
        The standard error of that mean over the splits; NaN where there is one split only.
    finished : ndarray of bool of shape (n_values,)
        Whether the score is that of a candidate run to its end; if not, none was at this value.
    """

    label: str
    values: list[Any]
    scores: FloatArray
    errors: FloatArray
    finished: IntArray


def groups_of(candidates: list[dict[str, Any]], names: tuple[str, ...]) -> dict[str, IntArray]:
    """Return which candidates agree in these parameters, by what the legend calls them."""
    found: dict[str, list[int]] = {}
    for place, params in enumerate(candidates):
        label = ", ".join(params[name] or f"no {name}" for name in names)
        found.setdefault(label, []).append(place)
    return {label: np.array(places) for label, places in found.items()}


def curve_of(results: dict[str, Any], param: str, label: str, members: IntArray) -> Curve:
    """Return the best score at each value among some candidates, finished ones first."""
    n_splits = sum(name.startswith("split") for name in results)
    splits = np.column_stack([results[f"split{k}_test_score"] for k in range(n_splits)])
    finished, means = results["status"] == "finished", results["mean_test_score"]
    best: dict[Any, int] = {}
    for i in members:
        value = results["params"][i][param]
        rival = best.get(value)
        if np.isnan(means[i]):  # not run at all
            continue
        if rival is None or (finished[i], means[i]) > (finished[rival], means[rival]):
            best[value] = int(i)
    values = sorted(best, key=order_of)
    chosen = [best[value] for value in values]
    errors = np.array([_standard_error(splits[i]) for i in chosen])
    return Curve(label, values, means[chosen], errors, finished[chosen])


def _standard_error(scores: FloatArray) -> float:
    """Return the standard error of the mean over the splits that were run; NaN for one split."""
    scores = scores[~np.isnan(scores)]
    if len(scores) < 2:
        return float("nan")
    return float(np.std(scores, ddof=1) / np.sqrt(len(scores)))


def order_of(value: Any) -> float:
    """Return what values of a parameter are sorted by; None comes first."""
    return -np.inf if value is None else float(value)
