"""Simulations 1 to 4 once more, with columns in [-1, 1] instead of [0, 1].

The authors' program has that range as a comment beside the other. The claims, the criteria and the
rows are the same; only the coordinates differ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from polysift_paper.studies import degrees, parameters, stopping
from polysift_paper.studies.study import Row, Study
from polysift_paper.studies.toy import SYMMETRIC


def in_range(cells: Callable[[int], list[Row]], runs: int) -> list[Row]:
    """Return cells with the range in each."""
    return [{**cell, "range": SYMMETRIC} for cell in cells(runs)]


STUDIES: tuple[Study, ...] = tuple(
    replace(
        study,
        name=f"symmetric-{study.name}",
        title=f"{study.title}: columns in [-1, 1]",
        figure=f"simulation {study.name}, {study.figure}",
        cells=partial(in_range, study.cells),
    )
    for module in (stopping, parameters, degrees)
    for study in module.STUDIES
)
