"""Ways to treat missing values, compared on real data from which values were taken away.

Half of the rows, at most 6,000, are for training, as many for testing, and both lose values in the
same way:

- at random: every value with a probability of 0.3;
- the largest: in half of the columns, the values above the 0.7 quantile;
- by another: in half of the columns, where another column, which is kept, is above its own.

All models are ``FPCClassifier(3, 300, scaler="standard")``, but for LightGBM's default, which sees
the missing values. The files are read from the folder that POLYSIFT_DATA names. Prints the tables
of docs/tables.md.

Usage: python benchmarks/missing.py [--splits 2] [--only magic,htru2]
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np

from common import load, three_parts
from harness.classifiers import paper_classifier
from polysift import FPCClassifier
from polysift.features import table_learning as tables

SETS = ("magic", "occupancy", "htru2", "credit_default", "covtype_binary", "skin", "banknote")
SETS += ("seismic_bumps", "breast_cancer", "higgs_11k", "tables/keel_phoneme", "tables/keel_ring")
ROWS, CENTERS, SHARE = 6_000, 300, 0.3
ROW_NUMBERS = {"credit_default": 0}
"""The column of a set that numbers its rows, which is left out."""

Array = np.ndarray
Rows = tuple[Array, Array]
"""Training and test rows."""


def parts(name: str, seed: int) -> tuple[Rows, Rows]:
    """Return training and test rows of a set, and their labels."""
    X, y = load(name)
    X = np.delete(X, ROW_NUMBERS.get(name, []), axis=1)
    order = np.concatenate(three_parts(len(y), seed))
    half = min(ROWS, len(y) // 2)
    train, test = order[:half], order[half : 2 * half]
    return (X[train], X[test]), (y[train], y[test])


def at_random(rows: Rows, rng: np.random.Generator) -> list[Array]:
    return [np.where(rng.random(X.shape) < SHARE, np.nan, X) for X in rows]


def largest(rows: Rows, rng: np.random.Generator) -> list[Array]:
    lost = rng.permutation(rows[0].shape[1])[::2]
    return _without(rows, {j: j for j in lost.tolist()})


def by_another(rows: Rows, rng: np.random.Generator) -> list[Array]:
    order = rng.permutation(rows[0].shape[1]).tolist()
    return _without(rows, dict(zip(order[::2], order[1::2], strict=False)))


def _without(rows: Rows, deciding: dict[int, int]) -> list[Array]:
    """Return rows without the values of columns where the deciding column is large."""
    border = np.quantile(rows[0], 1 - SHARE, axis=0)
    out = [X.copy() for X in rows]
    for X, made in zip(rows, out, strict=True):
        for j, k in deciding.items():
            made[X[:, k] > border[k], j] = np.nan
    return out


WAYS = {"at random": at_random, "the largest": largest, "by another": by_another}


def classifier(scaler: str | None = "standard") -> FPCClassifier:
    return paper_classifier(3, CENTERS, scaler=scaler, random_state=0)


def with_indicators(weight: float) -> Callable[[Rows, Array], Array]:
    """Return what is built, with another weight of the indicators."""

    def predict(rows: Rows, y: Array) -> Array:
        before, tables.INDICATOR_WEIGHT = tables.INDICATOR_WEIGHT, weight
        try:
            return classifier().fit(rows[0], y).predict(rows[1])
        finally:
            tables.INDICATOR_WEIGHT = before

    return predict


def mean_imputed(rows: Rows, y: Array) -> Array:
    means = _means(rows[0])
    train, test = (np.where(np.isnan(X), means, X) for X in rows)
    return classifier().fit(train, y).predict(test)


def conditional_means(rows: Rows, y: Array) -> Array:
    """Predict by rows filled with the mean given the values that are there, and indicators.

    The coordinates are those of ``features.tables``, made here.
    """
    X = rows[0]
    d, means, deviation = X.shape[1], _means(X), np.sqrt(np.nanvar(_present(X), axis=0))
    deviation = np.where(deviation > 0, deviation, 1.0)
    standard = [np.clip((part - means) / deviation, -4, 4) for part in rows]
    R = _correlation(standard[0])
    p = np.isnan(X).mean(axis=0)
    spread = np.sqrt(np.maximum(p * (1 - p), 1e-300))
    made = []
    for Z in standard:
        flags = np.clip((np.isnan(Z) - p) / spread, -4, 4) * (p > 0)
        made.append(np.concatenate([_filled(Z, R), 0.5 * flags], axis=1) / np.sqrt(d))
    return classifier(None).set_params(centers="random").fit(made[0], y).predict(made[1])


def _present(X: Array) -> Array:
    """Return rows with zeros in the place of columns that lack all values."""
    return np.where(np.isnan(X).all(axis=0), 0.0, X)


def _means(X: Array) -> Array:
    return np.nanmean(_present(X), axis=0)


def _correlation(Z: Array) -> Array:
    """Return the correlations of columns, each from the rows that have both values."""
    there = ~np.isnan(Z)
    filled = np.where(there, Z, 0.0)
    count = there.T.astype(float) @ there
    R = filled.T @ filled / np.maximum(count, 1.0)
    values, vectors = np.linalg.eigh((R + R.T) / 2)  # of pairs, so it need not be positive
    return (vectors * np.maximum(values, 1e-3)) @ vectors.T


def _filled(Z: Array, R: Array) -> Array:
    """Return standardised rows, filled with their conditional means under a normal distribution."""
    out = Z.copy()
    patterns, at = np.unique(np.isnan(Z), axis=0, return_inverse=True)
    at = at.reshape(-1)
    for i, lost in enumerate(patterns):
        where = np.flatnonzero(at == i)
        there = ~lost
        fill = np.zeros((len(where), int(lost.sum())))
        if there.any() and lost.any():
            B = np.linalg.solve(R[np.ix_(there, there)], R[np.ix_(there, lost)])
            fill = np.clip(Z[np.ix_(where, there)] @ B, -4, 4)
        out[np.ix_(where, lost)] = fill
    return out


def lightgbm(rows: Rows, y: Array) -> Array:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(verbose=-1, n_jobs=1).fit(rows[0], y).predict(rows[1])


METHODS: dict[str, Callable[[Rows, Array], Array]] = {
    "built: zero, indicator 0.5": with_indicators(0.5),
    "no indicator": with_indicators(0.0),
    "indicator 1": with_indicators(1.0),
    "mean, no indicator": mean_imputed,
    "conditional mean, indicator 0.5": conditional_means,
}


def methods() -> dict[str, Callable[[Rows, Array], Array]]:
    """Return the methods that can run here."""
    try:
        import lightgbm as _  # noqa: F401
    except ImportError:
        return METHODS
    return METHODS | {"LightGBM": lightgbm}


def measure(names: list[str], splits: int) -> Array:
    """Return the accuracies in per cent, by set, way and method: means over the splits."""
    chosen = methods()
    found = np.zeros((len(names), len(WAYS), len(chosen), splits))
    for i, name in enumerate(names):
        for seed in range(splits):
            rows, (y, truth) = parts(name, seed)
            for k, take in enumerate(WAYS.values()):
                lacking = take(rows, np.random.default_rng(seed))
                for m, predict in enumerate(chosen.values()):
                    found[i, k, m, seed] = 100 * np.mean(predict(lacking, y) == truth)
        print(f"{name} is done", file=sys.stderr, flush=True)
    return found.mean(axis=-1)


def table(title: str, heads: list[str], rows: list[list[str]]) -> None:
    lines = [heads, ["---"] * len(heads), *rows]
    print(f"\n{title}\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines), flush=True)


def report(names: list[str], found: Array) -> None:
    heads = list(methods())
    shown = [Path(name).name for name in names]
    rows = [
        [f"{name}, {way}", *(f"{x:.2f}" for x in found[i, k])]
        for i, name in enumerate(shown)
        for k, way in enumerate(WAYS)
    ]
    table("Test accuracy (%)", ["data, what is missing", *heads], rows)
    rows = [
        [way, *(f"{x:.2f}" for x in found[:, k].mean(axis=0))] for k, way in enumerate(WAYS)
    ] + [["all", *(f"{x:.2f}" for x in found.mean(axis=(0, 1)))]]
    by_set = (found - found[:, :, :1]).mean(axis=1)
    error = by_set.std(axis=0, ddof=1) / np.sqrt(len(by_set))  # the ways of one set hang together
    gain = [f"{x:+.2f} ± {e:.2f}" for x, e in zip(by_set.mean(axis=0), error, strict=True)]
    better = [f"{n} of {len(by_set)}" for n in (by_set > 0).sum(axis=0)]
    rows.append(["against what is built", "", *gain[1:]])
    rows.append(["sets where it is better", "", *better[1:]])
    table(f"Means over {len(names)} sets, standard error", ["what is missing", *heads], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--only", default=",".join(SETS), help="data sets, by commas")
    options = parser.parse_args()
    if "POLYSIFT_DATA" not in os.environ:
        sys.exit("Set POLYSIFT_DATA to the folder of the data sets (magic.parquet, ...).")
    warnings.simplefilter("ignore")  # rho is at its floor
    names, began = options.only.split(","), perf_counter()
    report(names, measure(names, options.splits))
    print(f"\n({perf_counter() - began:.0f} s)")


if __name__ == "__main__":
    main()
