"""Command lines: made by walking the parser, so that a new option is fuzzed as well."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, get_args

import numpy as np

from fuzzers.cases import ACCEPTED, CORPUS, REFUSED, Case, Target, require, require_printable
from fuzzers.mutations import INTEGERS, NUMBERS

NOT_RUN = {"reproduce"}
"""Commands of other distributions."""

ODD = ("", " ", "-", "--", "x", "a,b", ",", "=", "a=b", "0", "-1", "1.5", "nan", "1e400", "'", '"')
ODD += (
    "\x1b[31mred",
    "a\nb",
    "é\u202e",
    "\udcff",
    "[/bold]",
    "%s",
    "{0}",
    "none",
    "auto",
    "*",
    "~",
)
"""What any option may be given."""

COUNTS = ("0", "-1", "1", "2", "3", "5", "7", "1.5", "x", "10", "1000000000000", str(2**64))
REALS = ("1", "0.1", "0.5", "1e-3", "1e-9", "2", "1e-300", "1e300", "1e-12", "1e12")
DATA = ("train.csv", "train.csv", "train.csv", "train.parquet", "odd.csv", "heavy.csv")
NO_DATA = (
    "train.npz",
    "train.npy",
    "train.svm",
    "empty.csv",
    "absent.csv",
    "points.npy",
    ".",
    "foo://x",
)
NO_DATA += ("old.polysift", "*.csv", "words.csv")
MODELS, NO_MODELS = ("old.polysift",), ("bad.polysift", "absent", ".", "train.csv")
OUTPUTS = (
    "new.polysift",
    "new.parquet",
    "new.csv",
    "new.html",
    "new.onnx",
    "new.png",
    "new",
    "é.csv",
)
NO_OUTPUTS = (
    ".",
    "absent/new.csv",
    "train.csv",
    "old.polysift",
    "n\x1b[31mew.csv",
    "n" * 300 + ".csv",
)
COLUMNS = ("label", "a", "b", "0", "1", "-1", "2", "3", "a,b", "b,a", "a,a", "w", "label,a", '"a')
JOBS = (("1", "2", "-1", "3"), ("0", "-5", "300"))

VALUES: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "data": (DATA, NO_DATA),
    "validation": (DATA, NO_DATA),
    "model": (MODELS, NO_MODELS),
    "warm_start": (MODELS, NO_MODELS),
    "output": (OUTPUTS, NO_OUTPUTS),
    "report": (("new.html",), (*OUTPUTS, *NO_OUTPUTS)),
    "checkpoint": (("kept",), ("train.csv", "absent/kept")),
    "target": (("label",), COLUMNS),
    "weight": (("w",), COLUMNS),
    "columns": (("a,b", "a", "b,a"), COLUMNS),
    "drop": (("a", "b"), COLUMNS),
    "format": (("csv",), ("parquet", "libsvm", "npy", "npz", "arrow", "x")),
    "delimiter": ((",",), (";", "tab", "\\t", "|", " ", "\n", '"', "é", "\r", "0")),
    "column_types": (
        ("label=string", "b=float32"),
        ("a=bool", "a=int8", "0=double", "label=date32"),
    ),
    "n_features": (("2", "3"), COUNTS),
    "centers": (
        ("auto", "uniform", "first", "random", "points.npy"),
        ("train.npy", "odd.npy", "absent.npy"),
    ),
    "class_weight": (
        ("balanced", "yes=2,no=1"),
        ("yes=0", "1=1e300,0=1", "x=1", "yes=nan", "yes=1e-320", "yes=1e300,no=1e-300"),
    ),
    "memory_limit": (("1MB", "0.5", "2GB"), ("1", "1e-9", "100kB", "0", "-1", "10TB")),
    "time_limit": (("1", "10m"), ("0", "1e-9", "0.01", "1e300d", ".", "1e", "-1")),
    "random_state": (("0", "1", str(2**32 - 1)), (str(2**32), str(2**64), "-1")),
    "seed": (("0", "1"), (str(2**32), str(2**64), "-1")),
    "n_jobs": JOBS,
    "jobs": JOBS,
    "degree": (("1", "2", "3", "9"), ("40", "0", "1000000")),
    "n_centers": (("auto", "1", "2", "5", "50"), ("1000000000", "0", "auto,5", "3,4")),
    "degrees": (("1", "1,2"), ("auto", "paper", "2,2", "1,none", "0", "40", "x")),
    "scalers": (("minmax", "minmax,quantile", "standard"), ("none", "x", "standard,standard")),
    "rhos": (("none", "1e-3", "none,1e-9"), ("0", "-1", "1e300", "nan")),
    "solvers": (("paper", "converged", "paper,converged"), ("newton", "x")),
    "cv": (("2", "3", "0.25"), ("0.999", "1e-9", "30", "1000")),
    "scoring": (("accuracy", "roc_auc", "neg_log_loss"), ("f1", "r2", "x", "average_precision")),
    "max_iter": (("1", "2", "5", "20"), ("0", "-1", "2,5")),
    "max_monomials": (("1", "10", "100000"), ("0",)),
    "top": (("0", "1", "3"), ("1000000000", "-1")),
    "rows": (("2", "10", "500"), ("0", "1", *DATA)),
    "noise": (("0", "1", "0.5"), ("nan", "-0", "2")),
    "engine": (
        ("local",),
        ("x",),
    ),  # workers of Ray take seconds to start, and memory without bound
    "alpha": (REALS, NUMBERS),
    "beta": (REALS, NUMBERS),
    "tol": (REALS, NUMBERS),
    "rho": (REALS, NUMBERS),
}
"""Values of options by name, those that could be meant and others; an option that is not here gets
its choices, or odd values."""

USUAL = {
    "fit": ("target", "max_iter"),
    "tune": ("target", "max_iter", "degrees"),
    "evaluate": ("target",),
    "demo": ("rows",),
}
"""Options that are there always: without, the command would fail, or take long."""

OWN = {("demo", "output"): ("new.png", "new.svg"), ("export", "output"): ("new.onnx",)}
OWN |= {("predict", "output"): ("new.csv", "new.parquet", "new"), ("fit", "rows"): DATA}
OWN |= {("inspect", "rows"): DATA}
"""Values that could be meant in one command."""


@dataclass(frozen=True)
class Done:
    """What came of a command."""

    code: Any
    printed: str
    errors: str

    def check(self, words: Sequence[str]) -> None:
        """Raise a finding unless it ended as commands do."""
        shown = f"{self.errors[-1500:]}"
        require(self.code in (0, 1, 2), f"the status is {self.code!r}: {shown}")
        debug = "--debug" in words
        if not debug:
            require("Traceback" not in self.errors, f"a traceback: {shown}")
            require("object at 0x" not in self.errors, f"an object as a message: {shown}")
        lines = [line for line in self.errors.splitlines() if line.startswith("Error: ")]
        if self.code == 1:
            require(lines, f"the status is 1 without a message: {shown}")
        if self.code == 2:
            require(lines or "Usage:" in self.errors, f"the status is 2 without a message: {shown}")
        if lines and not debug:
            require(
                lines == self.errors.splitlines()[-1:], f"the message is not the last line: {shown}"
            )
            require("Unable to allocate" not in lines[0], f"memory ran out: {shown}")
        require(" encountered in " not in self.errors, f"a warning of numpy's: {shown}")
        require_printable(self.printed, "standard output")
        require_printable(self.errors.replace("\r", ""), "standard error")
        if self.code == 0 and "--json" in words and not {"-h", "--help", "--version"} & {*words}:
            json.loads(self.printed)


def run_command(words: Sequence[str]) -> Done:
    """Run a command in this process, as the program would in its own."""
    from polysift.cli.app import app
    from polysift.cli.console import state

    state["debug"] = False
    code: Any = 0
    with _streams() as (out, err), _arguments(words):
        try:
            app(list(words))
        except SystemExit as end:
            code = 0 if end.code is None else end.code
    return Done(code, out.getvalue().decode(), err.getvalue().decode())


@contextmanager
def _streams() -> Iterator[tuple[io.BytesIO, io.BytesIO]]:
    """Stand in for both standard streams by files of UTF-8, as in a pipe."""
    out, err = io.BytesIO(), io.BytesIO()
    printed = io.TextIOWrapper(out, "utf-8", write_through=True)
    errors = io.TextIOWrapper(err, "utf-8", "backslashreplace", write_through=True)
    with redirect_stdout(printed), redirect_stderr(errors):
        yield out, err
    printed.detach()  # else it would close what is read next
    errors.detach()


@contextmanager
def _arguments(words: Sequence[str]) -> Iterator[None]:
    before = sys.argv
    sys.argv = ["polysift", *words]
    try:
        yield
    finally:
        sys.argv = before


class CommandTarget(Target):
    """The command line, in a folder with some data and models."""

    name = "command"
    needs = ("typer", "rich", "pyarrow")
    share = 4
    quick = 30

    def __init__(self) -> None:
        self._files: dict[str, bytes] = {}

    def make(self, rng: Random) -> Case:
        """Return a command with some of its options, one word of which may be odd."""
        from typer.main import get_command

        commands = get_command(_app()).commands  # type: ignore[attr-defined]
        names = sorted(set(commands) - NOT_RUN)
        name = rng.choice([*names, "fit", "fit"])
        words = [*_words(rng, commands[name].params, name)]
        if rng.random() < 0.03:
            words.insert(
                rng.randrange(len(words) + 1), rng.choice((*ODD, "--help", "--debug", "-x"))
            )
        return Case({}, {"words": [name, *words]})

    def of_file(self, path: Path) -> list[Case]:
        """Return the commands of a file: a list of words in JSON per line."""
        lines = path.read_text().splitlines()
        return [Case({}, {"words": json.loads(line)}) for line in lines]

    def check(self, case: Case, folder: Path) -> str:
        """Run the command, and look at what it has written."""
        before = self.files() | case.files
        Case(before).write(folder)
        words = case.options["words"]
        done = run_command(words)
        done.check(words)
        _check_files(folder, before, done, words)
        return ACCEPTED if done.code == 0 else REFUSED

    def files(self) -> dict[str, bytes]:
        """Return the files that lie where commands are run."""
        if not self._files:
            self._files = _files()
        return self._files


def _app() -> Any:
    from polysift.cli.app import app

    return app


def _words(rng: Random, params: Sequence[Any], command: str) -> Iterator[str]:
    likely = rng.choice((0.02, 0.05, 0.2))
    for param in params:
        option = param.opts[0].startswith("-")
        usual = param.name in USUAL.get(command, ())
        if option and not param.required and not usual and rng.random() > likely:
            continue
        if option and getattr(param, "is_flag", False):
            yield rng.choice([*param.opts, *param.secondary_opts])
            continue
        value = _value(rng, param, command)
        if option and rng.random() < 0.2:
            yield f"{param.opts[0]}={value}"
        elif option:
            yield from (rng.choice(param.opts), value)
        elif rng.random() > 0.01:
            yield value


def _value(rng: Random, param: Any, command: str) -> str:
    """Return a value for a parameter, mostly one that could be meant."""
    bounded = param.name in ("rows", "max_iter")  # a large one takes long, and should
    if rng.random() < 0.02 and not bounded:
        return rng.choice((*ODD, *map(str, INTEGERS)))
    good, odd = VALUES.get(param.name) or (_choices(param) or COUNTS, ODD)
    good = OWN.get((command, param.name), good)
    return str(rng.choice(good if rng.random() < 0.85 else odd))


def _choices(param: Any) -> tuple[Any, ...]:
    """Return the choices of an option, wherever this version of typer keeps them."""
    found = getattr(getattr(param, "type", None), "choices", ())
    described = getattr(getattr(param, "type_descriptor", None), "annotation", None)
    return tuple(map(str, found or get_args(described)))


def _files() -> dict[str, bytes]:
    """Return data of some formats, a model and files that cannot be read."""
    import pyarrow as pa
    import pyarrow.parquet

    rng = np.random.default_rng(0)
    X = rng.random((40, 2)).round(3)
    labels = np.where(X.sum(axis=1) > 1, "yes", "no")
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "label": labels})
    parquet, points, both, matrix = (io.BytesIO() for _ in range(4))
    pyarrow.parquet.write_table(table, parquet)
    np.save(points, X[:4])
    np.save(matrix, np.column_stack([X, labels == "yes"]))
    np.savez(both, X=X, y=labels)
    rows = [f"{a},{b},{label}" for (a, b), label in zip(X, labels, strict=True)]
    heavy = [
        f"{row},{weight}"
        for row, weight in zip(rows, ["1e300", "0", "1", "5e-324"] * 10, strict=True)
    ]
    svm = [f"{int(v == 'yes')} 1:{a} 2:{b}" for (a, b), v in zip(X, labels, strict=True)]
    odd = [f"{a},{b},\x1b[3{i % 2}mclass" for i, (a, b) in enumerate(X)]
    model = (CORPUS / "model" / "text-labels.polysift").read_bytes()
    return {
        "train.csv": "\n".join(["a,b,label", *rows]).encode(),
        "odd.csv": "\n".join(["a,b,label", *odd]).encode(),
        "heavy.csv": "\n".join(["a,b,label,w", *heavy]).encode(),
        "train.svm": "\n".join(svm).encode(),
        "train.parquet": parquet.getvalue(),
        "train.npz": both.getvalue(),
        "train.npy": matrix.getvalue(),
        "points.npy": points.getvalue(),
        "odd.npy": b"\x93NUMPY\x01\x00\x10\x00{'descr': '<f8',\n",
        "empty.csv": b"",
        "words.csv": b"a,b,label\nx,y,no\n",
        "old.polysift": model,
        "bad.polysift": model[:-100],
    }


def _check_files(folder: Path, before: dict[str, bytes], done: Done, words: Sequence[str]) -> None:
    """Raise a finding if something was half-written, or replaced without being asked for."""
    now = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    partial = [name for name in now if "partial" in name]
    require(not partial, f"left behind: {partial}")
    gone = sorted(before.keys() - now.keys())
    require(not gone, f"removed: {gone}")
    changed = [name for name, path in now.items() if before.get(name) != path.read_bytes()]
    replaced = [name for name in changed if name in before]
    forced = any(word in ("--force", "-f") for word in words)
    require(not replaced or forced, f"replaced without --force: {replaced}")
    if done.code and "saved in" not in done.errors:
        written = [name for name in changed if not name.startswith("kept/")]
        require(not written, f"failed, and has written {written}: {done.errors[-500:]}")
    for name in changed:
        _check_output(now[name])


def _check_output(path: Path) -> None:
    """Raise if an output is not whole."""
    import pyarrow.parquet

    import polysift

    content = path.read_bytes()
    if content.startswith(b"PK"):
        polysift.load(path)
    elif content.startswith(b"PAR1"):
        with path.open("rb") as file:  # pyarrow takes no name that is not UTF-8
            pyarrow.parquet.read_table(file).validate(full=True)
    elif content.lstrip().lower().startswith(b"<!doctype"):
        require(content.rstrip().endswith(b"</html>"), f"{path.name} is not a whole page")
