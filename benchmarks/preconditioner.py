"""The figures behind gram="sampled" in docs/numerics.md.

1. The smallest and the largest eigenvalue of M^-1 (G + rho I), for even samples and for those that
   are drawn by leverage (degree 6, 300 centers, 20,000 rows; 3 seeds), and for the Gram matrix of
   all rows summed in float32, whose rounding errors ask for a larger rho.
2. Products and what is left of the difference between both models, by the size of the second sample
   and the tolerance (degree 6).
3. The converged mode: iterations and objective.
4. float32 rows: the objective with A'(A p) summed in float32 over few rows, and over many.

The files are read from the folder that POLYSIFT_DATA names.
Usage: python benchmarks/preconditioner.py [--rows 60000] [--centers 1000]
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy.linalg import eigh

from common import load
from harness.classifiers import paper_classifier
from polysift import PolynomialKernelMap
from polysift.data.source import ArraySource
from polysift.data.training_set import TrainingSet
from polysift.engine import sampling, shards
from polysift.engine.backend import LOCAL, FitContext
from polysift.engine.local import LocalEngine
from polysift.engine.sampling import Draw, Sample
from polysift.features.feature_map import FeatureMap
from polysift.features.scalers import scaler_from_dict
from polysift.runtime.parallel import Pool
from polysift.runtime.progress import Monitor
from polysift.solvers import conjugate_gradients
from polysift.solvers.admm import AdmmSettings
from polysift.solvers.conjugate_gradients import sampled_sums
from polysift.solvers.factor import Ridge

MAP = {"degree": 6, "centers": "random", "scaler": "standard"}


def problem(name: str, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Return m + 20,000 rows and labels: of a real set, or normal rows with a curved boundary."""
    rng = np.random.default_rng(0)
    if name != "normal":
        X, y = load(name)
        chosen = rng.permutation(len(y))[: m + 20_000]
        return X[chosen].astype(np.float32), y[chosen] > 0
    X = rng.normal(size=(m + 20_000, 8)).astype(np.float32)
    z = (
        np.sin(2 * X[:, 0] * X[:, 1])
        + X[:, 2] * X[:, 3]
        - np.abs(X[:, 4])
        + np.cos(3 * X[:, 5]) / 2
    )
    return X, (z > np.median(z)) ^ (rng.random(len(X)) < 0.1)


def range_of(G: np.ndarray, H: np.ndarray, rho: float, own: float | None = None) -> str:
    upper = np.triu(H)
    M = upper + np.triu(upper, 1).T + (own or rho) * np.eye(len(G))
    values = eigh(G + rho * np.eye(len(G)), M, eigvals_only=True)
    return f"{values[0]:.2f} to {values[-1]:.2f}"


def eigenvalues(name: str, m: int = 20_000, n: int = 300) -> None:
    X, y = (part[:m] for part in problem(name, m))
    kernel = PolynomialKernelMap(n_centers=n, random_state=0, **MAP).fit(X)
    feature_map = FeatureMap(scaler_from_dict(kernel.scaler_), kernel.centers_, 6)
    with Pool(1) as pool:
        data = TrainingSet(ArraySource(X), y.astype(int), 2)
        engine = LocalEngine(data, feature_map, pool)
        context = FitContext(Monitor(), LOCAL, pool=pool)
        G = engine.gram().G[0]
        for seed in range(3):
            even = engine.pick(Draw(seed, 13 * n / m))
            B = np.empty((even.n_rows, n))
            engine.features(np.concatenate(even.X), B)
            drawn = sampled_sums(engine, Sample(m, 4 * n, 8 * n, seed), Ridge(1.0), context)
            sizes = range_of(G, B.T @ B * m / 13 / n, 1.0), range_of(G, drawn.G[0], 1.0)
            print(f"  {name}: {13 * n} even rows {sizes[0]}; drawn by leverage {sizes[1]}")
        A = np.empty((m, n))
        engine.features(X, A)
    rough = in_float32(A)
    own = np.finfo(np.float32).eps * np.trace(rough)
    while np.linalg.eigvalsh(rough + own * np.eye(n))[0] <= 0:
        own *= 2
    print(
        f"  {name}: all rows in float32 {range_of(G, rough, 1.0, own)}, with rho = {own:.3g} in M"
    )


