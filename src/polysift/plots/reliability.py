"""``ReliabilityDisplay``: predicted probabilities against observed frequencies."""

from __future__ import annotations

from typing import Any

import numpy as np

from polysift.estimators.classifier import FPCClassifier
from polysift.estimators.search import FPCClassifierCV
from polysift.plots.base import COLOURS, INK, Display

MAX_MARKER_SQUARE_POINTS, MIN_MARKER_SQUARE_POINTS = 130.0, 8.0
"""The area of the marker of the bin with the largest weight, and the least area of a marker."""


class ReliabilityDisplay(Display):
    """The reliability diagram of a classifier's probabilities, on rows it was not fitted to.

    Use ``from_estimator`` to create one.

    Parameters
    ----------
    predicted, observed, weight : array-like of shape (n_bins,)
        For each bin of rows: the mean predicted probability, the observed share of the event, and
        the total weight of the rows.
    brier_score : float, default=None
        The Brier score, for the legend.
    event : str, default="the class"
        The event whose probability it is, for the labels of the axes.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        The axes and their figure.
    line_ : matplotlib Line2D
        The line through the bins.
    bins_ : matplotlib PathCollection
        The markers of the bins, their areas proportional to the weights.
    diagonal_ : matplotlib Line2D
        The diagonal, on which probabilities are perfectly calibrated.

    See Also
    --------
    FPCClassifier : Its ``calibration_report_`` is drawn.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from polysift import FPCClassifier
    >>> from polysift.datasets import make_bayes_curve
    >>> from polysift.plots import ReliabilityDisplay
    >>> X, y = make_bayes_curve(1_000, noise=0.1, random_state=0)
    >>> clf = FPCClassifier(calibration="sigmoid", random_state=0).fit(X, y)
    >>> display = ReliabilityDisplay.from_estimator(clf, ax=Figure().subplots())
    >>> len(display.predicted), display.ax_.get_xlabel()
    (10, 'predicted probability of class 1')
    """

    def __init__(
        self,
        predicted: Any,
        observed: Any,
        weight: Any,
        *,
        brier_score: float | None = None,
        event: str = "the class",
    ) -> None:
        self.predicted = predicted
        self.observed = observed
        self.weight = weight
        self.brier_score = brier_score
        self.event = event

    @classmethod
    def from_estimator(
        cls, estimator: FPCClassifier | FPCClassifierCV, *, ax: Any = None
    ) -> ReliabilityDisplay:
        """Draw the reliability of a calibrated classifier, or of the best one of a search.

        Parameters
        ----------
        estimator : FPCClassifier or FPCClassifierCV
            The classifier or search, fitted with ``calibration``.
        ax : matplotlib Axes, default=None
            The axes to draw on; None makes a new figure.

        Returns
        -------
        ReliabilityDisplay
            The display, drawn.
        """
        model = cls._classifier(estimator)
        if not hasattr(model, "calibration_report_"):
            raise ValueError(
                f"This {type(estimator).__name__} is not calibrated, so it has no probabilities to "
                'draw. Set calibration="sigmoid" or calibration="isotonic", and fit again.'
            )
        report, classes = model.calibration_report_, model.classes_
        event = f"class {classes[1]}" if len(classes) == 2 else "the likeliest class"
        bins = report["reliability"]
        return cls(**bins, brier_score=report["brier_score"], event=event).plot(ax)

    def _figsize(self) -> tuple[float, float]:
        return 5.0, 5.0

    def _draw(self, ax: Any) -> None:
        weight = np.asarray(self.weight, dtype=float)
        sizes = np.maximum(
            MAX_MARKER_SQUARE_POINTS * weight / weight.max(), MIN_MARKER_SQUARE_POINTS
        )
        score = "" if self.brier_score is None else f"\nBrier score {self.brier_score:.4f}"
        (self.diagonal_,) = ax.plot([0, 1], [0, 1], ":", color=INK, label="perfect", zorder=1.5)
        (self.line_,) = ax.plot(self.predicted, self.observed, color=COLOURS[0], lw=1.2)
        self.bins_ = ax.scatter(
            self.predicted,
            self.observed,
            s=sizes,
            color=COLOURS[0],
            edgecolors="white",
            linewidths=0.8,
            label=f"{len(weight)} bins, area by weight{score}",
            zorder=3,
            clip_on=False,  # markers at 0 and 1 are drawn whole
        )
        ax.set(
            xlim=(0, 1),
            ylim=(0, 1),
            aspect="equal",
            xlabel=f"predicted probability of {self.event}",
            ylabel=f"observed share of {self.event}",
            title="Reliability on rows not seen",
        )
        ax.legend(fontsize="small", framealpha=0.9)
