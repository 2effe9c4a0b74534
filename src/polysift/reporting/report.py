"""``report``: one self-contained HTML page on a fitted model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from polysift import __version__
from polysift.data.source import DataSource
from polysift.estimators.classifier import FPCClassifier
from polysift.estimators.fitted import kernel_of
from polysift.estimators.headline import held_out_evaluation
from polysift.estimators.search import FPCClassifierCV, classifier_of
from polysift.explanation.explain import explain
from polysift.explanation.explanation import Explanation
from polysift.reporting.case import Case, file_name
from polysift.reporting.choice import choice_text
from polysift.reporting.columns import columns_section
from polysift.reporting.evaluation import evaluate
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
from polysift.reporting.training import (
    choice_section,
    convergence_section,
    cost_section,
    search_section,
)
from polysift.runtime.outputs import check_output, replacing
from polysift.training.evaluation import Evaluation
from polysift.training.plan import Forecast

EXPECTED = (
    "a source with labels (open_data(..., target=...)), a pair (X, y), a triple "
    "(X, y, sample_weight), or a dict from names to such"
)

TRAINING_NAMES = ("training", "train", "training data", "training rows", "training set")
"""What people call the rows that a model was fitted to."""

MAX_MONOMIALS_IN_REPORT = 20_000
"""With more monomials a report does not show the polynomial, which would take long."""


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
    """Make an HTML page about a fitted model: its parameters, its quality and its cost.

    The page is self-contained: its pictures are inside, it loads nothing and runs no script. Needs
    matplotlib.

    Parameters
    ----------
    model : FPCClassifier or FPCClassifierCV
        The fitted model, or the search with its best one.
    data : DataSource, tuple or dict
        Labelled rows to evaluate the model on: what ``open_data(..., target=...)`` returns, a pair
        (X, y), a triple (X, y, sample_weight), or a dict from names to such. The table of metrics
        shows all of them; the summary and pictures of a single set show the last, which should be
        rows that the model was not fitted to. Where all are training rows, by their name
        ("training") or their file, they show the held-out scores of the fit (``held_out_``).
    path : path, default=None
        A file to write the page to as well; it appears when it is complete.
    forecast : Forecast, default=None
        The result of ``FPCClassifier.plan`` before the fit, shown beside the measured cost.
    command : str, default=None
        The command that makes the model again; None shows Python code.
    title : str, default=None
        The title of the page.
    explanation : Explanation, default=None
        The result of ``explain`` for this model; None computes it, with the last of the data as
        reference.
    overwrite : bool, default=False
        Whether to replace an existing file.

    Returns
    -------
    str
        The page.

    See Also
    --------
    FPCClassifier.plan : Makes a forecast.
    explain : Makes an explanation.

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
    sets = {name: _evaluated(classifier, name, rows) for name, rows in given.items()}
    seen = frozenset(name for name, rows in given.items() if _was_seen(name, rows, classifier))
    known = held_out_evaluation(classifier)
    if known is not None and seen >= sets.keys():
        sets |= dict([known])
    search = model if isinstance(model, FPCClassifierCV) else None
    if explanation is None:
        explanation = explained(classifier, list(given.values())[-1])
    html = _page(Case(classifier, search, sets, forecast, command, explanation, seen), title)
    if output is not None:
        with replacing(output) as file:
            file.write(html.encode())
    return html


def _named_sets(data: Any) -> dict[str, tuple[Any, ...] | Evaluation]:
    """Return each data set by its name: the arguments of ``evaluate``, or its result."""
    if not isinstance(data, Mapping):
        origin = getattr(data, "origin", None)
        return {"the given rows" if origin is None else file_name(origin): _rows(data, "data")}
    if not data:
        raise ValueError(
            f"data is an empty dict: there are no rows to evaluate on. Pass {EXPECTED}."
        )
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


def _was_seen(name: str, rows: tuple[Any, ...] | Evaluation, model: FPCClassifier) -> bool:
    """Return whether a data set is the training data: it is called so, or is the same file."""
    if name.lower() in TRAINING_NAMES:
        return True
    if isinstance(rows, Evaluation) or not isinstance(rows[0], DataSource):
        return False
    summary = getattr(model, "training_summary_", {"origin": None, "rows": 0})
    return is_training_file(rows[0], summary)


def is_training_file(source: DataSource, summary: Mapping[str, Any]) -> bool:
    """Return whether rows seem to be those of a training: a file of this name, as many rows."""
    if source.origin is None or summary["origin"] is None:
        return False
    same = file_name(source.origin) == file_name(summary["origin"])
    return bool(same and source.n_rows == summary["rows"])


def _article(value: Any) -> str:
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def _evaluated(model: FPCClassifier, name: str, rows: tuple[Any, ...] | Evaluation) -> Evaluation:
    if isinstance(rows, Evaluation):  # the command line has computed it
        return rows
    try:
        return evaluate(model, *rows)
    except Exception as error:
        error.add_note(f"The error is in the data set {name!r} of the report.")
        raise


def explained(model: FPCClassifier, rows: tuple[Any, ...] | Evaluation) -> Explanation:
    """Return the explanation for a report.

    The reference is the rows, given as the arguments of ``evaluate``, or else the model's centers.
    """
    if isinstance(rows, Evaluation):
        return explain(model, max_monomials=MAX_MONOMIALS_IN_REPORT)
    weights = rows[2] if len(rows) == 3 else None
    return explain(model, rows[0], sample_weight=weights, max_monomials=MAX_MONOMIALS_IN_REPORT)


def _page(case: Case, title: str | None) -> str:
    makers = (
        summary_section,
        data_section,
        columns_section,
        quality_section,
        confusion_section,
        roc_section,
        reliability_section,
        explanation_section,
        choice_section,
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
    end = f"Made by polysift {__version__}. This page is self-contained: it loads nothing."
    return page(heading, _subtitle(case), made, end)


def _subtitle(case: Case) -> str:
    model, rows = case.model, case.summary.get("rows")
    how = "tuned " if case.search is not None else ""
    learned = "" if rows is None else f", fitted to {rows:,} rows"
    chosen = choice_text(model)
    return (
        f"A {how}{kernel_of(model)} kernel classifier of degree {model.degree_} with "
        f"{model.n_centers_:,} centers{learned}{'' if chosen is None else f', chosen {chosen}'}."
    )
