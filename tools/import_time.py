"""Print how long ``from polysift import *`` takes beyond what it imports of scikit-learn.

Fresh processes, in turns; the least of the times. Beyond means: less the time of a process that
imports the same modules of numpy, scipy, scikit-learn and what those need, and none of polysift.
"""

from __future__ import annotations

import subprocess
import sys
from time import perf_counter

ALL = "from polysift import *"
REPEATS = 15


def seconds(code: str) -> float:
    """Return the time of a fresh process that runs the code."""
    began = perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return perf_counter() - began


def theirs() -> str:
    """Return code that imports what polysift imports of others' packages."""
    listing = (
        f"import sys\n{ALL}\n"
        "print(*(name for name in sys.modules if name.split('.')[0] in "
        "{'joblib', 'numpy', 'scipy', 'sklearn', 'threadpoolctl'}))"
    )
    found = subprocess.run([sys.executable, "-c", listing], check=True, text=True, stdout=-1).stdout
    lines = "\n".join(f"with S(ImportError): import {name}" for name in found.split())
    return f"from contextlib import suppress as S\n{lines}"


def main() -> None:
    """Measure, and print a line for each kind of process."""
    codes = {"python": "pass", "their modules": theirs(), "import polysift": "import polysift"}
    codes |= {ALL: ALL}
    least = dict.fromkeys(codes, float("inf"))
    for _ in range(REPEATS):
        least = {name: min(least[name], seconds(code)) for name, code in codes.items()}
    for name, value in least.items():
        print(f"{name:25}{value:8.3f} s")
    print(f"{'beyond scikit-learn':25}{least[ALL] - least['their modules']:8.3f} s")


if __name__ == "__main__":
    main()
