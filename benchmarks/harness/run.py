"""The size and the number of threads of a run of the suite."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

SIZES = ("tiny", "quick", "full")
"""How much is measured: enough to see that it works, in minutes, or what the documents show."""


@dataclass(frozen=True)
class Run:
    """The size of a run.

    Attributes
    ----------
    size : str
        One of ``SIZES``.
    threads : int
        The threads of all that is compared.
    scale : float or None
        The share of the rows of whole fits at published shapes; None is by the size.
    kept : Path
        The file that keeps the cells of a section on tables.
    tables, methods : tuple of str
        Those of the section that are measured; none is all.
    splits : int or None
        Its splits; None is by the size.
    fresh : bool
        Whether cells that are kept are measured again.
    """

    size: str
    threads: int
    scale: float | None = None
    kept: Path = Path("cells.json")
    tables: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    splits: int | None = None
    fresh: bool = False

    def pick(self, tiny: T, quick: T, full: T) -> T:
        """Return what belongs to the size."""
        return {"tiny": tiny, "quick": quick, "full": full}[self.size]
