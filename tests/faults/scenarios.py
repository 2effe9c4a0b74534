"""What must survive a fault: works that read and write files, and what they leave behind.

``main`` runs one of them again and again, with a fault at its first operation, its second and so
on, until a run needs no fault. After each, there is either the full result or a clear error with
nothing half-written, and the same work without a fault then ends in the same bits.
"""

from __future__ import annotations

import errno
import gc
import hashlib
import json
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

import polysift
from injection import Fault, file_fault, memory_fault
from polysift.engine import local
from polysift.runtime import checkpoints
from problems import paper_classifier

ROWS, FEATURES, CENTERS = 300, 3, 12
SEED = 0


def problem() -> tuple[np.ndarray, np.ndarray]:
    """Return rows, and labels of a curved boundary."""
    rng = np.random.default_rng(SEED)
    X = rng.random((ROWS, FEATURES))
    return X, np.where(np.sin(4 * X[:, 0]) > X[:, 1] + 0.2 * rng.normal(size=ROWS), "yes", "no")


def classifier(**parameters: Any) -> polysift.FPCClassifier:
    """Return a small classifier, of one thread: the order of operations is then always the same."""
    given = {"n_centers": CENTERS, "degree": 2, "max_iter": 3, "tol": 0.0, "n_jobs": 1}
    return paper_classifier(**given | {"random_state": SEED} | parameters)


@cache
def fitted() -> polysift.FPCClassifier:
    """Return a fitted classifier."""
    return classifier(calibration="sigmoid").fit(*problem())


def digest_of(model: Any) -> str:
    """Return a digest of what a model predicts with."""
    arrays = (model.coef_, model.centers_)
    return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()


@dataclass(frozen=True)
class Scenario:
    """A work on files.

    Attributes
    ----------
    prepare : callable of a folder
        Write the inputs, and old outputs that are to be replaced.
    run : callable of a folder
        Do the work; return the model, if that is its result.
    outputs : tuple of str
        The names of the outputs. Each is as ``prepare`` left it, or as a whole run leaves it.
    state : str or None
        The name of a folder that may hold anything a later run understands: a checkpoint.
    """

    prepare: Callable[[Path], None]
    run: Callable[[Path], Any]
    outputs: tuple[str, ...] = ()
    state: str | None = None


def write_parquet(folder: Path) -> None:
    import pandas as pd

    X, y = problem()
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(label=y)
    frame.to_parquet(folder / "rows.parquet", row_group_size=100)


def write_csv(folder: Path) -> None:
    import pandas as pd

    X, y = problem()
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(label=y)
    frame.to_csv(folder / "rows.csv", index=False)


def write_libsvm(folder: Path) -> None:
    X, y = problem()
    rows = (
        f"{int(a == 'yes')} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(x.tolist()))
        for x, a in zip(X, y, strict=True)
    )
    (folder / "rows.svm").write_text("\n".join(rows) + "\n")


def fit_parquet(folder: Path) -> Any:
    source = polysift.open_data(folder / "rows.parquet", target="label")
    return classifier(checkpoint=folder / "state").fit(source)


def fit_text(name: str) -> Callable[[Path], Any]:
    def run(folder: Path) -> Any:
        target = {} if name.endswith(".svm") else {"target": "label"}
        return classifier().fit(polysift.open_data(folder / name, **target))

    return run


class Stop(BaseException):
    """The end of a process, as it were."""


def search_parquet(folder: Path) -> Any:
    source = polysift.open_data(folder / "rows.parquet", target="label")
    search = polysift.FPCClassifierCV(
        degrees=[1, 2],
        n_centers=CENTERS,
        scalers=["minmax"],
        rhos=[None],
        solvers=["paper"],
        max_iter=[2],
        cv=2,
        n_jobs=1,
        random_state=SEED,
        checkpoint=folder / "state",
    )
    return search.fit(source).best_estimator_


def write_naively(folder: Path) -> None:
    """Write a file as it should not be done."""
    with open(folder / "naive.txt", "w") as file:
        for _ in range(3):
            file.write("x" * 10_000)
            file.flush()


