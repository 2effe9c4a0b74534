"""The machine and the libraries that figures were taken on."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info

import polysift
from harness.kernels import has_kernels
from polysift.engine.budget import free_memory

LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "lightgbm", "xgboost", "catboost", "xrfm")
LIBRARIES += ("onnxruntime", "falkon")

EXTENSIONS = {"avx2": "AVX2", "avx512f": "AVX-512", "asimd": "NEON", "sve": "SVE"}


def describe(threads: int) -> dict[str, str]:
    """Return what there is to know, one line each."""
    return {
        "processor": f"{processor()}, {os.cpu_count()} cores, {extensions()}",
        "load": f"{load():.1f} processes wanted a core in the last minute, before this run",
        "memory": f"{total_memory() / 1e9:.0f} GB, {free_memory() / 1e9:.0f} free",
        "BLAS": blas(),
        "threads": f"{threads} for all that is compared, unless a line says otherwise",
        "versions": versions(),
        "polysift": f"{polysift.__version__}, {kernels()}",
    }


def in_short() -> str:
    """Return the machine in half a line."""
    return f"{processor()}, {os.cpu_count()} cores, {extensions()}; {kernels()}"


def processor() -> str:
    """Return the model of the processor."""
    return _cpuinfo("model name") or platform.processor() or platform.machine()


def extensions() -> str:
    """Return the vector instructions that it has."""
    flags = (_cpuinfo("flags") or _cpuinfo("Features") or "").split()
    found = [name for flag, name in EXTENSIONS.items() if flag in flags]
    missing = "" if has_avx512() else ", no AVX-512"
    return " and ".join(found) + missing if found else "vector instructions unknown"


def has_avx512() -> bool:
    """Return whether the processor has AVX-512."""
    return "avx512f" in (_cpuinfo("flags") or "").split()


def load() -> float:
    """Return how many processes ran or waited to, NaN where the system does not tell."""
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):
        return np.nan


def blas() -> str:
    """Return the BLAS libraries that NumPy and SciPy have loaded."""
    found = {
        f"{pool['internal_api']} {pool['version']} ({pool.get('architecture', 'unknown kernels')})"
        f" on {pool['num_threads']} of {os.cpu_count()} threads"
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    }
    return "; ".join(sorted(found)) or "none found"


def versions() -> str:
    """Return the versions of what is compared."""
    found = [f"Python {platform.python_version()}"]
    for name in LIBRARIES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"no {name}")
    return ", ".join(found)


def kernels() -> str:
    """Return whether the compiled kernels are in use."""
    return "with numba kernels" if has_kernels() else "without numba kernels"


def total_memory() -> float:
    """Return the memory of the machine in bytes, NaN where it does not tell."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return np.nan


def _cpuinfo(field: str) -> str | None:
    """Return the first value of a field of ``/proc/cpuinfo`` (Linux)."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() == field:
            return value.strip()
    return None
