"""Tables of Arrow: IPC files and streams, Feather and Parquet, beside what pyarrow reads."""

from __future__ import annotations

import io
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from fuzzers.cases import ACCEPTED, REFUSED, Case, Target, require
from fuzzers.mutations import mutated
from fuzzers.reading import Rows, read

KINDS = ("float64", "float64", "float64", "float32", "float16", "int8", "uint64", "bool_", "string")
KINDS += ("null", "date32", "decimal", "dictionary", "list", "struct", "binary", "timestamp")
NAMES = ("a", "b", "y", "", "a", "é", "\x1b[31m", "0", "a.b", "x" * 300)


def _column(rng: Random, kind: str, n: int, forged: bool) -> Any:
    """Return a column of a type, with some nulls; ``forged`` ones may point beyond their words."""
    import pyarrow as pa

    numbers = [rng.randrange(100) if rng.random() > 0.02 else None for _ in range(n)]
    if kind == "null":
        return pa.nulls(n)
    if kind == "decimal":
        return pa.array(numbers, pa.int64()).cast(pa.decimal128(21, 2))
    if kind == "dictionary":
        codes = np.array([rng.randrange(2) for _ in range(n)], np.int8)
        if n and forged and rng.random() < 0.2:
            codes[rng.randrange(n)] = rng.choice((2, -1, 100))
        return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(["no", "yes"]), safe=False)
    if kind == "list":
        return pa.array([[1.0]] * n, pa.list_(pa.float64()))
    if kind == "struct":
        return pa.array([{"a": 1}] * n, pa.struct([("a", pa.int8())]))
    if kind in ("string", "binary"):
        return pa.array([rng.choice(("no", "yes")) for _ in range(n)]).cast(getattr(pa, kind)())
    if kind == "date32":
        return pa.array(numbers, pa.int32()).cast(pa.date32())
    if kind == "timestamp":
        return pa.array(numbers, pa.int64()).cast(pa.timestamp("s"))
    if kind == "bool_":
        return pa.array([v if v is None else v > 50 for v in numbers])
    made = [None if v is None else np.float16(v) for v in numbers] if kind == "float16" else numbers
    return pa.array(made, getattr(pa, kind)())


def _table(rng: Random, forged: bool) -> Any:
    """Return a table, most often one of plain numbers and a column of labels, y."""
    import pyarrow as pa

    n, plain = rng.choice((0, 1, 8, 30)), rng.random() < 0.6
    kinds = ["float64"] * 2 if plain else [rng.choice(KINDS) for _ in range(rng.randrange(4))]
    names = ["a", "b"] if plain else [rng.choice(NAMES) for _ in kinds]
    columns = [_column(rng, kind, n, forged) for kind in kinds]
    label = rng.choice(
        ("string", "dictionary", "dictionary", "int8", "bool_", "float64", "list", "date32")
    )
    return pa.Table.from_arrays([*columns, _column(rng, label, n, forged)], names=[*names, "y"])


class _TableTarget(Target):
    """Files of tables."""

    needs = ("pyarrow",)
    file: str
    forged_words = False

    def make(self, rng: Random) -> Case:
        """Return a table, damaged more often than not."""
        content = self._written(rng, _table(rng, self.forged_words))
        if rng.random() < 0.6:
            content = mutated(rng, content)
        options = {"target": rng.choice((None, "y", "y", "y", 0))}
        if rng.random() < 0.1:
            options["weight"] = rng.choice(("a", "b", 0, ""))
        return Case({self.file: content}, options)

    def usual(self) -> list[dict[str, Any]]:
        """Return files with and without labels."""
        return [{"target": "y"}, {}]

    def check(self, case: Case, folder: Path) -> str:
        """Read it; pyarrow finds the table valid, and reads the same."""
        rows = read(case, folder)
        if rows is None:
            return REFUSED
        _compare(self._read(folder / next(iter(case.files))), rows, case.options)
        return ACCEPTED

    def _written(self, rng: Random, table: Any) -> bytes:
        raise NotImplementedError

    def _read(self, path: Path) -> Any:
        raise NotImplementedError


