"""What the parts of a search cost, in multiply-adds, and in seconds once some are measured."""

from __future__ import annotations

from collections.abc import Sequence

from polysift.selection.candidates import Candidate, Variant
from polysift.selection.levels import GROWTH, Level
from polysift.selection.refit import Kept
from polysift.selection.stage import SearchContext

MAX_FINAL_OPERATIONS, MAX_FINALISTS = 5e11, 2
"""The multiply-adds of the Gram matrices of the variants that see all rows, where there are
samples, and the most of these variants; one there is always. The first takes half a minute on two
cores."""

MAX_EXTRA_OPERATIONS = 1e12
"""The most multiply-adds that stages on all rows take beyond the Gram matrix of the last fit, where
nothing is given: half a minute on two cores."""

MAX_FINALISTS_HIGH = 6
"""The most of them with effort="high", whatever they cost."""

FACTOR_OPERATIONS, CHOICE_OPERATIONS = 1.0, 8.0
"""The cost of a Cholesky factor and of the choice of rho, in units of n^3."""

EXTRAPOLATED_SHARE = 0.3
"""The share of the seconds by the rate on few rows that many rows take, where calls weigh less."""


def finalists(context: SearchContext, ranked: Sequence[tuple[Variant, object]]) -> int:
    """Return how many variants may see all rows; it depends on the sizes alone, not on the time."""
    if context.job.effort == "high":
        return MAX_FINALISTS_HIGH
    n = max((context.centers_of(variant.spec) for variant, _ in ranked), default=1)
    return final_variants(context.whole.n_rows, n)


def final_variants(rows: int, n: int) -> int:
    """Return how many variants may see all of so many rows, with n centers."""
    return int(max(1, min(MAX_FINALISTS, MAX_FINAL_OPERATIONS // (float(rows) * n**2))))


def affordable(
    context: SearchContext, level: Level, racing: list[tuple[Variant, list[Candidate]]]
) -> list[tuple[Variant, list[Candidate]]]:
    """Return which of those that take part on the rows of a level may do so.

    Where nothing is given, the work on all rows is limited: rivals of a plain fit's choice are left
    out from the last on, then other ratios rho than its own; where even one comparison is too much
    and there are samples, nothing is left. It depends on the sizes alone, not on the time.
    """
    job = context.job
    given = job.openings is None or job.effort == "high" or not job.screen
    if given or not level.whole:
        return racing

    def too_much(pairs: list[tuple[Variant, list[Candidate]]]) -> bool:
        n = max(context.centers_of(variant.spec) for variant, _ in pairs)
        work = sum(stage_work(context, level, *pair) for pair in pairs)
        return work - float(level.n_rows) * n**2 > MAX_EXTRA_OPERATIONS

    going = [pair for pair in racing if pair[0].automatic] or racing[:1]
    for pair in racing:
        if pair not in going and not too_much([*going, pair]):
            going.append(pair)
    if too_much(going):
        going = [
            (variant, [one for one in own if one.multiple in (None, 1.0)] or own[:1])
            for variant, own in going
        ]
    return [] if too_much(going) and len(context.levels) > 1 else going


def stage_work(
    context: SearchContext, level: Level, variant: Variant, candidates: list[Candidate]
) -> float:
    """Return the multiply-adds of a stage on the rows of a level."""
    n = level.most_centers(context.centers_of(variant.spec))
    reads = [candidate.reads[-1] for candidate in candidates]
    return sum(
        stage_operations(level.n_rows, n, level.data.n_columns, round_.n_splits, reads)
        for round_ in level.rounds
    )


def stage_operations(rows: int, n: int, columns: int, splits: int, reads: Sequence[int]) -> float:
    """Return the multiply-adds of a stage, whose candidates have so many iterations each."""
    total = float(rows) * n**2 + CHOICE_OPERATIONS * n**3
    for count in reads:
        total += splits * (sweep_operations(rows, n, columns, count) + FACTOR_OPERATIONS * n**3)
    return total


def sweep_operations(rows: int, n: int, columns: int, sweeps: int) -> float:
    """Return the multiply-adds of the sweeps of one problem."""
    return 2.0 * sweeps * rows * n * columns


class Costs:
    """Forecasts the seconds of stages and refits, by the rate of the stages so far.

    Parameters
    ----------
    context : SearchContext
        The context of the search.
    """

    def __init__(self, context: SearchContext) -> None:
        self._context = context
        self._seconds = self._operations = 0.0
        self._rows = 0

    def measured(
        self, level: Level, variant: Variant, candidates: list[Candidate], seconds: float
    ) -> None:
        """Note how long a stage has taken; stages on fewer rows are forgotten."""
        if level.n_rows > self._rows:
            self._rows, self._seconds, self._operations = level.n_rows, 0.0, 0.0
        self._seconds += seconds
        self._operations += stage_work(self._context, level, variant, candidates)

    def seconds(
        self, level: Level, pairs: Sequence[tuple[Variant, list[Candidate]]]
    ) -> float | None:
        """Return the expected seconds of stages on the rows of a level; None if not known yet."""
        total = sum(stage_work(self._context, level, *pair) for pair in pairs)
        return self._expected(level, total)

    def refit_seconds(
        self, level: Level, variant: Variant, candidate: Candidate, kept: Kept | None
    ) -> float | None:
        """Return the expected seconds of a refit; None if not known yet."""
        n, columns = level.most_centers(candidate.n), level.data.n_columns
        known = kept is not None and kept.sums_of(variant, level, n) is not None
        folds = level.rounds[0].n_splits if self._context.held_out else 0
        work = sweep_operations(level.n_rows, n, columns, candidate.reads[-1]) * (1 + folds)
        work += FACTOR_OPERATIONS * (1 + folds) * n**3
        if not known:
            work += float(level.n_rows) * n**2 + CHOICE_OPERATIONS * n**3
        return self._expected(level, work)

    def _expected(self, level: Level, operations: float) -> float | None:
        if not self._operations:
            return None
        extrapolated = level.n_rows > GROWTH / 2 * self._rows  # samples are of about their size
        share = EXTRAPOLATED_SHARE if extrapolated else 1.0
        return operations * self._seconds / self._operations * share
