"""``open_data``: files and frames as sources."""

from __future__ import annotations

import glob
import shutil
import tempfile
import weakref
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from polysift._arrow import ArrowSource, ipc_units, parquet_units, table_units
from polysift._data import ArraySource, DataSource, find_name
from polysift._libsvm import parse_libsvm
from polysift._text import ParsedText, parse_csv

Column = str | int

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
    format: str | None = None,  # noqa: A002 - the word users look for
    header: bool | None = None,
    delimiter: str | None = None,
    column_types: Mapping[Column, str] | None = None,
) -> DataSource:
    """Open data of any size; the result takes the place of X in every method of an estimator.

    Parameters
    ----------
    data : path, or pandas or polars DataFrame, or pyarrow Table
        A Parquet file, a folder or a glob of such files; CSV (also .gz); libsvm text (also .gz);
        .npy; .npz; Arrow IPC (also Feather). CSV and libsvm text are parsed once, into a temporary
        file that goes when the source does.
    target : str or int, optional
        The column of the labels, by name or position; in an .npz archive, the array's name ("y" by
        default). libsvm text has its labels in place.
    weight : str or int, optional
        The column of the sample weights.
    columns : sequence of str or int, optional
        The features; by default all columns but target and weight.
    format : {"parquet", "csv", "libsvm", "npy", "npz", "arrow"}, optional
        By default told by the file's ending.
    header : bool, optional
        CSV: whether the first row names the columns. By default inferred.
    delimiter : str, optional
        CSV: what separates fields. By default inferred.
    column_types : mapping of column to str, optional
        CSV: types of columns that are inferred wrongly, such as ``{"label": "string"}``.

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
    if not isinstance(data, str | Path):
        return _open_frame(data, target, weight, columns)
    paths = _find(str(data))
    kind = format or _kind(paths[0])
    if kind != "parquet" and len(paths) > 1:
        raise ValueError(
            f"{data} stands for {len(paths)} files of format {kind}; several files work for "
            "Parquet only. Open them one by one, or convert them."
        )
    if kind == "parquet":
        return _open_parquet(paths, target, weight, columns)
    if kind == "arrow":
        return _open_arrow(paths[0], target, weight, columns)
    path = Path(paths[0])
    if kind == "csv":
        parsed = parse_csv(
            path,
            target=target,
            weight=weight,
            columns=columns,
            header=header,
            delimiter=delimiter,
            column_types=column_types,
        )
        return _own(parsed)
    if kind == "libsvm":
        if target is not None or weight is not None or columns is not None:
            raise ValueError(
                f"{path}: libsvm text has its labels in place and no named columns; leave target, "
                "weight and columns out."
            )
        return _own(parse_libsvm(path))
    if kind == "npy":
        return _from_matrix(_map_npy(path), str(path), target, weight, columns)
    if kind == "npz":
        return _open_npz(path, target, weight, columns)
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


def _kind(path: str) -> str:
    name = path.lower().removesuffix(".gz")
    kind = FORMATS.get(Path(name).suffix)
    if kind is None:
        raise ValueError(
            f"{path}: the ending does not tell the format. Pass format=, one of "
            f"{sorted(set(FORMATS.values()))}."
        )
    return kind


def _open_frame(data: Any, target: Any, weight: Any, columns: Any) -> DataSource:
    import_pyarrow()
    import pyarrow as pa

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
    return _arrow_source(table_units(table, "the table"), table.schema, target, weight, columns)


def _open_parquet(paths: list[str], target: Any, weight: Any, columns: Any) -> DataSource:
    import_pyarrow()
    import pyarrow as pa
    import pyarrow.dataset as ds

    schema, fragments = None, []
    for path in paths:
        try:
            dataset = ds.dataset(path, format="parquet")
            pieces = list(dataset.get_fragments())
            for piece in pieces:
                piece.ensure_complete_metadata()
        except (pa.ArrowInvalid, OSError) as error:
            raise ValueError(f"{path} is not a readable Parquet file: {error}") from error
        if schema is not None and not dataset.schema.equals(schema):
            raise ValueError(_schema_difference(paths[0], schema, path, dataset.schema))
        schema = dataset.schema
        fragments += pieces
    return _arrow_source(parquet_units(fragments), schema, target, weight, columns)


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


def _open_arrow(path: str, target: Any, weight: Any, columns: Any) -> DataSource:
    import_pyarrow()
    import pyarrow as pa

    try:
        units, schema = ipc_units(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f"{path} is not a readable Arrow IPC file: {error}") from error
    return _arrow_source(units, schema, target, weight, columns)


def _arrow_source(
    units: list[Any], schema: Any, target: Any, weight: Any, columns: Any
) -> DataSource:
    where = units[0].file if units else "the data"
    features, target, weight = resolve_columns(schema.names, where, target, weight, columns)
    return ArrowSource(units, schema, features, target, weight)


def resolve_columns(
    names: Sequence[str],
    where: str,
    target: Column | None,
    weight: Column | None,
    columns: Sequence[Column] | None,
) -> tuple[list[str], str | None, str | None]:
    """Return the names of features, target and weight, each given by name or position."""

    def name_of(column: Column) -> str:
        if isinstance(column, str):
            return names[find_name(column, names, where)]
        if not -len(names) <= column < len(names):
            raise ValueError(
                f"There is no column number {column} in {where}, which has {len(names)} columns "
                "(counted from 0)."
            )
        return names[column]

    y = None if target is None else name_of(target)
    w = None if weight is None else name_of(weight)
    if columns is None:
        features = [name for name in names if name not in (y, w)]
    else:
        features = [name_of(column) for column in columns]
        for name, role in ((y, "target"), (w, "weight")):
            if name in features:
                raise ValueError(f"Column {name!r} is the {role}; take it out of columns.")
    if not features:
        raise ValueError(f"{where} leaves no column as a feature.")
    return features, y, w


def _own(parsed: ParsedText) -> DataSource:
    """Return the source of parsed text; its temporary folder goes when the matrix does."""
    owner = _Folder(parsed.folder)
    return ArraySource(
        parsed.X,
        parsed.names,
        parsed.labels,
        parsed.weights,
        owner=owner,
        disk=parsed.n_bytes,
    )


class _Folder:
    """A temporary folder that is removed with this object, or at the interpreter's end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._finalizer = weakref.finalize(self, shutil.rmtree, path, ignore_errors=True)


