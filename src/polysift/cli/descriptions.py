"""Models and evaluations as facts and tables to print, and as plain values for JSON."""

from __future__ import annotations

from typing import Any

import numpy as np

from polysift.cli.console import with_options
from polysift.data.kinds import NUMBER
from polysift.estimators.classifier import FPCClassifier
from polysift.estimators.fitted import kernel_of
from polysift.estimators.headline import (
    PERCENT,
    Headline,
    held_out_evaluation,
    ordered,
    range_text,
    title,
    value_text,
)
from polysift.estimators.search import FPCClassifierCV
from polysift.losses import solver_and_loss
from polysift.plots.base import number_text
from polysift.reporting.choice import choice_text, scaler_of
from polysift.reporting.columns import columns_of_model, is_plain, kinds_text
from polysift.training.evaluation import Evaluation
from polysift.training.metrics import METRICS
from polysift.training.plan import duration

Table = tuple[str, list[str], list[list[str]]]
"""A title, the names of columns, rows."""

ONNX_TYPES = {1: "float32", 8: "text", 11: "float64"}
"""The types of a graph's inputs, by the numbers of onnx.TensorProto.DataType."""

SHOWN_CLASSES = 20
"""How many classes a line or a table shows."""

SHOWN_COLUMNS = 100
"""How many columns a table shows."""

SHOWN_LABEL_CHARACTERS = 40
"""How much of a label is shown."""


def best_of(model: FPCClassifier | FPCClassifierCV) -> FPCClassifier | None:
    """Return the classifier: the given one, or the best of a search, where it was refitted."""
    if isinstance(model, FPCClassifier):
        return model
    return getattr(model, "best_estimator_", None)


def describe(model: FPCClassifier | FPCClassifierCV) -> dict[str, Any]:
    """Return a model and what it was trained on, as plain values."""
    described: dict[str, Any] = {"kind": type(model).__name__, "status": model.status_}
    best = best_of(model)
    if isinstance(model, FPCClassifierCV):
        described |= {
            "best_params": model.best_params_,
            "best_score": model.best_score_,
            "n_candidates": len(model.cv_results_["params"]),
            "n_splits": model.n_splits_,
            "time_saved": model.time_saved_,
        }
    if best is not None:
        described |= _described(best)
    return described | {"timings": model.timings_, "parameters": model.get_params(deep=False)}


def _described(model: FPCClassifier) -> dict[str, Any]:
    summary = model.training_summary_
    names = getattr(model, "feature_names_in_", None)
    return {
        "status_message": model.status_message_,
        "rows": summary["rows"],
        "origin": summary["origin"],
        "n_features": model.n_features_in_,
        "feature_names": names,
        "column_kinds": getattr(model, "column_kinds_", None),
        "column_notes": getattr(model, "column_notes_", []),
        "columns": summary.get("columns", []),
        "classes": model.classes_,
        "class_counts": summary["class_counts"],
        "kernel": kernel_of(model),
        "degree": model.degree_,
        "n_centers": model.n_centers_,
        "rho": model.rho_,
        "selection": getattr(model, "selection_", None),
        "n_iter": model.n_iter_,
        "random_state": model.random_state_,
        "objective": last(model, "objective"),
        "held_out": _held_out(model),
        "training": {"accuracy": 1 - last(model, "training_error")},
        "calibration": _calibration(model),
        "memory": {name: summary[f"{name}_memory"] for name in ("expected", "measured")}
        | {"limit": summary["memory_limit"]},
    }


def _held_out(model: FPCClassifier) -> dict[str, Any] | None:
    """Return the figures on rows that were not seen, as plain values."""
    found = held_out_evaluation(model)
    if found is None:
        return None
    return {"method": found[0], **found[1].to_dict(), "training": model.held_out_["training"]}


def _calibration(model: FPCClassifier) -> dict[str, Any] | None:
    if not hasattr(model, "calibration_report_"):
        return None
    names = ("brier_score", "log_loss")
    return {"kind": model.calibration, **{name: model.calibration_report_[name] for name in names}}


def last(model: FPCClassifier, column: str) -> float:
    """Return the last value of a column of the history; NaN where it was skipped."""
    return float(model.history_[column][-1]) if model.n_iter_ else float("nan")


