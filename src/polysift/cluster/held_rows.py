"""The rows that a cluster holds, as references, and the log that makes a lost state again.

The process that fits a model holds no rows. For each partition it has references to what the
cluster holds of it (``HeldRows``): the rows themselves, their labels, their features where those
are kept, and their state. When a node is lost, what was sent from here is sent again, and labels
and features are computed again from the rows. The state is the result of all steps so far, so the
steps since it was last saved are kept (``ReplayLog``), and a lost state is made again by replaying
them. Each task is given the state and the steps that it lacks, and returns the new state.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from polysift.cluster import tasks
from polysift.cluster.partitions import Partition
from polysift.cluster.scheduler import Cluster, LostError, Ref, Scheduler
from polysift.cluster.tasks import Keep, RowLabels, Step, Sweep, TaskContext
from polysift.data.source import DataSource
from polysift.data.training_set import TrainingSet
from polysift.runtime import clock
from polysift.runtime.arrays import read_rows, write_arrays
from polysift.runtime.outputs import TemporaryFolder
from polysift.runtime.progress import Monitor, WorkersLostError
from polysift.runtime.types import FloatArray

MAX_REPLAY_STEPS = 50
"""Steps after which the state is saved, so that a lost one does not take long to make again."""

SAVE_INTERVAL_FACTOR = 10
"""Between two saves lies so many times what a save takes: a tenth of the time goes to saving."""

FREE_DISK_FACTOR = 4
"""The state is saved to a temporary file where there is room for so many of them."""

logger = logging.getLogger("polysift")


class PartitionedSource:
    """The rows of each partition as a source of its own, sent to the cluster at its first use."""

    def __init__(self, cluster: Cluster, source: DataSource, partitions: list[Partition]) -> None:
        self.cluster, self.source, self.partitions = cluster, source, partitions
        self._refs: dict[int, Ref] = {}

    def __getitem__(self, i: int) -> Ref:
        if i not in self._refs:
            self._refs[i] = self.cluster.put(self.source.cut(self.partitions[i].shards))
        return self._refs[i]

    def drop(self, i: int) -> None:
        """Drop the reference to a partition; its rows are sent again when they are needed."""
        self._refs.pop(i, None)


class ReplayLog:
    """The steps of the state since it was last saved, from which a lost state is made again.

    Parameters
    ----------
    cluster : Cluster
        Where each step is sent, once.
    columns : int
        The columns of the state.
    saved : path, optional
        The file with the state before the first step; by default that is t = 1.
    folder : TemporaryFolder, optional
        The folder of that file, kept as long as the log.
    save_seconds : float, default=0
        The time it took to write the file.

    Attributes
    ----------
    columns : int
        The columns of the state after all steps.
    max_steps : int
        The steps after which the state should be saved.
    """

    def __init__(
        self,
        cluster: Cluster,
        columns: int,
        saved: Path | None = None,
        *,
        folder: TemporaryFolder | None = None,
        save_seconds: float = 0.0,
    ) -> None:
        self._cluster, self._saved, self._folder = cluster, saved, folder
        self._initial_columns = self.columns = columns
        self._steps: list[Step] = []
        self._refs: list[Ref] = []
        self._next_save = clock.now() + SAVE_INTERVAL_FACTOR * save_seconds
        self.max_steps = MAX_REPLAY_STEPS

    def __len__(self) -> int:
        return len(self._steps)

    def append(self, step: Step) -> None:
        """Add a step, and send it to the cluster."""
        self._steps.append(step)
        self._refs.append(self._cluster.put(step))
        if isinstance(step, Keep):
            self.columns = len(step.columns)

    def refs(self, done: int) -> list[Ref]:
        """Return the steps after the first ``done``."""
        return self._refs[done:]

    def has_sweep(self, done: int) -> bool:
        """Return whether there is a sweep after the first ``done`` steps."""
        return any(isinstance(step, Sweep) for step in self._steps[done:])

    def resend(self) -> None:
        """Send all steps again."""
        self._refs = [self._cluster.put(step) for step in self._steps]

    def initial_state(self, partition: Partition) -> Ref:
        """Return the state of a partition before the first step, for t = 1 its columns' number."""
        if self._saved is None:
            return self._initial_columns
        return self._cluster.put(read_rows(self._saved, "state", partition.rows))

    def should_be_truncated(self) -> bool:
        """Return whether it is time to save the state and to begin a new log."""
        return len(self._steps) >= self.max_steps and clock.now() >= self._next_save


