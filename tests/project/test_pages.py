"""Pages of the documentation as their readers use them: every block, from top to bottom.

Blocks of Python share one namespace per page; ``sh`` and ``console`` blocks run in bash, in the
same folder. What a page shows as output (the ``text`` block right after a block, or what follows
``$`` in a ``console`` block) is compared as in a doctest, with ``...`` for anything. A block after
``<!-- not run: why -->`` is left out.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shutil
import subprocess
import sys
import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from clocks import GUARD

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"

NEEDS = {
    "README.md": ("pyarrow", "onnxruntime", "matplotlib"),
    "howto/files.md": ("pyarrow", "typer"),
    "howto/tuning.md": ("typer", "matplotlib"),
    "howto/probabilities.md": ("matplotlib",),
    "howto/imbalance.md": ("typer",),
    "howto/onnx.md": ("onnxruntime", "pandas", "skl2onnx", "typer"),
    "howto/model-card.md": ("skops", "pandas", "matplotlib"),
    "howto/mlflow.md": ("mlflow", "skops", "pandas", "matplotlib"),
    "howto/serve.md": ("onnx", "pandas"),
    "howto/ray.md": ("ray", "pyarrow", "typer"),
    "howto/spark.md": ("pyspark", "ray", "pyarrow", "pandas"),
    "howto/resume.md": ("pyarrow", "typer"),
    "tutorial.md": ("pandas", "pyarrow", "typer", "matplotlib"),
    "cheatsheet.md": ("pandas", "pyarrow", "onnxruntime", "matplotlib", "typer"),
    "choosing.md": ("pandas",),
    "coming-from.md": ("pandas", "lightgbm", "polysift_paper"),
    "faq.md": ("pandas", "joblib"),
    "tables.md": ("pandas",),
}
"""What a page runs on beyond the core."""

SLOW = {"README.md", "howto/ray.md", "howto/spark.md"}
"""A whole search, and blocks that start clusters of their own."""

ELSEWHERE = ("s3://", "make ", "pip install")
"""What marks a block of the README that is about another machine, or about installing."""

ELSEWHERE_ALONE = {"howto/devices.md", "howto/spark.md"}
"""Pages all of whose blocks need more than the tests have: torch, a GPU, a Spark cluster."""

BLOCK = re.compile(
    r"^(?P<skip><!-- not run:[^\n]*-->\n\n?)?```(?P<language>\w+)\n(?P<text>.*?)^```$", re.M | re.S
)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A fenced block: language, text, first line, and what it prints, where that is shown."""

    language: str
    text: str
    line: int
    shown: str | None = None


def blocks_of(page: Path) -> list[Block]:
    text, blocks, end = page.read_text(encoding="utf-8"), [], -1
    for found in BLOCK.finditer(text):
        language, body = found["language"], found["text"]
        line = text.count("\n", 0, found.start("text")) + 1
        follows = end >= 0 and not text[end : found.start()].strip()
        if language == "text" and follows and blocks:
            blocks[-1] = Block(blocks[-1].language, blocks[-1].text, blocks[-1].line, body)
        elif language in {"python", "sh", "console"} and not found["skip"]:
            blocks.append(Block(language, body, line))
        end = found.end()
    return blocks


def pages() -> list[str]:
    howto = sorted(path.name for path in (DOCS / "howto").glob("*.md") if path.stem != "index")
    others = ["cheatsheet.md", "coming-from.md", "index.md", "tutorial.md", "choosing.md"]
    others += ["explain.md", "faq.md", "tables.md"]
    return ["README.md", *(f"howto/{name}" for name in howto), *others]


def path_of(name: str) -> Path:
    return ROOT / name if name == "README.md" else DOCS / name


def compare(where: str, shown: str, printed: str) -> None:
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    same = doctest.OutputChecker().check_output(shown, printed, flags)
    assert same, f"{where} shows\n{shown}\nbut prints\n{printed}"


def run_python(where: str, block: Block, page: Path, namespace: dict) -> str:
    printed = io.StringIO()
    # The page's own lines in a traceback: the block is moved down to where it stands.
    code = compile("\n" * (block.line - 1) + block.text, str(page), "exec")
    with contextlib.redirect_stdout(printed):
        exec(code, namespace)
    return printed.getvalue()


def run_shell(where: str, script: str) -> str:
    scripts = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        capture_output=True,
        text=True,
        timeout=GUARD,
        env=os.environ | {"PATH": scripts, "COLUMNS": "120"},
    )
    assert done.returncode == 0, f"{where} ended with {done.returncode}:\n{done.stderr}"
    return done.stdout


