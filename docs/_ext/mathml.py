"""Formulas as MathML, which browsers draw by themselves: no scripts, no network."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx.util import logging

logger = logging.getLogger(__name__)


TAG = re.compile(r"\\tag\{([^}]*)\}")


def _mathml(node: nodes.Element, tex: str, *, block: bool) -> str:
    """Return a formula as MathML, or its source where docutils cannot read it."""
    tex = tex.replace(r"\dots", r"\ldots")
    try:
        return latex2mathml.tex2mathml(tex, as_block=block)
    except MathError as error:
        logger.warning("%s: %s", error, tex, location=node)
        return f"<code>{tex}</code>"


def _inline(translator: Any, node: nodes.Element) -> None:
    translator.body.append(_mathml(node, node.astext(), block=False))
    raise nodes.SkipNode


def _block(translator: Any, node: nodes.Element) -> None:
    tex, tags = TAG.sub("", node.astext()), TAG.findall(node.astext())
    label = f'<span class="eqno">({tags[0]})</span>' if tags else ""
    translator.body.append(f'<div class="math">{label}{_mathml(node, tex, block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer under the name "mathml"."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
