"""What a fitted model is said to be worth: figures on rows that it has not seen, never others.

They are those of rows that were held out: with a calibration, out of fold; after a search, the
scores of the splits; else those that leaving out each row would give. ``ShowsHeadline`` puts them
beside the parameters where an estimator is displayed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any

import numpy as np
from scipy.special import stdtrit

from polysift.selection.scoring import score_name
from polysift.training.evaluation import Evaluation
from polysift.training.held_out import LEAVE_ONE_OUT, OUT_OF_FOLD
from polysift.training.metrics import LEVEL, METRICS, SHARES, TITLES, Estimate

UNBALANCED_ORDER = ("balanced_accuracy", "roc_auc", "average_precision", "accuracy")
BALANCED_ORDER = ("accuracy", "roc_auc")
"""The figures that come first where classes are unbalanced, and where they are not."""

SPLITS = "splits"
"""The method of a search, beside those of ``training.held_out``."""

NOT_KNOWN, HOW_TO_KNOW = "not known", 'calibration="sigmoid" or a search measures it'
"""What is said of models without figures on rows that they have not seen: those of solvers that go
to the minimum, and of fits that go on from a model that has seen the rows."""

PERCENT = ("accuracy", "balanced_accuracy")
"""Figures that are shown in percent."""


@dataclass(frozen=True)
class Headline:
    """The figures of a model on rows that it has not seen.

    Attributes
    ----------
    method : str
        "leave-one-out", "out of fold", "splits", or "data" for rows that were given.
    source : str
        Where they come from, as the end of a sentence.
    figures : mapping of str to Estimate
        The figures with their intervals, the most important first.
    training : mapping of str to float
        Figures on rows that the model has seen, where they are known.
    """

    method: str
    source: str
    figures: Mapping[str, Estimate]
    training: Mapping[str, float]

    def gap(self, name: str) -> float | None:
        """Return by how much a figure is better on rows that were seen; None if not known."""
        if name not in self.training:
            return None
        gap = self.training[name] - self.figures[name].value
        return gap if name in SHARES else -gap

    def first(self, count: int = 2) -> str:
        """Return the first figures with their intervals, in words."""
        words = [f"{title(name)} {estimate_text(name, e)}" for name, e in self.figures.items()]
        return ", ".join(words[:count])

    def __str__(self) -> str:
        return f"{self.first()}; {self.source}"


def headline(estimator: Any) -> Headline | None:
    """Return the figures of a fitted classifier or search on rows not seen; None if unknown."""
    best = getattr(estimator, "best_estimator_", estimator)
    stored = getattr(best, "held_out_", None)
    searched = hasattr(estimator, "cv_results_")
    if stored is None:
        return _of_splits(estimator) if searched else None
    evaluation = Evaluation.from_stored(stored, best.classes_)
    source = {
        LEAVE_ONE_OUT: f"estimated from leave-one-out scores of {evaluation.rows:,} training rows",
        OUT_OF_FOLD: f"out of fold, {evaluation.rows:,} training rows",
    }[stored["method"]]
    found = Headline(stored["method"], source, ordered(evaluation), {**stored["training"]})
    return _with_splits(found, estimator) if searched else found


def _with_splits(found: Headline, search: Any) -> Headline:
    """Return figures with the score of the search, which comes first where it was asked for."""
    splits = _of_splits(search)
    ((name, score),) = splits.figures.items()
    figures = dict(found.figures)
    if name not in figures or not np.isnan(score.low):
        figures[name] = score
    if search.scoring is not None:
        figures = {name: figures.pop(name), **figures}
    source = f"{found.source}; {splits.source}"
    return Headline(found.method, source, figures, found.training)


def ordered(evaluation: Evaluation) -> dict[str, Estimate]:
    """Return the figures of an evaluation, the most important first."""
    first = UNBALANCED_ORDER if evaluation.unbalanced else BALANCED_ORDER
    return {
        name: evaluation.figures[name] for name in (*first, *METRICS) if name in evaluation.figures
    }


def held_out_evaluation(model: Any) -> tuple[str, Evaluation] | None:
    """Return the evaluation of a classifier on rows that it has not seen, and what to call it."""
    stored = getattr(model, "held_out_", None)
    if stored is None:
        return None
    return stored["method"], Evaluation.from_stored(stored, model.classes_)


def _of_splits(search: Any) -> Headline:
    """Return the mean score of the splits, with the t interval of their scores."""
    results, best = search.cv_results_, search.best_index_
    scores = np.array([results[f"split{i}_test_score"][best] for i in range(search.n_splits_)])
    name = _score_name(search)
    mean, k = float(np.mean(scores)), len(scores)
    low = high = float("nan")
    if k > 1:
        reach = float(stdtrit(k - 1, 0.5 + LEVEL / 2) * np.std(scores, ddof=1) / np.sqrt(k))
        low, high = mean - reach, mean + reach
        if name in SHARES:
            low, high = max(low, 0.0), min(high, 1.0)
    count = len(results["params"])
    held = f"{k} splits" if k > 1 else "one validation part"
    source = f"the mean over {held}, the best of {count:,} candidates"
    history = getattr(getattr(search, "best_estimator_", None), "history_", None)
    training = {}
    if name == "accuracy" and history is not None and len(history["training_error"]):
        error = float(history["training_error"][-1])
        training = {} if np.isnan(error) else {"accuracy": 1.0 - error}
    return Headline(SPLITS, source, {name: Estimate(mean, low, high)}, training)


def _score_name(search: Any) -> str:
    """Return the name of the score by which a search chose."""
    if not isinstance(search.scoring, list | tuple | set | dict):
        return score_name(search.scoring)
    return search.refit if isinstance(search.refit, str) else str(next(iter(search.scoring), ""))


def title(name: str) -> str:
    """Return the name of a figure in words; that of a scorer is its own."""
    return TITLES.get(name, name.replace("_", " "))


def value_text(name: str, value: float | None) -> str:
    """Return a figure as text."""
    if value is None or np.isnan(value):
        return "-"
    return f"{100 * value:.2f} %" if name in PERCENT else f"{value:.4f}"


def range_text(name: str, estimate: Estimate) -> str:
    """Return the interval of a figure as text; a dash if there is none."""
    if np.isnan(estimate.low):
        return "-"
    low, high = (100 * x if name in PERCENT else x for x in (estimate.low, estimate.high))
    return f"{low:.2f} to {high:.2f} %" if name in PERCENT else f"{low:.4f} to {high:.4f}"


def estimate_text(name: str, estimate: Estimate) -> str:
    """Return a figure with its interval as text."""
    shown = range_text(name, estimate)
    return value_text(name, estimate.value) + ("" if shown == "-" else f" ({shown})")


class HasHeldOut:
    """Base of estimators whose held-out figures may wait until somebody asks for them.

    A fit sets the attribute ``held_out_``, or ``_unscored``, from which it is found. Copies and
    files have the figures alone.
    """

    @cached_property
    def held_out_(self) -> dict[str, Any]:
        """The figures on rows that the model has not seen."""
        unscored = vars(self).get("_unscored")
        if unscored is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute 'held_out_'")
        found: dict[str, Any] = unscored.later_facts()
        vars(self).pop("_unscored", None)
        return found

    def __getstate__(self) -> dict[str, Any]:
        if "_unscored" in vars(self):
            self.held_out_  # noqa: B018 - found, and kept
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        return state


class ShowsHeadline:
    """Base of estimators that show what they are worth, once they are fitted.

    As text the figures are a comment behind the parameters; in a notebook, a line below them.
    """

    def __repr__(self, *args: Any, **options: Any) -> str:
        shown = super().__repr__(*args, **options)
        if "classes_" not in vars(self):
            return shown
        found = headline(self)
        return f"{shown}  # held out: {NOT_KNOWN if found is None else found.first()}"

    def _repr_html_inner(self) -> str:
        return self._with_line(super()._repr_html_inner())  # type: ignore[misc]

    def _repr_mimebundle_(self, **options: Any) -> Any:
        bundle = super()._repr_mimebundle_(**options)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] = self._with_line(bundle["text/html"])
        return bundle

    def _with_line(self, html: str) -> str:
        if "classes_" not in vars(self):
            return html
        found = headline(self)
        shown = f"{NOT_KNOWN}; {HOW_TO_KNOW}" if found is None else str(found)
        return f"{html}<p><b>Held out</b>: {escape(shown)}.</p>"
