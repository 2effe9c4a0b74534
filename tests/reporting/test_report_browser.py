"""Reports in a real browser: complete in themselves, readable on a desk and on a phone."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest
from sklearn.datasets import load_iris

from polysift import FPCClassifierCV
from polysift.reporting.report import report
from problems import noisy_problem, paper_classifier

pytest.importorskip("selenium.webdriver", reason="Selenium is not installed")

from browsers import requested, resize

ALWAYS = {"summary", "data", "quality", "confusion", "roc", "convergence", "cost", "model"}
ALWAYS |= {"columns", "importance", "reproduce", "versions"}
MORE = {"binary": {"reliability"}, "classes": {"reliability"}, "search": {"search", "reliability"}}
MORE |= {"many": set()}
WIDTHS = (1280, 390)


def binary():
    X, y = noisy_problem(np.random.default_rng(0), 400, 2)
    clf = paper_classifier(3, calibration="isotonic", random_state=0).fit(X[:300], y[:300])
    return clf, {"training": (X[:300], y[:300]), "validation": (X[300:], y[300:])}


def classes():
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = np.array(["setosa", "versicolor", "virginica " + "long" * 30])[y]
    return paper_classifier(2, calibration="sigmoid", random_state=0).fit(X, names), (X, names)


def search():
    X, y = noisy_problem(np.random.default_rng(0), 300, 2)
    tuned = FPCClassifierCV((1, 2, 3), (3, 6), max_iter=(5, 10), cv=3, random_state=0).fit(X, y)
    return tuned, {"training": (X, y)}


def many():
    """Return a model of classes with long names, and many data sets: wide tables."""
    rng = np.random.default_rng(0)
    codes = np.arange(600) % 25
    X = rng.random((25, 4))[codes] + 0.1 * rng.normal(size=(600, 4))
    y = np.array([f"{'verylongname' * 4}{k}" for k in range(25)])[codes]
    return paper_classifier(2, random_state=0).fit(X, y), {f"set {k}" * 5: (X, y) for k in range(8)}


@pytest.fixture(scope="module")
def addresses(tmp_path_factory):
    """Return where each report lies."""
    folder = tmp_path_factory.mktemp("reports")
    found = {}
    for make in (binary, classes, search, many):
        path = folder / f"{make.__name__}.html"
        model, data = make()
        report(model, data, path, command="polysift " + "--option value " * 30)
        found[make.__name__] = path.as_uri()
    return found


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", MORE)
def test_report(browser, addresses, name, width):
    address = addresses[name]
    for log in ("browser", "performance"):
        browser.get_log(log)
    resize(browser, width)
    browser.get(address)
    assert [url for url in requested(browser) if not url.startswith("data:")] == [address]
    assert browser.get_log("browser") == []

    heights = browser.execute_script(
        "return Object.fromEntries([...document.querySelectorAll('section')]"
        ".map(s => [s.id, s.checkVisibility() ? s.getBoundingClientRect().height : 0]))"
    )
    assert heights.keys() == ALWAYS | MORE[name] and min(heights.values()) > 50

    images = browser.execute_script(
        "return [...document.images].map(i => [i.complete, i.naturalWidth, i.clientWidth])"
    )
    assert len(images) >= 2 and all(done and real > 0 and seen > 250 for done, real, seen in images)

    wide = browser.execute_script(
        "return [document.documentElement, document.body].map(e => e.scrollWidth)"
    )
    assert max(wide) <= width, "the page does not scroll sideways"


@pytest.fixture
def outside():
    """Return the address of a server, and what it was asked for."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, *_):
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
        thread.join()


def test_nothing_else_is_loaded_or_run(browser, addresses, outside, tmp_path):
    """Whatever got into a report: the browser refuses scripts, styles and addresses."""
    address, asked = outside
    evil = (
        "<script>document.title = 'run'</script>"
        "<img src='data:,' onerror=\"document.title = 'run'\">"
        f"<img src='{address}/picture.png'>"
        "<style>h1 { display: none }</style>"
        "<p id='styled' style='display: none'>shown</p>"
        f"<iframe src='{address}/frame'></iframe>"
        f"<link rel='stylesheet' href='{address}/sheet.css'>"
    )
    html = Path(unquote(urlsplit(addresses["binary"]).path)).read_text(encoding="utf-8")
    html = html.replace("<main>", f"<main>{evil}")
    browser.get_log("browser")

    def visit(page):
        (tmp_path / "evil.html").write_text(page, encoding="utf-8")
        browser.get((tmp_path / "evil.html").as_uri())
        seen = (browser.find_element("css selector", name) for name in ("h1", "#styled"))
        return browser.title == "run", [element.is_displayed() for element in seen]

    assert visit(html) == (False, [True, True]) and asked == []
    refused = [entry["message"] for entry in browser.get_log("browser")]
    assert len(refused) >= 7 and all("Content Security Policy" in text for text in refused)
    unguarded = html.replace("Content-Security-Policy", "nothing")
    assert visit(unguarded) == (True, [False, False])
    assert {"/picture.png", "/frame", "/sheet.css"} <= set(asked)


def test_styles_of_elements_hold(browser, addresses):
    """Bars are as long as their values say, and cells as dark."""
    browser.get(addresses["classes"])
    assert browser.find_elements("css selector", "[style]") == []
    widths, shades = browser.execute_script(
        "const of = (what, key) => [...new Set([...document.querySelectorAll(what)]"
        ".map(e => getComputedStyle(e)[key]))];"
        "return [of('.track i', 'width'), of('.confusion td[data-style]', 'backgroundColor')]"
    )
    assert len(widths) > 2 and len(shades) > 1 and "rgba(0, 0, 0, 0)" not in shades


@pytest.mark.parametrize("width", WIDTHS)
def test_contents_lead_to_sections(browser, addresses, width):
    resize(browser, width)
    browser.get(addresses["binary"])
    browser.execute_script("document.documentElement.style.scrollBehavior = 'auto'")
    links = browser.find_elements("css selector", "nav a")
    assert len(links) == len(ALWAYS) + 1
    for link in links:
        link.click()
        target = link.get_attribute("href").partition("#")[2]
        top, bottom, bar, room = browser.execute_script(
            "const s = document.querySelector(':target h2').getBoundingClientRect();"
            "const n = document.querySelector('nav').getBoundingClientRect();"
            "return [s.top, s.bottom, n.bottom, window.innerHeight]"
        )
        assert browser.current_url.endswith(f"#{target}")
        assert bar <= top < bottom <= room, "the heading is in sight, below the bar of links"


def test_print_has_no_bar_of_links(browser, addresses):
    resize(browser, 1280)
    browser.get(addresses["search"])
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    shown = browser.execute_script("return getComputedStyle(document.querySelector('nav')).display")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert shown == "none"
