"""Model validation: the fitted attributes that are saved or loaded make a model that can predict.

What is checked is what prediction relies on, so that prediction need not check it again, and a
model that cannot work is refused when it is saved or loaded. A scaler checks its own fields
(``features.scalers.Scaler.validate``).
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from polysift.engine.sums import SCALES
from polysift.features.columns import COLUMN_KINDS
from polysift.features.kernels import KERNELS
from polysift.features.scalers import SCALERS, Scaler
from polysift.features.tables import TableScaler, check_words, stored_scaler
from polysift.runtime.arrays import InvalidFieldError, is_plain_array, require, required_array
from polysift.training.held_out import LEAVE_ONE_OUT, OUT_OF_FOLD
from polysift.training.metrics import METRICS

MAX_DEGREE = 2**31

SUMMARY_FIELDS = (
    *("rows", "class_counts", "origin", "dtype", "threads"),
    *("expected_memory", "measured_memory", "memory_limit"),
)
"""What every fit records in ``training_summary_``."""


SELECTION_FIELDS = ("rows", "centers", "trials", "best", "column_weights")
TRIAL_FIELDS = {"kernel", "scaler", "degree", "weights", "gcv", "degrees_of_freedom"}
"""What a choice records in ``selection_``, and of each trial."""

HELD_OUT_FIELDS = (
    *("method", "training", "rows", "figures", "confusion", "rare_class", "roc", "reliability"),
)
"""What a fit records in ``held_out_``."""

WEIGHTS = ("equal", "by importance")
"""The weights of columns that are tried."""


def check_attributes(kind: str, attributes: dict[str, Any]) -> None:
    """Raise an ``InvalidFieldError`` unless the attributes make a fitted model of this kind."""
    d = _integer(attributes, "n_features_in_", 1)
    classes = _classes(attributes)
    if "feature_names_in_" in attributes:
        names = required_array(attributes, "feature_names_in_", "O", (d,))
        require(all(isinstance(name, str) for name in names), "feature_names_in_ must be text")
    columns = 1 if len(classes) == 2 else len(classes)
    if kind == "FPCClassifier":
        scaler = stored_scaler(_fields(attributes, "scaler_"))
        scaler.validate(d)
        centers = required_array(attributes, "centers_", "f", (None, scaler.n_coordinates(d)))
        n = _integer(attributes, "n_centers_", 1)
        require(len(centers) == n, "centers_ and n_centers_ must agree")
        required_array(attributes, "coef_", "f", (columns, n))
        _integer(attributes, "degree_", 1, MAX_DEGREE)
        _word({"kernel_": "polynomial"} | attributes, "kernel_", KERNELS)
        _check_column_facts(attributes, d, scaler)
        if "partial_sums_" in attributes:
            fields = ("gram", "labels", "slopes", "weight")
            _check_sums(_fields(attributes, "partial_sums_", *fields), n, columns)
    else:
        _check_search(attributes, d, classes)
    if "calibrator_" in attributes:
        _check_calibrator(_fields(attributes, "calibrator_"), columns)
    if "decision_thresholds_" in attributes:
        required_array(attributes, "decision_thresholds_", "f", (columns,))
    if "threshold_report_" in attributes:
        report = _fields(attributes, "threshold_report_", "measure", "before", "after")
        figures = [report["before"], report["after"]]
        require(all(map(_is_number, figures)), "the figures of threshold_report_ must be numbers")
        require(isinstance(report["measure"], str), "the measure of thresholds must be text")
    _check_records(attributes, len(classes), d)


def _check_sums(sums: dict[str, Any], n: int, columns: int) -> None:
    """Check the sums from which ``partial_fit`` goes on."""
    required_array(sums, "gram", "f", (n, n))
    required_array(sums, "labels", "f", (n, columns))
    required_array(sums, "slopes", "f", (len(SCALES), columns))
    weight: Any = sums["weight"]
    fits = isinstance(weight, float) and np.isfinite(weight) and weight > 0
    require(fits and len(sums) == 4, "partial_sums_ must hold arrays, and a positive weight")


def _check_column_facts(attributes: dict[str, Any], d: int, scaler: Scaler) -> None:
    """Check what a fit records about the columns, each attribute if it is there."""
    if "column_kinds_" in attributes:
        kinds = required_array(attributes, "column_kinds_", "O", (d,)).tolist()
        check_words("column_kinds_", kinds, COLUMN_KINDS, d)
        if isinstance(scaler, TableScaler):
            require(kinds == scaler.kinds, "column_kinds_ and the kinds of scaler_ must agree")
    if "column_ranges_" in attributes:
        low, high = required_array(attributes, "column_ranges_", "f", (2, d), missing=True)
        apart = (low <= high) | (np.isnan(low) & np.isnan(high))
        require(apart.all(), "column_ranges_ must hold the smallest and the largest values")
    if "unseen_shares_" in attributes:
        shares = required_array(attributes, "unseen_shares_", "f", (d,))
        require(((shares >= 0) & (shares <= 1)).all(), "unseen_shares_ must be shares")


def _check_records(attributes: dict[str, Any], n_classes: int, d: int) -> None:
    """Check what a fit records about itself, each attribute if it is there."""
    for name in ("n_iter_", "n_products_", "random_state_"):
        if name in attributes:
            _integer(attributes, name, 0, 2**64)
    if "calibration_report_" in attributes:
        report = _fields(attributes, "calibration_report_", "brier_score", "log_loss")
        bins = _fields(report, "reliability", "predicted", "observed", "weight")
        _check_columns(bins, "reliability")
    if "history_" in attributes:
        _check_columns(_fields(attributes, "history_"), "history_", attributes.get("n_iter_"))
    if "training_summary_" in attributes:
        _check_summary(_fields(attributes, "training_summary_", *SUMMARY_FIELDS), n_classes, d)
    if "selection_" in attributes:
        _check_selection(_fields(attributes, "selection_", *SELECTION_FIELDS), d)
    if "held_out_" in attributes:
        _check_held_out(_fields(attributes, "held_out_", *HELD_OUT_FIELDS), n_classes)
    if "timings_" in attributes:
        seconds = _fields(attributes, "timings_", "total").values()
        require(all(isinstance(s, Real) for s in seconds), "timings_ must be numbers")
    if "_map_params" in attributes:
        _fields(attributes, "_map_params", "degree", "n_centers", "scaler", "centers")
    notes = attributes.get("column_notes_", [])
    text = isinstance(notes, list) and all(isinstance(note, str) for note in notes)
    require(text, "column_notes_ must be a list of text")
    for name in ("status_", "status_message_", "gram_", "solver_"):
        require(isinstance(attributes.get(name, ""), str), f"{name} must be text")
    for name in ("rho_", "best_score_", "time_saved_"):
        require(_is_number(attributes.get(name, 0.0)), f"{name} must be a number")


def _check_selection(found: dict[str, Any], d: int) -> None:
    """Check how the feature map was chosen, which ``inspect`` and the report show."""
    trials: Any = found["trials"]
    fits = isinstance(trials, list) and all(isinstance(trial, dict) for trial in trials)
    require(fits and trials, "the trials of selection_ must be a list of dicts")
    for trial in trials:
        _check_trial(trial)
    _integer(found, "best", 0, len(trials) - 1)
    for name in ("rows", "centers"):
        _integer(found, name, 1)
    weights: Any = found["column_weights"]
    if weights is not None:
        fits = isinstance(weights, list) and len(weights) == d
        require(fits and all(map(_is_number, weights)), f"column_weights must be {d} numbers")
        require(min(weights) >= 0, "column_weights must not be negative")


def _check_held_out(found: dict[str, Any], n_classes: int) -> None:
    """Check the figures on rows that were not seen, which displays and the report show."""
    _word(found, "method", (LEAVE_ONE_OUT, OUT_OF_FOLD))
    _integer(found, "rows", 0)
    _integer(found, "rare_class", 0, n_classes - 1)
    for name, values in _fields(found, "figures").items():
        fits = name in METRICS and isinstance(values, list) and len(values) == 3
        require(fits and all(map(_is_number, values)), "figures must be a value and its interval")
    seen = _fields(found, "training")
    fits = all(name in METRICS and _is_number(value) for name, value in seen.items())
    require(fits, "the figures of training rows must be numbers")
    required_array(found, "confusion", "f", (n_classes, n_classes))
    for name, curve in _fields(found, "roc").items():
        known = str(name).isdecimal() and int(name) < n_classes
        require(known, "curves must be those of classes")
        rates = required_array({"curve": curve}, "curve", "f", (2, None))
        require(((rates >= 0) & (rates <= 1)).all(), "a curve must be of rates")
    if found["reliability"] is not None:
        bins = _fields(found, "reliability", "predicted", "observed", "weight")
        _check_columns(bins, "reliability")


def _check_trial(trial: dict[str, Any]) -> None:
    """Check one of the feature maps that were tried."""
    require(trial.keys() == TRIAL_FIELDS, f"trials must have {', '.join(sorted(TRIAL_FIELDS))}")
    _word(trial, "kernel", KERNELS)
    _word(trial, "scaler", tuple(SCALERS))
    _word(trial, "weights", WEIGHTS)
    _integer(trial, "degree", 1, MAX_DEGREE)
    numbers = [trial[name] for name in ("gcv", "degrees_of_freedom")]
    none = all(number is None for number in numbers)
    require(none or all(map(_is_number, numbers)), "the results of a trial must be numbers")


def _check_summary(summary: dict[str, Any], n_classes: int, n_columns: int) -> None:
    """Check what ``inspect`` and the report say about the training."""
    for fact in _column_facts(summary):
        _integer(fact, "column", 0, n_columns - 1)
        require(isinstance(fact.get("kind"), str), "the kinds of columns must be text")
        require(_is_number(fact.get("missing")), "the shares of columns must be numbers")
        _integer({"levels": 0} | fact, "levels", 0)
        for pair in fact.get("frequent", []):
            fits = isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str)
            require(fits and _is_number(pair[1]), "frequent levels must be words with shares")
    required_array(summary, "class_counts", "f", (n_classes,))
    for name in ("rows", "threads"):
        _integer(summary, name, 1)
    for name in ("origin", "label", "dtype"):
        require(isinstance(summary.get(name), (str, type(None))), f"{name} must be text")
    for name in ("expected_memory", "measured_memory", "memory_limit"):
        if summary[name] is not None:
            _integer(summary, name, 0)


def _column_facts(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what a summary says of columns."""
    facts: Any = summary.get("columns", [])
    fits = isinstance(facts, list) and all(isinstance(fact, dict) for fact in facts)
    require(fits, "the columns of training_summary_ must be a list of dicts")
    require(
        all(isinstance(fact.get("frequent", []), list) for fact in facts),
        "frequent levels must be a list",
    )
    return list(facts)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _check_search(attributes: dict[str, Any], d: int, classes: Any) -> None:
    results = _fields(attributes, "cv_results_", "params", "mean_test_score")
    require(isinstance(results["params"], list), "the params in cv_results_ must be a list")
    count = len(results["params"])
    for name, column in results.items():
        fits = isinstance(column, np.ndarray) and column.shape == (count,)
        require(fits or name == "params", f"{name!r:.80} in cv_results_ must have length {count}")
    for params in [*results["params"], attributes.get("best_params_")]:
        require(isinstance(params, dict), "parameters of candidates must be dicts")
    _integer(attributes, "best_index_", 0, count - 1)
    _integer(attributes, "n_splits_", 1)
    if "best_estimator_" in attributes:
        best = _fields(attributes, "best_estimator_", "params", "attributes")
        require(isinstance(best["attributes"], dict), "best_estimator_ must have attributes")
        check_attributes("FPCClassifier", best["attributes"])
        same = best["attributes"]["classes_"]
        agree = best["attributes"]["n_features_in_"] == d and same.dtype == classes.dtype
        require(
            agree and np.array_equal(same, classes), "best_estimator_ must have the same classes"
        )
        if "calibrator_" in attributes:
            require(_is_calibrated(best), "best_estimator_ must have a calibration, as the search")


