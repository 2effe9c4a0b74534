"""The display of an explanation: which features and pairs matter."""

from __future__ import annotations

from typing import Any

import numpy as np

from polysift.estimators.classifier import FPCClassifier
from polysift.estimators.search import FPCClassifierCV
from polysift.explanation.explain import explain
from polysift.plots.base import COLOURS, axes_for, dress

SHOWN = 15


class ImportanceDisplay:
    """Bars of the most important features, or of the pairs that interact most.

    Use ``from_estimator`` to make one.

    Parameters
    ----------
    names : list of str
        The features, or the pairs, the most important first.
    values : array-like of shape (n_bars,)
        How important they are.
    label : str, default=""
        What the values are.
    title : str, default=""
        The title.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    bars_ : matplotlib BarContainer
        The bars.

    See Also
    --------
    polysift.explain : What is drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from polysift import FPCClassifier
    >>> from polysift.plots import ImportanceDisplay
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2_000, 3))
    >>> clf = FPCClassifier(2, scaler=None, random_state=0).fit(X, X[:, 0] * X[:, 1] > 0)
    >>> ImportanceDisplay.from_estimator(clf, X, of="pairs", ax=Figure().subplots()).names[0]
    'x0 & x1'
    """

    def __init__(self, names: Any, values: Any, *, label: str = "", title: str = "") -> None:
        self.names = names
        self.values = values
        self.label = label
        self.title = title

    @classmethod
    def from_estimator(
        cls,
        estimator: FPCClassifier | FPCClassifierCV,
        X: Any = None,
        *,
        of: str = "features",
        top: int = SHOWN,
        ax: Any = None,
    ) -> ImportanceDisplay:
        """Draw the importances of a fitted classifier, or of the best one of a search.

        Parameters
        ----------
        estimator : FPCClassifier or FPCClassifierCV
            The classifier or search.
        X : array-like, sparse matrix or DataSource of shape (m, d), default=None
            The reference rows, as in ``polysift.explain``.
        of : {"features", "pairs"}, default="features"
            Whether to draw the mean size of the features' attributions, or the shares of the
            interactions of pairs in the variance.
        top : int, default=15
            How many bars at most.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        ImportanceDisplay
            The display, drawn.

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> from sklearn.datasets import load_iris
        >>> from polysift import FPCClassifier
        >>> from polysift.plots import ImportanceDisplay
        >>> X, y = load_iris(return_X_y=True)
        >>> clf = FPCClassifier(2, random_state=0).fit(X, y)
        >>> display = ImportanceDisplay.from_estimator(clf, X, top=2, ax=Figure().subplots())
        >>> display.ax_.get_title()
        'Features, over 150 rows'
        """
        if of not in ("features", "pairs"):
            raise ValueError(f'of must be "features" or "pairs"; got {of!r}.')
        found = explain(estimator, X)
        title = f"{of.capitalize()}, over {found.reference.name}"
        if of == "features":
            entries = found.features(top)
            names = [entry["feature"] for entry in entries]
            values = [entry["attribution"] for entry in entries]
            label = "mean absolute attribution"
        else:
            entries = found.pairs(top)
            names = [" & ".join(entry["pair"]) for entry in entries]
            values = [entry["share"] for entry in entries]
            label = "share of the score's variance"
        return cls(names, values, label=label, title=title).plot(ax)

    def plot(self, ax: Any = None) -> ImportanceDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        ImportanceDisplay
            The display.

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> from polysift.plots import ImportanceDisplay
        >>> display = ImportanceDisplay(["age", "size"], [0.4, 0.1]).plot(Figure().subplots())
        >>> [float(bar.get_width()) for bar in display.bars_]
        [0.4, 0.1]
        """
        places = np.arange(len(self.names))
        self.ax_ = ax = axes_for(ax, figsize=(6.4, 1.4 + 0.28 * len(places)))
        self.figure_ = ax.figure
        self.bars_ = ax.barh(places, self.values, height=0.7, color=COLOURS[0])
        dress(ax)
        ax.grid(False, axis="y")
        # No dollar in a name begins a formula.
        ax.set_yticks(places, [str(name).replace("$", r"\$") for name in self.names])
        ax.invert_yaxis()  # the most important on top
        ax.set(xlabel=self.label, title=self.title)
        return self
