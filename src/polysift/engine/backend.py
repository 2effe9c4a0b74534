"""Backends: where the passes over the rows are executed, on this machine or on a cluster.

A backend surveys the rows, says how a fit is executed within a memory limit, makes the engine that
the solver sees, and runs tasks that write files. To add one, write a class with the members of
``Backend`` and an object whose ``open()`` returns it (``BackendFactory``); estimators take that
object as ``engine``. ``LocalBackend`` is the shortest example. A backend must not change the model:
sums over the shards of ``DataSource.shards()`` are always added in the tree of
``runtime.parallel.TreeSum``.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Protocol

from polysift.data.source import DataSource
from polysift.data.training_set import TrainingSet
from polysift.engine import budget
from polysift.engine.budget import SERIAL, Execution, Shape
from polysift.engine.engine import FullEngine
from polysift.engine.local import LocalEngine
from polysift.features.feature_map import FeatureMap
from polysift.features.survey import Questions, Survey, survey
from polysift.runtime.checkpoints import Checkpoint
from polysift.runtime.parallel import Pool
from polysift.runtime.progress import Monitor


class ShardTask(Protocol):
    """A task over shards whose results are written elsewhere, as to files.

    It can be pickled, and may be run again on the same shards, even at the same time: a backend
    does so when a worker seems to be lost.
    """

    def __call__(self, source: DataSource, first_shard: int, threads: int) -> Generator[int]:
        """Process the shards of a source; yield the number of rows of each, in order.

        The source holds all rows or those of neighbouring shards (``DataSource.cut``);
        ``first_shard`` is the number of its first shard among those of all rows. If the rows or the
        files are invalid, it raises ValueError or OSError.
        """


class Backend(Protocol):
    """Executes the passes of a fit, a search or a prediction over the rows.

    An object serves one of these (``BackendFactory.open``), and may cache what it has sent or
    computed until the end. Its methods are called by one thread.
    """

    @property
    def gathers(self) -> bool:
        """Whether the labels of all rows are gathered in this process.

        If not, ``TrainingSet.codes`` is empty unless folds need it, and the engine finds class
        numbers by ``TrainingSet.encoding``.
        """

    @property
    def workers(self) -> int:
        """The number of tasks of a cluster that run at once; 0 means threads of this process."""

    @property
    def threads(self) -> int:
        """The threads of each task, for the forecast of a fit's time."""

    def survey(
        self, source: DataSource, questions: Questions, pool: Pool, monitor: Monitor
    ) -> Survey:
        """Visit every row once and answer the questions, in the phase "survey" of the monitor.

        The result is that of ``features.survey.survey``: the answers for each shard
        (``survey_shards``), merged in the tree; errors about rows are the same, too. ``pool`` has
        the threads of this process.
        """

    def fit_in(
        self, limit: int, shape: Shape, threads: int, *, keep_features: bool = False
    ) -> Execution:
        """Return the fastest execution of a fit of this shape within ``limit`` bytes.

        The limit holds for this process, and for each worker if there are any; ``threads`` are
        those of this process. Raise MemoryError, naming the parameter to change, if nothing fits.
        ``keep_features`` says that keeping features in memory saves time.
        """

    def fit_problems(
        self,
        limit: int,
        shape: Shape,
        per_candidate: int,
        wanted: int,
        threads: int,
        *,
        keep_features: bool = False,
    ) -> tuple[Execution, int]:
        """Return the execution of a search, and how many candidates it advances at once.

        Each of them has ``per_candidate`` problems; ``wanted`` are advanced at most. The other
        parameters are as in ``fit_in``.
        """

    def peak_bytes(self, shape: Shape, execution: Execution) -> int:
        """Return the most bytes that this process holds at once during a fit, beside its input."""

    def worker_bytes(self, shape: Shape, execution: Execution) -> int:
        """Return the most bytes that a worker holds at once during a fit; 0 without workers."""

    def engine(
        self,
        data: TrainingSet,
        feature_map: FeatureMap,
        context: FitContext,
        suffix: str = "",
    ) -> FullEngine:
        """Return an engine over these rows and features, for one fit or one round of a search.

        The context's execution comes from ``fit_in`` or ``fit_problems``. With a checkpoint, the
        engine saves the partial Gram matrix (``GrowingGram``), under a name with ``suffix``.
        """

    def process_shards(
        self, phase: str, source: DataSource, task: ShardTask, threads: int, monitor: Monitor
    ) -> None:
        """Run a task on all shards of a source, each at least once; predictions go through here.

        The rows that are done are reported to the monitor in this phase; ``threads`` are those of
        this process. An error of the task is raised here, the first in row order if there are
        several; no task is submitted after that.
        """


