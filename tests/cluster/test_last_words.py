"""A process that Ray or the system ends in the middle of a fit: another says what happened."""

from __future__ import annotations

import socket
import subprocess
import sys

import numpy as np
import pytest

from problems import paper_classifier

ENDING = """
import os, sys
from polysift.cluster.last_words import last_words

how, raylet = sys.argv[1:]
with last_words("Fit again.", raylet):
    if how == "exit":
        os._exit(1)
    if how == "raise":
        raise SystemExit(1)
"""


def ended(how, raylet):
    """Run a process that ends in some way; return what is on stderr once all writers are gone."""
    command = [sys.executable, "-c", ENDING, how, str(raylet)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60).stderr


def test_an_end_without_a_word_is_commented(tmp_path):
    text = ended("exit", tmp_path / "raylet")
    assert text.startswith("polysift: the process that worked on the Ray cluster ended")
    assert "Its raylet is gone" in text and text.endswith("Fit again.\n")


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="needs such sockets")
def test_a_raylet_that_answers_is_not_blamed(tmp_path):
    with socket.socket(socket.AF_UNIX) as raylet:
        raylet.bind(str(tmp_path / "raylet"))
        raylet.listen()
        text = ended("exit", tmp_path / "raylet")
    assert "want of memory" in text and "raylet" not in text


@pytest.mark.parametrize("how", ["return", "raise"])
def test_other_ends_speak_for_themselves(tmp_path, how):
    assert ended(how, tmp_path / "raylet") == ""


PROBLEM = """
import numpy as np
rng = np.random.default_rng(0)
X = rng.random((20_000, 3))
y = X[:, 0] > X[:, 1] * X[:, 2]
params = {"degree": 2, "max_iter": 200, "tol": 1e-300, "random_state": 0}
"""

KILLED = (
    PROBLEM
    + """
import os, signal
import ray
from polysift import PAPER, FPCClassifier, RayCluster
from polysift.engine import compiled
from polysift.runtime.checkpoints import Checkpoint

def save(self, name, arrays, values, write=Checkpoint.save):
    saved = write(self, name, arrays, values)
    if name == "solver":
        node = ray._private.worker._global_node
        os.kill(node.all_processes["raylet"][0].process.pid, signal.SIGKILL)
    return saved

Checkpoint.save, Checkpoint.due = save, lambda self: True
with compiled.disabled():
    engine = RayCluster("local", workers=1)
    fixed = PAPER | {"centers": "auto"} | params
    FPCClassifier(**fixed, engine=engine, checkpoint="run").fit(X, y)
print("not ended")
"""
)


@pytest.mark.slow
def test_a_raylet_that_dies(tmp_path):
    """Ray ends the process; the checkpoint leads to the model of a fit that was never ended."""
    pytest.importorskip("ray")
    command = [sys.executable, "-W", "ignore", "-c", KILLED]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert run.returncode != 0 and "not ended" not in run.stdout
    assert "Its raylet is gone" in run.stderr
    assert "The checkpoint run keeps what is done: fit again with it to resume." in run.stderr
    problem: dict = {}
    exec(PROBLEM, problem)
    X, y, params = problem["X"], problem["y"], problem["params"]
    resumed = paper_classifier(**params, checkpoint=tmp_path / "run").fit(X, y)
    np.testing.assert_array_equal(resumed.coef_, paper_classifier(**params).fit(X, y).coef_)
