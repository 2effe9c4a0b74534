"""The sections on the training data and on quality: metrics, confusion, ROC, reliability."""

from __future__ import annotations

from typing import Any

import numpy as np

from polysift.estimators.classifier import FPCClassifier
from polysift.reporting.case import (
    MAX_LISTED_CLASSES,
    MAX_LISTED_FEATURES,
    Case,
    Section,
    noted,
    splits_text,
)
from polysift.reporting.columns import columns_of_model, is_plain, leakage_notes
from polysift.reporting.evaluation import Evaluation
from polysift.reporting.figures import MAX_NAMED_CURVES, reliability_picture, roc_picture
from polysift.reporting.page import (
    MAX_MATRIX_CLASSES,
    Markup,
    bars,
    beside,
    confusion_table,
    count_text,
    facts,
    figure_text,
    joined,
    markup,
    paragraph,
    picture,
    seconds_text,
    share_text,
    shortened,
    size_text,
    table,
    tiles,
    worst_confusions,
)

MAX_COLUMN_BARS = 12
"""More bars are divided into two columns."""

METRICS = (
    ("accuracy", "Accuracy", "share of rows that are classified correctly"),
    ("balanced_accuracy", "Balanced accuracy", "its mean over the classes"),
    ("roc_auc", "ROC AUC", "how well scores rank rows; 0.5 is chance"),
    ("log_loss", "Log loss", "of the probabilities; less is better"),
    ("brier_score", "Brier score", "squared error of the probabilities; less is better"),
)
"""The attributes of an evaluation that are shown, with their names and notes."""


def summary_section(case: Case) -> Section:
    """Return the first section: the main metrics."""
    name, evaluation = case.last
    entries = [
        ("Accuracy", share_text(evaluation.accuracy), f"on {name}, {evaluation.rows:,} rows"),
        ("ROC AUC", figure_text(evaluation.roc_auc, 3), f"on {name}"),
        ("Balanced accuracy", share_text(evaluation.balanced_accuracy), f"on {name}"),
    ]
    if evaluation.log_loss is not None:
        entries.append(("Log loss", figure_text(evaluation.log_loss, 3), f"on {name}"))
        entries.append(("Brier score", figure_text(evaluation.brier_score, 3), f"on {name}"))
    else:
        entries.append(("Degree", f"{case.model.degree_}", "of the kernel"))
        entries.append(("Centers", f"{case.model.n_centers_:,}", "of the kernel"))
    if "total" in case.timings:
        what = "fit" if case.search is None else "search and refit"
        entries.append(("Training time", seconds_text(case.timings["total"]), what))
    size = _model_bytes(case.model)
    entries.append(("Model size", size_text(size), "centers and coefficients"))
    warnings = [paragraph(note, kind="warning") for note in leakage_notes(case.model)]
    shown = tiles([(label, value, shortened(note, 60)) for label, value, note in entries])
    return "summary", "Summary", joined((paragraph(_in_words(case)), *warnings, shown))


def _in_words(case: Case) -> str:
    name, evaluation = case.last
    right = share_text(evaluation.accuracy)
    words = f"On {name} the model classifies {right} of the rows correctly."
    baseline = _most_frequent_share(evaluation)
    if baseline is not None:
        words += (
            " Always predicting the most frequent class would be correct for "
            f"{share_text(baseline)}."
        )
    if case.search is not None and hasattr(case.search, "cv_results_"):
        count = len(case.search.cv_results_["params"])
        words += (
            f" It was chosen among {count:,} candidates, compared on {splits_text(case.search)}."
        )
    return words


def _most_frequent_share(evaluation: Evaluation) -> float | None:
    """Return the share of the most frequent class; None where a label is not of the model."""
    totals = evaluation.confusion.sum(axis=1)
    return None if evaluation.unknown or not totals.any() else float(totals.max() / totals.sum())


