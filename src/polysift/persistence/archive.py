"""The container of a model file: a header and arrays in an ordinary zip, read without trust.

The zip holds ``header.json``, then the arrays as ``.npy``; none is compressed, and no times are
kept. Its comment, which is the end of the file, is a signature and the digest of all bytes before
the digest. What a file claims about its arrays is checked before memory is allocated for them
(``runtime.arrays``).
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from reprlib import repr as shortened
from typing import IO, Any, BinaryIO
from zipfile import BadZipFile, ZipFile, ZipInfo

from polysift.runtime.arrays import ArrayHeader, Sink, checked_values, fill_array, send_array
from polysift.runtime.outputs import CHUNK_BYTES, replacing
from polysift.runtime.types import FloatArray

HEADER = "header.json"
SIGNATURE = b"polysift model sha256 "
DIGEST_CHARACTERS = 64

MAX_MEMBERS = 2**16
MAX_DIRECTORY_BYTES = 2**24
"""More than so many members need. As Python objects they take more memory than in a file."""
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
    the signature at its end is missing
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
        name: ArrayHeader.of(array).to_json() | {"sha256": _npy_digest(array)}
        for name, array in arrays.items()
    }
    text = json.dumps(header | {"arrays": listed}, allow_nan=False).encode()
    _check_limits(text, len(arrays))
    with replacing(path) as file:
        with ZipFile(file, "w") as archive:
            with _member(archive, HEADER, len(text)) as member:
                member.write(text)
            for name, array in arrays.items():
                size = len(npy_header(ArrayHeader.of(array))) + array.nbytes
                with _member(archive, name, size) as member:
                    send_npy(array, member.write)
            archive.comment = SIGNATURE + bytes(DIGEST_CHARACTERS)
        digest = _file_digest(file)
        file.seek(-DIGEST_CHARACTERS, io.SEEK_END)
        file.write(digest)


def _member(archive: ZipFile, name: str, size: int) -> IO[bytes]:
    """Return a new member of a zip, open for writing; its bytes depend on its content alone."""
    info = ZipInfo(name)  # of 1 January 1980
    info.file_size = size  # decides whether it needs the wide fields of a large file
    info.create_system, info.external_attr = 3, 0o100644 << 16  # the same on every system
    return archive.open(info, "w")


def _check_limits(text: bytes, members: int) -> None:
    # Values take far more memory as Python objects than as text.
    many = sum(map(text.count, (b",", b"[", b"{"))) > MAX_HEADER_VALUES
    if len(text) > MAX_HEADER_BYTES or many or members >= MAX_MEMBERS:
        raise ModelFileError("has a header that is too large, or too many arrays")


def npy_header(header: ArrayHeader) -> bytes:
    """Return the beginning of an ``.npy`` file; numpy's own differs from version to version."""
    dtype, shape = header.dtype.str, header.shape
    fields = f"{{'descr': {dtype!r}, 'fortran_order': False, 'shape': {shape!r}, }}"
    length = -(len(fields) + 11) % 64 + len(fields) + 1  # all in all a multiple of 64
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", length) + f"{fields:{length - 1}}\n".encode()


def send_npy(array: FloatArray, sink: Sink) -> None:
    """Pass an array to a sink as the content of an ``.npy`` file."""
    sink(memoryview(npy_header(ArrayHeader.of(array))))
    send_array(array, sink)


def _npy_digest(array: FloatArray) -> str:
    digest = hashlib.sha256()
    send_npy(array, digest.update)
    return digest.hexdigest()


def _file_digest(file: BinaryIO) -> bytes:
    """Return the digest of a model file, which is that of all bytes before it."""
    digest = hashlib.sha256()
    left = file.seek(0, io.SEEK_END) - DIGEST_CHARACTERS
    file.seek(0)
    while left > 0 and (chunk := file.read(min(left, CHUNK_BYTES))):
        left -= len(chunk)
        digest.update(chunk)
    return digest.hexdigest().encode()


class ModelFile(io.BufferedReader):
    """A file whose reads are bounded, since ``zipfile`` reads a directory of any size at once.

    Parameters
    ----------
    path : Path
        The file.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(io.FileIO(path))

    def read(self, size: int | None = -1, /) -> bytes:
        """Read as any file does, but no more at once than a model file needs."""
        if size is not None and size > MAX_DIRECTORY_BYTES:
            raise ModelFileError("has a directory that is too large")
        return super().read(size)


@contextmanager
def _zip_errors() -> Iterator[None]:
    """Turn what ``zipfile`` finds into a ``ModelFileError``; the disk's own errors stay."""
    try:
        yield
    except ModelFileError:
        raise
    except (BadZipFile, EOFError, OverflowError, RuntimeError, ValueError, struct.error) as error:
        raise ModelFileError(f"is not packed as save does it ({error!s:.200})") from None


class ArchiveReader:
    """An open model file whose digest and layout were checked.

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
        self._length = file.seek(0, io.SEEK_END)
        comment = self._check_digest()
        with _zip_errors():
            self._zip = ZipFile(self._file)
            if self._zip.comment != comment:
                raise BadZipFile("something follows the end")
        self._members = self._checked_members()
        self.header = self._read_header()

    def _check_digest(self) -> bytes:
        self._file.seek(max(0, self._length - len(SIGNATURE) - DIGEST_CHARACTERS))
        end = self._file.read()
        if end[:-DIGEST_CHARACTERS] != SIGNATURE:
            raise ModelFileError(
                "is no model that polysift.save has written, or not all of it: the signature at "
                "its end is missing"
            )
        if _file_digest(self._file) != end[-DIGEST_CHARACTERS:]:
            raise ModelFileError("is damaged: its checksum is wrong")
        return end

    def _checked_members(self) -> dict[str, ZipInfo]:
        """Return the members by name: a header, then arrays, all uncompressed."""
        infos, left = self._zip.infolist(), self._length
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
        header = ArrayHeader.from_json(about["dtype"], about["shape"])
        expected = npy_header(header)
        size = self._members[name].file_size - len(expected)
        wrong = ModelFileError(f"holds {name!r} of another shape or dtype than it says")
        if size != header.nbytes or header.dtype.itemsize > self._length:
            raise wrong  # an array of no items is small, but what numpy makes of one need not be
        array, digest = header.allocate(size), hashlib.sha256(expected)
        with _zip_errors(), self._zip.open(self._members[name]) as member:
            if member.read(len(expected)) != expected:
                raise wrong
            fill_array(array, member, digest.update)
        if digest.hexdigest() != about["sha256"]:
            raise ModelFileError(f"is damaged: the checksum of {name!r} is wrong")
        return checked_values(array)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a key is there twice")
    return made
