"""Shared fixtures: where real data lie, and small problems."""

from __future__ import annotations

import os
import signal
import threading
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polysift import _parallel, _shards

# A shell starts what runs in the background without Ctrl-C, and tests press it.
signal.signal(signal.SIGINT, signal.default_int_handler)

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
if SHARED.is_dir():
    os.environ.setdefault("POLYSIFT_DATA", str(SHARED))

os.environ.setdefault("RAY_ADDRESS", "local")  # no cluster of anybody else's


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


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test that needs packages which are not installed, by its mark or its parameters."""
    needed = [name for mark in item.iter_markers("needs") for name in mark.args]
    missing = [name for name in needed if find_spec(name) is None]
    call = getattr(item, "callspec", None)
    given = call.params.values() if call else ()
    missing += [value._package for value in given if isinstance(value, Missing)]
    if missing:
        pytest.skip(f"{missing[0]} is not installed")


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


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def threaded(monkeypatch):
    """Let threads work on anything, however little it is, and check that they did sweep."""
    swept_by = set()
    sweep = _shards.ShardWork.sweep

    def watched(self, *args):
        swept_by.add(threading.get_ident())
        return sweep(self, *args)

    monkeypatch.setattr(_parallel, "SMALL_WORK", 0)
    monkeypatch.setattr(_shards.ShardWork, "sweep", watched)
    yield
    if swept_by:  # the test was not skipped
        assert swept_by - {threading.get_ident()}


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
