"""Arrays in files: described, streamed in chunks, and checked before anything relies on them.

Two kinds of file share this. An array file (``write_arrays``, ``read_arrays``, ``read_rows``) is
what checkpoints are made of: written in one pass, since its arrays may lie elsewhere
(``RowBlocks``) and be larger than memory, so its index stands at the end. A model file
(``persistence.archive``) is an ordinary zip of ``.npy`` files that others can open and that comes
from anywhere, so its index, with a digest per array, stands at the beginning; for that its arrays
are read twice. Layout and digests differ for these reasons; what is the same is here: how an array
is described (``ArrayHeader``), how much memory a description may ask for, how bytes are streamed
to files and digests, and what stored values must be.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from reprlib import repr as shortened
from typing import Any, BinaryIO, Protocol, TypeAlias

import numpy as np

from polysift.runtime.outputs import CHUNK_BYTES, replacing
from polysift.runtime.types import FloatArray

MAX_DIMENSIONS = 8
MAX_SIDE = 2**48
"""The most dimensions of a stored array, and what each must stay below."""

LITTLE_ENDIAN = "<"
NATIVE_ORDER = "<" if sys.byteorder == "little" else ">"

MAGIC = b"polysift-state-3"
LARGEST = 1e150
"""What no number in the state of a fit comes near: the squares of larger ones overflow."""

DIGEST_BYTES, LENGTH_BYTES = 16, 8
"""The last bytes of an array file: the digest of its index, and the length of that."""

_DTYPE = re.compile(r"[<>|]([biufSU]\d{1,9}|[mM]8(\[\d{0,9}[A-Za-z]{1,2}\])?)")


class MalformedError(ValueError):
    """Stored data that cannot be read; the text says what their file does wrong."""


class InvalidFieldError(ValueError):
    """A stored field that no fit sets so; the text names it."""


class RowBlocks(Protocol):
    """An array whose blocks of rows lie elsewhere, one after the other.

    In a file it looks like any other array.
    """

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""

    def read(self) -> Iterator[FloatArray]:
        """Yield the blocks."""

    def write(self) -> Iterator[FloatArray]:
        """Yield empty blocks to be filled, each before the next is asked for."""


Storable: TypeAlias = FloatArray | RowBlocks
Sink: TypeAlias = Callable[[memoryview], Any]
"""What takes the bytes of an array: a file's ``write``, a digest's ``update``."""

Into: TypeAlias = Callable[[dict[str, Any]], Mapping[str, Storable]]
"""Takes the plain values of an array file; returns what to read arrays of the same name into."""


def checked_dtype(text: Any, order: str = LITTLE_ENDIAN) -> np.dtype[Any]:
    """Return the dtype of this name, which must be one of numbers, text or times."""
    if not isinstance(text, str) or not _DTYPE.fullmatch(text) or text[0] not in (order, "|"):
        raise MalformedError(f"holds an array of a dtype that is not stored: {shortened(text)}")
    try:
        dtype = np.dtype(text)
    except (TypeError, ValueError):
        raise MalformedError(f"holds an array of an unknown dtype, {text!r}") from None
    if dtype.itemsize == 0 or (dtype.kind == "f" and dtype.itemsize > 8):
        raise MalformedError(f"holds an array of dtype {text!r}, which is not stored")
    return dtype


def checked_shape(shape: Any) -> tuple[int, ...]:
    """Return a list as a shape that an array can have."""
    whole = isinstance(shape, list) and all(type(length) is int for length in shape)
    if not whole or len(shape) > MAX_DIMENSIONS or not all(0 <= n < MAX_SIDE for n in shape):
        raise MalformedError(f"holds an array of shape {shortened(shape)}, which cannot be")
    return tuple(shape)


def allocate(shape: tuple[int, ...], dtype: Any, size: int) -> FloatArray:
    """Return an empty array of a shape, which must have ``size`` elements: no larger is made."""
    try:
        if math.prod(shape) == size:  # of Python's integers, which do not overflow
            return np.empty(shape, dtype)
    except (ValueError, OverflowError):
        pass
    raise MalformedError(f"holds an array of shape {shape}, which is not its size")


def checked_values(array: FloatArray) -> FloatArray:
    """Return an array in native byte order, whose bytes must be values of its dtype."""
    if array.dtype.kind == "b" and array.size and array.view(np.uint8).max() > 1:
        raise MalformedError("holds truth values that are neither true nor false")
    if array.dtype.kind == "U" and array.size:
        points = array.reshape(-1).view("<u4")
        if points.max() > sys.maxunicode:
            raise MalformedError("holds text that is no Unicode")
    return array.astype(array.dtype.newbyteorder("="), copy=False)


@dataclass(frozen=True)
class ArrayHeader:
    """The description of a stored array."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @classmethod
    def of(cls, array: Storable) -> ArrayHeader:
        """Return the description of an array."""
        return cls(array.dtype, array.shape)

    @classmethod
    def from_json(cls, dtype: Any, shape: Any, order: str = LITTLE_ENDIAN) -> ArrayHeader:
        """Return a description that was read from a file, if there can be such an array."""
        return cls(checked_dtype(dtype, order), checked_shape(shape))

    def to_json(self) -> dict[str, Any]:
        """Return the description as JSON can hold it."""
        return {"dtype": self.dtype.str, "shape": list(self.shape)}

    @property
    def nbytes(self) -> int:
        """The bytes of the array, exactly: Python's integers do not overflow."""
        return math.prod(self.shape) * self.dtype.itemsize

    def allocate(self, nbytes: int) -> FloatArray:
        """Return an empty array, for which the file must hold exactly so many bytes."""
        size, rest = divmod(nbytes, self.dtype.itemsize)
        return allocate(self.shape, self.dtype, -1 if rest else size)


