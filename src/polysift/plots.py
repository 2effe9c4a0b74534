"""Displays in scikit-learn's manner: how a search, a fit and its probabilities turned out.

matplotlib is imported late: the package works without it. One look serves all displays: colours of
Okabe and Ito, which all eyes can tell apart, and for print a marker and a dash of its own for each
line. matplotlib's settings stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from polysift._params import check_choice
from polysift._types import FloatArray, IntArray
from polysift.classifier import FPCClassifier
from polysift.search import FPCClassifierCV

PARAMETERS = {
    "degree": "degree of the kernel",
    "n_centers": "number of centers",
    "max_iter": "iterations at most (max_iter)",
    "rho": "rho, relative to trace(G) / n (None: the solver's own)",
}
"""What a search can be drawn over, with the labels of the axes."""

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Okabe and Ito's, but for the yellow, which is too light for a line on white."""
MARKERS = ("o", "s", "^", "D", "v", "P")
DASHES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)), (0, (8, 2)))
STYLES = tuple(zip(COLOURS, MARKERS, DASHES, strict=True))
INK, GREY = "#333333", "#777777"

DECADE = 10.0
FEW_POINTS = 30
"""Up to so many points of a line get markers; beyond they would hide it."""
LEAST_GAP = 0.05
"""The least distance of two ticks, as a share of the axis, at which their labels stay apart."""
WHOLE_NUMBERS = {"integer": True, "steps": [1, 2, 5, 10], "min_n_ticks": 1}
"""Ticks at whole numbers; where only one is in sight, there alone."""
LARGEST_MARKER, SMALLEST_MARKER = 130.0, 8.0
"""Areas in square points, of the heaviest bin and at least."""