@dataclass
class PartitionRefs:
    """References to what the cluster holds of a partition; the state is that after ``steps``."""

    labels: Ref = None
    features: Ref = None
    state: Ref = None
    steps: int = 0


class HeldRows:
    """The rows of a training set on a cluster, and the tasks over their partitions.

    Parameters
    ----------
    data : TrainingSet
        The rows; where its codes are empty, workers find them by its encoding.
    context : TaskContext
        What all tasks must know.
    source : PartitionedSource
        The rows on the cluster.
    monitor : Monitor
        Progress and the time limit.

    Attributes
    ----------
    partitions : list of Partition
        The partitions.
    refs : list of PartitionRefs
        What the cluster holds of each.
    log : ReplayLog
        The steps since the state was last saved.
    """

    def __init__(
        self, data: TrainingSet, context: TaskContext, source: PartitionedSource, monitor: Monitor
    ) -> None:
        self._data, self._context, self._source = data, context, source
        self._cluster, self.partitions = source.cluster, source.partitions
        self._scheduler = Scheduler(self._cluster, self.partitions, monitor)
        self._context_ref = self._cluster.put(context)
        self.refs = [PartitionRefs() for _ in self.partitions]
        self.log = ReplayLog(self._cluster, 0)

    # Tasks.

    def submit(self, task: Callable[..., Any], i: int, *args: Any, returns: int = 1) -> list[Ref]:
        """Submit a task on the rows of a partition; return references to what it returns."""
        return self._cluster.submit(
            task, self._source[i], self._context_ref, *args, returns=returns
        )

    def run(
        self, phase: str, numbers: Sequence[int], submit: Callable[[int], list[Ref]]
    ) -> Iterator[tuple[int, list[Ref], Any]]:
        """Run a task on some partitions; yield their numbers, references and results."""
        return self._scheduler.run(phase, numbers, submit, self._recover)

    def run_on_all(
        self, phase: str, value: Any, submit: Callable[[int, Ref], list[Ref]]
    ) -> Iterator[tuple[int, list[Ref], Any]]:
        """Run a task on every partition, with a value that is sent to the cluster once."""
        sent = [self._cluster.put(value)]

        def recover(i: int, lost: LostError) -> str:
            sent[0] = self._cluster.put(value)
            return self._recover(i, lost)

        numbers = range(len(self.partitions))
        return self._scheduler.run(phase, numbers, lambda i: submit(i, sent[0]), recover)

    def result(self, phase: str, i: int, submit: Callable[[int], list[Ref]]) -> Any:
        """Run a task on one partition; return its result."""
        return self._scheduler.result(phase, i, submit, self._recover)[1]

    def labels(self, i: int) -> Ref:
        """Return the labels of a partition, sent from here, or None where the task finds them."""
        refs = self.refs[i]
        if refs.labels is None and len(self._data.codes):
            refs.labels = self._cluster.put(_labels_of(self._data, self.partitions[i]))
        return refs.labels

    def inputs(self, i: int) -> tuple[Ref, Ref, int]:
        """Return the labels and the features of a partition, and the number of its first shard."""
        return self.labels(i), self.refs[i].features, self.partitions[i].first_shard

    def set_found(self, i: int, labels: Ref, features: Ref = None) -> None:
        """Keep the labels and features that a task has found, where they were not known."""
        refs = self.refs[i]
        if refs.labels is None:
            refs.labels = labels
        if refs.features is None and self._context.execution.keep_features:
            refs.features = features

    # The state.

    def begin(self, columns: int) -> None:
        """Begin with a new state of so many columns: t = 1."""
        self._begin_log(ReplayLog(self._cluster, columns))
        for refs in self.refs:
            refs.state = None

    def state_and_steps(self, i: int) -> list[Ref]:
        """Return the state of a partition as a task takes it, and the steps that it lacks."""
        return [self._state_ref(i), *self.log.refs(self.refs[i].steps)]

    def advance(self, phase: str) -> Iterator[Any]:
        """Take the state of every partition through the steps that it lacks; yield the sums."""
        behind = [i for i, refs in enumerate(self.refs) if refs.steps < len(self.log)]

        def submit(i: int) -> list[Ref]:
            args = *self.inputs(i), *self.state_and_steps(i)
            return self.submit(tasks.advance, i, *args, returns=4)

        for i, (_, state, labels, features), sums in self.run(phase, behind, submit):
            refs = self.refs[i]
            # Without a sweep the task has computed no features to keep.
            self.set_found(i, labels, features if self.log.has_sweep(refs.steps) else None)
            refs.state, refs.steps = state, len(self.log)
            yield sums

    @property
    def state(self) -> HeldState:
        """The state, as a checkpoint reads and writes it."""
        return HeldState(self)

    def state_of(self, i: int) -> FloatArray:
        """Return the state of a partition after all steps, made again where it is lost."""
        partition = self.partitions[i]
        if not self.log.columns:
            return np.empty((partition.n_rows, 0))
        for _ in range(1 + self._cluster.retries):
            if self.refs[i].steps < len(self.log):
                for _ in self.advance("sweep"):
                    pass
            ref = self._state_ref(i)
            if isinstance(ref, int):
                return np.ones((partition.n_rows, ref))
            try:
                return np.asarray(self._cluster.get(ref, lambda: None))
            except LostError as lost:
                logger.warning("The state of %s was lost, since %s.", partition, lost.reason)
                self._recover(i, lost)
        raise WorkersLostError(f"The state of {partition} is lost as often as it is made.")

    def set_state(self, i: int, state: FloatArray) -> None:
        """Replace the state of a partition."""
        self.refs[i].state = self._cluster.put(state)

    def set_saved(self, path: Path) -> None:
        """Begin a new log with the state that was saved in a file, after all steps."""
        self._begin_log(ReplayLog(self._cluster, self.log.columns, path))

    def truncate_log(self) -> None:
        """Save the state to a temporary file of this process, and begin a new log with it."""
        folder, began, columns = TemporaryFolder(), clock.now(), self.log.columns
        path, size = folder.path / "state", 8 * self._data.source.n_rows * columns
        try:
            if shutil.disk_usage(folder.path).free < FREE_DISK_FACTOR * size:
                raise OSError(f"{size:,} bytes are too many for the room that is left there")
            write_arrays(path, {"state": self.state}, {})
        except OSError as error:
            logger.warning(
                "The state is not saved to %s (%s): after a loss it would be made again by %d "
                "sweeps. Set checkpoint to have it saved elsewhere.",
                folder.path.parent,
                error,
                len(self.log),
            )
            self.log.max_steps *= 2
            return
        seconds = clock.now() - began
        log = ReplayLog(self._cluster, columns, path, folder=folder, save_seconds=seconds)
        self._begin_log(log)

    def _begin_log(self, log: ReplayLog) -> None:
        self.log = log
        for refs in self.refs:
            refs.steps = 0

    def _state_ref(self, i: int) -> Ref:
        state = self.refs[i].state
        return self.log.initial_state(self.partitions[i]) if state is None else state

    def _recover(self, i: int, lost: LostError) -> str:
        """Send again what was sent from here, and drop what tasks have made, if any is lost."""
        if not lost.objects:
            return ""
        refs = self.refs[i]
        replayed = refs.steps if refs.state is not None else 0
        self.refs[i] = PartitionRefs()
        self._source.drop(i)
        self._context_ref = self._cluster.put(self._context)
        self.log.resend()
        return f"Their state is made again by {replayed} sweeps." if replayed else ""


class HeldState:
    """The state of all rows as ``RowBlocks``, a block for each partition."""

    dtype = np.dtype(float)

    def __init__(self, rows: HeldRows) -> None:
        self._rows = rows
        self.shape = (rows.partitions[-1].rows[1], rows.log.columns)

    def read(self) -> Iterator[FloatArray]:
        """Yield the state of each partition."""
        for i in range(len(self._rows.partitions)):
            yield self._rows.state_of(i)

    def write(self) -> Iterator[FloatArray]:
        """Yield an empty block for each partition; filled, it becomes its state."""
        for i, partition in enumerate(self._rows.partitions):
            block = np.empty((partition.n_rows, self.shape[1]))
            yield block
            self._rows.set_state(i, block)


def _labels_of(data: TrainingSet, partition: Partition) -> RowLabels:
    rows = slice(*partition.rows)
    weights = None if data.weights is None else data.weights[rows]
    fold_parts = None if data.fold_parts is None else data.fold_parts[rows]
    return RowLabels(data.codes[rows], weights, fold_parts)
