"""Runs the cells of a study over processes, shows the progress, and keeps what is done.

Each finished cell is a line of ``cells.jsonl`` in the folder of its study, under a digest of the
cell, so that a run that was stopped goes on where it was, and more runs add to those there are.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from hashlib import sha256
from math import inf
from multiprocessing import active_children, get_context
from pathlib import Path
from time import perf_counter
from typing import Any

from threadpoolctl import threadpool_limits

from polysift import __version__
from polysift.runtime.terminal import safe_console
from polysift_paper.studies.study import Cells, Row
from polysift_paper.studies.worker import end_at_interrupts, follow_parent, ignoring_interrupts

SEEDS_APART = 1_000_000
"""How far the seeds of two base seeds are apart; the runs of one lie in between."""


SECONDS_BETWEEN_LINES = 5.0
"""Seconds between lines."""


class CellError(RuntimeError):
    """A cell of a study has failed; the message names both."""


class LostProcessError(CellError, ChildProcessError):
    """A process has died; as an OSError, it is no mistake of ours to a command line."""


def study_folder(study: Cells, folder: Path) -> Path:
    """Return where what belongs to a study is kept."""
    return folder / (f"simulation-{study.name}" if study.name.isdigit() else study.name)


def seeded_cells(study: Cells, runs: int, seed: int = 0) -> list[Row]:
    """Return the cells of a study, their seeds moved to those of a base seed."""
    cells = study.cells(runs)
    return [
        cell | {"seed": cell["seed"] + SEEDS_APART * seed} if "seed" in cell else cell
        for cell in cells
    ]


def run_study(
    study: Cells,
    runs: int,
    folder: Path,
    *,
    seed: int = 0,
    jobs: int = 1,
    show: bool = False,
    again: Callable[[list[Row]], bool] | None = None,
    done_only: bool = False,
) -> list[Row]:
    """Run the cells of a study that are not done yet.

    Parameters
    ----------
    study : Study or Comparison
        What to run.
    runs : int
        How often to repeat it. The cells of a run are the same whatever their number is.
    folder : Path
        Where results are kept; the study has a folder of its own in it.
    seed : int, default=0
        The base seed.
    jobs : int, default=1
        Processes. A study that measures time runs in this one, whatever their number is.
    show : bool, default=False
        Whether to show progress on standard error.
    again : callable, optional
        Takes the measurements of a cell that is done; if it returns true, the cell is run anew.
    done_only : bool, default=False
        Whether to run nothing, and to return what is there.

    Returns
    -------
    list of dict
        The measurements with the entries of their cells, in the order of the cells.

    Raises
    ------
    CellError
        If a cell fails; the others that were finished are kept.
    """
    cells = seeded_cells(study, runs, seed)
    keys = [_key(study, cell) for cell in cells]
    store = _Store(study_folder(study, folder) / "cells.jsonl")
    done = store.load()
    if done_only:
        found = [(cell, done[key]) for key, cell in zip(keys, cells, strict=True) if key in done]
        return [{**cell, **row} for cell, rows in found for row in rows]
    if again is not None:
        done = {key: rows for key, rows in done.items() if not again(rows)}
    pending = {key: cell for key, cell in zip(keys, cells, strict=True) if key not in done}
    jobs = min(jobs, len(pending)) if study.parallel else 1
    results = _in_processes(study, pending, jobs) if jobs > 1 else _here(study, pending)
    progress = CellProgress(_label(study), len(pending), show=show)
    with closing(results), progress:
        for key, rows in results:
            done[key] = store.append(key, pending[key], rows)
            progress.advance()
    return [{**cell, **row} for key, cell in zip(keys, cells, strict=True) for row in done[key]]


def adopt(
    study: Cells,
    runs: int,
    folder: Path,
    measured: Callable[[Row], list[Row] | None],
    *,
    seed: int = 0,
) -> int:
    """Take measurements of cells from elsewhere, where there are none yet; return of how many.

    ``measured`` takes a cell, and returns its measurements or None.
    """
    store = _Store(study_folder(study, folder) / "cells.jsonl")
    done, taken = store.load(), 0
    for cell in seeded_cells(study, runs, seed):
        key = _key(study, cell)
        rows = None if key in done else measured(cell)
        if rows is not None:
            store.append(key, cell, rows)
            taken += 1
    return taken


def _label(study: Cells) -> str:
    return f"simulation {study.name}" if study.name.isdigit() else study.name


def _key(study: Cells, cell: Row) -> str:
    """Return a digest of a cell; another version of the package may measure something else."""
    text = json.dumps([__version__, study.name, cell], sort_keys=True, default=_plain)
    return sha256(text.encode()).hexdigest()[:24]


def _plain(value: Any) -> Any:
    """Return a value of numpy's as one of Python's, for JSON."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"cells and measurements must be plain values; got {type(value).__name__}.")


