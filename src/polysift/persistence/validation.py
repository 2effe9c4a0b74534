"""What the fitted attributes of a model must be, so that it can predict.

What is checked is what the code that predicts relies on. It need not check again, then, and a model
that could not work is found when it is saved or loaded, and not rows later.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

MAX_DEGREE = 2**31


class UnsoundError(ValueError):
    """A fitted attribute that no fit sets so."""


def _need(sound: Any, text: str) -> None:
    if not sound:
        raise UnsoundError(text)


def check_attributes(kind: str, attributes: dict[str, Any]) -> None:
    """Raise unless the attributes are those of a fitted model, which can predict."""
    d = _whole(attributes, "n_features_in_", 1)
    classes = _classes(attributes)
    if "feature_names_in_" in attributes:
        names = _array(attributes, "feature_names_in_", "O", (d,))
        _need(all(isinstance(name, str) for name in names), "feature_names_in_ must be text")
    columns = 1 if len(classes) == 2 else len(classes)
    if kind == "FPCClassifier":
        centers = _array(attributes, "centers_", "f", (None, d))
        n = _whole(attributes, "n_centers_", 1)
        _need(len(centers) == n, "centers_ and n_centers_ must agree")
        _array(attributes, "coef_", "f", (columns, n))
        _whole(attributes, "degree_", 1, MAX_DEGREE)
        _check_scaler(_fields(attributes, "scaler_"), d)
    else:
        _check_search(attributes, d, classes)
    for name in ("n_iter_", "n_products_", "random_state_"):
        if name in attributes:
            _whole(attributes, name, 0, 2**64)
    if "calibrator_" in attributes:
        _check_calibrator(_fields(attributes, "calibrator_"), columns)
    if "calibration_report_" in attributes:
        report = _fields(attributes, "calibration_report_", "brier_score", "log_loss")
        bins = _fields(report, "reliability", "predicted", "observed", "weight")
        _check_columns(bins, "reliability")
    if "history_" in attributes:
        _check_columns(_fields(attributes, "history_"), "history_", attributes.get("n_iter_"))
    if "training_summary_" in attributes:
        summary = _fields(attributes, "training_summary_", "rows", "class_counts")
        _array(summary, "class_counts", "f", (len(classes),))
    if "timings_" in attributes:
        _fields(attributes, "timings_")
    if "_map_params" in attributes:
        _fields(attributes, "_map_params", "degree", "n_centers", "scaler", "centers")
    for name in ("status_", "status_message_", "gram_"):
        _need(isinstance(attributes.get(name, ""), str), f"{name} must be text")
    for name in ("rho_", "best_score_", "time_saved_"):
        number = attributes.get(name, 0.0)
        _need(isinstance(number, Real) and not isinstance(number, bool), f"{name} must be a number")


def _check_search(attributes: dict[str, Any], d: int, classes: Any) -> None:
    results = _fields(attributes, "cv_results_", "params", "mean_test_score")
    _need(isinstance(results["params"], list), "the params in cv_results_ must be a list")
    count = len(results["params"])
    for name, column in results.items():
        fits = isinstance(column, np.ndarray) and column.shape == (count,)
        _need(fits or name == "params", f"{name!r:.80} in cv_results_ must have length {count}")
    for params in [*results["params"], attributes.get("best_params_")]:
        _need(isinstance(params, dict), "parameters of candidates must be dicts")
    _whole(attributes, "best_index_", 0, count - 1)
    _whole(attributes, "n_splits_", 1)
    if "best_estimator_" in attributes:
        best = _fields(attributes, "best_estimator_", "params", "attributes")
        _need(isinstance(best["attributes"], dict), "best_estimator_ must have attributes")
        check_attributes("FPCClassifier", best["attributes"])
        same = best["attributes"]["classes_"]
        agree = best["attributes"]["n_features_in_"] == d and same.dtype == classes.dtype
        _need(agree and np.array_equal(same, classes), "best_estimator_ must have the same classes")


def _fields(owner: dict[str, Any], name: str, *least: str) -> dict[str, Any]:
    """Return a dict that has at least these keys."""
    found: Any = owner.get(name)
    if not isinstance(found, dict) or not found.keys() >= {*least}:
        raise UnsoundError(f"{name} must be a dict{' with ' if least else ''}{', '.join(least)}")
    return found


def _whole(owner: dict[str, Any], name: str, least: int, most: int = 2**63) -> int:
    """Return an integer within bounds."""
    found: Any = owner.get(name)
    whole = isinstance(found, Integral) and not isinstance(found, bool)
    if not (whole and least <= found <= most):
        raise UnsoundError(f"{name} must be an integer from {least} to {most}")
    return int(found)


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) and not isinstance(value, np.ma.MaskedArray)


def _array(
    owner: dict[str, Any],
    name: str,
    kind: str,
    shape: tuple[int | None, ...],
    *,
    finite: bool = True,
) -> Any:
    """Return an array of kind "f" (which is float64), "i" or "O", and a shape; None is any."""
    found: Any = owner.get(name)
    _need(_is_array(found) and found.ndim == len(shape), f"{name} must be an array")
    lengths = zip(found.shape, shape, strict=True)
    fits = all(want is None or have == want for have, want in lengths)
    _need(fits, f"{name} must have shape {shape}")
    if kind == "f":
        _need(found.dtype == np.float64, f"{name} must be of float64")
        _need(not np.isnan(found).any(), f"{name} must not hold NaN")
        _need(not finite or np.isfinite(found).all(), f"{name} must be finite")
    else:
        _need(found.dtype.kind in ("iu" if kind == "i" else kind), f"{name} has the wrong dtype")
    return found


def _classes(attributes: dict[str, Any]) -> Any:
    found: Any = attributes.get("classes_")
    _need(_is_array(found) and found.ndim == 1, "classes_ must be an array")
    _need(len(found) > 1, "classes_ must hold at least two classes")
    if found.dtype == object:
        plain = (str, bytes, int, float, np.generic)
        _need(all(isinstance(label, plain) for label in found), "classes_ must be plain values")
    try:
        ascending = (found[:-1] < found[1:]).all()
    except TypeError:
        ascending = False
    _need(ascending, "classes_ must be distinct and sorted")
    return found


def _check_columns(columns: dict[str, Any], name: str, length: Any = None) -> None:
    for column in columns.values():
        fits = _is_array(column) and column.ndim == 1 and column.dtype == np.float64
        _need(fits, f"{name} must hold arrays of float64")
        length = len(column) if length is None else length
        _need(len(column) == length, f"{name} must hold arrays of one length")


def _check_scaler(scaler: dict[str, Any], d: int) -> None:
    if str(scaler.get("kind")) == "affine":
        _need(scaler.keys() == {"kind", "offset", "scale", "low", "high"}, "scaler_ is incomplete")
        for name in ("offset", "scale"):
            _array(scaler, name, "f", (d,))
        low, high = (_array(scaler, name, "f", (d,), finite=False) for name in ("low", "high"))
        _need((low <= high).all(), "the bounds of scaler_ must be in order")
        return
    _need(str(scaler.get("kind")) == "quantile", "scaler_ must be affine or quantile")
    _need(scaler.keys() == {"kind", "values", "levels", "counts"}, "scaler_ is incomplete")
    values = _array(scaler, "values", "f", (d, None))
    levels = _array(scaler, "levels", "f", values.shape)
    counts = _array(scaler, "counts", "i", (d,))
    width = values.shape[1]
    _need(((counts >= 1) & (counts <= width)).all(), "the counts of scaler_ must be within bounds")
    used = np.arange(1, width) < counts[:, np.newaxis]
    ascending = (values[:, 1:] > values[:, :-1]) & (levels[:, 1:] >= levels[:, :-1])
    _need((ascending | ~used).all(), "the knots of scaler_ must ascend")


def _check_calibrator(calibrator: dict[str, Any], columns: int) -> None:
    if str(calibrator.get("kind")) == "sigmoid":
        _need(calibrator.keys() == {"kind", "slope", "intercept"}, "calibrator_ is incomplete")
        for name in ("slope", "intercept"):
            _array(calibrator, name, "f", (columns,))
        return
    _need(str(calibrator.get("kind")) == "isotonic", "calibrator_ must be sigmoid or isotonic")
    expected = {"kind", "thresholds", "values", "counts"}
    _need(calibrator.keys() == expected, "calibrator_ is incomplete")
    thresholds = _array(calibrator, "thresholds", "f", (None,))
    values = _array(calibrator, "values", "f", thresholds.shape)
    counts = _array(calibrator, "counts", "i", (columns,)).tolist()
    _need(min(counts) >= 1 and sum(counts) == len(values), "the counts of calibrator_ must fit")
    _need(((values >= 0) & (values <= 1)).all(), "the values of calibrator_ must be probabilities")
    ascending = (thresholds[1:] >= thresholds[:-1]) & (values[1:] >= values[:-1])
    ascending[np.cumsum(counts)[:-1] - 1] = True  # from one column to the next
    _need(ascending.all(), "the knots of calibrator_ must ascend")
