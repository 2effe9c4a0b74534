"""Text of data, models and names of files reaches the terminal without control characters."""

import io
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")
pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

from typer.testing import CliRunner  # noqa: E402

from polysift import explain, save  # noqa: E402
from polysift.cli.app import app  # noqa: E402
from polysift.cli.console import busy, say, show_facts, show_lines, show_table  # noqa: E402
from polysift.runtime.progress import Monitor  # noqa: E402
from polysift.runtime.terminal import escaped, escaping_output  # noqa: E402
from problems import paper_classifier  # noqa: E402

EVIL = "\x1b]0;x\x07\x1b[2J\u202e"
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
STYLES = re.compile(r"\x1b\[[0-9;]*m|\x1b\[\?25[lh]|\x1b\[\d*[AK]|\r")
"""What rich writes to a terminal: colours, and the moves of a progress bar."""


@pytest.fixture(scope="module")
def evil(tmp_path_factory):
    """Return a folder with a model and rows whose names and classes are evil."""
    folder = tmp_path_factory.mktemp("evil")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((300, 2)), columns=[f"f{EVIL}", "plain"])
    labels = np.where(frame["plain"] > 0.5, f"class{EVIL}", "other")
    clf = paper_classifier(2, random_state=0).fit(frame, labels)
    save(clf, folder / f"m{EVIL.replace('/', '')}.polysift")
    save(clf, folder / "m.polysift")
    frame.assign(**{f"y{EVIL}": labels}).to_parquet(folder / "rows.parquet")
    frame.assign(**{f"y{EVIL}": "a"}).to_parquet(folder / "one.parquet")
    frame.iloc[:, 1:].assign(**{f"y{EVIL}": labels}).to_parquet(folder / "narrow.parquet")
    (folder / f"rows{EVIL}.csv").write_text(f'"f{EVIL}",plain\n1,2\nbad{EVIL},4\n')
    return folder


