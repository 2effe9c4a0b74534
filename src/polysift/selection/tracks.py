"""Tracks: ways to solve that a search compares, and how they stand.

A track is the first n centers, a ratio rho and a solver. Its candidates differ only in the
iteration at which they are read off.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from polysift.runtime.types import FloatArray
from polysift.solvers.admm import Settings
from polysift.solvers.result import Status


@dataclass(frozen=True)
class Track:
    """One way to solve.

    Attributes
    ----------
    n : int
        The number of centers.
    rho : float or None
        Relative to trace(G) / n; None is the solver's own.
    solver : str
        Its name.
    reads : tuple of int
        The iterations at which its candidates are read off, ascending.
    """

    n: int
    rho: float | None
    solver: str
    reads: tuple[int, ...]


@dataclass
class Standing:
    """What is known of one candidate: (track, iteration).

    Attributes
    ----------
    scores : ndarray of shape (n_splits,)
        Its score on each split, NaN where it was not run; if it was not finished, those of the
        last iterate that was scored.
    iterations : float
        The iterations done, the mean over the splits.
    finished : bool
        Whether it was run to its end.
    """

    scores: FloatArray
    iterations: float
    finished: bool


Key = tuple[Track, int]


@dataclass
class Outcome:
    """How a tournament stands; ``last`` says at which iteration each track was left, or done."""

    standings: dict[Key, Standing] = field(default_factory=dict)
    last: dict[Track, int] = field(default_factory=dict)


class Stopped(Exception):
    """The time limit or the user has ended the search; ``status`` says which."""

    def __init__(self, status: Status) -> None:
        super().__init__(status)
        self.status = status


def factor_key(track: Track, settings: Settings) -> tuple[Any, ...]:
    """Return what determines a factor: tracks that agree in it share one."""
    return track.n, settings.rho, settings.relative_rho, settings.floor_multiple


def rungs_of(tracks: list[Track]) -> list[int]:
    """Return where to read off. A run that ends by itself waits for the next rung, to share it."""
    between = {read for track in tracks for read in track.reads[:-1]}
    return sorted(between | {max(track.reads[-1] for track in tracks)})
