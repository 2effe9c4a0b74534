"""What displays share: matplotlib, imported late, and one look.

Colours are those of Okabe and Ito, which all eyes can tell apart; for print each line has a marker
and a dash of its own. matplotlib's settings stay as they are.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from sklearn.utils.validation import check_is_fitted

from polysift.classifier import FPCClassifier
from polysift.search import FPCClassifierCV

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Okabe and Ito's, but for the yellow, which is too light for a line on white."""

MARKERS = ("o", "s", "^", "D", "v", "P")

DASHES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)), (0, (8, 2)))

STYLES = tuple(zip(COLOURS, MARKERS, DASHES, strict=True))

INK, GREY = "#333333", "#777777"

DECADE = 10.0

FEW_POINTS = 30
"""Up to so many points of a line get markers; beyond they would hide it."""

WHOLE_NUMBERS = {"integer": True, "steps": [1, 2, 5, 10], "min_n_ticks": 1}
"""Ticks at whole numbers; where only one is in sight, there alone."""


def load_matplotlib(module: str) -> Any:
    """Return a module of matplotlib, or say how to install it."""
    try:
        return import_module(f"matplotlib.{module}")
    except ImportError as error:
        raise ImportError(
            "Displays need matplotlib. Install it with: pip install 'polysift[plots]'"
        ) from error


def axes_for(ax: Any, figsize: tuple[float, float] | None = None) -> Any:
    """Return the given axes, or those of a new figure."""
    if ax is not None:
        return ax
    return load_matplotlib("pyplot").subplots(layout="constrained", figsize=figsize)[1]


def dress(ax: Any) -> None:
    """Give axes the look that all displays share."""
    ax.grid(True, color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def check_type(display: type, estimator: Any, *kinds: type) -> None:
    """Raise unless an estimator is of one of these kinds."""
    if isinstance(estimator, kinds):
        return
    hint = " Of a pipeline pass its last step, pipeline[-1]." if hasattr(estimator, "steps") else ""
    is_class = isinstance(estimator, type)
    came = f"the class {estimator.__name__}" if is_class else type(estimator).__name__
    raise TypeError(
        f"{display.__name__} draws a fitted {' or '.join(kind.__name__ for kind in kinds)}; got "
        f"{came}.{hint}"
    )


def model_of(display: type, estimator: Any) -> FPCClassifier:
    """Return a fitted classifier: the given one, or the best of a search."""
    check_type(display, estimator, FPCClassifier, FPCClassifierCV)
    if isinstance(estimator, FPCClassifier):
        check_is_fitted(estimator, "history_")
        return estimator
    check_is_fitted(estimator, "cv_results_")
    if not hasattr(estimator, "best_estimator_"):
        raise ValueError(
            f"{display.__name__} draws the refitted classifier of a search, but refit=False made "
            "none. Set refit=True, or fit FPCClassifier(**search.best_params_) and pass that."
        )
    return estimator.best_estimator_


def number_text(value: float) -> str:
    """Return a number as short as people write it: 1e-6, not 1e-06."""
    return f"{value:g}".replace("e-0", "e-")