def in_float32(A: np.ndarray) -> np.ndarray:
    """Return A'A, summed in float32 over blocks of rows and from block to block."""
    G = np.zeros((A.shape[1], A.shape[1]), np.float32)
    for first in range(0, len(A), 2048):
        block = A[first : first + 2048].astype(np.float32)
        G += block.T @ block
    return G.astype(float)


@contextmanager
def sizes(least: int, tolerance: float) -> Iterator[None]:
    rows = {"MIN_SECOND_ROWS_PER_CENTER": least, "SECOND_SAMPLE_SHARE": 0}
    with (
        patch.multiple(sampling, **rows, MIN_ROWS_PER_SAMPLED_ROW=0),
        patch.object(conjugate_gradients, "STEP_TOLERANCE", tolerance),
        patch.object(AdmmSettings, "first_products", 0),
    ):
        yield


def models(name: str, m: int, n: int) -> None:
    X, y = problem(name, m)
    settings: dict[str, Any] = MAP | {"n_centers": n, "random_state": 0}
    exact = paper_classifier(**settings).fit(X[:m], y[:m])
    scores = exact.decision_function(X[m:])
    shown = f"objective {exact.history_['objective'][-1]:.6f}"
    print(
        f"  {name}, {m} rows, {n} centers, exact: {shown}, accuracy {exact.score(X[m:], y[m:]):.5f}"
    )
    for least in (2, 4, 8, 16):
        for tolerance in (0.03, 0.01, 0.003, 0.001):
            with sizes(least, tolerance):
                clf = paper_classifier(**settings, gram="sampled").fit(X[:m], y[:m])
            found = clf.decision_function(X[m:])
            print(
                f"    {5 + least} n rows, tolerance {tolerance}: {clf.n_products_} products, "
                f"objective {clf.history_['objective'][-1]:.6f}, accuracy "
                f"{clf.score(X[m:], y[m:]):.5f}, scores differ by "
                f"{np.linalg.norm(found - scores) / np.linalg.norm(scores):.1e}"
            )


def converged(name: str, m: int = 20_000, n: int = 400) -> None:
    X, y = problem(name, m)
    settings: dict[str, Any] = MAP | {"n_centers": n, "random_state": 0, "solver": "converged"}
    for gram in ("exact", "sampled"):
        clf = paper_classifier(**settings, gram=gram).fit(X[:m], y[:m])
        objective = clf.history_["objective"]
        marks = ", ".join(
            f"{objective[min(k, len(objective)) - 1]:.5f}" for k in (20, 50, 100, 200)
        )
        print(
            f"  {name}, {gram}: objective {marks} after 20, 50, 100, 200 iterations; "
            f"{clf.n_iter_} in all, {objective[-1]:.5f}, accuracy {clf.score(X[m:], y[m:]):.4f}"
        )


def float32_sums(m: int = 20_000) -> None:
    X, y = load("skin")
    chosen = np.random.default_rng(0).permutation(len(y))[:m]
    X, y = X[chosen].astype(np.float32), y[chosen]
    for rows in (None, 256, 10**6):
        with patch.object(shards, "PRODUCT_ROWS", rows or 256):
            gram = "exact" if rows is None else "sampled"
            clf = paper_classifier(10, n_centers=286, random_state=0, gram=gram).fit(X, y)
        name = "exact" if rows is None else f"sums over {rows} rows at most"
        print(f"  skin, degree 10, {name}: objective {clf.history_['objective'][-1]:.4f}")


def main() -> None:
    if "POLYSIFT_DATA" not in os.environ:
        sys.exit("Set POLYSIFT_DATA to the folder of the data sets (covtype_binary.parquet, ...).")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--centers", type=int, default=1000)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # not converged, the floor on rho
    for title, run in (
        ("eigenvalues of M^-1 (G + rho I), rho = 1:", eigenvalues),
        ("converged mode:", converged),
        ("paper mode:", lambda name: models(name, options.rows, options.centers)),
    ):
        print(title)
        for name in ("covtype_binary", "normal"):
            run(name)
    print("float32 rows, paper mode:")
    float32_sums()


if __name__ == "__main__":
    main()
