"""Progress of fits, searches, predictions and downloads.

All of them report to a ``Monitor``. It counts and times their phases, shows progress on standard
error, as a rich progress bar on a terminal and as plain lines elsewhere, and raises ``OutOfTime``
when the time limit is reached.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any, TypeVar

from polysift.runtime import clock
from polysift.runtime.memory import MemoryMeter
from polysift.runtime.terminal import escaped, safe_console

T = TypeVar("T")

LINE_INTERVAL_SECONDS = 1.0
"""Plain lines come at most this often, and not on passes that take or have left less time."""


class OutOfTime(Exception):
    """The time limit was reached, in a phase of which this share was done."""

    def __init__(self, phase: str, share: float) -> None:
        super().__init__(phase, share)
        self.phase, self.share = phase, share


class WorkersLostError(RuntimeError):
    """Workers of a cluster were lost more often than is tolerated, or none is left.

    Examples
    --------
    >>> import polysift
    >>> try:
    ...     raise polysift.WorkersLostError("all workers are lost")  # as a fit on a cluster does
    ... except polysift.WorkersLostError as error:
    ...     print(f"not fitted: {error}")
    not fitted: all workers are lost
    """


@dataclass
class Phase:
    """A part of the work: how much of it is done, and in which time.

    Attributes
    ----------
    name : str
        Its name.
    title : str
        What it is part of; shown before its name.
    total : int or None
        The amount of work, where it is known.
    unit : str
        The unit of the amount.
    alone : bool
        Whether it is a task of its own, not one of many passes over the rows: then plain lines
        show its begin and its end however short it is.
    done : int
        The amount that is done.
    began : float
        When it began, by ``clock.now``.
    seconds : float
        The time that it has taken so far.
    """

    name: str
    title: str
    total: int | None
    unit: str
    began: float
    alone: bool = False
    done: int = 0
    seconds: float = 0.0

    @property
    def label(self) -> str:
        """The name with the title before it."""
        return f"{self.title}: {self.name}" if self.title else self.name

    @property
    def share(self) -> float:
        """The share of the work that is done; 0 where the total is not known."""
        return self.done / self.total if self.total else 0.0

    @property
    def position(self) -> str:
        """The share as text, or the amount where the total is not known."""
        return f"{self.done:,} {self.unit}" if self.total is None else f"{self.share:.0%}"

    @property
    def rate(self) -> float:
        """The amount of work per second."""
        return self.done / max(self.seconds, 1e-9)

    @property
    def seconds_left(self) -> float:
        """The time that the rest will take at this rate; infinite where that is not known."""
        return inf if self.total is None or not self.done else (self.total - self.done) / self.rate


class Monitor:
    """Counts and times the work of a run, shows its progress, and enforces its time limit.

    Parameters
    ----------
    time_limit : float, optional
        Seconds from ``began``.
    show : bool
        Whether to show progress on standard error: a bar where rich is installed and standard error
        is a terminal, else lines.
    by_stage : bool
        Whether plain lines tell of stages alone, each of many passes, and not of passes.
    began : float, optional
        When the run began, by ``clock.now``; now by default.

    Attributes
    ----------
    seconds : dict of str to float
        The time that each phase has taken so far.
    title : str
        What the phases that follow are part of; shown before their names.
    """

    def __init__(
        self,
        time_limit: float | None = None,
        *,
        show: bool = False,
        by_stage: bool = False,
        began: float | None = None,
    ) -> None:
        self.began = clock.now() if began is None else began
        self._meter = MemoryMeter()
        self._deadline = None if time_limit is None else self.began + time_limit
        self._reserved = 0.0
        self._display: _Bar | _Lines | None = None
        if show:
            self._display = _progress_bar() or _Lines(by_stage)
        self._phase = Phase("", "", 0, "rows", self.began)
        self.seconds: dict[str, float] = {}
        self.title = ""

    def __enter__(self) -> Monitor:
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._display is not None:
            self._display.close()

    def watch(self, phase: str, total: int, parts: Iterable[tuple[int, T]]) -> Iterator[T]:
        """Pass on parts, each given with its number of rows, and report them.

        Raises ``OutOfTime`` after a part, unless it is the last, when the time limit is reached.
        """
        watched = self._begin(phase, total, "rows")
        for rows, part in parts:
            self._advance(watched, rows)
            yield part
            if watched.done < total and self._late():
                raise OutOfTime(phase, watched.share)
        self._end(watched)
        self.seconds[phase] = self.seconds.get(phase, 0.0) + watched.seconds

    @contextmanager
    def task(self, name: str, total: int | None, unit: str) -> Iterator[Callable[[int], None]]:
        """Report a task of its own, such as a download; yields a function that counts amounts."""
        phase = self._begin(name, total, unit, alone=True)
        yield partial(self._advance, phase)
        self._end(phase)

    @contextmanager
    def trials(self, phase: str) -> Iterator[Callable[[], None]]:
        """Report trials whose number is not known; yields a function that counts one.

        It raises ``OutOfTime`` when the time limit is reached.
        """
        watched = self._begin(phase, None, "trials")

        def count() -> None:
            self._advance(watched, 1)
            self.check()

        yield count
        self._end(watched)
        self.seconds[phase] = self.seconds.get(phase, 0.0) + watched.seconds

    def lift(self) -> None:
        """Remove the time limit, for a short last step that must be done."""
        self._deadline = None

    @contextmanager
    def keeping_limit(self) -> Iterator[None]:
        """Put the time limit in force again after a block that may remove it."""
        deadline = self._deadline
        yield
        self._deadline = deadline

    def reserve(self, seconds: float) -> None:
        """Let the time limit act this much earlier, to leave time for the last step."""
        self._reserved = seconds

    def elapsed(self) -> float:
        """Return the seconds since the run began."""
        return clock.now() - self.began

    def seconds_left(self) -> float:
        """Return the seconds until the time limit; infinite if there is none."""
        return inf if self._deadline is None else self._deadline - clock.now()

    def check(self) -> None:
        """Raise ``OutOfTime`` if the time limit is reached."""
        if self._late():
            raise OutOfTime(self._phase.name, self._phase.share)

    def iteration(self, k: int, row: dict[str, float]) -> None:
        """Report an iteration with its row of the history."""
        if self._display is not None:
            self._display.iteration(k, row)

    def note(self, text: str) -> None:
        """Show a message."""
        if self._display is not None:
            self._display.note(text)

    def stage(self, text: str) -> None:
        """Show what came of a stage."""
        self.note(f"{text} ({self.elapsed():.0f} s)")

    def say(self, text: str) -> None:
        """Show a sentence that stays, where progress is shown at all."""
        if self._display is not None:
            self._display.say(text)

    def timings(self) -> dict[str, float]:
        """Return the seconds of each phase, and the time since the run began ("total")."""
        return {**self.seconds, "total": clock.now() - self.began}

    def memory(self) -> int | None:
        """Return by how many bytes the process has grown at most, where that can be measured."""
        return self._meter.growth()

    def _late(self) -> bool:
        return self._deadline is not None and clock.now() + self._reserved > self._deadline

    def _begin(self, name: str, total: int | None, unit: str, *, alone: bool = False) -> Phase:
        self._phase = phase = Phase(name, self.title, total, unit, clock.now(), alone)
        if self._display is not None:
            self._display.begin(phase)
        return phase

    def _advance(self, phase: Phase, amount: int) -> None:
        phase.done += amount
        if self._display is not None:
            phase.seconds = clock.now() - phase.began
            self._display.update(phase)

    def _end(self, phase: Phase) -> None:
        phase.seconds = clock.now() - phase.began
        if self._display is not None:
            self._display.end(phase)


class _Lines:
    """Plain lines on standard error; ``by_stage`` leaves out those of passes."""

    def __init__(self, by_stage: bool = False) -> None:
        self._last, self._by_stage = clock.now(), by_stage

    def begin(self, phase: Phase) -> None:
        if phase.alone:
            self.note(f"{phase.label}: begun")

    def update(self, phase: Phase) -> None:
        left, now = phase.seconds_left, clock.now()
        if not self._by_stage and min(now - self._last, left) > LINE_INTERVAL_SECONDS:
            self._last = now
            until = "" if left == inf else f", {left:.0f} s left"
            rate = f"{phase.rate:,.0f} {phase.unit}/s"
            self.note(f"{phase.label}: {phase.position}, {rate}{until}")

    def end(self, phase: Phase) -> None:
        if phase.alone or (phase.seconds > LINE_INTERVAL_SECONDS and not self._by_stage):
            of = "" if phase.total in (None, phase.done) else f" of {phase.total:,}"
            amount = f"{phase.done:,}{of} {phase.unit}"
            self.note(f"{phase.label}: {amount} in {phase.seconds:.1f} s")

    def iteration(self, k: int, row: dict[str, float]) -> None:
        if self._by_stage:
            return
        residuals = {name: row[f"{name}_residual"] for name in ("primal", "dual")}
        known = [f"{value:.1e} ({name})" for name, value in residuals.items() if value == value]
        shown = f"residuals {' '.join(known)}, " if known else ""
        self.note(
            f"iteration {k}, objective {row['objective']:.6g}, training error "
            f"{row['training_error']:.4%}, {shown}{row['seconds']:.1f} s"
        )

    def note(self, text: str) -> None:
        print(escaped(f"polysift: {text}"), file=sys.stderr, flush=True)

    def say(self, text: str) -> None:
        self.note(text)

    def close(self) -> None:
        """There is nothing to close."""


class _Bar:
    """A rich progress bar with the phase, its rate, the time left, and the last message."""

    def __init__(self, progress: Any) -> None:
        self._progress = progress
        self._task = progress.add_task("starting", total=None, position="", rate="", note="")
        progress.start()

    def begin(self, phase: Phase) -> None:
        self.update(phase)

    def update(self, phase: Phase) -> None:
        self._progress.update(
            self._task,
            description=phase.label,
            completed=phase.done,
            total=phase.total,
            position=f"{phase.position:>4}",
            rate=f"{phase.rate:,.0f} {phase.unit}/s" if phase.done else "",
        )

    def end(self, phase: Phase) -> None:
        self.update(phase)

    def iteration(self, k: int, row: dict[str, float]) -> None:
        self.note(f"iteration {k}, objective {row['objective']:.5g}")

    def note(self, text: str) -> None:
        self._progress.update(self._task, note=text)

    def say(self, text: str) -> None:
        self._progress.console.print(escaped(text), markup=False, highlight=False)

    def close(self) -> None:
        self._progress.stop()


def _progress_bar() -> _Bar | None:
    """Return a bar, or None where rich is not installed or standard error is no terminal."""
    if not sys.stderr.isatty():
        return None
    try:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:
        return None
    return _Bar(
        Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[position]}"),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}", markup=False),
            console=safe_console(stderr=True),
        )
    )
