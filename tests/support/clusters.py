"""A cluster in this process that loses what it holds, and engines on it."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np

from polysift.cluster.engine import ClusterEngine
from polysift.cluster.held_rows import PartitionedSource
from polysift.cluster.partitions import cut_into_partitions
from polysift.cluster.scheduler import LostError
from polysift.data.labels import find_encoding, label_part
from polysift.data.training_set import TrainingSet
from polysift.engine.budget import Execution
from polysift.engine.local import LocalEngine
from polysift.runtime.parallel import Pool
from polysift.runtime.progress import Monitor

M, N, K = 40_000, 10, 3


class Shaky:
    """A cluster in this process: its store holds pickles, some of which are lost now and then.

    What was sent stays; what tasks have made may go, as with the node that made it.
    """

    workers, threads, retries = 2, 1, 3
    worker_memory = store_memory = 2**40
    loss_rate = 0.02  # of the values that are fetched

    def __init__(self, seed=None):
        self.store, self.made, self.done, self.losses, self.fetched = {}, [], [], 0, 0
        self.rng = None if seed is None else np.random.default_rng(seed)

    def put(self, value):
        self.store[len(self.store)] = pickle.dumps(value)
        return ("ref", len(self.store) - 1)

    def submit(self, task, *args, returns=1):
        self.done.append(task.__name__)
        try:
            values = [self._value(arg) if isinstance(arg, tuple) else arg for arg in args]
            results = task(*values)
        except LostError:
            refs = [self.put(None) for _ in range(returns)]
            self.lose(refs)
            return refs
        refs = [self.put(result) for result in (results if returns > 1 else [results])]
        self.made += refs
        return refs

    def _value(self, ref):
        if self.store[ref[1]] is None:
            raise LostError("a test says so", objects=True)
        return _read_only(pickle.loads(self.store[ref[1]]))

    def get(self, ref, check):
        check()
        self.fetched += 1
        if self.rng is not None and (self.rng.random() < self.loss_rate or self.fetched == 3):
            # half of all results is gone; at the third, so that something is lost in any case
            self.losses += 1
            self.lose([ref for ref in self.made if self.rng.random() < 0.5])
        return self._value(ref)

    def lose(self, refs):
        for _, number in refs:
            self.store[number] = None

    def forget(self, refs):
        pass


def _read_only(value):
    """Return a value as it comes from shared memory."""
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    return value


def training_set(source, *, gathered):
    parts = [label_part(source.labels(part), source.weights(part)) for _, part in source.parts()]
    encoding = find_encoding(parts, "balanced")
    if not gathered:
        return TrainingSet(source, np.empty(0, np.int8), K, None, encoding=encoding)
    codes = np.concatenate([encoding.codes(part) for part in parts])
    own = encoding.own_weights(np.concatenate([part.weights for part in parts]))
    return TrainingSet(source, codes, K, encoding.weights(own, codes), encoding=encoding)


def engines(rows, cluster, *, fold_parts=False, store=False, checkpoint=None):
    source, feature_map = rows
    whole, data = (training_set(source, gathered=gathered) for gathered in (True, fold_parts))
    if fold_parts:
        numbers = np.arange(M, dtype=np.int32) % 3 - (np.arange(M) % 7 == 0)
        whole, data = (replace(one, fold_parts=numbers, n_fold_parts=3) for one in (whole, data))
    partitioned = PartitionedSource(cluster, source, cut_into_partitions(source.shards(), 1))
    remote = ClusterEngine(
        data,
        feature_map,
        partitioned,
        monitor=Monitor(),
        checkpoint=checkpoint,
        execution=Execution(keep_features=store),
    )
    return LocalEngine(whole, feature_map, Pool(1)), remote


def equal(one, other):
    for name, value in vars(one).items():
        np.testing.assert_array_equal(value, getattr(other, name), err_msg=name)
