"""Candidates of one feature map, compared by the rows of each split that they did not see.

The first iterate of every candidate is a ridge solution
in closed form; all are scored in one pass, the best go on through shared sweeps, and at each rung
half of them are left behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from polysift.engine.context import FitContext
from polysift.engine.engine import FullEngine
from polysift.engine.problems import Problem
from polysift.engine.sums import GramSums
from polysift.runtime.checkpoints import digest
from polysift.runtime.types import FloatArray
from polysift.selection.candidates import (
    Candidate,
    CandidateResult,
    Outcome,
    Stopped,
    rungs_of,
)
from polysift.solvers.factor import Factor, factorise
from polysift.solvers.loop import Loop
from polysift.solvers.result import Status
from polysift.solvers.solver import Solver, SolverSettings

T = TypeVar("T")

CANDIDATES_PER_SOLVER = 3
"""Candidates of each solver that go on beyond their first iterate."""


@dataclass(frozen=True)
class _Group:
    """Candidates that advance together, with their solvers, one per split."""

    candidates: list[Candidate]
    solvers: dict[Candidate, list[Solver]]
    loop: Loop


class SuccessiveHalving:
    """Compares candidates on the rows of each split that they did not learn from.

    Parameters
    ----------
    engine : FullEngine
        The rows, cut into the fold parts of a round of splits.
    sums : GramSums
        Its Gram matrices.
    n_splits : int
        The splits of the round.
    settings : callable
        Takes a candidate, returns its solver's settings.
    score : callable
        Takes the scores (m, K) of held-out rows, returns those of the splits.
    context : FitContext
        Threads, progress, the checkpoint.
    name : str
        Tells the states of this comparison from others.
    outcome : Outcome
        Filled as results come in, so that a stop loses none.
    n_columns : int
        The label columns.
    candidates_at_once, scores_at_once : int
        How many candidates advance, and are scored, together: as many as the memory allows.
    bar : float
        Candidates whose score at a rung is below it are dropped: other feature maps do better.
    """

    def __init__(
        self,
        engine: FullEngine,
        sums: GramSums,
        n_splits: int,
        settings: Callable[[Candidate], SolverSettings],
        score: Callable[[FloatArray], FloatArray],
        context: FitContext,
        *,
        name: str,
        outcome: Outcome,
        n_columns: int,
        candidates_at_once: int,
        scores_at_once: int,
        bar: float = -np.inf,
    ) -> None:
        self._engine, self._sums, self._n_splits = engine, sums, n_splits
        self._settings, self._score, self._context = settings, score, context
        self._name, self._outcome, self._n_columns = name, outcome, n_columns
        self._candidates_at_once, self._scores_at_once = candidates_at_once, scores_at_once
        self._bar = bar

    def run(
        self, candidates: list[Candidate], *, screen: bool, last: dict[Candidate, int] | None
    ) -> None:
        """Compare candidates; ``last`` says how far each goes where that was decided before."""
        self._first_iterates(candidates)
        going_on = candidates
        if screen and last is not None:
            going_on = [candidate for candidate in candidates if last[candidate] > 1]
        elif screen:
            going_on = self._best_of_each_solver(candidates)
        going_on = [candidate for candidate in going_on if candidate.reads[-1] > 1]
        if going_on:
            self._race(sorted(going_on, key=lambda candidate: candidate.n), screen, last)

    def _first_iterates(self, candidates: list[Candidate]) -> None:
        """Score the first iterate of every candidate."""
        found = self._solve_first(candidates)
        size = self._scores_at_once
        for start in range(0, len(candidates), size):
            group = candidates[start : start + size]
            scores = self._held_out(group, [found[candidate] for candidate in group])
            for i, candidate in enumerate(group):
                values = self._score(self._of_candidate(scores, i))
                self._record(candidate, values, 1, 1.0, candidate.reads[-1] == 1)

    def _solve_first(self, candidates: list[Candidate]) -> dict[Candidate, list[FloatArray]]:
        """Return u after one iteration, for each candidate and split."""
        found: dict[Candidate, list[FloatArray]] = {candidate: [] for candidate in candidates}
        for split in range(self._n_splits):
            solved = self._factored(candidates, split, lambda factor, Aty: factor.solve(Aty))
            for candidate, (_, u) in solved.items():
                found[candidate].append(u)
        return found

    def _factored(
        self, candidates: list[Candidate], split: int, use: Callable[[Factor, FloatArray], T]
    ) -> dict[Candidate, tuple[FloatArray, T]]:
        """Return A'y and what ``use`` makes of each candidate's factor; equal ratios share it."""
        G, Aty = self._sums.over(split)
        keys = {c: (c.n, self._settings(c).ridge) for c in candidates}

        def factor(candidate: Candidate) -> T:
            n = candidate.n
            own = factorise(G[:n, :n].copy(), self._settings(candidate).ridge)
            return use(own, Aty[:n])

        distinct = {key: candidate for candidate, key in keys.items()}
        made = dict(zip(distinct, self._context.pool.map(factor, distinct.values()), strict=True))
        return {candidate: (Aty[: candidate.n], made[key]) for candidate, key in keys.items()}

    def _held_out(self, candidates: list[Candidate], u: list[list[FloatArray]]) -> FloatArray:
        """Return the scores of the held-out rows, K columns for each candidate."""
        K = self._n_columns
        n = max(candidate.n for candidate in candidates)
        stacked = []
        for split in range(self._n_splits):
            columns = np.zeros((n, K * len(candidates)))
            for i, candidate in enumerate(candidates):
                columns[: candidate.n, i * K : (i + 1) * K] = u[i][split]
            stacked.append(columns)
        problems = [Problem(candidate.n) for candidate in candidates]
        return self._engine.scores(problems, stacked)

    def _of_candidate(self, scores: FloatArray, i: int) -> FloatArray:
        K = self._n_columns
        return scores[:, i * K : (i + 1) * K]

    def _mean(self, candidate: Candidate) -> float:
        """Return a candidate's mean score as last seen."""
        results = [self._outcome.results[candidate, read] for read in candidate.reads]
        return float(np.nanmean(max(results, key=lambda s: s.iterations).scores))

    def _best_of_each_solver(self, candidates: list[Candidate]) -> list[Candidate]:
        """Return the best few candidates of each solver, no two of them with the same n.

        With n given, rho hardly changes where the iterations lead, so the first iterate decides it.
        """
        chosen: dict[tuple[str, int], Candidate] = {}
        for candidate in self._ranked(candidates):
            if sum(solver == candidate.solver for solver, _ in chosen) < CANDIDATES_PER_SOLVER:
                chosen.setdefault((candidate.solver, candidate.n), candidate)
        return list(chosen.values())

    def _ranked(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        return sorted(candidates, key=lambda candidate: (-self._mean(candidate), candidate.n))

    def _race(
        self, candidates: list[Candidate], screen: bool, last: dict[Candidate, int] | None
    ) -> None:
        """Run candidates rung by rung, in one batch.

        As long as they are too many for the memory they advance in groups, which begin anew at each
        rung: so the limit decides how long it takes, not who is left behind.
        """
        racing, group, done = candidates, None, 0
        for rung in rungs_of(candidates):
            if group is None and len(racing) <= self._candidates_at_once:
                group = self._new_group(racing)
                racing, done = self._resumed(group)
            if rung <= done or not racing:
                continue
            racing = self._run_to(rung, racing, group)
            left = self._left(racing, rung, last) if screen else []
            racing = [candidate for candidate in racing if candidate not in left]
            if group is not None:
                group.loop.drop([s for candidate in left for s in group.solvers[candidate]])
                group.loop.note = self._noted(group.candidates, racing, rung)
                group.loop.save()

    def _left(
        self, candidates: list[Candidate], rung: int, last: dict[Candidate, int] | None
    ) -> list[Candidate]:
        """Return the candidates that go no further, as was decided before, or is now."""
        if last is None:
            return self._behind(candidates)
        return [candidate for candidate in candidates if last[candidate] <= rung]

    def _run_to(
        self, rung: int, candidates: list[Candidate], group: _Group | None
    ) -> list[Candidate]:
        """Advance candidates to a rung and score them; return those that have not ended."""
        if group is not None:
            self._advance(group, rung)
            return self._read_off(candidates, group.solvers, rung)
        going_on, size = [], self._candidates_at_once
        for first in range(0, len(candidates), size):
            part = self._new_group(candidates[first : first + size], f"-{rung}")
            self._advance(part, rung)
            part.loop.save()
            going_on += self._read_off(part.candidates, part.solvers, rung)
        return going_on

    def _new_group(self, candidates: list[Candidate], suffix: str = "") -> _Group:
        solvers = self._new_solvers(candidates)
        key = digest(np.frombuffer(repr(candidates).encode(), np.uint8))[:12]
        loop = Loop(
            self._engine,
            [solver for candidate in candidates for solver in solvers[candidate]],
            monitor=self._context.monitor,
            checkpoint=self._context.checkpoint,
            name=f"solver{self._name}-{key}{suffix}",
            pool=self._context.pool,
            report=False,
        )
        return _Group(candidates, solvers, loop)

    def _advance(self, group: _Group, rung: int) -> None:
        group.loop.run(until=rung)
        for solver in group.loop.solvers:
            if solver.status in (Status.TIME_LIMIT, Status.INTERRUPTED):
                raise Stopped(solver.status)

    def _noted(
        self, candidates: list[Candidate], racing: list[Candidate], rung: int
    ) -> dict[str, Any]:
        """Return what a checkpoint must know of the rungs that are behind."""
        results = [
            [i, read, list(result.scores), result.iterations, result.finished]
            for i, candidate in enumerate(candidates)
            for read in candidate.reads
            for result in [self._outcome.results[candidate, read]]
        ]
        last = [self._outcome.last[candidate] for candidate in candidates]
        places = [candidates.index(candidate) for candidate in racing]
        return {"rung": rung, "racing": places, "results": results, "last": last}

    def _resumed(self, group: _Group) -> tuple[list[Candidate], int]:
        """Return the candidates that race on and the last rung done, as a checkpoint has them."""
        note, candidates = group.loop.note, group.candidates
        if not note:
            return list(candidates), 0
        for i, read, scores, iterations, finished in note["results"]:
            result = CandidateResult(np.array(scores), iterations, finished)
            self._outcome.results[candidates[i], read] = result
        for candidate, last in zip(candidates, note["last"], strict=True):
            self._outcome.last[candidate] = last
        return [candidates[i] for i in note["racing"]], note["rung"]

    def _new_solvers(self, candidates: list[Candidate]) -> dict[Candidate, list[Solver]]:
        solvers: dict[Candidate, list[Solver]] = {candidate: [] for candidate in candidates}
        for split in range(self._n_splits):
            m = self._engine.total_weight(split)
            factored = self._factored(candidates, split, lambda factor, _: factor)
            for candidate, (Aty, factor) in factored.items():
                settings = self._settings(candidate)
                solvers[candidate].append(settings.solver(factor, Aty.copy(), m, split))
        return solvers

    def _read_off(
        self, candidates: list[Candidate], solvers: dict[Candidate, list[Solver]], rung: int
    ) -> list[Candidate]:
        """Score the candidates as they stand at a rung; return those that have not ended."""
        size, going_on = self._scores_at_once, []
        for start in range(0, len(candidates), size):
            group = candidates[start : start + size]
            scores = self._held_out(
                group, [[s.u for s in solvers[candidate]] for candidate in group]
            )
            for i, candidate in enumerate(group):
                values = self._score(self._of_candidate(scores, i))
                ended = all(s.status is not None for s in solvers[candidate])
                iterations = float(np.mean([s.iterates for s in solvers[candidate]]))
                self._record(candidate, values, rung, iterations, ended)
                if not ended:
                    going_on.append(candidate)
        return going_on

    def _record(
        self, candidate: Candidate, values: FloatArray, rung: int, iterations: float, ended: bool
    ) -> None:
        """Note the scores of a candidate at a rung, for all its readings that are not done yet."""
        results = self._outcome.results
        for read in candidate.reads:
            before = results.get((candidate, read))
            if before is None or not before.finished:
                results[candidate, read] = CandidateResult(
                    values, iterations, ended or read == rung
                )
        self._outcome.last[candidate] = candidate.reads[-1] if ended else rung

    def _behind(self, candidates: list[Candidate]) -> list[Candidate]:
        """Return the worse half of the candidates that could go on, and those below the bar."""
        ranked = self._ranked(candidates)
        half = -(-len(ranked) // 2)
        return [
            candidate
            for rank, candidate in enumerate(ranked)
            if rank >= half or self._mean(candidate) < self._bar
        ]
