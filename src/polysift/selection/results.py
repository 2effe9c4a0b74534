"""The rows of a search, by variant, and which of them are the best so far and go on.

After each level one of three variants, and of its candidates, goes on to more rows; a few of them
see all rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from polysift.selection.candidates import (
    Candidate,
    Reading,
    Row,
    Variant,
    best_so_far,
    standard_error,
)
from polysift.selection.costs import affordable, finalists
from polysift.selection.levels import Level
from polysift.selection.stage import SearchContext, empty_rows

MAX_STANDARD_ERRORS_BEHIND = 0.5
"""How far a candidate may be behind the best of earlier stages, and a plain fit's choice behind
its rivals on a sample, in standard errors."""

MIN_STANDARD_ERRORS_AHEAD = 1.0
"""How far the best candidate must be ahead of that of a plain fit to be chosen, in standard errors
of the difference over the splits: the best of many is ahead by luck, too."""

SURVIVING_SHARE = 3
"""Of so many variants, or candidates of a variant, one goes on to the next level."""

MIN_CANDIDATES = 2
"""The candidates of a variant that go on, at the least."""

Racing = list[tuple[Variant, list[Candidate]]]
"""Variants with those of their candidates that take part in a level."""


@dataclass
class Results:
    """The rows of a search.

    Attributes
    ----------
    context : SearchContext
        The context of the search.
    variants : dict of str to Variant
        The variants by name.
    rows : dict of str to dict of (Candidate, int) to Row
        The rows of each variant that was begun.
    """

    context: SearchContext
    variants: dict[str, Variant] = field(default_factory=dict)
    rows: dict[str, dict[Reading, Row]] = field(default_factory=dict)

    def add(self, variant: Variant, candidates: list[Candidate]) -> dict[Reading, Row]:
        """Return the rows of some candidates of a variant, which are new if it was not begun."""
        self.variants.setdefault(variant.name, variant)
        made = self.rows.setdefault(variant.name, empty_rows(self.context, variant, candidates))
        return {key: row for key, row in made.items() if key[0] in candidates}

    def candidates(self, variant: Variant) -> list[Candidate]:
        """Return all candidates of a variant."""
        return self.context.job.candidates(variant, self.context.centers_of(variant.spec))

    def every(self) -> list[Row]:
        """Return all rows."""
        return [row for rows in self.rows.values() for row in rows.values()]

    def in_order(self) -> list[Row]:
        """Return all rows in the order of ``cv_results_``."""
        job, names = self.context.job, list(self.variants)

        def order(name: str) -> tuple[Any, ...]:
            spec = self.variants[name].spec
            if job.openings is not None:
                return (names.index(name),)
            by_scaler = job.kernels.index(spec.kernel), job.scalers.index(spec.scaler)
            return *by_scaler, spec.degree, names.index(name)

        return [row for name in sorted(self.rows, key=order) for row in self.rows[name].values()]

    def best(self) -> Row | None:
        """Return the best row so far."""
        return self.chosen(self.every(), one_standard_error=False)

    def chosen(self, rows: list[Row], *, one_standard_error: bool) -> Row | None:
        """Return the best of rows so far, but that of a plain fit where it is hardly worse."""
        at = best_so_far(rows, one_standard_error, self.validation_rows())
        if at is None or one_standard_error:
            return None if at is None else rows[at]
        best, plain = rows[at], self._plain(rows)
        if plain is None or (plain.n_rows, plain.finished) != (best.n_rows, best.finished):
            return best
        return plain if _ahead(best, plain) < MIN_STANDARD_ERRORS_AHEAD else best

    def _plain(self, rows: list[Row]) -> Row | None:
        """Return the row of a plain fit, if it is complete."""
        solver, loss = self.context.job.pairs[0]
        weight = self.context.job.class_weights[0]
        own = {"rho": "auto", "solver": solver, "loss": loss}

        def is_plain(row: Row) -> bool:
            same = row.params | own == row.params
            return bool(row.used) and same and row.params.get("class_weight", weight) == weight

        return next((row for row in rows if row.complete and is_plain(row)), None)

    def best_of(self, level: Level, variant: Variant | None = None) -> Row | None:
        """Return the best row on the rows of a level, of a variant or of all."""
        rows = self.every() if variant is None else self.rows.get(variant.name, {}).values()
        known = [row for row in rows if row.complete and row.n_rows == level.n_rows]
        return max(known, key=lambda row: row.mean, default=None)

    def place(self, row: Row) -> tuple[Variant, Candidate]:
        """Return the variant and the candidate of a row."""
        return next(
            (self.variants[name], candidate)
            for name, rows in self.rows.items()
            for (candidate, _), found in rows.items()
            if found is row
        )

    def bar(self, level: Level) -> float:
        """Return the mean score below which candidates are eliminated at a rung."""
        best = self.best_of(level)
        if best is None:
            return -np.inf
        return best.mean - MAX_STANDARD_ERRORS_BEHIND * self.error(best)

    def error(self, row: Row) -> float:
        """Return the standard error of a row's mean score."""
        return standard_error(row, self.validation_rows())

    def validation_rows(self) -> float | None:
        """Return the weight of the validation part, if there is a single one scored by accuracy."""
        level, (scorer, *_) = self.context.whole, self.context.job.scorers.values()
        if self.context.n_splits > 1 or scorer is not None:
            return None
        held_out = level.rounds[0].fold_parts == 0
        weights = level.own_weights
        return float(held_out.sum() if weights is None else weights @ held_out)

    def survivors(self, racing: Racing, level: Level, following: Level) -> Racing:
        """Return who goes on from a level to the following one, if any; mark the others."""
        scores = {variant.name: self.best_of(level, variant) for variant, _ in racing}
        known = {name: row.mean for name, row in scores.items() if row is not None}
        ranked = [pair for pair in racing if pair[0].name in known]
        ranked.sort(key=lambda pair: -known[pair[0].name])
        count = finalists(self.context, ranked)
        if not following.whole or self.context.job.effort == "high":
            count = max(-(-len(ranked) // SURVIVING_SHARE), count)
        going = ranked[:count]
        plain = next((pair for pair in ranked if pair[0].automatic), None)
        if plain is not None and plain not in going and self._near(level, plain[0], going):
            going = [plain, *going[:-1]]
        kept = [(variant, self._better(level, variant, own)) for variant, own in going]
        kept = affordable(self.context, following, kept)
        on = {variant.name: own for variant, own in kept}
        for variant, _ in racing:
            for (candidate, _), row in self.rows[variant.name].items():
                row.screened = candidate not in on.get(variant.name, [])
        return sorted(kept, key=lambda pair: not pair[0].automatic)

    def _near(self, level: Level, plain: Variant, going: Racing) -> bool:
        """Return whether a plain fit's choice may go on in the place of the last of several."""
        if len(going) > 1:
            return True
        rival, own = self.best_of(level, going[0][0]), self.best_of(level, plain)
        if rival is None or own is None or len(own.scores) < 2:
            return False
        return _ahead(rival, own) < MAX_STANDARD_ERRORS_BEHIND

    def _better(self, level: Level, variant: Variant, own: list[Candidate]) -> list[Candidate]:
        """Return the better candidates of a variant, and always the one of a plain fit."""

        def score(candidate: Candidate) -> float:
            rows = [self.rows[variant.name][candidate, read] for read in candidate.reads]
            found = [row.mean for row in rows if row.complete and row.n_rows == level.n_rows]
            return max(found, default=-np.inf)

        count = max(-(-len(own) // SURVIVING_SHARE), MIN_CANDIDATES)
        going = sorted(own, key=lambda candidate: -score(candidate))[:count]
        if variant.automatic and own[0] not in going:
            going[-1] = own[0]
        return [candidate for candidate in own if candidate in going]


def _ahead(row: Row, other: Row) -> float:
    """Return by how many standard errors of the mean difference a row is ahead of another."""
    difference = row.scores - other.scores
    if len(difference) < 2:
        return np.inf
    error = float(np.std(difference, ddof=1) / np.sqrt(len(difference)))
    mean = float(np.mean(difference))
    if error == 0:
        return float(np.copysign(np.inf, mean)) if mean else 0.0
    return mean / error
