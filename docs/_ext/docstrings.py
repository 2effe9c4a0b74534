"""Docstrings as they are written for a terminal, made to read well on a page.

A fitted attribute such as ``n_iter_`` may stand in them without backquotes, as it does in
scikit-learn's; in reStructuredText a word that ends in an underscore is a link. And a display
speaks of ``FPCClassifier``, which lives one level up.
"""

from __future__ import annotations

import re
from typing import Any

LITERAL = re.compile(r"(``.*?``|`[^`]*`_*|\*\*.*?\*\*)")
LINK_LIKE = re.compile(r"(?<=\w)_(?=[^\w`]|$)")


def _escape(line: str) -> str:
    if line.lstrip().startswith((">>>", "...", ".. ")):
        return line
    parts = LITERAL.split(line)
    return "".join(p if k % 2 else LINK_LIKE.sub(r"\\_", p) for k, p in enumerate(parts))


def escape_underscores(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Escape underscores at the end of words, after numpydoc has done its part."""
    lines[:] = [_escape(line) for line in lines]


def find_in_package(app: Any, env: Any, node: Any, contnode: Any) -> Any:
    """Resolve a bare name, such as ``FPCClassifier``, as one of the package's own."""
    target = node.get("reftarget", "")
    if node.get("refdomain") != "py" or "." in target:
        return None
    domain = env.get_domain("py")
    return domain.resolve_xref(
        env, node["refdoc"], app.builder, "obj", f"polysift.{target}", node, contnode
    )


def setup(app: Any) -> dict[str, bool]:
    """Register both."""
    app.connect("autodoc-process-docstring", escape_underscores, priority=900)
    app.connect("missing-reference", find_in_package)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
