"""Training from a Parquet file of raw columns against the same rows given as numbers.

The table `flights` (text, dates, a category of 4,043 levels), repeated to ten million rows: once as
it is, once with its words as codes and its times as seconds. Each fit runs in a process of its own,
within a memory limit, which is about what the fit takes beyond Python and the libraries: these are
loaded before, by a forecast, and are shown apart. Needs ``tables/flights.parquet`` where
``POLYSIFT_DATA`` points.

Usage: python benchmarks/massive_table.py [--rows N] [--centers N] [--limit SIZE]
[--row-group N] [--folder DIR]
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from common import train


def as_numbers(table: pa.Table) -> pa.Table:
    """Return a table with words as codes, and times as seconds."""
    columns = {}
    for name in table.column_names:
        column = table.column(name)
        if name == "time_hour":
            seconds = pc.strptime(column, format="%Y-%m-%dT%H:%M:%SZ", unit="s")
            column = seconds.cast(pa.int64())
        elif name != "y" and pa.types.is_large_string(column.type):
            column = column.combine_chunks().dictionary_encode().indices.fill_null(-1)
        columns[name] = column
    return pa.table(columns)


def write_repeated(table: pa.Table, path: Path, rows: int, row_group: int) -> None:
    """Write a table again and again, to so many rows."""
    table = table.cast(pa.schema([(field.name, plain(field.type)) for field in table.schema]))
    with pq.ParquetWriter(path, table.schema, compression="zstd") as writer:
        while rows > 0:
            part = table.slice(0, min(rows, len(table)))
            writer.write_table(part, row_group_size=row_group)
            rows -= len(part)


def plain(kind: pa.DataType) -> pa.DataType:
    """Return a type that needs no offsets of 64 bits."""
    return pa.string() if pa.types.is_large_string(kind) else kind


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--centers", type=int, default=400)
    parser.add_argument("--limit", default="300MB")
    parser.add_argument("--row-group", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, help="where to write the files")
    options = parser.parse_args()
    given = Path(os.environ.get("POLYSIFT_DATA", ".")) / "tables" / "flights.parquet"
    if not given.exists():
        sys.exit(f"There is no {given}: set POLYSIFT_DATA to the folder that holds tables/.")
    raw = pq.read_table(given)
    raw = raw.rename_columns(["y", *raw.column_names[1:]])
    found = {}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for name, table in (("raw", raw), ("numbers", as_numbers(raw))):
            path = Path(folder) / f"{name}.parquet"
            write_repeated(table, path, options.rows, options.row_group)
            parameters = {"n_centers": options.centers, "memory_limit": options.limit}
            found[name] = train(path, **parameters)
            path.unlink()
            seconds = found[name]["timings"]
            phases = ", ".join(f"{phase} {value:.1f} s" for phase, value in seconds.items())
            growth = found[name]["peak"] - found[name]["loaded"]
            print(
                f"{name}: {options.rows:,} rows, {found[name]['seconds']:.1f} s ({phases}), "
                f"{found[name]['cpu']:.1f} s of processor time; memory "
                f"{growth / 1e6:,.0f} MB beyond the {found[name]['loaded'] / 1e6:,.0f} MB of "
                f"Python and libraries; training error {found[name]['error']:.2%}",
                flush=True,
            )
    ratio, of_cpu = (found["raw"][name] / found["numbers"][name] for name in ("seconds", "cpu"))
    print(
        f"raw columns take {ratio:.2f} times as long as numbers, {of_cpu:.2f} times the processor"
    )


if __name__ == "__main__":
    main()
