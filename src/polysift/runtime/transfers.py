"""How far a transfer is."""

from __future__ import annotations

import sys
from time import perf_counter
from typing import Any


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
