"""Check that an sdist and a wheel hold what they should and nothing else, as ``make dist`` does."""

from __future__ import annotations

import sys
import tarfile
import zipfile
from pathlib import Path

NEEDED = {
    "sdist": (
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
        "tools/core_tests.py",
    ),
    "wheel": ("polysift/__init__.py", "polysift/estimators/classifier.py", "polysift/py.typed"),
}
LEFT_BEHIND = ("__pycache__", "_build", "auto_examples", "generated", ".venv", "dist", "out")
"""Folders that building, testing and measuring leave behind."""


def main() -> None:
    """Check the one sdist and the one wheel of a folder; exit with what is wrong."""
    folder = Path(sys.argv[1])
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    wrong = [*complaints("sdist", names_in_sdist(sdist)), *complaints("wheel", names_in(wheel))]
    strange = {name.split("/")[0] for name in names_in(wheel)} - {"polysift"}
    wrong += [f"the wheel holds {top}" for top in strange if not top.endswith(".dist-info")]
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"{sdist.name} and {wheel.name} hold what they should.")


def names_in_sdist(path: Path) -> list[str]:
    """Return the files of an sdist, without its top folder."""
    with tarfile.open(path) as archive:
        return [member.name.partition("/")[2] for member in archive if member.isfile()]


def names_in(path: Path) -> list[str]:
    """Return the files of a wheel."""
    with zipfile.ZipFile(path) as archive:
        return archive.namelist()


def complaints(kind: str, names: list[str]) -> list[str]:
    """Return what is missing, and what should not be there."""
    missing = [f"the {kind} lacks {name}" for name in NEEDED[kind] if name not in names]
    left = [name for name in names if {*name.split("/")[:-1]} & {*LEFT_BEHIND}]
    return missing + [f"the {kind} holds {name}" for name in left]


if __name__ == "__main__":
    main()
