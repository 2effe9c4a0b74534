"""The engine on a cluster: the same sums over rows, added up by workers beside their rows.

This process holds no rows. For each stretch of shards it has references: to the rows' source, to
their labels, and to their state, which the next task is given and returns anew. All steps since the
state was last safe are kept, so that the state of a stretch that was lost is made again.
"""

from __future__ import annotations

import logging
import operator
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from polysift import _tasks
from polysift._checkpoint import Checkpoint, write_state
from polysift._crew import Cluster, Crew, LostError, Ref
from polysift._data import DataSource, TrainingSet
from polysift._engine import features_of
from polysift._feature_map import FeatureMap
from polysift._files import TemporaryFolder
from polysift._growing_gram import GrowingGram
from polysift._lanes import Lane
from polysift._lineage import Lineage, StoredState
from polysift._monitor import Monitor, WorkersLostError
from polysift._parallel import Span, TreeSum
from polysift._sampling import Draw, Picked
from polysift._stretches import Stretch
from polysift._sums import GramSums, SweepSums
from polysift._tasks import Keep, RowLabels, Sweep, Task
from polysift._types import FloatArray

SPARE = 4
"""A state goes to a temporary file where there is room for so many of them."""

logger = logging.getLogger("polysift")


class Pieces:
    """The rows of each stretch as a source of its own, on the cluster from its first use on."""

    def __init__(self, cluster: Cluster, source: DataSource, stretches: list[Stretch]) -> None:
        self.cluster, self.source, self.stretches = cluster, source, stretches
        self._refs: dict[int, Ref] = {}

    def __getitem__(self, i: int) -> Ref:
        if i not in self._refs:
            self._refs[i] = self.cluster.put(self.source.cut(self.stretches[i].shards))
        return self._refs[i]

    def forget(self, i: int) -> None:
        """Send the rows of a stretch anew when they are needed next."""
        self._refs.pop(i, None)


@dataclass
class _Held:
    """What the cluster holds of a stretch's rows; the state is that after so many steps."""

    labels: Ref = None
    features: Ref = None
    state: Ref = None
    steps: int = 0


