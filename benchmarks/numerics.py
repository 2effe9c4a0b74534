"""The figures behind four choices in docs/numerics.md, on real and on drawn data.

1. The converged mode's objective after 300 iterations, by rho relative to trace(G)/n (occupancy).
2. Accuracy of the first iterate of float32 features, with A'y summed in float32 or in float64
   (musk2, degree 3, 1500 centers).
3. rho and its GCV by a Gram matrix of float32 or float64 products (8000 rows, 1000 centers).
4. Degrees of freedom and processor seconds by a sketch of the trace (Lanczos' method from random
   signs) instead of a tridiagonal form (6000 drawn rows of 10 columns, degree 5).

The files are read from the folder that POLYSIFT_DATA names. Usage: python benchmarks/numerics.py
"""

from __future__ import annotations

import os
import sys
import warnings
from time import process_time

import numpy as np
import scipy.linalg
from threadpoolctl import threadpool_limits

from common import load, three_parts
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


def sketched(G: np.ndarray, probes: int, steps: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return nodes and weights of the quadrature by Lanczos' method, one for each probe."""
    Q = np.random.default_rng(0).choice([-1.0, 1.0], (len(G), probes)) / np.sqrt(len(G))
    before, beta = np.zeros_like(Q), np.zeros(probes)
    diagonals, others = np.empty((2, steps, probes))
    for step in range(steps):
        new = G @ Q - before * beta
        diagonals[step] = np.einsum("ij,ij->j", new, Q)
        new -= Q * diagonals[step]
        beta = others[step] = np.linalg.norm(new, axis=0)
        before, Q = Q, new / beta
    pairs = zip(diagonals.T, others[:-1].T, strict=True)
    found = [scipy.linalg.eigh_tridiagonal(d, e) for d, e in pairs]
    return [(np.maximum(w, 0.0), V[0] ** 2) for w, V in found]


def freedom_by_sketch(probes: int = 20, steps: int = 60) -> None:
    print(f"degrees of freedom by GCV, exact and by {probes} probes of {steps} steps; seconds")
    rng = np.random.default_rng(0)
    X = rng.random((6000, 10))
    z = np.sin(3 * X[:, 0]) + 2 * X[:, 1] * X[:, 2] - X[:, 3] + 0.3 * rng.normal(size=len(X))
    y = np.sign(z - np.median(z))[:, np.newaxis]
    for n in (1000, 2000, 2500):
        A = ((1.0 + X @ X[:n].T) / 4.0) ** 5
        G, floor = A.T @ A, 1e-9 * float(np.vdot(A, A)) / n
        began = process_time()
        choice = choose_rho(G, A.T @ y, len(A), floor)
        between = process_time()
        pairs = sketched(G, probes, steps)
        seconds = between - began, process_time() - between
        df = n * np.mean([weights @ (w / (w + choice.rho)) for w, weights in pairs])
        words = " and ".join(f"{value:.2f} s" for value in seconds)
        print(f"  n = {n}: {choice.freedom:.0f} and {df:.0f}; {words}")


def main() -> None:
    if "POLYSIFT_DATA" not in os.environ:
        sys.exit("Set POLYSIFT_DATA to the folder of the data sets (occupancy.parquet, ...).")
    warnings.simplefilter("ignore")  # not converged, on purpose
    with threadpool_limits(1):
        freedom_by_sketch()
    objective_by_rho()
    accuracy_by_precision()
    rho_by_precision()


if __name__ == "__main__":
    main()
