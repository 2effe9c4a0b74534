"""What a newcomer meets first: a light import, documents that agree."""

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import polysift
from problems import optional

polysift_paper = optional("polysift_paper")
rivals = optional("polysift_paper.rivals")

ROOT = Path(__file__).resolve().parents[2]


LINES = 450
"""Beyond so many lines a module needs a reason."""

LONG = {
    "engine.compiled_loops": "functions that call one another: numba keeps them by file",
    "estimators.classifier": "the docstring of its parameters and attributes",
    "estimators.search": "the docstring of its parameters and attributes",
}

ROOMS = (
    "runtime",
    "data",
    "losses",
    "features",
    "engine",
    "solvers",
    "cluster",
    "training",
    "selection",
    "estimators",
    "explanation",
    "plots",
    "reporting",
    "persistence",
    "datasets",
    "cli",
)
"""A room imports only from itself and from those before it."""

HEAVY = ("lightgbm", "matplotlib", "numba", "onnx", "onnxruntime", "pandas", "polars", "pyarrow")
HEAVY += ("ray", "rich", "skl2onnx", "typer")


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
    """Each room imports only from rooms above it in the map of the house."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    text = text.partition("## The map of the house\n")[2].partition("\n## ")[0]
    listed = [line.split("`")[1] for line in text.splitlines() if line.startswith("| `")]
    assert [name.removesuffix("/").removesuffix(".py") for name in listed] == [*ROOMS]
    package = ROOT / "src" / "polysift"
    loose = {path.stem for path in package.glob("*.py")}
    assert loose == {"__init__", "__main__", "losses"}
    rooms = {path.parent.name for path in package.glob("*/__init__.py")} | {"losses"}
    assert rooms == {*ROOMS, "rivals"}  # an error that names its new place
    for name, path in modules().items():
        room = name.split(".")[0]
        if room in ROOMS:
            allowed = {*ROOMS[: ROOMS.index(room) + 1]}
            tree = ast.parse(path.read_text())
            used = {found for node in tree.body for found in _imported(node)}
            assert used <= allowed, (name, used - allowed)


def test_modules_of_a_room_do_not_import_each_other_in_circles():
    graph = {
        name: {found for node in ast.parse(path.read_text()).body for found in _modules_of(node)}
        for name, path in modules().items()
    }
    order = []
    while graph:
        free = [name for name, needed in graph.items() if not needed & (set(graph) - {name})]
        assert free, f"these import each other: {sorted(graph)}"
        order += free
        graph = {name: needed for name, needed in graph.items() if name not in free}


def test_no_class_name_is_there_twice():
    homes = {}
    for name, path in modules().items():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(name)
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}


def test_each_room_says_what_it_is_for():
    for path in (ROOT / "src" / "polysift").glob("*/__init__.py"):
        assert ast.get_docstring(ast.parse(path.read_text())), path


def test_modules_are_short():
    """None has more than ``LINES`` lines without a reason, and none has a reason without need."""
    lengths = {name: len(path.read_text().splitlines()) for name, path in modules().items()}
    assert {name for name, length in lengths.items() if length > LINES} == set(LONG)


def test_what_the_ways_to_add_something_name_is_there():
    """Modules, files and names in modules, as the chapter "How to add" writes them."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    text = text.partition("## How to add\n")[2].partition("\n## ")[0]
    package, present = ROOT / "src" / "polysift", modules()
    for word in re.findall(r"`([\w/]+(?:[./]\w+)*)`", text):
        if word.startswith("paper/") and not (ROOT / "paper").exists():
            continue  # an sdist of polysift has none of it
        if word.endswith((".py", ".md")):
            assert any((folder / word).exists() for folder in (package, ROOT)), word
        elif word.split(".")[0] in ROOMS and "." in word:
            module = next((name for name in (word, word.rpartition(".")[0]) if name in present), "")
            assert module, word
            name = word.removeprefix(module).removeprefix(".")
            defined = rf"^(?:class |def |){name}\b"
            assert re.search(defined, present[module].read_text(), re.MULTILINE), word


