"""Parquet: one file or many, on this machine or in storage; row groups are decoded one by one."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

from polysift.data.arrow import load_pyarrow
from polysift.data.arrow_files import columns_of_schema, joined_source
from polysift.data.arrow_units import PIECE_ROWS, Unit
from polysift.data.checks import decoding
from polysift.data.formats import OpenOptions
from polysift.data.locations import FoundFiles
from polysift.data.source import DataSource
from polysift.runtime.outputs import CHUNK_BYTES

BUFFER_BYTES = 2**18
"""What is read at once of a column of a row group that is decoded in pieces."""

CONCURRENT_REQUESTS = 16
"""How many files in storage are opened at once, since each takes some round trips."""


def open_parquet(found: FoundFiles, options: OpenOptions) -> DataSource:
    """Return Parquet files of equal columns as one source."""
    files = (
        (_row_groups(fragment, name), fragment.physical_schema)
        for name, fragment in zip(found.names, _fragments(found), strict=True)
    )
    return joined_source(found.names, files, options)


def _fragments(found: FoundFiles) -> list[Any]:
    """Return the files as fragments of a pyarrow dataset, with their metadata, in order."""
    pa = load_pyarrow("dataset", "fs")
    storage, reader = found.storage, pa.dataset.ParquetFileFormat()
    filesystem = pa.fs.LocalFileSystem() if storage is None else storage.filesystem

    def opened(path: str, name: str) -> Any:
        with decoding(f"{name} is not a readable Parquet file"):
            try:
                fragment = reader.make_fragment(path, filesystem)
                fragment.ensure_complete_metadata()
                columns_of_schema(fragment.physical_schema)  # their names may be no text
                return fragment
            except OSError as error:
                if storage is None or storage.delivers(path):
                    raise
                failure = error
        raise storage.address.unreachable(name, failure) from None

    if storage is None:
        return list(map(opened, found.paths, found.names))
    with ThreadPoolExecutor(CONCURRENT_REQUESTS) as pool:
        return list(pool.map(opened, found.paths, found.names))


def _row_groups(fragment: Any, name: str) -> list[Unit]:
    """Return one unit per row group of a file, which messages call ``name``.

    The units share the fragment, which a pickle holds once and without its footer: another process
    reads the footer once, not once per row group.
    """
    units, first = [], 0
    for group in fragment.row_groups:
        load = partial(_load_row_group, fragment, group.id)
        unit = Unit(group.num_rows, name, first, load)
        if group.num_rows > PIECE_ROWS:
            unit = replace(unit, load_pieces=partial(_row_group_pieces, fragment, group.id))
        units.append(unit)
        first += group.num_rows
    return units


def _load_row_group(file: Any, number: int, columns: list[str]) -> Any:
    """Load a row group; raise ArrowInvalid where its bytes are damaged, and only then.

    pyarrow raises OSError for damaged pages as for a lost connection. So the bytes are requested
    once more: if they arrive and still cannot be decoded, they are damaged.
    """
    import pyarrow as pa

    def table() -> Any:
        return file.subset(row_group_ids=[number]).to_table(columns=columns)

    try:
        return table()
    except FileNotFoundError:
        raise
    except OSError:
        if not _is_delivered(file):
            raise
    try:
        return table()
    except OSError as error:
        raise pa.ArrowInvalid(str(error).strip()) from error


def _row_group_pieces(file: Any, number: int, columns: list[str]) -> Iterator[Any]:
    """Yield a row group as tables of some rows; what is raised is as in ``_load_row_group``."""
    import pyarrow as pa

    done = 0
    for again in (False, True):
        pieces = enumerate(_pieces(file, number, columns))
        try:
            for at, piece in pieces:
                if at == done:
                    done += 1
                    yield piece
            return
        except FileNotFoundError:
            raise
        except OSError as error:
            if not _is_delivered(file):
                raise
            if again:
                raise pa.ArrowInvalid(str(error).strip()) from error


def _pieces(file: Any, number: int, columns: list[str]) -> Iterator[Any]:
    pa = load_pyarrow("parquet")
    with (
        file.filesystem.open_input_file(file.path) as stored,
        pa.parquet.ParquetFile(stored, metadata=file.metadata, buffer_size=BUFFER_BYTES) as reader,
    ):
        for batch in reader.iter_batches(PIECE_ROWS, row_groups=[number], columns=columns):
            yield pa.Table.from_batches([batch]).select(columns)


def _is_delivered(file: Any) -> bool:
    """Return whether all bytes of a file can be read, decodable or not.

    Where a row group begins and ends is not asked for: what a damaged footer says of its columns
    can end the process.
    """
    try:
        with file.filesystem.open_input_stream(file.path) as stored:
            while stored.read(CHUNK_BYTES):
                pass
    except OSError:
        return False
    return True