def last_words(backend: Backend, advice: str) -> AbstractContextManager[None]:
    """Have ``advice`` said if this process ends inside without an error.

    A backend that can end the process has a method of this name; others need none.
    """
    of_backend = getattr(backend, "last_words", None)
    return nullcontext() if of_backend is None else of_backend(advice)


@dataclass(frozen=True)
class FitContext:
    """What all parts of a fit share; passed whole to functions that open or use an engine.

    Attributes
    ----------
    monitor : Monitor
        Receives the progress, and checks the time limit.
    backend : Backend
        Executes the passes over the rows.
    checkpoint : Checkpoint or None
        Where states are saved.
    execution : Execution
        How the passes are executed.
    pool : Pool
        The threads of this process.
    """

    monitor: Monitor
    backend: Backend
    checkpoint: Checkpoint | None = None
    execution: Execution = SERIAL
    pool: Pool = Pool(1)  # noqa: RUF009 - it starts no thread

    @contextmanager
    def executing(self, execution: Execution) -> Iterator[FitContext]:
        """Yield this context with another execution, whose threads end with the block."""
        with Pool(execution.threads, execution.in_flight) as pool:
            yield replace(self, execution=execution, pool=pool)

    def engine(self, data: TrainingSet, feature_map: FeatureMap, suffix: str = "") -> FullEngine:
        """Return an engine; states in the checkpoint have names that end in ``suffix``."""
        return self.backend.engine(data, feature_map, self, suffix)


class BackendFactory(Protocol):
    """An object that estimators take as ``engine``: settings, from which it opens a backend.

    It should be cheap to make, to copy and to compare, since scikit-learn clones parameters, and
    connect to nothing before ``open``.
    """

    def open(self) -> Backend:
        """Return a backend; called once for each fit, search, forecast and prediction to a folder.

        It connects to what the backend needs, or raises an error that names the remedy.
        """


class LocalBackend:
    """The threads of this process."""

    gathers = True
    workers = 0
    threads = 1

    survey = staticmethod(survey)
    fit_in = staticmethod(budget.fit_in)
    fit_problems = staticmethod(budget.fit_problems)
    peak_bytes = staticmethod(budget.peak_bytes)

    def worker_bytes(self, shape: Shape, execution: Execution) -> int:
        """Return 0: there are no workers."""
        return 0

    def engine(
        self,
        data: TrainingSet,
        feature_map: FeatureMap,
        context: FitContext,
        suffix: str = "",
    ) -> FullEngine:
        """Return an engine that uses the threads of the pool."""
        return LocalEngine(
            data,
            feature_map,
            context.pool,
            context.execution,
            monitor=context.monitor,
            checkpoint=context.checkpoint,
            suffix=suffix,
        )

    def process_shards(
        self, phase: str, source: DataSource, task: ShardTask, threads: int, monitor: Monitor
    ) -> None:
        """Run a task on all shards of a source, as one task over all rows."""
        with closing(task(source, 0, threads)) as done:
            for _ in monitor.watch(phase, source.n_rows, ((rows, None) for rows in done)):
                pass


LOCAL = LocalBackend()
