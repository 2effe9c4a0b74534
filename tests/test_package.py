"""What a newcomer meets first: a light import, documents that agree."""

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
    present = {path.stem for path in (ROOT / "src" / "polysift").glob("*.py")} - {"__init__"}
    assert set(listed) == present
    for place, name in enumerate(listed):
        source = (ROOT / "src" / "polysift" / f"{name}.py").read_text()
        used = {
            line.split()[1].removeprefix("polysift.")
            for line in source.splitlines()
            if line.startswith("from polysift.")
        }
        assert used <= set(listed[:place]), name


def test_public_names_are_there():
    for name in polysift.__all__:
        assert getattr(polysift, name) is not None
        assert name in dir(polysift)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = polysift.nothing


def test_version_is_in_the_changelog():
    assert f"## {polysift.__version__.split('.dev')[0]}" in (ROOT / "CHANGELOG.md").read_text()
