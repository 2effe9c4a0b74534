"""Small problems, the paper's classifier, real data, and packages that may be missing."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polysift import PAPER, FPCClassifier


class Missing:
    """A package that is not installed, or something of it: a test that touches it is skipped."""

    def __init__(self, package: str) -> None:
        self._package = package

    def __getattr__(self, name: str) -> Missing:
        if name.startswith("__"):
            raise AttributeError(name)
        return self()

    def __call__(self, *args: Any, **kwargs: Any) -> Missing:
        if "PYTEST_CURRENT_TEST" in os.environ:
            pytest.skip(f"{self._package} is not installed")
        return self


def optional(name: str) -> Any:
    """Return a package that some tests of a file need; without it only those are skipped."""
    try:
        return import_module(name)
    except ImportError:
        return Missing(name.split(".")[0])


def load_real(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and labels of a real data set, or skip the test where it is not at hand."""
    pytest.importorskip("pyarrow")
    pd = pytest.importorskip("pandas")
    folder = os.environ.get("POLYSIFT_DATA")
    path = Path(folder or ".") / f"{name}.parquet"
    if folder is None or not path.exists():
        pytest.skip(f"{name}.parquet is not at hand: POLYSIFT_DATA is {folder!r}")
    frame = pd.read_parquet(path)
    y = frame.pop("target").to_numpy()
    return frame.to_numpy(dtype=float), y


def three_parts(m: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the paper's 50/25/25 split: training, validation and test rows."""
    order = np.random.default_rng(seed).permutation(m)
    return order[: m // 2], order[m // 2 : m // 2 + m // 4], order[m // 2 + m // 4 :]


def noisy_problem(
    rng: np.random.Generator, m: int, d: int, noise: float = 0.2
) -> tuple[np.ndarray, np.ndarray]:
    """Return uniform rows with labels of a curved boundary, some of them reversed."""
    X = rng.random((m, d))
    z = np.sin(3 * X @ rng.normal(size=d)) + 0.3 * X[:, 0] * X[:, -1]
    y = np.where(z >= np.median(z), 1, -1)
    y[rng.random(m) < noise] *= -1
    return X, y


def paper_classifier(degree: Any = 3, n_centers: Any = 1000, **params: Any) -> FPCClassifier:
    """Return the paper's classifier, which leaves nothing to the data, with other parameters.

    Other solvers have their own alpha and beta.
    """
    fixed = PAPER | {"centers": "auto"}
    if params.get("solver", "paper") != "paper":
        fixed |= {"alpha": None, "beta": None}
    return FPCClassifier(**fixed | {"degree": degree, "n_centers": n_centers} | params)
