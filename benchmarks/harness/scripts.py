"""Sections that are scripts of their own: run as they are, and what they print is kept."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from harness.report import Report
from harness.run import Run
from harness.timing import say

OTHERS = "(raylet)"
"""What stands in lines that Ray prints when a worker is killed on purpose."""

BENCHMARKS = Path(__file__).resolve().parents[1]


def commands(section: str, run: Run) -> list[list[str]]:
    """Return the scripts of a section with their options."""
    quick = [] if run.size == "full" else ["--quick"]
    scale = run.scale or run.pick(1 / 2000, 1 / 40, 1 / 4)
    return {
        "memory": [["memory.py", *quick]],
        "forecast": [["forecast.py", *quick]],
        "massive": [
            ["massive.py", "--shape", "susy", "--rows", str(int(4e6 * scale))],
            ["massive.py", "--shape", "higgs", "--rows", str(int(1e7 * scale))],
        ],
        "distributed": [["distributed.py", *([] if run.scale == 1 else ["--quick"])]],
        "model": [["distributed_model.py"]],
    }[section]


def measure(section: str, run: Run) -> Report:
    """Run the scripts of a section."""
    parts = []
    for script, *options in commands(section, run):
        words = " ".join(["python", f"benchmarks/{script}", *options])
        say(words)
        done = subprocess.run(
            [sys.executable, str(BENCHMARKS / script), *options], capture_output=True, text=True
        )
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            parts.append(f"$ {words}\nfailed: {last}")
        else:
            lines = [line for line in done.stdout.splitlines() if OTHERS not in line]
            parts.append("\n".join([f"$ {words}", *lines]).rstrip())
    return Report(text="\n\n".join(parts))
