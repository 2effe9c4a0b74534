"""The plan of a comparison: which systems run on which data sets, how often, and how."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from polysift.datasets import UCI, available, load
from polysift.datasets.catalogue import find_entry
from polysift_paper.comparisons.case import MADE, SHAPES
from polysift_paper.comparisons.comparison import COLUMNS, COMPARISONS, MEASURED, kind_of
from polysift_paper.comparisons.trial import measure
from polysift_paper.studies.runner import adopt, run_study
from polysift_paper.studies.study import Row

OURS = ("fpc_demo", "fpc_print", "polysift", "polysift_auc", "polysift_plain", "lightgbm")
"""Systems beside the paper's ten, and FPC in other settings than the text has."""

STAND_INS = {
    "susy": ("susy_shape",),
    "higgs": ("higgs_11k", "higgs_shape"),
    "gisette": ("gisette_like",),
}
"""What is run in place of sets that are not at hand: a sample for the accuracy and drawn numbers of
the same shape for the time, or one that is made as the set was."""

BESIDE = {"highdim": ("covtype_binary",)}
"""Sets that the paper does not have, for those who ask for them by name."""

_WIDE = ("gisette", "gisette_like", "mnist38", "dogs_vs_cats", *BESIDE["highdim"])
_RANGES = {
    ("susy", "susy_shape"): range(1500, 1701, 20),
    ("higgs", "higgs_11k", "higgs_shape"): range(300, 501, 20),
    _WIDE: range(200, 2001, 200),
}
SIZES = {name: list(sizes) for names, sizes in _RANGES.items() for name in names}
"""The numbers of centers that the paper's FPC chooses from, where they are not one per degree."""


@dataclass(frozen=True)
class Trials:
    """Systems on data sets, to be run.

    Attributes
    ----------
    name : str
        Of the comparison.
    data, methods : tuple of str
        Their names.
    runs : int
        How often; the seed of a run is its number.
    grid : {"quick", "coarse", "full"}
        How many candidates a method has.
    limit : float or None
        Seconds for a candidate.
    rows : int or None
        Training rows at most.
    parallel : bool
        Whether cells may run beside one another, each on one thread; else each has all cores.
    notes : tuple of str
        What is to be said about the data.
    """

    name: str
    data: tuple[str, ...]
    methods: tuple[str, ...]
    runs: int
    grid: str = "coarse"
    limit: float | None = None
    rows: int | None = None
    parallel: bool = True
    notes: tuple[str, ...] = field(default=(), compare=False)
    measure: Callable[[Row], list[Row]] = measure

    def cells(self, runs: int) -> list[Row]:
        """Return all cells, the first runs first: what was stopped early has whole runs."""
        settings = {
            "grid": self.grid,
            "limit": self.limit,
            "rows": self.rows,
            "threads": 1 if self.parallel else None,
        }
        return [
            {"data": data, "method": method, "run": run, "seed": run, "sizes": SIZES.get(data)}
            | settings
            for run in range(runs)
            for data in self.data
            for method in self.methods
        ]


DEFAULTS: dict[str, dict[str, Any]] = {
    "uci": {"runs": 20, "limit": 30.0},
    "massive": {"runs": 1, "limit": 600.0, "parallel": False},
    "highdim": {"runs": 5, "limit": 60.0},
}
"""How comparisons are run. The limits are ours: without them, libsvm takes days."""

QUICK: dict[str, Any] = {"runs": 2, "limit": 10.0, "grid": "quick"}
QUICK_ROWS = {"massive": 50_000, "highdim": 2_000}
"""Training rows at most, for a first look."""


def plan(
    name: str,
    *,
    data: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    quick: bool = False,
    **settings: Any,
) -> Trials:
    """Return what to run for a comparison of the paper.

    Parameters
    ----------
    name : {"uci", "massive", "highdim"}
        Which one.
    data, methods : sequence of str, optional
        Some of its data sets and systems; all by default, of the data sets those at hand.
    quick : bool, default=False
        Whether to take two runs, few candidates and a low limit, for a first look.
    **settings
        The other entries of ``Trials``, where they are not the default ones; None is the default.

    Returns
    -------
    Trials
        Its notes say what is not at hand, and where the data and the paper disagree.

    Raises
    ------
    ValueError
        If there is no such data set or system, or if none of the data are at hand.
    """
    table = COMPARISONS[name]
    known = [*table.data, *(one for wanted in table.data for one in STAND_INS.get(wanted, ()))]
    beside = BESIDE.get(name, ())
    wanted = _some(data, [*known, *beside], "data set") if data else tuple(table.data)
    systems = _some(methods, [*table.systems, *OURS], "method")
    found, notes = _at_hand(wanted)
    if not found:
        raise ValueError(" ".join(notes))
    notes += [f"{one} is not in the paper." for one in found if one in beside]
    if "lightgbm" in systems and find_spec("lightgbm") is None:  # a failure would be kept
        if methods:
            raise ValueError(f"lightgbm is not installed. {HOW_TO_INSTALL}")
        systems = tuple(name for name in systems if name != "lightgbm")
        notes.append(f"lightgbm is left out: it is not installed. {HOW_TO_INSTALL}")
    defaults = DEFAULTS[name] | (QUICK | {"rows": QUICK_ROWS.get(name)} if quick else {})
    given = {key: value for key, value in settings.items() if value is not None}
    return Trials(name, found, systems, **defaults | given, notes=tuple(notes))


