"""What a report is about, and what its sections share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from polysift.estimators.classifier import FPCClassifier
from polysift.estimators.search import FPCClassifierCV
from polysift.explanation.explanation import Explanation
from polysift.reporting.evaluation import Evaluation
from polysift.reporting.page import Markup, markup, plain
from polysift.training.plan import Forecast

SHOWN_CLASSES, SHOWN_FEATURES = 50, 60
"""So many are listed; the rest is counted."""

Section = tuple[str, str, Markup]
"""The name that a link takes, the title, the content."""


@dataclass(frozen=True)
class Case:
    """What a report is about.

    Attributes
    ----------
    model : FPCClassifier
        The classifier.
    search : FPCClassifierCV or None
        The search it comes from.
    sets : dict of str to Evaluation
        How good it is on each data set.
    forecast : Forecast or None
        What the fit was expected to cost.
    command : str or None
        How to do it again.
    explanation : Explanation or None
        What it has learned.
    """

    model: FPCClassifier
    search: FPCClassifierCV | None
    sets: dict[str, Evaluation]
    forecast: Forecast | None
    command: str | None
    explanation: Explanation | None

    @property
    def fitted(self) -> FPCClassifier | FPCClassifierCV:
        """What the user fitted."""
        return self.model if self.search is None else self.search

    @property
    def kind(self) -> str:
        """The class of it."""
        return type(self.fitted).__name__

    @property
    def last(self) -> tuple[str, Evaluation]:
        """The data set that pictures show."""
        return list(self.sets.items())[-1]

    @property
    def summary(self) -> dict[str, Any]:
        """What is known of the training; nothing of a model from an old file."""
        return getattr(self.model, "training_summary_", {})

    @property
    def timings(self) -> dict[str, float]:
        """Seconds by phase; empty where not known."""
        return getattr(self.fitted, "timings_", {})

    @property
    def seed(self) -> int | None:
        """The seed used; None where not known."""
        return getattr(self.fitted, "random_state_", None)

    @property
    def names(self) -> list[str]:
        """The names of the classes."""
        return [plain(name) for name in self.model.classes_.tolist()]


def splits_text(search: FPCClassifierCV) -> str:
    """Return how a search validated, in words."""
    return "a validation part" if search.n_splits_ == 1 else f"{search.n_splits_} splits"


def noted(label: str, note: str) -> Markup:
    """Return a label with a small note under it."""
    return Markup(f"{markup(label)}<small>{markup(note)}</small>")


def file_name(origin: Any) -> str:
    """Return a file's name without its folder."""
    return plain(PurePath(str(origin)).name or origin)
