"""The compiled loops: whether there are any, and that they are compiled before a clock starts."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from polysift.engine import compiled

FEW_ROWS = 300


def has_kernels() -> bool:
    """Return whether polysift can use compiled loops here."""
    return compiled.installed()


def warm_up(model: Any, X: np.ndarray, y: np.ndarray) -> None:
    """Fit a model to a few rows, and predict some, so that nothing is compiled later.

    The compiled loops are used there whatever the size, since they are for the fit that follows.
    """
    with compiled.enabled(), suppress(ValueError):  # few rows may be of one class only
        model.fit(X[:FEW_ROWS], y[:FEW_ROWS]).predict(X[:FEW_ROWS])
