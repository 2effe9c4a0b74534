"""The loop of Algorithm 1, for one solver or for many that share the passes over the rows.

A plain fit is one solver; the folds of a calibration and the candidates of a search are many, whose
problems one sweep advances together. Newton's method goes through the same lines: its step leads to
the next point, the sweep returns loss and gradient there, and the update chooses the next step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from polysift.engine.engine import SamplingEngine
from polysift.runtime import clock
from polysift.runtime.arrays import is_small, require
from polysift.runtime.checkpoints import Checkpoint
from polysift.runtime.parallel import Pool
from polysift.runtime.progress import Monitor, OutOfTime
from polysift.runtime.types import FloatArray
from polysift.solvers.result import Status, checked_history
from polysift.solvers.solver import Solver


class IterationCallback(Protocol):
    """Callback before and after each iteration."""

    def begin(self) -> None:
        """Begin an iteration."""

    def end(self, u: FloatArray) -> bool:
        """End an iteration with its coefficients; return True to stop."""


class Loop:
    """Solvers that iterate together, and are saved and resumed together.

    Parameters
    ----------
    engine : SamplingEngine
        The passes over the rows; products are needed only with a sampled Gram matrix.
    solvers : sequence of Solver
        The solvers, ordered by their number of centers, so that problems share matrix products. The
        first is the one that is reported.
    monitor : Monitor, optional
        Receives each iteration; may raise ``OutOfTime``, which ends all solvers with their latest
        u.
    checkpoint : Checkpoint, optional
        Where the solvers are saved, as the state ``name``, and resumed from.
    pool : Pool, optional
        The threads for the steps of many solvers.
    report : bool
        Whether the monitor receives each iteration.
    since : float, optional
        The time, by ``clock.now``, from which the history counts seconds; now by default.

    Attributes
    ----------
    solvers : sequence of Solver
        The solvers.
    name : str
        The name of their state in the checkpoint.
    note : dict
        Plain values of the caller that are saved and restored with the solvers.
    """

    def __init__(
        self,
        engine: SamplingEngine,
        solvers: Sequence[Solver],
        *,
        monitor: Monitor | None = None,
        checkpoint: Checkpoint | None = None,
        name: str = "solver",
        pool: Pool | None = None,
        report: bool = True,
        since: float | None = None,
    ) -> None:
        self._engine, self.solvers = engine, solvers
        self._monitor = monitor or Monitor()
        self._checkpoint, self.name = checkpoint, name
        self._pool = pool or Pool(1)
        self._report = report
        self.note: dict[str, Any] = {}
        self._active = list(range(len(solvers)))
        if not self._restore():
            engine.begin(len(solvers))
        self._before = max((s.rows[-1]["seconds"] for s in solvers if s.rows), default=0.0)
        self._began = clock.now() if since is None else since

    def run(self, until: int | None = None, callback: IterationCallback | None = None) -> None:
        """Iterate until every solver has ended, or has had ``until`` iterations: Algorithm 1.

        ``callback`` is called at the iterations of the first solver, and may end all solvers.
        """
        lead = self.solvers[0]
        try:
            while (solvers := self._release_ended()) and (
                until is None or solvers[0].iterates < until
            ):
                followed = callback if lead.status is None else None
                if followed is not None:
                    followed.begin()

                # Line 3: u <- u + (G + rho I)^-1 r, with r = A'(v - w / beta - A u).
                self._multiply_directions(solvers)  # only with a sampled G
                self._each(solvers, lambda solver, _: solver.step())
                solvers = self._release_ended()
                if solvers:
                    # Lines 4 and 5, in one pass over the rows: v <- prox(y, A u + w / beta) and
                    # w <- w + beta (A u - v), in engine/row_updates.py; the pass returns the new r.
                    swept = self._engine.sweep([s.problem for s in solvers], _stacked(solvers))
                    # Line 6: the stopping rule.
                    self._update(solvers, swept)

                if followed is not None and followed.end(lead.coefficients()):
                    self._end(Status.CALLBACK)
                self._release_ended()
                if self._checkpoint is not None and (not self._active or self._checkpoint.due()):
                    self.save()
                if self._active:
                    self._monitor.check()
        except (OutOfTime, KeyboardInterrupt) as stop:
            if all(solver.iterates == 0 for solver in self.solvers):
                raise
            late = isinstance(stop, OutOfTime)
            self._end(Status.TIME_LIMIT if late else Status.INTERRUPTED)
        self._complete_histories()

    def _multiply_directions(self, solvers: list[Solver]) -> None:
        """Multiply the directions of all solvers by G, in shared passes."""
        while True:
            found = self._each(solvers, lambda solver, _: solver.directions())
            asking = [(s, P) for s, P in zip(solvers, found, strict=True) if P is not None]
            if not asking:
                return
            P = np.hstack([P for _, P in asking])
            GP = np.hsplit(self._engine.product([s.problem for s, _ in asking], P), len(asking))
            self._each(
                [s for s, _ in asking], lambda solver, i, GP=GP: solver.absorb_product(GP[i])
            )

    def _update(self, solvers: list[Solver], swept: Any) -> None:
        """Update solvers by the sums of a sweep, and report the first of them."""
        seconds = self._seconds()
        self._each(
            solvers, lambda solver, i: solver.update(swept.of_problem(i, solver.problem.n), seconds)
        )
        for i, solver in enumerate(solvers):
            solver.finish(self._engine, i)
        if self._report:
            self._monitor.iteration(solvers[0].iterates, solvers[0].rows[-1])

    def _each(self, solvers: list[Solver], do: Any) -> list[Any]:
        """Return ``do(solver, i)`` for each solver, computed by threads."""
        if len(solvers) == 1:  # a plain fit, for which threads would only have to be started
            return [do(solvers[0], 0)]
        return list(self._pool.map(lambda item: do(item[1], item[0]), enumerate(solvers)))

    def _end(self, status: Status) -> None:
        for i in self._active:
            self.solvers[i].status = self.solvers[i].status or status

    def drop(self, solvers: Sequence[Solver]) -> None:
        """Stop iterating some solvers."""
        gone = {id(solver) for solver in solvers}
        self._keep([i for i in self._active if id(self.solvers[i]) not in gone])

    def _release_ended(self) -> list[Solver]:
        """Free the row states of solvers that have ended; return the others."""
        self._keep([i for i in self._active if self.solvers[i].status is None])
        return [self.solvers[i] for i in self._active]

    def _keep(self, active: list[int]) -> None:
        if active != self._active:
            self._engine.keep([self._active.index(i) for i in active])
            self._active = active

    def save(self) -> None:
        """Save all solvers."""
        if self._checkpoint is None:
            return
        self._complete_histories()
        arrays = {"state": self._engine.state}
        own: list[dict[str, Any]] = []
        for i, solver in enumerate(self.solvers):
            found, plain = solver.saved()
            arrays |= {f"{name}-{i}": array for name, array in found.items()}
            own.append(plain)
        words = [None if s.status is None else s.status.name for s in self.solvers]
        rows = [solver.rows for solver in self.solvers]
        values = {"alive": self._active, "rows": rows, "status": words, "note": self.note}
        values["own"] = own
        if self._checkpoint.save(self.name, arrays, values):
            self._engine.saved(self._checkpoint, self.name)

    def _restore(self) -> bool:
        def state(values: dict[str, Any]) -> dict[str, Any]:
            alive, count = values["alive"], len(self.solvers)
            known = isinstance(alive, list) and all(type(i) is int for i in alive)
            known = known and set(alive) <= set(range(count))
            require(known and alive == sorted(set(alive)), "alive must be numbers of solvers")
            self._engine.begin(len(alive))
            return {"state": self._engine.state}

        if self._checkpoint is None:
            return False
        with self._checkpoint.using(self.name):
            saved = self._checkpoint.load(self.name, state)
            if saved is None:
                return False
            self._resume(*saved)
        self._engine.saved(self._checkpoint, self.name)
        return True

    def _resume(self, arrays: dict[str, FloatArray], values: dict[str, Any]) -> None:
        """Resume from what ``save`` has saved."""
        require(isinstance(values["note"], dict), "note must be a dict")
        require("state" not in arrays or is_small(arrays["state"]), "the state is too large")
        self._active, self.note = values["alive"], values["note"]
        for i, solver in enumerate(self.solvers):
            own = {
                key.removesuffix(f"-{i}"): x for key, x in arrays.items() if key.endswith(f"-{i}")
            }
            solver.restore(own, values["own"][i])
            solver.rows, word = checked_history(values["rows"][i]), values["status"][i]
            solver.iterates = len(solver.rows)
            solver.status = None if word is None else Status[word]
            dropped = bool(self.note)  # by a search, which has noted its results
            require(word is not None or i in self._active or dropped, "a solver must be alive")
            require(word is None or bool(solver.rows), "a solver that has ended must have run")

    def _complete_histories(self) -> None:
        for solver in self.solvers:
            solver.complete_history(self._seconds())

    def _seconds(self) -> float:
        return self._before + clock.now() - self._began


def _stacked(solvers: Sequence[Solver]) -> FloatArray:
    """Return the coefficients of solvers side by side, (n, K per solver)."""
    K = solvers[0].u.shape[1]
    u = np.zeros((max(s.problem.n for s in solvers), K * len(solvers)))
    for i, solver in enumerate(solvers):
        u[: solver.problem.n, i * K : (i + 1) * K] = solver.u
    return u
