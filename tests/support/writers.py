"""Real processes that write outputs, and stop where a test wants to meet them."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import re
import signal
import tempfile
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

import polysift
from polysift.runtime.arrays import write_arrays

ROWS = {"a": 900, "b": 1300}
"""Two processes write predictions of so many rows."""


def rows_of(which: str) -> np.ndarray:
    """Return the rows whose predictions are written."""
    return np.random.default_rng(ROWS[which]).random((ROWS[which], 2))


def _predictions(models: Path, path: Path, which: str) -> None:
    polysift.load(models / which).predict_to(rows_of(which), path, overwrite=True)


def _model(models: Path, path: Path, which: str) -> None:
    polysift.save(polysift.load(models / which), path, overwrite=True)


def _onnx(models: Path, path: Path, which: str) -> None:
    polysift.to_onnx(polysift.load(models / which), path, overwrite=True)


def _report(models: Path, path: Path, which: str) -> None:
    figures = pickle.loads((models / f"{which}.figures").read_bytes())
    polysift.report(polysift.load(models / which), {"data": figures}, path, overwrite=True)


def _checkpoint(_models: Path, path: Path, which: str) -> None:
    write_arrays(path, {"state": rows_of(which)}, {"which": which})


def _picture(models: Path, path: Path, which: str) -> None:
    from polysift.cli.demo import draw_boundary

    X = rows_of(which)
    draw_boundary(polysift.load(models / which), X, np.where(X[:, 0] > X[:, 1], 1, -1), path)


Writer = Callable[[Path, Path, str], None]
WRITERS: dict[str, tuple[Writer, tuple[str, ...]]] = {
    "model.polysift": (_model, ()),
    "solver.state": (_checkpoint, ()),
    "predictions.csv": (_predictions, ("pyarrow",)),
    "predictions.parquet": (_predictions, ("pyarrow",)),
    "predictions": (_predictions, ("pyarrow",)),
    "model.onnx": (_onnx, ("onnx",)),
    "report.html": (_report, ("matplotlib",)),
    "picture.png": (_picture, ("matplotlib",)),
}
"""By the name of each output: who writes it, and the packages that takes."""


def content(path: Path) -> Any:
    """Return the bytes of a file, or those of all files of a folder."""
    if path.is_dir():
        return {file.name: file.read_bytes() for file in path.iterdir()}
    return timeless(path.read_bytes())


def timeless(found: bytes) -> bytes:
    """Return bytes without the time at which a report was made."""
    return re.sub(rb"<time .*?</time>", b"", found)


class Writing:
    """A process that calls a function of this module, and stops where that calls ``meet``."""

    def __init__(self, function: Callable[..., None], *args: Any) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(
            ["polysift.reporting.report", "polysift.persistence.model_file", "matplotlib.figure"]
        )
        self._here, there = context.Pipe()
        self.process = context.Process(target=_run, args=(there, function, *args), daemon=True)
        self.process.start()
        there.close()

    def arrived(self) -> Any:
        """Wait until it stops, and return what it says."""
        return self._here.recv()

    def go(self) -> None:
        """Let it continue."""
        self._here.send(None)

    def ended(self) -> int | None:
        """Wait until it has ended, and return its exit code."""
        self.process.join()
        self._here.close()
        return self.process.exitcode

    def kill(self) -> None:
        """End it as a full memory or a power cut would, without any last act."""
        os.kill(self.process.pid or 0, signal.SIGKILL)
        assert self.ended() == -signal.SIGKILL


def _run(there: Connection, function: Callable[..., None], *args: Any) -> None:
    def meet(said: Any = None) -> None:
        there.send(said)
        there.recv()

    function(meet, *args)


def write_once(meet: Callable[..., None], models: Path, path: Path, which: str) -> None:
    """Write an output; stop when the first bytes are written, before the file has its name."""
    fsync, first = os.fsync, threading.Lock()

    def stopping(descriptor: int) -> None:
        if first.acquire(blocking=False):
            meet()
        fsync(descriptor)

    os.fsync = stopping
    WRITERS[path.name][0](models, path, which)


def write_often(
    meet: Callable[..., None], models: Path, path: Path, which: str, times: int
) -> None:
    """Write an output again and again, once told to."""
    meet()
    for _ in range(times):
        WRITERS[path.name][0](models, path, which)


def open_file(meet: Callable[..., None], path: Path, temporary: Path) -> None:
    """Open a file whose content is copied to a temporary folder; stop while it is in use."""
    tempfile.tempdir = str(temporary)
    source = polysift.open_data(path)
    meet([entry.name for entry in temporary.iterdir()])
    part = next(source.stream(source.shards()[:1]))
    assert np.isfinite(source.rows(part).sum())
