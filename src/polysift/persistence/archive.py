"""Model files: a header and arrays in an ordinary zip, read without trust.

The zip holds ``header.json``, then the arrays as ``.npy``; none is compressed, and no times are
kept. Its comment, which is the end of the file, is a mark and the digest of all bytes before the
digest.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from reprlib import repr as shortened
from typing import Any, BinaryIO
from zipfile import BadZipFile, ZipFile, ZipInfo

import numpy as np

from polysift.persistence.plain import checked_dtype, checked_shape, empty, sound
from polysift.runtime.outputs import CHUNK_BYTES, array_chunks, replacing
from polysift.runtime.types import FloatArray

HEADER = "header.json"
MARK = b"polysift model sha256 "
DIGEST_BYTES = 64

MAX_MEMBERS = 2**16
MAX_DIRECTORY_BYTES = 2**24
"""More than so many members can need. As Python objects they take more memory than in a file."""
MAX_HEADER_BYTES = 2**26
MAX_HEADER_VALUES = 2**22

_MEMBER = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,95}\.npy")


class ModelFileError(ValueError):
    """A file that is no model, or one that cannot be used: damaged, or of a newer version.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import polysift
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "model.polysift"
    ...     _ = path.write_bytes(b"not a model")
    ...     try:
    ...         polysift.load(path)
    ...     except polysift.ModelFileError as error:
    ...         print(str(error).split(": ")[-1].split(".")[0])
    the mark at its end is missing
    """


def write_archive(path: Path, header: dict[str, Any], arrays: dict[str, FloatArray]) -> None:
    """Write a header and its arrays, with a list of them in the header; the file appears whole.

    Parameters
    ----------
    path : Path
        The file. One that is there is replaced.
    header : dict
        What JSON can hold.
    arrays : dict of str to ndarray
        The arrays of an ``Encoder``.
    """
    listed = {
        name: {
            "dtype": array.dtype.str,
            "shape": list(array.shape),
            "sha256": _digest(_npy(array)),
        }
        for name, array in arrays.items()
    }
    text = json.dumps(header | {"arrays": listed}, allow_nan=False).encode()
    _check_limits(text, len(arrays))
    with replacing(path) as partial:
        with ZipFile(partial, "w") as archive:
            _add(archive, HEADER, len(text), [text])
            for name, array in arrays.items():
                size = len(_npy_header(array.dtype, array.shape)) + array.nbytes
                _add(archive, name, size, _npy(array))
            archive.comment = MARK + bytes(DIGEST_BYTES)
        with open(partial, "rb+") as file:
            digest = _digest(_all_but_digest(file))
            file.seek(-DIGEST_BYTES, io.SEEK_END)
            file.write(digest.encode())


def _add(archive: ZipFile, name: str, size: int, chunks: Iterable[bytes | memoryview]) -> None:
    info = ZipInfo(name)  # of 1 January 1980
    info.file_size = size  # says whether it needs the wide fields of a large file
    info.create_system, info.external_attr = 3, 0o100644 << 16  # on every system the same
    with archive.open(info, "w") as member:
        for chunk in chunks:
            member.write(chunk)


def _check_limits(text: bytes, members: int) -> None:
    # Values take far more memory as Python objects than as text.
    many = sum(map(text.count, (b",", b"[", b"{"))) > MAX_HEADER_VALUES
    if len(text) > MAX_HEADER_BYTES or many or members >= MAX_MEMBERS:
        raise ModelFileError("has a header that is too large, or too many arrays")


def _npy_header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Return the beginning of an ``.npy`` file; numpy's own differs from version to version."""
    fields = f"{{'descr': {dtype.str!r}, 'fortran_order': False, 'shape': {shape!r}, }}"
    length = -(len(fields) + 11) % 64 + len(fields) + 1  # all in all a multiple of 64
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", length) + f"{fields:{length - 1}}\n".encode()


def _npy(array: FloatArray) -> Iterator[bytes | memoryview]:
    yield _npy_header(array.dtype, array.shape)
    yield from array_chunks(array)


def _all_but_digest(file: BinaryIO) -> Iterator[bytes]:
    left = file.seek(0, io.SEEK_END) - DIGEST_BYTES
    file.seek(0)
    while left > 0 and (chunk := file.read(min(left, CHUNK_BYTES))):
        left -= len(chunk)
        yield chunk


def _digest(chunks: Iterable[bytes | memoryview]) -> str:
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()


