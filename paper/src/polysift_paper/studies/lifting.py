"""The motivation's Figs. 1 and 3: what more dimensions do for a separation, in pictures of ours.

Fig. 1 shows that a feature map makes classes linearly separable. Fig. 3 shows that one dimension
more can give a margin to classes that are separable without one. Both are measured by linear SVMs
that admit hardly any error.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.svm import SVC

from polysift.plots.base import COLOURS
from polysift.runtime.types import FloatArray, IntArray
from polysift_paper.studies.averages import average, seeds
from polysift_paper.studies.pictures import name_axes, new_figure
from polysift_paper.studies.study import Row, Study, Verdict

ROWS = 200
GAP = 0.01
"""The distance of the two classes of Fig. 3 in the plane."""

STRICT = 1e6
"""C of an SVM that admits hardly any error."""

MUCH = 5.0
"""From which factor on a margin counts as one that was gained."""


def ring(seed: int) -> tuple[FloatArray, IntArray]:
    """Draw a disc and a ring around it: no line separates them."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(ROWS) < ROWS // 2, 1, -1)
    radius = np.where(y > 0, 0.5 * np.sqrt(rng.random(ROWS)), rng.uniform(0.65, 1.0, ROWS))
    angle = rng.uniform(0, 2 * np.pi, ROWS)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), y


def strips(seed: int) -> tuple[FloatArray, IntArray]:
    """Draw two classes on both sides of a line, almost touching it."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(ROWS) < ROWS // 2, 1, -1)
    height = y * (GAP / 2 + 0.5 * rng.random(ROWS))
    return np.column_stack([rng.uniform(-1, 1, ROWS), height]), y


def lifted(X: FloatArray, which: str) -> FloatArray:
    """Add a third coordinate: the squared radius, or a steep function of the height."""
    more = (X**2).sum(axis=1) if which == "ring" else np.tanh(X[:, 1] / GAP)
    return np.column_stack([X, more])


def measure(cell: Row) -> list[Row]:
    """Separate both problems in two and in three dimensions."""
    rows = []
    for which, draw_rows in (("ring", ring), ("strips", strips)):
        X, y = draw_rows(cell["seed"])
        for dimensions, Z in ((2, X), (3, lifted(X, which))):
            svm = SVC(kernel="linear", C=STRICT if which == "strips" or dimensions == 3 else 1.0)
            svm.fit(Z, y)
            error = float(np.mean(svm.predict(Z) != y))
            margin = float(2 / np.linalg.norm(svm.coef_)) if error == 0 else 0.0
            rows.append({"problem": which, "dimensions": dimensions, "error": error})
            rows[-1]["margin"] = margin
    return rows


def summarise(rows: list[Row]) -> list[Row]:
    """Return averages for each problem and number of dimensions."""
    return average(rows, ("problem", "dimensions"), ("error", "margin"))


def draw(_summary: list[Row], _rows: list[Row]) -> Any:
    """Draw both problems in the plane and lifted, seen from the side."""
    figure, axes = new_figure(2, 2)
    panels = (
        ("ring", ring, "(a) Fig. 1: no line separates", "(b) ... a third coordinate does"),
        ("strips", strips, "(c) Fig. 3: separable, no margin", "(d) ... a margin in the third"),
    )
    for row, (which, draw_rows, flat, high) in zip(axes, panels, strict=True):
        X, y = draw_rows(0)
        Z = lifted(X, which)
        third = "squared radius" if which == "ring" else "tanh(height / 0.01)"
        for ax, pair, names, title in (
            (row[0], X, ("$x(1)$", "$x(2)$"), flat),
            (row[1], Z[:, [0, 2]], ("$x(1)$", third), high),
        ):
            for sign, colour in ((-1, COLOURS[0]), (1, COLOURS[1])):
                ax.scatter(*pair[y == sign].T, s=12, color=colour, zorder=3)
            name_axes(ax, *names, title)
    return figure


def judge(summary: list[Row], _rows: list[Row]) -> Verdict:
    """Ask for a separation that is gained, and for a margin that is."""
    ring2, ring3, strips2, strips3 = summary
    gained = strips3["margin"] / max(strips2["margin"], 1e-12)
    agrees = ring2["error"] > 0.1 and ring3["error"] == 0 and gained > MUCH
    text = (
        f"A disc in a ring, {ROWS} rows: the best line errs on {ring2['error']:.0%} of the rows, a "
        f"plane in three dimensions on {ring3['error']:.0%}, with a margin of "
        f"{ring3['margin']:.2f}. Two strips at a distance of {GAP}: the margin is "
        f"{strips2['margin']:.4f} in two dimensions and {strips3['margin']:.2f} in three, "
        f"{gained:.0f} times as wide. The paper's pictures have no numbers; these are ours."
    )
    return Verdict(agrees, text)


STUDIES: tuple[Study, ...] = (
    Study(
        name="lifting",
        title="More dimensions: separation, and margins",
        figure="Figs. 1 and 3",
        claim=(
            "A feature map makes classes linearly separable that are not so before (Fig. 1), and "
            "one dimension more can give a margin to classes that are separable without one "
            "(Fig. 3)."
        ),
        runs=20,
        cells=seeds,
        measure=measure,
        summarise=summarise,
        draw=draw,
        judge=judge,
    ),
)
