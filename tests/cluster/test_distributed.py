"""The engine on a cluster, with one whose workers live here and lose what they hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from clusters import K, M, N, Shaky, engines, equal
from polysift.cluster import held_rows
from polysift.cluster.backend import ClusterBackend
from polysift.cluster.partitions import Partition
from polysift.cluster.scheduler import Scheduler
from polysift.data.source import ArraySource
from polysift.engine.budget import Execution, Shape, peak_bytes
from polysift.engine.problems import Problem
from polysift.engine.row_updates import AdmmUpdate
from polysift.features.feature_map import FeatureMap
from polysift.features.scalers import learn_scaler
from polysift.features.statistics import column_statistics
from polysift.runtime.checkpoints import Checkpoint
from polysift.runtime.progress import Monitor, OutOfTime


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X, y = rng.random((M, 3)), rng.integers(0, K, M)
    weights = rng.integers(0, 3, M) * rng.random(M)
    feature_map = FeatureMap(
        learn_scaler("minmax", column_statistics(X, np.ones(M)), None), rng.random((N, 3)), 2
    )
    return ArraySource(X, None, y, weights), feature_map


def state_of(engine):
    return np.concatenate(list(engine.state.read()))


@pytest.mark.parametrize("fold_parts", [False, True])
@pytest.mark.parametrize("store", [False, True])
@pytest.mark.parametrize(("saved", "seed"), [("never", 0), ("folder", 1), ("often", 2)])
def test_losses_at_any_moment(rows, request, tmp_path, monkeypatch, fold_parts, store, saved, seed):
    monkeypatch.setattr(held_rows, "MAX_REPLAY_STEPS", 4 if saved == "often" else 1000)
    checkpoint = None
    if saved == "folder":
        checkpoint = Checkpoint(tmp_path, {})
        request.addfinalizer(checkpoint.close)
    cluster = Shaky(seed)
    local, remote = engines(
        rows, cluster, fold_parts=fold_parts, store=store, checkpoint=checkpoint
    )
    equal(local.gram(), remote.gram())
    rng = np.random.default_rng(seed)
    for _ in range(2):
        problems = [
            Problem(N, AdmmUpdate(1.0, 1.7), 0 if fold_parts else None),
            Problem(N - 3, AdmmUpdate(2.0, 1.0)),
            Problem(N, AdmmUpdate(1.0, 1.7)),
        ]
        for engine in (local, remote):
            engine.begin(3)
        for step in range(8):
            if step in (3, 6):
                kept = [[0, 2], [1]][step // 6]
                problems = [problems[i] for i in kept]
                for engine in (local, remote):
                    engine.keep(kept)
            if checkpoint is not None and step % 3 == 0:
                checkpoint.save("s", {"state": remote.state}, {})
                remote.saved(checkpoint, "s")
            u = rng.normal(size=(N, K * len(problems)))
            equal(local.sweep(problems, u), remote.sweep(problems, u))
        np.testing.assert_array_equal(state_of(remote), local.state)
        if fold_parts:
            u = [rng.normal(size=(N, K)) for _ in range(3)]
            found = remote.scores(problems, u)
            np.testing.assert_array_equal(local.scores(problems, u), found)
    assert cluster.losses > 0


def test_problems_are_dropped_without_a_pass(rows):
    cluster = Shaky()
    local, remote = engines(rows, cluster, store=True)
    problems, u = (
        [Problem(N, AdmmUpdate(1.0, 1.0)), Problem(N, AdmmUpdate(2.0, 1.0))],
        np.ones((N, 2 * K)) / 50,
    )
    for engine in (local, remote):
        engine.begin(2)
        engine.sweep(problems, u)
        engine.keep([1])
    assert len(cluster.done) == len(remote._rows.partitions)
    assert remote.state.shape == (M, K)
    cluster.lose(cluster.made)  # the states are made anew, by sweeps and what drops problems
    np.testing.assert_array_equal(state_of(remote), local.state)
    equal(local.sweep(problems[1:], u[:, :K]), remote.sweep(problems[1:], u[:, :K]))
    assert all(held.features is not None for held in remote._rows.refs)


class TestBudget:
    SHAPE = Shape(4_000_000, 1000, 300, 1, 8, weighted=False, quantiles=False, unit_bytes=10**8)

    def test_a_task_reads_shards_as_long_as_those_of_all_rows(self):
        backend = ClusterBackend(Shaky())
        execution = backend.fit_in(10**11, self.SHAPE, 1)
        shard = 62_500 * 1000 * 8
        assert backend.worker_bytes(self.SHAPE, execution) > 4 * self.SHAPE.unit_bytes + shard

    def test_workers_take_no_memory_of_this_process(self):
        backend, shape = ClusterBackend(Shaky()), replace(self.SHAPE, centers=2000)
        few = backend.peak_bytes(shape, Execution(1, 4))
        backend.cluster.workers = 1000
        assert backend.peak_bytes(shape, Execution(1, 2000)) == few < 1e9
        assert few > 3 * 8 * 2000**2
        assert peak_bytes(replace(shape, rows=1), Execution(1, 2000)) > 60e9

    def test_an_attempt_that_does_not_fit_leaves_no_trace(self):
        backend = ClusterBackend(Shaky())
        shape = replace(self.SHAPE, features=20, problems=1, unit_bytes=0)
        backend.fit_in(10**10, shape, 1)
        before = backend._size
        with pytest.raises(MemoryError, match="in this process"):
            backend.fit_in(10**9, replace(shape, problems=2000), 1)
        assert backend._size == before


class Forgetting(Shaky):
    """A cluster that remembers what is no longer wanted."""

    def __init__(self):
        super().__init__()
        self.forgotten = []

    def forget(self, refs):
        self.forgotten += refs


def test_results_that_are_no_longer_wanted_are_discarded_at_once():
    """Also while the exception, whose traceback holds all frames, is alive."""
    cluster = Forgetting()
    partitions = [Partition([(k, k + 1)], k, [(k, k + 1)], k) for k in range(6)]
    scheduler = Scheduler(cluster, partitions, Monitor(1e-9))
    cluster.get = lambda ref, check: ref  # whatever the time
    results = scheduler.run("phase", range(6), lambda i: [("ref", i)], lambda i, lost: "")
    with pytest.raises(OutOfTime) as caught:
        for _ in results:
            pass
    assert caught.value.__traceback__ is not None
    assert cluster.forgotten == [("ref", 1), ("ref", 2), ("ref", 3)]
