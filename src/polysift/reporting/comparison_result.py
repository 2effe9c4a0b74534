"""``Comparison``: the figures of several models on the same folds, a verdict, and a picture."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from polysift.estimators.headline import PERCENT, estimate_text, range_text, title, value_text
from polysift.explanation.tables import as_text
from polysift.plots.base import COLOURS, INK, dress, load_matplotlib
from polysift.runtime.outputs import check_output, replacing
from polysift.runtime.types import FloatArray
from polysift.training.metrics import (
    MEANS,
    METRICS,
    QUANTILE,
    Estimate,
    Influence,
    interval,
    is_unbalanced,
    variance,
)
from polysift.training.plan import duration

SHOWN = ("accuracy", "roc_auc", "log_loss")
"""The figures of the table and the picture, beside the time."""

WIDE = "\nfigure img { width: 100%; max-width: none; }\n"
"""The style of the page's picture."""


@dataclass(frozen=True)
class ModelResult:
    """What a model has reached.

    Attributes
    ----------
    name, title : str
        What it is called.
    found : dict of str to Influence
        Its figures, the mean over the folds, with the influences of the rows.
    fit_seconds, predict_seconds : float
        The time of a fold, the mean over the folds.
    fit_range : (float, float)
        The shortest and the longest fit.
    """

    name: str
    title: str
    found: dict[str, Influence]
    fit_seconds: float
    predict_seconds: float
    fit_range: tuple[float, float] = (np.nan, np.nan)

    def estimate(self, figure: str) -> Estimate:
        """Return a figure with its interval."""
        return interval(figure, self.found[figure], None)


