"""Keep what our pages can link to of other projects' inventories: docs/_inventories/*.inv.

Usage: python tools/inventories.py numpy=objects.inv scipy=https://docs.scipy.org/doc/scipy/objects.inv

An inventory of Sphinx lists all names of a project and where they are described, for links from
other sites. ``make docs`` reads the ones in docs/_inventories, so that it needs no network. Of each
only the classes and functions are kept that examples, docstrings or pages of ours mention.
"""

from __future__ import annotations

import re
import sys
import urllib.request
import zlib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KEPT = ("py:class", "py:function", "py:exception", "py:module")
SOURCES = ("docs/**/*.md", "docs/**/*.rst", "examples/**/*.py", "src/**/*.py")


def main() -> None:
    """Write one short inventory for each that is named."""
    if len(sys.argv) < 2 or any("=" not in word for word in sys.argv[1:]):
        sys.exit(__doc__)
    words = {word for path in sources() for word in re.findall(r"\w+", path.read_text("utf-8"))}
    for argument in sys.argv[1:]:
        name, _, place = argument.partition("=")
        head, lines = read(place)
        kept = [line for line in lines if is_mentioned(line, words)]
        target = ROOT / "docs" / "_inventories" / f"{name}.inv"
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(head + zlib.compress("\n".join([*kept, ""]).encode(), 9))
        print(f"{target.relative_to(ROOT)}: {len(kept)} of {len(lines)} names")


def sources() -> Iterator[Path]:
    """Yield the files that may mention a name."""
    built = ("_build", "auto_examples", "generated", "backreferences")
    for pattern in SOURCES:
        for path in sorted(ROOT.glob(pattern)):
            if not {*path.parts} & {*built}:
                yield path


def read(place: str) -> tuple[bytes, list[str]]:
    """Return the four lines of the header of an inventory, and its entries."""
    if "://" in place:
        with urllib.request.urlopen(place, timeout=60) as answer:
            data = answer.read()
    else:
        data = Path(place).read_bytes()
    found = re.match(rb"# Sphinx inventory version 2\n(?:#.*\n){3}", data)
    if not found:
        sys.exit(f"{place} must be an inventory of Sphinx, version 2; it begins {data[:40]!r}.")
    return found[0], zlib.decompress(data[found.end() :]).decode().splitlines()


def is_mentioned(line: str, words: set[str]) -> bool:
    """Return whether a line is about a public class or function whose name our sources have."""
    name, kind = line.split()[:2]
    parts = name.split(".")
    return kind in KEPT and parts[-1] in words and not any(part.startswith("_") for part in parts)


if __name__ == "__main__":
    main()