class ModelFile(io.BufferedReader):
    """A file that ``zipfile`` can be given: it takes a directory of any size in one go.

    Parameters
    ----------
    path : Path
        The file.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(io.FileIO(path))

    def read(self, size: int | None = -1, /) -> bytes:
        """Read as always, but not more than a model needs."""
        if size is not None and size > MAX_DIRECTORY_BYTES:
            raise ModelFileError("has a directory that is too large")
        return super().read(size)


@contextmanager
def _zip_errors() -> Iterator[None]:
    """Say in our words what ``zipfile`` finds; what the disk fails to do stays as it is."""
    try:
        yield
    except ModelFileError:
        raise
    except (BadZipFile, EOFError, OverflowError, RuntimeError, ValueError, struct.error) as error:
        raise ModelFileError(f"is not packed as save does it ({error!s:.200})") from None


class ArchiveReader:
    """An open model file, whose digest and layout are right.

    Parameters
    ----------
    file : ModelFile
        The file; it must stay open.

    Attributes
    ----------
    header : dict
        The header; what is in it is still to be checked.
    """

    def __init__(self, file: ModelFile) -> None:
        self._file = file
        comment = self._check_digest()
        with _zip_errors():
            self._zip = ZipFile(self._file)
            if self._zip.comment != comment:
                raise BadZipFile("something follows the end")
        self._members = self._checked_members()
        self.header = self._read_header()

    def _check_digest(self) -> bytes:
        length = self._file.seek(0, io.SEEK_END)
        self._file.seek(max(0, length - len(MARK) - DIGEST_BYTES))
        end = self._file.read()
        if end[:-DIGEST_BYTES] != MARK:
            raise ModelFileError(
                "is no model that polysift.save has written, or not all of it: the mark at its end "
                "is missing"
            )
        if _digest(_all_but_digest(self._file)).encode() != end[-DIGEST_BYTES:]:
            raise ModelFileError("is damaged: its checksum is wrong")
        return end

    def _checked_members(self) -> dict[str, ZipInfo]:
        """Return the members by their names: arrays behind a header, and all as they are."""
        infos = self._zip.infolist()
        left = self._file.seek(0, io.SEEK_END)
        for info in infos:
            left -= info.file_size
            if info.filename != HEADER and not _MEMBER.fullmatch(info.filename):
                raise ModelFileError(f"holds what no model has, {shortened(info.filename)}")
            packed = info.compress_type or info.flag_bits or info.compress_size != info.file_size
            if packed or info.header_offset < 0 or left < 0:
                raise ModelFileError(f"is not packed as save does it, at {info.filename!r}")
        members = {info.filename: info for info in infos}
        if len(members) < len(infos) or len(infos) > MAX_MEMBERS:
            raise ModelFileError("holds an array twice, or too many arrays")
        if not infos or infos[0].filename != HEADER or infos[0].header_offset:
            raise ModelFileError(f"does not begin with {HEADER}")
        return members

    def _read_header(self) -> dict[str, Any]:
        info = self._members[HEADER]
        if info.file_size > MAX_HEADER_BYTES:
            raise ModelFileError("has a header that is too large, or too many arrays")
        with _zip_errors(), self._zip.open(info) as member:
            text = b"".join(iter(lambda: member.read(CHUNK_BYTES), b""))
        _check_limits(text, len(self._members) - 1)
        try:
            header = json.loads(text, object_pairs_hook=_unique)
        except (ValueError, RecursionError) as error:
            raise ModelFileError(f"has a header that cannot be read ({error!s:.200})") from None
        if not isinstance(header, dict):
            raise ModelFileError("has a header that is no object")
        return header

    def arrays(self, listed: Any) -> dict[str, FloatArray]:
        """Return all arrays, which must be those of a list such as ``write_archive`` makes."""
        if not isinstance(listed, dict) or listed.keys() != self._members.keys() - {HEADER}:
            raise ModelFileError("holds other arrays than its header says")
        return {name: self._array(name, about) for name, about in listed.items()}

    def _array(self, name: str, about: Any) -> FloatArray:
        if not isinstance(about, dict) or about.keys() != {"dtype", "shape", "sha256"}:
            raise ModelFileError(f"does not say what {name!r} is")
        dtype, shape = checked_dtype(about["dtype"]), checked_shape(about["shape"])
        expected = _npy_header(dtype, shape)
        count, rest = divmod(self._members[name].file_size - len(expected), dtype.itemsize)
        wrong = ModelFileError(f"holds {name!r} of another shape or dtype than it says")
        if rest:
            raise wrong
        array = empty(shape, dtype, count)
        with _zip_errors(), self._zip.open(self._members[name]) as member:
            if member.read(len(expected)) != expected:
                raise wrong
            for chunk in array_chunks(array):
                member.readinto(chunk)  # type: ignore[attr-defined]
        if _digest(_npy(array)) != about["sha256"]:
            raise ModelFileError(f"is damaged: the checksum of {name!r} is wrong")
        return sound(array)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a key is there twice")
    return made
