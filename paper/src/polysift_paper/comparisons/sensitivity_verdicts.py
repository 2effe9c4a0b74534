"""Whether the studies of Appendix F agree with the paper, by what chance does to its choice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polysift.plots.base import number_text
from polysift.runtime.types import FloatArray
from polysift_paper.comparisons.comparison import data_title
from polysift_paper.studies.averages import column, where
from polysift_paper.studies.centers import SCHEMES
from polysift_paper.studies.study import ONE_RUN, Row, Verdict

CHOICES: Row = {"centers": "uniform", "alpha": 1.0, "beta": 1.0}
"""What the paper recommends."""

FORMS = {
    "accuracy_percent": "accuracy {:.2f} points, deviation {:.2f}",
    "auc": "AUC {:.4f}, deviation {:.4f}",
}

TIE = 1e-9
"""Means that are closer than this differ by rounding alone."""


def judge_centers(summary: list[Row], _rows: list[Row]) -> Verdict:
    """Compare the gaps between the schemes with what chance does to one of them."""
    if summary[0]["runs"] < 2:
        return ONE_RUN
    beyond = _beyond_chance("centers", summary, _ranges)
    best, averages = _over_sets("centers", summary)
    text = (
        "The schemes count as almost the same on a set if the best and the worst of their mean "
        "accuracies, and of their mean AUCs, are no further apart than one standard deviation of "
        f"scheme 1 over the runs: so on {_counted('centers', summary, beyond)} {averages} "
        f"Scheme 1 has the best accuracy on average, as claimed: {_answer(best)}. The training "
        "rows come in random order, so that scheme 2 is a random choice too."
    )
    short = dict.fromkeys(data_title(line["data"]) for line in summary if line["full"] < 1)
    if short:
        text += (
            f" On {', '.join(short)} the centers are fewer than C(s + d, s), and the schemes span "
            "different polynomials; elsewhere they can span the same."
        )
    return Verdict(not beyond and best, text)


def judge_alpha(summary: list[Row], _rows: list[Row]) -> Verdict:
    """Compare the effect of alpha with that of chance, and its values on average."""
    if summary[0]["runs"] < 2:
        return ONE_RUN
    beyond = _beyond_chance("alpha", summary, _ranges)
    best, averages = _over_sets("alpha", summary)
    most = 2 * len(beyond) < len(where(summary, alpha=CHOICES["alpha"]))
    text = (
        "A set counts as stable if the best and the worst mean accuracy over all alpha, and the "
        "best and the worst mean AUC, are no further apart than one standard deviation over the "
        f"runs at alpha = 1: so on {_counted('alpha', summary, beyond)} Most sets are stable, as "
        f"claimed: {_answer(most)}. {averages} alpha = 1 has the best accuracy on average, as "
        f"claimed: {_answer(best)}. {_rounding('alpha', summary)}"
    )
    return Verdict(most and best, text)


def judge_beta(summary: list[Row], _rows: list[Row]) -> Verdict:
    """Compare what beta = 1 loses against the best beta with the effect of chance."""
    if summary[0]["runs"] < 2:
        return ONE_RUN
    beyond = _beyond_chance("beta", summary, _losses)
    averages = _over_sets("beta", summary)[1]
    text = (
        "beta = 1 counts as almost the best on a set if its mean accuracy, and its mean AUC, are "
        "no further below those of the best beta than one standard deviation over the runs at "
        f"beta = 1: so on {_counted('beta', summary, beyond)} {averages} "
        f"{_rounding('beta', summary)}"
    )
    return Verdict(not beyond, text)


def _answer(holds: bool) -> str:
    return "yes" if holds else "no"


def _values(name: str, summary: list[Row]) -> list[Any]:
    return list(dict.fromkeys(column(summary, name)))


def _means(name: str, summary: list[Row], kind: str) -> FloatArray:
    """Return an array with a row per data set, and a column per value of the parameter."""
    return np.reshape(column(summary, kind), (-1, len(_values(name, summary))))


def _ranges(means: FloatArray, _choice: int) -> FloatArray:
    return np.ptp(means, axis=1)


def _losses(means: FloatArray, choice: int) -> FloatArray:
    return means.max(axis=1) - means[:, choice]


def _beyond_chance(
    name: str, summary: list[Row], distances: Callable[[FloatArray, int], FloatArray]
) -> dict[str, str]:
    """Return the data sets with a distance above one deviation at the paper's choice, and it."""
    choice = _values(name, summary).index(CHOICES[name])
    away = {kind: distances(_means(name, summary, kind), choice) for kind in FORMS}
    found = {}
    for number, entry in enumerate(where(summary, **{name: CHOICES[name]})):
        far = [
            form.format(away[kind][number], entry[f"{kind}_spread"])
            for kind, form in FORMS.items()
            if away[kind][number] > entry[f"{kind}_spread"] + TIE
        ]
        if far:
            found[entry["data"]] = "; ".join(far)
    return found


def _counted(name: str, summary: list[Row], beyond: dict[str, str]) -> str:
    """Return on how many sets a criterion holds, and the exceptions with their numbers."""
    total = len(where(summary, **{name: CHOICES[name]}))
    text = f"{total - len(beyond)} of {total} sets."
    if beyond:
        each = ", ".join(f"{data_title(data)} ({far})" for data, far in beyond.items())
        text += f" Exceptions: {each}."
    return text


def _over_sets(name: str, summary: list[Row]) -> tuple[bool, str]:
    """Return whether the paper's choice has the best accuracy over all sets, and all averages."""
    values = _values(name, summary)
    accuracy, auc = (_means(name, summary, kind).mean(axis=0) for kind in FORMS)
    each = ", ".join(
        f"{mean:.2f}% and {area:.4f} ({SCHEMES.get(value) or number_text(value)})"
        for mean, area, value in zip(accuracy, auc, values, strict=True)
    )
    best = bool(accuracy[values.index(CHOICES[name])] >= accuracy.max() - TIE)
    return best, f"Accuracy and AUC on average over the sets: {each}."


def _rounding(name: str, summary: list[Row]) -> str:
    """Say how often alpha / beta was too small to be told from rounding."""
    shares = {
        value: float(np.mean(column(where(summary, **{name: value}), "raised")))
        for value in _values(name, summary)
    }
    told = [f"{share:.0%} at {number_text(value)}" for value, share in shares.items() if share]
    if not told:
        return "Rounding never raised the paper's alpha."
    return f"Rounding raised the paper's alpha: of the fits, {', '.join(told)}."
