"""From labels and weights of rows to class numbers and weights, in two steps.

First the labels of every shard are counted (``label_part``); from the counts follows an
``Encoding``, with which each shard's rows are encoded, in this process or by a worker.

Sample weights that are all whole numbers are multiplicities. Any others are relative: they are
divided by their mean over the rows of positive weight, so that a constant factor has no effect, and
the solvers' absolute parameters mean the same as without weights. Weights of classes multiply the
result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import Any

import numpy as np

from polysift.runtime.errors import FeatureOverflowError
from polysift.runtime.types import FloatArray, IntArray

MAX_MULTIPLICITY = 2.0**53
"""Weights beyond are relative: floats of that size are whole numbers for want of digits."""

MAX_CLASS_WEIGHT = 1e15
"""The largest weight of a class, and the inverse of the smallest."""

MAX_INT8_CLASSES = 126
"""With more classes, class numbers take four bytes instead of one."""


@dataclass(frozen=True)
class LabelPart:
    """The labels and weights of one shard.

    Attributes
    ----------
    distinct : ndarray
        Its distinct labels, sorted.
    totals : ndarray of shape (len(distinct),)
        The total weight of the rows of each.
    codes : ndarray of int or None
        The position of each row's label among them; None where a worker holds the rows.
    weights : ndarray or None
        The weights of the rows, if they have any.
    digests : tuple of str
        Digests of labels and of weights, row by row, if asked for.
    present : int
        The number of rows of positive weight.
    whole : bool
        Whether all weights are whole numbers.
    hashes : ndarray of uint64 or None
        A hash of each row's content, where folds are dealt by it.
    """

    distinct: np.ndarray[Any, Any]
    totals: FloatArray
    codes: IntArray | None
    weights: FloatArray | None
    digests: tuple[str, ...] = ()
    present: int = 0
    whole: bool = True
    hashes: np.ndarray[Any, Any] | None = None


def label_part(labels: np.ndarray[Any, Any], weights: FloatArray | None) -> LabelPart:
    """Return the labels of a shard and their weights."""
    try:
        distinct, codes = np.unique(labels, return_inverse=True)
    except TypeError:
        raise ValueError(_mixed_types(labels)) from None
    totals = np.bincount(codes, weights, len(distinct)).astype(float)
    present, whole = len(labels), True
    if weights is not None:
        present = int(np.count_nonzero(weights))
        whole = bool(np.all((weights == np.rint(weights)) & (weights <= MAX_MULTIPLICITY)))
    return LabelPart(distinct, totals, codes.astype(np.int32), weights, (), present, whole)


def union_of_labels(parts: Sequence[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """Return the distinct labels of several parts, ascending."""
    if all(np.array_equal(part, parts[0]) for part in parts[1:]):
        return parts[0]
    joined = np.concatenate(parts)
    try:
        return np.unique(joined)
    except TypeError:
        raise ValueError(_mixed_types(joined)) from None


def _mixed_types(labels: np.ndarray[Any, Any]) -> str:
    kinds = sorted({type(label).__name__ for label in labels})
    return (
        f"y mixes labels of different types ({', '.join(kinds)}), which have no order. "
        "Convert them to one type, for example to text."
    )


@dataclass(frozen=True)
class Encoding:
    """How labels become class numbers, and what the rows of each class weigh.

    Attributes
    ----------
    labels : ndarray
        All labels, sorted.
    numbers : ndarray of int
        The class of each label; -1 where all its rows have weight zero.
    classes : ndarray
        The labels that are classes.
    counts : ndarray of shape (classes,)
        The total weight of each class by the rows' own weights.
    factors : ndarray of shape (classes,) or None
        The factors of the rows' weights, by class, that ``class_weight`` asks for.
    unit : float
        What the weights as given are divided by: 1 for multiplicities, else their mean.
    """

    labels: np.ndarray[Any, Any]
    numbers: IntArray
    classes: np.ndarray[Any, Any]
    counts: FloatArray
    factors: FloatArray | None
    unit: float = 1.0

    @property
    def total(self) -> float:
        """The total weight of all rows."""
        return fsum(self.counts if self.factors is None else self.counts * self.factors)

    def codes(self, part: LabelPart) -> IntArray:
        """Return the class of each row of a shard, -1 for a label that is not a class."""
        assert part.codes is not None
        return self.numbers[np.searchsorted(self.labels, part.distinct)][part.codes]

    def own_weights(self, given: FloatArray | None) -> FloatArray | None:
        """Return the weights of rows in units of ``unit``; a positive one stays positive."""
        if given is None or self.unit == 1.0:
            return given
        own = _in_units(given, self.unit)
        own[given == 0] = 0.0
        return own

    def weighing(self, class_weight: Any) -> Encoding:
        """Return the encoding with other weights of the classes."""
        return replace(self, factors=_factors(class_weight, self.counts, self.classes))

    def weights(self, own: FloatArray | None, codes: IntArray) -> FloatArray | None:
        """Return the weights of rows: their own, times those of their classes."""
        if self.factors is None:
            return own
        return self.factors[codes] if own is None else own * self.factors[codes]


def find_encoding(
    parts: list[LabelPart], class_weight: Any, target: str = "y", classes: Any = None
) -> Encoding:
    """Return the encoding of the labels of all shards; messages call them ``target``.

    Where the rows are a batch of more, ``classes`` are those of all, sorted; weights then count as
    they are, since their mean over all rows is not known.
    """
    labels = union_of_labels([part.distinct for part in parts])
    if labels.dtype.kind == "f" and not np.equal(labels, np.round(labels)).all():
        raise ValueError(
            f"{target} holds continuous values such as {labels[labels != np.round(labels)][0]}; "
            "a classifier needs classes. Cut them into classes first."
        )
    weighed: list[list[float]] = [[] for _ in labels]
    for part in parts:
        positions = np.searchsorted(labels, part.distinct)
        for position, total in zip(positions, part.totals, strict=True):
            weighed[position].append(float(total))
    totals = np.array([_exact_sum(values) for values in weighed])
    if not totals.any():
        raise ValueError(
            "sample_weight is zero for all rows, which leaves nothing to learn from. Leave "
            "it out to count each row once."
        )
    unit = _unit(parts, totals)
    if classes is not None:
        return _known_encoding(labels, totals, class_weight, target, classes)
    present = totals > 0
    classes = labels[present]
    if len(classes) < 2:
        raise ValueError(
            f"{target} must hold at least two classes; got one class only, "
            f"{shown(classes[:1])}. Rows of weight zero do not count."
        )
    numbers = _narrow(np.where(present, np.cumsum(present) - 1, -1), len(classes))
    counts = totals[present] if unit == 1.0 else _in_units(totals[present], unit)
    factors = _factors(class_weight, counts, classes)
    return Encoding(labels, numbers, classes, counts, factors, unit)


def _known_encoding(
    labels: np.ndarray[Any, Any],
    totals: FloatArray,
    class_weight: Any,
    target: str,
    classes: np.ndarray[Any, Any],
) -> Encoding:
    """Return the encoding of labels that are among given classes."""
    numbers = codes_among(labels, classes, target)
    if (numbers < 0).any():
        raise ValueError(
            f"{target} holds {shown(labels[numbers < 0][:1])}, which is not one of the classes "
            f"{shown(classes)}. Pass all classes to the first call of partial_fit."
        )
    counts = np.zeros(len(classes))
    counts[numbers] = totals
    factors = _factors(class_weight, counts, classes)
    return Encoding(labels, _narrow(numbers, len(classes)), classes, counts, factors)


def _narrow(numbers: IntArray, n_classes: int) -> IntArray:
    return numbers.astype(np.int8 if n_classes <= MAX_INT8_CLASSES else np.int32)


def _exact_sum(values: list[float]) -> float:
    """Return the sum of values, rounded once, so that their order has no effect."""
    try:
        return fsum(values)
    except OverflowError:
        return np.inf


def _in_units(weights: FloatArray, unit: float) -> FloatArray:
    """Return positive weights divided by ``unit``, and positive still."""
    quotients = weights / unit
    return np.maximum(quotients, np.finfo(float).tiny, out=quotients)


def _unit(parts: list[LabelPart], totals: FloatArray) -> float:
    """Return what weights are divided by: 1 where all are whole numbers, else their mean."""
    if not np.isfinite(np.sum(totals)):
        raise FeatureOverflowError(
            "The sum of sample_weight overflows float64. Divide the weights by a constant: unless "
            "they are whole numbers, only their ratios count."
        )
    if all(part.whole for part in parts):
        return 1.0
    return fsum(totals) / sum(part.present for part in parts)


def _factors(class_weight: Any, counts: FloatArray, classes: Any) -> FloatArray | None:
    """Return the factor of each class that ``class_weight`` asks for."""
    if class_weight is None:
        return None
    if isinstance(class_weight, str):  # "balanced": every class weighs the same
        factors = np.asarray(fsum(counts) / (len(classes) * counts))
        if factors.max() > MAX_CLASS_WEIGHT:
            rarest = int(np.argmax(factors))
            raise ValueError(
                f"class_weight='balanced' cannot balance class {shown(classes[[rarest]])}: by "
                f"sample_weight it is {counts[rarest] / fsum(counts):.3g} of the whole. Weigh its "
                "rows more, or leave them out."
            )
        return factors
    names = list(classes)
    unknown = [label for label in class_weight if label not in names]
    # As in scikit-learn: a class that happens to be absent may have a weight, if all others do.
    if unknown and any(label not in class_weight for label in names):
        raise ValueError(
            f"class_weight names {unknown[0]!r}, which is not a class of y; the classes are "
            f"{shown(classes)}."
        )
    factors = np.array([class_weight.get(label, 1.0) for label in names], dtype=float)
    if not ((factors >= 1 / MAX_CLASS_WEIGHT) & (factors <= MAX_CLASS_WEIGHT)).all():
        raise ValueError(
            f"class_weight must hold positive numbers, from {1 / MAX_CLASS_WEIGHT:g} to "
            f"{MAX_CLASS_WEIGHT:g}; got {class_weight!r}. Only their ratios matter much."
        )
    return factors


def codes_among(labels: Any, classes: np.ndarray[Any, Any], target: str) -> IntArray:
    """Return the position of each label among sorted classes, -1 where it is none of them."""
    if (labels.dtype.kind in "biuf") != (classes.dtype.kind in "biuf"):
        raise ValueError(
            f"{target} is of type {labels.dtype}, but the model's classes are {shown(classes)}: "
            "they can never be equal."
        )
    positions = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    return np.where(classes[positions] == labels, positions, -1)


def shown(labels: np.ndarray[Any, Any]) -> str:
    """Return labels as text, without the names of numpy's types."""
    return ", ".join(map(repr, labels.tolist()))
