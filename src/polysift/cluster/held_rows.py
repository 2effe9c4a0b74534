"""What a cluster holds of the rows: their source, labels, features and state.

For each partition of shards there are references: to the rows' source, to their labels, and to
their state, which the next task is given and returns anew. All steps since the state was last safe
are kept, so that the state of a partition that was lost is made again.

The rows of partitions on a cluster, sent when they are first needed.

How the state of rows on a cluster came about, and how a checkpoint reads and writes it.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from polysift.cluster import tasks
from polysift.cluster.partitions import Partition
from polysift.cluster.scheduler import Cluster, LostError, Ref, Scheduler
from polysift.cluster.tasks import RowLabels, Step, Sweep, Task
from polysift.data.source import DataSource, TrainingSet
from polysift.runtime.arrays import read_rows, write_arrays
from polysift.runtime.outputs import TemporaryFolder
from polysift.runtime.progress import Monitor, WorkersLostError
from polysift.runtime.types import FloatArray


class Pieces:
    """The rows of each partition as a source of its own, on the cluster from its first use on."""

    def __init__(self, cluster: Cluster, source: DataSource, partitions: list[Partition]) -> None:
        self.cluster, self.source, self.partitions = cluster, source, partitions
        self._refs: dict[int, Ref] = {}

    def __getitem__(self, i: int) -> Ref:
        if i not in self._refs:
            self._refs[i] = self.cluster.put(self.source.cut(self.partitions[i].shards))
        return self._refs[i]

    def forget(self, i: int) -> None:
        """Send the rows of a partition anew when they are needed next."""
        self._refs.pop(i, None)


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

    def start(self, partition: Partition) -> Ref:
        """Return the state of a partition at the beginning, or the number of columns of t = 1."""
        if self._path is None:
            return self._first_columns
        return self._cluster.put(read_rows(self._path, "state", partition.rows))

    def too_long(self) -> bool:
        """Return whether the state should be brought to safety."""
        return len(self._steps) >= self.longest and perf_counter() >= self._due


class StoredState:
    """The state of all rows as ``RowBlocks``: a block is a partition's."""

    dtype = np.dtype(float)

    def __init__(
        self,
        partitions: list[Partition],
        columns: int,
        get: Callable[[int], FloatArray],
        put: Callable[[int, FloatArray], None],
    ) -> None:
        self._partitions, self._get, self._put = partitions, get, put
        self.shape = (partitions[-1].rows[1], columns)

    def read(self) -> Iterator[FloatArray]:
        """Yield the state of each partition."""
        for i in range(len(self._partitions)):
            yield self._get(i)

    def write(self) -> Iterator[FloatArray]:
        """Yield an empty block for each partition; filled, it becomes its state."""
        for i, partition in enumerate(self._partitions):
            block = np.empty((partition.n_rows, self.shape[1]))
            yield block
            self._put(i, block)


SPARE = 4
"""A state goes to a temporary file where there is room for so many of them."""

logger = logging.getLogger("polysift")


@dataclass
class Held:
    """What the cluster holds of a partition's rows; the state is that after so many steps."""

    labels: Ref = None
    features: Ref = None
    state: Ref = None
    steps: int = 0


