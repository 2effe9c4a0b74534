"""What tells one fit from another: the content of arrays, and what the last bit depends on."""

from __future__ import annotations

import hashlib
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn


def machine_fingerprint() -> dict[str, str]:
    """Return what the last bit depends on besides data and parameters."""
    return {
        "processor": f"{platform.machine()} {_processor()}",
        "polysift": version("polysift"),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "numba": _version_if_installed("numba"),
    }


def _version_if_installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor()
    fields = dict(line.split(":", 1) for line in text.split("\n\n")[0].splitlines() if ":" in line)
    words = {key.strip(): value.strip() for key, value in fields.items()}
    return " ".join(words.get(key, "?") for key in ("model name", "cpu family", "model"))


def digest(*arrays: Any) -> str:
    """Return a short digest of arrays' contents."""
    total = hashlib.blake2b(digest_size=16)
    for array in arrays:
        total.update(np.ascontiguousarray(array).data)
    return total.hexdigest()
