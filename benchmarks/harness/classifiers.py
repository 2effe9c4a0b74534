"""The paper's algorithm, with nothing left to the data."""

from __future__ import annotations

from typing import Any

from polysift import PAPER, FPCClassifier


def paper_classifier(degree: Any = 3, n_centers: Any = 1000, **params: Any) -> FPCClassifier:
    """Return a classifier with the paper's settings, but for those that are given.

    Other solvers have their own alpha and beta.
    """
    settings = dict(PAPER)
    if params.get("solver", "paper") != "paper":
        settings |= {"alpha": None, "beta": None}
    return FPCClassifier(**settings | {"degree": degree, "n_centers": n_centers} | params)
