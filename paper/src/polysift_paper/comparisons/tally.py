"""What becomes of a claim over many data sets."""

from __future__ import annotations

from dataclasses import dataclass, field

from polysift_paper.studies.study import Verdict


@dataclass
class Tally:
    """The data sets for which a claim holds, does not hold, cannot be told, or has no figures."""

    good: list[str] = field(default_factory=list)
    bad: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def add(self, holds: bool | None, text: str) -> None:
        """Count a set, with what to say of it."""
        (self.open if holds is None else self.good if holds else self.bad).append(text)

    def verdict(self, good: str, bad: str, *more: str) -> Verdict:
        """Return true if all sets are good, false if one is not, None if that is open."""
        agrees = None if not (self.good or self.bad) else not self.bad
        if (self.open or self.missing) and agrees:
            agrees = None
        parts = (good, self.good), (bad, self.bad), ("Cannot be told", self.open)
        told = [f"{head}: {'; '.join(texts)}." for head, texts in parts if texts]
        if self.missing:
            told.append(f"No figures: {', '.join(self.missing)}.")
        sets = sum(map(len, (self.good, self.bad, self.open, self.missing)))
        counted = f"{len(self.good)} of {sets} sets."
        return Verdict(agrees, " ".join([counted, *told, *(text for text in more if text)]))
