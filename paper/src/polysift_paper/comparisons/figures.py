"""The pictures of a comparison, with what to say of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polysift.plots.base import load_matplotlib
from polysift_paper.comparisons.comparison import Picture
from polysift_paper.comparisons.scatter import draw_against_paper, draw_scatter
from polysift_paper.comparisons.summary import Lines, by_pair
from polysift_paper.comparisons.tradeoff import draw_tradeoff
from polysift_paper.studies.results import LOOK, drawn
from polysift_paper.studies.study import Row

PICTURES: dict[str, tuple[Callable[[Lines], Any], str, str, str]] = {
    "scatter": (
        draw_scatter,
        "Against each rival",
        "Accuracy and AUC of FPC and of polysift against those of each rival",
        "Fig. 13 of the paper with the figures of these runs: above FPC, below polysift (tuned "
        "for accuracy on the left, for AUC on the right). Colours are data sets, markers are "
        "rivals; above the dashed line y = x the rival is beaten. Scales are stretched toward a "
        "perfect classifier.",
    ),
    "tradeoff": (
        draw_tradeoff,
        "Accuracy against time",
        "Accuracy against training time of all methods, one panel for each data set",
        "Mean accuracy against mean time. Filled: selection and final fit together; hollow: the "
        "final fit alone. The best place is at the top left. A note in a corner counts methods "
        "that are too far below to be shown.",
    ),
    "paper": (
        draw_against_paper,
        "Our figures against the paper's",
        "Our accuracy against the accuracy that the paper prints, and our FPC against the paper's",
        "Left: all systems of the paper, with y = x dashed; stars are FPC. Right: our FPC minus "
        "the paper's, in the paper's standard deviations where it prints them (the last printed "
        "digit is allowed for); in the band we count it as the same. Beside each mark stands the "
        "difference in points of accuracy, or in AUC.",
    ),
}
"""By the name of the file: the painter, a heading, the words for those who cannot see it, and how
to read it."""


def draw_pictures(summary: Sequence[Row]) -> dict[str, Picture]:
    """Draw all pictures of a comparison.

    Parameters
    ----------
    summary : sequence of dict
        The lines; where there are no figures the panels are empty.

    Returns
    -------
    dict of Picture
        By the names of their files: "scatter", "tradeoff" and "paper".
    """
    lines, found = by_pair(summary), {}
    for name, (paint, title, words, caption) in PICTURES.items():
        with load_matplotlib("style").context(["default", LOOK]):
            drawing = paint(lines)
            svg = drawn(drawing, "svg")
            drawing.set_layout_engine("none")  # all has its place now; to find it takes seconds
            png = drawn(drawing, "png")
        size = tuple(drawing.get_size_inches())
        found[name] = Picture(svg, png, size, title, words, caption)
    return found
