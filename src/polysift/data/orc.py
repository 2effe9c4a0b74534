"""ORC files; stripes are decoded one by one."""

from __future__ import annotations

from functools import partial
from typing import Any

from polysift.data.arrow import load_pyarrow
from polysift.data.arrow_files import joined_source
from polysift.data.arrow_units import Unit
from polysift.data.checks import decoding
from polysift.data.formats import OpenOptions
from polysift.data.locations import FoundFiles
from polysift.data.source import DataSource


def open_orc(found: FoundFiles, options: OpenOptions) -> DataSource:
    """Return ORC files of equal columns as one source."""
    return joined_source(found.names, map(_stripes, found.names), options)


def _stripes(path: str) -> tuple[list[Unit], Any]:
    """Return one unit per stripe of a file, and its schema."""
    with decoding(f"{path} is not a readable ORC file"):
        file = load_pyarrow("orc").orc.ORCFile(path)
        counts = [file.read_stripe(i, columns=[]).num_rows for i in range(file.nstripes)]
        if sum(counts) != file.nrows:  # some versions do not count the rows without a column
            counts = [file.read_stripe(i).num_rows for i in range(file.nstripes)]
        schema = file.schema
    units, first = [], 0
    for i, rows in enumerate(counts):
        units.append(Unit(rows, path, first, partial(_load_stripe, path, i)))
        first += rows
    return units, schema


def _load_stripe(path: str, number: int, columns: list[str]) -> Any:
    pa = load_pyarrow("orc")
    batch = pa.orc.ORCFile(path).read_stripe(number, columns=columns)
    return pa.Table.from_batches([batch]).select(columns)
