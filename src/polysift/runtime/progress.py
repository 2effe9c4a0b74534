"""What a running fit reports to, and what may stop it.

How far a transfer is.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from time import perf_counter
from typing import Any, TypeVar

from polysift.runtime.memory import MemoryMeter

T = TypeVar("T")


class OutOfTime(Exception):
    """The time limit has struck; ``phase`` and ``share`` say where."""

    def __init__(self, phase: str, share: float) -> None:
        super().__init__(phase, share)
        self.phase, self.share = phase, share


class WorkersLostError(RuntimeError):
    """Workers of a cluster were lost more often than is borne, or there are none left.

    Examples
    --------
    >>> import polysift
    >>> try:
    ...     raise polysift.WorkersLostError("all workers are lost")  # as a fit on a cluster does
    ... except polysift.WorkersLostError as error:
    ...     print(f"not fitted: {error}")
    not fitted: all workers are lost
    """


class Monitor:
    """Counts rows, shows progress, and raises ``OutOfTime`` at the deadline.

    Parameters
    ----------
    time_limit : float, optional
        Seconds from now.
    show : bool
        Whether to show progress on standard error: a bar where rich is installed and somebody is
        watching, else lines.

    Attributes
    ----------
    seconds : dict of str to float
        The time each phase has taken so far.
    title : str
        What the phases that follow are part of; shown before their names.
    """

    def __init__(self, time_limit: float | None = None, *, show: bool = False) -> None:
        self.began = perf_counter()
        self._meter = MemoryMeter()
        self._deadline = None if time_limit is None else self.began + time_limit
        self._reserved = 0.0
        self._display: Any = None
        if show:
            self._display = _rich_display() or _Lines()
        self._phase, self._done, self._total, self._phase_began = "", 0, 0, self.began
        self.seconds: dict[str, float] = {}
        self.title = ""

    def __enter__(self) -> Monitor:
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._display is not None:
            self._display.close()

    def watch(self, phase: str, total: int, parts: Iterable[tuple[int, T]]) -> Iterator[T]:
        """Pass on parts, each with its number of rows, and report them; ``total`` rows in all."""
        self._phase, self._done, self._total = phase, 0, total
        shown = f"{self.title}: {phase}" if self.title else phase
        self._phase_began = perf_counter()
        for rows, part in parts:
            self._done += rows
            self._report(shown)
            yield part
            if self._done < self._total and self._late():
                raise OutOfTime(phase, self._done / total)
        seconds = perf_counter() - self._phase_began
        self.seconds[phase] = self.seconds.get(phase, 0.0) + seconds
        if self._display is not None:
            self._display.finish(shown, total, seconds)

    def lift(self) -> None:
        """Forget the time limit: what comes now is short, and needed."""
        self._deadline = None

    def reserve(self, seconds: float) -> None:
        """Let the deadline strike so much earlier, to leave time for what comes last."""
        self._reserved = seconds

    def check(self) -> None:
        """Raise ``OutOfTime`` if the deadline has passed."""
        if self._late():
            raise OutOfTime(self._phase, self._done / max(self._total, 1))

    def iteration(self, k: int, row: dict[str, float]) -> None:
        """Report an iteration with its row of the history."""
        if self._display is not None:
            self._display.iteration(k, row)

    def note(self, text: str) -> None:
        """Tell what is known so far."""
        if self._display is not None:
            self._display.note(text)

    def timings(self) -> dict[str, float]:
        """Return the seconds of each phase, and of all that has happened so far."""
        return {**self.seconds, "total": perf_counter() - self.began}

    def memory(self) -> int | None:
        """Return by how many bytes the process has grown at most, where that can be told."""
        return self._meter.growth()

    def _late(self) -> bool:
        return self._deadline is not None and perf_counter() + self._reserved > self._deadline

    def _report(self, shown: str) -> None:
        if self._display is None:
            return
        seconds = perf_counter() - self._phase_began
        rate = self._done / max(seconds, 1e-9)
        self._display.update(shown, self._done, self._total, rate)


class _Lines:
    """Plain lines on standard error, at most one a second while a phase runs."""

    def __init__(self) -> None:
        self._last = perf_counter()

    def update(self, phase: str, done: int, total: int, rate: float) -> None:
        left = (total - done) / rate
        if perf_counter() - self._last > 1.0 and left > 1.0:
            self._last = perf_counter()
            self._print(f"{phase}: {done / total:.0%}, {rate:,.0f} rows/s, {left:.0f} s left")

    def finish(self, phase: str, total: int, seconds: float) -> None:
        if seconds > 1.0:
            self._print(f"{phase}: {total:,} rows in {seconds:.1f} s")

    def iteration(self, k: int, row: dict[str, float]) -> None:
        self._print(_describe(k, row))

    def note(self, text: str) -> None:
        self._print(text)

    def close(self) -> None:
        pass

    def _print(self, text: str) -> None:
        print(f"polysift: {text}", file=sys.stderr, flush=True)


def _describe(k: int, row: dict[str, float]) -> str:
    residuals = {name: row[f"{name}_residual"] for name in ("primal", "dual")}
    known = [f"{value:.1e} ({name})" for name, value in residuals.items() if value == value]
    told = f"residuals {' '.join(known)}, " if known else ""
    return (
        f"iteration {k}, objective {row['objective']:.6g}, training error "
        f"{row['training_error']:.4%}, {told}{row['seconds']:.1f} s"
    )


class _Bar:
    """A rich progress bar with phase, rows/s, time left, and the last iteration."""

    def __init__(self, progress: Any) -> None:
        self._progress = progress
        self._task = progress.add_task("starting", total=None, rate="", note="")
        progress.start()

    def update(self, phase: str, done: int, total: int, rate: float) -> None:
        shown = f"{rate:,.0f} rows/s"
        self._progress.update(
            self._task, description=phase, completed=done, total=total, rate=shown
        )

    def finish(self, phase: str, total: int, seconds: float) -> None:
        self._progress.update(self._task, completed=total, total=total)

    def iteration(self, k: int, row: dict[str, float]) -> None:
        self.note(f"iteration {k}, objective {row['objective']:.5g}")

    def note(self, text: str) -> None:
        self._progress.update(self._task, note=text)

    def close(self) -> None:
        self._progress.stop()


def _rich_display() -> _Bar | None:
    if not sys.stderr.isatty():
        return None
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:
        return None
    return _Bar(
        Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=Console(stderr=True),
        )
    )


class Progress:
    """Counts, and shows the count on standard error where that is wanted.

    It is a bar where rich is installed and somebody is watching, else lines, at most one a second.

    Parameters
    ----------
    title : str
        What is going on.
    total : int or None
        How much there is, where it is known.
    unit : str
        What is counted.
    show : bool
        Whether to show anything.
    """

    def __init__(self, title: str, total: int | None, unit: str, *, show: bool) -> None:
        self._title, self._total, self._unit, self._show = title, total, unit, show
        self._done, self._bar = 0, _rich_bar() if show else None
        self._began = self._last = perf_counter()

    def __enter__(self) -> Progress:
        if self._bar is not None:
            self._task = self._bar.add_task(self._title, total=self._total, note="")
            self._bar.start()
        elif self._show:
            self._print("begun")
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._bar is not None:
            self._bar.stop()
        elif self._show:
            self._print(f"{self._note()} in {perf_counter() - self._began:.1f} s")

    def advance(self, amount: int) -> None:
        """Count some more."""
        self._done += amount
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done, note=self._note())
        elif self._show and perf_counter() - self._last > 1.0:
            self._last = perf_counter()
            self._print(self._note())

    def _note(self) -> str:
        of = "" if self._total is None else f" of {self._total:,}"
        return f"{self._done:,}{of} {self._unit}"

    def _print(self, text: str) -> None:
        print(f"polysift: {self._title}: {text}", file=sys.stderr, flush=True)


def _rich_bar() -> Any:
    if not sys.stderr.isatty():
        return None
    try:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress
    except ImportError:
        return None
    return RichProgress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[note]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )
