"""What the toy simulations share: the paper's data, and its settings."""

from __future__ import annotations

from typing import Any

import numpy as np

from polysift import FPCClassifier
from polysift.datasets import make_bayes_curve
from polysift.runtime.types import FloatArray, IntArray
from polysift_paper.studies.study import Row

ROWS = 1000
NOISE = 0.1
TOLERANCE = 5e-4
MAX_ITER = 5000
"""No run of the paper's settings needs more."""

SETTINGS: Row = {"degree": 9, "n_centers": 55, "centers": "uniform", "scaler": None}
"""The paper's, with alpha = beta = 1 by default; the data lie in the unit square as they are."""


def toy_data(seed: int) -> tuple[FloatArray, IntArray, FloatArray, IntArray]:
    """Draw training rows with noise and test rows without, from different streams."""
    first, second = map(int, np.random.SeedSequence(seed).generate_state(2))
    X, y = make_bayes_curve(ROWS, noise=NOISE, random_state=first)
    return (X, y, *make_bayes_curve(ROWS, noise=0.0, random_state=second))


def toy_classifier(seed: int, **settings: Any) -> FPCClassifier:
    """Return a classifier with the paper's settings, on one thread."""
    fixed = {"tol": TOLERANCE, "max_iter": MAX_ITER, "n_jobs": 1, "random_state": seed}
    return FPCClassifier(**{**SETTINGS, **fixed, **settings})