def load_matplotlib(module: str) -> Any:
    """Return a module of matplotlib, or say how to install it."""
    try:
        return import_module(f"matplotlib.{module}")
    except ImportError as error:
        raise ImportError(
            "Displays need matplotlib. Install it with: pip install 'polysift[plots]'"
        ) from error


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
        Whether the score is that of a candidate run to its end; if not, none was at this value.
    """

    label: str
    values: list[Any]
    scores: FloatArray
    errors: FloatArray
    finished: IntArray


class SearchCurveDisplay:
    """The validation curve of a search: the best score at each value of one parameter.

    Use ``from_estimator`` to make one.

    Parameters
    ----------
    curves : list of Curve
        The lines.
    param : {"degree", "n_centers", "max_iter", "rho"}
        The parameter.
    score_name : str, default="accuracy"
        What the scores are.
    chosen : tuple of a value and a score, default=None
        Where the chosen candidate is.
    n_splits : int, default=None
        The number of splits, for the legend.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    lines_ : list of matplotlib Line2D
        One per curve.
    bands_ : list of matplotlib PolyCollection or ErrorbarContainer
        One standard error on either side of each curve: a band, or a bar where the curve is a
        point; empty with one split.
    screened_ : list of matplotlib Line2D
        The open markers, of each curve that has any.
    chosen_ : matplotlib Line2D or None
        The mark of the chosen candidate.

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
        other parameters. Where all of them were left before their end, it is the best score as
        they were left, with an open marker: a candidate run to its end may have done better.

        Parameters
        ----------
        estimator : FPCClassifierCV
            The search.
        param : {"degree", "n_centers", "max_iter", "rho"}, default="degree"
            The parameter.
        by : {"scaler", "solver", None}, default=None
            What has a line for each of its values. None is scaler and solver, or the scaler alone
            where they make more lines than there are colours.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        SearchCurveDisplay
            The display, drawn.
        """
        _check_type(cls, estimator, FPCClassifierCV)
        check_choice("param", param, tuple(PARAMETERS))
        check_choice("by", by, ("scaler", "solver", None))
        check_is_fitted(estimator, "cv_results_")
        results = estimator.cv_results_
        groups = _groups(results["params"], ("scaler", "solver") if by is None else (by,))
        if len(groups) > len(COLOURS):
            groups = _groups(results["params"], ("scaler",))
        best = estimator.best_index_
        curves = [_curve(results, param, label, members) for label, members in groups.items()]
        display = cls(
            [curve for curve in curves if curve.values],  # a time limit may leave none
            param=param,
            score_name=_score_name(estimator.scoring),
            chosen=(results["params"][best][param], float(results["mean_test_score"][best])),
            n_splits=estimator.n_splits_,
        )
        return display.plot(ax)

    def plot(self, ax: Any = None) -> SearchCurveDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        SearchCurveDisplay
            The display.
        """
        # Bands leave a legend no room. In a figure of ours it has its own place beside them; in
        # given axes it stays inside, since what lies beside those is not ours.
        place = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)} if ax is None else {}
        self.ax_ = ax = _axes(ax, figsize=(8.4, 4.6))
        self.figure_ = ax.figure
        self.lines_, self.bands_, self.screened_, self.chosen_ = [], [], [], None
        for number, curve in enumerate(self.curves):
            self._draw(curve, number)
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
        _dress(ax)
        ax.set(
            xlabel=PARAMETERS[self.param],
            ylabel=self.score_name,
            title=f"Best score at each {self.param}",
        )
        self._set_ticks()
        ax.legend(handles=self._handles(), fontsize="small", framealpha=0.9, **place)
        return self

    def _draw(self, curve: Curve, number: int) -> None:
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
            # Larger and below the lines, so as not to hide what another curve has in this place.
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
        if len(x) == 1:  # a band over a point has no width; bars in one place differ in their caps
            style = {"fmt": "none", "capsize": 4 + 3 * number, "elinewidth": 1.0}
            return self.ax_.errorbar(x, curve.scores, curve.errors, ecolor=colour, **style)
        low, high = curve.scores - curve.errors, curve.scores + curve.errors
        faint = load_matplotlib("colors").to_rgba(colour, 0.1)
        edge = load_matplotlib("colors").to_rgba(colour, 0.35)
        return self.ax_.fill_between(x, low, high, facecolor=faint, edgecolor=edge, lw=0.7)

    def _handles(self) -> list[Any]:
        """Return what the legend explains: the lines, then what all of them have."""
        handles = list(self.lines_)
        if self.bands_:
            splits = "the splits" if self.n_splits is None else f"{self.n_splits} splits"
            patch = load_matplotlib("patches").Patch
            handles.append(patch(color=GREY, alpha=0.3, lw=0, label=f"± 1 std. error, {splits}"))
        if self.screened_:
            mark = {"ls": "none", "marker": "o", "markerfacecolor": "none", "color": GREY}
            label = "open: screened out,\nscore when stopped"
            handles.append(load_matplotlib("lines").Line2D([], [], **mark, label=label))
        return handles if self.chosen_ is None else [*handles, self.chosen_]

    def _values(self) -> list[Any]:
        values = {value for curve in self.curves for value in curve.values}
        return sorted(values if self.chosen is None else values | {self.chosen[0]}, key=_order)

    def _positions(self, values: list[Any]) -> FloatArray:
        """Return where values lie: numbers at themselves, those of rho side by side."""
        if self.param != "rho":
            return np.array(values, dtype=float)
        places = {value: place for place, value in enumerate(self._values())}
        return np.array([places[value] for value in values], dtype=float)

    def _named(self, value: Any) -> str:
        return f"{self.param} {'None' if value is None else _number(value)}"

    def _set_ticks(self) -> None:
        axis, values = self.ax_.xaxis, self._values()
        if self.param == "rho":  # None has no place on a scale of numbers, and 0 none on a log one
            names = ["None" if value is None else _number(value) for value in values]
            self.ax_.set_xticks(range(len(values)), names)
            self.ax_.set_xlim(-0.5, len(values) - 0.5)
            return
        ticker = load_matplotlib("ticker")
        logarithmic = self.param != "degree" and max(values) > DECADE * min(values)
        if logarithmic:
            self.ax_.set_xscale("log")
        places = np.log(values) if logarithmic else np.array(values, dtype=float)
        if len(values) == 1 or np.diff(places).min() >= LEAST_GAP * np.ptp(places):
            axis.set_major_locator(ticker.FixedLocator(values))
        elif logarithmic:
            axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        else:
            axis.set_major_locator(ticker.MaxNLocator(**WHOLE_NUMBERS))
        axis.set_major_formatter(ticker.StrMethodFormatter("{x:g}"))
        axis.set_minor_locator(ticker.NullLocator())


