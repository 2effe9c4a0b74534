"""What a newcomer meets first: a light import, documents that agree."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import polysift

ROOT = Path(__file__).resolve().parents[1]


def test_import_is_light():
    heavy = "{'ray', 'pyarrow', 'matplotlib', 'onnx', 'typer', 'rich', 'pandas', 'polars'}"
    # scikit-learn imports some of them by itself, where they are installed.
    code = (
        "import contextlib, sys, sklearn.base\n"
        "with contextlib.suppress(ImportError): import sklearn.callback\n"
        "before = set(sys.modules); import polysift; "
        f"print({heavy} & (set(sys.modules) - before))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"


def test_imports_only_go_down():
    """Each module imports only from modules listed before it in the map of the house."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    listed = [line.split("`")[1] for line in text.splitlines() if line.startswith("| `")]
    package = ROOT / "src" / "polysift"
    present = {
        ".".join(path.relative_to(package).with_suffix("").parts): path
        for path in package.rglob("*.py")
        if path.stem != "__init__"
    }
    assert sorted(listed) == sorted(present)
    for place, name in enumerate(listed):
        tree = ast.parse(present[name].read_text())
        used = {found for node in tree.body for found in _imported(node, present)}
        assert used <= set(listed[:place]), name


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
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = polysift.nothing


def test_version_is_in_the_changelog():
    assert f"## {polysift.__version__.split('.dev')[0]}" in (ROOT / "CHANGELOG.md").read_text()


def test_one_place_imports_ray():
    importing = re.compile(r"^\s*(?:import|from) ray\b|import_module\(.ray", re.MULTILINE)
    for path in (ROOT / "src" / "polysift").rglob("*.py"):
        assert (path.parent.name == "_ray") or not importing.search(path.read_text()), path
