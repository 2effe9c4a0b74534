"""The figures behind three choices in docs/numerics.md, on real data.

1. The converged mode's objective after 300 iterations, by rho relative to trace(G)/n (occupancy).
2. Accuracy of the first iterate of float32 features, with A'y summed in float32 or in float64
   (musk2, degree 3, 1500 centers).
3. rho and its GCV by a Gram matrix of float32 or float64 products (8000 rows, 1000 centers).

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
from polysift.solvers.gcv import choose_rho


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


def rho_by_precision() -> None:
    print("rho relative to trace(G)/n, and its GCV, by the products of the Gram matrix")
    for name in ("skin", "occupancy", "htru2", "magic", "credit_default"):
        X, y = load(name)
        chosen = np.random.default_rng(0).permutation(len(y))[:8000]
        made = PolynomialKernelMap(3, 1000, kernel="spline", scaler="standard", random_state=0)
        A, labels = made.fit_transform(X[chosen]), np.where(y[chosen] > 0, 1.0, -1.0)[:, np.newaxis]
        words = []
        for dtype in ("float64", "float32"):
            G = np.zeros((A.shape[1], A.shape[1]))
            for block in np.array_split(A.astype(dtype), 4):  # each is added in float64
                G += block.T @ block
            unit = float(np.trace(G)) / len(G)
            floor = 10 * np.finfo(dtype).eps * unit * (1 if dtype == "float32" else len(G))
            choice = choose_rho(G, A.T @ labels, len(A), floor)
            words.append(f"{dtype} {choice.rho / unit:.1e}, {choice.score:.4f}")
        print(f"  {name:>14}: {'; '.join(words)}")


def main() -> None:
    if "POLYSIFT_DATA" not in os.environ:
        sys.exit("Set POLYSIFT_DATA to the folder of the data sets (occupancy.parquet, ...).")
    warnings.simplefilter("ignore")  # not converged, on purpose
    objective_by_rho()
    accuracy_by_precision()
    rho_by_precision()


if __name__ == "__main__":
    main()
