"""``open_data``: files, tables of databases and tables in memory as sources.

``formats`` has the table of file formats; here a format is chosen, and tables in memory are opened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from polysift.data.arrow import load_pyarrow
from polysift.data.arrow_files import arrow_source
from polysift.data.arrow_units import table_units
from polysift.data.columns import Column, Roles, resolve_types
from polysift.data.databases import is_database, open_database
from polysift.data.formats import FORMATS, PARQUET, OpenOptions, format_by_ending
from polysift.data.inputs import is_ray_dataset
from polysift.data.kinds import DROP, asked_type, check_kinds
from polysift.data.locations import FoundFiles, find, is_remote, local_path, public_name
from polysift.data.memory_columns import array_column
from polysift.data.packing import name_inside
from polysift.data.source import DataSource

ONE_OF_FORMATS = f"one of {sorted(FORMATS)}"


def open_data(
    data: Any,
    target: Column | None = None,
    weight: Column | None = None,
    columns: Sequence[Column] | Mapping[Column, str] | None = None,
    *,
    drop: Sequence[Column] = (),
    format: str | None = None,  # noqa: A002 - the word users look for
    header: bool | None = None,
    delimiter: str | None = None,
    column_types: Mapping[Column, str] | None = None,
    missing: Sequence[str] = (),
    n_features: int | None = None,
    filesystem: Any = None,
) -> DataSource:
    """Open data of any size; the result takes the place of X in every method of an estimator.

    Parameters
    ----------
    data : path or URI, or pandas or polars DataFrame, or pyarrow Table, or Ray Dataset
        A file, or a folder or a glob of files with the same columns: Parquet, CSV, JSON lines
        (.jsonl, .ndjson), ORC, Arrow IPC (also Feather). A single file of libsvm text, .npy, .npz,
        or Excel (.xlsx, with one sheet). CSV, JSON lines and libsvm text may be compressed (.gz,
        .bz2, .xz, .zst, .zip with one table in it). Text is parsed once, into a temporary file
        that is removed with the source. A table of a database: ``duckdb:///path.db?table=name``,
        ``sqlite:///path.db?query=SELECT ...``. A URI (``s3://``, ``gs://``, ``abfs://``,
        ``hdfs://``, whatever pyarrow knows) names a Parquet file, a folder or a glob in shared or
        object storage, with pyarrow's options: ``s3://bucket/part-*.parquet?region=eu-west-1``.
        Messages and ``origin`` show it without options and secrets. A Ray Dataset is executed
        once, with the order of its rows kept; they stay in Ray's object store, and each block goes
        to the worker that processes it.
    target : str or int, optional
        The column of the labels, by name or position (text that is not a name but a whole number is
        a position); in an .npz archive, the array's name ("y" by default). libsvm text has its
        labels in place.
    weight : str or int, optional
        The column of the sample weights.
    columns : sequence of str or int, or mapping of column to kind, optional
        The features; by default all columns but target and weight. A mapping says what columns
        hold, "number", "category", "date" or "drop", such as ``{"zip": "category"}``; all others
        are features, too, and what they hold is found. "decimal comma" and "thousands comma" are
        numbers in text such as 1,200, which may be 1.2 or 1200; "day first" and "month first" are
        dates in text such as 1/2/2024.
    drop : sequence of str or int, default=()
        Instead of columns: the columns that are not features, such as a key.
    format : {"parquet", "csv", "libsvm", "npy", "npz", "arrow", "orc", "jsonl", "xlsx"}, optional
        By default inferred from the file's ending.
    header : bool, optional
        CSV, Excel: whether the first row names the columns. By default inferred.
    delimiter : str, optional
        CSV: what separates fields. By default inferred.
    column_types : mapping of column to str, optional
        CSV: types of columns that are inferred wrongly, such as ``{"label": "string"}``.
    missing : sequence of str, default=()
        Words in cells of text that stand for a missing value, beside the usual ones (empty,
        NA, NaN, null, ?, - and the like), such as ``["unknown", "-999"]``.
    n_features : int, optional
        libsvm text: how many features there are, where the last ones do not occur in the file.
    filesystem : pyarrow.fs.FileSystem or fsspec.AbstractFileSystem, optional
        Where the files are; ``data`` is then a path in it, of Parquet as with a URI.

    Returns
    -------
    DataSource
        The data, with ``n_rows``, ``n_features``, ``names`` and ``dtype``; ``types`` says what the
        columns hold, and ``notes`` what had to be decided to read them.

    Examples
    --------
    >>> import pandas as pd
    >>> import polysift
    >>> frame = pd.DataFrame({"a": [0.0, 1.0, 2.0], "b": [1.0, 0.0, 1.0], "y": ["no", "no", "yes"]})
    >>> source = polysift.open_data(frame, target="y")
    >>> source.n_rows, source.names
    (3, ('a', 'b'))
    """
    kinds = check_kinds(columns) if isinstance(columns, Mapping) else {}
    if isinstance(columns, Mapping):
        drop = [*drop, *(column for column, kind in kinds.items() if kind == DROP)]
        columns = None
    if isinstance(missing, str):
        raise ValueError(f"missing must be a list of words; got {missing!r}. Pass [{missing!r}].")
    options = OpenOptions(
        Roles(target, weight, columns, drop),
        {column: asked_type(kind) for column, kind in kinds.items() if kind != DROP},
        header=header,
        delimiter=delimiter,
        column_types=column_types,
        missing=tuple(missing),
        n_features=n_features,
    )
    return open_with(data, options, format=format, filesystem=filesystem)


def open_with(
    data: Any,
    options: OpenOptions,
    *,
    format: str | None = None,  # noqa: A002 - as open_data
    filesystem: Any = None,
) -> DataSource:
    """Open data as ``open_data`` does, with what is said about them in one object."""
    source = _opened(data, options, format, filesystem)
    label = options.roles.target
    source.label = None if label is None else str(label)
    return source


def _opened(data: Any, options: OpenOptions, given: str | None, filesystem: Any) -> DataSource:
    """Open data by what they are: a table in memory, a database or files."""
    if not isinstance(data, str | Path):
        if filesystem is not None:
            raise TypeError(f"filesystem goes with a path; data is a {type(data).__name__}.")
        return _open_table(data, options)
    if filesystem is None and is_database(str(data)):
        return open_database(str(data), options)
    found = find(data, filesystem)
    return FORMATS[_common_format(found, given)].open(found, options)


def has_names(path: str, given: str | None = None) -> bool:
    """Return whether the columns of data have names, as far as the format says."""
    return is_database(path) or FORMATS[format_of(path, given)].named


def format_of(path: str, given: str | None = None) -> str:
    """Return the name of a file's format: the given one, or the one of its ending."""
    if given is not None:
        return given
    if is_remote(path):
        return format_by_ending(public_name(path)) or PARQUET
    path = local_path(path)
    if Path(path).is_dir():
        path = find(path).names[0]
    kind = format_by_ending(path) or format_by_ending(name_inside(Path(path)))
    if kind is None:
        endings = ", ".join(ending for known in FORMATS.values() for ending in known.endings)
        raise ValueError(
            f"{path}: the format cannot be inferred from the ending; known are {endings}, for text "
            f"also with .gz, .bz2, .xz, .zst or .zip. Pass format=, {ONE_OF_FORMATS}."
        )
    return kind