class CellProgress:
    """Counts finished cells.

    Parameters
    ----------
    label : str
        What is running.
    total : int
        How many cells there are to run.
    show : bool
        Whether to show anything.
    """

    def __init__(self, label: str, total: int, *, show: bool) -> None:
        self._label, self._total, self._done = label, total, 0
        self._show = show and total > 0
        self._began = self._first = self._last = perf_counter()
        self._bar: Any = None

    def __enter__(self) -> CellProgress:
        if self._show and sys.stderr.isatty():
            self._bar = _rich_bar()
        if self._bar is not None:
            self._task = self._bar.add_task(self._label, total=self._total)
            self._bar.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self) -> None:
        """Count a cell."""
        self._done += 1
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done)
        elif self._show:
            self._print_now_and_then()

    def _print_now_and_then(self) -> None:
        now = perf_counter()
        if self._done == 1:
            self._first = now
        ended = self._done == self._total
        if now - self._last < SECONDS_BETWEEN_LINES and not ended:
            return
        self._last = now
        left = ""
        if self._done > 1 and not ended:  # the first cell took the start of processes, too
            pace = (now - self._first) / (self._done - 1)
            left = f", {pace * (self._total - self._done):.0f} s left"
        far = f"{self._done} of {self._total} cells in {now - self._began:.0f} s{left}"
        print(f"polysift: {self._label}: {far}", file=sys.stderr, flush=True)


def _rich_bar() -> Any:
    try:
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )
    except ImportError:
        return None
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("cells"),
        TimeRemainingColumn(),
        console=safe_console(stderr=True),
        speed_estimate_period=inf,  # not the last 30 s alone, in which no cell may have ended
    )


class _Store:
    """Finished cells in a file of lines; a line that a kill has torn is as good as none."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> dict[str, list[Row]]:
        """Return the measurements of all finished cells."""
        done = {}
        if self._path.exists():
            for line in self._path.read_bytes().splitlines():
                try:
                    entry = json.loads(line)
                    done[entry["key"]] = entry["rows"]
                except (ValueError, KeyError, TypeError):
                    continue
        return done

    def append(self, key: str, cell: Row, rows: list[Row]) -> list[Row]:
        """Add a finished cell, and return its measurements as ``load`` would."""
        line = json.dumps({"key": key, "cell": cell, "rows": rows}, default=_plain)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with open(self._path, "ab+") as file:
            if file.tell():
                file.seek(-1, 2)
                if file.read() != b"\n":  # what comes must not become part of a torn line
                    line = f"\n{line}"
            file.write(f"{line}\n".encode())
        return json.loads(line)["rows"]


def _failed(study: Cells, cell: Row, error: BaseException) -> CellError:
    where = ", ".join(f"{name}={value}" for name, value in cell.items())
    return CellError(f"{_label(study)} failed at {where}: {type(error).__name__}: {error}")


def _here(study: Cells, pending: dict[str, Row]) -> Generator[tuple[str, list[Row]]]:
    """Yield keys with measurements, one after the other."""
    measure = single_threaded if study.parallel else _as_is
    with _noticing_interrupts() as raise_if_any:
        for key, cell in pending.items():
            try:
                rows = measure(study.measure, cell)
            except Exception as error:
                raise_if_any()
                raise _failed(study, cell, error) from error
            raise_if_any()
            yield key, rows


def single_threaded(measure: Callable[[Row], list[Row]], cell: Row) -> list[Row]:
    """Measure a cell with one thread, as it would be in any process."""
    with threadpool_limits(limits=1):
        return measure(cell)


def _as_is(measure: Callable[[Row], list[Row]], cell: Row) -> list[Row]:
    return measure(cell)


@contextmanager
def _noticing_interrupts() -> Iterator[Callable[[], None]]:
    """Give what raises ``KeyboardInterrupt`` if there has been one.

    A fit answers Ctrl-C with its latest model, which is no measurement.
    """
    seen: list[int] = []

    def notice(number: int, _frame: Any) -> None:
        seen.append(number)
        raise KeyboardInterrupt

    def raise_if_any() -> None:
        if seen:
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():  # only it is interrupted
        yield raise_if_any
        return
    before = signal.signal(signal.SIGINT, notice)
    try:
        yield raise_if_any
    finally:
        signal.signal(signal.SIGINT, before)


def _in_processes(
    study: Cells, pending: dict[str, Row], jobs: int
) -> Generator[tuple[str, list[Row]]]:
    """Yield keys with measurements as they come, from several processes."""
    others = set(active_children())
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), _begin)
    try:
        with ignoring_interrupts():
            futures: dict[Future[list[Row]], str] = {
                pool.submit(single_threaded, study.measure, cell): key
                for key, cell in pending.items()
            }
        for future in as_completed(futures):
            key = futures[future]
            try:
                rows = future.result()
            except BrokenProcessPool as error:
                raise LostProcessError(
                    f"A process of {_label(study)} has died, maybe for want of memory. What is "
                    "finished is kept; go on with fewer --jobs."
                ) from error
            except Exception as error:
                raise _failed(study, pending[key], error) from error
            yield key, rows
        pool.shutdown()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in set(active_children()) - others:  # their results are not awaited
            process.terminate()
        raise


def _begin() -> None:
    """Let a worker end at Ctrl-C at once, without a word, and with its parent, which speaks."""
    end_at_interrupts()
    follow_parent()
