"""Every file operation and every array fails once: whole results or clear errors, nothing else.

As in SQLite's tests, the n-th operation fails for n = 1, 2, ... until a run needs no fault.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from injection import KINDS, built, environment

SCRIPT = Path(__file__).with_name("scenarios.py")
NEEDED = {
    "fit with checkpoint": {"create", "write", "sync", "rename", "read", "memory"},
    "resume": {"create", "write", "sync", "rename", "read", "memory"},
    "search": {"create", "write", "sync", "rename", "read", "memory"},
    "fit CSV": {"create", "write", "read", "memory"},
    "fit libsvm": {"create", "write", "read", "memory"},
    "predict CSV": set(KINDS),
    "predict Parquet": set(KINDS),
    "predict folder": set(KINDS),
    "save": set(KINDS) - {"read"},
    "load": {"read", "memory"},
    "export": set(KINDS) - {"read"},
    "report": set(KINDS),
}
"""What each scenario does at least: a fault that does not occur proves nothing."""


LONG = {"search", "report"}
"""Scenarios whose single run takes about a second."""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    made = built(tmp_path_factory.mktemp("interposer"))
    if made is None:
        pytest.skip(
            "no C compiler for Linux is at hand, with which file operations are intercepted"
        )
    return made


def run(library, name, folder, extent):
    done = subprocess.run(
        [sys.executable, SCRIPT, name, folder / "place", extent],
        env=environment(library) | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def check(found, name):
    assert found["findings"] == []
    failed = {what.split()[0] for what, times in found["faults"].items() if times}
    assert failed >= NEEDED[name]


@pytest.mark.needs("pyarrow", "pandas", "onnx")
@pytest.mark.parametrize("name", sorted(NEEDED.keys() - LONG))
def test_one_error_of_each_kind(library, tmp_path, name):
    check(run(library, name, tmp_path, "some"), name)


@pytest.mark.slow
@pytest.mark.needs("pyarrow", "pandas", "onnx")
@pytest.mark.parametrize("name", NEEDED)
def test_every_error(library, tmp_path, name):
    check(run(library, name, tmp_path, "all"), name)


@pytest.mark.needs("pyarrow", "pandas")
def test_a_careless_writer_is_found(library, tmp_path):
    found = run(library, "naive", tmp_path, "some")["findings"]
    assert any("half-written" in finding for finding in found)
