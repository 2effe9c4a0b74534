"""A study: a claim of the paper, what to measure for it, how to draw and judge the outcome."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

Row = dict[str, Any]
"""Plain values by name: a cell (what to run), a measurement, or a line of a summary."""


class Cells(Protocol):
    """What can be run cell by cell; a ``Study`` says more about each of these."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def cells(self) -> Callable[[int], list[Row]]:
        """Takes the number of runs, returns what to measure."""

    @property
    def measure(self) -> Callable[[Row], list[Row]]:
        """Takes a cell, returns its measurements."""

    @property
    def parallel(self) -> bool:
        """Whether cells may run side by side."""


@dataclass(frozen=True)
class Verdict:
    """Whether the data agree with a claim, and how one can tell.

    Attributes
    ----------
    agrees : bool or None
        None where the claim is of a kind that numbers cannot settle.
    text : str
        A few sentences, with the numbers.
    """

    agrees: bool | None
    text: str

    def __post_init__(self) -> None:
        if self.agrees is not None:  # a comparison of numpy's numbers is no bool that JSON knows
            object.__setattr__(self, "agrees", bool(self.agrees))


ONE_RUN = Verdict(None, "One run tells nothing of chance; repeat it with more --runs.")


@dataclass(frozen=True)
class Study:
    """One study.

    Attributes
    ----------
    name : str
        What a user types, such as "1".
    title : str
        A line.
    figure : str
        What of the paper it reproduces, such as "Fig. 6", or "" for one of our own.
    claim : str
        What is to be checked, in our words, with the paper's numbers.
    runs : int
        How often the paper repeats it; the default.
    cells : callable
        Takes the number of runs, returns what to run: dicts of plain values that ``measure`` takes,
        each of a second or so, independent of one another, and each with everything that it depends
        on, the seed included.
    measure : callable
        Takes a cell, returns its measurements: one or more dicts of plain values.
    summarise : callable
        Takes all measurements (each with the entries of its cell), returns the lines of a table.
    draw : callable
        Takes the summary and all measurements, returns a matplotlib Figure.
    judge : callable
        Takes the summary and all measurements, returns the verdict.
    parallel : bool
        Whether cells may run beside one another; not so where time and memory are measured.
    """

    name: str
    title: str
    figure: str
    claim: str
    runs: int
    cells: Callable[[int], list[Row]]
    measure: Callable[[Row], list[Row]]
    summarise: Callable[[list[Row]], list[Row]]
    draw: Callable[[list[Row], list[Row]], Any]
    judge: Callable[[list[Row], list[Row]], Verdict]
    parallel: bool = True
