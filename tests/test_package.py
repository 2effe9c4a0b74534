"""What a newcomer meets first: a light import, a demo that runs, documents that agree."""

import subprocess
import sys
from pathlib import Path

import pytest

import polysift
from polysift import demo

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


def test_version_is_in_the_changelog():
    assert f"## {polysift.__version__.split('.dev')[0]}" in (ROOT / "CHANGELOG.md").read_text()


def test_demo(tmp_path, capsys):
    picture = tmp_path / "boundary.png"
    assert demo.main(["--rows", "20000", "--output", str(picture)]) == 0
    printed = capsys.readouterr().out
    for word in ("rows", "degree", "centers", "iterations", "training time", "rows per second"):
        assert word in printed
    for word in ("peak memory", "train error", "test error", "Bayes"):
        assert word in printed
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert list(tmp_path.iterdir()) == [picture], "nothing half-written stays behind"


def test_demo_mistakes(tmp_path, capsys):
    assert demo.main(["--rows", "100", "--output", str(tmp_path / "no" / "x.png")]) == 2
    assert "does not exist" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        demo.main(["--rows", "many"])
