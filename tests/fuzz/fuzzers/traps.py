"""A target that does all that must be found, to try the fuzzers themselves."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np

from fuzzers.cases import ACCEPTED, Case, Target, require, require_printable


def _crash() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def _hang() -> None:
    while True:
        time.sleep(1.0)


TRAPS: dict[str, Callable[[], object]] = {
    "nothing": lambda: None,
    "crash": _crash,
    "hang": _hang,
    "allocation": lambda: np.empty(2**40, np.uint8),
    "growth": lambda: np.ones(700 * 2**20, np.uint8),
    "bug": lambda: {}["key"],
    "warning": lambda: warnings.warn("overflow", RuntimeWarning, stacklevel=2),
    "litter": tempfile.mkdtemp,
    "finding": lambda: require(False, "as asked for"),
    "escape": lambda: require_printable("\x1b[2J", "the text"),
    "exit": lambda: sys.exit(3),
}


class TrapTarget(Target):
    """What must be found, by name."""

    name = "trap"

    def make(self, rng: Random) -> Case:
        """Return what is harmless."""
        return Case({"noise": rng.randbytes(8)}, {"trap": "nothing"})

    def check(self, case: Case, folder: Path) -> str:
        """Do what the case asks for."""
        TRAPS[case.options["trap"]]()
        return ACCEPTED

    def forged(self) -> dict[str, Case]:
        """Return one case each."""
        return {name: Case({"a": b"b"}, {"trap": name}) for name in TRAPS}
