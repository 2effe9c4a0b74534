"""Faults at will: the n-th file operation below a folder, or the n-th array of ours, fails.

File operations are made to fail between the process and the C library (``interposer.c``), so it
does not matter who asks for them. The library must be loaded before any other: ``environment``
gives the variables of a process that has it.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

SOURCE = Path(__file__).with_name("interposer.c")
KINDS = ("create", "write", "sync", "rename", "read")
"""The kinds of operations, in the order of ``interposer.c``."""

ALLOCATORS = ("empty", "zeros", "ones", "full", "empty_like", "zeros_like", "array", "concatenate")
"""The functions of NumPy by which the library makes its buffers."""


def built(folder: Path) -> Path | None:
    """Return the compiled interposer, or None where no compiler for Linux is at hand."""
    compiler = shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        return None
    target = folder / "interposer.so"
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", target, SOURCE, "-ldl"]
    subprocess.run(command, check=True)
    return target


def environment(library: Path) -> dict[str, str]:
    """Return the variables of a process in which file operations can fail."""
    return os.environ | {"LD_PRELOAD": str(library), "PYTHONWARNINGS": "error"}


@dataclass
class Fault:
    """The n-th operation that fails, counted from 1, and what was seen of it."""

    number: int
    seen: int = 0
    fired: int = 0


@contextmanager
def file_fault(
    folder: Path, number: int, *, kind: str, error: int, lasting: bool
) -> Iterator[Fault]:
    """Let the n-th operation below a folder fail; all after it as well, where it is lasting."""
    library: Any = ctypes.CDLL(os.environ["LD_PRELOAD"].split(":")[0])
    library.faults_seen.restype = library.faults_fired.restype = ctypes.c_long
    fault = Fault(number)
    library.faults_arm(
        os.fsencode(folder), KINDS.index(kind), ctypes.c_long(number), error, int(lasting)
    )
    try:
        yield fault
    finally:
        fault.seen, fault.fired = library.faults_seen(), library.faults_fired()
        library.faults_disarm()


@contextmanager
def memory_fault(number: int) -> Iterator[Fault]:
    """Let the n-th array that a module of polysift makes fail for want of memory."""
    fault = Fault(number)

    def failing(make: Any) -> Any:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            if sys._getframe(1).f_globals.get("__name__", "").startswith("polysift"):
                fault.seen += 1
                if fault.seen == fault.number:
                    fault.fired += 1
                    raise MemoryError("Unable to allocate an array")
            return make(*args, **kwargs)

        return wrapped

    kept = {name: getattr(np, name) for name in ALLOCATORS}
    for name, make in kept.items():
        setattr(np, name, failing(make))
    try:
        yield fault
    finally:
        for name, make in kept.items():
            setattr(np, name, make)
