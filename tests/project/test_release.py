"""A release as its users get it: built, installed into an empty environment, and tested there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / "tools"

pytestmark = pytest.mark.slow


def run(*command, cwd=ROOT):
    """Return what a command printed; a failure shows all of it."""
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """Return a folder with an sdist and a wheel, and those of polysift-paper in paper/."""
    pytest.importorskip("build", reason="a release is built with the dependency group release")
    folder = tmp_path_factory.mktemp("dist")
    asked = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "hatchling"]
    reached = subprocess.run(asked, cwd=tmp_path_factory.mktemp("index"), capture_output=True)
    if reached.returncode:
        pytest.skip(f"no package index can be reached: {reached.stderr.decode()[-300:]}")
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    run(sys.executable, "-m", "build", "--outdir", folder / "paper", ROOT / "paper")
    return folder


def test_all_files_hold_what_they_should(dist):
    pytest.importorskip("twine", reason="a release is checked with the dependency group release")
    assert "hold what they should" in run(
        sys.executable, TOOLS / "check_dist.py", dist, dist / "paper"
    )
    files = [path for path in dist.rglob("*") if path.is_file()]
    checked = run(sys.executable, "-m", "twine", "check", "--strict", *files)
    assert checked.count("PASSED") == 4


def test_the_wheel_in_an_empty_environment(dist):
    assert " passed" in run(sys.executable, TOOLS / "core_tests.py", dist)


def test_the_oldest_supported_dependencies(dist):
    python = os.environ.get("OLDEST", "python3.11")
    if not shutil.which(python):
        pytest.skip(f"{python}, for which these versions were built, is not here; set OLDEST")
    assert " passed" in run(python, TOOLS / "core_tests.py", dist, "--oldest")
