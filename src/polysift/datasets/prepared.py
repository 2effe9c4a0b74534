"""Prepared data sets: tables of one common form, and how they compare with the published ones.

A prepared file is a table of attributes and labels -1 and +1, as Parquet or .npz. Its content is
compared with the published data (``deviations``) and with the paper (``printed_differences``).
"""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from polysift.data.arrow import load_pyarrow
from polysift.datasets.catalogue import Entry, Printed
from polysift.runtime.outputs import replacing
from polysift.runtime.types import FloatArray, IntArray

TARGET = "target"
"""The column of the labels."""

BLOCK_ROWS = 1 << 16
"""Rows that are read, written or digested at a time."""

NPZ_ERRORS = (ValueError, TypeError, OSError, EOFError, zipfile.BadZipFile, zlib.error)
"""What numpy raises for a file that is not an .npz file, or is damaged."""

SHOWN_NAMES = 9
"""How many names of columns a message lists."""


class DatasetError(OSError):
    """A data set is not at hand and cannot be fetched, or is not what it must be.

    Examples
    --------
    >>> from polysift import datasets
    >>> issubclass(datasets.DatasetError, OSError)
    True
    """


class Content(NamedTuple):
    """Rows, labels of -1 and +1, and the names of the attributes."""

    X: FloatArray
    y: IntArray
    names: tuple[str, ...]


def signs(labels: Any, where: str) -> IntArray:
    """Return two different labels as -1 and +1, the larger as +1; or raise a DatasetError."""
    values = np.asarray(labels).reshape(-1)
    found = np.unique(values)
    numbers = values.dtype.kind in "biuf" and bool(np.isfinite(found).all())
    if not numbers or len(found) != 2:
        raise DatasetError(
            f"{where} must hold the labels -1 and +1, or two other numbers; it holds {len(found)} "
            f"different values: {', '.join(map(repr, found[:5].tolist()))}."
        )
    return np.where(values == found[1], np.int8(1), np.int8(-1))


def read_prepared(path: Path, entry: Entry) -> Content:
    """Return the content of a .parquet or .npz file; or raise a DatasetError."""
    read = _read_parquet if path.suffix == ".parquet" else _read_npz
    return check_finite(read(path, entry), str(path))


def check_finite(content: Content, source: str) -> Content:
    """Return the content; or raise a DatasetError that names a value that is not finite."""
    for rows in _spans(len(content.X)):
        finite = np.isfinite(content.X[rows])
        if not finite.all():
            at, j = map(int, np.argwhere(~finite)[0])
            what = "a NaN or nothing" if np.isnan(content.X[rows][at, j]) else "an infinity"
            raise DatasetError(
                f"{source}: the attribute {content.names[j]!r} holds {what} in row "
                f"{rows.start + at:,} (counted from 0); the published data are finite numbers. "
                "Correct or replace the file."
            )
    return content


def _read_parquet(path: Path, entry: Entry) -> Content:
    pa = load_pyarrow("parquet")

    try:
        with pa.parquet.ParquetFile(path) as file:
            present = file.schema_arrow.names
            if len(set(present)) < len(present):
                twice = next(name for name in present if present.count(name) > 1)
                raise DatasetError(
                    f"{path} has the column {twice!r} more than once. Rename one, or leave it out."
                )
            names = _attributes([name for name in present if name != TARGET], path, entry)
            if TARGET not in present:
                more = ", ..." if len(present) > SHOWN_NAMES else ""
                raise DatasetError(
                    f"{path} must have a column {TARGET!r} with the labels; its columns are "
                    f"{', '.join(present[:SHOWN_NAMES])}{more}."
                )
            X = np.empty((file.metadata.num_rows, len(names)), dtype=_dtype(entry))
            y = np.empty(len(X))
            begin = 0
            for batch in file.iter_batches(BLOCK_ROWS, columns=[*names, TARGET]):
                end = begin + len(batch)
                for j, name in enumerate(names):
                    X[begin:end, j] = _numbers(batch, name, path)
                y[begin:end] = _numbers(batch, TARGET, path)
                begin = end
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, DatasetError):
            raise
        raise DatasetError(
            f"{path} is not a readable Parquet file: {error}. Replace or delete it."
        ) from error
    return Content(X, signs(y, f"{path}: {TARGET}"), tuple(names))


