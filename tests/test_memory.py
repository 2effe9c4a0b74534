"""Training stays within its memory budget, measured in a process of its own."""

import subprocess
import sys

import pytest

pytest.importorskip("resource", reason="the system does not tell a process's peak memory")

SCRIPT = """
import resource, sys
import numpy as np
from polysift import FPCClassifier

unit = 1 if sys.platform == "darwin" else 1024
rng = np.random.default_rng(0)
X = rng.random((1_000_000, 8), dtype=np.{dtype})
y = X[:, 0] + X[:, 1] * X[:, 2] > 0.75
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
clf = FPCClassifier(degree=5, n_centers=500, max_iter=2, random_state=0, n_jobs={n_jobs}).fit(X, y)
assert clf.n_centers_ == 500
after_fit = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
clf.predict(X)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
print(X.nbytes, before, after_fit, after)
"""


@pytest.mark.parametrize(("dtype", "n_jobs"), [("float64", 2)])
def test_peak_memory_of_a_million_rows(dtype, n_jobs):
    script = SCRIPT.format(dtype=dtype, n_jobs=n_jobs)
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=300
    )
    size, _, after_fit, after = map(int, run.stdout.split())
    # The whole process counts, interpreter and libraries included; the features alone are 4 GB.
    assert after_fit < size + 300e6
    assert after < size + 300e6
