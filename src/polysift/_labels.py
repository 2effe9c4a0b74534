"""From the labels and weights a survey collected to class numbers and row weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from polysift._survey import LabelPart
from polysift._types import FloatArray, IntArray


def encode_labels(
    parts: list[LabelPart], target: str = "y"
) -> tuple[np.ndarray[Any, Any], IntArray, FloatArray | None]:
    """Return the classes of the rows of positive weight, each row's class number, and the weights.

    Rows of weight zero whose label occurs nowhere else get -1. The weights are None if all parts
    have none. ``target`` is how a message calls the labels.
    """
    labels = np.unique(np.concatenate([part.distinct for part in parts]))
    if labels.dtype.kind == "f" and not np.equal(labels, np.round(labels)).all():
        raise ValueError(
            f"{target} holds continuous values such as {labels[labels != np.round(labels)][0]}; "
            "a classifier needs classes. Cut them into classes first."
        )
    places = [np.searchsorted(labels, part.distinct) for part in parts]
    weights = None
    present = np.ones(len(labels), dtype=bool)
    if parts[0].weights is not None:
        weights = np.concatenate([part.weights for part in parts if part.weights is not None])
        if not weights.any():
            raise ValueError(
                "sample_weight is zero for all rows, which leaves nothing to learn from. Leave "
                "it out to count each row once."
            )
        total = np.zeros(len(labels))
        for place, part in zip(places, parts, strict=True):
            total[place] += np.bincount(part.codes, part.weights, len(place))
        present = total > 0
    classes = labels[present]
    if len(classes) < 2:
        raise ValueError(
            f"{target} must hold at least two classes; got one class only, "
            f"{shown(classes[:1])}. Rows of weight zero do not count."
        )
    numbers = np.where(present, np.cumsum(present) - 1, -1)
    numbers = numbers.astype(np.int8 if len(classes) < 127 else np.int32)
    codes = np.concatenate(
        [numbers[place][part.codes] for place, part in zip(places, parts, strict=True)]
    )
    return classes, codes, weights


def codes_among(labels: Any, classes: np.ndarray[Any, Any], target: str) -> IntArray:
    """Return the place of each label among sorted classes, -1 where it is none of them."""
    if (labels.dtype.kind in "biuf") != (classes.dtype.kind in "biuf"):
        raise ValueError(
            f"{target} is of type {labels.dtype}, but the model's classes are {shown(classes)}: "
            "they can never be equal."
        )
    places = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    return np.where(classes[places] == labels, places, -1)


def shown(labels: np.ndarray[Any, Any]) -> str:
    """Return labels as text, without the names of numpy's types."""
    return ", ".join(map(repr, labels.tolist()))


def apply_class_weight(
    class_weight: Any, weights: FloatArray | None, codes: IntArray, classes: Any
) -> FloatArray | None:
    """Multiply each row's weight by that of its class."""
    if class_weight is None:
        return weights
    rows = np.ones(len(codes)) if weights is None else weights
    if isinstance(class_weight, str):  # "balanced": every class weighs the same
        counts = np.bincount(np.maximum(codes, 0), rows, len(classes))
        factors = rows.sum() / (len(classes) * counts)
    else:
        names = list(classes)
        unknown = [label for label in class_weight if label not in names]
        # As in scikit-learn: a class that happens to be absent may have a weight, if all others do.
        if unknown and any(label not in class_weight for label in names):
            raise ValueError(
                f"class_weight names {unknown[0]!r}, which is not a class of y; the classes are "
                f"{shown(classes)}."
            )
        factors = np.array([class_weight.get(label, 1.0) for label in names], dtype=float)
        if not (np.isfinite(factors).all() and (factors > 0).all()):
            raise ValueError(f"class_weight must hold positive numbers; got {class_weight!r}.")
    return np.asarray(rows * factors[codes])
