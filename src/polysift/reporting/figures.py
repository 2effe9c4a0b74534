"""The pictures of a report: SVG in ``data:`` URLs, identical for identical models."""

from __future__ import annotations

import warnings
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from typing import Any

import numpy as np
from sklearn.metrics import auc

from polysift.estimators.classifier import FPCClassifier
from polysift.estimators.search import FPCClassifierCV
from polysift.plots.base import COLOURS, DASHES, INK, dress, load_matplotlib
from polysift.plots.convergence import ConvergenceDisplay, drawable
from polysift.plots.reliability import ReliabilityDisplay
from polysift.plots.search import PARAMETERS, SearchCurveDisplay
from polysift.reporting.page import plain, shortened
from polysift.reporting.style import FONTS
from polysift.training.evaluation import Evaluation

SETTINGS = {
    "svg.fonttype": "none",  # text stays text: the browser has letters that matplotlib lacks
    "svg.hashsalt": "polysift",  # ids that do not change from run to run
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # it comes with matplotlib
    "font.size": 10.0,
    "axes.edgecolor": "#9aa3ad",
    "axes.labelcolor": INK,
    "xtick.color": "#9aa3ad",
    "ytick.color": "#9aa3ad",
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
}
"""Differences from matplotlib's default settings; the user's settings are not used."""

WIDTH_INCHES = 5.2
"""At this width, letters are as large as those of the page, and readable on a phone."""

MAX_NAMED_CURVES = 10
"""Of more classes, those with the smallest areas have a colour and a name in the legend."""

CONVERGENCE_COLUMNS = ("objective", "primal_residual", "dual_residual")


def convergence_picture(model: FPCClassifier) -> str | None:
    """Return the plot of the objective and residuals; None where there is nothing to draw."""
    columns = [model.history_.get(name) for name in CONVERGENCE_COLUMNS]
    if any(column is None for column in columns):
        return None
    if not drawable(np.array(columns, dtype=float)).any():
        return None

    def draw(ax: Any) -> None:
        ConvergenceDisplay(*columns).plot(ax)

    return _picture(draw, 3.7)


def reliability_picture(evaluation: Evaluation, name: str, report: dict[str, Any] | None) -> str:
    """Return the reliability diagram of a data set, with that out of fold where it is known."""
    classes = evaluation.classes
    event = f"class {_label(classes[1])}" if len(classes) == 2 else "the likeliest class"
    found: dict[str, Any] = evaluation.reliability or {}

    def draw(ax: Any) -> None:
        display = ReliabilityDisplay(**found, event=event).plot(ax)
        display.bins_.set_label(f"{_label(name)}, area by weight")
        handles = [display.diagonal_, display.bins_]
        if report is not None:
            bins = report["reliability"]
            style = {"color": COLOURS[1], "ls": "--", "marker": "s", "ms": 4, "lw": 1.2}
            handles += ax.plot(bins["predicted"], bins["observed"], **style, label="out of fold")
        ax.set_title("")
        ax.legend(handles=handles, fontsize=9, loc="upper left")

    return _picture(draw, 4.9)


def roc_picture(sets: dict[str, Evaluation]) -> str | None:
    """Return the ROC curve of each set or, for more than two classes, those of the last set."""
    last = list(sets.values())[-1]
    curves, others = _curves_of_sets(sets) if len(last.classes) == 2 else _curves_of_classes(last)
    if not curves:
        return None

    def draw(ax: Any) -> None:
        ax.plot([0, 1], [0, 1], ":", color=INK, lw=1.0)
        for number, (fpr, tpr) in enumerate(others):
            label = f"the other {len(others)} classes" if number == 0 else None
            ax.plot(fpr, tpr, color="#c4cad0", lw=0.8, label=label)
        for number, (label, fpr, tpr) in enumerate(curves):
            turn = number // len(COLOURS)  # a colour is used again with another dash
            style = {"color": COLOURS[number % len(COLOURS)], "ls": DASHES[(number + turn) % 6]}
            ax.plot(fpr, tpr, **style, label=label, zorder=3)
        dress(ax)
        ax.set(xlim=(-0.01, 1), ylim=(0, 1.01), aspect="equal")
        ax.set(xlabel="false positive rate", ylabel="true positive rate")
        if len(ax.lines) <= 7:
            ax.legend(fontsize=9, loc="lower right")
        else:
            _legend_below(ax, *ax.get_legend_handles_labels())

    return _picture(draw, 4.9 if len(curves) <= 6 else 6.0)


