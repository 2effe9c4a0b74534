"""Claims about a comparison, each checked on every data set by a stated criterion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from polysift_paper.algorithm import VARIANTS
from polysift_paper.comparisons.comparison import (
    DRAWN_FOR,
    FPC_ROWS,
    ComparisonTable,
    Finding,
    data_title,
    method_title,
)
from polysift_paper.comparisons.printed import UCI_ROWS, printed
from polysift_paper.comparisons.summary import Lines, by_pair, figure, sets_of
from polysift_paper.comparisons.tables import signed, value_text
from polysift_paper.studies.study import Row, Verdict

TIMED_ABOVE_ROWS = 10_000
"""Times are compared on UCI sets with more rows than that."""

FEATURE_SYSTEMS = ("falkon", "rr_fourier", "tensor_sketch")

NAMES = {"accuracy": "accuracy", "auc": "AUC"}

TUNED = {"accuracy": "polysift", "auc": "polysift_auc"}
"""Which of our classifiers was tuned for what."""


@dataclass
class Tally:
    """The data sets for which a claim holds, fails, cannot be decided, or has no figures."""

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
        sentences = [f"{head}: {'; '.join(texts)}." for head, texts in parts if texts]
        if self.missing:
            sentences.append(f"No figures: {', '.join(self.missing)}.")
        sets = sum(map(len, (self.good, self.bad, self.open, self.missing)))
        counted = f"{len(self.good)} of {sets} sets."
        return Verdict(agrees, " ".join([counted, *sentences, *(text for text in more if text)]))


def findings(table: ComparisonTable, summary: list[Row]) -> list[Finding]:
    """Return what a summary says.

    Parameters
    ----------
    table : ComparisonTable
        Which comparison of the paper.
    summary : list of dict
        Its lines; what is missing leaves a verdict open. Claims about what was not run at all are
        left out.

    Returns
    -------
    list of Finding
        Each with its criterion and the numbers.
    """
    lines = by_pair(summary)
    kinds = [kind for kind in NAMES if any(line[kind] is not None for line in summary)]
    run = {data for data, _ in lines}
    known = [kind for kind in kinds if any(printed(kind, data, "fpc") for data in run)]
    tuned = [kind for kind in kinds if any(method == TUNED[kind] for _, method in lines)]
    fpc = [row for row in FPC_ROWS if row == "fpc" or any(row == one for _, one in lines)]
    found = [_same_as_printed(table, lines, kind, row) for kind in known for row in fpc]
    found += [_not_below_fpc(table, lines, kind) for kind in tuned]
    found += [_leads_here(table, lines, kind) for kind in tuned]
    found += [_leads_printed(table, lines, kind) for kind in tuned if kind in known]
    if table.name == "uci":
        found.append(_faster(table, lines, FEATURE_SYSTEMS))
    else:
        found.append(_second_at_least(table, lines))
        found.append(_faster(table, lines, tuple(s for s in table.systems if s != "fpc")))
    return found


def _sets(table: ComparisonTable, lines: Lines, kind: str) -> list[str]:
    """Return the sets of the paper, and those that were run in their place."""
    return list(dict.fromkeys([*table.data, *sets_of(lines, kind)]))


def _same_as_printed(table: ComparisonTable, lines: Lines, kind: str, row: str) -> Finding:
    tally = Tally()
    for data in table.data:
        paper, mine = printed(kind, data, "fpc"), figure(lines, data, row, kind)
        if paper is None:
            continue
        text = f"{data_title(data)} {value_text(kind, mine)} (paper {paper.text}"
        if mine is None:
            tally.missing.append(data_title(data))
        elif paper.std is None:
            change = signed(kind, mine - paper.mean)
            tally.add(None, f"{text}, without a standard deviation; {change})")
        else:
            close = abs(mine - paper.mean) <= 2 * paper.std + paper.unit / 2
            tally.add(close, f"{text}, {signed(kind, mine - paper.mean)})")
    return Finding(
        f"{method_title(row)}, as printed: {NAMES[kind]}",
        f"{VARIANTS[row].about} On each set the mean {NAMES[kind]} is within two of the paper's "
        "standard deviations of the paper's mean; half of the last printed digit is allowed for "
        "rounding.",
        tally.verdict("Within", "Differs"),
    )


def _not_below_fpc(table: ComparisonTable, lines: Lines, kind: str) -> Finding:
    tally, tuned = Tally(), TUNED[kind]
    for data in _sets(table, lines, kind):
        mine, other = figure(lines, data, tuned, kind), figure(lines, data, "fpc", kind)
        std = figure(lines, data, "fpc", f"{kind}_std")
        text = (
            f"{data_title(data)} {value_text(kind, mine)} against {value_text(kind, other)} ± "
            f"{value_text(kind, std)}"
        )
        if mine is None or other is None:
            tally.missing.append(data_title(data))
        elif mine >= other - _rounding(kind, data):
            tally.add(True, text)
        elif std is None:
            tally.add(None, f"{text} (one run has no standard deviation)")
        else:
            tally.add(mine >= other - std / 2, text)
    return Finding(
        f"Never below FPC: {NAMES[kind]}",
        f"On no set is the mean {NAMES[kind]} of {method_title(tuned)} below that of our FPC by "
        "more than half the standard deviation of our FPC over the runs; half of the last digit "
        "that the paper prints counts as equal.",
        tally.verdict("Not below", "Below"),
    )


def _rounding(kind: str, data: str) -> float:
    """Return half of the last digit that the paper prints: perfect runs have no deviation."""
    paper = printed(kind, data, "fpc")
    return 0.0 if paper is None else paper.unit / 2


Rivals = Callable[[str], dict[str, tuple[float, float]]]
"""From a data set to figures by system, each with what rounding may have taken from it."""


def _leads_here(table: ComparisonTable, lines: Lines, kind: str) -> Finding:
    missing = [
        f"{method_title(system)} on {' and '.join(data_title(data) for data in sets)}"
        for system in table.systems
        if (sets := _without(table, lines, system, kind))
    ]

    def rivals(data: str) -> dict[str, tuple[float, float]]:
        pairs = {system: figure(lines, data, system, kind) for system in table.systems}
        return {system: (value, 0.0) for system, value in pairs.items() if value is not None}

    return Finding(
        f"In front here: {NAMES[kind]}",
        f"On each set {method_title(TUNED[kind])} is first in mean {NAMES[kind]}, or within one of "
        "its own standard deviations over the runs of the first, among the "
        f"paper's {len(table.systems)} systems as run here.",
        _leads(
            _sets(table, lines, kind),
            lines,
            kind,
            rivals,
            f"Left out, for want of a figure: {', '.join(missing)}." if missing else "",
        ),
    )


def _without(table: ComparisonTable, lines: Lines, system: str, kind: str) -> list[str]:
    """Return the sets on which ours has a figure, and a system has none."""
    return [
        data
        for data in table.data
        if figure(lines, data, TUNED[kind], kind) is not None
        and figure(lines, data, system, kind) is None
    ]


def _leads_printed(table: ComparisonTable, lines: Lines, kind: str) -> Finding:
    def rivals(data: str) -> dict[str, tuple[float, float]]:
        pairs = {system: printed(kind, data, system) for system in table.systems}
        return {system: (one.mean, one.unit / 2) for system, one in pairs.items() if one}

    sets = [data for data in table.data if rivals(data)]
    return Finding(
        f"In front of the printed figures: {NAMES[kind]}",
        f"On each set {method_title(TUNED[kind])} is first in mean {NAMES[kind]}, or within one of "
        "its own standard deviations over the runs of the first, among the figures that the paper "
        f"prints for its {len(table.systems)} systems; half of the last printed digit is allowed "
        "for rounding.",
        _leads(sets, lines, kind, rivals, ""),
    )


def _leads(sets: list[str], lines: Lines, kind: str, rivals: Rivals, more: str) -> Verdict:
    tally, tuned, first = Tally(), TUNED[kind], 0
    for data in sets:
        mine, std = (figure(lines, data, tuned, name) for name in (kind, f"{kind}_std"))
        others = rivals(data)
        if mine is None or not others:
            tally.missing.append(data_title(data))
            continue
        leader = max(others, key=lambda system: others[system][0])
        best, slack = others[leader]
        text = (
            f"{data_title(data)} {value_text(kind, mine)} ± {value_text(kind, std)} "
            f"({method_title(leader)} {value_text(kind, best)})"
        )
        if mine + slack >= best:
            first += 1
            tally.add(True, text)
        else:
            tally.add(None if std is None else mine + slack + std >= best, text)
    return tally.verdict(f"First ({first}) or within", "Behind", more)


def _faster(table: ComparisonTable, lines: Lines, rivals: tuple[str, ...]) -> Finding:
    tally, in_all = Tally(), 0
    sets = [data for data in table.data if UCI_ROWS.get(data, TIMED_ABOVE_ROWS) > TIMED_ABOVE_ROWS]
    if table.name != "uci":
        sets = _timed_sets(table, lines)
    for data in sets:
        mine = figure(lines, data, "fpc", "fit_seconds")
        pairs = {system: _seconds(lines, data, system, "fit_seconds") for system in rivals}
        others = {system: value for system, value in pairs.items() if value is not None}
        if mine is None or not others:
            tally.missing.append(data_title(data))
            continue
        slow = [system for system, value in others.items() if mine >= value]
        times = ", ".join(
            f"{method_title(system)} {value_text('fit_seconds', value)}"
            for system, value in pairs.items()
        )
        text = f"{data_title(data)} {value_text('fit_seconds', mine)} s ({times})"
        tally.add(False if slow else None if len(others) < len(rivals) else True, text)
        in_all += _faster_in_all(lines, data, rivals)
    names = ", ".join(map(method_title, rivals))
    which = f" with more than {TIMED_ABOVE_ROWS:,} rows" if table.name == "uci" else ""
    return Finding(
        "Speed",
        f"On each set{which} FPC's final fit takes less time than that of {names}, each at the "
        "size that its selection chose.",
        tally.verdict(
            "Faster than all",
            "Not faster than all",
            f"Selection and final fit together: faster than all on {in_all} of {len(sets)} sets.",
        ),
    )


def _timed_sets(table: ComparisonTable, lines: Lines) -> list[str]:
    """Return the sets to compare times on; data of the size of a set stand in for one not run."""
    sets = _sets(table, lines, "fit_seconds")
    replaced = [DRAWN_FOR[data] for data in sets if data in DRAWN_FOR]
    return [
        data
        for data in sets
        if data not in replaced or figure(lines, data, "fpc", "fit_seconds") is not None
    ]


def _seconds(lines: Lines, data: str, system: str, name: str) -> float | None:
    """Return the seconds of a system, if they are by the same clock as those of FPC."""
    same = figure(lines, data, system, "clock") == figure(lines, data, "fpc", "clock")
    return figure(lines, data, system, name) if same else None


def _faster_in_all(lines: Lines, data: str, rivals: tuple[str, ...]) -> bool:
    mine = figure(lines, data, "fpc", "training_seconds")
    others = [_seconds(lines, data, system, "training_seconds") for system in rivals]
    return mine is not None and all(one is not None and mine < one for one in others)


def _second_at_least(table: ComparisonTable, lines: Lines) -> Finding:
    tally = Tally()
    for data in _sets(table, lines, "accuracy"):
        pairs = {
            method: value
            for one, method in lines
            if one == data and (value := figure(lines, data, method, "accuracy")) is not None
        }
        systems = [system for system in pairs if system in table.systems]
        if "fpc" not in pairs or len(systems) < 2:
            tally.missing.append(data_title(data))
            continue
        rank = 1 + sum(pairs[system] > pairs["fpc"] for system in systems)
        ranking = ", ".join(
            f"{method_title(method)} {value_text('accuracy', pairs[method])}"
            for method in sorted(pairs, key=lambda method: -pairs[method])
        )
        missing = len(systems) < len(table.systems)
        holds = False if rank > 2 else None if missing else True
        tally.add(holds, f"{data_title(data)}: FPC is number {rank} of {len(systems)} ({ranking})")
    return Finding(
        "FPC's place in accuracy",
        f"On each set FPC is first or second in accuracy among the paper's {len(table.systems)} "
        "systems, as in the paper; other systems are listed beside them, but not counted.",
        tally.verdict("First or second", "Behind"),
    )