def array_chunks(array: FloatArray) -> Iterator[memoryview]:
    """Yield the bytes of a C-ordered array, some megabytes at a time."""
    flat: Any = memoryview(array.reshape(-1).view(np.uint8))  # type: ignore[arg-type]
    for start in range(0, len(flat), CHUNK_BYTES):
        yield flat[start : start + CHUNK_BYTES]


def send_array(array: Storable, *sinks: Sink) -> None:
    """Pass the bytes of an array to each sink, chunk by chunk."""
    blocks: Iterable[FloatArray] = [array] if isinstance(array, np.ndarray) else array.read()
    for block in blocks:
        for chunk in array_chunks(np.ascontiguousarray(block)):
            for sink in sinks:
                sink(chunk)


def fill_array(array: Storable, file: Any, *sinks: Sink) -> None:
    """Read the bytes of an array from a file, and pass each chunk to the sinks as well."""
    blocks: Iterable[FloatArray] = [array] if isinstance(array, np.ndarray) else array.write()
    for block in blocks:
        for chunk in array_chunks(block):
            if file.readinto(chunk) < len(chunk):
                raise MalformedError("ends within an array")
            for sink in sinks:
                sink(chunk)


def write_arrays(path: Path, arrays: Mapping[str, Storable], values: dict[str, Any]) -> None:
    """Write arrays and plain values as one file, which appears whole or not at all.

    The file is a magic number, the arrays' bytes, an index as JSON (what the arrays are and where
    they begin, the digest of their bytes, the values), and the digest and length of the index.
    """
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    listed = {}
    with replacing(path) as file:
        file.write(MAGIC)
        for name, array in arrays.items():
            listed[name] = ArrayHeader.of(array).to_json() | {"offset": file.tell()}
            send_array(array, digest.update, file.write)
        index = {"arrays": listed, "digest": digest.hexdigest(), "values": values}
        text = json.dumps(index).encode()
        file.write(text + _digest(text) + len(text).to_bytes(LENGTH_BYTES, "little"))


def read_arrays(
    path: Path, into: Into | None = None
) -> tuple[dict[str, FloatArray], dict[str, Any]]:
    """Return the arrays and plain values of ``write_arrays``; a damaged file raises.

    Arrays that ``into`` gives are filled in place; of these, ``RowBlocks`` are not returned.
    """
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    arrays: dict[str, FloatArray] = {}
    with open(path, "rb") as file:
        index, end = _read_index(file)
        given = {} if into is None else into(index["values"])
        if not given.keys() <= index["arrays"].keys():
            raise MalformedError("lacks an array")
        for name, entry in index["arrays"].items():
            header = ArrayHeader.from_json(entry["dtype"], entry["shape"], NATIVE_ORDER)
            if entry["offset"] + header.nbytes > end:
                raise MalformedError("ends within an array")
            array = given[name] if name in given else header.allocate(header.nbytes)
            if ArrayHeader.of(array) != header:
                raise MalformedError("holds an array of another shape")
            file.seek(entry["offset"])
            fill_array(array, file, digest.update)
            if isinstance(array, np.ndarray):
                arrays[name] = array
    if digest.hexdigest() != index["digest"]:
        raise MalformedError("has a wrong checksum")
    return arrays, index["values"]


