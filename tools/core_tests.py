"""Run the core tests of a built release in an empty environment, as ``make test-wheel`` does.

The wheel goes into a fresh environment with its core dependencies and the test tools, and nothing
else; the sdist is unpacked, and its tests run against the installed wheel. So the release
is tested, not the tree it was made from: a module or a data file that one of the two lacks, an
import of something that only an extra brings, a version that is too old, all show here.

``--oldest`` installs the oldest versions that pyproject.toml admits in place of the newest.
The core tests are those that run so: a test that needs more skips, and says what it lacks.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path

TOOLS = ("pytest>=8", "pytest-xdist>=3.5", "hypothesis>=6.100")
BESIDE_THE_CORE = ("project/test_release.py", "project/test_pages.py")
"""Files whose tests are about the making of releases, or about pages that use every extra."""
WHERE = "import polysift, pathlib; print(pathlib.Path(polysift.__file__).resolve())"


def main() -> int:
    """Test what lies in the folder of built files, and return pytest's exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dist", type=Path, help="the folder with one sdist and one wheel")
    parser.add_argument("--oldest", action="store_true", help="the oldest core dependencies")
    parser.add_argument("words", nargs="*", help="further words for pytest, after --")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="polysift-core-") as folder:
        tree = unpack(only(given.dist, "*.tar.gz"), Path(folder) / "sdist")
        python = environment(Path(folder) / "venv")
        pins = oldest(tree / "pyproject.toml") if given.oldest else ()
        install(python, only(given.dist, "*.whl"), pins)
        return test(python, tree, given.words)


def only(folder: Path, pattern: str) -> Path:
    """Return the one file of that pattern."""
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        sys.exit(f"{folder} must hold one {pattern}; got {len(found)}. Make it with: make dist")
    return found[0].resolve()


def unpack(sdist: Path, folder: Path) -> Path:
    """Return the top folder of an unpacked sdist."""
    with tarfile.open(sdist) as archive:
        # Python 3.11 knows the filter from 3.11.4 on; the archive is our own.
        safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        archive.extractall(folder, **safely)
    return next(folder.iterdir())


def environment(folder: Path) -> Path:
    """Return the Python of a fresh environment that sees nothing of this one."""
    venv.create(folder, with_pip=True)
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def oldest(pyproject: Path) -> tuple[str, ...]:
    """Return the core dependencies, each at the oldest version that is admitted."""
    import tomllib

    needed = tomllib.loads(pyproject.read_text())["project"]["dependencies"]
    strange = [words for words in needed if not re.fullmatch(r"[\w-]+>=[\d.]+", words)]
    if strange:
        sys.exit(f"core dependencies must read name>=version; got {strange}")
    return tuple(words.replace(">=", "==") for words in needed)


def install(python: Path, wheel: Path, pins: tuple[str, ...]) -> None:
    """Install the wheel, and say which versions came with it."""
    pip = [python, "-I", "-m", "pip", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--quiet", wheel, *pins, *TOOLS], check=True)
    subprocess.run([*pip, "list", "--format=freeze"], check=True)


def test(python: Path, tree: Path, words: list[str]) -> int:
    """Run the tests of the unpacked sdist against the installed wheel."""
    # Real data sets are no part of a release, and their files need an extra.
    left_out = "PYTHONPATH", "POLYSIFT_DATA"
    settings = {name: value for name, value in os.environ.items() if name not in left_out}
    settings |= {"OPENBLAS_NUM_THREADS": "1"}
    where = subprocess.run(
        [python, "-c", WHERE], cwd=tree, env=settings, text=True, capture_output=True, check=True
    ).stdout.strip()
    if not Path(where).is_relative_to(python.parents[1].resolve()):
        sys.exit(f"the tests would not run against the wheel, but against {where}")
    beside = [f"--ignore=tests/{name}" for name in BESIDE_THE_CORE]
    two = ["-n", "2", "--dist", "loadfile"]
    command = [python, "-m", "pytest", "-q", *two, "-m", "not slow", "tests", *beside, *words]
    return subprocess.run(command, cwd=tree, env=settings).returncode


if __name__ == "__main__":
    sys.exit(main())
