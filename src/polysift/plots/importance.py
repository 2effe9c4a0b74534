"""``ImportanceDisplay``: the most important features and pairs of features of a model."""

from __future__ import annotations

from typing import Any

import numpy as np

from polysift.estimators.classifier import FPCClassifier
from polysift.estimators.search import FPCClassifierCV
from polysift.explanation.explain import explain
from polysift.plots.base import COLOURS, Display

DEFAULT_BARS = 15


class ImportanceDisplay(Display):
    """Bars of the most important features, or of the pairs that interact most.

    Use ``from_estimator`` to create one.

    Parameters
    ----------
    names : list of str
        The features or pairs, the most important first.
    values : array-like of shape (n_bars,)
        Their importances.
    label : str, default=""
        The label of the x axis: what the values are.
    title : str, default=""
        The title.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        The axes and their figure.
    bars_ : matplotlib BarContainer
        The bars.

    See Also
    --------
    polysift.explain : Computes what is drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from polysift import FPCClassifier
    >>> from polysift.plots import ImportanceDisplay
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2_000, 3))
    >>> given = {"kernel": "polynomial", "degree": 2, "scaler": None}
    >>> clf = FPCClassifier(**given, random_state=0).fit(X, X[:, 0] * X[:, 1] > 0)
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
        top: int = DEFAULT_BARS,
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
            Draw the mean absolute attributions of features, or the shares of the variance that
            are due to the interactions of pairs.
        top : int, default=15
            The maximum number of bars.
        ax : matplotlib Axes, default=None
            The axes to draw on; None makes a new figure.

        Returns
        -------
        ImportanceDisplay
            The display, drawn.
        """
        if of not in ("features", "pairs"):
            raise ValueError(f'of must be "features" or "pairs"; got {of!r}.')
        found = explain(cls._classifier(estimator), X)
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

    def _figsize(self) -> tuple[float, float]:
        return 6.4, 1.4 + 0.28 * len(self.names)

    def _draw(self, ax: Any) -> None:
        positions = np.arange(len(self.names))
        self.bars_ = ax.barh(positions, self.values, height=0.7, color=COLOURS[0])
        ax.grid(False, axis="y")
        # A dollar sign in a name must not begin a formula.
        ax.set_yticks(positions, [str(name).replace("$", r"\$") for name in self.names])
        ax.invert_yaxis()  # the most important on top
        ax.set(xlabel=self.label, title=self.title)
