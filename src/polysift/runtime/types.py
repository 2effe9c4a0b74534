"""The types of arrays in signatures."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy.typing as npt

# The names say what an array holds; numpy's types cannot express "float32 or float64, as given".
FloatArray: TypeAlias = npt.NDArray[Any]
IntArray: TypeAlias = npt.NDArray[Any]
BoolArray: TypeAlias = npt.NDArray[Any]

Block: TypeAlias = Any
"""A run of rows: a dense array, or a scipy CSR array or matrix (scipy ships no types)."""
