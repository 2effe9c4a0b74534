"""Proposition 1: almost any centers span all polynomials, shown by exact arithmetic."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np

from polysift.features.centers import uniform_centers
from polysift.runtime.types import FloatArray, IntArray
from polysift_paper.studies.averages import average, column, seeds, where
from polysift_paper.studies.pictures import legend, line, name_axes, new_figure
from polysift_paper.studies.study import Row, Study, Verdict

DIMENSIONS = (2, 3)
DEGREES = tuple(range(1, 11))
PRIME = 2**31 - 1
"""Products of two remainders fit into 64 bits."""

BITS = 53
"""A float64 in [0, 1) that numpy draws is a whole number over 2^53."""


def kernel_modulo(centers: FloatArray, degree: int) -> IntArray:
    """Return the matrix 2^(106 s) (1 + c_i.c_j)^s modulo a prime, without rounding.

    Parameters
    ----------
    centers : ndarray of shape (n, d)
        Points with coordinates k / 2^53.
    degree : int
        The degree s.

    Returns
    -------
    ndarray of shape (n, n)
        Remainders.
    """
    scaled = np.ldexp(centers, BITS)
    whole = scaled.astype(np.int64)
    if not np.array_equal(whole, scaled):
        raise ValueError("coordinates must be multiples of 2^-53.")
    whole %= PRIME
    base = np.full((len(whole), len(whole)), pow(2, 2 * BITS, PRIME), dtype=np.int64)
    for coordinate in whole.T:
        base = (base + coordinate[:, None] * coordinate) % PRIME
    power = np.ones_like(base)
    for _ in range(degree):
        power = power * base % PRIME
    return power


def rank_modulo(matrix: IntArray) -> int:
    """Return the rank modulo the prime; the rank over the rationals is at least that."""
    rest = np.array(matrix, dtype=np.int64)
    rank = 0
    for j in range(rest.shape[1]):
        pivots = np.flatnonzero(rest[rank:, j])
        if len(pivots) == 0:
            continue
        pivot = rank + int(pivots[0])
        rest[[rank, pivot]] = rest[[pivot, rank]]
        rest[rank, j:] = rest[rank, j:] * pow(int(rest[rank, j]), -1, PRIME) % PRIME
        below = rest[rank + 1 :]
        below[:, j:] = (below[:, j:] - below[:, [j]] * rest[rank, j:] % PRIME) % PRIME
        rank += 1
        if rank == len(rest):
            break
    return rank


def cells(runs: int) -> list[Row]:
    """Return a cell for each draw and dimension."""
    return [{**seed, "dimension": d} for seed in seeds(runs) for d in DIMENSIONS]


def measure(cell: Row) -> list[Row]:
    """Return ranks for all degrees: of uniform centers, and of as many on a line."""
    d = cell["dimension"]
    rows = []
    for degree in DEGREES:
        n = comb(degree + d, degree)
        centers = uniform_centers(np.zeros(d), np.ones(d), n, cell["seed"])
        on_a_line = np.repeat(centers[:, :1], d, axis=1)
        rows.append(
            {
                "degree": degree,
                "centers": n,
                "exact_rank": rank_modulo(kernel_modulo(centers, degree)),
                "float64_rank": int(np.linalg.matrix_rank((1 + centers @ centers.T) ** degree)),
                "line_rank": rank_modulo(kernel_modulo(on_a_line, degree)),
            }
        )
    return rows


def summarise(rows: list[Row]) -> list[Row]:
    """Return averages for each dimension and degree, and the smallest exact rank."""
    by = ("dimension", "degree", "centers")
    lines = average(rows, by, ("exact_rank", "float64_rank", "line_rank"))
    for entry in lines:
        mine = where(rows, dimension=entry["dimension"], degree=entry["degree"])
        entry["exact_rank_min"] = min(column(mine, "exact_rank"))
        del entry["exact_rank_spread"], entry["line_rank_spread"]
    return lines


def draw(summary: list[Row], rows: list[Row]) -> Any:
    """Draw the number of centers with all three ranks, for each dimension."""
    figure, axes = new_figure(1, len(DIMENSIONS))
    for ax, letter, d in zip(axes, "ab", DIMENSIONS, strict=True):
        lines = where(summary, dimension=d)
        degrees = column(lines, "degree")
        line(ax, degrees, column(lines, "exact_rank"), number=0, label="exact: all centers")
        line(
            ax,
            degrees,
            column(lines, "float64_rank"),
            column(lines, "float64_rank_spread"),
            number=1,
            label="as float64 sees it",
        )
        line(ax, degrees, column(lines, "line_rank"), number=2, label="centers on a line")
        ax.set_yscale("log")
        ax.set_xticks(range(2, 11, 2))
        name_axes(ax, "degree $s$", "rank", f"({letter}) $d$ = {d}")
    legend(axes[0], loc="upper left")
    top = max(column(summary, "centers"))
    for ax in axes:
        ax.set_ylim(1.5, 2 * top)
    return figure


def judge(summary: list[Row], rows: list[Row]) -> Verdict:
    """Count the draws of full rank, and check that the method sees a rank that is not full."""
    full = sum(row["exact_rank"] == row["centers"] for row in rows)
    seen = all(row["line_rank"] == row["degree"] + 1 for row in rows)
    top = [where(summary, dimension=d, degree=DEGREES[-1])[0] for d in DIMENSIONS]
    text = (
        f"{full} of {len(rows)} random sets of centers (degrees {DEGREES[0]} to {DEGREES[-1]}, "
        f"d = {' and '.join(map(str, DIMENSIONS))}) have a kernel matrix of full rank modulo the "
        "prime 2^31 - 1, computed without rounding, which proves full rank. Centers on a line, "
        f"which must have rank s + 1, do: {'yes' if seen else 'no'}. In float64 the same matrices "
        f"look singular: at degree {DEGREES[-1]}, "
        + ", ".join(
            f"{e['float64_rank']:.0f} of {e['centers']} for d = {e['dimension']}" for e in top
        )
        + "."
    )
    return Verdict(full == len(rows) and seen, text)


STUDIES: tuple[Study, ...] = (
    Study(
        name="theory-rank",
        title="Random centers span all polynomials",
        figure="Proposition 1",
        claim=(
            "Proposition 1: n = C(s+d, s) centers whose kernel functions do not span all "
            "polynomials of degree s have measure zero, so random centers do with probability one."
        ),
        runs=50,
        cells=cells,
        measure=measure,
        summarise=summarise,
        draw=draw,
        judge=judge,
    ),
)
