"""``open_data``: files and tables as sources.

``formats`` has the table of file formats; here a format is chosen, and tables in memory are opened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from polysift.data.arrow import arrow_source, load_pyarrow, table_units
from polysift.data.columns import Column, Roles
from polysift.data.formats import FORMATS, PARQUET, OpenOptions, format_by_ending
from polysift.data.inputs import is_ray_dataset
from polysift.data.locations import FoundFiles, find, is_remote, local_path, public_name
from polysift.data.source import DataSource

ONE_OF_FORMATS = f"one of {sorted(FORMATS)}"


def open_data(
    data: Any,
    target: Column | None = None,
    weight: Column | None = None,
    columns: Sequence[Column] | None = None,
    *,
    drop: Sequence[Column] = (),
    format: str | None = None,  # noqa: A002 - the word users look for
    header: bool | None = None,
    delimiter: str | None = None,
    column_types: Mapping[Column, str] | None = None,
    n_features: int | None = None,
    filesystem: Any = None,
) -> DataSource:
    """Open data of any size; the result takes the place of X in every method of an estimator.

    Parameters
    ----------
    data : path or URI, or pandas or polars DataFrame, or pyarrow Table, or Ray Dataset
        A Parquet file, a folder or a glob of such files; CSV (also .gz); libsvm text (also .gz);
        .npy; .npz; Arrow IPC (also Feather). CSV and libsvm text are parsed once, into a temporary
        file that is removed with the source. A URI (``s3://``, ``gs://``, ``abfs://``, ``hdfs://``,
        whatever pyarrow knows) names a Parquet file, a folder or a glob in shared or object
        storage, with pyarrow's options: ``s3://bucket/part-*.parquet?region=eu-west-1``. Messages
        and ``origin`` show it without options and secrets. A Ray Dataset is executed once, with
        the order of its rows kept; they stay in Ray's object store, and each block goes to the
        worker that processes it.
    target : str or int, optional
        The column of the labels, by name or position (text that is not a name but a whole number is
        a position); in an .npz archive, the array's name ("y" by default). libsvm text has its
        labels in place.
    weight : str or int, optional
        The column of the sample weights.
    columns : sequence of str or int, optional
        The features; by default all columns but target and weight.
    drop : sequence of str or int, default=()
        Instead of columns: the columns that are not features, such as a key.
    format : {"parquet", "csv", "libsvm", "npy", "npz", "arrow"}, optional
        By default inferred from the file's ending.
    header : bool, optional
        CSV: whether the first row names the columns. By default inferred.
    delimiter : str, optional
        CSV: what separates fields. By default inferred.
    column_types : mapping of column to str, optional
        CSV: types of columns that are inferred wrongly, such as ``{"label": "string"}``.
    n_features : int, optional
        libsvm text: how many features there are, where the last ones do not occur in the file.
    filesystem : pyarrow.fs.FileSystem or fsspec.AbstractFileSystem, optional
        Where the files are; ``data`` is then a path in it, of Parquet as with a URI.

    Returns
    -------
    DataSource
        The data, with ``n_rows``, ``n_features``, ``names`` and ``dtype``.

    Examples
    --------
    >>> import pandas as pd
    >>> import polysift
    >>> frame = pd.DataFrame({"a": [0.0, 1.0, 2.0], "b": [1.0, 0.0, 1.0], "y": ["no", "no", "yes"]})
    >>> source = polysift.open_data(frame, target="y")
    >>> source.n_rows, source.names
    (3, ('a', 'b'))
    """
    roles = Roles(target, weight, columns, drop)
    if not isinstance(data, str | Path):
        if filesystem is not None:
            raise TypeError(f"filesystem goes with a path; data is a {type(data).__name__}.")
        return _open_table(data, roles)
    found = find(data, filesystem)
    options = OpenOptions(roles, header, delimiter, column_types, n_features)
    return FORMATS[_common_format(found, format)].open(found, options)


def format_of(path: str, given: str | None = None) -> str:
    """Return the name of a file's format: the given one, or the one of its ending."""
    if given is not None:
        return given
    if is_remote(path):
        return format_by_ending(public_name(path)) or PARQUET
    path = local_path(path)
    kind = PARQUET if Path(path).is_dir() else format_by_ending(path)
    if kind is None:
        raise ValueError(
            f"{path}: the format cannot be inferred from the ending. Pass format=, "
            f"{ONE_OF_FORMATS}."
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
    if kind != PARQUET and others:
        raise ValueError(
            f"{first} and {others} more are files of format {kind}; several files work for "
            "Parquet only. Open them one by one, or convert them."
        )
    return kind


def _open_table(data: Any, roles: Roles) -> DataSource:
    """Return a table in memory, or a Ray Dataset, as a source."""
    if is_ray_dataset(data):
        from polysift.cluster.ray_data import open_dataset  # no other reader needs a cluster

        return open_dataset(data, roles)
    pa = load_pyarrow()

    if type(data).__name__ == "LazyFrame":
        raise TypeError("open_data got a polars LazyFrame; pass .collect() of it.")
    if isinstance(data, pa.Table):
        table = data
    elif hasattr(data, "to_arrow"):  # polars
        table = data.to_arrow()
    elif hasattr(data, "dtypes") and hasattr(data, "columns"):  # pandas
        table = pa.Table.from_pandas(data, preserve_index=False)
    else:
        raise TypeError(
            "open_data takes a path, a pandas or polars DataFrame, a pyarrow Table, or a Ray "
            f"Dataset; got {type(data).__name__}. Arrays go to fit(X, y) directly."
        )
    return arrow_source(table_units(table, "the table"), table.schema, roles)
