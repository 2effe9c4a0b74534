"""The state of the rows at the start, in memory or in a file."""

from __future__ import annotations

import tempfile

import numpy as np

from polysift.runtime.parallel import block_spans
from polysift.runtime.types import FloatArray


def new_state(shape: tuple[int, int], spill: bool) -> FloatArray:
    """Return a state of ones, in memory or in a file that nobody else sees."""
    if not spill or 0 in shape:
        return np.ones(shape)
    with tempfile.TemporaryFile(prefix="polysift-") as file:
        try:  # written, not only mapped: a full disk is an error here, and a crash in a map
            for lo, hi in block_spans((0, shape[0]), 2**16):
                file.write(np.ones((hi - lo, shape[1])).data)
            file.flush()
        except OSError as error:
            raise OSError(
                error.errno,
                f"The per-row state ({shape[0] * shape[1] * 8:,} bytes) could not be written to "
                f"{tempfile.gettempdir()}: {error}. Free space there, point TMPDIR elsewhere, or "
                "raise memory_limit.",
            ) from error
        return np.memmap(file, dtype=float, mode="r+", shape=shape)
