"""What ``benchmarks/over_time.py`` measures of each commit, by the public names alone.

pytest-benchmark runs it, and takes processor time on one thread, so that a busy machine matters
little. The yardstick is a plain product of matrices: what counts is the ratio to it.
"""

from __future__ import annotations

import numpy as np
import pytest

import polysift
from polysift import FPCClassifier

ROUNDS = 7
PAPER = getattr(polysift, "PAPER", {})  # the defaults of the versions that have no such name


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (20_000, 10))
    return X, np.sign(X[:, 0] * X[:, 1] + 0.3 * X[:, 2] + 0.1 * rng.standard_normal(len(X)))


def classifier(**given):
    return FPCClassifier(**PAPER | given, n_jobs=1, random_state=0)


def test_yardstick(benchmark):
    A = np.random.default_rng(0).standard_normal((20_000, 200))
    benchmark.pedantic(lambda: A.T @ A, rounds=ROUNDS, warmup_rounds=1)


def test_fit(benchmark, rows):
    clf = classifier(degree=3, n_centers=200)
    benchmark.pedantic(clf.fit, rows, rounds=ROUNDS, warmup_rounds=1)


def test_small_fit(benchmark, rows):
    X, y = rows
    clf = classifier(degree=3, n_centers=100)
    benchmark.pedantic(
        clf.fit, (X[:1_000], y[:1_000]), rounds=ROUNDS, iterations=5, warmup_rounds=1
    )


def test_newton(benchmark, rows):
    X, y = rows
    try:
        clf = classifier(degree=2, n_centers=66, solver="newton").fit(X[:500], y[:500])
    except ValueError:
        pytest.skip("this version has no such solver")
    benchmark.pedantic(clf.fit, (X[:5_000], y[:5_000]), rounds=3, warmup_rounds=1)


def test_predict(benchmark, rows):
    X, y = rows
    clf = classifier(degree=3, n_centers=200).fit(X[:2_000], y[:2_000])
    benchmark.pedantic(clf.predict, (X,), rounds=ROUNDS, warmup_rounds=1)


def test_predict_one_row(benchmark, rows):
    X, y = rows
    clf = classifier(degree=3, n_centers=200).fit(X[:2_000], y[:2_000])
    benchmark.pedantic(clf.predict, (X[:1],), rounds=ROUNDS, iterations=50, warmup_rounds=1)
