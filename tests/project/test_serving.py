"""Models behind an address and in a web page, by the files of the documentation."""

import asyncio
import importlib.util
import shutil
import subprocess
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

import polysift
from clocks import GUARD
from polysift import FPCClassifier
from polysift.datasets import make_bayes_curve

pd = pytest.importorskip("pandas")

ROOT = Path(__file__).resolve().parents[2]
FILES = ROOT / "docs" / "howto" / "serving"
RUNTIME = ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")


@pytest.fixture(scope="module")
def sales():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"age": rng.integers(18, 90, 600), "city": rng.choice(["Bern", "Bonn", "Köln"], 600)}
    )
    frame.loc[::9, "age"] = np.nan
    sold = np.where((frame["age"] > 50) == (frame["city"] == "Bern"), "yes", "no")
    return frame, FPCClassifier(n_centers=60, random_state=0).fit(frame, sold)


def served(model, folder, monkeypatch):
    """Return a function that asks the application that serves a model."""
    import httpx

    polysift.save(model, folder / "model.polysift")
    monkeypatch.setenv("POLYSIFT_MODEL", str(folder / "model.polysift"))
    spec = importlib.util.spec_from_file_location("served_app", FILES / "app.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    async def asked(method, path, **sent):
        transport = httpx.ASGITransport(app=module.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://model") as client:
            return await client.request(method, path, **sent)

    return lambda method, path, **sent: asyncio.run(asked(method, path, **sent))


@pytest.mark.needs("fastapi", "httpx")
def test_the_application_answers(sales, tmp_path, monkeypatch):
    frame, clf = sales
    ask = served(clf, tmp_path, monkeypatch)
    about = ask("GET", "/").json()
    assert about["columns"] == {"age": "number", "city": "category"}
    assert about["classes"] == ["no", "yes"] and about["trained on"] == 600
    rows = frame.head(20)
    sent = [
        {name: value for name, value in row.items() if value == value}
        for row in rows.to_dict("records")
    ]
    answer = ask("POST", "/predict", json={"rows": sent}).json()
    assert answer["label"] == clf.predict(rows).tolist()
    np.testing.assert_array_equal(answer["score"], clf.decision_function(rows))
    np.testing.assert_array_equal(answer["probabilities"], clf.predict_proba(rows))


@pytest.mark.needs("fastapi", "httpx")
def test_the_application_says_what_is_wrong(sales, tmp_path, monkeypatch):
    ask = served(sales[1], tmp_path, monkeypatch)
    for rows, text in (
        ([{"ages": 40}], "There is no column 'ages'; the columns are ['age', 'city']"),
        ([{"age": "old", "city": "Bern"}], "age"),
        ([], "at least 1"),
        ("none", "list"),
    ):
        answer = ask("POST", "/predict", json={"rows": rows})
        assert answer.status_code == 422 and text in answer.text, answer.text


@pytest.mark.needs("fastapi", "httpx")
def test_the_application_serves_numbers_without_names(tmp_path, monkeypatch):
    X, y = make_bayes_curve(500, random_state=0)
    clf = FPCClassifier(n_centers=30, random_state=0).fit(X, y)
    ask = served(clf, tmp_path, monkeypatch)
    rows = [{"x0": a, "x1": b} for a, b in X[:5].tolist()]
    answer = ask("POST", "/predict", json={"rows": rows}).json()
    assert answer["label"] == clf.predict(X[:5]).tolist()


@pytest.fixture(scope="module")
def runtime(tmp_path_factory):
    """Return the files of onnxruntime-web, from the registry of npm."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    folder = tmp_path_factory.mktemp("npm")
    command = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder)]
    command += ["--ignore-scripts", "onnxruntime-web"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=GUARD, check=False)
    if done.returncode:
        pytest.skip(f"onnxruntime-web cannot be had: {done.stderr[-300:]}")
    return folder / "node_modules" / "onnxruntime-web" / "dist"


@pytest.fixture
def address(tmp_path):
    """Return the address of a server of this test's folder."""

    class Quiet(SimpleHTTPRequestHandler):
        extensions_map = {
            **SimpleHTTPRequestHandler.extensions_map,
            ".mjs": "text/javascript",
            ".wasm": "application/wasm",
        }

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=tmp_path))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.mark.slow  # it asks the registry of npm, and compiles 14 MB of WebAssembly
@pytest.mark.needs("onnx", "selenium")
def test_a_model_answers_in_a_web_page(sales, runtime, address, browser, tmp_path):
    from selenium.webdriver.support.ui import WebDriverWait

    _, clf = sales
    for name in RUNTIME:
        shutil.copy(runtime / name, tmp_path / name)
    shutil.copy(FILES / "page.html", tmp_path / "page.html")
    polysift.to_onnx(clf, tmp_path / "model.onnx")
    browser.get(f"{address}/page.html")
    answer = browser.find_element("id", "answer")
    wait = WebDriverWait(browser, GUARD)
    wait.until(lambda _: "loaded" not in answer.text)
    assert answer.text.startswith("label: "), answer.text

    def asked(age, city):
        for name, value in (("age", age), ("city", city)):
            field = browser.find_element("name", name)
            field.clear()
            field.send_keys(value)
        row = pd.DataFrame({"age": [float(age) if age else np.nan], "city": [city or None]})
        expected = clf.decision_function(row)[0]
        near = "return Math.abs(document.getElementById('answer').dataset.score - arguments[0])"
        wait.until(lambda _: browser.execute_script(near, expected) < 1e-9)
        assert f"label: {clf.predict(row)[0]}, probabilities:" in answer.text

    asked("70", "Bern")
    asked("70", "Bonn")
    asked("", "Köln")
    asked("20", "Atlantis")
    requested = browser.execute_script(
        "return performance.getEntriesByType('resource').map((entry) => entry.name)"
    )
    assert requested and all(name.startswith(address) for name in requested)