def training_facts(model: FPCClassifier | FPCClassifierCV) -> list[tuple[str, str]]:
    """Return the facts of a training run, as names and values."""
    facts = []
    best = best_of(model)
    if best is not None:
        summary = best.training_summary_
        where = "" if summary["origin"] is None else f" of {summary['origin']}"
        facts += [
            (
                "trained on",
                f"{summary['rows']:,} rows x {best.n_features_in_} features{where}, "
                f"{len(best.classes_)} classes",
            ),
        ]
        if columns := columns_of_model(best):
            facts.append(("columns", kinds_text(columns)))
            facts += kind_facts(best)
        facts += [("note", with_options(note)) for note in getattr(best, "column_notes_", [])]
    if isinstance(model, FPCClassifierCV):
        finished = int(np.sum(model.cv_results_["status"] == "finished"))
        facts += [
            (
                "search",
                f"{len(model.cv_results_['params'])} candidates, {finished} to the end, "
                f"{model.n_splits_} splits ({model.status_})",
            ),
        ]
    if best is not None:
        facts += [
            (
                "model",
                _model_text(best),
            ),
            *choice_facts(best),
            ("iterations", f"{best.n_iter_}: {best.status_message_}"),
        ]
        if getattr(best, "gram_", "exact") == "sampled":
            facts.append(("Gram matrix", f"of a sample of the rows, {best.n_products_} products"))
        if (calibration := _calibration(best)) is not None:
            facts.append(
                (
                    "probabilities",
                    f"{calibration['kind']}; on rows not seen: Brier score "
                    f"{calibration['brier_score']:.4f}, log loss {calibration['log_loss']:.4f}",
                )
            )
    phases = ", ".join(
        f"{name} {duration(seconds)}" for name, seconds in model.timings_.items() if name != "total"
    )
    return [*facts, ("time", f"{duration(model.timings_['total'])} ({phases})")]


def _model_text(model: FPCClassifier) -> str:
    """Return the feature map, the solver and the seed of a classifier."""
    kernel = kernel_of(model)
    scaler = f"scaler {scaler_of(model)}, " if kernel == "polynomial" else ""
    return (
        f"{kernel} kernel of degree {model.degree_}, {model.n_centers_:,} centers, {scaler}"
        f"solver {solver_and_loss(model)[0]}, seed {model.random_state_}"
    )


def choice_facts(model: FPCClassifier) -> list[tuple[str, str]]:
    """Return how the feature map was chosen, if it was."""
    text = choice_text(model)
    return [] if text is None else [("chosen", text)]


def kind_facts(model: FPCClassifier) -> list[tuple[str, str]]:
    """Return the columns of each kind, by name or else by position; none where all are numbers."""
    kinds = getattr(model, "column_kinds_", ())
    names = getattr(model, "feature_names_in_", range(len(kinds)))
    found: dict[str, list[str]] = {}
    for name, kind in zip(names, kinds, strict=True):
        found.setdefault(str(kind), []).append(cut(name))
    if found.keys() <= {NUMBER}:
        return []
    return [(f"{kind} columns", shortened(columns)) for kind, columns in found.items()]


def model_facts(model: FPCClassifier | FPCClassifierCV) -> list[tuple[str, str]]:
    """Return the facts of a model, as names and values."""
    best = best_of(model)
    facts = []
    if best is not None:
        counts = zip(best.classes_, best.training_summary_["class_counts"], strict=True)
        facts.append(
            ("classes", shortened([f"{cut(label)} ({count:,.10g})" for label, count in counts]))
        )
        names = getattr(best, "feature_names_in_", None)
        if names is not None and not kind_facts(best):  # which name them all
            facts.append(("features", shortened(list(map(str, names)))))
    changed = [f"{name}={value!r}" for name, value in changed_parameters(model).items()]
    return [*facts, ("parameters", ", ".join(changed) or "all as by default")]


def inputs_fact(proto: Any) -> tuple[str, str]:
    """Return the inputs of an exported graph, and what each takes."""
    inputs = [
        f"{value.name} ({ONNX_TYPES[value.type.tensor_type.elem_type]})"
        for value in proto.graph.input
    ]
    return "inputs", shortened(inputs)


def changed_parameters(model: FPCClassifier | FPCClassifierCV) -> dict[str, Any]:
    """Return the parameters that differ from their defaults; arrays by their shape."""
    defaults = type(model)().get_params(deep=False)
    changed = {}
    for name, value in model.get_params(deep=False).items():
        if hasattr(value, "shape"):
            changed[name] = f"array of shape {value.shape}"
        elif repr(value) != repr(defaults[name]):
            changed[name] = value
    return changed


def shortened(words: list[str], most: int = SHOWN_CLASSES) -> str:
    """Return words in a line, the first ones of many."""
    rest = f", ... ({len(words)} in all)" if len(words) > most else ""
    return ", ".join(words[:most]) + rest


def cut(label: Any) -> str:
    """Return a label as text, beginning and end of a long one."""
    text, half = str(label), SHOWN_LABEL_CHARACTERS // 2
    return text if len(text) <= SHOWN_LABEL_CHARACTERS else f"{text[:half]}...{text[-half:]}"