def _compare(table: Any, rows: Rows, options: dict[str, Any]) -> None:
    """Raise a finding if a column that was read is not valid, or holds other numbers."""
    import pyarrow as pa

    roles = [options.get(role) for role in ("target", "weight")]
    used = [_position(table, role) for role in roles if role is not None]
    features = [j for j in range(table.num_columns) if j not in used]
    for j in range(table.num_columns):
        try:
            table.column(j).validate(full=True)
        except pa.ArrowInvalid as error:
            # As harmless as another value would be.
            harmless = "null_count" in str(error) or "does not fit in precision" in str(error)
            require(harmless, f"a damaged column is read: {error}")
    for k, j in enumerate(features):
        if rows.kind(k) == "written":
            continue
        theirs = _values(table.column(j), rows.kind(k)).astype(rows.X.dtype)
        same = np.array_equal(theirs, rows.X[:, k], equal_nan=True)
        require(same, f"pyarrow reads other numbers: {theirs} there, {rows.X[:, k]} here")
    if rows.labels is not None:
        require(len(table) == len(rows.labels), f"there are {len(rows.labels)} labels")


def _values(column: Any, kind: str) -> Any:
    """Return a column as the floats of its kind, by pyarrow and word by word."""
    import pyarrow as pa

    from polysift.data.kinds import level_of, word_of

    if kind == "category":
        words = map(word_of, column.to_pylist())
        return np.array([np.nan if word is None else level_of(word) for word in words])
    if kind == "date" and not pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us"), safe=False)
    if kind == "date":
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64())
        return column.cast(pa.float64(), safe=False).to_numpy() / 1e6
    return column.cast(pa.float64(), safe=False).to_numpy()


def _position(table: Any, column: Any) -> int:
    return column if isinstance(column, int) else table.column_names.index(column)


class ArrowTarget(_TableTarget):
    """Arrow IPC files and streams, and Feather."""

    name = "arrow"
    file = "data.arrow"
    forged_words = True  # the writer of Parquet would crash
    quick = 150

    def _written(self, rng: Random, table: Any) -> bytes:
        import pyarrow as pa

        file = io.BytesIO()
        packing = pa.ipc.IpcWriteOptions(compression=rng.choice((None, None, "lz4", "zstd")))
        make = rng.choice((pa.ipc.new_file, pa.ipc.new_file, pa.ipc.new_stream))
        with make(file, table.schema, options=packing) as writer:
            for batch in table.to_batches(max_chunksize=rng.choice((1, 7, 100))):
                writer.write_batch(batch)
        return file.getvalue()

    def _read(self, path: Path) -> Any:
        import pyarrow as pa

        with pa.OSFile(str(path)) as file:
            try:
                return pa.ipc.open_file(file).read_all()
            except pa.ArrowInvalid:
                file.seek(0)
                return pa.ipc.open_stream(file).read_all()


class ParquetTarget(_TableTarget):
    """Parquet files."""

    name = "parquet"
    file = "data.parquet"
    quick = 120

    def _written(self, rng: Random, table: Any) -> bytes:
        import pyarrow as pa
        import pyarrow.parquet

        file = io.BytesIO()
        try:
            pyarrow.parquet.write_table(
                table,
                file,
                row_group_size=rng.choice((1, 7, 100)),
                compression=rng.choice(("none", "none", "snappy", "zstd", "gzip")),
                data_page_version=rng.choice(("1.0", "2.0")),
                use_dictionary=rng.random() < 0.5,
            )
        except (pa.ArrowException, ValueError):  # a type that Parquet does not have
            return self._written(rng, table.select([]).append_column("y", pa.nulls(len(table))))
        return file.getvalue()

    def _read(self, path: Path) -> Any:
        import pyarrow.parquet

        # Of a damaged file, read() may give other rows than its row groups do.
        file = pyarrow.parquet.ParquetFile(path)
        groups = [file.read_row_group(i) for i in range(file.metadata.num_row_groups)]
        return pyarrow.concat_tables(groups) if groups else file.read()
