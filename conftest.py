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

import stress
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


stressed = pytest.MonkeyPatch()
"""What holds for all tests of a run, by the options below."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options by which ``make test-stress`` runs tests once more."""
    group = parser.getgroup("polysift")
    text = "draw other random numbers than usual: every seed is another one, by this number"
    group.addoption("--seed", type=int, default=0, help=text)
    text = "do every fit in the least memory that it can do with: spilled, and nothing kept"
    group.addoption("--least-memory", action="store_true", help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Set the seeds and the memory before a test file draws its problems."""
    if config.option.seed:
        stress.shift_seeds(stressed, config.option.seed)
    if config.option.least_memory:
        stress.take_least_memory(stressed)


def pytest_unconfigure() -> None:
    """Undo it."""
    stressed.undo()


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say how to repeat a run."""
    memory = " --least-memory" if config.option.least_memory else ""
    seed = f" --seed={config.option.seed}" if config.option.seed else ""
    return f"to repeat this run: pytest{seed}{memory}" if seed or memory else None


def _usual_only(item: pytest.Item) -> str | None:
    """Return why a test cannot run under the conditions of this run, if it cannot."""
    for mark, option in (
        ("one_seed", item.config.option.seed),
        ("own_memory", item.config.option.least_memory),
    ):
        found = item.get_closest_marker(mark)
        if option and found is not None:
            return f"{mark}: {found.args[0]}"
    return None


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test that needs packages which are not installed, or the usual seed or memory."""
    unusual = _usual_only(item)
    if unusual is not None:
        pytest.skip(unusual)
    needed = [name for mark in item.iter_markers("needs") for name in mark.args]
    missing = [name for name in needed if find_spec(name) is None]
    call = getattr(item, "callspec", None)
    given = call.params.values() if call else ()
    missing += [value._package for value in given if isinstance(value, Missing)]
    if missing:
        pytest.skip(f"{missing[0]} is not installed")


@pytest.fixture(autouse=True)
def seeded(request) -> None:
    """Let a fit without ``random_state`` draw the same numbers in every run."""
    np.random.seed(request.config.option.seed)  # noqa: NPY002 - what random_state=None draws from


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def clock(monkeypatch) -> Clock:
    """Return the clock of the package, which a test sets."""
    return Clock(monkeypatch)


@pytest.fixture
def threaded(monkeypatch, request):
    """Let threads work on anything, however little it is, and check that they did sweep."""
    swept_by = set()
    sweep = shards.ShardWork.sweep

    def watched(self, *args):
        swept_by.add(threading.get_ident())
        return sweep(self, *args)

    monkeypatch.setattr(parallel, "MIN_THREADED_FEATURES", 0)
    monkeypatch.setattr(shards.ShardWork, "sweep", watched)
    yield
    least = request.config.option.least_memory  # which one thread takes
    if swept_by and not least:  # the test was not skipped
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
