"""A comparison of systems on real data: which tables of the paper, which rows, what came out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from polysift_paper.algorithm import VARIANTS
from polysift_paper.comparisons.printed import FAST_SYSTEMS, HIGHDIM, MASSIVE, SETS, SYSTEMS, UCI
from polysift_paper.studies.study import Row, Verdict

COLUMNS = (
    "data",
    "method",
    "run",
    "seed",
    "accuracy",
    "auc",
    "search_seconds",
    "fit_seconds",
    "predict_seconds",
    "peak_mb",
    "clock",
    "params",
    "status",
)
"""What a row of a comparison holds: one system on one data set in one run."""

FIGURES = ("accuracy", "auc", "search_seconds", "fit_seconds", "predict_seconds", "peak_mb")
"""Those of the columns that are figures, or None where there is none."""

MEASURED = COLUMNS[4:]
"""What is measured: all but which row it is."""

CLOCKS = ("processor", "wall")
"""What seconds are of: the processor, on one thread, or all that passed, on all cores or in older
rows. Averages take one kind alone, the former if there is any."""

FPC_ROWS = {name: variant.title for name, variant in VARIANTS.items()}
"""FPC in three settings; the first of them, the text, counts as the paper's system."""

OURS = {
    "polysift": "polysift",
    "polysift_auc": "polysift (AUC)",
    "polysift_plain": "polysift, plain",
    "lightgbm": "LightGBM",
}
"""What the paper does not have."""

METHODS = {**SYSTEMS, **FPC_ROWS, **OURS}

DRAWN_FOR = {"susy_shape": "susy", "higgs_shape": "higgs"}
"""Drawn data, and the set of the paper whose size they have: they stand for its times alone."""

REVERSED = {"susy_shape": 0.2, "higgs_shape": 0.34}
"""The share of reversed labels in drawn data, near the errors that the paper prints for the sets.
All other labels follow a rule, so that no classifier errs less: this is Bayes's error."""

DATA = {
    **SETS,
    "higgs_11k": "HIGGS, 11k rows",
    "susy_shape": "size of SUSY",
    "higgs_shape": "size of HIGGS",
    "gisette_like": "made as Gisette",
    "covtype_binary": "covtype, not in the paper",
}

KINDS = {"ok": "", "limited": "†", "absent": "¶", "over limit": "‡", "failed": "§"}
"""The kinds of a status, from the best to the worst, and the marks they leave in tables."""

ANSWERS = {True: "holds", False: "does not hold", None: "cannot be settled"}


@dataclass(frozen=True)
class ComparisonTable:
    """A comparison of the paper.

    Attributes
    ----------
    name : str
        What a user types, and the folder of the results.
    title : str
        A line.
    source : str
        Where in the paper it is.
    data : tuple of str
        The data sets of the paper.
    systems : tuple of str
        The systems of the paper, FPC included.
    """

    name: str
    title: str
    source: str
    data: tuple[str, ...]
    systems: tuple[str, ...]

    @property
    def page(self) -> str:
        """The name of its page among the documents, without the ending."""
        return f"comparison-{self.name}"


COMPARISONS = {
    "uci": ComparisonTable(
        "uci",
        "Nine UCI data sets, ten systems: beside the paper",
        "Tables II, III and IV, Fig. 13",
        UCI,
        tuple(SYSTEMS),
    ),
    "massive": ComparisonTable(
        "massive", "SUSY and HIGGS: beside the paper", "Table VI", MASSIVE, FAST_SYSTEMS
    ),
    "highdim": ComparisonTable(
        "highdim", "High-dimensional data: beside the paper", "Table VII", HIGHDIM, FAST_SYSTEMS
    ),
}
"""All comparisons, by name."""


@dataclass(frozen=True)
class Finding:
    """What the rows say about one claim.

    Attributes
    ----------
    name : str
        A word or two, for a heading.
    claim : str
        What is checked, with the criterion.
    verdict : Verdict
        Whether it holds, and the numbers.
    """

    name: str
    claim: str
    verdict: Verdict

    @property
    def answer(self) -> str:
        """The verdict in a few words."""
        return ANSWERS[self.verdict.agrees]


@dataclass(frozen=True)
class Picture:
    """A picture of a comparison.

    Attributes
    ----------
    svg, png : bytes
        The picture.
    size : tuple of float
        Its width and height in inches.
    title : str
        A heading.
    words : str
        What it shows, for those who cannot see it.
    caption : str
        How to read it.
    """

    svg: bytes
    png: bytes
    size: tuple[float, float]
    title: str
    words: str
    caption: str


@dataclass(frozen=True)
class Comparison:
    """A comparison that was run.

    Attributes
    ----------
    table : ComparisonTable
        Which one.
    rows : list of dict
        What was measured.
    summary : list of dict
        A line for each data set and method.
    findings : list of Finding
        What follows.
    pictures : dict of Picture
        By the names of their files.
    command : str
        What makes it again.
    runs, seed : int
        How often, and from which base seed.
    notes : tuple of str
        Sentences on the data.
    versions, machine : dict of str
        What made the numbers.
    folder : Path
        Where the files are.
    page : Path
        The page about it.
    """

    table: ComparisonTable
    rows: list[Row]
    summary: list[Row]
    findings: list[Finding]
    pictures: dict[str, Picture]
    command: str
    runs: int
    seed: int
    notes: tuple[str, ...]
    versions: dict[str, str]
    machine: dict[str, str]
    folder: Path
    page: Path


def kind_of(status: str) -> str:
    """Return which of the kinds a status is of; an unknown one counts as failed."""
    return next((kind for kind in KINDS if status.partition(":")[0] == kind), "failed")


def method_title(method: str) -> str:
    """Return a method by its name in the paper."""
    return METHODS.get(method, method)


def data_title(data: str) -> str:
    """Return a data set by its name in the paper."""
    return DATA.get(data, data)
