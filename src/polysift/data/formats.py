"""The table of file formats: how each is recognised, and what opens it.

This module imports nothing that takes time, so that the command line can list the formats at once;
the module that opens a format is imported when a file of that format is met.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import PurePath
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from polysift.data.columns import Column, Roles
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
    """

    endings: tuple[str, ...]
    opener: str
    named: bool = False

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
    header, delimiter, column_types
        Options of CSV files.
    n_features
        An option of libsvm files.
    """

    roles: Roles
    header: bool | None = None
    delimiter: str | None = None
    column_types: Mapping[Column, str] | None = None
    n_features: int | None = None


PARQUET = "parquet"
"""The format of folders and of files in storage, and the only one that is read from many files."""

FORMATS = {
    PARQUET: Format((".parquet", ".pq"), "parquet.open_parquet", named=True),
    "csv": Format((".csv", ".tsv", ".txt", ".data"), "csv_files.open_csv", named=True),
    "libsvm": Format((".svm", ".libsvm", ".svmlight"), "libsvm.open_libsvm"),
    "npy": Format((".npy",), "numpy_files.open_npy"),
    "npz": Format((".npz",), "numpy_files.open_npz"),
    "arrow": Format((".arrow", ".feather", ".ipc"), "arrow.open_ipc", named=True),
}
"""All formats, by the names that ``open_data`` and the command line call them."""


def format_by_ending(name: str) -> str | None:
    """Return the name of the format by the ending of a file's name, before a .gz; or None."""
    ending = PurePath(name.lower().removesuffix(".gz")).suffix
    return next((kind for kind, known in FORMATS.items() if ending in known.endings), None)
