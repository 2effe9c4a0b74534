"""How the state of rows on a cluster came about, and how a checkpoint reads and writes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter

import numpy as np

from polysift.cluster.messages import Step, Sweep
from polysift.cluster.partitions import Stretch
from polysift.cluster.scheduler import Cluster, Ref
from polysift.runtime.checkpoints import read_rows
from polysift.runtime.types import FloatArray

LONGEST = 50
"""Steps after which a state is brought to safety, lest a lost one take long to make again."""

SHARE = 10
"""That shall take a tenth of the time at most."""


class Lineage:
    """The steps since the state was last safe: what a lost one is made from again.

    Parameters
    ----------
    cluster : Cluster
        Where the steps are sent, once each.
    columns : int
        The columns of the state.
    path : path, optional
        The file with the state at the beginning; by default it is t = 1.
    owner : object, optional
        Kept as long as the file is needed.
    cost : float, default=0
        The seconds it took to write it.
    """

    def __init__(
        self,
        cluster: Cluster,
        columns: int,
        path: Path | None = None,
        *,
        owner: object = None,
        cost: float = 0.0,
    ) -> None:
        self._cluster, self._path, self._owner = cluster, path, owner
        self._first_columns = self.columns = columns
        self._steps: list[Step] = []
        self._refs: list[Ref] = []
        self._due = perf_counter() + SHARE * cost
        self.longest = LONGEST

    def __len__(self) -> int:
        return len(self._steps)

    def append(self, step: Step, columns: int) -> None:
        """Add a step, after which the state has so many columns."""
        self._steps.append(step)
        self._refs.append(self._cluster.put(step))
        self.columns = columns

    def refs(self, after: int) -> list[Ref]:
        """Return the steps but for the first ones."""
        return self._refs[after:]

    def sweeps(self, after: int) -> bool:
        """Return whether there is a sweep among the steps but for the first ones."""
        return any(isinstance(step, Sweep) for step in self._steps[after:])

    def send_again(self) -> None:
        """Send all steps anew."""
        self._refs = [self._cluster.put(step) for step in self._steps]

    def start(self, stretch: Stretch) -> Ref:
        """Return the state of a stretch at the beginning, or the number of columns of t = 1."""
        if self._path is None:
            return self._first_columns
        return self._cluster.put(read_rows(self._path, "state", stretch.rows))

    def too_long(self) -> bool:
        """Return whether the state should be brought to safety."""
        return len(self._steps) >= self.longest and perf_counter() >= self._due


class StoredState:
    """The state of all rows as ``RowBlocks``: a block is a stretch's."""

    dtype = np.dtype(float)

    def __init__(
        self,
        stretches: list[Stretch],
        columns: int,
        get: Callable[[int], FloatArray],
        put: Callable[[int, FloatArray], None],
    ) -> None:
        self._stretches, self._get, self._put = stretches, get, put
        self.shape = (stretches[-1].rows[1], columns)

    def read(self) -> Iterator[FloatArray]:
        """Yield the state of each stretch."""
        for i in range(len(self._stretches)):
            yield self._get(i)

    def write(self) -> Iterator[FloatArray]:
        """Yield an empty block for each stretch; filled, it becomes its state."""
        for i, stretch in enumerate(self._stretches):
            block = np.empty((stretch.n_rows, self.shape[1]))
            yield block
            self._put(i, block)