class ConvergenceDisplay:
    """The objective and both residuals of a fit, iteration by iteration.

    Use ``from_estimator`` to make one.

    Parameters
    ----------
    objective, primal_residual, dual_residual : array-like of shape (n_iter,)
        As in ``FPCClassifier.history_``; iterations with a NaN are left out.
    title : str, default=""
        The title.

    Attributes
    ----------
    ax_, residual_ax_ : matplotlib Axes
        Where the objective and the residuals were drawn; they share their iterations.
    figure_ : matplotlib Figure
        The figure.
    objective_line_, primal_line_, dual_line_ : matplotlib Line2D
        The lines. Residuals of exactly 0, which a log scale cannot show, are left out.

    See Also
    --------
    FPCClassifier : Its ``history_`` is drawn.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from polysift import FPCClassifier
    >>> from polysift.datasets import make_bayes_curve
    >>> from polysift.plots import ConvergenceDisplay
    >>> X, y = make_bayes_curve(1_000, noise=0.1, random_state=0)
    >>> clf = FPCClassifier(solver="converged", random_state=0).fit(X, y)
    >>> display = ConvergenceDisplay.from_estimator(clf, ax=Figure().subplots())
    >>> len(display.objective) == clf.n_iter_
    True
    """

    def __init__(
        self, objective: Any, primal_residual: Any, dual_residual: Any, *, title: str = ""
    ) -> None:
        self.objective = objective
        self.primal_residual = primal_residual
        self.dual_residual = dual_residual
        self.title = title

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
            Where to draw; None makes a figure.

        Returns
        -------
        ConvergenceDisplay
            The display, drawn.
        """
        model = _model(cls, estimator)
        names = ("objective", "primal_residual", "dual_residual")
        count = f"{model.n_iter_} iteration{'' if model.n_iter_ == 1 else 's'}"
        title = f'Convergence: solver "{model.solver}", {count} ({model.status_})'
        return cls(*(model.history_[name] for name in names), title=title).plot(ax)

    def plot(self, ax: Any = None) -> ConvergenceDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw, the residuals with a second axis on its right; None makes a figure.

        Returns
        -------
        ConvergenceDisplay
            The display.
        """
        rows = np.array([self.objective, self.primal_residual, self.dual_residual], dtype=float)
        known = ~np.isnan(rows).any(axis=0)
        if not known.any():
            raise ValueError(
                "The history holds no iteration without NaN: with tol=0 the paper's solver skips "
                "what the last one does not need. Fit with tol=None, or with more iterations."
            )
        x, rows = np.flatnonzero(known) + 1, rows[:, known]
        self.ax_ = ax = _axes(ax)
        self.residual_ax_ = right = ax.twinx()
        self.figure_ = ax.figure
        residuals = np.where(rows[1:] > 0, rows[1:], np.nan)
        lines = [
            owner.plot(
                x,
                values,
                color=COLOURS[number],
                ls=DASHES[number],
                marker=MARKERS[number] if len(x) <= FEW_POINTS else None,
                markersize=5,
                label=label,
            )[0]
            for number, (owner, values, label) in enumerate(
                (
                    (ax, rows[0], "objective"),
                    (right, residuals[0], "primal residual"),
                    (right, residuals[1], "dual residual"),
                )
            )
        ]
        self.objective_line_, self.primal_line_, self.dual_line_ = lines
        for owner in (ax, right):
            _dress(owner)
        right.spines["right"].set_visible(True)
        right.grid(False)  # two grids that do not meet would only confuse
        if rows[0].min() > 0 and rows[0].max() > DECADE * rows[0].min():
            ax.set_yscale("log")
        if not np.isnan(residuals).all():
            right.set_yscale("log")
        ax.set_xlabel("iteration")
        ax.set_ylabel("objective (hinge loss)", color=COLOURS[0])
        ax.tick_params(axis="y", labelcolor=COLOURS[0])  # which line goes with which axis
        right.set_ylabel("residuals (relative)")
        ax.xaxis.set_major_locator(load_matplotlib("ticker").MaxNLocator(**WHOLE_NUMBERS))
        # Above the axes, since matplotlib looks for a free spot among the lines of one axis only.
        right.legend(
            handles=lines, loc="lower left", bbox_to_anchor=(0, 1), ncols=3, fontsize="small"
        )
        ax.set_title(self.title, pad=28)
        return self


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
        """
        model = _model(cls, estimator)
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
        """
        self.ax_ = ax = _axes(ax, figsize=(5.0, 5.0))
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
        _dress(ax)
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


