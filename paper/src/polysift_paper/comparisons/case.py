"""Rows for a comparison, and which of them are for what."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from polysift.datasets import load
from polysift.runtime.types import FloatArray, IntArray
from polysift_paper.algorithm import scaled_whole

SHAPES = {
    "susy_shape": (4_000_000, 500_000, 500_000, 8),
    "higgs_shape": (10_000_000, 500_000, 500_000, 21),
}
"""Training, validation and test rows and features of the paper's massive data sets: where those are
not at hand, drawn numbers of these shapes take as long."""

NOISE = 0.2
"""The share of reversed labels in drawn data, near the errors of SUSY."""


@dataclass(frozen=True)
class Case:
    """Labelled rows: those to fit to, to choose by, and to judge on."""

    X: FloatArray
    y: IntArray
    train: IntArray
    validation: IntArray
    test: IntArray

    def of(self, which: IntArray) -> tuple[FloatArray, IntArray]:
        """Return some of the rows, with their labels."""
        return self.X[which], self.y[which]


def three_parts(rows: int, seed: int) -> list[IntArray]:
    """Return training, validation and test rows: half, a quarter, a quarter, as in the paper."""
    order = np.random.default_rng(seed).permutation(rows)
    return np.split(order, [rows // 2, rows // 2 + rows // 4])


def open_case(data: str, seed: int, most: int | None = None, whole: bool = False) -> Case:
    """Load a data set that is at hand, or draw a shape, and split it.

    Parameters
    ----------
    data : str
        The name.
    seed : int
        Of the split, and of what is drawn.
    most : int, optional
        Training rows at most; the other parts shrink with them.
    whole : bool, default=False
        Whether columns are scaled to [0, 1] over all parts together, as the authors' demo does.
    """
    if data in SHAPES:
        case = _drawn(*SHAPES[data], seed=seed, most=most)
    else:
        found = load(data, fetch=False)
        parts = found.split or three_parts(len(found.y), seed)
        case = Case(
            found.X, found.y, *(part[: _share(len(part), len(parts[0]), most)] for part in parts)
        )
    return replace(case, X=scaled_whole(case.X)) if whole else case


def _share(rows: int, train: int, most: int | None) -> int:
    return rows if most is None or most >= train else max(1, rows * most // train)


def _drawn(
    train: int, validation: int, test: int, features: int, *, seed: int, most: int | None
) -> Case:
    """Draw a noisy quadratic problem."""
    sizes = [_share(part, train, most) for part in (train, validation, test)]
    rng = np.random.default_rng(seed)
    X = rng.random((sum(sizes), features), dtype=np.float32)
    positive = (X[:, 0] - 0.5) ** 2 + X[:, 1] * X[:, 2] > 0.3
    positive ^= rng.random(len(X)) < NOISE
    parts = np.split(np.arange(len(X)), np.cumsum(sizes)[:2])
    return Case(X, np.where(positive, 1, -1).astype(np.int8), *parts)