def _model_bytes(model: FPCClassifier) -> int:
    """Return the size of the arrays that prediction needs."""
    kept = [model.coef_, model.centers_]
    for part in (getattr(model, "scaler_", {}), getattr(model, "calibrator_", {})):
        kept += [value for value in part.values() if isinstance(value, np.ndarray)]
    return sum(array.nbytes for array in kept)


def data_section(case: Case) -> Section | None:
    """Return the section on the training data."""
    model, summary = case.model, case.summary
    entries: list[tuple[str, Any]] = []
    if summary:
        entries.append(("Rows", f"{summary['rows']:,}"))
    entries.append(("Features", f"{model.n_features_in_:,}"))
    names = getattr(model, "feature_names_in_", None)
    if names is not None and is_plain(columns_of_model(model)):  # else there is a table of them
        entries.append(("Feature names", _name_list(names)))
    entries.append(("Classes", f"{len(case.names):,}"))
    if summary:
        entries.append(("File", summary["origin"] or "none: arrays in memory"))
        entries.append(("Numbers", summary["dtype"]))
    parts = [facts(entries)]
    if summary:
        parts.append(_class_bars(case.names, summary["class_counts"]))
    return "data", "Training data", joined(parts)


def _name_list(names: Any) -> Markup:
    items = joined(Markup(f"<li>{markup(name)}</li>") for name in names[:MAX_LISTED_FEATURES])
    more = len(names) - MAX_LISTED_FEATURES
    last = f"<li>and {more:,} more</li>" if more > 0 else ""
    return Markup(f'<ul class="names">{items}{last}</ul>')


def _class_bars(names: list[str], counts: Any) -> Markup:
    total, longest = float(np.sum(counts)), float(np.max(counts))
    shown = list(range(len(names)))
    caption = "Rows of each class, by their weights where they have any"
    if len(names) > MAX_LISTED_CLASSES:
        shown = np.sort(
            np.argsort(-np.asarray(counts), kind="stable")[:MAX_LISTED_CLASSES]
        ).tolist()
        caption = f"Rows of the {MAX_LISTED_CLASSES} largest of {len(names):,} classes"
    entries = [
        (names[i], [(counts[i], f"{count_text(counts[i])} ({share_text(counts[i] / total)})")])
        for i in shown
    ]
    if len(entries) <= MAX_COLUMN_BARS:
        return bars(entries, caption=caption)
    half = (len(entries) + 1) // 2
    return beside(
        bars(entries[:half], caption=caption, longest=longest),
        bars(entries[half:], caption="Continued", longest=longest),
    )


def quality_section(case: Case) -> Section:
    """Return the section with all metrics on all data sets."""
    sets = case.sets.values()
    rows: list[list[Any]] = [["Rows", *(f"{e.rows:,}" for e in sets)]]
    if any(e.unknown for e in sets):
        note = "rows of classes that the model does not have count as errors"
        rows.append([noted("Unknown labels", note), *(f"{e.unknown:,}" for e in sets)])
    for name, label, note in METRICS:
        values = [getattr(e, name) for e in sets]
        if any(value is not None for value in values):
            text = figure_text if name in ("roc_auc", "log_loss", "brier_score") else _share
            rows.append([noted(label, note), *map(text, values)])
    baseline = [_most_frequent_share(e) for e in sets]
    note = "the accuracy of always predicting it"
    rows.append([noted("Most frequent class", note), *map(_share, baseline)])
    parts = [table(["", *case.sets], rows, caption="Metrics on each data set", kind="figures")]
    if all(e.log_loss is None for e in sets):
        words = "The model was fitted without calibration, so it has no probabilities to evaluate."
        parts.append(paragraph(words, kind="note"))
    return "quality", "Quality", joined(parts)


def _share(value: float | None) -> str:
    return share_text(value, 2)


