"""Reports in a real browser: complete in themselves, readable on a desk and on a phone."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris

from polysift import FPCClassifier, FPCClassifierCV
from polysift.reporting.report import report
from problems import noisy_problem

pytest.importorskip("selenium.webdriver", reason="Selenium is not installed")

from browsers import requested, resize

ALWAYS = {"summary", "data", "quality", "confusion", "roc", "convergence", "cost", "model"}
ALWAYS |= {"importance", "reproduce", "versions"}
MORE = {"binary": {"reliability"}, "classes": {"reliability"}, "search": {"search"}}
MORE |= {"many": set()}
WIDTHS = (1280, 390)


def binary():
    X, y = noisy_problem(np.random.default_rng(0), 400, 2)
    clf = FPCClassifier(3, calibration="isotonic", random_state=0).fit(X[:300], y[:300])
    return clf, {"training": (X[:300], y[:300]), "validation": (X[300:], y[300:])}


def classes():
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = np.array(["setosa", "versicolor", "virginica " + "long" * 30])[y]
    return FPCClassifier(2, calibration="sigmoid", random_state=0).fit(X, names), (X, names)


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
    return FPCClassifier(2, random_state=0).fit(X, y), {f"set {k}" * 5: (X, y) for k in range(8)}


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
