"""Plain values as JSON and arrays, and back: nothing that is read this way can run.

What JSON does not know is an object with one key that begins with a dollar sign:
``{"$tuple": [1, 2]}``, ``{"$array": "coef_.npy"}``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import PurePath
from reprlib import repr as shortened
from typing import Any

import numpy as np

from polysift.runtime.arrays import (
    MalformedError,
    allocate,
    checked_dtype,
    checked_shape,
    checked_values,
)
from polysift.runtime.types import FloatArray

MAX_DEPTH = 32


class NotPlainError(TypeError):
    """A value that cannot be written as plain data."""


@dataclass(frozen=True, repr=False)
class NotSaved:
    """What stands for a parameter that could not be written: its description.

    Parameters
    ----------
    text : str
        What it looked like.
    """

    text: str

    def __repr__(self) -> str:
        return f"<not saved: {self.text}>"


class Encoder:
    """Turns plain values into what JSON can hold, and sets their arrays aside.

    Attributes
    ----------
    arrays : dict of str to ndarray
        The arrays so far, by the names of their files: little-endian and in C order.
    """

    def __init__(self) -> None:
        self.arrays: dict[str, FloatArray] = {}

    def encode(self, value: Any, where: str, depth: int = 0) -> Any:
        """Return a value as JSON holds it; ``where`` is how a message and a file call it."""
        if depth > MAX_DEPTH:
            raise NotPlainError(f"{where} is nested deeper than {MAX_DEPTH} levels.")

        def inner(items: Iterable[Any]) -> list[Any]:
            return [self.encode(v, f"{where}[{k}]", depth + 1) for k, v in enumerate(items)]

        if hasattr(type(value), "to_numpy") and hasattr(type(value), "__len__"):
            value = value.to_numpy()  # a frame, or a column of one
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, np.generic | np.ndarray):
            return self._encode_numpy(value, where, inner)
        if isinstance(value, int) and value.bit_length() <= 4096:  # Python reads back no more
            return int(value)
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else {"$float": repr(float(value))}
        if isinstance(value, str | PurePath):
            return str.__str__(value) if isinstance(value, str) else str(value)
        if isinstance(value, bytes):
            return {"$bytes": value.hex()}
        if isinstance(value, NotSaved):
            return {"$not saved": value.text}
        if isinstance(value, range):
            return {"$range": inner([value.start, value.stop, value.step])}
        if isinstance(value, list):
            return inner(value)
        if isinstance(value, tuple):
            return {"$tuple": inner(value)}
        if isinstance(value, dict):
            if all(isinstance(key, str) and not key.startswith("$") for key in value):
                return {str(k): self.encode(v, f"{where}.{k}", depth + 1) for k, v in value.items()}
            return {"$dict": [inner(pair) for pair in value.items()]}
        raise NotPlainError(
            f"{where} cannot be saved as plain data: it is of type {type(value).__name__}."
        )

    def _encode_numpy(self, value: Any, where: str, inner: Callable[..., Any]) -> Any:
        if isinstance(value, np.ma.MaskedArray):
            if value.dtype != object or not isinstance(value.fill_value, str):
                raise NotPlainError(f"{where} cannot be saved: it is masked, and not of objects.")
            mask = None if value.mask is np.ma.nomask else value.mask
            return {"$masked": inner([value.data, mask, value.fill_value])}
        if isinstance(value, np.str_):
            return {"$str": str(value)}
        if value.dtype == object:
            return {"$objects": [list(value.shape), inner(value.reshape(-1))]}
        try:
            dtype = checked_dtype(value.dtype.newbyteorder("<").str)
        except (MalformedError, TypeError):  # numpy's newer dtypes have no byte order
            raise NotPlainError(f"{where} cannot be saved: its dtype is {value.dtype}.") from None
        little = np.asarray(value, order="C").astype(dtype, copy=False)
        if isinstance(value, np.generic):
            return {"$scalar": [dtype.str, little.tobytes().hex()]}
        name = f"{(re.sub(r'[^A-Za-z0-9_.-]+', '-', where).strip('.-') or 'array')[:80]}.npy"
        while name in self.arrays:
            name = f"{name[:80]}-{len(self.arrays)}.npy"
        self.arrays[name] = little
        return {"$array": name}


def decode(tree: Any, arrays: dict[str, FloatArray], depth: int = 0) -> Any:
    """Return the value that ``Encoder.encode`` was given; takes its arrays out of ``arrays``."""
    if depth > MAX_DEPTH:
        raise MalformedError("has a header that is nested too deeply")

    def inner(items: Iterable[Any]) -> list[Any]:
        return [decode(item, arrays, depth + 1) for item in items]

    if isinstance(tree, list):
        return inner(tree)
    if isinstance(tree, dict):
        if any(key.startswith("$") for key in tree):
            return _decode_special(tree, arrays, inner)
        return {key: decode(item, arrays, depth + 1) for key, item in tree.items()}
    if isinstance(tree, float) and not math.isfinite(tree):
        raise MalformedError("holds a number that is too large")
    return tree


def _decode_special(tree: dict[str, Any], arrays: dict[str, FloatArray], inner: Any) -> Any:
    try:
        match tree if len(tree) == 1 else None:
            case {"$array": str(name)}:
                return arrays.pop(name)
            case {"$bytes": str(digits)}:
                return bytes.fromhex(digits)
            case {"$dict": list(pairs)}:
                return _dict(inner(pairs))
            case {"$float": ("nan" | "inf" | "-inf") as text}:
                return float(text)
            case {"$masked": [data, mask, fill]}:
                return _masked(*inner([data, mask, fill]))
            case {"$not saved": str(text)}:
                return NotSaved(text)
            case {"$objects": [shape, list(items)]}:
                return _objects(shape, inner(items))
            case {"$range": [int(start), int(stop), int(step)]}:
                return range(start, stop, step)
            case {"$scalar": [dtype, str(digits)]}:
                return _scalar(checked_dtype(dtype), bytes.fromhex(digits))
            case {"$str": str(text)}:
                return np.str_(text)
            case {"$tuple": list(items)}:
                return tuple(inner(items))
    except MalformedError:
        raise
    except (KeyError, OverflowError, TypeError, ValueError):
        pass  # an array that is not there, a key that is a list, and the like
    raise MalformedError(f"holds a value that cannot be: {shortened(tree)}")


def _dict(pairs: list[Any]) -> dict[Any, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise MalformedError("holds a dict with the same key twice")
    return made


def _scalar(dtype: np.dtype[Any], content: bytes) -> Any:
    if len(content) != dtype.itemsize:
        raise ValueError("not the bytes of one item")
    return checked_values(np.frombuffer(content, dtype))[0]


def _masked(data: Any, mask: Any, fill: Any) -> Any:
    """Return a masked array of objects: a search has them in ``cv_results_``, and no others."""
    if type(data) is not np.ndarray or type(mask) not in (np.ndarray, type(None)):
        raise MalformedError("holds a masked array without data or mask")
    if data.dtype != object or not isinstance(fill, str):
        raise MalformedError("holds a masked array that is not of objects")
    if mask is None:
        mask = np.ma.nomask
    elif mask.dtype != bool or mask.shape != data.shape:
        raise MalformedError("holds a masked array whose mask does not fit")
    return np.ma.MaskedArray(data, mask, fill_value=fill)


def _objects(shape: Any, values: list[Any]) -> FloatArray:
    array = allocate(checked_shape(shape), object, len(values))
    flat = array.reshape(-1)
    for position, value in enumerate(values):  # one by one: numpy would look into lists
        flat[position] = value
    return array
