"""What a newcomer meets first: a light import, documents that agree."""

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import polysift
from polysift import rivals

ROOT = Path(__file__).resolve().parents[1]


LINES = 300
"""Beyond so many lines a module needs a reason."""

LONG = {
    "_admm": "the table of the paper's symbols stands in front of what it explains",
    "_catalogue": "a table of data sets",
    "_fused_kernels": "compiled as one: numba looks at this file alone to tell what is out of date",
    "_options": "a table of options",
    "classifier": "the docstrings of its parameters, attributes and methods",
    "search": "the docstrings of its parameters, attributes and methods",
}

HEAVY = ("lightgbm", "matplotlib", "numba", "onnx", "onnxruntime", "pandas", "polars", "pyarrow")
HEAVY += ("ray", "rich", "typer")


def imported_by(statement, after=""):
    """Return the top-level names of the modules that a statement imports in a fresh process."""
    code = (
        f"import contextlib, sys\n{after}\nbefore = set(sys.modules)\n{statement}\n"
        "print(*{name.split('.')[0] for name in set(sys.modules) - before})"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_the_package_alone_imports_nothing():
    """So that the command line can answer at once."""
    assert not imported_by("import polysift") & {"numpy", "scipy", "sklearn", *HEAVY}


def test_import_is_light():
    # scikit-learn imports some of them by itself, where they are installed.
    theirs = (
        "import sklearn.base, sklearn.model_selection\n"
        "with contextlib.suppress(ImportError): import sklearn.callback"
    )
    assert not imported_by("from polysift import *", theirs) & {*HEAVY}


def modules():
    """Return the files of the package by the names of their modules."""
    package = ROOT / "src" / "polysift"
    return {
        ".".join(path.relative_to(package).with_suffix("").parts): path
        for path in package.rglob("*.py")
        if path.stem != "__init__"
    }


def test_imports_only_go_down():
    """Each module imports only from modules listed before it in the map of the house."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    text = text.partition("## The map of the house\n")[2].partition("\n## ")[0]
    listed = [line.split("`")[1] for line in text.splitlines() if line.startswith("| `")]
    present = modules()
    assert sorted(listed) == sorted(present)
    for place, name in enumerate(listed):
        tree = ast.parse(present[name].read_text())
        used = {found for node in tree.body for found in _imported(node, present)}
        assert used <= set(listed[:place]), name


def test_modules_are_short():
    """None has more than 300 lines without a reason, and none has a reason without need."""
    lengths = {name: len(path.read_text().splitlines()) for name, path in modules().items()}
    assert {name for name, length in lengths.items() if length > LINES} == set(LONG)


def test_what_the_ways_to_add_something_name_is_there():
    """Modules, files and names in modules, as the chapter "How to add" writes them."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    text = text.partition("## How to add\n")[2].partition("\n## ")[0]
    package = ROOT / "src" / "polysift"
    for word in re.findall(r"`(\w+(?:[./]\w+)*)`", text):
        module, _, name = word.partition(".")
        if word.endswith(".py"):
            places = (package / word, ROOT / "tests" / word, ROOT / word)
            assert any(path.exists() for path in places), word
        elif word.endswith(".md"):
            assert (ROOT / word).exists(), word
        elif word.startswith("_") and not module.endswith("_"):
            path = package / f"{module}.py"
            assert path.exists(), word
            defined = rf"^(?:class |def |){name}\b"
            assert not name or re.search(defined, path.read_text(), re.MULTILINE), word


def _imported(node, modules):
    """Return the modules of the package that a statement imports."""
    if not isinstance(node, ast.ImportFrom) or not node.module.startswith("polysift"):
        return set()
    home = node.module.removeprefix("polysift").removeprefix(".")
    names = {home, *(f"{home}.{alias.name}".removeprefix(".") for alias in node.names)}
    return names & set(modules)


def test_public_names_are_there():
    for name in polysift.__all__:
        assert getattr(polysift, name) is not None
        assert name in dir(polysift)
    assert {"FPCClassifier", "datasets", "open_data", "__version__"} <= {*polysift.__all__}
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = polysift.nothing


def public():
    """Yield the name and the docstring of each public class, method and function."""
    for module in (polysift, polysift.datasets, polysift.plots, rivals):
        for name in module.__all__:
            found = getattr(module, name)
            if inspect.isclass(found):
                yield f"{module.__name__}.{name}", found.__doc__
                for own in vars(found):
                    member = inspect.getattr_static(found, own)
                    if not own.startswith("_") and is_method(member):
                        yield f"{module.__name__}.{name}.{own}", member.__doc__
            elif callable(found):
                yield f"{module.__name__}.{name}", found.__doc__


def is_method(member):
    """Return whether it is a method, also one that is there at times only."""
    kinds = (classmethod, staticmethod, property)
    return inspect.isfunction(member) or isinstance(member, kinds) or hasattr(member, "check")


@pytest.mark.parametrize(("name", "text"), [pytest.param(*case, id=case[0]) for case in public()])
def test_public_names_are_documented_with_an_example(name, text):
    """``--doctest-modules`` runs the examples."""
    assert text, name
    if "for polysift's own use" not in text:
        assert "Examples\n" in text and ">>> " in text, name


def test_version_is_in_the_changelog():
    assert f"## {polysift.__version__.split('.dev')[0]}" in (ROOT / "CHANGELOG.md").read_text()


def test_one_place_imports_ray():
    importing = re.compile(r"^\s*(?:import|from) ray\b|import_module\(.ray", re.MULTILINE)
    for path in (ROOT / "src" / "polysift").rglob("*.py"):
        assert (path.parent.name == "_ray") or not importing.search(path.read_text()), path
