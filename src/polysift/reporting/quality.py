"""The sections on the training data and on quality: metrics, confusion, ROC, reliability."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from polysift.estimators.classifier import FPCClassifier
from polysift.estimators.headline import PERCENT, Headline, estimate_text, ordered, title
from polysift.reporting.case import (
    MAX_LISTED_CLASSES,
    MAX_LISTED_FEATURES,
    Case,
    Section,
    noted,
    splits_text,
)
from polysift.reporting.columns import columns_of_model, is_plain, leakage_notes
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
from polysift.training.evaluation import Evaluation
from polysift.training.held_out import OUT_OF_FOLD
from polysift.training.metrics import METRICS, Estimate

MAX_COLUMN_BARS = 12
"""More bars are divided into two columns."""

NOTES = {
    "accuracy": "share of rows that are classified correctly",
    "balanced_accuracy": "its mean over the classes",
    "roc_auc": "how well scores rank rows; 0.5 is chance",
    "average_precision": "mean precision over the rows of a class that are found",
    "log_loss": "of the probabilities; less is better",
    "brier_score": "squared error of the probabilities; less is better",
}
"""What the figures of an evaluation mean."""

MIN_TILES = 5
"""With fewer figures the summary says more of the model."""


def summary_section(case: Case) -> Section:
    """Return the first section: the main metrics, on rows that the model has not seen."""
    found = case.headline
    entries = [] if found is None else [_tile(found, name) for name in list(found.figures)[:5]]
    if len(entries) < MIN_TILES:
        entries.append(("Degree", f"{case.model.degree_}", "of the kernel"))
        entries.append(("Centers", f"{case.model.n_centers_:,}", "of the kernel"))
    if "total" in case.timings:
        what = "fit" if case.search is None else "search and refit"
        entries.append(("Training time", seconds_text(case.timings["total"]), what))
    size = _model_bytes(case.model)
    entries.append(("Model size", size_text(size), "centers and coefficients"))
    warnings = [paragraph(note, kind="warning") for note in leakage_notes(case.model)]
    shown = tiles([(label, value, shortened(note, 80)) for label, value, note in entries])
    return "summary", "Summary", joined((paragraph(_in_words(case, found)), *warnings, shown))


def _tile(found: Headline, name: str) -> tuple[str, str, str]:
    """Return a figure with its interval and, small, what it is on rows that were seen."""
    estimate, digits = found.figures[name], 3
    text = share_text if name in PERCENT else partial(figure_text, digits=digits)
    note = "" if np.isnan(estimate.low) else f"{text(estimate.low)} to {text(estimate.high)}"
    if name in found.training:
        note += f"{'; ' if note else ''}{text(found.training[name])} in training"
    label = title(name)
    return label[0].upper() + label[1:], text(estimate.value), note


def _in_words(case: Case, found: Headline | None) -> str:
    name, evaluation = case.last
    if found is None:
        words = (
            "How good the model is on rows that it has not seen is not known: "
            f"{share_text(evaluation.accuracy)} of the rows of {name} are classified correctly, "
            "but it was fitted to them. Evaluate it on others, or fit it with a calibration."
        )
    elif not found.figures:
        words = f"No row of {name} has a label that is a class of the model."
    else:
        first = next(iter(found.figures))
        where = "" if found.method == "data" else "On rows that it has not seen the "
        words = f"{where or 'The '}{title(first)} of the model is "
        words += f"{estimate_text(first, found.figures[first])}: {found.source}."
        if not np.isnan(found.figures[first].low):
            words += " In brackets is the interval of 95 % confidence."
        if (gap := found.gap(first)) is not None:
            better = f"{100 * gap:.1f} points" if first in PERCENT else figure_text(gap, 3)
            words += f" On rows that it has seen it is {better} better." if gap > 0 else ""
    baseline = _most_frequent_share(evaluation)
    if baseline is not None:
        words += (
            " Always predicting the most frequent class would be correct for "
            f"{share_text(baseline)}."
        )
    if evaluation.unbalanced:
        words += (
            " The classes are unbalanced: the balanced accuracy, the areas and the average "
            "precision say more of the rare class than the accuracy does."
        )
    if case.search is not None and hasattr(case.search, "cv_results_"):
        count = len(case.search.cv_results_["params"])
        words += (
            f" It was chosen among {count:,} candidates, compared on {splits_text(case.search)}."
        )
    return words


def _most_frequent_share(evaluation: Evaluation) -> float | None:
    """Return the share of the most frequent class among the rows whose class is known."""
    totals = evaluation.confusion.sum(axis=1)
    return float(totals.max() / totals.sum()) if totals.any() else None


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
        note = "rows of classes that the model does not have count in no figure"
        rows.append([noted("Unknown labels", note), *(f"{e.unknown:,}" for e in sets)])
    for name in dict.fromkeys([*ordered(case.last[1]), *METRICS]):
        found = [e.figures.get(name) for e in sets]
        if any(value is not None for value in found):
            label = title(name)
            head = noted(label[0].upper() + label[1:], NOTES[name])
            rows.append([head, *(_estimate(name, value) for value in found)])
    baseline = [_most_frequent_share(e) for e in sets]
    note = "the accuracy of always predicting it"
    rows.append([noted("Most frequent class", note), *(share_text(x, 2) for x in baseline)])
    heads = ["", *map(case.shown_name, case.sets)]
    caption = "Metrics on each data set, with the interval of 95 % confidence"
    parts = [table(heads, rows, caption=caption, kind="figures")]
    if all(e.log_loss is None for e in sets):
        words = "The model was fitted without calibration, so it has no probabilities to evaluate."
        parts.append(paragraph(words, kind="note"))
    return "quality", "Quality", joined(parts)


def _estimate(name: str, found: Estimate | None) -> Any:
    """Return a figure with its interval below."""
    text = partial(share_text, digits=2) if name in PERCENT else figure_text
    if found is None:
        return text(None)
    return noted(text(found.value), f"{text(found.low)} to {text(found.high)}")


def confusion_section(case: Case) -> Section:
    """Return the section on the confusion matrix."""
    name, evaluation = case.last
    shown = case.shown_name(name)
    names, counts, pairs = case.names, evaluation.confusion, worst_confusions(evaluation.confusion)
    totals = counts.sum(axis=1)
    if len(names) > MAX_MATRIX_CLASSES:
        words = f"With {len(names):,} classes the whole matrix would be too large to read. "
        rows = [
            (names[i], names[j], count_text(counts[i, j]), share_text(counts[i, j] / totals[i]))
            for i, j in pairs
        ]
        heads = ("true class", "predicted class", "rows", "of the true class")
        caption = f"The most frequent confusions on {shown}"
        content = table(heads, rows, caption=caption, kind="pairs") if rows else Markup()
    else:
        words = "Blue is correct, orange is wrong; the darker, the larger the share of its class. "
        caption = f"Rows by true class (down) and predicted class (across): {shown}"
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
        words += "shown nowhere, and counts in no figure."
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
        of = f"Each line is a class against all others ({case.shown_name(name)})"
        explained = (
            "The share of rows of a class that are found (true positive rate) against the share of "
            "rows of other classes that are mistaken for it (false positive rate)."
        )
        if len(evaluation.roc) > MAX_NAMED_CURVES:
            of += f", coloured where the area is among the {MAX_NAMED_CURVES} smallest"
    areas = [(case.shown_name(key), _area(e)) for key, e in case.sets.items()]
    text = joined(
        (paragraph(explained), table(("", "area"), areas, caption="Area under the curve"))
    )
    words = f"ROC curves. {of}. " + "; ".join(f"{key}: AUC {area}" for key, area in areas)
    return "roc", "ROC curve", beside(picture(address, words, f"{of}."), text)


def _area(evaluation: Evaluation) -> str:
    """Return the area under the ROC curve with its interval."""
    found = evaluation.figures.get("roc_auc")
    return figure_text(None) if found is None else estimate_text("roc_auc", found)


def reliability_section(case: Case) -> Section | None:
    """Return the section on probabilities, where there are any."""
    name, evaluation = case.last
    found = getattr(case.model, "calibration_report_", None)
    if evaluation.reliability is None:
        return None
    rows = [
        (case.shown_name(key), figure_text(e.log_loss), figure_text(e.brier_score))
        for key, e in case.sets.items()
    ]
    words = "On the diagonal, predicted probabilities agree with the observed shares."
    if found is not None and name != OUT_OF_FOLD:
        rows.append(
            ("out of fold", figure_text(found["log_loss"]), figure_text(found["brier_score"]))
        )
        words += " Out of fold means training rows, each scored by a model not fitted to it."
    heads = ("", "log loss", "Brier score")
    text = paragraph(words) + table(heads, rows, caption="Quality of the probabilities")
    address = reliability_picture(evaluation, name, None if name == OUT_OF_FOLD else found)
    brier = figure_text(evaluation.brier_score)
    shown = case.shown_name(name)
    seen = f"Reliability of the probabilities ({shown}): Brier score {brier}"
    caption = f"Predicted probabilities and observed shares, in bins of rows: {shown}."
    return "reliability", "Reliability", beside(picture(address, seen, caption), Markup(text))
