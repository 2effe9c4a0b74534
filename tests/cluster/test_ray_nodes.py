"""A cluster of two nodes on one machine, one of which is lost in the middle of a fit."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from clocks import GUARD

pytest.importorskip("ray", reason="Ray is not installed: pip install 'polysift[ray]'")

FIT = """
import logging, sys, warnings

import numpy as np
import ray
from ray.cluster_utils import Cluster

from polysift import PAPER, FPCClassifier
from polysift.cluster import engine as cluster_engine

logging.basicConfig(level=logging.WARNING, stream=sys.stdout, format="%(message)s")
warnings.simplefilter("ignore")
quick = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 300,
         "health_check_timeout_ms": 600_000, "health_check_failure_threshold": 3}
common = {"object_store_memory": 150_000_000}
head = common | {"num_cpus": 1, "include_dashboard": False, "_system_config": quick}
cluster = Cluster(initialize_head=True, head_node_args=head)
second = cluster.add_node(num_cpus=2, **common)
ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.ERROR)
assert len(ray.nodes()) == 2
assert {node["NodeManagerAddress"] for node in ray.nodes()} == {"127.0.0.1"}

rng = np.random.default_rng(1)
X = rng.random((300_000, 4))
y = X[:, 0] * X[:, 1] > 0.3 * X[:, 2]
params = PAPER | {"n_centers": 30, "random_state": 0, "solver": "converged", "max_iter": 12,
                 "tol": 0.0, "alpha": None, "beta": None}
local = FPCClassifier(**params).fit(X, y)

sweep, done = cluster_engine.ClusterEngine.sweep, []

def sweeping(engine, problems, u):
    done.append(1)
    if len(done) == 5:  # states of four sweeps lie on both nodes
        cluster.remove_node(second, allow_graceful=False)
    return sweep(engine, problems, u)

cluster_engine.ClusterEngine.sweep = sweeping
remote = FPCClassifier(**params, engine="ray").fit(X, y)
print("the same:", (local.coef_ == remote.coef_).all())
print("nodes:", sum(node["Alive"] for node in ray.nodes()))
ray.shutdown()
cluster.shutdown()
"""


PLAN = """
import numpy as np
import ray
from polysift import PAPER, FPCClassifier, RayCluster

X = np.random.default_rng(0).random((1000, 2))
for engine in ("ray", RayCluster(workers=3, cpus=2)):
    model = FPCClassifier(**PAPER | {"degree": 2}, engine=engine)
    print(model.plan(X, X[:, 0] > 0.5))
    assert not ray.is_initialized()
"""


def test_a_plan_starts_no_cluster():
    run = [sys.executable, "-c", PLAN]
    done = subprocess.run(run, capture_output=True, text=True, timeout=GUARD, check=False)
    assert done.returncode == 0, done.stderr
    assert "workers              3, " in done.stdout
    assert done.stdout.count("each at most (of a new cluster: none runs yet)") >= 2


def test_one_of_two_nodes_is_lost():
    environment = {
        **os.environ,
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # makes its nodes listen on loopback alone
        "OPENBLAS_NUM_THREADS": "1",
    }
    del environment["RAY_ADDRESS"]
    done = subprocess.run(
        [sys.executable, "-c", FIT],
        capture_output=True,
        text=True,
        timeout=GUARD,
        env=environment,
        check=False,
    )
    assert "the same: True" in done.stdout, done.stdout + done.stderr
    assert "nodes: 1" in done.stdout
    assert "what it worked on was lost with a node. Their state is made again by 4 sweeps." in (
        done.stdout
    )
