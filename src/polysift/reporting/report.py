"""``report``: a fitted model on one page of HTML that needs nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from polysift import __version__
from polysift.data.source import DataSource
from polysift.estimators.classifier import FPCClassifier
from polysift.estimators.search import FPCClassifierCV, classifier_of
from polysift.explanation.explain import explain
from polysift.explanation.explanation import Explanation
from polysift.reporting.case import Case, file_name
from polysift.reporting.evaluation import Evaluation, evaluate
from polysift.reporting.model import (
    explanation_section,
    model_section,
    reproduce_section,
    versions_section,
)
from polysift.reporting.page import page, plain
from polysift.reporting.quality import (
    confusion_section,
    data_section,
    quality_section,
    reliability_section,
    roc_section,
    summary_section,
)
from polysift.reporting.training import convergence_section, cost_section, search_section
from polysift.runtime.outputs import check_output, replacing
from polysift.training.plan import Forecast

EXPECTED = (
    "a source with labels (open_data(..., target=...)), a pair (X, y), a triple "
    "(X, y, sample_weight), or a dict from names to such"
)

FEW_MONOMIALS = 20_000
"""Up to so many a report shows the polynomial, too: a matter of a moment."""


def report(
    model: FPCClassifier | FPCClassifierCV,
    data: Any,
    path: Any = None,
    *,
    forecast: Forecast | None = None,
    command: str | None = None,
    title: str | None = None,
    explanation: Explanation | None = None,
    overwrite: bool = False,
) -> str:
    """Make a page of HTML about a fitted model: what it is, how good it is, what it cost.

    The page stands alone: its pictures are inside, it loads nothing and runs no script. Needs
    matplotlib.

    Parameters
    ----------
    model : FPCClassifier or FPCClassifierCV
        The fitted model, or the search with its best one.
    data : DataSource, tuple or dict
        Labelled rows to judge the model by: what ``open_data(..., target=...)`` returns, a pair
        (X, y), a triple (X, y, sample_weight), or a dict from names to such. The table of figures
        shows all of them; pictures of a single set show the last, so put rows that the model has
        not seen there.
    path : path, default=None
        Where to write the page, too; it appears when it is complete.
    forecast : Forecast, default=None
        What ``FPCClassifier.plan`` told before the fit, to stand beside what was measured.
    command : str, default=None
        How to make the model again; None shows the Python code.
    title : str, default=None
        The title of the page.
    explanation : Explanation, default=None
        What ``explain`` told of this model; None asks it, with the last of the data as reference.
    overwrite : bool, default=False
        Whether to replace a file that exists.

    Returns
    -------
    str
        The page.

    See Also
    --------
    FPCClassifier.plan : Makes a forecast.

    Examples
    --------
    >>> from polysift import FPCClassifier, report
    >>> from polysift.datasets import make_bayes_curve
    >>> X, y = make_bayes_curve(2_000, noise=0.1, random_state=0)
    >>> clf = FPCClassifier(degree=9, random_state=0).fit(X[:1_500], y[:1_500])
    >>> sets = {"training": (X[:1_500], y[:1_500]), "test": (X[1_500:], y[1_500:])}
    >>> html = report(clf, sets)
    >>> html.splitlines()[0]
    '<!DOCTYPE html>'
    """
    classifier = classifier_of("report describes", model)
    given = _named_sets(data)
    if forecast is not None and not isinstance(forecast, Forecast):
        raise TypeError(
            "forecast must be a Forecast, which FPCClassifier.plan returns, or None; got "
            f"{type(forecast).__name__}."
        )
    if explanation is not None and not isinstance(explanation, Explanation):
        raise TypeError(
            "explanation must be an Explanation, which explain returns, or None; got "
            f"{type(explanation).__name__}."
        )
    output = None if path is None else check_output(path, overwrite=overwrite)
    sets = {name: _judged(classifier, name, rows) for name, rows in given.items()}
    search = model if isinstance(model, FPCClassifierCV) else None
    if explanation is None:
        explanation = explained(classifier, list(given.values())[-1])
    html = _page(Case(classifier, search, sets, forecast, command, explanation), title)
    if output is not None:
        with replacing(output) as partial:
            partial.write_text(html, encoding="utf-8", newline="\n")
    return html


def _named_sets(data: Any) -> dict[str, tuple[Any, ...] | Evaluation]:
    """Return each data set by its name: as the arguments of ``evaluate``, or judged already."""
    if not isinstance(data, Mapping):
        origin = getattr(data, "origin", None)
        return {"the given rows" if origin is None else file_name(origin): _rows(data, "data")}
    if not data:
        raise ValueError(f"data is an empty dict: there is nothing to judge by. Pass {EXPECTED}.")
    return {plain(name): _rows(rows, f"data[{name!r}]") for name, rows in data.items()}


def _rows(rows: Any, what: str) -> tuple[Any, ...] | Evaluation:
    if isinstance(rows, Evaluation):
        return rows
    if isinstance(rows, DataSource):
        if not rows.has_labels:
            raise ValueError(
                f"{what} is a source without labels. Name their column: open_data(..., target=...)."
            )
        return (rows,)
    if not isinstance(rows, tuple):
        shape = getattr(rows, "shape", None)
        without = "" if shape is None else f" of shape {tuple(shape)}, without labels"
        raise TypeError(f"{what} must be {EXPECTED}; got {_article(rows)}{without}.")
    if len(rows) not in (2, 3):
        raise TypeError(f"{what} must be {EXPECTED}; got a tuple of {len(rows)}.")
    return rows


def _article(value: Any) -> str:
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def _judged(model: FPCClassifier, name: str, rows: tuple[Any, ...] | Evaluation) -> Evaluation:
    if isinstance(rows, Evaluation):  # the command line has shown it before
        return rows
    try:
        return evaluate(model, *rows)
    except Exception as error:
        error.add_note(f"This happened in the data set {name!r} of the report.")
        raise


def explained(model: FPCClassifier, rows: tuple[Any, ...] | Evaluation) -> Explanation:
    """Return what a report tells that a model has learned.

    That is over rows, given as the arguments of ``evaluate``, or else over its centers.
    """
    if isinstance(rows, Evaluation):
        return explain(model, max_monomials=FEW_MONOMIALS)
    weights = rows[2] if len(rows) == 3 else None
    return explain(model, rows[0], sample_weight=weights, max_monomials=FEW_MONOMIALS)


def _page(case: Case, title: str | None) -> str:
    makers = (
        summary_section,
        data_section,
        quality_section,
        confusion_section,
        roc_section,
        reliability_section,
        explanation_section,
        convergence_section,
        search_section,
        cost_section,
        model_section,
        reproduce_section,
        versions_section,
    )
    made = [section for maker in makers if (section := maker(case)) is not None]
    origin = case.summary.get("origin")
    where = f"for {len(case.names)} classes" if origin is None else f"on {file_name(origin)}"
    heading = f"{case.kind} {where}" if title is None else title
    end = f"Made by polysift {__version__}. This page is complete in itself: it loads nothing."
    return page(heading, _subtitle(case), made, end)


def _subtitle(case: Case) -> str:
    model, rows = case.model, case.summary.get("rows")
    how = "tuned " if case.search is not None else ""
    learned = "" if rows is None else f", learned from {rows:,} rows"
    return (
        f"A {how}polynomial kernel classifier of degree {model.degree_} with "
        f"{model.n_centers_:,} centers{learned}."
    )
