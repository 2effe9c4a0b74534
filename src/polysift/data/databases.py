"""Tables of DuckDB and SQLite by URI: ``duckdb:///path.db?table=name``, ``sqlite:///...?query=...``.

The rows of a query are written once to a temporary Arrow file, so that every pass reads the same.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote

from polysift.data.checks import decoding
from polysift.data.formats import OpenOptions
from polysift.data.source import DataSource
from polysift.data.spooled import cell_source, spooled_source

DATABASE = re.compile(r"(?i)(duckdb|sqlite)://")

BATCH_ROWS = 2**16
"""How many rows a database gives at a time."""


def is_database(name: str) -> bool:
    """Return whether a name is the URI of a table of a database."""
    return DATABASE.match(name) is not None


def open_database(uri: str, options: OpenOptions) -> DataSource:
    """Return a table of a database, or the result of a query, as a source."""
    path, query, shown = _parse(uri)
    if not path.is_file():
        raise FileNotFoundError(f"There is no database {str(path)!r}. Check the path in {shown}.")
    opener = _open_duckdb if uri.lower().startswith("duckdb") else _open_sqlite
    return opener(path, query, shown, options)


def _parse(uri: str) -> tuple[Path, str, str]:
    """Return the path of a database, the query, and the name for messages."""
    scheme, _, rest = uri.partition("://")
    location, _, options = rest.partition("?")
    if not location.startswith("/"):
        raise ValueError(
            f"{scheme}://{location} must name a file: {scheme}:///path.db, with three slashes."
        )
    location = "/" + location.lstrip("/")  # four slashes, as SQLAlchemy wants them, are no more
    path = Path(unquote(location))
    windows = re.match(r"/[A-Za-z]:", location)
    if windows or (not path.is_file() and Path(unquote(location[1:])).is_file()):
        path = Path(unquote(location[1:]))
    given = dict(parse_qsl(options, keep_blank_values=True))
    if len(given) != 1 or not ({"table", "query"} & given.keys()):
        raise ValueError(
            f"{scheme}://{location} must end with ?table=name or ?query=SELECT...; it ends with "
            f"{options!r}."
        )
    table = given.get("table", "").replace('"', '""')
    query = given.get("query") or f'SELECT * FROM "{table}"'
    return path, query, f"{path} ({next(iter(given.values()))})"


def _open_duckdb(path: Path, query: str, shown: str, options: OpenOptions) -> DataSource:
    try:
        duckdb: Any = import_module("duckdb")
    except ImportError as error:
        raise ImportError(
            f"{shown}: reading DuckDB needs duckdb. Install it with: pip install "
            "'polysift[formats]'"
        ) from error
    with decoding(f"{shown} cannot be read"):
        connection = duckdb.connect(str(path), read_only=True)
    with closing(connection):
        with decoding(f"{shown} cannot be read"):
            result = connection.sql(query)
            if result is None:
                raise ValueError("it returns no table; pass a query that begins with SELECT")
            stream = getattr(result, "to_arrow_reader", None) or result.fetch_arrow_reader
            batches = stream(BATCH_ROWS)
        return spooled_source(shown, batches.schema, _guarded(shown, batches), options)


def _open_sqlite(path: Path, query: str, shown: str, options: OpenOptions) -> DataSource:
    with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as connection:
        with decoding(f"{shown} cannot be read"):
            described = connection.execute(query).description
            if not described:
                raise ValueError("it returns no table; pass a query that begins with SELECT")
        names = [str(column[0]) for column in described]

        def rows() -> Iterator[Any]:
            return _guarded(shown, connection.execute(query))

        return cell_source(shown, names, rows, options)


def _guarded(shown: str, rows: Iterable[Any]) -> Iterator[Any]:
    """Yield what a database gives; its errors name it."""
    with decoding(f"{shown} cannot be read"):
        yield from rows
