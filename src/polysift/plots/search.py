"""``SearchCurveDisplay``: the best score of a search at each value of a parameter."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from polysift.estimators.search import FPCClassifierCV, check_type
from polysift.plots.base import (
    COLOURS,
    GREY,
    INK,
    STYLES,
    Display,
    load_matplotlib,
    number_text,
    ticks_at,
)
from polysift.runtime.parameters import check_choice
from polysift.runtime.types import FloatArray, IntArray
from polysift.selection.scoring import score_name

PARAMETERS = {
    "degree": "degree of the kernel",
    "n_centers": "number of centers",
    "max_iter": "iterations at most (max_iter)",
    "rho": "rho, relative to trace(G) / n (None: the solver's own)",
}
"""The parameters a search can be drawn over, with the labels of their axes."""


@dataclass(frozen=True)
class Curve:
    """One line of a ``SearchCurveDisplay``.

    Attributes
    ----------
    label : str
        Its name in the legend.
    values : list
        The values of the parameter that occur, ascending; None, which rho may be, comes first.
    scores : ndarray of shape (n_values,)
        The best mean score at each value.
    errors : ndarray of shape (n_values,)
        The standard error of that mean over the splits; NaN where there is one split only.
    finished : ndarray of bool of shape (n_values,)
        Whether the score is that of a finished candidate; if not, no candidate with this value
        was finished.
    """

    label: str
    values: list[Any]
    scores: FloatArray
    errors: FloatArray
    finished: IntArray


def groups_of(candidates: list[dict[str, Any]], names: tuple[str, ...]) -> dict[str, IntArray]:
    """Return the candidates with equal values of these parameters, by their legend label."""
    found: dict[str, list[int]] = {}
    for index, params in enumerate(candidates):
        label = ", ".join(params[name] or f"no {name}" for name in names)
        found.setdefault(label, []).append(index)
    return {label: np.array(indices) for label, indices in found.items()}


def curve_of(results: dict[str, Any], param: str, label: str, members: IntArray) -> Curve:
    """Return the best score at each value among the members, finished candidates first."""
    n_splits = sum(re.fullmatch(r"split\d+_test_score", name) is not None for name in results)
    splits = np.column_stack([results[f"split{k}_test_score"] for k in range(n_splits)])
    finished, means = results["status"] == "finished", results["mean_test_score"]
    best: dict[Any, int] = {}
    for i in members:
        value = results["params"][i][param]
        current = best.get(value)
        if np.isnan(means[i]):  # not run at all
            continue
        if current is None or (finished[i], means[i]) > (finished[current], means[current]):
            best[value] = int(i)
    values = sorted(best, key=order_of)
    chosen = [best[value] for value in values]
    errors = np.array([_standard_error(splits[i]) for i in chosen])
    return Curve(label, values, means[chosen], errors, finished[chosen])


def _standard_error(scores: FloatArray) -> float:
    """Return the standard error of the mean over the splits that were run; NaN for one split."""
    scores = scores[~np.isnan(scores)]
    if len(scores) < 2:
        return float("nan")
    return float(np.std(scores, ddof=1) / np.sqrt(len(scores)))


def order_of(value: Any) -> float:
    """Return the sort key of a value of a parameter; None comes first, then "auto"."""
    if value is None:
        return -np.inf
    return -1.0 if value == "auto" else float(value)


def name_of(value: Any) -> str:
    """Return a value of a parameter as text."""
    return str(value) if value is None or isinstance(value, str) else number_text(value)


class SearchCurveDisplay(Display):
    """The validation curve of a search: the best score at each value of one parameter.

    Use ``from_estimator`` to create one.

    Parameters
    ----------
    curves : list of Curve
        The lines.
    param : {"degree", "n_centers", "max_iter", "rho"}
        The parameter.
    score_name : str, default="accuracy"
        The name of the score.
    chosen : tuple of a value and a score, default=None
        The value of the parameter and the score of the chosen candidate.
    n_splits : int, default=None
        The number of splits, for the legend.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        The axes and their figure.
    lines_ : list of matplotlib Line2D
        One per curve.
    bands_ : list of matplotlib PolyCollection or ErrorbarContainer
        One standard error on either side of each curve: a band, or a bar where the curve is a
        point; empty with one split.
    screened_ : list of matplotlib Line2D
        The open markers, of each curve that has any.
    chosen_ : matplotlib Line2D or None
        The marker of the chosen candidate.

    See Also
    --------
    FPCClassifierCV : The search.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from polysift import FPCClassifierCV
    >>> from polysift.datasets import make_bayes_curve
    >>> from polysift.plots import SearchCurveDisplay
    >>> X, y = make_bayes_curve(1_000, noise=0.1, random_state=0)
    >>> search = FPCClassifierCV((1, 2, 3), solvers="paper", random_state=0).fit(X, y)
    >>> display = SearchCurveDisplay.from_estimator(search, "degree", ax=Figure().subplots())
    >>> [curve.label for curve in display.curves]
    ['minmax, paper', 'quantile, paper']
    """

    lines_: list[Any]
    bands_: list[Any]
    screened_: list[Any]
    chosen_: Any

    def __init__(
        self,
        curves: list[Curve],
        *,
        param: str,
        score_name: str = "accuracy",
        chosen: tuple[Any, float] | None = None,
        n_splits: int | None = None,
    ) -> None:
        self.curves = curves
        self.param = param
        self.score_name = score_name
        self.chosen = chosen
        self.n_splits = n_splits

    @classmethod
    def from_estimator(
        cls,
        estimator: FPCClassifierCV,
        param: str = "degree",
        *,
        by: str | None = None,
        ax: Any = None,
    ) -> SearchCurveDisplay:
        """Draw the curve of a fitted search.

        A point is the best mean score of all finished candidates with this value, whatever their
        other parameters. Where none was finished, it is the best score when they were stopped,
        with an open marker: a finished candidate might have done better.

        Parameters
        ----------
        estimator : FPCClassifierCV
            The search.
        param : {"degree", "n_centers", "max_iter", "rho"}, default="degree"
            The parameter.
        by : {"scaler", "solver", None}, default=None
            The parameter with one line for each of its values. None is scaler and solver
            together, or the scaler alone where they would make more lines than there are colours.
        ax : matplotlib Axes, default=None
            The axes to draw on; None makes a new figure.

        Returns
        -------
        SearchCurveDisplay
            The display, drawn.
        """
        check_type(f"{cls.__name__} draws", estimator, FPCClassifierCV)
        check_choice("param", param, tuple(PARAMETERS))
        check_choice("by", by, ("scaler", "solver", None))
        check_is_fitted(estimator, "cv_results_")
        results = estimator.cv_results_
        groups = groups_of(results["params"], ("scaler", "solver") if by is None else (by,))
        if len(groups) > len(COLOURS):
            groups = groups_of(results["params"], ("scaler",))
        best = estimator.best_index_
        curves = [curve_of(results, param, label, members) for label, members in groups.items()]
        display = cls(
            [curve for curve in curves if curve.values],  # a time limit may leave none
            param=param,
            score_name=score_name(estimator.scoring),
            chosen=(results["params"][best][param], float(results["mean_test_score"][best])),
            n_splits=estimator.n_splits_,
        )
        return display.plot(ax)

    def _figsize(self) -> tuple[float, float]:
        return 8.4, 4.6

    def _draw(self, ax: Any) -> None:
        self.lines_, self.bands_, self.screened_, self.chosen_ = [], [], [], None
        for number, curve in enumerate(self.curves):
            self._draw_curve(curve, number)
        if self.chosen is not None:
            value, score = self.chosen
            (self.chosen_,) = ax.plot(
                self._positions([value]),
                [score],
                "*",
                color=INK,
                markeredgecolor="white",
                markersize=15,
                label=f"chosen: {self._named(value)}",
                zorder=5,
            )
        ax.set(
            xlabel=PARAMETERS[self.param],
            ylabel=self.score_name,
            title=f"Best score at each {self.param}",
        )
        self._set_ticks()
        # The bands leave no room for a legend. In a new figure it stands beside the axes; in given
        # axes it stays inside, since the space around them belongs to the caller.
        beside = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)} if self._own_figure else {}
        ax.legend(handles=self._handles(), fontsize="small", framealpha=0.9, **beside)

    def _draw_curve(self, curve: Curve, number: int) -> None:
        ax, x = self.ax_, self._positions(curve.values)
        colour, marker, dash = STYLES[number % len(STYLES)]
        (line,) = ax.plot(
            x,
            curve.scores,
            color=colour,
            marker=marker,
            ls=dash,
            label=curve.label,
            markevery=np.flatnonzero(curve.finished).tolist(),
            zorder=3,
        )
        self.lines_.append(line)
        if np.isfinite(curve.errors).any():
            self.bands_.append(self._draw_errors(x, curve, colour, number))
        if not curve.finished.all():
            # Larger and below the lines, so as not to hide a point of another curve.
            (screened,) = ax.plot(
                x[~curve.finished],
                curve.scores[~curve.finished],
                ls="none",
                marker=marker,
                markerfacecolor="none",
                markeredgecolor=colour,
                markeredgewidth=1.3,
                markersize=9,
                zorder=2.5,
            )
            self.screened_.append(screened)

    def _draw_errors(self, x: FloatArray, curve: Curve, colour: str, number: int) -> Any:
        if len(x) == 1:  # a band has no width here; bars at the same x differ in their caps
            style = {"fmt": "none", "capsize": 4 + 3 * number, "elinewidth": 1.0}
            return self.ax_.errorbar(x, curve.scores, curve.errors, ecolor=colour, **style)
        low, high = curve.scores - curve.errors, curve.scores + curve.errors
        faint = load_matplotlib("colors").to_rgba(colour, 0.1)
        edge = load_matplotlib("colors").to_rgba(colour, 0.35)
        return self.ax_.fill_between(x, low, high, facecolor=faint, edgecolor=edge, lw=0.7)

    def _handles(self) -> list[Any]:
        """Return the entries of the legend: the lines, then what is common to all of them."""
        handles = list(self.lines_)
        if self.bands_:
            splits = "the splits" if self.n_splits is None else f"{self.n_splits} splits"
            patch = load_matplotlib("patches").Patch
            handles.append(patch(color=GREY, alpha=0.3, lw=0, label=f"± 1 std. error, {splits}"))
        if self.screened_:
            style = {"ls": "none", "marker": "o", "markerfacecolor": "none", "color": GREY}
            label = "open: screened out,\nscore when stopped"
            handles.append(load_matplotlib("lines").Line2D([], [], **style, label=label))
        return handles if self.chosen_ is None else [*handles, self.chosen_]

    def _values(self) -> list[Any]:
        values = {value for curve in self.curves for value in curve.values}
        return sorted(values if self.chosen is None else values | {self.chosen[0]}, key=order_of)

    def _positions(self, values: list[Any]) -> FloatArray:
        """Return the x of values: numbers at themselves, those of rho at equal distances."""
        if self.param != "rho":
            return np.array(values, dtype=float)
        positions = {value: k for k, value in enumerate(self._values())}
        return np.array([positions[value] for value in values], dtype=float)

    def _named(self, value: Any) -> str:
        return f"{self.param} {name_of(value)}"

    def _set_ticks(self) -> None:
        values = self._values()
        if self.param == "rho":  # neither None nor 0 has a position on a log scale
            self.ax_.set_xticks(range(len(values)), list(map(name_of, values)))
            self.ax_.set_xlim(-0.5, len(values) - 0.5)
            return
        ticks_at(self.ax_, values, may_be_log=self.param != "degree")