def interrupt(folder: Path) -> None:
    """Leave the checkpoint of a fit that ended after its second step."""
    write_parquet(folder)
    save, states = checkpoints.Checkpoint.save, count(1)

    def stopping(self: checkpoints.Checkpoint, *given: Any) -> bool:
        saved = save(self, *given)
        if next(states) == 3:
            raise Stop
        return saved

    checkpoints.Checkpoint.save = stopping  # type: ignore[method-assign]
    try:
        with suppress(Stop):
            fit_parquet(folder)
    finally:
        checkpoints.Checkpoint.save = save  # type: ignore[method-assign]


def old(*names: str) -> Callable[[Path], None]:
    def prepare(folder: Path) -> None:
        write_parquet(folder)
        for name in names:
            (folder / name).write_text("the old one")

    return prepare


def predict(name: str) -> Callable[[Path], None]:
    def run(folder: Path) -> None:
        rows = polysift.open_data(folder / "rows.parquet", target="label")
        fitted().predict_to(rows, folder / name, overwrite=True)

    return run


def old_parts(folder: Path) -> None:
    write_parquet(folder)
    (folder / "predictions").mkdir()
    shutil.copy(folder / "rows.parquet", folder / "predictions" / "part-00000.parquet")


def save(folder: Path) -> None:
    polysift.save(fitted(), folder / "model.fpc", overwrite=True)


def saved(folder: Path) -> None:
    polysift.save(fitted(), folder / "model.fpc")


def load(folder: Path) -> Any:
    return polysift.load(folder / "model.fpc")


def export(folder: Path) -> None:
    polysift.to_onnx(fitted(), folder / "model.onnx", overwrite=True)


def report(folder: Path) -> None:
    source = polysift.open_data(folder / "rows.parquet", target="label")
    polysift.report(fitted(), source, folder / "report.html", overwrite=True)


SCENARIOS = {
    "fit with checkpoint": Scenario(write_parquet, fit_parquet, state="state"),
    "resume": Scenario(interrupt, fit_parquet, state="state"),
    "fit CSV": Scenario(write_csv, fit_text("rows.csv")),
    "fit libsvm": Scenario(write_libsvm, fit_text("rows.svm")),
    "predict CSV": Scenario(old("out.csv"), predict("out.csv"), ("out.csv",)),
    "predict Parquet": Scenario(old("out.parquet"), predict("out.parquet"), ("out.parquet",)),
    "predict folder": Scenario(old_parts, predict("predictions"), ("predictions",)),
    "save": Scenario(old("model.fpc"), save, ("model.fpc",)),
    "load": Scenario(saved, load),
    "export": Scenario(old("model.onnx"), export, ("model.onnx",)),
    "search": Scenario(write_parquet, search_parquet, state="state"),
    "naive": Scenario(old("naive.txt"), write_naively, ("naive.txt",)),
    "report": Scenario(old("report.html"), report, ("report.html",)),
}

ERRORS = {
    "create": ("ENOSPC", "EMFILE"),
    "write": ("ENOSPC", "EIO", "EINTR"),
    "sync": ("EIO", "ENOSPC"),
    "rename": ("EIO", "ENOSPC"),
    "read": ("EIO", "EINTR"),
}
"""With which errors the operations of each kind fail."""


def tree_digest(path: Path) -> str:
    """Return a digest of a file, or of a folder's files and their names; "" for nothing."""
    if path.is_dir():
        return json.dumps({p.name: tree_digest(p) for p in sorted(path.iterdir())})
    content = path.read_bytes() if path.exists() else b""
    if content.startswith(b"<!DOCTYPE html>") and content.rstrip().endswith(b"</html>"):
        return "a whole page"  # it has the time on it
    return hashlib.sha256(content).hexdigest() if content else ""


@dataclass(frozen=True)
class Failure:
    """An error, as text, and what is not clear about it."""

    shown: str
    unclear: str


