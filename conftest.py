"""Shared fixtures: where real data lie, and small problems."""

from __future__ import annotations

import os
import signal
import threading
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from clocks import Clock
from polysift.engine import shards
from polysift.runtime import parallel
from problems import Missing

# A shell starts what runs in the background without Ctrl-C, and tests press it.
signal.signal(signal.SIGINT, signal.default_int_handler)

SHARED = Path(__file__).resolve().parents[1] / "shared" / "data"
if SHARED.is_dir():
    os.environ.setdefault("POLYSIFT_DATA", str(SHARED))

# How long an example takes says how busy the machine is.
settings.register_profile("any speed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any speed")

collect_ignore = ["src/polysift/rivals"]  # it raises

os.environ.setdefault("RAY_ADDRESS", "local")  # no cluster of anybody else's


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test that needs packages which are not installed, by its mark or its parameters."""
    needed = [name for mark in item.iter_markers("needs") for name in mark.args]
    missing = [name for name in needed if find_spec(name) is None]
    call = getattr(item, "callspec", None)
    given = call.params.values() if call else ()
    missing += [value._package for value in given if isinstance(value, Missing)]
    if missing:
        pytest.skip(f"{missing[0]} is not installed")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def clock(monkeypatch) -> Clock:
    """Return the clock of the package, which a test sets."""
    return Clock(monkeypatch)


@pytest.fixture
def threaded(monkeypatch):
    """Let threads work on anything, however little it is, and check that they did sweep."""
    swept_by = set()
    sweep = shards.ShardWork.sweep

    def watched(self, *args):
        swept_by.add(threading.get_ident())
        return sweep(self, *args)

    monkeypatch.setattr(parallel, "MIN_THREADED_FEATURES", 0)
    monkeypatch.setattr(shards.ShardWork, "sweep", watched)
    yield
    if swept_by:  # the test was not skipped
        assert swept_by - {threading.get_ident()}


@pytest.fixture(scope="session")
def four_workers():
    """Return Ray, connected to a local cluster of four CPUs with real worker processes."""
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'polysift[ray]'")
    from polysift.cluster.ray_cluster import on_loopback

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


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """Return a real browser."""
    import browsers

    opened = browsers.started(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.quit()
