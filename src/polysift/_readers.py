"""``open_data``: files and frames as sources."""

from __future__ import annotations

import glob
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from polysift._arrow import ArrowSource, ipc_units, load_pyarrow, parquet_units, table_units
from polysift._columns import Column, Roles, resolve_names
from polysift._data import ArraySource, DataSource
from polysift._libsvm import parse_libsvm
from polysift._numpy_files import TemporaryFolder, map_npy, matrix_source, open_npz
from polysift._parsing import ParsedText
from polysift._text import parse_csv

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
) -> DataSource:
    """Open data of any size; the result takes the place of X in every method of an estimator.

    Parameters
    ----------
    data : path, or pandas or polars DataFrame, or pyarrow Table
        A Parquet file, a folder or a glob of such files; CSV (also .gz); libsvm text (also .gz);
        .npy; .npz; Arrow IPC (also Feather). CSV and libsvm text are parsed once, into a temporary
        file that goes when the source does.
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
        return _open_frame(data, roles)
    paths = _find(str(data))
    kind = format_of(paths[0], format)
    if kind != "parquet" and len(paths) > 1:
        raise ValueError(
            f"{data} stands for {len(paths)} files of format {kind}; several files work for "
            "Parquet only. Open them one by one, or convert them."
        )
    if kind == "parquet":
        return _open_parquet(paths, roles)
    if kind == "arrow":
        return _open_arrow(paths[0], roles)
    path = Path(paths[0])
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
    if kind == "npz":
        return open_npz(path, roles)
    raise ValueError(f"format must be one of {sorted(set(FORMATS.values()))}; got {kind!r}.")


def _find(pattern: str) -> list[str]:
    """Return the files that a path, a folder or a glob stands for."""
    path = Path(pattern)
    if path.is_dir():
        found = sorted(str(p) for p in path.rglob("*.parquet"))
        if not found:
            raise FileNotFoundError(f"The folder {pattern} holds no .parquet files.")
        return found
    if path.exists():
        if path.stat().st_size == 0:
            raise ValueError(f"{pattern} is empty.")
        return [pattern]
    if glob.has_magic(pattern):
        found = sorted(glob.glob(pattern, recursive=True))
        if not found:
            raise FileNotFoundError(f"No file matches {pattern}.")
        return found
    raise FileNotFoundError(f"There is no file {pattern}.")


def format_of(path: str, given: str | None = None) -> str:
    """Return the format of a file: the given one, or what its ending tells."""
    if given is not None:
        return given
    if Path(path).is_dir():
        return "parquet"
    kind = FORMATS.get(Path(path.lower().removesuffix(".gz")).suffix)
    if kind is None:
        raise ValueError(
            f"{path}: the ending does not tell the format. Pass format=, one of "
            f"{sorted(set(FORMATS.values()))}."
        )
    return kind


def _open_frame(data: Any, roles: Roles) -> DataSource:
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
            "open_data takes a path, a pandas or polars DataFrame, or a pyarrow Table; got "
            f"{type(data).__name__}. Arrays go to fit(X, y) directly."
        )
    return _arrow_source(table_units(table, "the table"), table.schema, roles)


def _open_parquet(paths: list[str], roles: Roles) -> DataSource:
    pa = load_pyarrow("dataset")

    schema, fragments = None, []
    for path in paths:
        try:
            dataset = pa.dataset.dataset(path, format="parquet")
            pieces = list(dataset.get_fragments())
            for piece in pieces:
                piece.ensure_complete_metadata()
        except (pa.ArrowInvalid, OSError) as error:
            raise ValueError(f"{path} is not a readable Parquet file: {error}") from error
        if schema is not None and _columns_of(dataset.schema) != _columns_of(schema):
            raise ValueError(_schema_difference(paths[0], schema, path, dataset.schema))
        schema = schema or dataset.schema
        fragments += pieces
    return _arrow_source(parquet_units(fragments), schema, roles)


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