def _common_format(found: FoundFiles, given: str | None) -> str:
    """Return the name of the format of files that are read as one."""
    if given is not None and given not in [*FORMATS]:
        raise ValueError(f"format must be {ONE_OF_FORMATS}; got {given!r}.")
    first, others = found.names[0], len(found.names) - 1
    if found.storage is not None:
        kind = given or format_by_ending(first) or PARQUET
        if kind != PARQUET:
            raise ValueError(
                f"{first} is of format {kind}; from a URI or a filesystem, only Parquet is read. "
                "Convert it to Parquet, or copy it to a disk of this machine and open it there."
            )
        return kind
    kind = format_of(first, given)
    if others and not FORMATS[kind].several:
        many = ", ".join(name for name, known in FORMATS.items() if known.several)
        raise ValueError(
            f"{first} and {others} more are files of format {kind}; several files are read of "
            f"{many}. Open them one by one, or convert them."
        )
    for name in found.names if given is None and kind != PARQUET else ():
        if format_of(name) != kind:
            raise ValueError(
                f"{first} is of format {kind}, and {name} of format {format_of(name)}. Name files "
                "of one format, or pass format=."
            )
    return kind


def _open_table(data: Any, options: OpenOptions) -> DataSource:
    """Return a table in memory, or a Ray Dataset, as a source."""
    if is_ray_dataset(data):
        from polysift.cluster.ray_data import open_dataset  # no other reader needs a cluster

        source = open_dataset(data, options.roles)
        names = source.names or ()
        return source.retyped(resolve_types(options.types, names, names, "the Dataset"))
    pa = load_pyarrow()

    if type(data).__name__ == "LazyFrame":
        raise TypeError("open_data got a polars LazyFrame; pass .collect() of it.")
    if isinstance(data, pa.Table):
        table = data
    elif hasattr(data, "to_arrow"):  # polars
        table = data.to_arrow()
    elif hasattr(data, "dtypes") and hasattr(data, "columns"):  # pandas
        table = _pandas_table(data)
    else:
        raise TypeError(
            "open_data takes a path, a pandas or polars DataFrame, a pyarrow Table, or a Ray "
            f"Dataset; got {type(data).__name__}. Arrays go to fit(X, y) directly."
        )
    return arrow_source(table_units(table, "the table"), table.schema, options)


def _pandas_table(frame: Any) -> Any:
    """Return a pandas frame as an Arrow table; cells of several types in a column become words."""
    pa = load_pyarrow()
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        mixed = {}
        for name, kind in frame.dtypes.items():
            found = array_column(frame[name].to_numpy()) if str(kind) == "object" else None
            if found is not None and found.codes is not None:
                words = [*found.words, None]  # the last is for -1
                mixed[name] = [words[code] for code in found.codes]
        return pa.Table.from_pandas(frame.assign(**mixed), preserve_index=False)
