"""The array types that signatures speak of."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.floating[Any]]
IntArray: TypeAlias = npt.NDArray[np.integer[Any]]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

Block: TypeAlias = Any
"""A run of rows: a dense array, or a scipy CSR array or matrix (scipy ships no types)."""
