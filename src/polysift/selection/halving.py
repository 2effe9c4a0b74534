"""Candidates of one feature map, compared by the rows of each split that they did not see.

The first iterate of every track is a ridge solution
in closed form; all are scored in one pass, the best go on through shared sweeps, and at each rung
half of them are left behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from polysift.engine.local import Engine
from polysift.engine.problems import Lane
from polysift.engine.sums import GramSums
from polysift.runtime.checkpoints import Checkpoint, digest
from polysift.runtime.parallel import Pool
from polysift.runtime.progress import Monitor
from polysift.runtime.types import FloatArray
from polysift.selection.candidates import Outcome, Standing, Stopped, Track, factor_key, rungs_of
from polysift.solvers.admm import Factor, Run, Settings, factorise
from polysift.solvers.loop import Batch
from polysift.solvers.result import Status
from polysift.training.folds import Round

T = TypeVar("T")

FEW = 3
"""Tracks of each solver that go on beyond their first iterate."""


@dataclass
class Ground:
    """Where a tournament takes place: the rows, cut by a round of splits, and one feature map.

    Tracks whose score at a rung is below ``bar`` are left behind: other feature maps do better.
    """

    engine: Engine
    sums: GramSums
    round: Round
    settings: Callable[[Track, float], Settings]
    score: Callable[[FloatArray], FloatArray]
    pool: Pool
    monitor: Monitor
    checkpoint: Checkpoint | None
    name: str
    n_columns: int
    tracks_at_once: int
    scores_at_once: int
    bar: float = -np.inf


@dataclass(frozen=True)
class _Group:
    """Tracks that advance together, with their runs, one per split."""

    tracks: list[Track]
    runs: dict[Track, list[Run]]
    batch: Batch


class Tournament:
    """Runs tracks against each other.

    Parameters
    ----------
    ground : Ground
        The data.
    outcome : Outcome
        Filled as results come in, so that a stop loses none.
    """

    def __init__(self, ground: Ground, outcome: Outcome) -> None:
        self._ground, self._outcome = ground, outcome

    def run(self, tracks: list[Track], *, screen: bool, last: dict[Track, int] | None) -> None:
        """Compare tracks; ``last`` says how far each goes where that was decided before."""
        self._first_iterates(tracks)
        going_on = tracks
        if screen and last is not None:
            going_on = [track for track in tracks if last[track] > 1]
        elif screen:
            going_on = self._best_of_each_solver(tracks)
        going_on = [track for track in going_on if track.reads[-1] > 1]
        if going_on:
            self._race(sorted(going_on, key=lambda track: track.n), screen, last)

    def _first_iterates(self, tracks: list[Track]) -> None:
        """Score the first iterate of every track."""
        found = self._solve_first(tracks)
        size = self._ground.scores_at_once
        for start in range(0, len(tracks), size):
            group = tracks[start : start + size]
            scores = self._held_out(group, [found[track] for track in group])
            for i, track in enumerate(group):
                values = self._ground.score(self._of_track(scores, i))
                self._record(track, values, 1, 1.0, track.reads[-1] == 1)

    def _solve_first(self, tracks: list[Track]) -> dict[Track, list[FloatArray]]:
        """Return u after one iteration, for each track and split."""
        found: dict[Track, list[FloatArray]] = {track: [] for track in tracks}
        for split in range(self._ground.round.n_splits):
            solved = self._factored(tracks, split, lambda factor, Aty: factor.solve(Aty))
            for track, (_, u) in solved.items():
                found[track].append(u)
        return found

    def _factored(
        self, tracks: list[Track], split: int, use: Callable[[Factor, FloatArray], T]
    ) -> dict[Track, tuple[FloatArray, T]]:
        """Return for each track A'y and what ``use`` makes of its factor; equal ratios share it."""
        ground = self._ground
        G, Aty = ground.sums.over(split)
        m = ground.engine.total_weight(split)
        ratios = {track: factor_key(track, ground.settings(track, m)) for track in tracks}

        def factor(track: Track) -> T:
            n = track.n
            return use(factorise(G[:n, :n].copy(), ground.settings(track, m)), Aty[:n])

        distinct = {ratio: track for track, ratio in ratios.items()}
        made = dict(zip(distinct, ground.pool.map(factor, distinct.values()), strict=True))
        return {track: (Aty[: track.n], made[ratio]) for track, ratio in ratios.items()}

    def _held_out(self, tracks: list[Track], u: list[list[FloatArray]]) -> FloatArray:
        """Return the scores of the held-out rows, K columns for each track."""
        ground, K = self._ground, self._ground.n_columns
        n = max(track.n for track in tracks)
        stacked = []
        for split in range(ground.round.n_splits):
            columns = np.zeros((n, K * len(tracks)))
            for i, track in enumerate(tracks):
                columns[: track.n, i * K : (i + 1) * K] = u[i][split]
            stacked.append(columns)
        lanes = [Lane(track.n, 1.0, 1.0) for track in tracks]
        return ground.engine.scores(lanes, stacked)

    def _of_track(self, scores: FloatArray, i: int) -> FloatArray:
        K = self._ground.n_columns
        return scores[:, i * K : (i + 1) * K]

    def _mean(self, track: Track) -> float:
        """Return a track's mean score as last seen."""
        standings = [self._outcome.standings[track, read] for read in track.reads]
        return float(np.nanmean(max(standings, key=lambda s: s.iterations).scores))

    def _best_of_each_solver(self, tracks: list[Track]) -> list[Track]:
        """Return the best few tracks of each solver, no two of them with the same n.

        With n given, rho hardly changes where the iterations lead, so the first iterate decides it.
        """
        chosen: dict[tuple[str, int], Track] = {}
        for track in self._ranked(tracks):
            if sum(solver == track.solver for solver, _ in chosen) < FEW:
                chosen.setdefault((track.solver, track.n), track)
        return list(chosen.values())

    def _ranked(self, tracks: Iterable[Track]) -> list[Track]:
        return sorted(tracks, key=lambda track: (-self._mean(track), track.n))

    def _race(self, tracks: list[Track], screen: bool, last: dict[Track, int] | None) -> None:
        """Run tracks rung by rung, in one batch.

        As long as they are too many for the memory they advance in groups, which begin anew at each
        rung: so the limit decides how long it takes, not who is left behind.
        """
        racing, group, done = tracks, None, 0
        for rung in rungs_of(tracks):
            if group is None and len(racing) <= self._ground.tracks_at_once:
                group = self._new_group(racing)
                racing, done = self._resumed(group)
            if rung <= done or not racing:
                continue
            racing = self._run_to(rung, racing, group)
            left = self._left(racing, rung, last) if screen else []
            racing = [track for track in racing if track not in left]
            if group is not None:
                group.batch.drop([run for track in left for run in group.runs[track]])
                group.batch.note = self._noted(group.tracks, racing, rung)
                group.batch.save()

    def _left(self, tracks: list[Track], rung: int, last: dict[Track, int] | None) -> list[Track]:
        """Return the tracks that go no further, as was decided before, or is now."""
        if last is None:
            return self._behind(tracks)
        return [track for track in tracks if last[track] <= rung]

    def _run_to(self, rung: int, tracks: list[Track], group: _Group | None) -> list[Track]:
        """Advance tracks to a rung and score them; return those that have not ended."""
        if group is not None:
            self._advance(group, rung)
            return self._read_off(tracks, group.runs, rung)
        going_on, size = [], self._ground.tracks_at_once
        for first in range(0, len(tracks), size):
            part = self._new_group(tracks[first : first + size], f"-{rung}")
            self._advance(part, rung)
            part.batch.save()
            going_on += self._read_off(part.tracks, part.runs, rung)
        return going_on

    def _new_group(self, tracks: list[Track], suffix: str = "") -> _Group:
        ground = self._ground
        runs = self._new_runs(tracks)
        mark = digest(np.frombuffer(repr(tracks).encode(), np.uint8))[:12]
        batch = Batch(
            ground.engine,
            [run for track in tracks for run in runs[track]],
            monitor=ground.monitor,
            checkpoint=ground.checkpoint,
            name=f"solver{ground.name}-{mark}{suffix}",
            pool=ground.pool,
            report=False,
        )
        return _Group(tracks, runs, batch)

    def _advance(self, group: _Group, rung: int) -> None:
        group.batch.advance(until=rung)
        for run in group.batch.runs:
            if run.status in (Status.TIME_LIMIT, Status.INTERRUPTED):
                raise Stopped(run.status)

    def _noted(self, tracks: list[Track], racing: list[Track], rung: int) -> dict[str, Any]:
        """Return what a checkpoint must know of the rungs that are behind."""
        standings = [
            [i, read, list(standing.scores), standing.iterations, standing.finished]
            for i, track in enumerate(tracks)
            for read in track.reads
            for standing in [self._outcome.standings[track, read]]
        ]
        last = [self._outcome.last[track] for track in tracks]
        places = [tracks.index(track) for track in racing]
        return {"rung": rung, "racing": places, "standings": standings, "last": last}

    def _resumed(self, group: _Group) -> tuple[list[Track], int]:
        """Return the tracks that race on and the last rung done, as a checkpoint has them."""
        note, tracks = group.batch.note, group.tracks
        if not note:
            return list(tracks), 0
        for i, read, scores, iterations, finished in note["standings"]:
            standing = Standing(np.array(scores), iterations, finished)
            self._outcome.standings[tracks[i], read] = standing
        for track, last in zip(tracks, note["last"], strict=True):
            self._outcome.last[track] = last
        return [tracks[i] for i in note["racing"]], note["rung"]

    def _new_runs(self, tracks: list[Track]) -> dict[Track, list[Run]]:
        ground = self._ground
        runs: dict[Track, list[Run]] = {track: [] for track in tracks}
        for split in range(ground.round.n_splits):
            m = ground.engine.total_weight(split)
            factored = self._factored(tracks, split, lambda factor, _: factor)
            for track, (Aty, factor) in factored.items():
                runs[track].append(Run(factor, Aty.copy(), ground.settings(track, m), m, split))
        return runs

    def _read_off(
        self, tracks: list[Track], runs: dict[Track, list[Run]], rung: int
    ) -> list[Track]:
        """Score the tracks as they stand at a rung; return those that have not ended."""
        size, going_on = self._ground.scores_at_once, []
        for start in range(0, len(tracks), size):
            group = tracks[start : start + size]
            scores = self._held_out(group, [[run.u for run in runs[track]] for track in group])
            for i, track in enumerate(group):
                values = self._ground.score(self._of_track(scores, i))
                ended = all(run.status is not None for run in runs[track])
                iterations = float(np.mean([run.iterates for run in runs[track]]))
                self._record(track, values, rung, iterations, ended)
                if not ended:
                    going_on.append(track)
        return going_on

    def _record(
        self, track: Track, values: FloatArray, rung: int, iterations: float, ended: bool
    ) -> None:
        """Note the scores of a track at a rung, for all its candidates that are not done yet."""
        standings = self._outcome.standings
        for read in track.reads:
            before = standings.get((track, read))
            if before is None or not before.finished:
                standings[track, read] = Standing(values, iterations, ended or read == rung)
        self._outcome.last[track] = track.reads[-1] if ended else rung

    def _behind(self, tracks: list[Track]) -> list[Track]:
        """Return the worse half of the tracks that could go on, and those below the bar."""
        ranked = self._ranked(tracks)
        half = -(-len(ranked) // 2)
        return [
            track
            for place, track in enumerate(ranked)
            if place >= half or self._mean(track) < self._ground.bar
        ]
