"""``Case``: the model, evaluations and other inputs of a report, and what its sections share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from polysift.estimators.classifier import FPCClassifier
from polysift.estimators.headline import Headline, headline, ordered
from polysift.estimators.search import FPCClassifierCV
from polysift.explanation.explanation import Explanation
from polysift.reporting.page import Markup, markup, plain
from polysift.training.evaluation import Evaluation
from polysift.training.held_out import LEAVE_ONE_OUT, OUT_OF_FOLD
from polysift.training.plan import Forecast

MAX_LISTED_CLASSES, MAX_LISTED_FEATURES = 50, 60
"""Of more, the rest is counted."""

Section = tuple[str, str, Markup]
"""The id that links refer to, the title, and the content."""


@dataclass(frozen=True)
class Case:
    """The inputs of a report.

    Attributes
    ----------
    model : FPCClassifier
        The classifier.
    search : FPCClassifierCV or None
        The search that chose it.
    sets : dict of str to Evaluation
        Its evaluation on each data set.
    forecast : Forecast or None
        The forecast of the fit.
    command : str or None
        The command that makes the model again.
    explanation : Explanation or None
        Its explanation.
    seen : frozenset of str
        The data sets that the model was fitted to.
    """

    model: FPCClassifier
    search: FPCClassifierCV | None
    sets: dict[str, Evaluation]
    forecast: Forecast | None
    command: str | None
    explanation: Explanation | None
    seen: frozenset[str] = frozenset()

    @property
    def fitted(self) -> FPCClassifier | FPCClassifierCV:
        """The estimator that the user fitted."""
        return self.model if self.search is None else self.search

    @property
    def kind(self) -> str:
        """The name of that estimator's class."""
        return type(self.fitted).__name__

    @property
    def last(self) -> tuple[str, Evaluation]:
        """The data set that pictures show, with its name."""
        return list(self.sets.items())[-1]

    @property
    def headline(self) -> Headline | None:
        """The figures on rows that the model has not seen, if they are known."""
        name, evaluation = self.last
        if name in self.seen or name in (LEAVE_ONE_OUT, OUT_OF_FOLD):
            return headline(self.fitted)
        training = dict(getattr(self.model, "held_out_", {"training": {}})["training"])
        for seen in self.seen & self.sets.keys():
            training = {key: found.value for key, found in self.sets[seen].figures.items()}
        return Headline(
            "data", f"on {name}, {evaluation.rows:,} rows", ordered(evaluation), training
        )

    def shown_name(self, name: str) -> str:
        """Return what a data set is called in captions: whether its rows were seen."""
        if name == LEAVE_ONE_OUT:
            return "training rows, each scored without itself"
        if name == OUT_OF_FOLD:
            return "training rows, each scored without its fold"
        return f"{name} (seen)" if name in self.seen else name

    @property
    def summary(self) -> dict[str, Any]:
        """The summary of the training; empty for a model from an old file."""
        return getattr(self.model, "training_summary_", {})

    @property
    def timings(self) -> dict[str, float]:
        """Seconds by phase; empty where they are not known."""
        return getattr(self.fitted, "timings_", {})

    @property
    def seed(self) -> int | None:
        """The seed used; None where it is not known."""
        return getattr(self.fitted, "random_state_", None)

    @property
    def names(self) -> list[str]:
        """The names of the classes."""
        return [plain(name) for name in self.model.classes_.tolist()]


def splits_text(search: FPCClassifierCV) -> str:
    """Return the kind of validation of a search."""
    return "a validation part" if search.n_splits_ == 1 else f"{search.n_splits_} splits"


def noted(label: str, note: str) -> Markup:
    """Return a label with a small note under it."""
    return Markup(f"{markup(label)}<small>{markup(note)}</small>")


def file_name(origin: Any) -> str:
    """Return a file's name without its folder."""
    return plain(PurePath(str(origin)).name or origin)