def run_console(where: str, text: str) -> None:
    for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.M):
        compare(where, shown, run_shell(where, command))


def run_page(name: str, blocks: list[Block]) -> None:
    namespace: dict = {"__name__": "__main__"}
    for block in blocks:
        where = f"{name}, line {block.line},"
        if block.language == "console":
            run_console(where, block.text)
            continue
        if block.language == "python":
            printed = run_python(where, block, path_of(name), namespace)
        else:
            printed = run_shell(where, block.text)
        if block.shown is not None:
            compare(where, block.shown, printed)


def data_of_the_readme() -> None:
    """Write the files that the README speaks of."""
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    from polysift.datasets import make_bayes_curve

    X, y = make_bayes_curve(5_000, noise=0.1, random_state=0)
    table = pa.table({"x1": X[:, 0], "x2": X[:, 1], "label": y})
    Path("data").mkdir()
    for part in range(2):
        pq.write_table(table.slice(part * 2_500, 2_500), f"data/{part}.parquet")
    np.savetxt("table.csv", np.c_[X, y], "%.17g", ",", header="x1,x2,label", comments="")
    np.savetxt("new.csv", X[:100], "%.17g", ",", header="x1,x2", comments="")


def prepare_spark(monkeypatch) -> None:
    """Let Spark and Ray find what they start, here and in their processes."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java")
    scripts = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    monkeypatch.setenv("PATH", scripts)
    warnings.simplefilter("default")  # theirs are no errors


@pytest.mark.filterwarnings("ignore::DeprecationWarning:ray.data.context")  # about itself
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in pages()]
)
def test_every_block_runs_and_prints_what_is_shown(name, tmp_path, monkeypatch, request):
    for module in NEEDS.get(name, ()):  # found, not imported: a page sets what Ray reads then
        if find_spec(module) is None:
            pytest.skip(f"{name} needs {module}")
    if name == "howto/ray.md":
        request.getfixturevalue("four_workers")
    if name == "howto/spark.md":
        prepare_spark(monkeypatch)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    blocks = blocks_of(path_of(name))
    if name == "README.md":
        blocks = [block for block in blocks if not any(word in block.text for word in ELSEWHERE)]
        data_of_the_readme()
    run_page(name, blocks)


def test_the_pages_have_blocks():
    """A page whose fences are not recognised would pass without a word."""
    for name in pages():
        assert blocks_of(path_of(name)) or name in ELSEWHERE_ALONE, name


def anchors_of(page: Path) -> set[str]:
    """Return the anchors of headings, as code hosts and MyST make them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.*)$", text, re.M)
    plain = (re.sub(r"[^\w\- ]", "", re.sub(r"\[(.*?)\]\(.*?\)", r"\1", h)) for h in headings)
    return {heading.strip().lower().replace(" ", "-") for heading in plain}


def markdown() -> list[Path]:
    """Return all pages that are read as they are: not what they are made of, or built from."""
    found = (path for path in DOCS.rglob("*.md") if not path.is_relative_to(DOCS / "results"))
    written = (path for path in found if "/_" not in path.relative_to(ROOT).as_posix())
    return sorted([ROOT / "README.md", *written])


@pytest.mark.parametrize("page", markdown(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for target in LINK.findall(text):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        goal = (page.parent / file).resolve() if file else page
        assert goal.exists(), f"{page.name} links to {target}"
        if anchor and goal.suffix == ".md":
            assert anchor in anchors_of(goal), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", ["derivations.md", "glossary.md", "numerics.md"])
def test_modules_and_names_of_the_code_are_there(page):
    """What a page says of the code: `solvers.admm.Run.step` is a class or function of a module."""
    package = ROOT / "src" / "polysift"
    rooms = {path.parent.name for path in package.glob("*/__init__.py")} | {"losses"}
    found = re.findall(r"`([a-z_]+(?:\.\w+)*)`", (DOCS / page).read_text(encoding="utf-8"))
    words = {word for word in found if word.split(".")[0] in rooms}
    assert words
    for word in words:
        parts = word.split(".")
        module = package.joinpath(*parts[: 1 if parts[0] == "losses" else 2]).with_suffix(".py")
        assert module.exists(), f"{page} names {word}"
        for name in parts[1 if parts[0] == "losses" else 2 :]:
            defined = rf"(?:class|def|self\.|    ) ?{name}\b|^{name}\b"
            assert re.search(defined, module.read_text(), re.M), f"{page} names {word}"
