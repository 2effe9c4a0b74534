"""Shared fixtures: where real data lie, and small problems."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest

# A shell starts what runs in the background without Ctrl-C, and tests press it.
signal.signal(signal.SIGINT, signal.default_int_handler)

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
if SHARED.is_dir():
    os.environ.setdefault("POLYSIFT_DATA", str(SHARED))

os.environ.setdefault("RAY_ADDRESS", "local")  # no cluster of anybody else's


def load_real(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and labels of a real data set, or skip the test where it is not at hand."""
    import pandas as pd

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


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def noisy_problem(
    rng: np.random.Generator, m: int, d: int, noise: float = 0.2
) -> tuple[np.ndarray, np.ndarray]:
    """Return uniform rows with labels of a curved boundary, some of them reversed."""
    X = rng.random((m, d))
    z = np.sin(3 * X @ rng.normal(size=d)) + 0.3 * X[:, 0] * X[:, -1]
    y = np.where(z >= np.median(z), 1, -1)
    y[rng.random(m) < noise] *= -1
    return X, y


@pytest.fixture(scope="session")
def four_workers():
    """Return Ray, connected to a local cluster of four CPUs with real worker processes."""
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'polysift[ray]'")
    from polysift._ray._connection import on_loopback

    with on_loopback():
        ray.init(
            address="local",
            num_cpus=4,
            object_store_memory=400_000_000,
            include_dashboard=False,
            log_to_driver=False,
        )
    yield ray
    ray.shutdown()