def read_rows(path: Path, name: str, rows: tuple[int, int]) -> FloatArray:
    """Return rows of an array that this process has written, from first to before last.

    Nothing else is read, so the digest of the arrays is not checked.
    """
    with open(path, "rb") as file:
        entry = _read_index(file)[0]["arrays"][name]
        header = ArrayHeader.from_json(entry["dtype"], entry["shape"], NATIVE_ORDER)
        row = ArrayHeader(header.dtype, header.shape[1:])
        out = np.empty((rows[1] - rows[0], *row.shape), row.dtype)
        file.seek(entry["offset"] + rows[0] * row.nbytes)
        fill_array(out, file)
    return out


def _read_index(file: BinaryIO) -> tuple[dict[str, Any], int]:
    """Return the index of an array file, which is as it was written, and where it begins."""
    file.seek(0)
    if file.read(len(MAGIC)) != MAGIC:
        raise MalformedError("does not begin as it should")
    tail = DIGEST_BYTES + LENGTH_BYTES
    end = file.seek(0, os.SEEK_END) - tail
    file.seek(max(end, 0))
    digest, length = file.read(DIGEST_BYTES), int.from_bytes(file.read(LENGTH_BYTES), "little")
    start = end - length
    if start < len(MAGIC):
        raise MalformedError("does not end as it should")
    file.seek(start)
    text = file.read(length)
    if _digest(text) != digest:
        raise MalformedError("has a wrong checksum")
    return _checked_index(json.loads(text)), start


def _checked_index(index: Any) -> dict[str, Any]:
    """Return an index that has the fields ``write_arrays`` gives it."""
    fields = {"arrays": dict, "digest": str, "values": dict}
    whole = isinstance(index, dict) and index.keys() == fields.keys()
    if not whole or not all(isinstance(index[name], kind) for name, kind in fields.items()):
        raise MalformedError("has an index that is not as it is written")
    for entry in index["arrays"].values():
        known = isinstance(entry, dict) and entry.keys() == {"dtype", "shape", "offset"}
        if not known or type(entry["offset"]) is not int or entry["offset"] < 0:
            raise MalformedError("has an index of arrays that is not as it is written")
    found: dict[str, Any] = index
    return found


def _digest(text: bytes) -> bytes:
    return hashlib.blake2b(text, digest_size=DIGEST_BYTES).digest()


def require(valid: Any, text: str) -> None:
    """Raise unless a stored field is valid; the text says what it must be."""
    if not valid:
        raise InvalidFieldError(text)


def is_plain_array(value: Any) -> bool:
    """Return whether a value is an array without a mask."""
    return isinstance(value, np.ndarray) and not isinstance(value, np.ma.MaskedArray)


def is_small(array: FloatArray) -> bool:
    """Return whether all numbers can be squared and added up."""
    return not array.size or bool(-LARGEST < array.min() <= array.max() < LARGEST)


def required_array(
    fields: Mapping[str, Any],
    name: str,
    kind: str,
    shape: tuple[int | None, ...],
    *,
    finite: bool = True,
    missing: bool = False,
    of_a_fit: bool = False,
) -> FloatArray:
    """Return a field that must be an array of a kind and shape.

    Parameters
    ----------
    fields : mapping
        The fields.
    name : str
        The name of the field.
    kind : {"f", "i", "O"}
        Float64, integers, or objects.
    shape : tuple of int or None
        The shape; None is any length.
    finite : bool, default=True
        Whether infinite values are refused.
    missing : bool, default=False
        Whether NaN is not refused.
    of_a_fit : bool, default=False
        Whether numbers are refused whose squares overflow: no fit gets that far.
    """
    found: Any = fields.get(name)
    require(is_plain_array(found) and found.ndim == len(shape), f"{name} must be an array")
    lengths = zip(found.shape, shape, strict=True)
    fits = all(want is None or have == want for have, want in lengths)
    require(fits, f"{name} must have shape {shape}")
    if kind == "f":
        require(found.dtype == np.float64, f"{name} must be of float64")
        require(missing or not np.isnan(found).any(), f"{name} must not hold NaN")
        require(not finite or not np.isinf(found).any(), f"{name} must be finite")
        usual = found if finite else found[np.isfinite(found)]
        require(not of_a_fit or is_small(usual), f"{name} must be smaller than {LARGEST:g}")
    else:
        require(found.dtype.kind in ("iu" if kind == "i" else kind), f"{name} has the wrong dtype")
    array: FloatArray = found
    return array