def _map_npy(path: Path) -> Any:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(f"{path} is not a readable .npy file: {error}") from error


def _open_npz(path: Path, target: Any, weight: Any, columns: Any) -> DataSource:
    folder = _Folder(Path(tempfile.mkdtemp(prefix="polysift-")))
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name.removesuffix(".npy") for name in archive.namelist()]
            arrays = {name: _map_member(archive, path, name, folder.path) for name in names}
    except (zipfile.BadZipFile, EOFError, OSError) as error:
        raise ValueError(f"{path} is not a readable .npz file: {error}") from error
    y_name = target if target is not None else ("y" if "y" in arrays else None)
    labels, weights = (
        None if name is None else arrays[names[find_name(str(name), names, str(path))]]
        for name in (y_name, weight)
    )
    tables = [name for name in names if arrays[name].ndim >= 2]
    chosen = "X" if "X" in tables else tables[0] if len(tables) == 1 else None
    if chosen is None:
        raise ValueError(
            f"{path} must hold one array of two dimensions, or one that is named X; its arrays are "
            f"{', '.join(f'{name} {arrays[name].shape}' for name in names)}."
        )
    X = arrays[chosen].reshape(len(arrays[chosen]), -1)
    for name, values in ((y_name, labels), (weight, weights)):
        if values is not None and values.shape != (len(X),):
            raise ValueError(
                f"{path}: {name} has shape {values.shape}, but {chosen} has {len(X)} rows."
            )
    _refuse_non_numeric(X, f"{path}: {chosen}")
    take = None if columns is None else np.array(list(columns), dtype=int)
    w = None if weights is None else np.asarray(weights, dtype=float)
    return ArraySource(X, None, labels, w, take=take, owner=folder)


def _map_member(archive: zipfile.ZipFile, path: Path, name: str, folder: Path) -> Any:
    """Map an array of an archive; one that is compressed is unpacked into the folder first."""
    info = archive.getinfo(f"{name}.npy")
    if info.compress_type == zipfile.ZIP_STORED:
        with archive.open(info) as member, open(path, "rb") as file:
            file.seek(info.header_offset + 26)
            lengths = np.frombuffer(file.read(4), dtype="<u2")
            begin = info.header_offset + 30 + int(lengths.sum())
            version = np.lib.format.read_magic(member)
            read = np.lib.format.read_array_header_1_0
            if version != (1, 0):
                read = np.lib.format.read_array_header_2_0
            shape, fortran, dtype = read(member)
            offset = begin + member.tell()
        if dtype.hasobject or 0 in shape:
            raise ValueError(f"{path}: the array {name} holds Python objects, or nothing.")
        return np.memmap(
            path, dtype, mode="r", offset=offset, shape=shape, order="F" if fortran else "C"
        )
    unpacked = folder / f"{len(list(folder.iterdir()))}.npy"
    with archive.open(info) as member, open(unpacked, "wb") as file:
        shutil.copyfileobj(member, file)
    return _map_npy(unpacked)


def _from_matrix(X: Any, where: str, target: Any, weight: Any, columns: Any) -> DataSource:
    """Return a source over a matrix whose columns have positions only."""
    if X.ndim != 2:
        raise ValueError(f"{where} must hold a matrix (rows x columns); its shape is {X.shape}.")
    _refuse_non_numeric(X, where)
    names = [str(j) for j in range(X.shape[1])]
    features, y, w = resolve_columns(names, where, target, weight, columns)
    take = None if features == names else np.array([int(name) for name in features])
    labels = None if y is None else np.array(X[:, int(y)])
    weights = None if w is None else np.array(X[:, int(w)], dtype=float)
    return ArraySource(X, None, labels, weights, take=take)


def _refuse_non_numeric(X: Any, where: str) -> None:
    if X.dtype.kind not in "biuf":
        raise ValueError(f"{where} must hold numbers; its type is {X.dtype}.")


def import_pyarrow() -> None:
    """Raise a clear error where pyarrow is missing."""
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "Reading this needs pyarrow. Install it with: pip install 'polysift[files]'"
        ) from error
