"""The tables of a comparison: cells with our figure above the paper's, as Markdown or HTML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from polysift.reporting.page import NONE
from polysift_paper.comparisons.comparison import (
    CLOCKS,
    DRAWN_FOR,
    KINDS,
    OURS,
    REVERSED,
    ComparisonTable,
    data_title,
    kind_of,
    method_title,
)
from polysift_paper.comparisons.printed import Printed, printed
from polysift_paper.comparisons.summary import Lines, by_pair, methods_of, sets_of, timed_as
from polysift_paper.studies.page import escaped, markdown_table
from polysift_paper.studies.study import Row

MINUS = "\u2212"

WALL = "\u02b7"
"""The mark of seconds by the wall clock; all others are of the processor."""


@dataclass(frozen=True)
class Metric:
    """One of the tables.

    Attributes
    ----------
    name : str
        The figure, as in the summary.
    paper : str
        The kind of figure of the paper beside it.
    title : str
        A heading.
    explanation : str
        What the figure is, and what the second line of a cell says.
    best : callable
        ``max`` or ``min``.
    """

    name: str
    paper: str
    title: str
    explanation: str
    best: Callable[[list[float]], float]

    @property
    def timed(self) -> bool:
        """Whether this is a time."""
        return self.paper == "seconds"


METRICS = (
    Metric(
        "accuracy",
        "accuracy",
        "Accuracy (%)",
        "Share of the test rows that are classified rightly; the paper's below, and ours minus the "
        "paper's.",
        max,
    ),
    Metric(
        "auc", "auc", "AUC", "On the test rows; the paper's below, and ours minus the paper's.", max
    ),
    Metric(
        "training_seconds",
        "seconds",
        "Training: selection and final fit (s)",
        "The selection among all candidates and the final fit together; the paper's training time "
        "below, and ours as a multiple of it (other machine, other code).",
        min,
    ),
    Metric(
        "fit_seconds",
        "seconds",
        "Training: the final fit alone (s)",
        "The final fit with the chosen parameters; the paper's training time below (it does not "
        "say whether selection counts), and ours as a multiple of it.",
        min,
    ),
)


@dataclass(frozen=True)
class Cell:
    """An entry of a table.

    Attributes
    ----------
    mean, spread : str
        Ours: the mean, and the standard deviation or "".
    mark : str
        The mark of its status, after that of the wall clock, or "".
    best : bool
        Whether it is set in bold.
    beside : str
        The paper's, or of drawn data the best that there can be, or "".
    change : str
        How ours differs, or "".
    """

    mean: str
    spread: str
    mark: str
    best: bool
    beside: str
    change: str


def value_text(name: str, value: float | None) -> str:
    """Return a figure as tables and sentences show it: percent, four digits, or seconds."""
    if value is None:
        return NONE
    if name == "accuracy":
        return f"{100 * value:.2f}"
    if name == "auc":
        return f"{value:.4f}"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}".replace("e-0", "e-")


def signed(name: str, value: float) -> str:
    """Return a difference with its sign."""
    size = value_text(name, abs(value))
    zero = not size.strip("0.")
    return size if zero else f"{MINUS if value < 0 else '+'}{size}"


def cells_of(lines: Lines, metric: Metric) -> dict[tuple[str, str], Cell]:
    """Return the cells of a table, by data set and method."""
    found = {}
    for data in _shown(lines, metric):
        row = {one: line for one in methods_of(lines) if (line := lines.get((data, one)))}
        known = [line for line in row.values() if line[metric.name] is not None]
        clock = next((one for one in CLOCKS if any(line["clock"] == one for line in known)), None)
        there = [
            line[metric.name]
            for line in known
            if line["method"] not in OURS and (not metric.timed or line["clock"] == clock)
        ]
        leader = metric.best(there) if there else None
        for method in methods_of(lines):
            line = row.get(method)
            apart = metric.timed and line is not None and line["clock"] != clock
            found[data, method] = _cell(line, metric, None if apart else leader, (data, method))
    return found


def _shown(lines: Lines, metric: Metric) -> list[str]:
    """Return the sets of a table: of drawn ones the accuracy, too, beside the best there can be."""
    return sets_of(lines, "training_seconds" if metric.name == "accuracy" else metric.name)


def _cell(line: Row | None, metric: Metric, leader: float | None, pair: tuple[str, str]) -> Cell:
    data, method = pair
    paper = printed(metric.paper, timed_as(data) if metric.timed else data, method)
    mean = line[metric.name] if line else None
    spread = line[f"{metric.name}_std"] if line else None
    text = value_text(metric.name, mean)
    best = False
    if mean is not None and leader is not None:  # as shown: what looks the same is set the same
        best = text == value_text(metric.name, leader) or metric.best([mean, leader]) == mean
    mark = KINDS[kind_of(line["status"])] if line else ""
    if metric.timed and line and mean is not None and line["clock"] == CLOCKS[1]:
        mark = WALL + mark
    return Cell(
        text,
        "" if spread is None or metric.timed else value_text(metric.name, spread),
        mark,
        best,
        *_beside(metric, mean, paper, data),
    )


def _beside(
    metric: Metric, mean: float | None, paper: Printed | None, data: str
) -> tuple[str, str]:
    """Return the figure to set beside ours, and how ours differs."""
    if data in REVERSED and not metric.timed:
        most = 1 - REVERSED[data]
        change = "" if mean is None else signed(metric.name, mean - most)
        return f"Bayes {value_text(metric.name, most)}", change
    return f"paper {paper.text}" if paper else "", _change(metric, mean, paper)


def _change(metric: Metric, mean: float | None, paper: Printed | None) -> str:
    if mean is None or paper is None:
        return ""
    if metric.timed:
        ratio = mean / paper.mean
        small = f"{ratio:.2g}".replace("e-0", "e-")
        return f"{ratio:,.0f}\u00d7" if ratio >= 10 else f"{small}\u00d7"
    return signed(metric.name, mean - paper.mean)


def row_title(method: str) -> tuple[str, str]:
    """Return the title of a method, and a remark or ""."""
    return method_title(method), "not in the paper" if method in OURS else ""


def explanations(lines: Lines, metric: Metric) -> list[str]:
    """Return the sentences below a table."""
    sentences = [
        metric.explanation,
        "Bold: the best of the paper's systems as run here, and each of the others that is no "
        "worse.",
    ]
    if metric.timed:
        sentences.append(
            f"Seconds are of the processor, on one thread; {WALL}: the time that passed, on all "
            "cores or in an older run, which is not compared with the others."
        )
    if metric.timed and any(data in DRAWN_FOR for data, _ in lines):
        sentences.append(
            "Data of the size of a set are synthetic, and stand beside the paper's time for that "
            "set."
        )
    if metric.name == "accuracy" and any(data in REVERSED for data, _ in lines):
        sentences.append(
            "Data of the size of a set have the labels of a rule, of which a share is reversed: "
            "below is the accuracy of the rule itself (Bayes), which no classifier exceeds but by "
            "chance."
        )
    return sentences


def footnotes(summary: Sequence[Row]) -> list[tuple[str, str]]:
    """Return of each mark and reason the mark, and where it applies."""
    run = Counter(line["data"] for line in summary)
    marked: dict[tuple[str, str], dict[str, list[Row]]] = {}
    for line in summary:
        kind = kind_of(line["status"])
        if kind != "ok":
            sets = marked.setdefault((KINDS[kind], line["status"]), {})
            sets.setdefault(line["data"], []).append(line)
    ranks = list(KINDS.values())
    found = []
    for (mark, status), sets in sorted(marked.items(), key=lambda one: ranks.index(one[0][0])):
        there = [_where(data, lines, run[data]) for data, lines in sets.items()]
        found.append((mark, f"{status.removesuffix('.')}: {'; '.join(there)}"))
    return found


def _where(data: str, lines: Sequence[Row], methods: int) -> str:
    """Return which of the methods that were run on a set a status applies to."""
    if len(lines) == methods > 1:
        return f"all on {data_title(data)}"
    named = [
        f"{method_title(line['method'])} ({line['status_runs']} runs)"
        if line["status_runs"] > 1
        else method_title(line["method"])
        for line in lines
    ]
    return f"{', '.join(named)} on {data_title(data)}"


def metric_markdown(lines: Lines, metric: Metric) -> list[str]:
    """Return the lines of one table of a comparison as Markdown, or none without figures."""
    cells = cells_of(lines, metric)
    if not cells:
        return []
    sets = list(dict.fromkeys(data for data, _ in cells))
    rows = []
    for method in methods_of(lines):
        title, remark = row_title(method)
        head = f"{escaped(title)}<br><sub>{remark}</sub>" if remark else escaped(title)
        rows.append([head, *(_markdown(cells[data, method]) for data in sets)])
    heads = ["", *(escaped(data_title(data)) for data in sets)]
    return [*markdown_table(heads, rows), "", " ".join(explanations(lines, metric))]


def _markdown(cell: Cell) -> str:
    mean = f"**{cell.mean}**" if cell.best else cell.mean
    first = f"{mean} ± {cell.spread}{cell.mark}" if cell.spread else f"{mean}{cell.mark}"
    below = ", ".join(part for part in (cell.beside, cell.change) if part)
    return f"{first}<br><sub>{below}</sub>" if below else first


def print_alone(table: ComparisonTable, lines: Lines) -> tuple[list[str], list[list[str]]]:
    """Return heads and rows of what the paper prints of its sets that were not run, if any."""
    run = {data for data, _ in lines}
    kinds = {"accuracy": "accuracy (%)", "auc": "AUC", "seconds": "time (s or min)"}
    columns = [
        (kind, data, f"{data_title(data)}: {title}")
        for data in table.data
        if data not in run
        for kind, title in kinds.items()
        if printed(kind, data, "fpc")
    ]
    rows = [
        [method_title(system), *(_text(printed(kind, data, system)) for kind, data, _ in columns)]
        for system in table.systems
    ]
    return ["", *(title for _, _, title in columns)], rows if columns else []


def _text(paper: Printed | None) -> str:
    return paper.text if paper else NONE


def tables_markdown(summary: Sequence[Row], level: str = "##") -> list[str]:
    """Return the lines of all tables as Markdown, with what their marks mean."""
    lines = by_pair(summary)
    text: list[str] = []
    for metric in METRICS:
        table = metric_markdown(lines, metric)
        if table:
            text += [f"{level} {metric.title}", "", *table, ""]
    notes = [f"- {mark} {escaped(where)}" for mark, where in footnotes(summary)]
    return [*text, *notes, ""] if notes else text


def plain_table(summary: Sequence[Row], metric: Metric) -> tuple[str, list[str], list[list[str]]]:
    """Return a table for the screen: a title, the heads, and our figures without the paper's."""
    lines = by_pair(summary)
    cells = cells_of(lines, metric)
    sets = list(dict.fromkeys(data for data, _ in cells))
    rows = [
        [
            row_title(method)[0],
            *(f"{cells[data, method].mean}{cells[data, method].mark}" for data in sets),
        ]
        for method in methods_of(lines)
    ]
    return metric.title, ["", *map(data_title, sets)], rows if sets else []