class Trial:
    """Runs of a scenario, each in a new folder, with the temporary folder inside it."""

    def __init__(self, scenario: Scenario, place: Path) -> None:
        self.scenario, self.findings = scenario, list[str]()
        self._place, self._numbers = place, count()
        self._template = place / "template"
        self._template.mkdir(parents=True)
        scenario.prepare(self._template)
        self.old = {name: tree_digest(self._template / name) for name in scenario.outputs}
        folder = self._new_folder()
        self.model, _ = self._attempt(folder)
        self.whole = {name: tree_digest(folder / name) for name in scenario.outputs}
        assert self.old != self.whole or self.model, "the scenario fails without a fault"

    def run(
        self, what: str, fault: Callable[[Path, int], AbstractContextManager[Fault]], thorough: bool
    ) -> int:
        """Let each operation fail in turn, of very many some; return how many were tried."""
        number = 1
        for tried in count():
            folder = self._new_folder()
            with fault(folder, number) as armed:
                model, error = self._attempt(folder)
            try:
                self._check(folder, model, error)
            except AssertionError as wrong:
                self.findings.append(f"{what}, operation {number}: {wrong}; the error: {error}")
            if not armed.fired:
                assert error is None, f"it fails without a fault: {error}"
                return tried
            number += max(1, number // (40 if thorough else 4))
        raise AssertionError("unreachable")

    def _new_folder(self) -> Path:
        folder = self._place / str(next(self._numbers))
        shutil.copytree(self._template, folder)
        (folder / "tmp").mkdir()
        tempfile.tempdir = str(folder / "tmp")
        return folder

    def _attempt(self, folder: Path) -> tuple[str, Failure | None]:
        """Do the work; return the digest of the model, and what failed."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # of a state that was not saved
                model = self.scenario.run(folder)
        except Exception as error:  # which holds on to files as long as it lives
            return "", Failure(repr(error), unclear(error, folder))
        return ("" if model is None else digest_of(model)), None

    def _check(self, folder: Path, model: str, error: Failure | None) -> None:
        """Raise unless a fault has left a whole result, or a clear error and nothing else."""
        for name in self.scenario.outputs:
            found = tree_digest(folder / name)
            assert found in (self.whole[name], self.old[name]), f"{name} is half-written"
            assert error is not None or found == self.whole[name], f"{name} is the old one"
        if error is None:
            assert model == self.model, "another model"
        else:
            assert not error.unclear, error.unclear
        assert_clean(folder, self._template, {*self.scenario.outputs, self.scenario.state, "tmp"})
        again, error = self._attempt(folder)
        assert error is None, f"the work fails afterwards: {error}"
        assert again == self.model, "another model afterwards"
        shutil.rmtree(folder)


def unclear(error: Exception, folder: Path) -> str:
    """Return what is wrong with an error: it is of a documented kind, and names a file."""
    if not isinstance(error, (OSError, MemoryError, ValueError)):
        return f"a {type(error).__name__}"
    return "" if isinstance(error, MemoryError) or str(folder) in str(error) else "it names no file"


def assert_clean(folder: Path, template: Path, allowed: set[str | None]) -> None:
    """Raise if anything is left over in a folder."""
    gc.collect()
    found = {path.name for path in folder.iterdir()}
    left = found - {path.name for path in template.iterdir()} - allowed
    left |= {f"tmp/{path.name}" for path in (folder / "tmp").iterdir()}
    assert not left, f"left over: {sorted(left)}"


def main(name: str, place: str, extent: str) -> None:
    """Run a scenario with every fault, or with one error of each kind; print what was found."""
    checkpoints.Checkpoint.due = lambda self: True  # type: ignore[method-assign]
    in_memory = local.new_state
    local.new_state = lambda shape, spill: in_memory(shape, True)
    fitted()
    trial, thorough = Trial(SCENARIOS[name], Path(place)), extent == "all"
    gc.freeze()  # what a run leaves is then found soon
    done: dict[str, int] = {}
    for kind, errors in ERRORS.items():
        for error in errors if thorough else errors[:1]:
            once = (False,) if error == "EINTR" else (False, True)  # others retry for ever
            for lasting in once if thorough else once[-1:]:
                what = f"{kind} {error}{' from then on' if lasting else ''}"
                fault = partial(file_fault, kind=kind, error=getattr(errno, error), lasting=lasting)
                done[what] = trial.run(what, fault, thorough)
    done["memory"] = trial.run("memory", lambda _, number: memory_fault(number), thorough)
    print(json.dumps({"faults": done, "findings": trial.findings}))


if __name__ == "__main__":
    main(*sys.argv[1:])
