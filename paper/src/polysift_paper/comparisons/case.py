"""Rows for a comparison, and which of them are for what."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from polysift.datasets import load
from polysift.datasets.cache import find_files
from polysift.datasets.catalogue import find_entry
from polysift.runtime.types import FloatArray, IntArray
from polysift_paper.algorithm import scaled_whole
from polysift_paper.comparisons.comparison import REVERSED

SHAPES = {
    "susy_shape": (4_000_000, 500_000, 500_000, 8),
    "higgs_shape": (10_000_000, 500_000, 500_000, 21),
}
"""Training, validation and test rows and features of the paper's massive data sets: where those are
not at hand, drawn numbers of these shapes take as long."""

GISETTE_PARTS, GISETTE_COLUMNS = (6_000, 1_000, 6_500), 5_000

GISETTE_INK = 0.05
"""The share of images in which a pixel must not be blank to be a column."""

MADE = {"gisette_like": "mnist38"}
"""Sets that are made from another one, by which one can tell whether they can be."""


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
    if data in MADE:
        case = gisette_like(seed, most)
    elif data in SHAPES:
        case = _drawn(*SHAPES[data], reversed_share=REVERSED[data], seed=seed, most=most)
    else:
        found = load(data, fetch=False)
        parts = found.split or three_parts(len(found.y), seed)
        case = Case(
            found.X, found.y, *(part[: _share(len(part), len(parts[0]), most)] for part in parts)
        )
    return replace(case, X=scaled_whole(case.X)) if whole else case


def gisette_like(seed: int, most: int | None = None) -> Case:
    """Make a set as Gisette was made: digits 4 and 9 of MNIST, 5,000 columns, half of them noise.

    Its rows are those of the paper's Table V: 6,000, 1,000 and 6,500. Columns are pixels that are
    not always blank, and products of two of them; then as many probes, each the values of one of
    these in another order. Which pixels, pairs and orders were taken for Gisette is not known, so
    accuracies can be compared among systems, but not with the print.
    """
    images, y = mnist_digits(4, 9)
    sizes = [_share(part, GISETTE_PARTS[0], most) for part in GISETTE_PARTS]
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))[: sum(sizes)]
    pixels = images[order] / np.float32(255.0)
    useful = pixels[:, (pixels > 0).mean(axis=0) > GISETTE_INK]
    half = GISETTE_COLUMNS // 2
    pairs = rng.integers(0, useful.shape[1], (half - useful.shape[1], 2))
    real = np.hstack([useful, useful[:, pairs[:, 0]] * useful[:, pairs[:, 1]]])
    probes = rng.permuted(real, axis=0)
    X = np.hstack([real, probes])[:, rng.permutation(GISETTE_COLUMNS)]
    parts = np.split(np.arange(len(X)), np.cumsum(sizes)[:2])
    return Case(np.ascontiguousarray(X), y[order], *parts)


def mnist_digits(low: int, high: int) -> tuple[FloatArray, IntArray]:
    """Return the images of two digits of MNIST, (m, 784), with +1 for the larger digit."""
    paths = find_files(find_entry("mnist38"))
    if paths is None or paths[0].suffix != ".npz":
        raise FileNotFoundError("This set is made from mnist.npz, which POLYSIFT_DATA lacks.")
    with np.load(paths[0], allow_pickle=False) as file:
        images = np.concatenate([file["x_train"], file["x_test"]])
        digits = np.concatenate([file["y_train"], file["y_test"]])
    chosen = np.isin(digits, (low, high))
    X = images[chosen].reshape(int(chosen.sum()), -1).astype(np.float32)
    return X, np.where(digits[chosen] == high, np.int8(1), np.int8(-1))


def _share(rows: int, train: int, most: int | None) -> int:
    return rows if most is None or most >= train else max(1, rows * most // train)


def _drawn(
    train: int,
    validation: int,
    test: int,
    features: int,
    *,
    reversed_share: float,
    seed: int,
    most: int | None,
) -> Case:
    """Draw a noisy quadratic problem."""
    sizes = [_share(part, train, most) for part in (train, validation, test)]
    rng = np.random.default_rng(seed)
    X = rng.random((sum(sizes), features), dtype=np.float32)
    positive = (X[:, 0] - 0.5) ** 2 + X[:, 1] * X[:, 2] > 0.3
    positive ^= rng.random(len(X)) < reversed_share
    parts = np.split(np.arange(len(X)), np.cumsum(sizes)[:2])
    return Case(X, np.where(positive, 1, -1).astype(np.int8), *parts)
