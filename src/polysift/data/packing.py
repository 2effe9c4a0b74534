"""Compressed files: what is recognised by the ending of a name, and how it is opened."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zipfile
import zlib
from io import BufferedReader
from pathlib import Path
from typing import Any

from polysift.data.arrow import load_pyarrow
from polysift.data.formats import packing_of

ARROW_NAMES = {None: None, ".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
"""pyarrow's names of the ways to compress that it knows, by the ending of a file."""

DAMAGE = (EOFError, OSError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, NotImplementedError)
"""What is raised where a compressed file is damaged."""


def open_binary(path: Path) -> Any:
    """Open a file for reading bytes, decompressed."""
    packing = packing_of(path.name)
    if packing == ".gz":
        return gzip.open(path, "rb")
    if packing == ".bz2":
        return bz2.open(path, "rb")
    if packing == ".xz":
        return lzma.open(path, "rb")
    if packing == ".zst":
        return BufferedReader(load_pyarrow().input_stream(str(path), compression="zstd"))
    if packing == ".zip":
        archive = zipfile.ZipFile(path)
        try:
            return archive.open(_only_member(path, archive))
        except BaseException:
            archive.close()
            raise
    return path.open("rb")


def open_arrow_stream(path: Path) -> Any:
    """Open a file as a stream of pyarrow, decompressed."""
    packing = packing_of(path.name)
    if packing in ARROW_NAMES:
        return load_pyarrow().input_stream(str(path), compression=ARROW_NAMES[packing])
    return load_pyarrow().PythonFile(open_binary(path), "r")


def name_inside(path: Path) -> str:
    """Return the name of the table in an archive; of another file, its own."""
    if packing_of(path.name) != ".zip" or not path.is_file():
        return path.name
    try:
        with zipfile.ZipFile(path) as archive:
            return _only_member(path, archive)
    except zipfile.BadZipFile as error:
        raise ValueError(f"{path} is not a readable .zip archive: {error}.") from error


def _only_member(path: Path, archive: zipfile.ZipFile) -> str:
    """Return the name of the only file in an archive, or raise."""
    names = [
        name
        for name in archive.namelist()
        if not name.endswith("/") and not name.startswith("__MACOSX/")
    ]
    if len(names) != 1:
        raise ValueError(
            f"{path} must hold one table; it holds {len(names)} files: {', '.join(names[:5])}. "
            "Unpack it, and open what is wanted."
        )
    return names[0]
