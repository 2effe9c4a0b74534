"""The context of a fit: its backend, execution, threads, progress monitor and checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from polysift.data.source import TrainingSet
from polysift.engine.backend import LOCAL, Backend
from polysift.engine.budget import SERIAL, Execution
from polysift.engine.engine import FullEngine
from polysift.features.feature_map import FeatureMap
from polysift.runtime.checkpoints import Checkpoint
from polysift.runtime.parallel import Pool
from polysift.runtime.progress import Monitor


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
    backend: Backend = LOCAL
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
        return self.backend.engine(
            data,
            feature_map,
            self.pool,
            self.execution,
            monitor=self.monitor,
            checkpoint=self.checkpoint,
            suffix=suffix,
        )
