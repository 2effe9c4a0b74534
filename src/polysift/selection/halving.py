"""Successive halving of the candidates of one feature map, scored on held-out rows.

The first iterate of every candidate is a ridge solution in closed form; one pass scores all of
them. The best candidates of each solver continue through shared sweeps, and at each rung the worse
half of them is eliminated. Where rho is left to the data, it is chosen for all splits alike, as a
plain fit does (``solvers.factor.chosen_ridge``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, TypeVar

import numpy as np

from polysift.engine.backend import FitContext
from polysift.engine.engine import FullEngine
from polysift.engine.problems import Problem
from polysift.engine.sums import GramSums
from polysift.runtime.arrays import require
from polysift.runtime.checkpoints import digest
from polysift.runtime.types import FloatArray
from polysift.selection.candidates import (
    Candidate,
    CandidateResult,
    Outcome,
    Stopped,
    rungs_of,
)
from polysift.solvers.factor import Factor, Ridge, chosen_ridge, factorise
from polysift.solvers.gcv import RidgeChoice
from polysift.solvers.loop import Loop
from polysift.solvers.result import Status
from polysift.solvers.solver import Solver, SolverSettings

T = TypeVar("T")

CANDIDATES_PER_SOLVER = 3
"""Candidates of each solver that continue beyond their first iterate."""


@dataclass(frozen=True)
class _Group:
    """Candidates that advance together, with their solvers, one per split."""

    candidates: list[Candidate]
    solvers: dict[Candidate, list[Solver]]
    loop: Loop


class SuccessiveHalving:
    """Compares the candidates of one feature map on the test parts of one round of splits.

    Parameters
    ----------
    engine : FullEngine
        The passes over the rows, in the fold parts of the round.
    sums : GramSums
        The Gram matrices of the fold parts.
    n_splits : int
        The number of splits.
    settings : callable
        Takes a candidate, returns its solver's settings.
    score : callable
        Takes the decision scores (m, K) of held-out rows, returns the scores of each split, of
        shape (n_splits, n_metrics).
    context : FitContext
        Threads, progress, the checkpoint.
    name : str
        Distinguishes the states of several comparisons in one checkpoint.
    outcome : Outcome
        Receives the results as they are computed, so that none is lost when the search is ended.
    n_columns : int
        The number of label columns.
    candidates_at_once, scores_at_once : int
        The candidates that advance, and that are scored, together, as the memory allows.
    bar : float
        Candidates whose mean score at a rung is below it are eliminated.

    Attributes
    ----------
    chosen : dict of int to (Ridge, RidgeChoice or None)
        The rho that was chosen for each number of centers, where it was.
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
        self.chosen: dict[int, tuple[Ridge, RidgeChoice | None]] = {}

    def run(
        self, candidates: list[Candidate], *, screen: bool, last: dict[Candidate, int] | None
    ) -> None:
        """Compare candidates.

        Parameters
        ----------
        candidates : list of Candidate
            The candidates.
        screen : bool
            Whether candidates are eliminated early.
        last : dict of Candidate to int, or None
            The iteration at which each candidate was eliminated in the first round, to do the same
            in this one; None in the first round.
        """
        longer = [candidate for candidate in candidates if candidate.reads[-1] > 1]
        remaining = longer
        if screen and self._too_many(longer):
            self._first_iterates(candidates)
            if last is None:
                longer = self._best_of_each_solver(candidates)
            else:
                longer = [candidate for candidate in candidates if last[candidate] > 1]
            remaining = [candidate for candidate in longer if candidate.reads[-1] > 1]
        elif len(longer) < len(candidates):
            self._first_iterates([one for one in candidates if one not in longer])
        remaining.sort(key=lambda candidate: (candidate.family, candidate.n))
        for _, family in groupby(remaining, key=lambda candidate: candidate.family):
            self._run_rungs(list(family), screen, last)

    def _too_many(self, candidates: list[Candidate]) -> bool:
        """Return whether not all candidates can continue, so that first iterates decide."""
        kinds = [(candidate.solver, candidate.loss) for candidate in candidates]
        many = any(kinds.count(kind) > CANDIDATES_PER_SOLVER for kind in kinds)
        return many or len({self._key(candidate) for candidate in candidates}) < len(candidates)

    def _key(self, candidate: Candidate) -> tuple[Any, ...]:
        """Return what candidates that continue must differ in.

        Where there is no penalty, rho hardly changes the limit of the iterations for a given n: so
        the first iterate selects it.
        """
        rho = self._ridge(candidate)[0] if self._settings(candidate).penalised else None
        return candidate.solver, candidate.loss, candidate.n, rho

    def relative_rho(self, candidate: Candidate) -> float | None:
        """Return rho relative to trace(G) / n, where it is a multiple of the chosen one."""
        return None if candidate.multiple is None else self._ridge(candidate)[0].relative_rho

    def _ridge(self, candidate: Candidate) -> tuple[Ridge, RidgeChoice | None]:
        """Return the ridge of a candidate for all splits, and how it was chosen, if it was."""
        if candidate.multiple is None:
            return self._settings(candidate).ridge, None
        n = candidate.n
        if n not in self.chosen:
            leading = GramSums(self._sums.G[:, :n, :n], self._sums.Aty[:, :n])
            automatic, weight = Ridge(automatic=True), self._engine.total_weight()
            self.chosen[n] = chosen_ridge(leading, automatic, weight)
        ridge, choice = self.chosen[n]
        if candidate.multiple == 1.0 or ridge.relative_rho is None:
            return ridge, choice
        return Ridge(relative_rho=candidate.multiple * ridge.relative_rho), None

    def _first_iterates(self, candidates: list[Candidate]) -> None:
        """Score the first iterate of every candidate."""
        first = self._solve_first(candidates)
        size = self._scores_at_once
        for start in range(0, len(candidates), size):
            group = candidates[start : start + size]
            scores = self._held_out(group, [first[candidate] for candidate in group])
            for i, candidate in enumerate(group):
                values = self._score(self._of_candidate(scores, i))
                self._record(candidate, values, 1, 1.0, candidate.reads[-1] == 1)

    def _solve_first(self, candidates: list[Candidate]) -> dict[Candidate, list[FloatArray]]:
        """Return u after one iteration, for each candidate a list over the splits."""
        found: dict[Candidate, list[FloatArray]] = {candidate: [] for candidate in candidates}
        for split in range(self._n_splits):
            solved = self._factored(candidates, split, lambda factor, Aty: factor.solve(Aty))
            for candidate, (_, u) in solved.items():
                found[candidate].append(u)
        return found

    def _factored(
        self, candidates: list[Candidate], split: int, use: Callable[[Factor, FloatArray], T]
    ) -> dict[Candidate, tuple[FloatArray, T]]:
        """Return A'y and ``use(factor, A'y)`` of each candidate; equal ridges share a factor."""
        G, Aty = self._sums.over(split)
        keys = {c: (c.n, *self._ridge(c)) for c in candidates}

        def factor(candidate: Candidate) -> T:
            n, ridge, choice = keys[candidate]
            own = factorise(G[:n, :n].copy(), ridge)
            return use(own if choice is None else replace(own, choice=choice), Aty[:n])

        distinct = {key: candidate for candidate, key in keys.items()}
        made = dict(zip(distinct, self._context.pool.map(factor, distinct.values()), strict=True))
        return {candidate: (Aty[: candidate.n], made[key]) for candidate, key in keys.items()}

    def _held_out(self, candidates: list[Candidate], u: list[list[FloatArray]]) -> FloatArray:
        """Return the decision scores of the held-out rows, K columns for each candidate."""
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
        """Return a candidate's last mean score."""
        results = [self._outcome.results[candidate, read] for read in candidate.reads]
        last = max(results, key=lambda result: result.iterations)
        return float(np.nanmean(last.scores[:, 0]))

    def _best_of_each_solver(self, candidates: list[Candidate]) -> list[Candidate]:
        """Return the best ``CANDIDATES_PER_SOLVER`` candidates of each solver and loss."""
        chosen: dict[Any, Candidate] = {}
        for candidate in self._ranked(candidates):
            key = self._key(candidate)
            if sum(other[:2] == key[:2] for other in chosen) < CANDIDATES_PER_SOLVER:
                chosen.setdefault(key, candidate)
        return list(chosen.values())

    def _ranked(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        return sorted(candidates, key=lambda candidate: (-self._mean(candidate), candidate.n))

    def _run_rungs(
        self, candidates: list[Candidate], screen: bool, last: dict[Candidate, int] | None
    ) -> None:
        """Run candidates rung by rung, all in the same sweeps.

        As long as the memory does not suffice for all they advance in groups, which start again at
        each rung: so the memory limit changes the time, but not which candidates are eliminated.
        """
        remaining, group, done = candidates, None, 0
        for rung in rungs_of(candidates):
            if group is None and len(remaining) <= self._candidates_at_once:
                group = self._new_group(remaining)
                remaining, done = self._resumed(group)
            if rung <= done or not remaining:
                continue
            remaining = self._run_to(rung, remaining, group)
            eliminated = self._eliminated(remaining, rung, last) if screen else []
            remaining = [candidate for candidate in remaining if candidate not in eliminated]
            if group is not None:
                group.loop.drop([s for candidate in eliminated for s in group.solvers[candidate]])
                group.loop.note = self._noted(group.candidates, remaining, rung)
                group.loop.save()

    def _eliminated(
        self, candidates: list[Candidate], rung: int, last: dict[Candidate, int] | None
    ) -> list[Candidate]:
        """Return the candidates that end at a rung: as in the first round, or by their scores."""
        if last is None:
            return self._worse_half(candidates)
        return [candidate for candidate in candidates if last[candidate] <= rung]

    def _run_to(
        self, rung: int, candidates: list[Candidate], group: _Group | None
    ) -> list[Candidate]:
        """Advance candidates to a rung and score them; return those that have not ended."""
        if group is not None:
            self._advance(group, rung)
            return self._score_all(candidates, group.solvers, rung)
        remaining, size = [], self._candidates_at_once
        for first in range(0, len(candidates), size):
            part = self._new_group(candidates[first : first + size], f"-{rung}")
            self._advance(part, rung)
            part.loop.save()
            remaining += self._score_all(part.candidates, part.solvers, rung)
        return remaining

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
        self, candidates: list[Candidate], remaining: list[Candidate], rung: int
    ) -> dict[str, Any]:
        """Return the results of the rungs so far as plain values, for a checkpoint."""
        results = [
            [i, read, result.scores.tolist(), result.iterations, result.finished]
            for i, candidate in enumerate(candidates)
            for read in candidate.reads
            for result in [self._outcome.results[candidate, read]]
        ]
        last = [self._outcome.last[candidate] for candidate in candidates]
        indices = [candidates.index(candidate) for candidate in remaining]
        return {"rung": rung, "racing": indices, "results": results, "last": last}

    def _resumed(self, group: _Group) -> tuple[list[Candidate], int]:
        """Return the remaining candidates and the last rung done, as saved in a checkpoint."""
        note, candidates, checkpoint = group.loop.note, group.candidates, self._context.checkpoint
        if not note or checkpoint is None:
            return list(candidates), 0
        with checkpoint.using(group.loop.name):
            return self._replayed(note, candidates)

    def _replayed(
        self, note: dict[str, Any], candidates: list[Candidate]
    ) -> tuple[list[Candidate], int]:
        """Take the results of the rungs so far from plain values."""
        for i, read, scores, iterations, finished in note["results"]:
            result = CandidateResult(np.array(scores, dtype=float), iterations, finished)
            require(result.scores.ndim == 2, "scores must be of splits and metrics")
            require(len(result.scores) == self._n_splits, "scores must be of each split")
            require(read in candidates[i].reads, "results must be at a candidate's reads")
            require(isinstance(iterations, int | float), "iterations must be a number")
            self._outcome.results[candidates[i], read] = result
        for candidate, last in zip(candidates, note["last"], strict=True):
            require(type(last) is int, "last must be numbers of iterations")
            self._outcome.last[candidate] = last
        require(type(note["rung"]) is int, "rung must be a number of iterations")
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

    def _score_all(
        self, candidates: list[Candidate], solvers: dict[Candidate, list[Solver]], rung: int
    ) -> list[Candidate]:
        """Score candidates at a rung; return those that have not ended."""
        size, remaining = self._scores_at_once, []
        for start in range(0, len(candidates), size):
            group = candidates[start : start + size]
            scores = self._held_out(
                group, [[s.coefficients() for s in solvers[candidate]] for candidate in group]
            )
            for i, candidate in enumerate(group):
                values = self._score(self._of_candidate(scores, i))
                ended = all(s.status is not None for s in solvers[candidate])
                iterations = float(np.mean([s.iterates for s in solvers[candidate]]))
                self._record(candidate, values, rung, iterations, ended)
                if not ended:
                    remaining.append(candidate)
        return remaining

    def _record(
        self, candidate: Candidate, values: FloatArray, rung: int, iterations: float, ended: bool
    ) -> None:
        """Record the scores of a candidate at a rung, for all its ``reads`` not finished yet."""
        results = self._outcome.results
        for read in candidate.reads:
            before = results.get((candidate, read))
            if before is None or not before.finished:
                results[candidate, read] = CandidateResult(
                    values, iterations, ended or read == rung
                )
        self._outcome.last[candidate] = candidate.reads[-1] if ended else rung

    def _worse_half(self, candidates: list[Candidate]) -> list[Candidate]:
        """Return the worse half of the candidates, and those with a score below the bar."""
        ranked = self._ranked(candidates)
        half = -(-len(ranked) // 2)
        return [
            candidate
            for rank, candidate in enumerate(ranked)
            if rank >= half or self._mean(candidate) < self._bar
        ]