@dataclass(frozen=True)
class Comparison:
    """The result of ``compare``.

    Attributes
    ----------
    rows : int
        The number of rows.
    classes : ndarray
        The classes.
    class_counts : ndarray
        Their numbers of rows.
    folds, asked_folds : int
        The folds that all models have finished, and those that were asked for.
    models : tuple of ModelResult
        The models; the first is the plain fit.

    See Also
    --------
    compare : Makes it.

    Examples
    --------
    >>> from polysift import compare
    >>> from polysift.datasets import make_bayes_curve
    >>> X, y = make_bayes_curve(600, noise=0.1, random_state=0)
    >>> found = compare(X, y, models=["logistic"], cv=2)
    >>> found.difference("logistic", "accuracy").value < 0.05
    True
    """

    rows: int
    classes: Any
    class_counts: FloatArray
    folds: int
    asked_folds: int
    models: tuple[ModelResult, ...]

    @property
    def main_figure(self) -> str:
        """The figure that the verdict goes by: the AUC where classes are unbalanced."""
        return "roc_auc" if is_unbalanced(self.class_counts) else "accuracy"

    def difference(self, other: str, figure: str, base: str = "polysift") -> Estimate:
        """Return by how much a model is better than the plain fit, on the same rows.

        Parameters
        ----------
        other : str
            The name of the model.
        figure : str
            The figure, such as "accuracy"; of "log_loss" and "brier_score" less is better.
        base : str, default="polysift"
            The model that it is compared with.

        Returns
        -------
        Estimate
            The difference, positive if the model is better, with its interval of 95 %.
        """
        known = {model.name: model.found[figure] for model in self.models}
        sign = -1.0 if figure in MEANS else 1.0
        value = sign * (known[other].value - known[base].value)
        reach = QUANTILE * float(np.sqrt(variance(known[other].rows - known[base].rows, None)))
        return Estimate(value, value - reach, value + reach)

    @property
    def verdict(self) -> str:
        """Sentences that say which model to take."""
        figure, ours = self.main_figure, self._ours()
        others = [m for m in self.models[1:] if m.name != "tuned"]
        if not others:
            return "There is no other model to compare with."
        sign = -1.0 if figure in MEANS else 1.0
        best = max(others, key=lambda m: sign * m.found[figure].value)
        gap = self.difference(best.name, figure, ours.name)
        shown = self._gap_text(figure, gap)
        ratio = ours.fit_seconds / max(best.fit_seconds, 1e-9)
        speed = f"its fits take {_times(1 / ratio)} as long"
        if gap.low > 0:
            words = f"{best.title} is the better choice here: {title(figure)} {shown}; {speed}."
        elif gap.high < 0:
            words = f"{ours.title} is the better choice here: {title(figure)} of {best.title} "
            words += f"{shown}; {speed}."
        else:
            words = (
                f"Neither {ours.title} nor {best.title} is clearly better here: {title(figure)} of "
                f"{best.title} {shown}; {speed}."
            )
        if "log_loss" in ours.found and figure != "log_loss":
            sharper = min(others, key=lambda m: m.found["log_loss"].value)
            gap = self.difference(sharper.name, "log_loss", ours.name)
            if gap.low > 0:
                words += (
                    f" Where probabilities count, take {sharper.title}: its log loss is lower by "
                    f"{gap.value:.4f} ({gap.low:.4f} to {gap.high:.4f})."
                )
        simple = next((m for m in others if m.name == "logistic"), None)
        if simple is not None:
            rivals = [m for m in self.models if m is not simple]
            top = max(rivals, key=lambda m: sign * m.found[figure].value)
            if self.difference(simple.name, figure, top.name).high > 0:
                words += " Logistic regression is no worse than the best, and simpler: take it."
        return words

    def _ours(self) -> ModelResult:
        """Return the plain fit, or the tuned one where that is clearly better."""
        tuned = next((m for m in self.models if m.name == "tuned"), None)
        if tuned is None or self.difference("tuned", self.main_figure).low <= 0:
            return self.models[0]
        return tuned

    def _gap_text(self, figure: str, gap: Estimate) -> str:
        unit, scale = (" points", 100.0) if figure in PERCENT else ("", 1.0)
        digits = 2 if figure in PERCENT else 4
        ends = f"{scale * gap.low:+.{digits}f} to {scale * gap.high:+.{digits}f}"
        return f"differs by {scale * gap.value:+.{digits}f}{unit} ({ends})"

    def table(self) -> tuple[str, list[str], list[list[str]]]:
        """Return a title, the names of columns, and the rows of the table."""
        figures = [name for name in SHOWN if name in self.models[0].found]
        heads = ["", *(w for name in figures for w in (title(name), "95 % interval"))]
        rows = []
        for model in self.models:
            cells: list[str] = []
            for name in figures:
                found = model.estimate(name)
                cells += [value_text(name, found.value), range_text(name, found)]
            times = [duration(model.fit_seconds), duration(model.predict_seconds)]
            rows.append([model.title, *cells, *times])
        return self.what, [*heads, "fit", "predict"], rows

    @property
    def what(self) -> str:
        """What was compared, in words."""
        folds = f"{self.folds} folds"
        if self.folds < self.asked_folds:
            folds = f"{self.folds} of {self.asked_folds} folds, where the time limit struck"
        return f"out of fold: {self.rows:,} rows, {len(self.classes)} classes, {folds}"

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values, ready for JSON."""
        ours = self.models[0].name
        return {
            "rows": self.rows,
            "classes": self.classes.tolist(),
            "folds": self.folds,
            "models": {
                model.name: {
                    **{
                        name: model.estimate(name).to_list()
                        for name in METRICS
                        if name in model.found
                    },
                    "fit_seconds": model.fit_seconds,
                    "fit_seconds_range": list(model.fit_range),
                    "predict_seconds": model.predict_seconds,
                    "better_by": None
                    if model.name == ours
                    else {n: self.difference(model.name, n).to_list() for n in model.found},
                }
                for model in self.models
            },
            "verdict": self.verdict,
        }

    def plot(self, figure: Any = None) -> Any:
        """Draw the figures and the time with their intervals; needs matplotlib.

        Parameters
        ----------
        figure : matplotlib Figure, default=None
            What to draw on; None is a new one.

        Returns
        -------
        matplotlib Figure
            The figure.
        """
        names = [name for name in SHOWN if name in self.models[0].found]
        if figure is None:
            size = (3.0 * (len(names) + 1) + 1.4, 1.2 + 0.42 * len(self.models))
            figure = load_matplotlib("figure").Figure(figsize=size, layout="constrained")
        axes = figure.subplots(1, len(names) + 1, sharey=True)
        at = np.arange(len(self.models))[::-1]
        colours = [COLOURS[1] if m is self.models[0] else COLOURS[0] for m in self.models]
        for ax, name in zip(axes, names, strict=False):
            for y, model, colour in zip(at, self.models, colours, strict=True):
                e = model.estimate(name)
                ax.plot([e.low, e.high], [y, y], color=colour, lw=2.2, solid_capstyle="butt")
                ax.plot([e.value], [y], "o", color=colour)
            better = "less is better" if name in MEANS else "more is better"
            ax.set_xlabel(f"{title(name)}\n({better})")
        for y, model, colour in zip(at, self.models, colours, strict=True):
            axes[-1].plot(model.fit_range, [y, y], color=colour, lw=2.2, solid_capstyle="butt")
            axes[-1].plot([model.fit_seconds], [y], "s", color=colour)
        axes[-1].set(xscale="log", xlabel="seconds of a fit\n(log scale)")
        axes[0].set_yticks(at, [model.title for model in self.models])
        axes[0].set_ylim(-0.6, len(at) - 0.4)
        for ax in axes:
            dress(ax)
            ax.tick_params(colors=INK)
        return figure

    def report(self, path: Any = None, *, overwrite: bool = False) -> str:
        """Return the table, the picture and the verdict as an HTML page; needs matplotlib.

        Parameters
        ----------
        path : path, default=None
            A file to write the page to as well.
        overwrite : bool, default=False
            Whether to replace an existing file.

        Returns
        -------
        str
            The page.
        """
        from polysift import __version__
        from polysift.reporting.case import noted
        from polysift.reporting.figures import figure_address
        from polysift.reporting.page import SPACE, page, paragraph, picture, table

        output = None if path is None else check_output(path, overwrite=overwrite)
        figures = [name for name in SHOWN if name in self.models[0].found]
        heads, rows = ["", *map(title, figures), "fit", "predict"], []
        for model in self.models:
            found = {name: model.estimate(name) for name in figures}
            cells = [noted(value_text(n, e.value), range_text(n, e)) for n, e in found.items()]
            times = [duration(model.fit_seconds), duration(model.predict_seconds)]
            rows.append([model.title, *cells, *(text.replace(" ", SPACE) for text in times)])
        shown = picture(
            figure_address(self.plot, 9.5, 1.3 + 0.4 * len(self.models)),
            f"Figures of each model with their intervals. {self.verdict}",
            "Bars are intervals of 95 % confidence, and of the time its range over the folds; on "
            "the same rows, differences are more certain than the bars suggest.",
        )
        what = self.what
        body = [
            ("verdict", "Verdict", paragraph(self.verdict)),
            ("figures", "Figures", table(heads, rows, caption=what, kind="")),
            ("picture", "Picture", shown),
        ]
        end = f"Made by polysift {__version__}. This page is self-contained: it loads nothing."
        html = page("polysift beside other models", f"{what}.", body, end, WIDE)
        if output is not None:
            with replacing(output) as file:
                file.write(html.encode())
        return html

    def __repr__(self) -> str:
        first = self.models[0]
        shown = estimate_text(self.main_figure, first.estimate(self.main_figure))
        return f"<Comparison: {len(self.models)} models, {self.rows:,} rows; polysift {shown}>"

    def __str__(self) -> str:
        return f"{as_text(self.table())}\n\n{self.verdict}"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def _times(ratio: float) -> str:
    return f"{ratio:.1f} times" if ratio >= 0.1 else f"{ratio:.2f} times"
