"""A real browser, and what it asked for."""

from __future__ import annotations

import json
import shutil

import pytest

webdriver = pytest.importorskip("selenium.webdriver", reason="Selenium is not installed")

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
)


def first_of(*names):
    return next((path for name in names if (path := shutil.which(name))), None)


def started(profile):
    """Return a browser that is at hand; nothing is downloaded."""
    program = first_of("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    driver = first_of("chromedriver")
    if program is None or driver is None:
        pytest.skip(f"no browser at hand: chromium is {program}, chromedriver is {driver}")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(executable_path=driver)
    return webdriver.Chrome(options=options, service=service)


def resize(browser, width):
    """Give the page a width that windows cannot have."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def requested(browser):
    """Return what was asked for since the last look, over the network or not."""
    messages = [json.loads(e["message"])["message"] for e in browser.get_log("performance")]
    sent = [m["params"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    return [params["request"]["url"] for params in sent]
