"""The figures behind two choices in docs/numerics.md, on real data.

1. The converged mode's objective after 300 iterations, by rho relative to trace(G)/n (occupancy).
2. Accuracy of the first iterate of float32 features, with A'y summed in float32 or in float64
   (musk2, degree 3, 1500 centers).

The files are read from the folder that POLYSIFT_DATA names. Usage: python benchmarks/numerics.py
"""

from __future__ import annotations

import os
import sys
import warnings

import numpy as np
import scipy.linalg

from accuracy import load, three_parts
from harness.classifiers import paper_classifier
from polysift import PolynomialKernelMap


def objective_by_rho() -> None:
    X, y = load("occupancy")
    chosen = np.random.default_rng(0).permutation(len(y))[:4000]
    X, y = X[chosen], y[chosen]
    A = PolynomialKernelMap(2, random_state=0).fit_transform(X)
    literal = 10 * len(y) * A.shape[1] / np.sum(A * A)  # alpha = 1 with beta = 0.1 / m
    print("rho relative to trace(G)/n: objective after 300 iterations")
    for rho in (None, 1e-10, 1e-8, 1e-6, 1e-4, literal):
        clf = paper_classifier(2, solver="converged", rho=rho, tol=0, random_state=0).fit(X, y)
        name = "the floor" if rho is None else f"{rho:.2g}"
        print(f"  {name:>9}: {clf.history_['objective'][-1]:.4f}")


def accuracy_by_precision() -> None:
    X, y = load("musk2")
    accuracy: dict[str, list[float]] = {"float32": [], "float64": []}
    for seed in range(2):
        train, _, test = three_parts(len(y), seed)
        kernel = PolynomialKernelMap(3, 1500, centers="random", random_state=seed)
        A = kernel.fit_transform(X[train].astype(np.float32))
        G = A.astype(float).T @ A.astype(float)
        np.fill_diagonal(G, G.diagonal() + 10 * np.finfo(float).eps * np.trace(G))
        factor = scipy.linalg.cho_factor(G)
        B = kernel.transform(X[test].astype(np.float32)).astype(float)
        for dtype in accuracy:
            Aty = (A.astype(dtype).T @ y[train].astype(dtype)).astype(float)
            right = (B @ scipy.linalg.cho_solve(factor, Aty) >= 0) == (y[test] > 0)
            accuracy[dtype].append(100 * np.mean(right))
    for dtype, values in accuracy.items():
        print(f"musk2, float32 features, A'y summed in {dtype}: {np.mean(values):.1f} %")


def main() -> None:
    if "POLYSIFT_DATA" not in os.environ:
        sys.exit("Set POLYSIFT_DATA to the folder of the data sets (occupancy.parquet, ...).")
    warnings.simplefilter("ignore")  # not converged, on purpose
    objective_by_rho()
    accuracy_by_precision()


if __name__ == "__main__":
    main()
