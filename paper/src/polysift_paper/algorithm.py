"""FPC in the paper's own settings: the text, the authors' demo, and what fits the printed figures.

The paper's text and its program differ, and neither gives all of its figures. So FPC is run in
three settings, a ``Variant`` each: the three rows ``fpc``, ``fpc_demo`` and ``fpc_print`` of the
comparisons. ``polysift.PAPER`` is the first of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from polysift import PAPER, FPCClassifier, degree_bound
from polysift.features.kernels import full_dimension
from polysift.runtime.types import FloatArray, IntArray

ITERATIONS: dict[str, Any] = {"max_iter": 5, "tol": 0.0}
"""When Algorithm 1 stops in the paper's section VI: after five iterations, whatever they are."""


def paper_classifier(**params: Any) -> FPCClassifier:
    """Return a classifier with the paper's settings, but for those that are given.

    Other solvers have their own alpha and beta.
    """
    settings = dict(PAPER)
    if params.get("solver", "paper") != "paper":
        settings |= {"alpha": None, "beta": None}
    return FPCClassifier(**settings | params)


@dataclass(frozen=True)
class Variant:
    """Settings of FPC, as the text has them, the demo, or the printed figures.

    Attributes
    ----------
    name, title : str
        What a user types, and what tables print.
    about : str
        What it is, and why it is there.
    settings : mapping
        Parameters of ``FPCClassifier``; the degree and the number of centers are chosen.
    bound : str
        The formula of ``degree_bound`` for s_max.
    whole : bool
        Whether columns are scaled to [0, 1] over all rows, those of the test included, before they
        are split.
    repeats : bool
        Whether the centers are the first rows with their repetitions; ``centers="first"`` leaves
        these out.
    """

    name: str
    title: str
    about: str
    settings: Mapping[str, Any]
    bound: str
    whole: bool = False
    repeats: bool = False

    def candidates(self, rows: int, features: int) -> list[dict[str, int]]:
        """Return each degree up to s_max, with min(C(s + d, s), m) centers."""
        return [
            {"degree": s, "n_centers": min(full_dimension(s, features), rows)}
            for s in range(1, degree_bound(rows, features, formula=self.bound) + 1)
        ]

    def classifier(self, **params: Any) -> FPCClassifier:
        """Return the classifier with some parameters."""
        return FPCClassifier(**{**self.settings, **params})

    def centers(self, X: FloatArray, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the centers that follow from the training rows, as a parameter, if any do."""
        return {"centers": X[: params["n_centers"]]} if self.repeats else {}


TEXT = Variant(
    "fpc",
    "FPC, the text",
    "The paper's text to the letter: uniform centers (scheme 1), s_max = min([m^(1/d)], 10), five "
    "iterations. The text does not say how columns are scaled: to [0, 1], as the demo does.",
    PAPER | ITERATIONS,
    "text",
)

DEMO = Variant(
    "fpc_demo",
    "FPC, the demo",
    "The authors' program FPC_UCI_demo_musk2.m to the letter: the first training rows as centers, "
    "repeated ones too, s_max = min(ceil((m / ln m)^(1/d)), 10), and columns that are scaled to "
    "[0, 1] over all rows before the split.",
    PAPER | ITERATIONS | {"scaler": None, "centers": "first"},
    "code",
    whole=True,
    repeats=True,
)

PRINT = Variant(
    "fpc_print",
    "FPC, fits the print",
    "What comes closest to the printed figures: columns in [-1, 1], a line that the demo has as a "
    "comment, the first rows as centers, and s_max = min(ceil(m^(1/d)), 10), which alone agrees "
    "with the numbers of centers of Table VI. It is the best of some twenty settings that were "
    "tried: evidence of what was run, and no proof.",
    PAPER | ITERATIONS | {"scaler": "symmetric", "centers": "first"},
    "ceil",
)

VARIANTS = {variant.name: variant for variant in (TEXT, DEMO, PRINT)}
"""The three rows of FPC, by name."""


def scaled_whole(X: FloatArray) -> FloatArray:
    """Return rows scaled to [0, 1] by the ranges of all of them; a constant column becomes 0."""
    low, high = X.min(axis=0), X.max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    return np.asarray((X - low) / width)


def choose_degree(
    variant: Variant,
    training: tuple[FloatArray, IntArray],
    validation: tuple[FloatArray, IntArray],
    **params: Any,
) -> FPCClassifier:
    """Return the paper's choice: of each degree up to s_max, the best on the validation rows.

    Parameters
    ----------
    variant : Variant
        The settings.
    training, validation : tuple of (X, y)
        The rows to fit to, and to choose by.
    **params
        Further parameters of ``FPCClassifier``.

    Returns
    -------
    FPCClassifier
        Fitted; of equals, the one with the smaller degree.

    Examples
    --------
    >>> from polysift.datasets import make_bayes_curve
    >>> from polysift_paper.algorithm import PRINT, choose_degree
    >>> X, y = make_bayes_curve(2000, noise=0.1, random_state=0)
    >>> model = choose_degree(PRINT, (X[:1000], y[:1000]), (X[1000:], y[1000:]), random_state=0)
    >>> model.degree > 1, model.scaler
    (True, 'symmetric')
    """
    (X, y), (X_check, y_check) = training, validation
    best: tuple[float, Any] = (-1.0, None)
    for candidate in variant.candidates(*X.shape):
        given = {**candidate, **variant.centers(X, candidate), **params}
        model = variant.classifier(**given)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what rounding does to alpha
            model.fit(X, y)
        score = float(np.mean(model.predict(X_check) == y_check))
        if score > best[0]:
            best = score, model
    return best[1]
