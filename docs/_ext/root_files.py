"""Links between files outside docs/, such as CONTRIBUTING.md, which are pages of the site too."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

PAGES = {
    "README": "index",
    "CHANGELOG": "changelog",
    "CONTRIBUTING": "contributing",
    "paper/README": "paper",
}
LINK = re.compile(rf"(?<=\]\()({'|'.join(PAGES)})(?=\.md[#)])")


def lead_to_pages(app: Any, path: Path, parent: str, content: list[str]) -> None:
    """Make a link to ``CONTRIBUTING.md`` one to the page that includes that file."""
    if path.stem in PAGES:
        content[0] = LINK.sub(lambda found: PAGES[found[0]], content[0])


def setup(app: Any) -> dict[str, bool]:
    """Register it for what pages include."""
    app.connect("include-read", lead_to_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
