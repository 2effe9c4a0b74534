"""Measure the layout of the package: its size, its rooms, who imports whom, and one traced fit.

    python tools/house.py [ROOT ...]

ROOT is a checkout with the package in ``src/polysift``; by default the one this script lies in.
Several get a column each, so that a layout can be compared with an earlier one. The source is
parsed; only the traced fit runs it, in a process of its own, with this Python and its numpy.

- Modules are all ``.py`` files; rooms are subpackages, at any depth; loose modules are in no room.
- A class name is doubled if modules define it at their top level twice or more.
- A module has one importer if the import statements of exactly one other module name it, those
  within functions included. "At the top" are statements that are not nested in anything.
- A function's lines are those from ``def`` to its end, less its docstring. Methods and functions
  within functions count, the latter also among the lines of the outer one.
- The traced fit is ``FPCClassifier(n_jobs=1, random_state=0).fit`` on 2,000 x 5 random rows, the
  second one of its process, so that caches are filled. ``sys.setprofile`` sees the calls of the
  main thread, ``threading.setprofile`` those of threads that start meanwhile. A function takes
  part if it is called or, as a generator, resumed. Functions differ by file, first line and name.
  Lambdas, generator expressions and, before Python 3.12, comprehensions are functions; bodies of
  modules and classes are not.
- The depth of a call is the number of frames on the stack of its thread whose code lies in the
  package, its own included; frames of other libraries in between do not count. Features are
  computed where ``FEATURES`` is called, at the deepest such call.
"""

from __future__ import annotations

import ast
import inspect
import json
import os
import subprocess
import sys
import threading
from collections import Counter, defaultdict
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

PACKAGE = "polysift"
FEATURES = "BlockFeatures.__call__"
"""The function that makes the features of a block of rows."""

LONGEST = 8
"""How many of the longest modules are listed."""


@dataclass(frozen=True)
class Module:
    """A module of the package: its path below the package, its lines, its syntax tree."""

    path: Path
    lines: int
    tree: ast.Module


House = dict[str, Module]
"""The modules by their full names; a package has the name of its folder."""


def main() -> None:
    """Print a table with a column for each root, and then the lists that belong to each."""
    if sys.argv[1:] == ["--trace"]:
        print(json.dumps(traced_fit()))
        return
    roots = [Path(word).resolve() for word in sys.argv[1:]] or [Path(__file__).resolve().parents[1]]
    found = [(read(root), trace(root)) for root in roots]
    columns = [figures(house) | traced_figures(traced) for house, traced in found]
    rows = [["", *(root.name for root in roots)]]
    rows += [[name, *(column[name] for column in columns)] for name in columns[0]]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, *cells in rows:
        fitted = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
        print("  ".join([name.ljust(widths[0]), *fitted]))
    for root, (house, traced) in zip(roots, found, strict=True):
        print("", root, *lists(house, traced), sep="\n")


def read(root: Path) -> House:
    """Return the modules of a checkout."""
    package, house = root / "src" / PACKAGE, {}
    for file in sorted(package.rglob("*.py")):
        text, path = file.read_text(encoding="utf-8"), file.relative_to(package)
        name = ".".join([PACKAGE, *path.with_suffix("").parts]).removesuffix(".__init__")
        house[name] = Module(path, len(text.splitlines()), ast.parse(text, str(file)))
    return house or sys.exit(f"There is no package in {package}.")


def figures(house: House) -> dict[str, str]:
    """Return what the source tells, by the names of the table's rows."""
    lengths = sorted(length for module in house.values() for length in function_lengths(module))
    shares = [lengths[ceil(share * len(lengths)) - 1] for share in (0.5, 0.9, 0.99)]
    once = [sum(count == 1 for count in importers(house, late).values()) for late in (True, False)]
    return {
        "modules": f"{len(house):,}",
        "lines": f"{sum(module.lines for module in house.values()):,}",
        "loose modules": f"{sum(len(module.path.parts) == 1 for module in house.values()):,}",
        "rooms": f"{sum(module.path.name == '__init__.py' for module in house.values()) - 1:,}",
        "doubled class names": f"{len(doubled_classes(house)):,}",
        "modules with one importer": f"{once[0]:,} ({once[0] / len(house):.0%})",
        "  by imports at the top": f"{once[1]:,} ({once[1] / len(house):.0%})",
        "lines of the longest module": f"{max(module.lines for module in house.values()):,}",
        "functions": f"{len(lengths):,}",
        "  their lines, median / p90 / p99": " / ".join(map(str, shares)),
    }


def importers(house: House, late: bool) -> Counter[str]:
    """Return by how many other modules each is imported, late within functions or at the top."""
    counts: Counter[str] = Counter()
    for name, module in house.items():
        home = name if module.path.name == "__init__.py" else name.rpartition(".")[0]
        nodes = ast.walk(module.tree) if late else module.tree.body
        counts.update({used for node in nodes for used in imported(node, home, house)} - {name})
    return counts


