"""The Gram matrix of a sample of rows, scaled up: an estimate that serves as a preconditioner.

Rows are drawn twice. The first sample is even, and its Gram matrix tells, roughly, the leverage of
each row: ``omega a'(G + rho I)^-1 a``, how much of some direction of the features the row has to
itself. The second sample draws rows by their leverage. At high degrees a few rows have most of the
leverage; an even sample misses them, and its matrix is far too small in their directions. It is far
too large in the directions of those few that it did catch, which then seem to have little leverage
and may be missed the second time: so the matrix is that of both samples together. A row counts as
often as the inverse of its chance to be in them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from polysift.engine.local import Engine
from polysift.engine.panels import add_gram, feature_blocks, panel_rows
from polysift.engine.sampling import FIRST, SKETCH, Draw, Picked, Sample, leverages, slope_for
from polysift.engine.sums import GramSums
from polysift.runtime.checkpoints import Checkpoint
from polysift.runtime.parallel import Pool, Workspace
from polysift.runtime.progress import Monitor
from polysift.runtime.types import FloatArray
from polysift.solvers.admm import Settings, factorise

HELD_OUT = FIRST + 1
"""Of the first sample every fifth row is held out, to judge leverages by."""


@dataclass
class SampledSums(GramSums):
    """Estimates of G, in its upper triangle, with A'y and the trace of G over all rows.

    Attributes
    ----------
    trace : ndarray of shape (cells,)
        The trace of A' Omega A.
    """

    trace: FloatArray

    def trace_over(self, without: int | None = None) -> float:
        """Return the trace of the Gram matrix that ``over`` estimates."""
        return float(sum(x for cell, x in enumerate(self.trace) if cell != without))


def sampled_sums(
    engine: Engine,
    sample: Sample,
    settings: Settings,
    *,
    pool: Pool,
    monitor: Monitor | None = None,
    checkpoint: Checkpoint | None = None,
) -> SampledSums:
    """Draw both samples and return the sums of the second one.

    Parameters
    ----------
    engine : Engine
        The data.
    sample : Sample
        The sizes.
    settings : Settings
        For rho.
    pool : Pool
        Threads for the Gram matrices.
    monitor : Monitor, optional
        Told of them.
    checkpoint : Checkpoint, optional
        Where the sums are saved once they are there, as the state "gram", and found again.
    """
    saved = None if checkpoint is None else checkpoint.load("gram")
    if saved is not None:
        return SampledSums(**saved[0])
    monitor = monitor or Monitor()
    draw = _by_leverage(engine, sample, settings, pool, monitor)
    picked = engine.pick(draw)
    sums = SampledSums(_gram(engine, picked, pool, monitor), picked.Aty, picked.trace)
    if checkpoint is not None:
        checkpoint.save("gram", vars(sums), {})
    return sums


def _by_leverage(
    engine: Engine, sample: Sample, settings: Settings, pool: Pool, monitor: Monitor
) -> Draw:
    """Return the draw of the second sample, by a first one."""
    first, chance = _first_sample(engine, sample)
    picked, held = first.split(HELD_OUT)
    G = _gram(engine, picked.in_one_cell(), pool, monitor)[0]
    G *= HELD_OUT / FIRST
    factor = factorise(G, settings).cholesky[0]
    # With G + rho I = R'R and z of entries N(0, 1), |a'R^-1 z|^2 is a'(G + rho I)^-1 a on average.
    directions = np.random.default_rng(sample.seed).normal(size=(len(G), SKETCH)) / np.sqrt(SKETCH)
    sketch = scipy.linalg.solve_triangular(factor, directions, check_finite=False)
    parts = feature_blocks(engine.features, held.X, len(G), panel_rows(len(G)), pool)
    weights = np.concatenate(held.counts) * chance
    found = [leverages(A, sketch, weights[slice(*rows)]) for rows, A in parts]
    rows_that_count = first.n_rows / chance
    slope = slope_for(min(sample.second / rows_that_count, 1.0), np.concatenate(found))
    return Draw(sample.seed, chance, slope, sketch)


def _first_sample(engine: Engine, sample: Sample) -> tuple[Picked, float]:
    """Return an even sample and its chance; it is drawn anew if too many rows have no weight."""
    wanted = sample.first * HELD_OUT / FIRST
    share = min(wanted / sample.rows, 1.0)
    while True:
        picked = engine.pick(Draw(sample.seed, share))
        if share == 1.0 or picked.n_rows > wanted / 2:
            return picked, share
        share = min(1.0, share * wanted / max(picked.n_rows, 1))


def _gram(engine: Engine, picked: Picked, pool: Pool, monitor: Monitor) -> FloatArray:
    """Return the Gram matrix of picked rows, counted as often as they stand for, for each cell."""
    n = picked.Aty.shape[1]
    G, work = np.zeros((len(picked.trace), n, n)), Workspace()

    def blocks() -> Iterator[tuple[int, None]]:
        for cell in range(len(G)):
            own = [i for i, c in enumerate(picked.cells) if c == cell]
            parts = [picked.X[i] for i in own]
            counts = np.concatenate([np.empty(0), *(picked.counts[i] for i in own)])
            for rows, A in feature_blocks(engine.features, parts, n, panel_rows(n), pool):
                add_gram(G[cell], A, counts[slice(*rows)], pool, work)
                yield len(A), None

    for _ in monitor.watch("Gram matrix", picked.n_rows, blocks()):
        pass
    return G
