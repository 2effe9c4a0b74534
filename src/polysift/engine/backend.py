"""Where a fit is done: who looks through the rows, and who adds up the shards."""

from __future__ import annotations

from typing import Protocol

from polysift.data.source import DataSource, TrainingSet
from polysift.engine import budget
from polysift.engine.budget import Execution, Shape
from polysift.engine.local import Engine, LocalEngine
from polysift.features.feature_map import FeatureMap
from polysift.features.survey import Questions, Survey, survey
from polysift.runtime.checkpoints import Checkpoint
from polysift.runtime.parallel import Pool
from polysift.runtime.progress import Monitor


class Backend(Protocol):
    """One machine, or a cluster. The model does not depend on it, to the last bit."""

    gathers: bool
    """Whether every row's label comes to this process, needed or not."""

    workers: int
    """How many tasks of a cluster run at once; 0 means the threads of this process."""

    threads: int
    """The threads of each task."""

    def survey(
        self, source: DataSource, questions: Questions, pool: Pool, monitor: Monitor
    ) -> Survey:
        """Visit every row once."""

    def fit_in(
        self, limit: int, shape: Shape, threads: int, *, keep_features: bool = False
    ) -> Execution:
        """Return how to work within ``limit`` bytes, or raise with the knob to turn."""

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
        """Return how to execute, and how many candidates to advance at once."""

    def peak_bytes(self, shape: Shape, execution: Execution) -> int:
        """Return the most that this process holds at once, beside its input."""

    def worker_bytes(self, shape: Shape, execution: Execution) -> int:
        """Return the most that a worker of a cluster holds at once; 0 without one."""

    def engine(
        self,
        data: TrainingSet,
        feature_map: FeatureMap,
        pool: Pool,
        execution: Execution,
        *,
        monitor: Monitor,
        checkpoint: Checkpoint | None = None,
        suffix: str = "",
    ) -> Engine:
        """Return an engine, whose states are saved under names with ``suffix``."""


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
        pool: Pool,
        execution: Execution,
        *,
        monitor: Monitor,
        checkpoint: Checkpoint | None = None,
        suffix: str = "",
    ) -> Engine:
        """Return an engine, whose states are saved under names with ``suffix``."""
        return LocalEngine(
            data,
            feature_map,
            pool,
            execution,
            monitor=monitor,
            checkpoint=checkpoint,
            suffix=suffix,
        )


LOCAL = LocalBackend()
