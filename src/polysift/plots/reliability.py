"""The display of how reliable a classifier's probabilities are."""

from __future__ import annotations

from typing import Any

import numpy as np

from polysift.estimators.classifier import FPCClassifier
from polysift.estimators.search import FPCClassifierCV, classifier_of
from polysift.plots.base import COLOURS, INK, axes_for, dress

LARGEST_MARKER, SMALLEST_MARKER = 130.0, 8.0
"""Areas in square points, of the heaviest bin and at least."""


class ReliabilityDisplay:
    """How often what was predicted came to pass, on rows that were not seen.

    Use ``from_estimator`` to make one.

    Parameters
    ----------
    predicted, observed, weight : array-like of shape (n_bins,)
        Of each bin of rows: the mean probability, the share of rows in which it came to pass, the
        weight of the rows.
    brier_score : float, default=None
        The Brier score, for the legend.
    event : str, default="the class"
        Whose probability it is, for the labels.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    line_ : matplotlib Line2D
        The line through the bins.
    bins_ : matplotlib PathCollection
        The markers of the bins, their areas proportional to the weights.
    diagonal_ : matplotlib Line2D
        Where probabilities are right.

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
    >>> len(display.predicted)
    10
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
            Where to draw; None makes a figure.

        Returns
        -------
        ReliabilityDisplay
            The display, drawn.

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> from polysift import FPCClassifier
        >>> from polysift.datasets import make_bayes_curve
        >>> from polysift.plots import ReliabilityDisplay
        >>> X, y = make_bayes_curve(1_000, noise=0.1, random_state=0)
        >>> clf = FPCClassifier(calibration="isotonic", random_state=0).fit(X, y)
        >>> display = ReliabilityDisplay.from_estimator(clf, ax=Figure().subplots())
        >>> display.ax_.get_xlabel()
        'predicted probability of class 1'
        """
        model = classifier_of(f"{cls.__name__} draws", estimator)
        if not hasattr(model, "calibration_report_"):
            raise ValueError(
                f"This {type(estimator).__name__} is not calibrated, so it has no probabilities to "
                'draw. Set calibration="sigmoid" or calibration="isotonic", and fit again.'
            )
        report, classes = model.calibration_report_, model.classes_
        event = f"class {classes[1]}" if len(classes) == 2 else "the likeliest class"
        bins = report["reliability"]
        return cls(**bins, brier_score=report["brier_score"], event=event).plot(ax)

    def plot(self, ax: Any = None) -> ReliabilityDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        ReliabilityDisplay
            The display.

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> from polysift.plots import ReliabilityDisplay
        >>> display = ReliabilityDisplay([0.1, 0.9], [0.2, 0.8], [50, 50], event="rain")
        >>> display.plot(Figure().subplots()).ax_.get_xlabel()
        'predicted probability of rain'
        """
        self.ax_ = ax = axes_for(ax, figsize=(5.0, 5.0))
        self.figure_ = ax.figure
        weight = np.asarray(self.weight, dtype=float)
        sizes = np.maximum(LARGEST_MARKER * weight / weight.max(), SMALLEST_MARKER)
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
            clip_on=False,  # bins at 0 and 1 are whole
        )
        dress(ax)
        ax.set(
            xlim=(0, 1),
            ylim=(0, 1),
            aspect="equal",
            xlabel=f"predicted probability of {self.event}",
            ylabel=f"observed share of {self.event}",
            title="Reliability on rows not seen",
        )
        ax.legend(fontsize="small", framealpha=0.9)
        return self
