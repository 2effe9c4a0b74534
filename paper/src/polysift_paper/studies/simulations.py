"""All studies, and how to run some of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from polysift_paper.studies import (
    centers,
    degrees,
    lifting,
    margins,
    noise,
    parameters,
    scaling,
    solvers,
    stopping,
    symmetric,
    theory_convergence,
    theory_dual,
    theory_rank,
    theory_rate,
    toy,
)
from polysift_paper.studies.results import MEASUREMENTS, Outcome, read_table, write_results
from polysift_paper.studies.runner import adopt, run_study, study_folder
from polysift_paper.studies.study import Row, Study

MODULES = (
    margins,
    toy,
    stopping,
    parameters,
    degrees,
    centers,
    noise,
    solvers,
    scaling,
    theory_rank,
    theory_convergence,
    theory_rate,
)
"""In the order of the pages."""

MORE_MODULES = (symmetric, theory_dual, lifting)
"""A page of their own."""

ALL, MORE = "all", "more"


def studies() -> dict[str, Study]:
    """Return all studies by name: the motivation, the paper's six, and those beside them."""
    return {study.name: study for module in MODULES for study in module.STUDIES} | more_studies()


def more_studies() -> dict[str, Study]:
    """Return those of the studies that have another page, by name."""
    return {study.name: study for module in MORE_MODULES for study in module.STUDIES}


def chosen(names: Sequence[str]) -> list[Study]:
    """Return the studies of these names, in their own order.

    "all" is all of the first page, "more" all of the second, and "theory" those whose names begin
    with it.
    """
    known = studies()
    groups = list(dict.fromkeys(name.partition("-")[0] for name in known if "-" in name))
    unknown = [name for name in names if name not in (*known, *groups, ALL, MORE)]
    if unknown:
        there = ", ".join((*known, *groups))
        raise ValueError(
            f"There is no study {', '.join(unknown)}; there are {there}, {ALL} and {MORE}."
        )
    wanted = set(names)
    wanted |= set(known) - set(more_studies()) if ALL in names else set()
    wanted |= set(more_studies()) if MORE in names else set()
    return [study for name, study in known.items() if wanted & {name, name.partition("-")[0]}]


def continue_from(
    study: Study, folder: Path, earlier: Path, *, runs: int | None = None, seed: int = 0
) -> int:
    """Take what an earlier run of a study has measured; return of how many cells.

    Parameters
    ----------
    study : Study
        Which one.
    folder : Path
        Where results are kept.
    earlier : Path
        The folder of the earlier results; the study has a folder of its own in it, or none.
    runs : int, optional
        How often; the paper's number by default.
    seed : int, default=0
        The base seed.
    """
    path = study_folder(study, earlier) / MEASUREMENTS
    if not path.exists():
        return 0
    rows = read_table(path.read_text(encoding="utf-8"))
    indices: dict[tuple[str, ...], dict[tuple[str, ...], list[Row]]] = {}

    def found(cell: Row) -> list[Row] | None:
        names = tuple(cell)
        if names not in indices:
            indices[names] = _by_entries(rows, names)
        return indices[names].get(tuple(map(str, cell.values())))

    return adopt(study, study.runs if runs is None else runs, folder, found, seed=seed)


def _by_entries(rows: list[Row], names: tuple[str, ...]) -> dict[tuple[str, ...], list[Row]]:
    """Return the measurements of each cell, without the cell, by its entries as text."""
    found: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        key = tuple(str(row.get(name)) for name in names)
        found.setdefault(key, []).append(
            {k: row[k] for k in row if k not in names and row[k] is not None}
        )
    return found


def reproduce(
    study: Study,
    folder: Path,
    *,
    runs: int | None = None,
    seed: int = 0,
    jobs: int = 1,
    show: bool = False,
    done_only: bool = False,
) -> Outcome:
    """Run a study as far as it is not done, and write its files.

    Parameters
    ----------
    study : Study
        Which one.
    folder : Path
        Where results are kept.
    runs : int, optional
        How often; the paper's number by default.
    seed : int, default=0
        The base seed.
    jobs : int, default=1
        Processes.
    show : bool, default=False
        Whether to show progress on standard error.
    done_only : bool, default=False
        Whether to run nothing, and to write about what is there.

    Returns
    -------
    Outcome
        The verdict, the summary and the picture.
    """
    runs = study.runs if runs is None else runs
    rows = run_study(study, runs, folder, seed=seed, jobs=jobs, show=show, done_only=done_only)
    if not rows:
        raise FileNotFoundError(
            f"Nothing of {study.name} is finished in {folder}. Run it without --done first."
        )
    if done_only:
        runs = len({row["run"] for row in rows}) if "run" in rows[0] else runs
    return write_results(study, rows, folder, runs=runs, seed=seed)
