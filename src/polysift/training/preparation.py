"""What the first pass over the data brings: labels, weights, and all a feature map needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polysift.data.labels import find_encoding
from polysift.data.source import DataSource
from polysift.data.training_set import TrainingSet
from polysift.engine.backend import Place
from polysift.features.survey import Questions, Survey
from polysift.runtime.fingerprint import digest
from polysift.runtime.parallel import Pool
from polysift.runtime.progress import Monitor
from polysift.runtime.types import FloatArray


@dataclass(frozen=True)
class Prepared:
    """What the first pass over the data brings: labels, weights, and all a feature map needs.

    Attributes
    ----------
    data : TrainingSet
        The rows, with the weights of their classes.
    classes : ndarray
        The classes.
    counts : ndarray of shape (classes,)
        The weight of each class, by the rows' own weights.
    weights : ndarray of shape (m,) or None
        The rows' own weights, if they have any and were gathered.
    found : Survey
        What the survey found, but for the labels.
    marks : tuple of str
        Digests of the labels and of the weights, if there are any, where they were asked for.
    """

    data: TrainingSet
    classes: Any
    counts: FloatArray
    weights: FloatArray | None
    found: Survey
    marks: tuple[str, ...]

    def fingerprint(self) -> dict[str, Any]:
        """Return what tells these data from others; they enter by digests."""
        source = self.data.source
        return {
            "rows": source.n_rows,
            "features": source.n_features,
            "dtype": str(source.dtype),
            "data": digest(*self.found.digests),
            "labels": self.marks[0],
            "weights": self.marks[1] if len(self.marks) > 1 else None,
        }


def prepare(
    source: DataSource,
    questions: Questions,
    class_weight: Any,
    place: Place,
    pool: Pool,
    monitor: Monitor,
) -> Prepared:
    """Survey the rows and encode their labels."""
    found = place.survey(source, questions, pool, monitor)
    parts, found.labels = found.labels, []
    encoding = find_encoding(parts, class_weight, source.target)
    marks = tuple(_mark(words) for words in zip(*(part.digests for part in parts), strict=True))
    codes, own, weights = np.empty(0, np.int8), None, None
    if questions.gather:
        codes = np.concatenate([encoding.codes(part) for part in parts])
        if parts[0].weights is not None:
            own = np.concatenate([part.weights for part in parts if part.weights is not None])
        weights = encoding.weights(own, codes)
    n_classes = len(encoding.classes)
    data = TrainingSet(source, codes, n_classes, weights, encoding=encoding)
    return Prepared(data, encoding.classes, encoding.counts, own, found, marks)


def _mark(words: Sequence[str]) -> str:
    return digest(np.frombuffer("".join(words).encode(), np.uint8))
