"""JSON lines: a file with an object in each line, whose keys are the columns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from polysift.data.formats import OpenOptions
from polysift.data.locations import FoundFiles
from polysift.data.packing import open_binary
from polysift.data.source import DataSource
from polysift.data.spooled import cell_source
from polysift.data.text import reading


def open_json_lines(found: FoundFiles, options: OpenOptions) -> DataSource:
    """Return files of JSON lines as one source; a key that a line lacks is missing there."""
    paths = [Path(name) for name in found.names]
    names: dict[str, None] = {}
    for path in paths:
        for row in _objects(path):
            names |= dict.fromkeys(row)
    if not names:
        raise ValueError(f"{paths[0]} is empty. It must hold at least one line with an object.")
    absent = {"", *options.missing}

    def rows() -> Iterator[list[Any]]:
        for path in paths:
            for row in _objects(path):
                cells = (row.get(name) for name in names)
                yield [None if isinstance(c, str) and c.strip() in absent else c for c in cells]

    return cell_source(found.origin, list(names), rows, options)


def _objects(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file, or raise an error that names the line."""
    with reading(path), open_binary(path) as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                found = json.loads(line)
            except UnicodeDecodeError:
                raise
            except (ValueError, RecursionError) as error:
                raise ValueError(_at(path, number, line, f"no JSON ({error})")) from error
            if not isinstance(found, dict):
                raise ValueError(_at(path, number, line, "no object"))
            yield found


def _at(path: Path, number: int, line: bytes, what: str) -> str:
    shown = line[:80].decode(errors="replace").strip()
    return (
        f"{path}, line {number} (counted from 1) is {what}: {shown!r}. A line of JSON lines reads "
        '{"name": value, ...}.'
    )
