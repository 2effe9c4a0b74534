"""Workflow files, hooks and metadata say the same as each other."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import tarfile
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

needs_workflows = pytest.mark.skipif(not WORKFLOWS, reason="an sdist has no workflow files")


def pythons(text: str) -> set[str]:
    """Return the versions of Python that a text names, such as 3.11, without 3.14t."""
    return set(re.findall(r"\b3\.1\d\b(?!t)", text))


@needs_workflows
@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_to_the_commits_of_tags(path):
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if "uses:" in line]
    assert lines
    for line in lines:
        assert re.search(r"uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line), line


@needs_workflows
def test_one_action_has_one_version_everywhere():
    text = "".join(path.read_text(encoding="utf-8") for path in WORKFLOWS)
    used = set(re.findall(r"uses: ([\w./-]+)@(\w+ # \S+)", text))
    assert len(used) == len({name for name, _ in used})


@needs_workflows
def test_every_python_of_the_classifiers_is_tested():
    prefix = "Programming Language :: Python :: 3."
    named = {c.rpartition(" ")[2] for c in PROJECT["project"]["classifiers"] if prefix in c}
    tested = pythons((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    assert named == tested


def test_the_makefile_asks_for_the_python_that_the_metadata_do():
    least = PROJECT["project"]["requires-python"].removeprefix(">=")
    assert re.fullmatch(r"3\.\d+", least), "no upper bound"
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert f"sys.version_info < ({least.replace('.', ', ')})" in makefile
    assert f"polysift needs Python {least} or newer" in makefile


@pytest.mark.needs("polysift_paper")
def test_both_distributions_support_the_same_pythons():
    text = (ROOT / "paper" / "pyproject.toml").read_text(encoding="utf-8")
    paper = tomllib.loads(text)["project"]
    ours = PROJECT["project"]
    assert paper["requires-python"] == ours["requires-python"]
    named = {c for c in ours["classifiers"] if "Python :: 3.1" in c}
    assert named == {c for c in paper["classifiers"] if "Python :: 3.1" in c}


def recipe_of(tmp_path) -> tuple[str, Path]:
    """Return the recipe for conda-forge, and the sdist that it is made of."""
    path = ROOT / "tools" / "conda_recipe.py"
    spec = importlib.util.spec_from_file_location("conda_recipe", path)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    sdist = tmp_path / "polysift-1.2.3.tar.gz"
    with tarfile.open(sdist, "w:gz") as archive:
        archive.add(ROOT / "pyproject.toml", "polysift-1.2.3/pyproject.toml")
    return tool.recipe(sdist), sdist


def test_the_conda_recipe_follows_from_an_sdist(tmp_path):
    text, sdist = recipe_of(tmp_path)
    assert "  version: 1.2.3\n" in text
    assert hashlib.sha256(sdist.read_bytes()).hexdigest() in text
    for words in PROJECT["project"]["dependencies"]:
        assert f"    - {words.replace('>=', ' >=')}\n" in text
    assert "    - polysift = polysift.__main__:main\n" in text.replace("      - ", "    - ")


def test_rattler_build_reads_the_conda_recipe(tmp_path):
    rattler = pytest.importorskip("rattler_build", reason="pip install py-rattler-build")
    recipe = rattler.Stage0Recipe.from_yaml(recipe_of(tmp_path)[0])
    (variant,) = recipe.render(rattler.VariantConfig())
    package, needed = variant.recipe.package, variant.recipe.requirements.run
    assert (str(package.name), str(package.version)) == ("polysift", "1.2.3")
    assert needed[0] == "python >=3.11" and len(needed) == 1 + len(
        PROJECT["project"]["dependencies"]
    )