def headline_table(found: Headline) -> Table:
    """Return figures on rows that were not seen, and beside them those on rows that were."""
    rows = [
        [
            title(name),
            value_text(name, estimate.value),
            range_text(name, estimate),
            value_text(name, found.training.get(name)),
            _gap_text(name, found.gap(name)),
        ]
        for name, estimate in found.figures.items()
    ]
    heads = ["", "held out", "95 % interval", "training", "gap"]
    return f"held out: {found.source}", heads, rows


def _gap_text(name: str, gap: float | None) -> str:
    if gap is None:
        return "-"
    return f"{100 * gap:+.2f}" if name in PERCENT else f"{gap:+.4f}"


def unknown_quality(model: FPCClassifier | FPCClassifierCV) -> list[tuple[str, str]]:
    """Return that nothing is known of rows that were not seen, and how to know."""
    best = best_of(model)
    error = float("nan") if best is None else last(best, "training_error")
    seen = "" if np.isnan(error) else f" (training error {100 * error:.2f} %, of rows it has seen)"
    how = "--holdout 0.2, --validation FILE or --calibration sigmoid measures it"
    return [("held out", f"not known{seen}; {how}")]


def given_headline(
    figures: dict[str, Evaluation], model: FPCClassifier | FPCClassifierCV, source: str
) -> Headline:
    """Return the headline of rows that were given: the last of evaluations."""
    *_, evaluation = figures.values()
    seen = figures.get("training")
    best = best_of(model)
    training = dict(getattr(best, "held_out_", {"training": {}})["training"])
    if seen is not None and seen is not evaluation:
        training = {name: found.value for name, found in seen.figures.items()}
    return Headline("data", source, ordered(evaluation), training)


def figures_table(figures: dict[str, Evaluation]) -> Table:
    """Return evaluations side by side, each figure with its interval."""
    rows = [["rows", *(word for e in figures.values() for word in (f"{e.rows:,}", ""))]]
    *_, last_one = figures.values()
    for name in dict.fromkeys([*ordered(last_one), *METRICS]):
        found = [figure.figures.get(name) for figure in figures.values()]
        if any(value is not None for value in found):
            cells = [
                ["-", "-"] if e is None else [value_text(name, e.value), range_text(name, e)]
                for e in found
            ]
            rows.append([title(name), *(word for pair in cells for word in pair)])
    if any(figure.unknown for figure in figures.values()):
        words = [word for e in figures.values() for word in (f"{e.unknown:,}", "left out")]
        rows.append(["unknown labels", *words])
    heads = [word for name in figures for word in (name, "95 % interval")]
    return "", ["", *heads], rows


def confusion_table(figures: Evaluation) -> Table:
    """Return the confusion matrix, of the first classes where there are many."""
    labels = [cut(label) for label in figures.classes[:SHOWN_CLASSES]]
    rows = [
        [label, *(f"{count:,.10g}" for count in counts[:SHOWN_CLASSES])]
        for label, counts in zip(labels, figures.confusion, strict=False)
    ]
    title, count = "true class (down), predicted (across)", len(figures.classes)
    if count > len(labels):
        title += f"; the first {len(labels)} of {count} classes, --json has them all"
    return title, ["", *labels], rows


def columns_table(model: FPCClassifier | FPCClassifierCV) -> Table | None:
    """Return the columns of the training rows; None where all are numbers, none missing."""
    best = best_of(model)
    columns = [] if best is None else columns_of_model(best)
    if is_plain(columns):
        return None
    rows = [
        [cut(c.name), c.kind_text, c.missing_text, c.levels_text, c.frequent_text]
        for c in columns[:SHOWN_COLUMNS]
    ]
    title = "columns of the training rows"
    if len(columns) > SHOWN_COLUMNS:
        title = f"the first {SHOWN_COLUMNS} of {len(columns)} columns; --json has them all"
    return title, ["column", "kind", "missing", "levels", "most frequent"], rows


def candidates_table(search: FPCClassifierCV, top: int) -> Table:
    """Return the best candidates of a search, with the standard deviation over the splits."""
    results = search.cv_results_
    order = np.argsort(results["rank_test_score"], kind="stable")[:top]
    names = {
        "kernel": "kernel",
        "scaler": "scaler",
        "degree": "degree",
        "n_centers": "centers",
        "rho": "rho",
    }
    names |= {"solver": "solver", "max_iter": "iter"}
    rows = [
        [
            f"{results['rank_test_score'][i]}",
            f"{results['mean_test_score'][i]:.4f}",
            f"{results['std_test_score'][i]:.4f}",
            *(_parameter(results["params"][i].get(name)) for name in names),
        ]
        for i in order
    ]
    title = f"the best of {len(results['params'])} candidates"
    return title, ["rank", "score", "std", *names.values()], rows


def _parameter(value: Any) -> str:
    if value is None:
        return "-"
    return number_text(value) if isinstance(value, float) else str(value)
