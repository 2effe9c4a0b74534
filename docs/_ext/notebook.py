"""The tutorial as a notebook that was run: written and executed while the site is built.

Blocks of Python become cells, those of a shell cells of ``sh``; what a block prints is what the
notebook printed here, not what the page shows.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

PAGE = "tutorial"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
PICTURE = re.compile(r"^!\[[^\]]*\]\([^)]*\)$", re.M)
LINK = re.compile(r"\]\((?!https?:)([\w./-]+)\.md(#[\w-]+)?\)")
SITE = "https://polysift.readthedocs.io/en/stable/"
HINT = f"\n\n{{download}}`This page as a notebook <{PAGE}.ipynb>`, with what it printed here.\n"


def make_notebook(app: Any) -> None:
    """Write the notebook beside the page, unless one is there that is newer."""
    source, target = Path(app.srcdir, f"{PAGE}.md"), Path(app.srcdir, f"{PAGE}.ipynb")
    if target.exists() and target.stat().st_mtime > source.stat().st_mtime:
        return
    notebook = nbformat.v4.new_notebook(cells=[*_cells(source.read_text(encoding="utf-8"))])
    scripts = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with tempfile.TemporaryDirectory(prefix="polysift-notebook-") as folder:
        where = {"metadata": {"path": folder}}
        client = NotebookClient(notebook, timeout=600, startup_timeout=600, resources=where)
        client.execute(env=os.environ | {"PATH": scripts})
    for number, cell in enumerate(notebook.cells):  # ids that are drawn would differ in each build
        cell.id = f"cell-{number}"
        cell.metadata.pop("execution", None)
    nbformat.validate(notebook)
    nbformat.write(notebook, target)


def _cells(text: str) -> Any:
    """Yield the cells of a page: words, Python and commands; outputs come from the run."""
    end = 0
    for found in [*BLOCK.finditer(text), None]:
        words = text[end : found.start() if found else len(text)]
        words = LINK.sub(rf"]({SITE}\1.html\2)", PICTURE.sub("", words)).strip()
        if words:
            yield nbformat.v4.new_markdown_cell(words)
        if found is None:
            return
        language, code = found[1], found[2].rstrip()
        if language == "python":
            yield nbformat.v4.new_code_cell(code)
        elif language == "sh":
            yield nbformat.v4.new_code_cell(f"%%sh\n{code}")
        end = found.end()


def offer_notebook(app: Any, name: str, content: list[str]) -> None:
    """Put the link to the notebook under the first paragraph of the page."""
    if name == PAGE:
        head, first, rest = content[0].split("\n\n", 2)
        content[0] = f"{head}\n\n{first}{HINT}\n{rest}"


def setup(app: Any) -> dict[str, bool]:
    """Register both."""
    app.connect("builder-inited", make_notebook)
    app.connect("source-read", offer_notebook)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
