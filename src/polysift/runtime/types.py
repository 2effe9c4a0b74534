"""The array types that signatures speak of."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy.typing as npt

# The names say what an array holds; numpy's own types cannot follow float32 and float64 at once.
FloatArray: TypeAlias = npt.NDArray[Any]
IntArray: TypeAlias = npt.NDArray[Any]
BoolArray: TypeAlias = npt.NDArray[Any]

Block: TypeAlias = Any
"""A run of rows: a dense array, or a scipy CSR array or matrix (scipy ships no types)."""