def _axes(ax: Any, figsize: tuple[float, float] | None = None) -> Any:
    """Return the given axes, or those of a new figure."""
    if ax is not None:
        return ax
    return load_matplotlib("pyplot").subplots(layout="constrained", figsize=figsize)[1]


def _dress(ax: Any) -> None:
    """Give axes the look that all displays share."""
    ax.grid(True, color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _check_type(display: type, estimator: Any, *kinds: type) -> None:
    if isinstance(estimator, kinds):
        return
    hint = " Of a pipeline pass its last step, pipeline[-1]." if hasattr(estimator, "steps") else ""
    is_class = isinstance(estimator, type)
    came = f"the class {estimator.__name__}" if is_class else type(estimator).__name__
    raise TypeError(
        f"{display.__name__} draws a fitted {' or '.join(kind.__name__ for kind in kinds)}; got "
        f"{came}.{hint}"
    )


def _model(display: type, estimator: Any) -> FPCClassifier:
    """Return a fitted classifier: the given one, or the best of a search."""
    _check_type(display, estimator, FPCClassifier, FPCClassifierCV)
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


def _groups(candidates: list[dict[str, Any]], names: tuple[str, ...]) -> dict[str, IntArray]:
    """Return which candidates agree in these parameters, by what the legend calls them."""
    found: dict[str, list[int]] = {}
    for place, params in enumerate(candidates):
        label = ", ".join(params[name] or f"no {name}" for name in names)
        found.setdefault(label, []).append(place)
    return {label: np.array(places) for label, places in found.items()}


def _curve(results: dict[str, Any], param: str, label: str, members: IntArray) -> Curve:
    """Return the best score at each value among some candidates, finished ones first."""
    n_splits = sum(name.startswith("split") for name in results)
    splits = np.column_stack([results[f"split{k}_test_score"] for k in range(n_splits)])
    finished, means = results["status"] == "finished", results["mean_test_score"]
    best: dict[Any, int] = {}
    for i in members:
        value = results["params"][i][param]
        rival = best.get(value)
        if np.isnan(means[i]):  # not run at all
            continue
        if rival is None or (finished[i], means[i]) > (finished[rival], means[rival]):
            best[value] = int(i)
    values = sorted(best, key=_order)
    chosen = [best[value] for value in values]
    errors = np.array([_standard_error(splits[i]) for i in chosen])
    return Curve(label, values, means[chosen], errors, finished[chosen])


def _standard_error(scores: FloatArray) -> float:
    """Return the standard error of the mean over the splits that were run; NaN for one split."""
    scores = scores[~np.isnan(scores)]
    if len(scores) < 2:
        return float("nan")
    return float(np.std(scores, ddof=1) / np.sqrt(len(scores)))


def _order(value: Any) -> float:
    """Return what values of a parameter are sorted by; None comes first."""
    return -np.inf if value is None else float(value)


def _number(value: float) -> str:
    """Return a number as short as people write it: 1e-6, not 1e-06."""
    return f"{value:g}".replace("e-0", "e-")


def _score_name(scoring: Any) -> str:
    if scoring is None or isinstance(scoring, str):
        return scoring or "accuracy"
    metric = getattr(scoring, "_score_func", scoring)  # of what make_scorer returns
    name = getattr(metric, "__name__", "score")
    return f"negative {name}" if getattr(scoring, "_sign", 1) < 0 else name
