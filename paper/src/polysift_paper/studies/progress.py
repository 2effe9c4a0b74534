"""How far a study is, on standard error: a bar for people, lines for logs."""

from __future__ import annotations

import sys
from math import inf
from time import perf_counter
from typing import Any

EVERY = 5.0
"""Seconds between lines."""


class Progress:
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

    def __enter__(self) -> Progress:
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
        if now - self._last < EVERY and not ended:
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
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress
    except ImportError:
        return None
    return RichProgress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("cells"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        speed_estimate_period=inf,  # not the last 30 s alone, in which no cell may have ended
    )