def _numbers(batch: Any, name: str, path: Path) -> Any:
    """Return a column as an array of numbers, where a null is NaN; or raise a DatasetError."""
    values = np.asarray(batch.column(name))
    try:
        if values.dtype.kind in "mM":
            raise TypeError(f"it holds {values.dtype}")
        return values if values.dtype.kind in "biuf" else values.astype(float)
    except (TypeError, ValueError) as error:
        raise DatasetError(
            f"{path}: the column {name!r} must hold numbers: {str(error).rstrip('.')}. Encode it "
            "as numbers, or replace the file."
        ) from error


def _read_npz(path: Path, entry: Entry) -> Content:
    try:
        # numpy itself leaves a damaged file open.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in ("X", "y", "names") if name in archive}
    except NPZ_ERRORS as error:
        raise DatasetError(
            f"{path} is not a readable .npz file: {error}. Replace or delete it."
        ) from error
    return from_arrays(arrays, path, entry)


def from_arrays(arrays: dict[str, Any], path: Path, entry: Entry) -> Content:
    """Return the content of a file of arrays: X, y, and names, where it has them."""
    if missing := [name for name in ("X", "y") if name not in arrays]:
        raise DatasetError(
            f"{path} must hold arrays X and y; it has no {' and no '.join(missing)}."
        )
    X, y = arrays["X"], signs(arrays["y"], f"{path}: y")
    if X.ndim != 2 or len(X) != len(y) or X.dtype.kind not in "biuf":
        raise DatasetError(
            f"{path}: X must be a matrix of numbers with a row for each of the {len(y)} labels of "
            f"y; it has shape {X.shape} and type {X.dtype}."
        )
    known = list(entry.features) if X.shape[1] == len(entry.features) else None
    given = arrays.get("names", known or [f"x{j}" for j in range(X.shape[1])])
    given = [str(name) for name in np.ravel(given)]
    if len(given) != X.shape[1] or len(set(given)) != len(given):
        raise DatasetError(
            f"{path}: names must hold a different name for each of the {X.shape[1]:,} columns of "
            f"X; it holds {len(given):,} names, {len(set(given)):,} of them different."
        )
    names = _attributes(given, path, entry)
    keep = [given.index(name) for name in names]
    if keep != list(range(X.shape[1])):
        X = X[:, keep]
    return Content(np.ascontiguousarray(X, dtype=_dtype(entry)), y, tuple(names))


def _attributes(present: list[str], path: Path, entry: Entry) -> list[str]:
    """Return the columns that are attributes: the catalogue's, where all of them are present."""
    if set(entry.features) <= set(present):
        return list(entry.features)
    names = [name for name in present if name not in entry.drop]
    if not names:
        raise DatasetError(f"{path} has no column of attributes.")
    return names


def _dtype(entry: Entry) -> Any:
    return np.float32 if entry.single else np.float64


def write_prepared(folder: Path, stem: str, content: Content) -> Path:
    """Write a table into a folder, as Parquet where pyarrow is installed, else as .npz."""
    try:
        pa = load_pyarrow("parquet")
    except ImportError:
        path = folder / f"{stem}.npz"
        with replacing(path) as file:
            np.savez(file, X=content.X, y=content.y, names=np.array(content.names))
        return path
    path = folder / f"{stem}.parquet"
    kind = pa.from_numpy_dtype(content.X.dtype)
    schema = pa.schema([*((name, kind) for name in content.names), (TARGET, pa.int8())])
    open_writer = pa.parquet.ParquetWriter
    with replacing(path) as file, open_writer(file, schema, compression="zstd") as writer:
        for rows in _spans(len(content.X)):
            columns = [*content.X[rows].T.copy(), content.y[rows]]
            writer.write_table(pa.table([pa.array(column) for column in columns], schema))
    return path


def digest(content: Content) -> str:
    """Return a SHA-256 of the rows as little-endian doubles, then of the labels, in their order."""
    sha = hashlib.sha256()
    for rows in _spans(len(content.X)):
        sha.update(np.ascontiguousarray(content.X[rows], dtype="<f8").data)
    sha.update(np.ascontiguousarray(content.y, dtype="i1").data)
    return sha.hexdigest()


def unordered_digest(content: Content) -> str:
    """Return a SHA-256 that does not depend on the order of the rows.

    It is that of the sorted digests of the rows, each with its label as a last double.
    """
    found: list[bytes] = []
    for rows in _spans(len(content.X)):
        table = np.column_stack([content.X[rows], content.y[rows]]).astype("<f8")
        found += [hashlib.sha256(row.data).digest() for row in table]
    return hashlib.sha256(b"".join(sorted(found))).hexdigest()


def _spans(n_rows: int) -> Iterator[slice]:
    return (slice(begin, begin + BLOCK_ROWS) for begin in range(0, n_rows, BLOCK_ROWS))


def count_classes(y: IntArray) -> tuple[int, int]:
    """Return the numbers of labels -1 and +1."""
    positive = int(np.count_nonzero(y == 1))
    return len(y) - positive, positive


def deviations(entry: Entry, content: Content, sha: str | None = None) -> tuple[str, ...]:
    """Return sentences on how data differ from the published ones, as far as those are known.

    The order of the rows does not count: publishers do not agree on it.
    """
    found = []
    counts, width = count_classes(content.y), content.X.shape[1]
    if width != len(entry.features):
        found.append(
            f"The data should have {len(entry.features):,} attributes; they have {width:,}."
        )
    if entry.counts is not None and counts != entry.counts:
        found.append(
            f"The published data have {sum(entry.counts):,} rows, {entry.counts[0]:,} of class -1 "
            f"and {entry.counts[1]:,} of class +1; these have {sum(counts):,}, {counts[0]:,} and "
            f"{counts[1]:,}."
        )
    if found or entry.digests is None or (sha or digest(content)) == entry.digests[0]:
        return tuple(found)
    if unordered_digest(content) == entry.digests[1]:
        return ()
    return ("Some values differ from the published ones.",)


def printed_differences(entry: Entry, content: Content) -> tuple[str, ...]:
    """Return sentences on where published data differ from the paper's tables."""
    if entry.printed is None:
        return ()
    printed, (m, d) = entry.printed, content.X.shape
    share = round(100 * max(count_classes(content.y)) / m, 2)
    facts: list[tuple[str, str, str, bool]] = [
        ("rows", f"{printed.rows:,} rows", f"{m:,}", m != printed.rows),
        ("attributes", f"{printed.attributes:,} attributes", f"{d:,}", d != printed.attributes),
        (
            "majority",
            f"{printed.majority} % of the rows in the larger class",
            f"{share} %",
            printed.majority not in (None, share),
        ),
    ]
    return tuple(
        f"The paper's Table {printed.table} prints {there}{_parts(printed, what)}; the data have "
        f"{here}{_reason(entry, what)}."
        for what, there, here, differs in facts
        if differs
    )


def _parts(printed: Printed, what: str) -> str:
    if what != "rows" or printed.parts is None:
        return ""
    train, valid, test = printed.parts
    return f" ({train:,} for training, {valid:,} for validation, {test:,} for test)"


def _reason(entry: Entry, what: str) -> str:
    return f": {entry.reasons[what]}" if what in entry.reasons else ""


def fixed_split(
    entry: Entry, m: int
) -> tuple[tuple[IntArray, IntArray, IntArray] | None, tuple[str, ...]]:
    """Return the paper's split, where the order of the rows defines it, and remarks on it."""
    printed = entry.printed
    if printed is None or printed.parts is None or not printed.ordered:
        return None, ()
    said: tuple[str, ...] = ()
    _, valid, test = printed.parts
    if m != printed.rows:
        valid, test = (round(m * part / printed.rows) for part in (valid, test))
        said = (
            f"The split has the paper's proportions: {m - valid - test:,} rows for training, "
            f"{valid:,} for validation, {test:,} for test, in the order of the file.",
        )
    train, validation, last = np.split(np.arange(m), [m - valid - test, m - test])
    return (train, validation, last), said