def _curves_of_sets(sets: dict[str, Evaluation]) -> tuple[list[Any], list[Any]]:
    """Return the labelled curve of each data set that has one, and no further curves."""
    known = {name: found for name, found in sets.items() if found.roc}
    return [
        (f"{_label(name)}: AUC {found.roc_auc:.4f}", *found.roc[0][1:])
        for name, found in known.items()
    ], []


def _curves_of_classes(found: Evaluation) -> tuple[list[Any], list[Any]]:
    """Return the labelled curves of ``MAX_NAMED_CURVES`` classes, and the curves of the others."""
    areas = [auc(fpr, tpr) for _, fpr, tpr in found.roc]
    order = np.argsort(areas, kind="stable")
    curves = []
    for i in sorted(order[:MAX_NAMED_CURVES]):
        name, fpr, tpr = found.roc[i]
        is_number = name.lstrip("-").replace(".", "").isdigit()
        label = _label(f"class {name}" if is_number else name, 20)
        curves.append((f"{label}: {areas[i]:.4f}", fpr, tpr))
    return curves, [found.roc[i][1:] for i in order[MAX_NAMED_CURVES:]]


def search_pictures(search: FPCClassifierCV) -> dict[str, str]:
    """Return the validation curve over each parameter that has more than one value."""
    results = search.cv_results_
    seen = np.flatnonzero(~np.isnan(results["mean_test_score"]))  # a time limit may leave some
    tried = [results["params"][i] for i in seen]
    pictures = {}
    for param in PARAMETERS:
        if len({params[param] for params in tried}) > 1:
            pictures[param] = _picture(partial(_draw_search, search, param), 4.9)
    return pictures


def _draw_search(search: FPCClassifierCV, param: str, ax: Any) -> None:
    SearchCurveDisplay.from_estimator(search, param, ax=ax)
    ax.set_title("")
    legend = ax.get_legend()
    labels = [text.get_text().replace("\n", " ") for text in legend.get_texts()]
    legend.remove()
    _legend_below(ax, legend.legend_handles, labels)


def _legend_below(ax: Any, handles: Any, labels: Any) -> None:
    """Put a legend below the axes, where it hides no line."""
    options = {"loc": "outside lower center", "ncols": 2, "fontsize": 8.6}
    ax.figure.legend(handles, labels, **options)


def _label(name: Any, length: int = 32) -> str:
    """Return a name as text for matplotlib: shortened, and without special meanings."""
    text = shortened(plain(name), length).replace("$", r"\$")  # a dollar sign would begin a formula
    return f" {text}" if text.startswith("_") else text  # which a legend leaves out


def _picture(draw: Callable[[Any], None], height: float) -> str:
    """Return what ``draw`` draws on axes as a ``data:`` URL."""
    return figure_address(lambda figure: draw(figure.subplots()), WIDTH_INCHES, height)


def figure_address(draw: Callable[[Any], Any], width: float, height: float) -> str:
    """Return what ``draw`` draws on a figure of this size as a ``data:`` URL."""
    with _look():
        figure = load_matplotlib("figure").Figure(figsize=(width, height), layout="constrained")
        draw(figure)
        out = BytesIO()
        # Without the time and matplotlib's version, which would make files differ.
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    svg = out.getvalue().decode()
    svg = svg.replace("'DejaVu Sans'", FONTS)  # laid out in the one, shown in the page's fonts
    return "data:image/svg+xml;base64," + b64encode(svg.encode()).decode()


@contextmanager
def _look() -> Iterator[None]:
    """Draw with the report's settings, and restore the user's afterwards."""
    style = load_matplotlib("style")
    with warnings.catch_warnings(), style.context(["default", SETTINGS]):
        # A letter that matplotlib's font lacks is drawn by the browser.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        yield
