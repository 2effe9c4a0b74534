"""Excel workbooks with one sheet; the first row names the columns."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from polysift.data.checks import decoding
from polysift.data.formats import OpenOptions
from polysift.data.locations import FoundFiles
from polysift.data.source import DataSource
from polysift.data.spooled import cell_source

BLOCK_ROWS = 2**12
"""How many rows of a sheet are decoded at a time."""


def open_excel(found: FoundFiles, options: OpenOptions) -> DataSource:
    """Return the sheet of a workbook as a source."""
    path = found.single
    header = options.header is not False
    absent = {"", *options.missing}
    with closing(_rows(path)) as rows:
        first = list(next(rows, ()))
    while first and first[-1] is None:
        first.pop()
    if not first:
        raise ValueError(f"{path} is empty. Its first row must name the columns.")
    names = [str(name if header and name is not None else j) for j, name in enumerate(first)]

    def cells() -> Iterator[list[Any]]:
        with closing(_rows(path)) as rows:
            for row in islice(rows, int(header), None):
                padded = [*row[: len(names)], *(None,) * (len(names) - len(row))]
                if any(cell is not None for cell in padded):  # others are only formatted
                    yield [
                        None if isinstance(cell, str) and cell.strip() in absent else cell
                        for cell in padded
                    ]

    return cell_source(str(path), names, cells, options)


def _rows(path: Path) -> Generator[tuple[Any, ...]]:
    """Yield the rows of the only sheet of a workbook."""
    try:
        openpyxl = import_module("openpyxl")
    except ImportError as error:
        raise ImportError(
            f"{path}: reading Excel files needs openpyxl. Install it with: pip install "
            "'polysift[formats]'"
        ) from error
    with path.open("rb") as file:
        with _decoding(path):
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
        if len(book.worksheets) != 1:
            raise ValueError(
                f"{path} must have one sheet; it has {len(book.worksheets)}: "
                f"{', '.join(book.sheetnames[:10])}. Save the one that is wanted as a file."
            )
        rows = book.worksheets[0].iter_rows(values_only=True)
        while True:
            with _decoding(path):
                block = list(islice(rows, BLOCK_ROWS))
            if not block:
                return
            yield from block


@contextmanager
def _decoding(path: Path) -> Iterator[None]:
    with decoding(f"{path} is not a readable Excel workbook"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on styles and the like, which are not read
        yield