class Holdings:
    """What a cluster holds, and who has tasks done with it.

    Parameters
    ----------
    data : TrainingSet
        The rows; where its codes are empty, workers find them by its encoding.
    task : Task
        What all tasks must know.
    pieces : Pieces
        The rows on the cluster.
    monitor : Monitor
        Told of the rows done.

    Attributes
    ----------
    partitions : list of Partition
        The partitions.
    held : list of Held
        What the cluster holds of each.
    lineage : Lineage
        The steps since the state was last safe.
    """

    def __init__(self, data: TrainingSet, task: Task, pieces: Pieces, monitor: Monitor) -> None:
        self._data, self._task, self._pieces = data, task, pieces
        self._cluster, self.partitions = pieces.cluster, pieces.partitions
        self._crew = Scheduler(self._cluster, self.partitions, monitor)
        self._task_ref = self._cluster.put(task)
        self.held = [Held() for _ in self.partitions]
        self.lineage = Lineage(self._cluster, 0)

    def begin(self, columns: int) -> None:
        """Make a state of so many columns: t = 1."""
        self._restart(Lineage(self._cluster, columns))
        for held in self.held:
            held.state = None

    def saved(self, path: Path) -> None:
        """Learn that the state has been saved in a file: from there it would be made again."""
        self._restart(Lineage(self._cluster, self.lineage.columns, path))

    @property
    def state(self) -> StoredState:
        """The state, as a checkpoint reads and writes it."""
        return StoredState(self.partitions, self.lineage.columns, self._state_of, self._put_state)

    def visit(
        self, phase: str, numbers: Sequence[int], submit: Callable[[int], list[Ref]]
    ) -> Iterator[tuple[int, list[Ref], Any]]:
        """Have a task done for some partitions; yield their numbers, references and results."""
        return self._crew.visit(phase, numbers, submit, self._recover)

    def visit_all(
        self, phase: str, value: Any, submit: Callable[[int, Ref], list[Ref]]
    ) -> Iterator[tuple[int, list[Ref], Any]]:
        """Have a task done for every partition, which gets a value that is sent once."""
        sent = [self._cluster.put(value)]

        def recover(i: int, lost: LostError) -> str:
            sent[0] = self._cluster.put(value)
            return self._recover(i, lost)

        everywhere = range(len(self.partitions))
        return self._crew.visit(phase, everywhere, lambda i: submit(i, sent[0]), recover)

    def result(self, phase: str, i: int, submit: Callable[[int], list[Ref]]) -> Any:
        """Have a task done for one partition; return its result."""
        return self._crew.result(phase, i, submit, self._recover)[1]

    def submit(self, task: Callable[..., Any], i: int, *args: Any, returns: int = 1) -> list[Ref]:
        """Hand a task over, with the rows of a partition; return references to what it returns."""
        return self._cluster.submit(task, self._pieces[i], self._task_ref, *args, returns=returns)

    def labels(self, i: int) -> Ref:
        """Return the labels of a partition: sent from here, or None where a task will find them."""
        held = self.held[i]
        if held.labels is None and len(self._data.codes):
            held.labels = self._cluster.put(_labels_of(self._data, self.partitions[i]))
        return held.labels

    def start(self, i: int) -> Any:
        """Return the state of a partition to go on from, as a task takes it."""
        state = self.held[i].state
        return self.lineage.start(self.partitions[i]) if state is None else state

    def learn(self, i: int, labels: Ref, features: Ref = None) -> None:
        """Keep what a task has found of a partition, where it was not known."""
        held = self.held[i]
        if held.labels is None:
            held.labels = labels
        if held.features is None and self._task.store:
            held.features = features

    def advance(self, phase: str) -> Iterator[Any]:
        """Take the state of every partition through the steps that it lacks; yield the sums."""
        behind = [i for i, held in enumerate(self.held) if held.steps < len(self.lineage)]
        for i, refs, sums in self._crew.visit(phase, behind, self._submit_steps, self._recover):
            held = self.held[i]
            if held.labels is None:
                held.labels = refs[2]
            if held.features is None and self._task.store and self.lineage.sweeps(held.steps):
                held.features = refs[3]
            held.state, held.steps = refs[1], len(self.lineage)
            yield sums

    def _submit_steps(self, i: int) -> list[Ref]:
        held, first = self.held[i], self.partitions[i].first_shard
        steps = self.lineage.refs(held.steps)
        known = self.labels(i), held.features
        return self.submit(tasks.advance, i, *known, first, self.start(i), *steps, returns=4)

    def _recover(self, i: int, lost: LostError) -> str:
        """Send anew what was sent from here, and let go of what tasks had made, if any is gone."""
        if not lost.objects:
            return ""
        held = self.held[i]
        again = held.steps if held.state is not None else 0
        self.held[i] = Held()
        self._pieces.forget(i)
        self._task_ref = self._cluster.put(self._task)
        self.lineage.send_again()
        return f"Their state is made again by {again} sweeps." if again else ""

    def _state_of(self, i: int) -> FloatArray:
        """Return the state of a partition, after all steps, and made again if it is lost."""
        partition = self.partitions[i]
        if not self.lineage.columns:
            return np.empty((partition.n_rows, 0))
        for _ in range(1 + self._cluster.retries):
            if self.held[i].steps < len(self.lineage):
                for _ in self.advance("sweep"):
                    pass
            start = self.start(i)
            if isinstance(start, int):
                return np.ones((partition.n_rows, start))
            try:
                return np.asarray(self._cluster.get(start, lambda: None))
            except LostError as lost:
                logger.warning("The state of %s was lost, since %s.", partition, lost.reason)
                self._recover(i, lost)
        raise WorkersLostError(f"The state of {partition} is lost as often as it is made.")

    def _put_state(self, i: int, state: FloatArray) -> None:
        self.held[i].state = self._cluster.put(state)

    def _restart(self, lineage: Lineage) -> None:
        self.lineage = lineage
        for held in self.held:
            held.steps = 0

    def secure(self) -> None:
        """Bring the state to a file of this process, so that the steps up to here can go."""
        folder, began, columns = TemporaryFolder(), perf_counter(), self.lineage.columns
        path, size = folder.path / "state", 8 * self._data.source.n_rows * columns
        try:
            if shutil.disk_usage(folder.path).free < SPARE * size:
                raise OSError(f"{size:,} bytes are too many for the room that is left there")
            write_arrays(path, {"state": self.state}, {})
        except OSError as error:
            logger.warning(
                "The state is not brought to %s (%s): after a loss it would be made again by %d "
                "sweeps. Set checkpoint to have it saved elsewhere.",
                folder.path.parent,
                error,
                len(self.lineage),
            )
            self.lineage.longest *= 2
            return
        cost = perf_counter() - began
        self._restart(Lineage(self._cluster, columns, path, owner=folder, cost=cost))


def _labels_of(data: TrainingSet, partition: Partition) -> RowLabels:
    rows = slice(*partition.rows)
    weights = None if data.weights is None else data.weights[rows]
    return RowLabels(
        data.codes[rows], weights, None if data.fold_parts is None else data.fold_parts[rows]
    )
