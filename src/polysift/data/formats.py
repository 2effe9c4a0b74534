"""The table of file formats: how each is recognised, and what opens it.

This module imports nothing that takes time, so that the command line can list the formats at once;
the module that opens a format is imported when a file of that format is met.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import PurePath
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from polysift.data.columns import Column, Roles
    from polysift.data.kinds import ColumnType
    from polysift.data.locations import FoundFiles
    from polysift.data.source import DataSource


@dataclass(frozen=True)
class Format:
    """A file format.

    Attributes
    ----------
    endings : tuple of str
        The endings of its files' names, in lower case.
    opener : str
        The function that opens files, as "module.function" of ``polysift.data``. It takes
        ``FoundFiles`` and ``OpenOptions``, and returns a ``DataSource``.
    named : bool
        Whether its columns have names.
    several : bool
        Whether several files are read as one table.
    packed : bool
        Whether files may be compressed (``data.packing``).
    """

    endings: tuple[str, ...]
    opener: str
    named: bool = False
    several: bool = False
    packed: bool = False

    def open(self, found: FoundFiles, options: OpenOptions) -> DataSource:
        """Return files of this format as a source."""
        module, _, function = self.opener.rpartition(".")
        opener = getattr(import_module(f"polysift.data.{module}"), function)
        return cast("DataSource", opener(found, options))


@dataclass(frozen=True)
class OpenOptions:
    """What a user says about files; ``open_data`` describes the options.

    Attributes
    ----------
    roles : Roles
        Which column is what.
    types
        What features hold, by column, where a user or a model says so.
    header, delimiter, column_types, missing
        Options of CSV files.
    n_features
        An option of libsvm files.
    """

    roles: Roles
    types: Mapping[Column, ColumnType] = field(default_factory=dict)
    header: bool | None = None
    delimiter: str | None = None
    column_types: Mapping[Column, str] | None = None
    missing: tuple[str, ...] = ()
    n_features: int | None = None


PARQUET = "parquet"
"""The format of files in storage."""

FORMATS = {
    PARQUET: Format((".parquet", ".pq"), "parquet.open_parquet", named=True, several=True),
    "csv": Format(
        (".csv", ".tsv", ".txt", ".data"),
        "csv_files.open_csv",
        named=True,
        several=True,
        packed=True,
    ),
    "libsvm": Format((".svm", ".libsvm", ".svmlight"), "libsvm.open_libsvm", packed=True),
    "npy": Format((".npy",), "numpy_files.open_npy"),
    "npz": Format((".npz",), "numpy_files.open_npz"),
    "arrow": Format(
        (".arrow", ".feather", ".ipc"), "arrow_files.open_ipc", named=True, several=True
    ),
    "orc": Format((".orc",), "orc.open_orc", named=True, several=True),
    "jsonl": Format(
        (".jsonl", ".ndjson"), "json_lines.open_json_lines", named=True, several=True, packed=True
    ),
    "xlsx": Format((".xlsx", ".xlsm"), "excel.open_excel", named=True),
}
"""All formats, by the names that ``open_data`` and the command line call them."""

PACKED_ENDINGS = (".gz", ".bz2", ".zst", ".xz", ".zip")
"""The endings of compressed files."""


def packing_of(name: str) -> str | None:
    """Return the ending that says how a file is compressed; None for a plain one."""
    return next((ending for ending in PACKED_ENDINGS if name.lower().endswith(ending)), None)


def format_by_ending(name: str) -> str | None:
    """Return the name of the format by the ending of a file's name; or None.

    The ending of a compressed file comes before the one that says how it is compressed.
    """
    packing = packing_of(name)
    ending = PurePath(name.lower().removesuffix(packing or "")).suffix
    found = next((kind for kind, known in FORMATS.items() if ending in known.endings), None)
    return found if found is None or packing is None or FORMATS[found].packed else None