def imported(node: ast.AST, home: str, house: House) -> set[str]:
    """Return the modules that a node imports, if it is a statement that does, in a package."""
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names} & house.keys()
    if not isinstance(node, ast.ImportFrom):
        return set()
    base = node.module or ""
    if node.level:  # each dot after the first goes one package up
        above = home.split(".")[: home.count(".") + 2 - node.level]
        base = ".".join([*above, base] if base else above)
    each = (f"{base}.{alias.name}" for alias in node.names)
    return {name if name in house else base for name in each} & house.keys()


def doubled_classes(house: House) -> dict[str, list[str]]:
    """Return the names of classes that are defined more than once, with their modules."""
    homes: defaultdict[str, list[str]] = defaultdict(list)
    for name, module in house.items():
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(name)
    return {name: places for name, places in sorted(homes.items()) if len(places) > 1}


def function_lengths(module: Module) -> list[int]:
    """Return the lines of each function, without its docstring."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = [node for node in ast.walk(module.tree) if isinstance(node, functions)]
    texts = [f.body[:1] if ast.get_docstring(f) is not None else [] for f in found]
    return [span(f) - sum(map(span, text)) for f, text in zip(found, texts, strict=True)]


def span(node: ast.stmt) -> int:
    """Return from how many lines a statement was parsed."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def trace(root: Path) -> dict[str, Any]:
    """Return what ``traced_fit`` finds in a fresh process that imports the package of a root."""
    settings = {"PYTHONPATH": str(root / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, __file__, "--trace"]
    done = subprocess.run(command, env=os.environ | settings, check=True, stdout=subprocess.PIPE)
    traced: dict[str, Any] = json.loads(done.stdout)
    if Path(traced["package"]) != root / "src" / PACKAGE:
        sys.exit(f"The traced fit was that of {traced['package']}, not of {root}.")
    return traced


def traced_fit() -> dict[str, Any]:
    """Fit twice, and return who took part in the second fit, and its deepest stacks."""
    import numpy as np

    import polysift

    folder = Path(polysift.__file__).resolve().parent
    rng = np.random.default_rng(0)
    X = rng.random((2000, 5))
    y = X @ rng.normal(size=5) > 0
    model = polysift.FPCClassifier(n_jobs=1, random_state=0).fit(X, y)
    seen: set[tuple[str, int, str]] = set()
    deepest: list[CodeType] = []
    at_features: list[CodeType] = []

    def profile(frame: FrameType, event: str, _: object) -> None:
        nonlocal deepest, at_features
        code, stack, outer = frame.f_code, list[CodeType](), frame.f_back
        if event != "call" or not ours(code) or not code.co_flags & inspect.CO_OPTIMIZED:
            return
        seen.add((code.co_filename, code.co_firstlineno, code.co_name))
        while outer is not None:
            stack.append(outer.f_code)
            outer = outer.f_back
        stack = [code, *filter(ours, stack)]
        deepest = max(deepest, stack, key=len)
        if code.co_qualname == FEATURES:
            at_features = max(at_features, stack, key=len)

    def ours(code: CodeType) -> bool:
        return code.co_filename.startswith(f"{folder}{os.sep}")

    def described(code: CodeType) -> str:
        path = Path(code.co_filename).relative_to(folder).with_suffix("")
        return f"{'.'.join(path.parts)}: {code.co_qualname}"

    threading.setprofile(profile)
    sys.setprofile(profile)
    model.fit(X, y)
    sys.setprofile(None)
    return {
        "package": str(folder),
        "modules": len({file for file, _, _ in seen}),
        "functions": len(seen),
        "named": sum(not name.startswith("<") for _, _, name in seen),
        "depth": len(deepest),
        "features": [described(code) for code in reversed(at_features)],
    }


def traced_figures(traced: dict[str, Any]) -> dict[str, str]:
    """Return what the traced fit tells, by the names of the table's rows."""
    return {
        "traced fit: modules": f"{traced['modules']:,}",
        "traced fit: functions": f"{traced['functions']:,}",
        "  of these with a name": f"{traced['named']:,}",
        "traced fit: greatest depth": f"{traced['depth']:,}",
        "  where features are computed": f"{len(traced['features']) or 'not found'}",
    }


def lists(house: House, traced: dict[str, Any]) -> list[str]:
    """Return lines: the doubled class names, the longest modules, the way to the features."""
    longest = sorted(house.items(), key=lambda item: -item[1].lines)[:LONGEST]
    return [
        "  doubled class names:",
        *(f"    {name}: {', '.join(places)}" for name, places in doubled_classes(house).items()),
        "  longest modules:",
        *(f"    {module.lines:>5,}  {name}" for name, module in longest),
        f"  frames of the package where features are computed ({FEATURES}):",
        *(f"    {number:>5}  {frame}" for number, frame in enumerate(traced["features"], 1)),
    ]


if __name__ == "__main__":
    main()
