"""``partial_fit``: its checks, and the sums that a model carries from batch to batch."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from polysift.losses import solver_and_loss
from polysift.solvers.running import RunningSums
from polysift.training.fit import Trained
from polysift.training.job import check_solver_parameters

PARTIAL_SOLVERS = ("paper", "lbfgs")
"""The solvers whose first iterate is a model by itself."""


def has_first_iterate(model: Any) -> bool:
    """Return True if the solver has a model for ``partial_fit``, else raise."""
    solver, _ = solver_and_loss(model)
    if solver not in PARTIAL_SOLVERS:
        raise AttributeError(
            f"{type(model).__name__} has no partial_fit with solver={model.solver!r}, which "
            "iterates over all rows. Use solver='auto', 'paper' or 'lbfgs'."
        )
    return True


def check_partial_parameters(model: Any) -> None:
    """Raise for parameters with which rows cannot be learned batch by batch."""
    check_solver_parameters(model)
    refused = {
        f"calibration={model.calibration!r}": (
            model.calibration is not None,
            "it needs folds of all rows. Use loss='logistic' with solver='lbfgs', which has "
            "probabilities, or calibrate on rows that are held out",
        ),
        f"threshold={model.threshold!r}": (
            model.threshold is not None,
            "it needs folds of all rows. Choose thresholds on rows that are held out",
        ),
        "class_weight='balanced'": (
            isinstance(model.class_weight, str),
            "it needs the classes of all rows. Pass a dict of weights",
        ),
        "gram='sampled'": (model.gram == "sampled", "it needs all rows. Use gram='exact'"),
        f"checkpoint={model.checkpoint!r}": (
            model.checkpoint is not None,
            "a batch is added whole or not at all. Save the model between batches",
        ),
    }
    for name, (wrong, why) in refused.items():
        if wrong:
            raise ValueError(f"{name} cannot go with partial_fit: {why}.")


def checked_classes(model: Any, classes: Any) -> np.ndarray[Any, Any]:
    """Return all classes, sorted: those given, or those that the model knows."""
    known = getattr(model, "classes_", None)
    if classes is None:
        if known is None:
            raise ValueError(
                "classes must be passed to the first call of partial_fit: a later batch may hold "
                "classes that this one lacks. Pass all of them, for example np.unique(all_labels)."
            )
        return np.asarray(known)
    given = np.unique(np.asarray(classes))
    check_classification_targets(given)
    if len(given) < 2:
        raise ValueError(f"classes must hold at least two classes; got {given.tolist()}.")
    if known is not None and not np.array_equal(given, known):
        raise ValueError(
            f"classes={given.tolist()} are not those of the batches before, {known.tolist()}. "
            "Leave classes out, or clone the model to start anew."
        )
    return given


def sums_of(model: Any) -> RunningSums | None:
    """Return the sums of the batches so far; None before the first."""
    stored = getattr(model, "partial_sums_", None)
    return None if stored is None else RunningSums(**stored)


def set_sums(model: Any, sums: RunningSums) -> None:
    """Keep the sums of the batches so far, as plain arrays."""
    model.partial_sums_ = {**vars(sums)}


def merged(model: Any, trained: Trained, *, anew: bool) -> dict[str, Any]:
    """Return the fitted attributes that a batch changes when the feature map is known.

    ``anew`` says that the rows of the fit before are not among the sums.
    """
    result, past = trained.result, model.training_summary_
    summary, timings = {**trained.summary, "columns": past.get("columns", [])}, trained.timings
    if not anew:
        for name in ("rows", "class_counts"):
            summary[name] = past[name] + summary[name]
        phases = {**model.timings_, **timings}
        timings = {
            phase: model.timings_.get(phase, 0.0) + timings.get(phase, 0.0) for phase in phases
        }
    return {
        "solver_": result.solver,
        "n_iter_": result.n_iter,
        "status_": result.status.word,
        "status_message_": result.status.value,
        "gram_": "exact",
        "n_products_": 0,
        "coef_": np.ascontiguousarray(result.u.T),
        "rho_": float(result.rho),
        "history_": result.history,
        "training_summary_": summary,
        "timings_": timings,
    }
