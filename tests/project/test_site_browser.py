"""The built site in a real browser, on a desk and on a phone; ``make docs`` comes first."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("selenium.webdriver", reason="Selenium is not installed")

from browsers import requested, resize

SITE = Path(__file__).resolve().parents[2] / "docs" / "_build" / "html"
PAGES = (
    "index",
    "tutorial",
    "cheatsheet",
    "coming-from",
    "measurements",
    "howto/index",
    "howto/files",
    "choosing",
    "auto_examples/index",
    "auto_examples/basics/plot_digits",
    "auto_examples/tables/plot_raw_table",
    "_modules/polysift/estimators/classifier",
    "api/index",
    "api/generated/polysift.FPCClassifier",
    "performance/README",
    "derivations",
    "comparison-uci",
    "simulations",
    "faq",
    "glossary",
    "contributing",
    "paper",
    "rivals",
)
CUT_OFF = """
const seen = element => {  // whether it ends on the screen, or in something that scrolls
  if (element.getBoundingClientRect().right <= innerWidth + 1) return true;
  for (let p = element.parentElement; p; p = p.parentElement)
    if (['auto', 'scroll'].includes(getComputedStyle(p).overflowX)
        && p.getBoundingClientRect().right <= innerWidth + 1) return true;
  return false;
};
return [...document.querySelectorAll('.bd-article *')].filter(e => !seen(e))
  .map(e => e.tagName + ': ' + e.textContent.slice(0, 60));
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not SITE.exists(), reason="the site is not built: make docs"),
]


@pytest.mark.parametrize("width", [1400, 390])
@pytest.mark.parametrize("page", PAGES)
def test_page(browser, page, width):
    for log in ("browser", "performance"):
        browser.get_log(log)
    resize(browser, width)
    browser.get((SITE / f"{page}.html").as_uri())
    assert not [url for url in requested(browser) if url.startswith("http")], "all is at hand"
    assert [e["message"] for e in browser.get_log("browser") if e["level"] == "SEVERE"] == []

    images = browser.execute_script(
        "return [...document.images].filter(i => i.loading !== 'lazy' && !i.naturalWidth)"
        ".map(i => i.src)"
    )
    assert images == [], "every picture is there"
    wide = browser.execute_script("return document.documentElement.scrollWidth")
    assert wide <= width, "the page does not scroll sideways"
    assert browser.execute_script(CUT_OFF) == [], "nothing is cut off"
