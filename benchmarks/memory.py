"""Peak memory of training, against the size of the input and of the feature matrix.

Each shape runs in a process of its own; the figure is that process's largest resident size, with
interpreter and libraries. Usage: python benchmarks/memory.py [--quick]
"""

from __future__ import annotations

import argparse
import subprocess
import sys

SHAPES = [
    # rows, features, degree, centers, dtype
    (100_000, 8, 5, 500, "float64"),
    (1_000_000, 8, 5, 500, "float64"),
    (1_000_000, 8, 5, 500, "float32"),
    (1_000_000, 2, 9, 55, "float64"),
    (200_000, 100, 2, 1000, "float64"),
]

CHILD = """
import numpy as np
from polysift import PAPER, FPCClassifier
from polysift.runtime.memory import peak_memory

m, d, degree, n, dtype = {shape!r}
X = np.random.default_rng(0).random((m, d), dtype=dtype)
y = X[:, 0] + X[:, 1] > 1
FPCClassifier(**PAPER | {"degree": degree, "n_centers": n}, max_iter=2, random_state=0).fit(X, y)
print(X.nbytes, peak_memory())
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the first shape only")
    options = parser.parse_args()
    print("    rows    d  degree     n  dtype    input  features   peak  peak - input   (MB)")
    for shape in SHAPES[:1] if options.quick else SHAPES:
        run = [sys.executable, "-c", CHILD.format(shape=shape)]
        printed = subprocess.run(run, capture_output=True, text=True, check=True).stdout
        size, peak = (int(word) / 1e6 for word in printed.split())
        m, d, degree, n, dtype = shape
        features = m * n * (4 if dtype == "float32" else 8) / 1e6
        print(
            f"{m:>8} {d:>4} {degree:>7} {n:>5}  {dtype} {size:>7.0f} {features:>9.0f} "
            f"{peak:>6.0f} {peak - size:>13.0f}"
        )


if __name__ == "__main__":
    main()
