"""Training stays within its memory budget, measured in a process of its own."""

import subprocess
import sys

import pytest

from clocks import GUARD
from polysift.runtime.memory import peak_memory

SCRIPT = """
import sys
import numpy as np
from polysift import PAPER, FPCClassifier
from polysift.runtime.memory import peak_memory

rng = np.random.default_rng(0)
X = rng.random((int(sys.argv[1]), 8))
y = X[:, 0] + X[:, 1] * X[:, 2] > 0.75
large = PAPER | {"degree": 5, "n_centers": 500}
clf = FPCClassifier(**large, max_iter=2, random_state=0, n_jobs=2).fit(X, y)
assert clf.n_centers_ == 500
after_fit = peak_memory()
clf.predict(X)
print(X.nbytes, after_fit, peak_memory())
"""


@pytest.mark.parametrize("rows", [250_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_peak_memory_of_many_rows(rows):
    if peak_memory() is None:
        pytest.skip("the system does not tell a process's peak memory")
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(rows)],
        capture_output=True,
        text=True,
        check=True,
        timeout=GUARD,
    )
    size, after_fit, after = map(int, run.stdout.split())
    # The whole process counts, interpreter and libraries included; the features alone are 1 GB
    # for a quarter of a million rows. A million are worth compiling for, and numba takes its part.
    libraries = 300e6 if rows < 10**6 else 420e6
    assert after_fit < size + libraries
    assert after < size + libraries