def confusion_section(case: Case) -> Section:
    """Return the section on the confusion matrix."""
    name, evaluation = case.last
    names, counts, pairs = case.names, evaluation.confusion, worst_confusions(evaluation.confusion)
    totals = counts.sum(axis=1)
    if len(names) > MAX_MATRIX_CLASSES:
        words = f"With {len(names):,} classes the whole matrix would be too large to read. "
        rows = [
            (names[i], names[j], count_text(counts[i, j]), share_text(counts[i, j] / totals[i]))
            for i, j in pairs
        ]
        heads = ("true class", "predicted class", "rows", "of the true class")
        caption = f"The most frequent confusions on {name}"
        content = table(heads, rows, caption=caption, kind="pairs") if rows else Markup()
    else:
        words = "Blue is correct, orange is wrong; the darker, the larger the share of its class. "
        caption = f"Rows of {name} by true class (down) and predicted class (across)"
        content = confusion_table(names, counts, caption)
    if not pairs:
        words += "No row is classified wrongly."
    elif len(names) <= MAX_MATRIX_CLASSES:
        i, j = pairs[0]
        share = share_text(counts[i, j] / totals[i])
        words += (
            f"The most frequent error is to predict class {names[j]} for rows of class {names[i]}: "
            f"{count_text(counts[i, j])} times, {share} of the class."
        )
    if evaluation.unknown:
        what = "row has" if evaluation.unknown == 1 else "rows have"
        words += (
            f" {evaluation.unknown:,} {what} a label that is not a class of the model, which is "
        )
        words += "not shown here."
    both = (content, paragraph(words))
    together = beside(*both) if len(names) <= 4 else joined(both)
    return "confusion", "Confusion matrix", together


def roc_section(case: Case) -> Section:
    """Return the section on ROC curves."""
    name, evaluation = case.last
    address = roc_picture(case.sets)
    if address is None:
        words = "No data set has rows of a class and rows of others, so there is no curve."
        return "roc", "ROC curve", paragraph(words)
    if len(case.names) == 2:
        of = "Each line is a data set"
        explained = (
            f"The share of rows of class {case.names[1]} that are found (true positive rate) "
            f"against the share of rows of class {case.names[0]} that are mistaken for it (false "
            "positive rate)."
        )
    else:
        of = f"Each line is a class of {name} against all others"
        explained = (
            "The share of rows of a class that are found (true positive rate) against the share of "
            "rows of other classes that are mistaken for it (false positive rate)."
        )
        if len(evaluation.roc) > MAX_NAMED_CURVES:
            of += f", coloured where the area is among the {MAX_NAMED_CURVES} smallest"
    areas = [(key, figure_text(e.roc_auc)) for key, e in case.sets.items()]
    text = joined(
        (paragraph(explained), table(("", "area"), areas, caption="Area under the curve"))
    )
    words = f"ROC curves. {of}. " + "; ".join(f"{key}: AUC {area}" for key, area in areas)
    return "roc", "ROC curve", beside(picture(address, words, f"{of}."), text)


def reliability_section(case: Case) -> Section | None:
    """Return the section on probabilities, where there are any."""
    name, evaluation = case.last
    found = getattr(case.model, "calibration_report_", None)
    if evaluation.reliability is None:
        return None
    rows = [
        (key, figure_text(e.log_loss), figure_text(e.brier_score)) for key, e in case.sets.items()
    ]
    words = "On the diagonal, predicted probabilities agree with the observed shares."
    if found is not None:
        rows.append(
            ("out of fold", figure_text(found["log_loss"]), figure_text(found["brier_score"]))
        )
        words += " Out of fold means training rows, each scored by a model not fitted to it."
    heads = ("", "log loss", "Brier score")
    text = paragraph(words) + table(heads, rows, caption="Quality of the probabilities")
    address = reliability_picture(evaluation, name, found)
    brier = figure_text(evaluation.brier_score)
    seen = f"Reliability of the probabilities on {name}: Brier score {brier}"
    caption = f"Predicted probabilities and observed shares, in bins of rows of {name}."
    return "reliability", "Reliability", beside(picture(address, seen, caption), Markup(text))