def uci_sets(data: Sequence[str] | None = None) -> tuple[tuple[str, ...], list[str]]:
    """Return those of the nine data sets, or of some of them, that are at hand, and the notes."""
    found, notes = _at_hand(_some(data, UCI, "data set"))
    if not found:
        raise ValueError(" ".join(notes))
    return found, notes


def _some(names: Sequence[str] | None, known: Sequence[str], what: str) -> tuple[str, ...]:
    """Return the chosen ones of the known names, in their own order; all if none are chosen."""
    names = [_official(name) for name in names or ()]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(
            f"There is no {what} {', '.join(unknown)} here; there are {', '.join(known)}."
        )
    return tuple(name for name in known if not names or name in names)


def _official(name: str) -> str:
    """Return the name of a data set, if this is one of its other names."""
    try:
        return find_entry(name).name
    except ValueError:
        return name


def _at_hand(wanted: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """Return the data sets at hand, stand-ins included, and what is to be said about them."""
    found: list[str] = []
    notes: list[str] = []
    absent: list[str] = []
    for name in wanted:
        if _is_there(name):
            found.append(name)
            continue
        stand_ins = [one for one in STAND_INS.get(name, ()) if _is_there(one)]
        found += stand_ins
        if stand_ins:
            replaced = " and ".join(stand_ins)
            notes.append(f"{name} is not at hand; in its place there is {replaced}.")
        else:
            absent.append(name)
    if absent:
        notes.append(f"{', '.join(absent)} {'is' if len(absent) == 1 else 'are'} not at hand.")
    if notes:
        notes[-1] += f" {HOW_TO_GET}"
    found = list(dict.fromkeys(found))  # a stand-in may have been asked for, too
    for name in found:
        if name not in SHAPES and name not in MADE:
            notes += [f"{name}: {remark}" for remark in load(name, fetch=False).remarks]
    return tuple(found), notes


def _is_there(name: str) -> bool:
    """Return whether a set is at hand, or can be drawn or made."""
    return name in SHAPES or available(MADE.get(name, name))


HOW_TO_GET = (
    "The environment variable POLYSIFT_DATA names the folder of data; polysift.datasets.load(name) "
    "fetches what is not there, or says how to get it."
)

HOW_TO_INSTALL = "Install it with: pip install lightgbm"


def run(
    trials: Trials,
    folder: Path,
    *,
    seed: int = 0,
    jobs: int = 1,
    show: bool = False,
    done_only: bool = False,
) -> list[Row]:
    """Run what is not done yet, and return a row per data set, system and run, in this order.

    What has failed is tried again: a library may have been installed, or memory freed. With
    ``done_only`` nothing is run.
    """
    rows = run_study(
        trials,
        trials.runs,
        folder,
        seed=seed,
        jobs=jobs,
        show=show,
        again=_has_failed,
        done_only=done_only,
    )
    order = {name: at for at, name in enumerate((*trials.data, *trials.methods))}
    rows.sort(key=lambda row: (order[row["data"]], order[row["method"]], row["run"]))
    return [{name: row[name] for name in COLUMNS} for row in rows]


def continue_from(trials: Trials, folder: Path, measured: Iterable[Row], *, seed: int = 0) -> int:
    """Take the rows of an earlier comparison with the same settings; return how many were new.

    Which settings they had is not in the rows: the candidates and the time limit are for the caller
    to give as they were.
    """
    known = {
        (row["data"], row["method"], row["run"], row["seed"]): row
        for row in measured
        if kind_of(row["status"]) != "failed"
    }

    def found(cell: Row) -> list[Row] | None:
        row = known.get((cell["data"], cell["method"], cell["run"], cell["seed"]))
        return None if row is None else [{name: row[name] for name in MEASURED}]

    return adopt(trials, trials.runs, folder, found, seed=seed)


def _has_failed(rows: list[Row]) -> bool:
    return kind_of(rows[0]["status"]) == "failed"
