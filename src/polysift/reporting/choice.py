"""What a model says of its automatic choice: sentences, and the table of the feature maps tried."""

from __future__ import annotations

from typing import Any

from polysift.estimators.fitted import kernel_of
from polysift.reporting.page import NONE, Markup, figure_text, table

HEADS = ("kernel", "scaler", "degree", "weights of columns", "GCV", "degrees of freedom")
"""The columns of the table of the trials."""


def scaler_of(model: Any) -> str:
    """Return the scaler of a fitted model, in a word; the spline kernel has its own."""
    if kernel_of(model) == "spline":
        return "by rank"
    found = getattr(model, "selection_", None)
    scaler = model.scaler if found is None else found["trials"][found["best"]]["scaler"]
    return scaler or "none"


def choice_text(model: Any) -> str | None:
    """Return how the feature map was chosen; None if nothing was left open."""
    found = getattr(model, "selection_", None)
    if found is None:
        return None
    count, rows = len(found["trials"]), found["rows"]
    weighted = found["column_weights"] is not None
    how = ", with columns weighted by importance" if weighted else ""
    return f"among {count} feature map{'s'[: count > 1]} on {rows:,} rows{how}"


def trials_table(model: Any) -> Markup | None:
    """Return the feature maps that were tried, as a table; None if there was no choice."""
    found = getattr(model, "selection_", None)
    if found is None:
        return None
    rows = [
        (
            trial["kernel"],
            _scaler_text(trial),
            f"{trial['degree']}",
            trial["weights"],
            "overflow" if trial["gcv"] is None else figure_text(trial["gcv"]),
            NONE if trial["gcv"] is None else f"{trial['degrees_of_freedom']:.1f}",
        )
        for trial in found["trials"]
    ]
    caption = (
        f"Feature maps that were tried on {found['rows']:,} rows, with {found['centers']:,} "
        "centers, by generalised cross-validation (GCV); the chosen one is marked"
    )
    return table(HEADS, rows, caption=caption, kind="best", marked=[found["best"]])


def _scaler_text(trial: dict[str, Any]) -> str:
    return "by rank" if trial["kernel"] == "spline" else trial["scaler"] or "none"
