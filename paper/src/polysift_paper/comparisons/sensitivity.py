"""Appendix F: how FPC depends on the centers, on alpha and on beta, over the UCI data sets.

A difference counts if it is larger than what chance does to the paper's choice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from polysift.datasets import UCI
from polysift.features.kernels import full_dimension
from polysift.plots.base import number_text
from polysift.runtime.types import FloatArray
from polysift_paper.algorithm import PRINT, TEXT, choose_degree
from polysift_paper.comparisons.case import open_case
from polysift_paper.comparisons.comparison import data_title
from polysift_paper.comparisons.sensitivity_pictures import draw_points, draw_values
from polysift_paper.studies.averages import average, column, seeds, where
from polysift_paper.studies.centers import SCHEMES
from polysift_paper.studies.study import ONE_RUN, Row, Study, Verdict

PARAMETERS: dict[str, tuple[Any, ...]] = {
    "centers": tuple(SCHEMES),
    "alpha": (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0),
    "beta": (1e-2, 1e-1, 1.0, 10.0, 100.0),
}


RANGES = {
    "unit": TEXT,
    "symmetric": replace(
        TEXT, settings={**TEXT.settings, "scaler": "symmetric"}, bound=PRINT.bound
    ),
}
"""How FPC is run: as the text says, with columns in [0, 1]; and in [-1, 1] with the s_max that fits
the print. Centers are uniform unless they are what is varied."""

SPANS = {"unit": "[0, 1]", "symmetric": "[-1, 1]"}

CHOICES: Row = {"centers": "uniform", "alpha": 1.0, "beta": 1.0}
"""What the paper recommends."""

FORMS = {
    "accuracy_percent": "accuracy {:.2f} points, deviation {:.2f}",
    "auc": "AUC {:.4f}, deviation {:.4f}",
}

TIE = 1e-9
"""Means that are closer than this differ by rounding alone."""


def cells(name: str, data: Sequence[str], range_: str, runs: int, base: int = 0) -> list[Row]:
    """Return one cell per run, data set and value of a parameter, in one of the ranges."""
    return [
        {**seed, "data": one, "range": range_, name: value}
        for seed in seeds(runs, base)
        for one in data
        for value in PARAMETERS[name]
    ]


def measure(cell: Row) -> list[Row]:
    """Choose the degree by the validation rows, and judge the choice on the test rows.

    All cells of a run have the same rows.

    Parameters
    ----------
    cell : dict
        "data", "seed", "range", and one of "centers", "alpha" and "beta"; the others are the
        paper's.

    Returns
    -------
    list of dict
        One: test accuracy and AUC, the degree, whether it has C(s + d, s) centers ("full"), and
        whether rounding raised the paper's alpha ("raised").
    """
    from sklearn.metrics import roc_auc_score

    case = open_case(cell["data"], cell["seed"])
    (X, y), (X_check, y_check), (X_test, y_test) = (
        case.of(part) for part in (case.train, case.validation, case.test)
    )
    varied = {name: cell[name] for name in PARAMETERS if name in cell}
    chosen = choose_degree(
        RANGES[cell["range"]],
        (X, y),
        (X_check, y_check),
        n_jobs=1,
        random_state=cell["seed"],
        **varied,
    )
    used = chosen.get_params()
    return [
        {
            "accuracy": float(np.mean(chosen.predict(X_test) == y_test)),
            "auc": float(roc_auc_score(y_test, chosen.decision_function(X_test))),
            "degree": chosen.degree,
            "full": chosen.n_centers == full_dimension(chosen.degree, X.shape[1]),
            "raised": bool(chosen.rho_ > (1 + 1e-9) * used["alpha"] / used["beta"]),
        }
    ]


def summarise(name: str, rows: list[Row]) -> list[Row]:
    """Return means and deviations for each data set and value, and the most common degree."""
    rows = [row | {"accuracy_percent": 100 * row["accuracy"]} for row in rows]
    lines = average(rows, ("data", name), ("accuracy_percent", "auc", "full", "raised"))
    for entry in lines:
        counts = Counter(column(where(rows, data=entry["data"], **{name: entry[name]}), "degree"))
        entry["degree"] = min(counts, key=lambda s: (-counts[s], s))
        del entry["full_spread"], entry["raised_spread"]
    return lines


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
    """Say how often alpha / beta was too small to be distinguished from rounding."""
    shares = {
        value: float(np.mean(column(where(summary, **{name: value}), "raised")))
        for value in _values(name, summary)
    }
    raised = [f"{share:.0%} at {number_text(value)}" for value, share in shares.items() if share]
    if not raised:
        return "Rounding never raised the paper's alpha."
    return f"Rounding raised the paper's alpha: of the fits, {', '.join(raised)}."


_WORDS: dict[str, Any] = {
    "centers": {
        "title": "Three ways to choose the centers, on real data",
        "figure": "Fig. 14",
        "claim": (
            "On the UCI data sets, with alpha = beta = 1 and the degree chosen, three ways to "
            "choose the centers have almost the same test accuracy and AUC: points drawn "
            "uniformly (scheme 1), the first rows (scheme 2), and random rows (scheme 3). Scheme 1 "
            "is slightly better than the others in accuracy, on average."
        ),
        "draw": draw_points,
        "judge": judge_centers,
    },
    "alpha": {
        "title": "The proximal parameter alpha, on real data",
        "figure": "Fig. 15",
        "claim": (
            "For alpha from 1e-4 to 10, FPC is generally stable on most of the UCI data sets, and "
            "alpha = 1 is the best on average."
        ),
        "draw": partial(draw_values, "alpha"),
        "judge": judge_alpha,
    },
    "beta": {
        "title": "The Lagrangian parameter beta, on real data",
        "figure": "Fig. 16",
        "claim": (
            "For beta from 0.01 to 100, with alpha = 1, beta = 1 is almost the best on all nine "
            "UCI data sets."
        ),
        "draw": partial(draw_values, "beta"),
        "judge": judge_beta,
    },
}
"""What tells the studies apart."""


def studies(data: Sequence[str], ranges: Sequence[str] = tuple(RANGES)) -> list[Study]:
    """Return the three studies over some data sets.

    Parameters
    ----------
    data : sequence of str
        Their names; all of them must be at hand when the studies are run.
    ranges : sequence of {"unit", "symmetric"}
        To which ranges columns are scaled.

    Returns
    -------
    list of Study
        Of the centers, of alpha and of beta, in each of the ranges.
    """
    return [
        Study(
            name=f"sensitivity-{name}" + ("-symmetric" if where == "symmetric" else ""),
            runs=20,
            cells=partial(cells, name, tuple(data), where),
            measure=measure,
            summarise=partial(summarise, name),
            **_WORDS[name] | {"title": f"{_WORDS[name]['title']}: columns in {SPANS[where]}"},
        )
        for where in ranges
        for name in PARAMETERS
    ]


STUDIES: tuple[Study, ...] = tuple(studies(UCI))
