"""Rows to learn from and rows to judge on: drawn problems, and real data sets in two halves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polysift.datasets import load

FLIPPED = 0.02
"""The share of reversed labels in drawn problems: no model can be right more often."""


@dataclass(frozen=True)
class Problem:
    """Rows with labels, some to fit to, the others to judge on."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def halves(name: str, most: int | None = None) -> Problem:
    """Return a real data set: one half to fit to (at most so many rows), the other to judge on."""
    found = load(name, fetch=False)
    order = np.random.default_rng(0).permutation(len(found.y))
    train, test = np.array_split(order, 2)
    train, test = train[:most], test[:most]
    X, y = np.asarray(found.X, dtype=float), found.y
    return Problem(X[train], y[train], X[test], y[test])


def smooth(rows: int, features: int = 20, *, test: int = 100_000) -> Problem:
    """Draw a smooth problem: ten waves in random directions, normal rows in float32."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows + test, features), dtype=np.float32)
    directions = rng.normal(size=(features, 10)) / np.sqrt(features)
    phases, heights = rng.uniform(0, 2 * np.pi, 10), rng.normal(size=10)
    z = np.sin(X @ directions.astype(np.float32) + phases) @ heights
    return _problem(rng, X, z, rows)


def quadratic(rows: int, features: int = 22, *, test: int = 50_000) -> Problem:
    """Draw a quadratic problem in three of the features, which trees can follow too."""
    rng = np.random.default_rng(0)
    X = rng.random((rows + test, features))
    return _problem(rng, X, (X[:, 0] - 0.5) ** 2 + X[:, 1] * X[:, 2], rows)


def published_shape(rows: int, features: int) -> Problem:
    """Draw a noisy quadratic problem in float32 for the time that it takes: no rows to judge on."""
    rng = np.random.default_rng(0)
    X = rng.random((rows, features), dtype=np.float32)
    z = (X[:, 0] - 0.5) ** 2 + X[:, 1] * X[:, 2] - 0.3
    y = np.where((z > 0) ^ (rng.random(rows) < 0.2), 1, -1).astype(np.int8)
    return Problem(X, y, X[:0], y[:0])


def _problem(rng: np.random.Generator, X: np.ndarray, z: np.ndarray, rows: int) -> Problem:
    """Cut at the median, and reverse some labels."""
    y = np.where(z > np.median(z), 1, -1).astype(np.int8)
    y[rng.random(len(y)) < FLIPPED] *= -1
    return Problem(X[:rows], y[:rows], X[rows:], y[rows:])