TARGET = ("--target", f"y{EVIL}")
COMMANDS = [
    (0, "fit", "rows.parquet", *TARGET, "--degree", "2", "-o", f"new{EVIL}.polysift", "--force"),
    (0, "fit", "rows.parquet", *TARGET, "--degree", "2", "-f", "--json", "-o", f"new{EVIL}"),
    (0, "fit", "rows.parquet", *TARGET, "--dry-run"),
    (1, "fit", "one.parquet", *TARGET, "-f"),
    (1, "fit", "rows.parquet", "--target", f"none{EVIL}", "-f"),
    (0, "fit", f"rows{EVIL}.csv", "--target", "plain", "-f"),
    (1, "fit", f"rows{EVIL}.csv", "--target", "plain", "-f", "--numeric", "0"),
    (1, "fit", f"missing{EVIL}.csv", "--target", "plain", "-f", "--debug"),
    (0, "tune", "rows.parquet", *TARGET, "--degrees", "1,2", "--cv", "2", "-f"),
    (0, "predict", "m.polysift", "rows.parquet", "-o", f"p{EVIL}.csv", "--scores", "-f"),
    (1, "predict", "m.polysift", "narrow.parquet", "-o", "p.csv", "-f"),
    (2, "predict", "m.polysift", "rows.parquet", "-o", f"p{EVIL}.xlsx"),
    (0, "evaluate", "m.polysift", "rows.parquet", *TARGET),
    (0, "evaluate", "m.polysift", "rows.parquet", *TARGET, "--json"),
    (0, "inspect", f"m{EVIL}.polysift"),
    (0, "inspect", "m.polysift", "--explain"),
    (0, "inspect", "m.polysift", "--explain", "--json"),
    (1, "inspect", f"rows{EVIL}.csv"),
    (0, "export", "m.polysift", f"m{EVIL}.onnx", "-f"),
    (2, "inspect", "m.polysift", f"m{EVIL}.polysift"),
    (2, f"nothing{EVIL}"),
    (2, f"--nothing{EVIL}"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: " ".join(map(str, words[:3])))
def test_every_command(evil, monkeypatch, command):
    code, *words = command
    if words[0] == "export":
        pytest.importorskip("onnx")
    monkeypatch.chdir(evil)
    outcome = CliRunner().invoke(app, words)
    shown = outcome.stdout + outcome.stderr
    assert outcome.exit_code == code, shown
    assert shown and not UNSAFE.search(shown), repr(shown)
    if "--json" in words:
        assert json.loads(outcome.stdout)["classes"][0] == f"class{EVIL}"


def test_a_bug_that_ends_a_real_command(evil):
    """Python itself prints the traceback of what is no error of the user."""
    code = (
        "import sys, polysift.__main__, polysift.cli.models as models\n"
        f"def fail(path): raise RuntimeError({EVIL!r} + ' is a bug')\n"
        "models._load = fail\n"
        "sys.argv = ['polysift', 'inspect', 'm.polysift']\n"
        "polysift.__main__.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=evil, capture_output=True, text=True)
    assert done.returncode == 1 and "is a bug" in done.stderr
    assert not UNSAFE.search(done.stdout + done.stderr)


def read_all(terminal):
    """Return what is written to a terminal until it is closed."""
    shown = b""
    with suppress(OSError), open(terminal, "rb", buffering=0) as file:
        while piece := file.read(2**16):
            shown += piece
    return shown.decode()


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="there are no such terminals here")
def test_a_real_terminal(monkeypatch):
    """The styles of tables, bars and messages are there, and nothing else."""
    master, slave = os.openpty()
    with ThreadPoolExecutor(1) as pool, open(slave, "w", buffering=1) as terminal:
        reading = pool.submit(read_all, master)
        monkeypatch.setenv("TERM", "xterm-256color")
        monkeypatch.setattr(sys, "stdout", terminal)
        monkeypatch.setattr(sys, "stderr", terminal)
        with escaping_output():
            print(f"printed {EVIL}")
            show_facts([("name", EVIL)])
            show_table(EVIL, [EVIL, EVIL], [[EVIL, EVIL]])
            show_lines([EVIL])
            say("Error", f"[bold]said[/bold] {EVIL}", "bold red")
            with busy(EVIL, quiet=False), Monitor() as monitor:
                monitor.note("nothing")
            with Monitor(show=True) as monitor, monitor.task(f"[red]{EVIL}", 3, "rows") as advance:
                advance(3)
                monitor.note(EVIL)
    text = reading.result()
    assert "\x1b[1;31mError" in text and "[bold]said[/bold]" in text
    left = STYLES.sub("", text)
    assert not UNSAFE.search(left), repr(left)
    assert left.count(escaped("\u202e")) >= 8


def test_plain_lines_and_texts_of_the_library(capsys):
    with Monitor(show=True) as monitor:
        monitor.note(EVIL)
    assert capsys.readouterr().err == f"polysift: {escaped(EVIL)}\n"
    X = pd.DataFrame(np.random.default_rng(0).random((100, 2)), columns=[f"f{EVIL}", "plain"])
    clf = paper_classifier(2, random_state=0).fit(X, np.where(X["plain"] > 0.5, EVIL, "other"))
    for text in (str(explain(clf)), repr(explain(clf)), repr(clf), str(clf)):
        assert text and not UNSAFE.search(text)
    assert escaped(EVIL) in str(explain(clf))


def test_escapes():
    assert escaped("a\tb\nc") == "a\tb\nc"
    assert escaped("\x1b\x7f\x9b\u2066") == r"\u001b\u007f\u009b\u2066"
    assert json.loads(f'"{escaped(EVIL)}"') == EVIL


def test_a_progress_bar_under_escaped_output_moves_the_cursor(monkeypatch):
    """Rich puts a stream of its own before ours, and looks through one of them only."""

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(sys, "stderr", terminal)
    with escaping_output(), Monitor(show=True) as monitor:
        monitor.title = "spline, degree 2"
        for _ in monitor.watch("Gram matrix", 2, [(1, None), (1, None)]):
            monitor.note("best so far 0.9\x1b[2J")
    shown = terminal.getvalue()
    assert "\x1b[2K" in shown and "\\u001b[2K" not in shown
    assert "spline, degree 2: Gram matrix" in shown
    assert "\x1b[2J" not in shown, "what comes from data is escaped"