def _is_calibrated(state: dict[str, Any]) -> bool:
    """Return whether a classifier has probabilities."""
    params = state["params"]
    asked = isinstance(params, dict) and params.get("calibration") is not None
    return asked and "calibrator_" in state["attributes"]


def _fields(owner: dict[str, Any], name: str, *required: str) -> dict[str, Any]:
    """Return a dict that has at least these keys."""
    found: Any = owner.get(name)
    if not isinstance(found, dict) or not found.keys() >= {*required}:
        keys = f" with {', '.join(required)}" if required else ""
        raise InvalidFieldError(f"{name} must be a dict{keys}")
    return found


def _integer(owner: dict[str, Any], name: str, least: int, most: int = 2**63) -> int:
    """Return an integer within bounds."""
    found: Any = owner.get(name)
    whole = isinstance(found, Integral) and not isinstance(found, bool)
    if not (whole and least <= found <= most):
        raise InvalidFieldError(f"{name} must be an integer from {least} to {most}")
    return int(found)


def _word(owner: dict[str, Any], name: str, choices: tuple[str | None, ...]) -> None:
    """Raise unless a field is one of some words."""
    found: Any = owner.get(name)
    known = (found is None or isinstance(found, str)) and found in choices
    require(known, f"{name} must be one of {', '.join(map(repr, choices))}")


