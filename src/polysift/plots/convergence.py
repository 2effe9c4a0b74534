"""``ConvergenceDisplay``: the objective and the residuals of a fit by iteration."""

from __future__ import annotations

from typing import Any

import numpy as np

from polysift.estimators.classifier import FPCClassifier
from polysift.estimators.search import FPCClassifierCV
from polysift.losses import HINGE, loss_of, solver_and_loss
from polysift.plots.base import (
    COLOURS,
    DASHES,
    LOG_SCALE_RATIO,
    MARKERS,
    MAX_MARKED_POINTS,
    WHOLE_NUMBERS,
    Display,
    dress,
    load_matplotlib,
)
from polysift.runtime.types import BoolArray, FloatArray, IntArray


class ConvergenceDisplay(Display):
    """The objective and both residuals of a fit, iteration by iteration.

    Use ``from_estimator`` to create one.

    Parameters
    ----------
    objective, primal_residual, dual_residual : array-like of shape (n_iter,)
        As in ``FPCClassifier.history_``. Iterations with a NaN are left out, and so is a residual
        that is NaN throughout: solver "newton" has no primal one.
    title : str, default=""
        The title.
    loss : str, default="hinge"
        The name of the loss whose mean is the objective.

    Attributes
    ----------
    ax_, residual_ax_ : matplotlib Axes
        The axes of the objective and those of the residuals, on the right; both have the same
        iterations.
    figure_ : matplotlib Figure
        The figure.
    objective_line_, primal_line_, dual_line_ : matplotlib Line2D
        The lines. The line of a residual that is NaN throughout is empty, and not in the legend.
        Residuals of exactly 0, which a log scale cannot show, are left out.

    See Also
    --------
    FPCClassifier : Its ``history_`` is drawn.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from polysift import PAPER, FPCClassifier
    >>> from polysift.datasets import make_bayes_curve
    >>> from polysift.plots import ConvergenceDisplay
    >>> X, y = make_bayes_curve(1_000, noise=0.1, random_state=0)
    >>> clf = FPCClassifier(**PAPER, random_state=0).fit(X, y)
    >>> display = ConvergenceDisplay.from_estimator(clf, ax=Figure().subplots())
    >>> display.ax_.get_title()
    'Convergence: solver "paper", 3 iterations (tolerance)'
    """

    def __init__(
        self,
        objective: Any,
        primal_residual: Any,
        dual_residual: Any,
        *,
        title: str = "",
        loss: str = HINGE.name,
    ) -> None:
        self.objective = objective
        self.primal_residual = primal_residual
        self.dual_residual = dual_residual
        self.title = title
        self.loss = loss

    @classmethod
    def from_estimator(
        cls, estimator: FPCClassifier | FPCClassifierCV, *, ax: Any = None
    ) -> ConvergenceDisplay:
        """Draw the history of a fitted classifier, or of the best one of a search.

        Parameters
        ----------
        estimator : FPCClassifier or FPCClassifierCV
            The classifier or search.
        ax : matplotlib Axes, default=None
            The axes to draw on; None makes a new figure.

        Returns
        -------
        ConvergenceDisplay
            The display, drawn.
        """
        model = cls._classifier(estimator)
        names = ("objective", "primal_residual", "dual_residual")
        count = f"{model.n_iter_} iteration{'' if model.n_iter_ == 1 else 's'}"
        title = f'Convergence: solver "{solver_and_loss(model)[0]}", {count} ({model.status_})'
        columns, loss = (model.history_[name] for name in names), loss_of(model).name
        return cls(*columns, title=title, loss=loss).plot(ax)

    def _rows(self) -> FloatArray:
        """Return the objective and the residuals, of shape (3, n_iter)."""
        return np.array([self.objective, self.primal_residual, self.dual_residual], dtype=float)

    def _check(self) -> None:
        if not drawable(self._rows()).any():
            raise ValueError(
                "The history holds no iteration without NaN: with tol=0 the paper's solver skips "
                "what the last one does not need. Fit with tol=None, or with more iterations."
            )

    def _draw(self, ax: Any) -> None:
        rows = self._rows()
        known = drawable(rows)
        x, rows = np.flatnonzero(known) + 1, rows[:, known]
        self.residual_ax_ = right = ax.twinx()
        dress(right)
        right.spines["right"].set_visible(True)
        right.grid(False)  # grid lines of both axes do not coincide
        residuals = np.where(rows[1:] > 0, rows[1:], np.nan)
        drawn = (
            (ax, rows[0], "objective"),
            (right, residuals[0], "primal residual"),
            (right, residuals[1], "dual residual"),
        )
        lines = [_line(owner, x, y, label, k) for k, (owner, y, label) in enumerate(drawn)]
        self.objective_line_, self.primal_line_, self.dual_line_ = lines
        if rows[0].min() > 0 and rows[0].max() > LOG_SCALE_RATIO * rows[0].min():
            ax.set_yscale("log")
        if not np.isnan(residuals).all():
            right.set_yscale("log")
        ax.set_xlabel("iteration")
        ax.set_ylabel(f"objective ({self.loss} loss)", color=COLOURS[0])
        ax.tick_params(axis="y", labelcolor=COLOURS[0])  # shows which line belongs to this axis
        right.set_ylabel("residuals (relative)")
        ax.xaxis.set_major_locator(load_matplotlib("ticker").MaxNLocator(**WHOLE_NUMBERS))
        known_lines = [
            line for line, values in zip(lines, rows, strict=True) if not np.isnan(values).all()
        ]
        # Above the axes, since matplotlib's "best" location avoids the lines of one axis only.
        above = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": 3}
        right.legend(handles=known_lines, fontsize="small", **above)
        ax.set_title(self.title, pad=28)


def _line(ax: Any, x: IntArray, y: FloatArray, label: str, number: int) -> Any:
    """Draw one of the lines, in the style with this number."""
    style = {"color": COLOURS[number], "ls": DASHES[number], "markersize": 5}
    marker = MARKERS[number] if len(x) <= MAX_MARKED_POINTS else None
    return ax.plot(x, y, **style, marker=marker, label=label)[0]


def drawable(rows: FloatArray) -> BoolArray:
    """Return which iterations of the objective and both residuals (3, n_iter) are complete.

    A residual that is NaN throughout is one that the solver does not have, and is not asked for;
    at least one residual must be there.
    """
    known = np.asarray(np.isfinite(rows))
    has = np.asarray(known.any(axis=1))
    if not (has[0] and has[1:].any()):
        return np.zeros(rows.shape[1], dtype=bool)
    return np.asarray(known[has].all(axis=0))
