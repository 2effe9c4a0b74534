"""``open_data``: files and frames as sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from polysift.data.arrow import ArrowSource, ipc_units, load_pyarrow, parquet_units, table_units
from polysift.data.columns import Column, Roles, resolve_names
from polysift.data.inputs import is_ray_dataset
from polysift.data.libsvm import parse_libsvm
from polysift.data.locations import FoundFiles, find, is_remote, local_path, public_name
from polysift.data.numpy_files import map_npy, matrix_source, open_npz
from polysift.data.source import ArraySource, DataSource
from polysift.data.text import ParsedText, parse_csv
from polysift.runtime.outputs import TemporaryFolder

FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".data": "csv",
    ".svm": "libsvm",
    ".libsvm": "libsvm",
    ".svmlight": "libsvm",
    ".npy": "npy",
    ".npz": "npz",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}

ONE_OF = f"one of {sorted(set(FORMATS.values()))}"

REQUESTS = 16
"""How many files are opened at once where each takes some round trips."""


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
        file that goes when the source does. A URI (``s3://``, ``gs://``, ``abfs://``, ``hdfs://``,
        whatever pyarrow knows) names a Parquet file, a folder or a glob in shared or object
        storage, with pyarrow's options: ``s3://bucket/part-*.parquet?region=eu-west-1``. Messages
        and ``origin`` show it without options and secrets. A Ray Dataset is executed once, with
        the order of its rows kept; they stay in Ray's object store, whose blocks go to whoever
        works on them.
    target : str or int, optional
        The column of the labels, by name or position (text that is no name, but a whole number, is
        a position); in an .npz archive, the array's name ("y" by
        default). libsvm text has its labels in place.
    weight : str or int, optional
        The column of the sample weights.
    columns : sequence of str or int, optional
        The features; by default all columns but target and weight.
    drop : sequence of str or int, default=()
        Instead of columns: what is no feature, such as a key.
    format : {"parquet", "csv", "libsvm", "npy", "npz", "arrow"}, optional
        By default told by the file's ending.
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
        return _open_frame(data, roles)
    found = find(data, filesystem)
    kind = _common_format(found, format)
    if kind == "parquet":
        return _open_parquet(found, roles)
    path = Path(found.names[0])
    if kind == "arrow":
        return _open_arrow(str(path), roles)
    if kind == "csv":
        parsed = parse_csv(
            path,
            roles=roles,
            header=header,
            delimiter=delimiter,
            column_types=column_types,
        )
        return _own(parsed, path)
    if kind == "libsvm":
        if roles.given:
            raise ValueError(
                f"{path}: libsvm text has its labels in place and no named columns; leave target, "
                "weight, columns and drop out."
            )
        return _own(parse_libsvm(path, n_features=n_features), path)
    if kind == "npy":
        return matrix_source(map_npy(path), str(path), roles)
    return open_npz(path, roles)


def format_of(path: str, given: str | None = None) -> str:
    """Return the format of a file: the given one, or what its ending tells."""
    if given is not None:
        return given
    if is_remote(path):
        return _by_ending(public_name(path)) or "parquet"
    path = local_path(path)
    kind = "parquet" if Path(path).is_dir() else _by_ending(path)
    if kind is None:
        raise ValueError(f"{path}: the ending does not tell the format. Pass format=, {ONE_OF}.")
    return kind


def _by_ending(name: str) -> str | None:
    return FORMATS.get(Path(name.lower().removesuffix(".gz")).suffix)


def _common_format(found: FoundFiles, given: str | None) -> str:
    """Return the format of files that are to be read as one."""
    if given is not None and given not in FORMATS.values():
        raise ValueError(f"format must be {ONE_OF}; got {given!r}.")
    first, others = found.names[0], len(found.names) - 1
    if found.storage is not None:
        kind = given or _by_ending(first) or "parquet"
        if kind != "parquet":
            raise ValueError(
                f"{first} is of format {kind}; from a URI or a filesystem, only Parquet is read. "
                "Convert it to Parquet, or copy it to a disk of this machine and open it there."
            )
        return kind
    kind = format_of(first, given)
    if kind != "parquet" and others:
        raise ValueError(
            f"{first} and {others} more are files of format {kind}; several files work for "
            "Parquet only. Open them one by one, or convert them."
        )
    return kind


def _open_frame(data: Any, roles: Roles) -> DataSource:
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
    return _arrow_source(table_units(table, "the table"), table.schema, roles)


def _open_parquet(found: FoundFiles, roles: Roles) -> DataSource:
    names, units, schema = found.names, [], None
    for name, fragment in zip(names, _fragments(found), strict=True):
        present = fragment.physical_schema
        if schema is not None and _columns_of(present) != _columns_of(schema):
            raise ValueError(_schema_difference(names[0], schema, name, present))
        schema = schema or present
        units += [replace(unit, file=name) for unit in parquet_units([fragment])]
    return _arrow_source(units, schema, roles)


def _fragments(found: FoundFiles) -> list[Any]:
    """Return Parquet files with their metadata, in order."""
    pa = load_pyarrow("dataset", "fs")
    storage, reader = found.storage, pa.dataset.ParquetFileFormat()
    filesystem = pa.fs.LocalFileSystem() if storage is None else storage.filesystem

    def opened(path: str, name: str) -> Any:
        try:
            fragment = reader.make_fragment(path, filesystem)
            fragment.ensure_complete_metadata()
        except (pa.ArrowInvalid, OSError) as error:
            if storage is not None and not storage.delivers(path):
                raise storage.address.unreachable(name, error) from None
            raise ValueError(f"{name} is not a readable Parquet file: {error}") from error
        return fragment

    if storage is None:
        return list(map(opened, found.paths, found.names))
    with ThreadPoolExecutor(REQUESTS) as pool:
        return list(pool.map(opened, found.paths, found.names))


def _columns_of(schema: Any) -> list[tuple[str, str]]:
    return [(field.name, str(field.type)) for field in schema]


def _schema_difference(first: str, one: Any, path: str, other: Any) -> str:
    for name in [*one.names, *other.names]:
        a = str(one.field(name).type) if name in one.names else "absent"
        b = str(other.field(name).type) if name in other.names else "absent"
        if a != b:
            return (
                f"The files differ in column {name!r}: {a} in {first}, {b} in {path}. Write them "
                "with the same columns and types."
            )
    return f"The files have their columns in different orders: {first} and {path}."


def _open_arrow(path: str, roles: Roles) -> DataSource:
    pa = load_pyarrow()

    try:
        units, schema = ipc_units(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f"{path} is not a readable Arrow IPC file: {error}") from error
    return _arrow_source(units, schema, roles)


def _arrow_source(units: list[Any], schema: Any, roles: Roles) -> DataSource:
    where = units[0].file if units else "the data"
    features, target, weight = resolve_names(schema.names, where, roles)
    return ArrowSource(units, schema, features, target, weight)


def _own(parsed: ParsedText, path: Path) -> DataSource:
    """Return the source of parsed text; its temporary folder goes when the matrix does."""
    owner = TemporaryFolder(parsed.folder)
    return ArraySource(
        parsed.X,
        parsed.names,
        parsed.labels,
        parsed.weights,
        owner=owner,
        disk=parsed.n_bytes,
        file=str(path),
    )