def _classes(attributes: dict[str, Any]) -> Any:
    found: Any = attributes.get("classes_")
    require(is_plain_array(found) and found.ndim == 1, "classes_ must be an array")
    require(len(found) > 1, "classes_ must hold at least two classes")
    if found.dtype == object:
        plain = (str, bytes, int, float, np.generic)
        require(all(isinstance(label, plain) for label in found), "classes_ must be plain values")
    try:
        ascending = (found[:-1] < found[1:]).all()
    except TypeError:
        ascending = False
    require(ascending, "classes_ must be distinct and sorted")
    return found


def _check_columns(columns: dict[str, Any], name: str, length: Any = None) -> None:
    for column in columns.values():
        fits = is_plain_array(column) and column.ndim == 1 and column.dtype == np.float64
        require(fits, f"{name} must hold arrays of float64")
        length = len(column) if length is None else length
        require(len(column) == length, f"{name} must hold arrays of one length")


def _check_calibrator(calibrator: dict[str, Any], columns: int) -> None:
    if str(calibrator.get("kind")) == "sigmoid":
        require(calibrator.keys() == {"kind", "slope", "intercept"}, "calibrator_ is incomplete")
        for name in ("slope", "intercept"):
            required_array(calibrator, name, "f", (columns,))
        return
    require(str(calibrator.get("kind")) == "isotonic", "calibrator_ must be sigmoid or isotonic")
    expected = {"kind", "thresholds", "values", "counts"}
    require(calibrator.keys() == expected, "calibrator_ is incomplete")
    thresholds = required_array(calibrator, "thresholds", "f", (None,))
    values = required_array(calibrator, "values", "f", thresholds.shape)
    counts = required_array(calibrator, "counts", "i", (columns,)).tolist()
    require(min(counts) >= 1 and sum(counts) == len(values), "the counts of calibrator_ must fit")
    require(
        ((values >= 0) & (values <= 1)).all(), "the values of calibrator_ must be probabilities"
    )
    ascending = (thresholds[1:] >= thresholds[:-1]) & (values[1:] >= values[:-1])
    ascending[np.cumsum(counts)[:-1] - 1] = True  # from one column to the next
    require(ascending.all(), "the knots of calibrator_ must ascend")
