"""The documentation site: complete, and made of parts that fit; ``make docs`` builds it."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

import polysift

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))


def api_entries():
    """Return what the API page lists, without the package's name."""
    text = (ROOT / "docs" / "api" / "index.rst").read_text(encoding="utf-8")
    listed = re.findall(r"^   ([\w.]+)$", text, re.M)
    data = re.findall(r"^\.\. py:data:: polysift(?:_paper)?\.([\w.]+)$", text, re.M)
    return listed + data


@pytest.mark.needs("polysift_paper")
def test_every_public_name_is_on_the_api_page_once():
    homes = {"datasets": "polysift", "plots": "polysift", "rivals": "polysift_paper"}
    public = {name for name in polysift.__all__ if name not in {*homes, "__version__"}}
    for module, home in homes.items():
        names = importlib.import_module(f"{home}.{module}").__all__
        public |= {f"{module}.{name}" for name in names}
    assert sorted(api_entries()) == sorted(public)


def test_there_are_examples_in_each_section():
    assert len(EXAMPLES) >= 8
    for section in {path.parent for path in EXAMPLES}:
        assert (section / "GALLERY_HEADER.rst").exists(), section


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_has_a_title_and_draws(path):
    """The gallery runs files named plot_*, and shows the first lines and the pictures."""
    assert path.name.startswith("plot_")
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    title, rule, blank, *about = (ast.get_docstring(tree) or "").splitlines()
    assert title and rule == "=" * len(title) and not blank and about
    assert "plt.show()" in text
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not any(name and "._" in f".{name}" for name in imported), "examples use public names"