def _modules_of(node):
    """Return the modules of the package that a statement imports."""
    if not isinstance(node, ast.ImportFrom) or node.module.split(".")[0] != "polysift":
        return set()
    home = node.module.removeprefix("polysift").removeprefix(".")
    names = {home, *(f"{home}.{alias.name}".removeprefix(".") for alias in node.names)}
    return names & set(modules())


def _imported(node):
    """Return the rooms that a statement imports from."""
    if not isinstance(node, ast.ImportFrom) or node.module.split(".")[0] != "polysift":
        return set()
    if node.module == "polysift":
        return {alias.name for alias in node.names} - {"__version__"}
    return {node.module.split(".")[1]}


def test_type_checkers_see_the_names_that_are_imported():
    tree = ast.parse((ROOT / "src" / "polysift" / "__init__.py").read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.asname: node.module for node in block.body for alias in node.names}
    homes = {name: f"polysift.{home}" for name, home in polysift._HOMES.items()}
    assert seen == homes | {"datasets": "polysift", "plots": "polysift"}


@pytest.mark.needs("polysift_paper")
def test_the_paper_has_the_same_version():
    assert polysift_paper.__version__ == polysift.__version__
    needed = (ROOT / "paper" / "pyproject.toml").read_text()
    assert f"polysift[cli,fast]=={polysift.__version__}" in needed


def test_the_paper_is_not_imported():
    for path in (ROOT / "src" / "polysift").rglob("*.py"):
        assert "import polysift_paper" not in path.read_text()
        assert "from polysift_paper" not in path.read_text()


def test_rivals_name_their_new_place():
    for statement in ("import polysift.rivals", "from polysift import rivals"):
        with pytest.raises(ImportError, match="polysift_paper.rivals"):
            exec(statement)


def test_public_names_are_there():
    for name in polysift.__all__:
        assert getattr(polysift, name) is not None
        assert name in dir(polysift)
    assert {"FPCClassifier", "datasets", "open_data", "__version__"} <= {*polysift.__all__}
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = polysift.nothing


def public():
    """Yield the name, the docstring and whether it is a method of each public name."""
    for module in (polysift, polysift.datasets, polysift.plots, rivals):
        for name in getattr(module, "__all__", ()):  # rivals may not be installed
            found = getattr(module, name)
            if inspect.isclass(found):
                yield f"{module.__name__}.{name}", found.__doc__, False
                for own in vars(found):
                    member = inspect.getattr_static(found, own)
                    if not own.startswith("_") and is_method(member):
                        yield f"{module.__name__}.{name}.{own}", member.__doc__, True
            elif callable(found):
                yield f"{module.__name__}.{name}", found.__doc__, False


def is_method(member):
    """Return whether it is a method, also one that is available under a condition only."""
    kinds = (classmethod, staticmethod, property)
    return inspect.isfunction(member) or isinstance(member, kinds) or hasattr(member, "check")


@pytest.mark.parametrize(
    ("name", "text", "method"), [pytest.param(*case, id=case[0]) for case in public()]
)
def test_public_names_are_documented_with_an_example(name, text, method):
    """A method needs a docstring, a class or function an example too; pytest runs the examples."""
    assert text, name
    assert method or ("Examples\n" in text and ">>> " in text), name


def test_version_is_in_the_changelog():
    assert f"## {polysift.__version__.split('.dev')[0]}" in (ROOT / "CHANGELOG.md").read_text()


def test_one_place_imports_ray():
    importing = re.compile(r"^\s*(?:import|from) ray\b|import_module\(.ray", re.MULTILINE)
    for path in (ROOT / "src" / "polysift").rglob("*.py"):
        assert (path.parent.name == "cluster") or not importing.search(path.read_text()), path


def test_the_time_is_read_in_one_place():
    """So that a test can set it, whatever looks at it."""
    timed = re.compile(r"^\s*(import time\b|from time import)", re.MULTILINE)
    readers = {name for name, path in modules().items() if timed.search(path.read_text())}
    assert readers == {"runtime.clock"}