class DistributedEngine:
    """The engine on a cluster; see ``Engine``.

    Parameters
    ----------
    data : TrainingSet
        The rows; where its codes are empty, workers find them by its encoding.
    feature_map : FeatureMap
        The features.
    pieces : Pieces
        The rows on the cluster.
    monitor : Monitor
        Told of the rows done.
    checkpoint : Checkpoint, optional
        Where the Gram matrix is saved while it grows, as the state "gram" with ``suffix``.
    store : bool
        Whether the cluster keeps the features from the first sweep on.
    fused : bool
        Whether workers use the compiled loops.
    precise : bool
        Whether features are float64 also of float32 rows.
    """

    def __init__(
        self,
        data: TrainingSet,
        feature_map: FeatureMap,
        pieces: Pieces,
        *,
        monitor: Monitor,
        checkpoint: Checkpoint | None = None,
        suffix: str = "",
        store: bool = False,
        fused: bool = False,
        precise: bool = False,
    ) -> None:
        self._data, self._pieces, self._cluster = data, pieces, pieces.cluster
        self._stretches = pieces.stretches
        self._crew = Crew(self._cluster, self._stretches, monitor)
        self._checkpoint, self._suffix = checkpoint, suffix
        self._task = Task(
            feature_map,
            data.n_classes,
            data.n_cells,
            data.encoding,
            self._cluster.threads,
            store,
            fused,
            precise,
        )
        self._task_ref = self._cluster.put(self._task)
        self._held = [_Held() for _ in self._stretches]
        self._lineage = Lineage(self._cluster, 0)
        self.features = features_of(data, feature_map)

    def total_weight(self, without: int | None = None) -> float:
        """Return the number of rows, each counted as often as its weight says, but one cell's."""
        return self._data.total_weight(without)

    def gram(self) -> GramSums:
        """Return the sums that do not depend on u, for each cell of rows."""
        growing = GrowingGram(self._checkpoint, self._suffix)
        spans, done = self._spans(), growing.done
        left = [i for i, (first, own) in enumerate(spans) if first + len(own) > done]

        def skipped(i: int) -> int:
            return max(done - spans[i][0], 0)

        def submit(i: int) -> list[Ref]:
            first = spans[i][0]
            return self._submit(_tasks.gram, i, self._labels(i), first, skipped(i), returns=2)

        with growing.saved_at_the_end():
            for i, refs, sums in self._crew.visit("Gram matrix", left, submit, self._recover):
                if self._held[i].labels is None:
                    self._held[i].labels = refs[1]
                growing.push(sums, len(spans[i][1]) - skipped(i))
        return growing.result()

    def pick(self, draw: Draw) -> Picked:
        """Return the rows of a sample, and what its draw adds up over all rows."""
        spans = self._spans()

        def submit(i: int, sent: Ref) -> list[Ref]:
            return self._submit(_tasks.pick, i, self._labels(i), spans[i][0], sent, returns=2)

        tree: TreeSum[Picked] = TreeSum(Picked.add)
        for i, refs, sums in self._visit_all("sample", draw, submit):
            if self._held[i].labels is None:
                self._held[i].labels = refs[1]
            for level, count, total in sums:
                tree.push(total, level, count)
        return tree.result()

    def product(self, lanes: Sequence[Lane], P: FloatArray) -> FloatArray:
        """Return A' Omega A P, each lane's columns (n, K) by its own rows; no state moves."""

        def submit(i: int, sent: Ref) -> list[Ref]:
            held, first = self._held[i], self._stretches[i].first_shard
            known = self._labels(i), held.features
            return self._submit(_tasks.product, i, *known, first, list(lanes), sent, returns=3)

        tree: TreeSum[FloatArray] = TreeSum(operator.add)
        for i, refs, sums in self._visit_all("product", P, submit):
            held = self._held[i]
            if held.labels is None:
                held.labels = refs[1]
            if held.features is None and self._task.store:
                held.features = refs[2]
            for level, count, total in sums:
                tree.push(total, level, count)
        return tree.result()

    def curvature(self, lane: Lane, number: int, k: int, T: FloatArray) -> FloatArray:
        """Return T' A_b' Omega A_b T over the rows in the band of a lane's k-th column."""

        def submit(i: int, sent: Ref) -> list[Ref]:
            held, stretch = self._held[i], self._stretches[i]
            state = self._lineage.start(stretch) if held.state is None else held.state
            known = self._labels(i), held.features, stretch.first_shard
            steps = self._lineage.refs(held.steps)
            return self._submit(_tasks.curvature, i, *known, lane, number, k, sent, state, *steps)

        tree: TreeSum[FloatArray] = TreeSum(operator.add)
        for _, _, sums in self._visit_all("curvature", T, submit):
            for level, count, total in sums:
                tree.push(total, level, count)
        return tree.result()

    def begin(self, n_lanes: int) -> None:
        """Make a state for so many lanes: t = 1, that is v = y and w = 0."""
        self._restart(Lineage(self._cluster, n_lanes * self._data.n_columns))
        for held in self._held:
            held.state = None

    def keep(self, lanes: Sequence[int]) -> None:
        """Drop the state of all other lanes."""
        K = self._data.n_columns
        columns = [lane * K + k for lane in lanes for k in range(K)]
        if len(columns) == self._lineage.columns:
            return
        if not columns:
            self.begin(0)
            return
        self._lineage.append(Keep(columns), len(columns))  # along with the next sweep: no pass

    def sweep(self, lanes: Sequence[Lane], u: FloatArray) -> Any:
        """Visit every row with new coefficients, (n, K per lane), and move its state."""
        self._lineage.append(Sweep(list(lanes), u), self._lineage.columns)
        tree: TreeSum[SweepSums] = TreeSum(SweepSums.add)
        for sums in self._advance("sweep"):
            for level, count, total in sums:
                tree.push(total, level, count)
        if self._checkpoint is None and self._lineage.too_long():
            self._secure()
        return tree.result()

    def scores(self, lanes: Sequence[Lane], coefficients: list[FloatArray]) -> FloatArray:
        """Return the scores of every row by the coefficients (n, K per lane) of its cell."""
        out = np.empty((self._data.source.n_rows, len(lanes) * self._data.n_columns))

        def submit(i: int, sent: Ref) -> list[Ref]:
            return self._submit(_tasks.scores, i, self._labels(i), list(lanes), sent)

        for i, _, values in self._visit_all("scores", coefficients, submit):
            out[slice(*self._stretches[i].rows)] = values
        return out

    def sweep_seconds(self) -> float:
        """Return the time that a sweep of one lane takes, judged by the first shard."""

        def submit(i: int) -> list[Ref]:
            return self._submit(_tasks.sweep_seconds_per_row, i, self._labels(i))

        _, seconds = self._crew.result("sweep", 0, submit, self._recover)
        at_once = self._cluster.workers * self._cluster.threads
        return float(seconds) * self._data.source.n_rows / at_once

    def saved(self, checkpoint: Checkpoint, name: str) -> None:
        """Learn that the state has been saved: from there it would be made again."""
        self._restart(Lineage(self._cluster, self._lineage.columns, checkpoint.path(name)))

    @property
    def state(self) -> StoredState:
        """The state, as a checkpoint reads and writes it."""
        return StoredState(self._stretches, self._lineage.columns, self._state_of, self._put_state)

    def _spans(self) -> list[tuple[int, list[Span]]]:
        """Return the spans of each stretch for a Gram matrix, after the number of the first."""
        if self._data.cells is None:
            return [(stretch.first_shard, stretch.shards) for stretch in self._stretches]
        return [(stretch.first_joined, stretch.joined) for stretch in self._stretches]

    def _visit_all(
        self, phase: str, value: Any, submit: Callable[[int, Ref], list[Ref]]
    ) -> Iterator[tuple[int, list[Ref], Any]]:
        """Have a task done for every stretch, which gets a value that is sent once."""
        sent = [self._cluster.put(value)]

        def recover(i: int, lost: LostError) -> str:
            sent[0] = self._cluster.put(value)
            return self._recover(i, lost)

        everywhere = range(len(self._stretches))
        return self._crew.visit(phase, everywhere, lambda i: submit(i, sent[0]), recover)

    def _submit(self, task: Callable[..., Any], i: int, *args: Any, returns: int = 1) -> list[Ref]:
        return self._cluster.submit(task, self._pieces[i], self._task_ref, *args, returns=returns)

    def _labels(self, i: int) -> Ref:
        """Return the labels of a stretch: sent from here, or None where a task will find them."""
        held = self._held[i]
        if held.labels is None and len(self._data.codes):
            held.labels = self._cluster.put(_labels_of(self._data, self._stretches[i]))
        return held.labels

    def _advance(self, phase: str) -> Iterator[Any]:
        """Take the state of every stretch through the steps that it lacks; yield the sums."""
        behind = [i for i, held in enumerate(self._held) if held.steps < len(self._lineage)]
        for i, refs, sums in self._crew.visit(phase, behind, self._submit_steps, self._recover):
            held = self._held[i]
            if held.labels is None:
                held.labels = refs[2]
            if held.features is None and self._task.store and self._lineage.sweeps(held.steps):
                held.features = refs[3]
            held.state, held.steps = refs[1], len(self._lineage)
            yield sums

    def _submit_steps(self, i: int) -> list[Ref]:
        held, stretch = self._held[i], self._stretches[i]
        state = self._lineage.start(stretch) if held.state is None else held.state
        steps = self._lineage.refs(held.steps)
        known = self._labels(i), held.features
        first = stretch.first_shard
        return self._submit(_tasks.advance, i, *known, first, state, *steps, returns=4)

    def _recover(self, i: int, lost: LostError) -> str:
        """Send anew what was sent from here, and let go of what tasks had made, if any is gone."""
        if not lost.objects:
            return ""
        held = self._held[i]
        again = held.steps if held.state is not None else 0
        self._held[i] = _Held()
        self._pieces.forget(i)
        self._task_ref = self._cluster.put(self._task)
        self._lineage.send_again()
        return f"Their state is made again by {again} sweeps." if again else ""

    def _state_of(self, i: int) -> FloatArray:
        """Return the state of a stretch, after all steps, and made again if it is lost."""
        stretch = self._stretches[i]
        if not self._lineage.columns:
            return np.empty((stretch.n_rows, 0))
        for _ in range(1 + self._cluster.retries):
            if self._held[i].steps < len(self._lineage):
                for _ in self._advance("sweep"):
                    pass
            start = self._held[i].state
            if start is None:
                start = self._lineage.start(stretch)
            if isinstance(start, int):
                return np.ones((stretch.n_rows, start))
            try:
                return np.asarray(self._cluster.get(start, lambda: None))
            except LostError as lost:
                logger.warning("The state of %s was lost, since %s.", stretch, lost.reason)
                self._recover(i, lost)
        raise WorkersLostError(f"The state of {stretch} is lost as often as it is made.")

    def _put_state(self, i: int, state: FloatArray) -> None:
        self._held[i].state = self._cluster.put(state)

    def _restart(self, lineage: Lineage) -> None:
        self._lineage = lineage
        for held in self._held:
            held.steps = 0

    def _secure(self) -> None:
        """Bring the state to a file of this process, so that the steps up to here can go."""
        folder, began, columns = TemporaryFolder(), perf_counter(), self._lineage.columns
        path, size = folder.path / "state", 8 * self._data.source.n_rows * columns
        try:
            if shutil.disk_usage(folder.path).free < SPARE * size:
                raise OSError(f"{size:,} bytes are too many for the room that is left there")
            write_state(path, {"state": self.state}, {})
        except OSError as error:
            logger.warning(
                "The state is not brought to %s (%s): after a loss it would be made again by %d "
                "sweeps. Set checkpoint to have it saved elsewhere.",
                folder.path.parent,
                error,
                len(self._lineage),
            )
            self._lineage.longest *= 2
            return
        cost = perf_counter() - began
        self._restart(Lineage(self._cluster, columns, path, owner=folder, cost=cost))


def _labels_of(data: TrainingSet, stretch: Stretch) -> RowLabels:
    rows = slice(*stretch.rows)
    weights = None if data.weights is None else data.weights[rows]
    return RowLabels(data.codes[rows], weights, None if data.cells is None else data.cells[rows])
