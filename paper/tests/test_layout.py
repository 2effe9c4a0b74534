"""The layout of the distribution: folders that say what they are for, names that stand once."""

import ast
import re
from pathlib import Path

PAPER = Path(__file__).resolve().parents[1]
PACKAGE = PAPER / "src" / "polysift_paper"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path.stem != "__init__")
MAX_LINES = 450


def test_the_map_has_one_line_per_file():
    text = (PAPER / "README.md").read_text()
    listed = re.findall(r"^\| `([\w/]+\.py)` \|", text, re.M)
    assert sorted(listed) == sorted(path.relative_to(PACKAGE).as_posix() for path in MODULES)


def test_modules_are_short_and_have_plain_names():
    for path in MODULES:
        assert len(path.read_text().splitlines()) <= MAX_LINES, path
        assert not path.stem.startswith("_"), path


def test_modules_and_folders_are_documented():
    for path in PACKAGE.rglob("*.py"):
        assert ast.get_docstring(ast.parse(path.read_text())), path


def test_no_class_name_stands_twice():
    homes = {}
    for path in MODULES:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(path.stem)
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}


def test_tests_mirror_the_folders():
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert {path.name for path in (PAPER / "tests").iterdir() if path.is_dir()} - {
        "__pycache__",
        "typed",
    } == folders


def test_the_licence_is_that_of_polysift():
    assert (PAPER / "LICENSE").read_bytes() == (PAPER.parent / "LICENSE").read_bytes()
