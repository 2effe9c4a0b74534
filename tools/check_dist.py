"""Check that sdists and wheels hold what they should and nothing else, as ``make dist`` does.

Usage: python tools/check_dist.py FOLDER [FOLDER ...], each with one sdist and one wheel of polysift
or of polysift-paper.
"""

from __future__ import annotations

import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Contents:
    """The package of a distribution, what both files must hold, and what the sdist may hold."""

    package: str
    sdist: tuple[str, ...]
    wheel: tuple[str, ...]
    folders: tuple[str, ...]


POLYSIFT = Contents(
    package="polysift",
    sdist=(
        "CHANGELOG.md",
        "CITATION.cff",
        "CONTRIBUTING.md",
        "LICENSE",
        "Makefile",
        "PKG-INFO",
        "README.md",
        "SECURITY.md",
        "benchmarks/run.py",
        "docs/conf.py",
        "docs/index.md",
        "pyproject.toml",
        "src/polysift/__init__.py",
        "src/polysift/py.typed",
        "conftest.py",
        "tests/estimators/test_classifier.py",
        "tests/support/problems.py",
        "tools/core_tests.py",
    ),
    wheel=("polysift/__init__.py", "polysift/estimators/classifier.py", "polysift/py.typed"),
    folders=("src", "tests", "docs", "benchmarks", "examples", "tools"),
)
PAPER = Contents(
    package="polysift_paper",
    sdist=(
        "LICENSE",
        "PKG-INFO",
        "README.md",
        "pyproject.toml",
        "src/polysift_paper/__init__.py",
        "src/polysift_paper/py.typed",
    ),
    wheel=(
        "polysift_paper/__init__.py",
        "polysift_paper/app.py",
        "polysift_paper/comparisons/printed.py",
        "polysift_paper/py.typed",
        "polysift_paper/rivals/__init__.py",
        "polysift_paper/studies/simulations.py",
    ),
    folders=("src",),
)
LEFT_BEHIND = ("__pycache__", "_build", "auto_examples", "generated", ".venv", "dist", "out")
"""Folders that building, testing and measuring leave behind."""


def main() -> None:
    """Check the one sdist and the one wheel of each folder; exit with what is wrong."""
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    wrong: list[str] = []
    checked: list[Path] = []
    for folder in map(Path, sys.argv[1:]):
        sdist, wheel = (only(folder, pattern) for pattern in ("*.tar.gz", "*.whl"))
        named = wheel.name.partition("-")[0]
        found = [one for one in (POLYSIFT, PAPER) if one.package == named]
        if not found or sdist.name.partition("-")[0] != named:
            sys.exit(f"{folder} must hold polysift or polysift-paper; got {named} ({sdist.name})")
        wrong += complaints(found[0], names_in_sdist(sdist), names_in(wheel))
        checked += [sdist, wheel]
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"{', '.join(path.name for path in checked)} hold what they should.")


def only(folder: Path, pattern: str) -> Path:
    """Return the one file of that pattern."""
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        sys.exit(f"{folder} must hold one {pattern}; got {len(found)}. Make it with: make dist")
    return found[0]


def names_in_sdist(path: Path) -> list[str]:
    """Return the files of an sdist, without its top folder."""
    with tarfile.open(path) as archive:
        return [member.name.partition("/")[2] for member in archive if member.isfile()]


def names_in(path: Path) -> list[str]:
    """Return the files of a wheel."""
    with zipfile.ZipFile(path) as archive:
        return archive.namelist()


def complaints(contents: Contents, sdist: list[str], wheel: list[str]) -> list[str]:
    """Return what is missing, and what should not be there."""
    found: list[str] = []
    for kind, names, needed in (("sdist", sdist, contents.sdist), ("wheel", wheel, contents.wheel)):
        what = f"the {kind} of {contents.package}"
        found += [f"{what} lacks {name}" for name in needed if name not in names]
        left = [name for name in names if {*name.split("/")[:-1]} & {*LEFT_BEHIND}]
        found += [f"{what} holds {name}" for name in left]
    if not any(name.endswith(".dist-info/licenses/LICENSE") for name in wheel):
        found.append(f"the wheel of {contents.package} lacks its LICENSE")
    packages = {name.split("/")[0] for name in wheel if ".dist-info/" not in name}
    sources = {name.split("/")[1] for name in sdist if name.startswith("src/")}
    for kind, names in (("wheel", packages), ("sdist", sources)):
        strange = sorted(names - {contents.package})
        found += [f"the {kind} of {contents.package} holds {name}" for name in strange]
    folders = {name.split("/")[0] for name in sdist if "/" in name} - {*contents.folders}
    return found + [f"the sdist of {contents.package} holds {name}/" for name in sorted(folders)]


if __name__ == "__main__":
    main()
